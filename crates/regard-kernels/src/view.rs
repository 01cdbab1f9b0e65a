//! Four-dimensional views of slices: `[B, H, N, D]`, any strides, a contiguous last axis.

use crate::error::{Error, ensure};
use std::marker::PhantomData;

/// Checks that a slice of `len` elements holds every element of a view.
/// How many elements lie from the first to the last.
pub(crate) fn reach(shape: [usize; 4], strides: [usize; 3]) -> Result<usize, Error> {
    let count = shape.iter().try_fold(1usize, |n, &d| n.checked_mul(d));
    ensure!(count.is_some(), "shape {shape:?} has more elements than an address has");
    if count == Some(0) {
        return Ok(0);
    }
    (0..3)
        .try_fold(shape[3], |n, a| n.checked_add((shape[a] - 1).checked_mul(strides[a])?))
        .ok_or_else(|| Error::new(format!("strides {strides:?} reach beyond any slice")))
}

fn check(len: usize, shape: [usize; 4], strides: [usize; 3]) -> Result<(), Error> {
    let last = reach(shape, strides)?;
    ensure!(
        last <= len,
        "the slice holds {len} elements, shape {shape:?} with strides {strides:?} needs {last}"
    );
    Ok(())
}

/// Refuses rows of which two share an element; the strides reach no further than an address does.
pub(crate) fn check_apart(shape: [usize; 4], strides: [usize; 3]) -> Result<(), Error> {
    if shape.contains(&0) {
        return Ok(());
    }
    let mut axes: Vec<(usize, usize)> =
        (0..3).filter(|&a| shape[a] > 1).map(|a| (strides[a], shape[a])).collect();
    axes.sort_unstable();
    let mut reach = shape[3];
    for (stride, size) in axes {
        ensure!(
            stride >= reach,
            "rows of a view of shape {shape:?} with strides {strides:?} overlap, \
             so it cannot be written"
        );
        reach += stride * (size - 1);
    }
    Ok(())
}

fn contiguous(len: usize, shape: [usize; 4]) -> Result<[usize; 3], Error> {
    let count = shape.iter().try_fold(1usize, |n, &d| n.checked_mul(d));
    ensure!(
        count == Some(len),
        "the slice holds {len} elements, shape {shape:?} needs {}",
        count.map_or("more than an address has".into(), |n| n.to_string())
    );
    Ok(row_strides(shape))
}

/// Whether so many elements are exactly those of a shape.
fn holds(len: usize, shape: [usize; 4]) -> bool {
    shape.iter().try_fold(1usize, |n, &d| n.checked_mul(d)) == Some(len)
}

fn row_strides(shape: [usize; 4]) -> [usize; 3] {
    if shape.contains(&0) {
        return [0; 3];
    }
    let row = shape[2] * shape[3];
    [shape[1] * row, row, shape[3]]
}

/// A read-only view `[B, H, N, D]`; the last axis is contiguous, the others have any stride.
///
/// ```
/// use regard_kernels::View;
/// let x: Vec<f32> = (0..12).map(|x| x as f32).collect();
/// let view = View::new(&x, [1, 2, 3, 2])?; // one batch item, two heads, three rows of two
/// assert_eq!(view.row(0, 1, 0), &[6.0, 7.0]);
/// # Ok::<(), regard_kernels::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct View<'a, T> {
    pub(crate) data: &'a [T],
    // The kernels trust it, so nobody may change it once it was checked.
    pub(crate) shape: [usize; 4],
    pub(crate) strides: [usize; 3],
}

impl<'a, T> View<'a, T> {
    /// The whole slice, contiguous; refuses a slice of another length.
    ///
    /// ```
    /// use regard_kernels::View;
    /// assert!(View::new(&[0f32; 6], [1, 1, 2, 3]).is_ok());
    /// assert!(View::new(&[0f32; 5], [1, 1, 2, 3]).is_err());
    /// ```
    pub fn new(data: &'a [T], shape: [usize; 4]) -> Result<Self, Error> {
        let strides = contiguous(data.len(), shape)?;
        Ok(Self { data, shape, strides })
    }

    /// Batch, head and row strides given, in elements; refuses a view that leaves the slice.
    /// A stride may be 0 (broadcast).
    ///
    /// ```
    /// use regard_kernels::View;
    /// // a [N, H, D] array seen as [1, H, N, D]
    /// let x: Vec<f32> = (0..24).map(|x| x as f32).collect();
    /// let view = View::strided(&x, [1, 2, 3, 4], [0, 4, 8])?;
    /// assert_eq!(view.row(0, 1, 2), &[20.0, 21.0, 22.0, 23.0]);
    /// # Ok::<(), regard_kernels::Error>(())
    /// ```
    pub fn strided(data: &'a [T], shape: [usize; 4], strides: [usize; 3]) -> Result<Self, Error> {
        check(data.len(), shape, strides)?;
        // A view of nothing has no rows to find, wherever its strides point.
        let strides = if shape.contains(&0) { [0; 3] } else { strides };
        Ok(Self { data, shape, strides })
    }

    /// Contiguous rows made for this shape; without data there is a shape and no row.
    pub(crate) fn of_rows(data: &'a [T], shape: [usize; 4]) -> Self {
        Self { data, shape, strides: row_strides(shape) }
    }

    /// Batch, heads, length, width.
    ///
    /// ```
    /// let view = regard_kernels::View::new(&[0f32; 6], [1, 1, 2, 3])?;
    /// assert_eq!(view.shape(), [1, 1, 2, 3]);
    /// # Ok::<(), regard_kernels::Error>(())
    /// ```
    ///
    /// It was checked, so nobody may change it:
    ///
    /// ```compile_fail
    /// let mut view = regard_kernels::View::new(&[0f32; 6], [1, 1, 2, 3]).unwrap();
    /// view.shape = [9, 9, 9, 9];
    /// ```
    pub fn shape(&self) -> [usize; 4] {
        self.shape
    }

