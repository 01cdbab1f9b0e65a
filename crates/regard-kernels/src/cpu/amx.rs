//! Products of `f32` matrices by AMX, the matrix unit of some x86-64 processors.
//!
//! The unit multiplies bf16 numbers, sixteen times as many in a cycle as AVX-512 multiplies `f32`.
//! An `f32` has 24 significant bits and is the exact sum of three bf16 numbers of 8 bits each,
//! x = x₁ + x₂ + x₃, every one about 2⁻⁸ of the one before. Of the nine products in x·y the six
//! largest are computed, x₁y₁, x₁y₂, x₂y₁, x₂y₂, x₁y₃ and x₃y₁; the three left out are below the
//! rounding of an `f32`. Sums are `f32`, as they are in any other product.
//!
//! Operands are split on the way into *panels* of 32 lines (rows of A, columns of B), of which 32
//! numbers of depth each are a *slab*: three parts of two tiles, 6 KiB. One run of the kernel
//! multiplies two panels into a 32 × 32 square of the result.
//!
//! What is special: a number below 2⁻¹¹⁰ loses its last part and an infinite one is no sum of three,
//! so squares that come out as NaN are computed again, by plain loops.

use super::scratch::{self, Large};
use super::shared::Shared;
use super::tasks;
use crate::step::denormal::Flushed;
use crate::step::matmul::{Strided, Strides};
use std::arch::asm;
use std::arch::x86_64::*;
use std::sync::OnceLock;

/// Lines of a panel, and numbers of depth in a slab.
const SIDE: usize = 32;
/// Numbers of 4 bytes that a tile takes.
const TILE: usize = 256;
/// And a slab: both tiles of the first part, of the second, of the third.
const SLAB: usize = 6 * TILE;
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

/// Whether the machine has the unit and the system lets this process use it.
pub(super) fn is_available() -> bool {
    static AVAILABLE: OnceLock<bool> = OnceLock::new();
    *AVAILABLE.get_or_init(|| {
        const BF16: u32 = 1 << 22;
        const TILE: u32 = 1 << 24;
        const REQUEST: libc::c_long = 0x1023;
        const TILE_DATA: libc::c_long = 18;
        let found = __cpuid_count(7, 0).edx & (BF16 | TILE) == BF16 | TILE;
        // SAFETY: asks Linux to keep tiles for the threads of this process; touches no memory.
        found && unsafe { libc::syscall(libc::SYS_arch_prctl, REQUEST, TILE_DATA) } == 0
    })
}

/// How the eight tiles are shaped: sixteen rows of 64 bytes each.
#[repr(C, align(64))]
struct Shapes {
    palette: u8,
    first_row: u8,
    unused: [u8; 14],
    row_bytes: [u16; 16],
    rows: [u8; 16],
}

static SHAPES: Shapes = {
    let mut shapes =
        Shapes { palette: 1, first_row: 0, unused: [0; 14], row_bytes: [0; 16], rows: [0; 16] };
    let mut tile = 0;
    while tile < 8 {
        shapes.row_bytes[tile] = 64;
        shapes.rows[tile] = 16;
        tile += 1;
    }
    shapes
};

/// The tiles of this thread, from here until it is dropped.
pub(super) struct Tiles(());

impl Tiles {
    /// # Safety
    /// The unit is available.
    pub(super) unsafe fn new() -> Self {
        // SAFETY: reads the 64 bytes of `SHAPES`.
        unsafe { asm!("ldtilecfg [{}]", in(reg) &raw const SHAPES, options(nostack, readonly)) };
        Self(())
    }
}

impl Drop for Tiles {
    fn drop(&mut self) {
        // SAFETY: whoever made this has the unit.
        unsafe { asm!("tilerelease", options(nostack, nomem)) };
    }
}

/// A square of the result.
#[repr(align(64))]
struct Square([f32; SIDE * SIDE]);

