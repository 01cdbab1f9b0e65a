//! IDX: the format of MNIST and Fashion-MNIST. Zero, zero, a byte for the kind of number, a byte
//! for how many axes, each axis as four bytes (the most significant first), then the numbers.

use super::Images;
use super::opened::opened;
use crate::{Error, Result};
use std::io::Read;
use std::path::Path;

/// The kind of number that is read: unsigned bytes.
const UNSIGNED_BYTES: u8 = 8;

/// A header that promises more than this is refused before anything is read.
const MOST_BYTES: usize = 1 << 32;

/// Bytes in a shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Idx {
    /// The length of each axis: `[N, height, width]` for images, `[N]` for labels.
    pub shape: Vec<usize>,
    /// The values, the last axis fastest.
    pub values: Vec<u8>,
}

impl Idx {
    /// Reads a file, plain or gzip. Refuses one that holds more or less than its header says.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// let path = folder.path().join("labels.idx");
    /// std::fs::write(&path, [0, 0, 8, 1, 0, 0, 0, 2, 7, 9]).unwrap();
    /// let labels = regard_data::files::Idx::read(&path)?;
    /// assert_eq!((labels.shape, labels.values), (vec![2], vec![7, 9]));
    /// # Ok::<(), regard_data::Error>(())
    /// ```
    pub fn read(path: &Path) -> Result<Self> {
        let mut file = opened(path)?;
        let failed = |error| Error::file(path, error);
        let header = take(&mut file, 4).map_err(failed)?;
        let [0, 0, kind, axes] = header[..] else {
            return Err(Error::file(path, "not an IDX file: it does not begin with two zeros"));
        };
        if kind != UNSIGNED_BYTES {
            let what = format!("its numbers are of kind {kind}; only unsigned bytes (8) are read");
            return Err(Error::file(path, what));
        }
        let lengths = take(&mut file, 4 * usize::from(axes)).map_err(failed)?;
        if lengths.len() < 4 * usize::from(axes) || axes == 0 {
            return Err(Error::file(path, format!("its header of {axes} axes is cut short")));
        }
        let length = |b: &[u8]| u32::from_be_bytes([b[0], b[1], b[2], b[3]]) as usize;
        let shape: Vec<usize> = lengths.chunks_exact(4).map(length).collect();
        let size = shape.iter().try_fold(1, |size: usize, &n| size.checked_mul(n));
        let Some(size) = size.filter(|&size| size <= MOST_BYTES) else {
            let what = format!("its header says {}; that is too much to hold", described(&shape));
            return Err(Error::file(path, what));
        };
        let values = take(&mut file, size).map_err(failed)?;
        let more = !take(&mut file, 1).map_err(failed)?.is_empty();
        if more || values.len() < size {
            let held = if more { "more".into() } else { values.len().to_string() };
            let said = described(&shape);
            let what = format!("its header says {said}, {size} bytes; it holds {held}");
            return Err(Error::file(path, what));
        }
        Ok(Self { shape, values })
    }
}

impl Images {
    /// Reads gray images and their labels from two IDX files. Refuses counts that differ.
    pub fn read_idx(images: &Path, labels: &Path) -> Result<Self> {
        let (pixels, numbers) = (Idx::read(images)?, Idx::read(labels)?);
        let [count, height, width] = pixels.shape[..] else {
            return Err(wrong_axes(images, "images", 3, &pixels.shape));
        };
        let [labeled] = numbers.shape[..] else {
            return Err(wrong_axes(labels, "labels", 1, &numbers.shape));
        };
        if count != labeled {
            let what = format!("{labeled} labels, but {} has {count} images", images.display());
            return Err(Error::file(labels, what));
        }
        if count == 0 || height == 0 || width == 0 {
            let what = format!("there is nothing in {}", described(&pixels.shape));
            return Err(Error::file(images, what));
        }
        let labels = numbers.values.iter().map(u8::to_string).collect();
        Ok(Self { channels: 1, height, width, pixels: pixels.values, labels, left_out: vec![] })
    }
}

/// At most `count` bytes. The buffer grows with what is there, so a header that lies about the
/// length costs nothing.
fn take(file: &mut dyn Read, count: usize) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(count as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn described(shape: &[usize]) -> String {
    match shape {
        [count] => format!("{count} labels"),
        [count, height, width] => format!("{count} images of {height}×{width}"),
        _ => shape.iter().map(usize::to_string).collect::<Vec<_>>().join("×"),
    }
}

fn wrong_axes(path: &Path, what: &str, expected: usize, shape: &[usize]) -> Error {
    let axes = shape.len();
    Error::file(path, format!("{what} have {expected} axes in IDX, this file has {axes}"))
}
