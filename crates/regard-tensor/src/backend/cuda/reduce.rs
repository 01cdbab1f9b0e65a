//! Many numbers to few: rows and columns, in parts whose order the shape fixes.

use super::{CudaBackend, at, real, whole};
use crate::backend::{Backend, Extreme};
use crate::layout::{Dims, around};
use crate::{DType, Result, Tensor, ensure};
use regard_kernels::CrossEntropy;
use regard_kernels::cuda::step::{Argument, Launch};

/// Columns and rows of a block that sums columns, as `reduce.cu` has them.
const COLUMNS: usize = 32;
const LANES_OF_ROWS: usize = 8;
/// The most of the largest numbers that are found one by one; sorting is the CPU's.
pub(super) const MOST_PICKS: usize = 64;
/// Blocks that fill a GPU.
const ENOUGH: usize = 264;

/// Rows that fill a GPU with few threads each, and how many numbers a thread has of such a row.
const MANY_ROWS: usize = 4096;
const NUMBERS_OF_A_THREAD: usize = 12;

/// Into how many parts n numbers are cut, where `blocks` are busy with one part each: each part at least so long.
fn parts(n: usize, blocks: usize, least: usize) -> usize {
    (n / least).min(ENOUGH.div_ceil(blocks.max(1))).max(1)
}

impl CudaBackend {
    pub(super) fn sum_there(&self, x: &Tensor, axis: usize) -> Result<Tensor> {
        let (outer, n, inner) = around(x.shape(), axis);
        let mut shape = x.shape().to_vec();
        shape.remove(axis);
        let shape = Dims::new(&shape)?;
        if n == 0 {
            return self.full(&shape, 0.0, x.dtype());
        }
        let tiles = inner.div_ceil(COLUMNS);
        let (parts, blocks) = match inner {
            1 => (parts(n, outer, 4096), outer),
            _ => (parts(n, outer * tiles, 16 * LANES_OF_ROWS), outer * tiles),
        };
        let cut = [outer, parts, inner];
        let to = match parts {
            1 => self.uninit(&shape, x.dtype())?,
            _ => self.uninit(&Dims::new(&cut)?, x.dtype())?,
        };
        if inner == 1 {
            let launch = Launch::of_rows(blocks * parts, n.div_ceil(parts));
            self.launch(real(x), "sum_rows", launch, &[at(x)?, at(&to)?, whole(n), whole(parts)])?;
        } else {
            let arguments = [at(x)?, at(&to)?, whole(n), whole(inner), whole(parts)];
            self.launch(real(x), "sum_columns", Launch::of_blocks(blocks * parts), &arguments)?;
        }
        if parts == 1 { Ok(to) } else { self.sum_there(&to, 1)?.reshape(&shape) }
    }

    pub(super) fn arg_extreme_there(
        &self,
        x: &Tensor,
        axis: usize,
        which: Extreme,
    ) -> Result<Tensor> {
        let (outer, n, inner) = around(x.shape(), axis);
        let mut shape = x.shape().to_vec();
        shape.remove(axis);
        let to = self.uninit(&Dims::new(&shape)?, DType::I64)?;
        let count = outer * inner;
        let smallest = Argument::Whole(i64::from(which == Extreme::Smallest));
        let arguments = [at(x)?, at(&to)?, whole(count), whole(n), whole(inner), smallest];
        if count > 0 {
            self.launch(real(x), "arg_extreme", Launch::of_warps(count), &arguments)?;
        }
        Ok(to)
    }

    pub(super) fn top_k_there(&self, x: &Tensor, axis: usize, k: usize) -> Result<Tensor> {
        let (outer, n, inner) = around(x.shape(), axis);
        let mut shape = x.shape().to_vec();
        shape[axis] = k;
        let to = self.uninit(&Dims::new(&shape)?, DType::I64)?;
        if to.numel() > 0 {
            let arguments = [at(x)?, at(&to)?, whole(n), whole(inner), whole(k)];
            self.launch(real(x), "top_k", Launch::of_rows(outer * inner, n), &arguments)?;
        }
        Ok(to)
    }

    /// By doubling: after each round a number is the sum of twice as many, in as many launches as n has bits.
    pub(super) fn cumsum_there(&self, x: &Tensor, axis: usize, reverse: bool) -> Result<Tensor> {
        let n = x.shape()[axis];
        let mut sums = self.copy(x)?;
        let mut reach = 1;
        while reach < n {
            let before = self.copy(&sums)?;
            let (from, to) = if reverse { (reach, 0) } else { (0, reach) };
            let moved = self.copy(&before.narrow(axis as isize, from, n - reach)?)?;
            let part = sums.layout.narrow(axis, to, n - reach);
            self.add_to(&mut sums, &part, &moved)?;
            reach *= 2;
        }
        Ok(sums)
    }

    pub(super) fn softmax_there(&self, x: &Tensor, log: bool) -> Result<Tensor> {
        let to = self.uninit(x.dims(), x.dtype())?;
        self.over_rows("softmax", x, &[at(x)?, at(&to)?], &[Argument::Whole(i64::from(log))])?;
        Ok(to)
    }

    pub(super) fn softmax_backward_there(
        &self,
        y: &Tensor,
        g: &Tensor,
        log: bool,
    ) -> Result<Tensor> {
        let to = self.uninit(y.dims(), y.dtype())?;
        let operands = [at(y)?, at(g)?, at(&to)?];
        self.over_rows("softmax_backward", y, &operands, &[Argument::Whole(i64::from(log))])?;
        Ok(to)
    }

