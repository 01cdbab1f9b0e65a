//! Arrays of `ndarray` as views, without a copy.

use crate::error::{Error, ensure};
use crate::{View, ViewMut};
use ndarray::{ArrayView4, ArrayViewMut4};

/// The strides of `[B, H, N]`, where axes lie in any order but for the last, which is contiguous.
fn strides(shape: [usize; 4], strides: &[isize]) -> Result<[usize; 3], Error> {
    // An axis of size 1 is not walked, and neither is anything of an empty array.
    let walked = |axis: usize| shape[axis] > 1 && !shape.contains(&0);
    ensure!(
        !walked(3) || strides[3] == 1,
        "the array of shape {shape:?} has strides {strides:?}; its last axis must be contiguous"
    );
    let mut out = [0; 3];
    for (axis, to) in out.iter_mut().enumerate().filter(|(axis, _)| walked(*axis)) {
        *to = usize::try_from(strides[axis]).map_err(|_| {
            Error::new(format!("the array of shape {shape:?} has strides {strides:?}, one below 0"))
        })?;
    }
    Ok(out)
}

fn gaps(shape: [usize; 4], strides: &[isize]) -> Error {
    Error::new(format!(
        "the array of shape {shape:?} with strides {strides:?} has gaps; copy it with to_owned"
    ))
}

/// An array `[B, H, N, D]` whose axes lie in memory in any order but for the last, which is contiguous: a
/// projection `[B, N, H, D]` seen as heads, for one. Refuses an array with gaps, as a slice of a larger one
/// has, and with axes that run backward: `to_owned` gives one that fits.
///
/// ```
/// use ndarray::Array4;
/// use regard_kernels::{Cpu, Forward, Spec, View, ViewMut};
/// let x = Array4::<f32>::from_elem((2, 5, 3, 4), 0.5);
/// let heads = x.view().permuted_axes([0, 2, 1, 3]);
/// let heads = View::try_from(heads)?;
/// let mut out = Array4::<f32>::zeros((2, 3, 5, 4));
/// let pass = Forward::new(ViewMut::try_from(out.view_mut())?);
/// Cpu::best().forward(&Spec::scaled_dot(4), heads, heads, heads, pass)?;
/// assert!(out.iter().all(|x| (x - 0.5).abs() < 1e-6));
/// # Ok::<(), regard_kernels::Error>(())
/// ```
impl<'a, T> TryFrom<ArrayView4<'a, T>> for View<'a, T> {
    type Error = Error;

    fn try_from(array: ArrayView4<'a, T>) -> Result<Self, Error> {
        let (b, h, n, d) = array.dim();
        let (shape, found) = ([b, h, n, d], array.strides().to_vec());
        let wanted = strides(shape, &found)?;
        match array.to_slice_memory_order() {
            Some(data) => View::strided(data, shape, wanted),
            None => Err(gaps(shape, &found)),
        }
    }
}

/// As for [`View`], to be written.
impl<'a, T> TryFrom<ArrayViewMut4<'a, T>> for ViewMut<'a, T> {
    type Error = Error;

    fn try_from(array: ArrayViewMut4<'a, T>) -> Result<Self, Error> {
        let (b, h, n, d) = array.dim();
        let (shape, found) = ([b, h, n, d], array.strides().to_vec());
        let wanted = strides(shape, &found)?;
        match array.into_slice_memory_order() {
            Some(data) => ViewMut::strided(data, shape, wanted),
            None => Err(gaps(shape, &found)),
        }
    }
}
