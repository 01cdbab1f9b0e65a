//! A recording, from a file: a WAV file, which is read here, or a compressed one.

use super::compressed::{Compression, ogg_content, without_id3};
use crate::{Error, Result};
use hound::{SampleFormat, WavReader, WavSpec, WavWriter};
use std::io::Cursor;
use std::path::Path;

/// How the names of recordings that are read end.
pub const SOUND_EXTENSIONS: [&str; 5] = ["wav", "flac", "mp3", "ogg", "oga"];

/// One channel of sound.
#[derive(Clone, Debug, PartialEq)]
pub struct Waveform {
    /// The samples, from −1 to 1.
    pub samples: Vec<f32>,
    /// Samples a second.
    pub rate: u32,
}

impl Waveform {
    /// Reads a WAV of whole numbers (8, 16, 24 or 32 bits) or of floats (32 or 64 bits), or a FLAC,
    /// MP3 or Ogg Vorbis file, by its content, whatever it is called; several channels are averaged.
    /// Refuses another coding, a file that is cut short or damaged, and one without sound. (An MP3
    /// file has no checksum: of it, lost frames are noticed, wrong bits inside one may not be.)
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// let path = folder.path().join("no.wav");
    /// std::fs::write(&path, "MThd").unwrap();
    /// let error = regard_data::files::Waveform::read(&path).unwrap_err().to_string();
    /// assert!(error.ends_with("no.wav: not a recording: it is no WAV, FLAC, MP3 or Ogg Vorbis file"));
    /// ```
    pub fn read(path: &Path) -> Result<Self> {
        let bytes = std::fs::read(path).map_err(|error| Error::file(path, error))?;
        Self::decode(path, &bytes)
    }

    /// As [`Waveform::read`], of the content of a file; its name is for what is refused.
    ///
    /// ```
    /// let error = regard_data::files::Waveform::decode("no.wav".as_ref(), b"MThd").unwrap_err();
    /// assert!(error.to_string().starts_with("no.wav: not a recording"));
    /// ```
    pub fn decode(name: &Path, bytes: &[u8]) -> Result<Self> {
        let wrong = |what: String| Error::file(name, what);
        if let Some(compression) = Compression::of(bytes) {
            return compression.decode(bytes).map_err(wrong);
        }
        if !(bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WAVE")) {
            return Err(wrong(match other_format(bytes) {
                Some(format) => format!(
                    "this is {format}; WAV, FLAC, MP3 and Ogg Vorbis are read, and \
                     `ffmpeg -i IN -ac 1 OUT.wav` makes a WAV file of it"
                ),
                None => "not a recording: it is no WAV, FLAC, MP3 or Ogg Vorbis file".into(),
            }));
        }
        if let Some(coding) = foreign_coding(bytes) {
            return Err(wrong(format!("its sound is coded as {coding}; PCM and float are read")));
        }
        if let Some(format) = Format::of(bytes).filter(Format::is_double) {
            return doubles(bytes, &format).map_err(wrong);
        }
        let mut reader = WavReader::new(Cursor::new(bytes)).map_err(|e| wrong(header_error(&e)))?;
        let spec = reader.spec();
        let (channels, count) = (usize::from(spec.channels), reader.len());
        if spec.sample_rate == 0 {
            return Err(wrong("its header says 0 samples a second".into()));
        }
        if count == 0 {
            return Err(wrong("it holds no samples".into()));
        }
        let short = |at: usize, error| match error {
            hound::Error::IoError(_) => {
                wrong(format!("cut short: its header says {count} samples, it holds {at}"))
            }
            error => wrong(format!("sample {at}: {error}")),
        };
        let mut values = Vec::new();
        match (spec.sample_format, spec.bits_per_sample) {
            (SampleFormat::Float, _) => {
                for (at, sample) in reader.samples::<f32>().enumerate() {
                    let sample = sample.map_err(|error| short(at, error))?;
                    if !sample.is_finite() {
                        return Err(wrong(format!("sample {at} is not a number")));
                    }
                    values.push(sample);
                }
            }
            (SampleFormat::Int, bits @ (8 | 16 | 24 | 32)) => {
                let full = (1u64 << (bits - 1)) as f64;
                for (at, sample) in reader.samples::<i32>().enumerate() {
                    let sample = sample.map_err(|error| short(at, error))?;
                    values.push((f64::from(sample) / full) as f32);
                }
            }
            (SampleFormat::Int, bits) => {
                return Err(wrong(format!("{bits} bits a sample; 8, 16, 24 and 32 are read")));
            }
        }
        Ok(Self { samples: averaged(&values, channels), rate: spec.sample_rate })
    }

