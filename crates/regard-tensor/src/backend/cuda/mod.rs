//! The operations on an NVIDIA GPU. What has no kernel there, for its type of numbers, is computed by the CPU
//! between two copies, and counted: [`fallbacks`].

mod convolution;
mod elementwise;
mod fallback;
mod gather;
mod matmul;
mod optimizer;
mod recurrent;
mod reduce;

pub use fallback::{downloads, fallbacks};

use super::cpu::CpuBackend;
use super::{
    Backend, Binary, Comparison, Extreme, Move, Moved, RecurrentCall, RecurrentForward,
    RecurrentSeeds, Unary, Windows,
};
use crate::layout::{Dims, Layout};
use crate::storage::Memory;
use crate::{DType, Device, Error, Precision, Result, Tensor, ensure};
use fallback::{host, host_call, maybe_host, part_of_copy};
use matmul::Base;
use regard_kernels::cuda::step::{Argument, Launch, StepText};
use regard_kernels::{Activation, CrossEntropy, Cuda, CudaBuffer};
use std::collections::BTreeMap;
use std::sync::Mutex;

/// One GPU.
pub(crate) struct CudaBackend {
    pub(crate) cuda: Cuda,
    ordinal: usize,
    /// Three whole numbers: whether an index was not within its range, the index, the range.
    fault: CudaBuffer,
}

/// The GPU of a number, opened once for the whole program.
pub(crate) fn open(ordinal: usize) -> Result<&'static CudaBackend> {
    static OPEN: Mutex<BTreeMap<usize, &'static CudaBackend>> = Mutex::new(BTreeMap::new());
    let mut open = OPEN.lock().unwrap_or_else(|e| e.into_inner());
    if let Some(&backend) = open.get(&ordinal) {
        return Ok(backend);
    }
    let cuda = Cuda::new(ordinal)?;
    let fault = cuda.upload(&[0; 3 * size_of::<i64>()])?;
    // Tensors name it without counting, so it stays until the program ends.
    let backend: &CudaBackend = Box::leak(Box::new(CudaBackend { cuda, ordinal, fault }));
    open.insert(ordinal, backend);
    Ok(backend)
}

/// The text that computes in a type; none where numbers are not computed in.
fn text(dtype: DType) -> Option<StepText> {
    match dtype {
        DType::F32 => Some(StepText::F32),
        DType::F64 => Some(StepText::F64),
        _ => None,
    }
}

/// As [`text`], of a tensor that the caller knows to be computed in.
fn real(x: &Tensor) -> StepText {
    text(x.dtype()).unwrap_or(StepText::F64)
}

/// Whether products are computed of numbers of its type.
fn is_factor(x: &Tensor) -> bool {
    text(x.dtype()).is_some() || x.dtype() == DType::BF16
}

/// A whole number as a kernel takes it.
fn whole(x: usize) -> Argument {
    Argument::Whole(x as i64)
}

impl CudaBackend {
    pub(crate) fn device(&self) -> Device {
        Device::Cuda(self.ordinal)
    }

    /// The GPU as tensors name it.
    fn forever(&self) -> Result<&'static Self> {
        open(self.ordinal)
    }

    /// A copy of a contiguous tensor of the host's.
    pub(crate) fn upload(&'static self, x: &Tensor) -> Result<Tensor> {
        let buffer = self.cuda.upload(x.bytes()?)?;
        Tensor::of_memory(Memory::Cuda(buffer, self), x.dtype(), x.shape())
    }

    /// Copies bytes back; refuses where an operation before was given an index that it does not have.
    pub(crate) fn download(&self, buffer: &CudaBuffer, from: usize, to: &mut [u8]) -> Result<()> {
        self.count_download();
        buffer.download(from, to)?;
        let mut fault = [0i64; 3];
        self.fault.download(0, bytemuck::cast_slice_mut(&mut fault))?;
        let [any, index, n] = fault;
        if any != 0 {
            self.fill(self.fault.address(), 3, 8, 0)?;
            ensure!(
                false,
                "index {index} is not within 0..{n}, in an operation on {} before this",
                self.device()
            );
        }
        Ok(())
    }

    /// Asks a kernel of the GPU.
    fn launch(
        &self,
        text: StepText,
        kernel: &str,
        launch: Launch,
        arguments: &[Argument],
    ) -> Result<()> {
        // SAFETY: the callers, all in this folder, name the kernel's arguments and tensors of the sizes that it
        // walks.
        Ok(unsafe { self.cuda.launch_step(text, kernel, launch, arguments) }?)
    }
}

/// Where a tensor's numbers begin.
fn at(x: &Tensor) -> Result<Argument> {
    x.device_address().map(Argument::At)
}

