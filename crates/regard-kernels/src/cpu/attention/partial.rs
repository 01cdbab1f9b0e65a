//! What tasks add up apart, and the sums of it in order: the same bits on any number of threads.

use super::plan::{Sharing, rows_at_once};
use super::problem::Problem;
use crate::cpu::kernels::Kernels;
use crate::cpu::scratch::Large;
use crate::cpu::shared::Shared;
use crate::cpu::tasks;
use crate::numel::numel;
use crate::spec::{Broadcast, Shape};
use crate::{Real, ViewMut};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Slots that are added up by one task.
const GROUP: usize = 64;
/// Numbers worth a task of their own.
const LEAST_NUMBERS: usize = 1 << 12;
/// Keys whose sums one task adds up.
const KEYS: usize = 256;

/// The parts of a gradient `[B, H, N, D]`: `[count, B, H, N, D]`, or none, where there is but one
/// and the gradient itself is written.
pub(super) struct RowParts<T> {
    parts: Large<T>,
    count: usize,
}

impl<T: Real> RowParts<T> {
    pub(super) fn of(grad: &Option<ViewMut<T>>, count: usize) -> Self {
        let size = grad.as_ref().map_or(0, |grad| grad.shape.iter().product());
        // Every number is written by a task before it is read.
        Self { parts: Large::new(if count > 1 { count * size } else { 0 }), count }
    }

    pub(super) fn share<'a>(
        &'a mut self,
        p: &Problem<T>,
        grad: &'a Option<ViewMut<'a, T>>,
        scale: T,
    ) -> RowSums<'a, T> {
        RowSums {
            kernels: p.kernels,
            grad,
            parts: Shared::new(&mut self.parts),
            apart: self.count > 1,
            scale,
            undefined: AtomicBool::new(false),
        }
    }

    /// Writes the sum of the parts, in order. Row `at` of batch item b is there only in the parts n
    /// for which `written(b, n, at)`.
    pub(super) fn add_up(
        &self,
        p: &Problem<T>,
        to: &Option<ViewMut<T>>,
        written: &(dyn Fn(usize, usize, usize) -> bool + Sync),
    ) {
        let Some(to) = to else { return };
        if self.count == 1 {
            return;
        }
        let [b, h, n, d] = to.shape;
        let size = self.parts.len() / self.count;
        tasks::runs(b * h * n, rows_at_once(d), &|row| {
            let (b, h, at) = (row / n / h, row / n % h, row % n);
            // SAFETY: each row is one task's alone.
            let to = unsafe { std::slice::from_raw_parts_mut(to.row(b, h, at), d) };
            let mut add = false;
            for part in (0..self.count).filter(|&part| written(b, part, at)) {
                let part = &self.parts[part * size + row * d..][..d];
                // SAFETY: both have d numbers.
                unsafe {
                    (p.kernels.add_scaled)(d, T::ONE, add, part.as_ptr(), to.as_mut_ptr());
                }
                add = true;
            }
            if !add {
                to.fill(T::ZERO);
            }
        });
    }
}

/// [`RowParts`] as tasks add to them, times a scale.
pub(super) struct RowSums<'a, T: Real> {
    kernels: &'static Kernels<T>,
    grad: &'a Option<ViewMut<'a, T>>,
    parts: Shared<'a, T>,
    apart: bool,
    scale: T,
    /// Whether anything that was added is infinite or NaN.
    undefined: AtomicBool,
}

impl<T: Real> RowSums<'_, T> {
    pub(super) fn is_wanted(&self) -> bool {
        self.grad.is_some()
    }

    /// Whether each part has memory of its own.
    pub(super) fn is_apart(&self) -> bool {
        self.apart
    }

    /// Whether anything that was added is infinite or NaN.
    pub(super) fn is_undefined(&self) -> bool {
        self.undefined.load(Relaxed)
    }

    /// Adds rows `[rows, D]` to those from `n` on of a head in some part, or writes over them where
    /// they are the `first` in their place.
    ///
    /// # Safety
    /// No other task uses these rows of that part meanwhile.
    pub(super) unsafe fn add(&self, part: usize, [b, h, n]: [usize; 3], from: &[T], first: bool) {
        let Some(grad) = self.grad else { return };
        let [batch, heads, length, d] = grad.shape;
        let rows = from.len().checked_div(d).unwrap_or(0);
        if rows == 0 {
            return;
        }
        assert!(b < batch && h < heads && n + rows <= length);
        // SAFETY: the caller's; the rows are within the shape, and follow each other in a part.
        let (to, step) = unsafe {
            if self.apart {
                let row = ((part * batch + b) * heads + h) * length + n;
                (self.parts.part(row * d, rows * d).as_mut_ptr(), d)
            } else {
                (grad.row(b, h, n), grad.strides[2])
            }
        };
        let at_once = if step == d { rows * d } else { d };
        let mut nothing = T::ZERO;
        for (row, from) in from.chunks_exact(at_once).enumerate() {
            // SAFETY: as above.
            unsafe {
                let to = to.add(row * step);
                nothing +=
                    (self.kernels.add_scaled)(at_once, self.scale, !first, from.as_ptr(), to);
            }
        }
        if nothing != T::ZERO {
            self.undefined.store(true, Relaxed);
        }
    }

    /// Rows that nothing is added to.
    ///
    /// # Safety
    /// No other task uses these rows, and parts have no memory of their own.
    pub(super) unsafe fn clear(&self, b: usize, h: usize, rows: Range<usize>) {
        let Some(grad) = self.grad else { return };
        for n in rows {
            // SAFETY: the caller's row of D numbers.
            unsafe { std::slice::from_raw_parts_mut(grad.row(b, h, n), grad.shape[3]) }
                .fill(T::ZERO);
        }
    }
}