/// The product of two panels of `slabs` slabs.
///
/// # Safety
/// Both panels are there, and `_tiles` are this thread's.
unsafe fn multiply(_tiles: &Tiles, slabs: usize, a: *const f32, b: *const f32, to: &mut Square) {
    debug_assert!(slabs > 0);
    // The square is four tiles, 0 to 3; 4 and 5 are A's, 6 and 7 B's. Small products come first, and
    // each is followed by the one that shares an operand with it.
    macro_rules! four {
        () => {
            "tdpbf16ps tmm0, tmm4, tmm6\n\
             tdpbf16ps tmm1, tmm4, tmm7\n\
             tdpbf16ps tmm2, tmm5, tmm6\n\
             tdpbf16ps tmm3, tmm5, tmm7"
        };
    }
    // SAFETY: reads the panels' slabs, writes the 4 KiB of the square.
    unsafe {
        asm!(
            "tilezero tmm0", "tilezero tmm1", "tilezero tmm2", "tilezero tmm3",
            "2:",
            "tileloadd tmm4, [{a} + {row} + 2*{part}]",
            "tileloadd tmm6, [{b} + {row}]",
            "tileloadd tmm7, [{b} + {row} + {tile}]",
            "tileloadd tmm5, [{a} + {row} + 2*{part} + {tile}]",
            four!(),
            "tileloadd tmm4, [{a} + {row} + {part}]",
            "tileloadd tmm5, [{a} + {row} + {part} + {tile}]",
            four!(),
            "tileloadd tmm6, [{b} + {row} + {part}]",
            "tileloadd tmm7, [{b} + {row} + {part} + {tile}]",
            four!(),
            "tileloadd tmm4, [{a} + {row}]",
            "tileloadd tmm5, [{a} + {row} + {tile}]",
            four!(),
            "tileloadd tmm6, [{b} + {row} + 2*{part}]",
            "tileloadd tmm7, [{b} + {row} + 2*{part} + {tile}]",
            four!(),
            "tileloadd tmm6, [{b} + {row}]",
            "tileloadd tmm7, [{b} + {row} + {tile}]",
            four!(),
            "add {a}, {slab}",
            "add {b}, {slab}",
            "dec {slabs}",
            "jnz 2b",
            "tilestored [{to} + 2*{row}], tmm0",
            "tilestored [{to} + 2*{row} + 64], tmm1",
            "tilestored [{to} + 2*{row} + 2048], tmm2",
            "tilestored [{to} + 2*{row} + 2048 + 64], tmm3",
            a = inout(reg) a => _,
            b = inout(reg) b => _,
            slabs = inout(reg) slabs => _,
            row = in(reg) 64usize,
            to = in(reg) to.0.as_mut_ptr(),
            part = const 8 * TILE,
            tile = const 4 * TILE,
            slab = const 4 * SLAB,
            out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
            out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
            options(nostack),
        );
    }
}

/// An operand as it lies: lines (rows of A, columns of B) of some depth, one of the two strides 1.
#[derive(Clone, Copy)]
struct Operand {
    from: *const f32,
    /// From a line to the next.
    line: usize,
    /// From a number of a line to the next.
    step: usize,
    lines: usize,
    depth: usize,
}

// SAFETY: only read, by tasks that end before the borrow does.
unsafe impl Sync for Operand {}

impl Operand {
    /// Some of its lines and some of their depth.
    ///
    /// # Safety
    /// It has them.
    unsafe fn part(self, [line, lines]: [usize; 2], [step, depth]: [usize; 2]) -> Self {
        // SAFETY: the caller's.
        let from = unsafe { self.from.add(line * self.line + step * self.step) };
        Self { from, lines, depth, ..self }
    }

    /// Panels of 32 lines.
    fn panels(&self) -> usize {
        self.lines.div_ceil(SIDE)
    }

    fn slabs(&self) -> usize {
        self.depth.div_ceil(SIDE)
    }

    /// Where a slab begins among all that is packed.
    fn slab(&self, panel: usize, slab: usize) -> usize {
        (panel * self.slabs() + slab) * SLAB
    }

    /// Parts in which it is packed.
    fn parts(&self) -> usize {
        if self.step == 1 { self.panels() } else { self.slabs() }
    }

