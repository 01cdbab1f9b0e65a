//! Operands, split and packed into panels.

use super::{SIDE, TILE};
use crate::cpu::simd::prefetch;
use half::bf16;
use std::arch::x86_64::*;

/// Numbers that the unit multiplies, as the bf16 numbers that they are made of.
pub(in super::super) trait Factor: Copy + Send + Sync {
    /// How many bf16 numbers one is.
    const PARTS: usize;
    /// Picoseconds of a core for a multiplication and for a number packed.
    const COSTS: [usize; 2];
    /// Numbers of 4 bytes in a slab: both tiles of each part.
    const SLAB: usize = 2 * Self::PARTS * TILE;

    fn wide(self) -> f32;

    /// The parts of so many of 32 numbers that lie one behind another, in pairs; zeros behind.
    ///
    /// # Safety
    /// They are there, and the machine has AVX-512.
    unsafe fn along(at: *const Self, count: usize) -> [__m512i; 3];

    /// The parts of so many numbers of each of two rows, at most 16, as pairs across; zeros behind.
    ///
    /// # Safety
    /// They are there, and the machine has AVX-512.
    unsafe fn across(rows: [*const Self; 2], counts: [usize; 2]) -> [__m512i; 3];
}

/// Pairs of upper halves: odd words of two registers.
const ODD: [u16; 32] = {
    let mut odd = [0; 32];
    let mut n = 0;
    while n < 32 {
        odd[n] = 2 * n as u16 + 1;
        n += 1;
    }
    odd
};

impl Factor for f32 {
    const PARTS: usize = 3;
    const COSTS: [usize; 2] = [7, 700];

    fn wide(self) -> f32 {
        self
    }

    #[cfg_attr(optimized, inline(always))]
    unsafe fn along(at: *const f32, count: usize) -> [__m512i; 3] {
        // SAFETY: the caller's; numbers beyond are masked.
        unsafe {
            let odd = _mm512_loadu_epi16(ODD.as_ptr().cast());
            let left = split::<3>(_mm512_maskz_loadu_ps(places(count), at));
            let rest = places(count.saturating_sub(16));
            let right = split::<3>(_mm512_maskz_loadu_ps(rest, at.wrapping_add(16)));
            let mut parts = [odd; 3];
            for part in 0..3 {
                parts[part] = _mm512_permutex2var_epi16(left[part], odd, right[part]);
            }
            parts
        }
    }

    #[cfg_attr(optimized, inline(always))]
    unsafe fn across(rows: [*const f32; 2], counts: [usize; 2]) -> [__m512i; 3] {
        // SAFETY: the caller's; numbers beyond are masked.
        unsafe {
            let upper = _mm512_set1_epi32(!0xffff);
            let left = split::<3>(_mm512_maskz_loadu_ps(places(counts[0]), rows[0]));
            let right = split::<3>(_mm512_maskz_loadu_ps(places(counts[1]), rows[1]));
            let mut parts = [upper; 3];
            for part in 0..3 {
                let low = _mm512_srli_epi32(left[part], 16);
                parts[part] = _mm512_or_si512(low, _mm512_and_si512(right[part], upper));
            }
            parts
        }
    }
}

impl Factor for bf16 {
    const PARTS: usize = 1;
    const COSTS: [usize; 2] = [2, 350];

    fn wide(self) -> f32 {
        self.to_f32()
    }

    #[cfg_attr(optimized, inline(always))]
    unsafe fn along(at: *const bf16, count: usize) -> [__m512i; 3] {
        // SAFETY: the caller's; numbers beyond are masked.
        unsafe {
            let mask = if count >= 32 { !0 } else { (1 << count) - 1 };
            [
                _mm512_maskz_loadu_epi16(mask, at.cast()),
                _mm512_setzero_si512(),
                _mm512_setzero_si512(),
            ]
        }
    }

    #[cfg_attr(optimized, inline(always))]
    unsafe fn across(rows: [*const bf16; 2], counts: [usize; 2]) -> [__m512i; 3] {
        // SAFETY: the caller's; numbers beyond are masked.
        unsafe {
            let row = |n: usize| {
                let mask = u32::from(places(counts[n]));
                let both = _mm512_maskz_loadu_epi16(mask, rows[n].cast());
                _mm512_cvtepu16_epi32(_mm512_castsi512_si256(both))
            };
            let pairs = _mm512_or_si512(row(0), _mm512_slli_epi32(row(1), 16));
            [pairs, _mm512_setzero_si512(), _mm512_setzero_si512()]
        }
    }
}

