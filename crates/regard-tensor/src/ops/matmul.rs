//! Matrix products, by the `gemm` crate: any strides, so a transposed operand costs nothing.

use crate::dtype::{Float, floats};
use crate::layout::{Dims, Layout, broadcast};
use crate::{Result, Tensor, ensure, parallel};
use gemm::Parallelism;
use rayon::prelude::*;

/// Multiplications worth a task of their own.
const WORK: usize = 1 << 18;

/// One product: C (m × n) = A (m × k) · B (k × n), all with row and column strides.
struct Product<'a, T> {
    m: usize,
    n: usize,
    k: usize,
    a: (&'a [T], usize, usize, usize),
    b: (&'a [T], usize, usize, usize),
}

impl<T: Float> Product<'_, T> {
    /// Into contiguous rows; added to what is there where `add`.
    fn write(&self, to: &mut [T], add: bool, parallelism: Parallelism) {
        let (m, n, k) = (self.m, self.n, self.k);
        assert_eq!(to.len(), m * n);
        let reach =
            |(x, at, row, column): (&[T], usize, usize, usize), rows: usize, columns: usize| {
                let last = at + (rows - 1) * row + (columns - 1) * column;
                assert!(last < x.len(), "the product reads beyond its operand");
            };
        if m == 0 || n == 0 {
            return;
        }
        if k == 0 {
            if !add {
                to.fill(T::ZERO);
            }
            return;
        }
        reach(self.a, m, k);
        reach(self.b, k, n);
        let to = Rows(to.as_mut_ptr());
        let part = |from: usize, columns: usize, how: Parallelism| {
            let ((a, a0, ar, ac), (b, b0, br, bc)) = (self.a, self.b);
            // SAFETY: both operands were just found to lie within their slices, `to` is m × n, and
            // no two parts have a column in common.
            unsafe {
                gemm::gemm(
                    m,
                    columns,
                    k,
                    to.at(from),
                    1,
                    n as isize,
                    add,
                    a.as_ptr().add(a0),
                    ac as isize,
                    ar as isize,
                    b.as_ptr().add(b0 + from * bc),
                    bc as isize,
                    br as isize,
                    T::ONE,
                    T::ONE,
                    false,
                    false,
                    false,
                    how,
                );
            }
        };
        // Few rows and many columns, as a decoder's step has: `gemm` cuts rows, of which there are
        // too few, so columns are cut here. By the shape alone, so the bits are always the same.
        if m <= SHORT && n >= 4 * CUT && !matches!(parallelism, Parallelism::None) {
            let wide = n.div_ceil(4).next_multiple_of(CUT);
            (0..n.div_ceil(wide)).into_par_iter().for_each(|at| {
                part(at * wide, wide.min(n - at * wide), Parallelism::None);
            });
        } else {
            part(0, n, parallelism);
        }
    }
}

/// Rows so few that columns are cut instead.
const SHORT: usize = 128;
/// Columns are cut in multiples of this.
const CUT: usize = 64;

/// A result whose columns several tasks write.
#[derive(Clone, Copy)]
struct Rows<T>(*mut T);

// SAFETY: tasks write columns of their own.
unsafe impl<T: Send> Send for Rows<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Rows<T> {}

impl<T> Rows<T> {
    /// # Safety
    /// The result has this many columns at least.
    unsafe fn at(&self, column: usize) -> *mut T {
        // SAFETY: the caller's.
        unsafe { self.0.add(column) }
    }
}

/// Threads for so many multiplications.
fn threads(work: usize) -> Parallelism {
    if work < WORK { Parallelism::None } else { Parallelism::Rayon(0) }
}