    /// Numbers of 4 bytes that all of it takes.
    fn packed_len(&self) -> usize {
        self.panels() * self.slabs() * SLAB
    }
}

/// Three bf16 numbers that add up to an `f32`, each in the upper half of its place; of the last one
/// the lower half may be anything.
#[target_feature(enable = "avx512f")]
fn split(x: __m512) -> [__m512i; 3] {
    let (half, upper) = (_mm512_set1_epi32(0x8000), _mm512_set1_epi32(!0xffff));
    let first = _mm512_and_si512(_mm512_add_epi32(_mm512_castps_si512(x), half), upper);
    let x = _mm512_sub_ps(x, _mm512_castsi512_ps(first));
    let second = _mm512_and_si512(_mm512_add_epi32(_mm512_castps_si512(x), half), upper);
    let x = _mm512_sub_ps(x, _mm512_castsi512_ps(second));
    [first, second, _mm512_castps_si512(x)]
}

/// The first `n` of sixteen places.
fn places(n: usize) -> __mmask16 {
    if n >= 16 { !0 } else { (1 << n) - 1 }
}

/// Splits a part of an operand in the order in which it lies: a panel where a line's numbers are
/// neighbours, otherwise a slab of all panels. A tile gets a row for each line where `by_line` (as A
/// needs it), or a row for each pair of depth (as B needs it).
///
/// # Safety
/// The operand is there, `to` holds all its panels, and the machine has AVX-512.
#[target_feature(enable = "avx512f,avx512bw")]
unsafe fn pack(x: &Operand, part: usize, by_line: bool, to: *mut f32) {
    let along = x.step == 1;
    let (panels, slabs) =
        if along { (part..part + 1, 0..x.slabs()) } else { (0..x.panels(), part..part + 1) };
    // SAFETY: the operand has these panels and slabs, and so has `to`.
    unsafe {
        for slab in slabs {
            if along {
                pack_along(x, part, slab, to);
            } else {
                pack_across(x, slab, to);
            }
            for panel in panels.clone().filter(|_| along != by_line) {
                for tile in 0..6 {
                    turn(to.add(x.slab(panel, slab) + tile * TILE).cast());
                }
            }
        }
    }
}

/// A slab of one panel, tiles with a row for each line.
#[target_feature(enable = "avx512f,avx512bw")]
unsafe fn pack_along(x: &Operand, panel: usize, slab: usize, to: *mut f32) {
    let depth = x.depth - slab * SIDE;
    // Pairs of upper halves: odd words of two registers.
    let odd: [u16; 32] = std::array::from_fn(|n| 2 * n as u16 + 1);
    // SAFETY: lines and steps beyond the operand's are masked; rows of tiles are written within
    // their slab.
    unsafe {
        let odd = _mm512_loadu_epi16(odd.as_ptr().cast());
        let to = to.add(x.slab(panel, slab));
        for line in 0..SIDE {
            let there = panel * SIDE + line < x.lines;
            let masks =
                if there { [places(depth), places(depth.saturating_sub(16))] } else { [0; 2] };
            let at = x.from.wrapping_add((panel * SIDE + line) * x.line + slab * SIDE);
            let left = split(_mm512_maskz_loadu_ps(masks[0], at));
            let right = split(_mm512_maskz_loadu_ps(masks[1], at.wrapping_add(16)));
            for part in 0..3 {
                let row = _mm512_permutex2var_epi16(left[part], odd, right[part]);
                _mm512_store_si512(to.add(2 * part * TILE + line * 16).cast(), row);
            }
        }
    }
}

