//! One error: a sentence that names the operation and what does not fit.

use std::sync::Arc;

/// What was wrong, in one sentence.
///
/// ```
/// use regard_tensor::Tensor;
/// let a = Tensor::from_vec(vec![1f32; 6], &[2, 3])?;
/// let error = a.matmul(&a).unwrap_err();
/// assert_eq!(error.to_string(), "matmul: [2, 3] and [2, 3] do not fit; the inner sizes 3 and 2 differ");
/// # Ok::<(), regard_tensor::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Error {
    kind: ErrorKind,
    sentence: String,
    source: Option<Arc<dyn std::error::Error + Send + Sync>>,
}

/// What sort of thing was wrong, for a program that goes on differently.
///
/// ```
/// use regard_tensor::{ErrorKind, Tensor, load};
/// assert_eq!(load("there is no such file").unwrap_err().kind(), ErrorKind::File);
/// let x = Tensor::from([1f32, 2.0]);
/// assert_eq!(x.reshape(&[3]).unwrap_err().kind(), ErrorKind::Argument);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// An argument does not fit: a shape, a type, a number, a name.
    Argument,
    /// A file cannot be read or written, or is not what it should be.
    File,
    /// A GPU, its driver or its compiler is not there, or failed.
    Device,
    /// There is no memory left for what was asked, in the machine or on the GPU.
    Memory,
}

impl Error {
    /// An error with its sentence, about an argument.
    ///
    /// ```
    /// use regard_tensor::{Error, ErrorKind};
    /// let error = Error::new("k has head width 48, q has 64");
    /// assert_eq!(error.to_string(), "k has head width 48, q has 64");
    /// assert_eq!(error.kind(), ErrorKind::Argument);
    /// ```
    pub fn new(sentence: impl Into<String>) -> Self {
        Self { kind: ErrorKind::Argument, sentence: sentence.into(), source: None }
    }

    /// An error of memory that is full.
    pub(crate) fn memory(sentence: impl Into<String>) -> Self {
        Self { kind: ErrorKind::Memory, ..Self::new(sentence) }
    }

    /// An error of a GPU that cannot be used.
    #[cfg(not(feature = "cuda"))]
    pub(crate) fn device(sentence: impl Into<String>) -> Self {
        Self { kind: ErrorKind::Device, ..Self::new(sentence) }
    }

    /// What reading or writing a file came to.
    #[cfg(feature = "files")]
    pub(crate) fn file(error: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self { kind: ErrorKind::File, sentence: error.to_string(), source: Some(Arc::new(error)) }
    }

    /// In other words, its own behind them.
    #[cfg(feature = "files")]
    pub(crate) fn reworded(self, words: &str) -> Self {
        Self { sentence: format!("{words} ({})", self.sentence), ..self }
    }

    /// The same sentence, about a file.
    #[cfg(feature = "files")]
    pub(crate) fn of_file(self) -> Self {
        Self { kind: ErrorKind::File, ..self }
    }

    /// What sort of thing was wrong.
    ///
    /// ```
    /// use regard_tensor::{ErrorKind, from_bytes};
    /// assert_eq!(from_bytes(b"no tensors").unwrap_err().kind(), ErrorKind::File);
    /// ```
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// What the operating system, a file's reader or the kernels said, where they said it: what
    /// [`source`](std::error::Error::source) gives, for a caller that sends it to another thread.
    ///
    /// ```
    /// let error = regard_tensor::load("no such file").unwrap_err();
    /// assert!(error.get_ref().is_some_and(|said| said.is::<std::io::Error>()));
    /// ```
    pub fn get_ref(&self) -> Option<&(dyn std::error::Error + Send + Sync + 'static)> {
        self.source.as_deref()
    }

    /// The same error, with what was being done before it.
    ///
    /// ```
    /// use regard_tensor::Error;
    /// assert_eq!(Error::new("no such file").within("model.toml").to_string(), "model.toml: no such file");
    /// ```
    pub fn within(self, place: impl std::fmt::Display) -> Self {
        Self { sentence: format!("{place}: {}", self.sentence), ..self }
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.sentence)
    }
}

/// The source is what the operating system, a file's reader or the kernels said. The sentence has their words
/// already, so that it says all where it is the only thing shown; a report of the whole chain says them twice.
impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(self.source.as_deref()?)
    }
}

impl From<regard_kernels::Error> for Error {
    fn from(error: regard_kernels::Error) -> Self {
        let kind = match error.kind() {
            regard_kernels::ErrorKind::Device => ErrorKind::Device,
            regard_kernels::ErrorKind::Memory => ErrorKind::Memory,
            _ => ErrorKind::Argument,
        };
        Self { kind, sentence: error.to_string(), source: Some(Arc::new(error)) }
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
