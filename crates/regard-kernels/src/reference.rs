//! The oracle: every mechanism in plain loops, forward and backward, one row at a time.
//!
//! In `f64` it is the truth the kernels are compared with; in `f32` it is "the plain formula in
//! the same precision", by whose error a kernel's is judged (`tests/case/rule.rs`). It computes
//! each row of weights in full and is slow on purpose.

mod expression;

use crate::error::{Error, ensure};
use crate::numel::numel;
use crate::random::{Draw, Stream, uniform};
use crate::spec::{Arrivals, Normalizer, OwnGrads, Score, Shape, Spec, w_of_head};
use crate::{Real, View};
use expression::Pair;

/// Everything forward can give. Rows are `[B, Hq, Nq]`.
///
/// ```
/// use regard_kernels::{Normalizer, Score, Spec, View, reference};
/// // Without a normalizer the output is (q · k) v.
/// let spec = Spec { normalizer: Normalizer::None, ..Spec::new(Score::Dot { scale: 1.0 }) };
/// let one = |x: &'static [f64]| View::new(x, [1, 1, 1, 1]);
/// let (q, k, v) = (one(&[2.0])?, one(&[3.0])?, one(&[5.0])?);
/// let output = reference::forward(&spec, q, k, v)?;
/// assert_eq!((output.out, output.weights), (vec![30.0], vec![6.0]));
/// # Ok::<(), regard_kernels::Error>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Output<T> {
    /// `[B, Hq, Nq, Dv]`
    pub out: Vec<T>,
    /// `[B, Hq, Nq, Nk]`, dropout included.
    pub weights: Vec<T>,
    /// Rows: log Σ exp(score); −∞ for an empty row.
    pub lse: Vec<T>,
    /// Rows: the threshold of sparsemax and entmax; 0 for the other normalizers.
    pub threshold: Vec<T>,
    /// Rows: the chosen key of hard attention; −1 for an empty row and for soft attention.
    pub index: Vec<i64>,
    /// Rows: the log-probability of the chosen key; 0 where none is chosen.
    pub log_prob: Vec<T>,
}

/// The gradients that arrive at what forward gave.
///
/// ```
/// use regard_kernels::{Normalizer, Score, Spec, View, reference};
/// // Without a normalizer the output is (q · k) v.
/// let spec = Spec { normalizer: Normalizer::None, ..Spec::new(Score::Dot { scale: 1.0 }) };
/// let one = |x: &'static [f64]| View::new(x, [1, 1, 1, 1]);
/// let (q, k, v) = (one(&[2.0])?, one(&[3.0])?, one(&[5.0])?);
/// let at_weights = reference::Arriving { weights: Some(&[1.0]), ..one(&[0.0])?.into() };
/// assert_eq!(reference::backward(&spec, q, k, v, at_weights)?.q, [3.0]);
/// # Ok::<(), regard_kernels::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Arriving<'a, T> {
    /// `[B, Hq, Nq, Dv]`
    pub out: View<'a, T>,
    /// `[B, Hq, Nq, Nk]`: at the weights, dropout included.
    pub weights: Option<&'a [T]>,
    /// `[B, Hq, E]`: at the weights along the mask's edges, dropout included.
    pub edge_weights: Option<&'a [T]>,
    /// Rows: at the log-probability of the chosen key of hard attention.
    pub log_prob: Option<&'a [T]>,
    /// Rows: at the log-sum-exp of softmax, and of hard attention.
    pub lse: Option<&'a [T]>,
}

impl<'a, T> From<View<'a, T>> for Arriving<'a, T> {
    /// At the output alone.
    fn from(out: View<'a, T>) -> Self {
        Self { out, weights: None, edge_weights: None, log_prob: None, lse: None }
    }
}

