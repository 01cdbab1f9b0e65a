//! Matrix products: by AMX where the machine has it and the shape suits (`cpu/amx/`), otherwise by
//! the `gemm` crates. Any strides, so a transposed operand costs nothing.

use super::product::{Factor, Product};
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
use crate::cpu::amx;
use crate::cpu::denormal::Flushed;
use crate::cpu::scratch::Large;
use crate::cpu::shared::Shared;
use crate::cpu::tasks;
use crate::error::{Error, ensure};
use crate::numel::{MOST, numel};
use crate::{Cpu, Real};
use half::bf16;

/// A matrix as it lies.
///
/// ```
/// use regard_kernels::Matrix;
/// let x = Matrix::new(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 2, 3)?;
/// assert_eq!((x.rows(), x.columns()), (2, 3));
/// assert_eq!(x.transposed().rows(), 3);
/// assert!(Matrix::strided(&[1.0, 2.0], [2, 2], [2, 1]).is_err());
/// # Ok::<(), regard_kernels::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Matrix<'a, T> {
    data: &'a [T],
    rows: usize,
    columns: usize,
    strides: Strides,
}

/// From a row, and from a column, to the next.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Strides {
    pub(crate) row: usize,
    pub(crate) column: usize,
}

impl<'a, T> Matrix<'a, T> {
    /// Row after row.
    /// Refuses a slice that is too short for it.
    ///
    /// ```
    /// use regard_kernels::Matrix;
    /// assert_eq!(Matrix::new(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 2, 3)?.columns(), 3);
    /// assert!(Matrix::new(&[1.0, 2.0], 2, 3).is_err());
    /// # Ok::<(), regard_kernels::Error>(())
    /// ```
    pub fn new(data: &'a [T], rows: usize, columns: usize) -> Result<Self, Error> {
        Self::strided(data, [rows, columns], [columns, 1])
    }

    /// With a step from row to row and one from column to column.
    /// Refuses a matrix that reaches beyond the slice.
    ///
    /// ```
    /// use regard_kernels::Matrix;
    /// // every other column of two rows of four
    /// let x = Matrix::strided(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0], [2, 2], [4, 2])?;
    /// assert_eq!((x.rows(), x.columns()), (2, 2));
    /// # Ok::<(), regard_kernels::Error>(())
    /// ```
    pub fn strided(
        data: &'a [T],
        [rows, columns]: [usize; 2],
        [row, column]: [usize; 2],
    ) -> Result<Self, Error> {
        let last = if rows == 0 || columns == 0 {
            0
        } else {
            numel(&[rows - 1, row]).saturating_add(numel(&[columns - 1, column])).saturating_add(1)
        };
        ensure!(
            numel(&[rows.max(1), columns.max(1)]) <= MOST,
            "a matrix of {rows} × {columns} is larger than any memory"
        );
        ensure!(
            last <= data.len(),
            "a matrix of {rows} × {columns} with strides {row} and {column} reaches {last} numbers, \
             but there are {}",
            data.len()
        );
        // A step that is never taken may be anything; the kernels multiply it all the same.
        let [row, column] = [row, column].map(|step| step.min(data.len()));
        Ok(Self { data, rows, columns, strides: Strides { row, column } })
    }

    /// The same numbers with rows and columns exchanged.
    ///
    /// ```
    /// use regard_kernels::Matrix;
    /// let x = Matrix::new(&[1.0, 2.0, 3.0], 1, 3)?;
    /// assert_eq!((x.transposed().rows(), x.transposed().columns()), (3, 1));
    /// # Ok::<(), regard_kernels::Error>(())
    /// ```
    pub fn transposed(self) -> Self {
        let Strides { row, column } = self.strides;
        let strides = Strides { row: column, column: row };
        Self { rows: self.columns, columns: self.rows, strides, ..self }
    }

