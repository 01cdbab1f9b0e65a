//! Two tensors, element by element, broadcast to one shape.

use crate::backend::{self, Binary, Comparison};
use crate::layout::{Layout, broadcast};
use crate::ops::in_f32;
use crate::{Result, Tensor, ensure};

/// Refuses tensors of two types, with the name of each.
pub(crate) fn same_dtype(op: &str, a: (&str, &Tensor), b: (&str, &Tensor)) -> Result<()> {
    ensure!(
        a.1.dtype() == b.1.dtype(),
        "{op}: {} {} {:?}, {} {} {:?}; convert one with to_dtype",
        a.0,
        a.1.dtype(),
        a.1.shape(),
        b.0,
        b.1.dtype(),
        b.1.shape()
    );
    Ok(())
}

/// Both tensors off the tape and seen in the shape they broadcast to, and what computes there.
fn together(
    op: &str,
    a: &Tensor,
    b: &Tensor,
) -> Result<(Tensor, Tensor, &'static dyn backend::Backend)> {
    same_dtype(op, ("the left tensor is", a), ("the right", b))?;
    let device = backend::meeting(&[a, b]);
    let (a, b) = (&a.constant_on(device)?, &b.constant_on(device)?);
    let shape = broadcast(op, a.dims(), b.dims())?;
    match (a.layout.broadcast(&shape), b.layout.broadcast(&shape)) {
        (Some(la), Some(lb)) => {
            Ok((a.with_layout(la), b.with_layout(lb), backend::together(op, &[a, b])?))
        }
        _ => unreachable!("broadcast() has checked both shapes"),
    }
}

/// Whether both are stored in one type of 16 bits.
fn halves(a: &Tensor, b: &Tensor) -> bool {
    a.dtype().is_half() && a.dtype() == b.dtype()
}

fn binary(op: &str, f: Binary, a: &Tensor, b: &Tensor) -> Result<Tensor> {
    let (a, b, backend) = together(op, a, b)?;
    backend.binary(op, f, &a, &b)
}

