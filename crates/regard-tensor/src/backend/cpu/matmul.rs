//! Matrix products; a transposed operand is read as it lies.

use crate::dtype::floats;
use crate::layout::{Dims, Layout};
use crate::{DType, Result, Tensor};
use half::bf16;
use regard_kernels::{Base, Cpu, Matrix};

/// The pairs of two stacks of matrices.
fn pairs<'a, T>(
    lead: &[usize],
    a: (&'a [T], &Layout),
    b: (&'a [T], &Layout),
) -> Result<Vec<[Matrix<'a, T>; 2]>> {
    let items = 0..lead.iter().product();
    items.map(|item| Ok([matrix(lead, a, item)?, matrix(lead, b, item)?])).collect()
}

/// One of a stack of matrices.
fn matrix<'a, T>(
    lead: &[usize],
    (data, layout): (&'a [T], &Layout),
    mut item: usize,
) -> Result<Matrix<'a, T>> {
    let mut at = layout.offset;
    for axis in (0..lead.len()).rev() {
        at += item % lead[axis] * layout.strides[axis];
        item /= lead[axis];
    }
    let sizes = [layout.shape[lead.len()], layout.shape[lead.len() + 1]];
    let strides = [layout.strides[lead.len()], layout.strides[lead.len() + 1]];
    // An empty one may lie beyond the end.
    Ok(Matrix::strided(data.get(at..).unwrap_or_default(), sizes, strides)?)
}

pub(super) fn matmul(lead: &Dims, a: &Tensor, b: &Tensor) -> Result<Tensor> {
    let mut shape = lead.to_vec();
    shape.extend([a.shape()[lead.len()], b.shape()[lead.len() + 1]]);
    let (la, lb) = (&a.layout, &b.layout);
    // Where there is nothing to write, the matrices may be however many.
    if a.dtype() == DType::BF16 {
        let (da, db) = (a.data::<bf16>("matmul")?, b.data::<bf16>("matmul")?);
        return Tensor::try_build(&shape, |to: &mut [f32]| match to.is_empty() {
            true => Ok(()),
            false => Ok(Cpu::best().matmuls_bf16(&pairs(lead, (da, la), (db, lb))?, to)?),
        });
    }
    floats!(a.dtype(), "matmul", T => {
        let (da, db) = (a.data::<T>("matmul")?, b.data::<T>("matmul")?);
        Tensor::try_build(&shape, |to: &mut [T]| match to.is_empty() {
            true => Ok(()),
            false => Ok(Cpu::best().matmuls(&pairs(lead, (da, la), (db, lb))?, to)?),
        })
    })
}

pub(super) fn linear(x: &Tensor, weight: &Tensor, bias: &Tensor) -> Result<Tensor> {
    let (lx, lw) = (&x.layout, weight.layout.transpose(0, 1));
    if x.dtype() == DType::BF16 {
        let (dx, dw) = (x.data::<bf16>("linear")?, weight.data::<bf16>("linear")?);
        let bias = bias.as_slice::<f32>("linear")?;
        let (a, b) = (matrix(&[], (dx, lx), 0)?, matrix(&[], (dw, &lw), 0)?);
        return Tensor::try_build(&[x.shape()[0], weight.shape()[0]], |to: &mut [f32]| {
            Ok(Cpu::best().matmul_bf16(a, b, Base::Row(bias), to)?)
        });
    }
    floats!(x.dtype(), "linear", T => {
        let (dx, dw) = (x.data::<T>("linear")?, weight.data::<T>("linear")?);
        let bias = bias.as_slice::<T>("linear")?;
        let (a, b) = (matrix(&[], (dx, lx), 0)?, matrix(&[], (dw, &lw), 0)?);
        Tensor::try_build(&[x.shape()[0], weight.shape()[0]], |to: &mut [T]| {
            Ok(Cpu::best().matmul(a, b, Base::Row(bias), to)?)
        })
    })
}
