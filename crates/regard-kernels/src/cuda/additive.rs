//! The tiles of additive scores: e^2q and e^2k turned round, and the splits of the keys.

use super::device::Device;
use super::memory::Memory;
use super::module::{Grid, Module, argument};
use super::pass::ForwardPass;
use super::problem::Problem;
use crate::error::Error;
use crate::spec::Shape;
use std::sync::Arc;

/// Queries of a block, keys of a tile.
pub(super) const COLUMNS: usize = 64;
/// Features at a time.
pub(super) const DEPTH: usize = 16;
const STAGES: usize = 3;
const THREADS: u32 = 256;
/// Blocks that a large GPU runs at once; fewer are cut by keys too.
const AT_ONCE: usize = 264;

#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct Tiles {
    q: u64,
    k: u64,
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
pub(super) struct Additive {
    tiles: Tiles,
    s: Shape,
    _memory: Vec<Memory>,
}

impl Additive {
    pub(super) fn of(device: &Arc<Device>, s: &Shape) -> Result<Self, Error> {
        let real = size_of::<f32>();
        let (q_padded, k_padded) = (s.nq.next_multiple_of(COLUMNS), s.nk.next_multiple_of(COLUMNS));
        let width = s.dk.next_multiple_of(DEPTH);
        let value_width = s.dv.next_multiple_of(COLUMNS);
        let blocks = s.b * s.hq * q_padded / COLUMNS;
        let splits = (AT_ONCE / blocks.max(1)).clamp(1, (k_padded / COLUMNS).max(1));
        let parts = if splits == 1 { 0 } else { s.rows() * splits };
        let mut memory = Vec::new();
        let mut room = |numbers: usize| -> Result<u64, Error> {
            memory.push(Memory::uninit(device, numbers * real)?);
            Ok(memory.last().map_or(0, |memory| memory.at))
        };
        let tiles = Tiles {
            q: room(s.b * s.hq * width * q_padded)?,
            k: room(s.b * s.hk * width * k_padded)?,
            q_reach: room(s.b * s.hq * q_padded / COLUMNS)?,
            k_reach: room(s.b * s.hk * k_padded / COLUMNS)?,
            q_padded: q_padded as i64,
            k_padded: k_padded as i64,
            splits: splits as i64,
            part_out: room(parts * value_width)?,
            part_top: room(parts)?,
            part_total: room(parts)?,
        };
        Ok(Self { tiles, s: *s, _memory: memory })
    }

    /// Bytes of `Shared` in the text.
    fn shared(&self) -> usize {
        let width = self.s.dk.next_multiple_of(DEPTH);
        let value_width = self.s.dv.next_multiple_of(COLUMNS);
        let numbers =
            2 * STAGES * DEPTH * COLUMNS + width + COLUMNS * (COLUMNS + 4) + COLUMNS * value_width;
        numbers * size_of::<f32>()
    }

    pub(super) fn forward(
        &self,
        module: &Module,
        device: &Device,
        problem: &Problem,
        pass: &ForwardPass,
    ) -> Result<(), Error> {
        let (s, tiles) = (&self.s, &self.tiles);
        let blocks = |padded: i64, heads: usize| [padded as u32 / COLUMNS as u32, heads as u32];
        let [q, k] = [blocks(tiles.q_padded, s.b * s.hq), blocks(tiles.k_padded, s.b * s.hk)];
        // SAFETY: the kernels' text has these structures; what they name is kept by the caller and by
        // this until the stream was waited for.
        unsafe {
            for (of_keys, blocks) in [(0i64, q), (1, k)] {
                let grid = Grid { blocks, threads: THREADS, shared: 0 };
                let mut arguments = [argument(problem), argument(tiles), argument(&of_keys)];
                module.launch(device, "additive_prepare", grid, &mut arguments)?;
            }
            let grid = Grid {
                blocks: [q[0] * tiles.splits as u32, q[1]],
                threads: THREADS,
                shared: self.shared() as u32,
            };
            let mut arguments = [argument(problem), argument(pass), argument(tiles)];
            module.launch(device, "additive_forward", grid, &mut arguments)?;
            if tiles.splits > 1 {
                let grid = Grid::of_warps(s.rows().min(super::pass::WARPS));
                module.launch(device, "additive_merge", grid, &mut arguments)?;
            }
        }
        Ok(())
    }
}
