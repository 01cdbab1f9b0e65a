//! The cases of `regard bench --device cuda`, timed by the GPU's own events, nothing copied while
//! the clock runs.

use anyhow::{Result, ensure};
use half::bf16;
use regard_kernels::{
    Activation, Backward, Bias, Cuda, Edges, Element, Forward, Gradients, Mask, Normalizer,
    Relative, Saved, Score, Spec, View, ViewMut, Window, philox,
};
use serde_json::json;
use std::io::Write;

/// A named problem.
struct Case {
    name: &'static str,
    kind: Kind,
}

enum Kind {
    /// Additive scores with tanh: B, N, D.
    Additive(usize, usize, usize),
    /// GATv2, or GAT, whose keys have one number a head.
    Graph { is_v2: bool },
    /// Dot products.
    Dot(Dot),
}

/// Dot products of bf16 numbers, or of f32.
#[derive(Clone, Copy)]
struct Dot {
    b: usize,
    heads: [usize; 2],
    /// Queries and keys.
    n: [usize; 2],
    d: usize,
    is_f32: bool,
    causal: bool,
    window: Option<Window>,
    normalizer: Normalizer,
    /// How far a learned bias tells distances apart; 0: there is none.
    distance: usize,
}

const fn dot(b: usize, h: usize, n: usize, d: usize) -> Dot {
    Dot {
        b,
        heads: [h, h],
        n: [n, n],
        d,
        is_f32: false,
        causal: false,
        window: None,
        normalizer: Normalizer::Softmax,
        distance: 0,
    }
}

const LONG: Dot = dot(4, 16, 8192, 128);

const CASES: [Case; 13] = [
    Case { name: "dot-bf16-b4h16n8192d128", kind: Kind::Dot(LONG) },
    Case { name: "causal-bf16-b4h16n8192d128", kind: Kind::Dot(Dot { causal: true, ..LONG }) },
    Case { name: "dot-bf16-b4h16n8192d64", kind: Kind::Dot(dot(4, 16, 8192, 64)) },
    Case {
        name: "causal-bf16-b4h16n8192d64",
        kind: Kind::Dot(Dot { causal: true, ..dot(4, 16, 8192, 64) }),
    },
    Case {
        name: "window-bf16-b4h16n8192d128",
        kind: Kind::Dot(Dot { window: Some(Window { left: 256, right: 0 }), ..LONG }),
    },
    Case {
        name: "dot-f32-b4h8n4096d64",
        kind: Kind::Dot(Dot { is_f32: true, ..dot(4, 8, 4096, 64) }),
    },
    Case {
        name: "entmax-bf16-b4h8n4096d64",
        kind: Kind::Dot(Dot { normalizer: Normalizer::Entmax15, ..dot(4, 8, 4096, 64) }),
    },
    Case {
        name: "t5-bf16-b8h12n2048d64",
        kind: Kind::Dot(Dot { distance: 128, ..dot(8, 12, 2048, 64) }),
    },
    Case {
        name: "decode-bf16-b8h32k8n8192d128",
        kind: Kind::Dot(Dot { b: 8, heads: [32, 8], n: [1, 8192], ..LONG }),
    },
    Case { name: "additive-f32-b16n512h128", kind: Kind::Additive(16, 512, 128) },
    Case { name: "additive-f32-b8n1024h256", kind: Kind::Additive(8, 1024, 256) },
    Case { name: "gatv2-f32-n100ke2mh8d16", kind: Kind::Graph { is_v2: true } },
    Case { name: "gat-f32-n100ke2mh8d16", kind: Kind::Graph { is_v2: false } },
];

const NODES: usize = 100_000;
const EDGES: usize = 2_000_000;
const HEADS: usize = 8;
const WIDTH: usize = 16;

