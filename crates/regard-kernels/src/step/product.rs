//! A product by `gemm-f32` or `gemm-f64`, which find an instruction set by themselves. The crate
//! above both, `gemm`, compiles complex numbers too, which nothing here has.

use super::matmul::Strides;
use crate::Real;
use gemm_common::Parallelism;
use std::any::TypeId;

/// A matrix that is read.
#[derive(Clone, Copy)]
pub(super) struct Factor<T> {
    pub(super) at: *const T,
    pub(super) strides: Strides,
}

impl<T> Factor<T> {
    fn transposed(self) -> Self {
        let Strides { row, column } = self.strides;
        Self { at: self.at, strides: Strides { row: column, column: row } }
    }
}

/// C = A · B, where A is `m` × `k` and B is `k` × `n`.
pub(super) struct Product<T> {
    pub(super) m: usize,
    pub(super) n: usize,
    pub(super) k: usize,
    pub(super) a: Factor<T>,
    pub(super) b: Factor<T>,
    pub(super) c: *mut T,
    pub(super) c_strides: Strides,
    /// Added to what is there.
    pub(super) adds: bool,
}

impl<T: Real> Product<T> {
    /// The same as Cᵀ = Bᵀ · Aᵀ.
    fn transposed(self) -> Self {
        let Strides { row, column } = self.c_strides;
        Self {
            m: self.n,
            n: self.m,
            a: self.b.transposed(),
            b: self.a.transposed(),
            c_strides: Strides { row: column, column: row },
            ..self
        }
    }

    /// Computes it.
    ///
    /// # Safety
    /// A, B and C are there; C overlaps neither and is the caller's alone.
    pub(super) unsafe fn run(self, how: Parallelism) {
        // The kernels write columns.
        let is_rows = self.c_strides.column < self.c_strides.row;
        let p = if is_rows { self.transposed() } else { self };
        let strides = |of: Strides| (of.column as isize, of.row as isize);
        let (c, a, b) = (strides(p.c_strides), strides(p.a.strides), strides(p.b.strides));
        macro_rules! run {
            ($gemm:path) => {
                // SAFETY: the caller's; the pointers are to numbers of the function's own type.
                unsafe {
                    $gemm()(
                        p.m,
                        p.n,
                        p.k,
                        p.c.cast(),
                        c.0,
                        c.1,
                        p.adds,
                        p.a.at.cast(),
                        a.0,
                        a.1,
                        p.b.at.cast(),
                        b.0,
                        b.1,
                        1.0,
                        1.0,
                        false,
                        false,
                        false,
                        how,
                    )
                }
            };
        }
        // A `Real` is one of the two.
        if TypeId::of::<T>() == TypeId::of::<f32>() {
            run!(gemm_f32::gemm::f32::get_gemm_fn)
        } else {
            run!(gemm_f64::gemm::f64::get_gemm_fn)
        }
    }
}
