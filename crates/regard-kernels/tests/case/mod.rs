//! One attention problem drawn from a seed, run through the kernels and through the reference, and
//! compared by the rule of `rule.rs`.
#![allow(dead_code, unreachable_pub, missing_docs)] // each test file uses its part
#![allow(clippy::unwrap_used)] // a test that cannot go on says so by its panic

mod rule;

pub use rule::*;

use rayon::prelude::*;
use regard_kernels::cpu::Path;
use regard_kernels::{
    Activation, Backward, Bias, Broadcast, Cpu, Dropout, Edges, Expression, Forward, Gradients,
    Isa, Mask, Normalizer, OwnGrads, OwnScore, Parameter, Real, Relative, Saved, Score, Segments,
    Spec, View, ViewMut, Window, philox, reference,
};

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ScoreKind {
    Dot,
    Additive(Activation),
    Own,
    /// One of [`EXPRESSIONS`].
    Expression(usize),
}

/// An expression. Parameters named w… are rows, others numbers.
pub struct Written {
    pub text: &'static str,
    /// How large its terms get: those of a score, and of its derivatives by q, k and parameters.
    size: fn(Sizes) -> [f64; 4],
}

/// The largest of q, k and the parameters, and the root of the width.
#[derive(Clone, Copy)]
struct Sizes {
    q: f64,
    k: f64,
    w: f64,
    root: f64,
}

/// The first four have no kernels of their own; the others have.
pub const EXPRESSIONS: [Written; 7] = [
    Written {
        text: "-sum(square(w * (q - k)))",
        size: |Sizes { q, k, w, root }| {
            let (x, slope) = (w * (q + k), 2.0 * w * w * (q + k));
            [root * x * x, slope, slope, 2.0 * x * (q + k)]
        },
    },
    Written {
        text: "q @ k / (0.5 + norm(q) * norm(k)) * tau",
        size: |Sizes { q, k, w, root }| [root * w, 2.0 * w * k, 2.0 * w * q, root],
    },
    Written {
        text: "sum(w * softplus(q - k)) - tau * sum(abs(q * k))",
        size: |Sizes { q, k, w, root }| {
            [root * w * (1.0 + q + k + q * k), w * (1.0 + k), w * (1.0 + q), 1.0 + root * q * k]
        },
    },
    Written {
        text: "sum(w * tanh(q + k)) + 0",
        size: |Sizes { w, root, .. }| [root * w, w, w, 1.0],
    },
    Written { text: "sum(w * tanh(q + k))", size: |Sizes { w, root, .. }| [root * w, w, w, 1.0] },
    Written {
        text: "leaky_relu(q + k, 0.1 + 0.1) @ w",
        size: |Sizes { q, k, w, root }| [root * w * (q + k), w, w, q + k],
    },
    Written { text: "-(0.5 * k @ q)", size: |Sizes { q, k, root, .. }| [root * q * k, k, q, 0.0] },
];

pub const SCORES: [ScoreKind; 10] = [
    ScoreKind::Dot,
    ScoreKind::Additive(Activation::Tanh),
    ScoreKind::Additive(Activation::LeakyRelu { slope: 0.2 }),
    ScoreKind::Additive(Activation::Relu),
    ScoreKind::Additive(Activation::Gelu),
    ScoreKind::Additive(Activation::Identity),
    ScoreKind::Own,
    ScoreKind::Expression(0),
    ScoreKind::Expression(1),
    ScoreKind::Expression(2),
];

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MaskKind {
    pub causal: bool,
    pub window: Option<(usize, usize)>,
    pub lengths: bool,
    pub segments: bool,
    /// Which axes of the dense mask are full.
    pub dense: Option<[bool; 4]>,
    pub edges: bool,
}

