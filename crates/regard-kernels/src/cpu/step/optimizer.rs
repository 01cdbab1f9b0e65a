//! What an optimizer does to all parameters at once: Adam, SGD, and the gradients' norm.
//!
//! All tensors are one long array to the tasks: each takes the next 2¹⁵ numbers, from however many
//! tensors they come, so a hundred small biases cost as little as one large matrix. Every number is
//! read and written once.

use super::parts::each;
use crate::cpu::simd::Simd;
use crate::error::{Error, ensure};
use crate::{Cpu, Real};
use std::ops::Range;

/// Numbers in a task.
const TASK: usize = 1 << 14;

/// Adam (Kingma and Ba) or AdamW (Loshchilov and Hutter), at one step.
///
/// ```
/// use regard_kernels::{Adam, AdamTensor, Cpu};
/// let (mut param, mut m, mut v) = ([1f32], [0f32], [0f32]);
/// let tensor = AdamTensor { param: &mut param, grad: &[0.5], m: &mut m, v: &mut v };
/// Cpu::best().adam(&mut [tensor], &Adam { lr: 0.1, step: 1, ..Adam::default() })?;
/// assert!((param[0] - 0.9).abs() < 1e-6);
/// # Ok::<(), regard_kernels::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Adam {
    /// Learning rate.
    pub lr: f64,
    /// How much of the mean of the gradients is kept.
    pub beta1: f64,
    /// How much of the mean of their squares is kept.
    pub beta2: f64,
    /// Added to the root of the mean of the squares.
    pub eps: f64,
    /// How strongly parameters are drawn to 0.
    pub weight_decay: f64,
    /// Whether the decay acts on the parameters themselves (AdamW) or joins the gradient (Adam).
    pub decoupled: bool,
    /// Which step this is; the first is 1.
    pub step: u64,
    /// What gradients are multiplied by first: a clipping factor, or 1.
    pub grad_scale: f64,
}

impl Default for Adam {
    fn default() -> Self {
        Self {
            lr: 1e-3,
            beta1: 0.9,
            beta2: 0.999,
            eps: 1e-8,
            weight_decay: 0.0,
            decoupled: true,
            step: 1,
            grad_scale: 1.0,
        }
    }
}

/// A parameter, its gradient, and the two means Adam keeps; all of one length.
/// m ← β₁·m + (1 − β₁)·g and v ← β₂·v + (1 − β₂)·g²; [`Adam`] has an example.
#[derive(Debug)]
pub struct AdamTensor<'a, T> {
    /// The parameter, changed.
    pub param: &'a mut [T],
    /// Its gradient.
    pub grad: &'a [T],
    /// The mean of the gradients, changed; zeros before the first step.
    pub m: &'a mut [T],
    /// The mean of their squares, changed; zeros before the first step.
    pub v: &'a mut [T],
}

/// Stochastic gradient descent, with momentum or without.
///
/// ```
/// use regard_kernels::{Cpu, Sgd, SgdTensor};
/// let mut param = [1f32];
/// let tensor = SgdTensor { param: &mut param, grad: &[0.5], momentum: &mut [] };
/// Cpu::best().sgd(&mut [tensor], &Sgd { lr: 0.5, ..Sgd::default() })?;
/// assert_eq!(param, [0.75]);
/// # Ok::<(), regard_kernels::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sgd {
    /// Learning rate.
    pub lr: f64,
    /// How much of the last step's direction is kept; with 0 no array is needed for it.
    pub momentum: f64,
    /// Whether the step looks ahead (Nesterov).
    pub nesterov: bool,
    /// How strongly parameters are drawn to 0.
    pub weight_decay: f64,
    /// What gradients are multiplied by first: a clipping factor, or 1.
    pub grad_scale: f64,
}

impl Default for Sgd {
    fn default() -> Self {
        Self { lr: 1e-2, momentum: 0.0, nesterov: false, weight_decay: 0.0, grad_scale: 1.0 }
    }
}

