//! Number by number, over any strides.

use super::{CudaBackend, at, maybe_at, real, whole};
use crate::backend::{Backend, Binary, Comparison, Unary};
use crate::layout::{Dims, Layout};
use crate::{DType, Result, Scalar, Tensor};
use regard_kernels::Activation;
use regard_kernels::cuda::step::{Argument, Launch, StepText, Walk, activation_code};

/// Bytes that a thread reads or writes at once, where they lie so.
const GROUP: usize = 16;

/// A function's number in the kernels' text, and its own numbers.
fn unary_code(f: Unary) -> (i64, f64, f64) {
    match f {
        Unary::Scale(factor) => (0, factor, 0.0),
        Unary::Shift(term) => (1, term, 0.0),
        Unary::Exp => (2, 0.0, 0.0),
        Unary::Ln => (3, 0.0, 0.0),
        Unary::Sqrt => (4, 0.0, 0.0),
        Unary::Square => (5, 0.0, 0.0),
        Unary::Abs => (6, 0.0, 0.0),
        Unary::Powf(power) => (7, power, 0.0),
        Unary::Clamp(least, most) => (8, least, most),
    }
}

fn type_code(dtype: DType) -> Argument {
    Argument::Whole(match dtype {
        DType::F32 => 0,
        DType::F64 => 1,
        DType::BF16 => 2,
        DType::F16 => 3,
        DType::I64 => 4,
        DType::U32 => 5,
        DType::Bool => 6,
    })
}

/// A number as its type stores it.
fn bits(x: f64, dtype: DType) -> i64 {
    match dtype {
        DType::F32 => i64::from((x as f32).to_bits()),
        DType::F64 => x.to_bits() as i64,
        DType::BF16 => i64::from(<half::bf16 as Scalar>::from_f64(x).to_bits()),
        DType::F16 => i64::from(<half::f16 as Scalar>::from_f64(x).to_bits()),
        DType::I64 => x as i64,
        DType::U32 => i64::from(x as u32),
        DType::Bool => i64::from(x != 0.0),
    }
}

impl CudaBackend {
    /// So many numbers of a size become all the same.
    pub(super) fn fill(&self, address: u64, count: usize, size: usize, bits: i64) -> Result<()> {
        let arguments = [Argument::At(address), whole(count), Argument::Whole(bits)];
        self.launch(StepText::Bytes, &format!("fill{size}"), Launch::of_numbers(count), &arguments)
    }

    pub(super) fn full_there(&self, shape: &Dims, x: f64, dtype: DType) -> Result<Tensor> {
        let to = self.uninit(shape, dtype)?;
        self.fill(to.device_address()?, to.numel(), dtype.size(), bits(x, dtype))?;
        Ok(to)
    }

    /// Numbers from one place to another, each by its layout.
    pub(super) fn copy_part(&self, x: &Tensor, to: &Tensor, part: &Layout) -> Result<()> {
        let walk = Walk::new(x.shape(), &[x.strides(), &part.strides])?;
        let size = x.dtype().size();
        let start = to.storage_address()? + (part.offset * size) as u64;
        let is_aligned = (x.device_address()? | start).is_multiple_of(GROUP as u64);
        let (walk, size) = match walk.grouped(GROUP / size, 2).filter(|_| is_aligned) {
            Some(groups) => (groups, GROUP),
            None => (walk, size),
        };
        let arguments = [Argument::Walk(walk), at(x)?, Argument::At(start)];
        let launch = Launch::of_numbers(walk.count());
        self.launch(StepText::Bytes, &format!("copy{size}"), launch, &arguments)
    }

    pub(super) fn copy_there(&self, x: &Tensor) -> Result<Tensor> {
        let to = self.uninit(x.dims(), x.dtype())?;
        self.copy_part(x, &to, &to.layout)?;
        Ok(to)
    }

    pub(super) fn cast_there(&self, x: &Tensor, dtype: DType) -> Result<Tensor> {
        let to = self.uninit(x.dims(), dtype)?;
        let walk = Walk::new(x.shape(), &[x.strides()])?;
        let kernel = match (x.dtype(), dtype) {
            (DType::F32, DType::BF16) => Some("eights_to_bf16"),
            (DType::BF16, DType::F32) => Some("eights_to_f32"),
            _ => None,
        };
        let is_aligned = x.device_address()?.is_multiple_of(GROUP as u64);
        if let (Some(kernel), true, Some(eights)) = (kernel, is_aligned, walk.grouped(8, 1)) {
            let arguments = [Argument::Walk(eights), at(x)?, at(&to)?];
            self.launch(StepText::Bytes, kernel, Launch::of_numbers(eights.count()), &arguments)?;
            return Ok(to);
        }
        let arguments =
            [Argument::Walk(walk), at(x)?, at(&to)?, type_code(x.dtype()), type_code(dtype)];
        self.launch(StepText::Bytes, "cast", Launch::of_numbers(walk.count()), &arguments)?;
        Ok(to)
    }

    pub(super) fn unary_there(&self, f: Unary, x: &Tensor) -> Result<Tensor> {
        let to = self.uninit(x.dims(), x.dtype())?;
        let walk = Walk::new(x.shape(), &[x.strides()])?;
        let (code, p, q) = unary_code(f);
        let numbers = [Argument::Whole(code), Argument::Number(p), Argument::Number(q)];
        let arguments = [&[Argument::Walk(walk), at(x)?, at(&to)?][..], &numbers].concat();
        self.launch(real(x), "unary", Launch::of_numbers(walk.count()), &arguments)?;
        Ok(to)
    }

