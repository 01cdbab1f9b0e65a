//! Which keys a query may attend to.

use regard_kernels::{Edges, Window};
use regard_tensor::{DType, Result, Tensor, ensure};
use std::collections::HashMap;
use std::sync::Arc;

/// Which keys a query may attend to: all that are named here must allow a pair.
///
/// ```
/// use regard::prelude::*;
/// use regard::attention::Window;
/// let mask = Mask { causal: true, window: Some(Window { left: 4, right: 0 }), ..Mask::default() };
/// # let _ = mask;
/// ```
#[derive(Clone, Debug, Default)]
pub struct Mask {
    /// No key after the query's own position.
    pub causal: bool,
    /// Only keys this near.
    pub window: Option<Window>,
    /// How many keys of each batch item there are; the rest is padding.
    pub key_lengths: Option<Vec<usize>>,
    /// Only keys of the query's own segment.
    pub segments: Option<Segments>,
    /// Truths that broadcast to `[B, Hq, Nq, Nk]`; true allows.
    pub dense: Option<Tensor>,
    /// Only keys that an edge joins to the query.
    pub edges: Option<Arc<Edges>>,
}

/// The segment (document) of every query and every key.
///
/// ```
/// use regard::prelude::*;
/// use regard::attention::Segments;
/// let two = Segments { q: vec![0, 0, 1], k: vec![0, 0, 1] };
/// let mask = Mask { segments: Some(two), ..Mask::default() };
/// let x = Tensor::zeros(&[3, 1], DType::F32)?;
/// let seen = Attention::new(Score::dot()).attend(&x, &x, &x, &mask, Need::WEIGHTS)?;
/// // the last place is a document of its own
/// assert_eq!(seen.weights.unwrap().to_vec::<f32>()?[6..8], [0.0, 0.0]);
/// # Ok::<(), regard::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Segments {
    /// `[B, Nq]`
    pub q: Vec<i64>,
    /// `[B, Nk]`
    pub k: Vec<i64>,
}

impl Mask {
    /// Everything is allowed.
    ///
    /// ```
    /// use regard::prelude::*;
    /// let x = Tensor::zeros(&[2, 1], DType::F32)?;
    /// let mask = Mask::none();
    /// let attended = Attention::new(Score::dot()).attend(&x, &x, &x, &mask, Need::WEIGHTS)?;
    /// let weights = attended.weights.unwrap().to_vec::<f32>()?;
    /// assert!(weights.iter().all(|&w| w > 0.0));
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn none() -> Self {
        Self::default()
    }

    /// No key after the query's own position.
    ///
    /// ```
    /// use regard::prelude::*;
    /// let x = Tensor::zeros(&[2, 1], DType::F32)?;
    /// let mask = Mask::causal();
    /// let attended = Attention::new(Score::dot()).attend(&x, &x, &x, &mask, Need::WEIGHTS)?;
    /// let weights = attended.weights.unwrap().to_vec::<f32>()?;
    /// assert!(weights[1] == 0.0 && weights[2] > 0.0);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn causal() -> Self {
        Self { causal: true, ..Self::default() }
    }

    /// Padding: how many keys of each batch item there are.
    ///
    /// ```
    /// use regard::prelude::*;
    /// let x = Tensor::zeros(&[2, 3, 1], DType::F32)?;
    /// let mask = Mask::lengths(&[3, 1]);
    /// let attended = Attention::new(Score::dot()).attend(&x, &x, &x, &mask, Need::WEIGHTS)?;
    /// let weights = attended.weights.unwrap();
    /// assert_eq!(weights.select(0, 1)?.select(0, 0)?.to_vec::<f32>()?, [1.0, 0.0, 0.0]);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn lengths(lengths: &[usize]) -> Self {
        Self { key_lengths: Some(lengths.to_vec()), ..Self::default() }
    }

    /// Truncated attention: keys at a distance of at most `reach`.
    ///
    /// ```
    /// use regard::prelude::*;
    /// let x = Tensor::zeros(&[4, 1], DType::F32)?;
    /// let mask = Mask::within(1);
    /// let attended = Attention::new(Score::dot()).attend(&x, &x, &x, &mask, Need::WEIGHTS)?;
    /// let weights = attended.weights.unwrap().to_vec::<f32>()?;
    /// assert!(weights[1] > 0.0 && weights[2..4] == [0.0, 0.0]);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn within(reach: usize) -> Self {
        Self { window: Some(Window { left: reach, right: reach }), ..Self::default() }
    }

    /// The neighbors in a graph.
    ///
    /// ```
    /// use regard::prelude::*;
    /// use regard::attention::Edges;
    /// // query 0 sees key 1, query 1 sees both
    /// let edges = Edges::new(2, 2, &[(0, 1), (1, 0), (1, 1)])?;
    /// let x = Tensor::zeros(&[2, 1], DType::F32)?;
    /// let mask = Mask::edges(edges.into());
    /// let attended = Attention::new(Score::dot()).attend(&x, &x, &x, &mask, Need::WEIGHTS)?;
    /// let weights = attended.weights.unwrap().to_vec::<f32>()?;
    /// assert!(weights[0] == 0.0 && weights[2] > 0.0);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn edges(edges: Arc<Edges>) -> Self {
        Self { edges: Some(edges), ..Self::default() }
    }

    /// Truths that broadcast to `[B, Hq, Nq, Nk]`; true allows.
    ///
    /// ```
    /// use regard::prelude::*;
    /// let mask = Mask::dense(Tensor::from_bools(&[true, false, true, true], &[2, 2])?);
    /// let x = Tensor::zeros(&[2, 1], DType::F32)?;
    /// let attended = Attention::new(Score::dot()).attend(&x, &x, &x, &mask, Need::WEIGHTS)?;
    /// assert_eq!(attended.weights.unwrap().to_vec::<f32>()?, [1.0, 0.0, 0.5, 0.5]);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn dense(truths: Tensor) -> Self {
        Self { dense: Some(truths), ..Self::default() }
    }

    /// What both allow. Refuses lengths, segments and edges of different sizes, dense masks that do not
    /// broadcast to one shape, and edges that are there several times.
    ///
    /// ```
    /// use regard::prelude::*;
    /// let mask = Mask::causal().and(&Mask::lengths(&[3, 1]))?.and(&Mask::lengths(&[2, 2]))?;
    /// assert!(mask.causal && mask.key_lengths == Some(vec![2, 1]));
    /// let error = mask.and(&Mask::lengths(&[1])).unwrap_err();
    /// assert_eq!(error.to_string(), "one mask has 2 lengths, the other 1");
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn and(&self, other: &Mask) -> Result<Mask> {
        Ok(Mask {
            causal: self.causal || other.causal,
            window: both(&self.window, &other.window, |a, b| {
                Ok(Window { left: a.left.min(b.left), right: a.right.min(b.right) })
            })?,
            key_lengths: both(&self.key_lengths, &other.key_lengths, |a, b| {
                same("lengths", a.len(), b.len())?;
                Ok(a.iter().zip(b).map(|(a, b)| *a.min(b)).collect())
            })?,
            segments: both(&self.segments, &other.segments, Segments::and)?,
            dense: both(&self.dense, &other.dense, |a, b| {
                truths(a)?;
                truths(b)?;
                a.where_(b, &Tensor::from_bools(&[false], &[])?)
            })?,
            edges: both(&self.edges, &other.edges, shared_edges)?,
        })
    }

    /// Whether it says nothing.
    pub(crate) fn allows_all(&self) -> bool {
        let Self { causal, window, key_lengths, segments, dense, edges } = self;
        let more = segments.is_none() && dense.is_none() && edges.is_none();
        !causal && window.is_none() && key_lengths.is_none() && more
    }

    /// The dense mask as the kernels read it.
    pub(super) fn dense_truths(&self) -> Result<Option<Dense>> {
        let Some(dense) = &self.dense else { return Ok(None) };
        truths(dense)?;
        let shape = four("mask", dense.shape())?;
        let truths = dense.to_vec::<u8>()?.into_iter().map(|x| x != 0).collect();
        Ok(Some(Dense { truths, shape }))
    }
}

