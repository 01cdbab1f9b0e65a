//! How long a training took. It has a file of its own: all other files of equal runs are equal.

use crate::run::folder::Run;
use crate::task::json_file::JsonFile;
use regard_data::{Error, Result};
use serde::{Deserialize, Serialize};
use std::time::Instant;

const FILE: &str = "clock.json";

/// The clock of a training, which goes on where it was resumed.
pub(crate) struct Clock {
    kept: Kept,
    before: f64,
    started: Instant,
}

/// How far an epoch has come and how fast it goes; kept in `clock.json` while a model is trained.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pace {
    /// The epoch that is being trained, from 1.
    pub epoch: usize,
    /// Batches done of it.
    pub batch: usize,
    /// Batches in it; when all are done, validation runs.
    pub batches: usize,
    /// The mean loss of the epoch so far.
    pub loss: f64,
    /// Seconds spent in all.
    pub seconds: f64,
    /// Steps of the optimizer a second in this epoch, validation left aside.
    pub steps_per_second: f64,
    /// Seconds that all batches that are left will take, at the pace of this session so far,
    /// validations included.
    pub seconds_left: f64,
}

/// What `clock.json` says.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Kept {
    /// Seconds spent in all.
    seconds: f64,
    /// Epochs that were validated, and the seconds spent until then.
    epochs: Vec<(usize, f64)>,
    /// How far it is within an epoch, while it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pace: Option<Pace>,
}

impl Kept {
    fn read(run: &Run) -> Result<Self> {
        match run.path(FILE).exists() {
            true => JsonFile::read(&run.path(FILE))?.parse(),
            false => Ok(Self::default()),
        }
    }
}

impl Clock {
    /// Goes on from what a run has spent, of whose epochs so many count.
    pub(crate) fn resume(run: &Run, epochs: usize) -> Result<Self> {
        let mut kept = Kept::read(run)?;
        kept.epochs.retain(|&(epoch, _)| epoch <= epochs);
        kept.pace = None;
        Ok(Self { before: kept.seconds, kept, started: Instant::now() })
    }

    /// Seconds spent in all.
    pub(crate) fn seconds(&self) -> f64 {
        self.before + self.started.elapsed().as_secs_f64()
    }

    /// Notes an epoch that was validated; gives the seconds until then.
    pub(crate) fn epoch(&mut self, epoch: usize) -> f64 {
        let seconds = self.seconds();
        self.kept.epochs.push((epoch, seconds));
        seconds
    }

    /// Writes what was spent, beside a checkpoint.
    pub(crate) fn write(&mut self, run: &Run) -> Result<()> {
        self.kept.seconds = self.seconds();
        self.put(run)
    }

    /// Writes how far an epoch has come. What was spent since the last checkpoint does not count
    /// yet: whoever is killed goes on from there.
    pub(crate) fn tell(&mut self, run: &Run, pace: Pace) -> Result<()> {
        self.kept.pace = Some(Pace { seconds: self.seconds(), ..pace });
        self.put(run)
    }

    /// An epoch is done, or the training stops: there is no pace to be told of.
    pub(crate) fn rest(&mut self) {
        self.kept.pace = None;
    }

    fn put(&self, run: &Run) -> Result<()> {
        let text = serde_json::to_string(&self.kept).map_err(|e| Error::file(run.path(FILE), e))?;
        run.write(FILE, text.as_bytes())?;
        Ok(())
    }
}

/// The seconds until each validated epoch of a run.
pub(crate) fn seconds(run: &Run) -> Result<Vec<(usize, f64)>> {
    Ok(Kept::read(run)?.epochs)
}

impl Pace {
    /// What the training of a run has told last; none where no epoch is on its way.
    pub fn read(run: &Run) -> Result<Option<Self>> {
        Ok(Kept::read(run)?.pace)
    }
}