pub fn masks() -> Vec<MaskKind> {
    let none = MaskKind::default();
    vec![
        none,
        MaskKind { causal: true, ..none },
        MaskKind { window: Some((3, 2)), ..none },
        MaskKind { lengths: true, ..none },
        MaskKind { segments: true, ..none },
        MaskKind { dense: Some([true, true, true, true]), ..none },
        MaskKind { edges: true, ..none },
        MaskKind { causal: true, lengths: true, dense: Some([false, true, true, true]), ..none },
        MaskKind { window: Some((70, 5)), segments: true, lengths: true, ..none },
        MaskKind { edges: true, causal: true, dense: Some([true, false, true, true]), ..none },
    ]
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct BiasKind {
    /// Whether the batch and the head axis of the per-key bias are full.
    pub key: Option<[bool; 2]>,
    /// Which axes of the full bias are full.
    pub full: Option<[bool; 4]>,
    pub alibi: bool,
    /// Reach, and whether each head has its own row.
    pub relative: Option<(usize, bool)>,
}

pub fn biases() -> Vec<BiasKind> {
    let none = BiasKind::default();
    vec![
        none,
        BiasKind { key: Some([true, false]), ..none },
        BiasKind { full: Some([true, true, true, true]), ..none },
        BiasKind { full: Some([false, true, true, true]), ..none },
        BiasKind { full: Some([true, false, false, true]), ..none },
        BiasKind { alibi: true, ..none },
        BiasKind { relative: Some((4, true)), ..none },
        BiasKind {
            key: Some([false, true]),
            full: Some([false, false, true, false]),
            alibi: true,
            relative: Some((2, false)),
        },
    ]
}

pub const NORMALIZERS: [Normalizer; 7] = [
    Normalizer::Softmax,
    Normalizer::Sparsemax,
    Normalizer::Entmax15,
    Normalizer::Sigmoid,
    Normalizer::None,
    Normalizer::Argmax,
    Normalizer::Sample { seed: 7 },
];

#[derive(Clone, Copy, Debug)]
pub struct Case {
    pub b: usize,
    pub hq: usize,
    pub hk: usize,
    pub nq: usize,
    pub nk: usize,
    pub d: usize,
    pub dv: usize,
    pub score: ScoreKind,
    pub mask: MaskKind,
    pub bias: BiasKind,
    pub normalizer: Normalizer,
    pub dropout: Option<f64>,
    pub offset: Option<isize>,
    /// Whether gradients also arrive at the weights, and at the chosen keys' log-probabilities.
    pub arriving: bool,
    /// Whether gradients also arrive at the weights along the edges.
    pub arriving_edges: bool,
    /// Whether gradients also arrive at the log-sum-exps.
    pub arriving_lse: bool,
    /// Whether each head has its own w, and its own parameters of the own score.
    pub w_per_head: bool,
    /// Standard deviation of q and k.
    pub spread: f64,
    /// Whether q, k, v and all results are strided views with gaps.
    pub strided: bool,
    /// Whether forward is asked for the output and its log-sum-exp alone.
    pub lean: bool,
    pub seed: u64,
}

impl Default for Case {
    fn default() -> Self {
        Self {
            b: 1,
            hq: 1,
            hk: 1,
            nq: 5,
            nk: 7,
            d: 4,
            dv: 4,
            score: ScoreKind::Dot,
            mask: MaskKind::default(),
            bias: BiasKind::default(),
            normalizer: Normalizer::Softmax,
            dropout: None,
            offset: None,
            arriving: false,
            arriving_edges: false,
            arriving_lse: false,
            w_per_head: false,
            spread: 1.0,
            strided: false,
            lean: false,
            seed: 1,
        }
    }
}

/// Numbers from a seed.
pub struct Draws {
    seed: u64,
    at: u32,
}

impl Draws {
    pub fn new(seed: u64) -> Self {
        Self { seed, at: 0 }
    }

    pub fn uniform(&mut self) -> f64 {
        self.at += 1;
        let words = philox([self.at, 0, 0, 99], [self.seed as u32, (self.seed >> 32) as u32]);
        (words[0] as f64 + 0.5) / 4294967296.0
    }

    pub fn below(&mut self, n: usize) -> usize {
        (self.uniform() * n as f64) as usize
    }

    /// Whether something happens that does so with probability `p`.
    pub fn happens(&mut self, p: f64) -> bool {
        self.uniform() < p
    }

    pub fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }

    pub fn normal(&mut self) -> f64 {
        let (u, v) = (self.uniform(), self.uniform());
        (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
    }

    /// Normal numbers that f32 holds exactly.
    pub fn normals(&mut self, n: usize, spread: f64) -> Vec<f64> {
        (0..n).map(|_| f64::from((self.normal() * spread) as f32)).collect()
    }
}

/// A score of one's own with two parameters: rate · Σ (q·k)/(1 + |q·k|) + slant · Σ (q − k).
pub struct Squash;

impl<T: Real> OwnScore<T> for Squash {
    fn score(&self, p: &[T], q: &[T], k: &[T]) -> T {
        q.iter()
            .zip(k)
            .map(|(&q, &k)| {
                let x = q * k;
                p[0] * x / (T::ONE + x.abs()) + p[1] * (q - k)
            })
            .sum()
    }

    fn backward(&self, p: &[T], q: &[T], k: &[T], grad: T, to: OwnGrads<T>) {
        for d in 0..q.len() {
            let x = q[d] * k[d];
            let below = T::ONE + x.abs();
            let slope = p[0] / (below * below);
            to.q[d] += grad * (slope * k[d] + p[1]);
            to.k[d] += grad * (slope * q[d] - p[1]);
            to.parameters[0] += grad * x / below;
            to.parameters[1] += grad * (q[d] - k[d]);
        }
    }

    fn parameters(&self) -> usize {
        2
    }
}

/// All arrays of a case in one precision.
pub struct Data<T> {
    pub case: Case,
    pub q: Vec<T>,
    pub k: Vec<T>,
    pub v: Vec<T>,
    pub grad_out: Vec<T>,
    pub grad_weights: Option<Vec<T>>,
    pub grad_log_prob: Option<Vec<T>>,
    pub grad_lse: Option<Vec<T>>,
    pub grad_edge_weights: Option<Vec<T>>,
    pub w: Vec<T>,
    pub own: Vec<T>,
    expression: Option<Expression>,
    parameter_shapes: Vec<[usize; 2]>,
    /// The expression's, one after another.
    pub parameters: Vec<T>,
    lengths: Vec<usize>,
    q_segments: Vec<i64>,
    k_segments: Vec<i64>,
    dense: (Vec<bool>, [usize; 4]),
    edges: Option<Edges>,
    pub key_bias: (Vec<T>, [usize; 4]),
    pub bias: (Vec<T>, [usize; 4]),
    alibi: Vec<T>,
    pub relative: Vec<T>,
}

impl Case {
    pub fn data<T: Real>(&self) -> Data<T> {
        let c = *self;
        let mut draws = Draws::new(c.seed);
        let t = |x: Vec<f64>| x.into_iter().map(T::of).collect::<Vec<T>>();
        let q = t(draws.normals(c.b * c.hq * c.nq * c.d, c.spread));
        let k = t(draws.normals(c.b * c.hk * c.nk * c.d, c.spread));
        let v = t(draws.normals(c.b * c.hk * c.nk * c.dv, 1.0));
        let grad_out = t(draws.normals(c.b * c.hq * c.nq * c.dv, 1.0));
        let w = t(draws.normals(if c.w_per_head { c.hq * c.d } else { c.d }, 0.5));
        // Exact in f32, and another pair for each head where w is per head.
        let own = (0..if c.w_per_head { c.hq } else { 1 })
            .flat_map(|h| [0.75 + 0.25 * h as f64, -0.125 * (1 + h) as f64])
            .map(T::of)
            .collect();
        let lengths = (0..c.b).map(|_| draws.below(c.nk + 1)).collect();
        // Documents of about ten rows, in order.
        let mut segments = |n: usize| {
            let mut segment = 0;
            (0..c.b * n)
                .map(|at| {
                    if at % n == 0 {
                        segment = 0;
                    } else if draws.uniform() < 0.1 {
                        segment += 1;
                    }
                    segment
                })
                .collect::<Vec<i64>>()
        };
        let (q_segments, k_segments) = (segments(c.nq), segments(c.nk));
        let full = [c.b, c.hq, c.nq, c.nk];
        let shape = |axes: [bool; 4]| -> [usize; 4] {
            std::array::from_fn(|a| if axes[a] { full[a] } else { 1 })
        };
        let dense_shape = shape(c.mask.dense.unwrap_or_default());
        let dense = (0..dense_shape.iter().product()).map(|_| draws.uniform() < 0.6).collect();
        let edges = c.mask.edges.then(|| {
            // About four keys a query, some queries with none, some edges twice.
            let mut pairs: Vec<(usize, usize)> = (0..4 * c.nq)
                .filter(|_| c.nk > 0 && c.nq > 0)
                .map(|_| (draws.below(c.nq), draws.below(c.nk)))
                .collect();
            pairs.extend_from_within(..pairs.len() / 3);
            Edges::new(c.nq, c.nk, &pairs).unwrap()
        });
        let key = c.bias.key.unwrap_or_default();
        let key_shape = [if key[0] { c.b } else { 1 }, if key[1] { c.hq } else { 1 }, 1, c.nk];
        let key_bias = t(draws.normals(key_shape.iter().product(), 1.0));
        let bias_shape = shape(c.bias.full.unwrap_or_default());
        let bias = t(draws.normals(bias_shape.iter().product(), 1.0));
        let alibi = (0..c.hq).map(|h| T::of(0.5f64.powi(h as i32 + 1))).collect();
        let (reach, per_head) = c.bias.relative.unwrap_or_default();
        let rows = if per_head { c.hq } else { 1 };
        let relative = t(draws.normals(rows * (2 * reach + 1), 1.0));
        // Draws of their own, so that the rest of a case is the same with and without them.
        let mut draws = Draws::new(!c.seed);
        let rows = c.b * c.hq * c.nq;
        let grad_weights = c.arriving.then(|| t(draws.normals(rows * c.nk, 1.0)));
        let chosen = c.arriving && c.normalizer.is_hard();
        let grad_log_prob = chosen.then(|| t(draws.normals(rows, 1.0)));
        let grad_lse = c.arriving_lse.then(|| t(draws.normals(rows, 1.0)));
        let along = c.b * c.hq * edges.as_ref().map_or(0, Edges::len);
        let grad_edge_weights = c.arriving_edges.then(|| t(draws.normals(along, 1.0)));
        let expression = match c.score {
            ScoreKind::Expression(n) => Some(Expression::parse(EXPRESSIONS[n].text).unwrap()),
            _ => None,
        };
        let names = expression.as_ref().map_or(&[][..], Expression::parameters);
        let heads = if c.w_per_head { c.hq } else { 1 };
        let parameter_shapes: Vec<[usize; 2]> =
            names.iter().map(|name| [heads, if name.starts_with('w') { c.d } else { 1 }]).collect();
        let numbers = parameter_shapes.iter().map(|shape| shape[0] * shape[1]).sum();
        let parameters = t(draws.normals(numbers, 0.5));
        Data {
            case: c,
            q,
            k,
            v,
            grad_out,
            grad_weights,
            grad_log_prob,
            grad_lse,
            grad_edge_weights,
            w,
            own,
            expression,
            parameter_shapes,
            parameters,
            lengths,
            q_segments,
            k_segments,
            dense: (dense, dense_shape),
            edges,
            key_bias: (key_bias, key_shape),
            bias: (bias, bias_shape),
            alibi,
            relative,
        }
    }
}

impl<T: Real> Data<T> {
    pub fn spec(&self) -> Spec<'_, T> {
        let c = &self.case;
        let score = match c.score {
            ScoreKind::Dot => Score::scaled_dot(c.d),
            ScoreKind::Additive(activation) => Score::Additive { activation, w: &self.w },
            ScoreKind::Own => Score::Own { score: &Squash, parameters: &self.own },
            ScoreKind::Expression(_) => Score::Expression {
                expression: self.expression.as_ref().unwrap(),
                // Borrowed from what is borrowed from these data, so nobody can own them.
                parameters: self.bound().leak(),
            },
        };
        Spec {
            mask: Mask {
                causal: c.mask.causal,
                window: c.mask.window.map(|(left, right)| Window { left, right }),
                key_lengths: c.mask.lengths.then_some(&self.lengths),
                segments: c
                    .mask
                    .segments
                    .then_some(Segments { q: &self.q_segments, k: &self.k_segments }),
                dense: c
                    .mask
                    .dense
                    .map(|_| Broadcast { data: &self.dense.0[..], shape: self.dense.1 }),
                edges: self.edges.as_ref(),
            },
            bias: Bias {
                key: c
                    .bias
                    .key
                    .map(|_| Broadcast { data: &self.key_bias.0[..], shape: self.key_bias.1 }),
                full: c.bias.full.map(|_| Broadcast { data: &self.bias.0[..], shape: self.bias.1 }),
                alibi: c.bias.alibi.then_some(&self.alibi),
                relative: c
                    .bias
                    .relative
                    .map(|(max_distance, _)| Relative { table: &self.relative, max_distance }),
            },
            normalizer: c.normalizer,
            dropout: c.dropout.map(|p| Dropout { p, seed: c.seed ^ 0x5eed }),
            offset: c.offset,
            ..Spec::new(score)
        }
    }

    /// The parameters of the expression.
    fn bound(&self) -> Vec<Parameter<'_, T>> {
        let mut rest = self.parameters.as_slice();
        let mut next = |&shape: &[usize; 2]| {
            let (data, after) = rest.split_at(shape[0] * shape[1]);
            rest = after;
            Parameter { data, shape }
        };
        self.parameter_shapes.iter().map(&mut next).collect()
    }

    /// The numbers whose gradient is called `own`.
    pub fn own_numbers(&mut self) -> &mut [T] {
        match self.case.score {
            ScoreKind::Expression(_) => &mut self.parameters,
            _ => &mut self.own,
        }
    }

    pub fn shapes(&self) -> [[usize; 4]; 4] {
        let c = &self.case;
        [
            [c.b, c.hq, c.nq, c.d],
            [c.b, c.hk, c.nk, c.d],
            [c.b, c.hk, c.nk, c.dv],
            [c.b, c.hq, c.nq, c.dv],
        ]
    }

    /// The way the kernels of an instruction set take.
    pub fn path(&self, isa: Isa) -> Path {
        let ([q, k, v, _], spec) = (self.views(), self.spec());
        Cpu::with(isa).unwrap().path(&spec, &spec.check(&q, &k, &v).unwrap())
    }

    pub fn views(&self) -> [View<'_, T>; 4] {
        let [q, k, v, o] = self.shapes();
        [
            View::new(&self.q, q).unwrap(),
            View::new(&self.k, k).unwrap(),
            View::new(&self.v, v).unwrap(),
            View::new(&self.grad_out, o).unwrap(),
        ]
    }

    /// Of dense weights those along the edges, `[B, Hq, E]`; zeros of none.
    pub fn along_edges(&self, weights: &[T]) -> Vec<T> {
        let c = &self.case;
        let Some(edges) = &self.edges else { return Vec::new() };
        (0..c.b * c.hq * c.nq)
            .flat_map(|row| {
                edges.of_query(row % c.nq).iter().map(move |&j| row * c.nk + j as usize)
            })
            .map(|at| weights.get(at).copied().unwrap_or(T::ZERO))
            .collect()
    }

    /// The plain formula.
    pub fn reference(&self) -> Results<T> {
        let [q, k, v, grad_out] = self.views();
        let output = reference::forward(&self.spec(), q, k, v).unwrap();
        let arriving = reference::Arriving {
            out: grad_out,
            weights: self.grad_weights.as_deref(),
            edge_weights: self.grad_edge_weights.as_deref(),
            log_prob: self.grad_log_prob.as_deref(),
            lse: self.grad_lse.as_deref(),
        };
        let g = reference::backward(&self.spec(), q, k, v, arriving).unwrap();
        Results {
            out: output.out,
            lse: output.lse,
            threshold: output.threshold,
            index: output.index,
            log_prob: output.log_prob,
            edge_weights: self.along_edges(&output.weights),
            weights: output.weights,
            gradients: [g.q, g.k, g.v, g.w, g.own, g.key_bias, g.bias, g.relative],
        }
    }

    /// The kernels of one instruction set, everything asked for.
    pub fn fused(&self, isa: Isa) -> Results<T> {
        self.on(&Cpu::with(isa).unwrap())
    }

    /// The kernels of one backend, everything asked for.
    pub fn on(&self, operator: &impl Operator) -> Results<T> {
        let spec = self.spec();
        let shapes = self.shapes();
        let gap = self.case.strided;
        let inputs = [&self.q, &self.k, &self.v, &self.grad_out].map(|x| x.as_slice());
        let padded: [Padded<T>; 4] = std::array::from_fn(|a| Padded::of(inputs[a], shapes[a], gap));
        let [q, k, v, grad_out] = [0, 1, 2, 3].map(|a| padded[a].view());
        let rows = shapes[3][0] * shapes[3][1] * shapes[3][2];
        let normalizer = self.case.normalizer;
        let threshold_kept = matches!(normalizer, Normalizer::Sparsemax | Normalizer::Entmax15);
        let mut r = Results {
            out: Vec::new(),
            lse: vec![T::of(f64::NAN); rows],
            threshold: vec![T::ZERO; rows],
            index: vec![-1; rows],
            log_prob: vec![T::ZERO; rows],
            weights: vec![T::of(f64::NAN); rows * self.case.nk],
            edge_weights: vec![T::of(f64::NAN); self.along_edges(&[]).len()],
            gradients: Default::default(),
        };
        let mut out = Padded::new(shapes[3], gap);
        let hard = normalizer.is_hard();
        operator.forward(
            &spec,
            [q, k, v],
            Forward {
                out: out.view_mut(),
                lse: Some(&mut r.lse),
                threshold: threshold_kept.then_some(&mut r.threshold),
                index: hard.then_some(&mut r.index),
                log_prob: hard.then_some(&mut r.log_prob),
                weights: (!self.case.lean).then_some(&mut r.weights),
                edge_weights: self
                    .edges
                    .as_ref()
                    .filter(|_| !self.case.lean)
                    .map(|_| &mut r.edge_weights[..]),
            },
        );
        let nan = |n: usize| vec![T::of(f64::NAN); n];
        let [mut gq, mut gk, mut gv] = [0, 1, 2].map(|a| Padded::new(shapes[a], gap));
        let mut gw =
            nan(if matches!(self.case.score, ScoreKind::Additive(_)) { self.w.len() } else { 0 });
        let mut own = nan(match self.case.score {
            ScoreKind::Own => self.own.len(),
            _ => self.parameters.len(),
        });
        let mut key_bias = nan(self.case.bias.key.map_or(0, |_| self.key_bias.0.len()));
        let mut bias = nan(self.case.bias.full.map_or(0, |_| self.bias.0.len()));
        let mut relative = nan(self.case.bias.relative.map_or(0, |_| self.relative.len()));
        fn some<T>(x: &mut Vec<T>) -> Option<&mut [T]> {
            (!x.is_empty()).then_some(x.as_mut_slice())
        }
        operator.backward(
            &spec,
            [q, k, v],
            Backward {
                grad_out,
                grad_weights: self.grad_weights.as_deref(),
                grad_edge_weights: self.grad_edge_weights.as_deref(),
                grad_log_prob: self.grad_log_prob.as_deref(),
                grad_lse: self.grad_lse.as_deref(),
                saved: Saved {
                    out: Some(out.view()),
                    lse: Some(&r.lse),
                    threshold: Some(&r.threshold),
                    index: Some(&r.index),
                },
                gradients: Gradients {
                    q: Some(gq.view_mut()),
                    k: Some(gk.view_mut()),
                    v: Some(gv.view_mut()),
                    w: some(&mut gw),
                    own: some(&mut own),
                    key_bias: some(&mut key_bias),
                    bias: some(&mut bias),
                    relative: some(&mut relative),
                },
            },
        );
        r.out = out.packed();
        r.gradients = [gq.packed(), gk.packed(), gv.packed(), gw, own, key_bias, bias, relative];
        r
    }
}

