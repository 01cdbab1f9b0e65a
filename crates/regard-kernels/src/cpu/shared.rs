//! An array that tasks write to in parallel, each its own places.

use crate::ViewMut;
use std::marker::PhantomData;

pub(crate) struct Shared<'a, T> {
    data: *mut T,
    len: usize,
    slice: PhantomData<&'a mut [T]>,
}

// SAFETY: tasks write to distinct places, which is what the callers of `set` and `part` see to.
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

    /// A part of the array, shared like the whole.
    pub(crate) fn narrow(&self, from: usize, len: usize) -> Shared<'_, T> {
        assert!(from + len <= self.len);
        // SAFETY: within the slice.
        Shared { data: unsafe { self.data.add(from) }, len, slice: PhantomData }
    }

    /// The array as rows to write.
    pub(crate) fn view(self, shape: [usize; 4]) -> ViewMut<'a, T> {
        assert_eq!(self.len, shape.iter().product::<usize>());
        // SAFETY: the array holds the shape.
        unsafe { ViewMut::from_raw(self.data, shape) }
    }

    /// Where it begins, for tasks that write places of their own.
    pub(crate) fn start(&self) -> *mut T {
        self.data
    }

    /// Writes one place, the calling task's alone.
    pub(crate) fn set(&self, at: usize, x: T) {
        assert!(at < self.len);
        // SAFETY: within the slice; every caller writes only the rows of its own block.
        unsafe { self.data.add(at).write(x) }
    }

    /// A part of the array.
    ///
    /// # Safety
    /// No other task uses any of it meanwhile.
    #[allow(clippy::mut_from_ref)]
    pub(crate) unsafe fn part(&self, from: usize, len: usize) -> &mut [T] {
        assert!(from + len <= self.len);
        // SAFETY: within the slice, and the caller's alone.
        unsafe { std::slice::from_raw_parts_mut(self.data.add(from), len) }
    }

    /// Where `n` rows of `width` numbers begin that lie `row` apart, other tasks' rows between them.
    ///
    /// # Safety
    /// No other task uses any of these rows meanwhile.
    pub(crate) unsafe fn rows(&self, from: usize, row: usize, n: usize, width: usize) -> *mut T {
        assert!(n == 0 || from + (n - 1) * row + width <= self.len);
        // SAFETY: within the slice, or one past it.
        unsafe { self.data.add(from.min(self.len)) }
    }

    /// As [`Self::part`]; nothing where the array is empty because nobody asked for it.
    ///
    /// # Safety
    /// As [`Self::part`].
    #[allow(clippy::mut_from_ref)]
    pub(crate) unsafe fn part_or_empty(&self, from: usize, len: usize) -> &mut [T] {
        // SAFETY: passed on to the caller.
        if self.len == 0 { &mut [] } else { unsafe { self.part(from, len) } }
    }
}
