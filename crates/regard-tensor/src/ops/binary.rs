//! Two tensors, element by element, broadcast to one shape.

use crate::dtype::{floats, fractions};
use crate::layout::{Layout, broadcast};
use crate::walk::{scatter, zip, zip3};
use crate::{Result, Tensor, ensure, parallel};

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

/// Both tensors seen in the shape they broadcast to.
fn together(op: &str, a: &Tensor, b: &Tensor) -> Result<(Layout, Layout)> {
    same_dtype(op, ("the left tensor is", a), ("the right", b))?;
    let shape = broadcast(op, a.dims(), b.dims())?;
    match (a.layout.broadcast(&shape), b.layout.broadcast(&shape)) {
        (Some(a), Some(b)) => Ok((a, b)),
        _ => unreachable!("broadcast() has checked both shapes"),
    }
}

macro_rules! binary {
    ($op:literal, $a:expr, $b:expr, |$x:ident, $y:ident| $f:expr) => {{
        let (a, b) = ($a, $b);
        let (la, lb) = together($op, a, b)?;
        floats!(a.dtype(), $op, T => {
            let (da, db) = (a.data::<T>($op)?, b.data::<T>($op)?);
            Tensor::build(&la.shape, |to: &mut [T]| {
                zip(&la.shape, (da, &la), (db, &lb), to, |$x, $y| $f);
            })
        })
    }};
}

impl Tensor {
    /// a + b, broadcast.
    ///
    /// ```
    /// use regard_tensor::Tensor;
    /// let a = Tensor::from_vec(vec![1f32, 2.0, 3.0, 4.0], &[2, 2])?;
    /// let b = Tensor::from_vec(vec![10f32, 20.0], &[2])?;
    /// assert_eq!(a.add(&b)?.to_vec::<f32>()?, [11.0, 22.0, 13.0, 24.0]);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn add(&self, other: &Tensor) -> Result<Tensor> {
        let (sa, sb) = (*self.dims(), *other.dims());
        let out = binary!("add", self, other, |x, y| x + y)?;
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
    ///
    /// ```
    /// use regard_tensor::Tensor;
    /// let a = Tensor::from_vec(vec![1f32, 2.0], &[2])?;
    /// assert_eq!(a.sub(&Tensor::scalar(1f32)?)?.to_vec::<f32>()?, [0.0, 1.0]);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn sub(&self, other: &Tensor) -> Result<Tensor> {
        let (sa, sb) = (*self.dims(), *other.dims());
        let out = binary!("sub", self, other, |x, y| x - y)?;
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
    ///
    /// ```
    /// use regard_tensor::Tensor;
    /// let a = Tensor::from_vec(vec![1f32, 2.0], &[2])?;
    /// assert_eq!(a.mul(&a)?.to_vec::<f32>()?, [1.0, 4.0]);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn mul(&self, other: &Tensor) -> Result<Tensor> {
        let out = binary!("mul", self, other, |x, y| x * y)?;
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
    ///
    /// ```
    /// use regard_tensor::Tensor;
    /// let a = Tensor::from_vec(vec![3f32, 8.0], &[2])?;
    /// let b = Tensor::from_vec(vec![2f32, 4.0], &[2])?;
    /// assert_eq!(a.div(&b)?.to_vec::<f32>()?, [1.5, 2.0]);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn div(&self, other: &Tensor) -> Result<Tensor> {
        let out = binary!("div", self, other, |x, y| x / y)?;
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

    /// The larger of a and b, broadcast; where they are equal the gradient goes to a.
    ///
    /// ```
    /// use regard_tensor::Tensor;
    /// let a = Tensor::from_vec(vec![3f32, -8.0], &[2])?;
    /// assert_eq!(a.maximum(&Tensor::scalar(0f32)?)?.to_vec::<f32>()?, [3.0, 0.0]);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn maximum(&self, other: &Tensor) -> Result<Tensor> {
        let out = binary!("maximum", self, other, |x, y| if x >= y { x } else { y })?;
        let (a, b) = (self.detach(), other.detach());
        Ok(out.record("maximum", &[self, other], move |g, to| {
            let (la, lb) = together("maximum", &a, &b)?;
            floats!(g.dtype(), "maximum", T => {
                let (da, db, dg) = (a.data::<T>("maximum")?, b.data("maximum")?, g.data("maximum")?);
                let part = |first: bool| Tensor::build(&la.shape, |to: &mut [T]| {
                    zip3(&la.shape, (da, &la), (db, &lb), (dg, &g.layout), to, |x: T, y: T, g: T| {
                        if (x >= y) == first { g } else { 0.0 }
                    });
                });
                for (input, shape) in [(0, a.dims()), (1, b.dims())] {
                    if to.want(input) {
                        to.add(input, part(input == 0)?.sum_to(shape)?)?;
                    }
                }
                Ok(())
            })
        }))
    }
}

/// a + b, in place where nobody else has a's storage.
pub(crate) fn add_into(mut a: Tensor, b: &Tensor) -> Result<Tensor> {
    fractions!(a.dtype(), "add", T => {
        let in_place = b.layout.is_contiguous() && a.as_mut_slice::<T>().is_ok();
        if !in_place && a.dtype().is_float() {
            return a.add(b);
        }
        // The halves have no sum of their own.
        own(&mut a)?;
        let b = b.contiguous()?;
        let from = b.as_slice::<T>("add")?;
        parallel::pieces(a.as_mut_slice::<T>()?, |at, to| {
            to.iter_mut().zip(&from[at..]).for_each(|(to, &x)| *to += x);
        });
        Ok(a)
    })
}

/// Gives a tensor storage of its own, contiguous, where it has none; its place on the tape stays.
pub(crate) fn own(x: &mut Tensor) -> Result<()> {
    fractions!(x.dtype(), "gradient", T => {
        if x.as_mut_slice::<T>().is_err() {
            let mut own = x.packed::<T>("gradient")?;
            own.node = x.node.take();
            *x = own;
        }
        Ok(())
    })
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
    let x = x.contiguous()?;
    fractions!(x.dtype(), "gradient", T => {
        let from = x.as_slice::<T>("gradient")?;
        scatter(whole.data_mut::<T>("gradient")?, &layout, from, |to, x| *to += x);
        Ok(())
    })
}
