//! The oracle of the training step's operations: plain loops, forward and backward.
//!
//! In `f64` they are the truth the kernels are compared with, in `f32` the plain formula in the
//! same precision. Shapes are taken on trust: an index out of range panics.

mod recurrent;

pub use recurrent::{RecurrentGradients, RecurrentOutput, recurrent, recurrent_backward};

use super::{Adam, CrossEntropy, LayerNorm, Sgd};
use crate::{Activation, Real};

/// base + a · b: a `[m, k]`, b `[k, n]`, base `[m, n]`.
///
/// ```
/// use regard_kernels::step::reference;
/// assert_eq!(reference::matmul(&[1.0, 2.0], &[3.0, 4.0], 2, &[0.5]), [11.5]);
/// ```
pub fn matmul<T: Real>(a: &[T], b: &[T], k: usize, base: &[T]) -> Vec<T> {
    let (m, n) = (a.len() / k, b.len() / k);
    let of = |i: usize, j: usize| (0..k).map(|p| a[i * k + p] * b[p * n + j]).sum::<T>();
    (0..m * n).map(|at| base[at] + of(at / n, at % n)).collect()
}

/// act(x + bias).
///
/// ```
/// use regard_kernels::{Activation, step::reference};
/// assert_eq!(reference::pointwise(&[1.0, -2.0], Some(&[1.0]), Activation::Relu), [2.0, 0.0]);
/// ```
pub fn pointwise<T: Real>(x: &[T], bias: Option<&[T]>, act: Activation) -> Vec<T> {
    biased(x, bias).map(|x| act.value_and_slope(x).0).collect()
}

/// The gradients of x and of the bias.
///
/// ```
/// use regard_kernels::{Activation, step::reference};
/// let (x, bias) = reference::pointwise_backward(
///     &[1.0, 2.0], Some(&[1.0]), Activation::Identity, &[3.0, 4.0],
/// );
/// assert_eq!((x, bias), (vec![3.0, 4.0], vec![7.0]));
/// ```
pub fn pointwise_backward<T: Real>(
    x: &[T],
    bias: Option<&[T]>,
    act: Activation,
    grad_out: &[T],
) -> (Vec<T>, Vec<T>) {
    let width = bias.map_or(0, <[T]>::len);
    let mut grad_bias = vec![T::ZERO; width];
    let grad_x: Vec<T> =
        biased(x, bias).zip(grad_out).map(|(x, &grad)| grad * act.value_and_slope(x).1).collect();
    for (at, &grad) in grad_x.iter().enumerate().filter(|_| width > 0) {
        grad_bias[at % width] += grad;
    }
    (grad_x, grad_bias)
}

fn biased<'a, T: Real>(x: &'a [T], bias: Option<&'a [T]>) -> impl Iterator<Item = T> + 'a {
    x.iter().enumerate().map(move |(at, &x)| match bias {
        Some(bias) => x + bias[at % bias.len()],
        None => x,
    })
}

/// The normalized rows, and each row's mean and 1/√(variance + eps), `[rows, 2]`.
///
/// ```
/// use regard_kernels::{LayerNorm, step::reference};
/// let norm = LayerNorm { width: 2, gamma: Some(&[1.0, 3.0]), beta: None, eps: 0.0 };
/// let (out, mean_rstd) = reference::layer_norm(&[1.0, 3.0], &norm);
/// assert_eq!((out, mean_rstd), (vec![-1.0, 3.0], vec![2.0, 1.0]));
/// ```
pub fn layer_norm<T: Real>(x: &[T], norm: &LayerNorm<T>) -> (Vec<T>, Vec<T>) {
    let width = T::of(norm.width as f64);
    let (mut out, mut mean_rstd) = (Vec::new(), Vec::new());
    for row in x.chunks_exact(norm.width.max(1)) {
        let mean = row.iter().copied().sum::<T>() / width;
        let variance = row.iter().map(|&x| (x - mean) * (x - mean)).sum::<T>() / width;
        let rstd = T::ONE / (variance + T::of(norm.eps)).sqrt();
        mean_rstd.extend([mean, rstd]);
        out.extend(row.iter().enumerate().map(|(c, &x)| {
            let gamma = norm.gamma.map_or(T::ONE, |gamma| gamma[c]);
            let beta = norm.beta.map_or(T::ZERO, |beta| beta[c]);
            (x - mean) * rstd * gamma + beta
        }));
    }
    (out, mean_rstd)
}

