//! Which keys a query may attend to.

use regard_kernels::{Edges, Window};
use regard_tensor::{DType, Result, Tensor, ensure};
use std::sync::Arc;

/// Which keys a query may attend to: all that are named here must allow a pair.
///
/// ```
/// use regard::{Mask, Window};
/// let mask = Mask { causal: true, window: Some(Window { left: 4, right: 0 }), ..Mask::default() };
/// # let _ = mask;
/// ```
#[derive(Clone, Debug, Default)]
pub struct Mask {
    /// No key behind the query's own position.
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
#[derive(Clone, Debug)]
pub struct Segments {
    /// `[B, Nq]`
    pub q: Vec<i64>,
    /// `[B, Nk]`
    pub k: Vec<i64>,
}

impl Mask {
    /// Everything is allowed.
    pub fn none() -> Self {
        Self::default()
    }

    /// No key behind the query's own position.
    pub fn causal() -> Self {
        Self { causal: true, ..Self::default() }
    }

    /// Padding: how many keys of each batch item there are.
    pub fn lengths(lengths: &[usize]) -> Self {
        Self { key_lengths: Some(lengths.to_vec()), ..Self::default() }
    }

    /// Truncated attention: keys at a distance of at most `reach`.
    pub fn within(reach: usize) -> Self {
        Self { window: Some(Window { left: reach, right: reach }), ..Self::default() }
    }

    /// The neighbours in a graph.
    pub fn edges(edges: Arc<Edges>) -> Self {
        Self { edges: Some(edges), ..Self::default() }
    }

    /// The dense mask as the kernels read it: truths, and a shape of four axes.
    pub(super) fn dense_bools(&self) -> Result<Option<(Vec<bool>, [usize; 4])>> {
        let Some(dense) = &self.dense else { return Ok(None) };
        ensure!(
            dense.dtype() == DType::Bool,
            "the mask is {}; it wants truths, true where a query may attend",
            dense.dtype()
        );
        let shape = four("mask", dense.shape())?;
        Ok(Some((dense.to_vec::<u8>()?.into_iter().map(|x| x != 0).collect(), shape)))
    }
}

/// A shape of at most four axes with ones before it.
pub(super) fn four(name: &str, shape: &[usize]) -> Result<[usize; 4]> {
    ensure!(shape.len() <= 4, "{name} of shape {shape:?} does not broadcast to [B, Hq, Nq, Nk]");
    let mut four = [1; 4];
    four[4 - shape.len()..].copy_from_slice(shape);
    Ok(four)
}
