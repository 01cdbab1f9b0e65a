//! Recordings that are compressed: FLAC, MP3, Ogg Vorbis.
//!
//! A player goes on after a gap; here a gap would be wrong features without a word. So what the
//! decoder skips is refused: each format is checked for being whole, as far as it can be told.

use super::wav::Waveform;
use std::io::Cursor;
use symphonia::core::checksum::Crc32;
use symphonia::core::codecs::audio::{AudioDecoder, AudioDecoderOptions};
use symphonia::core::errors::Error;
use symphonia::core::formats::{FormatOptions, FormatReader, TrackType};
use symphonia::core::io::{MediaSource, MediaSourceStream, Monitor, ReadOnlySource};
use symphonia::default::formats::{FlacReader, MpaReader, OggReader};
use symphonia::default::get_codecs;

/// As much as a recording may unpack to, in samples of one channel: 100 minutes at 44.1 kHz. A few
/// bytes of FLAC can stand for any length of silence.
const MOST_SAMPLES: usize = 1 << 28;

/// How a recording is compressed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Compression {
    Flac,
    Mp3,
    Vorbis,
}

impl Compression {
    /// By the first bytes, after the tags that may stand before them.
    pub(super) fn of(bytes: &[u8]) -> Option<Self> {
        match without_id3(bytes) {
            [b'f', b'L', b'a', b'C', ..] => Some(Self::Flac),
            [b'O', b'g', b'g', b'S', ..] if page_begins(bytes, b"\x01vorbis") => Some(Self::Vorbis),
            // Eleven bits of a frame's header, and the bits that say layer 3.
            [0xff, second, ..] if second & 0xe6 == 0xe2 => Some(Self::Mp3),
            _ => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Flac => "FLAC",
            Self::Mp3 => "MP3",
            Self::Vorbis => "Ogg Vorbis",
        }
    }

    /// The mean of the channels. Refuses a file that is cut short or damaged, as far as its format
    /// tells, and one without sound.
    pub(super) fn decode(self, bytes: &[u8]) -> Result<Waveform, String> {
        let sound = self.decode_until(bytes, |samples, _| samples > MOST_SAMPLES)?;
        match sound.samples.len() {
            0 => Err("it holds no samples".into()),
            length if length > MOST_SAMPLES => {
                Err(format!("it unpacks to more than {MOST_SAMPLES} samples; cut it into parts"))
            }
            _ => Ok(sound),
        }
    }

    /// As [`Compression::decode`], no further than where `enough`, of the samples so far and their
    /// rate, says so: what follows is not looked at.
    pub(super) fn decode_until(
        self,
        bytes: &[u8],
        enough: impl Fn(usize, u32) -> bool,
    ) -> Result<Waveform, String> {
        let bytes = without_tags(without_id3(bytes));
        if self == Self::Vorbis {
            whole_pages(bytes)?;
        }
        let damaged = |error: Error| format!("this {} file is {}", self.name(), told(&error));
        // Where it can go back, the reader of MP3 guesses a length from the first frames, and drops what is beyond.
        let source: Box<dyn MediaSource> = match self {
            Self::Mp3 => Box::new(ReadOnlySource::new(bytes)),
            _ => Box::new(Cursor::new(bytes)),
        };
        let stream = MediaSourceStream::new(source, Default::default());
        let options = FormatOptions::default();
        let mut reader: Box<dyn FormatReader> = match self {
            Self::Flac => Box::new(FlacReader::try_new(stream, options).map_err(damaged)?),
            Self::Mp3 => Box::new(MpaReader::try_new(stream, options).map_err(damaged)?),
            Self::Vorbis => Box::new(OggReader::try_new(stream, options).map_err(damaged)?),
        };
        let no_sound = || format!("this {} file has no header of its sound", self.name());
        let track = reader.default_track(TrackType::Audio).ok_or_else(no_sound)?;
        let expected = track.num_frames;
        // Frames from here on are beyond the length that is told, and come without samples.
        let beyond = expected.map(|length| length + u64::from(track.padding.unwrap_or(0)));
        let parameters = track.codec_params.as_ref().and_then(|codec| codec.audio());
        let parameters = parameters.ok_or_else(no_sound)?;
        let checked = AudioDecoderOptions::default().verify(self == Self::Flac);
        let mut decoder = get_codecs().make_audio_decoder(parameters, &checked).map_err(damaged)?;

        let mut sound = Waveform { samples: Vec::new(), rate: 0 };
        let is_told = self == Self::Flac || expected.is_some();
        let mut frames = Frames { bytes, end: None, format: self.name(), is_told };
        while let Some(packet) = reader.next_packet().map_err(damaged)? {
            if self != Self::Vorbis {
                frames.follow(&packet.data)?;
            }
            let at = u64::try_from(packet.pts.get()).unwrap_or(0);
            if self == Self::Mp3 && beyond.is_some_and(|beyond| at >= beyond) {
                return Err("it goes on after the length that its header says".into());
            }
            append(&mut sound, decoder.as_mut(), &packet).map_err(|error| match error {
                Some(error) => damaged(error),
                None => "its rate changes on the way".into(),
            })?;
            if enough(sound.samples.len(), sound.rate) {
                return Ok(sound);
            }
        }
        if self != Self::Vorbis {
            frames.finish()?;
        }
        let held = sound.samples.len();
        if let Some(expected) = expected.filter(|&expected| expected != held as u64) {
            return Err(format!("cut short: its header says {expected} samples, it holds {held}"));
        }
        if decoder.finalize().verify_ok == Some(false) {
            return Err("this FLAC file is damaged: its samples do not have its checksum".into());
        }
        Ok(sound)
    }
}

