//! Products of whole matrices.

use super::operand::{Operand, pack};
use super::square::{Base, Corner, Square, has_nan, multiply, plainly, write};
use super::{SIDE, Tiles};
use crate::cpu::scratch::{self, Large};
use crate::cpu::shared::Shared;
use crate::cpu::tasks;
use crate::step::denormal::Flushed;
use crate::step::matmul::{Strided, Strides};

/// Depth of the blocks that are packed: with `COLUMNS`, what the second-level cache holds of B.
const DEPTH: usize = 256;
/// Columns of the blocks of B that are packed.
const COLUMNS: usize = 512;
/// Rows of A that a task packs.
const ROWS: usize = 64;
/// Depth worth a task of its own, where the result is at most `SMALL`, in at most so many parts.
const DEEP: usize = 512;
const SMALL: usize = 1 << 19;
const MOST_PARTS: usize = 8;

/// Whether this is the fastest way, by what each costs in picoseconds of one core, as measured on
/// one machine: here a multiplication, a number packed, a result written and the start; the other
/// way a multiplication.
pub(in super::super) fn suits(p: &Strided<f32>) -> bool {
    let [m, n, k] = [p.m, p.n, p.k];
    let whole: usize = [m, n, k].iter().map(|x| x.next_multiple_of(SIDE)).product();
    let lies = |s: Strides| s.row == 1 || s.column == 1;
    let cost = 7 * whole + 700 * (m * k + k * n) + 500 * m * n + 20_000_000;
    // The other way is slower where A is turned.
    let other = if p.a_strides.row == 1 { 24 } else { 17 };
    lies(p.a_strides) && lies(p.b_strides) && cost < other * m * n * k
}

/// C = base + A · B, on all threads where it is asked for. The order of every sum is that of the
/// shape alone.
///
/// # Safety
/// The unit is available, the operands suit and are there, and C overlaps neither.
pub(in super::super) unsafe fn matmul(p: Strided<f32>) {
    let size = p.m * p.n;
    let parts = (p.k / DEEP).min(MOST_PARTS);
    // SAFETY: the caller's; parts of the depth lie within the operands and write results of their
    // own.
    unsafe {
        if !p.threads || parts < 2 || size > SMALL {
            return by_blocks(&p);
        }
        // A small result of great depth, as a weight's gradient is: each task has some of the depth.
        let depth = p.k.div_ceil(parts).next_multiple_of(SIDE);
        let mut sums = Large::<f32>::new(parts * size);
        let shared = Shared::new(&mut sums);
        tasks::each(parts, &|part| {
            let to = shared.part(part * size, size);
            by_blocks(&of_depth(&p, part * depth, depth, to));
        });
        tasks::runs(p.m, (1 << 14) / p.n.max(1) + 1, &|row| add_up(&p, row, &sums));
    }
}

/// The part of a product that some of its depth makes.
///
/// # Safety
/// It has this depth.
unsafe fn of_depth(p: &Strided<f32>, from: usize, depth: usize, to: &mut [f32]) -> Strided<f32> {
    // SAFETY: the caller's.
    let (a, b) = unsafe { (p.a.add(from * p.a_strides.column), p.b.add(from * p.b_strides.row)) };
    let k = depth.min(p.k - from);
    Strided { k, a, b, c: to.as_mut_ptr(), add: false, bias: None, threads: false, ..*p }
}

/// Adds a row of the parts of a product to its base.
///
/// # Safety
/// The row is the calling task's alone.
unsafe fn add_up(p: &Strided<f32>, row: usize, parts: &[f32]) {
    let (n, size) = (p.n, p.m * p.n);
    // SAFETY: C has m rows of n numbers, the bias n.
    let (to, bias) = unsafe {
        let to = std::slice::from_raw_parts_mut(p.at(row, 0), n);
        (to, p.bias.map(|bias| std::slice::from_raw_parts(bias, n)))
    };
    match bias {
        Some(bias) => to.copy_from_slice(bias),
        None if !p.add => to.fill(0.0),
        None => {}
    }
    for part in parts.chunks_exact(size) {
        for (to, x) in to.iter_mut().zip(&part[row * n..]) {
            *to += x;
        }
    }
}

/// In blocks of B that stay in the second-level cache.
///
/// # Safety
/// As for [`matmul`].
unsafe fn by_blocks(p: &Strided<f32>) {
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
        if p.threads { tasks::each(count, &flushed) } else { (0..count).for_each(flushed) }
    };
    // SAFETY: every part of an operand lies within it; tasks write slabs, and squares of C, of
    // their own.
    unsafe {
        let widest = b.part([0, n.min(COLUMNS)], [0, k.min(DEPTH)]);
        let mut packed = Large::<f32>::new(widest.packed_len());
        for columns in blocks(n, COLUMNS) {
            for depth in blocks(k, DEPTH) {
                let b = b.part(columns, depth);
                let to = Shared::new(&mut packed);
                let room = SendMut(to.part(0, b.packed_len()).as_mut_ptr());
                run(b.parts(), &|part| pack(&b, part, false, room.get()));
                // Few rows: columns are shared out too.
                let strips = m.div_ceil(ROWS);
                let wide = if strips < 8 { b.panels().div_ceil(2) } else { b.panels() };
                let groups = b.panels().div_ceil(wide);
                run(strips * groups, &|task| {
                    let (strip, group) = (task / groups, task % groups);
                    let row = strip * ROWS;
                    let a = a.part([row, ROWS.min(m - row)], depth);
                    let panels = group * wide..((group + 1) * wide).min(b.panels());
                    scratch::with([a.packed_len()], |[lines]| {
                        for part in 0..a.parts() {
                            pack(&a, part, true, lines.as_mut_ptr());
                        }
                        let tiles = Tiles::new();
                        let mut square = Square::new();
                        for i in 0..a.panels() {
                            for j in panels.clone() {
                                let left = lines.as_ptr().add(a.slab(i, 0));
                                let right = room.get().add(b.slab(j, 0)).cast_const();
                                multiply(&tiles, a.slabs(), left, right, &mut square);
                                let (a, b) = (a.panel(i), b.panel(j));
                                if has_nan(&square) {
                                    plainly(&a, &b, &mut square);
                                }
                                let column = columns[0] + j * SIDE;
                                let corner = Corner {
                                    to: p.at(row + i * SIDE, column),
                                    row: n,
                                    rows: a.lines,
                                    columns: b.lines,
                                };
                                let base = base(p, depth[0], column);
                                write(&square, corner, base);
                            }
                        }
                    });
                });
            }
        }
    }
}

/// What the squares from a column on are added to, at some depth.
///
/// # Safety
/// The product has this column.
unsafe fn base(p: &Strided<f32>, depth: usize, column: usize) -> Base {
    match p.bias {
        _ if depth > 0 || p.add => Base::There,
        // SAFETY: the caller's; the bias has a number for each.
        Some(bias) => Base::Row(unsafe { bias.add(column) }),
        None => Base::Nothing,
    }
}

/// `[from, length]` of blocks of at most `size`.
fn blocks(whole: usize, size: usize) -> impl Iterator<Item = [usize; 2]> {
    (0..whole).step_by(size).map(move |from| [from, size.min(whole - from)])
}

/// Where tasks write, each its own places.
#[derive(Clone, Copy)]
struct SendMut(*mut f32);

// SAFETY: tasks write places of their own.
unsafe impl Send for SendMut {}
// SAFETY: as above.
unsafe impl Sync for SendMut {}

impl SendMut {
    fn get(&self) -> *mut f32 {
        self.0
    }
}