/// A slab of every panel, tiles with a row for each pair of depth.
#[target_feature(enable = "avx512f,avx512bw")]
unsafe fn pack_across(x: &Operand, slab: usize, to: *mut f32) {
    let depth = x.depth - slab * SIDE;
    let upper = _mm512_set1_epi32(!0xffff);
    // SAFETY: as above.
    unsafe {
        for pair in 0..SIDE / 2 {
            let at = x.from.wrapping_add((slab * SIDE + 2 * pair) * x.step);
            for sixteen in 0..2 * x.panels() {
                let mask = places(x.lines.saturating_sub(sixteen * 16));
                let left = if 2 * pair < depth { mask } else { 0 };
                let right = if 2 * pair + 1 < depth { mask } else { 0 };
                let at = at.wrapping_add(sixteen * 16);
                let left = split(_mm512_maskz_loadu_ps(left, at));
                let right = split(_mm512_maskz_loadu_ps(right, at.wrapping_add(x.step)));
                let to = to.add(x.slab(sixteen / 2, slab) + sixteen % 2 * TILE + pair * 16);
                for part in 0..3 {
                    let low = _mm512_srli_epi32(left[part], 16);
                    let row = _mm512_or_si512(low, _mm512_and_si512(right[part], upper));
                    _mm512_store_si512(to.add(2 * part * TILE).cast(), row);
                }
            }
        }
    }
}

/// Turns a tile of 16 × 16 pairs round.
///
/// # Safety
/// 1 KiB is there, aligned, and the machine has AVX-512.
#[target_feature(enable = "avx512f")]
unsafe fn turn(tile: *mut __m512i) {
    // SAFETY: the caller's.
    unsafe {
        let mut x = [_mm512_setzero_si512(); 16];
        for (row, x) in x.iter_mut().enumerate() {
            *x = _mm512_load_si512(tile.add(row));
        }
        let mut y = x;
        for n in 0..8 {
            y[2 * n] = _mm512_unpacklo_epi32(x[2 * n], x[2 * n + 1]);
            y[2 * n + 1] = _mm512_unpackhi_epi32(x[2 * n], x[2 * n + 1]);
        }
        for n in 0..4 {
            for m in 0..2 {
                x[4 * n + 2 * m] = _mm512_unpacklo_epi64(y[4 * n + m], y[4 * n + 2 + m]);
                x[4 * n + 2 * m + 1] = _mm512_unpackhi_epi64(y[4 * n + m], y[4 * n + 2 + m]);
            }
        }
        // x[4n + c] has, in each quarter q, column 4q + c of rows 4n..4n + 4.
        for n in 0..2 {
            for c in 0..4 {
                let (low, high) = (x[8 * n + c], x[8 * n + 4 + c]);
                y[8 * n + c] = _mm512_shuffle_i32x4(low, high, 0b10_00_10_00);
                y[8 * n + 4 + c] = _mm512_shuffle_i32x4(low, high, 0b11_01_11_01);
            }
        }
        for c in 0..4 {
            let [even, odd] = [c, 4 + c];
            _mm512_store_si512(
                tile.add(c),
                _mm512_shuffle_i32x4(y[even], y[8 + even], 0b10_00_10_00),
            );
            _mm512_store_si512(
                tile.add(8 + c),
                _mm512_shuffle_i32x4(y[even], y[8 + even], 0b11_01_11_01),
            );
            _mm512_store_si512(
                tile.add(4 + c),
                _mm512_shuffle_i32x4(y[odd], y[8 + odd], 0b10_00_10_00),
            );
            _mm512_store_si512(
                tile.add(12 + c),
                _mm512_shuffle_i32x4(y[odd], y[8 + odd], 0b11_01_11_01),
            );
        }
    }
}

/// Where a square goes.
#[derive(Clone, Copy)]
struct Corner {
    to: *mut f32,
    row: usize,
    rows: usize,
    columns: usize,
}

/// What a square is added to.
#[derive(Clone, Copy)]
enum Base {
    Nothing,
    There,
    /// The same numbers for every row.
    Row(*const f32),
}

