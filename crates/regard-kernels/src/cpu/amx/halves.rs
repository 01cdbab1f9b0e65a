//! The products of dot attention on bf16 numbers, a tile at a time.
//!
//! Keys and values are packed once for all blocks of queries: their rows, and the same turned round,
//! each padded with zeros to whole tiles of the unit. Of a block of queries (or of gradients of the
//! output) the pairs of features are packed for products with rows of keys, and the pairs of queries
//! for products that end in rows of keys. Weights and gradients of scores are `f32`; each goes into
//! the unit as the sum of two bf16 numbers, which keeps 16 of its 24 bits: the results are stored in
//! 8. All sums are `f32`.

use super::Tiles;
use super::operand::split;
use crate::View;
use crate::cpu::attention::problem::Block;
use crate::cpu::attention::products::{ROWS, TileProducts, WIDEST};
use crate::cpu::attention::{BLOCK, TILE};
use crate::cpu::scratch::Large;
use crate::cpu::shared::Shared;
use crate::cpu::tasks;
use half::bf16;
use std::arch::asm;
use std::arch::x86_64::*;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

/// Lines and depth that the operands are padded to.
const SIDE: usize = ROWS;

/// bf16 numbers in a pooled array.
struct Numbers(Large<f32>);

impl Numbers {
    fn new(len: usize) -> Self {
        Self(Large::new(len.div_ceil(2)))
    }

    fn as_ptr(&self) -> *const u16 {
        self.0.as_ptr().cast()
    }

    fn as_mut_slice(&mut self) -> &mut [u16] {
        let len = 2 * self.0.len();
        // SAFETY: two of them in each `f32`, any bits are one.
        unsafe { std::slice::from_raw_parts_mut(self.0.as_mut_ptr().cast(), len) }
    }
}

/// Rows `[B, H, N, D]` and the same as columns, padded with zeros.
struct Packed {
    d: usize,
    /// Rows of a head: N and a tile more, in whole tiles.
    n: usize,
    heads: usize,
    /// `[B·H, n, D]`
    rows: Numbers,
    /// `[B·H, n/32, D, 32]`: a tile of the unit lies together.
    columns: Numbers,
}

impl Packed {
    fn new(x: &View<bf16>, with_rows: bool, with_columns: bool) -> Self {
        let [b, heads, len, d] = x.shape;
        let n = (len + SIDE).next_multiple_of(SIDE);
        let size = |wanted: bool| if wanted { b * heads * n * d } else { 0 };
        let mut rows = Numbers::new(size(with_rows));
        let mut columns = Numbers::new(size(with_columns));
        {
            let (rows, columns) = (rows.as_mut_slice(), columns.as_mut_slice());
            let (rows, columns) = (Shared::new(rows), Shared::new(columns));
            tasks::each(b * heads, &|head| {
                let row = |i: usize| x.row(head / heads, head % heads, i);
                // SAFETY: a head is one task's alone.
                unsafe {
                    if with_rows {
                        let to = rows.part(head * n * d, n * d);
                        for (i, to) in to.chunks_exact_mut(d).enumerate() {
                            match i < len {
                                true => {
                                    to.iter_mut().zip(row(i)).for_each(|(to, x)| *to = x.to_bits())
                                }
                                false => to.fill(0),
                            }
                        }
                    }
                    if with_columns {
                        turn(len, d, &row, columns.part(head * n * d, n * d));
                    }
                }
            });
        }
        Self { d, n, heads, rows, columns }
    }

    /// From row `j` of a head on.
    fn rows(&self, b: usize, h: usize, j: usize) -> *const u16 {
        self.rows.as_ptr().wrapping_add(((b * self.heads + h) * self.n + j) * self.d)
    }

    /// The columns of 32 keys, from `j`, a multiple of 32, on.
    fn columns(&self, b: usize, h: usize, j: usize) -> *const u16 {
        debug_assert!(j.is_multiple_of(SIDE));
        self.columns.as_ptr().wrapping_add(((b * self.heads + h) * self.n + j) * self.d)
    }
}

/// `len` rows of `d` numbers as columns of 32, zeros behind them.
fn turn<'a>(len: usize, d: usize, row: &impl Fn(usize) -> &'a [bf16], to: &mut [u16]) {
    for (chunk, to) in to.chunks_exact_mut(SIDE * d).enumerate() {
        for i in 0..SIDE {
            let j = chunk * SIDE + i;
            for x in 0..d {
                to[x * SIDE + i] = if j < len { row(j)[x].to_bits() } else { 0 };
            }
        }
    }
}