    /// A kernel that has a block for each row of the last axis; its width comes between operands and the rest.
    fn over_rows(
        &self,
        kernel: &str,
        x: &Tensor,
        operands: &[Argument],
        rest: &[Argument],
    ) -> Result<()> {
        let width = x.shape().last().copied().unwrap_or(1);
        if x.numel() == 0 {
            return Ok(());
        }
        let rows = x.numel() / width;
        // Many rows fill the GPU with a warp or two each, which wait for each other less than eight do.
        let threads = if rows >= MANY_ROWS { width.div_ceil(NUMBERS_OF_A_THREAD) } else { width };
        let arguments = [operands, &[whole(width)], rest].concat();
        self.launch(real(x), kernel, Launch::of_rows(rows, threads), &arguments)
    }

    pub(super) fn layer_norm_there(
        &self,
        x: &Tensor,
        gamma: &Tensor,
        beta: &Tensor,
        eps: f64,
    ) -> Result<(Tensor, Tensor)> {
        ensure!((0.0..f64::INFINITY).contains(&eps), "eps {eps} is not a number from 0 up");
        let width = gamma.numel();
        let to = self.uninit(x.dims(), x.dtype())?;
        let saved = self.uninit(&Dims::new(&[x.numel() / width, 2])?, x.dtype())?;
        let operands = [at(x)?, at(gamma)?, at(beta)?, at(&to)?, at(&saved)?];
        self.over_rows("layer_norm", x, &operands, &[Argument::Number(eps)])?;
        Ok((to, saved))
    }

    pub(super) fn layer_norm_backward_there(
        &self,
        x: &Tensor,
        gamma: &Tensor,
        saved: &Tensor,
        g: &Tensor,
        want: [bool; 3],
    ) -> Result<[Option<Tensor>; 3]> {
        let width = gamma.numel();
        let rows = x.numel() / width;
        let of_x = match want[0] {
            true => {
                let to = self.uninit(x.dims(), x.dtype())?;
                let operands = [at(x)?, at(gamma)?, at(saved)?, at(g)?, at(&to)?];
                self.over_rows("layer_norm_backward", x, &operands, &[])?;
                Some(to)
            }
            false => None,
        };
        if !want[1] && !want[2] {
            return Ok([of_x, None, None]);
        }
        let tiles = width.div_ceil(COLUMNS);
        let parts = parts(rows, tiles, 16 * LANES_OF_ROWS);
        let shape = Dims::new(&[parts, width])?;
        let [of_gamma, of_beta] =
            [self.uninit(&shape, x.dtype())?, self.uninit(&shape, x.dtype())?];
        let operands = [at(x)?, at(saved)?, at(g)?, at(&of_gamma)?, at(&of_beta)?];
        let arguments = [&operands[..], &[whole(rows), whole(width), whole(parts)]].concat();
        let launch = Launch::of_blocks(tiles * parts);
        self.launch(real(x), "layer_norm_columns", launch, &arguments)?;
        let sum = |want: bool, parts: &Tensor| want.then(|| self.sum_there(parts, 0)).transpose();
        Ok([of_x, sum(want[1], &of_gamma)?, sum(want[2], &of_beta)?])
    }

    pub(super) fn cross_entropy_there(
        &self,
        logits: &Tensor,
        targets: &Tensor,
        rule: &CrossEntropy,
    ) -> Result<(Tensor, Tensor)> {
        let (shape, eps) = (Dims::new(&logits.shape()[..1])?, rule.label_smoothing);
        ensure!((0.0..=1.0).contains(&eps), "label_smoothing {eps} is not between 0 and 1");
        self.check_there(targets, logits.shape()[1], rule.ignore_index)?;
        // Zeros, for where there are no classes no kernel comes to a row.
        let [to, lse] =
            [self.full(&shape, 0.0, logits.dtype())?, self.full(&shape, 0.0, logits.dtype())?];
        let operands = [at(logits)?, at(targets)?, at(&to)?, at(&lse)?];
        self.over_rows("cross_entropy", logits, &operands, &ignoring(rule))?;
        Ok((to, lse))
    }

    pub(super) fn reciprocal_count_there(
        &self,
        targets: &Tensor,
        ignored: Option<i64>,
        dtype: DType,
    ) -> Result<Tensor> {
        let to = self.uninit(&Dims::new(&[])?, dtype)?;
        let ignored =
            [Argument::Whole(i64::from(ignored.is_some())), Argument::Whole(ignored.unwrap_or(0))];
        let arguments = [&[at(targets)?, at(&to)?, whole(targets.numel())][..], &ignored].concat();
        self.launch(real(&to), "reciprocal_count", Launch::of_blocks(1), &arguments)?;
        Ok(to)
    }

    pub(super) fn cross_entropy_backward_there(
        &self,
        logits: &Tensor,
        targets: &Tensor,
        rule: &CrossEntropy,
        lse: &Tensor,
        g: &Tensor,
    ) -> Result<Tensor> {
        let to = self.uninit(logits.dims(), logits.dtype())?;
        let operands = [at(logits)?, at(targets)?, at(lse)?, at(g)?, at(&to)?];
        self.over_rows("cross_entropy_backward", logits, &operands, &ignoring(rule))?;
        Ok(to)
    }
}

/// The rule as the kernels of cross entropy take it.
fn ignoring(rule: &CrossEntropy) -> [Argument; 3] {
    [
        Argument::Whole(i64::from(rule.ignore_index.is_some())),
        Argument::Whole(rule.ignore_index.unwrap_or(0)),
        Argument::Number(rule.label_smoothing),
    ]
}
