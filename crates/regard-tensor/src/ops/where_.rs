//! where / select: one of two numbers, by a mask.

use crate::backend;
use crate::layout::broadcast;
use crate::ops::same_dtype;
use crate::{DType, Result, Tensor, ensure};

impl Tensor {
    /// where / select (`torch.where`): `yes` where this tensor of bools is true, `no` elsewhere; all
    /// three broadcast. The gradient goes to the one chosen.
    ///
    /// ```
    /// use regard_tensor::Tensor;
    /// let mask = Tensor::from_bools(&[true, false], &[2])?;
    /// let x = mask.where_(&Tensor::scalar(1f32)?, &Tensor::scalar(-1f32)?)?;
    /// assert_eq!(x.to_vec::<f32>()?, [1.0, -1.0]);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn where_(&self, yes: &Tensor, no: &Tensor) -> Result<Tensor> {
        ensure!(
            self.dtype() == DType::Bool,
            "where: the mask is {} {:?}; it is bool",
            self.dtype(),
            self.shape()
        );
        same_dtype("where", ("the tensor for true is", yes), ("the one for false", no))?;
        let device = backend::meeting(&[self, yes, no]);
        let mask = &self.constant_on(device)?;
        let (yes, no) = (&yes.constant_on(device)?, &no.constant_on(device)?);
        let shape = broadcast("where", self.dims(), &broadcast("where", yes.dims(), no.dims())?)?;
        let wide = |x: &Tensor| x.detach().broadcast_to(&shape);
        let (mask, a, b) = (wide(mask)?, wide(yes)?, wide(no)?);
        let out = backend::together("where", &[&mask, yes, no])?.select(&mask, &a, &b)?;
        let (sa, sb) = (*yes.dims(), *no.dims());
        Ok(out.record("where", &[yes, no], move |g, to| {
            let nothing = g.zero()?;
            if to.want(0) {
                to.add(0, mask.where_(&g, &nothing)?.sum_to(&sa)?)?;
            }
            if to.want(1) {
                to.add(1, mask.where_(&nothing, &g)?.sum_to(&sb)?)?;
            }
            Ok(())
        }))
    }
}
