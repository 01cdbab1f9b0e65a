//! Products of matrices by cuBLASLt, where the machine has it.

use crate::cuda::device::{Cuda, Device};
use crate::cuda::library;
use crate::cuda::memory::Memory;
use crate::error::Error;
use cudarc::cublaslt::result::{self, CublasError};
use cudarc::cublaslt::sys;
use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::{Mutex, PoisonError};

/// A stack of matrices on the GPU.
#[derive(Clone, Copy, Debug)]
pub struct Operand {
    /// Where its first number is.
    pub address: u64,
    /// How far apart rows are, and columns.
    pub strides: [usize; 2],
    /// How far apart matrices are.
    pub batch: usize,
}

/// What the numbers of factors are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Factors {
    /// f32, and so are products.
    F32,
    /// f64, and so are products.
    F64,
    /// bf16; products, and what they are added to, are f32.
    Bf16,
}

/// What a product is added to.
#[derive(Clone, Copy, Debug)]
pub enum ProductBase {
    /// Nothing.
    None,
    /// The same row everywhere, at an address.
    Row(u64),
    /// As many matrices as the product has, one behind another, at an address.
    Matrices(u64),
}

/// `to[i] = a[i] · b[i] + base`, where the matrices of `to` stand one behind another.
#[derive(Clone, Copy, Debug)]
pub struct Product {
    /// What is multiplied.
    pub numbers: Factors,
    /// How many matrices.
    pub batch: usize,
    /// Rows and columns of the product, and what is summed over.
    pub sizes: [usize; 3],
    /// `[m, k]`
    pub a: Operand,
    /// `[k, n]`
    pub b: Operand,
    /// What is added.
    pub base: ProductBase,
    /// Where the product goes.
    pub to: u64,
}

/// How an operand lies, as the library has it: by columns.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Lying {
    is_transposed: bool,
    rows: usize,
    columns: usize,
    apart: usize,
    batch: usize,
}

/// What decides on an algorithm.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Kind {
    numbers: Factors,
    batch: usize,
    left: Lying,
    right: Lying,
    /// 0 none, 1 a row, 2 matrices.
    base: u8,
    /// What divides the addresses of left, right, base and product.
    alignments: [u32; 4],
}

/// The library's descriptions of a product, and its choice.
struct Plan {
    of: sys::cublasLtMatmulDesc_t,
    /// Left, right, and what is added to and written.
    layouts: [sys::cublasLtMatrixLayout_t; 3],
    algorithm: sys::cublasLtMatmulAlgo_t,
    /// Bytes that it wants beside.
    room: usize,
}

impl Drop for Plan {
    fn drop(&mut self) {
        // SAFETY: they are this plan's own, and the library copies what it needs of them when asked.
        unsafe {
            for layout in self.layouts.into_iter().filter(|layout| !layout.is_null()) {
                let _ = result::destroy_matrix_layout(layout);
            }
            let _ = result::destroy_matmul_desc(self.of);
        }
    }
}

/// The library on one GPU, and what it chose for each kind of product; none where it has no algorithm.
pub(in crate::cuda) struct Library {
    handle: sys::cublasLtHandle_t,
    plans: Mutex<HashMap<Kind, Option<Plan>>>,
}

// SAFETY: the library may be called from any thread; plans are behind a lock.
unsafe impl Send for Library {}
// SAFETY: as above.
unsafe impl Sync for Library {}

/// The most kinds of products that are remembered.
const MOST_PLANS: usize = 8192;
/// Bytes that an algorithm may want beside; what NVIDIA advises for Hopper.
const MOST_ROOM: usize = 32 << 20;

/// Whether it is the product that the library does not do.
fn is_unsupported(error: CublasError) -> bool {
    use sys::cublasStatus_t as Status;
    matches!(error.0, Status::CUBLAS_STATUS_NOT_SUPPORTED | Status::CUBLAS_STATUS_INVALID_VALUE)
}

fn refused(error: CublasError) -> Error {
    Error::device(format!("cuBLASLt refused a product: {error:?}"))
}

