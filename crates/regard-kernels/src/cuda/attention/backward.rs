//! A backward pass: the gradients by query, by key, and sums of what all of them learn, in an order
//! that the shape fixes.

use super::additive::Additive;
use super::arrived::Arrived;
use super::dot::Dot;
use super::dot_tiles::DotTiles;
use super::form::Form;
use super::graph::Graph;
use super::pass::{BackwardPass, DeviceGradients, OptionalArray, Scratch, WARPS, Written};
use super::problem::{Array, Uploaded};
use super::source::Stored;
use super::split::Split;
use super::tile::{BiasGradients, Tile};
use crate::cuda::device::{Cuda, Device};
use crate::cuda::memory::Memory;
use crate::cuda::module::{Grid, Module, argument};
use crate::error::Error;
use crate::spec::{Backward, Score, Shape, Spec};
use crate::{Element, Real, View};
use std::ffi::c_void;
use std::sync::Arc;

/// Tasks into which the queries are cut at least, where there are as many.
const TASKS: usize = 4096;
/// The same of graphs, whose tasks are short and uneven.
const GRAPH_TASKS: usize = 16384;
/// Slabs that one thread sums: `PARTS_AT_ONCE` in the text.
const PARTS_AT_ONCE: usize = 64;

impl Cuda {
    /// Computes the gradients that `pass` asks for, from what forward left; see
    /// [`Cpu::backward`](crate::Cpu).
    ///
    /// Refuses what [`Cuda::forward`] refuses, and a pass without what its normalizer saved.
    ///
    /// ```no_run
    /// use regard_kernels::{Backward, Cuda, Gradients, Normalizer, Saved, Score, Spec, View, ViewMut};
    /// // Without a normalizer the output is (q · k) v.
    /// let spec = Spec { normalizer: Normalizer::None, ..Spec::new(Score::Dot { scale: 1.0 }) };
    /// let one = |x: &'static [f32]| View::new(x, [1, 1, 1, 1]);
    /// let mut of_q = [0f32];
    /// let gradients = Gradients { q: Some(ViewMut::new(&mut of_q, [1, 1, 1, 1])?), ..Gradients::default() };
    /// let pass = Backward::new(one(&[1.0])?, Saved::default(), gradients);
    /// Cuda::new(0)?.backward(&spec, one(&[2.0])?, one(&[3.0])?, one(&[5.0])?, pass)?;
    /// assert_eq!(of_q, [15.0]); // k v
    /// # Ok::<(), regard_kernels::Error>(())
    /// ```
    pub fn backward<E: Element>(
        &self,
        spec: &Spec<E::Compute>,
        q: View<E>,
        k: View<E>,
        v: View<E>,
        mut pass: Backward<E>,
    ) -> Result<(), Error> {
        let s = spec.check(&q, &k, &v)?;
        pass.check(&s, spec)?;
        let gradients = std::mem::take(&mut pass.gradients);
        let _entered = self.device.enter()?;
        let sent = DeviceGradients::of(&self.device, &gradients)?;
        let run = Run::of(&self.device, spec, &s, Arrived::of([q, k, v], &pass), sent)?;
        if s.rows() > 0 && s.nk > 0 {
            run.launch()?;
        }
        run.sent.copy_to(gradients)
    }

    /// How many milliseconds each of some backward passes takes on the GPU, nothing copied.
    #[doc(hidden)]
    pub fn time_backward<E: Element>(
        &self,
        spec: &Spec<E::Compute>,
        qkv: [View<E>; 3],
        mut pass: Backward<E>,
        rounds: usize,
    ) -> Result<Vec<f32>, Error> {
        let [q, k, v] = &qkv;
        let s = spec.check(q, k, v)?;
        pass.check(&s, spec)?;
        let _entered = self.device.enter()?;
        let sent = DeviceGradients::of(&self.device, &std::mem::take(&mut pass.gradients))?;
        let run = Run::of(&self.device, spec, &s, Arrived::of(qkv, &pass), sent)?;
        self.device.time(rounds, || run.launch())
    }
}

/// One backward pass, everything where the kernels find it.
pub(in crate::cuda) struct Run<'a, T> {
    device: Arc<Device>,
    module: Arc<Module>,
    spec: Spec<'a, T>,
    s: Shape,
    up: Uploaded,
    pass: BackwardPass,
    sent: DeviceGradients,
    kernels: Kernels,
    chunks: usize,
    own_slabs: Slabs,
    relative_slabs: Slabs,
    key_sums: OptionalArray,
    _delta: Option<Memory>,
}

enum Kernels {
    Generic(Scratch),
    Graph(Graph),
    Additive(Additive),
    Dot(Dot),
    Split(Split),
    Tile(Tile),
}

