//! The cases of `regard bench`: their names, their sizes, and the work they do.

use crate::matmul;
use crate::steps::Step;
use anyhow::Result;
use half::bf16;
use regard_kernels::{
    Activation, Backward, Base, Cpu, Edges, Element, Forward, Gradients, Mask, Matrix, Real, Saved,
    Score, Spec, View, ViewMut, Window, large_pages, philox,
};
use std::fmt;
use std::str::FromStr;

/// Which way a case is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pass {
    /// The output alone.
    Forward,
    /// The output, what backward needs of it, and every gradient.
    ForwardBackward,
    /// Forward, backward and the optimizer: a step of training.
    Step,
}

impl Pass {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Forward, Self::ForwardBackward, Self::Step];
    /// Those of the operator.
    const BOTH: [Self; 2] = [Self::Forward, Self::ForwardBackward];
}

impl fmt::Display for Pass {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.pad(match self {
            Self::Forward => "forward",
            Self::ForwardBackward => "forward+backward",
            Self::Step => "step",
        })
    }
}

impl FromStr for Pass {
    type Err = String;

    fn from_str(given: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|pass| pass.to_string() == given)
            .ok_or_else(|| "a pass is forward, forward+backward or step".into())
    }
}

/// A named problem.
#[derive(Debug)]
pub struct Case {
    /// Score, type, sizes, then what is special.
    pub name: &'static str,
    kind: Kind,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    F32(Sizes),
    F64(Sizes),
    Bf16(Sizes),
    Graph,
    Step(Step),
}

#[derive(Clone, Copy, Debug)]
struct Sizes {
    b: usize,
    hq: usize,
    hk: usize,
    nq: usize,
    nk: usize,
    d: usize,
    special: Special,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Special {
    Dot,
    Causal,
    Window(usize),
    Decode,
    Additive,
    Memory,
}

const fn sizes(b: usize, h: usize, n: usize, d: usize, special: Special) -> Sizes {
    Sizes { b, hq: h, hk: h, nq: n, nk: n, d, special }
}

const DECODE: Sizes =
    Sizes { b: 1, hq: 32, hk: 8, nq: 1, nk: 4096, d: 128, special: Special::Decode };

/// All of them, in the order they are run.
#[rustfmt::skip]
pub static CASES: [Case; 16] = {
    use Kind::*;
    use Special::*;
    [
        Case { name: "dot-f32-b2h8n1024d64", kind: F32(sizes(2, 8, 1024, 64, Dot)) },
        Case { name: "dot-f32-b2h8n1024d64-causal", kind: F32(sizes(2, 8, 1024, 64, Causal)) },
        Case { name: "dot-f32-b1h8n4096d64", kind: F32(sizes(1, 8, 4096, 64, Dot)) },
        Case { name: "dot-f32-b1h1n4096d64", kind: F32(sizes(1, 1, 4096, 64, Dot)) },
        Case { name: "dot-f32-b32h8n128d32", kind: F32(sizes(32, 8, 128, 32, Dot)) },
        Case { name: "dot-f32-b1h8n4096d64-window128", kind: F32(sizes(1, 8, 4096, 64, Window(128))) },
        Case { name: "additive-f32-b4h1n256d256", kind: F32(sizes(4, 1, 256, 256, Additive)) },
        Case { name: "dot-f32-b4h1n256d256", kind: F32(sizes(4, 1, 256, 256, Dot)) },
        Case { name: "additive-f32-n20000e400000h8d16-gatv2", kind: Graph },
        Case { name: "dot-f32-b1hq32hk8n4096d128-decode", kind: F32(DECODE) },
        Case { name: "dot-bf16-b2h8n1024d64", kind: Bf16(sizes(2, 8, 1024, 64, Dot)) },
        Case { name: "dot-f64-b2h8n1024d64", kind: F64(sizes(2, 8, 1024, 64, Dot)) },
        Case { name: "step-f32-transformer-b32t128d256h8", kind: Step(self::Step::Transformer) },
        Case { name: "step-f32-gru-b64t20h256v8000", kind: Step(self::Step::Gru) },
        Case { name: "step-f32-gat-n2708e10556", kind: Step(self::Step::Gat) },
        Case { name: "additive-f32-b1h1n32768d128-memory", kind: F32(sizes(1, 1, 32768, 128, Memory)) },
    ]
};

impl Case {
    /// The case of a name.
    pub fn named(name: &str) -> Option<&'static Self> {
        CASES.iter().find(|case| case.name == name)
    }

