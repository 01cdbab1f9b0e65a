//! Arrays as NumPy writes them: `.npy`, and `.npz`, which is a zip of them.

use crate::{Error, Result};
use flate2::read::DeflateDecoder;
use std::io::Read;
use std::path::Path;

/// An array of numbers or of texts, row by row.
#[derive(Clone, Debug, PartialEq)]
pub struct NumpyArray {
    /// Its shape.
    pub shape: Vec<usize>,
    /// What it holds.
    pub values: NumpyValues,
}

/// What an array holds.
#[derive(Clone, Debug, PartialEq)]
pub enum NumpyValues {
    /// Numbers of any type.
    Numbers(Vec<f64>),
    /// Texts (`<U…`).
    Texts(Vec<String>),
}

/// Every array is prefixed by this.
const MAGIC: &[u8] = b"\x93NUMPY";

impl NumpyArray {
    /// Reads a `.npy` file of numbers or texts, in the byte order of any machine, row by row or column
    /// by column. Refuses other types, and files that are cut short.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// let path = folder.path().join("no.npy");
    /// std::fs::write(&path, "PK").unwrap();
    /// let error = regard_data::files::NumpyArray::read(&path).unwrap_err().to_string();
    /// assert!(error.ends_with("no.npy: not a .npy file: it does not begin with \\x93NUMPY"));
    /// ```
    pub fn read(path: &Path) -> Result<Self> {
        let bytes = std::fs::read(path).map_err(|error| Error::file(path, error))?;
        Self::decode(path, &bytes)
    }

    /// As [`NumpyArray::read`], of the content of a file; its name is for what is refused.
    pub fn decode(name: &Path, bytes: &[u8]) -> Result<Self> {
        Self::parse(bytes).map_err(|what| Error::file(name, what))
    }

    /// The arrays of a `.npz` file by name. Refuses what is no zip, and arrays as [`NumpyArray::read`]
    /// does.
    pub fn read_all(path: &Path) -> Result<Vec<(String, Self)>> {
        let bytes = std::fs::read(path).map_err(|error| Error::file(path, error))?;
        Self::decode_all(path, &bytes)
    }

    /// As [`NumpyArray::read_all`], of the content of a file; its name is for what is refused.
    pub fn decode_all(name: &Path, bytes: &[u8]) -> Result<Vec<(String, Self)>> {
        let wrong = |what: String| Error::file(name, what);
        let entries = zip_entries(bytes).map_err(wrong)?;
        let array = |(name, bytes): (String, Vec<u8>)| {
            let name = name.trim_end_matches(".npy").to_string();
            let array =
                Self::parse(&bytes).map_err(|what| wrong(format!("array {name}: {what}")))?;
            Ok((name, array))
        };
        entries.into_iter().map(array).collect()
    }

    /// How many bytes the arrays of a `.npz` file take once they are unpacked, by its directory; what
    /// [`NumpyArray::decode_all`] reads is no more. Refuses what is no zip.
    ///
    /// ```
    /// # use regard_data::files::NumpyArray;
    /// let empty = [&b"PK\x05\x06"[..], &[0; 18]].concat();
    /// assert_eq!(NumpyArray::unpacked_size("a.npz".as_ref(), &empty).unwrap(), 0);
    /// ```
    pub fn unpacked_size(name: &Path, bytes: &[u8]) -> Result<u64> {
        let entries = zip_directory(bytes).map_err(|what| Error::file(name, what))?;
        Ok(entries.iter().map(|entry| entry.unpacked() as u64).sum())
    }