/// Every gradient, in the shape of what it is the gradient of.
///
/// ```
/// use regard_kernels::{Normalizer, Score, Spec, View, reference};
/// // Without a normalizer the output is (q · k) v.
/// let spec = Spec { normalizer: Normalizer::None, ..Spec::new(Score::Dot { scale: 1.0 }) };
/// let one = |x: &'static [f64]| View::new(x, [1, 1, 1, 1]);
/// let (q, k, v) = (one(&[2.0])?, one(&[3.0])?, one(&[5.0])?);
/// let gradients = reference::backward(&spec, q, k, v, one(&[1.0])?)?;
/// assert_eq!((gradients.q, gradients.k, gradients.v), (vec![15.0], vec![10.0], vec![6.0]));
/// # Ok::<(), regard_kernels::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Gradients<T> {
    /// `[B, Hq, Nq, Dq]`
    pub q: Vec<T>,
    /// `[B, Hk, Nk, Dk]`
    pub k: Vec<T>,
    /// `[B, Hk, Nk, Dv]`
    pub v: Vec<T>,
    /// As the additive score's w; empty for other scores.
    pub w: Vec<T>,
    /// One per parameter of the caller's own score.
    pub own: Vec<T>,
    /// As `bias.key`, or empty.
    pub key_bias: Vec<T>,
    /// As `bias.full`, or empty.
    pub bias: Vec<T>,
    /// As `bias.relative`'s table, or empty.
    pub relative: Vec<T>,
}

/// weights = normalize(score(q, k) + bias, where mask), output = weights · v.
/// Refuses what [`Spec::check`] refuses, edges that are there more than once, and more numbers than memory holds.
///
/// ```
/// use regard_kernels::{Spec, View, reference};
/// let (q, k, v) = ([1.0, 0.0], [9.0, 0.0, 0.0, 9.0], [5.0, 7.0]);
/// let output = reference::forward(
///     &Spec::scaled_dot(2),
///     View::new(&q, [1, 1, 1, 2])?,
///     View::new(&k, [1, 1, 2, 2])?,
///     View::new(&v, [1, 1, 2, 1])?,
/// )?;
/// assert!(output.weights[0] > 0.99 && output.out[0] < 5.01);
/// # Ok::<(), regard_kernels::Error>(())
/// ```
pub fn forward<T: Real>(
    spec: &Spec<T>,
    q: View<T>,
    k: View<T>,
    v: View<T>,
) -> Result<Output<T>, Error> {
    let s = spec.check(&q, &k, &v)?;
    no_repeats(spec)?;
    has_room::<T>("weights", numel(&[s.rows(), s.nk]))?;
    has_room::<T>("out", numel(&s.out()))?;
    let mut output = Output {
        out: vec![T::ZERO; s.rows() * s.dv],
        weights: vec![T::ZERO; s.rows() * s.nk],
        lse: vec![T::ZERO; s.rows()],
        threshold: vec![T::ZERO; s.rows()],
        index: vec![-1; s.rows()],
        log_prob: vec![T::ZERO; s.rows()],
    };
    for (at, place) in rows(&s).enumerate() {
        let row = row(spec, &s, [&q, &k, &v], place);
        output.out[at * s.dv..][..s.dv].copy_from_slice(&row.out);
        output.weights[at * s.nk..][..s.nk].copy_from_slice(&row.weights);
        output.lse[at] = row.lse;
        output.threshold[at] = row.threshold;
        if let Some((j, log_prob)) = row.chosen {
            (output.index[at], output.log_prob[at]) = (j as i64, log_prob);
        }
    }
    Ok(output)
}

/// What forward gives for one row.
pub(crate) struct Row<T> {
    pub(crate) out: Vec<T>,
    pub(crate) weights: Vec<T>,
    pub(crate) lse: T,
    pub(crate) threshold: T,
    /// The chosen key and its log-probability.
    pub(crate) chosen: Option<(usize, T)>,
}

/// One row of [`forward`].
pub(crate) fn row<T: Real>(
    spec: &Spec<T>,
    s: &Shape,
    [q, k, v]: [&View<T>; 3],
    (b, h, i): (usize, usize, usize),
) -> Row<T> {
    let scores = row_scores(spec, s, q, k, b, h, i);
    let normalized = normalize(spec.normalizer, &scores, b * s.hq + h, i);
    let mut out = vec![T::ZERO; s.dv];
    let mut weights = normalized.weights;
    for (j, &score) in scores.iter().enumerate() {
        weights[j] *= keep(spec, s, b, h, i, j);
        // What is hidden, or was not chosen, is not even looked at: 0 · NaN is NaN.
        let seen = match spec.normalizer.is_hard() {
            true => normalized.index == Some(j),
            false => score != T::NEG_INFINITY,
        };
        if seen {
            for (out, &x) in out.iter_mut().zip(v.row(b, h / s.group(), j)) {
                *out += weights[j] * x;
            }
        }
    }
    let Normalized { lse, threshold, .. } = normalized;
    let chosen = normalized.index.map(|j| (j, scores[j] - lse));
    Row { out, weights, lse, threshold, chosen }
}

