//! A register of numbers, one type per instruction set, and the functions computed in it.
//!
//! Every method is `inline(always)` in an optimized build: it becomes machine code only inside a
//! function that has the instruction set's `target_feature` (see `kernels.rs`). None of them is safe
//! to call elsewhere. Without optimization they are functions of their own, for the stack's sake: see
//! `build.rs`.

// One reason holds for every block in this folder: the caller has the instruction set, and gives
// valid pointers; see `Simd`.
#![allow(clippy::undocumented_unsafe_blocks)]

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod portable;

#[cfg(target_arch = "x86_64")]
pub(crate) use avx2::{F32x8, F64x4};
#[cfg(target_arch = "x86_64")]
pub(crate) use avx512::{F32x16, F64x8};
pub(crate) use portable::{P32, P64};

use crate::Real;

/// The constants a precision's polynomials need.
pub(crate) trait Tables: Real {
    /// (eʳ − 1 − r) / r² on |r| ≤ ½ ln 2, fitted by Chebyshev interpolation, lowest power first.
    const EXP: &'static [Self];
    /// Added and subtracted, rounds to a whole number.
    const ROUND: Self;
    /// ln 2 in a part with trailing zeros and the rest.
    const LN2: (Self, Self);
    /// The logarithm of the smallest normal number: below it eˣ is taken for 0, because numbers
    /// below the normal range are many times slower.
    const LEAST_EXP: Self;
    /// The logarithm of a number too large to hold: from there on eˣ is ∞.
    const INFINITE_EXP: Self;
    /// Beyond this tanh is ±1.
    const TANH_ONE: Self;
    /// (4 + a) · Φ(−a) · e^{a²/2} for a ≥ 0, as a polynomial in (a − 4) / (a + 4), fitted by
    /// Chebyshev interpolation up to where Φ(−a) vanishes, lowest power first.
    const NORMAL_TAIL: &'static [Self];
}

impl Tables for f32 {
    const EXP: &'static [f32] = &[0.5, 0.166_665_77, 0.041_666_555, 0.008_363_179, 0.001_392_618_4];
    const ROUND: f32 = 12582912.0;
    const LN2: (f32, f32) = (0.693_359_4, -2.121_944_4e-4);
    const LEAST_EXP: f32 = -87.336_54;
    const INFINITE_EXP: f32 = 89.0;
    const TANH_ONE: f32 = 10.0;
    const NORMAL_TAIL: &'static [f32] = &[
        0.755_285_14,
        -0.607_896_6,
        0.387_136_7,
        -0.186_522_2,
        0.060_406_85,
        -0.007_532_521,
        -0.003_529_760_3,
        0.001_577_709_2,
        0.000_211_579_29,
        -0.000_115_843_635,
    ];
}

impl Tables for f64 {
    const EXP: &'static [f64] = &[
        0.5,
        0.166_666_666_666_666_67,
        0.041_666_666_666_666_68,
        0.008_333_333_333_333_334,
        0.001_388_888_888_887_907_4,
        0.000_198_412_698_412_632_99,
        2.480_158_733_644_223_8e-5,
        2.755_731_924_721_873e-6,
        2.755_726_327_908_85e-7,
        2.505_207_109_429_354_6e-8,
        2.091_813_773_764_273_6e-9,
        1.608_662_795_678_037e-10,
    ];
    const ROUND: f64 = 6755399441055744.0;
    const LN2: (f64, f64) = (0.693_147_180_369_123_8, 1.908_214_929_270_587_7e-10);
    const LEAST_EXP: f64 = -708.396_418_532_264_1;
    const INFINITE_EXP: f64 = 710.0;
    const TANH_ONE: f64 = 20.0;
    const NORMAL_TAIL: &'static [f64] = &[
        0.755_285_130_415_751_5,
        -0.607_896_641_971_891_7,
        0.387_137_400_742_218_4,
        -0.186_521_857_959_694_7,
        0.060_396_574_890_722_98,
        -0.007_540_188_965_567_672,
        -0.003_479_692_362_699_694,
        0.001_630_818_441_379_038_2,
        0.000_133_344_258_490_337_26,
        -0.000_231_094_812_961_477_02,
        -1.907_891_293_488_432_3e-6,
        3.514_414_872_672_854e-5,
        7.150_870_158_724_707e-7,
        -5.918_773_309_451_216e-6,
        -6.252_896_338_151_077e-7,
        1.019_533_485_148_897_3e-6,
        2.638_442_219_390_815e-7,
        -1.538_919_197_955_525_4e-7,
        -7.642_966_844_551_204e-8,
        1.429_837_597_027_241_7e-8,
        1.387_337_555_724_519_7e-8,
        1.622_685_652_233_515e-10,
        -9.296_105_524_114_009e-10,
    ];
}

