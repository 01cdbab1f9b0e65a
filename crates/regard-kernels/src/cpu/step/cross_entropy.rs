//! The cross entropy of logits with class targets, and its gradient.
//!
//! Forward reads the logits once and writes two numbers per row, the loss and the log-sum-exp;
//! backward reads them once more and writes the gradient. No array of probabilities exists.

use super::parts::Parts;
use super::softmax::sum_exp;
use crate::cpu::shared::Shared;
use crate::cpu::simd::Simd;
use crate::error::{Error, ensure};
use crate::{Cpu, Real};

/// Label smoothing, and the target that stands for "no target".
///
/// ```
/// use regard_kernels::{Cpu, CrossEntropy};
/// let (mut loss, mut lse) = ([0f32; 2], [0f32; 2]);
/// let rule = CrossEntropy { ignore_index: Some(-100), ..CrossEntropy::default() };
/// Cpu::best().cross_entropy(&[0.0, 0.0, 1.0, 2.0], &[1, -100], &rule, &mut loss, &mut lse)?;
/// assert!((loss[0] - 2f32.ln()).abs() < 1e-6);
/// assert_eq!(loss[1], 0.0);
/// # Ok::<(), regard_kernels::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CrossEntropy {
    /// The share of the target that is spread evenly over all classes, 0 to 1.
    pub label_smoothing: f64,
    /// Rows with this target have no loss and no gradient.
    pub ignore_index: Option<i64>,
}

impl CrossEntropy {
    /// The number of classes; refuses what does not fit.
    fn classes(&self, logits: usize, targets: &[i64], lse: usize) -> Result<usize, Error> {
        let (n, eps) = (targets.len(), self.label_smoothing);
        ensure!((0.0..=1.0).contains(&eps), "label_smoothing {eps} is not between 0 and 1");
        let classes = logits.checked_div(n).unwrap_or(0);
        ensure!(
            classes * n == logits,
            "logits has {logits} elements, which are no whole rows for {n} targets"
        );
        ensure!(lse == n, "lse has {lse} elements, there are {n} targets");
        for (row, &target) in targets.iter().enumerate() {
            ensure!(
                Some(target) == self.ignore_index || (0..classes as i64).contains(&target),
                "target {target} of row {row} is none of the {classes} classes"
            );
        }
        Ok(classes)
    }
}

/// One row of logits: its largest m, Σ e^{x − m}, and Σ (x − m) where `spread` asks for it.
#[cfg_attr(optimized, inline(always))]
pub(crate) unsafe fn logits_row<V: Simd>(x: *const V::T, n: usize, spread: bool) -> [V::T; 3] {
    // SAFETY: n numbers, the last ones by masked access.
    unsafe {
        let (base, total) = sum_exp::<V>(x, n);
        let mut sums = [V::zero(); 2];
        let mut c = 0;
        while spread && c < n {
            let m = V::splat(base);
            sums = [sums[1], V::load_upto_or(x.add(c), n - c, m).sub(m).add(sums[0])];
            c += V::LANES;
        }
        [base, total, sums[0].add(sums[1]).sum()]
    }
}

/// grad · (exp(x − lse) − share) for one row.
#[cfg_attr(optimized, inline(always))]
pub(crate) unsafe fn logits_row_grads<V: Simd>(
    x: *const V::T,
    n: usize,
    lse: V::T,
    share: V::T,
    grad: V::T,
    to: *mut V::T,
) {
    // SAFETY: n numbers, the last ones by masked access.
    unsafe {
        let (lse, share, grad) = (V::splat(lse), V::splat(share), V::splat(grad));
        let mut c = 0;
        while c + V::LANES <= n {
            let p = V::load(x.add(c)).sub(lse).exp();
            p.sub(share).mul(grad).store(to.add(c));
            c += V::LANES;
        }
        if c < n {
            let p = V::load_first(x.add(c), n - c).sub(lse).exp();
            p.sub(share).mul(grad).store_first(to.add(c), n - c);
        }
    }
}

