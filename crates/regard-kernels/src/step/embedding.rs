//! The gradient of a table of embeddings: every row of the gradient added to its id's row.
//!
//! Columns are shared out, not ids: each task walks all ids in order and adds its columns, so
//! frequent words cost no balance, nothing is sorted and every sum has one order.

use super::parts::{Parts, each};
use crate::cpu::shared::Shared;
use crate::error::{Error, ensure};
use crate::numel::numel;
use crate::{Cpu, Real};

/// Columns a task has at least: a cache line of `f32`.
const COLUMNS: usize = 16;
/// Tasks at most.
const TASKS: usize = 16;

impl Cpu {
    /// grad_table `[V, D]`: for every id the sum of its rows of grad `[N, D]`, zeros elsewhere. An
    /// id equal to `padding` adds nothing. V and D follow from the lengths and `width` = D.
    ///
    /// Refuses an id outside 0..V, naming its place, and lengths that do not fit.
    ///
    /// ```
    /// let mut table = [9f32; 3];
    /// let cpu = regard_kernels::Cpu::best();
    /// cpu.embedding_backward(&[2, 0, 2], &[1.0, 5.0, 2.0], 1, None, &mut table)?;
    /// assert_eq!(table, [5.0, 0.0, 3.0]);
    /// # Ok::<(), regard_kernels::Error>(())
    /// ```
    pub fn embedding_backward<T: Real>(
        &self,
        ids: &[i64],
        grad: &[T],
        width: usize,
        padding: Option<i64>,
        grad_table: &mut [T],
    ) -> Result<(), Error> {
        let (n, size) = (ids.len(), grad_table.len());
        ensure!(
            grad.len() == numel(&[n, width]),
            "grad has {} elements, {n} ids of width {width} need {}",
            grad.len(),
            numel(&[n, width])
        );
        let words = size.checked_div(width).unwrap_or(0);
        ensure!(
            words * width == size,
            "grad_table has {size} elements, which are no whole rows of {width}"
        );
        if width == 0 {
            return Ok(());
        }
        for (at, id) in ids.iter().enumerate() {
            ensure!(
                (0..words as i64).contains(id),
                "id {id} at {at} is no row of a table of {words}"
            );
        }
        let table = Shared::new(grad_table);
        Parts::of(size, 1).run(|_, range| {
            // SAFETY: each part has numbers of its own.
            unsafe { table.part(range.start, range.len()) }.fill(T::ZERO);
        });
        let axpy = T::kernels(self.isa()).axpy;
        let columns = width.div_ceil(TASKS).next_multiple_of(COLUMNS);
        each(if n == 0 { 0 } else { width.div_ceil(columns) }, |task| {
            let from = task * columns;
            let columns = columns.min(width - from);
            for (&id, grad) in ids.iter().zip(grad.chunks_exact(width)) {
                if Some(id) == padding {
                    continue;
                }
                // SAFETY: the table is this machine's; each task has columns of its own.
                unsafe {
                    let to = table.part(id as usize * width + from, columns).as_mut_ptr();
                    axpy(columns, T::ONE, grad.as_ptr().add(from), to);
                }
            }
        });
        Ok(())
    }
}
