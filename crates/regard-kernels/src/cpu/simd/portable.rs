//! Plain arrays, for machines without a path of their own. Lane by lane and not in loops: there are
//! thousands of these once the kernels are inlined, and unrolling them was a quarter of the build.

use super::Simd;

const LANES: usize = 4;

#[derive(Clone, Copy)]
pub(crate) struct P32([f32; LANES]);

#[derive(Clone, Copy)]
pub(crate) struct P64([f64; LANES]);

macro_rules! portable {
    ($name:ident, $t:ty, $bits:ty, $signed:ty, $bias:literal, $mantissa:literal) => {
        impl $name {
            #[cfg_attr(optimized, inline(always))]
            fn map(self, f: impl Fn($t) -> $t) -> Self {
                let [a, b, c, d] = self.0;
                Self([f(a), f(b), f(c), f(d)])
            }
            #[cfg_attr(optimized, inline(always))]
            fn zip(self, other: Self, f: impl Fn($t, $t) -> $t) -> Self {
                let ([a, b, c, d], [e, g, h, i]) = (self.0, other.0);
                Self([f(a, e), f(b, g), f(c, h), f(d, i)])
            }
        }

        impl Simd for $name {
            type T = $t;
            const LANES: usize = LANES;
            const WIDE: usize = 2;

            #[cfg_attr(optimized, inline(always))]
            unsafe fn splat(x: $t) -> Self {
                Self([x; LANES])
            }
            #[cfg_attr(optimized, inline(always))]
            unsafe fn load(from: *const $t) -> Self {
                Self(unsafe { from.cast::<[$t; LANES]>().read_unaligned() })
            }
            #[cfg_attr(optimized, inline(always))]
            unsafe fn store(self, to: *mut $t) {
                unsafe { to.cast::<[$t; LANES]>().write_unaligned(self.0) }
            }
            #[inline(never)] // as below
            unsafe fn load_first(from: *const $t, n: usize) -> Self {
                let mut lanes = [0.0; LANES];
                for lane in 0..n {
                    lanes[lane] = unsafe { *from.add(lane) };
                }
                Self(lanes)
            }
            #[inline(never)]
            unsafe fn store_first(self, to: *mut $t, n: usize) {
                for lane in 0..n {
                    unsafe { *to.add(lane) = self.0[lane] };
                }
            }
            #[cfg_attr(optimized, inline(always))]
            unsafe fn add(self, other: Self) -> Self {
                self.zip(other, |a, b| a + b)
            }
            #[cfg_attr(optimized, inline(always))]
            unsafe fn sub(self, other: Self) -> Self {
                self.zip(other, |a, b| a - b)
            }
            #[cfg_attr(optimized, inline(always))]
            unsafe fn mul(self, other: Self) -> Self {
                self.zip(other, |a, b| a * b)
            }
            #[cfg_attr(optimized, inline(always))]
            unsafe fn div(self, other: Self) -> Self {
                self.zip(other, |a, b| a / b)
            }
            #[cfg_attr(optimized, inline(always))]
            unsafe fn sqrt(self) -> Self {
                self.map(<$t>::sqrt)
            }
            #[cfg_attr(optimized, inline(always))]
            unsafe fn max(self, other: Self) -> Self {
                self.zip(other, |a, b| if b > a { b } else { a })
            }
            #[cfg_attr(optimized, inline(always))]
            unsafe fn min(self, other: Self) -> Self {
                self.zip(other, |a, b| if b < a { b } else { a })
            }
            #[cfg_attr(optimized, inline(always))]
            unsafe fn fma(self, b: Self, c: Self) -> Self {
                self.zip(b, |a, b| a * b).zip(c, |a, c| a + c)
            }
            #[cfg_attr(optimized, inline(always))]
            unsafe fn fnma(self, b: Self, c: Self) -> Self {
                self.zip(b, |a, b| a * b).zip(c, |a, c| c - a)
            }
            #[cfg_attr(optimized, inline(always))]
            unsafe fn where_greater(self, other: Self, yes: Self, no: Self) -> Self {
                let pick = |lane: usize| match self.0[lane] > other.0[lane] {
                    true => yes.0[lane],
                    false => no.0[lane],
                };
                Self([pick(0), pick(1), pick(2), pick(3)])
            }
            #[cfg_attr(optimized, inline(always))]
            unsafe fn times_power_of_2(self, n: Self) -> Self {
                self.zip(n, |x, n| {
                    let n = n as $signed;
                    let half = n >> 1;
                    let power =
                        |n: $signed| <$t>::from_bits((n.wrapping_add($bias) as $bits) << $mantissa);
                    x * power(half) * power(n - half)
                })
            }
            #[cfg_attr(optimized, inline(always))]
            unsafe fn reciprocal(self) -> Self {
                self.map(|x| 1.0 / x)
            }
            // Functions of their own: a build is much shorter for it, and no instruction set is lost.
            #[inline(never)]
            unsafe fn exp_parts(self) -> (Self, Self, Self) {
                // SAFETY: plain arithmetic.
                unsafe { super::exp_parts(self) }
            }
            #[inline(never)]
            unsafe fn normal(self) -> (Self, Self) {
                // SAFETY: plain arithmetic.
                unsafe { super::normal(self) }
            }
            #[cfg_attr(optimized, inline(always))]
            unsafe fn sum(self) -> $t {
                let [a, b, c, d] = self.0;
                (a + c) + (b + d)
            }
        }
    };
}

portable!(P32, f32, u32, i32, 127, 23);
portable!(P64, f64, u64, i64, 1023, 52);
