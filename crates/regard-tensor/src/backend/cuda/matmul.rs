//! Matrix products, by cuBLASLt where the machine has it; a transposed operand is read as it lies.

use super::{CudaBackend, at, maybe_at, real, whole};
use crate::backend::Backend;
use crate::layout::Dims;
use crate::{DType, Precision, Result, Tensor};
use regard_kernels::cuda::step::{Argument, Launch, Walk};
use regard_kernels::cuda::{Factors, Operand, Product, ProductBase};

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
    /// Stacks of matrices with any strides, whose leading axes are `lead` in both. Those of bf16 give f32.
    pub(super) fn product(
        &self,
        lead: &Dims,
        a: &Tensor,
        b: &Tensor,
        base: Base,
        precision: Precision,
    ) -> Result<Tensor> {
        let axes = lead.len();
        let [m, k, n] = [a.shape()[axes], a.shape()[axes + 1], b.shape()[axes + 1]];
        let mut shape = lead.to_vec();
        shape.extend([m, n]);
        let dtype = if a.dtype() == DType::BF16 { DType::F32 } else { a.dtype() };
        let to = self.uninit(&Dims::new(&shape)?, dtype)?;
        let walk = Walk::new(lead, &[&a.strides()[..axes], &b.strides()[..axes]])?;
        if let Some([by_a, by_b]) = walk.evenly() {
            let operand = |x: &Tensor, batch| -> Result<Operand> {
                let strides = [x.strides()[axes], x.strides()[axes + 1]];
                Ok(Operand { address: x.device_address()?, strides, batch })
            };
            let product = Product {
                numbers: match a.dtype() {
                    DType::F64 => Factors::F64,
                    DType::BF16 => Factors::Bf16,
                    _ if precision == Precision::Tf32 => Factors::Tf32,
                    _ => Factors::F32,
                },
                batch: walk.count(),
                sizes: [m, n, k],
                a: operand(a, by_a)?,
                b: operand(b, by_b)?,
                base: match base {
                    Base::None => ProductBase::None,
                    Base::Row(row) => ProductBase::Row(row.device_address()?),
                    Base::Matrix(matrix) => ProductBase::Matrices(matrix.device_address()?),
                },
                to: to.device_address()?,
            };
            // SAFETY: the tensors live, are this GPU's, and are as large as their shapes say.
            if unsafe { self.cuda.product(&product) }? {
                return Ok(to);
            }
        }
        if a.dtype() == DType::BF16 {
            let [a, b] = [a.to_dtype(DType::F32)?, b.to_dtype(DType::F32)?];
            return self.product(lead, &a, &b, base, precision);
        }
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