    /// Whether it takes minutes: it is run only when it is asked for, and once.
    pub fn is_slow(&self) -> bool {
        matches!(self.kind, Kind::F32(Sizes { special: Special::Memory, .. }))
    }

    /// Whether one of the filters, each a part of a name, is meant for this case.
    pub fn is_chosen_by(&self, filters: &[String]) -> bool {
        let meant = |filter: &String| {
            self.name.contains(filter.as_str()) && (!self.is_slow() || filter.contains("memory"))
        };
        if filters.is_empty() { !self.is_slow() } else { filters.iter().any(meant) }
    }

    /// The passes it has: nobody differentiates through decoding.
    pub fn passes(&self) -> &'static [Pass] {
        match self.kind {
            Kind::F32(Sizes { special: Special::Decode, .. }) => &[Pass::Forward],
            Kind::Step(_) => &[Pass::Step],
            _ => &Pass::BOTH,
        }
    }

    /// What a pass is compared with: decoding with reading the keys and values once, a dot
    /// score forward with the matrix products it could be at best.
    pub fn yardstick(&self, pass: Pass) -> Option<Yardstick> {
        match self.kind {
            Kind::F32(s) if s.special == Special::Decode => {
                let numbers = 2 * s.b * s.hk * s.nk * s.d;
                Some(Yardstick::Reading { bytes: numbers * size_of::<f32>() })
            }
            Kind::F32(s) if s.is_additive() => None,
            Kind::Graph | Kind::Step(_) => None,
            _ if pass == Pass::ForwardBackward => None,
            Kind::F32(_) | Kind::Bf16(_) => Some(Yardstick::ProductF32),
            Kind::F64(_) => Some(Yardstick::ProductF64),
        }
    }

    /// Makes the inputs, the same every time, and room for the results.
    pub fn prepare(&self, pass: Pass) -> Result<Box<dyn Work>> {
        Ok(match self.kind {
            Kind::F32(sizes) => Box::new(Dense::<f32>::new(sizes, pass)),
            Kind::F64(sizes) => Box::new(Dense::<f64>::new(sizes, pass)),
            Kind::Bf16(sizes) => Box::new(Dense::<bf16>::new(sizes, pass)),
            Kind::Graph => Box::new(Graph::new(pass)?),
            Kind::Step(step) => step.prepare()?,
        })
    }
}

/// What a case's speed is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Yardstick {
    /// Matrix products in `f32`.
    ProductF32,
    /// Matrix products in `f64`.
    ProductF64,
    /// Reading memory.
    Reading {
        /// As many bytes as the case reads.
        bytes: usize,
    },
}

/// A case made ready to run again and again.
pub trait Work: Send {
    /// Runs it once.
    fn run(&mut self, cpu: Cpu) -> Result<()>;
    /// Floating-point operations of a run, over the pairs that are seen.
    fn flops(&self) -> f64;
}

/// Attention without a graph.
struct Dense<E: Element> {
    sizes: Sizes,
    q: Vec<E>,
    k: Vec<E>,
    v: Vec<E>,
    w: Vec<E::Compute>,
    out: Vec<E>,
    lse: Vec<E::Compute>,
    backward: Option<DenseBackward<E>>,
}

struct DenseBackward<E: Element> {
    grad_out: Vec<E>,
    grad_q: Vec<E>,
    grad_k: Vec<E>,
    grad_v: Vec<E>,
    grad_w: Vec<E::Compute>,
}

