//! A recording, from a WAV file.

use crate::{Error, Result};
use hound::{SampleFormat, WavReader};
use std::io::Cursor;
use std::path::Path;

/// One channel of sound.
#[derive(Clone, Debug, PartialEq)]
pub struct Waveform {
    /// The samples, from −1 to 1.
    pub samples: Vec<f32>,
    /// Samples a second.
    pub rate: u32,
}

impl Waveform {
    /// Reads a WAV of whole numbers (8, 16, 24 or 32 bits) or of 32-bit floats; several channels
    /// are averaged. Refuses another coding, a file cut short, and one without sound.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// let path = folder.path().join("no.wav");
    /// std::fs::write(&path, "MThd").unwrap();
    /// let error = regard_tasks::data::Waveform::read(&path).unwrap_err().to_string();
    /// assert!(error.ends_with("no.wav: not a WAV file: it does not begin with RIFF … WAVE"));
    /// ```
    pub fn read(path: &Path) -> Result<Self> {
        let wrong = |what: String| Error::file(path, what);
        let bytes = std::fs::read(path).map_err(|error| Error::file(path, error))?;
        if !(bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WAVE")) {
            return Err(wrong("not a WAV file: it does not begin with RIFF … WAVE".into()));
        }
        if let Some(coding) = foreign_coding(&bytes) {
            return Err(wrong(format!("its sound is coded as {coding}; PCM and float are read")));
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
        let average = |frame: &[f32]| frame.iter().sum::<f32>() / channels as f32;
        let samples = values.chunks_exact(channels).map(average).collect();
        Ok(Self { samples, rate: spec.sample_rate })
    }
}

/// The name of a coding that is neither PCM nor float, from the tag that begins the chunk `fmt `.
fn foreign_coding(bytes: &[u8]) -> Option<String> {
    let mut chunk = bytes.get(12..)?;
    while chunk.get(..4)? != b"fmt " {
        let length = u32::from_le_bytes(chunk.get(4..8)?.try_into().ok()?) as usize;
        chunk = chunk.get(8..)?.get(length..)?;
    }
    // Numbers of formats: RFC 2361.
    match u16::from_le_bytes(chunk.get(8..10)?.try_into().ok()?) {
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
        hound::Error::Unsupported => "its sound is neither PCM nor 32-bit float".into(),
        error => format!("its header is damaged: {error}"),
    }
}
