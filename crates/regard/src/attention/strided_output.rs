//! A result that lies in memory as another tensor does.

#[cfg(feature = "cuda")]
use regard_kernels::cuda::DeviceRows;
use regard_kernels::{Element, ViewMut};
use regard_tensor::{Result, Scalar, Tensor};

/// A `[B, H, N, D]` result to be written, with the strides of another tensor: `[B, N, H, D]` where
/// heads were split off a projection, so that joining them again costs nothing.
pub(super) struct StridedOutput {
    numbers: Tensor,
    shape: [usize; 4],
    heads_inside: bool,
}

impl StridedOutput {
    pub(super) fn like(x: &Tensor, shape: [usize; 4]) -> Result<Self> {
        let [b, h, n, d] = shape;
        let strides = x.strides();
        let heads_inside = h > 1 && n > 1 && strides[2] > strides[1];
        let lies = if heads_inside { [b, n, h, d] } else { shape };
        Ok(Self { numbers: x.uninit_beside(&lies, x.dtype())?, shape, heads_inside })
    }

    fn strides(&self) -> [usize; 3] {
        let [_, h, n, d] = self.shape;
        if self.heads_inside { [n * h * d, d, h * d] } else { [h * n * d, n * d, d] }
    }

    pub(super) fn view_mut<E: Element + Scalar>(&mut self) -> Result<ViewMut<'_, E>> {
        let strides = self.strides();
        Ok(ViewMut::strided(slice_mut(&mut self.numbers)?, self.shape, strides)?)
    }

    /// Where it lies on a GPU.
    #[cfg(feature = "cuda")]
    pub(super) fn device_rows<E>(&self) -> Result<DeviceRows<E>> {
        Ok(DeviceRows::new(self.numbers.device_address()?, self.shape, self.strides())?)
    }

    pub(super) fn tensor(self) -> Result<Tensor> {
        if self.heads_inside { self.numbers.transpose(1, 2) } else { Ok(self.numbers) }
    }
}

/// The numbers of a tensor that a kernel writes.
pub(super) fn slice_mut<T: Scalar>(x: &mut Tensor) -> Result<&mut [T]> {
    x.as_mut_slice().map_err(|error| error.within("attention"))
}
