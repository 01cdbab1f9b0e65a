//! Other views of the same numbers. None of them copies, but for `contiguous` and a `reshape`
//! that the strides do not allow.

use crate::backend;
use crate::layout::{Dims, axis, new_axis};
use crate::{Result, Tensor, ensure};

impl Tensor {
    /// The axes from `first` to `last` as one; a negative one counts from the end.
    /// Refuses axes that are not there.
    ///
    /// ```
    /// use regard_tensor::{DType, Tensor};
    /// let x = Tensor::zeros(&[2, 3, 4], DType::F32)?;
    /// assert_eq!(x.flatten(1, -1)?.shape(), [2, 12]);
    /// assert_eq!(x.flatten(0, -1)?.shape(), [24]);
    /// assert_eq!(x.flatten(2, 1).unwrap_err().to_string(), "flatten: axes 2 to 1 of [2, 3, 4]");
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn flatten(&self, first: isize, last: isize) -> Result<Tensor> {
        let shape = self.shape();
        let (from, to) = (axis("flatten", first, shape)?, axis("flatten", last, shape)?);
        ensure!(from <= to, "flatten: axes {first} to {last} of {shape:?}");
        let middle: usize = shape[from..=to].iter().product();
        self.reshape(&[&shape[..from], &[middle], &shape[to + 1..]].concat())
    }

    /// The same numbers in another shape; refuses one with another count.
    ///
    /// ```
    /// use regard_tensor::Tensor;
    /// let x = Tensor::from_vec((0..6).map(|x| x as f32).collect(), &[2, 3])?;
    /// assert_eq!(x.reshape(&[3, 2])?.shape(), [3, 2]);
    /// assert!(x.reshape(&[4]).is_err());
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn reshape(&self, shape: &[usize]) -> Result<Tensor> {
        let dims = Dims::new(shape).map_err(|error| error.within("reshape"))?;
        let count = dims.iter().product::<usize>();
        ensure!(
            count == self.numel(),
            "reshape: {:?} has {} numbers, {shape:?} has {count}",
            self.shape(),
            self.numel()
        );
        let Some(layout) = self.layout.reshape(&dims) else {
            return self.contiguous()?.reshape(shape);
        };
        let before = *self.dims();
        Ok(self
            .with_layout(layout)
            .record("reshape", &[self], move |g, to| to.add(0, g.reshape(&before)?)))
    }

