//! How long the operator takes on a GPU: a line of JSON for each case and pass, which
//! `bench/compare_gpu.py` sets beside PyTorch's.

#![allow(clippy::unwrap_used)] // a benchmark that cannot go on says so by its panic

#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
fn main() {
    times::run();
}

#[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
fn main() {
    eprintln!("There are GPUs on Linux alone.");
}

#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
mod times {
    use regard_kernels::{
        Activation, Backward, Cuda, Edges, Forward, Gradients, Mask, Saved, Score, Spec, View,
        ViewMut, philox,
    };

    const ROUNDS: usize = 50;

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

    fn report(name: &str, pass: &str, mut times: Vec<f32>) {
        times.sort_by(f32::total_cmp);
        let (median, least) = (times[times.len() / 2], times[0]);
        println!(r#"{{"case":"{name}","pass":"{pass}","median_ms":{median},"least_ms":{least}}}"#);
    }

    /// The arrays of a problem and where they stand.
    struct Arrays {
        q: Vec<f32>,
        k: Vec<f32>,
        /// Nothing where the keys are the values too.
        v: Vec<f32>,
        /// B, H, N, D of q and of v.
        shapes: [[usize; 4]; 2],
        /// Whether a node's heads lie side by side.
        by_node: bool,
    }

    impl Arrays {
        fn view<'a>(&self, data: &'a [f32], shape: [usize; 4]) -> View<'a, f32> {
            let [_, h, n, d] = shape;
            let strides = if self.by_node { [n * h * d, d, h * d] } else { [h * n * d, n * d, d] };
            View::strided(data, shape, strides).unwrap()
        }

        fn views(&self) -> [View<'_, f32>; 3] {
            let [q, v] = self.shapes;
            let values = if self.v.is_empty() { &self.k } else { &self.v };
            [self.view(&self.q, q), self.view(&self.k, q), self.view(values, v)]
        }
    }

    fn both(cuda: &Cuda, name: &str, spec: &Spec<f32>, arrays: &Arrays) {
        let [q, k, v] = arrays.views();
        report(name, "forward", cuda.time_forward(spec, [q, k, v], ROUNDS).unwrap());
        let [shape, values] = arrays.shapes;
        let count: usize = values.iter().product();
        let (mut out, mut lse) = (vec![0f32; count], vec![0f32; shape[..3].iter().product()]);
        let pass = Forward {
            lse: Some(&mut lse),
            ..Forward::new(ViewMut::new(&mut out, values).unwrap())
        };
        cuda.forward(spec, q, k, v, pass).unwrap();
        let grad = normals(count, 9);
        let mut grads = [arrays.q.len(), arrays.k.len(), count].map(|n| vec![0f32; n]);
        let [gq, gk, gv] = &mut grads;
        let mut gw = match spec.score {
            Score::Additive { w, .. } => vec![0f32; w.len()],
            _ => Vec::new(),
        };
        let gradients = Gradients {
            q: Some(ViewMut::new(gq, shape).unwrap()),
            k: Some(ViewMut::new(gk, shape).unwrap()),
            v: Some(ViewMut::new(gv, values).unwrap()),
            w: (!gw.is_empty()).then_some(&mut gw[..]),
            ..Gradients::default()
        };
        let out = arrays.by_node.then(|| by_node(&out, values)).unwrap_or(out);
        let saved =
            Saved { out: Some(arrays.view(&out, values)), lse: Some(&lse), ..Saved::default() };
        let pass = Backward::new(arrays.view(&grad, values), saved, gradients);
        report(name, "backward", cuda.time_backward(spec, [q, k, v], pass, ROUNDS).unwrap());
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

    pub(super) fn run() {
        let filter = std::env::args().nth(1).unwrap_or_default();
        let cuda = Cuda::new(0).unwrap();
        eprintln!("{:?}", cuda.info().unwrap());
        for (b, n, width) in [(16, 512, 128), (8, 1024, 256)] {
            let name = format!("additive-f32-b{b}n{n}h{width}");
            if !name.contains(&filter) {
                continue;
            }
            let shape = [b, 1, n, width];
            let count = b * n * width;
            let [q, k, v] = [1, 2, 3].map(|seed| normals(count, seed));
            let w = normals(width, 4);
            let spec = Spec::new(Score::Additive { activation: Activation::Tanh, w: &w });
            both(&cuda, &name, &spec, &Arrays { q, k, v, shapes: [shape; 2], by_node: false });
        }
        let (nodes, edges, heads, width) = (100_000, 2_000_000, 8, 16);
        let pairs: Vec<(usize, usize)> = (0..edges)
            .map(|at| {
                let [a, b, ..] = philox([at as u32, 0, 0, 1], [7, 0]);
                (a as usize % nodes, b as usize % nodes)
            })
            .collect();
        let edges = Edges::new(nodes, nodes, &pairs).unwrap();
        let mask = Mask { edges: Some(&edges), ..Mask::default() };
        let activation = Activation::LeakyRelu { slope: 0.2 };
        for (name, key_width) in [("gatv2-f32-n100ke2mh8d16", width), ("gat-f32-n100ke2mh8d16", 1)]
        {
            if !name.contains(&filter) {
                continue;
            }
            let [q, k] = [1, 2].map(|seed| normals(nodes * heads * key_width, seed));
            let w = normals(heads * key_width, 4);
            // GATv2's keys are its values.
            let v = if key_width > 1 { Vec::new() } else { normals(nodes * heads * width, 3) };
            let spec = Spec { mask, ..Spec::new(Score::Additive { activation, w: &w }) };
            let shapes = [key_width, width].map(|d| [1, heads, nodes, d]);
            both(&cuda, name, &spec, &Arrays { q, k, v, shapes, by_node: true });
        }
    }
}
