//! Memory that is kept and used again: fresh pages cost more than the work done in them.

use super::tasks;
use crate::{Real, fork, large_pages};
use std::cell::Cell;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard};

const LINE: usize = 64;

#[repr(align(64))]
#[derive(Clone, Copy)]
struct Line(#[allow(dead_code)] [u8; LINE]);

/// Gives back the memory that calls keep for the next: the arrays they share, and what each thread
/// works in, of this thread and of rayon's (those of the pool, or of the [team](crate::on_team), it is
/// called in; others give theirs back when they next compute). Calls that run meanwhile keep what they
/// use, and every later call gives the same results as before.
///
/// ```
/// regard_kernels::release_memory();
/// assert_eq!(regard_kernels::pooled_bytes(), 0);
/// ```
pub fn release_memory() {
    RELEASES.fetch_add(1, Relaxed);
    if let Some(mut pool) = pool() {
        pool.arrays.clear();
    }
    KEPT.take();
    tasks::on_every_thread(&|| drop(KEPT.take()));
}

/// How many bytes calls keep for the next. See [`release_memory`].
///
/// ```
/// assert!(regard_kernels::pooled_bytes() < 1 << 40);
/// ```
pub fn pooled_bytes() -> usize {
    let of = |pool: MutexGuard<Pool>| pool.arrays.iter().map(|array| array.lines.len()).sum();
    let lines: usize = pool().map_or(0, of);
    lines * LINE + THREAD_BYTES.load(Relaxed)
}

/// How often memory was released.
static RELEASES: AtomicUsize = AtomicUsize::new(0);
/// What all threads keep.
static THREAD_BYTES: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static KEPT: Cell<Kept> = const { Cell::new(Kept::new()) };
}

/// What a thread keeps.
struct Kept {
    lines: Vec<Line>,
    /// [`RELEASES`] when it was last used.
    releases: usize,
    /// Uses since it was last looked at, and the most lines one of them needed.
    uses: usize,
    most: usize,
    /// What a use within a use takes.
    inner: Option<Box<Kept>>,
}

/// After so many uses a thread keeps what those needed, where that is less than half.
const USES: usize = 4096;

impl Kept {
    const fn new() -> Self {
        Self { lines: Vec::new(), releases: 0, uses: 0, most: 0, inner: None }
    }

    /// Sees to it that there are so many lines.
    fn reserve(&mut self, needed: usize) {
        self.uses += 1;
        self.most = self.most.max(needed);
        let releases = RELEASES.load(Relaxed);
        let idle = self.uses >= USES && self.most < self.lines.len() / 2;
        if self.releases != releases || idle {
            self.replace(Vec::new());
            self.inner = None;
        }
        if self.uses >= USES {
            (self.uses, self.most) = (0, needed);
        }
        self.releases = releases;
        if self.lines.len() < needed {
            let mut lines = std::mem::take(&mut self.lines);
            THREAD_BYTES.fetch_sub(lines.len() * LINE, Relaxed);
            lines.resize(needed, Line([0; LINE]));
            self.replace(lines);
        }
    }

    fn replace(&mut self, lines: Vec<Line>) {
        THREAD_BYTES.fetch_add(lines.len() * LINE, Relaxed);
        THREAD_BYTES.fetch_sub(self.lines.len() * LINE, Relaxed);
        self.lines = lines;
    }
}

impl Default for Kept {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.replace(Vec::new());
    }
}

/// Gives `f` arrays of the given lengths, each starting on a cache line, with anything in them.
pub(crate) fn with<T: Real, const N: usize, R>(
    lengths: [usize; N],
    f: impl FnOnce([&mut [T]; N]) -> R,
) -> R {
    let lines = lengths.map(lines_of::<T>);
    let mut kept = KEPT.take();
    kept.reserve(lines.iter().sum());
    if let Some(inner) = &mut kept.inner {
        KEPT.set(std::mem::take(inner));
    }
    let mut rest = &mut kept.lines[..];
    let mut at = 0;
    let arrays = lines.map(|lines| {
        let (part, tail) = std::mem::take(&mut rest).split_at_mut(lines);
        rest = tail;
        let n = lengths[at];
        at += 1;
        // SAFETY: `part` holds n numbers, is aligned to a line, initialized, and lent once; every
        // pattern of bits is an `f32` or `f64`.
        unsafe { std::slice::from_raw_parts_mut(part.as_mut_ptr().cast::<T>(), n) }
    });
    let result = f(arrays);
    let used = KEPT.take();
    match &mut kept.inner {
        Some(inner) => **inner = used,
        None if !used.lines.is_empty() => kept.inner = Some(Box::new(used)),
        None => {}
    }
    KEPT.set(kept);
    result
}