/// A register of `LANES` numbers.
///
/// # Safety
/// Every method needs its instruction set; loads and stores need valid pointers.
pub(crate) trait Simd: Copy {
    type T: Tables;
    const LANES: usize;
    /// How many registers wide the matrix kernel's tile is: with its six rows, as many
    /// accumulators as the register file holds.
    const WIDE: usize;

    unsafe fn splat(x: Self::T) -> Self;
    unsafe fn load(from: *const Self::T) -> Self;
    unsafe fn store(self, to: *mut Self::T);
    /// The first `n` < LANES numbers; the others are 0.
    unsafe fn load_first(from: *const Self::T, n: usize) -> Self;
    /// Only the first `n` < LANES numbers.
    unsafe fn store_first(self, to: *mut Self::T, n: usize);
    unsafe fn add(self, other: Self) -> Self;
    unsafe fn sub(self, other: Self) -> Self;
    unsafe fn mul(self, other: Self) -> Self;
    unsafe fn div(self, other: Self) -> Self;
    unsafe fn sqrt(self) -> Self;
    /// The larger; `self` where either is NaN.
    unsafe fn max(self, other: Self) -> Self;
    /// The smaller; `self` where either is NaN.
    unsafe fn min(self, other: Self) -> Self;
    /// self · b + c
    unsafe fn fma(self, b: Self, c: Self) -> Self;
    /// c − self · b
    unsafe fn fnma(self, b: Self, c: Self) -> Self;
    /// Per lane: `yes` where self > other, else `no`.
    unsafe fn where_greater(self, other: Self, yes: Self, no: Self) -> Self;
    /// Per lane: self where it is above 0, else self · slope.
    #[cfg_attr(optimized, inline(always))]
    unsafe fn leaky(self, slope: Self) -> Self {
        unsafe { self.where_greater(Self::zero(), self, self.mul(slope)) }
    }
    /// self · 2ⁿ for whole n.
    unsafe fn times_power_of_2(self, n: Self) -> Self;
    /// 1 / self to within a unit in the last place or so.
    unsafe fn reciprocal(self) -> Self;
    /// The sum of the lanes.
    unsafe fn sum(self) -> Self::T;

    /// Writes a square of LANES × LANES numbers, each row times `factor`, the other way round.
    #[cfg_attr(optimized, inline(always))]
    unsafe fn transpose(
        from: *const Self::T,
        from_row: usize,
        factor: Self,
        to: *mut Self::T,
        to_row: usize,
    ) {
        unsafe {
            let mut lanes = [Self::T::ZERO; 16];
            for r in 0..Self::LANES {
                Self::load(from.add(r * from_row)).mul(factor).store(lanes.as_mut_ptr());
                for (c, &x) in lanes[..Self::LANES].iter().enumerate() {
                    *to.add(c * to_row + r) = x;
                }
            }
        }
    }

    /// The largest lane; NaN loses.
    #[cfg_attr(optimized, inline(always))]
    unsafe fn largest(self) -> Self::T {
        unsafe {
            let mut lanes = [Self::T::NEG_INFINITY; 16];
            self.store(lanes.as_mut_ptr());
            let mut half = Self::LANES / 2;
            while half > 0 {
                for lane in 0..half {
                    if lanes[lane + half] > lanes[lane] {
                        lanes[lane] = lanes[lane + half];
                    }
                }
                half /= 2;
            }
            lanes[0]
        }
    }

