//! Large pages for large arrays.

/// Arrays from which on large pages are asked for.
const LEAST: usize = 4 << 20;

/// Asks the system to keep a large array in large pages: rows read in no order, as a graph's are,
/// then find their addresses quickly, and fresh memory comes in fewer pieces. Best before the
/// array is first written; does nothing for small arrays and where there is nothing to ask.
///
/// ```
/// let mut room = Vec::<f32>::with_capacity(1 << 22);
/// regard_kernels::large_pages(room.spare_capacity_mut());
/// room.resize(1 << 22, 0.0);
/// ```
pub fn large_pages<T>(array: &mut [T]) {
    if size_of_val(array) < LEAST {
        return;
    }
    #[cfg(target_os = "linux")]
    {
        const PAGE: usize = 2 << 20;
        let range = array.as_mut_ptr_range();
        let (from, to) = (range.start as usize, range.end as usize);
        let (from, to) = (from.next_multiple_of(PAGE), to / PAGE * PAGE);
        if from < to {
            // SAFETY: whole pages within the array; how they are kept changes nothing in them, and
            // a system that cannot says so, which is as good.
            unsafe { libc::madvise(from as *mut libc::c_void, to - from, libc::MADV_HUGEPAGE) };
        }
    }
}
