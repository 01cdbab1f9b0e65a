//! What the operator refuses, and why.

/// A refused argument: which one, and what is wrong with it, both shapes named.
///
/// ```
/// use regard_kernels::View;
/// let error = View::new(&[0f32; 6], [1, 1, 2, 4]).unwrap_err();
/// assert_eq!(error.to_string(), "the slice holds 6 elements, shape [1, 1, 2, 4] needs 8");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error(String);

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Error {}

impl Error {
    pub(crate) fn new(sentence: impl Into<String>) -> Self {
        Self(sentence.into())
    }
}

/// `ensure!(holds, "sentence {}", x)`: returns the sentence as an [`Error`] where it does not hold.
macro_rules! ensure {
    ($holds:expr, $($sentence:tt)+) => {
        if !$holds {
            return Err(crate::Error::new(format!($($sentence)+)));
        }
    };
}
pub(crate) use ensure;
