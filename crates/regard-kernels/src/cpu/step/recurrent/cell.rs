//! What the units do with their gates, and back: arithmetic on `[H, SLICE]`, a sequence per lane.

use super::Cell;
use super::lane::SLICE;
use crate::Real;
use crate::cpu::simd::Simd;

/// One step of a slice.
#[derive(Clone, Copy)]
pub(crate) struct CellStep<T> {
    pub(super) cell: Cell,
    pub(super) hidden: usize,
    /// The input's part of the gates, `[G·H, SLICE]`.
    pub(super) gx: *const T,
    /// The state's part, without its bias.
    pub(super) gh: *const T,
    /// `[G·H]`, or null.
    pub(super) bias: *const T,
    /// Lanes with 0 keep their state.
    pub(super) active: *const T,
    pub(super) h: *mut T,
    /// Used by the LSTM alone.
    pub(super) c: *mut T,
    /// The new state, and 0 in lanes that are not active.
    pub(super) out: *mut T,
    /// What backward needs, or null.
    pub(super) kept: *mut T,
}

#[cfg_attr(optimized, inline(always))]
pub(crate) unsafe fn cell_step<V: Simd>(s: CellStep<V::T>) {
    // SAFETY: every array has `hidden` rows of SLICE per gate.
    unsafe {
        match s.cell {
            Cell::Rnn => rnn_step::<V>(&s, true),
            Cell::RnnRelu => rnn_step::<V>(&s, false),
            Cell::Gru => gru_step::<V>(&s),
            Cell::Lstm => lstm_step::<V>(&s),
        }
    }
}

/// The state's part of a gate of unit j, its bias added.
#[cfg_attr(optimized, inline(always))]
unsafe fn recurrent<V: Simd>(s: &CellStep<V::T>, gate: usize, j: usize, lane: usize) -> V {
    // SAFETY: unit j of a gate lies at gate · H + j.
    unsafe {
        let row = gate * s.hidden + j;
        let part = V::load(s.gh.add(row * SLICE + lane));
        if s.bias.is_null() { part } else { part.add(V::splat(*s.bias.add(row))) }
    }
}

/// A gate of unit j before its activation.
#[cfg_attr(optimized, inline(always))]
unsafe fn gate<V: Simd>(s: &CellStep<V::T>, gate: usize, j: usize, lane: usize) -> V {
    // SAFETY: as above.
    unsafe {
        let at = (gate * s.hidden + j) * SLICE + lane;
        V::load(s.gx.add(at)).add(recurrent::<V>(s, gate, j, lane))
    }
}

/// Writes the new state where a lane is active.
#[cfg_attr(optimized, inline(always))]
unsafe fn settle<V: Simd>(s: &CellStep<V::T>, at: usize, lane: usize, old: V, new: V) {
    // SAFETY: `at` is a row of the state and `lane` a lane within it.
    unsafe {
        let zero = V::zero();
        let active = V::load(s.active.add(lane));
        active.where_greater(zero, new, old).store(s.h.add(at));
        active.where_greater(zero, new, zero).store(s.out.add(at));
    }
}

#[cfg_attr(optimized, inline(always))]
unsafe fn rnn_step<V: Simd>(s: &CellStep<V::T>, tanh: bool) {
    // SAFETY: rows j of `hidden`, lanes within SLICE.
    unsafe {
        for j in 0..s.hidden {
            let mut lane = 0;
            while lane < SLICE {
                let at = j * SLICE + lane;
                let x = gate::<V>(s, 0, j, lane);
                let new = if tanh { x.tanh() } else { x.max(V::zero()) };
                if !s.kept.is_null() {
                    new.store(s.kept.add(at));
                }
                settle(s, at, lane, V::load(s.h.add(at)), new);
                lane += V::LANES;
            }
        }
    }
}