impl Tensor {
    /// a + b, broadcast.
    /// Refuses shapes that do not broadcast, two types, and whole numbers.
    ///
    /// ```
    /// use regard_tensor::Tensor;
    /// let a = Tensor::from_vec(vec![1f32, 2.0, 3.0, 4.0], &[2, 2])?;
    /// let b = Tensor::from_vec(vec![10f32, 20.0], &[2])?;
    /// assert_eq!(a.add(&b)?.to_vec::<f32>()?, [11.0, 22.0, 13.0, 24.0]);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn add(&self, other: &Tensor) -> Result<Tensor> {
        if halves(self, other) {
            return in_f32([self, other], |[a, b]| a.add(b));
        }
        let (sa, sb) = (*self.dims(), *other.dims());
        let out = binary("add", Binary::Add, self, other)?;
        Ok(out.record("add", &[self, other], move |g, to| {
            for (input, shape) in [(0, sa), (1, sb)] {
                if to.want(input) {
                    to.add(input, g.sum_to(&shape)?)?;
                }
            }
            Ok(())
        }))
    }

    /// a − b, broadcast.
    /// Refuses shapes that do not broadcast, two types, and whole numbers.
    ///
    /// ```
    /// use regard_tensor::Tensor;
    /// let a = Tensor::from_vec(vec![1f32, 2.0], &[2])?;
    /// assert_eq!(a.sub(&Tensor::scalar(1f32)?)?.to_vec::<f32>()?, [0.0, 1.0]);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn sub(&self, other: &Tensor) -> Result<Tensor> {
        if halves(self, other) {
            return in_f32([self, other], |[a, b]| a.sub(b));
        }
        let (sa, sb) = (*self.dims(), *other.dims());
        let out = binary("sub", Binary::Sub, self, other)?;
        Ok(out.record("sub", &[self, other], move |g, to| {
            if to.want(0) {
                to.add(0, g.sum_to(&sa)?)?;
            }
            if to.want(1) {
                to.add(1, g.sum_to(&sb)?.scale(-1.0)?)?;
            }
            Ok(())
        }))
    }

    /// a · b element by element, broadcast.
    /// Refuses shapes that do not broadcast, two types, and whole numbers.
    ///
    /// ```
    /// use regard_tensor::Tensor;
    /// let a = Tensor::from_vec(vec![1f32, 2.0], &[2])?;
    /// assert_eq!(a.mul(&a)?.to_vec::<f32>()?, [1.0, 4.0]);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn mul(&self, other: &Tensor) -> Result<Tensor> {
        if halves(self, other) {
            return in_f32([self, other], |[a, b]| a.mul(b));
        }
        let out = binary("mul", Binary::Mul, self, other)?;
        let (a, b) = (self.detach(), other.detach());
        Ok(out.record("mul", &[self, other], move |g, to| {
            if to.want(0) {
                to.add(0, g.mul(&b)?.sum_to(a.dims())?)?;
            }
            if to.want(1) {
                to.add(1, g.mul(&a)?.sum_to(b.dims())?)?;
            }
            Ok(())
        }))
    }

    /// a / b element by element, broadcast.
    /// Refuses shapes that do not broadcast, two types, and whole numbers.
    ///
    /// ```
    /// use regard_tensor::Tensor;
    /// let a = Tensor::from_vec(vec![3f32, 8.0], &[2])?;
    /// let b = Tensor::from_vec(vec![2f32, 4.0], &[2])?;
    /// assert_eq!(a.div(&b)?.to_vec::<f32>()?, [1.5, 2.0]);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn div(&self, other: &Tensor) -> Result<Tensor> {
        if halves(self, other) {
            return in_f32([self, other], |[a, b]| a.div(b));
        }
        let out = binary("div", Binary::Div, self, other)?;
        let (a, b, y) = (self.detach(), other.detach(), out.detach());
        Ok(out.record("div", &[self, other], move |g, to| {
            if to.want(0) {
                to.add(0, g.div(&b)?.sum_to(a.dims())?)?;
            }
            if to.want(1) {
                to.add(1, g.mul(&y)?.div(&b)?.scale(-1.0)?.sum_to(b.dims())?)?;
            }
            Ok(())
        }))
    }

    /// The larger of a and b, broadcast, and NaN where one of them is; where they are equal the
    /// gradient goes to a.
    /// Refuses shapes that do not broadcast, two types, and whole numbers.
    ///
    /// ```
    /// use regard_tensor::Tensor;
    /// let a = Tensor::from_vec(vec![3f32, -8.0], &[2])?;
    /// assert_eq!(a.maximum(&Tensor::scalar(0f32)?)?.to_vec::<f32>()?, [3.0, 0.0]);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn maximum(&self, other: &Tensor) -> Result<Tensor> {
        if halves(self, other) {
            return in_f32([self, other], |[a, b]| a.maximum(b));
        }
        let out = binary("maximum", Binary::Maximum, self, other)?;
        let (a, b) = (self.detach(), other.detach());
        Ok(out.record("maximum", &[self, other], move |g, to| {
            let second = b.gt(&a)?;
            let nothing = g.zero()?;
            if to.want(0) {
                to.add(0, second.where_(&nothing, &g)?.sum_to(a.dims())?)?;
            }
            if to.want(1) {
                to.add(1, second.where_(&g, &nothing)?.sum_to(b.dims())?)?;
            }
            Ok(())
        }))
    }
}