    /// Two axes swapped.
    /// Refuses axes that are not there.
    ///
    /// ```
    /// use regard_tensor::Tensor;
    /// let x = Tensor::from_vec(vec![1f32, 2.0, 3.0, 4.0], &[2, 2])?;
    /// assert_eq!(x.transpose(0, 1)?.to_vec::<f32>()?, [1.0, 3.0, 2.0, 4.0]);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn transpose(&self, a: isize, b: isize) -> Result<Tensor> {
        let (x, y) = (axis("transpose", a, self.shape())?, axis("transpose", b, self.shape())?);
        let layout = self.layout.transpose(x, y);
        Ok(self
            .with_layout(layout)
            .record("transpose", &[self], move |g, to| to.add(0, g.transpose(a, b)?)))
    }

    /// The axes in another order.
    /// Refuses what is not every axis once.
    ///
    /// ```
    /// use regard_tensor::Tensor;
    /// let x = Tensor::from_vec(vec![0f32; 24], &[2, 3, 4])?;
    /// assert_eq!(x.permute(&[2, 0, 1])?.shape(), [4, 2, 3]);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn permute(&self, order: &[usize]) -> Result<Tensor> {
        let mut seen = order.to_vec();
        seen.sort_unstable();
        ensure!(
            seen == (0..self.rank()).collect::<Vec<_>>(),
            "permute: {order:?} is no order of the {} axes of {:?}",
            self.rank(),
            self.shape()
        );
        let mut layout = self.layout;
        let mut back = vec![0; order.len()];
        for (to, &from) in order.iter().enumerate() {
            layout.shape[to] = self.layout.shape[from];
            layout.strides[to] = self.layout.strides[from];
            back[from] = to;
        }
        Ok(self
            .with_layout(layout)
            .record("permute", &[self], move |g, to| to.add(0, g.permute(&back)?)))
    }

    /// A range of an axis.
    /// Refuses an axis or a place that is not there.
    ///
    /// ```
    /// use regard_tensor::Tensor;
    /// let x = Tensor::from_vec(vec![1f32, 2.0, 3.0, 4.0], &[2, 2])?;
    /// assert_eq!(x.narrow(-1, 1, 1)?.to_vec::<f32>()?, [2.0, 4.0]);
    /// assert_eq!(x.narrow(0, 0, 0)?.narrow(1, 1, 1)?.shape(), [0, 1]);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn narrow(&self, at: isize, start: usize, length: usize) -> Result<Tensor> {
        let at = axis("narrow", at, self.shape())?;
        let size = self.shape()[at];
        ensure!(
            start.checked_add(length).is_some_and(|end| end <= size),
            "narrow: {length} from {start} on leave axis {at} of {:?}",
            self.shape()
        );
        let layout = self.layout.narrow(at, start, length);
        Ok(self.with_layout(layout).record("narrow", &[self], move |g, to| {
            to.add_part(0, &g, |whole| whole.narrow(at, start, length))
        }))
    }

    /// One place of an axis, which goes away.
    /// Refuses an axis or a place that is not there.
    ///
    /// ```
    /// use regard_tensor::Tensor;
    /// let x = Tensor::from_vec(vec![1f32, 2.0, 3.0, 4.0], &[2, 2])?;
    /// assert_eq!(x.select(0, 1)?.to_vec::<f32>()?, [3.0, 4.0]);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn select(&self, at: isize, index: usize) -> Result<Tensor> {
        let at = axis("select", at, self.shape())?;
        ensure!(
            index < self.shape()[at],
            "select: index {index} of axis {at} of {:?}",
            self.shape()
        );
        let layout = self.layout.narrow(at, index, 1).remove(at);
        Ok(self.with_layout(layout).record("select", &[self], move |g, to| {
            to.add_part(0, &g, |whole| whole.narrow(at, index, 1).remove(at))
        }))
    }

    /// A new axis of size 1, at a place from 0 to the rank; -1 is behind all others.
    /// Refuses a place for the axis that is not there, and more axes than a tensor has.
    ///
    /// ```
    /// let x = regard_tensor::Tensor::from_vec(vec![0f32; 6], &[2, 3])?;
    /// assert_eq!(x.unsqueeze(1)?.shape(), [2, 1, 3]);
    /// assert_eq!(x.unsqueeze(-1)?.shape(), [2, 3, 1]);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn unsqueeze(&self, at: isize) -> Result<Tensor> {
        let at = new_axis("unsqueeze", at, self.shape())?;
        let layout = self.layout.insert(at)?;
        Ok(self
            .with_layout(layout)
            .record("unsqueeze", &[self], move |g, to| to.add(0, g.squeeze(at as isize)?)))
    }

    /// Without an axis of size 1.
    /// Refuses an axis that is not there, or whose size is not 1.
    ///
    /// ```
    /// let x = regard_tensor::Tensor::from_vec(vec![0f32; 6], &[2, 1, 3])?;
    /// assert_eq!(x.squeeze(1)?.shape(), [2, 3]);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn squeeze(&self, at: isize) -> Result<Tensor> {
        let at = axis("squeeze", at, self.shape())?;
        ensure!(
            self.shape()[at] == 1,
            "squeeze: axis {at} of {:?} has size {}, not 1",
            self.shape(),
            self.shape()[at]
        );
        let layout = self.layout.remove(at);
        Ok(self
            .with_layout(layout)
            .record("squeeze", &[self], move |g, to| to.add(0, g.unsqueeze(at as isize)?)))
    }

    /// Repeated along axes of size 1 and new leading axes, without a copy.
    /// Refuses a shape that this one does not broadcast to.
    ///
    /// ```
    /// let x = regard_tensor::Tensor::from_vec(vec![1f32, 2.0], &[2, 1])?;
    /// assert_eq!(x.broadcast_to(&[2, 2])?.to_vec::<f32>()?, [1.0, 1.0, 2.0, 2.0]);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn broadcast_to(&self, shape: &[usize]) -> Result<Tensor> {
        let dims = Dims::new(shape).map_err(|error| error.within("broadcast_to"))?;
        let Some(layout) = self.layout.broadcast(&dims) else {
            return Err(crate::Error::new(format!(
                "broadcast_to: {:?} does not broadcast to {shape:?}",
                self.shape()
            )));
        };
        let before = *self.dims();
        Ok(self
            .with_layout(layout)
            .record("broadcast_to", &[self], move |g, to| to.add(0, g.sum_to(&before)?)))
    }

    /// The same numbers contiguous: row by row, without a gap. No copy where they lie so already.
    /// Refuses only where there is no memory for the copy.
    ///
    /// ```
    /// let x = regard_tensor::Tensor::from_vec(vec![0f32; 6], &[2, 3])?;
    /// assert_eq!(x.transpose(0, 1)?.contiguous()?.shape(), [3, 2]);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn contiguous(&self) -> Result<Tensor> {
        if self.layout.is_contiguous() {
            return Ok(self.clone());
        }
        let out = self.backend().copy(self)?;
        Ok(out.record("contiguous", &[self], |g, to| to.add(0, g)))
    }

    /// Writes another tensor over a range of an axis, in place where no other tensor shares the
    /// storage, and in a copy of it where one does.
    /// Refuses a tensor on the tape: what was there may be needed for a gradient.
    ///
    /// ```
    /// use regard_tensor::{DType, Tensor};
    /// let mut x = Tensor::zeros(&[4], DType::F32)?;
    /// x.write(0, 1, &Tensor::from_vec(vec![5f32, 6.0], &[2])?)?;
    /// assert_eq!(x.to_vec::<f32>()?, [0.0, 5.0, 6.0, 0.0]);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn write(&mut self, at: isize, start: usize, x: &Tensor) -> Result<()> {
        ensure!(
            !self.has_gradient() && !x.has_gradient(),
            "write: a tensor on the tape cannot be overwritten"
        );
        let axis = axis("write", at, self.shape())?;
        let length = x.shape().get(axis).copied().unwrap_or(0);
        ensure!(
            start.checked_add(length).is_some_and(|end| end <= self.shape()[axis]),
            "write: {length} from {start} on leave axis {axis} of {:?}",
            self.shape()
        );
        let part = self.narrow(at, start, length)?;
        ensure!(
            part.shape() == x.shape() && self.dtype() == x.dtype(),
            "write: {} {:?} over a part of {} {:?}",
            x.dtype(),
            x.shape(),
            self.dtype(),
            self.shape()
        );
        let layout = part.layout;
        drop(part);
        if !self.is_own() {
            *self = self.backend().copy(self)?;
            return self.write(at, start, x);
        }
        let x = x.constant_on(self.device())?.contiguous()?;
        backend::together("write", &[self, &x])?.write_to(self, &layout, &x)
    }
}