    fn parse(bytes: &[u8]) -> std::result::Result<Self, String> {
        let short = || "cut short: its header is not whole".to_string();
        if !bytes.starts_with(MAGIC) {
            return Err("not a .npy file: it does not begin with \\x93NUMPY".into());
        }
        let number = |at: usize, wide: usize| -> std::result::Result<usize, String> {
            let bytes = bytes.get(at..at + wide).ok_or_else(short)?;
            Ok(bytes.iter().rev().fold(0, |sum, &byte| sum * 256 + usize::from(byte)))
        };
        let wide = if number(6, 1)? == 1 { 2 } else { 4 };
        let start: usize = 8 + wide;
        let end = start.checked_add(number(8, wide)?).ok_or_else(short)?;
        let header = String::from_utf8_lossy(bytes.get(start..end).ok_or_else(short)?).into_owned();
        let by_column = field(&header, "fortran_order")?.starts_with("True");
        let shape = shape(field(&header, "shape")?)?;
        let kind = field(&header, "descr")?;
        let kind = kind.trim_start_matches(['\'', '"']).split(['\'', '"']).next().unwrap_or("");
        let values = match (values(kind, &shape, &bytes[end..])?, by_column) {
            (values, false) => values,
            (NumpyValues::Numbers(all), true) => NumpyValues::Numbers(by_row(&all, &shape)),
            (NumpyValues::Texts(all), true) => NumpyValues::Texts(by_row(&all, &shape)),
        };
        Ok(Self { shape, values })
    }
}

/// What stands behind a name of the header.
fn field<'a>(header: &'a str, name: &str) -> std::result::Result<&'a str, String> {
    let at = header.find(&format!("'{name}'")).map(|at| at + name.len() + 2);
    let rest = at.and_then(|at| header[at..].split_once(':'));
    rest.map(|(_, rest)| rest.trim_start()).ok_or(format!("its header has no `{name}`"))
}

fn shape(text: &str) -> std::result::Result<Vec<usize>, String> {
    let wrong = || "its header has a shape that is none".to_string();
    let inside = text.strip_prefix('(').and_then(|text| text.split_once(')')).ok_or_else(wrong)?.0;
    let sizes = inside.split(',').map(str::trim).filter(|size| !size.is_empty());
    sizes.map(|size| size.parse().map_err(|_| wrong())).collect()
}

/// What is stored column by column, row by row.
fn by_row<T: Clone>(all: &[T], shape: &[usize]) -> Vec<T> {
    let place = |row: usize| {
        let (mut rest, mut at) = (row, 0);
        let mut steps: Vec<usize> = shape
            .iter()
            .scan(1, |step, size| {
                let own = *step;
                *step *= size;
                Some(own)
            })
            .collect();
        for &size in shape.iter().rev() {
            at += rest % size * steps.pop().unwrap_or(1);
            rest /= size;
        }
        at
    };
    (0..all.len()).map(|row| all[place(row)].clone()).collect()
}

fn values(kind: &str, shape: &[usize], bytes: &[u8]) -> std::result::Result<NumpyValues, String> {
    let count = shape.iter().try_fold(1usize, |product, &size| product.checked_mul(size));
    let count = count.ok_or("its header has a shape beyond all memory")?;
    let (order, letter, size) = match kind.get(..2) {
        Some(start) if start.starts_with(['<', '|', '=', '>']) => {
            (&start[..1], &start[1..], &kind[2..])
        }
        _ => return Err(format!("values of type {kind:?}; floats, integers and texts are read")),
    };
    let size: usize = size.parse().map_err(|_| format!("numbers of type {kind:?}"))?;
    let wide = if letter == "U" { 4 * size } else { size };
    let needed = count.checked_mul(wide).ok_or("its header has a shape beyond all memory")?;
    if bytes.len() < needed {
        return Err(format!(
            "cut short: {needed} bytes of values are needed, {} are there",
            bytes.len()
        ));
    }
    // The unit whose bytes have an order: a number, or a character of a text.
    let unit = if letter == "U" { 4 } else { wide.max(1) };
    let mut little = bytes[..needed].to_vec();
    if order == ">" {
        little.chunks_exact_mut(unit).for_each(<[u8]>::reverse);
    }
    let each = little.chunks_exact(wide.max(1));
    macro_rules! numbers {
        ($type:ty) => {
            each.map(|x| <$type>::from_le_bytes(x.try_into().unwrap_or_default()) as f64).collect()
        };
    }
    let numbers = match (letter, size) {
        ("f", 2) => {
            let half = |x: &[u8]| half_to_f64(u16::from_le_bytes([x[0], x[1]]));
            each.map(half).collect()
        }
        ("f", 4) => numbers!(f32),
        ("f", 8) => numbers!(f64),
        ("i", 1) => numbers!(i8),
        ("i", 2) => numbers!(i16),
        ("i", 4) => numbers!(i32),
        ("i", 8) => numbers!(i64),
        ("u" | "b", 1) => numbers!(u8),
        ("u", 2) => numbers!(u16),
        ("u", 4) => numbers!(u32),
        ("u", 8) => numbers!(u64),
        ("U", _) => {
            let character = |x: &[u8]| u32::from_le_bytes([x[0], x[1], x[2], x[3]]);
            let text = |x: &[u8]| -> String {
                let characters = x.chunks_exact(4).map(character).take_while(|&code| code != 0);
                characters.map(|code| char::from_u32(code).unwrap_or('\u{fffd}')).collect()
            };
            return Ok(NumpyValues::Texts(match wide {
                0 => vec![String::new(); count],
                _ => each.map(text).collect(),
            }));
        }
        _ => return Err(format!("values of type {kind:?}; floats, integers and texts are read")),
    };
    Ok(NumpyValues::Numbers(numbers))
}

