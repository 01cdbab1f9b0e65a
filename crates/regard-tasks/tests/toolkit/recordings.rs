//! Recordings that are compressed: FLAC, MP3, Ogg Vorbis.

use regard_data::files::{
    LogMel, SOUND_EXTENSIONS, SoundOptions, Sounds, Waveform, transcripts, wav_bytes,
};
use std::f64::consts::TAU;
use std::path::Path;

const RATE: u32 = 16000;

fn fixture(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").join(name);
    std::fs::read(path).unwrap()
}

/// The tone of fixtures/sound, as bench/fixtures/sounds.py writes it: 440 Hz on the left, 880 Hz on
/// the right; the mean of the channels.
fn tone(channels: usize, length: usize) -> Vec<f32> {
    let at = |at: usize| {
        let time = at as f64;
        let level = 12000.0 * (0.5 - 0.5 * (TAU * time / 6400.0).cos());
        let pitches = &[440.0, 880.0][..channels];
        let channel = |&pitch: &f64| ((TAU * pitch * time / 16000.0).sin() * level).round();
        (pitches.iter().map(channel).sum::<f64>() / channels as f64 / 32768.0) as f32
    };
    (0..length).map(at).collect()
}

fn decode(bytes: &[u8]) -> Result<Waveform, String> {
    Waveform::decode("x".as_ref(), bytes).map_err(|error| error.to_string())
}

/// The root of the mean square of the difference, over that of the sound.
fn distance(found: &[f32], expected: &[f32]) -> f64 {
    let power = |values: &mut dyn Iterator<Item = f32>| {
        values.map(|value| f64::from(value).powi(2)).sum::<f64>()
    };
    let difference = power(&mut found.iter().zip(expected).map(|(a, b)| a - b));
    (difference / power(&mut expected.iter().copied())).sqrt()
}

/// A FLAC file whose samples stand in it as they are, written by hand; `told` is the number of
/// samples that its header says.
fn flac(channels: &[Vec<i32>], bits: u32, rate: u32, told: u64) -> Vec<u8> {
    const BLOCK: usize = 192;
    let mut head = Bits::default();
    head.push(BLOCK as u64, 16);
    head.push(BLOCK as u64, 16);
    head.push(0, 48);
    head.push(rate.into(), 20);
    head.push(channels.len() as u64 - 1, 3);
    head.push(u64::from(bits) - 1, 5);
    head.push(told, 36);
    let mut file = b"fLaC\x80\x00\x00\x22".to_vec();
    file.extend(&head.bytes);
    // No checksum of the samples.
    file.extend([0; 16]);
    for (at, begin) in (0..channels[0].len()).step_by(BLOCK).enumerate() {
        let end = channels[0].len().min(begin + BLOCK);
        let mut frame = Bits::default();
        frame.push(0xfff8, 16);
        // The block's length stands in 16 bits; rate and bits are the header's.
        frame.push(0x70, 8);
        frame.push((channels.len() as u64 - 1) << 4, 8);
        assert!(at < 128, "a longer number of a frame takes several bytes");
        frame.push(at as u64, 8);
        frame.push((end - begin - 1) as u64, 16);
        let sum = crc(&frame.bytes, 8, 0x07);
        frame.push(sum, 8);
        for channel in channels {
            frame.push(0b0000_0010, 8);
            for &sample in &channel[begin..end] {
                frame.push(sample as u64 & ((1 << bits) - 1), bits);
            }
        }
        frame.fill();
        let sum = crc(&frame.bytes, 16, 0x8005);
        frame.push(sum, 16);
        file.extend(frame.bytes);
    }
    file
}

#[derive(Default)]
struct Bits {
    bytes: Vec<u8>,
    open: u32,
}

impl Bits {
    fn push(&mut self, value: u64, count: u32) {
        for at in (0..count).rev() {
            if self.open == 0 {
                self.bytes.push(0);
                self.open = 8;
            }
            self.open -= 1;
            let bit = (value >> at & 1) as u8;
            *self.bytes.last_mut().unwrap() |= bit << self.open;
        }
    }

    fn fill(&mut self) {
        self.open = 0;
    }
}

fn crc(bytes: &[u8], width: u32, polynomial: u64) -> u64 {
    bytes.iter().fold(0, |mut sum, &byte| {
        sum ^= u64::from(byte) << (width - 8);
        for _ in 0..8 {
            let carry = sum >> (width - 1) & 1 == 1;
            sum = sum << 1 & ((1 << width) - 1);
            sum ^= if carry { polynomial } else { 0 };
        }
        sum
    })
}

/// Every compressed file there is here, with the sound that it was made of and the loss of its
/// coding.
fn files() -> Vec<(&'static str, Vec<u8>, Vec<f32>, f64)> {
    vec![
        ("tone.flac", fixture("sound/tone.flac"), tone(2, 2000), 1e-6),
        ("tone.mp3", fixture("sound/tone.mp3"), tone(2, 6400), 0.1),
        ("mono.mp3", fixture("sound/mono.mp3"), tone(1, 6400), 0.01),
        ("tone.ogg", fixture("sound/tone.ogg"), tone(2, 6400), 0.1),
    ]
}

