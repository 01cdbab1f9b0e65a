//! Few queries over many keys: how the keys are split, and the splits' results.

use super::pass::{ForwardPass, WARPS};
use super::problem::Problem;
use crate::cuda::device::Device;
use crate::cuda::memory::Memory;
use crate::cuda::module::{Grid, Module, argument};
use crate::error::Error;
use crate::spec::Shape;
use std::sync::Arc;

/// Rows of a product: the queries of all heads that share keys.
pub(in crate::cuda) const ROWS: usize = 16;
const WARPS_EACH: usize = 4;
/// Keys of a warp's tile, and tiles on their way.
const KEYS: usize = 16;
const STAGES: usize = 3;
/// Blocks that keep a large GPU's memory busy.
const BLOCKS: usize = 528;
/// The fewest keys of a split that pay for its merging.
const FEWEST: usize = 256;

/// `Decode` in the text.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct Fields {
    splits: i64,
    chunk: i64,
    outs: u64,
    tops: u64,
    totals: u64,
}

/// The widths as the tiles have them.
pub(in crate::cuda) fn padded(s: &Shape) -> [usize; 2] {
    [s.dk, s.dv].map(|d| if d <= 64 { 64 } else { 128 })
}

/// Whether the queries of heads that share keys fit in a product.
pub(in crate::cuda) fn fits(s: &Shape) -> bool {
    s.hk > 0 && s.nq > 0 && (s.hq / s.hk).saturating_mul(s.nq) <= ROWS
}

/// Bytes of shared memory of a block: the warps' tiles, and in the end their results.
pub(in crate::cuda) fn shared(s: &Shape) -> usize {
    let [width, values] = padded(s);
    let tiles = WARPS_EACH * STAGES * KEYS * (width + values) * 2;
    tiles.max(WARPS_EACH * ROWS * (values + 2) * size_of::<f32>())
}

/// What the kernels need besides the problem.
pub(in crate::cuda) struct Decode {
    fields: Fields,
    s: Shape,
    _memory: [Memory; 3],
}

impl Decode {
    pub(in crate::cuda) fn of(device: &Arc<Device>, s: &Shape) -> Result<Self, Error> {
        let most = (s.nk / FEWEST).max(1);
        let wanted = (BLOCKS / (s.b * s.hk).max(1)).clamp(1, most);
        let chunk = s.nk.div_ceil(wanted).next_multiple_of(WARPS_EACH * KEYS);
        let splits = s.nk.div_ceil(chunk);
        let [_, values] = padded(s);
        let room = |numbers: usize| Memory::uninit(device, s.rows() * splits * numbers * 4);
        let memory = [room(values)?, room(1)?, room(1)?];
        let [outs, tops, totals] = [memory[0].at, memory[1].at, memory[2].at];
        let fields = Fields { splits: splits as i64, chunk: chunk as i64, outs, tops, totals };
        Ok(Self { fields, s: *s, _memory: memory })
    }

    pub(in crate::cuda) fn forward(
        &self,
        module: &Module,
        device: &Device,
        problem: &Problem,
        pass: &ForwardPass,
    ) -> Result<(), Error> {
        let s = &self.s;
        // All in one axis: the others hold 65535 blocks.
        let blocks = [(self.fields.splits as usize * s.b * s.hk) as u32, 1, 1];
        let grid = Grid::new(blocks, 32 * WARPS_EACH, shared(s) as u32);
        let rows = Grid::of_warps(s.rows().min(WARPS));
        // SAFETY: the kernels' text has these structures; what they name is kept by the caller and by
        // this until the stream was waited for.
        unsafe {
            let mut arguments = [argument(problem), argument(&self.fields)];
            module.launch(device, "decode_forward", grid, &mut arguments)?;
            let mut arguments = [argument(problem), argument(pass), argument(&self.fields)];
            module.launch(device, "decode_merge", rows, &mut arguments)
        }
    }
}
