//! The kernel that runs an expression: one operation after another, each over a strip of pairs.
//!
//! A strip is a few keys against a block of queries, a query per lane. What depends on the query
//! alone is one row of numbers, what depends on the key alone a number for each key, a pair's own
//! numbers are a row for each key. Choosing the operation costs the same for a strip as for one
//! number, so strips make it cheap, and a strip's values stay in the nearest cache. Operations on
//! rows of features run once for each feature. log, sin and cos are computed lane by lane.

use super::BLOCK;
use crate::Real;
use crate::cpu::simd::Simd;

/// Keys in a strip: with BLOCK queries, 2 KiB of `f32` for a value of every pair.
pub(in crate::cpu) const STRIP: usize = 8;

/// How many numbers a value has, and an operation computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// The same one for every pair, kept BLOCK times so that it is loaded like others.
    Uniform,
    /// One for each query.
    Queries,
    /// One for each key.
    Keys,
    /// One for each pair, the queries of a key BLOCK apart from those of the next.
    Pairs,
}

/// The arrays an instruction reads and writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Base {
    /// Values of any extent but pairs', BLOCK numbers each.
    Rows,
    /// Values of pairs, STRIP · BLOCK numbers each.
    Pairs,
    /// `[D, BLOCK]`, like all that follow but the last three.
    Queries,
    Keys,
    QueryGrads,
    KeyGrads,
    /// Scores, or the gradients of scores, `[keys, BLOCK]`.
    Tile,
    /// The head's parameters, one after another.
    Parameters,
    /// Their gradients.
    ParameterGrads,
}

/// How many bases there are.
pub(in crate::cpu) const BASES: usize = 9;

/// Where a value stands: at `offset` in `base`, and `feature` further for each feature, `row`
/// further for each key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(in crate::cpu) base: Base,
    pub(in crate::cpu) offset: usize,
    pub(in crate::cpu) feature: usize,
    pub(in crate::cpu) row: usize,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Op {
    /// This number.
    Number(f64),
    /// The one number at `a`, for every query and key.
    Spread,
    /// A number for each key, as pairs.
    Splat,
    Copy,
    Negate,
    Sqrt,
    Abs,
    Exp,
    Log,
    Tanh,
    Sigmoid,
    Relu,
    NormalCdf,
    Softplus,
    Sin,
    Cos,
    ReciprocalOrZero,
    Add,
    Subtract,
    Multiply,
    Divide,
    /// b where a > 0, else c.
    Where,
    /// Adds a.
    Accumulate,
    /// Adds a · b.
    AccumulateProduct,
    /// The same operations on pairs, or queries, and a number b for each key.
    AddKey,
    SubtractKey,
    /// b − a
    SubtractFromKey,
    MultiplyKey,
    AccumulateKeyProduct,
    /// Adds the tile's gradients times a, summed over the keys.
    AddQueries,
    /// The same summed over the queries.
    AddKeys,
    /// The same summed over both.
    AddAll,
}

/// One operation over a strip.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Instruction {
    pub(in crate::cpu) op: Op,
    pub(in crate::cpu) extent: Extent,
    pub(in crate::cpu) to: Place,
    pub(in crate::cpu) a: Place,
    pub(in crate::cpu) b: Place,
    pub(in crate::cpu) c: Place,
}

/// Some instructions for one strip, once for each feature.
#[derive(Clone, Copy)]
pub(crate) struct Strip<T> {
    pub(in crate::cpu) instructions: *const Instruction,
    pub(in crate::cpu) count: usize,
    pub(in crate::cpu) features: usize,
    pub(in crate::cpu) bases: [*mut T; BASES],
    /// Keys of the strip.
    pub(in crate::cpu) keys: usize,
    /// Queries, rounded up to whole registers.
    pub(in crate::cpu) width: usize,
}

impl<T> Strip<T> {
    #[cfg_attr(optimized, inline(always))]
    unsafe fn at(&self, place: &Place, feature: usize) -> *mut T {
        // SAFETY: every place lies in its array; see `program.rs`.
        unsafe { self.bases[place.base as usize].add(place.offset + feature * place.feature) }
    }

    /// Rows, and the width of each.
    #[cfg_attr(optimized, inline(always))]
    fn size(&self, extent: Extent, lanes: usize) -> (usize, usize) {
        match extent {
            Extent::Uniform => (1, BLOCK),
            Extent::Queries => (1, self.width),
            Extent::Keys => (1, self.keys.next_multiple_of(lanes)),
            Extent::Pairs => (self.keys, self.width),
        }
    }
}