/// A parameter, its gradient and its direction; all of one length.
/// direction ← momentum · direction + g; [`Sgd`] has an example.
#[derive(Debug)]
pub struct SgdTensor<'a, T> {
    /// The parameter, changed.
    pub param: &'a mut [T],
    /// Its gradient.
    pub grad: &'a [T],
    /// The direction so far, changed; zeros before the first step, empty without momentum.
    pub momentum: &'a mut [T],
}

/// Adam's numbers in the precision of the parameters.
#[derive(Clone, Copy)]
pub(crate) struct AdamNumbers<T> {
    scale: T,
    /// Joins the gradient.
    decay: T,
    /// Shrinks the parameter.
    keep: T,
    /// 1 − β₁
    fresh: T,
    beta2: T,
    /// 1 − β₂
    fresh2: T,
    /// 1 / √(1 − β₂ᵗ)
    root: T,
    eps: T,
    /// lr / (1 − β₁ᵗ)
    rate: T,
}

impl Adam {
    fn numbers<T: Real>(&self) -> AdamNumbers<T> {
        let correction = |beta: f64| 1.0 - beta.powf(self.step as f64);
        let coupled = if self.decoupled { 0.0 } else { self.weight_decay };
        AdamNumbers {
            scale: T::of(self.grad_scale),
            decay: T::of(coupled),
            keep: T::of(1.0 - self.lr * (self.weight_decay - coupled)),
            fresh: T::of(1.0 - self.beta1),
            beta2: T::of(self.beta2),
            fresh2: T::of(1.0 - self.beta2),
            root: T::of(1.0 / correction(self.beta2).sqrt()),
            eps: T::of(self.eps),
            rate: T::of(self.lr / correction(self.beta1)),
        }
    }
}

#[cfg_attr(optimized, inline(always))]
pub(crate) unsafe fn adam<V: Simd>(
    a: AdamNumbers<V::T>,
    n: usize,
    param: *mut V::T,
    grad: *const V::T,
    m: *mut V::T,
    v: *mut V::T,
) {
    // SAFETY: n numbers of each, the last ones by masked access.
    unsafe {
        let mut c = 0;
        while c < n {
            let left = n - c;
            let p = V::load_upto(param.add(c), left);
            let g = V::load_upto(grad.add(c), left).mul(V::splat(a.scale));
            let g = p.fma(V::splat(a.decay), g);
            let p = p.mul(V::splat(a.keep));
            let old = V::load_upto(m.add(c), left);
            let mean = g.sub(old).fma(V::splat(a.fresh), old);
            let square = V::load_upto(v.add(c), left).mul(V::splat(a.beta2));
            let square = g.mul(g).fma(V::splat(a.fresh2), square);
            let below = square.sqrt().fma(V::splat(a.root), V::splat(a.eps));
            mean.store_upto(m.add(c), left);
            square.store_upto(v.add(c), left);
            mean.div(below).fnma(V::splat(a.rate), p).store_upto(param.add(c), left);
            c += V::LANES;
        }
    }
}

/// SGD's numbers in the precision of the parameters.
#[derive(Clone, Copy)]
pub(crate) struct SgdNumbers<T> {
    scale: T,
    decay: T,
    momentum: T,
    rate: T,
    nesterov: bool,
}

/// `direction` is null without momentum.
#[cfg_attr(optimized, inline(always))]
pub(crate) unsafe fn sgd<V: Simd>(
    s: SgdNumbers<V::T>,
    n: usize,
    param: *mut V::T,
    grad: *const V::T,
    direction: *mut V::T,
) {
    // SAFETY: n numbers of each, the last ones by masked access.
    unsafe {
        let momentum = V::splat(s.momentum);
        let mut c = 0;
        while c < n {
            let left = n - c;
            let p = V::load_upto(param.add(c), left);
            let g = V::load_upto(grad.add(c), left).mul(V::splat(s.scale));
            let mut step = p.fma(V::splat(s.decay), g);
            if !direction.is_null() {
                let along = V::load_upto(direction.add(c), left).fma(momentum, step);
                along.store_upto(direction.add(c), left);
                step = if s.nesterov { along.fma(momentum, step) } else { along };
            }
            step.fnma(V::splat(s.rate), p).store_upto(param.add(c), left);
            c += V::LANES;
        }
    }
}

