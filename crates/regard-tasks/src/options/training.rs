//! How a model is trained: the section `[training]` of every task's options.

use crate::options::class_weights::ClassWeights;
use crate::options::template::Options;
use regard::tensor::{Better, Decay, Plateau, Rule, Schedule};
use regard_data::files::BatchSize;
use regard_data::{Error, Result};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The section `[training]` of a template.
pub(crate) const TEMPLATE: &str = include_str!("training.toml");
/// What follows it where labels are told apart.
pub(crate) const CLASS_WEIGHTS: &str = include_str!("class_weights.toml");

/// How a model is trained.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrainingConfig {
    /// How often every example is seen.
    pub epochs: usize,
    /// Examples in a batch.
    pub batch: usize,
    /// Tokens in a batch at most, in place of so many examples; 0 for examples.
    #[serde(default)]
    pub batch_tokens: usize,
    /// Batches whose gradients are added up for one step.
    pub accumulate: usize,
    /// Which rule parameters follow.
    pub optimizer: OptimizerKind,
    /// The highest learning rate.
    pub rate: f64,
    /// What Adam keeps of the mean gradient and of the mean square.
    pub betas: (f64, f64),
    /// What plain descent keeps of its direction.
    pub momentum: f64,
    /// How strongly parameters are drawn to 0.
    pub weight_decay: f64,
    /// How the rate goes down.
    pub schedule: ScheduleKind,
    /// Steps of the way up.
    pub warmup: u64,
    /// The lowest rate of the cosine and of the plateau.
    pub floor: f64,
    /// What the plateau multiplies the rate by.
    pub plateau_factor: f64,
    /// How many validations without a better one the plateau bears.
    pub plateau_patience: u64,
    /// The largest norm of the gradients; 0 for any.
    pub clip: f64,
    /// The share of the running mean of the parameters that is kept at a step; 0 for no mean.
    pub average: f64,
    /// Epochs from one validation, with its record and checkpoint, to the next.
    pub validate_every: usize,
    /// Minutes from one checkpoint to the next at most, however long an epoch is; 0 for those of
    /// validations alone.
    pub checkpoint_minutes: f64,
    /// Whether curves are written for TensorBoard too.
    #[serde(default)]
    pub tensorboard: bool,
    /// Stop after so many validations without a better one; 0 for never.
    pub patience: usize,
    /// The share of the target that the loss spreads over all labels.
    pub label_smoothing: f64,
    /// Where all random numbers come from.
    pub seed: u64,
    /// A run, or a safetensors file, whose weights are taken where they fit.
    #[serde(default)]
    pub init_from: Option<PathBuf>,
    /// Names of weights that stay as they are; `*` stands for anything.
    #[serde(default)]
    pub freeze: Vec<String>,
    /// How much each label counts, where labels are told apart.
    #[serde(default)]
    pub class_weights: ClassWeights,
}

/// Which rule parameters follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OptimizerKind {
    /// Adam.
    Adam,
    /// AdamW.
    Adamw,
    /// Plain descent.
    Sgd,
}

/// How the rate goes down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ScheduleKind {
    /// Not at all.
    Constant,
    /// Along a cosine, to the end of the last epoch.
    Cosine,
    /// With the inverse square root of the step.
    InverseSquareRoot,
    /// When the validation measure stops getting better.
    Plateau,
}

impl TrainingConfig {
    /// The section `[training]` of a task's options.
    pub fn of(options: &Options) -> Result<Self> {
        #[derive(Deserialize)]
        struct Whole {
            training: TrainingConfig,
        }
        Ok(options.read::<Whole>()?.training)
    }

    /// Refuses what cannot be trained, by name.
    pub fn check(&self) -> Result<()> {
        let refuse = |name: &str, value: &dyn std::fmt::Display| {
            Err(Error::invalid(format!("`training.{name}` cannot be {value}")))
        };
        if self.epochs == 0 {
            return refuse("epochs", &0);
        }
        if self.batch == 0 {
            return refuse("batch", &0);
        }
        if self.accumulate == 0 {
            return refuse("accumulate", &0);
        }
        if self.validate_every == 0 {
            return refuse("validate_every", &0);
        }
        if !(self.rate.is_finite() && self.rate > 0.0) {
            return refuse("rate", &self.rate);
        }
        if !(self.clip.is_finite() && self.clip >= 0.0) {
            return refuse("clip", &self.clip);
        }
        for (name, value) in [
            ("weight_decay", self.weight_decay),
            ("floor", self.floor),
            ("checkpoint_minutes", self.checkpoint_minutes),
        ] {
            if !(value.is_finite() && value >= 0.0) {
                return refuse(name, &value);
            }
        }
        if self.floor > self.rate {
            return refuse("floor", &format!("{}, above the rate {}", self.floor, self.rate));
        }
        let (mean, square) = self.betas;
        for (name, share) in [
            ("betas", mean),
            ("betas", square),
            ("momentum", self.momentum),
            ("label_smoothing", self.label_smoothing),
        ] {
            if !(0.0..1.0).contains(&share) {
                return refuse(name, &share);
            }
        }
        if !(0.0..1.0).contains(&self.average) {
            return refuse("average", &self.average);
        }
        if !(0.0..1.0).contains(&self.plateau_factor) {
            return refuse("plateau_factor", &self.plateau_factor);
        }
        self.class_weights.check()
    }

    /// How much goes into a batch of sequences, where examples are asked for or `batch_tokens`.
    pub(crate) fn batch_size(&self, examples: usize) -> BatchSize {
        match self.batch_tokens {
            0 => BatchSize::Sequences(examples),
            tokens => BatchSize::Tokens(tokens),
        }
    }

    pub(crate) fn rule(&self) -> Rule {
        let &Self { betas, momentum, weight_decay, .. } = self;
        let eps = 1e-8;
        match self.optimizer {
            OptimizerKind::Adam => Rule::Adam { betas, eps, weight_decay },
            OptimizerKind::Adamw => Rule::AdamW { betas, eps, weight_decay },
            OptimizerKind::Sgd => Rule::Sgd { momentum, nesterov: false, weight_decay },
        }
    }

    /// The rate at each step of a run of so many; a plateau multiplies it.
    pub(crate) fn schedule(&self, steps: u64) -> Schedule {
        let decay = match self.schedule {
            ScheduleKind::Constant | ScheduleKind::Plateau => Decay::Constant,
            ScheduleKind::Cosine => Decay::Cosine,
            ScheduleKind::InverseSquareRoot => Decay::InverseSquareRoot,
        };
        // A run too short for its warm-up ends on the way up.
        let steps = steps.max(self.warmup + 1);
        Schedule { peak: self.rate, warmup: self.warmup, steps, floor: self.floor, decay }
    }

    /// What the rate is multiplied by, as validations go.
    pub(crate) fn plateau(&self, better: Better) -> Option<Plateau> {
        (self.schedule == ScheduleKind::Plateau).then(|| Plateau {
            factor: self.plateau_factor,
            patience: self.plateau_patience,
            floor: self.floor / self.rate,
            better,
            ..Plateau::new(1.0)
        })
    }
}
