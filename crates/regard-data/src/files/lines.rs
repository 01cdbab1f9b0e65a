//! A text file as its lines: plain or compressed, in any encoding that is named.

use crate::{Error, Result, sample};
use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{DecoderResult, Encoding, UTF_8, UTF_16BE, UTF_16LE};
use flate2::read::MultiGzDecoder;
use std::{
    fs,
    io::{BufRead, BufReader, ErrorKind, Read, Seek},
    path::Path,
};

/// The two bytes that every gzip file begins with.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// What a file holds, uncompressed where it is gzip, whatever its name. Refuses what is missing, no
/// file, or cut short.
///
/// ```
/// let error = regard_data::files::bytes("missing.gz").unwrap_err();
/// assert_eq!(error.to_string(), "missing.gz: there is no such file");
/// ```
pub fn bytes(path: impl AsRef<Path>) -> Result<Vec<u8>> {
    let path = path.as_ref();
    let bytes = fs::read(path).map_err(|error| unreadable(path, &error))?;
    if !bytes.starts_with(&GZIP) {
        return Ok(bytes);
    }
    let mut out = Vec::new();
    MultiGzDecoder::new(&bytes[..]).read_to_end(&mut out).map_err(|e| damaged(path, &e))?;
    Ok(out)
}

fn unreadable(path: &Path, error: &std::io::Error) -> Error {
    match error.kind() {
        ErrorKind::NotFound => Error::file(path, "there is no such file"),
        ErrorKind::IsADirectory => Error::file(path, "this is a folder; a file was expected"),
        _ => Error::file(path, format!("cannot be read: {error}")),
    }
}

fn damaged(path: &Path, error: &std::io::Error) -> Error {
    Error::file(path, format!("the gzip data are cut short or bad: {error}"))
}

/// As [`text`]; of a long file only its beginning, where [`sampled`](crate::sampled) is around the call.
pub(super) fn beginning(path: &Path, encoding: Option<&str>) -> Result<String> {
    let Some(most) = sample::most_bytes() else { return text(path, encoding) };
    let encoding = named(encoding)?;
    let file = fs::File::open(path).map_err(|error| unreadable(path, &error))?;
    let size = file.metadata().map_err(|error| unreadable(path, &error))?.len();
    let mut file = BufReader::new(file);
    let gzip = file.fill_buf().map_err(|error| unreadable(path, &error))?.starts_with(&GZIP);
    let mut bytes = Vec::new();
    // One byte more says that there is more.
    let limit = most as u64 + 1;
    let read = if gzip {
        let mut unpacked = MultiGzDecoder::new(file).take(limit);
        unpacked.read_to_end(&mut bytes).map_err(|error| damaged(path, &error))?;
        unpacked.into_inner().into_inner().stream_position().unwrap_or(size)
    } else {
        file.take(limit).read_to_end(&mut bytes).map_err(|error| unreadable(path, &error))?;
        bytes.len() as u64
    };
    let goes_on = bytes.len() > most;
    bytes.truncate(most);
    let decoded = decode_part(&bytes, encoding, !goes_on);
    let decoded = decoded.map_err(|NotText { line, what }| Error::line(path, line, what))?;
    let kept = sample::cut(&decoded, goes_on);
    let whole = !goes_on && kept.len() == decoded.len();
    let read = if whole { size } else { read };
    let used = read as f64 * kept.len() as f64 / decoded.len().max(1) as f64;
    let used = if whole { size as f64 } else { used };
    sample::note(path, kept.lines().count(), read, used, size);
    if kept.is_empty() && goes_on {
        return Err(Error::file(path, "its first line is longer than the part that is looked at"));
    }
    Ok(kept.to_string())
}

/// As [`lines`], of which only the beginning is read as [`beginning`] does.
pub(super) fn beginning_lines(path: &Path, encoding: Option<&str>) -> Result<Vec<String>> {
    Ok(beginning(path, encoding)?.lines().map(str::to_string).collect())
}

/// What a text file holds, plain or gzip. A mark of the byte order at its start tells the encoding
/// and is left out; without one it is the one named (as in HTML: "latin1", "gbk", "shift_jis"), or
/// UTF-16 where it has zeros as only that has, or UTF-8. Refuses an unknown name, and bytes that are no text in the encoding, by their line.
///
/// ```
/// use regard_data::files::text;
/// # let file = tempfile::NamedTempFile::new().unwrap();
/// std::fs::write(&file, b"gr\xfcn").unwrap();
/// assert_eq!(text(&file, Some("latin1"))?, "grün");
/// # Ok::<(), regard_data::Error>(())
/// ```
pub fn text(path: impl AsRef<Path>, encoding: Option<&str>) -> Result<String> {
    let path = path.as_ref();
    let encoding = named(encoding)?;
    decode(&bytes(path)?, encoding).map_err(|NotText { line, what }| Error::line(path, line, what))
}

