//! Convolution as a matrix product: each place's window laid out as a column (`unfold`), times
//! the weights. Its gradient lays the columns back (`fold`).

use crate::backend::{self, Windows};
use crate::layout::{Dims, times};
use crate::ops::{check_float, same_dtype};
use crate::{Error, Result, Tensor, ensure};

/// How a window slides over an image: kernel, step, zeros around, gaps inside; height then width.
///
/// ```
/// use regard_tensor::SlidingWindow;
/// // halves an image: every second place, one row of zeros around
/// let halves = SlidingWindow { stride: [2, 2], padding: [1, 1], ..SlidingWindow::new([3, 3]) };
/// assert_eq!(halves.output_size([28, 28])?, [14, 14]);
/// # Ok::<(), regard_tensor::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlidingWindow {
    /// Height and width of the window.
    pub kernel: [usize; 2],
    /// How far it moves.
    pub stride: [usize; 2],
    /// Zeros around the image, on each side.
    pub padding: [usize; 2],
    /// Distance of the window's elements.
    pub dilation: [usize; 2],
}

impl SlidingWindow {
    /// A window that moves by one, with nothing around it.
    ///
    /// ```
    /// use regard_tensor::SlidingWindow;
    /// let window = SlidingWindow { padding: [1, 1], ..SlidingWindow::new([3, 3]) };
    /// assert_eq!(window.output_size([28, 28])?, [28, 28]);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn new(kernel: [usize; 2]) -> Self {
        Self { kernel, stride: [1, 1], padding: [0, 0], dilation: [1, 1] }
    }

    /// How many places it has on an image of this size, down and across.
    /// Refuses an image that is smaller than the window.
    ///
    /// ```
    /// use regard_tensor::SlidingWindow;
    /// assert_eq!(SlidingWindow::new([3, 2]).output_size([10, 10])?, [8, 9]);
    /// let error = SlidingWindow::new([3, 3]).output_size([2, 10]).unwrap_err();
    /// assert_eq!(error.to_string(), "a window of 3 does not fit on 2 (size [2, 10], padding [0, 0])");
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn output_size(&self, size: [usize; 2]) -> Result<[usize; 2]> {
        let mut places = [0; 2];
        for axis in 0..2 {
            ensure!(
                self.kernel[axis] > 0 && self.stride[axis] > 0 && self.dilation[axis] > 0,
                "a window needs a kernel, a stride and a dilation above 0, this one has {:?}, {:?} and {:?}",
                self.kernel,
                self.stride,
                self.dilation
            );
            let wide = self.padding[axis].checked_mul(2).and_then(|p| p.checked_add(size[axis]));
            let reach = (self.kernel[axis] - 1).checked_mul(self.dilation[axis]);
            let (Some(wide), Some(reach)) = (wide, reach.and_then(|n| n.checked_add(1))) else {
                return Err(Error::new(format!(
                    "a window of {:?} with dilation {:?} and padding {:?} is larger than memory can address",
                    self.kernel, self.dilation, self.padding
                )));
            };
            ensure!(
                reach <= wide,
                "a window of {reach} does not fit on {wide} (size {:?}, padding {:?})",
                size,
                self.padding
            );
            places[axis] = (wide - reach) / self.stride[axis] + 1;
        }
        Ok(places)
    }

    /// How many numbers a window has.
    pub(crate) fn area(&self, op: &str) -> Result<usize> {
        times(op, self.kernel[0], self.kernel[1])
    }

    /// Where an element of the window at a place lies, if it lies on the image.
    pub(crate) fn at(
        &self,
        axis: usize,
        place: usize,
        element: usize,
        size: usize,
    ) -> Option<usize> {
        let at = place * self.stride[axis] + element * self.dilation[axis];
        at.checked_sub(self.padding[axis]).filter(|&at| at < size)
    }
}

