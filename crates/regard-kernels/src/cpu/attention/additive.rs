//! Additive scores Σ_d w_d · act(q_d + k_d), and their gradients, for tiles.
//!
//! tanh is the costly one. Since e^{2(q+k)} = e^{2q} · e^{2k}, both factors are made once per query
//! and once per key, and a pair costs a product, a reciprocal and no exponential:
//! tanh(q + k) = (E − 1) / (E + 1) with E = e^{2q} e^{2k}. Its error is a few units of 10⁻⁸
//! throughout, as tanh's own is near ±1. Where all inputs are small that would lose relative
//! accuracy, so there e^{2q} − 1 and e^{2k} − 1 are kept instead; where any is large, the
//! exponentials could overflow, and tanh is computed pair by pair.
//!
//! A score needs no single tanh, only Σ w·tanh = −2 Σ (w/D − w/2) with D = E + 1, and there terms
//! share a reciprocal: w₁/D₁ + w₂/D₂ = (w₁D₂ + w₂D₁) / (D₁D₂). Where the inputs are small enough
//! for the product of their D, four terms share one. The halves are taken away group by group, so
//! that no sum grows larger than the score's own.
//!
//! Scores run with a query per lane; gradients with a feature per lane, so that neither needs a
//! sum across lanes.

use super::BLOCK;
use crate::Activation;
use crate::Real;
use crate::cpu::simd::Simd;

/// How act(q + k) is computed from what is kept of q and of k.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Form {
    /// tanh from e^{2q} and e^{2k}; so many terms of a score share a reciprocal.
    TanhProduct {
        share: usize,
    },
    /// tanh from e^{2q} − 1 and e^{2k} − 1.
    TanhSmall,
    /// An activation of the sum itself. ReLU and identity are leaky with slopes 0 and 1.
    Tanh,
    Leaky(f64),
    Gelu,
}

impl Form {
    /// Whether rows of one register have kernels of their own; see `narrow.rs`.
    #[cfg_attr(optimized, inline(always))]
    pub(in crate::cpu) fn is_narrow(self) -> bool {
        matches!(self, Self::Leaky(_))
    }

    /// The form that is accurate for inputs of magnitude up to `max_abs` (NaN: unknown).
    pub(in crate::cpu) fn of(activation: Activation, max_abs: f64) -> Self {
        match activation {
            Activation::Tanh if max_abs <= 0.5 => Self::TanhSmall,
            // D ≤ e^{4 max_abs} + 1, and the product of all that share stays below e^{88}.
            Activation::Tanh if max_abs <= 5.4 => Self::TanhProduct { share: 4 },
            Activation::Tanh if max_abs <= 10.9 => Self::TanhProduct { share: 2 },
            Activation::Tanh if max_abs <= 20.0 => Self::TanhProduct { share: 1 },
            Activation::Tanh => Self::Tanh,
            Activation::LeakyRelu { slope } => Self::Leaky(slope),
            Activation::Relu => Self::Leaky(0.0),
            Activation::Identity => Self::Leaky(1.0),
            Activation::Gelu => Self::Gelu,
            other => unreachable!("Score::check refuses {other}"),
        }
    }

    /// Whether q and k are kept as they are.
    pub(in crate::cpu) fn is_direct(self) -> bool {
        !matches!(self, Self::TanhProduct { .. } | Self::TanhSmall)
    }
}

/// Runs a block of code with `$form` a constant of each form in turn, so that it is compiled once
/// for each.
macro_rules! for_each_form {
    ($given:expr, $form:ident => $code:expr) => {
        match $given {
            Form::TanhProduct { share } => {
                let $form = Form::TanhProduct { share };
                $code
            }
            Form::TanhSmall => {
                let $form = Form::TanhSmall;
                $code
            }
            direct => for_each_direct_form!(direct, $form => $code),
        }
    };
}

/// The same for those that read q and k as they are: lists have no others.
macro_rules! for_each_direct_form {
    ($given:expr, $form:ident => $code:expr) => {
        match $given {
            Form::Tanh => {
                let $form = Form::Tanh;
                $code
            }
            Form::Leaky(slope) => {
                let $form = Form::Leaky(slope);
                $code
            }
            Form::Gelu => {
                let $form = Form::Gelu;
                $code
            }
            form => unreachable!("{form:?} reads what was prepared"),
        }
    };
}
pub(in crate::cpu) use for_each_direct_form;

