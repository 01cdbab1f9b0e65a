//! Products of whole matrices.

use super::operand::{Factor, Operand, pack};
use super::square::{Corner, Square, has_nan, multiply, scalar_fallback, write};
use super::{SIDE, Tiles};
use crate::cpu::denormal::Flushed;
use crate::cpu::scratch::{self, Large};
use crate::cpu::shared::Shared;
use crate::cpu::step::matmul::{RawBase, Strided, Strides};
use crate::cpu::tasks;
use std::ops::Range;

/// Columns of the blocks of B that are packed.
const COLUMNS: usize = 512;
/// Numbers of such a block: what the second-level cache holds of B.
const BLOCK: usize = 256 * COLUMNS;
/// Its depth at most.
const DEPTH: usize = 512;
/// Rows of A that a task packs.
const ROWS: usize = 64;
/// Columns so many that each block of them is a task of its own, by half the rows, and by so many at
/// least.
const WIDE: usize = 8 * COLUMNS;
const TALL: usize = 640;
/// Depth worth a task of its own, where the result is at most `SMALL`, in so many parts: with fewer
/// a slow core would be waited for.
const DEEP: usize = 512;
const SMALL: usize = 1 << 19;
const FEWEST_PARTS: usize = 4;
const MOST_PARTS: usize = 8;

/// Whether this is the fastest way, by what each costs in picoseconds of one core, as measured on
/// one machine: here a multiplication, a number packed, a result written and the start; the other
/// way a multiplication, of f32.
pub(in super::super) fn suits<F: Factor>(p: &Strided<F, f32>) -> bool {
    let [m, n, k] = [p.m, p.n, p.k];
    let whole: usize = [m, n, k].iter().map(|x| x.next_multiple_of(SIDE)).product();
    let lies = |s: Strides| s.row == 1 || s.column == 1;
    let [multiplied, packed] = F::COSTS;
    let cost = multiplied * whole + packed * (m * k + k * n) + 500 * m * n + 20_000_000;
    // The other way is slower where A is turned.
    let other = if p.a_strides.row == 1 { 24 } else { 17 };
    lies(p.a_strides) && lies(p.b_strides) && cost < other * m * n * k
}

/// C = base + A · B, on all threads where it is asked for. The order of every sum is that of the
/// shape alone.
///
/// # Safety
/// The unit is available, the operands suit and are there, and C overlaps neither.
pub(in super::super) unsafe fn matmul<F: Factor>(p: Strided<F, f32>) {
    let size = p.m * p.n;
    let parts = (p.k / DEEP).min(MOST_PARTS);
    // SAFETY: the caller's; parts of the depth lie within the operands and write results of their
    // own, and so do blocks of columns.
    unsafe {
        if p.threads && parts >= FEWEST_PARTS && size <= SMALL {
            by_depth(&p, parts);
        } else if p.threads && p.n >= WIDE {
            let rows = p.m.div_ceil(2).next_multiple_of(ROWS).max(TALL);
            let strips = p.m.div_ceil(rows);
            tasks::each(p.n.div_ceil(COLUMNS) * strips, &|task| {
                let (from, row) = (task / strips * COLUMNS, task % strips * rows);
                let part = of_rows(&p, row, rows);
                by_columns(&part, [from, COLUMNS.min(p.n - from)], false);
            });
        } else {
            whole(&p);
        }
    }
}

/// The part of a product that some of its rows make.
///
/// # Safety
/// It has the first of them.
unsafe fn of_rows<F: Factor>(p: &Strided<F, f32>, from: usize, rows: usize) -> Strided<F, f32> {
    // SAFETY: the caller's.
    let (a, c) = unsafe { (p.a.add(from * p.a_strides.row), p.at(from, 0)) };
    Strided { m: rows.min(p.m - from), a, c, ..*p }
}

/// Block after block of columns.
///
/// # Safety
/// As for [`matmul`].
unsafe fn whole<F: Factor>(p: &Strided<F, f32>) {
    for columns in blocks(p.n, COLUMNS) {
        // SAFETY: the caller's; B has these columns.
        unsafe { by_columns(p, columns, p.threads) };
    }
}

/// A small result of great depth, as a weight's gradient is: each task has some of the depth.
///
/// # Safety
/// As for [`matmul`].
unsafe fn by_depth<F: Factor>(p: &Strided<F, f32>, parts: usize) {
    let size = p.m * p.n;
    let depth = p.k.div_ceil(parts).next_multiple_of(SIDE);
    let mut sums = Large::<f32>::new(parts * size);
    let shared = Shared::new(&mut sums);
    // SAFETY: the caller's; each part has sums of its own, and each row is added up once.
    unsafe {
        tasks::each(parts, &|part| {
            let to = shared.part(part * size, size);
            whole(&of_depth(p, part * depth, depth, to));
        });
        tasks::runs(p.m, (1 << 14) / p.n.max(1) + 1, &|row| add_up(p, row, &sums));
    }
}

/// The part of a product that some of its depth makes.
///
/// # Safety
/// It has this depth.
unsafe fn of_depth<F: Factor>(
    p: &Strided<F, f32>,
    from: usize,
    depth: usize,
    to: &mut [f32],
) -> Strided<F, f32> {
    // SAFETY: the caller's.
    let (a, b) = unsafe { (p.a.add(from * p.a_strides.column), p.b.add(from * p.b_strides.row)) };
    let k = depth.min(p.k - from);
    Strided { k, a, b, c: to.as_mut_ptr(), base: RawBase::Nothing, threads: false, ..*p }
}

