//! From one type of numbers to another.

use crate::dtype::scalars;
use crate::{DType, Result, Scalar, Tensor, ensure};
use half::{bf16, f16};

impl Tensor {
    /// The same numbers in another type. Between types of fractions a gradient flows back in the
    /// first type; whole numbers and bools carry none, so a tensor that has one is refused there. A
    /// fraction becomes the whole number toward 0, and what is not 0 becomes true. Refuses NaN, and a
    /// number out of range, where whole numbers are asked for; a fraction too large for a type of
    /// fractions becomes infinite.
    ///
    /// ```
    /// use regard_tensor::{DType, Tensor};
    /// let x = Tensor::from_vec(vec![1.5f32, -2.0], &[2])?;
    /// assert_eq!(x.to_dtype(DType::F64)?.to_vec::<f64>()?, [1.5, -2.0]);
    /// assert_eq!(x.to_dtype(DType::I64)?.to_vec::<i64>()?, [1, -2]);
    /// let error = x.to_dtype(DType::U32).unwrap_err();
    /// assert_eq!(error.to_string(), "to_dtype: u32 does not hold -2, at place 1");
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn to_dtype(&self, dtype: DType) -> Result<Tensor> {
        if self.dtype() == dtype {
            return Ok(self.clone());
        }
        let before = self.dtype();
        ensure!(
            !self.has_gradient() || dtype.is_differentiable(),
            "to_dtype: {dtype} carries no gradient; detach() the tensor of shape {:?} first",
            self.shape()
        );
        self.check_whole(dtype)?;
        let out = self.backend().cast(self, dtype)?;
        Ok(out.record("to_dtype", &[self], move |g, to| to.add(0, g.to_dtype(before)?)))
    }

    /// Refuses numbers that a type of whole numbers does not hold.
    fn check_whole(&self, dtype: DType) -> Result<()> {
        let (least, end) = match dtype {
            DType::I64 => (-2f64.powi(63), 2f64.powi(63)),
            DType::U32 => (0.0, 2f64.powi(32)),
            _ => return Ok(()),
        };
        let may_lose = match self.dtype() {
            DType::I64 => dtype == DType::U32,
            from => from.is_differentiable(),
        };
        if !may_lose {
            return Ok(());
        }
        self.check_numbers("to_dtype", dtype, |x| least <= x.trunc() && x < end)
    }

    /// Refuses numbers that become infinite in another type of fractions.
    pub(crate) fn check_range(&self, dtype: DType) -> Result<()> {
        let largest = match dtype {
            DType::F16 => f16::MAX.to_f64(),
            DType::BF16 => bf16::MAX.to_f64(),
            DType::F32 => f64::from(f32::MAX),
            _ => return Ok(()),
        };
        if self.dtype() == dtype {
            return Ok(());
        }
        self.check_numbers("to_dtype", dtype, |x| !x.is_finite() || x.abs() <= largest)
    }

    /// Refuses the first number that another type does not hold.
    fn check_numbers(&self, op: &str, dtype: DType, holds: impl Fn(f64) -> bool) -> Result<()> {
        let here = self.to_host()?.contiguous()?;
        scalars!(here.dtype(), T => {
            let numbers = here.as_slice::<T>(op)?;
            if let Some(at) = numbers.iter().position(|x| !holds(x.to_f64())) {
                // A whole number as it is, which an f64 may not hold.
                let number = match here.dtype() {
                    DType::I64 => format!("{:?}", numbers[at]),
                    _ => numbers[at].to_f64().to_string(),
                };
                ensure!(false, "{op}: {dtype} does not hold {number}, at place {at}");
            }
            Ok(())
        })
    }
}
