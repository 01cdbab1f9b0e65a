//! The whole specification on a GPU by plain means: what is asked is copied there, computed by
//! the kernels of `text/generic.cu`, and copied back.

use super::device::{Cuda, Device};
use super::memory::Memory;
use super::module::{Module, THREADS};
use super::problem::{Array, Problem, Uploaded};
use super::source::{Stored, Variant};
use crate::error::Error;
use crate::numel::numel;
use crate::spec::{Backward, Forward, Gradients, Score, Shape, Spec};
use crate::{Element, Real, View, ViewMut};
use std::ffi::c_void;
use std::sync::Arc;

const LANES: u32 = 32;

/// Warps at most: enough to fill any GPU there is, whatever it is, so that what a row is added to
/// depends on the shape alone.
const WARPS: usize = 8192;

/// The most bytes that the warps' rows of scores take together.
const SCRATCH: usize = 1 << 30;

/// Tasks into which the queries are cut at least, where there are as many.
const TASKS: usize = 4096;

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct ForwardPass {
    out: Array,
    lse: u64,
    threshold: u64,
    index: u64,
    log_prob: u64,
    weights: u64,
    edge_weights: u64,
    scratch: u64,
    scratch_row: i64,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct BackwardPass {
    grad_out: Array,
    out: Array,
    grad_weights: u64,
    grad_edge_weights: u64,
    grad_log_prob: u64,
    grad_lse: u64,
    lse: u64,
    threshold: u64,
    index: u64,
    grad_q: Array,
    grad_k: Array,
    grad_v: Array,
    delta: u64,
    own_slabs: u64,
    relative_slabs: u64,
    key_sums: u64,
    grad_bias: u64,
    bias_shape: [i64; 4],
    chunks: i64,
    scratch: u64,
    scratch_row: i64,
}

impl Cuda {
    /// Computes the output, and whatever else `pass` asks for; see [`Cpu::forward`](crate::Cpu).
    ///
    /// Refuses what `Cpu` refuses, a score that is the caller's own code, and what the GPU has no
    /// room for.
    pub fn forward<E: Element>(
        &self,
        spec: &Spec<E::Compute>,
        q: View<E>,
        k: View<E>,
        v: View<E>,
        mut pass: Forward<E>,
    ) -> Result<(), Error> {
        let s = spec.check(&q, &k, &v)?;
        pass.check(&s, spec)?;
        let spec = &Spec { score: spec.score.lowered(&s), ..*spec };
        let variant = variant::<E>(spec, &s)?;
        if s.rows() == 0 {
            return Ok(());
        }
        let device = &self.device;
        device.enter()?;
        let module = device.module(&variant)?;
        let up = Uploaded::of(device, spec, &s, [&q, &k, &v])?;
        let real = size_of::<E::Compute>();
        let rows = |asked: bool, size: usize| Asked::of(device, asked, s.rows() * size);
        let out = Written::of(device, s.out(), size_of::<E>())?;
        let lse = rows(pass.lse.is_some(), real)?;
        let threshold = rows(pass.threshold.is_some(), real)?;
        let index = rows(pass.index.is_some(), size_of::<i64>())?;
        let log_prob = rows(pass.log_prob.is_some(), real)?;
        let weights = rows(pass.weights.is_some(), s.nk * real)?;
        let edges = spec.mask.edges.map_or(0, |edges| s.b * s.hq * edges.len());
        let edge_weights = Asked::of(device, pass.edge_weights.is_some(), edges * real)?;
        let scratch = Scratch::of(device, spec, &s, real, 1)?;
        let forward = ForwardPass {
            out: out.array,
            lse: lse.at(),
            threshold: threshold.at(),
            index: index.at(),
            log_prob: log_prob.at(),
            weights: weights.at(),
            edge_weights: edge_weights.at(),
            scratch: scratch.memory.at,
            scratch_row: scratch.row as i64,
        };
        // SAFETY: the kernel's text has these two structures, and all they name is kept until the
        // copies below have waited for the kernel.
        unsafe {
            launch(
                &module,
                device,
                "forward",
                scratch.warps.min(s.rows()),
                &(up.problem, forward),
            )?;
        }
        out.copy_to(&mut pass.out)?;
        lse.copy_to(pass.lse)?;
        threshold.copy_to(pass.threshold)?;
        index.copy_to(pass.index)?;
        log_prob.copy_to(pass.log_prob)?;
        weights.copy_to(pass.weights)?;
        edge_weights.copy_to(pass.edge_weights)
    }
}

impl Cuda {
    /// Computes the gradients that `pass` asks for, from what forward left; see
    /// [`Cpu::backward`](crate::Cpu).
    ///
    /// Refuses what [`Cuda::forward`] refuses, and a pass without what its normalizer saved.
    pub fn backward<E: Element>(
        &self,
        spec: &Spec<E::Compute>,
        q: View<E>,
        k: View<E>,
        v: View<E>,
        pass: Backward<E>,
    ) -> Result<(), Error> {
        let s = spec.check(&q, &k, &v)?;
        pass.check(&s, spec)?;
        let spec = &Spec { score: spec.score.lowered(&s), ..*spec };
        let variant = variant::<E>(spec, &s)?;
        let device = &self.device;
        device.enter()?;
        let module = device.module(&variant)?;
        let mut up = Uploaded::of(device, spec, &s, [&q, &k, &v])?;
        let gradients = Sent::of(device, &pass.gradients)?;
        if s.rows() > 0 && s.nk > 0 {
            let run = Run { device, module: &module, spec, s: &s, asked: &gradients };
            run.backward(&mut up, &pass)?;
        }
        gradients.copy_to(pass.gradients)
    }
}

/// The gradients that were asked for, on the device.
struct Sent {
    q: Option<Written>,
    k: Option<Written>,
    v: Option<Written>,
    w: Asked,
    own: Asked,
    key_bias: Asked,
    bias: Asked,
    relative: Asked,
}

impl Sent {
    fn of<E: Element>(device: &Arc<Device>, asked: &Gradients<E>) -> Result<Self, Error> {
        let rows = |view: &Option<ViewMut<E>>| {
            view.as_ref().map(|x| Written::of(device, x.shape, size_of::<E>())).transpose()
        };
        let numbers = |slice: &Option<&mut [E::Compute]>| {
            let bytes = slice.as_deref().map_or(0, size_of_val);
            Asked::of(device, slice.is_some(), bytes)
        };
        Ok(Self {
            q: rows(&asked.q)?,
            k: rows(&asked.k)?,
            v: rows(&asked.v)?,
            w: numbers(&asked.w)?,
            own: numbers(&asked.own)?,
            key_bias: numbers(&asked.key_bias)?,
            bias: numbers(&asked.bias)?,
            relative: numbers(&asked.relative)?,
        })
    }

    fn copy_to<E: Element>(&self, mut to: Gradients<E>) -> Result<(), Error> {
        for (from, to) in [(&self.q, &mut to.q), (&self.k, &mut to.k), (&self.v, &mut to.v)] {
            if let (Some(from), Some(to)) = (from, to) {
                from.copy_to(to)?;
            }
        }
        self.w.copy_to(to.w)?;
        self.own.copy_to(to.own)?;
        self.key_bias.copy_to(to.key_bias)?;
        self.bias.copy_to(to.bias)?;
        self.relative.copy_to(to.relative)
    }
}

/// One backward pass under way.
struct Run<'a, T> {
    device: &'a Arc<Device>,
    module: &'a Module,
    spec: &'a Spec<'a, T>,
    s: &'a Shape,
    asked: &'a Sent,
}

