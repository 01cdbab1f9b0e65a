//! The corpora that some tests read. They are too large to be kept with the code, so those tests
//! are ignored unless asked for.

use std::path::{Path, PathBuf};

/// A corpus by its name: in the folder that the environment variable `REGARD_DATA` names, else in
/// `../shared/data` beside the checkout. A relative name begins at the checkout.
pub(crate) fn corpus(name: &str) -> PathBuf {
    let checkout = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder = std::env::var_os("REGARD_DATA").unwrap_or_else(|| "../shared/data".into());
    let path = checkout.join(folder).join(name);
    assert!(path.exists(), "there is no {}; REGARD_DATA names the data's folder", path.display());
    path
}
