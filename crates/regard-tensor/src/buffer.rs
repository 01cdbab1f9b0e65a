//! Memory for numbers, taken from a pool and given back to it: a training step asks for the same
//! sizes again and again, and fresh pages cost more than the arithmetic done in them.

use crate::{Error, Result};
use bytemuck::{Pod, Zeroable};
use regard_kernels::fork;
use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};

/// A cache line, so that every buffer starts at one.
#[derive(Clone, Copy, Zeroable, Pod)]
#[repr(C, align(64))]
struct Line([u8; 64]);

const LINE: usize = std::mem::size_of::<Line>();
/// Smaller buffers are left to the allocator.
const POOLED: usize = 64;
/// A block that so many allocations passed by is given back to the system: several times what a
/// step of a large model makes, so that a training loop keeps what it uses.
const IDLE: u64 = 1 << 16;

/// A block of memory.
pub(crate) struct Buffer {
    block: Block,
}

enum Block {
    /// From the pool; starts at a cache line.
    Lines(Vec<Line>),
    /// A vector that somebody gave, wherever it lies: plain numbers, so no panic leaves it broken.
    Given(AssertUnwindSafe<Box<dyn Bytes>>),
}

/// A vector of numbers of any type, as the bytes it is.
trait Bytes: Send + Sync {
    fn bytes(&self) -> &[u8];
    fn bytes_mut(&mut self) -> &mut [u8];
}

impl<T: Pod + Send + Sync> Bytes for Vec<T> {
    fn bytes(&self) -> &[u8] {
        bytemuck::cast_slice(self)
    }
    fn bytes_mut(&mut self) -> &mut [u8] {
        bytemuck::cast_slice_mut(self)
    }
}

static POOL: Mutex<Pool> = Mutex::new(Pool::new());
static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);
static ALLOCATED: AtomicU64 = AtomicU64::new(0);

/// The pool, where it can be had: see [`fork::lock`].
fn pool() -> Option<MutexGuard<'static, Pool>> {
    fork::lock(&POOL)
}

struct Pool {
    /// What is free: by size, then by when it was given back.
    free: BTreeMap<(usize, u64), Vec<Line>>,
    /// The same by when it was given back.
    order: BTreeMap<u64, Kept>,
    lines: usize,
    given_back: u64,
    /// How many blocks were asked for.
    asked: u64,
}

/// A free block's size, and how many blocks had been asked for when it came.
struct Kept {
    size: usize,
    asked: u64,
}

impl Pool {
    const fn new() -> Self {
        Self { free: BTreeMap::new(), order: BTreeMap::new(), lines: 0, given_back: 0, asked: 0 }
    }

    /// A free block of at least this size and not much more, and the block that was idle longest
    /// where that is too long, for the caller to free without the lock.
    fn take(&mut self, lines: usize) -> (Option<Vec<Line>>, Option<Vec<Line>>) {
        self.asked += 1;
        let mut fit = self.free.range((lines, 0)..=(lines + lines / 4, u64::MAX));
        // Of the best size the newest: its numbers are still in the caches, and what a program
        // no longer needs stays idle.
        let fit = fit.next().map(|(&(size, _), _)| size);
        let newest = fit.and_then(|size| {
            self.free.range((size, 0)..=(size, u64::MAX)).next_back().map(|(&at, _)| at)
        });
        (newest.and_then(|at| self.remove(at)), self.idle())
    }

    /// The block that was idle longest, where that is longer than [`IDLE`].
    fn idle(&mut self) -> Option<Vec<Line>> {
        let (&when, kept) = self.order.first_key_value()?;
        let at = (kept.size, when);
        if self.asked - kept.asked > IDLE { self.remove(at) } else { None }
    }

    fn remove(&mut self, at: (usize, u64)) -> Option<Vec<Line>> {
        let block = self.free.remove(&at)?;
        self.order.remove(&at.1);
        self.lines -= at.0;
        Some(block)
    }

    /// Keeps a block, and no more than `most` lines altogether: what was given back longest ago is
    /// dropped first. Returns what is dropped, for the caller to free without the lock.
    fn keep(&mut self, block: Vec<Line>, most: usize) -> Vec<Vec<Line>> {
        let size = block.len();
        if size > most {
            return vec![block];
        }
        self.given_back += 1;
        self.order.insert(self.given_back, Kept { size, asked: self.asked });
        self.free.insert((size, self.given_back), block);
        self.lines += size;
        let mut dropped = Vec::new();
        while self.lines > most {
            let Some((&when, kept)) = self.order.first_key_value() else { break };
            dropped.extend(self.remove((kept.size, when)));
        }
        dropped
    }
}