/// C `[m, n]` (+)= A `[m, 32·steps]` · B, both in bf16, m and n multiples of 32. B has a row for each
/// pair of its depth. `passes` sums that many products, each operand moving on by its jump.
#[repr(C)]
struct Product {
    a: *const u8,
    /// Bytes from a row to the next.
    a_row: usize,
    /// Bytes from 32 of its depth to the next.
    a_step: usize,
    b: *const u8,
    b_row: usize,
    c: *mut f32,
    c_row: usize,
    steps: usize,
    passes: usize,
    /// Bytes added to each operand after a pass.
    a_jump: isize,
    b_jump: isize,
    add: usize,
}

/// # Safety
/// The operands hold what the product says, `_tiles` are this thread's.
unsafe fn multiply(_tiles: &Tiles, p: &Product, m: usize, n: usize) {
    debug_assert!(m.is_multiple_of(SIDE) && n.is_multiple_of(SIDE) && p.steps > 0);
    for column in (0..n).step_by(SIDE) {
        for row in (0..m).step_by(SIDE) {
            // SAFETY: within the operands; the square is 32 × 32.
            unsafe {
                square(&Product {
                    a: p.a.add(row * p.a_row),
                    b: p.b.add(column * 4),
                    c: p.c.byte_add(row * p.c_row + column * 4),
                    ..*p
                });
            }
        }
    }
}

/// A square of 32 × 32 of the product.
unsafe fn square(p: &Product) {
    // SAFETY: the caller's.
    unsafe {
        asm!(
            "mov {a_row}, [{p} + {A_ROW}]",
            "mov {b_row}, [{p} + {B_ROW}]",
            "mov {c}, [{p} + {C}]",
            "mov {c_row}, [{p} + {C_ROW}]",
            // The second sixteen rows of C and of A.
            "mov {c2}, {c_row}",
            "shl {c2}, 4",
            "add {c2}, {c}",
            "cmp qword ptr [{p} + {ADD}], 0",
            "je 4f",
            "tileloadd tmm0, [{c} + {c_row}]",
            "tileloadd tmm1, [{c} + {c_row} + 64]",
            "tileloadd tmm2, [{c2} + {c_row}]",
            "tileloadd tmm3, [{c2} + {c_row} + 64]",
            "jmp 5f",
            "4:",
            "tilezero tmm0",
            "tilezero tmm1",
            "tilezero tmm2",
            "tilezero tmm3",
            "5:",
            "mov {a}, [{p} + {A}]",
            "mov {b}, [{p} + {B}]",
            "mov {a2}, {a_row}",
            "shl {a2}, 4",
            "add {a2}, {a}",
            "mov {passes}, [{p} + {PASSES}]",
            "2:",
            "mov {steps}, [{p} + {STEPS}]",
            "3:",
            "tileloadd tmm6, [{b} + {b_row}]",
            "tileloadd tmm4, [{a} + {a_row}]",
            "tileloadd tmm7, [{b} + {b_row} + 64]",
            "tdpbf16ps tmm0, tmm4, tmm6",
            "tileloadd tmm5, [{a2} + {a_row}]",
            "tdpbf16ps tmm1, tmm4, tmm7",
            "tdpbf16ps tmm2, tmm5, tmm6",
            "tdpbf16ps tmm3, tmm5, tmm7",
            "add {a}, [{p} + {A_STEP}]",
            "add {a2}, [{p} + {A_STEP}]",
            "mov {jump}, {b_row}",
            "shl {jump}, 4",
            "add {b}, {jump}",
            "dec {steps}",
            "jnz 3b",
            "add {a}, [{p} + {A_JUMP}]",
            "add {a2}, [{p} + {A_JUMP}]",
            "add {b}, [{p} + {B_JUMP}]",
            "dec {passes}",
            "jnz 2b",
            "tilestored [{c} + {c_row}], tmm0",
            "tilestored [{c} + {c_row} + 64], tmm1",
            "tilestored [{c2} + {c_row}], tmm2",
            "tilestored [{c2} + {c_row} + 64], tmm3",
            p = in(reg) p,
            a = out(reg) _,
            a2 = out(reg) _,
            a_row = out(reg) _,
            b = out(reg) _,
            b_row = out(reg) _,
            c = out(reg) _,
            c2 = out(reg) _,
            c_row = out(reg) _,
            steps = out(reg) _,
            passes = out(reg) _,
            jump = out(reg) _,
            A = const std::mem::offset_of!(Product, a),
            A_ROW = const std::mem::offset_of!(Product, a_row),
            A_STEP = const std::mem::offset_of!(Product, a_step),
            B = const std::mem::offset_of!(Product, b),
            B_ROW = const std::mem::offset_of!(Product, b_row),
            C = const std::mem::offset_of!(Product, c),
            C_ROW = const std::mem::offset_of!(Product, c_row),
            STEPS = const std::mem::offset_of!(Product, steps),
            PASSES = const std::mem::offset_of!(Product, passes),
            A_JUMP = const std::mem::offset_of!(Product, a_jump),
            B_JUMP = const std::mem::offset_of!(Product, b_jump),
            ADD = const std::mem::offset_of!(Product, add),
            out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
            out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
            options(nostack),
        );
    }
}

