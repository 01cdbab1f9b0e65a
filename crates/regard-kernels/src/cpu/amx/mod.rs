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
//! Two kinds of numbers are special. One below 2⁻¹¹⁰ loses its last part. An infinite one, or one too
//! large to be rounded, is no sum of three and comes out as NaN: a square with a NaN in it is computed
//! again, by plain loops.

mod halves;
mod matmul;
mod operand;
mod square;

pub(super) use halves::Halves;
pub(super) use matmul::{matmul, suits};

use std::arch::asm;
use std::arch::x86_64::__cpuid_count;
use std::sync::OnceLock;

/// Lines of a panel, and numbers of depth in a slab.
const SIDE: usize = 32;
/// Numbers of 4 bytes that a tile takes.
const TILE: usize = 256;

/// Whether a machine with AVX-512 has the unit, and the system lets this process use it.
pub(super) fn is_available() -> bool {
    static AVAILABLE: OnceLock<bool> = OnceLock::new();
    *AVAILABLE.get_or_init(|| {
        const BF16: u32 = 1 << 22;
        const TILE: u32 = 1 << 24;
        const REQUEST: libc::c_long = 0x1023;
        const TILE_DATA: libc::c_long = 18;
        #[allow(unused_unsafe)] // in later versions of Rust
        // SAFETY: a processor with AVX-512 has this leaf.
        let found = unsafe { __cpuid_count(7, 0) }.edx & (BF16 | TILE) == BF16 | TILE;
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
struct Tiles(());

impl Tiles {
    /// # Safety
    /// The unit is available.
    unsafe fn new() -> Self {
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