/// Refuses what no memory holds: shapes may say any size where a view is empty or repeats itself.
fn has_room<T>(name: &str, numbers: usize) -> Result<(), Error> {
    let room = Vec::<T>::new().try_reserve_exact(numbers);
    ensure!(room.is_ok(), "{name} would have {numbers} elements, for which there is no memory");
    Ok(())
}

/// The gradients of Σ arriving · (output, weights, log-probabilities, log-sum-exps); a view arrives
/// at the output alone. Hard choices send the log-probability's to the scores and no other.
/// Refuses what [`forward`] refuses, and gradients of other shapes.
pub fn backward<'a, T: Real>(
    spec: &Spec<T>,
    q: View<T>,
    k: View<T>,
    v: View<T>,
    grads: impl Into<Arriving<'a, T>>,
) -> Result<Gradients<T>, Error> {
    let s = spec.check(&q, &k, &v)?;
    no_repeats(spec)?;
    let grads = grads.into();
    ensure!(
        grads.out.shape == s.out(),
        "grad_out has shape {:?}, [B, Hq, Nq, Dv] is {:?}",
        grads.out.shape,
        s.out()
    );
    let Arriving { weights, edge_weights, log_prob, lse, .. } = grads;
    Arrivals { weights, edge_weights, log_prob, lse }.check(&s, spec)?;
    let own = spec.score.own_len().unwrap_or(0);
    for (name, sizes) in [
        ("grad q", [s.b, s.hq, s.nq, s.dq]),
        ("grad k", [s.b, s.hk, s.nk, s.dk]),
        ("grad v", [s.b, s.hk, s.nk, s.dv]),
        ("grad of the own score", [1, 1, 1, own]),
    ] {
        has_room::<T>(name, numel(&sizes))?;
    }
    let mut g = Gradients::zeros(spec, &s);
    for place in rows(&s) {
        g.add_row(spec, &s, [&q, &k, &v], &grads, place);
    }
    Ok(g)
}

impl<T: Real> Gradients<T> {
    pub(crate) fn zeros(spec: &Spec<T>, s: &Shape) -> Self {
        let zeros = |n| vec![T::ZERO; n];
        let w = match spec.score {
            Score::Additive { w, .. } => w.len(),
            _ => 0,
        };
        Self {
            q: zeros(s.b * s.hq * s.nq * s.dq),
            k: zeros(s.b * s.hk * s.nk * s.dk),
            v: zeros(s.b * s.hk * s.nk * s.dv),
            w: zeros(w),
            own: zeros(spec.score.own_len().unwrap_or(0)),
            key_bias: zeros(spec.bias.key.map_or(0, |x| x.data.len())),
            bias: zeros(spec.bias.full.map_or(0, |x| x.data.len())),
            relative: zeros(spec.bias.relative.map_or(0, |x| x.table.len())),
        }
    }

    /// Adds one row's part of [`backward`].
    pub(crate) fn add_row(
        &mut self,
        spec: &Spec<T>,
        s: &Shape,
        [q, k, v]: [&View<T>; 3],
        grads: &Arriving<T>,
        place @ (b, h, i): (usize, usize, usize),
    ) {
        let row = (b * s.hq + h) * s.nq + i;
        let scores = row_scores(spec, s, q, k, b, h, i);
        let normalized = normalize(spec.normalizer, &scores, b * s.hq + h, i);
        let grad_weights = self.add_values(spec, s, v, grads, place, (&scores, &normalized));
        if spec.normalizer.is_hard() && grads.log_prob.is_none() && grads.lse.is_none() {
            return;
        }
        let mut grad_scores =
            normalize_backward(spec.normalizer, &scores, &normalized.weights, &grad_weights);
        let soft = normalize(Normalizer::Softmax, &scores, b * s.hq + h, i).weights;
        if let (Some(grads), Some(chosen)) = (grads.log_prob, normalized.index) {
            // log p_z = s_z − log Σ_j exp(s_j)
            for (j, grad) in grad_scores.iter_mut().enumerate() {
                let here = if j == chosen { T::ONE } else { T::ZERO };
                *grad += grads[row] * (here - soft[j]);
            }
        }
        if let Some(grads) = grads.lse.filter(|_| normalized.lse != T::NEG_INFINITY) {
            // ∂ log Σ_j exp(s_j) / ∂ s_j = softmax_j
            grad_scores.iter_mut().zip(&soft).for_each(|(grad, &p)| *grad += grads[row] * p);
        }
        for j in (0..s.nk).filter(|&j| scores[j] != T::NEG_INFINITY) {
            self.add_biases(spec, s, place, j, grad_scores[j]);
            self.add_pair(spec, s, [q, k], place, j, grad_scores[j]);
        }
    }