/// Σ x², every square and every sum in `f64`.
#[cfg_attr(optimized, inline(always))]
pub(crate) unsafe fn squares<V: Simd>(n: usize, x: *const V::T) -> f64 {
    // SAFETY: n numbers.
    let x = unsafe { std::slice::from_raw_parts(x, n) };
    // Independent sums, which the compiler turns into registers.
    let mut sums = [0f64; 32];
    let mut chunks = x.chunks_exact(32);
    for chunk in &mut chunks {
        for lane in 0..32 {
            let x = chunk[lane].f64();
            sums[lane] += x * x;
        }
    }
    for (sum, x) in sums.iter_mut().zip(chunks.remainder()) {
        *sum += x.f64() * x.f64();
    }
    let mut half = 16;
    while half > 0 {
        for lane in 0..half {
            sums[lane] += sums[lane + half];
        }
        half /= 2;
    }
    sums[0]
}

/// Tensors end to end: where each starts, and the tasks over all of them.
struct Line {
    starts: Vec<usize>,
}

impl Line {
    fn of(lengths: impl Iterator<Item = usize>) -> Self {
        let mut starts = vec![0];
        let mut end = 0;
        starts.extend(lengths.map(|n| {
            end += n;
            end
        }));
        Self { starts }
    }

    fn tasks(&self) -> usize {
        self.starts[self.starts.len() - 1].div_ceil(TASK)
    }

    /// The pieces of one task: a tensor, and which of its numbers.
    fn pieces(&self, task: usize) -> impl Iterator<Item = (usize, Range<usize>)> + '_ {
        let (from, to) = (task * TASK, (task + 1) * TASK);
        let first = self.starts.partition_point(|&start| start <= from) - 1;
        (first..self.starts.len() - 1).take_while(move |&at| self.starts[at] < to).map(move |at| {
            let (start, end) = (self.starts[at], self.starts[at + 1]);
            (at, from.max(start) - start..to.min(end).max(start) - start)
        })
    }
}

/// Pointers to one tensor's arrays, for tasks that take different parts of them.
struct StatePointers<T, const N: usize>(*const T, [*mut T; N]);
// SAFETY: the tasks of a `Line` take distinct numbers of every tensor.
unsafe impl<T: Send + Sync, const N: usize> Send for StatePointers<T, N> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync, const N: usize> Sync for StatePointers<T, N> {}

impl Cpu {
    /// One step of Adam for many tensors, by PyTorch's formula.
    ///
    /// Refuses tensors whose arrays differ in length, naming the tensor, and a step of 0.
    /// With g the gradient, at step t: m ← β₁·m + (1 − β₁)·g, v ← β₂·v + (1 − β₂)·g²,
    /// param ← param − lr · (m / (1 − β₁ᵗ)) / (√(v / (1 − β₂ᵗ)) + eps). [`Adam`] has an example.
    pub fn adam<T: Real>(&self, tensors: &mut [AdamTensor<T>], adam: &Adam) -> Result<(), Error> {
        ensure!(adam.step > 0, "step is 0; the first step is 1");
        for (at, t) in tensors.iter().enumerate() {
            let n = t.param.len();
            for (name, found) in [("grad", t.grad.len()), ("m", t.m.len()), ("v", t.v.len())] {
                ensure!(
                    found == n,
                    "{name} of tensor {at} has {found} elements, its parameter has {n}"
                );
            }
        }
        let line = Line::of(tensors.iter().map(|t| t.param.len()));
        let places: Vec<StatePointers<T, 3>> = tensors
            .iter_mut()
            .map(|t| {
                let changed = [&mut *t.param, &mut *t.m, &mut *t.v];
                StatePointers(t.grad.as_ptr(), changed.map(<[T]>::as_mut_ptr))
            })
            .collect();
        let (kernel, numbers) = (T::kernels(self.isa()).adam, adam.numbers());
        each(line.tasks(), |task| {
            for (at, range) in line.pieces(task) {
                let (StatePointers(grad, [param, m, v]), x) = (&places[at], range.start);
                // SAFETY: the table is this machine's; the numbers are this task's alone.
                unsafe {
                    kernel(numbers, range.len(), param.add(x), grad.add(x), m.add(x), v.add(x));
                }
            }
        });
        Ok(())
    }

