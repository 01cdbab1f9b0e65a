//! Dot products on Hopper's tensor cores: what the kernels need besides the problem, and their launches.

use super::dot_tiles::{
    BY_KEY_KEYS, BY_KEY_QUERIES, BY_KEY_STAGES, BY_QUERY_QUERIES, DotTiles, SIDE, STAGES,
};
use super::pass::{BackwardPass, ForwardPass, LANES, WARPS};
use super::problem::{Array, Problem};
use super::source::Stored;
use super::tensor_map::tensor_map;
use crate::cuda::device::Device;
use crate::cuda::memory::Memory;
use crate::cuda::module::{Grid, Module, argument};
use crate::error::Error;
use crate::spec::Shape;
use cudarc::driver::sys::CUtensorMap;
use std::ffi::c_void;
use std::sync::Arc;

pub(in crate::cuda) const WARPGROUP: usize = 128;
/// The widest rows there are tiles for.
pub(in crate::cuda) const WIDEST: usize = 128;
/// Rows of each query's numbers are rounded up to this.
const PADDED: usize = 128;
/// The furthest distance that a bias may tell apart: its table lies in shared memory.
pub(in crate::cuda) const FURTHEST: usize = 512;
/// Bytes of keys and values that are worked on at once: half of a Hopper's cache.
const CACHED: usize = 24 << 20;
/// Arrays in one piece of memory begin at multiples of this.
const PIECE: usize = 256;
/// What shared memory has besides tiles: barriers, and what lies before the first tile.
const BESIDES: usize = 1024 + 256;

/// `Dot` in the text.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::cuda) struct Fields {
    sections: i64,
    pub(in crate::cuda) padded: i64,
    lse2: u64,
    deltas: u64,
    q_span: u64,
    k_span: u64,
    q_blocks: i64,
    k_blocks: i64,
    statistics: u64,
    undefined_keys: u64,
}

impl Fields {
    /// `size`: bytes that one number of a key or value takes in the copies.
    pub(in crate::cuda) fn of(
        device: &Arc<Device>,
        s: &Shape,
        size: usize,
        backward: bool,
        memory: &mut Vec<Memory>,
    ) -> Result<Self, Error> {
        let group = s.hq / s.hk.max(1);
        let head = s.nk * (s.dk + s.dv) * size;
        let [q_blocks, k_blocks] = [s.nq, s.nk].map(|n| n.div_ceil(SIDE) as i64);
        let padded = s.nq.next_multiple_of(PADDED);
        let sections = ((CACHED / head.max(1)).max(1) * group).min(s.b * s.hq) as i64;
        let mut fields =
            Self { sections, padded: padded as i64, q_blocks, k_blocks, ..Self::default() };
        // One piece for all: asking the driver for each takes longer than a small pass.
        let rows = if backward { s.b * s.hq * padded } else { 0 };
        let keys = if backward { s.b * s.hk * s.nk } else { 0 };
        let parts =
            [rows, rows, s.rows(), keys].map(|n| (n * size_of::<f32>()).next_multiple_of(PIECE));
        let mut at = allocate(device, memory, parts.iter().sum())?;
        let next = |bytes: usize| {
            let own = at;
            at += bytes as u64;
            own
        };
        [fields.lse2, fields.deltas, fields.statistics, fields.undefined_keys] = parts.map(next);
        Ok(fields)
    }

    /// Where nothing is hidden from anybody, rows that came out NaN are left as they are.
    pub(in crate::cuda) fn of_problem(&self, problem: &Problem) -> Self {
        match problem.hides() {
            true => *self,
            false => Self { statistics: 0, undefined_keys: 0, ..*self },
        }
    }

    /// Computes again those of so many rows that came out NaN.
    pub(in crate::cuda) fn define<P>(
        &self,
        on: &Launcher,
        kernel: &str,
        rows: usize,
        problem: &Problem,
        pass: &P,
    ) -> Result<(), Error> {
        if self.statistics == 0 {
            return Ok(());
        }
        let warps = rows.div_ceil(LANES).min(WARPS);
        let mut arguments = [argument(problem), argument(pass), argument(self)];
        on.launch(kernel, Grid::of_warps(warps), &mut arguments)
    }

    /// A section is counted in the heads of keys where a block has keys.
    pub(in crate::cuda) fn by_key(&self, s: &Shape) -> Self {
        let group = (s.hq / s.hk.max(1)) as i64;
        Self { sections: (self.sections / group.max(1)).max(1), ..*self }
    }
}

