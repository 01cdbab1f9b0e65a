//! One error: a sentence that names the operation and what does not fit.

/// What was wrong, in one sentence.
///
/// ```
/// use regard_tensor::Tensor;
/// let a = Tensor::from_vec(vec![1f32; 6], &[2, 3])?;
/// let error = a.matmul(&a).unwrap_err();
/// assert_eq!(error.to_string(), "matmul: [2, 3] and [2, 3] do not fit; the inner sizes 3 and 2 differ");
/// # Ok::<(), regard_tensor::Error>(())
/// ```
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub struct Error(String);

impl Error {
    /// An error with its sentence.
    ///
    /// ```
    /// use regard_tensor::Error;
    /// assert_eq!(Error::new("k has head width 48, q has 64").to_string(), "k has head width 48, q has 64");
    /// ```
    pub fn new(sentence: impl Into<String>) -> Self {
        Self(sentence.into())
    }

    /// The same error, with what was being done before it.
    ///
    /// ```
    /// use regard_tensor::Error;
    /// assert_eq!(Error::new("no such file").within("model.toml").to_string(), "model.toml: no such file");
    /// ```
    pub fn within(self, place: impl std::fmt::Display) -> Self {
        Self(format!("{place}: {}", self.0))
    }
}

impl From<regard_kernels::Error> for Error {
    fn from(error: regard_kernels::Error) -> Self {
        Self(error.to_string())
    }
}

/// A result whose error is [`Error`].
///
/// ```
/// fn half(n: usize) -> regard_tensor::Result<usize> {
///     if n % 2 == 0 { Ok(n / 2) } else { Err(regard_tensor::Error::new(format!("{n} is odd"))) }
/// }
/// assert_eq!(half(4)?, 2);
/// assert_eq!(half(3).unwrap_err().to_string(), "3 is odd");
/// # Ok::<(), regard_tensor::Error>(())
/// ```
pub type Result<T> = std::result::Result<T, Error>;

/// Returns an [`Error`] with a formatted sentence unless the condition holds.
///
/// ```
/// fn half(n: usize) -> regard_tensor::Result<usize> {
///     regard_tensor::ensure!(n % 2 == 0, "{n} is odd");
///     Ok(n / 2)
/// }
/// assert!(half(3).is_err());
/// ```
#[macro_export]
macro_rules! ensure {
    ($condition:expr, $($message:tt)+) => {{
        let holds: bool = $condition;
        if !holds {
            return Err($crate::Error::new(format!($($message)+)));
        }
    }};
}