    /// How many rows.
    ///
    /// ```
    /// use regard_kernels::Matrix;
    /// assert_eq!(Matrix::new(&[1.0, 2.0, 3.0], 1, 3)?.rows(), 1);
    /// # Ok::<(), regard_kernels::Error>(())
    /// ```
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// How many columns.
    ///
    /// ```
    /// use regard_kernels::Matrix;
    /// assert_eq!(Matrix::new(&[1.0, 2.0, 3.0], 1, 3)?.columns(), 3);
    /// # Ok::<(), regard_kernels::Error>(())
    /// ```
    pub fn columns(&self) -> usize {
        self.columns
    }
}

/// What a product is added to.
///
/// ```
/// use regard_kernels::{Base, Cpu, Matrix};
/// let (x, mut to) = (Matrix::new(&[3f32], 1, 1)?, [100f32]);
/// Cpu::best().matmul(x, x, Base::There, &mut to)?;
/// assert_eq!(to, [109.0]);
/// Cpu::best().matmul(x, x, Base::Row(&[1.0]), &mut to)?;
/// assert_eq!(to, [10.0]);
/// # Ok::<(), regard_kernels::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Base<'a, T> {
    /// Nothing: it is written over what is there.
    Nothing,
    /// What is there.
    There,
    /// The same numbers for every row: a bias.
    Row(&'a [T]),
}

/// As [`Base`], for the kernels.
#[derive(Clone, Copy)]
pub(crate) enum RawBase<T> {
    Nothing,
    There,
    Row(*const T),
}

/// A product as the kernels take it: C `[m, n]`, row after row, = base + A `[m, k]` · B `[k, n]`.
#[derive(Clone, Copy)]
pub(crate) struct Strided<T, C = T> {
    pub(crate) m: usize,
    pub(crate) n: usize,
    pub(crate) k: usize,
    pub(crate) a: *const T,
    pub(crate) a_strides: Strides,
    pub(crate) b: *const T,
    pub(crate) b_strides: Strides,
    pub(crate) c: *mut C,
    pub(crate) base: RawBase<C>,
    /// On all threads.
    pub(crate) threads: bool,
}

// SAFETY: tasks write columns of their own.
unsafe impl<T: Send + Sync, C: Send + Sync> Sync for Strided<T, C> {}

/// Multiplications worth more than one thread.
const WORK: usize = 1 << 18;
/// Rows so few that columns are cut instead.
const SHORT: usize = 128;
/// Columns are cut in multiples of this.
const CUT: usize = 64;
/// Multiplications worth a part of their own.
const PART_WORK: usize = 1 << 20;
/// Parts, at least, where there are columns enough.
const PARTS: usize = 64;

/// Columns of a part where there are few rows.
pub(super) fn part_columns(m: usize, n: usize, k: usize) -> usize {
    let least = (PART_WORK / (m * k).max(1)).max(n / PARTS / CUT * CUT).min(n.div_ceil(4));
    least.next_multiple_of(CUT)
}

impl Cpu {
    /// `to` = `base` + `a` · `b`, on all threads where it is large enough.
    ///
    /// Refuses shapes that do not fit.
    ///
    /// ```
    /// use regard_kernels::{Base, Cpu, Matrix};
    /// let x = Matrix::new(&[1f32, 2.0, 3.0, 4.0], 2, 2)?;
    /// let mut to = [0f32; 4];
    /// Cpu::best().matmul(x, x.transposed(), Base::Row(&[0.0, 100.0]), &mut to)?;
    /// assert_eq!(to, [5.0, 111.0, 11.0, 125.0]);
    /// # Ok::<(), regard_kernels::Error>(())
    /// ```
    pub fn matmul<T: Real>(
        &self,
        a: Matrix<T>,
        b: Matrix<T>,
        base: Base<T>,
        to: &mut [T],
    ) -> Result<(), Error> {
        let pair = check([a, b], base, to.len())?;
        self.run(pair, work(&pair) >= WORK, base, to);
        Ok(())
    }