/// Memory that is kept with the rest.
fn allocate(device: &Arc<Device>, memory: &mut Vec<Memory>, bytes: usize) -> Result<u64, Error> {
    let more = Memory::uninit(device, bytes)?;
    let at = more.at;
    memory.push(more);
    Ok(at)
}

/// What the tiles need besides the problem.
pub(in crate::cuda) struct Dot {
    tiles: DotTiles,
    stored: Stored,
    s: Shape,
    fields: Fields,
    _memory: Vec<Memory>,
}

impl Dot {
    /// How many slabs of a bias' gradient backward leaves for each head: one for each warpgroup's
    /// queries.
    pub(in crate::cuda) fn slabs(&self) -> usize {
        self.s.nq.div_ceil(BY_QUERY_QUERIES) * (BY_QUERY_QUERIES / SIDE)
    }

    pub(in crate::cuda) fn of(
        device: &Arc<Device>,
        s: &Shape,
        tiles: DotTiles,
        stored: Stored,
    ) -> Result<Self, Error> {
        let mut memory = Vec::new();
        let mut fields = Fields::of(device, s, 2, tiles.backward, &mut memory)?;
        if tiles.segments {
            let span = |blocks: i64| s.b * blocks as usize * 2 * size_of::<i64>();
            fields.q_span = allocate(device, &mut memory, span(fields.q_blocks))?;
            fields.k_span = allocate(device, &mut memory, span(fields.k_blocks))?;
        }
        Ok(Self { tiles, stored, s: *s, fields, _memory: memory })
    }

    fn map(&self, array: &Array, of_keys: bool, d: usize, rows: usize) -> Result<Map, Error> {
        let s = &self.s;
        let (h, n) = if of_keys { (s.hk, s.nk) } else { (s.hq, s.nq) };
        tensor_map(self.stored, array, [s.b, h, n, d], rows)
    }

    /// The segments of each 64 rows, where there are such.
    fn spans(&self, on: &Launcher, problem: &Problem) -> Result<(), Error> {
        let Fields { q_span, k_span, q_blocks, k_blocks, .. } = &self.fields;
        if !self.tiles.segments {
            return Ok(());
        }
        let warps = self.s.b * (q_blocks + k_blocks) as usize;
        let mut arguments = [
            argument(problem),
            argument(q_span),
            argument(k_span),
            argument(q_blocks),
            argument(k_blocks),
        ];
        on.launch("dot_segments", Grid::of_warps(warps.min(WARPS)), &mut arguments)
    }

    pub(in crate::cuda) fn forward(
        &self,
        module: &Module,
        device: &Device,
        problem: &Problem,
        pass: &ForwardPass,
    ) -> Result<(), Error> {
        let (s, on) = (&self.s, Launcher { module, device });
        self.spans(&on, problem)?;
        let DotTiles { width, values, .. } = self.tiles;
        let (queries, keys) = (self.tiles.queries(), self.tiles.keys());
        let q = self.map(&problem.q, false, s.dk, queries)?;
        let k = self.map(&problem.k, true, s.dk, keys)?;
        let v = self.map(&problem.v, true, s.dv, keys)?;
        let bytes = 2 * (queries * width + STAGES * keys * (width + values))
            + self.tiles.consumers() * self.tiles.table() * size_of::<f32>()
            + self.tiles.collected();
        let threads = WARPGROUP * (self.tiles.consumers() + 1);
        let grid = on.grid(s.nq.div_ceil(queries) * s.hq * s.b, threads, bytes);
        let fields = self.fields.of_problem(problem);
        let mut arguments = [
            argument(problem),
            argument(pass),
            argument(&fields),
            argument(&q),
            argument(&k),
            argument(&v),
        ];
        on.launch("dot_forward", grid, &mut arguments)?;
        fields.define(&on, "undefined_outputs", s.rows(), problem, pass)
    }

    pub(in crate::cuda) fn backward(
        &self,
        module: &Module,
        device: &Device,
        problem: &Problem,
        pass: &BackwardPass,
    ) -> Result<(), Error> {
        let (s, on) = (&self.s, Launcher { module, device });
        self.spans(&on, problem)?;
        let fields = self.fields.of_problem(problem);
        let rows = s.b * s.hq * fields.padded as usize;
        let mut arguments = [argument(problem), argument(pass), argument(&fields)];
        on.launch("dot_deltas", Grid::of_warps(rows.min(WARPS)), &mut arguments)?;
        // Queries first: they leave to the keys what a threshold's derivative needs.
        let asked = pass.grad_q.data != 0 || pass.relative_slabs != 0;
        if asked || self.tiles.has_threshold() {
            self.by_query(&on, problem, pass, &fields)?;
        }
        if pass.grad_k.data != 0 || pass.grad_v.data != 0 {
            self.by_key(&on, problem, pass, &fields.by_key(s))?;
        }
        fields.define(&on, "undefined_gradients", s.rows().max(s.b * s.hk * s.nk), problem, pass)
    }