/// What computes the operator: a backend of this machine.
pub trait Operator {
    fn forward<T: Real>(&self, spec: &Spec<T>, qkv: [View<T>; 3], pass: Forward<T>);
    fn backward<T: Real>(&self, spec: &Spec<T>, qkv: [View<T>; 3], pass: Backward<T>);
}

macro_rules! operator {
    ($($backend:ty),*) => {
        $(impl Operator for $backend {
            fn forward<T: Real>(&self, spec: &Spec<T>, [q, k, v]: [View<T>; 3], pass: Forward<T>) {
                <$backend>::forward(self, spec, q, k, v, pass).unwrap();
            }
            fn backward<T: Real>(&self, spec: &Spec<T>, [q, k, v]: [View<T>; 3], pass: Backward<T>) {
                <$backend>::backward(self, spec, q, k, v, pass).unwrap();
            }
        })*
    };
}
operator!(Cpu, regard_kernels::Cuda);

/// An array `[B, H, N, D]`, or the same with gaps: stored as `[B, N, H, D + 3]`, offset by 5.
pub struct Padded<T> {
    data: Vec<T>,
    shape: [usize; 4],
    strides: Option<[usize; 3]>,
}

const LEAD: usize = 5;

impl<T: Real> Padded<T> {
    pub fn new(shape: [usize; 4], gap: bool) -> Self {
        let [b, h, n, d] = shape;
        if !gap {
            return Self { data: vec![T::of(f64::NAN); b * h * n * d], shape, strides: None };
        }
        let row = d + 3;
        let data = vec![T::of(f64::NAN); LEAD + b * h * n * row];
        Self { data, shape, strides: Some([n * h * row, row, h * row]) }
    }