#[test]
fn compressed_recordings_are_the_sound_that_they_were_made_of() {
    for (name, bytes, expected, loss) in files() {
        let found = decode(&bytes).unwrap();
        assert_eq!((found.rate, found.samples.len()), (RATE, expected.len()), "{name}");
        let distance = distance(&found.samples, &expected);
        assert!(distance < loss, "{name}: {distance}");
        // What is computed of it is what is computed of the WAV file: resampled alike.
        let wav = wav_bytes(&Waveform { samples: expected, rate: RATE }).unwrap();
        let filters = LogMel::new(8000).filters().unwrap();
        let [ours, theirs] = [found, decode(&wav).unwrap()].map(|s| filters.frames(&s).unwrap());
        assert_eq!(ours.len(), theirs.len(), "{name}");
    }
}

#[test]
fn an_mp3_file_without_a_header_begins_with_the_silence_of_its_coding() {
    // 576 + 529 samples: the encoder's and every decoder's delay, which only a header would tell.
    let found = decode(&fixture("sound/stream.mp3")).unwrap();
    assert_eq!(found.samples.len(), 14 * 576);
    let distance = distance(&found.samples[1105..], &tone(2, 6400));
    assert!(distance < 0.1, "{distance}");
}

#[test]
fn an_mp3_file_whose_frames_differ_in_size_is_read_to_its_end_and_no_frame_is_dropped() {
    // Half a second of sound and two and a half of silence, without a word on its length.
    let bytes = fixture("sound/variable.mp3");
    let found = decode(&bytes).unwrap();
    assert!(found.samples.len() >= 48000, "{}", found.samples.len());
    assert!(found.samples.len() < 48000 + 4 * 1152, "{}", found.samples.len());
    // Frames after those that a header counts.
    let counted = fixture("sound/mono.mp3");
    assert_eq!(decode(&counted).unwrap().samples.len(), 6400);
    let told = decode(&[&counted[..], &bytes[..]].concat()).unwrap_err();
    assert!(told.contains("it goes on after the length that its header says"), "{told}");
}

#[test]
fn flac_of_any_width_and_any_channels_gives_the_samples_of_a_wav_file() {
    let mut tried = 0;
    for bits in [8u32, 12, 16, 20, 24] {
        for channels in [1usize, 2, 6] {
            for length in [1usize, 191, 192, 500] {
                let full = f64::from(1 << (bits - 1));
                let sample = |c: usize, at: usize| {
                    ((at as f64 * 0.1 * (c + 1) as f64).sin() * 0.9 * full) as i32
                };
                let sound: Vec<Vec<i32>> =
                    (0..channels).map(|c| (0..length).map(|at| sample(c, at)).collect()).collect();
                for told in [length as u64, 0] {
                    let found = decode(&flac(&sound, bits, 22050, told)).unwrap();
                    assert_eq!((found.rate, found.samples.len()), (22050, length));
                    for (at, found) in found.samples.iter().enumerate() {
                        let sum: f64 = sound.iter().map(|c| f64::from(c[at]) / full).sum();
                        let expected = (sum / channels as f64) as f32;
                        assert!((found - expected).abs() < 1e-6, "{bits} {channels} {at}");
                    }
                    tried += 1;
                }
            }
        }
    }
    assert_eq!(tried, 120);
}

#[test]
fn every_compressed_recording_that_is_cut_is_refused_in_a_sentence() {
    let silent_length = flac(&[(0..500).map(|at| at * 37 % 200 - 100).collect()], 8, 8000, 0);
    let mut all: Vec<_> = files().into_iter().map(|(name, bytes, ..)| (name, bytes)).collect();
    let stream = fixture("sound/stream.mp3");
    all.extend([("no length", silent_length), ("stream.mp3", stream)]);
    for (name, bytes) in all {
        // A file that does not say its length and is cut between frames is whole.
        let between = match name {
            "no length" => 2,
            "stream.mp3" => 13,
            _ => 0,
        };
        let mut accepted = 0;
        for length in 0..bytes.len() {
            match decode(&bytes[..length]) {
                Ok(_) => accepted += 1,
                Err(error) => {
                    assert!(error.starts_with("x: ") && !error.contains('\n'), "{name}: {error}")
                }
            }
        }
        assert_eq!(accepted, between, "{name}");
    }
}

