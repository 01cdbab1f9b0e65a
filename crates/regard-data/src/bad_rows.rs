//! Rows that cannot be read, left out and counted where somebody has asked for that.

use crate::{Error, Result, remark};
use std::cell::RefCell;

/// How many were left out, and what was wrong with the first.
type Skipped = (usize, String);

thread_local! {
    /// Rows and files that were left out; none where they are refused.
    static SKIPPED: RefCell<Option<[Skipped; 2]>> = const { RefCell::new(None) };
}

/// Reads, and leaves out rows that would be refused where `skip` says so, and pictures, recordings and
/// arrays, of which each file is an example; how many, and what is wrong with the first, is said in a
/// [`remark`]. What is wrong with a file of rows as a whole stays refused.
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
    let before = SKIPPED.replace(Some(Default::default()));
    let read = read();
    let skipped = SKIPPED.replace(before).unwrap_or_default();
    for ((count, first), thing) in skipped.into_iter().zip(["row", "file"]) {
        match count {
            0 => {}
            1 => remark(format!("1 bad {thing} is left out: {first}")),
            _ => remark(format!("{count} bad {thing}s are left out; the first of them: {first}")),
        }
    }
    read
}

/// A row that was read; none where it is a bad one that is left out.
pub(crate) fn row<T>(read: Result<T>) -> Result<Option<T>> {
    match read {
        Err(error @ Error::Line { .. }) => left_out(0, error),
        read => read.map(Some),
    }
}

/// An example that was read: a row, or a file of its own, such as a picture among others; none where it
/// cannot be read and is left out.
pub fn example_or_skipped<T>(read: Result<T>) -> Result<Option<T>> {
    match read {
        Err(error @ Error::File { .. }) => left_out(1, error),
        read => row(read),
    }
}

/// Counts what is left out, or refuses it.
fn left_out<T>(kind: usize, error: Error) -> Result<Option<T>> {
    SKIPPED.with_borrow_mut(|skipped| {
        let Some(skipped) = skipped else { return Err(error) };
        let (count, first) = &mut skipped[kind];
        if *count == 0 {
            *first = error.to_string();
        }
        *count += 1;
        Ok(None)
    })
}

/// Rows that were read, without the bad ones where they are left out.
pub(crate) fn rows<T>(read: impl Iterator<Item = Result<T>>) -> Result<Vec<T>> {
    read.filter_map(|one| row(one).transpose()).collect()
}
