//! The general tiles: what their kernels need besides the problem, and how they are launched.

use super::pass::{BackwardPass, ForwardPass, WARPS};
use super::problem::Problem;
use super::tile_sizes::TileSizes;
use crate::cuda::device::Device;
use crate::cuda::memory::Memory;
use crate::cuda::module::{Grid, Module, argument};
use crate::error::Error;
use crate::spec::Shape;
use std::ffi::c_void;
use std::sync::Arc;

/// `Tile` in the text.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct Fields {
    blocks: i64,
    tops: u64,
    totals: u64,
}

pub(in crate::cuda) struct Tile {
    sizes: TileSizes,
    s: Shape,
    fields: Fields,
    _memory: Vec<Memory>,
}

/// Which gradients of biases are asked for, backward.
#[derive(Clone, Copy, Default)]
pub(in crate::cuda) struct BiasGradients {
    /// Of a full bias with a row for each query: its batch items times heads, and whether keys share a number.
    pub(in crate::cuda) full: Option<(usize, bool)>,
    pub(in crate::cuda) relative: bool,
    /// Sums by key.
    pub(in crate::cuda) by_key: bool,
}

impl Tile {
    /// `weights`: whether forward writes them.
    pub(in crate::cuda) fn of(
        device: &Arc<Device>,
        s: &Shape,
        sizes: TileSizes,
        weights: bool,
    ) -> Result<Self, Error> {
        let blocks = (s.hq / s.hk * s.nq).div_ceil(sizes.rows()) as i64;
        let mut fields = Fields { blocks, ..Fields::default() };
        let mut memory = Vec::new();
        if weights {
            for _ in 0..2 {
                memory.push(Memory::uninit(device, s.rows() * size_of::<f32>())?);
            }
            (fields.tops, fields.totals) = (memory[0].at, memory[1].at);
        }
        Ok(Self { sizes, s: *s, fields, _memory: memory })
    }

    /// Blocks of one head's queries: what the sums of a bias by distance are cut into.
    pub(in crate::cuda) fn head_blocks(&self) -> usize {
        self.s.nq.div_ceil(self.sizes.rows())
    }

    pub(in crate::cuda) fn forward(
        &self,
        module: &Module,
        device: &Device,
        problem: &Problem,
        pass: &ForwardPass,
    ) -> Result<(), Error> {
        let grid = self.grid_by_query();
        let mut arguments = [argument(problem), argument(pass), argument(&self.fields)];
        // SAFETY: the kernels' text has these structures; what they name is kept by the caller and by
        // this, and what is freed is freed in the stream's order.
        unsafe {
            module.launch(device, "tile_forward", grid, &mut arguments)?;
            match pass.weights {
                0 => Ok(()),
                _ => module.launch(device, "tile_weights", grid, &mut arguments),
            }
        }
    }

    pub(in crate::cuda) fn backward(
        &self,
        module: &Module,
        device: &Device,
        problem: &Problem,
        pass: &BackwardPass,
        biases: BiasGradients,
    ) -> Result<(), Error> {
        let (s, sizes) = (&self.s, &self.sizes);
        let launch = |kernel: &str, grid: Grid, more: &[*mut c_void]| {
            let mut arguments = vec![argument(problem), argument(pass)];
            arguments.extend(more);
            // SAFETY: as above; the numbers behind the two structures are those of the kernel's text.
            unsafe { module.launch(device, kernel, grid, &mut arguments) }
        };
        let blocks_of = |blocks: usize, shared: usize| {
            Grid::new([blocks as u32, 1, 1], sizes.threads(), shared as u32)
        };
        if sizes.normalizer == 0 {
            launch("tile_deltas", Grid::of_warps(s.rows().min(8 * WARPS)), &[])?;
            if sizes.has.arriving {
                launch("tile_arriving", self.grid_by_query(), &[argument(&self.fields)])?;
            }
        }
        if pass.grad_q.data != 0 {
            launch("tile_backward_queries", self.grid_by_query(), &[argument(&self.fields)])?;
        }
        if pass.grad_k.data != 0 || pass.grad_v.data != 0 || biases.by_key {
            let blocks = s.nk.div_ceil(sizes.own_keys());
            let grid = blocks_of(s.b * s.hk * blocks, sizes.shared_by_key());
            let blocks = blocks as i64;
            launch("tile_backward_keys", grid, &[argument(&blocks)])?;
            if !sizes.is_together() && pass.grad_v.data != 0 {
                launch("tile_backward_values", grid, &[argument(&blocks)])?;
            }
        }
        let blocks = self.head_blocks();
        if let Some((heads, is_shared)) = biases.full {
            let tiles = s.nk.div_ceil(sizes.keys());
            let parts = if is_shared { 1 } else { tiles };
            let grid = blocks_of(heads * blocks * parts, sizes.shared_by_query());
            let [blocks, tiles] = [blocks, tiles].map(|n| n as i64);
            launch("tile_backward_bias", grid, &[argument(&blocks), argument(&tiles)])?;
        }
        if biases.relative {
            let grid = blocks_of(s.b * s.hq * blocks, sizes.shared_by_distance());
            launch("tile_backward_relative", grid, &[argument(&(blocks as i64))])?;
        }
        Ok(())
    }

    fn grid_by_query(&self) -> Grid {
        let blocks = self.s.b * self.s.hk * self.fields.blocks as usize;
        Grid::new([blocks as u32, 1, 1], self.sizes.threads(), self.sizes.shared_by_query() as u32)
    }
}
