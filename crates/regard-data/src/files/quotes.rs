//! Quotes around cells that are closed where they should be: one that is not makes one row of many.

use crate::{Error, Result};
use std::path::Path;

/// Refuses a cell whose quote is never closed, or closed in another line in the middle of a cell.
pub(super) fn check_quotes(path: &Path, text: &str, separator: u8) -> Result<()> {
    let bytes = text.as_bytes();
    let (mut at, mut line, mut begins) = (0, 1, true);
    while at < bytes.len() {
        let byte = bytes[at];
        if begins && byte == b'"' {
            let opened = line;
            let (end, lines) = closing(&bytes[at + 1..]);
            let Some(end) = end.map(|end| at + 1 + end) else {
                let what = "a quote is opened here and never closed; a cell that begins with a quote \
                            ends with one, and a quote within is written twice";
                return Err(Error::line(path, opened, what));
            };
            line += lines;
            at = end + 1;
            let ends = bytes.get(at).is_none_or(|&next| [separator, b'\n', b'\r'].contains(&next));
            if lines > 0 && !ends {
                let what = format!(
                    "a quote is opened here and closed in the middle of a cell of line {line}, so that \
                     rows become one; a quote within a cell is written twice"
                );
                return Err(Error::line(path, opened, what));
            }
            begins = false;
            continue;
        }
        line += usize::from(byte == b'\n');
        begins = byte == separator || byte == b'\n' || byte == b'\r';
        at += 1;
    }
    Ok(())
}

/// Where the quote is that closes a cell, and how many lines end before it.
fn closing(cell: &[u8]) -> (Option<usize>, usize) {
    let (mut at, mut lines) = (0, 0);
    while at < cell.len() {
        match (cell[at], cell.get(at + 1)) {
            (b'"', Some(b'"')) => at += 1,
            (b'"', _) => return (Some(at), lines),
            (b'\n', _) => lines += 1,
            _ => {}
        }
        at += 1;
    }
    (None, lines)
}