    pub fn of(x: &[T], shape: [usize; 4], gap: bool) -> Self {
        let mut padded = Self::new(shape, gap);
        for (row, from) in x.chunks_exact(shape[3].max(1)).enumerate() {
            let at = padded.at(row);
            padded.data[at..at + shape[3]].copy_from_slice(from);
        }
        padded
    }

    fn at(&self, row: usize) -> usize {
        let [_, h, n, d] = self.shape;
        match self.strides {
            None => row * d,
            Some([b, head, step]) => LEAD + row / n / h * b + row / n % h * head + row % n * step,
        }
    }

    pub fn view(&self) -> View<'_, T> {
        match self.strides {
            None => View::new(&self.data, self.shape).unwrap(),
            Some(strides) => View::strided(&self.data[LEAD..], self.shape, strides).unwrap(),
        }
    }

    pub fn view_mut(&mut self) -> ViewMut<'_, T> {
        match self.strides {
            None => ViewMut::new(&mut self.data, self.shape).unwrap(),
            Some(strides) => ViewMut::strided(&mut self.data[LEAD..], self.shape, strides).unwrap(),
        }
    }

    pub fn packed(&self) -> Vec<T> {
        let [b, h, n, d] = self.shape;
        (0..b * h * n).flat_map(|row| self.data[self.at(row)..][..d].to_vec()).collect()
    }
}

