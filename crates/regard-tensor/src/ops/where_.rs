//! where / select: one of two numbers, by a mask.

use crate::backend;
use crate::layout::broadcast;
use crate::ops::same_dtype;
use crate::tensor::check_held;
use crate::{DType, Result, Tensor, ensure};

fn check_mask(op: &str, mask: &Tensor) -> Result<()> {
    let (dtype, shape) = (mask.dtype(), mask.shape());
    ensure!(dtype == DType::Bool, "{op}: the mask is {dtype} {shape:?}; it is bool");
    Ok(())
}

impl Tensor {
    /// where / select (`torch.where`): `yes` where this tensor of bools is true, `no` elsewhere; all
    /// three broadcast. The gradient goes to the one chosen.
    /// Refuses a mask that is not of bools, shapes that do not broadcast, and two types.
    ///
    /// ```
    /// use regard_tensor::Tensor;
    /// let mask = Tensor::from_bools(&[true, false], &[2])?;
    /// let x = mask.where_(&Tensor::scalar(1f32)?, &Tensor::scalar(-1f32)?)?;
    /// assert_eq!(x.to_vec::<f32>()?, [1.0, -1.0]);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn where_(&self, yes: &Tensor, no: &Tensor) -> Result<Tensor> {
        check_mask("where", self)?;
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

    /// This tensor with one number wherever a mask of bools is true (`torch.masked_fill`); the mask
    /// broadcasts to the tensor's shape. No gradient passes where the number was written. Refuses a
    /// mask that would make the tensor larger, and a number that the type does not hold.
    ///
    /// ```
    /// use regard_tensor::Tensor;
    /// let x = Tensor::from([[1f32, 2.0], [3.0, 4.0]]);
    /// let mask = Tensor::from_bools(&[false, true], &[2])?;
    /// let filled = x.masked_fill(&mask, f64::NEG_INFINITY)?;
    /// assert_eq!(filled.softmax(1)?.to_vec::<f32>()?, [1.0, 0.0, 1.0, 0.0]);
    /// let error = Tensor::from([1i64, 2]).masked_fill(&mask, 0.5).unwrap_err();
    /// assert_eq!(error.to_string(), "masked_fill: i64 does not hold 0.5");
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn masked_fill(&self, mask: &Tensor, x: f64) -> Result<Tensor> {
        const OP: &str = "masked_fill";
        ensure!(
            broadcast(OP, mask.dims(), self.dims())? == *self.dims(),
            "{OP}: a mask of shape {:?} does not broadcast to {:?}",
            mask.shape(),
            self.shape()
        );
        check_held(OP, x, self.dtype())?;
        check_mask(OP, mask)?;
        let number = Tensor::full(&[], x, self.dtype())?;
        mask.where_(&number.to_device(self.device())?, self)
    }
}
