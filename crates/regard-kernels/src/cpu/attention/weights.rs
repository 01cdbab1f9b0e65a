//! From scores to weights, and from the gradient of the weights to that of the scores, for tiles
//! whose rows' statistics are known.

use super::BLOCK;
use super::tile::positive;
use crate::Real;
use crate::cpu::simd::Simd;
use crate::spec::Normalizer;

/// The normalizers that weigh a score by itself, given one number per row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    /// exp(s − lse)
    Softmax,
    /// max(s − τ, 0)
    Sparsemax,
    /// max(s/2 − τ, 0)²
    Entmax15,
    /// 1 / (1 + exp(−s))
    Sigmoid,
    /// s
    Plain,
}

impl Rule {
    /// None for hard choices.
    pub(in crate::cpu) fn of(normalizer: Normalizer) -> Option<Self> {
        match normalizer {
            Normalizer::Softmax => Some(Self::Softmax),
            Normalizer::Sparsemax => Some(Self::Sparsemax),
            Normalizer::Entmax15 => Some(Self::Entmax15),
            Normalizer::Sigmoid => Some(Self::Sigmoid),
            Normalizer::None => Some(Self::Plain),
            Normalizer::Argmax | Normalizer::Sample { .. } => None,
        }
    }

    /// The weight of one score.
    pub(in crate::cpu) fn weight<T: Real>(self, s: T, stat: T) -> T {
        match self {
            Self::Softmax => (s - stat).exp(),
            Self::Sparsemax => positive(s - stat),
            Self::Entmax15 => {
                let root = positive(s * T::of(0.5) - stat);
                root * root
            }
            Self::Sigmoid => T::ONE / (T::ONE + (-s).exp()),
            Self::Plain => {
                if s == T::NEG_INFINITY {
                    T::ZERO
                } else {
                    s
                }
            }
        }
    }

    /// The derivative's diagonal for a score of weight `p`: what a gradient is multiplied by.
    pub(in crate::cpu) fn slope<T: Real>(self, s: T, p: T) -> T {
        match self {
            Self::Softmax => p,
            Self::Sparsemax => {
                if p > T::ZERO {
                    T::ONE
                } else {
                    T::ZERO
                }
            }
            Self::Entmax15 => p.sqrt(),
            Self::Sigmoid => p * (T::ONE - p),
            Self::Plain => {
                if s == T::NEG_INFINITY {
                    T::ZERO
                } else {
                    T::ONE
                }
            }
        }
    }

    /// Whether a row's gradients are centered: ds = slope · (dp − mean).
    pub(in crate::cpu) fn centers(self) -> bool {
        matches!(self, Self::Softmax | Self::Sparsemax | Self::Entmax15)
    }
}

/// The weight and the derivative's diagonal.
#[cfg_attr(optimized, inline(always))]
unsafe fn weigh<V: Simd>(rule: Rule, s: V, stat: V) -> (V, V) {
    // SAFETY: arithmetic only.
    unsafe {
        let zero = V::zero();
        let one = V::splat(V::T::ONE);
        match rule {
            Rule::Softmax => {
                let p = s.sub(stat).exp();
                (p, p)
            }
            Rule::Sparsemax => {
                let p = s.sub(stat).max(zero);
                (p, p.where_greater(zero, one, zero))
            }
            Rule::Entmax15 => {
                let root = s.mul(V::number(0.5)).sub(stat).max(zero);
                (root.mul(root), root)
            }
            Rule::Sigmoid => {
                let p = s.sigmoid();
                (p, p.mul(one.sub(p)))
            }
            Rule::Plain => {
                let nothing = V::splat(V::T::NEG_INFINITY);
                (s.where_greater(nothing, s, s.max(zero)), s.where_greater(nothing, one, zero))
            }
        }
    }
}

/// Scores `[rows, BLOCK]` become weights; `stat` has one number per column.
#[cfg_attr(optimized, inline(always))]
pub(in crate::cpu) unsafe fn weights<V: Simd>(
    rule: Rule,
    tile: *mut V::T,
    rows: usize,
    width: usize,
    stat: *const V::T,
) {
    // SAFETY: width ≤ BLOCK is a multiple of LANES.
    unsafe {
        macro_rules! each {
            ($rule:expr) => {
                for r in 0..rows {
                    let mut i = 0;
                    while i < width {
                        let at = tile.add(r * BLOCK + i);
                        weigh($rule, V::load(at), V::load(stat.add(i))).0.store(at);
                        i += V::LANES;
                    }
                }
            };
        }
        match rule {
            Rule::Softmax => each!(Rule::Softmax),
            Rule::Sparsemax => each!(Rule::Sparsemax),
            Rule::Entmax15 => each!(Rule::Entmax15),
            Rule::Sigmoid => each!(Rule::Sigmoid),
            Rule::Plain => each!(Rule::Plain),
        }
    }
}

/// Scores become weights, and gradients of the weights become gradients of the scores.
#[cfg_attr(optimized, inline(always))]
pub(in crate::cpu) unsafe fn backward<V: Simd>(
    rule: Rule,
    tile: *mut V::T,
    grad: *mut V::T,
    rows: usize,
    width: usize,
    stat: *const V::T,
    delta: *const V::T,
) {
    // SAFETY: width ≤ BLOCK is a multiple of LANES.
    unsafe {
        macro_rules! each {
            ($rule:expr) => {
                for r in 0..rows {
                    let mut i = 0;
                    while i < width {
                        let (at, to) = (tile.add(r * BLOCK + i), grad.add(r * BLOCK + i));
                        let (p, slope) = weigh($rule, V::load(at), V::load(stat.add(i)));
                        p.store(at);
                        slope.mul(V::load(to).sub(V::load(delta.add(i)))).store(to);
                        i += V::LANES;
                    }
                }
            };
        }
        match rule {
            Rule::Softmax => each!(Rule::Softmax),
            Rule::Sparsemax => each!(Rule::Sparsemax),
            Rule::Entmax15 => each!(Rule::Entmax15),
            Rule::Sigmoid => each!(Rule::Sigmoid),
            Rule::Plain => each!(Rule::Plain),
        }
    }
}

/// Adds a tile to each row's Σ slope·grad and Σ slope, the two rows of BLOCK in `sums`.
#[cfg_attr(optimized, inline(always))]
pub(in crate::cpu) unsafe fn delta_step<V: Simd>(
    rule: Rule,
    tile: *const V::T,
    grad: *const V::T,
    rows: usize,
    width: usize,
    stat: *const V::T,
    sums: *mut V::T,
) {
    // SAFETY: width ≤ BLOCK is a multiple of LANES.
    unsafe {
        let mut i = 0;
        while i < width {
            let stat = V::load(stat.add(i));
            let mut weighted = V::load(sums.add(i));
            let mut total = V::load(sums.add(BLOCK + i));
            for r in 0..rows {
                let (_, slope) = weigh(rule, V::load(tile.add(r * BLOCK + i)), stat);
                weighted = slope.fma(V::load(grad.add(r * BLOCK + i)), weighted);
                total = total.add(slope);
            }
            weighted.store(sums.add(i));
            total.store(sums.add(BLOCK + i));
            i += V::LANES;
        }
    }
}
