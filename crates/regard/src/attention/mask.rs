//! Which keys a query may attend to.

use regard_kernels::{Edges, Window};
use regard_tensor::{DType, Result, Tensor, ensure};
use std::sync::Arc;

/// Which keys a query may attend to: all that are named here must allow a pair.
///
/// ```
/// use regard::prelude::*;
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

    /// The dense mask as the kernels read it.
    pub(super) fn dense_truths(&self) -> Result<Option<Dense>> {
        let Some(dense) = &self.dense else { return Ok(None) };
        ensure!(
            dense.dtype() == DType::Bool,
            "the mask is {}; it wants truths, true where a query may attend",
            dense.dtype()
        );
        let shape = four("mask", dense.shape())?;
        let truths = dense.to_vec::<u8>()?.into_iter().map(|x| x != 0).collect();
        Ok(Some(Dense { truths, shape }))
    }
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
