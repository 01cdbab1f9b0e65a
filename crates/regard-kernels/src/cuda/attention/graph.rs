//! Softmax over the edges of a graph: how a warp's lanes share the heads of a query, and the launches.

use super::pass::{BackwardPass, ForwardPass, WARPS};
use super::problem::Problem;
use crate::cuda::device::Device;
use crate::cuda::memory::Memory;
use crate::cuda::module::{Grid, Module, argument};
use crate::error::Error;
use crate::spec::Shape;
use std::sync::Arc;

/// The widest head that a warp's lanes have together.
pub(in crate::cuda) const WIDEST: usize = 256;
const LANES: usize = 32;

/// Sizes of the graph kernels' text, and what it has of the choices.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GraphSizes {
    heads: usize,
    width: usize,
    value_width: usize,
    /// Features of a head that one lane has.
    per_lane: usize,
    /// Lanes of a head.
    head_lanes: usize,
    /// Heads of a warp.
    warp_heads: usize,
    /// Whether four numbers of every row are one load.
    aligned: bool,
    dropout: bool,
}

impl GraphSizes {
    /// Of heads no wider than 256.
    pub fn of(s: &Shape, [aligned, dropout]: [bool; 2]) -> Self {
        let per_lane = if s.dv <= 4 * LANES { 4 } else { 8 };
        let head_lanes = s.dv.div_ceil(per_lane).next_power_of_two();
        let warp_heads = s.hq.next_power_of_two().min(LANES / head_lanes);
        let (heads, width, value_width) = (s.hq, s.dk, s.dv);
        Self { heads, width, value_width, per_lane, head_lanes, warp_heads, aligned, dropout }
    }

    /// Warps that share a query.
    fn head_sets(&self) -> usize {
        self.heads.div_ceil(self.warp_heads)
    }

    pub(in crate::cuda) fn defines(&self) -> [(&'static str, usize); 9] {
        [
            ("HEADS", self.heads),
            ("WIDTH", self.width),
            ("VALUE_WIDTH", self.value_width),
            ("PER_LANE", self.per_lane),
            ("HEAD_LANES", self.head_lanes),
            ("WARP_HEADS", self.warp_heads),
            ("HEAD_SETS", self.head_sets()),
            ("ALIGNED", usize::from(self.aligned)),
            ("HAS_DROPOUT", usize::from(self.dropout)),
        ]
    }
}

/// The launches of a pass, and what the queries' pass leaves to the keys': `GraphBackward` in the text.
pub(in crate::cuda) struct Graph {
    sizes: GraphSizes,
    s: Shape,
    between: [u64; 2],
    _memory: Option<[Memory; 2]>,
}

impl Graph {
    pub(in crate::cuda) fn forward_of(s: &Shape, sizes: GraphSizes) -> Self {
        Self { sizes, s: *s, between: [0; 2], _memory: None }
    }

    /// For backward along so many edges.
    pub(in crate::cuda) fn backward_of(
        device: &Arc<Device>,
        s: &Shape,
        sizes: GraphSizes,
        edges: usize,
    ) -> Result<Self, Error> {
        let edges = s.b * edges;
        let signs = if sizes.width == 1 { 0 } else { sizes.head_sets() * sizes.per_lane };
        let memory = [
            Memory::uninit(device, edges * s.hq * 2 * size_of::<f32>())?,
            Memory::uninit(device, edges * signs * size_of::<u32>())?,
        ];
        let between = [memory[0].at, memory[1].at];
        Ok(Self { sizes, s: *s, between, _memory: Some(memory) })
    }

    pub(in crate::cuda) fn forward(
        &self,
        module: &Module,
        device: &Device,
        problem: &Problem,
        pass: &ForwardPass,
    ) -> Result<(), Error> {
        let mut arguments = [argument(problem), argument(pass)];
        let grid = self.grid(self.s.nq);
        // SAFETY: the kernel's text has these two structures, and all they name is kept by the pass; what is
        // freed is freed in the stream's order.
        unsafe { module.launch(device, "graph_forward", grid, &mut arguments) }
    }

    /// The queries' pass in so many chunks of an item's queries; then the keys', where their gradients are wanted.
    pub(in crate::cuda) fn backward(
        &self,
        module: &Module,
        device: &Device,
        problem: &Problem,
        pass: &BackwardPass,
        wants_keys: bool,
    ) -> Result<(), Error> {
        let mut arguments = [argument(problem), argument(pass), argument(&self.between)];
        let mut launch = |kernel: &str, tasks: usize| {
            // SAFETY: as above, with the addresses of what lies between the passes.
            unsafe { module.launch(device, kernel, self.grid(tasks), &mut arguments) }
        };
        launch("graph_backward_queries", pass.chunks as usize)?;
        if wants_keys {
            launch("graph_backward_keys", self.s.nk)?;
        }
        Ok(())
    }

    /// A warp for each of so many tasks of an item and a set of heads.
    fn grid(&self, tasks: usize) -> Grid {
        Grid::of_warps((self.s.b * tasks * self.sizes.head_sets()).min(8 * WARPS))
    }
}
