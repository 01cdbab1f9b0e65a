//! Rows that cannot be read, left out and counted where somebody has asked for that.

use crate::{Error, Result, remark};
use std::cell::RefCell;

thread_local! {
    /// How many rows were left out, and what was wrong with the first; none where they are refused.
    static SKIPPED: RefCell<Option<(usize, String)>> = const { RefCell::new(None) };
}

/// Reads, and leaves out rows that would be refused where `skip` says so; how many, and what is wrong
/// with the first, is said in a [`remark`]. What is wrong with a file as a whole stays refused.
///
/// ```
/// use regard_data::{files::labeled, remarked, skipping_bad_rows};
/// # let file = tempfile::NamedTempFile::new().unwrap();
/// std::fs::write(&file, "good\ta fine film\nno tab\nbad\ta long film\n").unwrap();
/// assert!(labeled(&file, None).is_err());
/// let (read, remarks) = remarked(|| skipping_bad_rows(true, || labeled(&file, None)));
/// assert_eq!(read?.len(), 2);
/// assert!(remarks[0].starts_with("1 bad row is left out: "), "{remarks:?}");
/// # Ok::<(), regard_data::Error>(())
/// ```
pub fn skipping_bad_rows<R>(skip: bool, read: impl FnOnce() -> R) -> R {
    if !skip {
        return read();
    }
    let before = SKIPPED.replace(Some((0, String::new())));
    let read = read();
    match SKIPPED.replace(before) {
        None | Some((0, _)) => {}
        Some((1, what)) => remark(format!("1 bad row is left out: {what}")),
        Some((count, what)) => {
            remark(format!("{count} bad rows are left out; the first of them: {what}"));
        }
    }
    read
}

/// A row that was read; none where it is a bad one that is left out.
pub(crate) fn row<T>(read: Result<T>) -> Result<Option<T>> {
    match read {
        Ok(row) => Ok(Some(row)),
        Err(error @ Error::Line { .. }) => SKIPPED.with_borrow_mut(|skipped| match skipped {
            None => Err(error),
            Some((count, first)) => {
                if *count == 0 {
                    *first = error.to_string();
                }
                *count += 1;
                Ok(None)
            }
        }),
        Err(error) => Err(error),
    }
}

/// Rows that were read, without the bad ones where they are left out.
pub(crate) fn rows<T>(read: impl Iterator<Item = Result<T>>) -> Result<Vec<T>> {
    read.filter_map(|one| row(one).transpose()).collect()
}
