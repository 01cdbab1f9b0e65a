//! The arrays of a call besides q, k and v.

use crate::array::{Block, Zero, zeros};
use crate::edges::{Edges, EdgesAt};
use crate::mechanism::{Mechanism, Score};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use regard_kernels as kernels;
use regard_kernels::cuda::{OptionsAt, PARAMETERS};
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
    Option<Links<'py>>,
);

/// A graph's edges: the host's, or a GPU's.
#[derive(FromPyObject)]
enum Links<'py> {
    Host(Bound<'py, Edges>),
    Gpu(Bound<'py, EdgesAt>),
}

/// What a call draws with.
#[derive(Clone, Copy, FromPyObject)]
pub(crate) struct Random(u64, f64);

/// An array, or as many zeros where it lies on a GPU.
type Array<'a, X> = (Cow<'a, [X]>, [usize; 4]);

/// Learned numbers, biases and masks, in the type computed in.
pub(crate) struct Inputs<'a, T: Clone> {
    w: &'a [T],
    parameters: Vec<Parameter<'a, T>>,
    key_bias: Option<Array<'a, T>>,
    bias: Option<Array<'a, T>>,
    alibi: Option<&'a [T]>,
    relative: Option<Array<'a, T>>,
    key_lengths: Option<Vec<usize>>,
    segments: Option<[&'a [i64]; 2]>,
    dense: Option<Array<'a, bool>>,
    edges: Option<Arc<kernels::Edges>>,
    /// Where what lies on a GPU is.
    pub(crate) at: OptionsAt,
}

impl<T: Clone> Default for Inputs<'_, T> {
    fn default() -> Self {
        Self {
            w: &[],
            parameters: Vec::new(),
            key_bias: None,
            bias: None,
            alibi: None,
            relative: None,
            key_lengths: None,
            segments: None,
            dense: None,
            edges: None,
            at: OptionsAt::default(),
        }
    }
}

impl<'a, T: Real + Zero> Inputs<'a, T> {
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
        let at = OptionsAt {
            key_bias: address_of(&key_bias),
            bias: address_of(&bias),
            alibi: address_of(&alibi),
            relative: address_of(&relative),
            key_lengths: address_of(&lengths),
            q_segments: address_of(&q_segments),
            k_segments: address_of(&k_segments),
            dense: address_of(&dense),
            w: address_of(&w),
            parameters: addresses_of(&parameters)?,
            edges: match &edges {
                Some(Links::Gpu(edges)) => Some(edges.get().at),
                _ => None,
            },
        };
        if let Some(width) = relative.map(|x| x.shape()[3]).filter(|width| width % 2 == 0) {
            return Err(PyValueError::new_err(format!(
                "relative_bias has width {width}; it needs [1 or Hq, 2·R + 1], an odd one"
            )));
        }
        // SAFETY: the caller's, for all of them.
        unsafe {
            Ok(Self {
                w: w.map_or(Ok(&[][..]), |w| w.numbers())?,
                parameters: parameters.iter().map(|x| parameter(x)).collect::<PyResult<_>>()?,
                key_bias: key_bias.map(|x| array(&x)).transpose()?,
                bias: bias.map(|x| array(&x)).transpose()?,
                alibi: alibi.map(|x| x.numbers()).transpose()?,
                relative: relative.map(|x| array(&x)).transpose()?,
                key_lengths: lengths.map(|x| lengths_of(x.numbers()?)).transpose()?,
                segments: match (q_segments, k_segments) {
                    (Some(q), Some(k)) => Some([q.numbers()?, k.numbers()?]),
                    _ => None,
                },
                dense: dense.map(|x| Ok::<_, PyErr>((truths(&x)?, x.shape()))).transpose()?,
                edges: edges.map(|edges| match edges {
                    Links::Host(edges) => edges.get().edges.clone(),
                    Links::Gpu(edges) => edges.get().edges.clone(),
                }),
                at,
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
            segments: self.segments.as_ref().map(|[q, k]| Segments { q, k }),
            dense: self.dense.as_ref().map(broadcast),
            edges: self.edges.as_deref(),
        };
        let bias = Bias {
            key: self.key_bias.as_ref().map(broadcast),
            full: self.bias.as_ref().map(broadcast),
            alibi: self.alibi,
            relative: self
                .relative
                .as_ref()
                .map(|(table, shape)| Relative { table, max_distance: shape[3] / 2 }),
        };
        Spec {
            score,
            mask,
            bias,
            normalizer: mechanism.normalizer(seed),
            // A key that is drawn and a weight that is dropped have streams of their own.
            dropout: (p != 0.0).then_some(Dropout { p, seed }),
            offset: mechanism.offset,
        }
    }
}

fn addresses_of<X>(blocks: &[Block<X>]) -> PyResult<[Option<u64>; PARAMETERS]> {
    let mut to = [None; PARAMETERS];
    for (n, block) in blocks.iter().enumerate() {
        match (to.get_mut(n), block.gpu_address()) {
            (Some(to), at) => *to = at,
            (None, None) => {}
            (None, Some(_)) => {
                return Err(PyValueError::new_err(format!(
                    "the score has {} parameters; on a GPU it may have {PARAMETERS}",
                    blocks.len()
                )));
            }
        }
    }
    Ok(to)
}

fn address_of<X>(block: &Option<Block<X>>) -> Option<u64> {
    block.as_ref().and_then(|block| block.gpu_address())
}

fn broadcast<'b, X: Clone>((data, shape): &'b Array<'_, X>) -> Broadcast<'b, X> {
    Broadcast { data, shape: *shape }
}

/// # Safety
/// As for [`Inputs::of`].
unsafe fn array<'a, T: Zero>(block: &Block<T>) -> PyResult<Array<'a, T>> {
    // SAFETY: the caller's.
    Ok((Cow::Borrowed(unsafe { block.numbers()? }), block.shape()))
}

/// # Safety
/// As for [`Inputs::of`].
unsafe fn parameter<'a, T: Zero>(block: &Block<T>) -> PyResult<Parameter<'a, T>> {
    let [_, _, heads, width] = block.shape();
    // SAFETY: the caller's.
    Ok(Parameter { data: unsafe { block.numbers()? }, shape: [heads, width] })
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
///
/// # Safety
/// As for [`Inputs::of`].
unsafe fn truths<'a>(block: &Block<u8>) -> PyResult<Cow<'a, [bool]>> {
    if block.gpu_address().is_some() {
        return zeros(block.numel()?).map(Cow::Borrowed);
    }
    // SAFETY: the caller's.
    let bytes = unsafe { block.slice()? };
    let highest = bytes.iter().fold(0, |highest, &byte| highest.max(byte));
    if highest > 1 {
        return Ok(Cow::Owned(bytes.iter().map(|&byte| byte != 0).collect()));
    }
    // SAFETY: every byte is 0 or 1, which is what a `bool` is.
    Ok(Cow::Borrowed(unsafe { std::slice::from_raw_parts(bytes.as_ptr().cast(), bytes.len()) }))
}

/// A call with numbers of a type that there is none of.
pub(crate) fn no_such_type(code: u8) -> PyErr {
    PyTypeError::new_err(format!("there is no type of numbers {code}"))
}