/// Computes a value register by register from operands of the same names as `Instruction`'s; those
/// after a semicolon are keys', one number for a whole row. Plain arithmetic takes four registers
/// at a time, since walking them would cost as much as the arithmetic.
macro_rules! registers {
    ($s:ident, $i:ident, $d:ident, ($($operand:ident),* $(; $key:ident)?) => $value:expr) => {
        registers!($s, $i, $d, 1, ($($operand),* $(; $key)?) => $value)
    };
    ($s:ident, $i:ident, $d:ident, $together:literal,
     ($($operand:ident),* $(; $key:ident)?) => $value:expr) => {{
        let (rows, width) = $s.size($i.extent, V::LANES);
        let to = $s.at(&$i.to, $d);
        $(let $operand = $s.at(&$i.$operand, $d);)*
        $(let $key = $s.at(&$i.$key, $d);)?
        for r in 0..rows {
            let to = to.add(r * $i.to.row);
            $(let $operand = $operand.add(r * $i.$operand.row);)*
            $(let $key = V::splat(*$key.add(r));)?
            let mut x = 0;
            while $together > 1 && x + $together * V::LANES <= width {
                for _ in 0..$together {
                    $(let $operand = V::load($operand.add(x));)*
                    ($value).store(to.add(x));
                    x += V::LANES;
                }
            }
            while x < width {
                $(let $operand = V::load($operand.add(x));)*
                ($value).store(to.add(x));
                x += V::LANES;
            }
        }
    }};
}

/// As `registers`, of one operand, number by number.
macro_rules! numbers {
    ($s:ident, $i:ident, $d:ident, |$x:ident| $value:expr) => {{
        let (rows, width) = $s.size($i.extent, V::LANES);
        let (to, a) = ($s.at(&$i.to, $d), $s.at(&$i.a, $d));
        for r in 0..rows {
            for lane in 0..width {
                let $x = *a.add(r * $i.a.row + lane);
                *to.add(r * $i.to.row + lane) = $value;
            }
        }
    }};
}

#[cfg_attr(optimized, inline(always))]
pub(in crate::cpu) unsafe fn expression_strip<V: Simd>(s: Strip<V::T>) {
    // SAFETY: the instructions' places hold a strip each; width ≤ BLOCK is a multiple of LANES.
    unsafe {
        let zero = V::zero();
        let one = V::splat(V::T::ONE);
        for d in 0..s.features {
            for n in 0..s.count {
                let i = &*s.instructions.add(n);
                match i.op {
                    Op::Number(x) => registers!(s, i, d, () => V::number(x)),
                    Op::Spread => {
                        let x = V::splat(*s.at(&i.a, d));
                        registers!(s, i, d, () => x);
                    }
                    Op::Splat => splat::<V>(&s, i, d),
                    Op::Copy => registers!(s, i, d, (a) => a),
                    Op::Negate => registers!(s, i, d, (a) => zero.sub(a)),
                    Op::Sqrt => registers!(s, i, d, (a) => a.sqrt()),
                    Op::Abs => registers!(s, i, d, (a) => a.max(zero.sub(a))),
                    Op::Exp => registers!(s, i, d, (a) => a.exp_anywhere()),
                    Op::Tanh => registers!(s, i, d, (a) => a.tanh()),
                    Op::Sigmoid => registers!(s, i, d, (a) => a.sigmoid()),
                    Op::Relu => registers!(s, i, d, (a) => a.max(zero)),
                    Op::NormalCdf => registers!(s, i, d, (a) => a.normal().0),
                    Op::Log => numbers!(s, i, d, |x| x.ln()),
                    Op::Softplus => registers!(s, i, d, (a) => softplus(a)),
                    Op::Sin => numbers!(s, i, d, |x| x.sin()),
                    Op::Cos => numbers!(s, i, d, |x| x.cos()),
                    Op::ReciprocalOrZero => {
                        // 0 · a: what is undefined stays so.
                        registers!(s, i, d, (a) => a.where_greater(zero, one.div(a), zero.mul(a)));
                    }
                    Op::Add => registers!(s, i, d, 4, (a, b) => a.add(b)),
                    Op::Subtract => registers!(s, i, d, 4, (a, b) => a.sub(b)),
                    Op::Multiply => registers!(s, i, d, 4, (a, b) => a.mul(b)),
                    Op::Divide => registers!(s, i, d, (a, b) => a.div(b)),
                    Op::Where => registers!(s, i, d, (a, b, c) => a.where_greater(zero, b, c)),
                    // The sum so far is operand c.
                    Op::Accumulate => registers!(s, i, d, (a, c) => c.add(a)),
                    Op::AccumulateProduct => registers!(s, i, d, 4, (a, b, c) => a.fma(b, c)),
                    Op::AddKey => registers!(s, i, d, 4, (a; b) => a.add(b)),
                    Op::SubtractKey => registers!(s, i, d, 4, (a; b) => a.sub(b)),
                    Op::SubtractFromKey => registers!(s, i, d, 4, (a; b) => b.sub(a)),
                    Op::MultiplyKey => registers!(s, i, d, 4, (a; b) => a.mul(b)),
                    Op::AccumulateKeyProduct => registers!(s, i, d, 4, (a, c; b) => a.fma(b, c)),
                    Op::AddQueries => add_queries::<V>(&s, i, d),
                    Op::AddKeys => add_keys::<V>(&s, i, d),
                    Op::AddAll => add_all::<V>(&s, i, d),
                }
            }
        }
    }
}