impl<E: Element> Dense<E> {
    fn new(sizes: Sizes, pass: Pass) -> Self {
        let Sizes { b, hq, hk, nq, nk, d, .. } = sizes;
        let (queries, keys, rows) = (b * hq * nq * d, b * hk * nk * d, b * hq * nq);
        let zero = <E::Compute as Real>::ZERO;
        let zeros = |n: usize| vec![E::narrow(zero); n];
        let additive = sizes.is_additive();
        let backward = (pass == Pass::ForwardBackward).then(|| DenseBackward {
            grad_out: normal(5, queries),
            grad_q: zeros(queries),
            grad_k: zeros(keys),
            grad_v: zeros(keys),
            grad_w: vec![zero; if additive { d } else { 0 }],
        });
        Self {
            sizes,
            q: normal(1, queries),
            k: normal(2, keys),
            v: normal(3, keys),
            w: if additive { scaled_normal(4, d, d) } else { Vec::new() },
            out: zeros(queries),
            lse: vec![zero; if backward.is_some() { rows } else { 0 }],
            backward,
        }
    }
}

impl<E: Element> Work for Dense<E> {
    fn run(&mut self, cpu: Cpu) -> Result<()> {
        let Sizes { b, hq, hk, nq, nk, d, special } = self.sizes;
        let (queries, keys) = ([b, hq, nq, d], [b, hk, nk, d]);
        let additive = self.sizes.is_additive();
        let spec = Spec {
            mask: Mask {
                causal: special == Special::Causal,
                window: match special {
                    Special::Window(reach) => Some(Window { left: reach, right: reach }),
                    _ => None,
                },
                ..Mask::default()
            },
            ..Spec::new(match additive {
                true => Score::Additive { activation: Activation::Tanh, w: &self.w },
                false => Score::scaled_dot(d),
            })
        };
        let q = View::new(&self.q, queries)?;
        let k = View::new(&self.k, keys)?;
        let v = View::new(&self.v, keys)?;
        let mut pass = Forward::new(ViewMut::new(&mut self.out, queries)?);
        let Some(backward) = &mut self.backward else {
            return Ok(cpu.forward(&spec, q, k, v, pass)?);
        };
        pass.lse = Some(&mut self.lse);
        cpu.forward(&spec, q, k, v, pass)?;
        let pass = Backward {
            grad_out: View::new(&backward.grad_out, queries)?,
            grad_weights: None,
            grad_edge_weights: None,
            grad_log_prob: None,
            grad_lse: None,
            saved: Saved {
                out: Some(View::new(&self.out, queries)?),
                lse: Some(&self.lse),
                ..Saved::default()
            },
            gradients: Gradients {
                q: Some(ViewMut::new(&mut backward.grad_q, queries)?),
                k: Some(ViewMut::new(&mut backward.grad_k, keys)?),
                v: Some(ViewMut::new(&mut backward.grad_v, keys)?),
                w: additive.then_some(&mut backward.grad_w),
                ..Gradients::default()
            },
        };
        Ok(cpu.backward(&spec, q, k, v, pass)?)
    }

    fn flops(&self) -> f64 {
        let s = &self.sizes;
        let pairs = (s.b * s.hq * s.seen()) as f64;
        pairs * flops_of_pair(s.is_additive(), self.backward.is_some(), s.d as f64, s.d as f64)
    }
}

impl Sizes {
    fn is_additive(&self) -> bool {
        matches!(self.special, Special::Additive | Special::Memory)
    }

    /// Pairs of query and key that one head sees.
    fn seen(&self) -> usize {
        let keys = |i: usize| {
            let position = i + self.nk - self.nq;
            match self.special {
                Special::Causal => position + 1,
                Special::Window(reach) => {
                    (position + reach + 1).min(self.nk) - position.saturating_sub(reach)
                }
                _ => self.nk,
            }
        };
        (0..self.nq).map(keys).sum()
    }
}

/// Operations for one query and key. A product over a width counts 2 for each of its numbers: the
/// score and the weighted value forward; backward the score again, the gradients of q, k and v,
/// and that of the weight. An additive score has an addition, an activation (counted as one) and a
/// product where a dot score has a product, and its gradients are three: q, k and w.
fn flops_of_pair(additive: bool, backward: bool, dk: f64, dv: f64) -> f64 {
    let (score, gradients) = if additive { (4.0, 4.0 + 6.0) } else { (2.0, 2.0 + 4.0) };
    let forward = score * dk + 2.0 * dv;
    if backward { forward + gradients * dk + 4.0 * dv } else { forward }
}

