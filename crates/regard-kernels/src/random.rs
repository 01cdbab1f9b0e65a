//! Counter-based random numbers: a position gives its number, so nothing is stored and any
//! order of work, forward or backward, draws the same.
//!
//! The generator is Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy
//! as 1, 2, 3", SC 2011), checked below against the authors' published answers.

/// Which use a number is drawn for.
#[derive(Clone, Copy)]
pub(crate) enum Stream {
    Dropout = 0,
    Sample = 1,
    Plain = 2,
}

/// Four random words for a counter under a key: Philox4x32 with ten rounds.
///
/// ```
/// assert_eq!(
///     regard_kernels::philox([0; 4], [0; 2]),
///     [0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8],
/// );
/// ```
#[cfg_attr(optimized, inline(always))]
pub fn philox(counter: [u32; 4], key: [u32; 2]) -> [u32; 4] {
    let [mut a, mut b, mut c, mut d] = counter;
    let [mut k0, mut k1] = key;
    for _ in 0..10 {
        let p = u64::from(a) * 0xD251_1F53;
        let r = u64::from(c) * 0xCD9E_8D57;
        (a, b, c, d) = ((r >> 32) as u32 ^ b ^ k0, r as u32, (p >> 32) as u32 ^ d ^ k1, p as u32);
        k0 = k0.wrapping_add(0x9E37_79B9);
        k1 = k1.wrapping_add(0xBB67_AE85);
    }
    [a, b, c, d]
}

/// The words of one attention row: four keys share a draw.
#[derive(Clone, Copy)]
pub(crate) struct Draw {
    key: [u32; 2],
    head: u32,
    stream: u32,
}

impl Draw {
    /// `head` counts batch items times heads.
    pub(crate) fn new(seed: u64, stream: Stream, head: usize) -> Self {
        Self { key: [seed as u32, (seed >> 32) as u32], head: head as u32, stream: stream as u32 }
    }

    /// The words of keys `4 * quad ..` for a query.
    #[cfg_attr(optimized, inline(always))]
    pub(crate) fn quad(&self, query: u32, quad: u32) -> [u32; 4] {
        philox([quad, query, self.head, self.stream], self.key)
    }

    /// The word of one key for a query.
    #[cfg_attr(optimized, inline(always))]
    pub(crate) fn word(&self, query: usize, key: usize) -> u32 {
        self.quad(query as u32, (key / 4) as u32)[key % 4]
    }
}

/// A number strictly between 0 and 1 that `f32` holds exactly, from a random word.
#[cfg_attr(optimized, inline(always))]
pub(crate) const fn uniform(word: u32) -> f32 {
    ((word >> 9) as f32 + 0.5) * (1.0 / (1u32 << 23) as f32)
}

const _: () = assert!(0.0 < uniform(0) && uniform(u32::MAX) < 1.0);