    /// The first `n` numbers, or all; the others are `or`'s.
    #[cfg_attr(optimized, inline(always))]
    unsafe fn load_upto_or(from: *const Self::T, n: usize, or: Self) -> Self {
        unsafe {
            if n >= Self::LANES {
                return Self::load(from);
            }
            let mut lanes = [Self::T::ZERO; 16];
            or.store(lanes.as_mut_ptr());
            from.copy_to_nonoverlapping(lanes.as_mut_ptr(), n);
            Self::load(lanes.as_ptr())
        }
    }

    /// The first and the second of LANES pairs of numbers.
    #[cfg_attr(optimized, inline(always))]
    unsafe fn load_pairs(from: *const Self::T) -> [Self; 2] {
        let (mut first, mut second) = ([Self::T::ZERO; 16], [Self::T::ZERO; 16]);
        // SAFETY: 2 · LANES numbers, and no register has more than 16 lanes.
        unsafe {
            for (n, (x, y)) in first.iter_mut().zip(&mut second).take(Self::LANES).enumerate() {
                (*x, *y) = (*from.add(2 * n), *from.add(2 * n + 1));
            }
            [Self::load(first.as_ptr()), Self::load(second.as_ptr())]
        }
    }

    /// The first lane.
    #[cfg_attr(optimized, inline(always))]
    unsafe fn first(self) -> Self::T {
        let mut lanes = [Self::T::ZERO; 16];
        // SAFETY: no register has more.
        unsafe { self.store(lanes.as_mut_ptr()) };
        lanes[0]
    }

    /// The sums of the lanes of four registers.
    #[cfg_attr(optimized, inline(always))]
    unsafe fn sum4(four: [Self; 4]) -> [Self::T; 4] {
        unsafe { [four[0].sum(), four[1].sum(), four[2].sum(), four[3].sum()] }
    }

    #[cfg_attr(optimized, inline(always))]
    unsafe fn zero() -> Self {
        unsafe { Self::splat(Self::T::ZERO) }
    }

    #[cfg_attr(optimized, inline(always))]
    unsafe fn number(x: f64) -> Self {
        unsafe { Self::splat(Self::T::of(x)) }
    }

    /// Loads `n` ≤ LANES numbers.
    #[cfg_attr(optimized, inline(always))]
    unsafe fn load_upto(from: *const Self::T, n: usize) -> Self {
        unsafe { if n >= Self::LANES { Self::load(from) } else { Self::load_first(from, n) } }
    }

    /// Stores `n` ≤ LANES numbers.
    #[cfg_attr(optimized, inline(always))]
    unsafe fn store_upto(self, to: *mut Self::T, n: usize) {
        unsafe { if n >= Self::LANES { self.store(to) } else { self.store_first(to, n) } }
    }

    /// x = n·ln 2 + r with |r| ≤ ½ ln 2; gives n, r and the polynomial of `Tables::EXP` at r.
    #[cfg_attr(optimized, inline(always))]
    unsafe fn exp_parts(self) -> (Self, Self, Self) {
        // SAFETY: the caller has the instruction set.
        unsafe { exp_parts(self) }
    }

    /// eˣ for x ≤ 0 or a little above; 0 for −∞, NaN for NaN.
    #[cfg_attr(optimized, inline(always))]
    unsafe fn exp(self) -> Self {
        unsafe {
            let one = Self::splat(Self::T::ONE);
            let least = Self::splat(Self::T::LEAST_EXP);
            let (n, r, sum) = self.max(least).exp_parts();
            let power = sum.fma(r, one).fma(r, one).times_power_of_2(n);
            least.where_greater(self, Self::zero(), power)
        }
    }

    /// eˣ − 1 for |x| ≤ 40 or so, accurate near 0.
    #[cfg_attr(optimized, inline(always))]
    unsafe fn exp_m1(self) -> Self {
        unsafe {
            let one = Self::splat(Self::T::ONE);
            let (n, r, sum) = self.exp_parts();
            let power = one.times_power_of_2(n);
            r.mul(r).fma(sum, r).fma(power, power.sub(one))
        }
    }

    #[cfg_attr(optimized, inline(always))]
    unsafe fn tanh(self) -> Self {
        unsafe {
            let end = Self::splat(Self::T::TANH_ONE);
            let x = self.min(end).max(Self::zero().sub(end));
            let e = x.add(x).exp_m1();
            e.mul(e.add(Self::number(2.0)).reciprocal())
        }
    }

