//! Picking rows and numbers by index, and adding them up by index.

use crate::backend;
use crate::layout::{Dims, axis};
use crate::ops::in_f32;
use crate::{DType, Device, Result, Tensor, ensure};

/// Indices as contiguous i64, each within 0..n, beside what they are indices of; the operation's name goes into the
/// refusal.
fn indices(op: &str, index: &Tensor, n: usize, of: &Tensor) -> Result<Tensor> {
    let index = index.as_indices(op)?.to_device(of.device())?;
    index.backend().check_indices(op, &index, n)?;
    Ok(index)
}

impl Tensor {
    /// The numbers as indices (token ids, classes, places): those of whole numbers, and of fractions
    /// that happen to be whole. Refuses any other by its place, with the operation's name.
    ///
    /// ```
    /// use regard_tensor::Tensor;
    /// assert_eq!(Tensor::from([2f32, 0.0]).to_indices("rows")?, [2, 0]);
    /// let error = Tensor::from([2f32, 1.7]).to_indices("rows").unwrap_err();
    /// assert_eq!(error.to_string(), "rows: 1.7 at place 1 is no index; an index is a whole number");
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn to_indices(&self, op: &str) -> Result<Vec<i64>> {
        self.as_indices(op)?.to_vec::<i64>()
    }

    /// As [`Tensor::to_indices`], where they lie.
    pub(crate) fn as_indices(&self, op: &str) -> Result<Tensor> {
        if self.dtype().is_differentiable() {
            // 2⁶³ itself is no i64.
            let fits = |x: f64| x.fract() == 0.0 && (-(2f64.powi(63))..2f64.powi(63)).contains(&x);
            let numbers = self.detach().to_dtype(DType::F64)?.to_vec::<f64>()?;
            if let Some(at) = numbers.iter().position(|&x| !fits(x)) {
                // An f32 is written as itself, not as the f64 nearest to it.
                let number = match self.dtype() {
                    DType::F64 => numbers[at].to_string(),
                    _ => (numbers[at] as f32).to_string(),
                };
                ensure!(
                    false,
                    "{op}: {number} at place {at} is no index; an index is a whole number"
                );
            }
        }
        let index = self.detach().to_dtype(DType::I64).map_err(|error| error.within(op))?;
        index.contiguous()
    }

