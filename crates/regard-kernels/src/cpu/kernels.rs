//! The table of tile kernels: one per instruction set and precision, chosen at run time.
//!
//! Each entry is a generic function over [`Simd`](super::simd::Simd) compiled inside a function
//! that has the instruction set's features; in an optimized build everything it calls is inlined
//! into it (`build.rs` says why not otherwise).

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
use super::amx;
use super::attention::additive::{AdditiveGrads, AdditiveScores, Form};
use super::attention::gemm::Gemm;
use super::attention::noise::PAIRS;
use super::attention::problem::Problem;
use super::attention::products::TileProducts;
use super::attention::row::{KeyGrads, RowAdditiveGrads, RowGather, RowScores, Spans};
use super::attention::row_softmax::RowSoftmaxGrads;
use super::attention::strip::Strip;
use super::attention::weights::Rule;
use super::attention::{self, Rows};
use super::attention::{
    additive, gemm, narrow, noise, online, pack, row, row_softmax, strip, threshold, weights,
};
use super::isa::Isa;
use super::shared::Shared;
use super::step::{cross_entropy, dropout, layer_norm, optimizer, pointwise, recurrent, softmax};
use crate::cpu::step::dropout::Drops;
use crate::cpu::step::layer_norm::{NormGrads, NormRows};
use crate::cpu::step::matmul::{Strided, matmul};
use crate::cpu::step::optimizer::{AdamNumbers, SgdNumbers};
use crate::cpu::step::pointwise::{PointwiseGrads, PointwiseRows};
use crate::cpu::step::recurrent::{CellGrads, CellStep, Product};
use crate::random::Draw;
use crate::spec::{Backward, Keep};
use crate::{Real, View};
use half::bf16;

/// Makes the products of tiles from q, k and v, for backward the gradient of the output, and the
/// scale of the scores; none where the numbers do not suit.
pub(super) type HalfProducts<T> = for<'a> fn(
    [View<'a, bf16>; 3],
    Option<View<'a, bf16>>,
    T,
) -> Option<Box<dyn TileProducts<T> + 'a>>;