/// What the buffers of this process take, in bytes.
///
/// ```standalone_crate
/// use regard_tensor::{DType, Memory, Tensor};
/// let before = Memory::now();
/// let x = Tensor::zeros(&[1024, 1024], DType::F32)?;
/// let with = Memory::now();
/// assert_eq!(with.live - before.live, 4 << 20);
/// drop(x);
/// // the block waits in the pool for the next tensor of its size
/// let after = Memory::now();
/// assert_eq!((after.live, after.pooled - before.pooled), (before.live, 4 << 20));
/// # Ok::<(), regard_tensor::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Memory {
    /// In use now.
    pub live: usize,
    /// The most that was in use since the last reset.
    pub peak: usize,
    /// Free, and kept for the next tensors.
    pub pooled: usize,
    /// All that tensors ever asked for, whether it came from the pool or from the system.
    pub allocated: u64,
}

impl Memory {
    /// The figures of this moment.
    ///
    /// ```standalone_crate
    /// use regard_tensor::{DType, Memory, Tensor};
    /// let before = Memory::now().allocated;
    /// for _ in 0..3 {
    ///     Tensor::zeros(&[1024, 1024], DType::F32)?;
    /// }
    /// assert_eq!(Memory::now().allocated - before, 3 * (4 << 20));
    /// // one at a time: the second and the third took the first one's block
    /// assert_eq!(Memory::now().peak, 4 << 20);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn now() -> Self {
        Self {
            live: LIVE.load(Ordering::Relaxed) * LINE,
            peak: PEAK.load(Ordering::Relaxed) * LINE,
            pooled: pool().map_or(0, |pool| pool.lines) * LINE,
            allocated: ALLOCATED.load(Ordering::Relaxed) * LINE as u64,
        }
    }

    /// The peak starts again from what is in use now.
    ///
    /// ```standalone_crate
    /// use regard_tensor::{DType, Memory, Tensor};
    /// drop(Tensor::zeros(&[1024, 1024], DType::F32)?);
    /// assert!(Memory::now().peak >= 4 << 20);
    /// Memory::reset_peak();
    /// assert!(Memory::now().peak < 4 << 20);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn reset_peak() {
        PEAK.store(LIVE.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    /// Gives all that is free back to the system, and says how many bytes that was: after training
    /// and before a long rest, or before another part of the program wants the memory. The pool
    /// also gives back, by itself, what many thousands of allocations found no use for.
    ///
    /// ```standalone_crate
    /// use regard_tensor::{DType, Memory, Tensor};
    /// drop(Tensor::zeros(&[1024, 1024], DType::F32)?);
    /// assert_eq!(Memory::release(), 4 << 20);
    /// assert_eq!(Memory::now().pooled, 0);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn release() -> usize {
        let free = {
            let Some(mut pool) = pool() else { return 0 };
            pool.order.clear();
            pool.lines = 0;
            std::mem::take(&mut pool.free)
        };
        free.values().map(|block| block.len() * LINE).sum()
    }
}

impl Buffer {
    /// Room for so many numbers of a size, for somebody to write: what a block from the pool was
    /// last used for is still in it. Refuses more than there is.
    pub(crate) fn uninit(count: usize, size: usize) -> Result<Self> {
        let lines = class(lines(count, size)?);
        let pool = if lines >= POOLED { pool() } else { None };
        let (pooled, idle) = pool.map_or((None, None), |mut pool| pool.take(lines));
        drop(idle);
        let lines = match pooled {
            Some(lines) => lines,
            None => {
                let mut lines = bytemuck::try_zeroed_vec(lines).map_err(|()| no_memory(count))?;
                regard_kernels::large_pages(&mut lines);
                lines
            }
        };
        Ok(Self::counted(Block::Lines(lines)))
    }

    /// As [`Self::uninit`], all 0.
    pub(crate) fn zeros(count: usize, size: usize) -> Result<Self> {
        let mut buffer = Self::uninit(count, size)?;
        let lines = lines(count, size)?;
        if let Block::Lines(block) = &mut buffer.block {
            crate::parallel::fill(&mut block[..lines], Line([0; 64]));
        }
        Ok(buffer)
    }

    /// A vector's own memory. It starts where the vector did, as a view may start anywhere, and
    /// goes back to the allocator.
    pub(crate) fn given<T: Pod + Send + Sync>(numbers: Vec<T>) -> Self {
        Self::counted(Block::Given(AssertUnwindSafe(Box::new(numbers))))
    }

    fn counted(block: Block) -> Self {
        let buffer = Self { block };
        let lines = buffer.lines();
        let live = LIVE.fetch_add(lines, Ordering::Relaxed) + lines;
        PEAK.fetch_max(live, Ordering::Relaxed);
        ALLOCATED.fetch_add(lines as u64, Ordering::Relaxed);
        buffer
    }