/// Adds the mean of a packet's channels. `None`: its rate is another one.
fn append(
    sound: &mut Waveform,
    decoder: &mut dyn AudioDecoder,
    packet: &symphonia::core::packet::Packet,
) -> Result<(), Option<Error>> {
    let decoded = decoder.decode(packet).map_err(Some)?;
    let spec = decoded.spec();
    let (channels, rate) = (spec.channels().count(), spec.rate());
    if decoded.frames() == 0 {
        return Ok(());
    }
    if sound.rate != 0 && sound.rate != rate {
        return Err(None);
    }
    sound.rate = rate;
    let mut values: Vec<f32> = Vec::new();
    decoded.copy_to_vec_interleaved(&mut values);
    let mean = |frame: &[f32]| frame.iter().sum::<f32>() / channels as f32;
    sound.samples.extend(values.chunks_exact(channels).map(mean));
    Ok(())
}

fn told(error: &Error) -> String {
    match error {
        Error::IoError(_) => "cut short".into(),
        Error::DecodeError(what) => format!("damaged: {what}"),
        Error::Unsupported(what) => format!("of a kind that is not read: {what}"),
        error => format!("damaged: {error}"),
    }
}

/// What follows a tag ID3v2, which may stand before an MP3 or FLAC file: its length is in four
/// bytes of seven bits.
pub(super) fn without_id3(bytes: &[u8]) -> &[u8] {
    let mut rest = bytes;
    while let [b'I', b'D', b'3', _, _, flags, a, b, c, d, ..] = *rest {
        let length = [a, b, c, d].iter().fold(0, |sum, &byte| sum << 7 | usize::from(byte & 0x7f));
        let footer = if flags & 0x10 == 0 { 0 } else { 10 };
        rest = rest.get(10 + length + footer..).unwrap_or_default();
    }
    rest
}

/// What stands before the tags ID3v1 and APE, which may follow an MP3 or FLAC file.
fn without_tags(bytes: &[u8]) -> &[u8] {
    let ends_with = |bytes: &[u8], length: usize, tag: &[u8]| {
        bytes.len().checked_sub(length).is_some_and(|at| bytes[at..].starts_with(tag))
    };
    let mut rest = bytes;
    if ends_with(rest, 128, b"TAG") {
        rest = &rest[..rest.len() - 128];
    }
    if ends_with(rest, 32, b"APETAGEX") {
        let foot = &rest[rest.len() - 32..];
        let length = u32::from_le_bytes([foot[12], foot[13], foot[14], foot[15]]) as usize;
        let head = if foot[23] & 0x80 == 0 { 0 } else { 32 };
        rest = rest.get(..rest.len().saturating_sub(length + head)).unwrap_or_default();
    }
    rest
}