impl<T: Real> Run<'_, T> {
    fn backward<E: Element<Compute = T>>(
        &self,
        up: &mut Uploaded,
        pass: &Backward<E>,
    ) -> Result<(), Error> {
        let Self { device, s, asked, .. } = *self;
        let real = size_of::<T>();
        let chunks = TASKS.div_ceil(s.b * s.hq).clamp(1, s.nq);
        let tasks = s.b * s.hq * chunks;
        let own_width = self.own_width();
        let wants_own = own_width > 0 && (asked.w.0.is_some() || asked.own.0.is_some());
        let own_slabs = Asked::of(device, wants_own, tasks * own_width * real)?;
        let table = self.spec.bias.relative.map_or(0, |relative| 2 * relative.max_distance + 1);
        let relative_slabs = Asked::of(device, asked.relative.0.is_some(), tasks * table * real)?;
        // A full bias without a row for each query is summed by key, like the keys' own.
        let bias_shape = self.spec.bias.full.map_or([1; 4], |full| full.shape);
        let bias_by_row = asked.bias.0.is_some() && bias_shape[2] > 1;
        let bias_by_key = asked.bias.0.is_some() && !bias_by_row;
        let by_key = asked.key_bias.0.is_some() || bias_by_key;
        let key_sums = Asked::of(device, by_key, s.b * s.hq * s.nk * real)?;
        let delta = Memory::zeros(device, s.rows() * real)?;
        let scratch = Scratch::of(device, self.spec, s, real, 2)?;
        let written = |x: &Option<Written>| x.as_ref().map_or(Array::default(), |x| x.array);
        let backward = BackwardPass {
            grad_out: up.array(&pass.grad_out)?,
            out: pass.saved.out.map_or(Ok(Array::default()), |out| up.array(&out))?,
            grad_weights: up.optional(pass.grad_weights)?,
            grad_edge_weights: up.optional(pass.grad_edge_weights)?,
            grad_log_prob: up.optional(pass.grad_log_prob)?,
            grad_lse: up.optional(pass.grad_lse)?,
            lse: up.optional(pass.saved.lse)?,
            threshold: up.optional(pass.saved.threshold)?,
            index: up.optional(pass.saved.index)?,
            grad_q: written(&asked.q),
            grad_k: written(&asked.k),
            grad_v: written(&asked.v),
            delta: delta.at,
            own_slabs: own_slabs.at(),
            relative_slabs: relative_slabs.at(),
            key_sums: key_sums.at(),
            grad_bias: asked.bias.at(),
            bias_shape: bias_shape.map(|n| n as i64),
            chunks: chunks as i64,
            scratch: scratch.memory.at,
            scratch_row: scratch.row as i64,
        };
        let arguments = (up.problem, backward);
        let launch = |kernel: &str, warps: usize| {
            // SAFETY: the kernels' text has these two structures; all that they name is kept
            // until the stream was waited for.
            unsafe { launch(self.module, device, kernel, warps.min(scratch.warps), &arguments) }
        };
        launch("backward_queries", tasks)?;
        if asked.k.is_some() || asked.v.is_some() || by_key {
            launch("backward_keys", s.b * s.hk * s.nk)?;
        }
        if bias_by_row {
            launch("backward_bias", bias_shape[0] * bias_shape[1] * s.nq)?;
        }
        if wants_own {
            self.sum_own(&own_slabs, chunks, own_width)?;
        }
        if let Some(relative) = self.spec.bias.relative.filter(|_| asked.relative.0.is_some()) {
            let per_head = relative.table.len() != table || s.hq == 1;
            let slabs = Slabs { at: relative_slabs.at(), chunks, row: table };
            self.sum_slabs(&slabs, 0, table, per_head, asked.relative.at())?;
        }
        if let Some(key) = self.spec.bias.key.filter(|_| asked.key_bias.0.is_some()) {
            self.sum_keys(key_sums.at(), key.shape, asked.key_bias.at())?;
        }
        if bias_by_key {
            self.sum_keys(key_sums.at(), bias_shape, asked.bias.at())?;
        }
        device.wait()
    }

    /// How many numbers of the score's own one head has.
    fn own_width(&self) -> usize {
        match &self.spec.score {
            Score::Additive { .. } => self.s.dk,
            Score::Expression { parameters, .. } => parameters.iter().map(|p| p.shape[1]).sum(),
            _ => 0,
        }
    }

    /// The gradients of the score's own numbers, from the tasks' slabs.
    fn sum_own(&self, slabs: &Asked, chunks: usize, row: usize) -> Result<(), Error> {
        let slabs = Slabs { at: slabs.at(), chunks, row };
        match &self.spec.score {
            Score::Additive { w, .. } => {
                // An expression that became an additive score has w for its only parameter.
                let to = if self.asked.w.0.is_some() { &self.asked.w } else { &self.asked.own };
                self.sum_slabs(&slabs, 0, row, w.len() != row || self.s.hq == 1, to.at())
            }
            Score::Expression { parameters, .. } => {
                let (mut from, mut to) = (0, self.asked.own.at());
                for parameter in *parameters {
                    let [heads, width] = parameter.shape;
                    self.sum_slabs(&slabs, from, width, heads == self.s.hq, to)?;
                    from += width;
                    to += (heads * width * size_of::<T>()) as u64;
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn sum_slabs(
        &self,
        slabs: &Slabs,
        from: usize,
        width: usize,
        per_head: bool,
        to: u64,
    ) -> Result<(), Error> {
        let s = self.s;
        let sizes = [s.b, s.hq, slabs.chunks, slabs.row, from, width, usize::from(per_head)];
        let sums = if per_head { s.hq * width } else { width };
        self.sum("sum_slabs", slabs.at, &sizes, to, sums)
    }

    fn sum_keys(&self, sums: u64, shape: [usize; 4], to: u64) -> Result<(), Error> {
        let s = self.s;
        let sizes = [s.b, s.hq, s.nk, shape[0], shape[1], shape[3]];
        self.sum("sum_keys", sums, &sizes, to, shape[0] * shape[1] * shape[3])
    }

    fn sum(
        &self,
        kernel: &str,
        mut from: u64,
        sizes: &[usize],
        mut to: u64,
        sums: usize,
    ) -> Result<(), Error> {
        let mut sizes: Vec<i64> = sizes.iter().map(|&n| n as i64).collect();
        let mut arguments = vec![(&raw mut from).cast::<c_void>()];
        arguments.extend(sizes.iter_mut().map(|n| (&raw mut *n).cast::<c_void>()));
        arguments.push((&raw mut to).cast());
        let blocks = sums.div_ceil((THREADS / LANES) as usize).clamp(1, WARPS) as u32;
        // SAFETY: the kernel takes two addresses and these sizes between them; the memory there is
        // kept until the stream was waited for.
        unsafe { self.module.launch(self.device, kernel, blocks, &mut arguments) }
    }
}

/// `[B, Hq, chunks, row]`
struct Slabs {
    at: u64,
    chunks: usize,
    row: usize,
}

/// The kernels for a problem.
fn variant<E: Element>(spec: &Spec<E::Compute>, s: &Shape) -> Result<Variant, Error> {
    Variant::generic(spec, s, Stored::of::<E>()).ok_or_else(|| {
        Error::new(
            "a score of the caller's own code runs on the CPU alone; on a GPU, write it as an \
             expression",
        )
    })
}

/// An array that is asked for, or not.
struct Asked(Option<Memory>);

impl Asked {
    /// Zeros, where they are asked for.
    fn of(device: &Arc<Device>, asked: bool, bytes: usize) -> Result<Self, Error> {
        asked.then(|| Memory::zeros(device, bytes)).transpose().map(Self)
    }

    fn at(&self) -> u64 {
        self.0.as_ref().map_or(0, |memory| memory.at)
    }

    fn copy_to<X: Copy>(&self, to: Option<&mut [X]>) -> Result<(), Error> {
        match (&self.0, to) {
            (Some(memory), Some(to)) => memory.copy_to(to),
            _ => Ok(()),
        }
    }
}

/// A contiguous `[B, H, N, D]` that a kernel writes.
struct Written {
    memory: Memory,
    array: Array,
}

impl Written {
    fn of(device: &Arc<Device>, shape: [usize; 4], size: usize) -> Result<Self, Error> {
        let [_, h, n, d] = shape;
        let memory = Memory::zeros(device, numel(&shape) * size)?;
        let array = Array { data: memory.at, strides: [h * n * d, n * d, d].map(|x| x as i64) };
        Ok(Self { memory, array })
    }

    /// Copies it back, row by row where the view has gaps.
    fn copy_to<E: Element>(&self, to: &mut ViewMut<E>) -> Result<(), Error> {
        let shape = to.shape;
        let [_, h, n, d] = shape;
        let count = numel(&shape);
        let mut rows: Vec<E> = vec![E::narrow(<E::Compute as Real>::ZERO); count];
        self.memory.copy_to(&mut rows)?;
        for (row, from) in rows.chunks_exact(d.max(1)).enumerate() {
            // SAFETY: the row is one of the view's, which nobody else uses.
            unsafe {
                let to = to.row(row / n / h, row / n % h, row % n);
                std::ptr::copy_nonoverlapping(from.as_ptr(), to, d);
            }
        }
        Ok(())
    }
}

/// Rows of scores for the warps.
struct Scratch {
    memory: Memory,
    /// Numbers of a row.
    row: usize,
    warps: usize,
}

impl Scratch {
    fn of<T: Real>(
        device: &Arc<Device>,
        spec: &Spec<T>,
        s: &Shape,
        real: usize,
        rows: usize,
    ) -> Result<Self, Error> {
        // A graph's rows are as long as its busiest query's list.
        let row = match spec.mask.edges {
            Some(edges) => edges.starts().windows(2).map(|x| x[1] - x[0]).max().unwrap_or(0),
            None => s.nk,
        };
        let row = row.max(1).next_multiple_of(LANES as usize);
        // Whole blocks of warps.
        let warps = (SCRATCH / (rows * row * real)).clamp(LANES as usize, WARPS) / 4 * 4;
        let memory = Memory::uninit(device, warps * rows * row * real)?;
        Ok(Self { memory, row, warps })
    }
}

/// Asks a kernel with a problem and what it reads and writes.
///
/// # Safety
/// As `Module::launch`.
unsafe fn launch<P>(
    module: &Module,
    device: &Device,
    kernel: &str,
    warps: usize,
    (problem, pass): &(Problem, P),
) -> Result<(), Error> {
    let blocks = warps.div_ceil((THREADS / LANES) as usize).max(1) as u32;
    let mut arguments =
        [std::ptr::from_ref(problem) as *mut c_void, std::ptr::from_ref(pass) as *mut c_void];
    // SAFETY: the caller's.
    unsafe { module.launch(device, kernel, blocks, &mut arguments) }
}