    /// Adds a row's part of the values' gradients, and gives those of its weights:
    /// out = Σ_j weight_j · keep_j · v_j.
    fn add_values(
        &mut self,
        spec: &Spec<T>,
        s: &Shape,
        v: &View<T>,
        grads: &Arriving<T>,
        (b, h, i): (usize, usize, usize),
        (scores, normalized): (&[T], &Normalized<T>),
    ) -> Vec<T> {
        let (row, hk) = ((b * s.hq + h) * s.nq + i, h / s.group());
        let grad = grads.out.row(b, h, i);
        let mut grad_weights = vec![T::ZERO; s.nk];
        // As in forward, what is hidden, or was not chosen, is not even looked at.
        let seen = |&j: &usize| match spec.normalizer.is_hard() {
            true => normalized.index == Some(j),
            false => scores[j] != T::NEG_INFINITY,
        };
        for j in (0..s.nk).filter(seen) {
            let keep = keep(spec, s, b, h, i, j);
            grad_weights[j] = keep * grads.weights.map_or(T::ZERO, |g| g[row * s.nk + j]);
            if let (Some(grads), Some(edges)) = (grads.edge_weights, spec.mask.edges)
                && let Ok(at) = edges.of_query(i).binary_search(&(j as u32))
            {
                let edge = edges.starts()[i] + at;
                grad_weights[j] += keep * grads[(b * s.hq + h) * edges.len() + edge];
            }
            for (d, &x) in v.row(b, hk, j).iter().enumerate() {
                grad_weights[j] += keep * grad[d] * x;
                self.v[((b * s.hk + hk) * s.nk + j) * s.dv + d] +=
                    normalized.weights[j] * keep * grad[d];
            }
        }
        grad_weights
    }

    /// Adds what a pair's score sends to the biases.
    fn add_biases(
        &mut self,
        spec: &Spec<T>,
        s: &Shape,
        (b, h, i): (usize, usize, usize),
        j: usize,
        grad: T,
    ) {
        if let Some(key) = &spec.bias.key {
            self.key_bias[key.index(b, h, 0, j)] += grad;
        }
        if let Some(full) = &spec.bias.full {
            self.bias[full.index(b, h, i, j)] += grad;
        }
        if let Some(relative) = &spec.bias.relative {
            let distance = j as isize - (i as isize + spec.position(s));
            self.relative[relative.index(h, distance)] += grad;
        }
    }

    /// Adds what a pair's score sends to q, k and the score's parameters.
    fn add_pair(
        &mut self,
        spec: &Spec<T>,
        s: &Shape,
        [q, k]: [&View<T>; 2],
        (b, h, i): (usize, usize, usize),
        j: usize,
        grad: T,
    ) {
        let (row, hk) = ((b * s.hq + h) * s.nq + i, h / s.group());
        let (q, k) = (q.row(b, h, i), k.row(b, hk, j));
        let gq = &mut self.q[row * s.dq..][..s.dq];
        let gk = &mut self.k[((b * s.hk + hk) * s.nk + j) * s.dk..][..s.dk];
        match spec.score {
            Score::Dot { scale } => {
                for d in 0..s.dk {
                    gq[d] += grad * scale * k[d];
                    gk[d] += grad * scale * q[d];
                }
            }
            Score::Additive { activation, w } => {
                let gw = if w.len() == s.dk { &mut self.w } else { &mut self.w[h * s.dk..] };
                let w = w_of_head(w, h, s.dk);
                for d in 0..s.dk {
                    let (value, slope) = activation.in_additive().value_and_slope(q[d] + k[d]);
                    gq[d] += grad * w[d] * slope;
                    gk[d] += grad * w[d] * slope;
                    gw[d] += grad * value;
                }
            }
            Score::Own { score, parameters } => {
                let p = score.parameters();
                let at = if parameters.len() == p { 0 } else { h * p };
                let to = OwnGrads { q: gq, k: gk, parameters: &mut self.own[at..][..p] };
                score.backward(w_of_head(parameters, h, p), q, k, grad, to);
            }
            Score::Expression { expression, parameters } => {
                Pair { expression, parameters, h, q, k }.backward(grad, gq, gk, &mut self.own);
            }
        }
    }
}

