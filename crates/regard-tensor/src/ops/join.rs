//! Tensors put side by side, and taken apart.

use crate::backend;
use crate::layout::{Dims, axis, new_axis};
use crate::{Error, Result, Tensor, ensure};

/// The sum of sizes along an axis.
fn total(op: &str, sizes: &[usize]) -> Result<usize> {
    let sum = sizes.iter().try_fold(0usize, |sum, &size| sum.checked_add(size));
    sum.ok_or_else(|| {
        Error::new(format!("{op}: sizes {sizes:?} add up to more numbers than memory can address"))
    })
}

impl Tensor {
    /// Tensors one behind the other along an axis; their other axes are equal.
    /// Refuses no tensors at all, an axis that is not there, shapes that do not fit, and two types.
    ///
    /// ```
    /// use regard_tensor::Tensor;
    /// let a = Tensor::from_vec(vec![1f32, 2.0], &[1, 2])?;
    /// assert_eq!(Tensor::cat(&[a.clone(), a], 0)?.shape(), [2, 2]);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn cat(parts: &[Tensor], at: isize) -> Result<Tensor> {
        let Some(first) = parts.first() else {
            return Err(crate::Error::new("cat: no tensors were given"));
        };
        let at = axis("cat", at, first.shape())?;
        for part in parts {
            let fits = part.rank() == first.rank()
                && part.dtype() == first.dtype()
                && (0..first.rank()).all(|x| x == at || part.shape()[x] == first.shape()[x]);
            ensure!(
                fits,
                "cat: along axis {at}, {} {:?} and {} {:?} do not fit",
                first.dtype(),
                first.shape(),
                part.dtype(),
                part.shape()
            );
        }
        let sizes: Vec<usize> = parts.iter().map(|part| part.shape()[at]).collect();
        let mut shape = first.shape().to_vec();
        shape[at] = total("cat", &sizes)?;
        let shape = Dims::new(&shape).map_err(|error| error.within("cat"))?;
        let inputs: Vec<&Tensor> = parts.iter().collect();
        let device = backend::meeting(&inputs);
        let plain = parts.iter().map(|part| part.constant_on(device)?.detach().contiguous());
        let plain = plain.collect::<Result<Vec<_>>>()?;
        let lying: Vec<&Tensor> = plain.iter().collect();
        let out = backend::together("cat", &lying)?.cat(&plain, at, &shape)?;
        Ok(out.record("cat", &inputs, move |g, to| {
            let mut start = 0;
            for (input, &size) in sizes.iter().enumerate() {
                if to.want(input) {
                    to.add(input, g.narrow(at as isize, start, size)?)?;
                }
                start += size;
            }
            Ok(())
        }))
    }

    /// Tensors of one shape along a new axis; -1 is behind all others.
    /// Refuses no tensors at all, an axis that is not there, shapes that do not fit, and two types.
    ///
    /// ```
    /// use regard_tensor::Tensor;
    /// let a = Tensor::from_vec(vec![1f32, 2.0], &[2])?;
    /// assert_eq!(Tensor::stack(&[a.clone(), a], 1)?.to_vec::<f32>()?, [1.0, 1.0, 2.0, 2.0]);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn stack(parts: &[Tensor], at: isize) -> Result<Tensor> {
        let Some(first) = parts.first() else {
            return Err(Error::new("stack: no tensors were given"));
        };
        let at = new_axis("stack", at, first.shape())? as isize;
        for part in parts {
            ensure!(
                part.dtype() == first.dtype() && part.shape() == first.shape(),
                "stack: {} {:?} and {} {:?} do not fit",
                first.dtype(),
                first.shape(),
                part.dtype(),
                part.shape()
            );
        }
        let parts = parts.iter().map(|part| part.unsqueeze(at)).collect::<Result<Vec<_>>>();
        let parts = parts.map_err(|error| error.within("stack"))?;
        Tensor::cat(&parts, at)
    }

    /// The parts of an axis, of these sizes, which add up to its own. The parts' gradients are put
    /// together in one go.
    /// Refuses an axis that is not there, and sizes that do not add up to it.
    ///
    /// ```
    /// use regard_tensor::Tensor;
    /// let x = Tensor::from_vec(vec![1f32, 2.0, 3.0], &[3])?;
    /// let parts = x.split(0, &[1, 2])?;
    /// assert_eq!(parts[1].to_vec::<f32>()?, [2.0, 3.0]);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn split(&self, at: isize, sizes: &[usize]) -> Result<Vec<Tensor>> {
        let at = axis("split", at, self.shape())?;
        ensure!(
            total("split", sizes)? == self.shape()[at],
            "split: sizes {sizes:?} do not add up to axis {at} of {:?}",
            self.shape()
        );
        let mut start = 0;
        let mut parts = Vec::with_capacity(sizes.len());
        for &size in sizes {
            parts.push(self.detach().narrow(at as isize, start, size)?);
            start += size;
        }
        let shapes: Vec<Vec<usize>> = parts.iter().map(|part| part.shape().to_vec()).collect();
        let like = self.zero()?;
        Ok(Tensor::record_all("split", parts, &[self], move |gradients, to| {
            let parts = gradients.into_iter().zip(shapes);
            let parts = parts.map(|(g, shape)| g.map_or_else(|| like.broadcast_to(&shape), Ok));
            to.add(0, Tensor::cat(&parts.collect::<Result<Vec<_>>>()?, at as isize)?)
        }))
    }

    /// Cut along an axis into `count` parts of equal size, the last perhaps smaller; into fewer where
    /// there is not enough for all.
    /// Refuses an axis that is not there, and 0 parts.
    ///
    /// ```
    /// use regard_tensor::{DType, Tensor};
    /// let parts = Tensor::zeros(&[2, 5], DType::F32)?.chunk(1, 3)?;
    /// assert_eq!(parts.iter().map(|x| x.shape()[1]).collect::<Vec<_>>(), [2, 2, 1]);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn chunk(&self, at: isize, count: usize) -> Result<Vec<Tensor>> {
        ensure!(count > 0, "chunk: into 0 parts");
        let n = self.shape()[axis("chunk", at, self.shape())?];
        let each = n.div_ceil(count).max(1);
        let mut sizes = Vec::new();
        sizes.try_reserve_exact(n.div_ceil(each)).map_err(|_| {
            Error::memory(format!("chunk: there is no memory for {} parts", n.div_ceil(each)))
        })?;
        sizes.extend((0..n).step_by(each).map(|from| each.min(n - from)));
        // Of nothing there is one part: nothing.
        self.split(at, if n == 0 { &[0] } else { &sizes })
    }
}
