//! Layer normalization of rows, (x − mean) / √(variance + eps) · gamma + beta, and its gradients.
//!
//! A row is read from memory once: its mean, its variance about that mean and its result are three
//! passes over what the nearest cache holds. Backward has two: one gathers the row's two sums and
//! adds to gamma's and beta's gradients, the other writes x's.

use super::parts::{Parts, rows_of};
use crate::cpu::shared::Shared;
use crate::cpu::simd::Simd;
use crate::error::{Error, ensure};
use crate::{Cpu, Real};
use std::ops::Range;

/// How rows are normalized.
///
/// ```
/// use regard_kernels::{Cpu, LayerNorm};
/// let norm = LayerNorm { width: 2, gamma: None, beta: None, eps: 0.0 };
/// let (mut out, mut mean_rstd) = ([0f32; 4], [0f32; 4]);
/// Cpu::best().layer_norm(&[1.0, 3.0, 5.0, 1.0], &norm, &mut out, &mut mean_rstd)?;
/// assert_eq!(out, [-1.0, 1.0, 1.0, -1.0]);
/// assert_eq!(mean_rstd, [2.0, 1.0, 3.0, 0.5]);
/// # Ok::<(), regard_kernels::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct LayerNorm<'a, T> {
    /// Numbers in a row.
    pub width: usize,
    /// `[width]`; ones where there is none.
    pub gamma: Option<&'a [T]>,
    /// `[width]`; zeros where there is none.
    pub beta: Option<&'a [T]>,
    /// Added to the variance.
    pub eps: f64,
}

/// Where backward writes; what is not asked for is not computed.
///
/// ```
/// use regard_kernels::{Cpu, LayerNorm, LayerNormGrads};
/// let norm = LayerNorm { width: 2, gamma: None, beta: None, eps: 0.0 };
/// let mut of_beta = [0f32; 2];
/// let to = LayerNormGrads { x: None, gamma: None, beta: Some(&mut of_beta) };
/// // two rows with their means and 1/deviations
/// Cpu::best().layer_norm_backward(&[1.0, 3.0, 5.0, 1.0], &norm, &[2.0, 1.0, 3.0, 0.5], &[1.0, 2.0, 3.0, 4.0], to)?;
/// assert_eq!(of_beta, [4.0, 6.0]);
/// # Ok::<(), regard_kernels::Error>(())
/// ```
#[derive(Debug)]
pub struct LayerNormGrads<'a, T> {
    /// `[rows, width]`
    pub x: Option<&'a mut [T]>,
    /// `[width]`
    pub gamma: Option<&'a mut [T]>,
    /// `[width]`
    pub beta: Option<&'a mut [T]>,
}

impl<T> LayerNorm<'_, T> {
    /// The number of rows of an x of this length.
    fn rows(&self, x: usize, mean_rstd: usize) -> Result<usize, Error> {
        let width = self.width;
        let rows = rows_of(x, width);
        ensure!(rows * width == x, "x has {x} elements, which are no whole rows of {width}");
        for (name, given) in [("gamma", self.gamma), ("beta", self.beta)] {
            let n = given.map_or(width, <[T]>::len);
            ensure!(n == width, "{name} has {n} elements, a row has {width}");
        }
        ensure!(
            mean_rstd == 2 * rows,
            "mean_rstd has {mean_rstd} elements, {rows} rows need [{rows}, 2]"
        );
        ensure!(
            (0.0..f64::INFINITY).contains(&self.eps),
            "eps {} is not a number from 0 up",
            self.eps
        );
        Ok(rows)
    }
}

/// Rows to normalize.
#[derive(Clone, Copy)]
pub(crate) struct NormRows<T> {
    rows: usize,
    width: usize,
    eps: T,
    x: *const T,
    /// `[width]`, or null.
    gamma: *const T,
    /// `[width]`, or null.
    beta: *const T,
    out: *mut T,
    mean_rstd: *mut T,
}

#[cfg_attr(optimized, inline(always))]
pub(crate) unsafe fn layer_norm<V: Simd>(p: NormRows<V::T>) {
    // SAFETY: rows of `width` numbers, the last ones by masked access.
    unsafe {
        let share = V::T::ONE / V::T::of(p.width as f64);
        for r in 0..p.rows {
            let (x, out) = (p.x.add(r * p.width), p.out.add(r * p.width));
            let mean = sum::<V>(x, p.width) * share;
            let variance = squares::<V>(x, p.width, V::splat(mean)) * share;
            let rstd = V::T::ONE / (variance + p.eps).sqrt();
            *p.mean_rstd.add(2 * r) = mean;
            *p.mean_rstd.add(2 * r + 1) = rstd;
            let (mean, rstd) = (V::splat(mean), V::splat(rstd));
            let mut c = 0;
            while c < p.width {
                let n = p.width - c;
                let mut y = V::load_upto(x.add(c), n).sub(mean).mul(rstd);
                if !p.gamma.is_null() {
                    y = y.mul(V::load_upto(p.gamma.add(c), n));
                }
                if !p.beta.is_null() {
                    y = y.add(V::load_upto(p.beta.add(c), n));
                }
                y.store_upto(out.add(c), n);
                c += V::LANES;
            }
        }
    }
}