    /// Whether a recording takes longer than this. What is compressed is unpacked no further than it
    /// takes to know. Refuses what [`Waveform::decode`] refuses in the part that is read.
    ///
    /// ```
    /// use regard_data::files::{Waveform, wav_bytes};
    /// let second = wav_bytes(&Waveform { samples: vec![0.0; 8000], rate: 8000 })?;
    /// assert!(!Waveform::is_longer("a.wav".as_ref(), &second, 1.0)?);
    /// assert!(Waveform::is_longer("a.wav".as_ref(), &second, 0.9)?);
    /// # Ok::<(), regard_data::Error>(())
    /// ```
    pub fn is_longer(name: &Path, bytes: &[u8], seconds: f64) -> Result<bool> {
        let is_longer = |samples: usize, rate: u32| samples as f64 > seconds * f64::from(rate);
        let sound = match Compression::of(bytes) {
            Some(compression) => compression
                .decode_until(bytes, is_longer)
                .map_err(|what| Error::file(name, what))?,
            None => Self::decode(name, bytes)?,
        };
        Ok(is_longer(sound.samples.len(), sound.rate))
    }
}

/// What a recording is that is not read, by its first bytes.
fn other_format(bytes: &[u8]) -> Option<&'static str> {
    Some(match without_id3(bytes) {
        [b'O', b'g', b'g', b'S', ..] => ogg_content(bytes),
        [_, _, _, _, b'f', b't', b'y', b'p', ..] => "MPEG-4 (M4A, AAC)",
        [b'F', b'O', b'R', b'M', ..] => "AIFF",
        [0xff, second, ..] if second & 0xf6 == 0xf0 => "AAC",
        [0xff, second, ..] if second & 0xe0 == 0xe0 && second & 0x06 != 0 => "MPEG of layer 1 or 2",
        [0x1a, 0x45, 0xdf, 0xa3, ..] => "WebM or Matroska",
        [b'#', b'!', b'A', b'M', b'R', ..] => "AMR",
        _ => return None,
    })
}

/// A recording as a WAV file of 16 bits a sample.
///
/// ```
/// use regard_data::files::{Waveform, wav_bytes};
/// let sound = Waveform { samples: vec![0.0, 0.5, -1.0], rate: 8000 };
/// let again = Waveform::decode("a.wav".as_ref(), &wav_bytes(&sound)?)?;
/// assert_eq!((again.rate, again.samples.len()), (8000, 3));
/// assert!((again.samples[1] - 0.5).abs() < 1e-4);
/// # Ok::<(), regard_data::Error>(())
/// ```
pub fn wav_bytes(sound: &Waveform) -> Result<Vec<u8>> {
    let spec = WavSpec {
        channels: 1,
        sample_rate: sound.rate,
        bits_per_sample: 16,
        sample_format: SampleFormat::Int,
    };
    let failed =
        |error: hound::Error| Error::invalid(format!("a sound cannot be written: {error}"));
    let mut bytes = Cursor::new(Vec::new());
    let mut writer = WavWriter::new(&mut bytes, spec).map_err(failed)?;
    for sample in &sound.samples {
        let level = (sample.clamp(-1.0, 1.0) * f32::from(i16::MAX)).round();
        writer.write_sample(level as i16).map_err(failed)?;
    }
    writer.finalize().map_err(failed)?;
    Ok(bytes.into_inner())
}

