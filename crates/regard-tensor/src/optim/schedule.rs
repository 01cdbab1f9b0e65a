//! Learning rates that depend on the step alone.

use crate::{Result, ensure};

/// How the rate goes down after the warm-up.
///
/// ```
/// use regard_tensor::{Decay, Schedule};
/// let decay = Decay::InverseSquareRoot;
/// let schedule = Schedule { warmup: 100, decay, ..Schedule::constant(1.0) };
/// assert_eq!((schedule.rate(100), schedule.rate(400)), (1.0, 0.5));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum Decay {
    /// It does not.
    #[default]
    Constant,
    /// Along half a cosine to the floor at the last step.
    Cosine,
    /// With the inverse square root of the step.
    InverseSquareRoot,
}

/// A learning rate for every step: up in a straight line for `warmup` steps, then down.
///
/// ```
/// use regard_tensor::{Decay, Schedule};
/// let schedule = Schedule { peak: 1.0, warmup: 10, steps: 110, floor: 0.0, decay: Decay::Cosine };
/// assert_eq!(schedule.rate(0), 0.1);
/// assert_eq!(schedule.rate(10), 1.0);
/// assert!((schedule.rate(60) - 0.5).abs() < 1e-12);
/// assert_eq!(schedule.rate(110), 0.0);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Schedule {
    /// The highest rate.
    pub peak: f64,
    /// Steps of the way up.
    pub warmup: u64,
    /// All steps of the run; where the cosine ends.
    pub steps: u64,
    /// The lowest rate on the way down.
    pub floor: f64,
    /// The way down.
    pub decay: Decay,
}

/// A constant rate of 0.001, what Adam begins with.
impl Default for Schedule {
    fn default() -> Self {
        Self::constant(1e-3)
    }
}

impl Schedule {
    /// The same rate always.
    ///
    /// ```
    /// assert_eq!(regard_tensor::Schedule::constant(0.1).rate(1000), 0.1);
    /// ```
    pub fn constant(rate: f64) -> Self {
        Self { peak: rate, warmup: 0, steps: 0, floor: 0.0, decay: Decay::Constant }
    }

    /// Refuses rates that cannot be meant.
    ///
    /// ```
    /// use regard_tensor::{Decay, Schedule};
    /// let schedule = Schedule { warmup: 10, steps: 10, decay: Decay::Cosine, ..Schedule::constant(0.1) };
    /// let error = schedule.check().unwrap_err();
    /// assert_eq!(error.to_string(), "10 steps leave nothing after a warm-up of 10");
    /// ```
    pub fn check(&self) -> Result<()> {
        ensure!(self.peak.is_finite() && self.peak >= 0.0, "a learning rate of {}", self.peak);
        ensure!(
            self.floor >= 0.0 && self.floor <= self.peak,
            "the lowest rate {} is not between 0 and the highest, {}",
            self.floor,
            self.peak
        );
        ensure!(
            self.decay != Decay::Cosine || self.steps > self.warmup,
            "{} steps leave nothing after a warm-up of {}",
            self.steps,
            self.warmup
        );
        Ok(())
    }

    /// The rate of a step; the first is 0.
    ///
    /// ```
    /// use regard_tensor::Schedule;
    /// let schedule = Schedule { warmup: 4, ..Schedule::constant(1.0) };
    /// assert_eq!([0, 1, 2, 3, 4].map(|step| schedule.rate(step)), [0.25, 0.5, 0.75, 1.0, 1.0]);
    /// ```
    pub fn rate(&self, step: u64) -> f64 {
        if step < self.warmup {
            return self.peak * (step + 1) as f64 / self.warmup as f64;
        }
        match self.decay {
            Decay::Constant => self.peak,
            Decay::Cosine => {
                let way = (step - self.warmup) as f64
                    / self.steps.saturating_sub(self.warmup).max(1) as f64;
                let cosine = (1.0 + (std::f64::consts::PI * way.min(1.0)).cos()) / 2.0;
                self.floor + (self.peak - self.floor) * cosine
            }
            Decay::InverseSquareRoot => {
                let start = self.warmup.max(1) as f64;
                (self.peak * (start / (step as f64).max(start)).sqrt()).max(self.floor)
            }
        }
    }
}
