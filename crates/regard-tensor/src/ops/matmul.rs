//! Matrix products; a transposed operand is read as it lies.

use crate::backend;
use crate::layout::{Dims, Layout, broadcast};
use crate::ops::{check_float, in_f32, same_dtype};
use crate::{DType, Precision, Result, Tensor, ensure, precision};

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

/// Refuses more multiplications than can be counted, as the kernels do: a broadcast operand may be
/// larger than memory.
fn countable(op: &str, [m, k, n]: [usize; 3]) -> Result<()> {
    let work = m.checked_mul(k).and_then(|mk| mk.checked_mul(n));
    ensure!(
        work.is_some(),
        "{op}: [{m}, {k}] times [{k}, {n}] are more multiplications than can be counted"
    );
    Ok(())
}

/// A factor as the products of a precision take it. It lies as it did: long rows stay long rows.
fn factor(x: &Tensor, precision: Precision) -> Result<Tensor> {
    let x = x.detach();
    let rank = x.rank();
    if precision != Precision::Bf16 || x.dtype() != DType::F32 {
        Ok(x)
    } else if rank >= 2 && x.strides()[rank - 2] == 1 && x.strides()[rank - 1] > 1 {
        x.transpose(-1, -2)?.to_dtype(DType::BF16)?.transpose(-1, -2)
    } else {
        x.to_dtype(DType::BF16)
    }
}

/// Of two factors in one type; of bf16 in f32.
fn product(a: &Tensor, b: &Tensor, precision: Precision) -> Result<Tensor> {
    let (lead, la, lb) = stacked(a, b)?;
    let [m, k, n] = [la.shape[lead.len()], la.shape[lead.len() + 1], lb.shape[lead.len() + 1]];
    let mut shape = lead.to_vec();
    shape.extend([m, n]);
    Dims::new(&shape).map_err(|error| error.within("matmul"))?;
    countable("matmul", [m, k, n])?;
    let backend = backend::together("matmul", &[a, b])?;
    backend.matmul(&lead, &a.with_layout(la), &b.with_layout(lb), precision)
}

/// A product that lies as `like` does, transposed where that is: the gradient of a transposed matrix
/// then needs no turning, and long rows are read.
fn product_like(like: &Tensor, a: &Tensor, b: &Tensor, precision: Precision) -> Result<Tensor> {
    let rank = like.shape().len();
    if like.layout.strides[rank - 2] == 1 && like.layout.strides[rank - 1] > 1 {
        product(&b.transpose(-1, -2)?, &a.transpose(-1, -2)?, precision)?.transpose(-1, -2)
    } else {
        product(a, b, precision)
    }
}

impl Tensor {
    /// The matrix product of the last two axes, `[…, m, k]` · `[…, k, n]` → `[…, m, n]`; leading
    /// axes broadcast. Transposed operands are read as they lie.
    /// Refuses fewer than two axes, inner sizes that differ, leading axes that do not broadcast, and two types.
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
        same_dtype("matmul", ("the left tensor is", self), ("the right", other))?;
        if self.dtype().is_half() {
            return in_f32([self, other], |[a, b]| a.matmul(b));
        }
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
        let (device, precision) = (backend::meeting(&[self, other]), precision());
        let (left, right) = (self.constant_on(device)?, other.constant_on(device)?);
        let (a, b) = (factor(&left, precision)?, factor(&right, precision)?);
        let out = product(&a, &b, precision)?;
        Ok(out.record("matmul", &[self, other], move |g, to| {
            let g = factor(&g, precision)?;
            if to.want(0) {
                let grad = product_like(&a, &g, &b.transpose(-1, -2)?, precision)?;
                to.add(0, grad.sum_to(a.dims())?)?;
            }
            if to.want(1) {
                let grad = product_like(&b, &a.transpose(-1, -2)?, &g, precision)?;
                to.add(1, grad.sum_to(b.dims())?)?;
            }
            Ok(())
        }))
    }

    /// x · Wᵀ + b: `[…, in]` with W `[out, in]` and b `[out]` → `[…, out]`.
    /// Refuses shapes that do not fit, and two types.
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
        same_dtype("linear", ("the input is", self), ("the weights", weight))?;
        let Some(bias) = bias else {
            if !self.dtype().is_half() {
                check_float("linear", self)?;
            }
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
        same_dtype("linear", ("the input is", self), ("the bias", bias))?;
        if self.dtype().is_half() {
            return in_f32([self, weight, bias], |[x, w, b]| x.linear(w, Some(b)));
        }
        let (n, k) = (sw[0], sw[1]);
        let mut shape = sx.to_vec();
        shape[sx.len() - 1] = n;
        let m = shape[..shape.len() - 1].iter().product::<usize>();
        Dims::new(&shape).map_err(|error| error.within("linear"))?;
        countable("linear", [m, k, n])?;
        let (device, precision) = (backend::meeting(&[self, weight, bias]), precision());
        let x = self.constant_on(device)?.reshape(&[m, k])?;
        let (weight, bias) = (&weight.constant_on(device)?, &bias.constant_on(device)?);
        let flat = bias.detach().contiguous()?;
        let backend = backend::together("linear", &[&x, weight, bias])?;
        let (saved, w) = (factor(&x, precision)?, factor(weight, precision)?);
        let out = backend.linear(&saved, &w, &flat, precision)?;
        let out = out.record("linear", &[&x, weight, bias], move |g, to| {
            if to.want(2) {
                to.add(2, g.sum(0)?)?;
            }
            let g = factor(&g, precision)?;
            if to.want(0) {
                to.add(0, product(&g, &w, precision)?)?;
            }
            if to.want(1) {
                to.add(1, product(&g.transpose(0, 1)?, &saved, precision)?)?;
            }
            Ok(())
        });
        out.reshape(&shape)
    }
}
