//! A training's curves as TensorBoard reads them.
//!
//! An event file is a sequence of records: the length (u64), its checksum, the content and its
//! checksum, all in little-endian order (TensorFlow's `TFRecord`). A checksum is CRC-32C, turned by 15
//! bits and added to a constant. The content is the Protocol Buffers message `Event`: `wall_time` (1),
//! `step` (2), `file_version` (3), `summary` (5) of `value` (1) with `tag` (1) and `simple_value` (2),
//! and `session_log` (7) with `status` (1).

use super::record::Record;
use crate::run::folder::Run;
use crate::run::protobuf::Message;
use regard_data::{Error, Result};
use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The folder of a run that holds event files.
pub(crate) const FOLDER: &str = "tensorboard";
/// How the name of an event file begins; TensorBoard knows them by that.
pub(crate) const PREFIX: &str = "events.out.tfevents.";
/// How long what is written may stay in memory.
const FLUSH: Duration = Duration::from_secs(2);

/// An event file that grows as a model is trained. Whoever resumes begins another beside it.
pub(crate) struct EventFile {
    path: PathBuf,
    file: File,
    /// What has not been written yet.
    pending: Vec<u8>,
    written: Instant,
}

impl EventFile {
    /// Begins a file in a run's folder, after so many steps. What an earlier session has told of later
    /// ones is void.
    pub(crate) fn begin(run: &Run, steps: u64) -> Result<Self> {
        let folder = run.path(FOLDER);
        std::fs::create_dir_all(&folder).map_err(|error| Error::file(&folder, error))?;
        let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        // Two sessions within a second have two files.
        let name = format!("{PREFIX}{:010}.{:09}.regard", time.as_secs(), time.subsec_nanos());
        let path = folder.join(name);
        let file = File::create_new(&path).map_err(|error| Error::file(&path, error))?;
        let mut events = Self { path, file, pending: Vec::new(), written: Instant::now() };
        events.put(event(0).text(FILE_VERSION, "brain.Event:2"));
        if steps > 0 {
            const START: i64 = 1;
            let log = Message::default().int(1, START);
            events.put(event(steps + 1).message(SESSION_LOG, &log));
        }
        events.flush()?;
        Ok(events)
    }

    /// The loss and the rate of a step.
    pub(crate) fn step(&mut self, step: u64, loss: f64, rate: f64) -> Result<()> {
        self.scalars(step, &[("batch/loss", loss), ("batch/rate", rate)]);
        match self.written.elapsed() > FLUSH {
            true => self.flush(),
            false => Ok(()),
        }
    }

    /// The measures of an epoch that was validated.
    pub(crate) fn epoch(&mut self, record: &Record) -> Result<()> {
        let measures = record.validation.values.iter();
        let measures = measures.map(|(name, value)| (format!("validation/{name}"), *value));
        let mut all = vec![("training/loss".to_string(), record.loss)];
        all.push(("training/epoch".into(), record.epoch as f64));
        all.extend(measures);
        let all: Vec<(&str, f64)> = all.iter().map(|(name, value)| (&name[..], *value)).collect();
        self.scalars(record.step, &all);
        self.flush()
    }

    fn scalars(&mut self, step: u64, all: &[(&str, f64)]) {
        let value =
            |&(tag, value): &(&str, f64)| Message::default().text(1, tag).float(2, value as f32);
        let summary =
            all.iter().fold(Message::default(), |summary, one| summary.message(1, &value(one)));
        self.put(event(step).message(SUMMARY, &summary));
    }

    fn put(&mut self, event: Message) {
        self.pending.extend(record(&event.finish()));
    }

    fn flush(&mut self) -> Result<()> {
        let failed = |error| Error::file(&self.path, error);
        self.file.write_all(&self.pending).map_err(failed)?;
        self.pending.clear();
        self.written = Instant::now();
        Ok(())
    }
}

impl Drop for EventFile {
    fn drop(&mut self) {
        // The last steps before an error: nothing can be done where they cannot be written.
        let _ = self.flush();
    }
}

const FILE_VERSION: u64 = 3;
const SUMMARY: u64 = 5;
const SESSION_LOG: u64 = 7;

/// An event at a step, now.
fn event(step: u64) -> Message {
    let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Message::default().double(1, time.as_secs_f64()).int(2, step as i64)
}

/// A content between its length and its checksum.
fn record(content: &[u8]) -> Vec<u8> {
    let length = (content.len() as u64).to_le_bytes();
    let mut record = length.to_vec();
    record.extend(masked_crc(&length).to_le_bytes());
    record.extend(content);
    record.extend(masked_crc(content).to_le_bytes());
    record
}

fn masked_crc(bytes: &[u8]) -> u32 {
    crc32c(bytes).rotate_right(15).wrapping_add(0xa282_ead8)
}

/// CRC-32C (Castagnoli), bit by bit: events are few and short.
fn crc32c(bytes: &[u8]) -> u32 {
    const POLYNOMIAL: u32 = 0x82f6_3b78;
    let mut crc = !0u32;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = crc >> 1 ^ POLYNOMIAL & (crc & 1).wrapping_neg();
        }
    }
    !crc
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_that_of_rfc_3720() {
        // Appendix B.4: 32 zeros, 32 ones, 0 to 31.
        assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa);
        assert_eq!(crc32c(&[0xff; 32]), 0x62a8_ab43);
        let up: Vec<u8> = (0..32).collect();
        assert_eq!(crc32c(&up), 0x46dd_794e);
    }
}