    /// Many products of one shape, each of a pair of matrices, written one after the other.
    ///
    /// Refuses shapes that do not fit.
    ///
    /// ```
    /// use regard_kernels::{Cpu, Matrix};
    /// let mut to = [0f64; 2];
    /// let (x, y) = (Matrix::new(&[2.0, 3.0], 1, 2)?, Matrix::new(&[5.0, 7.0], 1, 2)?);
    /// Cpu::best().matmuls(&[[x, x.transposed()], [x, y.transposed()]], &mut to)?;
    /// assert_eq!(to, [13.0, 31.0]);
    /// # Ok::<(), regard_kernels::Error>(())
    /// ```
    pub fn matmuls<T: Real>(&self, pairs: &[[Matrix<T>; 2]], to: &mut [T]) -> Result<(), Error> {
        self.of_one_shape(pairs, to, |pair, threads, to| {
            self.run(pair, threads, Base::Nothing, to);
        })
    }

    /// Products of one shape, each by `run`, which hears whether it is one for all threads.
    fn of_one_shape<T: Copy + Send + Sync, C: Copy + Send + Sync>(
        &self,
        pairs: &[[Matrix<T>; 2]],
        to: &mut [C],
        run: impl Fn([Matrix<T>; 2], bool, &mut [C]) + Sync,
    ) -> Result<(), Error> {
        let Some(&first) = pairs.first() else {
            ensure!(to.is_empty(), "no products into {} numbers", to.len());
            return Ok(());
        };
        let size = to.len() / pairs.len();
        ensure!(
            size * pairs.len() == to.len() && pairs.iter().all(|pair| sizes(pair) == sizes(&first)),
            "{} products into {} numbers are not of one shape",
            pairs.len(),
            to.len()
        );
        check(first, Base::<C>::Nothing, size)?;
        let work = work(&first);
        if pairs.len() == 1 || work > 64 * WORK {
            for (&pair, to) in pairs.iter().zip(to.chunks_mut(size.max(1))) {
                run(pair, work >= WORK, to);
            }
        } else {
            let to = Shared::new(to);
            tasks::runs(pairs.len(), (WORK / work.max(1)).max(1), &|at| {
                // SAFETY: each task has a result of its own.
                let to = unsafe { to.part(at * size, size) };
                run(pairs[at], false, to);
            });
        }
        Ok(())
    }

    /// As [`Cpu::matmul`], of bf16 numbers; products, their sums and what they are added to are f32. By a matrix unit
    /// where the machine has one.
    ///
    /// Refuses shapes that do not fit.
    ///
    /// ```
    /// use half::bf16;
    /// use regard_kernels::{Base, Cpu, Matrix};
    /// let x = [1.5f32, 2.0].map(bf16::from_f32);
    /// let (x, mut to) = (Matrix::new(&x, 1, 2)?, [0f32]);
    /// Cpu::best().matmul_bf16(x, x.transposed(), Base::Row(&[100.0]), &mut to)?;
    /// assert_eq!(to, [106.25]);
    /// # Ok::<(), regard_kernels::Error>(())
    /// ```
    pub fn matmul_bf16(
        &self,
        a: Matrix<bf16>,
        b: Matrix<bf16>,
        base: Base<f32>,
        to: &mut [f32],
    ) -> Result<(), Error> {
        let pair = check([a, b], base, to.len())?;
        self.run_bf16(pair, work(&pair) >= WORK, base, to);
        Ok(())
    }