/// Dot attention over bf16 numbers.
pub(in crate::cpu) struct Halves<'a> {
    q: View<'a, bf16>,
    grad_out: Option<View<'a, bf16>>,
    k: Packed,
    v: Packed,
    /// Query heads to a key head.
    group: usize,
    /// What the queries are multiplied by, a power of two, and what the scores then are.
    scale: [f32; 2],
}

impl<'a> Halves<'a> {
    /// For forward, or with the gradient of the output for backward. None where a number is
    /// infinite or NaN: 0 times it is not 0, so padding would show.
    pub(in crate::cpu) fn new(
        [q, k, v]: [View<'a, bf16>; 3],
        grad_out: Option<View<'a, bf16>>,
        scale: f32,
    ) -> Option<Self> {
        let mut all = [Some(&q), Some(&k), Some(&v), grad_out.as_ref()].into_iter().flatten();
        if !all.all(is_finite) {
            return None;
        }
        let backward = grad_out.is_some();
        let power = 2f32.powi(scale.abs().log2().floor() as i32);
        let exact = (2f32.powi(-40)..=1.0).contains(&power);
        Some(Self {
            q,
            grad_out,
            k: Packed::new(&k, true, backward),
            v: Packed::new(&v, backward, !backward),
            group: q.shape[1] / k.shape[1],
            scale: if exact { [power, scale / power] } else { [1.0, scale] },
        })
    }
}

fn is_finite(x: &View<bf16>) -> bool {
    let [b, h, n, d] = x.shape;
    let found = AtomicBool::new(false);
    tasks::runs(b * h * n, (4096 / d).max(1), &|row| {
        let row = x.row(row / n / h, row / n % h, row % n);
        if row.iter().fold(false, |found, x| found | (x.to_bits() & 0x7f80 == 0x7f80)) {
            found.store(true, Ordering::Relaxed);
        }
    });
    !found.into_inner()
}

/// A block's rows in both forms: `[D/2, BLOCK]` pairs of features, each number times a power of two,
/// then `[BLOCK/2, D]` pairs of rows as they are.
fn pack_block(x: &View<bf16>, block: &Block, factor: f32, to: &mut [f32]) {
    let d = x.shape[3];
    let zeros = [bf16::ZERO; WIDEST];
    let row = |i: usize| match i < block.n {
        true => x.row(block.b, block.h, block.i0 + i),
        false => &zeros[..d],
    };
    let pair = |low: u16, high: u16| f32::from_bits(u32::from(high) << 16 | u32::from(low));
    let scaled = |x: bf16| ((x.to_f32() * factor).to_bits() >> 16) as u16;
    let (features, rows) = to[..d * BLOCK].split_at_mut(d / 2 * BLOCK);
    for i in 0..BLOCK {
        for (x, two) in row(i).as_chunks::<2>().0.iter().enumerate() {
            features[x * BLOCK + i] = pair(scaled(two[0]), scaled(two[1]));
        }
    }
    for (i, to) in rows.chunks_exact_mut(d).enumerate() {
        for (to, (low, high)) in to.iter_mut().zip(row(2 * i).iter().zip(row(2 * i + 1))) {
            *to = pair(low.to_bits(), high.to_bits());
        }
    }
}

/// A tile of weights or gradients as two bf16 numbers each.
#[repr(align(64))]
struct Split([MaybeUninit<u32>; 2 * Self::SECOND]);

impl Split {
    /// Numbers of 4 bytes from the first parts to the second.
    const SECOND: usize = (TILE + SIDE) * BLOCK / 2;