impl<'a, T: Real> Run<'a, T> {
    /// The device was entered.
    pub(in crate::cuda) fn of<E: Element<Compute = T>>(
        device: &Arc<Device>,
        spec: &Spec<'a, T>,
        s: &Shape,
        arrived: Arrived<E>,
        sent: DeviceGradients,
    ) -> Result<Self, Error> {
        let lowered = spec.score.lowered(s);
        let options = arrived.options.lowered(&spec.score, &lowered);
        let spec = Spec { score: lowered, ..*spec };
        let rows = &arrived.rows;
        // Softmax has Σ p·dp from the output, if it is there.
        let form = match arrived.is_plain() && (arrived.has_out || spec.normalizer.has_threshold())
        {
            true => Form::of_backward(&spec, s, rows, device.form_capability),
            false => Form::Generic,
        };
        let mut form = form.within(s, device.shared_memory, true);
        if arrived.is_of_tiles(spec.normalizer) {
            let arriving = !arrived.grad_weights.is_none();
            form = form.or_tile(&spec, s, rows, [true, arriving], device.shared_memory);
        }
        let module = device.module(&form.variant::<E>(&spec, s, true)?)?;
        let mut up = Uploaded::of(device, &spec, s, [&rows[0], &rows[1], &rows[2]], options)?;
        let real = size_of::<T>();
        let heads = (s.b * s.hq).max(1);
        let kernels = match (form, spec.mask.edges) {
            (Form::Graph(sizes), Some(edges)) => {
                Kernels::Graph(Graph::backward_of(device, s, sizes, edges.len())?)
            }
            (Form::Additive, _) => Kernels::Additive(Additive::of(device, s, true)?),
            (Form::DotSplit, _) => Kernels::Split(Split::of(device, s, true)?),
            (Form::Dot | Form::DotBias | Form::DotThreshold, _) => {
                let tiles = DotTiles::of(s, &spec, true);
                Kernels::Dot(Dot::of(device, s, tiles, Stored::of::<E>())?)
            }
            (Form::Tile(sizes), _) => Kernels::Tile(Tile::of(device, s, sizes, false)?),
            _ => Kernels::Generic(Scratch::of(device, &spec, s, real, (2, options.edges))?),
        };
        let chunks = match &kernels {
            // A graph's task has all heads.
            Kernels::Graph(_) => GRAPH_TASKS.div_ceil(s.b.max(1)).clamp(1, s.nq.max(1)),
            Kernels::Additive(tiles) => tiles.own_slabs(),
            Kernels::Dot(tiles) => tiles.slabs(),
            Kernels::Split(_) => 1,
            Kernels::Tile(tiles) => tiles.head_blocks(),
            Kernels::Generic(_) => TASKS.div_ceil(heads).clamp(1, s.nq.max(1)),
        };
        let own = own_width(&spec, s);
        let wants_own = own > 0 && (sent.w.is_asked() || sent.own.is_asked());
        let own_slabs = Slabs::of(device, wants_own, [heads, chunks, own], real)?;
        let table = table_width(&spec);
        let relative_slabs =
            Slabs::of(device, sent.relative.is_asked(), [heads, chunks, table], real)?;
        let by_key = sent.key_bias.is_asked() || is_bias_by_key(&spec, &sent);
        let key_sums = OptionalArray::of(device, by_key, s.b * s.hq * s.nk * real)?;
        // The other forms have such numbers of their own, or keep them.
        let delta = match &kernels {
            Kernels::Dot(_) | Kernels::Split(_) | Kernels::Graph(_) => None,
            _ => Some(Memory::zeros(device, s.rows() * real)?),
        };
        let (scratch, scratch_row) = match &kernels {
            Kernels::Generic(scratch) => (scratch.memory.at, scratch.row as i64),
            _ => (0, 0),
        };
        let written = |x: &Option<Written>| x.as_ref().map_or(Array::default(), |x| x.array);
        let pass = BackwardPass {
            grad_out: up.array(&rows[3])?,
            out: if arrived.has_out { up.array(&rows[4])? } else { Array::default() },
            grad_weights: up.source(arrived.grad_weights)?,
            grad_edge_weights: up.source(arrived.grad_edge_weights)?,
            grad_log_prob: up.source(arrived.grad_log_prob)?,
            grad_lse: up.source(arrived.grad_lse)?,
            lse: up.source(arrived.lse)?,
            threshold: up.source(arrived.threshold)?,
            index: up.source(arrived.index)?,
            grad_q: written(&sent.q),
            grad_k: written(&sent.k),
            grad_v: written(&sent.v),
            delta: delta.as_ref().map_or(0, |delta| delta.at),
            own_slabs: own_slabs.all.at(),
            relative_slabs: relative_slabs.all.at(),
            key_sums: key_sums.at(),
            grad_bias: sent.bias.at(),
            bias_shape: spec.bias.full.map_or([1; 4], |full| full.shape).map(|n| n as i64),
            chunks: chunks as i64,
            scratch,
            scratch_row,
        };
        Ok(Self {
            device: device.clone(),
            module,
            spec,
            s: *s,
            up,
            pass,
            sent,
            kernels,
            chunks,
            own_slabs,
            relative_slabs,
            key_sums,
            _delta: delta,
        })
    }

