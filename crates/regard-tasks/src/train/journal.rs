//! What a training writes into the folder of its run.

use super::callback::Progress;
use super::curves::curves;
use super::pace::Pacer;
use crate::run::checkpoint::Checkpoint;
use crate::run::clock::Clock;
use crate::run::events::EventFile;
use crate::run::folder::Run;
use crate::run::record::Record;
use crate::run::snapshot::Snapshot;
use regard_data::Result;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How often the curves are drawn anew while a model learns: a picture may cost more than an epoch.
const DRAWING: Duration = Duration::from_secs(5);

/// The files of a run while it is trained.
pub(super) struct Journal<'a> {
    run: &'a Run,
    records: Vec<Record>,
    clock: Clock,
    /// What TensorBoard reads, where it is wanted.
    events: Option<EventFile>,
    pacer: Pacer,
    drawn: Instant,
    /// When the last checkpoint was.
    written: Instant,
}

impl<'a> Journal<'a> {
    pub(super) fn new(run: &'a Run) -> Result<Self> {
        let now = Instant::now();
        let clock = Clock::resume(run, 0)?;
        let (records, pacer) = (Vec::new(), Pacer::new(now));
        Ok(Self { run, records, clock, events: None, pacer, drawn: now, written: now })
    }

    /// Where the checkpoint to go on from is.
    pub(super) fn last_path(&self) -> PathBuf {
        self.run.path("last.safetensors")
    }

    /// The checkpoint to go on from, where there is one.
    pub(super) fn last(&self) -> Option<Result<Checkpoint>> {
        let path = self.last_path();
        path.exists().then(|| Checkpoint::read(&path))
    }

    /// Goes on after so many epochs.
    pub(super) fn resume(&mut self, epochs: usize) -> Result<()> {
        self.records = Record::read(self.run, epochs)?;
        self.clock = Clock::resume(self.run, epochs)?;
        Ok(())
    }

    /// Begins what TensorBoard reads, after so many steps.
    pub(super) fn begin_events(&mut self, steps: u64) -> Result<()> {
        self.events = Some(EventFile::begin(self.run, steps)?);
        Ok(())
    }

    /// Tells TensorBoard of a step, where that is wanted.
    pub(super) fn step(&mut self, step: u64, loss: f64, rate: f64) -> Result<()> {
        self.events.as_mut().map_or(Ok(()), |events| events.step(step, loss, rate))
    }

    /// An epoch begins, or goes on.
    pub(super) fn begin_epoch(&mut self) {
        self.pacer.begin(Instant::now());
    }

    /// Tells now and then how far an epoch has come, of so many, after a step on some batches.
    pub(super) fn progress(
        &mut self,
        progress: &Progress,
        batches: usize,
        epochs: usize,
    ) -> Result<()> {
        match self.pacer.step(Instant::now(), progress, batches, epochs) {
            Some(pace) => self.clock.tell(self.run, pace),
            None => Ok(()),
        }
    }

    /// An epoch is done, or the training stops.
    pub(super) fn rest(&mut self) {
        self.clock.rest();
    }

    /// Writes the checkpoint to go on from.
    pub(super) fn checkpoint(&mut self, checkpoint: &Checkpoint) -> Result<()> {
        self.clock.write(self.run)?;
        checkpoint.write(&self.last_path())?;
        self.written = Instant::now();
        Ok(())
    }

    /// Whether the last checkpoint is more than so many minutes old; never for 0.
    pub(super) fn is_due(&self, minutes: f64) -> bool {
        minutes > 0.0 && self.written.elapsed().as_secs_f64() > 60.0 * minutes
    }

    /// Takes a record, with the time until then.
    pub(super) fn timed(&mut self, record: Record) -> Result<Record> {
        let record = Record { seconds: self.clock.epoch(record.epoch), ..record };
        self.records.push(record.clone());
        if let Some(events) = &mut self.events {
            events.epoch(&record)?;
        }
        Ok(record)
    }

    /// Writes the parameters of the best epoch.
    pub(super) fn best(&self, weights: &Checkpoint) -> Result<()> {
        weights.write(&self.run.path("best.safetensors"))
    }

    /// Writes the records, what the model makes of samples now, and now and then the curves.
    pub(super) fn record(&mut self, samples: Option<Snapshot>) -> Result<()> {
        Record::write(self.run, &self.records)?;
        if let Some(samples) = samples {
            samples.write(self.run)?;
        }
        if self.records.len() == 1 || self.drawn.elapsed() > DRAWING {
            self.draw()?;
        }
        Ok(())
    }

    /// Draws the curves.
    pub(super) fn draw(&mut self) -> Result<()> {
        if !self.records.is_empty() {
            let svg = curves(&self.run.name(), &self.records);
            self.run.write("curves.svg", svg.as_bytes())?;
        }
        self.drawn = Instant::now();
        Ok(())
    }
}