    /// A row for each pair of keys, zeros for so many before the first and behind the last up to
    /// whole [`SIDE`]s.
    #[target_feature(enable = "avx512f,avx512bw")]
    fn by_pairs(&mut self, tile: &[f32], before: usize, keys: usize) {
        assert!(before < SIDE && keys <= TILE && tile.len() >= keys * BLOCK);
        let upper = _mm512_set1_epi32(!0xffff);
        for pair in 0..(before + keys).next_multiple_of(SIDE) / 2 {
            for i in (0..BLOCK).step_by(16) {
                let row = |r: usize| match r >= before && r < before + keys {
                    // SAFETY: the tile has this row.
                    true => unsafe { _mm512_loadu_ps(tile.as_ptr().add((r - before) * BLOCK + i)) },
                    false => _mm512_setzero_ps(),
                };
                let ([low, low2], [high, high2]) = (split(row(2 * pair)), split(row(2 * pair + 1)));
                let first = _mm512_or_si512(_mm512_srli_epi32::<16>(low), high);
                let second = _mm512_srli_epi32::<16>(low2);
                let second = _mm512_or_si512(second, _mm512_and_si512(high2, upper));
                // SAFETY: both lie within the array.
                unsafe {
                    let to = self.0.as_mut_ptr().add(pair * BLOCK + i);
                    _mm512_store_si512(to.cast(), first);
                    _mm512_store_si512(to.add(Self::SECOND).cast(), second);
                }
            }
        }
    }

    /// A row for each key, zeros behind the last up to whole [`SIDE`]s.
    #[target_feature(enable = "avx512f,avx512bw")]
    fn by_rows(&mut self, tile: &[f32], keys: usize) {
        assert!(keys <= TILE && tile.len() >= keys * BLOCK);
        // The upper halves of two registers.
        let odd: [u16; 32] = std::array::from_fn(|word| 2 * word as u16 + 1);
        // SAFETY: 32 words.
        let odd = unsafe { _mm512_loadu_si512(odd.as_ptr().cast()) };
        for r in 0..keys.next_multiple_of(SIDE) {
            for i in (0..BLOCK).step_by(32) {
                let number = |i: usize| match r < keys {
                    // SAFETY: the tile has this row.
                    true => unsafe { _mm512_loadu_ps(tile.as_ptr().add(r * BLOCK + i)) },
                    false => _mm512_setzero_ps(),
                };
                let ([x, x2], [y, y2]) = (split(number(i)), split(number(i + 16)));
                // SAFETY: both lie within the array.
                unsafe {
                    let to = self.0.as_mut_ptr().add((r * BLOCK + i) / 2);
                    _mm512_store_si512(to.cast(), _mm512_permutex2var_epi16(x, odd, y));
                    let second = _mm512_permutex2var_epi16(x2, odd, y2);
                    _mm512_store_si512(to.add(Self::SECOND).cast(), second);
                }
            }
        }
    }
}

/// Runs code with an array for a tile's halves.
fn with_split<R>(f: impl FnOnce(&mut Split) -> R) -> R {
    // Not filled, which would take as long as the products: what is read was written before.
    f(&mut Split([MaybeUninit::uninit(); 2 * Split::SECOND]))
}

/// Bytes of a row of a tile, and of a block's pairs.
const ROW: usize = 4 * BLOCK;

impl Halves<'_> {
    /// C `[keys, BLOCK]` = rows of keys or values · a block's pairs of features.
    fn keys_by_queries(
        &self,
        x: &Packed,
        block: &Block,
        keys: &Range<usize>,
        b: &[f32],
        c: &mut [f32],
    ) {
        let m = keys.len().next_multiple_of(SIDE);
        assert!(keys.end <= x.n && b.len() >= x.d * BLOCK && c.len() >= m * BLOCK);
        let product = Product {
            a: x.rows(block.b, block.h / self.group, keys.start).cast(),
            a_row: 2 * x.d,
            a_step: 2 * SIDE,
            b: b.as_ptr().cast(),
            b_row: ROW,
            c: c.as_mut_ptr(),
            c_row: ROW,
            steps: x.d / SIDE,
            passes: 1,
            a_jump: 0,
            b_jump: 0,
            add: 0,
        };
        // SAFETY: the operands as asserted, rows padded by a tile; who made this has the unit.
        unsafe { multiply(&Tiles::new(), &product, m, BLOCK) }
    }