    pub(in crate::cuda) fn launch(&self) -> Result<(), Error> {
        match &self.kernels {
            Kernels::Generic(scratch) => self.generic(scratch)?,
            Kernels::Graph(graph) => {
                let wants_keys = self.sent.k.is_some() || self.sent.v.is_some();
                let problem = &self.up.problem;
                graph.backward(&self.module, &self.device, problem, &self.pass, wants_keys)?;
            }
            Kernels::Additive(tiles) => {
                tiles.backward(&self.module, &self.device, &self.up.problem, &self.pass)?;
            }
            Kernels::Dot(tiles) => {
                tiles.backward(&self.module, &self.device, &self.up.problem, &self.pass)?;
            }
            Kernels::Split(tiles) => {
                tiles.backward(&self.module, &self.device, &self.up.problem, &self.pass)?;
            }
            Kernels::Tile(tiles) => {
                // A table is added to by its blocks.
                self.relative_slabs.all.clear(&self.device)?;
                let biases = self.bias_gradients();
                let problem = &self.up.problem;
                tiles.backward(&self.module, &self.device, problem, &self.pass, biases)?;
            }
        }
        self.sums()
    }

    /// What biases learn, but for sums.
    fn bias_gradients(&self) -> BiasGradients {
        let rows = self.spec.bias.full.filter(|full| full.shape[2] > 1);
        BiasGradients {
            full: rows
                .filter(|_| self.sent.bias.is_asked())
                .map(|full| (full.shape[0] * full.shape[1], full.shape[3] == 1)),
            relative: self.sent.relative.is_asked(),
            by_key: self.key_sums.is_asked(),
        }
    }

    fn generic(&self, scratch: &Scratch) -> Result<(), Error> {
        let (s, sent) = (&self.s, &self.sent);
        let launch = |kernel: &str, rows: usize, row_warps: usize| {
            let mut arguments = [argument(&self.up.problem), argument(&self.pass)];
            let grid = Grid::of_rows(rows.min(scratch.rows), row_warps);
            // SAFETY: the kernels' text has these two structures; all that they name is kept by
            // this, and what is freed is freed in the stream's order.
            unsafe { self.module.launch(&self.device, kernel, grid, &mut arguments) }
        };
        // A table is added to by its task.
        self.relative_slabs.all.clear(&self.device)?;
        launch("backward_queries", s.b * s.hq * self.chunks, scratch.row_warps)?;
        if sent.k.is_some() || sent.v.is_some() || self.key_sums.is_asked() {
            launch("backward_keys", s.b * s.hk * s.nk, scratch.key_warps)?;
        }
        if let Some(full) = self.spec.bias.full.filter(|full| full.shape[2] > 1)
            && sent.bias.is_asked()
        {
            sent.bias.clear(&self.device)?;
            launch("backward_bias", full.shape[0] * full.shape[1] * s.nq, scratch.row_warps)?;
        }
        Ok(())
    }

    /// What is learned, from the tasks' and the keys' sums.
    fn sums(&self) -> Result<(), Error> {
        let Self { s, spec, sent, .. } = self;
        if self.own_slabs.all.is_asked() {
            self.sum_own()?;
        }
        if let Some(relative) = spec.bias.relative.filter(|_| sent.relative.is_asked()) {
            let table = table_width(spec);
            let per_head = relative.table.len() != table || s.hq == 1;
            let part = Part { from: 0, width: table, row: table, per_head };
            let slabs = self.fewer(&self.relative_slabs)?;
            self.sum_slabs(slabs, part, sent.relative.at())?;
        }
        if let Some(key) = spec.bias.key.filter(|_| sent.key_bias.is_asked()) {
            self.sum_keys(key.shape, sent.key_bias.at())?;
        }
        if let Some(full) = spec.bias.full.filter(|_| is_bias_by_key(spec, sent)) {
            self.sum_keys(full.shape, sent.bias.at())?;
        }
        Ok(())
    }