    fn by_key(
        &self,
        on: &Launcher,
        problem: &Problem,
        pass: &BackwardPass,
        fields: &Fields,
    ) -> Result<(), Error> {
        let (s, DotTiles { width, values, .. }) = (&self.s, self.tiles);
        let both = width + values;
        let bytes = 2 * both * (BY_KEY_KEYS + BY_KEY_STAGES * BY_KEY_QUERIES)
            + 2 * (BY_KEY_STAGES * BY_KEY_QUERIES + self.tiles.table()) * size_of::<f32>();
        let work = s.nk.div_ceil(BY_KEY_KEYS) * s.hk * s.b;
        let grid = on.grid(work, 3 * WARPGROUP, bytes);
        let maps = self.maps(problem, pass, [BY_KEY_QUERIES, BY_KEY_KEYS])?;
        on.launch("dot_backward_keys", grid, &mut arguments_of(problem, pass, fields, &maps))
    }

    fn by_query(
        &self,
        on: &Launcher,
        problem: &Problem,
        pass: &BackwardPass,
        fields: &Fields,
    ) -> Result<(), Error> {
        let (s, DotTiles { width, values, .. }) = (&self.s, self.tiles);
        let keys = self.tiles.by_query_keys();
        let distances = match self.tiles.table() {
            0 => 0,
            // Rows of a tile, the table and its sums, of both warpgroups.
            table => 2 * (SIDE * (keys + 4) + 2 * table) * size_of::<f32>(),
        };
        let bytes = 2 * (width + values) * (BY_QUERY_QUERIES + STAGES * keys) + distances;
        let work = s.nq.div_ceil(BY_QUERY_QUERIES) * s.hq * s.b;
        let grid = on.grid(work, 3 * WARPGROUP, bytes);
        let maps = self.maps(problem, pass, [BY_QUERY_QUERIES, keys])?;
        on.launch("dot_backward_queries", grid, &mut arguments_of(problem, pass, fields, &maps))
    }

    /// Maps of q, the output's gradient, k and v, whose copies have so many queries or keys.
    fn maps(
        &self,
        problem: &Problem,
        pass: &BackwardPass,
        [queries, keys]: [usize; 2],
    ) -> Result<[Map; 4], Error> {
        let Shape { dk, dv, .. } = self.s;
        Ok([
            self.map(&problem.q, false, dk, queries)?,
            self.map(&pass.grad_out, false, dv, queries)?,
            self.map(&problem.k, true, dk, keys)?,
            self.map(&problem.v, true, dv, keys)?,
        ])
    }
}

type Map = CUtensorMap;

fn arguments_of(
    problem: &Problem,
    pass: &BackwardPass,
    fields: &Fields,
    [q, g, k, v]: &[Map; 4],
) -> [*mut c_void; 7] {
    [
        argument(problem),
        argument(pass),
        argument(fields),
        argument(q),
        argument(g),
        argument(k),
        argument(v),
    ]
}

/// Where the kernels of one pass are launched.
pub(in crate::cuda) struct Launcher<'a> {
    pub(in crate::cuda) module: &'a Module,
    pub(in crate::cuda) device: &'a Device,
}

impl Launcher<'_> {
    /// A block for each multiprocessor, each with as many pieces of the work as the others.
    pub(in crate::cuda) fn grid(&self, work: usize, threads: usize, tiles: usize) -> Grid {
        let blocks = work.clamp(1, self.device.multiprocessors) as u32;
        Grid::new([blocks, 1, 1], threads, (tiles + BESIDES) as u32)
    }

    pub(in crate::cuda) fn launch(
        &self,
        kernel: &str,
        grid: Grid,
        arguments: &mut [*mut c_void],
    ) -> Result<(), Error> {
        // SAFETY: the kernels' text has these structures; what they name is kept by the caller and by
        // `Dot` until the stream was waited for.
        unsafe { self.module.launch(self.device, kernel, grid, arguments) }
    }
}
