//! act(x + bias) for rows, and its gradient.
//!
//! One read of x and one write of the result; the bias stays in the nearest cache. Backward
//! computes the activation's slope again from x, so forward keeps nothing, and adds up the columns
//! for the bias while it has them.

use super::parts::{Parts, rows_of};
use crate::activation::{CUBE, ROOT};
use crate::cpu::shared::Shared;
use crate::cpu::simd::Simd;
use crate::error::{Error, ensure};
use crate::{Activation, Cpu, Real};
use std::ops::Range;

/// Runs a block of code with `$act` a constant of each activation in turn, so that it is compiled
/// once for each.
macro_rules! for_each_act {
    ($given:expr, $act:ident => $code:expr) => {
        for_each_act!($given, $act => $code,
            [Identity, Relu, Gelu, GeluTanh, Silu, Tanh, Sigmoid, Exp],
            [LeakyRelu { slope }, Elu { alpha }])
    };
    ($given:expr, $act:ident => $code:expr, [$($plain:ident),*],
     [$($numbered:ident { $number:ident }),*]) => {
        match $given {
            $(Activation::$plain => {
                let $act = Activation::$plain;
                $code
            })*
            $(Activation::$numbered { $number } => {
                let $act = Activation::$numbered { $number };
                $code
            })*
        }
    };
}

#[cfg_attr(optimized, inline(always))]
unsafe fn value<V: Simd>(act: Activation, x: V) -> V {
    // SAFETY: arithmetic only.
    unsafe {
        let zero = V::zero();
        match act {
            Activation::Identity => x,
            Activation::Relu => x.max(zero),
            Activation::LeakyRelu { slope } => zero.where_greater(x, x.mul(V::number(slope)), x),
            Activation::Gelu => x.mul(x.normal().0),
            Activation::GeluTanh => x.mul(gelu_share(x)),
            Activation::Silu => x.mul(x.sigmoid()),
            Activation::Tanh => x.tanh(),
            Activation::Sigmoid => x.sigmoid(),
            Activation::Elu { alpha } => {
                // e⁻⁴⁰ is nothing beside 1 in either precision.
                let below = x.max(V::number(-40.0)).exp_m1().mul(V::number(alpha));
                zero.where_greater(x, below, x)
            }
            Activation::Exp => x.exp_anywhere(),
        }
    }
}

/// sigmoid(2√(2/π) · (x + 0.044715 x³))
#[cfg_attr(optimized, inline(always))]
unsafe fn gelu_share<V: Simd>(x: V) -> V {
    // SAFETY: arithmetic only.
    unsafe {
        let cube = x.mul(x).fma(V::number(2.0 * ROOT * CUBE), V::number(2.0 * ROOT));
        x.mul(cube).sigmoid()
    }
}

#[cfg_attr(optimized, inline(always))]
unsafe fn slope<V: Simd>(act: Activation, x: V) -> V {
    // SAFETY: arithmetic only.
    unsafe {
        let zero = V::zero();
        let one = V::splat(V::T::ONE);
        match act {
            Activation::Identity => one,
            Activation::Relu => x.where_greater(zero, one, zero),
            Activation::LeakyRelu { slope } => x.where_greater(zero, one, V::number(slope)),
            Activation::Gelu => {
                let (share, density) = x.normal();
                x.fma(density, share)
            }
            Activation::GeluTanh => {
                let s = gelu_share(x);
                let inner = x.mul(x).fma(V::number(6.0 * ROOT * CUBE), V::number(2.0 * ROOT));
                s.mul(one.sub(s)).fma(x.mul(inner), s)
            }
            Activation::Silu => {
                let s = x.sigmoid();
                s.mul(one.sub(s)).fma(x, s)
            }
            Activation::Tanh => {
                let t = x.tanh();
                t.fnma(t, one)
            }
            Activation::Sigmoid => {
                let s = x.sigmoid();
                s.mul(one.sub(s))
            }
            Activation::Elu { alpha } => {
                let below = x.min(zero).exp().mul(V::number(alpha));
                x.where_greater(zero, one, below)
            }
            Activation::Exp => x.exp_anywhere(),
        }
    }
}

