//! Memory for numbers, taken from a pool and given back to it: a training step asks for the same
//! sizes again and again, and fresh pages cost more than the arithmetic done in them.

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

static POOL: Mutex<Pool> = Mutex::new(Pool { free: BTreeMap::new(), lines: 0 });
static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

struct Pool {
    /// By size, what is free.
    free: BTreeMap<usize, Vec<Vec<Line>>>,
    lines: usize,
}

impl Pool {
    /// A free block of at least this size and not much more.
    fn take(&mut self, lines: usize) -> Option<Vec<Line>> {
        let (&size, blocks) = self.free.range_mut(lines..=lines + lines / 4).next()?;
        let block = blocks.pop()?;
        if blocks.is_empty() {
            self.free.remove(&size);
        }
        self.lines -= size;
        Some(block)
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
    pub fn now() -> Self {
        Self {
            live: LIVE.load(Ordering::Relaxed) * LINE,
            peak: PEAK.load(Ordering::Relaxed) * LINE,
        }
    }

    /// The peak starts again from what is in use now.
    pub fn reset_peak() {
        PEAK.store(LIVE.load(Ordering::Relaxed), Ordering::Relaxed);
    }
}

impl Buffer {
    /// Room for bytes; what they are is not said.
    pub(crate) fn room(bytes: usize) -> Self {
        let lines = class(bytes.div_ceil(LINE));
        let pooled = (lines >= POOLED)
            .then(|| POOL.lock().unwrap_or_else(|e| e.into_inner()).take(lines))
            .flatten();
        Self::counted(pooled.unwrap_or_else(|| bytemuck::zeroed_vec(lines)))
    }

    /// Room for bytes, all 0.
    pub(crate) fn zeros(bytes: usize) -> Self {
        let mut buffer = Self::room(bytes);
        let lines = bytes.div_ceil(LINE);
        crate::parallel::fill(&mut buffer.lines[..lines], Line([0; 64]));
        buffer
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
        let mut pool = POOL.lock().unwrap_or_else(|e| e.into_inner());
        // What was in use at once may be wanted again; more than that is given back.
        let most = PEAK.load(Ordering::Relaxed).saturating_sub(LIVE.load(Ordering::Relaxed));
        if pool.lines + size <= most {
            pool.lines += size;
            pool.free.entry(size).or_default().push(lines);
        }
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
            let mut buffer = Buffer::room(100_000);
            buffer.slice_mut::<u8>().fill(7);
            drop(buffer);
            assert!(Buffer::zeros(100_000).slice::<u8>()[..100_000].iter().all(|&x| x == 0));
        }
    }
}