    /// As [`Cpu::matmuls`], of bf16 numbers into f32.
    ///
    /// Refuses shapes that do not fit.
    ///
    /// ```
    /// use half::bf16;
    /// use regard_kernels::{Cpu, Matrix};
    /// let (x, mut to) = ([bf16::from_f32(3.0)], [0f32; 2]);
    /// let x = Matrix::new(&x, 1, 1)?;
    /// Cpu::best().matmuls_bf16(&[[x, x], [x, x]], &mut to)?;
    /// assert_eq!(to, [9.0, 9.0]);
    /// # Ok::<(), regard_kernels::Error>(())
    /// ```
    pub fn matmuls_bf16(&self, pairs: &[[Matrix<bf16>; 2]], to: &mut [f32]) -> Result<(), Error> {
        self.of_one_shape(pairs, to, |pair, threads, to| {
            self.run_bf16(pair, threads, Base::Nothing, to);
        })
    }

    /// A product that was checked.
    fn run_bf16(&self, [a, b]: [Matrix<bf16>; 2], threads: bool, base: Base<f32>, to: &mut [f32]) {
        #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
        if self.isa() == crate::Isa::Amx {
            let product = strided([a, b], threads, base, to);
            if a.rows * a.columns * b.columns > 0 && amx::suits(&product) {
                // SAFETY: as for `run`; this instruction set has the unit.
                unsafe { amx::matmul(product) };
                return;
            }
        }
        let (mut left, mut right) = (Large::new(reach(&a)), Large::new(reach(&b)));
        let [a, b] = [widened(a, threads, &mut left), widened(b, threads, &mut right)];
        self.run([a, b], threads, base, to);
    }

    /// A product that was checked.
    fn run<T: Real>(&self, [a, b]: [Matrix<T>; 2], threads: bool, base: Base<T>, to: &mut [T]) {
        let (m, k, n) = (a.rows, a.columns, b.columns);
        if m * n * k == 0 {
            match base {
                Base::Nothing => to.fill(T::ZERO),
                Base::There => {}
                Base::Row(bias) => {
                    to.chunks_exact_mut(n.max(1)).for_each(|to| to.copy_from_slice(bias));
                }
            }
            return;
        }
        let product = strided([a, b], threads, base, to);
        // SAFETY: both matrices were found to lie within their slices when they were made; `to` is
        // m × n, as was checked, and borrowed alone; the bias has n numbers.
        unsafe { (T::kernels(self.isa()).matmul)(product) };
    }
}

/// A product as the kernels take it.
fn strided<T, C>(
    [a, b]: [Matrix<T>; 2],
    threads: bool,
    base: Base<C>,
    to: &mut [C],
) -> Strided<T, C> {
    Strided {
        m: a.rows,
        n: b.columns,
        k: a.columns,
        a: a.data.as_ptr(),
        a_strides: a.strides,
        b: b.data.as_ptr(),
        b_strides: b.strides,
        c: to.as_mut_ptr(),
        base: match base {
            Base::Nothing => RawBase::Nothing,
            Base::There => RawBase::There,
            Base::Row(bias) => RawBase::Row(bias.as_ptr()),
        },
        threads,
    }
}

/// How many numbers there are from a matrix's first to its last.
fn reach<T>(x: &Matrix<T>) -> usize {
    match x.rows * x.columns {
        0 => 0,
        _ => (x.rows - 1) * x.strides.row + (x.columns - 1) * x.strides.column + 1,
    }
}

/// The same matrix in f32, by all threads or this one.
fn widened<'a>(x: Matrix<bf16>, threads: bool, to: &'a mut [f32]) -> Matrix<'a, f32> {
    /// Numbers of a task.
    const PART: usize = 1 << 14;
    let (len, shared) = (to.len(), Shared::new(to));
    let widen = |part: usize| {
        let (from, count) = (part * PART, PART.min(len - part * PART));
        // SAFETY: each task has numbers of its own.
        let to = unsafe { shared.part(from, count) };
        for (to, x) in to.iter_mut().zip(&x.data[from..]) {
            *to = x.to_f32();
        }
    };
    match threads {
        true => tasks::runs(len.div_ceil(PART), 1, &widen),
        false => (0..len.div_ceil(PART)).for_each(widen),
    }
    Matrix { data: to, rows: x.rows, columns: x.columns, strides: x.strides }
}