/// GATv2 (Brody, Alon and Yahav 2022) as a layer: two projections of the nodes' features, and
/// attention along the edges of a random graph.
struct Graph {
    edges: Edges,
    features: Vec<f32>,
    project_query: Vec<f32>,
    project_key: Vec<f32>,
    w: Vec<f32>,
    q: Vec<f32>,
    k: Vec<f32>,
    out: Vec<f32>,
    lse: Vec<f32>,
    backward: Option<GraphBackward>,
}

struct GraphBackward {
    grad_out: Vec<f32>,
    grad_q: Vec<f32>,
    grad_k: Vec<f32>,
    grad_v: Vec<f32>,
    grad_w: Vec<f32>,
    grad_project_query: Vec<f32>,
    grad_project_key: Vec<f32>,
}

impl Graph {
    const NODES: usize = 20_000;
    const EDGES: usize = 400_000;
    const FEATURES: usize = 64;
    const HEADS: usize = 8;
    const WIDTH: usize = 16;
    /// What a node is projected to: all heads, side by side.
    const ALL: usize = Self::HEADS * Self::WIDTH;
    /// `[N, H, D]` seen as `[1, H, N, D]`.
    const SHAPE: [usize; 4] = [1, Self::HEADS, Self::NODES, Self::WIDTH];
    const STRIDES: [usize; 3] = [0, Self::WIDTH, Self::ALL];

    fn view(data: &[f32]) -> Result<View<'_, f32>> {
        Ok(View::strided(data, Self::SHAPE, Self::STRIDES)?)
    }

    fn view_mut(data: &mut [f32]) -> Result<ViewMut<'_, f32>> {
        Ok(ViewMut::strided(data, Self::SHAPE, Self::STRIDES)?)
    }

    fn new(pass: Pass) -> Result<Self> {
        let node = |word: u32| word as usize % Self::NODES;
        let pairs: Vec<_> = (0..Self::EDGES as u32)
            .map(|n| philox([n, 0, 0, 6], [0; 2]))
            .map(|words| (node(words[0]), node(words[1])))
            .collect();
        let all = Self::NODES * Self::ALL;
        let weights = Self::FEATURES * Self::ALL;
        let backward = (pass == Pass::ForwardBackward).then(|| GraphBackward {
            grad_out: normal(5, all),
            grad_q: large_zeros(all),
            grad_k: large_zeros(all),
            grad_v: large_zeros(all),
            grad_w: vec![0.0; Self::ALL],
            grad_project_query: vec![0.0; weights],
            grad_project_key: vec![0.0; weights],
        });
        Ok(Self {
            edges: Edges::new(Self::NODES, Self::NODES, &pairs)?,
            features: normal(1, Self::NODES * Self::FEATURES),
            project_query: scaled_normal(2, weights, Self::FEATURES),
            project_key: scaled_normal(3, weights, Self::FEATURES),
            w: scaled_normal(4, Self::ALL, Self::WIDTH),
            q: large_zeros(all),
            k: large_zeros(all),
            out: large_zeros(all),
            lse: vec![0.0; if backward.is_some() { Self::HEADS * Self::NODES } else { 0 }],
            backward,
        })
    }
}

