//! Squares of a result, 32 × 32 numbers, each the product of two panels.

use super::operand::{Factor, Operand, places};
use super::{SIDE, TILE, Tiles};
use crate::cpu::step::matmul::RawBase;
use half::bf16;
use std::arch::asm;
use std::arch::x86_64::*;

/// A square of the result.
#[repr(align(64))]
pub(super) struct Square([f32; SIDE * SIDE]);

impl Square {
    pub(super) fn new() -> Self {
        Self([0.0; SIDE * SIDE])
    }
}

/// The product of two panels of `slabs` slabs.
///
/// # Safety
/// Both panels are there, and `tiles` are this thread's.
pub(super) unsafe fn multiply<F: Factor>(
    tiles: &Tiles,
    slabs: usize,
    panels: [*const f32; 2],
    to: &mut Square,
) {
    // SAFETY: the caller's.
    unsafe {
        if F::PARTS == 1 {
            multiply_one_part(tiles, slabs, panels, to);
        } else {
            multiply_three_parts(tiles, slabs, panels, to);
        }
    }
}

/// As [`multiply`], of numbers that are bf16.
///
/// # Safety
/// As for [`multiply`].
unsafe fn multiply_one_part(
    _tiles: &Tiles,
    slabs: usize,
    [a, b]: [*const f32; 2],
    to: &mut Square,
) {
    debug_assert!(slabs > 0);
    // SAFETY: reads the panels' slabs, writes the 4 KiB of the square.
    unsafe {
        asm!(
            "tilezero tmm0", "tilezero tmm1", "tilezero tmm2", "tilezero tmm3",
            "2:",
            "tileloadd tmm4, [{a} + {row}]",
            "tileloadd tmm6, [{b} + {row}]",
            "tileloadd tmm7, [{b} + {row} + {tile}]",
            "tileloadd tmm5, [{a} + {row} + {tile}]",
            "tdpbf16ps tmm0, tmm4, tmm6",
            "tdpbf16ps tmm1, tmm4, tmm7",
            "tdpbf16ps tmm2, tmm5, tmm6",
            "tdpbf16ps tmm3, tmm5, tmm7",
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
            tile = const 4 * TILE,
            slab = const 4 * <bf16 as Factor>::SLAB,
            out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
            out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
            options(nostack),
        );
    }
}

/// As [`multiply`], of numbers that are each the sum of three bf16 numbers.
///
/// # Safety
/// As for [`multiply`].
unsafe fn multiply_three_parts(
    _tiles: &Tiles,
    slabs: usize,
    [a, b]: [*const f32; 2],
    to: &mut Square,
) {
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
            slab = const 4 * <f32 as Factor>::SLAB,
            out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
            out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
            options(nostack),
        );
    }
}

/// Where a square goes.
#[derive(Clone, Copy)]
pub(super) struct Corner {
    pub(super) to: *mut f32,
    pub(super) row: usize,
    pub(super) rows: usize,
    pub(super) columns: usize,
}

impl Corner {
    /// Prefetches its places while the square is being computed: they are rarely in a cache.
    pub(super) fn prefetch(&self) {
        for r in 0..self.rows {
            for from in (0..self.columns).step_by(16) {
                let at = self.to.wrapping_add(r * self.row + from);
                // SAFETY: a prefetch changes nothing, and every machine with the unit can.
                unsafe { asm!("prefetchw [{}]", in(reg) at, options(nostack, preserves_flags)) };
            }
        }
    }
}

#[target_feature(enable = "avx512f")]
pub(super) unsafe fn write(square: &Square, corner: Corner, base: RawBase<f32>) {
    // SAFETY: the corner has its rows and columns, the base too; columns beyond are masked.
    unsafe {
        for from in [0, 16] {
            if from >= corner.columns {
                break;
            }
            let mask = places(corner.columns - from);
            let row = match base {
                RawBase::Row(row) => _mm512_maskz_loadu_ps(mask, row.add(from)),
                _ => _mm512_setzero_ps(),
            };
            for r in 0..corner.rows {
                let to = corner.to.add(r * corner.row + from);
                let x = _mm512_load_ps(square.0.as_ptr().add(r * SIDE + from));
                let x = match base {
                    RawBase::Nothing => x,
                    RawBase::There => _mm512_add_ps(x, _mm512_maskz_loadu_ps(mask, to)),
                    RawBase::Row(_) => _mm512_add_ps(x, row),
                };
                _mm512_mask_storeu_ps(to, mask, x);
            }
        }
    }
}

#[target_feature(enable = "avx512f")]
pub(super) fn has_nan(square: &Square) -> bool {
    let mut found = 0;
    for x in square.0.as_chunks::<16>().0 {
        // SAFETY: sixteen numbers.
        let x = unsafe { _mm512_load_ps(x.as_ptr()) };
        found |= _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(x, x);
    }
    found != 0
}

/// The square of some rows of A and columns of B by plain loops.
pub(super) unsafe fn scalar_fallback<F: Factor>(
    a: &Operand<F>,
    b: &Operand<F>,
    square: &mut Square,
) {
    for i in 0..a.lines {
        for j in 0..b.lines {
            // SAFETY: the operands have these lines, of this depth.
            square.0[i * SIDE + j] = unsafe {
                let at = |x: &Operand<F>, line: usize, p: usize| {
                    (*x.from.add(line * x.line + p * x.step)).wide()
                };
                (0..a.depth).map(|p| at(a, i, p) * at(b, j, p)).sum()
            };
        }
    }
}