/// What is kept of q or k.
#[cfg_attr(optimized, inline(always))]
pub(in crate::cpu) unsafe fn keep<V: Simd>(form: Form, x: V) -> V {
    // SAFETY: arithmetic only.
    unsafe {
        match form {
            Form::TanhProduct { .. } => x.add(x).exp(),
            Form::TanhSmall => x.add(x).exp_m1(),
            _ => x,
        }
    }
}

/// act(q + k) from what is kept.
#[cfg_attr(optimized, inline(always))]
pub(in crate::cpu) unsafe fn value<V: Simd>(form: Form, q: V, k: V) -> V {
    // SAFETY: arithmetic only.
    unsafe {
        let one = V::splat(V::T::ONE);
        match form {
            Form::TanhProduct { .. } => {
                q.fma(k, V::zero().sub(one)).mul(q.fma(k, one).reciprocal())
            }
            Form::TanhSmall => {
                let e = q.fma(k, q.add(k));
                e.mul(e.add(V::number(2.0)).reciprocal())
            }
            Form::Tanh => q.add(k).tanh(),
            Form::Leaky(slope) => q.add(k).leaky(V::number(slope)),
            Form::Gelu => {
                let x = q.add(k);
                x.mul(x.normal().0)
            }
        }
    }
}

/// act(q + k) and its derivative.
#[cfg_attr(optimized, inline(always))]
pub(in crate::cpu) unsafe fn value_and_slope<V: Simd>(form: Form, q: V, k: V) -> (V, V) {
    // SAFETY: arithmetic only.
    unsafe {
        let value = value(form, q, k);
        let slope = match form {
            Form::TanhProduct { .. } | Form::TanhSmall | Form::Tanh => {
                value.fnma(value, V::splat(V::T::ONE))
            }
            Form::Leaky(slope) => {
                q.add(k).where_greater(V::zero(), V::splat(V::T::ONE), V::number(slope))
            }
            Form::Gelu => {
                let x = q.add(k);
                let (share, density) = x.normal();
                x.fma(density, share)
            }
        };
        (value, slope)
    }
}

/// Replaces rows `[rows, d]` by what the form keeps of them.
#[cfg_attr(optimized, inline(always))]
pub(in crate::cpu) unsafe fn prepare<V: Simd>(
    form: Form,
    from: *const V::T,
    from_row: usize,
    rows: usize,
    d: usize,
    to: *mut V::T,
    to_row: usize,
) {
    // SAFETY: rows of d numbers are read and written, the last ones by masked access.
    unsafe {
        for r in 0..rows {
            let (from, to) = (from.add(r * from_row), to.add(r * to_row));
            let mut x = 0;
            while x < d {
                let n = d - x;
                keep(form, V::load_upto(from.add(x), n)).store_upto(to.add(x), n);
                x += V::LANES;
            }
        }
    }
}

/// The scores of `rows` keys for the `width` queries of a block.
#[derive(Clone, Copy)]
pub(crate) struct AdditiveScores<T> {
    pub(crate) form: Form,
    pub(crate) d: usize,
    /// What is kept of the queries, `[d, BLOCK]`.
    pub(crate) q: *const T,
    /// What is kept of the keys, `[rows, d]`.
    pub(crate) k: *const T,
    pub(crate) k_row: usize,
    pub(crate) rows: usize,
    pub(crate) width: usize,
    pub(crate) w: *const T,
    /// `[rows, BLOCK]`
    pub(crate) to: *mut T,
}

#[cfg_attr(optimized, inline(always))]
pub(in crate::cpu) unsafe fn additive_scores<V: Simd>(a: AdditiveScores<V::T>) {
    // SAFETY: width ≤ BLOCK is a multiple of LANES.
    unsafe {
        if let Form::TanhProduct { share: share @ (2 | 4) } = a.form {
            return tanh_scores::<V>(&a, share);
        }
        for_each_form!(a.form, form => {
            let mut i = 0;
            while i < a.width {
                let wide = V::WIDE >= 4 && i + 4 * V::LANES <= a.width;
                let mut r = 0;
                while r < a.rows {
                    let many = r + 3 <= a.rows;
                    match (wide, many) {
                        (true, true) => score_block::<V, 3, 4>(form, &a, r, i),
                        (true, false) => score_block::<V, 1, 4>(form, &a, r, i),
                        (false, true) => score_block::<V, 3, 1>(form, &a, r, i),
                        (false, false) => score_block::<V, 1, 1>(form, &a, r, i),
                    }
                    r += if many { 3 } else { 1 };
                }
                i += if wide { 4 } else { 1 } * V::LANES;
            }
        })
    }
}