    fn lines(&self) -> usize {
        match &self.block {
            Block::Lines(lines) => lines.len(),
            Block::Given(numbers) => numbers.bytes().len().div_ceil(LINE),
        }
    }

    /// Whether it starts at a cache line: what is read again and again should.
    pub(crate) fn is_aligned(&self) -> bool {
        self.slice::<u8>().as_ptr().addr().is_multiple_of(LINE)
    }

    /// All of it as numbers.
    pub(crate) fn slice<T: Pod>(&self) -> &[T] {
        match &self.block {
            Block::Lines(lines) => bytemuck::cast_slice(lines),
            Block::Given(numbers) => bytemuck::cast_slice(numbers.bytes()),
        }
    }

    /// All of it as numbers.
    pub(crate) fn slice_mut<T: Pod>(&mut self) -> &mut [T] {
        match &mut self.block {
            Block::Lines(lines) => bytemuck::cast_slice_mut(lines),
            Block::Given(numbers) => bytemuck::cast_slice_mut(numbers.bytes_mut()),
        }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let size = self.lines();
        LIVE.fetch_sub(size, Ordering::Relaxed);
        let Block::Lines(lines) = &mut self.block else { return };
        let lines = std::mem::take(lines);
        if size < POOLED {
            return;
        }
        // What was in use at once, and a quarter more for sizes that do not fit, may be wanted
        // again; more than that is given back.
        let most = PEAK.load(Ordering::Relaxed) / 4 * 5;
        let most = most.saturating_sub(LIVE.load(Ordering::Relaxed));
        let dropped = pool().map(|mut pool| pool.keep(lines, most));
        drop(dropped);
    }
}

fn no_memory(count: usize) -> Error {
    Error::memory(format!("there is no memory for {count} numbers"))
}

/// How many lines so many numbers of a size take.
fn lines(count: usize, size: usize) -> Result<usize> {
    let bytes = count.checked_mul(size).filter(|&bytes| bytes <= isize::MAX as usize);
    Ok(bytes.ok_or_else(|| no_memory(count))?.div_ceil(LINE))
}

/// Sizes are rounded up by at most an eighth, so that nearly equal ones share blocks.
fn class(lines: usize) -> usize {
    let step = (lines.next_power_of_two() / 16).max(1);
    lines.next_multiple_of(step)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn block(lines: usize, x: u8) -> Vec<Line> {
        vec![Line([x; 64]); lines]
    }

    #[test]
    fn sizes_are_rounded_up_by_at_most_an_eighth() {
        for lines in [0, 1, 2, 15, 16, 17, 63, 64, 65, 1000, 12345] {
            let size = class(lines);
            assert!(size >= lines && size <= lines + lines / 8 + 1, "{lines} became {size}");
        }
    }

    #[test]
    fn zeros_are_zero_in_a_block_used_before() {
        for _ in 0..4 {
            let mut buffer = Buffer::uninit(100_000, 1).unwrap();
            buffer.slice_mut::<u8>().fill(7);
            drop(buffer);
            let zeros = Buffer::zeros(100_000, 1).unwrap();
            assert!(zeros.slice::<u8>()[..100_000].iter().all(|&x| x == 0));
        }
    }

    #[test]
    fn more_bytes_than_there_are_addresses_are_refused() {
        for (count, size) in [(usize::MAX, 1), (usize::MAX, 8), (usize::MAX / 8 + 1, 8)] {
            for buffer in [Buffer::uninit(count, size), Buffer::zeros(count, size)] {
                let error = buffer.err().unwrap().to_string();
                assert_eq!(error, format!("there is no memory for {count} numbers"));
            }
        }
    }

    #[test]
    fn a_block_that_no_allocation_wants_is_given_back_and_one_in_use_stays() {
        let mut pool = Pool::new();
        pool.keep(block(1000, 0), usize::MAX);
        pool.keep(block(100, 0), usize::MAX);
        for asked in 1..=IDLE {
            let (small, idle) = pool.take(100);
            assert!(idle.is_none(), "given back after {asked} allocations");
            pool.keep(small.unwrap(), usize::MAX);
        }
        let (small, idle) = pool.take(100);
        assert_eq!((small.map(|b| b.len()), idle.map(|b| b.len())), (Some(100), Some(1000)));
        assert_eq!((pool.lines, pool.free.len(), pool.order.len()), (0, 0, 0));
    }

    #[test]
    fn of_two_blocks_of_a_size_the_one_given_back_last_is_used_again() {
        let mut pool = Pool::new();
        pool.keep(block(100, 1), usize::MAX);
        pool.keep(block(100, 2), usize::MAX);
        let taken = [100, 90, 90].map(|lines| pool.take(lines).0.map(|block| block[0].0[0]));
        assert_eq!(taken, [Some(2), Some(1), None]);
    }
}