/// The product of two stacks of matrices, each broadcast to `lead`, into contiguous numbers.
fn stacks<T: Float>(lead: &[usize], a: (&[T], &Layout), b: (&[T], &Layout), to: &mut [T]) {
    let rank = lead.len() + 2;
    let (m, k, n) = (a.1.shape[rank - 2], a.1.shape[rank - 1], b.1.shape[rank - 1]);
    let count: usize = lead.iter().product();
    let start = |layout: &Layout, mut item: usize| {
        let mut at = layout.offset;
        for axis in (0..lead.len()).rev() {
            at += item % lead[axis] * layout.strides[axis];
            item /= lead[axis];
        }
        at
    };
    let product = |item: usize| Product {
        m,
        n,
        k,
        a: (a.0, start(a.1, item), a.1.strides[rank - 2], a.1.strides[rank - 1]),
        b: (b.0, start(b.1, item), b.1.strides[rank - 2], b.1.strides[rank - 1]),
    };
    if m * n == 0 || count == 0 {
        return;
    }
    let work = m * n * k;
    if count == 1 || work > 64 * WORK {
        for (item, to) in to.chunks_mut(m * n).enumerate() {
            product(item).write(to, false, threads(work));
        }
    } else {
        let least = (WORK / work.max(1)).max(1);
        parallel::chunks(to, m * n, least, &|item, to| {
            product(item).write(to, false, Parallelism::None);
        });
    }
}

/// The leading axes of two stacks broadcast to one shape, and both layouts in it.
fn stacked(a: &Tensor, b: &Tensor) -> Result<(Dims, Layout, Layout)> {
    let (sa, sb) = (a.shape(), b.shape());
    let lead = |s: &[usize]| Dims::new(&s[..s.len() - 2]);
    let lead = broadcast("matmul", &lead(sa)?, &lead(sb)?)?;
    let whole = |x: &Tensor| {
        let s = x.shape();
        let mut shape = lead.to_vec();
        shape.extend(&s[s.len() - 2..]);
        let shape = Dims::new(&shape)?;
        x.layout.broadcast(&shape).ok_or_else(|| {
            crate::Error::new(format!("matmul: {s:?} does not broadcast to {shape:?}"))
        })
    };
    Ok((lead, whole(a)?, whole(b)?))
}

fn product(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    let (lead, la, lb) = stacked(a, b)?;
    let mut shape = lead.to_vec();
    shape.extend([la.shape[lead.len()], lb.shape[lead.len() + 1]]);
    floats!(a.dtype(), "matmul", T => {
        let (da, db) = (a.data::<T>("matmul")?, b.data::<T>("matmul")?);
        Tensor::build(&shape, |to: &mut [T]| stacks(&lead, (da, &la), (db, &lb), to))
    })
}

/// A product that lies as `like` does, transposed where that is: the gradient of a transposed matrix
/// then needs no turning, and `gemm` reads long rows.
fn product_like(like: &Tensor, a: &Tensor, b: &Tensor) -> Result<Tensor> {
    let rank = like.shape().len();
    if like.layout.strides[rank - 2] == 1 && like.layout.strides[rank - 1] > 1 {
        product(&b.transpose(-1, -2)?, &a.transpose(-1, -2)?)?.transpose(-1, -2)
    } else {
        product(a, b)
    }
}