impl Cpu {
    /// Each row's loss: (1 − ε) · (lse − logit of the target) + ε · (lse − mean of the logits), with
    /// ε the label smoothing; 0 where the target is the ignored one. Also each row's log-sum-exp,
    /// for backward (0 where ignored).
    ///
    /// logits `[N, C]`, targets `[N]`, loss `[N]`, lse `[N]`. Refuses a target outside 0..C that is
    /// not the ignored one, naming its row.
    pub fn cross_entropy<T: Real>(
        &self,
        logits: &[T],
        targets: &[i64],
        rule: &CrossEntropy,
        loss: &mut [T],
        lse: &mut [T],
    ) -> Result<(), Error> {
        let classes = rule.classes(logits.len(), targets, lse.len())?;
        let n = targets.len();
        ensure!(loss.len() == n, "loss has {} elements, there are {n} targets", loss.len());
        let kernels = T::kernels(self.isa());
        let (loss, lse) = (Shared::new(loss), Shared::new(lse));
        let eps = T::of(rule.label_smoothing);
        let share = T::ONE / T::of(classes as f64);
        Parts::of(n, classes).run(|_, rows| {
            for row in rows {
                let target = targets[row];
                if Some(target) == rule.ignore_index {
                    // SAFETY: each row is one part's alone.
                    unsafe {
                        loss.set(row, T::ZERO);
                        lse.set(row, T::ZERO);
                    }
                    continue;
                }
                let x = &logits[row * classes..][..classes];
                let spread = eps > T::ZERO;
                // SAFETY: the table is this machine's; the row is a slice.
                let [base, total, sum] =
                    unsafe { (kernels.logits_row)(x.as_ptr(), classes, spread) };
                let log = total.ln();
                let hit = log - (x[target as usize] - base);
                // No smoothing, no sum: a logit of −∞ for another class must not matter.
                let rest = if spread { eps * (log - sum * share) } else { T::ZERO };
                // SAFETY: each row is one part's alone.
                unsafe {
                    loss.set(row, (T::ONE - eps) * hit + rest);
                    lse.set(row, base + log);
                }
            }
        });
        Ok(())
    }

    /// The gradient of the logits, from the gradient of each row's loss: grad · (softmax − target),
    /// and zeros where the target is the ignored one.
    ///
    /// logits, targets and rule are what forward was given, lse what it left; `grad_rows` `[N]`,
    /// `grad_logits` `[N, C]`. Refuses what forward refuses.
    ///
    /// ```
    /// use regard_kernels::{Cpu, CrossEntropy};
    /// let (rule, mut grad) = (CrossEntropy::default(), [0f32; 2]);
    /// let lse = [2f32.ln()];
    /// Cpu::best().cross_entropy_backward(&[0.0, 0.0], &[1], &rule, &lse, &[1.0], &mut grad)?;
    /// assert!((grad[0] - 0.5).abs() < 1e-6 && (grad[1] + 0.5).abs() < 1e-6);
    /// # Ok::<(), regard_kernels::Error>(())
    /// ```
    pub fn cross_entropy_backward<T: Real>(
        &self,
        logits: &[T],
        targets: &[i64],
        rule: &CrossEntropy,
        lse: &[T],
        grad_rows: &[T],
        grad_logits: &mut [T],
    ) -> Result<(), Error> {
        let classes = rule.classes(logits.len(), targets, lse.len())?;
        let n = targets.len();
        ensure!(
            grad_rows.len() == n,
            "grad_rows has {} elements, there are {n} targets",
            grad_rows.len()
        );
        ensure!(
            grad_logits.len() == logits.len(),
            "grad_logits has {} elements, logits has {}",
            grad_logits.len(),
            logits.len()
        );
        let kernels = T::kernels(self.isa());
        let grad_logits = Shared::new(grad_logits);
        let eps = T::of(rule.label_smoothing);
        let share = eps / T::of(classes as f64);
        Parts::of(n, classes).run(|_, rows| {
            for row in rows {
                let from = row * classes;
                // SAFETY: each row is one part's alone.
                let to = unsafe { grad_logits.part(from, classes) };
                if Some(targets[row]) == rule.ignore_index {
                    to.fill(T::ZERO);
                    continue;
                }
                let (grad, target) = (grad_rows[row], targets[row] as usize);
                // SAFETY: the table is this machine's; the row is a slice.
                unsafe {
                    let x = logits.as_ptr().add(from);
                    let to = to.as_mut_ptr();
                    (kernels.logits_row_grads)(x, classes, lse[row], share, grad, to);
                }
                let p = (logits[from + target] - lse[row]).exp();
                to[target] = grad * (p - share - (T::ONE - eps));
            }
        });
        Ok(())
    }
}