/// As [`at`], of a tensor that may not be there.
fn maybe_at(x: Option<&Tensor>) -> Result<Argument> {
    x.map_or(Ok(Argument::At(0)), at)
}

impl Backend for CudaBackend {
    fn full(&self, shape: &Dims, x: f64, dtype: DType) -> Result<Tensor> {
        self.full_there(shape, x, dtype)
    }
    fn uninit(&self, shape: &Dims, dtype: DType) -> Result<Tensor> {
        let count = shape.iter().product::<usize>();
        let buffer = self.cuda.uninit(count * dtype.size())?;
        Tensor::of_memory(Memory::Cuda(buffer, self.forever()?), dtype, shape)
    }
    fn copy(&self, x: &Tensor) -> Result<Tensor> {
        self.copy_there(x)
    }
    fn cast(&self, x: &Tensor, dtype: DType) -> Result<Tensor> {
        self.cast_there(x, dtype)
    }
    fn unary(&self, op: &str, f: Unary, x: &Tensor) -> Result<Tensor> {
        if text(x.dtype()).is_some() {
            return self.unary_there(f, x);
        }
        self.by_cpu("unary", |cpu| cpu.unary(op, f, &host(x)?))
    }
    fn unary_backward(&self, f: Unary, x: &Tensor, y: &Tensor, g: &Tensor) -> Result<Tensor> {
        if text(x.dtype()).is_some() {
            return self.unary_backward_there(f, x, y, g);
        }
        self.by_cpu("unary_backward", |cpu| cpu.unary_backward(f, &host(x)?, &host(y)?, &host(g)?))
    }
    fn binary(&self, op: &str, f: Binary, a: &Tensor, b: &Tensor) -> Result<Tensor> {
        if text(a.dtype()).is_some() {
            return self.binary_there(f, a, b);
        }
        self.by_cpu("binary", |cpu| cpu.binary(op, f, &host(a)?, &host(b)?))
    }
    fn compare(&self, op: &str, f: Comparison, a: &Tensor, b: &Tensor) -> Result<Tensor> {
        if text(a.dtype()).is_some() {
            return self.compare_there(f, a, b);
        }
        self.by_cpu("compare", |cpu| cpu.compare(op, f, &host(a)?, &host(b)?))
    }
    fn select(&self, mask: &Tensor, yes: &Tensor, no: &Tensor) -> Result<Tensor> {
        self.select_there(mask, yes, no)
    }
    fn add_to(&self, to: &mut Tensor, part: &Layout, x: &Tensor) -> Result<()> {
        if text(x.dtype()).is_some() {
            return self.add_there(to, part, x);
        }
        let part = part_of_copy(to, part);
        self.change_by_cpu("add_to", to, |cpu, to| cpu.add_to(to, &part, &host(x)?))
    }
    fn write_to(&self, to: &mut Tensor, part: &Layout, x: &Tensor) -> Result<()> {
        self.copy_part(x, to, part)
    }
    fn dropout(&self, x: &Tensor, share: f64, key: u64) -> Result<Tensor> {
        if text(x.dtype()).is_some() {
            return self.dropout_there(x, share, key);
        }
        self.by_cpu("dropout", |cpu| cpu.dropout(&host(x)?, share, key))
    }
    fn activation(&self, x: &Tensor, bias: Option<&Tensor>, f: Activation) -> Result<Tensor> {
        if text(x.dtype()).is_some() {
            return self.activation_there(x, bias, f);
        }
        self.by_cpu("activation", |cpu| cpu.activation(&host(x)?, maybe_host(bias)?.as_ref(), f))
    }
    fn activation_backward(
        &self,
        x: &Tensor,
        bias: Option<&Tensor>,
        f: Activation,
        g: &Tensor,
        want: [bool; 2],
    ) -> Result<[Option<Tensor>; 2]> {
        if text(x.dtype()).is_some() {
            return self.activation_backward_there(x, bias, f, g, want);
        }
        self.some_by_cpu("activation_backward", |cpu| {
            cpu.activation_backward(&host(x)?, maybe_host(bias)?.as_ref(), f, &host(g)?, want)
        })
    }
    fn sum(&self, x: &Tensor, axis: usize) -> Result<Tensor> {
        if text(x.dtype()).is_some() {
            return self.sum_there(x, axis);
        }
        self.by_cpu("sum", |cpu| cpu.sum(&host(x)?, axis))
    }
    fn arg_extreme(&self, op: &str, x: &Tensor, axis: usize, which: Extreme) -> Result<Tensor> {
        if text(x.dtype()).is_some() {
            return self.arg_extreme_there(x, axis, which);
        }
        self.by_cpu("arg_extreme", |cpu| cpu.arg_extreme(op, &host(x)?, axis, which))
    }
    fn top_k(&self, x: &Tensor, axis: usize, k: usize) -> Result<Tensor> {
        if text(x.dtype()).is_some() && k <= reduce::MOST_PICKS {
            return self.top_k_there(x, axis, k);
        }
        self.by_cpu("top_k", |cpu| cpu.top_k(&host(x)?, axis, k))
    }
    fn cumsum(&self, x: &Tensor, axis: usize, reverse: bool) -> Result<Tensor> {
        if text(x.dtype()).is_some() {
            return self.cumsum_there(x, axis, reverse);
        }
        self.by_cpu("cumsum", |cpu| cpu.cumsum(&host(x)?, axis, reverse))
    }
    fn norm(&self, all: &[&Tensor]) -> Result<Tensor> {
        if all.iter().all(|x| text(x.dtype()).is_some()) {
            return self.norm_there(all);
        }
        self.count("norm");
        let all = all.iter().map(|x| host(x)).collect::<Result<Vec<_>>>()?;
        self.back(&CpuBackend.norm(&all.iter().collect::<Vec<_>>())?)
    }
    fn softmax(&self, op: &str, x: &Tensor, log: bool) -> Result<Tensor> {
        if text(x.dtype()).is_some() {
            return self.softmax_there(x, log);
        }
        self.by_cpu("softmax", |cpu| cpu.softmax(op, &host(x)?, log))
    }
    fn softmax_backward(&self, y: &Tensor, g: &Tensor, log: bool) -> Result<Tensor> {
        if text(y.dtype()).is_some() {
            return self.softmax_backward_there(y, g, log);
        }
        self.by_cpu("softmax_backward", |cpu| cpu.softmax_backward(&host(y)?, &host(g)?, log))
    }
    fn layer_norm(
        &self,
        x: &Tensor,
        gamma: &Tensor,
        beta: &Tensor,
        eps: f64,
    ) -> Result<(Tensor, Tensor)> {
        if text(x.dtype()).is_some() {
            return self.layer_norm_there(x, gamma, beta, eps);
        }
        self.two_by_cpu("layer_norm", |cpu| {
            cpu.layer_norm(&host(x)?, &host(gamma)?, &host(beta)?, eps)
        })
    }
    fn layer_norm_backward(
        &self,
        x: &Tensor,
        gamma: &Tensor,
        saved: &Tensor,
        g: &Tensor,
        want: [bool; 3],
    ) -> Result<[Option<Tensor>; 3]> {
        if text(x.dtype()).is_some() {
            return self.layer_norm_backward_there(x, gamma, saved, g, want);
        }
        self.some_by_cpu("layer_norm_backward", |cpu| {
            cpu.layer_norm_backward(&host(x)?, &host(gamma)?, &host(saved)?, &host(g)?, want)
        })
    }
    fn cross_entropy(
        &self,
        logits: &Tensor,
        targets: &Tensor,
        rule: &CrossEntropy,
    ) -> Result<(Tensor, Tensor)> {
        if text(logits.dtype()).is_some() {
            return self.cross_entropy_there(logits, targets, rule);
        }
        self.two_by_cpu("cross_entropy", |cpu| {
            cpu.cross_entropy(&host(logits)?, &host(targets)?, rule)
        })
    }
    fn cross_entropy_backward(
        &self,
        logits: &Tensor,
        targets: &Tensor,
        rule: &CrossEntropy,
        lse: &Tensor,
        g: &Tensor,
    ) -> Result<Tensor> {
        if text(logits.dtype()).is_some() {
            return self.cross_entropy_backward_there(logits, targets, rule, lse, g);
        }
        self.by_cpu("cross_entropy_backward", |cpu| {
            let (logits, targets) = (host(logits)?, host(targets)?);
            cpu.cross_entropy_backward(&logits, &targets, rule, &host(lse)?, &host(g)?)
        })
    }
    fn reciprocal_count(
        &self,
        targets: &Tensor,
        ignored: Option<i64>,
        dtype: DType,
    ) -> Result<Tensor> {
        if text(dtype).is_some() {
            return self.reciprocal_count_there(targets, ignored, dtype);
        }
        self.by_cpu("reciprocal_count", |cpu| cpu.reciprocal_count(&host(targets)?, ignored, dtype))
    }
    fn check_indices(&self, op: &str, index: &Tensor, n: usize) -> Result<()> {
        // Found when something is read: the operation's name is not known then.
        let _ = op;
        self.check_there(index, n, None)
    }
    fn rows(&self, table: &Tensor, index: &Tensor, shape: &Dims) -> Result<Tensor> {
        if text(table.dtype()).is_some() {
            return self.rows_there(table, index, shape);
        }
        self.by_cpu("rows", |cpu| cpu.rows(&host(table)?, &host(index)?, shape))
    }
    fn add_rows(
        &self,
        op: &str,
        rows: &Tensor,
        index: &Tensor,
        padding: Option<usize>,
        shape: &Dims,
    ) -> Result<Tensor> {
        if text(rows.dtype()).is_some() {
            return self.add_rows_there(rows, index, padding, shape);
        }
        self.by_cpu("add_rows", |cpu| cpu.add_rows(op, &host(rows)?, &host(index)?, padding, shape))
    }
    fn gather(&self, x: &Tensor, axis: usize, index: &Tensor) -> Result<Tensor> {
        if text(x.dtype()).is_some() {
            return self.gather_there(x, axis, index);
        }
        self.by_cpu("gather", |cpu| cpu.gather(&host(x)?, axis, &host(index)?))
    }
    fn gather_backward(
        &self,
        g: &Tensor,
        axis: usize,
        index: &Tensor,
        shape: &Dims,
    ) -> Result<Tensor> {
        if text(g.dtype()).is_some() {
            return self.gather_backward_there(g, axis, index, shape);
        }
        self.by_cpu("gather_backward", |cpu| {
            cpu.gather_backward(&host(g)?, axis, &host(index)?, shape)
        })
    }
    fn cat(&self, parts: &[Tensor], axis: usize, shape: &Dims) -> Result<Tensor> {
        self.cat_there(parts, axis, shape)
    }
    fn matmul(&self, lead: &Dims, a: &Tensor, b: &Tensor, precision: Precision) -> Result<Tensor> {
        if is_factor(a) {
            return self.product(lead, a, b, Base::None, precision);
        }
        self.by_cpu("matmul", |cpu| cpu.matmul(lead, &host(a)?, &host(b)?, precision))
    }
    fn linear(
        &self,
        x: &Tensor,
        weight: &Tensor,
        bias: &Tensor,
        precision: Precision,
    ) -> Result<Tensor> {
        if is_factor(x) {
            let turned = weight.transpose(0, 1)?;
            return self.product(&Dims::new(&[])?, x, &turned, Base::Row(bias), precision);
        }
        self.by_cpu("linear", |cpu| cpu.linear(&host(x)?, &host(weight)?, &host(bias)?, precision))
    }
    fn unfold(&self, images: &Tensor, windows: &Windows, shape: &Dims) -> Result<Tensor> {
        if text(images.dtype()).is_some() {
            return self.windows_there("unfold", images, windows, shape);
        }
        self.by_cpu("unfold", |cpu| cpu.unfold(&host(images)?, windows, shape))
    }
    fn fold(&self, columns: &Tensor, windows: &Windows, shape: &Dims) -> Result<Tensor> {
        if text(columns.dtype()).is_some() {
            return self.windows_there("fold", columns, windows, shape);
        }
        self.by_cpu("fold", |cpu| cpu.fold(&host(columns)?, windows, shape))
    }
    fn recurrent(&self, call: &RecurrentCall, learns: bool) -> Result<RecurrentForward> {
        if text(call.gates.dtype()).is_some() {
            return self.recurrent_there(call, learns);
        }
        self.count("recurrent");
        let RecurrentForward { out, h, c, saved } =
            CpuBackend.recurrent(&host_call(call)?, learns)?;
        Ok(RecurrentForward {
            out: self.back(&out)?,
            h: self.back(&h)?,
            c: c.map(|c| self.back(&c)).transpose()?,
            saved: self.back(&saved)?,
        })
    }
    fn recurrent_backward(
        &self,
        call: &RecurrentCall,
        out: &Tensor,
        saved: &Tensor,
        seeds: &RecurrentSeeds,
        want: [bool; 5],
    ) -> Result<[Option<Tensor>; 5]> {
        if text(call.gates.dtype()).is_some() {
            return self.recurrent_backward_there(call, saved, seeds, want);
        }
        self.some_by_cpu("recurrent_backward", |cpu| {
            let seeds = RecurrentSeeds {
                out: maybe_host(seeds.out.as_ref())?,
                h: maybe_host(seeds.h.as_ref())?,
                c: maybe_host(seeds.c.as_ref())?,
            };
            cpu.recurrent_backward(&host_call(call)?, &host(out)?, &host(saved)?, &seeds, want)
        })
    }
    fn lerp(&self, all: &mut [(&mut Tensor, Tensor)], weight: f64) -> Result<()> {
        self.lerp_there(all, weight)
    }
    fn step(&self, all: &mut [Moved], by: &Move) -> Result<()> {
        self.step_there(all, by)
    }
}

/// Refuses to read numbers where they do not lie.
pub(crate) fn elsewhere(op: &str, device: Device) -> Error {
    Error::new(format!("{op}: the numbers lie on {device}; copy them with to_device(Device::Cpu)"))
}
