//! Arrays as Python hands them over: address, shape and strides.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use regard_kernels::cuda::DeviceRows;
use regard_kernels::{View, ViewMut};
use std::marker::PhantomData;
use std::sync::{Mutex, PoisonError};

/// At most so many axes.
const AXES: usize = 4;

/// `(address, shape, strides)` of q, k, v, the output or one of their gradients; strides count
/// elements. Missing axes of `[B, H, N, D]` are put in: `[B, N, D]`, `[N, D]`, `[D]`.
#[derive(Clone, Copy)]
pub(crate) struct Rows {
    address: usize,
    shape: [usize; AXES],
    strides: [usize; AXES],
}

impl<'py> FromPyObject<'_, 'py> for Rows {
    type Error = PyErr;

    fn extract(from: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let (address, shape, strides) =
            from.extract::<(usize, Bound<PyTuple>, Bound<PyTuple>)>()?;
        let axes = shape.len();
        if strides.len() != axes || !(1..=AXES).contains(&axes) {
            return Err(PyValueError::new_err(format!("an array of {axes} axes; 1 to 4 fit")));
        }
        let mut rows = Self { address, shape: [1; AXES], strides: [0; AXES] };
        for axis in 0..axes {
            // Without heads the batch stays in front.
            let to = if axes == 3 && axis == 0 { 0 } else { AXES - axes + axis };
            rows.shape[to] = shape.get_borrowed_item(axis)?.extract()?;
            rows.strides[to] = strides.get_borrowed_item(axis)?.extract()?;
        }
        if rows.strides[3] != 1 && rows.shape[3] > 1 && !rows.shape.contains(&0) {
            return Err(PyValueError::new_err("the last axis of an array is not contiguous"));
        }
        Ok(rows)
    }
}

impl Rows {
    pub(crate) fn shape(&self) -> [usize; AXES] {
        self.shape
    }

    fn row_strides(&self) -> [usize; 3] {
        [self.strides[0], self.strides[1], self.strides[2]]
    }

    /// The same on a GPU, where the address is one of its own.
    pub(crate) fn on_gpu<T>(&self) -> PyResult<DeviceRows<T>> {
        DeviceRows::new(self.address as u64, self.shape, self.row_strides()).map_err(refused)
    }

    /// How many elements lie from the first to the last.
    fn reach(&self) -> PyResult<usize> {
        if self.shape.contains(&0) {
            return Ok(0);
        }
        let steps = (0..3).try_fold(self.shape[3], |reach, axis| {
            reach.checked_add((self.shape[axis] - 1).checked_mul(self.strides[axis])?)
        });
        steps.ok_or_else(|| PyValueError::new_err("strides reach beyond any memory"))
    }

    /// # Safety
    /// The elements from the first to the last are live for `'a`, and not written meanwhile.
    pub(crate) unsafe fn view<'a, T>(&self) -> PyResult<View<'a, T>> {
        // SAFETY: the caller's.
        let data = unsafe { slice(self.address, self.reach()?)? };
        View::strided(data, self.shape, self.row_strides()).map_err(refused)
    }

    /// # Safety
    /// The elements from the first to the last are live for `'a`, and used by nobody else.
    pub(crate) unsafe fn view_mut<'a, T>(&self) -> PyResult<ViewMut<'a, T>> {
        // SAFETY: the caller's.
        let data = unsafe { slice_mut(self.address, self.reach()?)? };
        ViewMut::strided(data, self.shape, self.row_strides()).map_err(refused)
    }
}

/// `(address, shape)` of a contiguous array of at most four axes; ones are put before the shape. A third entry, true, says
/// that the address is a GPU's.
#[derive(Clone, Copy)]
pub(crate) struct Block<T> {
    address: usize,
    shape: [usize; AXES],
    is_on_gpu: bool,
    element: PhantomData<T>,
}

impl<'py, T> FromPyObject<'_, 'py> for Block<T> {
    type Error = PyErr;

    fn extract(from: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let whole = from.cast::<PyTuple>()?;
        let is_on_gpu = whole.len() == 3 && whole.get_borrowed_item(2)?.extract()?;
        let address = whole.get_borrowed_item(0)?.extract()?;
        let own = whole.get_borrowed_item(1)?;
        let own = own.cast::<PyTuple>()?;
        let axes = own.len();
        if axes > AXES {
            return Err(PyValueError::new_err(format!("an array of {axes} axes; 0 to 4 fit")));
        }
        let mut shape = [1; AXES];
        for axis in 0..axes {
            shape[AXES - axes + axis] = own.get_borrowed_item(axis)?.extract()?;
        }
        Ok(Self { address, shape, is_on_gpu, element: PhantomData })
    }
}