/// The gradients of x, gamma and beta.
///
/// ```
/// use regard_kernels::{LayerNorm, step::reference};
/// let norm = LayerNorm { width: 2, gamma: None, beta: None, eps: 0.0 };
/// let [_, gamma, beta] = reference::layer_norm_backward(&[1.0, 3.0], &norm, &[5.0, 7.0]);
/// assert_eq!((gamma, beta), (vec![-5.0, 7.0], vec![5.0, 7.0]));
/// ```
pub fn layer_norm_backward<T: Real>(x: &[T], norm: &LayerNorm<T>, grad_out: &[T]) -> [Vec<T>; 3] {
    let n = norm.width;
    let width = T::of(n as f64);
    let (_, mean_rstd) = layer_norm(x, norm);
    let mut grad_x = Vec::new();
    let (mut grad_gamma, mut grad_beta) = (vec![T::ZERO; n], vec![T::ZERO; n]);
    for (r, (row, grad)) in
        x.chunks_exact(n.max(1)).zip(grad_out.chunks_exact(n.max(1))).enumerate()
    {
        let (mean, rstd) = (mean_rstd[2 * r], mean_rstd[2 * r + 1]);
        let unit: Vec<T> = row.iter().map(|&x| (x - mean) * rstd).collect();
        let inner: Vec<T> =
            (0..n).map(|c| grad[c] * norm.gamma.map_or(T::ONE, |gamma| gamma[c])).collect();
        let plain = inner.iter().copied().sum::<T>() / width;
        let along = (0..n).map(|c| inner[c] * unit[c]).sum::<T>() / width;
        for c in 0..n {
            grad_x.push(rstd * (inner[c] - plain - unit[c] * along));
            grad_gamma[c] += grad[c] * unit[c];
            grad_beta[c] += grad[c];
        }
    }
    [grad_x, grad_gamma, grad_beta]
}

/// eˣ / Σ eˣ over rows of `width`.
///
/// ```
/// assert_eq!(regard_kernels::step::reference::softmax(&[1.0, 1.0], 2), [0.5, 0.5]);
/// ```
pub fn softmax<T: Real>(x: &[T], width: usize) -> Vec<T> {
    let mut out = Vec::new();
    for row in x.chunks_exact(width.max(1)) {
        let (largest, total) = sum_exp(row);
        out.extend(row.iter().map(|&x| (x - largest).exp() / total));
    }
    out
}

/// x − log Σ eˣ over rows of `width`.
///
/// ```
/// assert_eq!(regard_kernels::step::reference::log_softmax(&[1.0], 1), [0.0]);
/// ```
pub fn log_softmax<T: Real>(x: &[T], width: usize) -> Vec<T> {
    let mut out = Vec::new();
    for row in x.chunks_exact(width.max(1)) {
        let (largest, total) = sum_exp(row);
        out.extend(row.iter().map(|&x| x - largest - total.ln()));
    }
    out
}

/// The gradient of softmax, from what it gave.
///
/// ```
/// use regard_kernels::step::reference;
/// assert_eq!(reference::softmax_backward(&[0.5, 0.5], 2, &[1.0, 0.0]), [0.25, -0.25]);
/// ```
pub fn softmax_backward<T: Real>(out: &[T], width: usize, grad_out: &[T]) -> Vec<T> {
    let mut grad_x = Vec::new();
    for (p, grad) in out.chunks_exact(width.max(1)).zip(grad_out.chunks_exact(width.max(1))) {
        let total: T = p.iter().zip(grad).map(|(&p, &grad)| p * grad).sum();
        grad_x.extend(p.iter().zip(grad).map(|(&p, &grad)| p * (grad - total)));
    }
    grad_x
}

/// The gradient of the logarithm of softmax, from what it gave.
///
/// ```
/// use regard_kernels::step::reference;
/// assert_eq!(reference::log_softmax_backward(&[0.0], 1, &[3.0]), [0.0]);
/// ```
pub fn log_softmax_backward<T: Real>(out: &[T], width: usize, grad_out: &[T]) -> Vec<T> {
    let mut grad_x = Vec::new();
    for (y, grad) in out.chunks_exact(width.max(1)).zip(grad_out.chunks_exact(width.max(1))) {
        let total: T = grad.iter().copied().sum();
        grad_x.extend(y.iter().zip(grad).map(|(&y, &grad)| grad - y.exp() * total));
    }
    grad_x
}

/// The largest of a row, and the sum of exponentials relative to it.
fn sum_exp<T: Real>(row: &[T]) -> (T, T) {
    let largest = row.iter().copied().fold(T::NEG_INFINITY, T::max);
    (largest, row.iter().map(|&x| (x - largest).exp()).sum())
}

/// Each row's loss and log-sum-exp; both 0 where the target is the ignored one.
///
/// ```
/// use regard_kernels::{CrossEntropy, step::reference};
/// let (loss, _) = reference::cross_entropy(&[0.0, 0.0], &[1], &CrossEntropy::default());
/// assert_eq!(loss, [2f64.ln()]);
/// ```
pub fn cross_entropy<T: Real>(
    logits: &[T],
    targets: &[i64],
    rule: &CrossEntropy,
) -> (Vec<T>, Vec<T>) {
    let classes = logits.len() / targets.len().max(1);
    let eps = T::of(rule.label_smoothing);
    let rows = targets.iter().enumerate().map(|(row, &target)| {
        if Some(target) == rule.ignore_index {
            return (T::ZERO, T::ZERO);
        }
        let x = &logits[row * classes..(row + 1) * classes];
        let (largest, total) = sum_exp(x);
        let log = total.ln();
        let mut loss = (T::ONE - eps) * (log - (x[target as usize] - largest));
        if eps > T::ZERO {
            let each = eps / T::of(classes as f64);
            loss += x.iter().map(|&x| each * (log - (x - largest))).sum();
        }
        (loss, largest + log)
    });
    rows.unzip()
}

