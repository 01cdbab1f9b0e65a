//! AVX2 and FMA: sixteen registers of eight `f32` or four `f64`.

use super::Simd;
use std::arch::x86_64::*;

#[derive(Clone, Copy)]
pub(crate) struct F32x8(__m256);

#[derive(Clone, Copy)]
pub(crate) struct F64x4(__m256d);

/// Lanes below n, as a mask of sign bits: a window into ones followed by zeros.
static FIRST_32: [i32; 16] = [-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0];
static FIRST_64: [i64; 8] = [-1, -1, -1, -1, 0, 0, 0, 0];

#[cfg_attr(optimized, inline(always))]
unsafe fn first_32(n: usize) -> __m256i {
    // SAFETY: n ≤ 8, so eight entries from 8 − n on lie in the table.
    unsafe { _mm256_loadu_si256(FIRST_32.as_ptr().add(8 - n).cast()) }
}

#[cfg_attr(optimized, inline(always))]
unsafe fn first_64(n: usize) -> __m256i {
    // SAFETY: n ≤ 4, so four entries from 4 − n on lie in the table.
    unsafe { _mm256_loadu_si256(FIRST_64.as_ptr().add(4 - n).cast()) }
}

/// 2ⁿ for whole n in the range of normal exponents.
#[cfg_attr(optimized, inline(always))]
unsafe fn power_32(n: __m256i) -> __m256 {
    unsafe {
        let exponent = _mm256_add_epi32(n, _mm256_set1_epi32(127));
        _mm256_castsi256_ps(_mm256_slli_epi32::<23>(exponent))
    }
}

/// The sums of the lanes of four registers.
#[cfg_attr(optimized, inline(always))]
pub(super) unsafe fn sum4(a: __m256, b: __m256, c: __m256, d: __m256) -> [f32; 4] {
    unsafe {
        let all = _mm256_hadd_ps(_mm256_hadd_ps(a, b), _mm256_hadd_ps(c, d));
        let high = _mm256_extractf128_ps::<1>(all);
        let mut sums = [0.0; 4];
        _mm_storeu_ps(sums.as_mut_ptr(), _mm_add_ps(_mm256_castps256_ps128(all), high));
        sums
    }
}

macro_rules! avx2 {
    ($name:ident, $t:ty, $lanes:literal, $first:ident, $set1:ident, $load:ident, $store:ident,
     $load_masked:ident, $store_masked:ident, $add:ident, $sub:ident, $mul:ident, $div:ident,
     $sqrt:ident, $max:ident, $min:ident, $fma:ident, $fnma:ident, $compare:ident, $blend:ident,
     $power:item $(, $more:item)*) => {
        impl Simd for $name {
            type T = $t;
            const LANES: usize = $lanes;
            const WIDE: usize = 2;

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
                unsafe { Self($load_masked(from, $first(n))) }
            }
            #[cfg_attr(optimized, inline(always))]
            unsafe fn store_first(self, to: *mut $t, n: usize) {
                unsafe { $store_masked(to, $first(n), self.0) }
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
                    Self($blend(no.0, yes.0, greater))
                }
            }
            #[cfg_attr(optimized, inline(always))]
            unsafe fn reciprocal(self) -> Self {
                unsafe { Self::splat(1.0).div(self) }
            }
            #[cfg_attr(optimized, inline(always))]
            unsafe fn sum(self) -> $t {
                unsafe {
                    let mut lanes = [0.0; $lanes];
                    self.store(lanes.as_mut_ptr());
                    let mut half = $lanes / 2;
                    while half > 0 {
                        let mut lane = 0;
                        while lane < half {
                            lanes[lane] += lanes[lane + half];
                            lane += 1;
                        }
                        half /= 2;
                    }
                    lanes[0]
                }
            }
            #[cfg_attr(optimized, inline(always))]
            $power
            $(
                #[cfg_attr(optimized, inline(always))]
                $more
            )*
        }
    };
}

avx2!(
    F32x8,
    f32,
    8,
    first_32,
    _mm256_set1_ps,
    _mm256_loadu_ps,
    _mm256_storeu_ps,
    _mm256_maskload_ps,
    _mm256_maskstore_ps,
    _mm256_add_ps,
    _mm256_sub_ps,
    _mm256_mul_ps,
    _mm256_div_ps,
    _mm256_sqrt_ps,
    _mm256_max_ps,
    _mm256_min_ps,
    _mm256_fmadd_ps,
    _mm256_fnmadd_ps,
    _mm256_cmp_ps,
    _mm256_blendv_ps,
    unsafe fn times_power_of_2(self, n: Self) -> Self {
        unsafe {
            // In two halves, so that results below the normal range come out right.
            let whole = _mm256_cvtps_epi32(n.0);
            let half = _mm256_srai_epi32::<1>(whole);
            let rest = _mm256_sub_epi32(whole, half);
            self.mul(Self(power_32(half))).mul(Self(power_32(rest)))
        }
    },
    unsafe fn sum4(four: [Self; 4]) -> [f32; 4] {
        unsafe { sum4(four[0].0, four[1].0, four[2].0, four[3].0) }
    }
);
avx2!(
    F64x4,
    f64,
    4,
    first_64,
    _mm256_set1_pd,
    _mm256_loadu_pd,
    _mm256_storeu_pd,
    _mm256_maskload_pd,
    _mm256_maskstore_pd,
    _mm256_add_pd,
    _mm256_sub_pd,
    _mm256_mul_pd,
    _mm256_div_pd,
    _mm256_sqrt_pd,
    _mm256_max_pd,
    _mm256_min_pd,
    _mm256_fmadd_pd,
    _mm256_fnmadd_pd,
    _mm256_cmp_pd,
    _mm256_blendv_pd,
    unsafe fn times_power_of_2(self, n: Self) -> Self {
        unsafe {
            let whole = _mm256_cvtpd_epi32(n.0);
            let half = _mm_srai_epi32::<1>(whole);
            let rest = _mm_sub_epi32(whole, half);
            let bias = _mm256_set1_epi64x(1023);
            let half = _mm256_add_epi64(_mm256_cvtepi32_epi64(half), bias);
            let rest = _mm256_add_epi64(_mm256_cvtepi32_epi64(rest), bias);
            let half = _mm256_castsi256_pd(_mm256_slli_epi64::<52>(half));
            let rest = _mm256_castsi256_pd(_mm256_slli_epi64::<52>(rest));
            self.mul(Self(half)).mul(Self(rest))
        }
    }
);
