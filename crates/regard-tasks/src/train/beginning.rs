//! Where a training begins: from its options, from its last checkpoint, from what rank 0 says.

use super::average::Average;
use super::callback::Callback;
use super::journal::Journal;
use super::ranks::share;
use super::start::prepare;
use super::trainer::Trainer;
use crate::run::checkpoint::Checkpoint;
use regard_data::{Error, Result};

impl Trainer<'_> {
    /// Rank 0 goes back to the last checkpoint or begins; the others begin where it does.
    pub(super) fn begin(&mut self, callback: &mut dyn Callback) -> Result<()> {
        let own = match &self.journal {
            Some(_) => self.resume_or_start(callback),
            None => Ok(()),
        };
        if self.ranks.size() == 1 {
            return own;
        }
        let own = own.and_then(|()| match &self.journal {
            Some(_) => Ok(Some(self.whole()?.to_bytes()?)),
            None => Ok(None),
        });
        let own = own.map_err(|error| error.to_string()).transpose();
        let bytes = share(self.ranks, own)?;
        match &self.journal {
            Some(_) => Ok(()),
            None => self.restore(&Checkpoint::from_bytes(&bytes)?),
        }
    }

    /// Goes back to the last checkpoint; where there is none, begins from what the options name.
    fn resume_or_start(&mut self, callback: &mut dyn Callback) -> Result<()> {
        let Some(checkpoint) = self.journal.as_ref().and_then(Journal::last) else {
            return self.start(callback);
        };
        let checkpoint = checkpoint?;
        self.restore(&checkpoint)?;
        match &mut self.journal {
            Some(journal) => journal.resume(self.state.epoch),
            None => Ok(()),
        }
    }

    /// Goes back to a checkpoint.
    fn restore(&mut self, checkpoint: &Checkpoint) -> Result<()> {
        let refuse = |error: Error| match &self.journal {
            Some(journal) => Error::file(journal.last_path(), error),
            None => error,
        };
        checkpoint.set_parameters(self.learner.model().parameters()).map_err(refuse)?;
        self.optimizer.set_state(&checkpoint.group("optimizer"))?;
        self.learner.set_state(&checkpoint.group("learner")).map_err(refuse)?;
        if let Some(average) = &mut self.average {
            average.set_state(&checkpoint.group("average")).map_err(refuse)?;
        }
        self.state = checkpoint.state.clone();
        if self.state.seed != self.config.seed {
            return Err(refuse(Error::invalid(format!("began with the seed {}", self.state.seed))));
        }
        Ok(())
    }

    fn start(&mut self, callback: &mut dyn Callback) -> Result<()> {
        prepare(self.learner, self.config, callback)?;
        if let Some(average) = &mut self.average {
            *average = Average::new(self.learner.model().parameters(), self.config.ema_decay);
        }
        Ok(())
    }
}
