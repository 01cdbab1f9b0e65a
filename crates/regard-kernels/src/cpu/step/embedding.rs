//! The gradient of a table of embeddings: every row of the gradient added to its id's row.
//!
//! Columns are shared out, and words where there are few columns; not ids: each task walks all ids in
//! order and adds its columns of its words, so nothing is sorted and every sum has one order.

use super::parts::{Parts, each};
use crate::cpu::shared::Shared;
use crate::error::{Error, ensure};
use crate::numel::numel;
use crate::{Cpu, Real};

/// Columns a task has at least: a cache line of `f32`.
const COLUMNS: usize = 16;
/// Tasks by columns at most: frequent words cost no balance there.
const COLUMN_TASKS: usize = 16;
/// Tasks, about.
const TASKS: usize = 64;
/// Words a task has at least.
const WORDS: usize = 64;

/// How the table is cut: by columns, then by words.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cut {
    columns: usize,
    column_tasks: usize,
    words: usize,
    word_tasks: usize,
}

impl Cut {
    pub(super) fn of(words: usize, width: usize) -> Self {
        let columns = width.div_ceil(COLUMN_TASKS).next_multiple_of(COLUMNS);
        let column_tasks = width.div_ceil(columns);
        let cuts = TASKS.div_ceil(column_tasks).min(words.div_ceil(WORDS)).max(1);
        let words_each = words.div_ceil(cuts).max(1);
        Self { columns, column_tasks, words: words_each, word_tasks: words.div_ceil(words_each) }
    }

    pub(super) fn tasks(&self) -> usize {
        self.column_tasks * self.word_tasks
    }
}

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
        let cut = Cut::of(words, width);
        each(if n == 0 { 0 } else { cut.tasks() }, |task| {
            let from = task / cut.word_tasks * cut.columns;
            let columns = cut.columns.min(width - from);
            let first = (task % cut.word_tasks * cut.words) as i64;
            let own = first..first + cut.words as i64;
            for (&id, grad) in ids.iter().zip(grad.chunks_exact(width)) {
                if Some(id) == padding || !own.contains(&id) {
                    continue;
                }
                // SAFETY: the table is this machine's; each task has columns of words of its own.
                unsafe {
                    let to = table.part(id as usize * width + from, columns).as_mut_ptr();
                    axpy(columns, T::ONE, grad.as_ptr().add(from), to);
                }
            }
        });
        Ok(())
    }
}