/// The sum of n numbers, in four registers side by side.
#[cfg_attr(optimized, inline(always))]
unsafe fn sum<V: Simd>(x: *const V::T, n: usize) -> V::T {
    // SAFETY: n numbers, the last ones by masked access.
    unsafe {
        let mut sums = [V::zero(); 4];
        let mut c = 0;
        while c + 4 * V::LANES <= n {
            for (v, sum) in sums.iter_mut().enumerate() {
                *sum = sum.add(V::load(x.add(c + v * V::LANES)));
            }
            c += 4 * V::LANES;
        }
        while c < n {
            sums[0] = sums[0].add(V::load_upto(x.add(c), n - c));
            c += V::LANES;
        }
        sums[0].add(sums[1]).add(sums[2].add(sums[3])).sum()
    }
}

/// Σ (x − mean)²
#[cfg_attr(optimized, inline(always))]
unsafe fn squares<V: Simd>(x: *const V::T, n: usize, mean: V) -> V::T {
    // SAFETY: n numbers, the last ones by masked access.
    unsafe {
        let mut sums = [V::zero(); 4];
        let mut c = 0;
        while c + 4 * V::LANES <= n {
            for (v, sum) in sums.iter_mut().enumerate() {
                let d = V::load(x.add(c + v * V::LANES)).sub(mean);
                *sum = d.fma(d, *sum);
            }
            c += 4 * V::LANES;
        }
        while c < n {
            // Lanes past the end hold the mean, and so add nothing.
            let d = V::load_upto_or(x.add(c), n - c, mean).sub(mean);
            sums[0] = d.fma(d, sums[0]);
            c += V::LANES;
        }
        sums[0].add(sums[1]).add(sums[2].add(sums[3])).sum()
    }
}

/// Rows to go back through.
#[derive(Clone, Copy)]
pub(crate) struct NormGrads<T> {
    rows: usize,
    width: usize,
    x: *const T,
    /// `[width]`, or null.
    gamma: *const T,
    mean_rstd: *const T,
    grad: *const T,
    /// Written; or null.
    grad_x: *mut T,
    /// `[width]` each, added to; or null.
    grad_gamma: *mut T,
    grad_beta: *mut T,
}

#[cfg_attr(optimized, inline(always))]
pub(crate) unsafe fn layer_norm_grads<V: Simd>(p: NormGrads<V::T>) {
    // SAFETY: rows of `width` numbers, the last ones by masked access.
    unsafe {
        let share = V::T::ONE / V::T::of(p.width as f64);
        for r in 0..p.rows {
            let (x, grad) = (p.x.add(r * p.width), p.grad.add(r * p.width));
            let mean = V::splat(*p.mean_rstd.add(2 * r));
            let rstd = V::splat(*p.mean_rstd.add(2 * r + 1));
            let mut plain = V::zero();
            let mut along = V::zero();
            let mut c = 0;
            while c < p.width {
                let n = p.width - c;
                let unit = V::load_upto(x.add(c), n).sub(mean).mul(rstd);
                let mut g = V::load_upto(grad.add(c), n);
                if !p.grad_gamma.is_null() {
                    let at = p.grad_gamma.add(c);
                    g.fma(unit, V::load_upto(at, n)).store_upto(at, n);
                }
                if !p.grad_beta.is_null() {
                    let at = p.grad_beta.add(c);
                    V::load_upto(at, n).add(g).store_upto(at, n);
                }
                if !p.gamma.is_null() {
                    g = g.mul(V::load_upto(p.gamma.add(c), n));
                }
                // Lanes past the end have g = 0.
                plain = plain.add(g);
                along = g.fma(unit, along);
                c += V::LANES;
            }
            if p.grad_x.is_null() {
                continue;
            }
            let plain = V::splat(plain.sum() * share);
            let along = V::splat(along.sum() * share);
            let to = p.grad_x.add(r * p.width);
            let mut c = 0;
            while c < p.width {
                let n = p.width - c;
                let unit = V::load_upto(x.add(c), n).sub(mean).mul(rstd);
                let mut g = V::load_upto(grad.add(c), n);
                if !p.gamma.is_null() {
                    g = g.mul(V::load_upto(p.gamma.add(c), n));
                }
                unit.fnma(along, g.sub(plain)).mul(rstd).store_upto(to.add(c), n);
                c += V::LANES;
            }
        }
    }
}

fn pointer<T>(slice: Option<&[T]>) -> *const T {
    slice.map_or(std::ptr::null(), <[T]>::as_ptr)
}

