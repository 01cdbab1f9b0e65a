//! What came of loading parameters.

use crate::{Error, Result};

/// What [`Parameters::load_renamed`](crate::Parameters::load_renamed) did.
///
/// ```
/// use regard_tensor::{DType, Init, Parameters};
/// let parameters = Parameters::new(DType::F32, 1);
/// parameters.parameter("w", &[2], Init::Zeros)?;
/// let report = parameters.set_renamed(&parameters.tensors(), |name| Some(name.into()))?;
/// assert_eq!(report.loaded, ["w"]);
/// report.complete()?;
/// # Ok::<(), regard_tensor::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoadReport {
    /// Parameters that have a value from what was given, by their full names.
    pub loaded: Vec<String>,
    /// Parameters that kept the value they had.
    pub missing: Vec<String>,
    /// Tensors that no parameter is there for, by the names they were given under.
    pub unknown: Vec<String>,
    /// Tensors that the renaming left out.
    pub left_out: Vec<String>,
}

impl LoadReport {
    /// Refuses a missing parameter and an unknown tensor, with the first few names of each.
    ///
    /// ```
    /// use regard_tensor::{DType, Init, Parameters};
    /// let parameters = Parameters::new(DType::F32, 1);
    /// parameters.parameter("w", &[2], Init::Zeros)?;
    /// let report = parameters.set_renamed(&Default::default(), |name| Some(name.into()))?;
    /// let error = report.complete().unwrap_err();
    /// assert_eq!(error.to_string(), "nothing was given for parameter \"w\"");
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn complete(&self) -> Result<()> {
        let of = |what: &str, names: &[String]| {
            let shown: Vec<String> = names.iter().take(4).map(|name| format!("{name:?}")).collect();
            let more = names.len().saturating_sub(4);
            let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
            (!names.is_empty()).then(|| format!("{what} {}{rest}", shown.join(", ")))
        };
        let missing = of("nothing was given for parameter", &self.missing);
        let unknown = of("the model has no place for", &self.unknown);
        let wrong: Vec<String> = missing.into_iter().chain(unknown).collect();
        if wrong.is_empty() { Ok(()) } else { Err(Error::new(wrong.join("; "))) }
    }
}