#[derive(Clone, Debug)]
pub struct Results<T> {
    pub out: Vec<T>,
    pub lse: Vec<T>,
    pub threshold: Vec<T>,
    pub index: Vec<i64>,
    pub log_prob: Vec<T>,
    pub weights: Vec<T>,
    pub edge_weights: Vec<T>,
    /// q, k, v, w, own, key_bias, bias, relative
    pub gradients: [Vec<T>; 8],
}

pub const GRADIENTS: [&str; 8] = ["q", "k", "v", "w", "own", "key_bias", "bias", "relative"];

impl<T: Real> Results<T> {
    pub fn bits(&self) -> Vec<u64> {
        let floats = [
            &self.out,
            &self.lse,
            &self.threshold,
            &self.log_prob,
            &self.weights,
            &self.edge_weights,
        ];
        floats
            .into_iter()
            .chain(&self.gradients)
            .flatten()
            .map(|x| x.f64().to_bits())
            .chain(self.index.iter().map(|&x| x as u64))
            .collect()
    }
}

/// How large the roundings that enter each result may be, in units of epsilon: its largest term
/// times √n for a sum of n terms. First out, weights and lse, then the gradients.
pub fn natural(data: &Data<f64>, oracle: &Results<f64>) -> ([f64; 3], [f64; 8]) {
    let c = &data.case;
    let top = largest;
    let root = |n: usize| (n as f64).sqrt();
    let (q, k, v, grad) = (top(&data.q), top(&data.k), top(&data.v), top(&data.grad_out));
    let keep = c.dropout.map_or(1.0, |p| 1.0 / (1.0 - p));
    let w = top(&data.w);
    let activated = if c.score == ScoreKind::Additive(Activation::Tanh) { 1.0 } else { q + k };
    // A score, and its derivatives by q, k and its own parameters.
    let [score, by_q, by_k, by_own] = match c.score {
        ScoreKind::Dot => [q * k, k / root(c.d), q / root(c.d), 0.0],
        ScoreKind::Additive(_) => [root(c.d) * w * activated, w, w, 0.0],
        ScoreKind::Own => [root(c.d) * (1.0 + q + k), k + 1.0, q + 1.0, 1.0 + q + k],
        ScoreKind::Expression(n) => {
            (EXPRESSIONS[n].size)(Sizes { q, k, w: top(&data.parameters), root: root(c.d) })
        }
    };
    let mut unnormalized = data.spec();
    (unnormalized.normalizer, unnormalized.dropout) = (Normalizer::None, None);
    let [vq, vk, vv, _] = data.views();
    let scores = reference::forward(&unnormalized, vq, vk, vv).unwrap().weights;
    let score = score.max(top(&scores));
    // A weight is as wrong, relatively, as its score is absolutely.
    let plain = c.normalizer == Normalizer::None;
    let weight = top(&oracle.weights) * if plain { 1.0 } else { score.max(1.0) };
    // Without exponentials between them it is as wrong as its score, and as the threshold, which is a
    // sum over the row.
    let weight = match c.normalizer {
        Normalizer::None => weight.max(score * keep),
        Normalizer::Sparsemax | Normalizer::Entmax15 => {
            weight.max(score * keep).max(top(&oracle.weights) * root(c.nk))
        }
        _ => weight,
    };
    let slope = if plain { 1.0 } else { weight };
    let grad_weight = grad * v * root(c.dv)
        + top(data.grad_weights.as_deref().unwrap_or_default())
        + top(data.grad_edge_weights.as_deref().unwrap_or_default());
    let grad_score = match &data.grad_log_prob {
        Some(grad) => top(grad) * score.max(1.0),
        None => grad_weight * keep * slope,
    };
    let grad_score =
        grad_score + top(data.grad_lse.as_deref().unwrap_or_default()) * score.max(1.0);
    let queries = root(c.nq * c.hq / c.hk.max(1));
    let pairs = root(c.nq * c.nk * c.b * c.hq);
    (
        [weight * v * root(c.nk), weight, score.max(1.0)],
        [
            grad_score * by_q * root(c.nk),
            grad_score * by_k * queries,
            weight * grad * queries,
            grad_score * activated * pairs,
            grad_score * by_own * pairs,
            grad_score * root(c.nq * c.b * c.hq),
            grad_score * pairs,
            grad_score * pairs,
        ],
    )
}