/// The gradient of the logits, from the gradient of each row's loss.
///
/// ```
/// use regard_kernels::{CrossEntropy, step::reference};
/// let (logits, rule) = ([0.0, 0.0], CrossEntropy::default());
/// let (_, lse) = reference::cross_entropy(&logits, &[1], &rule);
/// let grad = reference::cross_entropy_backward(&logits, &[1], &rule, &lse, &[1.0]);
/// assert!((grad[0] - 0.5f64).abs() < 1e-12 && (grad[1] + 0.5).abs() < 1e-12);
/// ```
pub fn cross_entropy_backward<T: Real>(
    logits: &[T],
    targets: &[i64],
    rule: &CrossEntropy,
    lse: &[T],
    grad_rows: &[T],
) -> Vec<T> {
    let classes = logits.len() / targets.len().max(1);
    let eps = T::of(rule.label_smoothing);
    let mut grad_logits = vec![T::ZERO; logits.len()];
    for (row, &target) in targets.iter().enumerate() {
        if Some(target) == rule.ignore_index {
            continue;
        }
        for c in 0..classes {
            let hit = if c == target as usize { T::ONE - eps } else { T::ZERO };
            let wanted = hit + eps / T::of(classes as f64);
            let p = (logits[row * classes + c] - lse[row]).exp();
            grad_logits[row * classes + c] = grad_rows[row] * (p - wanted);
        }
    }
    grad_logits
}

/// For every row of a table of `words` the sum of the rows of grad that have its id.
///
/// ```
/// use regard_kernels::step::reference;
/// let table = reference::embedding_backward(&[2, 0, 2], &[1.0, 5.0, 2.0], 1, None, 3);
/// assert_eq!(table, [5.0, 0.0, 3.0]);
/// ```
pub fn embedding_backward<T: Real>(
    ids: &[i64],
    grad: &[T],
    width: usize,
    padding: Option<i64>,
    words: usize,
) -> Vec<T> {
    let mut table = vec![T::ZERO; words * width];
    for (at, &id) in ids.iter().enumerate().filter(|(_, id)| Some(**id) != padding) {
        for c in 0..width {
            table[id as usize * width + c] += grad[at * width + c];
        }
    }
    table
}

/// One parameter after a step of Adam, and its two means.
///
/// ```
/// use regard_kernels::{Adam, step::reference};
/// let [p, m, v] = reference::adam(&Adam { lr: 0.1, ..Adam::default() }, 1.0, 0.5, 0.0, 0.0);
/// assert!((p - 0.9f64).abs() < 1e-6 && (m - 0.05).abs() < 1e-9 && (v - 2.5e-4).abs() < 1e-9);
/// ```
pub fn adam<T: Real>(adam: &Adam, param: T, grad: T, m: T, v: T) -> [T; 3] {
    let (mut param, mut grad) = (param, grad * T::of(adam.grad_scale));
    if adam.decoupled {
        param *= T::of(1.0 - adam.lr * adam.weight_decay);
    } else {
        grad += T::of(adam.weight_decay) * param;
    }
    let m = m + T::of(1.0 - adam.beta1) * (grad - m);
    let v = T::of(adam.beta2) * v + T::of(1.0 - adam.beta2) * grad * grad;
    let correction = |beta: f64| 1.0 - beta.powf(adam.step as f64);
    let below = v.sqrt() / T::of(correction(adam.beta2).sqrt()) + T::of(adam.eps);
    param -= T::of(adam.lr / correction(adam.beta1)) * (m / below);
    [param, m, v]
}

/// One parameter after a step of stochastic gradient descent, and its direction.
///
/// ```
/// use regard_kernels::{Sgd, step::reference};
/// let sgd = Sgd { lr: 0.5, momentum: 0.5, ..Sgd::default() };
/// assert_eq!(reference::sgd(&sgd, 1.0, 0.5, 1.0), [0.5, 1.0]);
/// ```
pub fn sgd<T: Real>(sgd: &Sgd, param: T, grad: T, direction: T) -> [T; 2] {
    let grad = grad * T::of(sgd.grad_scale) + T::of(sgd.weight_decay) * param;
    let momentum = T::of(sgd.momentum);
    let along = momentum * direction + grad;
    let step = if sgd.nesterov { grad + momentum * along } else { along };
    [param - T::of(sgd.lr) * step, along]
}
