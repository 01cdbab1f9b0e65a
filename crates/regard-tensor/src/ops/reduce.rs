//! Many numbers to few: sums, means, largest values.

use crate::backend::Extreme;
use crate::layout::{Dims, axis};
use crate::ops::{check_float, in_f32};
use crate::{DType, Result, Tensor, ensure};

impl Tensor {
    /// The sum over an axis, which goes away.
    /// Refuses an axis that is not there, whole numbers and bools.
    ///
    /// ```
    /// let x = regard_tensor::Tensor::from_vec(vec![1f32, 2.0, 3.0, 4.0], &[2, 2])?;
    /// assert_eq!(x.sum(0)?.to_vec::<f32>()?, [4.0, 6.0]);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn sum(&self, at: isize) -> Result<Tensor> {
        self.summed("sum", at)
    }

    /// As [`Tensor::sum`], by the name of who asked.
    pub(crate) fn summed(&self, op: &str, at: isize) -> Result<Tensor> {
        if self.dtype().is_half() {
            return in_f32([self], |[x]| x.summed(op, at));
        }
        let at = axis(op, at, self.shape())?;
        check_float(op, self)?;
        let out = self.backend().sum(&self.detach().contiguous()?, at)?;
        let before = *self.dims();
        Ok(out.record("sum", &[self], move |g, to| {
            to.add(0, g.unsqueeze(at as isize)?.broadcast_to(&before)?)
        }))
    }

    /// The sum of all numbers.
    /// Refuses whole numbers and bools.
    ///
    /// ```
    /// let x = regard_tensor::Tensor::from_vec(vec![1f32, 2.0, 3.0, 4.0], &[2, 2])?;
    /// assert_eq!(x.sum_all()?.item()?, 10.0);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn sum_all(&self) -> Result<Tensor> {
        self.reshape(&[self.numel()])?.summed("sum_all", 0)
    }

    /// The mean over an axis, which goes away.
    /// Refuses an axis that is not there or empty, whole numbers and bools.
    ///
    /// ```
    /// let x = regard_tensor::Tensor::from_vec(vec![1f32, 2.0, 3.0, 4.0], &[2, 2])?;
    /// assert_eq!(x.mean(1)?.to_vec::<f32>()?, [1.5, 3.5]);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn mean(&self, at: isize) -> Result<Tensor> {
        self.averaged("mean", at)
    }

    /// As [`Tensor::mean`], by the name of who asked.
    pub(crate) fn averaged(&self, op: &str, at: isize) -> Result<Tensor> {
        let n = self.shape()[axis(op, at, self.shape())?];
        ensure!(n > 0, "{op}: axis {at} of {:?} is empty", self.shape());
        // A sum of f16 would soon be too large for one.
        if self.dtype().is_half() {
            return in_f32([self], |[x]| x.averaged(op, at));
        }
        self.summed(op, at)?.scale(1.0 / n as f64)
    }

    /// The mean of all numbers.
    /// Refuses a tensor without numbers, whole numbers and bools.
    ///
    /// ```
    /// let x = regard_tensor::Tensor::from_vec(vec![1f32, 2.0, 3.0, 4.0], &[2, 2])?;
    /// assert_eq!(x.mean_all()?.item()?, 2.5);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn mean_all(&self) -> Result<Tensor> {
        ensure!(self.numel() > 0, "mean_all: {:?} has no numbers", self.shape());
        self.reshape(&[self.numel()])?.averaged("mean_all", 0)
    }

    /// The largest number along an axis, which goes away, and its index; the first among equals,
    /// a NaN before any number. The gradient goes to the one chosen.
    /// Refuses an axis that is not there or empty, whole numbers and bools.
    ///
    /// ```
    /// let x = regard_tensor::Tensor::from_vec(vec![1f32, 5.0, 3.0, 4.0], &[2, 2])?;
    /// let (largest, index) = x.max(1)?;
    /// assert_eq!(largest.to_vec::<f32>()?, [5.0, 4.0]);
    /// assert_eq!(index.to_vec::<i64>()?, [1, 1]);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn max(&self, at: isize) -> Result<(Tensor, Tensor)> {
        self.extreme("max", at, Extreme::Largest)
    }

    /// The smallest number along an axis and where it is, the first of equals; NaN where there is one.
    /// Refuses an axis that is not there or empty, whole numbers and bools.
    ///
    /// ```
    /// use regard_tensor::Tensor;
    /// let (least, at) = Tensor::from([[3f32, 1.0, 2.0]]).min(1)?;
    /// assert_eq!((least.to_vec::<f32>()?, at.to_vec::<i64>()?), (vec![1.0], vec![1]));
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn min(&self, at: isize) -> Result<(Tensor, Tensor)> {
        self.extreme("min", at, Extreme::Smallest)
    }

    /// Where the largest number along an axis is, the first of equals; that of a NaN where there is
    /// one.
    /// Refuses an axis that is not there or empty, whole numbers and bools.
    ///
    /// ```
    /// let x = regard_tensor::Tensor::from([[3f32, 1.0, 2.0]]);
    /// assert_eq!(x.argmax(1)?.to_vec::<i64>()?, [0]);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn argmax(&self, at: isize) -> Result<Tensor> {
        Ok(self.detach().extreme("argmax", at, Extreme::Largest)?.1)
    }

    /// As [`Tensor::argmax`], of the smallest.
    /// Refuses an axis that is not there or empty, whole numbers and bools.
    ///
    /// ```
    /// let x = regard_tensor::Tensor::from([[3f32, 1.0, 2.0]]);
    /// assert_eq!(x.argmin(1)?.to_vec::<i64>()?, [1]);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn argmin(&self, at: isize) -> Result<Tensor> {
        Ok(self.detach().extreme("argmin", at, Extreme::Smallest)?.1)
    }

    pub(crate) fn extreme(&self, op: &str, at: isize, which: Extreme) -> Result<(Tensor, Tensor)> {
        let at = axis(op, at, self.shape())?;
        ensure!(self.shape()[at] > 0, "{op}: axis {at} of {:?} is empty", self.shape());
        let x = match self.dtype().is_half() {
            true => self.detach().to_dtype(DType::F32)?,
            false => self.detach(),
        };
        let index = self.backend().arg_extreme(op, &x.contiguous()?, at, which)?;
        let largest =
            self.gather(at as isize, &index.unsqueeze(at as isize)?)?.squeeze(at as isize)?;
        Ok((largest, index))
    }

    /// Summed over the axes along which `shape` was broadcast to this tensor's.
    pub(crate) fn sum_to(&self, shape: &Dims) -> Result<Tensor> {
        if self.dims() == shape {
            return Ok(self.clone());
        }
        if self.dtype().is_half() {
            return in_f32([self], |[x]| x.sum_to(shape));
        }
        let mut x = self.clone();
        while x.rank() > shape.len() {
            x = x.sum(0)?;
        }
        for at in 0..shape.len() {
            if shape[at] == 1 && x.shape()[at] != 1 {
                x = x.sum(at as isize)?.unsqueeze(at as isize)?;
            }
        }
        Ok(x)
    }
}
