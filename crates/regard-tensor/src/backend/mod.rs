//! What computes. An operation on tensors checks its arguments, makes one call of a [`Backend`], and
//! records its gradient; it knows operations by name and never where the numbers lie.

pub(crate) mod cpu;
#[cfg(feature = "cuda")]
pub(crate) mod cuda;

use crate::layout::{Dims, Layout};
use crate::ops::SlidingWindow;
use crate::optim::UpdateRule;
use crate::{DType, Device, Precision, Result, Tensor, ensure};
use regard_kernels::{Activation, Cell, CrossEntropy};

/// A function of one number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Unary {
    Scale(f64),
    Shift(f64),
    Exp,
    Ln,
    Sqrt,
    Square,
    Abs,
    Powf(f64),
    Clamp(f64, f64),
}

/// A function of two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Binary {
    Add,
    Sub,
    Mul,
    Div,
    Maximum,
}

/// Whether two numbers stand in a relation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// The larger or the smaller of two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extreme {
    Largest,
    Smallest,
}

/// Windows over images, and how many places they have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Windows {
    pub(crate) slide: SlidingWindow,
    /// Height and width of an image.
    pub(crate) size: [usize; 2],
    pub(crate) places: [usize; 2],
}

/// A recurrent layer's inputs, contiguous.
#[derive(Clone, Debug)]
pub(crate) struct RecurrentCall {
    pub(crate) cell: Cell,
    /// `[B, T, G·H]`
    pub(crate) gates: Tensor,
    /// `[G·H, H]`
    pub(crate) w_hh: Tensor,
    /// `[G·H]`
    pub(crate) b_hh: Option<Tensor>,
    /// `[B, H]`
    pub(crate) h0: Option<Tensor>,
    /// `[B, H]`
    pub(crate) c0: Option<Tensor>,
    pub(crate) lengths: Option<Vec<usize>>,
    pub(crate) reverse: bool,
    /// In what the recurrent product is computed, where that is a product of its own.
    pub(crate) precision: Precision,
}

/// What a recurrent layer gives, and what it saves for its backward pass.
#[derive(Debug)]
pub(crate) struct RecurrentForward {
    pub(crate) out: Tensor,
    pub(crate) h: Tensor,
    pub(crate) c: Option<Tensor>,
    pub(crate) saved: Tensor,
}

/// The gradients that arrive at what a recurrent layer gave.
#[derive(Debug, Default)]
pub(crate) struct RecurrentSeeds {
    pub(crate) out: Option<Tensor>,
    pub(crate) h: Option<Tensor>,
    pub(crate) c: Option<Tensor>,
}

/// One parameter in an optimizer's step: each tensor contiguous, the first and the last with storage of
/// their own.
#[derive(Debug)]
pub(crate) struct Moved<'a> {
    pub(crate) value: &'a mut Tensor,
    pub(crate) gradient: &'a Tensor,
    pub(crate) moments: &'a mut [Tensor],
}

/// The norm that gradients are scaled down to where theirs is larger.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clip<'a> {
    pub(crate) most: f64,
    /// Theirs, as [`Backend::norm`] gives it.
    pub(crate) norm: &'a Tensor,
}

/// What a step of an optimizer does to all parameters alike.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Move<'a> {
    pub(crate) rule: UpdateRule,
    pub(crate) learning_rate: f64,
    /// Counted from 1.
    pub(crate) step: u64,
    pub(crate) clip: Option<Clip<'a>>,
}

/// The operations, by name. Arguments were checked by the caller: shapes and types fit, operands of an
/// elementwise operation are broadcast to one shape, all lie on this backend's device, none is on the
/// tape. "Contiguous" says where an argument must be; results are contiguous.
pub(crate) trait Backend: Sync {
    /// All the same number.
    fn full(&self, shape: &Dims, x: f64, dtype: DType) -> Result<Tensor>;
    /// Memory that nobody has written.
    fn uninit(&self, shape: &Dims, dtype: DType) -> Result<Tensor>;
    /// The numbers row by row, in storage of their own.
    fn copy(&self, x: &Tensor) -> Result<Tensor>;
    fn cast(&self, x: &Tensor, dtype: DType) -> Result<Tensor>;