/// Checks cases beside each other, on all cores: beside a GPU it is the reference that takes the time.
pub fn each_beside_others<T: Copy + Sync>(cases: &[T], check: impl Fn(T) + Sync) {
    cases.par_iter().for_each(|&case| check(case));
    println!("{} cases", cases.len());
}

/// The instruction sets of this machine.
pub fn isas() -> impl Iterator<Item = Isa> {
    Isa::ALL.into_iter().filter(|isa| isa.is_available())
}

/// Panics unless the fused results keep the rule, for every instruction set of this machine; gives
/// those whose results were compared, which are all unless a choice between equals was torn.
pub fn keeps_the_rule(case: Case) -> Vec<Isa> {
    let oracle = Oracle::of(case);
    isas().filter(|isa| oracle.is_kept_by(&isa.to_string(), &Cpu::with(*isa).unwrap())).collect()
}

/// A case, and what the reference says of it in both precisions.
pub struct Oracle {
    exact: Data<f64>,
    data: Data<f32>,
    oracle: Results<f64>,
    plain: Results<f32>,
    natural: ([f64; 3], [f64; 8]),
}

impl Oracle {
    pub fn of(case: Case) -> Self {
        let (exact, data) = (case.data::<f64>(), case.data::<f32>());
        let (oracle, plain) = (exact.reference(), data.reference());
        let natural = natural(&exact, &oracle);
        Self { exact, data, oracle, plain, natural }
    }