/// Calls a macro with its own arguments and the list of all kernels.
macro_rules! with_kernels {
    ($callback:ident $arguments:tt) => {
        $callback! {
            $arguments
            fn gemm::gemm(g: Gemm<T>);
            fn pack::pack(from: *const T, row: usize, n: usize, d: usize, scale: T, to: *mut T, width: usize);
            fn pack::unpack(from: *const T, d: usize, n: usize, factor: *const T, to: *mut T, row: usize);
            fn pack::scale_columns(x: *mut T, rows: usize, width: usize, factor: *const T);
            fn online::softmax_step(tile: *mut T, rows: usize, width: usize, state: *mut T) -> bool;
            fn weights::weights(rule: Rule, tile: *mut T, rows: usize, width: usize, stat: *const T);
            fn weights::backward(rule: Rule, tile: *mut T, grad: *mut T, rows: usize, width: usize, stat: *const T, delta: *const T);
            fn weights::delta_step(rule: Rule, tile: *const T, grad: *const T, rows: usize, width: usize, stat: *const T, sums: *mut T);
            fn threshold::threshold(entmax: bool, tile: *const T, rows: usize, width: usize, largest: *mut T, tau: *mut T);
            fn noise::words(draw: Draw, i0: usize, width: usize, j0: usize, rows: usize, to: *mut u32);
            fn noise::drop(words: *const u32, below: u32, factor: T, tile: *mut T, rows: usize, width: usize);
            fn noise::pair_factors(keep: Keep<T>, queries: &[u32; PAIRS], keys: &[u32; PAIRS], n: usize, to: *mut T);
            fn additive::prepare(form: Form, from: *const T, from_row: usize, rows: usize, d: usize, to: *mut T, to_row: usize);
            fn additive::additive_scores(a: AdditiveScores<T>);
            fn additive::additive_grads(a: AdditiveGrads<T>);
            fn strip::expression_strip(s: Strip<T>);
            fn row::row_scores(r: RowScores<T>);
            fn row::row_gather(r: RowGather<T>);
            fn narrow::share_gather(r: RowGather<T>, totals: *mut T) -> [T; 2];
            fn row::row_additive_grads(r: RowAdditiveGrads<T>);
            fn row::key_grads(r: KeyGrads<T>);
            fn row::copy_rows(from: *const T, from_row: usize, rows: usize, d: usize, to: *mut T, to_row: usize);
            fn row::axpy(n: usize, a: T, x: *const T, y: *mut T);
            fn row::add_scaled(n: usize, a: T, add: bool, x: *const T, y: *mut T) -> T;
            fn row::dot(n: usize, x: *const T, y: *const T) -> T;
            fn row::max_abs(n: usize, x: *const T) -> [T; 2];
            fn row_softmax::row_softmax(scores: *mut T, heads: usize, head: usize, rows: usize, spans: Spans, lse: *mut T);
            fn row_softmax::exponentials(n: usize, scores: *mut T) -> T;
            fn row_softmax::row_softmax_grads(r: RowSoftmaxGrads<T>);
            fn pointwise::pointwise(p: PointwiseRows<T>);
            fn pointwise::pointwise_grads(p: PointwiseGrads<T>);
            fn dropout::drops(d: Drops<T>);
            fn layer_norm::layer_norm(p: NormRows<T>);
            fn layer_norm::layer_norm_grads(p: NormGrads<T>);
            fn softmax::softmax(log: bool, rows: usize, width: usize, x: *const T, out: *mut T);
            fn softmax::softmax_grads(log: bool, rows: usize, width: usize, out: *const T, grad: *const T, grad_x: *mut T);
            fn cross_entropy::logits_row(x: *const T, n: usize, spread: bool) -> [T; 3];
            fn cross_entropy::logits_row_grads(x: *const T, n: usize, lse: T, share: T, grad: T, to: *mut T);
            fn optimizer::adam(a: AdamNumbers<T>, n: usize, param: *mut T, grad: *const T, m: *mut T, v: *mut T);
            fn optimizer::sgd(s: SgdNumbers<T>, n: usize, param: *mut T, grad: *const T, direction: *mut T);
            fn optimizer::squares(n: usize, x: *const T) -> f64;
            fn recurrent::product(p: Product<T>);
            fn recurrent::turn_in(from: *const T, row: usize, n: usize, d: usize, to: *mut T);
            fn recurrent::turn_out(from: *const T, d: usize, n: usize, to: *mut T, row: usize);
            fn recurrent::cell_step(s: CellStep<T>);
            fn recurrent::cell_grads(s: CellGrads<T>);
        }
    };
}

macro_rules! declare {
    (() $(fn $module:ident::$name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)?;)*) => {
        /// The tile kernels of one instruction set in one precision.
        #[doc(hidden)]
        #[allow(missing_debug_implementations)]
        pub struct Kernels<T: Real> {
            /// Numbers in a register.
            pub(crate) lanes: usize,
            // The passes stand here so that they are compiled once, in this crate, and not in every
            // program that calls them.
            pub(super) forward_pass: fn(&Problem<T>, Rows<T>, Option<Shared<T>>),
            pub(super) backward_pass: fn(&Problem<T>, Backward<T>),
            /// The products of tiles from bf16 numbers as they are stored, where a unit has them.
            pub(super) halves: Option<HalfProducts<T>>,
            /// A large product.
            pub(crate) matmul: unsafe fn(Strided<T>),
            $(pub(crate) $name: unsafe fn($($type),*) $(-> $result)?,)*
        }
    };
}