/// Scores by tanh where terms share reciprocals.
#[cfg_attr(optimized, inline(always))]
unsafe fn tanh_scores<V: Simd>(a: &AdditiveScores<V::T>, share: usize) {
    // SAFETY: as above.
    unsafe {
        let mut r = 0;
        while r < a.rows {
            let many = r + 3 <= a.rows;
            let mut i = 0;
            while i < a.width {
                let wide = V::WIDE >= 4 && i + 2 * V::LANES <= a.width;
                match (wide, many, share) {
                    (true, true, 4) => tanh_block::<V, 4, 3, 2>(a, r, i),
                    (true, true, _) => tanh_block::<V, 2, 3, 2>(a, r, i),
                    (_, true, 4) => tanh_block::<V, 4, 3, 1>(a, r, i),
                    (_, true, _) => tanh_block::<V, 2, 3, 1>(a, r, i),
                    (_, false, 4) => tanh_block::<V, 4, 1, 1>(a, r, i),
                    (_, false, _) => tanh_block::<V, 2, 1, 1>(a, r, i),
                }
                i += if wide && many { 2 } else { 1 } * V::LANES;
            }
            r += if many { 3 } else { 1 };
        }
    }
}

/// −2 Σ (w/D − w/2) for MR keys and NV registers of queries, `SHARE` terms to a reciprocal.
#[cfg_attr(optimized, inline(always))]
unsafe fn tanh_block<V: Simd, const SHARE: usize, const MR: usize, const NV: usize>(
    a: &AdditiveScores<V::T>,
    r: usize,
    i: usize,
) {
    // SAFETY: rows r..r + MR and NV registers of columns from i lie within the tile.
    unsafe {
        let mut sum = [[V::zero(); NV]; MR];
        let mut x = 0;
        while x + SHARE <= a.d {
            tanh_terms::<V, SHARE, MR, NV>(a, [r, i, x], SHARE, &mut sum);
            x += SHARE;
        }
        if x < a.d {
            tanh_terms::<V, SHARE, MR, NV>(a, [r, i, x], a.d - x, &mut sum);
        }
        let minus_two = V::number(-2.0);
        for (m, sum) in sum.iter().enumerate() {
            for (v, sum) in sum.iter().enumerate() {
                sum.mul(minus_two).store(a.to.add((r + m) * BLOCK + i + v * V::LANES));
            }
        }
    }
}

/// Adds the terms of `n` ≤ `SHARE` features from x on.
#[cfg_attr(optimized, inline(always))]
unsafe fn tanh_terms<V: Simd, const SHARE: usize, const MR: usize, const NV: usize>(
    a: &AdditiveScores<V::T>,
    [r, i, x]: [usize; 3],
    n: usize,
    sum: &mut [[V; NV]; MR],
) {
    // SAFETY: as above.
    unsafe {
        let one = V::splat(V::T::ONE);
        let mut half = V::T::ZERO;
        let mut w = [V::zero(); SHARE];
        for (t, w) in w.iter_mut().enumerate().take(n) {
            half += *a.w.add(x + t);
            *w = V::splat(*a.w.add(x + t));
        }
        let half = V::splat(half * V::T::of(0.5));
        for v in 0..NV {
            let mut q = [V::zero(); SHARE];
            for (t, q) in q.iter_mut().enumerate().take(n) {
                *q = V::load(a.q.add((x + t) * BLOCK + i + v * V::LANES));
            }
            for (m, sum) in sum.iter_mut().enumerate() {
                let k = a.k.add((r + m) * a.k_row + x);
                // Past the last feature a term is 0/1.
                let mut d = [one; SHARE];
                for (t, d) in d.iter_mut().enumerate().take(n) {
                    *d = q[t].fma(V::splat(*k.add(t)), one);
                }
                let (above, below) = shared_fraction(w, d);
                sum[v] = above.fma(below.reciprocal(), sum[v].sub(half));
            }
        }
    }
}

/// Σ w/d as one fraction, by pairs.
#[cfg_attr(optimized, inline(always))]
unsafe fn shared_fraction<V: Simd, const SHARE: usize>(w: [V; SHARE], d: [V; SHARE]) -> (V, V) {
    // SAFETY: arithmetic only.
    unsafe {
        let pair = |w1: V, d1: V, w2: V, d2: V| (w1.fma(d2, w2.mul(d1)), d1.mul(d2));
        let (above, below) = pair(w[0], d[0], w[1], d[1]);
        if SHARE == 2 {
            return (above, below);
        }
        let (above2, below2) = pair(w[2], d[2], w[3], d[3]);
        pair(above, below, above2, below2)
    }
}