/// Multiplications.
fn work<T>([a, b]: &[Matrix<T>; 2]) -> usize {
    a.rows * a.columns * b.columns
}

fn sizes<T>(pair: &[Matrix<T>; 2]) -> [[usize; 2]; 2] {
    pair.each_ref().map(|x| [x.rows, x.columns])
}

/// Refuses what does not fit.
fn check<'a, T, C>(
    [a, b]: [Matrix<'a, T>; 2],
    base: Base<C>,
    len: usize,
) -> Result<[Matrix<'a, T>; 2], Error> {
    let (m, k, n) = (a.rows, a.columns, b.columns);
    ensure!(
        k == b.rows && len == numel(&[m, n]),
        "a product of {m} × {k} and {} × {n} numbers into {len} does not fit",
        b.rows
    );
    // Matrices with strides of 0 may be of any size; kernels count in whole blocks of 32.
    ensure!(
        numel(&[m, k, n].map(|size| size.saturating_add(32))) <= MOST,
        "a product of {m} × {k} and {k} × {n} numbers is more work than can be counted"
    );
    if let Base::Row(bias) = base {
        ensure!(bias.len() == n, "a bias of {} numbers for {n} columns", bias.len());
    }
    Ok([a, b])
}

impl<T, C> Strided<T, C> {
    /// Where a number of C lies.
    ///
    /// # Safety
    /// C has it.
    pub(crate) unsafe fn at(&self, row: usize, column: usize) -> *mut C {
        // SAFETY: the caller's.
        unsafe { self.c.add(row * self.n + column) }
    }
}

impl<T: Real> Strided<T> {
    /// Lays the bias down in one row.
    ///
    /// # Safety
    /// C and the bias are there, and the row is the calling task's alone.
    unsafe fn write_bias(&self, row: usize) {
        if let RawBase::Row(bias) = self.base {
            // SAFETY: the caller's.
            unsafe { self.at(row, 0).copy_from_nonoverlapping(bias, self.n) }
        }
    }

    /// Some columns, added to what is there or not.
    ///
    /// # Safety
    /// A, B and C are there, and the columns are the calling task's alone.
    unsafe fn columns(&self, from: usize, columns: usize, threads: bool) {
        let _flushed = Flushed::new();
        // SAFETY: the caller's.
        unsafe {
            let product = Product {
                m: self.m,
                n: columns,
                k: self.k,
                a: Factor { at: self.a, strides: self.a_strides },
                b: Factor { at: self.b.add(from * self.b_strides.column), strides: self.b_strides },
                c: self.at(0, from),
                c_strides: Strides { row: self.n, column: 1 },
                adds: !matches!(self.base, RawBase::Nothing),
            };
            product.run(threads);
        }
    }
}

/// By the `gemm` crates, which find an instruction set by themselves.
///
/// # Safety
/// A, B, C and the bias are there, and C overlaps none of them.
pub(crate) unsafe fn matmul<T: Real>(p: Strided<T>) {
    // SAFETY: the caller's; no two tasks have a row, or a column, in common.
    unsafe {
        if matches!(p.base, RawBase::Row(_)) && p.threads {
            tasks::runs(p.m, 16, &|row| p.write_bias(row));
        } else {
            (0..p.m).for_each(|row| p.write_bias(row));
        }
        // Few rows and many columns, as a decoder's step has: `gemm` cuts rows, of which there are
        // too few, so columns are cut here. By the shape alone, so the bits are always the same.
        if p.threads && p.m <= SHORT && p.n >= 4 * CUT {
            let wide = part_columns(p.m, p.n, p.k);
            tasks::each(p.n.div_ceil(wide), &|at| {
                p.columns(at * wide, wide.min(p.n - at * wide), false);
            });
        } else {
            p.columns(0, p.n, p.threads);
        }
    }
}