    /// Panics unless a backend keeps the rule; false where nothing was compared, because a choice
    /// between equals was torn.
    pub fn is_kept_by(&self, name: &str, operator: &impl Operator) -> bool {
        let Self { exact, data, oracle, plain, natural: (natural_out, natural_gradients) } = self;
        let case = data.case;
        let fused = data.on(operator);
        let check = |what: &str, fused: &[f32], plain: &[f32], oracle: &[f64], natural: f64| {
            assert_eq!(fused.len(), oracle.len(), "{name} {what} has another length\n{case:?}");
            assert!(!oracle.iter().any(|x| x.is_nan()), "the oracle has a NaN in {what}\n{case:?}");
            let plain = error(plain, oracle);
            assert!(plain.is_finite(), "the plain formula fails in {what}\n{case:?}");
            let scale = natural.max(largest(oracle));
            let (found, allowed) = (error(fused, oracle), allowed(plain, scale));
            assert!(
                found <= allowed,
                "{name} {what}: error {found:e}, allowed {allowed:e} (plain {plain:e}, scale \
                 {scale:e})\n{case:?}"
            );
        };
        if case.normalizer.is_hard() && fused.index != oracle.index {
            // Two keys closer than rounding: the plain formula would be torn as well. Gradients
            // and outputs follow the choice, so there is nothing more to compare.
            assert!(
                differ_by_rounding_only(exact, &fused.index, &oracle.index),
                "{name} chose other keys\n{case:?}"
            );
            return false;
        }
        check("out", &fused.out, &plain.out, &oracle.out, natural_out[0]);
        if !case.lean {
            check("weights", &fused.weights, &plain.weights, &oracle.weights, natural_out[1]);
            let along = [&fused.edge_weights, &plain.edge_weights];
            check("edge_weights", along[0], along[1], &oracle.edge_weights, natural_out[1]);
        }
        check("lse", &fused.lse, &plain.lse, &oracle.lse, natural_out[2]);
        if case.normalizer.is_hard() {
            check("log_prob", &fused.log_prob, &plain.log_prob, &oracle.log_prob, natural_out[2]);
        }
        for (n, what) in GRADIENTS.into_iter().enumerate() {
            check(
                &format!("grad {what}"),
                &fused.gradients[n],
                &plain.gradients[n],
                &oracle.gradients[n],
                natural_gradients[n],
            );
        }
        true
    }
}