#[cfg_attr(optimized, inline(always))]
unsafe fn score_block<V: Simd, const MR: usize, const NV: usize>(
    form: Form,
    a: &AdditiveScores<V::T>,
    r: usize,
    i: usize,
) {
    // SAFETY: rows r..r + MR and NV registers of columns from i lie within the tile.
    unsafe {
        let mut sum = [[V::zero(); NV]; MR];
        for x in 0..a.d {
            let w = V::splat(*a.w.add(x));
            let mut q = [V::zero(); NV];
            for (v, q) in q.iter_mut().enumerate() {
                *q = V::load(a.q.add(x * BLOCK + i + v * V::LANES));
            }
            for (n, sum) in sum.iter_mut().enumerate() {
                let k = V::splat(*a.k.add((r + n) * a.k_row + x));
                for v in 0..NV {
                    sum[v] = w.fma(value(form, q[v], k), sum[v]);
                }
            }
        }
        for (n, sum) in sum.iter().enumerate() {
            for (v, sum) in sum.iter().enumerate() {
                sum.store(a.to.add((r + n) * BLOCK + i + v * V::LANES));
            }
        }
    }
}

/// Adds the gradients of one tile.
#[derive(Clone, Copy)]
pub(crate) struct AdditiveGrads<T> {
    pub(crate) form: Form,
    pub(crate) d: usize,
    /// Queries in the block.
    pub(crate) n: usize,
    /// Keys in the tile.
    pub(crate) rows: usize,
    /// What is kept of the queries, `[n, d]`, rows `q_row` apart.
    pub(crate) q: *const T,
    pub(crate) q_row: usize,
    /// What is kept of the keys, `[rows, d]`, rows `k_row` apart.
    pub(crate) k: *const T,
    pub(crate) k_row: usize,
    pub(crate) w: *const T,
    /// The gradient of the scores, `[rows, BLOCK]`.
    pub(crate) grad: *const T,
    /// `[n, d]`
    pub(crate) grad_q: *mut T,
    /// `[rows, d]`
    pub(crate) grad_k: *mut T,
    /// `[d]`
    pub(crate) grad_w: *mut T,
}

#[cfg_attr(optimized, inline(always))]
pub(in crate::cpu) unsafe fn additive_grads<V: Simd>(a: AdditiveGrads<V::T>) {
    // SAFETY: features x.. by masked access; queries i.. within the block.
    unsafe {
        for_each_form!(a.form, form => {
            let mut x = 0;
            while x < a.d {
                let mut i = 0;
                while i < a.n {
                    if V::WIDE >= 4 && i + 8 <= a.n {
                        grad_block::<V, 8>(form, &a, x, i);
                        i += 8;
                    } else if i + 2 <= a.n {
                        grad_block::<V, 2>(form, &a, x, i);
                        i += 2;
                    } else {
                        grad_block::<V, 1>(form, &a, x, i);
                        i += 1;
                    }
                }
                x += V::LANES;
            }
        })
    }
}

#[cfg_attr(optimized, inline(always))]
unsafe fn grad_block<V: Simd, const NI: usize>(
    form: Form,
    a: &AdditiveGrads<V::T>,
    x: usize,
    i: usize,
) {
    // SAFETY: as above.
    unsafe {
        let left = a.d - x;
        let w = V::load_upto(a.w.add(x), left);
        let mut q = [V::zero(); NI];
        for (n, q) in q.iter_mut().enumerate() {
            *q = V::load_upto(a.q.add((i + n) * a.q_row + x), left);
        }
        let mut grad_q = [V::zero(); NI];
        let mut grad_w = V::zero();
        for r in 0..a.rows {
            let k = V::load_upto(a.k.add(r * a.k_row + x), left);
            let grad = a.grad.add(r * BLOCK + i);
            let mut grad_k = V::zero();
            for n in 0..NI {
                let grad = V::splat(*grad.add(n));
                let (value, slope) = value_and_slope(form, q[n], k);
                let part = grad.mul(slope);
                grad_q[n] = grad_q[n].add(part);
                grad_k = grad_k.add(part);
                grad_w = grad.fma(value, grad_w);
            }
            let to = a.grad_k.add(r * a.d + x);
            grad_k.fma(w, V::load_upto(to, left)).store_upto(to, left);
        }
        for (n, grad_q) in grad_q.iter().enumerate() {
            let to = a.grad_q.add((i + n) * a.d + x);
            grad_q.fma(w, V::load_upto(to, left)).store_upto(to, left);
        }
        let to = a.grad_w.add(x);
        grad_w.add(V::load_upto(to, left)).store_upto(to, left);
    }
}