    /// The gradients of the score's own numbers.
    fn sum_own(&self) -> Result<(), Error> {
        let row = own_width(&self.spec, &self.s);
        let slabs = self.fewer(&self.own_slabs)?;
        match &self.spec.score {
            Score::Additive { w, .. } => {
                // An expression that became an additive score has w for its only parameter.
                let to = if self.sent.w.is_asked() { &self.sent.w } else { &self.sent.own };
                let per_head = w.len() != row || self.s.hq == 1;
                self.sum_slabs(slabs, Part { from: 0, width: row, row, per_head }, to.at())
            }
            Score::Expression { parameters, .. } => {
                let (mut from, mut to) = (0, self.sent.own.at());
                for parameter in *parameters {
                    let [heads, width] = parameter.shape;
                    let per_head = heads == self.s.hq;
                    self.sum_slabs(slabs, Part { from, width, row, per_head }, to)?;
                    from += width;
                    to += (heads * width * size_of::<T>()) as u64;
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Sums slabs until few are left of each head.
    fn fewer(&self, slabs: &Slabs) -> Result<u64, Error> {
        let [groups, parts, row] = slabs.sizes;
        let sums = groups * parts.div_ceil(PARTS_AT_ONCE) * row;
        // A thread has a sum, not a warp.
        let warps = sums.div_ceil(32);
        self.sum("sum_parts", slabs.all.at(), &slabs.sizes, slabs.few.at(), warps)?;
        Ok(slabs.few.at())
    }

    fn sum_slabs(&self, slabs: u64, part: Part, to: u64) -> Result<(), Error> {
        let (s, Part { from, width, row, per_head }) = (&self.s, part);
        let parts = self.chunks.div_ceil(PARTS_AT_ONCE);
        let sizes = [s.b, s.hq, parts, row, from, width, usize::from(per_head)];
        let sums = if per_head { s.hq * width } else { width };
        self.sum("sum_slabs", slabs, &sizes, to, sums)
    }

    fn sum_keys(&self, shape: [usize; 4], to: u64) -> Result<(), Error> {
        let s = &self.s;
        let sizes = [s.b, s.hq, s.nk, shape[0], shape[1], shape[3]];
        self.sum("sum_keys", self.key_sums.at(), &sizes, to, shape[0] * shape[1] * shape[3])
    }

    fn sum(
        &self,
        kernel: &str,
        from: u64,
        sizes: &[usize],
        to: u64,
        sums: usize,
    ) -> Result<(), Error> {
        let sizes: Vec<i64> = sizes.iter().map(|&n| n as i64).collect();
        let mut arguments: Vec<*mut c_void> = vec![argument(&from)];
        arguments.extend(sizes.iter().map(argument));
        arguments.push(argument(&to));
        let grid = Grid::of_warps(sums.min(WARPS));
        // SAFETY: the kernel takes two addresses and these sizes between them; the memory there is
        // kept by this.
        unsafe { self.module.launch(&self.device, kernel, grid, &mut arguments) }
    }
}

/// `[heads, chunks, row]`: what each task learned, and the same summed until few are left.
struct Slabs {
    all: OptionalArray,
    few: OptionalArray,
    sizes: [usize; 3],
}

impl Slabs {
    fn of(
        device: &Arc<Device>,
        asked: bool,
        sizes: [usize; 3],
        real: usize,
    ) -> Result<Self, Error> {
        let [heads, chunks, row] = sizes;
        let few = heads * chunks.div_ceil(PARTS_AT_ONCE) * row;
        Ok(Self {
            all: OptionalArray::of(device, asked, heads * chunks * row * real)?,
            few: OptionalArray::of(device, asked, few * real)?,
            sizes,
        })
    }
}

/// Which numbers of a slab's row are summed.
#[derive(Clone, Copy)]
struct Part {
    from: usize,
    width: usize,
    row: usize,
    per_head: bool,
}

/// How many numbers of the score's own one head has.
fn own_width<T: Real>(spec: &Spec<T>, s: &Shape) -> usize {
    match &spec.score {
        Score::Additive { .. } => s.dk,
        Score::Expression { parameters, .. } => parameters.iter().map(|p| p.shape[1]).sum(),
        _ => 0,
    }
}

fn table_width<T: Real>(spec: &Spec<T>) -> usize {
    spec.bias.relative.map_or(0, |relative| 2 * relative.max_distance + 1)
}

/// Whether a full bias has no row for each query, so that its gradient is summed by key, like the
/// keys' own.
fn is_bias_by_key<T: Real>(spec: &Spec<T>, sent: &DeviceGradients) -> bool {
    sent.bias.is_asked() && spec.bias.full.is_some_and(|full| full.shape[2] <= 1)
}
