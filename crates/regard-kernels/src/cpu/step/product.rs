//! A product by `gemm-f32` or `gemm-f64`, which find an instruction set by themselves. The crate
//! above both, `gemm`, compiles complex numbers too, which nothing here has. Without the feature `gemm` a
//! product is a plain loop.

use super::matmul::Strides;
use crate::Real;
#[cfg(feature = "gemm")]
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

    /// Computes it, where `threads` on rayon's, unless the calling thread's tasks are not for these.
    ///
    /// # Safety
    /// A, B and C are there; C overlaps neither and is the caller's alone.
    #[cfg(feature = "gemm")]
    pub(super) unsafe fn run(self, threads: bool) {
        use gemm_common::Parallelism;
        #[cfg(feature = "parallel")]
        let how = match threads && crate::cpu::tasks::by_rayon() {
            true => Parallelism::Rayon(0),
            false => Parallelism::None,
        };
        #[cfg(not(feature = "parallel"))]
        let (how, _) = (Parallelism::None, threads);
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

    /// Computes it row by row of C: each is a sum of rows of B.
    ///
    /// # Safety
    /// A, B and C are there; C overlaps neither and is the caller's alone.
    #[cfg(not(feature = "gemm"))]
    pub(super) unsafe fn run(self, threads: bool) {
        // Along C's nearest numbers.
        let is_rows = self.c_strides.column < self.c_strides.row;
        let p = &if is_rows { self } else { self.transposed() };
        // SAFETY: the caller's; no two tasks have a row of C in common.
        let row = |i: usize| unsafe { p.row(i) };
        if threads { crate::cpu::tasks::runs(p.m, 16, &row) } else { (0..p.m).for_each(row) }
    }

    /// # Safety
    /// A, B and C are there, and the row is the calling task's alone.
    #[cfg(not(feature = "gemm"))]
    unsafe fn row(&self, i: usize) {
        let (a, b, c) = (self.a.strides, self.b.strides, self.c_strides);
        // SAFETY: the caller's.
        unsafe {
            let to = self.c.add(i * c.row);
            if !self.adds {
                (0..self.n).for_each(|j| to.add(j * c.column).write(T::ZERO));
            }
            for l in 0..self.k {
                let x = *self.a.at.add(i * a.row + l * a.column);
                let from = self.b.at.add(l * b.row);
                for j in 0..self.n {
                    *to.add(j * c.column) += x * *from.add(j * b.column);
                }
            }
        }
    }
}

// SAFETY: what is read through it is unsafe, and asks of its caller that it is there.
#[cfg(not(feature = "gemm"))]
unsafe impl<T: Sync> Sync for Product<T> {}
