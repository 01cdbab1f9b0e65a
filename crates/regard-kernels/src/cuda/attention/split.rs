//! Dot products of f32 numbers on Hopper's tensor cores: each number as three of bf16 (`text/dot_split.cu`).

use super::dot::{Fields, Launcher, WARPGROUP};
use super::pass::{BackwardPass, ForwardPass, WARPS};
use super::problem::{Array, Problem};
use super::source::Stored;
use super::tensor_map::{EVEN, tensor_map};
use crate::cuda::device::Device;
use crate::cuda::memory::Memory;
use crate::cuda::module::{Grid, Module, argument};
use crate::error::Error;
use crate::spec::Shape;
use cudarc::driver::sys::CUtensorMap;
use std::sync::Arc;

/// The widest rows there are tiles for.
pub(in crate::cuda) const WIDEST: usize = 64;
const PARTS: usize = 3;
/// Rows of a block and of a tile, tiles on their way.
const BLOCK: usize = 128;
const TILE: usize = 64;
const STAGES: usize = 2;
/// Bytes of a panel's row.
const ROW: usize = 128;

/// An array's parts, `[3, B, H, N, D rounded up]`.
struct Parts {
    memory: Memory,
    /// B, H, N, D.
    shape: [usize; 4],
}

impl Parts {
    fn of(device: &Arc<Device>, shape: [usize; 4]) -> Result<Self, Error> {
        let [b, h, n, d] = shape;
        let numbers = PARTS * b * h * n * d.next_multiple_of(EVEN);
        Ok(Self { memory: Memory::uninit(device, numbers * 2)?, shape })
    }

    fn fill(&self, on: &Launcher, from: &Array) -> Result<(), Error> {
        let [b, h, n, d] = self.shape;
        let padded = d.next_multiple_of(EVEN);
        let sizes = [b, h, n, d, padded].map(|n| n as i64);
        let blocks = (b * h * n * padded / 2).div_ceil(256).clamp(1, 1 << 16) as u32;
        let mut arguments = vec![argument(from)];
        arguments.extend(sizes.iter().map(argument));
        arguments.push(argument(&self.memory.at));
        on.launch("split_rows", Grid::new([blocks, 1, 1], 256, 0), &mut arguments)
    }

    /// A map whose copies have so many rows; the parts are more batch items to it.
    fn map(&self, rows: usize) -> Result<CUtensorMap, Error> {
        let [b, h, n, d] = self.shape;
        let d = d.next_multiple_of(EVEN);
        let strides = [h * n * d, n * d, d].map(|stride| stride as i64);
        let array = Array { data: self.memory.at, strides };
        tensor_map(Stored::Bf16, &array, [PARTS * b, h, n, d], rows)
    }
}

/// What the tiles need besides the problem.
pub(in crate::cuda) struct Split {
    s: Shape,
    fields: Fields,
    q: Parts,
    k: Parts,
    v: Parts,
    /// Of the output's gradient, backward.
    grad: Option<Parts>,
    _memory: Vec<Memory>,
}

impl Split {
    pub(in crate::cuda) fn of(
        device: &Arc<Device>,
        s: &Shape,
        backward: bool,
    ) -> Result<Self, Error> {
        let Shape { b, hq, hk, nq, nk, dk, dv, .. } = *s;
        let mut memory = Vec::new();
        let fields = Fields::of(device, s, PARTS * 2, backward, &mut memory)?;
        Ok(Self {
            s: *s,
            fields,
            q: Parts::of(device, [b, hq, nq, dk])?,
            k: Parts::of(device, [b, hk, nk, dk])?,
            v: Parts::of(device, [b, hk, nk, dv])?,
            grad: backward.then(|| Parts::of(device, [b, hq, nq, dv])).transpose()?,
            _memory: memory,
        })
    }

    fn fill(&self, on: &Launcher, problem: &Problem) -> Result<(), Error> {
        self.q.fill(on, &problem.q)?;
        self.k.fill(on, &problem.k)?;
        self.v.fill(on, &problem.v)
    }

    /// A grid whose blocks have the rows of so many arrays, tiles of two, and two numbers for each row of
    /// a tile.
    fn grid(&self, on: &Launcher, work: usize, arrays: usize) -> Grid {
        let tiles = PARTS * ROW * (arrays * BLOCK + 2 * STAGES * TILE);
        on.grid(work, 3 * WARPGROUP, tiles + 2 * STAGES * TILE * size_of::<f32>())
    }

    pub(in crate::cuda) fn forward(
        &self,
        module: &Module,
        device: &Device,
        problem: &Problem,
        pass: &ForwardPass,
    ) -> Result<(), Error> {
        let (s, on) = (&self.s, Launcher { module, device });
        self.fill(&on, problem)?;
        let [q, k, v] = [self.q.map(BLOCK)?, self.k.map(TILE)?, self.v.map(TILE)?];
        let grid = self.grid(&on, s.nq.div_ceil(BLOCK) * s.hq * s.b, 1);
        let fields = &self.fields;
        let mut arguments = [
            argument(problem),
            argument(pass),
            argument(fields),
            argument(&q),
            argument(&k),
            argument(&v),
        ];
        on.launch("split_forward", grid, &mut arguments)?;
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
        let Some(grad) = &self.grad else { return Ok(()) };
        self.fill(&on, problem)?;
        grad.fill(&on, &pass.grad_out)?;
        let fields = &self.fields;
        let rows = s.b * s.hq * fields.padded as usize;
        let mut arguments = [argument(problem), argument(pass), argument(fields)];
        on.launch("split_deltas", Grid::of_warps(rows.min(WARPS)), &mut arguments)?;
        let launch = |kernel: &str, work: usize, fields: &Fields, [queries, keys]: [usize; 2]| {
            let maps =
                [self.q.map(queries)?, grad.map(queries)?, self.k.map(keys)?, self.v.map(keys)?];
            let mut arguments = vec![argument(problem), argument(pass), argument(fields)];
            arguments.extend(maps.iter().map(argument));
            on.launch(kernel, self.grid(&on, work, 2), &mut arguments)
        };
        if pass.grad_q.data != 0 {
            let work = s.nq.div_ceil(BLOCK) * s.hq * s.b;
            launch("split_backward_queries", work, fields, [BLOCK, TILE])?;
        }
        if pass.grad_k.data != 0 || pass.grad_v.data != 0 {
            let work = s.nk.div_ceil(BLOCK) * s.hk * s.b;
            launch("split_backward_keys", work, &fields.by_key(s), [TILE, BLOCK])?;
        }
        fields.define(&on, "undefined_gradients", s.rows().max(s.b * s.hk * s.nk), problem, pass)
    }
}