    /// One step of stochastic gradient descent for many tensors, by PyTorch's formula (dampening
    /// 0).
    ///
    /// Refuses tensors whose arrays differ in length, naming the tensor.
    /// With g the gradient: direction ← momentum · direction + g, param ← param − lr · direction. [`Sgd`] has an
    /// example.
    pub fn sgd<T: Real>(&self, tensors: &mut [SgdTensor<T>], sgd: &Sgd) -> Result<(), Error> {
        let kept = sgd.momentum != 0.0;
        ensure!(kept || !sgd.nesterov, "nesterov needs a momentum other than 0");
        for (at, t) in tensors.iter().enumerate() {
            let n = t.param.len();
            let needed = if kept { n } else { t.momentum.len() };
            for (name, found, needed) in
                [("grad", t.grad.len(), n), ("momentum", t.momentum.len(), needed)]
            {
                ensure!(
                    found == needed,
                    "{name} of tensor {at} has {found} elements, its parameter has {n}"
                );
            }
        }
        let line = Line::of(tensors.iter().map(|t| t.param.len()));
        let places: Vec<StatePointers<T, 2>> = tensors
            .iter_mut()
            .map(|t| {
                let changed = [&mut *t.param, &mut *t.momentum];
                StatePointers(t.grad.as_ptr(), changed.map(<[T]>::as_mut_ptr))
            })
            .collect();
        let kernel = T::kernels(self.isa()).sgd;
        let numbers = SgdNumbers {
            scale: T::of(sgd.grad_scale),
            decay: T::of(sgd.weight_decay),
            momentum: T::of(sgd.momentum),
            rate: T::of(sgd.lr),
            nesterov: sgd.nesterov,
        };
        each(line.tasks(), |task| {
            for (at, range) in line.pieces(task) {
                let (StatePointers(grad, [param, direction]), x) = (&places[at], range.start);
                // SAFETY: the table is this machine's; the numbers are this task's alone.
                unsafe {
                    let along = if kept { direction.add(x) } else { std::ptr::null_mut() };
                    kernel(numbers, range.len(), param.add(x), grad.add(x), along);
                }
            }
        });
        Ok(())
    }

    /// The sum of all squares in `f64`: the square of the norm by which gradients are clipped.
    ///
    /// ```
    /// let cpu = regard_kernels::Cpu::best();
    /// assert_eq!(cpu.sum_of_squares(&[&[3f32, 0.0], &[4.0]]).sqrt(), 5.0);
    /// ```
    pub fn sum_of_squares<T: Real>(&self, slices: &[&[T]]) -> f64 {
        let line = Line::of(slices.iter().map(|x| x.len()));
        let mut sums = vec![0f64; line.tasks()];
        let to = crate::cpu::shared::Shared::new(&mut sums);
        let kernel = T::kernels(self.isa()).squares;
        each(line.tasks(), |task| {
            let mut sum = 0.0;
            for (at, range) in line.pieces(task) {
                let x = &slices[at][range];
                // SAFETY: the table is this machine's; x is a slice.
                sum += unsafe { kernel(x.len(), x.as_ptr()) };
            }
            // SAFETY: each task has a place of its own.
            unsafe { to.set(task, sum) };
        });
        sums.iter().sum()
    }
}