    /// Row `n` of head `h` of batch item `b`. Panics where that lies outside the slice.
    ///
    /// ```
    /// use regard_kernels::View;
    /// assert_eq!(View::new(&[1f32, 2.0, 3.0, 4.0], [1, 1, 2, 2])?.row(0, 0, 1), &[3.0, 4.0]);
    /// # Ok::<(), regard_kernels::Error>(())
    /// ```
    #[inline]
    pub fn row(&self, b: usize, h: usize, n: usize) -> &'a [T] {
        let at = b * self.strides[0] + h * self.strides[1] + n * self.strides[2];
        &self.data[at..at + self.shape[3]]
    }
}

/// A writable view `[B, H, N, D]` in which no two rows overlap.
///
/// ```
/// use regard_kernels::ViewMut;
/// let mut out = [0f32; 6];
/// assert_eq!(ViewMut::new(&mut out, [1, 1, 2, 3])?.shape(), [1, 1, 2, 3]);
/// // two rows at one place
/// assert!(ViewMut::strided(&mut out, [1, 1, 2, 3], [0, 0, 0]).is_err());
/// # Ok::<(), regard_kernels::Error>(())
/// ```
#[derive(Debug)]
pub struct ViewMut<'a, T> {
    pub(crate) data: *mut T,
    // As for `View`.
    pub(crate) shape: [usize; 4],
    pub(crate) strides: [usize; 3],
    slice: PhantomData<&'a mut [T]>,
}

// SAFETY: a `ViewMut` is a `&mut [T]` with a shape; threads write through it to distinct rows only.
unsafe impl<T: Send> Send for ViewMut<'_, T> {}
// SAFETY: as above: `&ViewMut` gives access to no element but through `row`, which is unsafe, and by
// which a thread may write what another reads later: hence `Send`.
unsafe impl<T: Send + Sync> Sync for ViewMut<'_, T> {}

impl<'a, T> ViewMut<'a, T> {
    /// The whole slice, contiguous; refuses a slice of another length.
    ///
    /// ```
    /// use regard_kernels::ViewMut;
    /// assert!(ViewMut::new(&mut [0f32; 6], [1, 1, 2, 3]).is_ok());
    /// assert!(ViewMut::new(&mut [0f32; 5], [1, 1, 2, 3]).is_err());
    /// ```
    pub fn new(data: &'a mut [T], shape: [usize; 4]) -> Result<Self, Error> {
        let strides = contiguous(data.len(), shape)?;
        Ok(Self { data: data.as_mut_ptr(), shape, strides, slice: PhantomData })
    }

    /// Batch, head and row strides given, in elements; refuses a view that leaves the slice and
    /// one in which two rows share an element.
    ///
    /// ```
    /// use regard_kernels::ViewMut;
    /// // rows of two, three apart
    /// let mut out = [0f32; 5];
    /// assert_eq!(ViewMut::strided(&mut out, [1, 1, 2, 2], [5, 5, 3])?.shape(), [1, 1, 2, 2]);
    /// # Ok::<(), regard_kernels::Error>(())
    /// ```
    pub fn strided(
        data: &'a mut [T],
        shape: [usize; 4],
        strides: [usize; 3],
    ) -> Result<Self, Error> {
        check(data.len(), shape, strides)?;
        if shape.contains(&0) {
            return Self::new(&mut data[..0], shape);
        }
        check_apart(shape, strides)?;
        Ok(Self { data: data.as_mut_ptr(), shape, strides, slice: PhantomData })
    }

    /// Batch, heads, length, width.
    ///
    /// ```
    /// let mut out = [0f32; 6];
    /// assert_eq!(regard_kernels::ViewMut::new(&mut out, [1, 1, 2, 3])?.shape(), [1, 1, 2, 3]);
    /// # Ok::<(), regard_kernels::Error>(())
    /// ```
    pub fn shape(&self) -> [usize; 4] {
        self.shape
    }

    /// Contiguous rows made for this shape.
    pub(crate) fn of_rows(data: &'a mut [T], shape: [usize; 4]) -> Self {
        assert!(holds(data.len(), shape), "{} numbers are no {shape:?}", data.len());
        // SAFETY: the slice holds the shape.
        unsafe { Self::from_raw(data.as_mut_ptr(), shape) }
    }

    /// Contiguous rows from a pointer on.
    ///
    /// # Safety
    /// The memory holds the shape for as long as the view lives, and nobody else uses it meanwhile
    /// but tasks that write to other rows.
    pub(crate) unsafe fn from_raw(data: *mut T, shape: [usize; 4]) -> Self {
        Self { data, shape, strides: row_strides(shape), slice: PhantomData }
    }

    /// The same view, borrowed from this one.
    pub(crate) fn reborrow(&mut self) -> ViewMut<'_, T> {
        ViewMut { data: self.data, shape: self.shape, strides: self.strides, slice: PhantomData }
    }

    /// The start of row `n`.
    ///
    /// # Safety
    /// The indices are within the shape, and no other thread uses that row.
    #[inline]
    pub(crate) unsafe fn row(&self, b: usize, h: usize, n: usize) -> *mut T {
        debug_assert!(b < self.shape[0] && h < self.shape[1] && n < self.shape[2]);
        // SAFETY: `check` saw that every row of the shape lies in the slice.
        unsafe { self.data.add(b * self.strides[0] + h * self.strides[1] + n * self.strides[2]) }
    }
}
