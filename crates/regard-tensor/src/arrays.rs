//! Arrays of `ndarray` as tensors and back, without a copy.

use crate::{Error, Result, Scalar, Tensor};
use ndarray::{ArrayBase, ArrayViewD, Data, Dimension, IxDyn, ShapeBuilder};

impl Tensor {
    /// From an array, whose numbers become the tensor's own: without a copy where they lie row by row, as
    /// those of a new array do; in that order otherwise. A view is copied. Refuses more than six axes.
    ///
    /// ```
    /// use ndarray::array;
    /// use regard_tensor::Tensor;
    /// let x = Tensor::from_ndarray(array![[1f32, 2.0], [3.0, 4.0]])?;
    /// assert_eq!(x.sum(0)?.to_vec::<f32>()?, [4.0, 6.0]);
    /// let view = Tensor::from_ndarray(array![[1f32, 2.0], [3.0, 4.0]].t())?;
    /// assert_eq!(view.to_vec::<f32>()?, [1.0, 3.0, 2.0, 4.0]);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn from_ndarray<S, D>(array: ArrayBase<S, D>) -> Result<Self>
    where
        S: Data<Elem: Scalar>,
        D: Dimension,
    {
        let array = array.into_owned();
        let shape = array.shape().to_vec();
        let count = array.len();
        if array.is_standard_layout() {
            let (mut data, offset) = array.into_raw_vec_and_offset();
            // An array that was cut keeps all of its vector.
            let offset = offset.unwrap_or(0);
            data.truncate(offset + count);
            data.drain(..offset);
            return Self::from_vec(data, &shape);
        }
        Self::from_vec(array.iter().copied().collect(), &shape)
    }

    /// The tensor's numbers seen as an array, without a copy, whatever its strides. Refuses another type and a
    /// tensor on a GPU.
    ///
    /// ```
    /// use regard_tensor::Tensor;
    /// let x = Tensor::from([[1f32, 2.0, 3.0], [4.0, 5.0, 6.0]]).transpose(0, 1)?;
    /// let array = x.as_ndarray::<f32>()?;
    /// assert_eq!((array.shape(), array[[2, 1]]), (&[3, 2][..], 6.0));
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn as_ndarray<T: Scalar>(&self) -> Result<ArrayViewD<'_, T>> {
        let (numbers, strides) = self.strided_for::<T>("as_ndarray")?;
        if self.numel() == 0 {
            // The strides of nothing may lead anywhere.
            return ArrayViewD::from_shape(IxDyn(self.shape()), &[])
                .map_err(|error| Error::new(format!("as_ndarray: {error}")));
        }
        let shape = IxDyn(self.shape()).strides(IxDyn(strides));
        ArrayViewD::from_shape(shape, numbers).map_err(|error| {
            Error::new(format!(
                "as_ndarray: {:?} with strides {strides:?} is no array ({error}); call contiguous first",
                self.shape()
            ))
        })
    }
}