    pub(super) fn unary_backward_there(
        &self,
        f: Unary,
        x: &Tensor,
        y: &Tensor,
        g: &Tensor,
    ) -> Result<Tensor> {
        let to = self.uninit(x.dims(), x.dtype())?;
        let walk = Walk::new(x.shape(), &[x.strides(), y.strides(), g.strides()])?;
        let (code, p, _) = unary_code(f);
        let operands = [Argument::Walk(walk), at(x)?, at(y)?, at(g)?, at(&to)?];
        let arguments = [&operands[..], &[Argument::Whole(code), Argument::Number(p)]].concat();
        self.launch(real(x), "unary_backward", Launch::of_numbers(walk.count()), &arguments)?;
        Ok(to)
    }

    pub(super) fn binary_there(&self, f: Binary, a: &Tensor, b: &Tensor) -> Result<Tensor> {
        let code = match f {
            Binary::Add => 0,
            Binary::Sub => 1,
            Binary::Mul => 2,
            Binary::Div => 3,
            Binary::Maximum => 4,
        };
        self.of_two("binary", a, b, a.dtype(), code)
    }

    pub(super) fn compare_there(&self, f: Comparison, a: &Tensor, b: &Tensor) -> Result<Tensor> {
        let code = match f {
            Comparison::Equal => 0,
            Comparison::NotEqual => 1,
            Comparison::Less => 2,
            Comparison::LessOrEqual => 3,
            Comparison::Greater => 4,
            Comparison::GreaterOrEqual => 5,
        };
        self.of_two("compare", a, b, DType::Bool, code)
    }

    fn of_two(
        &self,
        kernel: &str,
        a: &Tensor,
        b: &Tensor,
        dtype: DType,
        code: i64,
    ) -> Result<Tensor> {
        let to = self.uninit(a.dims(), dtype)?;
        let walk = Walk::new(a.shape(), &[a.strides(), b.strides()])?;
        let arguments = [Argument::Walk(walk), at(a)?, at(b)?, at(&to)?, Argument::Whole(code)];
        self.launch(real(a), kernel, Launch::of_numbers(walk.count()), &arguments)?;
        Ok(to)
    }

    pub(super) fn select_there(&self, mask: &Tensor, yes: &Tensor, no: &Tensor) -> Result<Tensor> {
        let to = self.uninit(mask.dims(), yes.dtype())?;
        let walk = Walk::new(mask.shape(), &[mask.strides(), yes.strides(), no.strides()])?;
        let arguments = [Argument::Walk(walk), at(mask)?, at(yes)?, at(no)?, at(&to)?];
        let kernel = format!("select{}", yes.dtype().size());
        self.launch(StepText::Bytes, &kernel, Launch::of_numbers(walk.count()), &arguments)?;
        Ok(to)
    }

    pub(super) fn add_there(&self, to: &Tensor, part: &Layout, x: &Tensor) -> Result<()> {
        let walk = Walk::new(x.shape(), &[x.strides(), &part.strides])?;
        let start = to.storage_address()? + (part.offset * x.dtype().size()) as u64;
        let arguments = [Argument::Walk(walk), at(x)?, Argument::At(start)];
        self.launch(real(x), "add_to", Launch::of_numbers(walk.count()), &arguments)
    }

    pub(super) fn dropout_there(&self, x: &Tensor, share: f64, key: u64) -> Result<Tensor> {
        let to = self.uninit(x.dims(), x.dtype())?;
        let below = (share * 4_294_967_296.0) as u32;
        let arguments = [
            at(x)?,
            at(&to)?,
            whole(x.numel()),
            Argument::Whole(key as i64),
            Argument::Whole(i64::from(below)),
            Argument::Number(1.0 / (1.0 - share)),
        ];
        self.launch(real(x), "dropout", Launch::of_numbers(x.numel().div_ceil(4)), &arguments)?;
        Ok(to)
    }

    pub(super) fn activation_there(
        &self,
        x: &Tensor,
        bias: Option<&Tensor>,
        f: Activation,
    ) -> Result<Tensor> {
        let to = self.uninit(x.dims(), x.dtype())?;
        let operands = [at(x)?, maybe_at(bias)?, at(&to)?];
        self.activated("activation", x, bias, f, &operands)?;
        Ok(to)
    }

    pub(super) fn activation_backward_there(
        &self,
        x: &Tensor,
        bias: Option<&Tensor>,
        f: Activation,
        g: &Tensor,
        want: [bool; 2],
    ) -> Result<[Option<Tensor>; 2]> {
        let to = self.uninit(x.dims(), x.dtype())?;
        let operands = [at(x)?, maybe_at(bias)?, at(g)?, at(&to)?];
        self.activated("activation_backward", x, bias, f, &operands)?;
        let width = bias.map_or(1, Tensor::numel);
        let of_bias = match want[1] && bias.is_some() {
            true => Some(self.sum_there(&to.reshape(&[to.numel() / width.max(1), width])?, 0)?),
            false => None,
        };
        Ok([want[0].then_some(to), of_bias])
    }

    fn activated(
        &self,
        kernel: &str,
        x: &Tensor,
        bias: Option<&Tensor>,
        f: Activation,
        operands: &[Argument],
    ) -> Result<()> {
        let (code, p) = activation_code(f);
        let width = bias.map_or(1, Tensor::numel);
        let rest = [whole(x.numel()), whole(width), Argument::Whole(code), Argument::Number(p)];
        let arguments = [operands, &rest].concat();
        self.launch(real(x), kernel, Launch::of_numbers(x.numel()), &arguments)
    }
}