/// An operand as it lies: lines (rows of A, columns of B) of some depth, one of the two strides 1.
#[derive(Clone, Copy)]
pub(super) struct Operand<F> {
    pub(super) from: *const F,
    /// From a line to the next.
    pub(super) line: usize,
    /// From a number of a line to the next.
    pub(super) step: usize,
    pub(super) lines: usize,
    pub(super) depth: usize,
}

// SAFETY: only read, by tasks that end before the borrow does.
unsafe impl<F: Factor> Sync for Operand<F> {}

impl<F: Factor> Operand<F> {
    /// Some of its lines and some of their depth.
    ///
    /// # Safety
    /// It has them.
    pub(super) unsafe fn part(self, [line, lines]: [usize; 2], [step, depth]: [usize; 2]) -> Self {
        // SAFETY: the caller's.
        let from = unsafe { self.from.add(line * self.line + step * self.step) };
        Self { from, lines, depth, ..self }
    }

    /// 32 of its lines, or as many as are left.
    ///
    /// # Safety
    /// It has this panel.
    pub(super) unsafe fn panel(self, panel: usize) -> Self {
        let from = panel * SIDE;
        // SAFETY: the caller's.
        unsafe { self.part([from, SIDE.min(self.lines - from)], [0, self.depth]) }
    }

    /// Panels of 32 lines.
    pub(super) fn panels(&self) -> usize {
        self.lines.div_ceil(SIDE)
    }

    pub(super) fn slabs(&self) -> usize {
        self.depth.div_ceil(SIDE)
    }

    /// Where a slab begins among all that is packed.
    pub(super) fn slab(&self, panel: usize, slab: usize) -> usize {
        (panel * self.slabs() + slab) * F::SLAB
    }

    /// Parts in which it is packed.
    pub(super) fn parts(&self) -> usize {
        if self.step == 1 { self.panels() } else { self.slabs() }
    }

    /// Numbers of 4 bytes that all of it takes.
    pub(super) fn packed_len(&self) -> usize {
        self.panels() * self.slabs() * F::SLAB
    }
}

/// bf16 numbers that add up to an `f32`, three of them exactly and two nearly, each in the upper half
/// of its place; of the last one the lower half may be anything.
#[target_feature(enable = "avx512f")]
pub(super) fn split<const N: usize>(x: __m512) -> [__m512i; N] {
    let (half, upper) = (_mm512_set1_epi32(0x8000), _mm512_set1_epi32(!0xffff));
    let mut rest = x;
    let mut parts = [_mm512_castps_si512(x); N];
    for part in &mut parts[..N - 1] {
        let rounded = _mm512_add_epi32(_mm512_castps_si512(rest), half);
        *part = _mm512_and_si512(rounded, upper);
        rest = _mm512_sub_ps(rest, _mm512_castsi512_ps(*part));
    }
    parts[N - 1] = _mm512_castps_si512(rest);
    parts
}

/// The first `n` of sixteen places.
pub(super) fn places(n: usize) -> __mmask16 {
    if n >= 16 { !0 } else { (1 << n) - 1 }
}

/// Splits a part of an operand in the order in which it lies: a panel where a line's numbers are
/// neighbors, otherwise a slab of all panels. A tile gets a row for each line where `by_line` (as A
/// needs it), or a row for each pair of depth (as B needs it).
///
/// # Safety
/// The operand is there, `to` holds all its panels, and the machine has AVX-512.
#[target_feature(enable = "avx512f,avx512bw")]
pub(super) unsafe fn pack<F: Factor>(x: &Operand<F>, part: usize, by_line: bool, to: *mut f32) {
    let along = x.step == 1;
    let (panels, slabs) =
        if along { (part..part + 1, 0..x.slabs()) } else { (0..x.panels(), part..part + 1) };
    // SAFETY: the operand has these panels and slabs, and so has `to`.
    unsafe {
        for slab in slabs {
            if along {
                pack_along(x, part, slab, to);
            } else {
                pack_across(x, slab, to);
            }
            for panel in panels.clone().filter(|_| along != by_line) {
                for tile in 0..2 * F::PARTS {
                    turn(to.add(x.slab(panel, slab) + tile * TILE).cast());
                }
            }
        }
    }
}

/// Steps of depth that rows are asked for ahead.
const AHEAD: usize = 16;