/// Times the cases whose name has one of the filters in it, and writes a line for each pass.
pub(crate) fn bench(
    cuda: &Cuda,
    filter: &[String],
    rounds: usize,
    json: bool,
    to: &mut impl Write,
) -> Result<()> {
    let chosen = |case: &&Case| filter.is_empty() || filter.iter().any(|s| case.name.contains(s));
    ensure!(
        CASES.iter().any(|case| chosen(&case)),
        "no case of a GPU has {} in its name; there are {}",
        filter.join(" or "),
        CASES.map(|case| case.name).join(", ")
    );
    if !json {
        writeln!(to, "{:30}  {:9}  {:>10}  {:>10}", "case", "pass", "median", "min")?;
    }
    for case in CASES.iter().filter(chosen) {
        for (pass, mut times) in case.times(cuda, rounds)? {
            times.sort_by(f32::total_cmp);
            let (median, least) = (times[times.len() / 2], times[0]);
            match json {
                true => writeln!(
                    to,
                    "{}",
                    json!({"case": case.name, "pass": pass, "median_ms": median, "min_ms": least})
                )?,
                false => {
                    writeln!(to, "{:30}  {pass:9}  {median:7.3} ms  {least:7.3} ms", case.name)?;
                }
            }
            to.flush()?;
        }
    }
    Ok(())
}

