//! What is wrong with an expression, and where.

use std::fmt;

/// A refused expression: the column at which it goes wrong, counted in characters from 1, and one
/// sentence.
///
/// ```
/// use regard_kernels::Expression;
/// let error = Expression::parse("sum(w * tahn(q + k))").unwrap_err();
/// assert_eq!(error.to_string(), "column 9: `tahn` is no function; nearest is `tanh`");
/// assert_eq!(error.column, 9);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExpressionError {
    /// Counted in characters from 1.
    pub column: usize,
    /// One sentence.
    pub message: String,
}

impl ExpressionError {
    pub(super) fn new(column: usize, message: impl Into<String>) -> Self {
        Self { column, message: message.into() }
    }
}

impl fmt::Display for ExpressionError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "column {}: {}", self.column, self.message)
    }
}

impl std::error::Error for ExpressionError {}