#[cfg_attr(optimized, inline(always))]
unsafe fn gru_step<V: Simd>(s: &CellStep<V::T>) {
    // SAFETY: rows j of `hidden`, lanes within SLICE; five rows are kept per unit.
    unsafe {
        for j in 0..s.hidden {
            let mut lane = 0;
            while lane < SLICE {
                let at = j * SLICE + lane;
                let r = gate::<V>(s, 0, j, lane).sigmoid();
                let z = gate::<V>(s, 1, j, lane).sigmoid();
                let inner = recurrent::<V>(s, 2, j, lane);
                let n = V::load(s.gx.add((2 * s.hidden + j) * SLICE + lane));
                let n = r.fma(inner, n).tanh();
                let h = V::load(s.h.add(at));
                let new = z.fma(h.sub(n), n);
                if !s.kept.is_null() {
                    let five = [r, z, n, inner, h];
                    for (v, x) in five.into_iter().enumerate() {
                        x.store(s.kept.add(v * s.hidden * SLICE + at));
                    }
                }
                settle(s, at, lane, h, new);
                lane += V::LANES;
            }
        }
    }
}

#[cfg_attr(optimized, inline(always))]
unsafe fn lstm_step<V: Simd>(s: &CellStep<V::T>) {
    // SAFETY: rows j of `hidden`, lanes within SLICE; six rows are kept per unit.
    unsafe {
        for j in 0..s.hidden {
            let mut lane = 0;
            while lane < SLICE {
                let at = j * SLICE + lane;
                let i = gate::<V>(s, 0, j, lane).sigmoid();
                let f = gate::<V>(s, 1, j, lane).sigmoid();
                let g = gate::<V>(s, 2, j, lane).tanh();
                let o = gate::<V>(s, 3, j, lane).sigmoid();
                let c = V::load(s.c.add(at));
                let new = f.fma(c, i.mul(g));
                let squashed = new.tanh();
                if !s.kept.is_null() {
                    let six = [i, f, g, o, squashed, c];
                    for (v, x) in six.into_iter().enumerate() {
                        x.store(s.kept.add(v * s.hidden * SLICE + at));
                    }
                }
                let active = V::load(s.active.add(lane));
                active.where_greater(V::zero(), new, c).store(s.c.add(at));
                settle(s, at, lane, V::load(s.h.add(at)), o.mul(squashed));
                lane += V::LANES;
            }
        }
    }
}

/// One step of a slice, backward.
#[derive(Clone, Copy)]
pub(crate) struct CellGrads<T> {
    pub(super) cell: Cell,
    pub(super) hidden: usize,
    pub(super) kept: *const T,
    pub(super) active: *const T,
    /// The gradient of this step's output.
    pub(super) grad_out: *const T,
    /// The gradient of the state after the step; becomes that of the state before it, but for the
    /// part that went through the recurrent product.
    pub(super) h: *mut T,
    /// The same of the LSTM's cells, in full.
    pub(super) c: *mut T,
    /// The gradients of the gates, `[G·H, SLICE]`; GRU's n first as the product sees it, then n.
    pub(super) gates: *mut T,
}

#[cfg_attr(optimized, inline(always))]
pub(crate) unsafe fn cell_grads<V: Simd>(s: CellGrads<V::T>) {
    // SAFETY: every array has `hidden` rows of SLICE per gate.
    unsafe {
        match s.cell {
            Cell::Rnn => rnn_grads::<V>(&s, true),
            Cell::RnnRelu => rnn_grads::<V>(&s, false),
            Cell::Gru => gru_grads::<V>(&s),
            Cell::Lstm => lstm_grads::<V>(&s),
        }
    }
}

/// What was kept under number `which` of unit j.
#[cfg_attr(optimized, inline(always))]
unsafe fn kept<V: Simd>(s: &CellGrads<V::T>, which: usize, at: usize) -> V {
    // SAFETY: `at` is a place within a row's SLICE · H.
    unsafe { V::load(s.kept.add(which * s.hidden * SLICE + at)) }
}

/// Writes the gradient of a gate, 0 in lanes that are not active.
#[cfg_attr(optimized, inline(always))]
unsafe fn put<V: Simd>(s: &CellGrads<V::T>, active: V, gate: usize, at: usize, grad: V) {
    // SAFETY: as above.
    unsafe {
        let to = s.gates.add(gate * s.hidden * SLICE + at);
        active.where_greater(V::zero(), grad, V::zero()).store(to);
    }
}