/// Rows of x, and what is made of them.
#[derive(Clone, Copy)]
pub(crate) struct PointwiseRows<T> {
    act: Activation,
    rows: usize,
    width: usize,
    x: *const T,
    /// `[width]`, or null.
    bias: *const T,
    out: *mut T,
}

#[cfg_attr(optimized, inline(always))]
pub(crate) unsafe fn pointwise<V: Simd>(p: PointwiseRows<V::T>) {
    // SAFETY: rows of `width` numbers, the last ones by masked access.
    unsafe {
        for_each_act!(p.act, act => {
            for r in 0..p.rows {
                let (x, out) = (p.x.add(r * p.width), p.out.add(r * p.width));
                let mut c = 0;
                while c + V::LANES <= p.width {
                    let mut sum = V::load(x.add(c));
                    if !p.bias.is_null() {
                        sum = sum.add(V::load(p.bias.add(c)));
                    }
                    value(act, sum).store(out.add(c));
                    c += V::LANES;
                }
                if c < p.width {
                    let n = p.width - c;
                    let mut sum = V::load_first(x.add(c), n);
                    if !p.bias.is_null() {
                        sum = sum.add(V::load_first(p.bias.add(c), n));
                    }
                    value(act, sum).store_first(out.add(c), n);
                }
            }
        })
    }
}

/// Rows of x and of the gradient of the result.
#[derive(Clone, Copy)]
pub(crate) struct PointwiseGrads<T> {
    act: Activation,
    rows: usize,
    width: usize,
    x: *const T,
    /// `[width]`, or null.
    bias: *const T,
    grad: *const T,
    /// Written; or null.
    grad_x: *mut T,
    /// `[width]`, added to; or null.
    grad_bias: *mut T,
}

#[cfg_attr(optimized, inline(always))]
pub(crate) unsafe fn pointwise_grads<V: Simd>(p: PointwiseGrads<V::T>) {
    // SAFETY: rows of `width` numbers, the last ones by masked access.
    unsafe {
        for_each_act!(p.act, act => {
            for r in 0..p.rows {
                let row = r * p.width;
                let mut c = 0;
                while c < p.width {
                    let n = p.width - c;
                    let mut x = V::load_upto(p.x.add(row + c), n);
                    if !p.bias.is_null() {
                        x = x.add(V::load_upto(p.bias.add(c), n));
                    }
                    let grad = V::load_upto(p.grad.add(row + c), n).mul(slope(act, x));
                    if !p.grad_x.is_null() {
                        grad.store_upto(p.grad_x.add(row + c), n);
                    }
                    if !p.grad_bias.is_null() {
                        let at = p.grad_bias.add(c);
                        V::load_upto(at, n).add(grad).store_upto(at, n);
                    }
                    c += V::LANES;
                }
            }
        })
    }
}

/// x cut into parts: whole rows of the bias, or without one any numbers at all.
struct Cut {
    parts: Parts,
    width: Option<usize>,
}

/// One part: where it starts in x, its rows and their width.
struct Piece {
    from: usize,
    rows: usize,
    width: usize,
}

impl Cut {
    fn of<T>(x: &[T], bias: Option<&[T]>) -> Result<Self, Error> {
        let Some(bias) = bias else {
            return Ok(Self { parts: Parts::of_blocks(x.len(), 1, 64), width: None });
        };
        let rows = rows_of(x.len(), bias.len());
        ensure!(
            rows * bias.len() == x.len(),
            "x has {} elements, which are no whole rows of the bias's {}",
            x.len(),
            bias.len()
        );
        Ok(Self { parts: Parts::of(rows, bias.len()), width: Some(bias.len()) })
    }

    fn piece(&self, range: Range<usize>) -> Piece {
        match self.width {
            Some(width) => Piece { from: range.start * width, rows: range.len(), width },
            None => Piece { from: range.start, rows: 1, width: range.len() },
        }
    }
}