/// The frames of an MP3 or FLAC file, one behind the other. What lies between two is how a gap is
/// seen: an MP3 file has no checksum, and neither has to say its length.
struct Frames<'a> {
    bytes: &'a [u8],
    /// Where the last frame ends.
    end: Option<usize>,
    format: &'static str,
    /// Whether a header stands before the first.
    is_told: bool,
}

impl Frames<'_> {
    fn follow(&mut self, frame: &[u8]) -> Result<(), String> {
        let is_at = |&at: &usize| self.bytes[at..].starts_with(frame);
        let begin = match self.end {
            Some(end) => Some(end).filter(is_at),
            None if self.is_told => (0..self.bytes.len()).find(is_at),
            None => Some(0).filter(is_at),
        };
        let begin = begin.ok_or_else(|| {
            let (format, at) = (self.format, self.end.unwrap_or(0));
            format!("this {format} file is damaged: no frame begins at byte {at}")
        })?;
        self.end = Some(begin + frame.len());
        Ok(())
    }

    fn finish(&self) -> Result<(), String> {
        let Some(end) = self.end else { return Ok(()) };
        // Some programs fill up with zeros.
        let rest = &self.bytes[end..];
        let Some(first) = rest.iter().find(|&&byte| byte != 0) else { return Ok(()) };
        Err(match first {
            0xff => format!("cut short: its last {} frame is not whole", self.format),
            _ => format!("this {} file is damaged: no frame begins at byte {end}", self.format),
        })
    }
}

/// Whether an Ogg file's first packet begins so.
fn page_begins(bytes: &[u8], head: &[u8]) -> bool {
    let packet = bytes.get(26).and_then(|&count| bytes.get(27 + usize::from(count)..));
    packet.is_some_and(|packet| packet.starts_with(head))
}

/// What an Ogg file holds that is not Vorbis, by its first packet.
pub(super) fn ogg_content(bytes: &[u8]) -> &'static str {
    let contents: [(&[u8], &str); 4] = [
        (b"OpusHead", "Ogg Opus"),
        (b"\x7fFLAC", "FLAC in Ogg"),
        (b"Speex   ", "Ogg Speex"),
        (b"\x80theora", "a film (Ogg Theora)"),
    ];
    let found = contents.iter().find(|(head, _)| page_begins(bytes, head));
    found.map_or("Ogg of a kind that is not known", |(_, name)| name)
}

/// Refuses an Ogg file that is not one stream from its first page to its last, each as its checksum
/// says.
fn whole_pages(mut bytes: &[u8]) -> Result<(), String> {
    let mut at = 0;
    let mut serial = None;
    let mut is_last = false;
    while !bytes.is_empty() {
        let damaged = |what| Err(format!("this Ogg file is damaged: page {at} {what}"));
        if !b"OggS".starts_with(&bytes[..bytes.len().min(4)]) && !bytes.starts_with(b"OggS") {
            return damaged("does not begin as a page does");
        }
        let cut = || "cut short: its last Ogg page is not whole".to_owned();
        let count = usize::from(*bytes.get(26).ok_or_else(cut)?);
        let lengths = bytes.get(27..27 + count).ok_or_else(cut)?;
        let length = 27 + count + lengths.iter().map(|&length| usize::from(length)).sum::<usize>();
        let page = bytes.get(..length).ok_or_else(cut)?;
        let number =
            |at: usize| u32::from_le_bytes([page[at], page[at + 1], page[at + 2], page[at + 3]]);
        let mut sum = Crc32::new(0);
        sum.process_buf_bytes(&page[..22]);
        sum.process_buf_bytes(&[0; 4]);
        sum.process_buf_bytes(&page[26..]);
        if sum.crc() != number(22) {
            return damaged("does not have its checksum");
        }
        if *serial.get_or_insert(number(14)) != number(14) || is_last {
            return Err("it holds several Ogg streams; a file of one is read".into());
        }
        if number(18) != at {
            return Err(format!("this Ogg file is damaged: page {at} is missing"));
        }
        is_last = page[5] & 4 != 0;
        (bytes, at) = (&bytes[length..], at + 1);
    }
    match is_last {
        true => Ok(()),
        false => Err("cut short: its last Ogg page is missing".into()),
    }
}