    /// The rows that indices name: a table `[V, …]` and indices of any shape `[…i]` give
    /// `[…i, …]`. What an embedding is.
    /// Refuses an index that is not there, and a tensor without axes.
    ///
    /// ```
    /// use regard_tensor::Tensor;
    /// let table = Tensor::from_vec(vec![0f32, 0.1, 1.0, 1.1, 2.0, 2.1], &[3, 2])?;
    /// let rows = table.rows(&Tensor::from_vec(vec![2i64, 0], &[2])?)?;
    /// assert_eq!(rows.to_vec::<f32>()?, [2.0, 2.1, 0.0, 0.1]);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn rows(&self, index: &Tensor) -> Result<Tensor> {
        self.looked_up("rows", index, None)
    }

    /// As [`Tensor::rows`], by indices at hand: what a beam does when its hypotheses change places.
    /// Refuses an index that is not there, and a tensor without axes.
    ///
    /// ```
    /// use regard_tensor::Tensor;
    /// let x = Tensor::from_vec(vec![1f32, 2.0], &[2, 1])?;
    /// assert_eq!(x.pick(&[1, 1, 0])?.to_vec::<f32>()?, [2.0, 2.0, 1.0]);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn pick(&self, items: &[usize]) -> Result<Tensor> {
        ensure!(self.rank() >= 1, "pick: a tensor without axes has no rows");
        let n = self.shape()[0];
        if let Some(at) = items.iter().position(|&item| item >= n) {
            ensure!(false, "pick: index {} at place {at} is not within 0..{n}", items[at]);
        }
        let index = items.iter().map(|&item| item as i64).collect();
        self.looked_up("pick", &Tensor::from_vec(index, &[items.len()])?, None)
    }

    /// As [`Tensor::rows`], for a table of vectors of which one, the padding, learns nothing.
    /// Refuses an index that is not there, and a tensor without axes.
    ///
    /// ```
    /// use regard_tensor::{Parameter, Tensor};
    /// let table = Parameter::new("table", Tensor::from_vec(vec![0f32, 1.0, 2.0], &[3, 1])?)?;
    /// let ids = Tensor::from_vec(vec![0i64, 2, 2], &[3])?;
    /// let loss = table.tensor().embed(&ids, Some(0))?.sum_all()?;
    /// assert_eq!(loss.backward()?.get(&table).unwrap().to_vec::<f32>()?, [0.0, 0.0, 2.0]);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn embed(&self, index: &Tensor, padding: Option<usize>) -> Result<Tensor> {
        self.looked_up("embed", index, padding)
    }

    /// As [`Tensor::embed`], by the name of who asked.
    fn looked_up(
        &self,
        op: &'static str,
        index: &Tensor,
        padding: Option<usize>,
    ) -> Result<Tensor> {
        ensure!(self.rank() >= 1, "{op}: a tensor without axes has no rows");
        // In main memory rows are copied as they are; a table may be large, and few of its rows asked for.
        if self.dtype().is_half() && self.device() != Device::Cpu {
            return in_f32([self], |[x]| x.looked_up(op, index, padding));
        }
        let table = self.detach().contiguous()?;
        let n = self.shape()[0];
        if let Some(id) = padding {
            ensure!(id < n, "{op}: the padding {id} is not within 0..{n}");
        }
        let mut shape = index.shape().to_vec();
        shape.extend(&self.shape()[1..]);
        let shape = Dims::new(&shape).map_err(|error| error.within(op))?;
        let index = indices(op, index, n, self)?;
        let out = backend::together(op, &[self, &index])?.rows(&table, &index, &shape)?;
        let (before, dtype) = (*self.dims(), self.dtype());
        Ok(out.record("rows", &[self], move |g, to| {
            let g = if dtype.is_half() { g.to_dtype(DType::F32)? } else { g.contiguous()? };
            let sums = g.backend().add_rows("rows", &g, &index, padding, &before)?;
            to.add(0, sums.to_dtype(dtype)?)
        }))
    }

    /// Rows added up by index: `[E, …]` and an index per row give `[n, …]`, row i the sum of the
    /// rows whose index is i.
    /// Refuses indices that are not one for each row, or not below `n`.
    ///
    /// ```
    /// use regard_tensor::Tensor;
    /// let x = Tensor::from_vec(vec![1f32, 2.0, 4.0], &[3, 1])?;
    /// let sums = x.segment_sum(&Tensor::from_vec(vec![1i64, 0, 1], &[3])?, 3)?;
    /// assert_eq!(sums.to_vec::<f32>()?, [2.0, 5.0, 0.0]);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn segment_sum(&self, index: &Tensor, n: usize) -> Result<Tensor> {
        ensure!(
            index.rank() == 1 && self.rank() >= 1 && index.shape()[0] == self.shape()[0],
            "segment_sum: rows of shape {:?} and indices of shape {:?}",
            self.shape(),
            index.shape()
        );
        if self.dtype().is_half() {
            return in_f32([self], |[x]| x.segment_sum(index, n));
        }
        let mut shape = self.shape().to_vec();
        shape[0] = n;
        let shape = Dims::new(&shape).map_err(|error| error.within("segment_sum"))?;
        let places = indices("segment_sum", index, n, self)?;
        let x = self.detach().contiguous()?;
        let backend = backend::together("segment_sum", &[&x, &places])?;
        let out = backend.add_rows("segment_sum", &x, &places, None, &shape)?;
        let index = index.detach();
        Ok(out.record("segment_sum", &[self], move |g, to| to.add(0, g.rows(&index)?)))
    }

    /// Along an axis, the numbers that an index of the same rank names:
    /// out[…, i, …] = x[…, index[…, i, …], …]. All other axes have the same sizes.
    /// Refuses an index that is not there, and shapes that differ along another axis.
    ///
    /// ```
    /// use regard_tensor::Tensor;
    /// let x = Tensor::from_vec(vec![1f32, 2.0, 3.0, 4.0], &[2, 2])?;
    /// let picked = x.gather(1, &Tensor::from_vec(vec![1i64, 0], &[2, 1])?)?;
    /// assert_eq!(picked.to_vec::<f32>()?, [2.0, 3.0]);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn gather(&self, at: isize, index: &Tensor) -> Result<Tensor> {
        let at = axis("gather", at, self.shape())?;
        let same = index.rank() == self.rank()
            && (0..self.rank()).all(|x| x == at || index.shape()[x] == self.shape()[x]);
        ensure!(
            same,
            "gather: along axis {at}, {:?} and an index of shape {:?} differ elsewhere",
            self.shape(),
            index.shape()
        );
        if self.dtype().is_half() {
            return in_f32([self], |[x]| x.gather(at as isize, index));
        }
        let index = indices("gather", index, self.shape()[at], self)?;
        let x = self.detach().contiguous()?;
        let out = backend::together("gather", &[&x, &index])?.gather(&x, at, &index)?;
        let before = *self.dims();
        Ok(out.record("gather", &[self], move |g, to| {
            let g = g.contiguous()?;
            to.add(0, g.backend().gather_backward(&g, at, &index, &before)?)
        }))
    }
}