impl Library {
    /// The library, where the machine has it. The GPU is the thread's.
    pub(in crate::cuda) fn open() -> Result<Option<Self>, Error> {
        if !library::has_cublas_lt()? {
            return Ok(None);
        }
        let handle = result::create_handle().map_err(|error| {
            Error::device(format!(
                "cuBLASLt is there and does not begin: {error:?}; REGARD_CUBLASLT=off does without it"
            ))
        })?;
        Ok(Some(Self { handle, plans: Mutex::default() }))
    }

    /// Whether it was asked of the stream; not where it has no algorithm.
    ///
    /// # Safety
    /// As [`Cuda::product`].
    unsafe fn multiply(
        &self,
        device: &std::sync::Arc<Device>,
        product: &Product,
    ) -> Result<bool, Error> {
        let Some(kind) = Kind::of(product) else { return Ok(false) };
        let mut plans = self.plans.lock().unwrap_or_else(PoisonError::into_inner);
        if !plans.contains_key(&kind) {
            if plans.len() == MOST_PLANS {
                plans.clear();
            }
            // SAFETY: the handle lives.
            match unsafe { Plan::new(self.handle, &kind) } {
                Ok(plan) => plans.insert(kind, Some(plan)),
                Err(error) if is_unsupported(error) => plans.insert(kind, None),
                // What may go better the next time is not remembered.
                Err(_) => return Ok(false),
            };
        }
        let Some(Some(plan)) = plans.get(&kind) else { return Ok(false) };
        let room = match plan.room {
            0 => None,
            room => Some(Memory::uninit(device, room)?),
        };
        let (ones, zeros) = ((1.0f32, 1.0f64), (0.0f32, 0.0f64));
        let number = |(single, double): &(f32, f64)| -> *const c_void {
            match product.numbers {
                Factors::F64 => (&raw const *double).cast(),
                Factors::F32 | Factors::Bf16 => (&raw const *single).cast(),
            }
        };
        let (added, factor) = match product.base {
            ProductBase::Matrices(at) => (at, &ones),
            ProductBase::Row(_) | ProductBase::None => (product.to, &zeros),
        };
        // SAFETY: the plan is of this product's kind; the addresses are the caller's.
        let asked = unsafe {
            if let ProductBase::Row(at) = product.base {
                set_of(plan.of, Of::CUBLASLT_MATMUL_DESC_BIAS_POINTER, &at).map_err(refused)?;
            }
            result::matmul(
                self.handle,
                plan.of,
                number(&ones),
                number(factor),
                product.b.address as *const c_void,
                plan.layouts[0],
                product.a.address as *const c_void,
                plan.layouts[1],
                added as *const c_void,
                plan.layouts[2],
                product.to as *mut c_void,
                plan.layouts[2],
                &plan.algorithm,
                room.as_ref().map_or(0, |room| room.at) as *mut c_void,
                plan.room,
                device.stream.cast(),
            )
        };
        match asked {
            Ok(()) => Ok(true),
            Err(error) if is_unsupported(error) => Ok(false),
            Err(error) => Err(refused(error)),
        }
    }
}

impl Drop for Library {
    fn drop(&mut self) {
        self.plans.get_mut().unwrap_or_else(PoisonError::into_inner).clear();
        // SAFETY: nobody uses it any more.
        let _ = unsafe { result::destroy_handle(self.handle) };
    }
}

/// An operand of so many rows and columns that stand row by row or column by column.
fn lying(x: &Operand, [rows, columns]: [usize; 2]) -> Option<Lying> {
    let [row, column] = x.strides;
    let batch = x.batch;
    // A row of ours is a column of the library's.
    let by_rows = (column == 1 || columns == 1) && (row >= columns || rows == 1);
    if by_rows {
        let apart = row.max(columns);
        return Some(Lying { is_transposed: false, rows: columns, columns: rows, apart, batch });
    }
    let by_columns = (row == 1 || rows == 1) && (column >= rows || columns == 1);
    let apart = column.max(rows);
    by_columns.then_some(Lying { is_transposed: true, rows, columns, apart, batch })
}

