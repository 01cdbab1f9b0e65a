//! The beginnings of files, where somebody wants to know soon what the whole would be like.

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// How many lines of a text are read where its beginning is asked for.
const LINES: usize = 20_000;
/// And how many bytes at most, uncompressed.
const BYTES: usize = 4 << 20;
/// And of how many pictures or recordings the content is, where a folder or a list has more.
const FILES: usize = 400;

thread_local! {
    static SAMPLED: RefCell<Option<Vec<SampledFile>>> = const { RefCell::new(None) };
}

/// What is counted of something that is read in part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SampledUnit {
    /// Lines of a file, from its first.
    Lines,
    /// Files of a folder or a list; of a folder, sizes are numbers of files, too.
    Files,
    /// Examples of embedded data or of a file of a fixed size each; sizes are numbers of examples, too.
    Examples,
}

/// A text of which the beginning was read, a folder or list of which some files were, or embedded data of
/// which some were made; all where it is short.
#[derive(Clone, Debug, PartialEq)]
pub struct SampledFile {
    /// The file or folder.
    pub path: PathBuf,
    /// How many lines of it are used, or how many of its files or examples.
    pub lines: usize,
    /// What is counted.
    pub unit: SampledUnit,
    /// How many of the file's bytes were read.
    pub read: u64,
    /// How many of them the lines take that are used.
    pub used: f64,
    /// How many bytes the file has.
    pub size: u64,
}

impl SampledFile {
    /// Whether some of it was not used.
    pub fn is_cut(&self) -> bool {
        self.used < self.size as f64
    }
}

/// Reads, of long texts of lines only the beginning: 20,000 lines or 4 MiB. Of pictures and recordings in a
/// folder or a list, 400 from all over it and some of every label. What belongs together line by line, such
/// as the nodes and edges of a graph, and any other file without lines is read whole. Of embedded data, some
/// are made ([`sampled_count`]). Gives which texts and folders were read, and how far.
///
/// ```
/// # let file = tempfile::NamedTempFile::new().unwrap();
/// std::fs::write(&file, "good\ta fine film\n".repeat(30_000)).unwrap();
/// let (read, files) = regard_data::sampled(|| regard_data::files::labeled(&file, None));
/// assert_eq!((read?.len(), files[0].lines), (20_000, 20_000));
/// assert!(files[0].is_cut());
/// # Ok::<(), regard_data::Error>(())
/// ```
pub fn sampled<R>(read: impl FnOnce() -> R) -> (R, Vec<SampledFile>) {
    let before = SAMPLED.replace(Some(Vec::new()));
    let read = read();
    (read, SAMPLED.replace(before).unwrap_or_default())
}

/// How many bytes of a text are read; none where it is read whole.
pub(crate) fn most_bytes() -> Option<usize> {
    SAMPLED.with_borrow(|on| on.is_some().then_some(BYTES))
}

/// How many lines of a text are read; none where it is read whole.
pub(crate) fn most_lines() -> Option<usize> {
    SAMPLED.with_borrow(|on| on.is_some().then_some(LINES))
}

/// Whether some of a file was left unread.
pub(crate) fn is_cut(path: &Path) -> bool {
    SAMPLED.with_borrow(|on| on.iter().flatten().any(|file| file.path == path && file.is_cut()))
}

/// The beginning of what was read of a text that may go on: whole lines.
pub(crate) fn cut(text: &str, goes_on: bool) -> &str {
    let end = text.match_indices('\n').nth(LINES - 1).map_or(text.len(), |(at, _)| at + 1);
    match goes_on || end < text.len() {
        false => text,
        true => whole_rows(&text[..end]),
    }
}

/// How far back the end of a row is looked for whose cells stand in quotes over several lines.
const LONGEST_ROW: usize = 1 << 16;

/// Up to the end of the last line, or of the last at which no quote is open.
fn whole_rows(text: &str) -> &str {
    let Some(last) = text.rfind('\n') else { return "" };
    let mut quotes = text[..last].matches('"').count();
    if quotes.is_multiple_of(2) {
        return &text[..=last];
    }
    let bytes = text.as_bytes();
    for at in (last.saturating_sub(LONGEST_ROW)..last).rev() {
        match bytes[at] {
            b'"' => quotes -= 1,
            b'\n' if quotes.is_multiple_of(2) => return &text[..=at],
            _ => {}
        }
    }
    // A lone quote somewhere is a character like any other.
    &text[..=last]
}

/// Some of the files of a folder or a list, where that is only sampled: from all over it, and of each group as many.
pub(crate) fn some_files<T>(path: &Path, files: Vec<T>, group: impl Fn(&T) -> String) -> Vec<T> {
    let all = files.len();
    if SAMPLED.with_borrow(|on| on.is_none()) || all <= FILES {
        return files;
    }
    let mut sizes: HashMap<String, usize> = HashMap::new();
    files.iter().for_each(|file| *sizes.entry(group(file)).or_default() += 1);
    // Of one alone, nothing could be held out.
    let each = (FILES / sizes.len()).max(2);
    let mut met: HashMap<String, usize> = HashMap::new();
    let mut some = files;
    some.retain(|file| {
        let (size, at) = (sizes[&group(file)], met.entry(group(file)).or_default());
        *at += 1;
        size <= each || *at * each / size > (*at - 1) * each / size
    });
    fewer(path, some.len(), all);
    some
}

/// Says of a folder or list that some of its files were used.
fn fewer(path: &Path, used: usize, all: usize) {
    SAMPLED.with_borrow_mut(|on| {
        let Some(files) = on else { return };
        match files.iter_mut().find(|known| known.path == path) {
            // Named for two parts, and sampled alike for both.
            Some(list) if list.unit == SampledUnit::Files => {}
            Some(list) => {
                list.used *= used as f64 / all as f64;
                (list.lines, list.unit) = (used, SampledUnit::Files);
            }
            None => files.push(SampledFile {
                path: path.into(),
                lines: used,
                unit: SampledUnit::Files,
                read: used as u64,
                used: used as f64,
                size: all as u64,
            }),
        }
    });
}

/// How many examples to make of so many that are asked for: no more than `most` where data are only sampled,
/// which is noted under a name.
///
/// ```
/// use regard_data::{sampled, sampled_count};
/// assert_eq!(sampled_count("embedded", 10_000, 400), 10_000);
/// let (made, noted) = sampled(|| sampled_count("embedded", 10_000, 400));
/// assert_eq!((made, noted[0].used), (400, 400.0));
/// ```
pub fn sampled_count(name: &str, all: usize, most: usize) -> usize {
    SAMPLED.with_borrow_mut(|on| {
        let Some(files) = on.as_mut().filter(|_| all > most) else { return all };
        if files.iter().all(|known| known.path != Path::new(name)) {
            files.push(SampledFile {
                path: name.into(),
                lines: most,
                unit: SampledUnit::Examples,
                read: most as u64,
                used: most as f64,
                size: all as u64,
            });
        }
        most
    })
}

/// Says of a file how far it was read.
pub(crate) fn note(path: &Path, lines: usize, read: u64, used: f64, size: u64) {
    let file = SampledFile { path: path.into(), lines, unit: SampledUnit::Lines, read, used, size };
    SAMPLED.with_borrow_mut(|on| {
        if let Some(files) = on
            && files.iter().all(|known| known.path != file.path)
        {
            files.push(file);
        }
    });
}