impl Cpu {
    /// Normalizes rows of x `[rows, width]`; the row's mean and 1/√(variance + eps) are kept for
    /// backward in `mean_rstd` `[rows, 2]`. The variance is that of the row itself (divided by
    /// `width`): y = (x − mean) · γ / √(variance + eps) + β.
    ///
    /// Refuses lengths that do not fit.
    pub fn layer_norm<T: Real>(
        &self,
        x: &[T],
        norm: &LayerNorm<T>,
        out: &mut [T],
        mean_rstd: &mut [T],
    ) -> Result<(), Error> {
        let rows = norm.rows(x.len(), mean_rstd.len())?;
        ensure!(out.len() == x.len(), "out has {} elements, x has {}", out.len(), x.len());
        let kernels = T::kernels(self.isa());
        let (out, mean_rstd) = (Shared::new(out), Shared::new(mean_rstd));
        let width = norm.width;
        Parts::of(rows, width).run(|_, range| {
            let (from, rows) = (range.start * width, range.len());
            // SAFETY: the table is this machine's; each part has rows of its own.
            unsafe {
                (kernels.layer_norm)(NormRows {
                    rows,
                    width,
                    eps: T::of(norm.eps),
                    x: x.as_ptr().add(from),
                    gamma: pointer(norm.gamma),
                    beta: pointer(norm.beta),
                    out: out.part(from, rows * width).as_mut_ptr(),
                    mean_rstd: mean_rstd.part(2 * range.start, 2 * rows).as_mut_ptr(),
                });
            }
        });
        Ok(())
    }

    /// The gradients of [`Self::layer_norm`], from its x and the `mean_rstd` it left.
    ///
    /// Refuses lengths that do not fit. A gradient of gamma or beta may be asked for whether or not
    /// there is one.
    ///
    /// ```
    /// use regard_kernels::{Cpu, LayerNorm, LayerNormGrads};
    /// let norm = LayerNorm { width: 2, gamma: None, beta: None, eps: 0.0 };
    /// let mut grad_gamma = [0f32; 2];
    /// let grads = LayerNormGrads { x: None, gamma: Some(&mut grad_gamma), beta: None };
    /// Cpu::best().layer_norm_backward(&[1.0, 3.0], &norm, &[2.0, 1.0], &[5.0, 7.0], grads)?;
    /// assert_eq!(grad_gamma, [-5.0, 7.0]);
    /// # Ok::<(), regard_kernels::Error>(())
    /// ```
    pub fn layer_norm_backward<T: Real>(
        &self,
        x: &[T],
        norm: &LayerNorm<T>,
        mean_rstd: &[T],
        grad_out: &[T],
        grads: LayerNormGrads<T>,
    ) -> Result<(), Error> {
        let rows = norm.rows(x.len(), mean_rstd.len())?;
        let width = norm.width;
        let LayerNormGrads { x: grad_x, gamma: grad_gamma, beta: grad_beta } = grads;
        for (name, found, needed) in [
            ("grad_out", Some(grad_out.len()), x.len()),
            ("the gradient of x", grad_x.as_ref().map(|g| g.len()), x.len()),
            ("the gradient of gamma", grad_gamma.as_ref().map(|g| g.len()), width),
            ("the gradient of beta", grad_beta.as_ref().map(|g| g.len()), width),
        ] {
            let found = found.unwrap_or(needed);
            ensure!(found == needed, "{name} has {found} elements, not {needed}");
        }
        let kernels = T::kernels(self.isa());
        let grad_x = grad_x.map(Shared::new);
        let run = |range: Range<usize>, grad_gamma: *mut T, grad_beta: *mut T| {
            let (from, rows) = (range.start * width, range.len());
            // SAFETY: the table is this machine's; each part has rows and sums of its own.
            unsafe {
                (kernels.layer_norm_grads)(NormGrads {
                    rows,
                    width,
                    x: x.as_ptr().add(from),
                    gamma: pointer(norm.gamma),
                    mean_rstd: mean_rstd.as_ptr().add(2 * range.start),
                    grad: grad_out.as_ptr().add(from),
                    grad_x: grad_x
                        .as_ref()
                        .map_or(std::ptr::null_mut(), |g| g.part(from, rows * width).as_mut_ptr()),
                    grad_gamma,
                    grad_beta,
                });
            }
        };
        let parts = Parts::of(rows, width);
        if grad_gamma.is_none() && grad_beta.is_none() {
            parts.run(|_, rows| run(rows, std::ptr::null_mut(), std::ptr::null_mut()));
            return Ok(());
        }
        let sums = parts.sums(2 * width, |rows, sums| {
            let (gamma, beta) = sums.split_at_mut(width);
            run(rows, gamma.as_mut_ptr(), beta.as_mut_ptr());
        });
        if let Some(to) = grad_gamma {
            sums.add_up(0, to);
        }
        if let Some(to) = grad_beta {
            sums.add_up(width, to);
        }
        Ok(())
    }
}
