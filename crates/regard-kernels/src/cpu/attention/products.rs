//! The products of tiles, where a unit of the machine has them from the numbers as they are stored.

use super::list;
use super::problem::Block;
use crate::cpu::kernels::Kernels;
use crate::spec::{Normalizer, Score, Shape, Spec};
use crate::{Element, View};
use std::ops::Range;

/// The seven products of dot attention over one block of queries and one tile of keys.
///
/// A block's arrays hold `[D, BLOCK]` numbers in a form of the unit's own; a tile is
/// `[keys, BLOCK]`, in memory for a whole number of [`ROWS`] keys.
pub(in crate::cpu) trait TileProducts<T>: Sync {
    /// Gets the queries of a block ready.
    fn pack_queries(&self, block: &Block, to: &mut [T]);
    /// Gets the gradients of a block's output ready.
    fn pack_grads(&self, block: &Block, to: &mut [T]);
    /// The scores of some keys.
    fn scores(&self, block: &Block, keys: &Range<usize>, queries: &[T], tile: &mut [T]);
    /// out `[Dv, BLOCK]` += vᵀ · weights
    fn add_values(&self, block: &Block, keys: &Range<usize>, weights: &[T], out: &mut [T]);
    /// The gradients of the weights of some keys.
    fn grad_of_weights(&self, block: &Block, keys: &Range<usize>, grads: &[T], tile: &mut [T]);
    /// dq `[Dq, BLOCK]` += kᵀ · grad
    fn add_query_grads(&self, block: &Block, keys: &Range<usize>, grad: &[T], dq: &mut [T]);
    /// dk `[keys, Dk]` += grad · q, whole [`ROWS`] of it.
    fn add_key_grads(&self, keys: &Range<usize>, grad: &[T], queries: &[T], dk: &mut [T]);
    /// dv `[keys, Dv]` += weights · grads, whole [`ROWS`] of it.
    fn add_value_grads(&self, keys: &Range<usize>, weights: &[T], grads: &[T], dv: &mut [T]);
}

/// The products from bf16 numbers, where the machine has a unit for them and the problem suits it:
/// dot scores, weighed as they come, of widths in whole tiles.
pub(in crate::cpu) fn of_halves<'a, E: Element>(
    (spec, s): (&Spec<E::Compute>, &Shape),
    kernels: &Kernels<E::Compute>,
    [q, k, v]: &[View<'a, E>; 3],
    grad_out: Option<&View<'a, E>>,
) -> Option<Box<dyn TileProducts<E::Compute> + 'a>> {
    let make = kernels.halves?;
    let Score::Dot { scale } = spec.score else { return None };
    let weighed_at_once =
        matches!(spec.normalizer, Normalizer::Softmax | Normalizer::Sigmoid | Normalizer::None);
    let suits = |width: usize| width > 0 && width.is_multiple_of(ROWS) && width <= WIDEST;
    if !weighed_at_once
        || list::serves_shape(spec, s, kernels.lanes)
        || !suits(s.dk)
        || !suits(s.dv)
        || s.nk == 0
    {
        return None;
    }
    let inputs = [E::as_bf16(q)?, E::as_bf16(k)?, E::as_bf16(v)?];
    make(inputs, grad_out.and_then(E::as_bf16), scale)
}

/// The widest head that has products of this kind.
pub(in crate::cpu) const WIDEST: usize = 256;
/// Keys that are computed at once: arrays over keys have room for as many more.
pub(in crate::cpu) const ROWS: usize = 32;