impl Tensor {
    /// The matrix product of the last two axes, `[…, m, k]` · `[…, k, n]` → `[…, m, n]`; leading
    /// axes broadcast. Transposed operands are read as they lie.
    ///
    /// ```
    /// use regard_tensor::Tensor;
    /// let a = Tensor::from_vec(vec![1f32, 2.0, 3.0, 4.0], &[2, 2])?;
    /// assert_eq!(a.matmul(&a.transpose(0, 1)?)?.to_vec::<f32>()?, [5.0, 11.0, 11.0, 25.0]);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn matmul(&self, other: &Tensor) -> Result<Tensor> {
        let (sa, sb) = (self.shape(), other.shape());
        ensure!(
            sa.len() >= 2 && sb.len() >= 2,
            "matmul: {sa:?} and {sb:?}; both need two axes at least"
        );
        ensure!(
            self.dtype() == other.dtype(),
            "matmul: types {} and {} differ",
            self.dtype(),
            other.dtype()
        );
        let (inner, rows) = (sa[sa.len() - 1], sb[sb.len() - 2]);
        ensure!(
            inner == rows,
            "matmul: {sa:?} and {sb:?} do not fit; the inner sizes {inner} and {rows} differ"
        );
        // One matrix on the right: a single tall product.
        if sb.len() == 2 && sa.len() > 2 {
            let mut shape = sa.to_vec();
            shape[sa.len() - 1] = sb[1];
            let rows = sa[..sa.len() - 1].iter().product();
            let flat = self.reshape(&[rows, inner])?;
            return flat.matmul(other)?.reshape(&shape);
        }
        let out = product(self, other)?;
        let (a, b) = (self.detach(), other.detach());
        Ok(out.record("matmul", &[self, other], move |g, to| {
            if to.want(0) {
                let grad = product_like(&a, &g, &b.transpose(-1, -2)?)?;
                to.add(0, grad.sum_to(a.dims())?)?;
            }
            if to.want(1) {
                let grad = product_like(&b, &a.transpose(-1, -2)?, &g)?;
                to.add(1, grad.sum_to(b.dims())?)?;
            }
            Ok(())
        }))
    }

    /// x · Wᵀ + b: `[…, in]` with W `[out, in]` and b `[out]` → `[…, out]`.
    ///
    /// ```
    /// use regard_tensor::Tensor;
    /// let x = Tensor::from_vec(vec![1f32, 2.0], &[1, 2])?;
    /// let w = Tensor::from_vec(vec![1f32, 0.0, 0.0, 1.0, 1.0, 1.0], &[3, 2])?;
    /// let b = Tensor::from_vec(vec![0f32, 0.0, 10.0], &[3])?;
    /// assert_eq!(x.linear(&w, Some(&b))?.to_vec::<f32>()?, [1.0, 2.0, 13.0]);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn linear(&self, weight: &Tensor, bias: Option<&Tensor>) -> Result<Tensor> {
        let (sx, sw) = (self.shape(), weight.shape());
        ensure!(
            sw.len() == 2 && !sx.is_empty() && sx[sx.len() - 1] == sw[1],
            "linear: an input of shape {sx:?} and weights of shape {sw:?} do not fit"
        );
        let Some(bias) = bias else {
            return if sx.len() == 1 {
                self.unsqueeze(0)?.matmul(&weight.transpose(0, 1)?)?.squeeze(0)
            } else {
                self.matmul(&weight.transpose(0, 1)?)
            };
        };
        ensure!(
            bias.shape() == [sw[0]],
            "linear: a bias of shape {:?} for weights of shape {sw:?}",
            bias.shape()
        );
        let (n, k) = (sw[0], sw[1]);
        let mut shape = sx.to_vec();
        shape[sx.len() - 1] = n;
        let m = shape[..shape.len() - 1].iter().product::<usize>();
        let x = self.reshape(&[m, k])?;
        let (lx, lw) = (x.layout, weight.layout.transpose(0, 1));
        let flat = bias.detach().contiguous()?;
        let out = floats!(x.dtype(), "linear", T => {
            let (dx, dw) = (x.data::<T>("linear")?, weight.data::<T>("linear")?);
            let bias = flat.numbers::<T>("linear")?;
            Tensor::build(&[m, n], |to: &mut [T]| {
                // The bias is laid down first and the product added to it.
                crate::parallel::rows(to, n, |_, to| to.copy_from_slice(bias));
                let p = Product {
                    m,
                    n,
                    k,
                    a: (dx, lx.offset, lx.strides[0], lx.strides[1]),
                    b: (dw, lw.offset, lw.strides[0], lw.strides[1]),
                };
                p.write(to, true, threads(m * n * k));
            })
        })?;
        let (saved, w) = (x.detach(), weight.detach());
        let out = out.record("linear", &[&x, weight, bias], move |g, to| {
            if to.want(0) {
                to.add(0, product(&g, &w)?)?;
            }
            if to.want(1) {
                to.add(1, product(&g.transpose(0, 1)?, &saved)?)?;
            }
            if to.want(2) {
                to.add(2, g.sum(0)?)?;
            }
            Ok(())
        });
        out.reshape(&shape)
    }
}