    /// C `[D, BLOCK]` += columns of keys or values · a tile.
    fn features_by_queries(
        &self,
        x: &Packed,
        block: &Block,
        keys: &Range<usize>,
        tile: &[f32],
        c: &mut [f32],
    ) {
        // Tiles of keys begin where they like, the columns at every 32nd: zeros go before.
        let aligned = keys.start / SIDE * SIDE;
        let before = keys.start - aligned;
        let steps = (keys.end - aligned).div_ceil(SIDE);
        assert!(keys.end <= x.n && c.len() >= x.d * BLOCK);
        with_split(|split| {
            // SAFETY: who made this has AVX-512.
            unsafe { split.by_pairs(tile, before, keys.len()) };
            let product = Product {
                a: x.columns(block.b, block.h / self.group, aligned).cast(),
                a_row: 2 * SIDE,
                a_step: 2 * SIDE * x.d,
                b: split.0.as_ptr().cast(),
                b_row: ROW,
                c: c.as_mut_ptr(),
                c_row: ROW,
                steps,
                passes: 2,
                a_jump: -((2 * SIDE * x.d * steps) as isize),
                b_jump: (4 * Split::SECOND) as isize - (steps * SIDE / 2 * ROW) as isize,
                add: 1,
            };
            // SAFETY: the operands as asserted, columns padded by a tile.
            unsafe { multiply(&Tiles::new(), &product, x.d, BLOCK) }
        });
    }

    /// C `[keys, D]` += a tile · a block's pairs of rows.
    fn keys_by_features(d: usize, keys: &Range<usize>, tile: &[f32], b: &[f32], c: &mut [f32]) {
        let m = keys.len().next_multiple_of(SIDE);
        assert!(b.len() >= d * BLOCK && c.len() >= m * d);
        with_split(|split| {
            // SAFETY: who made this has AVX-512.
            unsafe { split.by_rows(tile, keys.len()) };
            let steps = BLOCK / SIDE;
            let product = Product {
                a: split.0.as_ptr().cast(),
                a_row: 2 * BLOCK,
                a_step: 2 * SIDE,
                b: b[d / 2 * BLOCK..].as_ptr().cast(),
                b_row: 4 * d,
                c: c.as_mut_ptr(),
                c_row: 4 * d,
                steps,
                passes: 2,
                a_jump: (4 * Split::SECOND) as isize - (2 * SIDE * steps) as isize,
                b_jump: -((steps * SIDE / 2 * 4 * d) as isize),
                add: 1,
            };
            // SAFETY: the operands as asserted.
            unsafe { multiply(&Tiles::new(), &product, m, d) }
        });
    }
}

impl TileProducts<f32> for Halves<'_> {
    fn pack_queries(&self, block: &Block, to: &mut [f32]) {
        pack_block(&self.q, block, self.scale[0], to);
    }

    fn pack_grads(&self, block: &Block, to: &mut [f32]) {
        if let Some(grad_out) = &self.grad_out {
            pack_block(grad_out, block, 1.0, to);
        }
    }

    fn scores(&self, block: &Block, keys: &Range<usize>, queries: &[f32], tile: &mut [f32]) {
        self.keys_by_queries(&self.k, block, keys, queries, tile);
        let [_, factor] = self.scale;
        if factor != 1.0 {
            tile[..keys.len() * BLOCK].iter_mut().for_each(|score| *score *= factor);
        }
    }

    fn add_values(&self, block: &Block, keys: &Range<usize>, weights: &[f32], out: &mut [f32]) {
        self.features_by_queries(&self.v, block, keys, weights, out);
    }

    fn grad_of_weights(&self, block: &Block, keys: &Range<usize>, grads: &[f32], tile: &mut [f32]) {
        self.keys_by_queries(&self.v, block, keys, grads, tile);
    }

    fn add_query_grads(&self, block: &Block, keys: &Range<usize>, grad: &[f32], dq: &mut [f32]) {
        self.features_by_queries(&self.k, block, keys, grad, dq);
    }

    fn add_key_grads(&self, keys: &Range<usize>, grad: &[f32], queries: &[f32], dk: &mut [f32]) {
        Self::keys_by_features(self.k.d, keys, grad, queries, dk);
    }

    fn add_value_grads(&self, keys: &Range<usize>, weights: &[f32], grads: &[f32], dv: &mut [f32]) {
        Self::keys_by_features(self.v.d, keys, weights, grads, dv);
    }
}
