//! Memory for numbers, taken from a pool and given back to it: a training step asks for the same
//! sizes again and again, and fresh pages cost more than the arithmetic done in them.

use crate::{Error, Result};
use bytemuck::{Pod, Zeroable};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A cache line, so that every buffer starts at one.
#[derive(Clone, Copy, Zeroable, Pod)]
#[repr(C, align(64))]
struct Line([u8; 64]);

const LINE: usize = std::mem::size_of::<Line>();
/// Smaller buffers are left to the allocator.
const POOLED: usize = 64;

/// A block of memory that starts at a cache line.
pub(crate) struct Buffer {
    lines: Vec<Line>,
}

static POOL: Mutex<Pool> =
    Mutex::new(Pool { free: BTreeMap::new(), order: BTreeMap::new(), lines: 0, given_back: 0 });
static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

struct Pool {
    /// What is free: by size, then by when it was given back.
    free: BTreeMap<(usize, u64), Vec<Line>>,
    /// The same by when it was given back.
    order: BTreeMap<u64, usize>,
    lines: usize,
    given_back: u64,
}

impl Pool {
    /// A free block of at least this size and not much more.
    fn take(&mut self, lines: usize) -> Option<Vec<Line>> {
        let (&at, _) = self.free.range((lines, 0)..=(lines + lines / 4, u64::MAX)).next()?;
        self.remove(at)
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
        self.order.insert(self.given_back, size);
        self.free.insert((size, self.given_back), block);
        self.lines += size;
        let mut dropped = Vec::new();
        while self.lines > most {
            let Some((&when, &size)) = self.order.first_key_value() else { break };
            dropped.extend(self.remove((size, when)));
        }
        dropped
    }
}

/// What the buffers of this process take, in bytes.
///
/// ```
/// use regard_tensor::Memory;
/// let before = Memory::now();
/// let x = regard_tensor::Tensor::zeros(&[1024, 1024], regard_tensor::DType::F32)?;
/// assert!(Memory::now().live >= before.live.min(1) + (1 << 22) - 1 || Memory::now().peak >= 1 << 22);
/// # drop(x);
/// # Ok::<(), regard_tensor::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Memory {
    /// In use now.
    pub live: usize,
    /// The most that was in use since the last reset.
    pub peak: usize,
}

impl Memory {
    /// The figures of this moment.
    ///
    /// ```
    /// use regard_tensor::{DType, Memory, Tensor};
    /// let x = Tensor::zeros(&[1024, 1024], DType::F32)?;
    /// assert!(Memory::now().live >= 4 << 20 && Memory::now().peak >= Memory::now().live);
    /// # drop(x);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn now() -> Self {
        Self {
            live: LIVE.load(Ordering::Relaxed) * LINE,
            peak: PEAK.load(Ordering::Relaxed) * LINE,
        }
    }

    /// The peak starts again from what is in use now.
    ///
    /// ```
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
}

impl Buffer {
    /// Room for so many things of a size; what they are is not said. Refuses more than there is.
    pub(crate) fn uninit(count: usize, size: usize) -> Result<Self> {
        let bytes = count * size;
        let lines = class(bytes.div_ceil(LINE));
        let pooled = (lines >= POOLED)
            .then(|| POOL.lock().unwrap_or_else(|e| e.into_inner()).take(lines))
            .flatten();
        let lines = match pooled {
            Some(lines) => lines,
            None => {
                let mut lines = bytemuck::try_zeroed_vec(lines)
                    .map_err(|()| Error::new(format!("there is no memory for {count} numbers")))?;
                regard_kernels::large_pages(&mut lines);
                lines
            }
        };
        Ok(Self::counted(lines))
    }

    /// As [`Self::uninit`], all 0.
    pub(crate) fn zeros(count: usize, size: usize) -> Result<Self> {
        let mut buffer = Self::uninit(count, size)?;
        let lines = (count * size).div_ceil(LINE);
        crate::parallel::fill(&mut buffer.lines[..lines], Line([0; 64]));
        Ok(buffer)
    }

    fn counted(lines: Vec<Line>) -> Self {
        let live = LIVE.fetch_add(lines.len(), Ordering::Relaxed) + lines.len();
        PEAK.fetch_max(live, Ordering::Relaxed);
        Self { lines }
    }

    /// All of it as numbers.
    pub(crate) fn slice<T: Pod>(&self) -> &[T] {
        bytemuck::cast_slice(&self.lines)
    }

    /// All of it as numbers.
    pub(crate) fn slice_mut<T: Pod>(&mut self) -> &mut [T] {
        bytemuck::cast_slice_mut(&mut self.lines)
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let lines = std::mem::take(&mut self.lines);
        let size = lines.len();
        LIVE.fetch_sub(size, Ordering::Relaxed);
        if size < POOLED {
            return;
        }
        // What was in use at once, and a quarter more for sizes that do not fit, may be wanted
        // again; more than that is given back.
        let most = PEAK.load(Ordering::Relaxed) / 4 * 5;
        let most = most.saturating_sub(LIVE.load(Ordering::Relaxed));
        drop(POOL.lock().unwrap_or_else(|e| e.into_inner()).keep(lines, most));
    }
}

/// Sizes are rounded up by at most an eighth, so that nearly equal ones share blocks.
fn class(lines: usize) -> usize {
    let step = (lines.next_power_of_two() / 16).max(1);
    lines.next_multiple_of(step)
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
