//! What the operator refuses, and why.

/// A refused argument: which one, and what is wrong with it, both shapes named.
///
/// ```
/// use regard_kernels::View;
/// let error = View::new(&[0f32; 6], [1, 1, 2, 4]).unwrap_err();
/// assert_eq!(error.to_string(), "the slice holds 6 elements, shape [1, 1, 2, 4] needs 8");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    kind: ErrorKind,
    sentence: String,
}

/// What sort of thing was wrong, for a program that goes on differently: with a smaller batch, on the CPU.
///
/// ```
/// use regard_kernels::{ErrorKind, View};
/// let error = View::new(&[0f32; 6], [1, 1, 2, 4]).unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::Argument);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// An argument does not fit: a shape, a number, an option.
    Argument,
    /// A GPU, its driver or its compiler is not there, or failed.
    Device,
    /// There is no memory left for what was asked.
    Memory,
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.sentence)
    }
}

impl std::error::Error for Error {}

impl Error {
    /// An error about an argument.
    pub(crate) fn new(sentence: impl Into<String>) -> Self {
        Self { kind: ErrorKind::Argument, sentence: sentence.into() }
    }

    /// An error of a GPU, its driver or its compiler.
    #[cfg(feature = "cuda")]
    pub(crate) fn device(sentence: impl Into<String>) -> Self {
        Self { kind: ErrorKind::Device, sentence: sentence.into() }
    }

    /// An error of memory that is full.
    #[cfg(feature = "cuda")]
    pub(crate) fn memory(sentence: impl Into<String>) -> Self {
        Self { kind: ErrorKind::Memory, sentence: sentence.into() }
    }

    /// What sort of thing was wrong.
    ///
    /// ```
    /// use regard_kernels::{Error, ErrorKind};
    /// fn advice(error: &Error) -> &'static str {
    ///     match error.kind() {
    ///         ErrorKind::Memory => "take a smaller batch",
    ///         ErrorKind::Device => "compute on the CPU",
    ///         _ => "look at the call",
    ///     }
    /// }
    /// let error = regard_kernels::View::new(&[0f32; 6], [1, 1, 2, 4]).unwrap_err();
    /// assert_eq!(advice(&error), "look at the call");
    /// ```
    pub fn kind(&self) -> ErrorKind {
        self.kind
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
