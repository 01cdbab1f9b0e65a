//! What a reader has to say of a file that it reads all the same: rows without content, a header, files
//! of another kind.

use std::cell::RefCell;

thread_local! {
    /// Whoever listens, and what it was told.
    static REMARKS: RefCell<Option<Vec<String>>> = const { RefCell::new(None) };
}

/// Says something of what is read, in a sentence. Heard where [`remarked`] is around the call, once
/// however often it is said.
pub fn remark(text: impl Into<String>) {
    let text = text.into();
    REMARKS.with_borrow_mut(|heard| match heard {
        Some(heard) if !heard.contains(&text) => heard.push(text),
        _ => {}
    });
}

/// Reads, and gives what was said of it.
///
/// ```
/// use regard_data::files::labeled;
/// use regard_data::remarked;
/// # let file = tempfile::NamedTempFile::new().unwrap();
/// std::fs::write(&file, "label\ttext\ngood\ta fine film\n").unwrap();
/// let (read, remarks) = remarked(|| labeled(&file, None));
/// assert_eq!(read?.len(), 1);
/// assert!(remarks[0].contains("line 1 names the columns (label, text)"));
/// # Ok::<(), regard_data::Error>(())
/// ```
pub fn remarked<R>(read: impl FnOnce() -> R) -> (R, Vec<String>) {
    let before = REMARKS.replace(Some(Vec::new()));
    let read = read();
    let heard = REMARKS.replace(before).unwrap_or_default();
    (read, heard)
}