    fn unary(&self, op: &str, f: Unary, x: &Tensor) -> Result<Tensor>;
    /// g · f'(x), where y = f(x).
    fn unary_backward(&self, f: Unary, x: &Tensor, y: &Tensor, g: &Tensor) -> Result<Tensor>;
    fn binary(&self, op: &str, f: Binary, a: &Tensor, b: &Tensor) -> Result<Tensor>;
    fn compare(&self, op: &str, f: Comparison, a: &Tensor, b: &Tensor) -> Result<Tensor>;
    /// `yes` where the mask, `no` elsewhere.
    fn select(&self, mask: &Tensor, yes: &Tensor, no: &Tensor) -> Result<Tensor>;
    /// Adds contiguous numbers to a part of a tensor that has storage of its own.
    fn add_to(&self, to: &mut Tensor, part: &Layout, x: &Tensor) -> Result<()>;
    /// Writes contiguous numbers over a part of a tensor that has storage of its own.
    fn write_to(&self, to: &mut Tensor, part: &Layout, x: &Tensor) -> Result<()>;
    /// x, each number left out with probability `share`, the others divided by 1 − share. Contiguous.
    fn dropout(&self, x: &Tensor, share: f64, key: u64) -> Result<Tensor>;
    /// f(x + bias), the bias along the last axis. Contiguous.
    fn activation(&self, x: &Tensor, bias: Option<&Tensor>, f: Activation) -> Result<Tensor>;
    /// The gradients of x and of the bias, those that are wanted. Contiguous.
    fn activation_backward(
        &self,
        x: &Tensor,
        bias: Option<&Tensor>,
        f: Activation,
        g: &Tensor,
        want: [bool; 2],
    ) -> Result<[Option<Tensor>; 2]>;

    /// The sum over an axis, which goes away. Contiguous.
    fn sum(&self, x: &Tensor, axis: usize) -> Result<Tensor>;
    /// Where the largest or the smallest number along an axis is. Contiguous.
    fn arg_extreme(&self, op: &str, x: &Tensor, axis: usize, which: Extreme) -> Result<Tensor>;
    /// Where the `k` largest numbers along an axis are, the largest first. Contiguous, k ≤ the axis.
    fn top_k(&self, x: &Tensor, axis: usize, k: usize) -> Result<Tensor>;
    /// The sums of what comes first along an axis, or of what comes last where `reverse`. Contiguous.
    fn cumsum(&self, x: &Tensor, axis: usize, reverse: bool) -> Result<Tensor>;
    /// √(Σ x²) over all numbers of all tensors: an f64 on the device, which nobody waits for. Contiguous.
    fn norm(&self, all: &[&Tensor]) -> Result<Tensor>;
    /// Along the last axis; its logarithm where `log`. Contiguous.
    fn softmax(&self, op: &str, x: &Tensor, log: bool) -> Result<Tensor>;
    fn softmax_backward(&self, y: &Tensor, g: &Tensor, log: bool) -> Result<Tensor>;
    /// Over the last axis, and what its backward pass reads: mean and 1/deviation of each row. Contiguous.
    fn layer_norm(
        &self,
        x: &Tensor,
        gamma: &Tensor,
        beta: &Tensor,
        eps: f64,
    ) -> Result<(Tensor, Tensor)>;
    /// The gradients of x, gamma and beta, those that are wanted. Contiguous.
    fn layer_norm_backward(
        &self,
        x: &Tensor,
        gamma: &Tensor,
        saved: &Tensor,
        g: &Tensor,
        want: [bool; 3],
    ) -> Result<[Option<Tensor>; 3]>;
    /// The loss of each row, and ln Σ eˣ of each, for the backward pass. Contiguous, targets i64.
    fn cross_entropy(
        &self,
        logits: &Tensor,
        targets: &Tensor,
        rule: &CrossEntropy,
    ) -> Result<(Tensor, Tensor)>;
    fn cross_entropy_backward(
        &self,
        logits: &Tensor,
        targets: &Tensor,
        rule: &CrossEntropy,
        lse: &Tensor,
        g: &Tensor,
    ) -> Result<Tensor>;

