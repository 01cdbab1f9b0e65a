//! Arrays that are stored in another type than is computed in: copies on the way in, and on the way out.

use super::plan;
use crate::cpu::shared::Shared;
use crate::cpu::tasks;
use crate::{Element, Real, View, ViewMut};

/// Copies of stored arrays in the type computed in; nothing where they are of that type.
pub(super) struct Wide<T, const N: usize>([Vec<T>; N]);

impl<T: Real, const N: usize> Wide<T, N> {
    pub(super) fn of<E: Element<Compute = T>>(stored: &[View<E>; N], needed: bool) -> Self {
        Self(std::array::from_fn(|at| {
            let view = &stored[at];
            if !needed || E::as_computed(view).is_some() {
                return Vec::new();
            }
            let [_, h, n, d] = view.shape;
            let mut wide = vec![T::ZERO; view.shape.iter().product()];
            if let Some(rows) = wide.len().checked_div(d) {
                let shared = Shared::new(&mut wide);
                tasks::runs(rows, plan::rows_at_once(d), &|row| {
                    let from = view.row(row / n / h, row / n % h, row % n);
                    // SAFETY: each row is one task's alone.
                    let to = unsafe { shared.part(row * d, d) };
                    for (to, from) in to.iter_mut().zip(from) {
                        *to = from.widen();
                    }
                });
            }
            wide
        }))
    }

    pub(super) fn views<'a, E: Element<Compute = T>>(
        &'a self,
        stored: &'a [View<'a, E>; N],
    ) -> [View<'a, T>; N] {
        std::array::from_fn(|at| {
            E::as_computed(&stored[at])
                .unwrap_or_else(|| View::of_rows(&self.0[at], stored[at].shape))
        })
    }
}

/// Results in the type computed in, on their way to being stored in another.
pub(super) struct Staged<E: Element>(Vec<E::Compute>);

impl<E: Element> Staged<E> {
    pub(super) fn of(stored: &mut ViewMut<E>) -> Self {
        let same = E::as_computed_mut(stored).is_some();
        let n = if same { 0 } else { stored.shape.iter().product() };
        Self(vec![E::Compute::ZERO; n])
    }

    pub(super) fn view<'a>(&'a mut self, stored: &'a mut ViewMut<E>) -> ViewMut<'a, E::Compute> {
        let shape = stored.shape;
        E::as_computed_mut(stored).unwrap_or_else(|| ViewMut::of_rows(&mut self.0, shape))
    }

    /// Stores what was computed.
    pub(super) fn narrow(&self, stored: &ViewMut<E>) {
        let [_, h, n, d] = stored.shape;
        if self.0.is_empty() {
            return;
        }
        tasks::runs(self.0.len() / d, plan::rows_at_once(d), &|row| {
            let from = &self.0[row * d..][..d];
            // SAFETY: each row is one task's alone.
            let to = unsafe {
                let row = stored.row(row / n / h, row / n % h, row % n);
                std::slice::from_raw_parts_mut(row, d)
            };
            for (to, &from) in to.iter_mut().zip(from) {
                *to = E::narrow(from);
            }
        });
    }
}

/// A gradient as it is stored, where it is wanted, and what is computed of it until then.
pub(super) struct StagedGradient<'a, E: Element> {
    stored: Option<ViewMut<'a, E>>,
    staged: Option<Staged<E>>,
}

impl<'a, E: Element> StagedGradient<'a, E> {
    pub(super) fn of(mut stored: Option<ViewMut<'a, E>>) -> Self {
        let staged = stored.as_mut().map(Staged::of);
        Self { stored, staged }
    }

    pub(super) fn view(&mut self) -> Option<ViewMut<'_, E::Compute>> {
        let (staged, stored) = self.staged.as_mut().zip(self.stored.as_mut())?;
        Some(staged.view(stored))
    }

    pub(super) fn store(self) {
        if let (Some(staged), Some(stored)) = (self.staged, self.stored) {
            staged.narrow(&stored);
        }
    }
}
