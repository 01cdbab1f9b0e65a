//! How much memory is in use, and how much was at most.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

static CURRENT: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

/// The system's allocator, counting; a program that makes it its global allocator may ask
/// [`peak`].
pub struct Counted;

fn grow(bytes: usize) {
    let now = CURRENT.fetch_add(bytes, Relaxed) + bytes;
    PEAK.fetch_max(now, Relaxed);
}

fn shrink(bytes: usize) {
    CURRENT.fetch_sub(bytes, Relaxed);
}

// SAFETY: every request goes to the system's allocator as it is; counting touches no memory of it.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        grow(layout.size());
        // SAFETY: the caller's promise is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        shrink(layout.size());
        // SAFETY: the caller's promise is the same.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        grow(layout.size());
        // SAFETY: the caller's promise is the same.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // Both may exist for as long as the copying takes.
        grow(size);
        // SAFETY: the caller's promise is the same.
        let new = unsafe { System.realloc(at, layout, size) };
        shrink(layout.size());
        new
    }
}

/// Bytes in use at most since [`reset_peak`]; 0 where [`Counted`] is not the allocator.
pub fn peak() -> usize {
    PEAK.load(Relaxed)
}

/// Counts the peak from what is in use now.
pub fn reset_peak() {
    PEAK.store(CURRENT.load(Relaxed), Relaxed);
}