#[target_feature(enable = "avx512f")]
unsafe fn write(square: &Square, corner: Corner, base: Base) {
    // SAFETY: the corner has its rows and columns, the base too; columns beyond are masked.
    unsafe {
        for (half, from) in [0, 16].into_iter().enumerate() {
            if from >= corner.columns {
                break;
            }
            let mask = places(corner.columns - from);
            let row = match base {
                Base::Row(row) => _mm512_maskz_loadu_ps(mask, row.add(from)),
                _ => _mm512_setzero_ps(),
            };
            for r in 0..corner.rows {
                let to = corner.to.add(r * corner.row + from);
                let x = _mm512_load_ps(square.0.as_ptr().add(r * SIDE + half * 16));
                let x = match base {
                    Base::Nothing => x,
                    Base::There => _mm512_add_ps(x, _mm512_maskz_loadu_ps(mask, to)),
                    Base::Row(_) => _mm512_add_ps(x, row),
                };
                _mm512_mask_storeu_ps(to, mask, x);
            }
        }
    }
}

#[target_feature(enable = "avx512f")]
fn has_nan(square: &Square) -> bool {
    let mut found = 0;
    for x in square.0.as_chunks::<16>().0 {
        // SAFETY: sixteen numbers.
        let x = unsafe { _mm512_load_ps(x.as_ptr()) };
        found |= _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(x, x);
    }
    found != 0
}

/// The square of some rows of A and columns of B by plain loops.
unsafe fn plainly(a: &Operand, b: &Operand, square: &mut Square) {
    for i in 0..a.lines {
        for j in 0..b.lines {
            // SAFETY: the operands have these lines, of this depth.
            square.0[i * SIDE + j] = unsafe {
                let at =
                    |x: &Operand, line: usize, p: usize| *x.from.add(line * x.line + p * x.step);
                (0..a.depth).fold(0.0, |sum, p| at(a, i, p).mul_add(at(b, j, p), sum))
            };
        }
    }
}

/// Whether this is the fastest way, by what each costs in picoseconds of one core, as measured on
/// one machine: here a multiplication, a number packed, a result written and the start; the other
/// way a multiplication.
pub(super) fn suits(p: &Strided<f32>) -> bool {
    let [m, n, k] = [p.m, p.n, p.k];
    let whole: usize = [m, n, k].iter().map(|x| x.next_multiple_of(SIDE)).product();
    let lies = |s: Strides| s.row == 1 || s.column == 1;
    let cost = 7 * whole + 700 * (m * k + k * n) + 500 * m * n + 20_000_000;
    lies(p.a_strides) && lies(p.b_strides) && cost < 17 * m * n * k
}

/// C = base + A · B, on all threads where it is asked for. The order of every sum is that of the
/// shape alone.
///
/// # Safety
/// The unit is available, the operands suit and are there, and C overlaps neither.
pub(super) unsafe fn matmul(p: Strided<f32>) {
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
        let to = std::slice::from_raw_parts_mut(p.c.add(row * n), n);
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
    let c = SendMut(p.c);
    let bias = p.bias.map(SendConst);
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
                        let mut square = Square([0.0; SIDE * SIDE]);
                        let slabs = a.slabs();
                        for i in 0..a.panels() {
                            for j in panels.clone() {
                                let left = lines.as_ptr().add(i * slabs * SLAB);
                                let right = room.get().add(j * slabs * SLAB).cast_const();
                                multiply(&tiles, slabs, left, right, &mut square);
                                let a =
                                    a.part([i * SIDE, SIDE.min(a.lines - i * SIDE)], [0, a.depth]);
                                let b =
                                    b.part([j * SIDE, SIDE.min(b.lines - j * SIDE)], [0, b.depth]);
                                if has_nan(&square) {
                                    plainly(&a, &b, &mut square);
                                }
                                let column = columns[0] + j * SIDE;
                                let corner = Corner {
                                    to: c.get().add((row + i * SIDE) * n + column),
                                    row: n,
                                    rows: a.lines,
                                    columns: b.lines,
                                };
                                let base = match &bias {
                                    _ if depth[0] > 0 || p.add => Base::There,
                                    Some(bias) => Base::Row(bias.0.add(column)),
                                    None => Base::Nothing,
                                };
                                write(&square, corner, base);
                            }
                        }
                    });
                });
            }
        }
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

#[derive(Clone, Copy)]
struct SendConst(*const f32);

// SAFETY: only read.
unsafe impl Sync for SendConst {}
