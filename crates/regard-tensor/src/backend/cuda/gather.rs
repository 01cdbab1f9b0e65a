//! Picked by index, added up by index, and put side by side.

use super::{CudaBackend, at, real, whole};
use crate::backend::Backend;
use crate::layout::{Dims, around};
use crate::{Result, Tensor};
use regard_kernels::cuda::step::{Argument, Launch, StepText};

impl CudaBackend {
    /// Writes down, on the GPU, an index that is neither within 0..n nor ignored; whoever reads a number next is
    /// refused. Nothing waits for it.
    pub(super) fn check_there(&self, index: &Tensor, n: usize, ignored: Option<i64>) -> Result<()> {
        let arguments = [
            at(index)?,
            whole(index.numel()),
            whole(n),
            Argument::Whole(i64::from(ignored.is_some())),
            Argument::Whole(ignored.unwrap_or(0)),
            Argument::At(self.fault.address()),
        ];
        let launch = Launch::of_numbers(index.numel());
        self.launch(StepText::Bytes, "check_indices", launch, &arguments)
    }

    pub(super) fn rows_there(
        &self,
        table: &Tensor,
        index: &Tensor,
        shape: &Dims,
    ) -> Result<Tensor> {
        let to = self.uninit(shape, table.dtype())?;
        let (n, width) = (table.shape()[0], table.shape()[1..].iter().product());
        let sizes = [whole(to.numel()), whole(width), whole(n)];
        let arguments = [&[at(table)?, at(index)?, at(&to)?][..], &sizes].concat();
        self.launch(real(table), "rows", Launch::of_numbers(to.numel()), &arguments)?;
        Ok(to)
    }

    pub(super) fn add_rows_there(
        &self,
        rows: &Tensor,
        index: &Tensor,
        padding: Option<usize>,
        shape: &Dims,
    ) -> Result<Tensor> {
        let to = self.uninit(shape, rows.dtype())?;
        let (n, width) = (shape[0], shape[1..].iter().product());
        let padding = Argument::Whole(padding.map_or(-1, |id| id as i64));
        let sizes = [whole(index.numel()), whole(width), whole(n), padding];
        let arguments = [&[at(rows)?, at(index)?, at(&to)?][..], &sizes].concat();
        if to.numel() > 0 {
            self.launch(real(rows), "add_rows", Launch::of_warps(n), &arguments)?;
        }
        Ok(to)
    }

    pub(super) fn gather_there(&self, x: &Tensor, axis: usize, index: &Tensor) -> Result<Tensor> {
        let to = self.uninit(index.dims(), x.dtype())?;
        let (_, n, inner) = around(x.shape(), axis);
        let sizes = [whole(to.numel()), whole(n), whole(inner), whole(index.shape()[axis])];
        let arguments = [&[at(x)?, at(index)?, at(&to)?][..], &sizes].concat();
        self.launch(real(x), "gather", Launch::of_numbers(to.numel()), &arguments)?;
        Ok(to)
    }

    pub(super) fn gather_backward_there(
        &self,
        g: &Tensor,
        axis: usize,
        index: &Tensor,
        shape: &Dims,
    ) -> Result<Tensor> {
        let to = self.full(shape, 0.0, g.dtype())?;
        let (outer, n, inner) = around(shape, axis);
        let sizes = [whole(outer * inner), whole(n), whole(inner), whole(index.shape()[axis])];
        let arguments = [&[at(g)?, at(index)?, at(&to)?][..], &sizes].concat();
        self.launch(real(g), "gather_backward", Launch::of_numbers(outer * inner), &arguments)?;
        Ok(to)
    }

    pub(super) fn cat_there(&self, parts: &[Tensor], axis: usize, shape: &Dims) -> Result<Tensor> {
        let to = self.uninit(shape, parts[0].dtype())?;
        let mut start = 0;
        for part in parts {
            let size = part.shape()[axis];
            self.copy_part(part, &to, &to.layout.narrow(axis, start, size))?;
            start += size;
        }
        Ok(to)
    }
}