/// The largest power of two, 256 at most, that divides an address.
fn alignment(address: u64) -> u32 {
    1 << address.trailing_zeros().min(8)
}

impl Kind {
    fn of(product: &Product) -> Option<Self> {
        let [m, n, k] = product.sizes;
        if product.batch == 0 || m == 0 || n == 0 || k == 0 {
            return None;
        }
        let (base, added) = match product.base {
            ProductBase::None => (0, product.to),
            ProductBase::Row(at) => (1, at),
            ProductBase::Matrices(at) => (2, at),
        };
        // The library's product is ours transposed: bᵀ · aᵀ.
        let (left, right) = (lying(&product.b, [k, n])?, lying(&product.a, [m, k])?);
        let sizes = [left.rows, left.columns, left.apart, right.rows, right.columns, right.apart];
        if sizes.iter().any(|&size| size > i32::MAX as usize) || product.batch > 65_535 {
            return None;
        }
        let alignments = [product.b.address, product.a.address, added, product.to].map(alignment);
        Some(Self { numbers: product.numbers, batch: product.batch, left, right, base, alignments })
    }

    /// Columns and rows of the product.
    fn written(&self) -> [usize; 2] {
        let of =
            |x: &Lying| if x.is_transposed { [x.columns, x.rows] } else { [x.rows, x.columns] };
        [of(&self.left)[0], of(&self.right)[1]]
    }
}

use sys::cublasLtMatmulDescAttributes_t as Of;
use sys::cublasLtMatmulPreferenceAttributes_t as Wanted;
use sys::cublasLtMatrixLayoutAttribute_t as Layout;

/// # Safety
/// The description lives, and the attribute has the value's type.
unsafe fn set_of<X>(
    of: sys::cublasLtMatmulDesc_t,
    which: Of,
    value: &X,
) -> Result<(), CublasError> {
    let value: *const X = value;
    // SAFETY: the caller's promise.
    unsafe { result::set_matmul_desc_attribute(of, which, value.cast(), size_of::<X>()) }
}

/// What an algorithm is to be like.
struct Preference(sys::cublasLtMatmulPreference_t);

impl Drop for Preference {
    fn drop(&mut self) {
        // SAFETY: it is this one's own.
        let _ = unsafe { result::destroy_matmul_pref(self.0) };
    }
}

impl Factors {
    /// What factors are, and what products.
    fn types(self) -> [sys::cudaDataType_t; 2] {
        use sys::cudaDataType_t as Type;
        match self {
            Self::F32 => [Type::CUDA_R_32F; 2],
            Self::F64 => [Type::CUDA_R_64F; 2],
            Self::Bf16 => [Type::CUDA_R_16BF, Type::CUDA_R_32F],
        }
    }
}

fn empty_layout(
    numbers: sys::cudaDataType_t,
    [rows, columns, apart, _]: [usize; 4],
) -> Result<sys::cublasLtMatrixLayout_t, CublasError> {
    result::create_matrix_layout(numbers, rows as u64, columns as u64, apart as i64)
}

/// Says how many matrices there are, and how far apart.
///
/// # Safety
/// The layout lives.
unsafe fn set_batch(
    layout: sys::cublasLtMatrixLayout_t,
    kind: &Kind,
    [.., batch]: [usize; 4],
) -> Result<(), CublasError> {
    let (count, stride) = (kind.batch as i32, batch as i64);
    // SAFETY: the layout lives; both numbers have the types of their attributes.
    unsafe {
        result::set_matrix_layout_attribute(
            layout,
            Layout::CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT,
            (&raw const count).cast(),
            size_of::<i32>(),
        )?;
        result::set_matrix_layout_attribute(
            layout,
            Layout::CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
            (&raw const stride).cast(),
            size_of::<i64>(),
        )
    }
}