/// Whether wherever two choices differ, the scores (noise included) are equal up to rounding.
fn differ_by_rounding_only(data: &Data<f64>, a: &[i64], b: &[i64]) -> bool {
    // Argmax by value: the score of each choice is its log-probability plus the same constant.
    let c = &data.case;
    let [q, k, v, _] = data.views();
    let scores = |index: &[i64]| -> Vec<f64> {
        let mut spec = data.spec();
        spec.normalizer = Normalizer::None;
        spec.dropout = None;
        let all = reference::forward(&spec, q, k, v).unwrap().weights;
        index
            .iter()
            .enumerate()
            .map(|(row, &j)| if j < 0 { f64::NAN } else { all[row * c.nk + j as usize] })
            .collect()
    };
    let (a_scores, b_scores) = (scores(a), scores(b));
    let differing: Vec<usize> = (0..a.len()).filter(|&row| a[row] != b[row]).collect();
    // With noise the scores themselves differ; a tie is then so rare that one row is the limit.
    if matches!(c.normalizer, Normalizer::Sample { .. }) {
        return differing.len() <= 1 && differing.iter().all(|&row| a[row] >= 0 && b[row] >= 0);
    }
    differing.iter().all(|&row| {
        let scale = a_scores[row].abs().max(1.0);
        (a_scores[row] - b_scores[row]).abs() <= 16.0 * f64::from(f32::EPSILON) * scale
    })
}

/// Panics unless the f64 kernels agree with the f64 reference to a few roundings.
pub fn agrees_in_double(case: Case) {
    for isa in isas() {
        agrees_in_double_on(case, &isa.to_string(), &Cpu::with(isa).unwrap());
    }
}

/// The same of one backend.
pub fn agrees_in_double_on(case: Case, backend: &str, operator: &impl Operator) {
    let data = case.data::<f64>();
    let oracle = data.reference();
    let (natural_out, natural_gradients) = natural(&data, &oracle);
    let fused = data.on(operator);
    let check = |name: &str, fused: &[f64], oracle: &[f64], natural: f64| {
        assert_eq!(fused.len(), oracle.len());
        assert!(!oracle.iter().any(|x| x.is_nan()), "the oracle has a NaN in {name}\n{case:?}");
        let scale = natural.max(largest(oracle)).max(1.0);
        let (found, allowed) = (error(fused, oracle), allowed_in_double(500.0, scale));
        assert!(found <= allowed, "{backend} {name}: {found:e}, allowed {allowed:e}\n{case:?}");
    };
    if fused.index != oracle.index {
        assert!(differ_by_rounding_only(&data, &fused.index, &oracle.index));
        return;
    }
    check("out", &fused.out, &oracle.out, natural_out[0]);
    if !case.lean {
        check("weights", &fused.weights, &oracle.weights, natural_out[1]);
        check("edge_weights", &fused.edge_weights, &oracle.edge_weights, natural_out[1]);
    }
    check("lse", &fused.lse, &oracle.lse, natural_out[2]);
    for (n, name) in GRADIENTS.into_iter().enumerate() {
        check(name, &fused.gradients[n], &oracle.gradients[n], natural_gradients[n]);
    }
}
