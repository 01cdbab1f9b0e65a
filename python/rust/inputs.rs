//! The arrays of a call besides q, k and v.

use crate::array::Block;
use crate::edges::Edges;
use crate::mechanism::{Mechanism, Score};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use regard_kernels as kernels;
use regard_kernels::{Bias, Broadcast, Dropout, Mask, Parameter, Real, Relative, Segments, Spec};
use std::borrow::Cow;
use std::sync::Arc;

/// What a tuple from Python holds, in its order.
type Given<'py, T> = (
    Option<Block<T>>,
    Vec<Block<T>>,
    Option<Block<T>>,
    Option<Block<T>>,
    Option<Block<T>>,
    Option<Block<T>>,
    Option<Block<i64>>,
    Option<Block<i64>>,
    Option<Block<i64>>,
    Option<Block<u8>>,
    Option<Bound<'py, Edges>>,
);

/// What a call draws with.
#[derive(Clone, Copy, FromPyObject)]
pub(crate) struct Random(u64, f64);

/// Learned numbers, biases and masks, in the type computed in.
pub(crate) struct Inputs<'a, T> {
    w: &'a [T],
    parameters: Vec<Parameter<'a, T>>,
    bias: Bias<'a, T>,
    key_lengths: Option<Vec<usize>>,
    segments: Option<Segments<'a>>,
    dense: Option<(Cow<'a, [bool]>, [usize; 4])>,
    edges: Option<Arc<kernels::Edges>>,
}

impl<T> Default for Inputs<'_, T> {
    fn default() -> Self {
        Self {
            w: &[],
            parameters: Vec::new(),
            bias: Bias::default(),
            key_lengths: None,
            segments: None,
            dense: None,
            edges: None,
        }
    }
}

impl<'a, T: Real> Inputs<'a, T> {
    /// # Safety
    /// The arrays are live for `'a`, and not written meanwhile.
    pub(crate) unsafe fn of(given: Option<&Bound<PyAny>>) -> PyResult<Self> {
        let Some(given) = given else { return Ok(Self::default()) };
        let (
            w,
            parameters,
            key_bias,
            bias,
            alibi,
            relative,
            lengths,
            q_segments,
            k_segments,
            dense,
            edges,
        ) = given.extract::<Given<T>>()?;
        // SAFETY: the caller's, for all of them.
        unsafe {
            let relative = relative.map(|table| {
                let width = table.shape()[3];
                if width % 2 == 0 {
                    return Err(PyValueError::new_err(format!(
                        "relative_bias has width {width}; it needs [1 or Hq, 2·R + 1], an odd one"
                    )));
                }
                Ok(Relative { table: table.slice()?, max_distance: width / 2 })
            });
            Ok(Self {
                w: w.map_or(Ok(&[][..]), |w| w.slice())?,
                parameters: parameters.iter().map(|x| parameter(x)).collect::<PyResult<_>>()?,
                bias: Bias {
                    key: key_bias.map(|x| x.broadcast()).transpose()?,
                    full: bias.map(|x| x.broadcast()).transpose()?,
                    alibi: alibi.map(|x| x.slice()).transpose()?,
                    relative: relative.transpose()?,
                },
                key_lengths: lengths.map(|x| lengths_of(x.slice()?)).transpose()?,
                segments: match (q_segments, k_segments) {
                    (Some(q), Some(k)) => Some(Segments { q: q.slice()?, k: k.slice()? }),
                    _ => None,
                },
                dense: dense
                    .map(|x| Ok::<_, PyErr>((truths(x.slice()?), x.shape())))
                    .transpose()?,
                edges: edges.map(|edges| edges.get().edges.clone()),
            })
        }
    }

    /// The whole of what is computed on queries of a width.
    pub(crate) fn spec<'b>(
        &'b self,
        mechanism: &'b Mechanism,
        width: usize,
        Random(seed, p): Random,
    ) -> Spec<'b, T> {
        let score = match &mechanism.score {
            Score::Dot(None) => kernels::Score::scaled_dot(width),
            Score::Dot(Some(scale)) => kernels::Score::Dot { scale: T::of(*scale) },
            Score::Additive(activation) => {
                kernels::Score::Additive { activation: *activation, w: self.w }
            }
            Score::Expression(expression) => {
                kernels::Score::Expression { expression, parameters: &self.parameters }
            }
        };
        let mask = Mask {
            causal: mechanism.causal,
            window: mechanism.window,
            key_lengths: self.key_lengths.as_deref(),
            segments: self.segments,
            dense: self.dense.as_ref().map(|(data, shape)| Broadcast { data, shape: *shape }),
            edges: self.edges.as_deref(),
        };
        Spec {
            score,
            mask,
            bias: self.bias,
            normalizer: mechanism.normalizer(seed),
            // A key that is drawn and a weight that is dropped have streams of their own.
            dropout: (p != 0.0).then_some(Dropout { p, seed }),
            offset: mechanism.offset,
        }
    }
}

/// # Safety
/// As for [`Inputs::of`].
unsafe fn parameter<'a, T>(block: &Block<T>) -> PyResult<Parameter<'a, T>> {
    let [_, _, heads, width] = block.shape();
    // SAFETY: the caller's.
    Ok(Parameter { data: unsafe { block.slice()? }, shape: [heads, width] })
}

fn lengths_of(lengths: &[i64]) -> PyResult<Vec<usize>> {
    let each = lengths.iter().enumerate().map(|(b, &length)| {
        usize::try_from(length).map_err(|_| {
            PyValueError::new_err(format!("key_lengths[{b}] is {length}; a length is not negative"))
        })
    });
    each.collect()
}

/// Bytes as truths: an array of truths may hold any byte, and only 0 and 1 are a `bool`.
fn truths(bytes: &[u8]) -> Cow<'_, [bool]> {
    let highest = bytes.iter().fold(0, |highest, &byte| highest.max(byte));
    if highest > 1 {
        return Cow::Owned(bytes.iter().map(|&byte| byte != 0).collect());
    }
    // SAFETY: every byte is 0 or 1, which is what a `bool` is.
    Cow::Borrowed(unsafe { std::slice::from_raw_parts(bytes.as_ptr().cast(), bytes.len()) })
}

/// A call with numbers of a type that there is none of.
pub(crate) fn no_such_type(code: u8) -> PyErr {
    PyTypeError::new_err(format!("there is no type of numbers {code}"))
}
