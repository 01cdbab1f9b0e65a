//! Number by number, over any strides.

use super::walk::{map, scatter, zip, zip3};
use crate::backend::{Binary, Comparison, Unary};
use crate::dtype::{Float, floats, fractions, scalars};
use crate::layout::{Dims, Layout};
use crate::{DType, Result, Scalar, Tensor, parallel};

pub(super) fn full(shape: &Dims, x: f64, dtype: DType) -> Result<Tensor> {
    scalars!(dtype, T => Tensor::build(shape, |to: &mut [T]| {
        parallel::fill(to, <T as Scalar>::from_f64(x));
    }))
}

pub(super) fn copy(x: &Tensor) -> Result<Tensor> {
    scalars!(x.dtype(), T => {
        let from = x.data::<T>("contiguous")?;
        Tensor::build(x.shape(), |to: &mut [T]| map((from, &x.layout), to, |x| x))
    })
}

pub(super) fn cast(x: &Tensor, dtype: DType) -> Result<Tensor> {
    scalars!(x.dtype(), A => {
        let from = x.data::<A>("to_dtype")?;
        scalars!(dtype, R => Tensor::build(x.shape(), |to: &mut [R]| {
            map((from, &x.layout), to, |x: A| <R as Scalar>::from_f64(x.to_f64()));
        }))
    })
}

pub(super) fn unary(op: &str, f: Unary, x: &Tensor) -> Result<Tensor> {
    floats!(x.dtype(), op, T => {
        let from = (x.data::<T>(op)?, &x.layout);
        Tensor::build(x.shape(), |to: &mut [T]| match f {
            Unary::Scale(factor) => map(from, to, |x| x * factor as T),
            Unary::Shift(term) => map(from, to, |x| x + term as T),
            Unary::Exp => map(from, to, |x| x.exp()),
            Unary::Ln => map(from, to, |x| x.ln()),
            Unary::Sqrt => map(from, to, |x| x.sqrt()),
            Unary::Square => map(from, to, |x| x * x),
            Unary::Abs => map(from, to, |x| x.abs()),
            Unary::Powf(power) => map(from, to, |x| x.powf(power as T)),
            Unary::Clamp(least, most) => map(from, to, |x| x.clamp(least as T, most as T)),
        })
    })
}

pub(super) fn unary_backward(f: Unary, x: &Tensor, y: &Tensor, g: &Tensor) -> Result<Tensor> {
    const OP: &str = "gradient";
    floats!(x.dtype(), OP, T => {
        let shape = x.dims();
        let g = (g.data::<T>(OP)?, &g.layout);
        let from_x = (x.data::<T>(OP)?, &x.layout);
        let from_y = (y.data::<T>(OP)?, &y.layout);
        Tensor::build(shape, |to: &mut [T]| match f {
            Unary::Scale(factor) => map(g, to, |g| g * factor as T),
            Unary::Shift(_) => map(g, to, |g| g),
            Unary::Exp => zip(shape, g, from_y, to, |g, y| g * y),
            Unary::Ln => zip(shape, g, from_x, to, |g, x| g * (1.0 / x)),
            Unary::Sqrt => zip(shape, g, from_y, to, |g, y| g * (0.5 / y)),
            Unary::Square => zip(shape, g, from_x, to, |g, x| g * (2.0 * x)),
            Unary::Abs => zip(shape, g, from_x, to, |g, x| {
                g * if x == 0.0 { 0.0 } else { x.signum() }
            }),
            // x⁰ is 1 everywhere, at 0 too, where the formula of the slope has 0 · ∞.
            Unary::Powf(0.0) => map(g, to, |g| g * 0.0),
            Unary::Powf(power) => zip(shape, g, from_x, to, |g, x| {
                g * (power as T * x.powf(power as T - 1.0))
            }),
            Unary::Clamp(..) => zip3(shape, g, from_x, from_y, to, |g: T, x: T, y: T| {
                g * match x == y {
                    true => 1.0,
                    false if x.is_nan() => x,
                    false => 0.0,
                }
            }),
        })
    })
}

pub(super) fn binary(op: &str, f: Binary, a: &Tensor, b: &Tensor) -> Result<Tensor> {
    floats!(a.dtype(), op, T => {
        let shape = a.dims();
        let (a, b) = ((a.data::<T>(op)?, &a.layout), (b.data::<T>(op)?, &b.layout));
        Tensor::build(shape, |to: &mut [T]| match f {
            Binary::Add => zip(shape, a, b, to, |x, y| x + y),
            Binary::Sub => zip(shape, a, b, to, |x, y| x - y),
            Binary::Mul => zip(shape, a, b, to, |x, y| x * y),
            Binary::Div => zip(shape, a, b, to, |x, y| x / y),
            Binary::Maximum => zip(shape, a, b, to, |x, y| if x >= y || x.is_nan() { x } else { y }),
        })
    })
}

pub(super) fn compare(op: &str, f: Comparison, a: &Tensor, b: &Tensor) -> Result<Tensor> {
    scalars!(a.dtype(), T => {
        let shape = a.dims();
        let (a, b) = ((a.data::<T>(op)?, &a.layout), (b.data::<T>(op)?, &b.layout));
        Tensor::build(shape, |to: &mut [u8]| match f {
            Comparison::Equal => zip(shape, a, b, to, |x: T, y: T| u8::from(x == y)),
            Comparison::NotEqual => zip(shape, a, b, to, |x: T, y: T| u8::from(x != y)),
            Comparison::Less => zip(shape, a, b, to, |x: T, y: T| u8::from(x < y)),
            Comparison::LessOrEqual => zip(shape, a, b, to, |x: T, y: T| u8::from(x <= y)),
            Comparison::Greater => zip(shape, a, b, to, |x: T, y: T| u8::from(x > y)),
            Comparison::GreaterOrEqual => zip(shape, a, b, to, |x: T, y: T| u8::from(x >= y)),
        })
    })
}

pub(super) fn select(mask: &Tensor, yes: &Tensor, no: &Tensor) -> Result<Tensor> {
    let shape = mask.dims();
    scalars!(yes.dtype(), T => {
        let mask = (mask.data::<u8>("where")?, &mask.layout);
        let yes = (yes.data::<T>("where")?, &yes.layout);
        let no = (no.data::<T>("where")?, &no.layout);
        Tensor::build(shape, |to: &mut [T]| {
            zip3(shape, mask, yes, no, to, |m, a, b| if m != 0 { a } else { b });
        })
    })
}

pub(super) fn add_to(to: &mut Tensor, part: &Layout, x: &Tensor) -> Result<()> {
    fractions!(x.dtype(), "gradient", T => {
        let from = x.as_slice::<T>("gradient")?;
        if part.is_contiguous() {
            let to = &mut to.data_mut::<T>("gradient")?[part.offset..][..from.len()];
            parallel::pieces(to, |at, to| {
                to.iter_mut().zip(&from[at..]).for_each(|(to, &x)| *to += x);
            });
        } else {
            scatter(to.data_mut::<T>("gradient")?, part, from, |to, x| *to += x);
        }
        Ok(())
    })
}

pub(super) fn write_to(to: &mut Tensor, part: &Layout, x: &Tensor) -> Result<()> {
    scalars!(x.dtype(), T => {
        let from = x.as_slice::<T>("write")?;
        scatter(to.data_mut::<T>("write")?, part, from, |to, x| *to = x);
        Ok(())
    })
}

/// The numbers of a contiguous tensor, where there is one.
pub(super) fn maybe<T: Float>(x: Option<&Tensor>) -> Result<Option<&[T]>> {
    x.map(|x| x.as_slice::<T>("gradient")).transpose()
}
