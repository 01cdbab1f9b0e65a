//! How fast a training is: what somebody who watches it from elsewhere is told.

use super::callback::Progress;
use crate::run::clock::Pace;
use std::time::{Duration, Instant};

/// How often it is told.
const EVERY: Duration = Duration::from_secs(2);

/// Measures the pace of a session.
pub(super) struct Pacer {
    /// When the first batch of the session began, and how many are done.
    begun: Option<(Instant, usize)>,
    /// When the epoch began, and how many steps are done of it in this session.
    epoch: Option<(Instant, usize)>,
    told: Instant,
}

impl Pacer {
    pub(super) fn new(now: Instant) -> Self {
        Self { begun: None, epoch: None, told: now }
    }

    /// An epoch begins, or goes on.
    pub(super) fn begin(&mut self, now: Instant) {
        self.begun.get_or_insert((now, 0));
        self.epoch = Some((now, 0));
    }

    /// A step was done on so many batches, by a training of so many epochs. Gives the pace where it
    /// is time to tell it; the seconds spent in all are the clock's to say.
    pub(super) fn step(
        &mut self,
        now: Instant,
        progress: &Progress,
        batches: usize,
        epochs: usize,
    ) -> Option<Pace> {
        let (begun, done) = self.begun.as_mut()?;
        let (since, steps) = self.epoch.as_mut()?;
        (*done, *steps) = (*done + batches, *steps + 1);
        // The last batch is told of too, where it may take a while until validation is done.
        let is_last = progress.batch == progress.batches && now - *since > EVERY;
        if now - self.told < EVERY && !is_last {
            return None;
        }
        self.told = now;
        let before = (progress.epoch - 1) * progress.batches + progress.batch;
        let left = (epochs * progress.batches).saturating_sub(before);
        Some(Pace {
            epoch: progress.epoch,
            batch: progress.batch,
            batches: progress.batches,
            loss: progress.loss,
            seconds: 0.0,
            steps_per_second: *steps as f64 / (now - *since).as_secs_f64().max(1e-9),
            seconds_left: (now - *begun).as_secs_f64() / *done as f64 * left as f64,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speed_is_that_of_the_epoch_and_time_left_that_of_all_batches_validation_included() {
        let start = Instant::now();
        let at = |seconds: u64| start + Duration::from_secs(seconds);
        let progress = |epoch, batch| Progress {
            epoch,
            batch,
            batches: 10,
            examples: 4,
            loss: 0.5,
            rate: 0.1,
        };
        let mut pacer = Pacer::new(start);
        // Two batches a step: ten batches, five steps, in ten seconds.
        pacer.begin(at(0));
        let told: Vec<Pace> = (1..=5)
            .filter_map(|step| pacer.step(at(2 * step), &progress(1, 2 * step as usize), 2, 3))
            .collect();
        assert_eq!(told.len(), 5);
        assert_eq!((told[1].steps_per_second, told[1].seconds_left), (0.5, 26.0));
        assert_eq!((told[4].batch, told[4].seconds_left), (10, 20.0));
        // Validation takes ten seconds: the steps are as fast as before, the epochs are not.
        pacer.begin(at(20));
        let told = pacer.step(at(22), &progress(2, 2), 2, 3);
        assert_eq!(told.map(|pace| (pace.steps_per_second, pace.seconds_left)), Some((0.5, 33.0)));
        // Nothing is told twice within two seconds.
        assert_eq!(pacer.step(at(23), &progress(2, 4), 2, 3), None);
    }
}
