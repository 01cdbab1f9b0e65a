//! An array that tasks write to in parallel, each its own places.

use crate::ViewMut;
use std::marker::PhantomData;

/// A `&mut [T]` that many tasks hold. Whatever writes through it is unsafe: that no two tasks touch
/// the same place at the same time is for the caller to see to. What is safe only narrows or asks.
pub(crate) struct Shared<'a, T> {
    data: *mut T,
    len: usize,
    slice: PhantomData<&'a mut [T]>,
}

// SAFETY: every access is unsafe, and asks of its caller that the places are the task's alone.
unsafe impl<T: Send> Send for Shared<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Shared<'_, T> {}

impl<'a, T: Copy> Shared<'a, T> {
    pub(crate) fn new(slice: &'a mut [T]) -> Self {
        Self { data: slice.as_mut_ptr(), len: slice.len(), slice: PhantomData }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Panics unless `len` places from `from` on lie within the array.
    #[inline]
    fn check(&self, from: usize, len: usize) {
        assert!(
            from <= self.len && len <= self.len - from,
            "places {from} and {len} more lie outside an array of {}",
            self.len
        );
    }

    /// A part of the array, shared like the whole.
    pub(crate) fn narrow(&self, from: usize, len: usize) -> Shared<'_, T> {
        self.check(from, len);
        // SAFETY: within the slice.
        Shared { data: unsafe { self.data.add(from) }, len, slice: PhantomData }
    }

    /// The array as rows to write.
    ///
    /// # Safety
    /// Tasks that hold the array, or a view of it, write to distinct rows.
    pub(crate) unsafe fn view(self, shape: [usize; 4]) -> ViewMut<'a, T> {
        let count = shape.iter().try_fold(1usize, |n, &d| n.checked_mul(d));
        assert_eq!(count, Some(self.len), "an array of another length than {shape:?}");
        // SAFETY: the array holds the shape.
        unsafe { ViewMut::from_raw(self.data, shape) }
    }

    /// Where it begins, for tasks that write places of their own.
    pub(crate) fn start(&self) -> *mut T {
        self.data
    }

    /// Writes one place.
    ///
    /// # Safety
    /// No other task uses it meanwhile.
    #[inline]
    pub(crate) unsafe fn set(&self, at: usize, x: T) {
        assert!(at < self.len);
        // SAFETY: within the slice, and the caller's alone.
        unsafe { self.data.add(at).write(x) }
    }

    /// A part of the array.
    ///
    /// # Safety
    /// No other task uses any of it while it is borrowed.
    #[allow(clippy::mut_from_ref)]
    pub(crate) unsafe fn part(&self, from: usize, len: usize) -> &mut [T] {
        self.check(from, len);
        // SAFETY: within the slice, and the caller's alone.
        unsafe { std::slice::from_raw_parts_mut(self.data.add(from), len) }
    }

    /// Where `n` rows of `width` numbers begin that lie `row` apart, other tasks' rows between them.
    ///
    /// # Safety
    /// No other task uses any of these rows meanwhile.
    pub(crate) unsafe fn rows(&self, from: usize, row: usize, n: usize, width: usize) -> *mut T {
        if n == 0 {
            return self.data;
        }
        let last = (n - 1).saturating_mul(row).saturating_add(from);
        self.check(last, width);
        // SAFETY: within the slice, or one past it.
        unsafe { self.data.add(from) }
    }
}