fn rows(s: &Shape) -> impl Iterator<Item = (usize, usize, usize)> + use<> {
    let s = *s;
    (0..s.rows()).map(move |row| s.place(row))
}

/// The scores of one row, bias added; −∞ where the mask forbids.
fn row_scores<T: Real>(
    spec: &Spec<T>,
    s: &Shape,
    q: &View<T>,
    k: &View<T>,
    b: usize,
    h: usize,
    i: usize,
) -> Vec<T> {
    let offset = spec.position(s);
    let q = q.row(b, h, i);
    let mut scores = vec![T::NEG_INFINITY; s.nk];
    for (j, score) in scores.iter_mut().enumerate() {
        let edge = spec.mask.edges.is_none_or(|e| e.of_query(i).contains(&(j as u32)));
        if !edge || !spec.mask.allows(s, offset, b, h, i, j) {
            continue;
        }
        let k = k.row(b, h / s.group(), j);
        let pairs = q.iter().zip(k);
        let plain = match spec.score {
            Score::Dot { scale } => pairs.map(|(&q, &k)| q * k).sum::<T>() * scale,
            Score::Additive { activation, w } => w_of_head(w, h, s.dk)
                .iter()
                .zip(pairs)
                .map(|(&w, (&q, &k))| w * activation.in_additive().value_and_slope(q + k).0)
                .sum(),
            Score::Own { score, parameters } => {
                score.score(w_of_head(parameters, h, score.parameters()), q, k)
            }
            Score::Expression { expression, parameters } => {
                Pair { expression, parameters, h, q, k }.score()
            }
        };
        *score = plain + spec.bias.at(offset, b, h, i, j);
    }
    scores
}

fn keep<T: Real>(spec: &Spec<T>, s: &Shape, b: usize, h: usize, i: usize, j: usize) -> T {
    spec.dropout.map_or(T::ONE, |dropout| dropout.of_head(b * s.hq + h).factor(i, j))
}

/// The formula has a row of weights for all keys, and so one for an edge.
fn no_repeats<T: Real>(spec: &Spec<T>) -> Result<(), Error> {
    ensure!(
        !spec.mask.has_repeats(),
        "some edges are there more than once; the formula has each once"
    );
    Ok(())
}

/// A row of weights, before dropout, and what is remembered of it.
struct Normalized<T> {
    weights: Vec<T>,
    lse: T,
    threshold: T,
    index: Option<usize>,
}

/// From scores to weights; a row of nothing but −∞ has no weight anywhere.
fn normalize<T: Real>(
    normalizer: Normalizer,
    scores: &[T],
    head: usize,
    query: usize,
) -> Normalized<T> {
    let largest = scores.iter().copied().fold(T::NEG_INFINITY, T::max);
    let empty = scores.iter().all(|&s| s == T::NEG_INFINITY);
    let mut row = Normalized {
        weights: vec![T::ZERO; scores.len()],
        lse: T::NEG_INFINITY,
        threshold: T::ZERO,
        index: None,
    };
    if empty {
        return row;
    }
    let total: T = scores.iter().map(|&s| (s - largest).exp()).sum();
    row.lse = largest + total.ln();
    // One score that is NaN or +∞ leaves a row that is normalized as a whole undefined.
    let undefined = total.f64().is_nan();
    match normalizer {
        Normalizer::Sparsemax | Normalizer::Entmax15 if undefined => {
            row.threshold = total;
            row.weights.fill(total);
        }
        Normalizer::Softmax => {
            row.weights = scores.iter().map(|&s| (s - largest).exp() / total).collect();
        }
        Normalizer::Sparsemax => {
            let tau = sparsemax_threshold(scores.iter().map(|&s| s - largest));
            row.threshold = tau + largest;
            row.weights = scores.iter().map(|&s| ((s - largest) - tau).max(T::ZERO)).collect();
        }
        Normalizer::Entmax15 => {
            let half = T::of(0.5);
            let tau = entmax15_threshold(scores.iter().map(|&s| (s - largest) * half));
            row.threshold = tau + largest * half;
            let root = |&s: &T| ((s - largest) * half - tau).max(T::ZERO);
            row.weights = scores.iter().map(|s| root(s) * root(s)).collect();
        }
        Normalizer::Sigmoid => {
            row.weights = scores.iter().map(|&s| T::ONE / (T::ONE + (-s).exp())).collect();
        }
        Normalizer::None => {
            let seen = |&s: &T| if s == T::NEG_INFINITY { T::ZERO } else { s };
            row.weights = scores.iter().map(seen).collect();
        }
        Normalizer::Argmax => row.index = first_largest(scores.iter().copied()),
        Normalizer::Sample { seed } => {
            let draw = Draw::new(seed, Stream::Sample, head);
            let noisy = scores.iter().enumerate().map(|(j, &s)| {
                let u = T::of(f64::from(uniform(draw.word(query, j))));
                s - (-u.ln()).ln()
            });
            row.index = first_largest(noisy);
        }
    }
    if let Some(j) = row.index {
        row.weights[j] = T::ONE;
    }
    // What is hidden has no weight, whatever the others have.
    for (weight, _) in row.weights.iter_mut().zip(scores).filter(|x| *x.1 == T::NEG_INFINITY) {
        *weight = T::ZERO;
    }
    row
}

