//! How a model is trained: the section `[training]` of every task's options.

use crate::options::class_weights::ClassWeights;
use crate::options::template::Options;
use regard::tensor::{Better, Decay, Plateau, Precision, Schedule, UpdateRule};
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
    /// Passes over the training part.
    pub epochs: usize,
    /// Examples in a batch.
    pub batch_size: usize,
    /// Tokens in a batch at most, in place of so many examples; 0 for examples.
    #[serde(default)]
    pub batch_tokens: usize,
    /// Batches whose gradients are accumulated for one step.
    pub accumulation_steps: usize,
    /// The optimizer.
    pub optimizer: OptimizerKind,
    /// The learning rate, at its highest.
    pub learning_rate: f64,
    /// Adam's β1 and β2.
    pub betas: (f64, f64),
    /// Momentum of stochastic gradient descent.
    pub momentum: f64,
    /// Weight decay.
    pub weight_decay: f64,
    /// How the learning rate decays.
    pub schedule: ScheduleKind,
    /// Warmup steps, over which the learning rate rises from 0.
    pub warmup_steps: u64,
    /// The lowest learning rate of the cosine and plateau schedules.
    pub min_learning_rate: f64,
    /// The factor by which the plateau schedule lowers the learning rate.
    pub plateau_factor: f64,
    /// How many validations without improvement the plateau schedule waits.
    pub plateau_patience: u64,
    /// Gradients are clipped to this norm; 0 for no clipping.
    pub clip_norm: f64,
    /// In what numbers matrices are multiplied in a step.
    #[serde(default)]
    pub precision: PrecisionKind,
    /// Decay of the exponential moving average (EMA) of the parameters; 0 for none.
    pub ema_decay: f64,
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
    /// Label smoothing.
    pub label_smoothing: f64,
    /// The seed of all random numbers.
    pub seed: u64,
    /// A run, or a safetensors file, whose weights are loaded where names and shapes match.
    #[serde(default)]
    pub init_from: Option<PathBuf>,
    /// Names of parameters that are not trained; `*` stands for anything.
    #[serde(default)]
    pub freeze: Vec<String>,
    /// How much each label counts, where labels are told apart.
    #[serde(default)]
    pub class_weights: ClassWeights,
}

/// The optimizer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OptimizerKind {
    /// Adam.
    Adam,
    /// AdamW.
    Adamw,
    /// Stochastic gradient descent, with momentum.
    Sgd,
}

/// In what numbers matrices are multiplied in a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PrecisionKind {
    /// f32.
    #[default]
    F32,
    /// f32, of which a GPU may leave out what its units do not multiply.
    Tf32,
    /// Factors in bf16, sums in f32.
    Bf16,
}

impl PrecisionKind {
    /// As the library has it.
    pub(crate) fn of_products(self) -> Precision {
        match self {
            Self::F32 => Precision::F32,
            Self::Tf32 => Precision::Tf32,
            Self::Bf16 => Precision::Bf16,
        }
    }
}

/// How the learning rate decays.
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
        if self.batch_size == 0 {
            return refuse("batch_size", &0);
        }
        if self.accumulation_steps == 0 {
            return refuse("accumulation_steps", &0);
        }
        if self.validate_every == 0 {
            return refuse("validate_every", &0);
        }
        if !(self.learning_rate.is_finite() && self.learning_rate > 0.0) {
            return refuse("learning_rate", &self.learning_rate);
        }
        if !(self.clip_norm.is_finite() && self.clip_norm >= 0.0) {
            return refuse("clip_norm", &self.clip_norm);
        }
        for (name, value) in [
            ("weight_decay", self.weight_decay),
            ("min_learning_rate", self.min_learning_rate),
            ("checkpoint_minutes", self.checkpoint_minutes),
        ] {
            if !(value.is_finite() && value >= 0.0) {
                return refuse(name, &value);
            }
        }
        if self.min_learning_rate > self.learning_rate {
            return refuse(
                "min_learning_rate",
                &format!(
                    "{}, above the learning rate {}",
                    self.min_learning_rate, self.learning_rate
                ),
            );
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
        if !(0.0..1.0).contains(&self.ema_decay) {
            return refuse("ema_decay", &self.ema_decay);
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

    pub(crate) fn rule(&self) -> UpdateRule {
        let &Self { betas, momentum, weight_decay, .. } = self;
        let eps = 1e-8;
        match self.optimizer {
            OptimizerKind::Adam => UpdateRule::Adam { betas, eps, weight_decay },
            OptimizerKind::Adamw => UpdateRule::AdamW { betas, eps, weight_decay },
            OptimizerKind::Sgd => UpdateRule::Sgd { momentum, nesterov: false, weight_decay },
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
        let steps = steps.max(self.warmup_steps + 1);
        Schedule {
            peak: self.learning_rate,
            warmup: self.warmup_steps,
            steps,
            floor: self.min_learning_rate,
            decay,
        }
    }

    /// What the rate is multiplied by, as validations go.
    pub(crate) fn plateau(&self, better: Better) -> Option<Plateau> {
        (self.schedule == ScheduleKind::Plateau).then(|| Plateau {
            factor: self.plateau_factor,
            patience: self.plateau_patience,
            floor: self.min_learning_rate / self.learning_rate,
            better,
            ..Plateau::new(1.0)
        })
    }
}