/// Lines that hold `n` numbers; as for any array, too many to count are a panic.
fn lines_of<T>(n: usize) -> usize {
    n.checked_mul(size_of::<T>()).expect("capacity overflow").div_ceil(LINE)
}

/// Large arrays given back, for the next call to use.
struct Pool {
    arrays: Vec<Array>,
    /// How many were taken so far, from here or made.
    takes: u64,
}

struct Array {
    lines: Vec<Line>,
    /// The pool's `takes` when it was given back.
    since: u64,
}

static POOL: Mutex<Pool> = Mutex::new(Pool { arrays: Vec::new(), takes: 0 });
/// How many are kept.
const KEPT_LARGE: usize = 8;
/// Larger ones are not kept.
const LARGEST_KEPT: usize = 64 << 20;
/// How many times the lines that are needed an array may have.
const MOST_TIMES: usize = 8;
/// An array that was of no use for so many others is not kept either.
const IDLE_TAKES: u64 = 512;

/// The pool, where it can be had: see [`fork::lock`].
fn pool() -> Option<MutexGuard<'static, Pool>> {
    fork::lock(&POOL)
}

impl Pool {
    /// The smallest that has so many lines, and not many times as many: small calls alone would
    /// keep a large array in use.
    fn take(&mut self, needed: usize) -> Option<Vec<Line>> {
        self.takes += 1;
        let arrays = &mut self.arrays;
        let suits = needed..=needed.saturating_mul(MOST_TIMES);
        let fits = (0..arrays.len()).filter(|&n| suits.contains(&arrays[n].lines.len()));
        let taken =
            fits.min_by_key(|&n| arrays[n].lines.len()).map(|n| arrays.swap_remove(n).lines);
        arrays.retain(|array| self.takes - array.since < IDLE_TAKES);
        taken
    }

    fn give_back(&mut self, lines: Vec<Line>) {
        self.arrays.push(Array { lines, since: self.takes });
        if self.arrays.len() > KEPT_LARGE {
            let smallest = (0..self.arrays.len()).min_by_key(|&n| self.arrays[n].lines.len());
            self.arrays.swap_remove(smallest.unwrap_or(0));
        }
    }
}

/// An array that lives through a call, given back for the next when dropped.
pub(crate) struct Large<T> {
    lines: Vec<Line>,
    len: usize,
    numbers: PhantomData<T>,
}

impl<T: Real> Large<T> {
    /// An array with anything in it.
    pub(crate) fn new(len: usize) -> Self {
        let needed = lines_of::<T>(len);
        if needed == 0 {
            return Self { lines: Vec::new(), len, numbers: PhantomData };
        }
        let mut lines = pool().and_then(|mut pool| pool.take(needed)).unwrap_or_default();
        if lines.len() < needed {
            lines = Vec::with_capacity(needed);
            large_pages(lines.spare_capacity_mut());
            lines.resize(needed, Line([0; LINE]));
        }
        Self { lines, len, numbers: PhantomData }
    }

    /// An array of zeros.
    pub(crate) fn zeros(len: usize) -> Self {
        let mut large = Self::new(len);
        large.fill(T::ZERO);
        large
    }
}

impl<T> Drop for Large<T> {
    fn drop(&mut self) {
        let lines = std::mem::take(&mut self.lines);
        if lines.is_empty() || lines.len() * LINE > LARGEST_KEPT {
            return;
        }
        if let Some(mut pool) = pool() {
            pool.give_back(lines);
        }
    }
}

impl<T: Real> Deref for Large<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        // SAFETY: the lines hold `len` numbers, and every pattern of bits is one.
        unsafe { std::slice::from_raw_parts(self.lines.as_ptr().cast(), self.len) }
    }
}

impl<T: Real> DerefMut for Large<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above, and borrowed alone.
        unsafe { std::slice::from_raw_parts_mut(self.lines.as_mut_ptr().cast(), self.len) }
    }
}