/// Adds a row of the parts of a product to its base.
///
/// # Safety
/// The row is the calling task's alone.
unsafe fn add_up<F: Factor>(p: &Strided<F, f32>, row: usize, parts: &[f32]) {
    let (n, size) = (p.n, p.m * p.n);
    // SAFETY: C has m rows of n numbers.
    let to = unsafe { std::slice::from_raw_parts_mut(p.at(row, 0), n) };
    match p.base {
        RawBase::Nothing => to.fill(0.0),
        RawBase::There => {}
        // SAFETY: the bias has n numbers.
        RawBase::Row(bias) => to.copy_from_slice(unsafe { std::slice::from_raw_parts(bias, n) }),
    }
    for part in parts.chunks_exact(size) {
        for (to, x) in to.iter_mut().zip(&part[row * n..]) {
            *to += x;
        }
    }
}

/// Some columns, at most [`COLUMNS`], in blocks of B that stay in the second-level cache.
///
/// # Safety
/// As for [`matmul`]; B has these columns, and no other task writes those of C.
unsafe fn by_columns<F: Factor>(p: &Strided<F, f32>, columns: [usize; 2], threads: bool) {
    let Strided { m, n, k, .. } = *p;
    let a =
        Operand { from: p.a, line: p.a_strides.row, step: p.a_strides.column, lines: m, depth: k };
    let b =
        Operand { from: p.b, line: p.b_strides.column, step: p.b_strides.row, lines: n, depth: k };
    let run = |count: usize, task: &(dyn Fn(usize) + Sync)| {
        let flushed = |at| {
            let _flushed = Flushed::new();
            task(at);
        };
        if threads { tasks::each(count, &flushed) } else { (0..count).for_each(flushed) }
    };
    let most = (BLOCK / columns[1]).min(DEPTH);
    let deep = k.div_ceil(k.div_ceil(most)).next_multiple_of(SIDE);
    // SAFETY: every part of an operand lies within it; tasks write slabs, and squares of C, of
    // their own.
    unsafe {
        let mut packed = Large::<f32>::new(b.part(columns, [0, deep.min(k)]).packed_len());
        for depth in blocks(k, deep) {
            let b = b.part(columns, depth);
            let to = Shared::new(&mut packed);
            run(b.parts(), &|part| pack(&b, part, false, to.start()));
            let block = Block { p, column: columns[0], depth, b, packed: &packed };
            // Few rows: columns are shared out too.
            let strips = m.div_ceil(ROWS);
            let wide = if strips < 8 { b.panels().div_ceil(2) } else { b.panels() };
            let groups = b.panels().div_ceil(wide);
            run(strips * groups, &|task| {
                let (row, panel) = (task / groups * ROWS, task % groups * wide);
                let a = a.part([row, ROWS.min(m - row)], depth);
                block.strip(&a, row, panel..(panel + wide).min(b.panels()));
            });
        }
    }
}

/// A block of B, packed.
struct Block<'a, F> {
    p: &'a Strided<F, f32>,
    /// Its first column.
    column: usize,
    depth: [usize; 2],
    b: Operand<F>,
    packed: &'a [f32],
}

impl<F: Factor> Block<'_, F> {
    /// Some rows of A, from `row` on, by some panels of the block.
    ///
    /// # Safety
    /// As for [`matmul`]; the squares are the calling task's alone.
    unsafe fn strip(&self, a: &Operand<F>, row: usize, panels: Range<usize>) {
        scratch::with([a.packed_len()], |[lines]| {
            // SAFETY: the caller's; both panels of every square are packed.
            unsafe {
                for part in 0..a.parts() {
                    pack(a, part, true, lines.as_mut_ptr());
                }
                let tiles = Tiles::new();
                let mut square = Square::new();
                for (i, j) in (0..a.panels()).flat_map(|i| panels.clone().map(move |j| (i, j))) {
                    let (left, right) = (a.panel(i), self.b.panel(j));
                    let column = self.column + j * SIDE;
                    let corner = Corner {
                        to: self.p.at(row + i * SIDE, column),
                        row: self.p.n,
                        rows: left.lines,
                        columns: right.lines,
                    };
                    corner.prefetch();
                    let from = [&lines[a.slab(i, 0)..], &self.packed[self.b.slab(j, 0)..]];
                    multiply::<F>(&tiles, a.slabs(), from.map(<[f32]>::as_ptr), &mut square);
                    if F::PARTS > 1 && has_nan(&square) {
                        scalar_fallback(&left, &right, &mut square);
                    }
                    write(&square, corner, base(self.p, self.depth[0], column));
                }
            }
        });
    }
}

/// What the squares from a column on are added to, at some depth.
///
/// # Safety
/// The product has this column.
unsafe fn base<F: Factor>(p: &Strided<F, f32>, depth: usize, column: usize) -> RawBase<f32> {
    match p.base {
        _ if depth > 0 => RawBase::There,
        // SAFETY: the caller's; the bias has a number for each.
        RawBase::Row(bias) => RawBase::Row(unsafe { bias.add(column) }),
        base => base,
    }
}

/// `[from, length]` of blocks of at most `size`.
fn blocks(whole: usize, size: usize) -> impl Iterator<Item = [usize; 2]> {
    (0..whole).step_by(size).map(move |from| [from, size.min(whole - from)])
}
