//! Tensors that move toward others, in place.

use crate::backend;
use crate::ops::{own, same_dtype};
use crate::{DType, Result, Tensor, ensure};

/// Moves each tensor toward another by a share of the way, in place and off the tape: x + weight · (target − x), as a moving
/// average of parameters does after every step. One kernel for all on a GPU. Refuses lists of two lengths, shapes and types that
/// differ, whole numbers and bools, tensors of 16 bits, and devices that differ.
///
/// ```
/// use regard_tensor::{Tensor, lerp_all};
/// let mut means = [Tensor::from([0f32, 8.0]), Tensor::from([1f32])];
/// lerp_all(&mut means, &[Tensor::from([4f32, 0.0]), Tensor::from([1f32])], 0.25)?;
/// assert_eq!(means[0].to_vec::<f32>()?, [1.0, 6.0]);
/// assert_eq!(means[1].to_vec::<f32>()?, [1.0]);
/// # Ok::<(), regard_tensor::Error>(())
/// ```
pub fn lerp_all(all: &mut [Tensor], targets: &[Tensor], weight: f64) -> Result<()> {
    ensure!(
        all.len() == targets.len(),
        "lerp_all: {} tensors and {} targets",
        all.len(),
        targets.len()
    );
    for (x, target) in all.iter().zip(targets) {
        same_dtype("lerp_all", ("a tensor is", x), ("its target", target))?;
        ensure!(
            x.shape() == target.shape(),
            "lerp_all: a tensor has shape {:?}, its target {:?}",
            x.shape(),
            target.shape()
        );
        ensure!(
            matches!(x.dtype(), DType::F32 | DType::F64),
            "lerp_all: wants f32 or f64, was given {}",
            x.dtype()
        );
        backend::together("lerp_all", &[&all[0], x, target])?;
    }
    for x in all.iter_mut() {
        *x = x.detach();
        own(x)?;
    }
    for dtype in [DType::F32, DType::F64] {
        let pairs = all.iter_mut().zip(targets).filter(|(x, _)| x.dtype() == dtype);
        let mut pairs = pairs.map(|(x, target)| Ok((x, target.detach().contiguous()?)));
        let mut pairs = pairs.by_ref().collect::<Result<Vec<_>>>()?;
        if let Some(backend) = pairs.first().map(|(x, _)| x.backend()) {
            backend.lerp(&mut pairs, weight)?;
        }
    }
    Ok(())
}