/// 1/1, 1/3, 1/5, …: atanh s = s · (1 + s²/3 + s⁴/5 + …)
const ATANH: [f64; 17] = {
    let mut table = [1.0; 17];
    let mut n = 1;
    while n < table.len() {
        table[n] = 1.0 / (2 * n + 1) as f64;
        n += 1;
    }
    table
};

/// max(x, 0) + log(1 + t) with t = e^{−|x|}, and log(1 + t) = 2 atanh(t / (2 + t)), of at most ⅓:
/// each term of the series is nine times smaller than the one before.
#[cfg_attr(optimized, inline(always))]
unsafe fn softplus<V: Simd>(x: V) -> V {
    // SAFETY: arithmetic only.
    unsafe {
        let zero = V::zero();
        let t = zero.sub(x.max(zero.sub(x))).exp();
        let s = t.div(t.add(V::number(2.0)));
        let square = s.mul(s);
        let mut at = if size_of::<V::T>() == size_of::<f32>() { 8 } else { 16 };
        let mut sum = V::number(ATANH[at]);
        while at > 0 {
            at -= 1;
            sum = sum.fma(square, V::number(ATANH[at]));
        }
        s.add(s).fma(sum, x.max(zero))
    }
}

#[cfg_attr(optimized, inline(always))]
unsafe fn splat<V: Simd>(s: &Strip<V::T>, i: &Instruction, d: usize) {
    // SAFETY: as above.
    unsafe {
        let (to, a) = (s.at(&i.to, d), s.at(&i.a, d));
        for r in 0..s.keys {
            let x = V::splat(*a.add(r));
            let mut lane = 0;
            while lane < s.width {
                x.store(to.add(r * i.to.row + lane));
                lane += V::LANES;
            }
        }
    }
}

/// A slope times the gradient that arrives; nothing where none does, whatever the slope.
#[cfg_attr(optimized, inline(always))]
unsafe fn arrived<V: Simd>(grad: V, slope: V) -> V {
    // SAFETY: arithmetic only.
    unsafe {
        let zero = V::zero();
        grad.max(zero.sub(grad)).where_greater(zero, grad.mul(slope), grad)
    }
}

#[cfg_attr(optimized, inline(always))]
unsafe fn add_queries<V: Simd>(s: &Strip<V::T>, i: &Instruction, d: usize) {
    // SAFETY: as above; the tile's gradients are operand b.
    unsafe {
        let (to, a, grad) = (s.at(&i.to, d), s.at(&i.a, d), s.at(&i.b, d));
        let mut x = 0;
        while x < s.width {
            let mut sum = V::zero();
            for r in 0..s.keys {
                let grad = V::load(grad.add(r * i.b.row + x));
                sum = sum.add(arrived(grad, V::load(a.add(r * i.a.row + x))));
            }
            V::load(to.add(x)).add(sum).store(to.add(x));
            x += V::LANES;
        }
    }
}

/// The sum over one key's queries, to be summed over the lanes.
#[cfg_attr(optimized, inline(always))]
unsafe fn key_sum<V: Simd>(s: &Strip<V::T>, i: &Instruction, d: usize, r: usize) -> V {
    // SAFETY: as above.
    unsafe {
        let (a, grad) = (s.at(&i.a, d).add(r * i.a.row), s.at(&i.b, d).add(r * i.b.row));
        let mut sum = V::zero();
        let mut x = 0;
        while x < s.width {
            sum = sum.add(arrived(V::load(grad.add(x)), V::load(a.add(x))));
            x += V::LANES;
        }
        sum
    }
}

#[cfg_attr(optimized, inline(always))]
unsafe fn add_keys<V: Simd>(s: &Strip<V::T>, i: &Instruction, d: usize) {
    // SAFETY: as above.
    unsafe {
        let to = s.at(&i.to, d);
        for r in 0..s.keys {
            *to.add(r) += key_sum::<V>(s, i, d, r).sum();
        }
    }
}

#[cfg_attr(optimized, inline(always))]
unsafe fn add_all<V: Simd>(s: &Strip<V::T>, i: &Instruction, d: usize) {
    // SAFETY: as above.
    unsafe {
        let mut sum = V::zero();
        for r in 0..s.keys {
            sum = sum.add(key_sum(s, i, d, r));
        }
        *s.at(&i.to, d) += sum.sum();
    }
}