impl<T> Block<T> {
    /// Its address, where that is a GPU's.
    pub(crate) fn gpu_address(&self) -> Option<u64> {
        self.is_on_gpu.then_some(self.address as u64)
    }

    /// Where it lies, on whatever device.
    pub(crate) fn address(&self) -> u64 {
        self.address as u64
    }

    pub(crate) fn shape(&self) -> [usize; AXES] {
        self.shape
    }

    pub(crate) fn numel(&self) -> PyResult<usize> {
        let numel = self.shape.iter().try_fold(1usize, |n, &size| n.checked_mul(size));
        numel.ok_or_else(|| PyValueError::new_err("a shape with more elements than any memory"))
    }

    /// # Safety
    /// The elements are live for `'a`, and not written meanwhile.
    pub(crate) unsafe fn slice<'a>(&self) -> PyResult<&'a [T]> {
        if self.is_on_gpu {
            return Err(PyTypeError::new_err(
                "an array lies on a GPU, and is wanted in the host's memory",
            ));
        }
        // SAFETY: the caller's.
        unsafe { slice(self.address, self.numel()?) }
    }

    /// # Safety
    /// The elements are live for `'a`, and used by nobody else.
    pub(crate) unsafe fn slice_mut<'a>(&self) -> PyResult<&'a mut [T]> {
        // SAFETY: the caller's.
        unsafe { slice_mut(self.address, self.numel()?) }
    }

    /// The elements, or as many zeros where they lie on a GPU: the kernels are told where, and read none of them here.
    ///
    /// # Safety
    /// As for [`Self::slice`].
    pub(crate) unsafe fn numbers<'a>(&self) -> PyResult<&'a [T]>
    where
        T: Zero,
    {
        match self.is_on_gpu {
            true => zeros(self.numel()?),
            // SAFETY: the caller's.
            false => unsafe { self.slice() },
        }
    }
}

/// Numbers whose bytes are all 0 where they are zero.
pub(crate) trait Zero: Copy + 'static {}
impl Zero for f32 {}
impl Zero for f64 {}
impl Zero for i64 {}
impl Zero for bool {}

/// So many zeros, which are kept: a call that made its own would touch megabytes for a large mask, and take longer
/// for that than the GPU takes.
pub(crate) fn zeros<T: Zero>(count: usize) -> PyResult<&'static [T]> {
    static KEPT: Mutex<&'static [u64]> = Mutex::new(&[]);
    let words = count.checked_mul(size_of::<T>()).map(|bytes| bytes.div_ceil(8));
    let words = words.filter(|&words| words <= isize::MAX as usize / 16);
    let words = words.ok_or_else(|| PyValueError::new_err("an array larger than any memory"))?;
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    if kept.len() < words {
        // What was kept before may be in use; all of it together is less than the next.
        *kept = vec![0u64; words.next_power_of_two().max(1 << 10)].leak();
    }
    // SAFETY: there are so many bytes, which nobody writes any more, at an address that fits every such number.
    Ok(unsafe { std::slice::from_raw_parts(kept.as_ptr().cast(), count) })
}

fn check_address<T>(address: usize, len: usize) -> PyResult<()> {
    let bytes = len.checked_mul(size_of::<T>()).filter(|&bytes| bytes <= isize::MAX as usize);
    if address == 0 {
        return Err(PyTypeError::new_err("an array has no memory: it is fake, meta or a wrapper"));
    }
    if !address.is_multiple_of(align_of::<T>()) {
        return Err(PyValueError::new_err("an array is not aligned to its type"));
    }
    if bytes.is_none_or(|bytes| address.checked_add(bytes).is_none()) {
        return Err(PyValueError::new_err("an array larger than any memory"));
    }
    Ok(())
}

/// # Safety
/// So many elements from the address on are live for `'a`, and not written meanwhile.
unsafe fn slice<'a, T>(address: usize, len: usize) -> PyResult<&'a [T]> {
    if len == 0 {
        return Ok(&[]);
    }
    check_address::<T>(address, len)?;
    // SAFETY: not null, aligned, of a size that an address has; the rest is the caller's.
    Ok(unsafe { std::slice::from_raw_parts(address as *const T, len) })
}

/// # Safety
/// So many elements from the address on are live for `'a`, and used by nobody else.
unsafe fn slice_mut<'a, T>(address: usize, len: usize) -> PyResult<&'a mut [T]> {
    if len == 0 {
        return Ok(&mut []);
    }
    check_address::<T>(address, len)?;
    // SAFETY: as above.
    Ok(unsafe { std::slice::from_raw_parts_mut(address as *mut T, len) })
}

/// What the kernels refuse, as Python's exception for a wrong value.
pub(crate) fn refused(error: regard_kernels::Error) -> PyErr {
    PyValueError::new_err(error.to_string())
}
