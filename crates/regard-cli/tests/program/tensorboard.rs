//! Event files for TensorBoard, taken apart by their published formats alone.

use crate::settings::WORDS;
use crate::tasks::{path, said};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use tempfile::TempDir;

/// CRC-32C by a table, as RFC 3720 describes it.
fn crc32c(bytes: &[u8]) -> u32 {
    let entry = |byte: u32| {
        (0..8).fold(byte, |crc, _| if crc & 1 == 1 { crc >> 1 ^ 0x82f6_3b78 } else { crc >> 1 })
    };
    let table: Vec<u32> = (0..256).map(entry).collect();
    let crc =
        bytes.iter().fold(u32::MAX, |crc, &byte| table[(crc as u8 ^ byte) as usize] ^ crc >> 8);
    crc ^ u32::MAX
}

/// The contents of a TFRecord file; every length and checksum is looked at.
fn records(mut bytes: &[u8]) -> Vec<&[u8]> {
    let checked = |content: &[u8], sum: &[u8]| {
        let crc = crc32c(content);
        let masked = crc.rotate_right(15).wrapping_add(0xa282_ead8);
        assert_eq!(masked, u32::from_le_bytes(sum.try_into().unwrap()));
    };
    let mut all = Vec::new();
    while !bytes.is_empty() {
        let length = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
        checked(&bytes[..8], &bytes[8..12]);
        let content = &bytes[12..12 + length];
        checked(content, &bytes[12 + length..16 + length]);
        all.push(content);
        bytes = &bytes[16 + length..];
    }
    all
}

/// A field of a Protocol Buffers message.
#[derive(Debug, PartialEq)]
enum Field<'a> {
    Number(u64),
    Eight([u8; 8]),
    Bytes(&'a [u8]),
    Four([u8; 4]),
}

fn number(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..).step_by(7) {
        let byte = bytes[0];
        *bytes = &bytes[1..];
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            break;
        }
    }
    value
}

fn fields(mut bytes: &[u8]) -> Vec<(u64, Field<'_>)> {
    let mut all = Vec::new();
    while !bytes.is_empty() {
        let key = number(&mut bytes);
        let field = match key & 7 {
            0 => Field::Number(number(&mut bytes)),
            wire => {
                let length = match wire {
                    1 => 8,
                    2 => number(&mut bytes) as usize,
                    5 => 4,
                    other => panic!("wire type {other}"),
                };
                let (content, rest) = bytes.split_at(length);
                bytes = rest;
                match wire {
                    1 => Field::Eight(content.try_into().unwrap()),
                    2 => Field::Bytes(content),
                    _ => Field::Four(content.try_into().unwrap()),
                }
            }
        };
        all.push((key >> 3, field));
    }
    all
}

/// What an `Event` of event.proto says.
#[derive(Debug, Default)]
struct Event {
    time: f64,
    step: u64,
    version: String,
    scalars: BTreeMap<String, f32>,
    starts: bool,
}

fn event(bytes: &[u8]) -> Event {
    let mut event = Event::default();
    for field in fields(bytes) {
        match field {
            (1, Field::Eight(time)) => event.time = f64::from_le_bytes(time),
            (2, Field::Number(step)) => event.step = step,
            (3, Field::Bytes(version)) => {
                event.version = String::from_utf8(version.to_vec()).unwrap();
            }
            (5, Field::Bytes(summary)) => {
                for value in fields(summary) {
                    let (1, Field::Bytes(value)) = value else { panic!("{value:?}") };
                    let value = fields(value);
                    let [(1, Field::Bytes(tag)), (2, Field::Four(x))] = &value[..] else {
                        panic!("{value:?}");
                    };
                    let tag = String::from_utf8(tag.to_vec()).unwrap();
                    event.scalars.insert(tag, f32::from_le_bytes(*x));
                }
            }
            (7, Field::Bytes(log)) => {
                assert_eq!(fields(log), [(1, Field::Number(1))]);
                event.starts = true;
            }
            other => panic!("{other:?}"),
        }
    }
    event
}

/// The events of a run, file by file.
fn sessions(run: &str) -> Vec<Vec<Event>> {
    let folder = Path::new(run).join("tensorboard");
    let mut files: Vec<_> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    for file in &files {
        let name = file.file_name().unwrap().to_string_lossy();
        assert!(name.starts_with("events.out.tfevents."), "{name}");
    }
    let read = |file: &std::path::PathBuf| {
        let bytes = fs::read(file).unwrap();
        records(&bytes).into_iter().map(event).collect()
    };
    files.iter().map(read).collect()
}

fn metrics(run: &str) -> Vec<serde_json::Value> {
    let text = fs::read_to_string(Path::new(run).join("metrics.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn an_event_file_holds_the_loss_of_every_step_and_the_measures_of_every_epoch() {
    let folder = TempDir::new().unwrap();
    let run = path(&folder, "run");
    let words = [&WORDS[..], &["tensorboard=true", "--out", &run]].concat();
    said(&[&["train", "translate"], &words[..]].concat());
    let sessions = sessions(&run);
    assert_eq!(sessions.len(), 1);
    let events = &sessions[0];
    assert_eq!(events[0].version, "brain.Event:2");
    assert!(events.iter().all(|event| event.time > 1.7e9 && !event.starts));
    let steps: Vec<u64> = events
        .iter()
        .filter(|event| event.scalars.contains_key("batch/loss"))
        .map(|event| event.step)
        .collect();
    assert_eq!(steps, (1..=10).collect::<Vec<_>>());
    let epochs: Vec<&Event> =
        events.iter().filter(|event| event.scalars.contains_key("training/loss")).collect();
    let records = metrics(&run);
    assert_eq!(epochs.len(), records.len());
    for (event, record) in epochs.iter().zip(&records) {
        assert_eq!(event.step, record["step"].as_u64().unwrap());
        assert_eq!(event.scalars["training/loss"], record["loss"].as_f64().unwrap() as f32);
        for value in record["validation"]["values"].as_array().unwrap() {
            let tag = format!("validation/{}", value[0].as_str().unwrap());
            assert_eq!(event.scalars[&tag], value[1].as_f64().unwrap() as f32, "{tag}");
        }
    }
}

#[test]
fn a_resumed_training_goes_on_in_a_file_that_voids_what_is_done_again() {
    let folder = TempDir::new().unwrap();
    let (run, plain) = (path(&folder, "run"), path(&folder, "plain"));
    said(&[&["train", "translate"], &WORDS[..], &["tensorboard=true", "--out", &run]].concat());
    said(&["train", "--resume", &run, "epochs=3"]);
    let second = &sessions(&run)[1];
    assert!(second[1].starts && second[1].step == 11, "{second:?}");
    let steps = second.iter().filter(|event| event.scalars.contains_key("batch/loss"));
    assert_eq!(steps.map(|event| event.step).collect::<Vec<_>>(), (11..=15).collect::<Vec<_>>());
    // Nobody who does not ask has the folder, and the training is the same.
    said(&[&["train", "translate"], &WORDS[..], &["epochs=3", "--out", &plain]].concat());
    assert!(!Path::new(&plain).join("tensorboard").exists());
    // A run in its place does not have its curves.
    let again = ["tensorboard=true", "--out", &run, "--overwrite"];
    said(&[&["train", "translate"], &WORDS[..], &again].concat());
    assert_eq!(sessions(&run).len(), 1);
    let best = |run: &str| fs::read(Path::new(run).join("last.safetensors")).unwrap();
    let straight = path(&folder, "straight");
    said(&[&["train", "translate"], &WORDS[..], &["--out", &straight]].concat());
    assert_eq!(best(&straight), best(&run));
}
