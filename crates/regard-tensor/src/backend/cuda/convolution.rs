//! The windows of an image laid out as columns, and laid back.

use super::{CudaBackend, at, real, whole};
use crate::backend::{Backend, Windows};
use crate::layout::Dims;
use crate::{Result, Tensor};
use regard_kernels::cuda::step::{Argument, Launch, SlideOf};

fn slide(windows: &Windows) -> Argument {
    let of = |x: [usize; 2]| x.map(|x| x as i64);
    let Windows { slide, size, places } = windows;
    Argument::Slide(SlideOf {
        kernel: of(slide.kernel),
        stride: of(slide.stride),
        padding: of(slide.padding),
        dilation: of(slide.dilation),
        size: of(*size),
        places: of(*places),
    })
}

impl CudaBackend {
    /// `unfold` or `fold`.
    pub(super) fn windows_there(
        &self,
        kernel: &str,
        x: &Tensor,
        windows: &Windows,
        shape: &Dims,
    ) -> Result<Tensor> {
        let to = self.uninit(shape, x.dtype())?;
        let arguments = [slide(windows), at(x)?, at(&to)?, whole(to.numel())];
        let text = real(x);
        self.launch(text, kernel, Launch::of_numbers(to.numel()), &arguments)?;
        Ok(to)
    }
}
