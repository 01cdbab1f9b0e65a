//! Pooling: the largest or the mean of each window of an image.

use crate::layout::{Dims, times};
use crate::ops::check_float;
use crate::ops::convolution::SlidingWindow;
use crate::{Result, Tensor, ensure};

impl Tensor {
    /// The largest number of each window: `[B, C, H, W]` → `[B, C, H', W']`; what lies around the
    /// image never wins. The gradient goes to the first of the largest.
    /// Refuses a tensor that is not `[B, C, H, W]`, and images smaller than the window.
    ///
    /// ```
    /// use regard_tensor::{Tensor, SlidingWindow};
    /// let x = Tensor::from_vec(vec![1f32, 2.0, 3.0, 4.0], &[1, 1, 2, 2])?;
    /// assert_eq!(x.max_pool2d(&SlidingWindow::new([2, 2]))?.to_vec::<f32>()?, [4.0]);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn max_pool2d(&self, window: &SlidingWindow) -> Result<Tensor> {
        let (b, c, places) = self.pooled("max_pool2d", window)?;
        ensure!(
            (0..2).all(|axis| window.padding[axis] <= window.kernel[axis] / 2),
            "max_pool2d: padding {:?} is more than half the kernel {:?}",
            window.padding,
            window.kernel
        );
        let each = window.area("max_pool2d")?;
        let count = times("max_pool2d", places[0], places[1])?;
        // Columns of −∞ where the window leaves the image: pad first, then pool without padding.
        let padded = self.padded_with(window.padding, f64::NEG_INFINITY)?;
        let bare = SlidingWindow { padding: [0, 0], ..*window };
        let columns = padded.unfolded("max_pool2d", &bare)?.reshape(&[b, c, each, count])?;
        columns.max(2)?.0.reshape(&[b, c, places[0], places[1]])
    }

    /// The mean of each window, zeros around the image counted: `[B, C, H, W]` → `[B, C, H', W']`.
    /// Refuses a tensor that is not `[B, C, H, W]`, and images smaller than the window.
    ///
    /// ```
    /// use regard_tensor::{Tensor, SlidingWindow};
    /// let x = Tensor::from_vec(vec![1f32, 2.0, 3.0, 4.0], &[1, 1, 2, 2])?;
    /// assert_eq!(x.mean_pool2d(&SlidingWindow::new([2, 2]))?.to_vec::<f32>()?, [2.5]);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn mean_pool2d(&self, window: &SlidingWindow) -> Result<Tensor> {
        let (b, c, places) = self.pooled("mean_pool2d", window)?;
        let each = window.area("mean_pool2d")?;
        let count = times("mean_pool2d", places[0], places[1])?;
        let columns = self.unfolded("mean_pool2d", window)?.reshape(&[b, c, each, count])?;
        columns.mean(2)?.reshape(&[b, c, places[0], places[1]])
    }

    fn pooled(&self, op: &str, window: &SlidingWindow) -> Result<(usize, usize, [usize; 2])> {
        ensure!(self.rank() == 4, "{op}: wants [B, C, H, W], was given {:?}", self.shape());
        check_float(op, self)?;
        let s = self.shape();
        let places = window.output_size([s[2], s[3]]).map_err(|error| error.within(op))?;
        Ok((s[0], s[1], places))
    }

    /// An image with a frame of one number around it.
    fn padded_with(&self, padding: [usize; 2], x: f64) -> Result<Tensor> {
        if padding == [0, 0] {
            return Ok(self.clone());
        }
        let s = self.shape();
        let [py, px] = padding;
        let (h, w) = (s[2], s[3]);
        let wide = Dims::new(&[s[0], s[1], h + 2 * py, w + 2 * px])?;
        let backend = self.backend();
        let mut out = backend.full(&wide, x, self.dtype())?;
        let middle = out.layout.narrow(2, py, h).narrow(3, px, w);
        backend.write_to(&mut out, &middle, &self.detach().contiguous()?)?;
        Ok(out
            .record("pad", &[self], move |g, to| to.add(0, g.narrow(2, py, h)?.narrow(3, px, w)?)))
    }
}
