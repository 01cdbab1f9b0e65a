//! The tiles of additive scores: e^2q and e^2k turned round, the splits of the keys, and what backward
//! needs besides.

use super::pass::{BackwardPass, ForwardPass, WARPS};
use super::problem::Problem;
use crate::cuda::device::Device;
use crate::cuda::memory::Memory;
use crate::cuda::module::{Grid, Module, argument};
use crate::error::Error;
use crate::spec::Shape;
use std::ffi::c_void;
use std::sync::Arc;

/// Queries of a block, keys of a tile.
const COLUMNS: usize = 64;
/// Features at a time.
const DEPTH: usize = 32;
const STAGES: usize = 2;
const THREADS: usize = 256;
/// Bytes of shared memory that functions of the text name themselves.
const BESIDES: usize = 128;
/// Blocks that a large GPU runs at once; fewer are cut by keys too.
const AT_ONCE: usize = 264;
/// The most bytes of the parts of q's gradient.
const SLABS: usize = 2 << 30;

/// The widths as the tiles have them. In backward a feature has as many threads as any other.
#[derive(Clone, Copy, Debug)]
pub(in crate::cuda) struct Padded {
    pub(in crate::cuda) width: usize,
    pub(in crate::cuda) value_width: usize,
}

impl Padded {
    pub(in crate::cuda) fn of(s: &Shape, backward: bool) -> Self {
        let width = s.dk.next_multiple_of(DEPTH).max(DEPTH);
        Self {
            width: if backward { width.next_power_of_two() } else { width },
            value_width: s.dv.next_multiple_of(COLUMNS).max(COLUMNS),
        }
    }

    /// Bytes of `Shared`, or `BackShared`, in the text, and of what its functions have besides.
    pub(in crate::cuda) fn shared(self, backward: bool) -> usize {
        let Self { width, value_width } = self;
        let (features, square) = (2 * STAGES * DEPTH * COLUMNS, COLUMNS * (COLUMNS + 4));
        let numbers = match backward {
            true => features.max(COLUMNS * value_width) + 2 * square + THREADS,
            false => features.max(2 * square) + COLUMNS * (value_width + 8) + 2 * COLUMNS,
        };
        let own = width.saturating_mul(2) + width / DEPTH + width / 4;
        numbers.saturating_add(own).saturating_mul(size_of::<f32>()) + BESIDES
    }

