//! What tasks add up apart, and the sums of it in order: the same bits on any number of threads.

use super::scratch::Large;
use super::shared::Shared;
use super::tasks;
use crate::spec::Broadcast;
use crate::{Real, ViewMut};
use std::ops::Range;

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
        grad: &'a Option<ViewMut<'a, T>>,
        scale: T,
    ) -> RowSums<'a, T> {
        RowSums { grad, parts: Shared::new(&mut self.parts), apart: self.count > 1, scale }
    }

    /// Writes the sum of the parts, in order.
    pub(super) fn add_up(&self, to: &Option<ViewMut<T>>) {
        let Some(to) = to else { return };
        if self.count == 1 {
            return;
        }
        let [b, h, n, d] = to.shape;
        let size = self.parts.len() / self.count;
        tasks::runs(b * h * n, 16, &|row| {
            // SAFETY: each row is one task's alone.
            let to = unsafe {
                std::slice::from_raw_parts_mut(to.row(row / n / h, row / n % h, row % n), d)
            };
            to.copy_from_slice(&self.parts[row * d..][..d]);
            for part in 1..self.count {
                for (to, &x) in to.iter_mut().zip(&self.parts[part * size + row * d..][..d]) {
                    *to += x;
                }
            }
        });
    }
}

/// [`RowParts`] as tasks add to them, times a scale.
pub(super) struct RowSums<'a, T: Real> {
    grad: &'a Option<ViewMut<'a, T>>,
    parts: Shared<'a, T>,
    apart: bool,
    scale: T,
}

impl<T: Real> RowSums<'_, T> {
    pub(super) fn is_wanted(&self) -> bool {
        self.grad.is_some()
    }

    /// Adds rows `[rows, D]` to those from `n` on of a head in some part; writes over them where
    /// they are the `first`.
    ///
    /// # Safety
    /// No other task uses these rows of that part meanwhile.
    pub(super) unsafe fn add(&self, part: usize, [b, h, n]: [usize; 3], from: &[T], first: bool) {
        let Some(grad) = self.grad else { return };
        let [batch, heads, length, d] = grad.shape;
        if d == 0 {
            return;
        }
        for (n, from) in (n..).zip(from.chunks_exact(d)) {
            // SAFETY: the caller's; the row is within the shape.
            let to = unsafe {
                if self.apart {
                    let row = ((part * batch + b) * heads + h) * length + n;
                    self.parts.part(row * d, d)
                } else {
                    assert!(b < batch && h < heads && n < length);
                    std::slice::from_raw_parts_mut(grad.row(b, h, n), d)
                }
            };
            if first {
                to.iter_mut().zip(from).for_each(|(to, &x)| *to = x * self.scale);
            } else {
                to.iter_mut().zip(from).for_each(|(to, &x)| *to += x * self.scale);
            }
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
        Self { parts: Large::zeros(heads * slots * width), slots, width }
    }

    pub(super) fn share(&mut self) -> SlotSums<'_, T> {
        SlotSums { slots: self.slots, width: self.width, parts: Shared::new(&mut self.parts) }
    }

    /// Adds the slots of all heads, in order, into `[1 or heads, width]`.
    pub(super) fn add_heads(&self, to: &mut [T], heads: usize) {
        to.fill(T::ZERO);
        if self.width == 0 {
            return;
        }
        for (at, part) in self.parts.chunks_exact(self.width).enumerate() {
            let row = if to.len() == self.width { 0 } else { at / self.slots % heads };
            for (to, &x) in to[row * self.width..].iter_mut().zip(part) {
                *to += x;
            }
        }
    }

    /// Adds the slots of all heads, in order, into a bias per key.
    pub(super) fn add_keys(&self, to: &mut [T], bias: &Broadcast<T>, heads: usize) {
        to.fill(T::ZERO);
        let step = bias.strides()[3];
        for (at, part) in self.parts.chunks_exact(self.width.max(1)).enumerate() {
            let head = at / self.slots;
            let from = bias.index(head / heads, head % heads, 0, 0);
            for (j, &x) in part.iter().enumerate() {
                to[from + j * step] += x;
            }
        }
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