impl Cpu {
    /// out = act(x + bias), the bias `[width]` added to every row of x `[rows, width]`.
    ///
    /// Refuses an x that is not whole rows of the bias, and an out of another length.
    ///
    /// ```
    /// use regard_kernels::{Activation, Cpu};
    /// let mut out = [0f32; 4];
    /// Cpu::best().pointwise(&[1.0, -2.0, 3.0, -4.0], Some(&[1.0, 3.0]), Activation::Relu, &mut out)?;
    /// assert_eq!(out, [2.0, 1.0, 4.0, 0.0]);
    /// # Ok::<(), regard_kernels::Error>(())
    /// ```
    pub fn pointwise<T: Real>(
        &self,
        x: &[T],
        bias: Option<&[T]>,
        act: Activation,
        out: &mut [T],
    ) -> Result<(), Error> {
        act.check()?;
        let cut = Cut::of(x, bias)?;
        ensure!(out.len() == x.len(), "out has {} elements, x has {}", out.len(), x.len());
        let kernels = T::kernels(self.isa());
        let out = Shared::new(out);
        cut.parts.run(|_, range| {
            let Piece { from, rows, width } = cut.piece(range);
            // SAFETY: the table is this machine's; each part has rows of its own.
            unsafe {
                (kernels.pointwise)(PointwiseRows {
                    act,
                    rows,
                    width,
                    x: x.as_ptr().add(from),
                    bias: bias.map_or(std::ptr::null(), <[T]>::as_ptr),
                    out: out.part(from, rows * width).as_mut_ptr(),
                });
            }
        });
        Ok(())
    }

    /// The gradients of [`Self::pointwise`]: of x, and of the bias as the sum over rows.
    ///
    /// x and bias are what forward was given. Refuses lengths that do not fit, and a `grad_bias`
    /// where there is no bias.
    ///
    /// ```
    /// use regard_kernels::{Cpu, Activation};
    /// let (mut grad_x, mut grad_bias) = ([0f32; 4], [0f32; 2]);
    /// Cpu::best().pointwise_backward(
    ///     &[1.0, -2.0, 3.0, -4.0],
    ///     Some(&[1.0, 0.0]),
    ///     Activation::Relu,
    ///     &[0.5, 0.5, 0.25, 0.25],
    ///     Some(&mut grad_x),
    ///     Some(&mut grad_bias),
    /// )?;
    /// assert_eq!((grad_x, grad_bias), ([0.5, 0.0, 0.25, 0.0], [0.75, 0.0]));
    /// # Ok::<(), regard_kernels::Error>(())
    /// ```
    pub fn pointwise_backward<T: Real>(
        &self,
        x: &[T],
        bias: Option<&[T]>,
        act: Activation,
        grad_out: &[T],
        grad_x: Option<&mut [T]>,
        grad_bias: Option<&mut [T]>,
    ) -> Result<(), Error> {
        act.check()?;
        let cut = Cut::of(x, bias)?;
        for (name, n) in
            [("grad_out", Some(grad_out.len())), ("grad_x", grad_x.as_ref().map(|g| g.len()))]
        {
            let n = n.unwrap_or(x.len());
            ensure!(n == x.len(), "{name} has {n} elements, x has {}", x.len());
        }
        if let Some(grad) = &grad_bias {
            let n = bias.map_or(0, <[T]>::len);
            ensure!(grad.len() == n, "grad_bias has {} elements, bias has {n}", grad.len());
        }
        let kernels = T::kernels(self.isa());
        let grad_x = grad_x.map(Shared::new);
        let grads = |range: Range<usize>, grad_bias: *mut T| {
            let Piece { from, rows, width } = cut.piece(range);
            // SAFETY: the table is this machine's; each part has rows and sums of its own.
            unsafe {
                (kernels.pointwise_grads)(PointwiseGrads {
                    act,
                    rows,
                    width,
                    x: x.as_ptr().add(from),
                    bias: bias.map_or(std::ptr::null(), <[T]>::as_ptr),
                    grad: grad_out.as_ptr().add(from),
                    grad_x: grad_x
                        .as_ref()
                        .map_or(std::ptr::null_mut(), |g| g.part(from, rows * width).as_mut_ptr()),
                    grad_bias,
                });
            }
        };
        match grad_bias {
            Some(to) => {
                cut.parts.sums(to.len(), |rows, sums| grads(rows, sums.as_mut_ptr())).add_up(0, to)
            }
            None => cut.parts.run(|_, rows| grads(rows, std::ptr::null_mut())),
        }
        Ok(())
    }
}
