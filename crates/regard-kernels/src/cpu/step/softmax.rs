//! Softmax and its logarithm over rows, and their gradients.
//!
//! The sum of exponentials is one pass: each lane keeps the largest number it has seen and its sum of
//! exponentials relative to it, eight registers at a time, so that a ninth exponential rescales the
//! sum. Then one pass writes the result; a row of 8,000 comes from the nearer caches by then.

use super::parts::{Parts, rows_of};
use crate::cpu::shared::Shared;
use crate::cpu::simd::Simd;
use crate::error::{Error, ensure};
use crate::{Cpu, Real};

/// The largest of n numbers, m, and Σ e^{x − m}. Both are 0 for nothing but −∞; the sum is NaN
/// where any is NaN or ∞.
#[cfg_attr(optimized, inline(always))]
pub(super) unsafe fn sum_exp<V: Simd>(x: *const V::T, n: usize) -> (V::T, V::T) {
    // SAFETY: n numbers, the last ones by masked access.
    unsafe {
        let nothing = V::splat(V::T::NEG_INFINITY);
        let mut largest = nothing;
        let mut sum = V::zero();
        let mut c = 0;
        while c + 8 * V::LANES <= n {
            let mut eight = [nothing; 8];
            for (v, x8) in eight.iter_mut().enumerate() {
                *x8 = V::load(x.add(c + v * V::LANES));
            }
            (largest, sum) = take_in(largest, sum, eight);
            c += 8 * V::LANES;
        }
        while c < n {
            (largest, sum) = take_in(largest, sum, [V::load_upto_or(x.add(c), n - c, nothing)]);
            c += V::LANES;
        }
        let top = largest.largest();
        let base = if top > V::T::NEG_INFINITY { top } else { V::T::ZERO };
        (base, sum.mul(largest.sub(V::splat(base)).exp()).sum())
    }
}

/// Each lane's largest number and sum, with N more numbers.
#[cfg_attr(optimized, inline(always))]
unsafe fn take_in<V: Simd, const N: usize>(old: V, sum: V, more: [V; N]) -> (V, V) {
    // SAFETY: arithmetic only.
    unsafe {
        let mut largest = old;
        for x in more {
            largest = largest.max(x);
        }
        // A lane with nothing yet subtracts 0, so that −∞ − −∞ does not arise.
        let base = largest.where_greater(V::splat(V::T::NEG_INFINITY), largest, V::zero());
        let mut sum = sum.mul(old.sub(base).exp());
        for x in more {
            sum = sum.add(x.sub(base).exp());
        }
        (largest, sum)
    }
}

/// Rows of x `[rows, width]`, to `out`.
#[cfg_attr(optimized, inline(always))]
pub(crate) unsafe fn softmax<V: Simd>(
    log: bool,
    rows: usize,
    width: usize,
    x: *const V::T,
    out: *mut V::T,
) {
    // SAFETY: rows of `width` numbers, the last ones by masked access.
    unsafe {
        for r in 0..rows {
            let (x, out) = (x.add(r * width), out.add(r * width));
            let (base, total) = sum_exp::<V>(x, width);
            let base = V::splat(base);
            let factor = V::splat(V::T::ONE / total);
            let shift = V::splat(total.ln());
            let mut c = 0;
            while c < width {
                let n = width - c;
                let y = V::load_upto(x.add(c), n).sub(base);
                let y = if log { y.sub(shift) } else { y.exp().mul(factor) };
                y.store_upto(out.add(c), n);
                c += V::LANES;
            }
        }
    }
}

/// From results and their gradients to the gradients of x: p · (g − Σ p·g), and for the logarithm
/// g − eʸ · Σ g.
#[cfg_attr(optimized, inline(always))]
pub(crate) unsafe fn softmax_grads<V: Simd>(
    log: bool,
    rows: usize,
    width: usize,
    out: *const V::T,
    grad: *const V::T,
    grad_x: *mut V::T,
) {
    // SAFETY: rows of `width` numbers, the last ones by masked access.
    unsafe {
        for r in 0..rows {
            let at = r * width;
            let (y, grad, to) = (out.add(at), grad.add(at), grad_x.add(at));
            let mut sums = [V::zero(); 2];
            let mut c = 0;
            while c < width {
                let n = width - c;
                let g = V::load_upto(grad.add(c), n);
                let next =
                    if log { sums[0].add(g) } else { g.fma(V::load_upto(y.add(c), n), sums[0]) };
                sums = [sums[1], next];
                c += V::LANES;
            }
            let total = V::splat(sums[0].add(sums[1]).sum());
            let mut c = 0;
            while c < width {
                let n = width - c;
                let (y, g) = (V::load_upto(y.add(c), n), V::load_upto(grad.add(c), n));
                let dx = if log { y.exp().fnma(total, g) } else { y.mul(g.sub(total)) };
                dx.store_upto(to.add(c), n);
                c += V::LANES;
            }
        }
    }
}

