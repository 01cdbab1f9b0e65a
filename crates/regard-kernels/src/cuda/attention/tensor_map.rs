//! Arrays as the tensor memory accelerator copies tiles of them: panels of 64 numbers a row, permuted as
//! the tensor cores read them (`text/hopper.cu`).

use super::problem::Array;
use super::source::Stored;
use crate::cuda::refused;
use crate::error::Error;
use cudarc::driver::sys;
use std::ffi::c_void;

/// Numbers of a panel's row: 128 bytes.
const PANEL: u32 = 64;
/// Strides and widths are multiples of 16 bytes.
pub(in crate::cuda) const EVEN: usize = 8;

/// A map of `[B, H, N, D]` whose copies have so many rows.
pub(in crate::cuda) fn tensor_map(
    stored: Stored,
    array: &Array,
    [b, h, n, d]: [usize; 4],
    rows: usize,
) -> Result<sys::CUtensorMap, Error> {
    let kind = match stored {
        Stored::F16 => sys::CUtensorMapDataType::CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
        _ => sys::CUtensorMapDataType::CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
    };
    let sizes = [d, n, h, b].map(|n| n as u64);
    // The stride of an axis that has one entry is never used, but must be one.
    let stride = |axis: usize, size: usize| match size {
        1 => (d.next_multiple_of(EVEN) * 2) as u64,
        _ => array.strides[axis] as u64 * 2,
    };
    let strides = [stride(2, n), stride(1, h), stride(0, b)];
    let (shape, steps) = ([PANEL, rows as u32, 1, 1], [1u32; 4]);
    let mut map = sys::CUtensorMap_st { opaque: [0; 16] };
    // SAFETY: all that is pointed to outlives the call, and has as many entries as the rank says.
    unsafe {
        sys::cuTensorMapEncodeTiled(
            &mut map,
            kind,
            4,
            array.data as *mut c_void,
            sizes.as_ptr(),
            strides.as_ptr(),
            shape.as_ptr(),
            steps.as_ptr(),
            sys::CUtensorMapInterleave::CU_TENSOR_MAP_INTERLEAVE_NONE,
            sys::CUtensorMapSwizzle::CU_TENSOR_MAP_SWIZZLE_128B,
            sys::CUtensorMapL2promotion::CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
            sys::CUtensorMapFloatOOBfill::CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
        )
    }
    .result()
    .map_err(|e| refused("to map an array for its copies", e))?;
    Ok(map)
}
