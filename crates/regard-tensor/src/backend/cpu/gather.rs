//! Picked by index, added up by index, and put side by side.

use crate::dtype::{floats, scalars};
use crate::layout::{Dims, around};
use crate::parallel;
use crate::{Result, Tensor, ensure};
use regard_kernels::Cpu;

pub(super) fn check_indices(op: &str, index: &Tensor, n: usize) -> Result<()> {
    let index = index.as_slice::<i64>(op)?;
    if let Some(at) = index.iter().position(|&i| i < 0 || i >= n as i64) {
        ensure!(false, "{op}: index {} at place {at} is not within 0..{n}", index[at]);
    }
    Ok(())
}

pub(super) fn rows(table: &Tensor, index: &Tensor, shape: &Dims) -> Result<Tensor> {
    let width: usize = table.shape()[1..].iter().product();
    let index = index.as_slice::<i64>("rows")?;
    scalars!(table.dtype(), T => {
        let from = table.as_slice::<T>("rows")?;
        Tensor::build(shape, |to: &mut [T]| {
            parallel::rows(to, width, |row, to| {
                to.copy_from_slice(&from[index[row] as usize * width..][..width]);
            });
        })
    })
}

pub(super) fn add_rows(
    op: &str,
    rows: &Tensor,
    index: &Tensor,
    padding: Option<usize>,
    shape: &Dims,
) -> Result<Tensor> {
    let width: usize = shape[1..].iter().product();
    let index = index.as_slice::<i64>(op)?;
    let padding = padding.map(|id| id as i64);
    floats!(rows.dtype(), op, T => {
        let from = rows.as_slice::<T>(op)?;
        Tensor::try_build(shape, |to: &mut [T]| {
            Ok(Cpu::best().embedding_backward(index, from, width, padding, to)?)
        })
    })
}

pub(super) fn gather(x: &Tensor, axis: usize, index: &Tensor) -> Result<Tensor> {
    let (_, n, inner) = around(x.shape(), axis);
    let picks = index.shape()[axis];
    let shape = *index.dims();
    let index = index.as_slice::<i64>("gather")?;
    floats!(x.dtype(), "gather", T => {
        let from = x.as_slice::<T>("gather")?;
        Tensor::build(&shape, |to: &mut [T]| {
            parallel::pieces(to, |start, to| {
                for (i, to) in to.iter_mut().enumerate() {
                    let place = start + i;
                    let (row, column) = (place / inner / picks, place % inner);
                    *to = from[(row * n + index[place] as usize) * inner + column];
                }
            });
        })
    })
}

pub(super) fn gather_backward(
    g: &Tensor,
    axis: usize,
    index: &Tensor,
    shape: &Dims,
) -> Result<Tensor> {
    let (outer, n, inner) = around(shape, axis);
    let picks = index.shape()[axis];
    let index = index.as_slice::<i64>("gather")?;
    floats!(g.dtype(), "gather", T => {
        let from = g.as_slice::<T>("gather")?;
        Tensor::build(shape, |to: &mut [T]| {
            if n * inner == 0 || outer == 0 {
                return;
            }
            parallel::rows(to, n * inner, |row, to| {
                to.fill(0.0);
                for place in row * picks * inner..(row + 1) * picks * inner {
                    to[index[place] as usize * inner + place % inner] += from[place];
                }
            });
        })
    })
}

pub(super) fn cat(parts: &[Tensor], axis: usize, shape: &Dims) -> Result<Tensor> {
    let inner: usize = shape[axis + 1..].iter().product();
    let dtype = parts[0].dtype();
    scalars!(dtype, T => {
        let from = parts.iter().map(|x| Ok((x.as_slice::<T>("cat")?, x.shape()[axis] * inner)));
        let from = from.collect::<Result<Vec<_>>>()?;
        Tensor::build(shape, |to: &mut [T]| {
            parallel::rows(to, shape[axis] * inner, |row, to| {
                let mut start = 0;
                for &(from, n) in &from {
                    to[start..start + n].copy_from_slice(&from[row * n..][..n]);
                    start += n;
                }
            });
        })
    })
}
