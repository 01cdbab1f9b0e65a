//! The parameters of an expression.

use super::Shape;
use crate::Expression;
use crate::error::{Error, ensure};
use crate::expression::Kind;

/// What a name in an expression stands for: `[1 or Hq, 1 or D]`, one number or a row as wide as a
/// head, shared by all heads or each head's own.
///
/// ```
/// use regard_kernels::Parameter;
/// let w = [0.1, 0.2, 0.3, 0.4];
/// assert_eq!(Parameter::row(&w).shape, [1, 4]);
/// // two heads of width 2
/// assert_eq!(Parameter { data: &w, shape: [2, 2] }.data.len(), 4);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameter<'a, T> {
    /// Row after row.
    pub data: &'a [T],
    /// Heads, width.
    pub shape: [usize; 2],
}

impl<'a, T> Parameter<'a, T> {
    /// One number for all heads.
    ///
    /// ```
    /// assert_eq!(regard_kernels::Parameter::number(&[2.0]).shape, [1, 1]);
    /// ```
    pub fn number(data: &'a [T; 1]) -> Self {
        Self { data, shape: [1, 1] }
    }

    /// A row for all heads.
    ///
    /// ```
    /// assert_eq!(regard_kernels::Parameter::row(&[2.0, 3.0]).shape, [1, 2]);
    /// ```
    pub fn row(data: &'a [T]) -> Self {
        Self { data, shape: [1, data.len()] }
    }

    /// A row of width 1 is a number: that stands for a row wherever one is needed.
    pub(crate) fn kind(&self) -> Kind {
        if self.shape[1] == 1 { Kind::Number } else { Kind::Row }
    }

    /// What a head has of it.
    pub(crate) fn of_head(&self, h: usize) -> &'a [T] {
        let [heads, width] = self.shape;
        &self.data[if heads == 1 { 0 } else { h * width }..][..width]
    }
}

/// Refuses parameters that are not those of the expression.
pub(super) fn check<T>(
    expression: &Expression,
    parameters: &[Parameter<T>],
    s: &Shape,
) -> Result<(), Error> {
    let names = expression.parameters();
    ensure!(
        parameters.len() >= names.len(),
        "`{expression}` has {} parameters, {} given; `{}` is missing",
        names.len(),
        parameters.len(),
        names[parameters.len()]
    );
    ensure!(
        parameters.len() == names.len(),
        "`{expression}` has {} parameters, {} given",
        names.len(),
        parameters.len()
    );
    for (name, parameter) in names.iter().zip(parameters) {
        let [heads, width] = parameter.shape;
        ensure!(
            Some(parameter.data.len()) == heads.checked_mul(width),
            "parameter `{name}` has {} elements, its shape [{heads}, {width}] needs {}",
            parameter.data.len(),
            heads.saturating_mul(width)
        );
        ensure!(
            (heads == 1 || heads == s.hq) && (width == 1 || width == s.dk),
            "parameter `{name}` has shape [{heads}, {width}]; with {} heads of width {} it is \
             [1 or {}, 1 or {}]",
            s.hq,
            s.dk,
            s.hq,
            s.dk
        );
    }
    Ok(())
}