/// A number of 16 bits (IEEE 754's binary16).
fn half_to_f64(bits: u16) -> f64 {
    let (sign, exponent, fraction) =
        (bits >> 15, i32::from(bits >> 10 & 31), f64::from(bits & 1023));
    let size = match exponent {
        0 => fraction * 2f64.powi(-24),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1.0 + fraction / 1024.0) * 2f64.powi(exponent - 15),
    };
    if sign == 1 { -size } else { size }
}

/// A file of a zip, as the directory at the end tells of it.
struct ZipEntry<'a> {
    name: String,
    /// 0 stored, 8 deflated.
    method: usize,
    data: &'a [u8],
    /// Bytes that it has once it is unpacked.
    whole: usize,
}

impl ZipEntry<'_> {
    fn unpacked(&self) -> usize {
        if self.method == 0 { self.data.len() } else { self.whole }
    }

    fn unpack(self) -> std::result::Result<(String, Vec<u8>), String> {
        let name = self.name;
        let data = match self.method {
            0 => self.data.to_vec(),
            8 => {
                let mut out = Vec::new();
                let mut decoder = DeflateDecoder::new(self.data).take(self.whole as u64);
                decoder.read_to_end(&mut out).map_err(|e| format!("{name}: damaged: {e}"))?;
                out
            }
            other => return Err(format!("{name}: packed by method {other}; 0 and 8 are read")),
        };
        Ok((name, data))
    }
}

/// The files of a zip, stored or deflated.
fn zip_entries(bytes: &[u8]) -> std::result::Result<Vec<(String, Vec<u8>)>, String> {
    zip_directory(bytes)?.into_iter().map(ZipEntry::unpack).collect()
}

/// The directory at the end of a zip.
fn zip_directory(bytes: &[u8]) -> std::result::Result<Vec<ZipEntry<'_>>, String> {
    let no_zip = || "not a .npz file: it is no zip, or cut short".to_string();
    let number = |at: usize, wide: usize| -> std::result::Result<usize, String> {
        let end = at.checked_add(wide).ok_or_else(no_zip)?;
        let bytes = bytes.get(at..end).ok_or_else(no_zip)?;
        Ok(bytes.iter().rev().fold(0, |sum, &byte| sum * 256 + usize::from(byte)))
    };
    let end = bytes.windows(4).rposition(|four| four == b"PK\x05\x06").ok_or_else(no_zip)?;
    let (count, mut at) = (number(end + 10, 2)?, number(end + 16, 4)?);
    let mut entries = Vec::new();
    for _ in 0..count {
        if bytes.get(at..at.saturating_add(4)) != Some(b"PK\x01\x02") {
            return Err(no_zip());
        }
        let (method, packed, whole) =
            (number(at + 10, 2)?, number(at + 20, 4)?, number(at + 24, 4)?);
        let (name, extra, comment) =
            (number(at + 28, 2)?, number(at + 30, 2)?, number(at + 32, 2)?);
        let local = number(at + 42, 4)?;
        let named = bytes.get(at + 46..at + 46 + name).ok_or_else(no_zip)?;
        let named = String::from_utf8_lossy(named).into_owned();
        let start = local + 30 + number(local + 26, 2)? + number(local + 28, 2)?;
        let end = start.checked_add(packed).ok_or_else(no_zip)?;
        let data = bytes.get(start..end).ok_or_else(no_zip)?;
        entries.push(ZipEntry { name: named, method, data, whole });
        at += 46 + name + extra + comment;
    }
    Ok(entries)
}