    /// One over how many targets are not ignored, or over 1 where all are: a number of a type.
    fn reciprocal_count(
        &self,
        targets: &Tensor,
        ignored: Option<i64>,
        dtype: DType,
    ) -> Result<Tensor>;
    /// Refuses an index that is not within 0..n. Contiguous i64.
    fn check_indices(&self, op: &str, index: &Tensor, n: usize) -> Result<()>;
    /// The rows of a table that indices name, in a shape. Contiguous.
    fn rows(&self, table: &Tensor, index: &Tensor, shape: &Dims) -> Result<Tensor>;
    /// Rows added up by index, but for those of `padding`. Contiguous.
    fn add_rows(
        &self,
        op: &str,
        rows: &Tensor,
        index: &Tensor,
        padding: Option<usize>,
        shape: &Dims,
    ) -> Result<Tensor>;
    /// One number for each index, along an axis. Contiguous.
    fn gather(&self, x: &Tensor, axis: usize, index: &Tensor) -> Result<Tensor>;
    /// Numbers added up where [`Backend::gather`] took them. Contiguous.
    fn gather_backward(
        &self,
        g: &Tensor,
        axis: usize,
        index: &Tensor,
        shape: &Dims,
    ) -> Result<Tensor>;
    /// Side by side along an axis, in the shape that they have together. Contiguous.
    fn cat(&self, parts: &[Tensor], axis: usize, shape: &Dims) -> Result<Tensor>;

    /// Stacks of matrices, whose leading axes are `lead` in both; any strides. Those of bf16 give f32.
    /// A precision says what of f32 may be left out; bf16 was rounded before.
    fn matmul(&self, lead: &Dims, a: &Tensor, b: &Tensor, precision: Precision) -> Result<Tensor>;
    /// x · Wᵀ + b: `[m, k]`, `[n, k]` and `[n]` → `[m, n]`; any strides, the bias contiguous. Of x and W in bf16 and a
    /// bias in f32: f32.
    fn linear(
        &self,
        x: &Tensor,
        weight: &Tensor,
        bias: &Tensor,
        precision: Precision,
    ) -> Result<Tensor>;
    /// `[B, C, H, W]` → `[B, C·k, places]`, in a shape. Contiguous.
    fn unfold(&self, images: &Tensor, windows: &Windows, shape: &Dims) -> Result<Tensor>;
    /// The other way, adding up. Contiguous.
    fn fold(&self, columns: &Tensor, windows: &Windows, shape: &Dims) -> Result<Tensor>;
    /// The layer, and what its backward pass reads where it `learns`.
    fn recurrent(&self, call: &RecurrentCall, learns: bool) -> Result<RecurrentForward>;
    /// The gradients of gates, w_hh, b_hh, h0 and c0, those that are wanted; the gates' always.
    fn recurrent_backward(
        &self,
        call: &RecurrentCall,
        out: &Tensor,
        saved: &Tensor,
        seeds: &RecurrentSeeds,
        want: [bool; 5],
    ) -> Result<[Option<Tensor>; 5]>;

    /// Moves tensors of one type toward others by a share of the way. Contiguous, the first with storage of their own.
    fn lerp(&self, all: &mut [(&mut Tensor, Tensor)], weight: f64) -> Result<()>;
    /// One step of an optimizer for parameters of one type.
    fn step(&self, all: &mut [Moved], by: &Move) -> Result<()>;
}

/// The backend of a device; refuses a GPU that is not there.
pub(crate) fn of(device: Device) -> Result<&'static dyn Backend> {
    match device {
        Device::Cpu => Ok(&cpu::CpuBackend),
        #[cfg(feature = "cuda")]
        Device::Cuda(ordinal) => Ok(cuda::open(ordinal)?),
        #[cfg(not(feature = "cuda"))]
        Device::Cuda(_) => Err(without_cuda()),
    }
}

/// Where operands meet: on the GPU that one of them lies on, or in main memory. Constants follow there
/// ([`Tensor::constant_on`]); everything else has to lie there.
pub(crate) fn meeting(operands: &[&Tensor]) -> Device {
    let mut devices = operands.iter().map(|x| x.device());
    devices.find(|&device| device != Device::Cpu).unwrap_or(Device::Cpu)
}

/// Refuses a GPU where there is no code for one.
#[cfg(not(feature = "cuda"))]
pub(crate) fn without_cuda() -> crate::Error {
    crate::Error::device("regard-tensor was compiled without its feature `cuda`")
}

/// The backend of the device that all operands lie on; refuses operands on two.
pub(crate) fn together(op: &str, operands: &[&Tensor]) -> Result<&'static dyn Backend> {
    let Some(first) = operands.first() else { return of(Device::Cpu) };
    for other in operands {
        ensure!(
            other.device() == first.device(),
            "{op}: one tensor lies on {}, another on {}; move one with to_device",
            first.device(),
            other.device()
        );
    }
    Ok(first.backend())
}