fn named(encoding: Option<&str>) -> Result<&'static Encoding> {
    let Some(name) = encoding else { return Ok(UTF_8) };
    Encoding::for_label_no_replacement(name.as_bytes()).ok_or_else(|| {
        Error::invalid(format!("`{name}` is no known encoding; utf-8, latin1 and gbk are some"))
    })
}

/// Bytes as text, in the encoding named or in UTF-8; as [`text`] reads a file.
///
/// ```
/// use regard_data::files::decoded;
/// assert_eq!(decoded(b"gr\xfcn", Some("latin1"))?, "grün");
/// assert!(decoded(b"gr\xfcn", None).unwrap_err().to_string().contains("not UTF-8"));
/// # Ok::<(), regard_data::Error>(())
/// ```
pub fn decoded(bytes: &[u8], encoding: Option<&str>) -> Result<String> {
    decode(bytes, named(encoding)?).map_err(|NotText { what, .. }| Error::invalid(what))
}

/// Why bytes are no text.
struct NotText {
    line: usize,
    what: String,
}

fn decode(bytes: &[u8], encoding: &'static Encoding) -> std::result::Result<String, NotText> {
    decode_part(bytes, encoding, true)
}

/// As [`decode`]; where these are not the last bytes, a character may be cut at their end.
fn decode_part(
    bytes: &[u8],
    encoding: &'static Encoding,
    last: bool,
) -> std::result::Result<String, NotText> {
    let encoding = match encoding == UTF_8 {
        true => unmarked_utf_16(bytes).unwrap_or(encoding),
        false => encoding,
    };
    let mut decoder = encoding.new_decoder();
    let most = decoder.max_utf8_buffer_length_without_replacement(bytes.len());
    let mut text = String::with_capacity(most.unwrap_or_default());
    match decoder.decode_to_string_without_replacement(bytes, &mut text, last) {
        (DecoderResult::InputEmpty, _) => Ok(text),
        _ => {
            let name = decoder.encoding().name();
            let line = text.matches('\n').count() + 1;
            Err(NotText { line, what: format!("these bytes are not {name}{}", hint(bytes, name)) })
        }
    }
}

/// UTF-16 of which nothing marks the byte order: text in UTF-8 has no zeros, and of the two orders the
/// right one gives more of the ASCII that every text has, if only its line ends.
fn unmarked_utf_16(bytes: &[u8]) -> Option<&'static Encoding> {
    let start = &bytes[..bytes.len().min(1 << 16)];
    if !bytes.len().is_multiple_of(2) || !start.contains(&0) || Encoding::for_bom(bytes).is_some() {
        return None;
    }
    // One stray zero makes no UTF-16 of what is UTF-8.
    let zeros = start.iter().filter(|&&byte| byte == 0).count();
    if std::str::from_utf8(bytes).is_ok() && 4 * zeros < start.len() {
        return None;
    }
    let ascii = |of: fn([u8; 2]) -> u16| {
        let units = start.chunks_exact(2).map(|pair| of([pair[0], pair[1]]));
        units.filter(|unit| matches!(unit, 9 | 10 | 13 | 32..127)).count()
    };
    let (little, big) = (ascii(u16::from_le_bytes), ascii(u16::from_be_bytes));
    let encoding = if big > little { UTF_16BE } else { UTF_16LE };
    let text = encoding.decode_without_bom_handling_and_without_replacement(bytes)?;
    (!text.contains('\0') && little != big).then_some(encoding)
}

/// Which encoding bytes look like that are no UTF-8; nothing where somebody named another, which is
/// his to say.
fn hint(bytes: &[u8], name: &str) -> String {
    if name != UTF_8.name() {
        return String::new();
    }
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Allow);
    detector.feed(bytes, true);
    let guess = detector.guess(None, Utf8Detection::Allow);
    let (_, _, has_errors) = guess.decode(bytes);
    if guess == UTF_8 || has_errors {
        return String::new();
    }
    // What everybody calls it.
    let guess = match guess.name() {
        "windows-1252" => "latin1".into(),
        other => other.to_lowercase(),
    };
    format!("; they look like {guess}: `--encoding {guess}` reads such files")
}

/// The lines of a text file, without their ends (LF or CRLF); as [`text`] reads it.
///
/// ```
/// use regard_data::files::lines;
/// # let file = tempfile::NamedTempFile::new().unwrap();
/// std::fs::write(&file, "one\r\ntwo\n").unwrap();
/// assert_eq!(lines(&file, None)?, ["one", "two"]);
/// # Ok::<(), regard_data::Error>(())
/// ```
pub fn lines(path: impl AsRef<Path>, encoding: Option<&str>) -> Result<Vec<String>> {
    Ok(text(path, encoding)?.lines().map(str::to_string).collect())
}

/// "1 column is there", "2 columns are there".
pub(super) fn columns(count: usize) -> String {
    if count == 1 { "1 column is there".into() } else { format!("{count} columns are there") }
}

/// "1 line", "2 lines".
pub(super) fn counted(count: usize, thing: &str) -> String {
    if count == 1 { format!("1 {thing}") } else { format!("{count} {thing}s") }
}