impl Plan {
    /// # Safety
    /// The handle lives.
    unsafe fn new(handle: sys::cublasLtHandle_t, kind: &Kind) -> Result<Self, CublasError> {
        let compute = match kind.numbers {
            Factors::F64 => sys::cublasComputeType_t::CUBLAS_COMPUTE_64F,
            Factors::F32 | Factors::Bf16 => sys::cublasComputeType_t::CUBLAS_COMPUTE_32F,
        };
        let [factors, products] = kind.numbers.types();
        let of = result::create_matmul_desc(compute, products)?;
        // From here on the plan gives back what was made, whatever becomes of the rest.
        let layouts = [std::ptr::null_mut(); 3];
        let mut plan = Self { of, layouts, algorithm: unchosen(), room: 0 };
        // CUBLAS_OP_N is 0, CUBLAS_OP_T 1.
        let operation = |lying: &Lying| i32::from(lying.is_transposed);
        // SAFETY: the description was made above; each value has its attribute's type.
        unsafe {
            set_of(of, Of::CUBLASLT_MATMUL_DESC_TRANSA, &operation(&kind.left))?;
            set_of(of, Of::CUBLASLT_MATMUL_DESC_TRANSB, &operation(&kind.right))?;
            if kind.base == 1 {
                let bias = sys::cublasLtEpilogue_t::CUBLASLT_EPILOGUE_BIAS;
                set_of(of, Of::CUBLASLT_MATMUL_DESC_EPILOGUE, &bias)?;
            }
        }
        let operand = |x: &Lying| [x.rows, x.columns, x.apart, x.batch];
        let [rows, columns] = kind.written();
        let sizes =
            [operand(&kind.left), operand(&kind.right), [rows, columns, rows, rows * columns]];
        let types = [factors, factors, products];
        for ((to, sizes), numbers) in plan.layouts.iter_mut().zip(sizes).zip(types) {
            *to = empty_layout(numbers, sizes)?;
            // SAFETY: it was made above.
            unsafe { set_batch(*to, kind, sizes)? };
        }
        let wanted = Preference(result::create_matmul_pref()?);
        // The same numbers at every call: no sums in the order in which blocks happen to be done.
        let in_order = sys::cublasLtReductionScheme_t::CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE
            as u32
            | sys::cublasLtReductionScheme_t::CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE as u32;
        let [a, b, c, d] = kind.alignments;
        let small = [
            (Wanted::CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, in_order),
            (Wanted::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, a),
            (Wanted::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, b),
            (Wanted::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, c),
            (Wanted::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, d),
        ];
        let most = MOST_ROOM as u64;
        // SAFETY: all was made above; each value has its attribute's type.
        let chosen = unsafe {
            for (which, value) in &small {
                result::set_matmul_pref_attribute(
                    wanted.0,
                    *which,
                    (&raw const *value).cast(),
                    size_of::<u32>(),
                )?;
            }
            result::set_matmul_pref_attribute(
                wanted.0,
                Wanted::CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                (&raw const most).cast(),
                size_of::<u64>(),
            )?;
            let [left, right, written] = plan.layouts;
            result::get_matmul_algo_heuristic(handle, of, left, right, written, written, wanted.0)?
        };
        (plan.algorithm, plan.room) = (chosen.algo, chosen.workspaceSize);
        Ok(plan)
    }
}

/// No algorithm.
fn unchosen() -> sys::cublasLtMatmulAlgo_t {
    sys::cublasLtMatmulAlgo_t { data: [0; 8] }
}

impl Cuda {
    /// Asks a product of the GPU's stream, by cuBLASLt. Gives whether it could: not where the machine lacks it,
    /// and where an operand's strides are none of a matrix that stands row by row or column by column.
    ///
    /// # Safety
    /// What lies at the addresses is as large as sizes and strides say.
    #[doc(hidden)]
    pub unsafe fn product(&self, product: &Product) -> Result<bool, Error> {
        let _entered = self.device.enter()?;
        match self.device.products()? {
            // SAFETY: the caller's promise.
            Some(library) => unsafe { library.multiply(&self.device, product) },
            None => Ok(false),
        }
    }
}