impl Work for Graph {
    fn run(&mut self, cpu: Cpu) -> Result<()> {
        let features = Matrix::new(&self.features, Self::NODES, Self::FEATURES)?;
        for (weights, to) in [(&self.project_query, &mut self.q), (&self.project_key, &mut self.k)]
        {
            let weights = Matrix::new(weights, Self::FEATURES, Self::ALL)?;
            cpu.matmul(features, weights, Base::Nothing, to)?;
        }

        let spec = Spec {
            mask: Mask { edges: Some(&self.edges), ..Mask::default() },
            ..Spec::new(Score::Additive {
                activation: Activation::LeakyRelu { slope: 0.2 },
                w: &self.w,
            })
        };
        let (q, k) = (Self::view(&self.q)?, Self::view(&self.k)?);
        let mut pass = Forward::new(Self::view_mut(&mut self.out)?);
        let Some(backward) = &mut self.backward else {
            return Ok(cpu.forward(&spec, q, k, k, pass)?);
        };
        pass.lse = Some(&mut self.lse);
        cpu.forward(&spec, q, k, k, pass)?;
        let pass = Backward {
            grad_out: Self::view(&backward.grad_out)?,
            grad_weights: None,
            grad_edge_weights: None,
            grad_log_prob: None,
            grad_lse: None,
            saved: Saved {
                out: Some(Self::view(&self.out)?),
                lse: Some(&self.lse),
                ..Saved::default()
            },
            gradients: Gradients {
                q: Some(Self::view_mut(&mut backward.grad_q)?),
                k: Some(Self::view_mut(&mut backward.grad_k)?),
                v: Some(Self::view_mut(&mut backward.grad_v)?),
                w: Some(&mut backward.grad_w),
                ..Gradients::default()
            },
        };
        cpu.backward(&spec, q, k, k, pass)?;

        // One projection makes both k and v.
        let project = |gradient: &[f32], base: Base<f32>, to: &mut [f32]| {
            let gradient = Matrix::new(gradient, Self::NODES, Self::ALL)?;
            cpu.matmul(features.transposed(), gradient, base, to)
        };
        project(&backward.grad_q, Base::Nothing, &mut backward.grad_project_query)?;
        project(&backward.grad_k, Base::Nothing, &mut backward.grad_project_key)?;
        project(&backward.grad_v, Base::There, &mut backward.grad_project_key)?;
        Ok(())
    }

    fn flops(&self) -> f64 {
        let backward = self.backward.is_some();
        let width = Self::WIDTH as f64;
        let pairs = (Self::HEADS * self.edges.len()) as f64;
        let projection = matmul::flops(Self::NODES, Self::FEATURES, Self::ALL);
        let projections = if backward { 4.0 } else { 2.0 };
        pairs * flops_of_pair(true, backward, width, width) + projections * projection
    }
}

/// Zeros, in memory such as a tensor has.
fn large_zeros(n: usize) -> Vec<f32> {
    let mut zeros = vec![0.0; n];
    large_pages(&mut zeros);
    zeros
}

/// Numbers drawn from the standard normal distribution; a stream gives the same every time.
fn normal<E: Element>(stream: u32, n: usize) -> Vec<E> {
    scaled_normal(stream, n, 1)
}

/// The same, divided by the square root of a width, as layers are initialized.
fn scaled_normal<E: Element>(stream: u32, n: usize, width: usize) -> Vec<E> {
    let scale = 1.0 / (width as f64).sqrt();
    let uniform = |word: u32| (f64::from(word) + 0.5) / 4294967296.0;
    let pair = |at: u32| {
        // Box and Muller's transform.
        let words = philox([at, 0, 0, stream], [0x5eed, 0]);
        let length = scale * (-2.0 * uniform(words[0]).ln()).sqrt();
        let (sin, cos) = (std::f64::consts::TAU * uniform(words[1])).sin_cos();
        [length * cos, length * sin]
    };
    let numbers = (0..n.div_ceil(2) as u32).flat_map(pair);
    numbers.take(n).map(|x| E::narrow(E::Compute::of(x))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pairs_that_are_seen_are_counted_as_the_mask_says() {
        let seen = |special| sizes(1, 1, 5, 1, special).seen();
        assert_eq!(seen(Special::Dot), 25);
        assert_eq!(seen(Special::Causal), 15);
        assert_eq!(seen(Special::Window(1)), 13);
        assert_eq!(DECODE.seen(), 4096);
    }

    #[test]
    fn the_slow_case_is_run_only_when_it_is_asked_for() {
        let slow = CASES.iter().find(|case| case.is_slow()).unwrap();
        assert!(!slow.is_chosen_by(&[]));
        assert!(!slow.is_chosen_by(&["additive".into()]));
        assert!(slow.is_chosen_by(&["dot".into(), "memory".into()]));
        assert!(slow.is_chosen_by(&[slow.name.into()]));
    }

    #[test]
    fn the_numbers_are_normal() {
        let x: Vec<f64> = normal(1, 100_001);
        let n = x.len() as f64;
        let mean = x.iter().sum::<f64>() / n;
        let variance = x.iter().map(|x| x * x).sum::<f64>() / n;
        assert!(mean.abs() < 0.01 && (variance - 1.0).abs() < 0.02, "{mean} {variance}");
    }
}
