//! Matrix products; a transposed operand is read as it lies.

use super::{CudaBackend, at, maybe_at, real, whole};
use crate::backend::Backend;
use crate::layout::Dims;
use crate::{Result, Tensor};
use regard_kernels::cuda::step::{Argument, Launch, Walk};

/// A side of the tile of the product that a block has, as `matmul.cu` has it.
const TILE: usize = 64;

/// What a product is added to.
#[derive(Clone, Copy)]
pub(super) enum Base<'a> {
    None,
    /// The same row everywhere.
    Row(&'a Tensor),
    /// A matrix of the product's shape, contiguous.
    Matrix(&'a Tensor),
}

impl CudaBackend {
    /// Stacks of matrices with any strides, whose leading axes are `lead` in both.
    pub(super) fn product(
        &self,
        lead: &Dims,
        a: &Tensor,
        b: &Tensor,
        base: Base,
    ) -> Result<Tensor> {
        let axes = lead.len();
        let [m, k, n] = [a.shape()[axes], a.shape()[axes + 1], b.shape()[axes + 1]];
        let mut shape = lead.to_vec();
        shape.extend([m, n]);
        let to = self.uninit(&Dims::new(&shape)?, a.dtype())?;
        let walk = Walk::new(lead, &[&a.strides()[..axes], &b.strides()[..axes]])?;
        let (base, base_row) = match base {
            Base::None => (None, 0),
            Base::Row(row) => (Some(row), 0),
            Base::Matrix(matrix) => (Some(matrix), n),
        };
        let strides = [
            a.strides()[axes],
            a.strides()[axes + 1],
            b.strides()[axes],
            b.strides()[axes + 1],
            base_row,
        ];
        let operands = [Argument::Walk(walk), at(a)?, at(b)?, maybe_at(base)?, at(&to)?];
        let sizes = [m, n, k].map(whole);
        let arguments = [&operands[..], &sizes, &strides.map(whole)].concat();
        let blocks = walk.count() * m.div_ceil(TILE) * n.div_ceil(TILE);
        let text = real(a);
        self.launch(text, "matmul", Launch::of_blocks(blocks), &arguments)?;
        Ok(to)
    }
}
