//! Operations on numbers of 16 bits: each is done in f32, and its result, and every gradient that leaves it,
//! rounded once.

use crate::dtype::no_float;
use crate::{DType, Result, Tensor};

/// Refuses what is not computed in, by the name of the operation that was called, before another that it is
/// made of does.
pub(crate) fn check_float(op: &str, x: &Tensor) -> Result<()> {
    if x.dtype().is_float() { Ok(()) } else { Err(no_float(op, x.dtype())) }
}

/// An operation on bf16 or f16 by the same one in f32. Its inputs were found to be of one type.
pub(crate) fn in_f32<const N: usize>(
    inputs: [&Tensor; N],
    f: impl FnOnce([&Tensor; N]) -> Result<Tensor>,
) -> Result<Tensor> {
    let dtype = inputs[0].dtype();
    let mut wide = Vec::with_capacity(N);
    for x in inputs {
        wide.push(x.to_dtype(DType::F32)?);
    }
    f(std::array::from_fn(|n| &wide[n]))?.to_dtype(dtype)
}
