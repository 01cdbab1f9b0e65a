//! Matrix products; a transposed operand is read as it lies.

use crate::dtype::{Float, floats};
use crate::layout::{Dims, Layout};
use crate::{DType, Result, Tensor};
use regard_kernels::{Base, Cpu, Matrix};

/// The product of two stacks of matrices into contiguous numbers.
fn stacks<T: Float>(
    lead: &[usize],
    a: (&[T], &Layout),
    b: (&[T], &Layout),
    to: &mut [T],
) -> Result<()> {
    // Nothing to write, in however many matrices.
    if to.is_empty() {
        return Ok(());
    }
    let pairs: Vec<_> = (0..lead.iter().product())
        .map(|item| Ok([matrix(lead, a, item)?, matrix(lead, b, item)?]))
        .collect::<Result<_>>()?;
    Ok(Cpu::best().matmuls(&pairs, to)?)
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

/// A factor in the type that products are summed in.
fn wide(x: &Tensor) -> Result<Tensor> {
    if x.dtype() == DType::BF16 { x.to_dtype(DType::F32) } else { Ok(x.clone()) }
}

pub(super) fn matmul(lead: &Dims, a: &Tensor, b: &Tensor) -> Result<Tensor> {
    let (a, b) = (&wide(a)?, &wide(b)?);
    let mut shape = lead.to_vec();
    shape.extend([a.shape()[lead.len()], b.shape()[lead.len() + 1]]);
    floats!(a.dtype(), "matmul", T => {
        let (da, db) = (a.data::<T>("matmul")?, b.data::<T>("matmul")?);
        let (la, lb) = (&a.layout, &b.layout);
        Tensor::try_build(&shape, |to: &mut [T]| stacks(lead, (da, la), (db, lb), to))
    })
}

pub(super) fn linear(x: &Tensor, weight: &Tensor, bias: &Tensor) -> Result<Tensor> {
    let (x, weight) = (&wide(x)?, &wide(weight)?);
    let (lx, lw) = (&x.layout, weight.layout.transpose(0, 1));
    floats!(x.dtype(), "linear", T => {
        let (dx, dw) = (x.data::<T>("linear")?, weight.data::<T>("linear")?);
        let bias = bias.as_slice::<T>("linear")?;
        let (a, b) = (matrix(&[], (dx, lx), 0)?, matrix(&[], (dw, &lw), 0)?);
        Tensor::try_build(&[x.shape()[0], weight.shape()[0]], |to: &mut [T]| {
            Ok(Cpu::best().matmul(a, b, Base::Row(bias), to)?)
        })
    })
}
