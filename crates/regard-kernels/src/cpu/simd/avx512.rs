//! AVX-512: thirty-two registers of sixteen `f32` or eight `f64`.

#![allow(clippy::needless_range_loop)] // constant bounds, so that everything stays in registers

use super::{Simd, Tables};
use std::arch::x86_64::*;

#[derive(Clone, Copy)]
pub(crate) struct F32x16(__m512);

#[derive(Clone, Copy)]
pub(crate) struct F64x8(__m512d);

macro_rules! avx512 {
    ($name:ident, $t:ty, $lanes:literal, $mask:ty, $set1:ident, $load:ident, $store:ident,
     $load_masked:ident, $store_masked:ident, $add:ident, $sub:ident, $mul:ident, $div:ident,
     $sqrt:ident, $max:ident, $min:ident, $fma:ident, $fnma:ident, $compare:ident, $blend:ident,
     $scale:ident, $sum:ident, $reciprocal:item $(, $more:item)*) => {
        impl Simd for $name {
            type T = $t;
            const LANES: usize = $lanes;
            const WIDE: usize = 4;

            #[cfg_attr(optimized, inline(always))]
            unsafe fn splat(x: $t) -> Self {
                unsafe { Self($set1(x)) }
            }
            #[cfg_attr(optimized, inline(always))]
            unsafe fn load(from: *const $t) -> Self {
                unsafe { Self($load(from)) }
            }
            #[cfg_attr(optimized, inline(always))]
            unsafe fn store(self, to: *mut $t) {
                unsafe { $store(to, self.0) }
            }
            #[cfg_attr(optimized, inline(always))]
            unsafe fn load_first(from: *const $t, n: usize) -> Self {
                unsafe { Self($load_masked(((1u32 << n) - 1) as $mask, from)) }
            }
            #[cfg_attr(optimized, inline(always))]
            unsafe fn store_first(self, to: *mut $t, n: usize) {
                unsafe { $store_masked(to, ((1u32 << n) - 1) as $mask, self.0) }
            }
            #[cfg_attr(optimized, inline(always))]
            unsafe fn add(self, other: Self) -> Self {
                unsafe { Self($add(self.0, other.0)) }
            }
            #[cfg_attr(optimized, inline(always))]
            unsafe fn sub(self, other: Self) -> Self {
                unsafe { Self($sub(self.0, other.0)) }
            }
            #[cfg_attr(optimized, inline(always))]
            unsafe fn mul(self, other: Self) -> Self {
                unsafe { Self($mul(self.0, other.0)) }
            }
            #[cfg_attr(optimized, inline(always))]
            unsafe fn div(self, other: Self) -> Self {
                unsafe { Self($div(self.0, other.0)) }
            }
            #[cfg_attr(optimized, inline(always))]
            unsafe fn sqrt(self) -> Self {
                unsafe { Self($sqrt(self.0)) }
            }
            #[cfg_attr(optimized, inline(always))]
            unsafe fn max(self, other: Self) -> Self {
                unsafe { Self($max(other.0, self.0)) }
            }
            #[cfg_attr(optimized, inline(always))]
            unsafe fn min(self, other: Self) -> Self {
                unsafe { Self($min(other.0, self.0)) }
            }
            #[cfg_attr(optimized, inline(always))]
            unsafe fn fma(self, b: Self, c: Self) -> Self {
                unsafe { Self($fma(self.0, b.0, c.0)) }
            }
            #[cfg_attr(optimized, inline(always))]
            unsafe fn fnma(self, b: Self, c: Self) -> Self {
                unsafe { Self($fnma(self.0, b.0, c.0)) }
            }
            #[cfg_attr(optimized, inline(always))]
            unsafe fn where_greater(self, other: Self, yes: Self, no: Self) -> Self {
                unsafe {
                    let greater = $compare::<_CMP_GT_OQ>(self.0, other.0);
                    Self($blend(greater, no.0, yes.0))
                }
            }
            #[cfg_attr(optimized, inline(always))]
            unsafe fn times_power_of_2(self, n: Self) -> Self {
                unsafe { Self($scale(self.0, n.0)) }
            }
            #[cfg_attr(optimized, inline(always))]
            unsafe fn sum(self) -> $t {
                unsafe { $sum(self.0) }
            }
            #[cfg_attr(optimized, inline(always))]
            $reciprocal
            $(
                #[cfg_attr(optimized, inline(always))]
                $more
            )*
        }
    };
}

