//! Masks: which keys a query may attend to.

use super::{Broadcast, Edges, Shape};
use crate::error::{Error, ensure};
use crate::numel::{MOST, numel};

/// Which keys a query may attend to: all that every given part allows.
///
/// Positions count from [`Spec::offset`](super::Spec::offset).
///
/// ```
/// use regard_kernels::{Mask, Spec};
/// // no key after the query's place, and none beyond a length of its own for each of two sequences
/// let mask = Mask { causal: true, key_lengths: Some(&[5, 3]), ..Mask::default() };
/// let spec = Spec { mask, ..Spec::<f32>::scaled_dot(8) };
/// # let _ = spec;
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Mask<'a> {
    /// No key after the query's own position.
    pub causal: bool,
    /// Only keys near the query's own position.
    pub window: Option<Window>,
    /// `[B]`: only the first so many keys of each batch item.
    pub key_lengths: Option<&'a [usize]>,
    /// Only keys of the query's own segment.
    pub segments: Option<Segments<'a>>,
    /// Broadcast to `[B, Hq, Nq, Nk]`: only where true.
    pub dense: Option<Broadcast<'a, bool>>,
    /// Only along the edges of a graph.
    pub edges: Option<&'a Edges>,
}

/// Truncated attention: a query at position p sees keys p − left … p + right.
///
/// ```
/// use regard_kernels::{Mask, Window};
/// let mask = Mask { window: Some(Window { left: 128, right: 0 }), ..Mask::default() };
/// # let _ = mask;
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Keys before the query's position.
    pub left: usize,
    /// Keys after the query's position.
    pub right: usize,
}

/// Documents packed into one sequence: a query sees only keys of equal segment number.
///
/// ```
/// use regard_kernels::{Mask, Segments};
/// // two documents of two and three tokens in one sequence
/// let ids = [0, 0, 1, 1, 1];
/// let mask = Mask { segments: Some(Segments { q: &ids, k: &ids }), ..Mask::default() };
/// # let _ = mask;
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Segments<'a> {
    /// `[B, Nq]`
    pub q: &'a [i64],
    /// `[B, Nk]`
    pub k: &'a [i64],
}

impl Mask<'_> {
    pub(super) fn check(&self, s: &Shape) -> Result<(), Error> {
        if let Some(lengths) = self.key_lengths {
            ensure!(
                lengths.len() == s.b,
                "key_lengths has {} elements, the batch has {}",
                lengths.len(),
                s.b
            );
            if let Some((b, length)) = lengths.iter().enumerate().find(|(_, l)| **l > s.nk) {
                return Err(Error::new(format!(
                    "key_lengths[{b}] is {length}, k has only {} rows",
                    s.nk
                )));
            }
        }
        if let Some(Segments { q, k }) = self.segments {
            for (name, segments, n) in [("q", q, s.nq), ("k", k, s.nk)] {
                ensure!(
                    segments.len() == numel(&[s.b, n]),
                    "{name}_segments has {} elements, [B, N] = [{}, {n}] needs {}",
                    segments.len(),
                    s.b,
                    numel(&[s.b, n])
                );
            }
        }
        if let Some(dense) = &self.dense {
            dense.check("mask", [s.b, s.hq, s.nq, s.nk])?;
        }
        if let Some(edges) = self.edges {
            ensure!(
                edges.queries() == s.nq && edges.keys() == s.nk,
                "edges join {} queries to {} keys, q has {} rows and k has {}",
                edges.queries(),
                edges.keys(),
                s.nq,
                s.nk
            );
            ensure!(
                numel(&[s.b, s.hq, edges.len()]) <= MOST,
                "{} edges for B {} and Hq {} are more pairs than any memory holds",
                edges.len(),
                s.b,
                s.hq
            );
        }
        Ok(())
    }

    /// Whether an edge is there more than once.
    pub(crate) fn has_repeats(&self) -> bool {
        self.edges.is_some_and(Edges::has_repeats)
    }

    /// Whether anything but edges forbids a pair.
    pub(crate) fn is_more_than_edges(&self) -> bool {
        self.causal
            || self.window.is_some()
            || self.key_lengths.is_some()
            || self.segments.is_some()
            || self.dense.is_some()
    }

    /// Whether query `i` of head `h` may attend to key `j`, edges left aside.
    #[inline]
    pub(crate) fn allows(
        &self,
        s: &Shape,
        offset: isize,
        b: usize,
        h: usize,
        i: usize,
        j: usize,
    ) -> bool {
        let distance = j as isize - (i as isize + offset);
        if self.causal && distance > 0 {
            return false;
        }
        if let Some(Window { left, right }) = self.window
            && if distance > 0 { distance as usize > right } else { distance.unsigned_abs() > left }
        {
            return false;
        }
        if let Some(lengths) = self.key_lengths
            && j >= lengths[b]
        {
            return false;
        }
        if let Some(segments) = self.segments
            && segments.q[b * s.nq + i] != segments.k[b * s.nk + j]
        {
            return false;
        }
        self.dense.is_none_or(|dense| dense.at(b, h, i, j))
    }
}