impl Cpu {
    /// out = eˣ / Σ eˣ for every row of x `[rows, width]`.
    ///
    /// Refuses lengths that do not fit. A row of nothing but −∞ is NaN, as the formula says.
    ///
    /// ```
    /// let mut out = [0f32; 4];
    /// regard_kernels::Cpu::best().softmax(&[0.0, 0.0, 5.0, 5.0], 2, &mut out)?;
    /// assert_eq!(out, [0.5; 4]);
    /// # Ok::<(), regard_kernels::Error>(())
    /// ```
    pub fn softmax<T: Real>(&self, x: &[T], width: usize, out: &mut [T]) -> Result<(), Error> {
        self.softmax_rows(false, x, width, out)
    }

    /// out = x − log Σ eˣ for every row of x `[rows, width]`.
    ///
    /// Refuses lengths that do not fit.
    ///
    /// ```
    /// let mut out = [0f32; 1];
    /// regard_kernels::Cpu::best().log_softmax(&[7.0], 1, &mut out)?;
    /// assert_eq!(out, [0.0]);
    /// # Ok::<(), regard_kernels::Error>(())
    /// ```
    pub fn log_softmax<T: Real>(&self, x: &[T], width: usize, out: &mut [T]) -> Result<(), Error> {
        self.softmax_rows(true, x, width, out)
    }

    /// The gradient of [`Self::softmax`], from what it gave.
    /// grad_x = out · (grad_out − Σ grad_out · out). Refuses lengths that do not fit.
    ///
    /// ```
    /// let mut grad_x = [0f32; 2];
    /// let cpu = regard_kernels::Cpu::best();
    /// cpu.softmax_backward(&[0.5, 0.5], 2, &[1.0, 0.0], &mut grad_x)?;
    /// assert_eq!(grad_x, [0.25, -0.25]);
    /// # Ok::<(), regard_kernels::Error>(())
    /// ```
    pub fn softmax_backward<T: Real>(
        &self,
        out: &[T],
        width: usize,
        grad_out: &[T],
        grad_x: &mut [T],
    ) -> Result<(), Error> {
        self.softmax_rows_backward(false, out, width, grad_out, grad_x)
    }

    /// The gradient of [`Self::log_softmax`], from what it gave.
    /// grad_x = grad_out − exp(out) · Σ grad_out. Refuses lengths that do not fit.
    ///
    /// ```
    /// let mut grad_x = [0f32; 1];
    /// let cpu = regard_kernels::Cpu::best();
    /// cpu.log_softmax_backward(&[0.0], 1, &[3.0], &mut grad_x)?;
    /// assert_eq!(grad_x, [0.0]);
    /// # Ok::<(), regard_kernels::Error>(())
    /// ```
    pub fn log_softmax_backward<T: Real>(
        &self,
        out: &[T],
        width: usize,
        grad_out: &[T],
        grad_x: &mut [T],
    ) -> Result<(), Error> {
        self.softmax_rows_backward(true, out, width, grad_out, grad_x)
    }

    fn softmax_rows<T: Real>(
        &self,
        log: bool,
        x: &[T],
        width: usize,
        out: &mut [T],
    ) -> Result<(), Error> {
        let rows = whole_rows("x", x, width)?;
        ensure!(out.len() == x.len(), "out has {} elements, x has {}", out.len(), x.len());
        let kernels = T::kernels(self.isa());
        let out = Shared::new(out);
        Parts::of(rows, width).run(|_, range| {
            let (from, rows) = (range.start * width, range.len());
            // SAFETY: the table is this machine's; each part has rows of its own.
            unsafe {
                let to = out.part(from, rows * width).as_mut_ptr();
                (kernels.softmax)(log, rows, width, x.as_ptr().add(from), to);
            }
        });
        Ok(())
    }

    fn softmax_rows_backward<T: Real>(
        &self,
        log: bool,
        out: &[T],
        width: usize,
        grad_out: &[T],
        grad_x: &mut [T],
    ) -> Result<(), Error> {
        let rows = whole_rows("out", out, width)?;
        for (name, n) in [("grad_out", grad_out.len()), ("grad_x", grad_x.len())] {
            ensure!(n == out.len(), "{name} has {n} elements, out has {}", out.len());
        }
        let kernels = T::kernels(self.isa());
        let grad_x = Shared::new(grad_x);
        Parts::of(rows, width).run(|_, range| {
            let (from, rows) = (range.start * width, range.len());
            // SAFETY: the table is this machine's; each part has rows of its own.
            unsafe {
                let to = grad_x.part(from, rows * width).as_mut_ptr();
                let (out, grad) = (out.as_ptr().add(from), grad_out.as_ptr().add(from));
                (kernels.softmax_grads)(log, rows, width, out, grad, to);
            }
        });
        Ok(())
    }
}

fn whole_rows<T>(name: &str, x: &[T], width: usize) -> Result<usize, Error> {
    let rows = rows_of(x.len(), width);
    let n = x.len();
    ensure!(rows * width == n, "{name} has {n} elements, which are no whole rows of {width}");
    Ok(rows)
}