#[test]
fn a_damaged_recording_is_refused_or_gives_the_same_sound() {
    for (name, bytes, ..) in files() {
        let whole = decode(&bytes).unwrap();
        let mut refused = 0;
        let places: Vec<usize> = (0..bytes.len()).step_by(3).collect();
        for &at in &places {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x55;
            match decode(&damaged) {
                // Its bits have no checksum; behind the frame that is its header, none is lost.
                Ok(found) if name.ends_with("mp3") => {
                    let is_whole = found.samples.len() == whole.samples.len();
                    assert!(is_whole || at < 288, "{name}, byte {at}")
                }
                Ok(found) => assert!(found == whole, "{name}, byte {at}"),
                Err(_) => refused += 1,
            }
        }
        let least = if name.ends_with("mp3") { 1 } else { places.len() * 3 / 4 };
        assert!(refused >= least, "{name}: {refused} of {}", places.len());
    }
    // A frame that is missing in the middle.
    let [mp3, ogg] = ["sound/tone.mp3", "sound/tone.ogg"].map(fixture);
    let lost = [&mp3[..400], &mp3[560..]].concat();
    assert!(decode(&lost).unwrap_err().contains("damaged"), "{:?}", decode(&lost));
    let twice = [&ogg[..], &ogg[..]].concat();
    assert!(decode(&twice).unwrap_err().contains("several Ogg streams"));
}

#[test]
fn tags_before_and_behind_a_recording_are_passed_over() {
    // ID3v2 with a false frame inside, ID3v1, APE.
    let tag = [&b"ID3\x04\0\0\0\0\0\x08\xff\xfb\x90\x64abcd"[..]].concat();
    let old = [&b"TAG"[..], &[b'x'; 125]].concat();
    let ape = b"eight888APETAGEX\xd0\x07\0\0\x28\0\0\0\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
    let both = [&ape[..], &old].concat();
    for (name, bytes, ..) in files() {
        let whole = decode(&bytes).unwrap();
        if name.ends_with("ogg") {
            continue;
        }
        for (before, behind) in
            [(&tag[..], &[][..]), (&[], &old), (&tag, &old), (&[], ape), (&tag, &both)]
        {
            let found = decode(&[before, &bytes, behind].concat());
            assert!(found.as_ref() == Ok(&whole), "{name}: {:?}", found.err());
        }
    }
}

#[test]
fn recordings_of_other_formats_are_refused_by_their_name_with_the_way_out() {
    let ogg = |head: &[u8]| {
        let mut page = b"OggS\0\x02".to_vec();
        page.extend([0; 20]);
        page.extend([1, head.len() as u8]);
        page.extend(head);
        page
    };
    let cases: [(Vec<u8>, &str); 9] = [
        (ogg(b"OpusHead\x01"), "Ogg Opus"),
        (ogg(b"\x7fFLAC\x01"), "FLAC in Ogg"),
        (ogg(b"Speex   1"), "Ogg Speex"),
        (b"OggS\0\x02".to_vec(), "Ogg"),
        (b"\0\0\0\x20ftypM4A ".to_vec(), "MPEG-4"),
        (b"FORM\0\0\0\0AIFF".to_vec(), "AIFF"),
        (b"\xff\xf1\x50\x80".to_vec(), "AAC"),
        (b"\xff\xfd\x90\x64".to_vec(), "MPEG of layer 1 or 2"),
        (b"\x1a\x45\xdf\xa3".to_vec(), "WebM"),
    ];
    for (bytes, format) in cases {
        let error = decode(&bytes).unwrap_err();
        assert!(error.starts_with(&format!("x: this is {format}")), "{error}");
        assert!(error.contains("ffmpeg -i"), "{error}");
    }
}

#[test]
fn how_long_a_recording_takes_is_known_without_unpacking_it_all() {
    for (name, bytes, expected, _) in files() {
        let length = expected.len() as f64 / 16000.0;
        let is_longer =
            |bytes: &[u8], seconds| Waveform::is_longer(Path::new(name), bytes, seconds);
        assert!(!is_longer(&bytes, length).unwrap(), "{name}");
        assert!(is_longer(&bytes, length - 0.01).unwrap(), "{name}");
        if !name.ends_with("ogg") && length > 0.2 {
            assert!(is_longer(&bytes[..bytes.len() - 9], 0.1).unwrap(), "{name}");
        }
    }
}

#[test]
fn compressed_recordings_are_found_wherever_wav_files_are() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    for label in ["yes", "no"] {
        std::fs::create_dir(path(label)).unwrap();
        for extension in SOUND_EXTENSIONS {
            std::fs::write(path(label).join(format!("a.{extension}")), "").unwrap();
            std::fs::write(path(label).join(format!("B_1.{}", extension.to_uppercase())), "")
                .unwrap();
        }
        std::fs::write(path(label).join("a.txt"), "one").unwrap();
        std::fs::write(path(label).join("B_1.txt"), "two").unwrap();
    }
    let found = Sounds::find(folder.path(), &SoundOptions::default()).unwrap();
    assert_eq!((found.sounds.len(), found.left_out.len()), (20, 4));
    let field = SoundOptions { label_field: Some(0), ..SoundOptions::default() };
    assert_eq!(Sounds::find(&path("yes"), &field).unwrap().sounds.len(), 10);
    assert_eq!(transcripts(&path("yes"), None).unwrap().len(), 10);
}
