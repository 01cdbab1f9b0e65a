//! An error as one sentence.

/// What went wrong, with what it came of behind it, but for what it says already: the library's errors have the words of
/// the file system and of the kernels in their own.
///
/// ```
/// use anyhow::Context;
/// use regard_cli::sentence::sentence;
/// let error = regard::tensor::load("nowhere").context("no model").unwrap_err();
/// let said = sentence(&error);
/// assert!(said.starts_with("no model: nowhere: "), "{said}");
/// assert_eq!(said.matches("No such file").count(), 1, "{said}");
/// ```
pub fn sentence(error: &anyhow::Error) -> String {
    let mut said = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !said.contains(&cause) {
            said = format!("{said}: {cause}");
        }
    }
    said
}
