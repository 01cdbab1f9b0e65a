//! Operations on numbers of 16 bits: each is done in f32, and its result, and every gradient that leaves it,
//! rounded once.

use crate::{DType, Result, Tensor};

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