/// The mean of the channels, frame by frame.
fn averaged(values: &[f32], channels: usize) -> Vec<f32> {
    let average = |frame: &[f32]| frame.iter().sum::<f32>() / channels as f32;
    values.chunks_exact(channels).map(average).collect()
}

/// What follows a chunk's name and length; all there is where the file is shorter.
fn chunk<'a>(bytes: &'a [u8], name: &[u8; 4]) -> Option<&'a [u8]> {
    let mut rest = bytes.get(12..)?;
    loop {
        let length = u32::from_le_bytes(rest.get(4..8)?.try_into().ok()?) as usize;
        let content = rest.get(8..)?;
        if rest.get(..4)? == name {
            return Some(content.get(..length).unwrap_or(content));
        }
        // A chunk of an odd length is filled up by a byte.
        rest = content.get(length.next_multiple_of(2)..)?;
    }
}

/// What the chunk `fmt ` says.
struct Format {
    tag: u16,
    channels: u16,
    rate: u32,
    bits: u16,
}

impl Format {
    fn of(bytes: &[u8]) -> Option<Self> {
        let format = chunk(bytes, b"fmt ")?;
        let short = |at: usize| Some(u16::from_le_bytes(format.get(at..at + 2)?.try_into().ok()?));
        let rate = u32::from_le_bytes(format.get(4..8)?.try_into().ok()?);
        // The extensible format says further on what it is.
        let tag = match short(0)? {
            0xfffe => short(24)?,
            tag => tag,
        };
        Some(Self { tag, channels: short(2)?, rate, bits: short(14)? })
    }

    fn is_double(&self) -> bool {
        self.tag == 3 && self.bits == 64
    }
}

/// A recording of 64-bit floats.
fn doubles(bytes: &[u8], format: &Format) -> std::result::Result<Waveform, String> {
    let data = chunk(bytes, b"data").unwrap_or_default();
    if format.rate == 0 || format.channels == 0 {
        let (rate, channels) = (format.rate, format.channels);
        return Err(format!("its header says {rate} samples a second in {channels} channels"));
    }
    let mut values = Vec::with_capacity(data.len() / 8);
    for (at, sample) in data.as_chunks::<8>().0.iter().enumerate() {
        match f64::from_le_bytes(*sample) as f32 {
            sample if sample.is_finite() => values.push(sample),
            _ => return Err(format!("sample {at} is not a number")),
        }
    }
    match averaged(&values, format.channels.into()) {
        samples if samples.is_empty() => Err("it holds no samples".into()),
        samples => Ok(Waveform { samples, rate: format.rate }),
    }
}

/// The name of a coding that is neither PCM nor float, from the tag that begins the chunk `fmt `.
fn foreign_coding(bytes: &[u8]) -> Option<String> {
    let format = chunk(bytes, b"fmt ")?;
    // Numbers of formats: RFC 2361.
    match u16::from_le_bytes(format.get(..2)?.try_into().ok()?) {
        0x0001 | 0x0003 | 0xfffe => None,
        tag @ (0x0002 | 0x0011) => Some(format!("ADPCM (format {tag})")),
        6 => Some("A-law (format 6)".into()),
        7 => Some("µ-law (format 7)".into()),
        0x0055 => Some("MP3 (format 85)".into()),
        tag => Some(format!("format {tag}")),
    }
}

fn header_error(error: &hound::Error) -> String {
    match error {
        hound::Error::IoError(_) => "cut short: it has no samples after its header".into(),
        hound::Error::Unsupported => "its sound is neither PCM nor float".into(),
        error => format!("its header is damaged: {error}"),
    }
}
