//! Biases: what is added to the scores.

use super::{Broadcast, Shape};
use crate::Real;
use crate::error::{Error, ensure};
use crate::numel::{MOST, numel};

/// What is added to the scores: the sum of all that is given.
///
/// ```
/// use regard_kernels::{Bias, Spec};
/// // s = q·k/√8 − slope · |distance|, a slope for each of two heads
/// let bias = Bias { alibi: Some(&[0.5, 0.25]), ..Bias::default() };
/// let spec = Spec { bias, ..Spec::<f32>::scaled_dot(8) };
/// # let _ = spec;
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Bias<'a, T> {
    /// One number per key: `[B or 1, Hq or 1, 1, Nk]`. Learned.
    pub key: Option<Broadcast<'a, T>>,
    /// Broadcast to `[B, Hq, Nq, Nk]`. Learned. −∞ masks.
    pub full: Option<Broadcast<'a, T>>,
    /// `[Hq]` slopes: −slope · |distance| between query and key position (Press et al. 2021).
    pub alibi: Option<&'a [T]>,
    /// A table by distance. Learned.
    pub relative: Option<Relative<'a, T>>,
}

impl<T> Default for Bias<'_, T> {
    fn default() -> Self {
        Self { key: None, full: None, alibi: None, relative: None }
    }
}

/// A bias by the distance from query to key position, clamped to ±max_distance.
///
/// ```
/// use regard_kernels::{Bias, Relative, Spec};
/// // −1 for all keys before the query, 0 at it, 1 for all after
/// let relative = Some(Relative { table: &[-1.0, 0.0, 1.0], max_distance: 1 });
/// let spec = Spec { bias: Bias { relative, ..Bias::default() }, ..Spec::<f32>::scaled_dot(8) };
/// # let _ = spec;
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Relative<'a, T> {
    /// `[1 or Hq, 2·max_distance + 1]`, row after row; entry `clamp(distance, ±max_distance) + max_distance`.
    pub table: &'a [T],
    /// The furthest distance with an entry of its own.
    pub max_distance: usize,
}

impl<T> Relative<'_, T> {
    /// Where the entry of a head for a distance lies in the table.
    #[inline(always)]
    pub(crate) fn index(&self, h: usize, distance: isize) -> usize {
        let max_distance = self.max_distance as isize;
        let width = 2 * self.max_distance + 1;
        let row = if self.table.len() == width { 0 } else { h };
        row * width + (distance.clamp(-max_distance, max_distance) + max_distance) as usize
    }
}

impl<T: Real> Bias<'_, T> {
    pub(super) fn check(&self, s: &Shape) -> Result<(), Error> {
        if let Some(key) = &self.key {
            key.check("key_bias", [s.b, s.hq, 1, s.nk])?;
        }
        if let Some(full) = &self.full {
            full.check("bias", [s.b, s.hq, s.nq, s.nk])?;
        }
        if let Some(slopes) = self.alibi {
            ensure!(
                slopes.len() == s.hq,
                "alibi_slopes has {} elements, q has {} heads",
                slopes.len(),
                s.hq
            );
        }
        if let Some(Relative { table, max_distance }) = self.relative {
            let width = max_distance.saturating_mul(2).saturating_add(1);
            ensure!(
                table.len() == width || table.len() == numel(&[s.hq, width]),
                "relative_bias has {} elements; max_distance {max_distance} needs [1 or {}, {width}]",
                table.len(),
                s.hq
            );
            ensure!(
                numel(&[s.b, s.hq, width]) <= MOST,
                "relative_bias of width {width} for B {} and Hq {} is larger than any memory",
                s.b,
                s.hq
            );
        }
        Ok(())
    }

    pub(crate) fn is_none(&self) -> bool {
        self.key.is_none() && self.full.is_none() && self.alibi.is_none() && self.relative.is_none()
    }

    /// The bias of one pair.
    #[inline]
    pub(crate) fn at(&self, offset: isize, b: usize, h: usize, i: usize, j: usize) -> T {
        let distance = j as isize - (i as isize + offset);
        let mut sum = T::ZERO;
        if let Some(key) = &self.key {
            sum += key.at(b, h, 0, j);
        }
        if let Some(full) = &self.full {
            sum += full.at(b, h, i, j);
        }
        if let Some(slopes) = self.alibi {
            sum -= slopes[h] * T::of(distance.unsigned_abs() as f64);
        }
        if let Some(relative) = &self.relative {
            sum += relative.table[relative.index(h, distance)];
        }
        sum
    }
}
