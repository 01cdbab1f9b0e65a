//! The operations in main memory: the loops over strided numbers are here, what is fused lies in
//! `regard-kernels`.

mod convolution;
mod elementwise;
mod fused;
mod gather;
mod matmul;
mod optimizer;
mod recurrent;
mod reduce;
pub(crate) mod walk;

use super::{
    Backend, Binary, Comparison, Extreme, Move, Moved, RecurrentCall, RecurrentForward,
    RecurrentSeeds, Unary, Windows,
};
use crate::layout::{Dims, Layout};
use crate::{DType, Precision, Result, Tensor};
use regard_kernels::{Activation, CrossEntropy};

/// Main memory and the cores of this machine.
pub(crate) struct CpuBackend;

impl Backend for CpuBackend {
    fn full(&self, shape: &Dims, x: f64, dtype: DType) -> Result<Tensor> {
        elementwise::full(shape, x, dtype)
    }
    fn uninit(&self, shape: &Dims, dtype: DType) -> Result<Tensor> {
        Tensor::uninit(shape, dtype)
    }
    fn copy(&self, x: &Tensor) -> Result<Tensor> {
        elementwise::copy(x)
    }
    fn cast(&self, x: &Tensor, dtype: DType) -> Result<Tensor> {
        elementwise::cast(x, dtype)
    }
    fn unary(&self, op: &str, f: Unary, x: &Tensor) -> Result<Tensor> {
        elementwise::unary(op, f, x)
    }
    fn unary_backward(&self, f: Unary, x: &Tensor, y: &Tensor, g: &Tensor) -> Result<Tensor> {
        elementwise::unary_backward(f, x, y, g)
    }
    fn binary(&self, op: &str, f: Binary, a: &Tensor, b: &Tensor) -> Result<Tensor> {
        elementwise::binary(op, f, a, b)
    }
    fn compare(&self, op: &str, f: Comparison, a: &Tensor, b: &Tensor) -> Result<Tensor> {
        elementwise::compare(op, f, a, b)
    }
    fn select(&self, mask: &Tensor, yes: &Tensor, no: &Tensor) -> Result<Tensor> {
        elementwise::select(mask, yes, no)
    }
    fn add_to(&self, to: &mut Tensor, part: &Layout, x: &Tensor) -> Result<()> {
        elementwise::add_to(to, part, x)
    }
    fn write_to(&self, to: &mut Tensor, part: &Layout, x: &Tensor) -> Result<()> {
        elementwise::write_to(to, part, x)
    }
    fn dropout(&self, x: &Tensor, share: f64, key: u64) -> Result<Tensor> {
        fused::dropout(x, share, key)
    }
    fn activation(&self, x: &Tensor, bias: Option<&Tensor>, f: Activation) -> Result<Tensor> {
        fused::activation(x, bias, f)
    }
    fn activation_backward(
        &self,
        x: &Tensor,
        bias: Option<&Tensor>,
        f: Activation,
        g: &Tensor,
        want: [bool; 2],
    ) -> Result<[Option<Tensor>; 2]> {
        fused::activation_backward(x, bias, f, g, want)
    }
    fn sum(&self, x: &Tensor, axis: usize) -> Result<Tensor> {
        reduce::sum(x, axis)
    }
    fn arg_extreme(&self, op: &str, x: &Tensor, axis: usize, which: Extreme) -> Result<Tensor> {
        reduce::arg_extreme(op, x, axis, which)
    }
    fn top_k(&self, x: &Tensor, axis: usize, k: usize) -> Result<Tensor> {
        reduce::top_k(x, axis, k)
    }
    fn cumsum(&self, x: &Tensor, axis: usize, reverse: bool) -> Result<Tensor> {
        reduce::cumsum(x, axis, reverse)
    }
    fn norm(&self, all: &[&Tensor]) -> Result<Tensor> {
        Tensor::scalar(reduce::sum_of_squares(all)?.sqrt())
    }
    fn softmax(&self, op: &str, x: &Tensor, log: bool) -> Result<Tensor> {
        fused::softmax(op, x, log)
    }
    fn softmax_backward(&self, y: &Tensor, g: &Tensor, log: bool) -> Result<Tensor> {
        fused::softmax_backward(y, g, log)
    }
    fn layer_norm(
        &self,
        x: &Tensor,
        gamma: &Tensor,
        beta: &Tensor,
        eps: f64,
    ) -> Result<(Tensor, Tensor)> {
        fused::layer_norm(x, gamma, beta, eps)
    }
    fn layer_norm_backward(
        &self,
        x: &Tensor,
        gamma: &Tensor,
        saved: &Tensor,
        g: &Tensor,
        want: [bool; 3],
    ) -> Result<[Option<Tensor>; 3]> {
        fused::layer_norm_backward(x, gamma, saved, g, want)
    }
    fn cross_entropy(
        &self,
        logits: &Tensor,
        targets: &Tensor,
        rule: &CrossEntropy,
    ) -> Result<(Tensor, Tensor)> {
        fused::cross_entropy(logits, targets, rule)
    }
    fn cross_entropy_backward(
        &self,
        logits: &Tensor,
        targets: &Tensor,
        rule: &CrossEntropy,
        lse: &Tensor,
        g: &Tensor,
    ) -> Result<Tensor> {
        fused::cross_entropy_backward(logits, targets, rule, lse, g)
    }
    fn reciprocal_count(
        &self,
        targets: &Tensor,
        ignored: Option<i64>,
        dtype: DType,
    ) -> Result<Tensor> {
        fused::reciprocal_count(targets, ignored, dtype)
    }
    fn check_indices(&self, op: &str, index: &Tensor, n: usize) -> Result<()> {
        gather::check_indices(op, index, n)
    }
    fn rows(&self, table: &Tensor, index: &Tensor, shape: &Dims) -> Result<Tensor> {
        gather::rows(table, index, shape)
    }
    fn add_rows(
        &self,
        op: &str,
        rows: &Tensor,
        index: &Tensor,
        padding: Option<usize>,
        shape: &Dims,
    ) -> Result<Tensor> {
        gather::add_rows(op, rows, index, padding, shape)
    }
    fn gather(&self, x: &Tensor, axis: usize, index: &Tensor) -> Result<Tensor> {
        gather::gather(x, axis, index)
    }
    fn gather_backward(
        &self,
        g: &Tensor,
        axis: usize,
        index: &Tensor,
        shape: &Dims,
    ) -> Result<Tensor> {
        gather::gather_backward(g, axis, index, shape)
    }
    fn cat(&self, parts: &[Tensor], axis: usize, shape: &Dims) -> Result<Tensor> {
        gather::cat(parts, axis, shape)
    }
    fn matmul(&self, lead: &Dims, a: &Tensor, b: &Tensor, _: Precision) -> Result<Tensor> {
        matmul::matmul(lead, a, b)
    }
    fn linear(&self, x: &Tensor, weight: &Tensor, bias: &Tensor, _: Precision) -> Result<Tensor> {
        matmul::linear(x, weight, bias)
    }
    fn unfold(&self, images: &Tensor, windows: &Windows, shape: &Dims) -> Result<Tensor> {
        convolution::unfold(images, windows, shape)
    }
    fn fold(&self, columns: &Tensor, windows: &Windows, shape: &Dims) -> Result<Tensor> {
        convolution::fold(columns, windows, shape)
    }
    fn recurrent(&self, call: &RecurrentCall, learns: bool) -> Result<RecurrentForward> {
        recurrent::forward(call, learns)
    }
    fn recurrent_backward(
        &self,
        call: &RecurrentCall,
        out: &Tensor,
        saved: &Tensor,
        seeds: &RecurrentSeeds,
        want: [bool; 5],
    ) -> Result<[Option<Tensor>; 5]> {
        recurrent::backward(call, out, saved, seeds, want)
    }
    fn lerp(&self, all: &mut [(&mut Tensor, Tensor)], weight: f64) -> Result<()> {
        optimizer::lerp(all, weight)
    }
    fn step(&self, all: &mut [Moved], by: &Move) -> Result<()> {
        optimizer::step(all, by)
    }
}