type Times = Vec<(&'static str, Vec<f32>)>;

impl Case {
    fn times(&self, cuda: &Cuda, rounds: usize) -> Result<Times> {
        match self.kind {
            Kind::Additive(b, n, width) => {
                let w = normals(width, 4);
                let spec = Spec::new(Score::Additive { activation: Activation::Tanh, w: &w });
                let [q, k, v] = [1, 2, 3].map(|seed| normals(b * n * width, seed));
                let shapes = [[b, 1, n, width]; 3];
                Arrays { q, k, v, shapes, by_node: false }.times(cuda, &spec, rounds)
            }
            Kind::Graph { is_v2 } => {
                let pairs: Vec<(usize, usize)> = (0..EDGES)
                    .map(|at| {
                        let [a, b, ..] = philox([at as u32, 0, 0, 1], [7, 0]);
                        (a as usize % NODES, b as usize % NODES)
                    })
                    .collect();
                let edges = Edges::new(NODES, NODES, &pairs)?;
                let mask = Mask { edges: Some(&edges), ..Mask::default() };
                let width = if is_v2 { WIDTH } else { 1 };
                let [q, k] = [1, 2].map(|seed| normals(NODES * HEADS * width, seed));
                let w = normals(HEADS * width, 4);
                // GATv2's keys are its values.
                let v = if is_v2 { Vec::new() } else { normals(NODES * HEADS * WIDTH, 3) };
                let activation = Activation::LeakyRelu { slope: 0.2 };
                let spec = Spec { mask, ..Spec::new(Score::Additive { activation, w: &w }) };
                let shapes = [width, width, WIDTH].map(|d| [1, HEADS, NODES, d]);
                Arrays { q, k, v, shapes, by_node: true }.times(cuda, &spec, rounds)
            }
            Kind::Dot(dot) if dot.is_f32 => dot.times::<f32>(cuda, rounds),
            Kind::Dot(dot) => dot.times::<bf16>(cuda, rounds),
        }
    }
}

impl Dot {
    fn times<E: Element<Compute = f32>>(&self, cuda: &Cuda, rounds: usize) -> Result<Times> {
        let Self { b, heads: [hq, hk], n: [nq, nk], d, distance, .. } = *self;
        let shapes = [[b, hq, nq, d], [b, hk, nk, d], [b, hk, nk, d]];
        let [q, k, v] = [0, 1, 2].map(|at: usize| -> Vec<E> {
            let numbers = normals(shapes[at].iter().product(), at as u32 + 1);
            numbers.into_iter().map(E::narrow).collect()
        });
        let table = normals(hq * (2 * distance + 1), 4);
        let relative = (distance > 0).then_some(Relative { table: &table, max_distance: distance });
        let spec = Spec {
            mask: Mask { causal: self.causal, window: self.window, ..Mask::default() },
            bias: Bias { relative, ..Bias::default() },
            normalizer: self.normalizer,
            ..Spec::scaled_dot(d)
        };
        let mut times = Arrays { q, k, v, shapes, by_node: false }.times(cuda, &spec, rounds)?;
        // A query at a time is asked for no gradients.
        times.truncate(if nq == 1 { 1 } else { 2 });
        Ok(times)
    }
}

/// Normal numbers from a seed; a million of them at most are different.
fn normals(n: usize, seed: u32) -> Vec<f32> {
    const DIFFERENT: usize = 1 << 20;
    let some: Vec<f32> = (0..n.min(DIFFERENT).div_ceil(2))
        .flat_map(|at| {
            let [a, b, ..] = philox([at as u32, 0, 0, 0], [seed, 0]);
            let [u, v] = [a, b].map(|x| (f64::from(x) + 0.5) / 4294967296.0);
            let (r, angle) = ((-2.0 * u.ln()).sqrt(), std::f64::consts::TAU * v);
            [(r * angle.cos()) as f32, (r * angle.sin()) as f32]
        })
        .collect();
    // One fewer than they are, so that no two rows of a problem are the same.
    let period = (some.len().max(2) - 1).min(DIFFERENT - 3);
    (0..n).map(|at| some[if n <= DIFFERENT { at } else { at % period }]).collect()
}

/// The arrays of a problem and how they stand.
struct Arrays<E> {
    q: Vec<E>,
    k: Vec<E>,
    /// Nothing where the keys are the values too.
    v: Vec<E>,
    /// B, H, N, D of q, k and v.
    shapes: [[usize; 4]; 3],
    /// Whether a node's heads lie side by side.
    by_node: bool,
}

impl<E: Element<Compute = f32>> Arrays<E> {
    fn view<'a>(&self, data: &'a [E], shape: [usize; 4]) -> Result<View<'a, E>> {
        let [_, h, n, d] = shape;
        let strides = if self.by_node { [n * h * d, d, h * d] } else { [h * n * d, n * d, d] };
        Ok(View::strided(data, shape, strides)?)
    }

    fn times(&self, cuda: &Cuda, spec: &Spec<f32>, rounds: usize) -> Result<Times> {
        let [q, k, values] = self.shapes;
        let v = if self.v.is_empty() { &self.k } else { &self.v };
        let qkv = [self.view(&self.q, q)?, self.view(&self.k, k)?, self.view(v, values)?];
        let forward = cuda.time_forward(spec, qkv, rounds)?;
        let out_shape = [q[0], q[1], q[2], values[3]];
        let count: usize = out_shape.iter().product();
        let zeros = |n: usize| vec![E::narrow(0.0); n];
        let rows: usize = q[..3].iter().product();
        let (mut out, mut lse, mut threshold) = (zeros(count), vec![0f32; rows], vec![0f32; rows]);
        let sparse = matches!(spec.normalizer, Normalizer::Sparsemax | Normalizer::Entmax15);
        let pass = Forward {
            lse: Some(&mut lse),
            threshold: sparse.then_some(&mut threshold),
            ..Forward::new(ViewMut::new(&mut out, out_shape)?)
        };
        cuda.forward(spec, qkv[0], qkv[1], qkv[2], pass)?;
        let out = if self.by_node { by_node(&out, out_shape) } else { out };
        let grad: Vec<E> = normals(count, 9).into_iter().map(E::narrow).collect();
        let mut grads = [self.q.len(), self.k.len(), v.len()].map(zeros);
        let [grad_q, grad_k, grad_v] = &mut grads;
        let mut grad_w = match spec.score {
            Score::Additive { w, .. } => vec![0f32; w.len()],
            _ => Vec::new(),
        };
        let mut grad_table = vec![0f32; spec.bias.relative.map_or(0, |x| x.table.len())];
        let gradients = Gradients {
            q: Some(ViewMut::new(grad_q, q)?),
            k: Some(ViewMut::new(grad_k, k)?),
            v: Some(ViewMut::new(grad_v, values)?),
            w: Some(&mut grad_w[..]).filter(|w| !w.is_empty()),
            relative: Some(&mut grad_table[..]).filter(|table| !table.is_empty()),
            ..Gradients::default()
        };
        let saved = Saved {
            out: Some(self.view(&out, out_shape)?),
            lse: Some(&lse),
            threshold: sparse.then_some(&threshold),
            ..Saved::default()
        };
        let pass = Backward::new(self.view(&grad, out_shape)?, saved, gradients);
        let backward = cuda.time_backward(spec, qkv, pass, rounds)?;
        Ok(vec![("forward", forward), ("backward", backward)])
    }
}

/// `[B, H, N, D]` as `[B, N, H, D]`.
fn by_node<E: Copy>(x: &[E], [_, h, n, d]: [usize; 4]) -> Vec<E> {
    let mut to = x.to_vec();
    for (row, from) in x.chunks_exact(d).enumerate() {
        let (b, head, node) = (row / n / h, row / n % h, row % n);
        to[((b * n + node) * h + head) * d..][..d].copy_from_slice(from);
    }
    to
}