    /// Threads that share a feature in backward.
    fn groups(self) -> usize {
        THREADS / self.width.min(THREADS)
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct Tiles {
    q: u64,
    k: u64,
    q_rows: u64,
    k_rows: u64,
    grads: u64,
    values: u64,
    deltas: u64,
    q_slabs: u64,
    slabs: i64,
    q_reach: u64,
    k_reach: u64,
    q_padded: i64,
    k_padded: i64,
    splits: i64,
    part_out: u64,
    part_top: u64,
    part_total: u64,
}

/// What the tiles need besides the problem.
pub(in crate::cuda) struct Additive {
    tiles: Tiles,
    padded: Padded,
    s: Shape,
    _memory: Vec<Memory>,
}

impl Additive {
    pub(in crate::cuda) fn of(
        device: &Arc<Device>,
        s: &Shape,
        backward: bool,
    ) -> Result<Self, Error> {
        let padded = Padded::of(s, backward);
        let (nq, nk) = (s.nq.next_multiple_of(COLUMNS), s.nk.next_multiple_of(COLUMNS));
        let (q_blocks, k_blocks) = (nq / COLUMNS, nk / COLUMNS);
        let (q_heads, k_heads) = (s.b * s.hq, s.b * s.hk);
        let mut memory = Vec::new();
        let mut room = |numbers: usize| -> Result<u64, Error> {
            memory.push(Memory::uninit(device, numbers * size_of::<f32>())?);
            Ok(memory.last().map_or(0, |memory| memory.at))
        };
        let chunks = padded.width / DEPTH;
        let mut tiles = Tiles {
            q: room(q_heads * padded.width * nq)?,
            k: room(k_heads * padded.width * nk)?,
            q_reach: room(q_heads * q_blocks * chunks)?,
            k_reach: room(k_heads * k_blocks * chunks)?,
            q_padded: nq as i64,
            k_padded: nk as i64,
            ..Tiles::default()
        };
        if backward {
            let slab = q_heads * padded.groups() * nq * padded.width;
            let slabs = (SLABS / size_of::<f32>() / slab.max(1)).clamp(1, k_blocks.max(1));
            tiles.q_rows = room(q_heads * nq * padded.width)?;
            tiles.k_rows = room(k_heads * nk * padded.width)?;
            tiles.grads = room(q_heads * padded.value_width * nq)?;
            tiles.values = room(k_heads * padded.value_width * nk)?;
            tiles.deltas = room(s.rows())?;
            tiles.q_slabs = room(slabs * slab)?;
            tiles.slabs = slabs as i64;
        } else {
            let splits = (AT_ONCE / (q_heads * q_blocks).max(1)).clamp(1, k_blocks.max(1));
            let parts = if splits == 1 { 0 } else { s.rows() * splits };
            tiles.splits = splits as i64;
            tiles.part_out = room(parts * padded.value_width)?;
            tiles.part_top = room(parts)?;
            tiles.part_total = room(parts)?;
        }
        Ok(Self { tiles, padded, s: *s, _memory: memory })
    }

    /// How many slabs of w's gradient backward leaves for each head.
    pub(in crate::cuda) fn own_slabs(&self) -> usize {
        self.tiles.slabs as usize * self.padded.groups()
    }

    /// Bytes of shared memory that a launch asks for.
    fn shared(&self, backward: bool) -> u32 {
        (self.padded.shared(backward) - BESIDES) as u32
    }

    /// Blocks of 64 rows: the queries', and all.
    fn blocks(&self) -> [u32; 2] {
        let [q, k] = [self.tiles.q_padded, self.tiles.k_padded].map(|n| n as u32 / COLUMNS as u32);
        [q, q + k]
    }

    pub(in crate::cuda) fn forward(
        &self,
        module: &Module,
        device: &Device,
        problem: &Problem,
        pass: &ForwardPass,
    ) -> Result<(), Error> {
        let launch = |kernel: &str, grid: Grid, arguments: &mut [*mut c_void]| {
            // SAFETY: the kernels' text has these structures; what they name is kept by the caller
            // and by this until the stream was waited for.
            unsafe { module.launch(device, kernel, grid, arguments) }
        };
        let (tiles, [q, all]) = (&self.tiles, self.blocks());
        let heads = (self.s.b * self.s.hq) as u32;
        let prepare = Grid::new([all * heads, 1, (self.padded.width / DEPTH) as u32], THREADS, 0);
        launch("additive_prepare", prepare, &mut [argument(problem), argument(tiles)])?;
        let mut arguments = [argument(problem), argument(pass), argument(tiles)];
        let blocks = [q * tiles.splits as u32 * heads, 1, 1];
        let grid = Grid::new(blocks, THREADS, self.shared(false));
        launch("additive_forward", grid, &mut arguments)?;
        if tiles.splits > 1 {
            launch("additive_merge", Grid::of_warps(self.s.rows().min(WARPS)), &mut arguments)?;
        }
        Ok(())
    }

    pub(in crate::cuda) fn backward(
        &self,
        module: &Module,
        device: &Device,
        problem: &Problem,
        pass: &BackwardPass,
    ) -> Result<(), Error> {
        let launch = |kernel: &str, grid: Grid, arguments: &mut [*mut c_void]| {
            // SAFETY: as above.
            unsafe { module.launch(device, kernel, grid, arguments) }
        };
        let (tiles, [_, all]) = (&self.tiles, self.blocks());
        let heads = (self.s.b * self.s.hq) as u32;
        let grid = |width: usize| Grid::new([all * heads, 1, (width / DEPTH) as u32], THREADS, 0);
        let Padded { width, value_width } = self.padded;
        launch("additive_prepare", grid(width), &mut [argument(problem), argument(tiles)])?;
        let mut arguments = [argument(problem), argument(pass), argument(tiles)];
        launch("additive_prepare_backward", grid(value_width), &mut arguments)?;
        launch("additive_deltas", Grid::of_warps(self.s.rows().min(WARPS)), &mut arguments)?;
        let blocks = [tiles.slabs as u32 * heads, 1, 1];
        let grid = Grid::new(blocks, THREADS, self.shared(true));
        launch("additive_backward", grid, &mut arguments)?;
        if pass.grad_q.data != 0 {
            let numbers = self.s.rows() * width;
            let blocks = [numbers.div_ceil(THREADS).clamp(1, 1 << 20) as u32, 1, 1];
            launch("additive_sum_queries", Grid::new(blocks, THREADS, 0), &mut arguments)?;
        }
        Ok(())
    }
}