#[cfg_attr(optimized, inline(always))]
unsafe fn rnn_grads<V: Simd>(s: &CellGrads<V::T>, tanh: bool) {
    // SAFETY: rows j of `hidden`, lanes within SLICE.
    unsafe {
        let (zero, one) = (V::zero(), V::splat(V::T::ONE));
        for j in 0..s.hidden {
            let mut lane = 0;
            while lane < SLICE {
                let at = j * SLICE + lane;
                let active = V::load(s.active.add(lane));
                let later = V::load(s.h.add(at));
                let grad = later.add(V::load(s.grad_out.add(at)));
                let new = kept::<V>(s, 0, at);
                let slope =
                    if tanh { new.fnma(new, one) } else { new.where_greater(zero, one, zero) };
                put(s, active, 0, at, grad.mul(slope));
                active.where_greater(zero, zero, later).store(s.h.add(at));
                lane += V::LANES;
            }
        }
    }
}

#[cfg_attr(optimized, inline(always))]
unsafe fn gru_grads<V: Simd>(s: &CellGrads<V::T>) {
    // SAFETY: rows j of `hidden`, lanes within SLICE.
    unsafe {
        let (zero, one) = (V::zero(), V::splat(V::T::ONE));
        for j in 0..s.hidden {
            let mut lane = 0;
            while lane < SLICE {
                let at = j * SLICE + lane;
                let active = V::load(s.active.add(lane));
                let later = V::load(s.h.add(at));
                let grad = later.add(V::load(s.grad_out.add(at)));
                let (r, z) = (kept::<V>(s, 0, at), kept::<V>(s, 1, at));
                let (n, inner) = (kept::<V>(s, 2, at), kept::<V>(s, 3, at));
                let h = kept::<V>(s, 4, at);
                let keep = one.sub(z);
                let grad_n = grad.mul(keep).mul(n.fnma(n, one));
                let grad_z = grad.mul(h.sub(n)).mul(z.mul(keep));
                let grad_r = grad_n.mul(inner).mul(r.mul(one.sub(r)));
                put(s, active, 0, at, grad_r);
                put(s, active, 1, at, grad_z);
                put(s, active, 2, at, grad_n.mul(r));
                put(s, active, 3, at, grad_n);
                active.where_greater(zero, grad.mul(z), later).store(s.h.add(at));
                lane += V::LANES;
            }
        }
    }
}

#[cfg_attr(optimized, inline(always))]
unsafe fn lstm_grads<V: Simd>(s: &CellGrads<V::T>) {
    // SAFETY: rows j of `hidden`, lanes within SLICE.
    unsafe {
        let (zero, one) = (V::zero(), V::splat(V::T::ONE));
        for j in 0..s.hidden {
            let mut lane = 0;
            while lane < SLICE {
                let at = j * SLICE + lane;
                let active = V::load(s.active.add(lane));
                let (later, later_c) = (V::load(s.h.add(at)), V::load(s.c.add(at)));
                let grad = later.add(V::load(s.grad_out.add(at)));
                let (i, f) = (kept::<V>(s, 0, at), kept::<V>(s, 1, at));
                let (g, o) = (kept::<V>(s, 2, at), kept::<V>(s, 3, at));
                let (squashed, c) = (kept::<V>(s, 4, at), kept::<V>(s, 5, at));
                let grad_c = grad.mul(o).fma(squashed.fnma(squashed, one), later_c);
                put(s, active, 0, at, grad_c.mul(g).mul(i.mul(one.sub(i))));
                put(s, active, 1, at, grad_c.mul(c).mul(f.mul(one.sub(f))));
                put(s, active, 2, at, grad_c.mul(i).mul(g.fnma(g, one)));
                put(s, active, 3, at, grad.mul(squashed).mul(o.mul(one.sub(o))));
                active.where_greater(zero, zero, later).store(s.h.add(at));
                active.where_greater(zero, grad_c.mul(f), later_c).store(s.c.add(at));
                lane += V::LANES;
            }
        }
    }
}
