//! A window of neighbors.

use regard_tensor::{Result, Tensor};

/// Each vector with `reach` neighbors on each side beside it, `[B, N, D]` →
/// `[B, N, (2 · reach + 1) · D]`; zeros before the first and after the last. Padding holds zeros.
pub(super) fn neighbors(x: &Tensor, reach: usize) -> Result<Tensor> {
    let (b, n, d) = (x.shape()[0], x.shape()[1], x.shape()[2]);
    let nothing = Tensor::zeros(&[b, reach, d], x.dtype())?.to_device(x.device())?;
    let around = Tensor::cat(&[nothing.clone(), x.clone(), nothing], 1)?;
    let views = (0..=2 * reach).map(|from| around.narrow(1, from, n));
    Tensor::cat(&views.collect::<Result<Vec<_>>>()?, 2)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_vector_stands_between_its_neighbors_and_zeros_stand_past_the_ends() {
        let x = Tensor::from_vec(vec![1f32, 2.0, 3.0, 4.0, 5.0, 0.0], &[2, 3, 1]).unwrap();
        let y = neighbors(&x, 1).unwrap();
        assert_eq!(y.shape(), [2, 3, 3]);
        let first = [0.0, 1.0, 2.0, 1.0, 2.0, 3.0, 2.0, 3.0, 0.0];
        let second = [0.0, 4.0, 5.0, 4.0, 5.0, 0.0, 5.0, 0.0, 0.0];
        assert_eq!(y.to_vec::<f32>().unwrap(), [first, second].concat());
    }
}