macro_rules! table {
    (($name:ident, $v:ident, $t:ident, $feature:literal)
     $(fn $module:ident::$kernel:ident($($argument:ident: $type:ty),*) $(-> $result:ty)?;)*) => {
        #[cfg(target_arch = "x86_64")]
        mod $name {
            use super::*;
            use super::super::simd::{$v, Simd};
            type T = $t;
            $(
                #[target_feature(enable = $feature)]
                unsafe fn $kernel($($argument: $type),*) $(-> $result)? {
                    // SAFETY: this function has the instruction set; the rest is the caller's.
                    unsafe { $module::$kernel::<$v>($($argument),*) }
                }
            )*
            pub(super) static TABLE: Kernels<T> = Kernels { lanes: $v::LANES, forward_pass: attention::forward, backward_pass: attention::backward, halves: None, matmul: matmul::<T>, $($kernel),* };
        }
    };
    (($name:ident, $v:ident, $t:ident)
     $(fn $module:ident::$kernel:ident($($argument:ident: $type:ty),*) $(-> $result:ty)?;)*) => {
        mod $name {
            use super::*;
            use super::super::simd::{$v, Simd};
            type T = $t;
            $(
                unsafe fn $kernel($($argument: $type),*) $(-> $result)? {
                    // SAFETY: no special instructions; the rest is the caller's.
                    unsafe { $module::$kernel::<$v>($($argument),*) }
                }
            )*
            pub(super) static TABLE: Kernels<T> = Kernels { lanes: $v::LANES, forward_pass: attention::forward, backward_pass: attention::backward, halves: None, matmul: matmul::<T>, $($kernel),* };
        }
    };
}

with_kernels! { declare () }
with_kernels! { table (avx512_f32, F32x16, f32, "avx512f,avx512dq,avx2,fma") }
with_kernels! { table (avx512_f64, F64x8, f64, "avx512f,avx512dq,avx2,fma") }
with_kernels! { table (avx2_f32, F32x8, f32, "avx2,fma") }
with_kernels! { table (avx2_f64, F64x4, f64, "avx2,fma") }
with_kernels! { table (portable_f32, P32, f32) }
with_kernels! { table (portable_f64, P64, f64) }

/// AVX-512's kernels, and products by AMX where they suit.
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
static AMX_F32: Kernels<f32> = {
    unsafe fn amx_matmul(p: Strided<f32>) {
        // SAFETY: who has this table has the unit; the rest is the caller's.
        unsafe { if amx::suits(&p) { amx::matmul(p) } else { matmul(p) } }
    }
    fn halves<'a>(
        inputs: [View<'a, bf16>; 3],
        grad_out: Option<View<'a, bf16>>,
        scale: f32,
    ) -> Option<Box<dyn TileProducts<f32> + 'a>> {
        amx::Halves::new(inputs, grad_out, scale).map(|halves| Box::new(halves) as Box<_>)
    }
    Kernels { matmul: amx_matmul, halves: Some(halves), ..avx512_f32::TABLE }
};

/// The table of an instruction set that the machine has; the portable one otherwise.
pub(crate) fn kernels_f32(isa: Isa) -> &'static Kernels<f32> {
    #[cfg(target_arch = "x86_64")]
    match isa {
        #[cfg(target_os = "linux")]
        Isa::Amx if isa.is_available() => return &AMX_F32,
        Isa::Avx512 if isa.is_available() => return &avx512_f32::TABLE,
        Isa::Avx2 if isa.is_available() => return &avx2_f32::TABLE,
        _ => {}
    }
    &portable_f32::TABLE
}

/// As [`kernels_f32`], in double precision.
pub(crate) fn kernels_f64(isa: Isa) -> &'static Kernels<f64> {
    #[cfg(target_arch = "x86_64")]
    match isa {
        Isa::Amx | Isa::Avx512 if isa.is_available() => return &avx512_f64::TABLE,
        Isa::Avx2 if isa.is_available() => return &avx2_f64::TABLE,
        _ => {}
    }
    &portable_f64::TABLE
}