/// A slab of one panel, tiles with a row for each line.
#[target_feature(enable = "avx512f,avx512bw")]
unsafe fn pack_along<F: Factor>(x: &Operand<F>, panel: usize, slab: usize, to: *mut f32) {
    let depth = x.depth - slab * SIDE;
    // SAFETY: lines and steps beyond the operand's are masked; rows of tiles are written within
    // their slab.
    unsafe {
        let to = to.add(x.slab(panel, slab));
        for line in 0..SIDE {
            let count = if panel * SIDE + line < x.lines { depth.min(SIDE) } else { 0 };
            let at = x.from.wrapping_add((panel * SIDE + line) * x.line + slab * SIDE);
            prefetch(at.wrapping_add(SIDE).cast::<f32>());
            if F::PARTS > 1 {
                prefetch(at.wrapping_add(SIDE + 16).cast::<f32>());
            }
            let rows = F::along(at, count);
            for (part, row) in rows.into_iter().enumerate().take(F::PARTS) {
                _mm512_store_si512(to.add(2 * part * TILE + line * 16).cast(), row);
            }
        }
    }
}

/// A slab of every panel, tiles with a row for each pair of depth.
#[target_feature(enable = "avx512f,avx512bw")]
unsafe fn pack_across<F: Factor>(x: &Operand<F>, slab: usize, to: *mut f32) {
    let depth = x.depth - slab * SIDE;
    // SAFETY: as above.
    unsafe {
        for pair in 0..SIDE / 2 {
            let at = x.from.wrapping_add((slab * SIDE + 2 * pair) * x.step);
            for sixteen in 0..2 * x.panels() {
                let later = at.wrapping_add(AHEAD * x.step + sixteen * 16);
                prefetch(later.cast::<f32>());
                prefetch(later.wrapping_add(x.step).cast::<f32>());
                let count = x.lines.saturating_sub(sixteen * 16).min(16);
                let counts = [0, 1].map(|row| if 2 * pair + row < depth { count } else { 0 });
                let at = at.wrapping_add(sixteen * 16);
                let rows = F::across([at, at.wrapping_add(x.step)], counts);
                let to = to.add(x.slab(sixteen / 2, slab) + sixteen % 2 * TILE + pair * 16);
                for (part, row) in rows.into_iter().enumerate().take(F::PARTS) {
                    _mm512_store_si512(to.add(2 * part * TILE).cast(), row);
                }
            }
        }
    }
}

/// Turns a tile of 16 × 16 pairs round.
///
/// # Safety
/// 1 KiB is there, aligned, and the machine has AVX-512.
#[target_feature(enable = "avx512f")]
unsafe fn turn(tile: *mut __m512i) {
    // SAFETY: the caller's.
    unsafe {
        let mut x = [_mm512_setzero_si512(); 16];
        for (row, x) in x.iter_mut().enumerate() {
            *x = _mm512_load_si512(tile.add(row));
        }
        let mut y = x;
        for n in 0..8 {
            y[2 * n] = _mm512_unpacklo_epi32(x[2 * n], x[2 * n + 1]);
            y[2 * n + 1] = _mm512_unpackhi_epi32(x[2 * n], x[2 * n + 1]);
        }
        for n in 0..4 {
            for m in 0..2 {
                x[4 * n + 2 * m] = _mm512_unpacklo_epi64(y[4 * n + m], y[4 * n + 2 + m]);
                x[4 * n + 2 * m + 1] = _mm512_unpackhi_epi64(y[4 * n + m], y[4 * n + 2 + m]);
            }
        }
        // x[4n + c] has, in each quarter q, column 4q + c of rows 4n..4n + 4.
        for n in 0..2 {
            for c in 0..4 {
                let (low, high) = (x[8 * n + c], x[8 * n + 4 + c]);
                y[8 * n + c] = _mm512_shuffle_i32x4(low, high, 0b10_00_10_00);
                y[8 * n + 4 + c] = _mm512_shuffle_i32x4(low, high, 0b11_01_11_01);
            }
        }
        for c in 0..4 {
            let [even, odd] = [c, 4 + c];
            _mm512_store_si512(
                tile.add(c),
                _mm512_shuffle_i32x4(y[even], y[8 + even], 0b10_00_10_00),
            );
            _mm512_store_si512(
                tile.add(8 + c),
                _mm512_shuffle_i32x4(y[even], y[8 + even], 0b11_01_11_01),
            );
            _mm512_store_si512(
                tile.add(4 + c),
                _mm512_shuffle_i32x4(y[odd], y[8 + odd], 0b10_00_10_00),
            );
            _mm512_store_si512(
                tile.add(12 + c),
                _mm512_shuffle_i32x4(y[odd], y[8 + odd], 0b11_01_11_01),
            );
        }
    }
}