impl Tensor {
    /// The windows of an image as columns: `[B, C, H, W]` → `[B, C · kh · kw, places]`.
    /// Refuses a tensor that is not `[B, C, H, W]`, and images smaller than the window.
    ///
    /// ```
    /// use regard_tensor::{Tensor, SlidingWindow};
    /// let x = Tensor::from_vec(vec![1f32, 2.0, 3.0, 4.0], &[1, 1, 2, 2])?;
    /// let columns = x.unfold(&SlidingWindow::new([1, 2]))?;
    /// assert_eq!(columns.shape(), [1, 2, 2]);
    /// assert_eq!(columns.to_vec::<f32>()?, [1.0, 3.0, 2.0, 4.0]);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn unfold(&self, window: &SlidingWindow) -> Result<Tensor> {
        self.unfolded("unfold", window)
    }

    /// As [`Tensor::unfold`], by the name of who asked.
    pub(crate) fn unfolded(&self, op: &str, window: &SlidingWindow) -> Result<Tensor> {
        ensure!(self.rank() == 4, "{op}: wants [B, C, H, W], was given {:?}", self.shape());
        check_float(op, self)?;
        let [b, c] = [self.shape()[0], self.shape()[1]];
        let size = [self.shape()[2], self.shape()[3]];
        let places = window.output_size(size).map_err(|error| error.within(op))?;
        let each = window.area(op)?;
        let count = times(op, places[0], places[1])?;
        let shape = Dims::new(&[b, times(op, c, each)?, count])?;
        let windows = Windows { slide: *window, size, places };
        let out = self.backend().unfold(&self.detach().contiguous()?, &windows, &shape)?;
        let before = *self.dims();
        Ok(out.record("unfold", &[self], move |g, to| {
            to.add(0, g.backend().fold(&g.contiguous()?, &windows, &before)?)
        }))
    }

    /// Convolution of images: x `[B, C, H, W]`, weights `[O, C, kh, kw]` (the window's kernel),
    /// bias `[O]` → `[B, O, H', W']`.
    /// Refuses shapes that do not fit, two types, and inputs smaller than the window.
    ///
    /// ```
    /// use regard_tensor::{DType, Tensor, SlidingWindow};
    /// let x = Tensor::full(&[1, 1, 3, 3], 1.0, DType::F32)?;
    /// let w = Tensor::full(&[2, 1, 2, 2], 1.0, DType::F32)?;
    /// let y = x.conv2d(&w, None, &SlidingWindow::new([2, 2]))?;
    /// assert_eq!(y.shape(), [1, 2, 2, 2]);
    /// assert_eq!(y.to_vec::<f32>()?[0], 4.0);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn conv2d(
        &self,
        weight: &Tensor,
        bias: Option<&Tensor>,
        window: &SlidingWindow,
    ) -> Result<Tensor> {
        let (sx, sw) = (self.shape(), weight.shape());
        ensure!(
            sx.len() == 4 && sw.len() == 4 && sx[1] == sw[1] && sw[2..] == window.kernel,
            "conv2d: images of shape {sx:?}, weights of shape {sw:?} and a window of {:?} do not fit",
            window.kernel
        );
        if let Some(bias) = bias {
            let o = sw[0];
            ensure!(
                bias.shape() == [o],
                "conv2d: a bias of shape {:?} for {o} outputs",
                bias.shape()
            );
        }
        self.convolved("conv2d", weight, bias, window)
    }

    /// Images and weights of four axes that fit, by the name of who asked.
    fn convolved(
        &self,
        op: &str,
        weight: &Tensor,
        bias: Option<&Tensor>,
        window: &SlidingWindow,
    ) -> Result<Tensor> {
        let (sx, sw) = (self.shape(), weight.shape());
        same_dtype(op, ("the input is", self), ("the weights", weight))?;
        if let Some(bias) = bias {
            same_dtype(op, ("the input is", self), ("the bias", bias))?;
        }
        let [height, width] =
            window.output_size([sx[2], sx[3]]).map_err(|error| error.within(op))?;
        let (b, o) = (sx[0], sw[0]);
        // The images, which are smaller than their columns, are what is copied to a GPU.
        let images = self.constant_on(backend::meeting(&[self, weight]))?;
        let columns = images.unfolded(op, window)?;
        let weight = weight.reshape(&[o, sw[1] * sw[2] * sw[3]])?;
        let y = weight.matmul(&columns)?.reshape(&[b, o, height, width])?;
        let Some(bias) = bias else { return Ok(y) };
        y.add(&bias.reshape(&[o, 1, 1])?)
    }

    /// Convolution of sequences: x `[B, C, N]`, weights `[O, C, k]`, bias `[O]` → `[B, O, N']`.
    /// Refuses shapes that do not fit, two types, and inputs smaller than the window.
    ///
    /// ```
    /// use regard_tensor::{DType, Tensor};
    /// let x = Tensor::from_vec(vec![1f32, 2.0, 3.0, 4.0], &[1, 1, 4])?;
    /// let w = Tensor::from_vec(vec![1f32, 1.0, 1.0], &[1, 1, 3])?;
    /// // stride 1, one zero on each side, no gaps
    /// assert_eq!(x.conv1d(&w, None, 1, 1, 1)?.to_vec::<f32>()?, [3.0, 6.0, 9.0, 7.0]);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn conv1d(
        &self,
        weight: &Tensor,
        bias: Option<&Tensor>,
        stride: usize,
        padding: usize,
        dilation: usize,
    ) -> Result<Tensor> {
        let (sx, sw) = (self.shape(), weight.shape());
        ensure!(
            sx.len() == 3 && sw.len() == 3 && sx[1] == sw[1],
            "conv1d: wants [B, C, N] and weights [O, C, k], was given {sx:?} and {sw:?}"
        );
        if let Some(bias) = bias {
            let o = sw[0];
            ensure!(
                bias.shape() == [o],
                "conv1d: a bias of shape {:?} for {o} outputs",
                bias.shape()
            );
        }
        let window = SlidingWindow {
            kernel: [1, sw[2]],
            stride: [1, stride],
            padding: [0, padding],
            dilation: [1, dilation],
        };
        let x = self.unsqueeze(2)?;
        x.convolved("conv1d", &weight.unsqueeze(2)?, bias, &window)?.squeeze(2)
    }
}