/// The threshold τ at which Σ max(z − τ, 0) = 1, where the largest z is 0.
fn sparsemax_threshold<T: Real>(values: impl Iterator<Item = T>) -> T {
    let mut sum = T::ZERO;
    let mut tau = -T::ONE;
    for (n, z) in descending(values).into_iter().enumerate() {
        sum += z;
        let here = (sum - T::ONE) / T::of((n + 1) as f64);
        if z <= here {
            break;
        }
        tau = here;
    }
    tau
}

/// The threshold τ at which Σ max(z − τ, 0)² = 1, where the largest z is 0.
fn entmax15_threshold<T: Real>(values: impl Iterator<Item = T>) -> T {
    let (mut sum, mut squares) = (T::ZERO, T::ZERO);
    let mut tau = -T::ONE;
    let seen = descending(values).into_iter().take_while(|&z| z > T::NEG_INFINITY);
    for (n, z) in seen.enumerate() {
        sum += z;
        squares += z * z;
        let count = T::of((n + 1) as f64);
        let mean = sum / count;
        let spread = squares - sum * mean;
        let here = mean - ((T::ONE - spread) / count).max(T::ZERO).sqrt();
        if z < here {
            break;
        }
        tau = here;
    }
    tau
}

/// From the gradient of the weights to that of the scores.
fn normalize_backward<T: Real>(
    normalizer: Normalizer,
    scores: &[T],
    weights: &[T],
    grad: &[T],
) -> Vec<T> {
    // softmax, sparsemax, entmax: ds = g ∘ (dp − Σ g·dp / Σ g), with g the derivative's diagonal
    let centered = |g: Vec<T>| -> Vec<T> {
        let total: T = g.iter().copied().sum();
        let mean = g.iter().zip(grad).map(|(&g, &d)| g * d).sum::<T>() / total;
        let safe = if total == T::ZERO { T::ZERO } else { mean };
        g.iter().zip(grad).map(|(&g, &d)| g * (d - safe)).collect()
    };
    match normalizer {
        Normalizer::Softmax => centered(weights.to_vec()),
        Normalizer::Sparsemax => {
            // A weight that is NaN has a derivative that is.
            let support = |&p: &T| if p > T::ZERO { T::ONE } else { p };
            centered(weights.iter().map(support).collect())
        }
        Normalizer::Entmax15 => centered(weights.iter().map(|p| p.sqrt()).collect()),
        Normalizer::Sigmoid => {
            weights.iter().zip(grad).map(|(&p, &d)| p * (T::ONE - p) * d).collect()
        }
        Normalizer::None => grad.to_vec(),
        Normalizer::Argmax | Normalizer::Sample { .. } => vec![T::ZERO; scores.len()],
    }
}

fn descending<T: Real>(values: impl Iterator<Item = T>) -> Vec<T> {
    let mut sorted: Vec<T> = values.collect();
    sorted.sort_by(|a, b| b.f64().total_cmp(&a.f64()));
    sorted
}

fn first_largest<T: Real>(values: impl Iterator<Item = T>) -> Option<usize> {
    let mut best = T::NEG_INFINITY;
    let mut index = None;
    for (j, value) in values.enumerate() {
        if value > best {
            (best, index) = (value, Some(j));
        }
    }
    index
}