impl Segments {
    /// Pairs that are of one segment in both.
    fn and(&self, other: &Segments) -> Result<Segments> {
        same("queries in segments", self.q.len(), other.q.len())?;
        same("keys in segments", self.k.len(), other.k.len())?;
        let mut names = HashMap::new();
        let mut joined = |a: &[i64], b: &[i64]| -> Vec<i64> {
            let pairs = a.iter().copied().zip(b.iter().copied());
            let name = |pair| {
                let next = names.len() as i64;
                *names.entry(pair).or_insert(next)
            };
            pairs.map(name).collect()
        };
        Ok(Segments { q: joined(&self.q, &other.q), k: joined(&self.k, &other.k) })
    }
}

/// What is there of two, and where both are, what they make together.
fn both<T: Clone>(
    a: &Option<T>,
    b: &Option<T>,
    and: impl FnOnce(&T, &T) -> Result<T>,
) -> Result<Option<T>> {
    match (a, b) {
        (Some(a), Some(b)) => and(a, b).map(Some),
        (one, other) => Ok(one.as_ref().or(other.as_ref()).cloned()),
    }
}

fn same(what: &str, a: usize, b: usize) -> Result<()> {
    ensure!(a == b, "one mask has {a} {what}, the other {b}");
    Ok(())
}

fn truths(dense: &Tensor) -> Result<()> {
    ensure!(
        dense.dtype() == DType::Bool,
        "the mask is {}; it wants truths, true where a query may attend",
        dense.dtype()
    );
    Ok(())
}

/// The edges that two graphs have in common.
fn shared_edges(a: &Arc<Edges>, b: &Arc<Edges>) -> Result<Arc<Edges>> {
    if Arc::ptr_eq(a, b) {
        return Ok(a.clone());
    }
    same("queries in edges", a.queries(), b.queries())?;
    same("keys in edges", a.keys(), b.keys())?;
    ensure!(
        !a.has_repeats() && !b.has_repeats(),
        "edges that are there several times have no part in common with others"
    );
    let mut pairs = Vec::new();
    for query in 0..a.queries() {
        let others = b.of_query(query);
        let shared = a.of_query(query).iter().filter(|key| others.binary_search(key).is_ok());
        pairs.extend(shared.map(|&key| (query, key as usize)));
    }
    Ok(Arc::new(Edges::new(a.queries(), a.keys(), &pairs)?))
}

/// Truths that broadcast to `[B, Hq, Nq, Nk]`.
pub(super) struct Dense {
    pub(super) truths: Vec<bool>,
    pub(super) shape: [usize; 4],
}

/// A shape of at most four axes with ones before it.
pub(super) fn four(name: &str, shape: &[usize]) -> Result<[usize; 4]> {
    ensure!(shape.len() <= 4, "{name} of shape {shape:?} does not broadcast to [B, Hq, Nq, Nk]");
    let mut four = [1; 4];
    four[4 - shape.len()..].copy_from_slice(shape);
    Ok(four)
}
