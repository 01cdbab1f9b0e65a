//! What `metrics.jsonl` says of an epoch that was validated.

use super::clock;
use crate::metric::scores::Scores;
use crate::run::folder::Run;
use regard_data::{Error, Result};
use serde::{Deserialize, Serialize};

/// One epoch that was validated: a line of `metrics.jsonl`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The epoch, from 1.
    pub epoch: usize,
    /// Steps done in all.
    pub step: u64,
    /// The mean training loss.
    #[serde(deserialize_with = "crate::metric::scores::number")]
    pub loss: f64,
    /// The learning rate at its end.
    pub rate: f64,
    /// Seconds spent in all; they are kept in `clock.json`.
    #[serde(default, skip_serializing)]
    pub seconds: f64,
    /// Measures on the validation part; the first decides.
    pub validation: Scores,
    /// Whether it is the best so far.
    pub best: bool,
}

const FILE: &str = "metrics.jsonl";

impl Record {
    /// The records of a run's epochs up to one.
    pub fn read(run: &Run, epochs: usize) -> Result<Vec<Self>> {
        if !run.path(FILE).exists() {
            return Ok(Vec::new());
        }
        let mut records = Vec::new();
        let text = std::fs::read_to_string(run.path(FILE));
        let text = text.map_err(|error| Error::file(run.path(FILE), error))?;
        for (i, line) in text.lines().enumerate() {
            let record: Self = serde_json::from_str(line)
                .map_err(|e| Error::line(run.path(FILE), i + 1, e.to_string()))?;
            records.push(record);
        }
        records.retain(|record| record.epoch <= epochs);
        for (epoch, seconds) in clock::seconds(run)? {
            let of = records.iter_mut().filter(|record| record.epoch == epoch);
            of.for_each(|record| record.seconds = seconds);
        }
        Ok(records)
    }

    pub(crate) fn write(run: &Run, records: &[Self]) -> Result<()> {
        let mut text = String::new();
        for record in records {
            text += &serde_json::to_string(record).map_err(|e| Error::file(run.path(FILE), e))?;
            text.push('\n');
        }
        run.write(FILE, text.as_bytes())?;
        Ok(())
    }
}