avx512!(
    F32x16,
    f32,
    16,
    __mmask16,
    _mm512_set1_ps,
    _mm512_loadu_ps,
    _mm512_storeu_ps,
    _mm512_maskz_loadu_ps,
    _mm512_mask_storeu_ps,
    _mm512_add_ps,
    _mm512_sub_ps,
    _mm512_mul_ps,
    _mm512_div_ps,
    _mm512_sqrt_ps,
    _mm512_max_ps,
    _mm512_min_ps,
    _mm512_fmadd_ps,
    _mm512_fnmadd_ps,
    _mm512_cmp_ps_mask,
    _mm512_mask_blend_ps,
    _mm512_scalef_ps,
    _mm512_reduce_add_ps,
    unsafe fn reciprocal(self) -> Self {
        unsafe {
            // 14 bits, and one Newton step
            let r = Self(_mm512_rcp14_ps(self.0));
            let e = self.fnma(r, Self::splat(1.0));
            r.fma(e, r)
        }
    },
    unsafe fn exp(self) -> Self {
        unsafe {
            // As everywhere, with a mask in place of a clamp and a choice.
            let (n, r, sum) = self.exp_parts();
            let one = Self::splat(1.0);
            let normal = _mm512_cmp_ps_mask::<_CMP_NLT_UQ>(self.0, Self::splat(f32::LEAST_EXP).0);
            Self(_mm512_maskz_scalef_ps(normal, sum.fma(r, one).fma(r, one).0, n.0))
        }
    },
    unsafe fn largest(self) -> f32 {
        unsafe { _mm512_reduce_max_ps(self.0) }
    },
    unsafe fn load_upto_or(from: *const f32, n: usize, or: Self) -> Self {
        unsafe {
            let first = if n >= 16 { !0 } else { ((1u32 << n) - 1) as __mmask16 };
            Self(_mm512_mask_loadu_ps(or.0, first, from))
        }
    },
    unsafe fn leaky(self, slope: Self) -> Self {
        unsafe {
            let below = _mm512_cmp_ps_mask::<_CMP_NGT_UQ>(self.0, _mm512_setzero_ps());
            Self(_mm512_mask_mul_ps(self.0, below, self.0, slope.0))
        }
    },
    unsafe fn load_pairs(from: *const f32) -> [Self; 2] {
        unsafe {
            let even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
            let odd = _mm512_add_epi32(even, _mm512_set1_epi32(1));
            let (low, high) = (_mm512_loadu_ps(from), _mm512_loadu_ps(from.add(16)));
            let first = _mm512_permutex2var_ps(low, even, high);
            [Self(first), Self(_mm512_permutex2var_ps(low, odd, high))]
        }
    },
    unsafe fn sum4(four: [Self; 4]) -> [f32; 4] {
        unsafe {
            let [Self(a), Self(b), Self(c), Self(d)] = four;
            // Halves of what lies in a quarter of a register, then what is left of it, then the
            // quarters.
            let ab = _mm512_add_ps(_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b));
            let cd = _mm512_add_ps(_mm512_unpacklo_ps(c, d), _mm512_unpackhi_ps(c, d));
            let low = _mm512_shuffle_ps::<0b01_00_01_00>(ab, cd);
            let all = _mm512_add_ps(low, _mm512_shuffle_ps::<0b11_10_11_10>(ab, cd));
            let half = _mm512_extractf32x8_ps::<1>(all);
            let half = _mm256_add_ps(_mm512_castps512_ps256(all), half);
            let sums = _mm256_extractf128_ps::<1>(half);
            let sums = _mm_add_ps(_mm256_castps256_ps128(half), sums);
            std::mem::transmute::<__m128, [f32; 4]>(sums)
        }
    },
    unsafe fn transpose(
        from: *const f32,
        from_row: usize,
        factor: Self,
        to: *mut f32,
        to_row: usize,
    ) {
        unsafe {
            let mut rows = [factor.0; 16];
            for (r, row) in rows.iter_mut().enumerate() {
                *row = _mm512_mul_ps(_mm512_loadu_ps(from.add(r * from_row)), factor.0);
            }
            // Squares of 4 × 4 in each quarter of the registers: quarter l of fours[g][c] then
            // holds column 4l + c of rows 4g..4g + 4.
            let mut fours = [[factor.0; 4]; 4];
            for (g, four) in fours.iter_mut().enumerate() {
                let [a, b, c, d] = [rows[4 * g], rows[4 * g + 1], rows[4 * g + 2], rows[4 * g + 3]];
                let low = [_mm512_unpacklo_ps(a, b), _mm512_unpacklo_ps(c, d)];
                let high = [_mm512_unpackhi_ps(a, b), _mm512_unpackhi_ps(c, d)];
                let pair = |x: __m512| _mm512_castps_pd(x);
                *four = [
                    _mm512_castpd_ps(_mm512_unpacklo_pd(pair(low[0]), pair(low[1]))),
                    _mm512_castpd_ps(_mm512_unpackhi_pd(pair(low[0]), pair(low[1]))),
                    _mm512_castpd_ps(_mm512_unpacklo_pd(pair(high[0]), pair(high[1]))),
                    _mm512_castpd_ps(_mm512_unpackhi_pd(pair(high[0]), pair(high[1]))),
                ];
            }
            // Then the quarters themselves.
            for c in 0..4 {
                let [w, x, y, z] = [fours[0][c], fours[1][c], fours[2][c], fours[3][c]];
                let even = [_mm512_shuffle_f32x4::<0x88>(w, x), _mm512_shuffle_f32x4::<0x88>(y, z)];
                let odd = [_mm512_shuffle_f32x4::<0xdd>(w, x), _mm512_shuffle_f32x4::<0xdd>(y, z)];
                let put = |l: usize, x| _mm512_storeu_ps(to.add((4 * l + c) * to_row), x);
                put(0, _mm512_shuffle_f32x4::<0x88>(even[0], even[1]));
                put(1, _mm512_shuffle_f32x4::<0x88>(odd[0], odd[1]));
                put(2, _mm512_shuffle_f32x4::<0xdd>(even[0], even[1]));
                put(3, _mm512_shuffle_f32x4::<0xdd>(odd[0], odd[1]));
            }
        }
    }
);
avx512!(
    F64x8,
    f64,
    8,
    __mmask8,
    _mm512_set1_pd,
    _mm512_loadu_pd,
    _mm512_storeu_pd,
    _mm512_maskz_loadu_pd,
    _mm512_mask_storeu_pd,
    _mm512_add_pd,
    _mm512_sub_pd,
    _mm512_mul_pd,
    _mm512_div_pd,
    _mm512_sqrt_pd,
    _mm512_max_pd,
    _mm512_min_pd,
    _mm512_fmadd_pd,
    _mm512_fnmadd_pd,
    _mm512_cmp_pd_mask,
    _mm512_mask_blend_pd,
    _mm512_scalef_pd,
    _mm512_reduce_add_pd,
    unsafe fn reciprocal(self) -> Self {
        unsafe { Self::splat(1.0).div(self) }
    }
);