/// Comparisons, element by element and broadcast, as bools. A NaN is neither less, greater nor equal.
impl Tensor {
    /// a = b.
    /// Refuses shapes that do not broadcast, and two types.
    ///
    /// ```
    /// use regard_tensor::Tensor;
    /// let x = Tensor::from([1f32, 2.0, 3.0]);
    /// assert_eq!(x.eq(&Tensor::scalar(2f32)?)?.to_vec::<u8>()?, [0, 1, 0]);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn eq(&self, other: &Tensor) -> Result<Tensor> {
        compare("eq", Comparison::Equal, self, other)
    }

    /// a ≠ b.
    /// Refuses shapes that do not broadcast, and two types.
    ///
    /// ```
    /// use regard_tensor::Tensor;
    /// let x = Tensor::from([1f32, 2.0, 3.0]);
    /// assert_eq!(x.ne(&Tensor::scalar(2f32)?)?.to_vec::<u8>()?, [1, 0, 1]);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn ne(&self, other: &Tensor) -> Result<Tensor> {
        compare("ne", Comparison::NotEqual, self, other)
    }

    /// a < b.
    /// Refuses shapes that do not broadcast, and two types.
    ///
    /// ```
    /// use regard_tensor::Tensor;
    /// let x = Tensor::from([1f32, 2.0, 3.0]);
    /// assert_eq!(x.lt(&Tensor::scalar(2f32)?)?.to_vec::<u8>()?, [1, 0, 0]);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn lt(&self, other: &Tensor) -> Result<Tensor> {
        compare("lt", Comparison::Less, self, other)
    }

    /// a ≤ b.
    /// Refuses shapes that do not broadcast, and two types.
    ///
    /// ```
    /// use regard_tensor::Tensor;
    /// let x = Tensor::from([1f32, 2.0, 3.0]);
    /// assert_eq!(x.le(&Tensor::scalar(2f32)?)?.to_vec::<u8>()?, [1, 1, 0]);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn le(&self, other: &Tensor) -> Result<Tensor> {
        compare("le", Comparison::LessOrEqual, self, other)
    }

    /// a > b.
    /// Refuses shapes that do not broadcast, and two types.
    ///
    /// ```
    /// use regard_tensor::Tensor;
    /// let x = Tensor::from([1f32, 2.0, 3.0]);
    /// assert_eq!(x.gt(&Tensor::scalar(2f32)?)?.to_vec::<u8>()?, [0, 0, 1]);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn gt(&self, other: &Tensor) -> Result<Tensor> {
        compare("gt", Comparison::Greater, self, other)
    }

    /// a ≥ b.
    /// Refuses shapes that do not broadcast, and two types.
    ///
    /// ```
    /// use regard_tensor::Tensor;
    /// let x = Tensor::from([1f32, 2.0, 3.0]);
    /// assert_eq!(x.ge(&Tensor::scalar(2f32)?)?.to_vec::<u8>()?, [0, 1, 1]);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn ge(&self, other: &Tensor) -> Result<Tensor> {
        compare("ge", Comparison::GreaterOrEqual, self, other)
    }
}

fn compare(op: &str, f: Comparison, a: &Tensor, b: &Tensor) -> Result<Tensor> {
    let (a, b, backend) = together(op, a, b)?;
    backend.compare(op, f, &a, &b)
}

/// a + b, in place where nobody else has a's storage.
pub(crate) fn add_into(mut a: Tensor, b: &Tensor) -> Result<Tensor> {
    let in_place = b.layout.is_contiguous() && a.is_own();
    if !in_place && a.dtype().is_float() {
        return a.add(b);
    }
    // The halves have no sum of their own.
    own(&mut a)?;
    let whole = a.layout;
    backend::together("add", &[&a, b])?.add_to(&mut a, &whole, &b.contiguous()?)?;
    Ok(a)
}

/// Gives a tensor storage of its own, contiguous, where it has none; its place on the tape stays.
pub(crate) fn own(x: &mut Tensor) -> Result<()> {
    if !x.is_own() {
        let mut own = x.backend().copy(x)?;
        own.node = x.node.take();
        *x = own;
    }
    Ok(())
}

/// Adds a tensor to a part of another, which is contiguous and has storage of its own.
pub(crate) fn add_to_part(
    whole: &mut Tensor,
    x: &Tensor,
    part: impl Fn(&Layout) -> Layout,
) -> Result<()> {
    let layout = part(&whole.layout);
    ensure!(
        layout.shape == *x.dims(),
        "the gradient of a part has shape {:?}, the part {:?}",
        x.shape(),
        layout.shape
    );
    backend::together("gradient", &[whole, x])?.add_to(whole, &layout, &x.contiguous()?)
}
