//! The cases of `regard bench --device cuda`, timed by the GPU's own events, nothing copied while
//! the clock runs.

use anyhow::{Result, ensure};
use regard_kernels::{
    Activation, Backward, Cuda, Edges, Forward, Gradients, Mask, Saved, Score, Spec, View, ViewMut,
    philox,
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
}

const CASES: [Case; 4] = [
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
        writeln!(to, "{:26}  {:9}  {:>10}  {:>10}", "case", "pass", "median", "min")?;
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
                    writeln!(to, "{:26}  {pass:9}  {median:7.3} ms  {least:7.3} ms", case.name)?;
                }
            }
            to.flush()?;
        }
    }
    Ok(())
}

type Times = [(&'static str, Vec<f32>); 2];

impl Case {
    fn times(&self, cuda: &Cuda, rounds: usize) -> Result<Times> {
        match self.kind {
            Kind::Additive(b, n, width) => {
                let w = normals(width, 4);
                let spec = Spec::new(Score::Additive { activation: Activation::Tanh, w: &w });
                let [q, k, v] = [1, 2, 3].map(|seed| normals(b * n * width, seed));
                let shapes = [[b, 1, n, width]; 2];
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
                let shapes = [width, WIDTH].map(|d| [1, HEADS, NODES, d]);
                Arrays { q, k, v, shapes, by_node: true }.times(cuda, &spec, rounds)
            }
        }
    }
}

/// Normal numbers from a seed.
fn normals(n: usize, seed: u32) -> Vec<f32> {
    (0..n.div_ceil(2))
        .flat_map(|at| {
            let [a, b, ..] = philox([at as u32, 0, 0, 0], [seed, 0]);
            let [u, v] = [a, b].map(|x| (f64::from(x) + 0.5) / 4294967296.0);
            let (r, angle) = ((-2.0 * u.ln()).sqrt(), std::f64::consts::TAU * v);
            [(r * angle.cos()) as f32, (r * angle.sin()) as f32]
        })
        .take(n)
        .collect()
}

/// The arrays of a problem and how they stand.
struct Arrays {
    q: Vec<f32>,
    k: Vec<f32>,
    /// Nothing where the keys are the values too.
    v: Vec<f32>,
    /// B, H, N, D of q and k, and of v.
    shapes: [[usize; 4]; 2],
    /// Whether a node's heads lie side by side.
    by_node: bool,
}

impl Arrays {
    fn view<'a>(&self, data: &'a [f32], shape: [usize; 4]) -> Result<View<'a, f32>> {
        let [_, h, n, d] = shape;
        let strides = if self.by_node { [n * h * d, d, h * d] } else { [h * n * d, n * d, d] };
        Ok(View::strided(data, shape, strides)?)
    }

    fn times(&self, cuda: &Cuda, spec: &Spec<f32>, rounds: usize) -> Result<Times> {
        let [shape, values] = self.shapes;
        let v = if self.v.is_empty() { &self.k } else { &self.v };
        let qkv = [self.view(&self.q, shape)?, self.view(&self.k, shape)?, self.view(v, values)?];
        let forward = cuda.time_forward(spec, qkv, rounds)?;
        let count: usize = values.iter().product();
        let (mut out, mut lse) = (vec![0f32; count], vec![0f32; shape[..3].iter().product()]);
        let pass = Forward { lse: Some(&mut lse), ..Forward::new(ViewMut::new(&mut out, values)?) };
        let [q, k, v] = qkv;
        cuda.forward(spec, q, k, v, pass)?;
        let out = if self.by_node { by_node(&out, values) } else { out };
        let grad = normals(count, 9);
        let mut grads = [self.q.len(), self.k.len(), count].map(|n| vec![0f32; n]);
        let [grad_q, grad_k, grad_v] = &mut grads;
        let mut grad_w = match spec.score {
            Score::Additive { w, .. } => vec![0f32; w.len()],
            _ => Vec::new(),
        };
        let gradients = Gradients {
            q: Some(ViewMut::new(grad_q, shape)?),
            k: Some(ViewMut::new(grad_k, shape)?),
            v: Some(ViewMut::new(grad_v, values)?),
            w: Some(&mut grad_w[..]).filter(|w| !w.is_empty()),
            ..Gradients::default()
        };
        let saved =
            Saved { out: Some(self.view(&out, values)?), lse: Some(&lse), ..Saved::default() };
        let pass = Backward::new(self.view(&grad, values)?, saved, gradients);
        let backward = cuda.time_backward(spec, qkv, pass, rounds)?;
        Ok([("forward", forward), ("backward", backward)])
    }
}

/// `[B, H, N, D]` as `[B, N, H, D]`.
fn by_node(x: &[f32], [_, h, n, d]: [usize; 4]) -> Vec<f32> {
    let mut to = vec![0f32; x.len()];
    for (row, from) in x.chunks_exact(d).enumerate() {
        let (b, head, node) = (row / n / h, row / n % h, row % n);
        to[((b * n + node) * h + head) * d..][..d].copy_from_slice(from);
    }
    to
}