    /// 1 / (1 + e⁻ˣ), with no overflow on either side.
    #[cfg_attr(optimized, inline(always))]
    unsafe fn sigmoid(self) -> Self {
        unsafe {
            let zero = Self::zero();
            let e = zero.sub(self.max(zero.sub(self))).exp();
            let r = e.add(Self::splat(Self::T::ONE)).reciprocal();
            zero.where_greater(self, e.mul(r), r)
        }
    }

    /// eˣ for any x: 0, ∞ and NaN where they belong.
    #[cfg_attr(optimized, inline(always))]
    unsafe fn exp_anywhere(self) -> Self {
        unsafe { self.min(Self::splat(Self::T::INFINITE_EXP)).exp() }
    }

    /// Φ(x), the normal distribution's share below x, and φ(x), its density there.
    ///
    /// Both tails come from the small side, so nothing cancels: Φ(−8) is as exact as Φ(8).
    #[cfg_attr(optimized, inline(always))]
    unsafe fn normal(self) -> (Self, Self) {
        // SAFETY: the caller has the instruction set.
        unsafe { normal(self) }
    }
}

/// Prefetches a cache line.
#[cfg_attr(optimized, inline(always))]
pub(crate) fn prefetch<T>(at: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch touches nothing, wherever it is.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(at.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}

/// Prefetches all lines of a row of `n` numbers.
#[cfg_attr(optimized, inline(always))]
pub(crate) fn prefetch_row<T>(row: *const T, n: usize) {
    let mut at = 0;
    while at < n {
        prefetch(row.wrapping_add(at));
        at += 64 / size_of::<T>();
    }
}

/// Prefetches a row of at most a line, which may lie on two.
#[cfg_attr(optimized, inline(always))]
pub(crate) fn prefetch_ends<T>(row: *const T, n: usize) {
    prefetch(row);
    prefetch(row.wrapping_add(n).wrapping_byte_sub(1));
}

/// As [`prefetch_ends`], for a row that will be written.
#[cfg_attr(optimized, inline(always))]
pub(crate) fn prefetch_ends_to_write<T>(row: *const T, n: usize) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: as above.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_ET0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_ET0>(row.cast());
        _mm_prefetch::<_MM_HINT_ET0>(row.wrapping_add(n).wrapping_byte_sub(1).cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (row, n);
}

/// As [`Simd::exp_parts`]; apart, so that a path may have it as a function of its own.
#[cfg_attr(optimized, inline(always))]
unsafe fn exp_parts<V: Simd>(x: V) -> (V, V, V) {
    unsafe {
        let round = V::splat(V::T::ROUND);
        let n = x.fma(V::number(std::f64::consts::LOG2_E), round).sub(round);
        let (high, low) = V::T::LN2;
        let r = n.fnma(V::splat(low), n.fnma(V::splat(high), x));
        let table = V::T::EXP;
        let mut sum = V::splat(table[table.len() - 1]);
        let mut at = table.len() - 1;
        while at > 0 {
            at -= 1;
            sum = sum.fma(r, V::splat(table[at]));
        }
        (n, r, sum)
    }
}

/// As [`Simd::normal`].
#[cfg_attr(optimized, inline(always))]
unsafe fn normal<V: Simd>(x: V) -> (V, V) {
    unsafe {
        let zero = V::zero();
        let one = V::splat(V::T::ONE);
        let e = x.mul(x.mul(V::number(-0.5))).exp();
        // Beyond 40 e is 0 in either precision.
        let a = x.max(zero.sub(x)).min(V::number(40.0));
        let t = a.add(V::number(4.0)).reciprocal();
        let w = t.fnma(V::number(8.0), one);
        let table = V::T::NORMAL_TAIL;
        let mut sum = V::splat(table[table.len() - 1]);
        let mut at = table.len() - 1;
        while at > 0 {
            at -= 1;
            sum = sum.fma(w, V::splat(table[at]));
        }
        let tail = sum.mul(t).mul(e);
        let density = e.mul(V::number(0.398_942_280_401_432_7));
        (x.where_greater(zero, one.sub(tail), tail), density)
    }
}