/// Sums that tasks keep in slots of their own: `[B·Hq, slots, width]`, zeros at first; none of width
/// 0.
pub(super) struct SlotParts<T> {
    parts: Large<T>,
    slots: usize,
    width: usize,
}

impl<T: Real> SlotParts<T> {
    pub(super) fn of(heads: usize, slots: usize, width: usize) -> Self {
        Self { parts: Large::zeros(numel(&[heads, slots, width])), slots, width }
    }

    pub(super) fn share(&mut self) -> SlotSums<'_, T> {
        SlotSums { slots: self.slots, width: self.width, parts: Shared::new(&mut self.parts) }
    }

    /// Adds the slots of all heads, in order, into `[1 or heads, width]`: first a group of slots at
    /// a time.
    pub(super) fn add_heads(&mut self, to: &mut [T], heads: usize) {
        to.fill(T::ZERO);
        let Self { slots, width, .. } = *self;
        if width == 0 {
            return;
        }
        let all = self.parts.len() / (slots * width);
        let groups = slots.div_ceil(GROUP);
        let shared = Shared::new(&mut self.parts);
        tasks::runs(all * groups, (LEAST_NUMBERS / (GROUP * width)).max(1), &|at| {
            let (head, from) = (at / groups, at % groups * GROUP);
            let count = GROUP.min(slots - from);
            // SAFETY: each task has slots of its own.
            let group = unsafe { shared.part((head * slots + from) * width, count * width) };
            let (sum, rest) = group.split_at_mut(width);
            for part in rest.chunks_exact(width) {
                sum.iter_mut().zip(part).for_each(|(sum, &x)| *sum += x);
            }
        });
        for (at, part) in self.parts.chunks_exact(width).enumerate() {
            if at % slots % GROUP == 0 {
                let row = if to.len() == width { 0 } else { at / slots % heads };
                to[row * width..].iter_mut().zip(part).for_each(|(to, &x)| *to += x);
            }
        }
    }

    /// Adds the slots of all heads of the parameters of one's own score, or of an expression's.
    pub(super) fn add_own(&mut self, p: &Problem<T>, to: &mut [T]) {
        match p.programs {
            Some(programs) => programs.add_parameters(to, &self.parts, self.slots),
            None => self.add_heads(to, p.s.hq),
        }
    }

    /// Adds the slots of all heads, in order, into a bias per key.
    pub(super) fn add_keys(&self, to: &mut [T], bias: &Broadcast<T>, s: &Shape) {
        to.fill(T::ZERO);
        let (sharing, step) = (Sharing::of(bias, s), bias.strides()[3]);
        let cuts = if step > 0 { s.nk.div_ceil(KEYS) } else { 1 };
        let to = Shared::new(to);
        tasks::each(sharing.rows() * cuts, &|task| {
            let (row, cut) = (task / cuts, task % cuts);
            let keys = if step > 0 { cut * KEYS..((cut + 1) * KEYS).min(s.nk) } else { 0..s.nk };
            for (b, h) in sharing.heads(row) {
                let from = bias.index(b, h, 0, keys.start);
                // SAFETY: each task has rows or keys of its own.
                let to = unsafe { to.part(from, if step > 0 { keys.len() } else { 1 }) };
                for slot in 0..self.slots {
                    let at = ((b * s.hq + h) * self.slots + slot) * self.width;
                    for (j, &x) in self.parts[at..][keys.clone()].iter().enumerate() {
                        to[j * step] += x;
                    }
                }
            }
        });
    }
}

/// [`SlotParts`] as tasks add to them.
pub(super) struct SlotSums<'a, T> {
    parts: Shared<'a, T>,
    slots: usize,
    width: usize,
}

impl<T: Real> SlotSums<'_, T> {
    /// A slot of a head; nothing where nobody asked for it.
    ///
    /// # Safety
    /// No other task uses it while it is borrowed.
    #[allow(clippy::mut_from_ref)]
    pub(super) unsafe fn slot(&self, head: usize, slot: usize) -> &mut [T] {
        // SAFETY: passed on to the caller.
        unsafe { self.slot_part(head, slot, &(0..self.width)) }
    }

    /// As [`Self::slot`], some of its numbers.
    ///
    /// # Safety
    /// No other task uses them while they are borrowed.
    #[allow(clippy::mut_from_ref)]
    pub(super) unsafe fn slot_part(
        &self,
        head: usize,
        slot: usize,
        numbers: &Range<usize>,
    ) -> &mut [T] {
        if self.parts.is_empty() {
            return &mut [];
        }
        assert!(slot < self.slots && numbers.end <= self.width);
        let from = (head * self.slots + slot) * self.width + numbers.start;
        // SAFETY: passed on to the caller.
        unsafe { self.parts.part(from, numbers.len()) }
    }
}
