//! The choices a user of `attend` makes on the command line.

use crate::inputs::{Learned, Masks};
use crate::machine::Machine;
use anyhow::{Context, Result, ensure};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use regard_kernels::{
    Activation, Bias, Broadcast, Dropout, Mask, Normalizer, Real, Relative, Score, Segments, Spec,
    Window,
};

/// What is computed, from which tensors aside.
#[derive(Args, Clone, Debug, Default)]
pub struct Options {
    /// How a query and a key give a score
    #[arg(long, value_enum, default_value_t, help_heading = "Score")]
    pub score: ScoreName,

    /// The score written as text, over q, k and parameters by any other names: `@` is the dot
    /// product, `d` the width
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true, help_heading = "Score")]
    pub expression: Option<String>,

    /// The factor of a dot product, also the bilinear and the low-rank one [default: 1, for
    /// scaled-dot 1/√D]
    #[arg(long, value_name = "X", allow_hyphen_values = true, help_heading = "Score")]
    pub scale: Option<f64>,

    /// What the additive score applies to q + k [default: tanh]
    #[arg(long, value_parser = activations(), help_heading = "Score")]
    pub activation: Option<Activation>,

    /// Leaky ReLU's factor below zero [default: 0.2]
    #[arg(long, value_name = "X", allow_hyphen_values = true, help_heading = "Score")]
    pub negative_slope: Option<f64>,

    /// No query sees a key after its own position
    #[arg(long, help_heading = "Mask")]
    pub causal: bool,

    /// A query sees LEFT keys before its own position and RIGHT after it
    #[arg(long, value_name = "LEFT,RIGHT", value_parser = window, help_heading = "Mask")]
    pub window: Option<Window>,

    /// Query i stands at key position i + N [default: Nk − Nq, so that the last query meets the
    /// last key]
    #[arg(long, value_name = "N", allow_hyphen_values = true, help_heading = "Mask")]
    pub offset: Option<isize>,

    /// How the scores of a row become its weights
    #[arg(long, value_enum, default_value_t, help_heading = "Normalizer")]
    pub normalizer: NormalizerName,

    /// Zero each weight with probability P, and divide the others by 1 − P
    #[arg(long, value_name = "P", allow_hyphen_values = true, help_heading = "Normalizer")]
    pub dropout: Option<f64>,

    /// What dropout and `--normalizer sample` draw from
    #[arg(long, value_name = "N", default_value_t, help_heading = "Normalizer")]
    pub seed: u64,

    /// Heads that q, k and v are split into, and joined again in out [default: 1, or q's axis of heads]
    #[arg(long, value_name = "N", value_parser = heads)]
    pub heads: Option<usize>,

    /// Type of q, k, v, out and their gradients [default: q's own]
    #[arg(long, value_enum)]
    pub dtype: Option<DtypeName>,

    /// Threads and instruction set.
    #[command(flatten)]
    pub machine: Machine,

    /// Write the weights too: Nq × Nk numbers a head
    #[arg(long, help_heading = "Output")]
    pub weights: bool,

    /// Write the weights as they are before dropout
    #[arg(long, conflicts_with = "weights", help_heading = "Output")]
    pub weights_before_dropout: bool,

    /// Write the log-sum-exp of each row too
    #[arg(long, help_heading = "Output")]
    pub lse: bool,

    /// Compute with the plain loops in f64 that the kernels are tested against (slow)
    #[arg(long, conflicts_with = "isa", help_heading = "Output")]
    pub reference: bool,
}

/// The scores, by name.
#[derive(ValueEnum, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ScoreName {
    /// q·k
    Dot,
    /// q·k / √D
    #[default]
    ScaledDot,
    /// Σ w · activation(q + k); needs the tensor `w`
    Additive,
    /// kᵀ W q; needs the tensor `W`
    Bilinear,
    /// (U k)·(V q); needs the tensors `U` and `V`
    LowRank,
    /// −½ ‖w ∘ (q − k)‖²; needs the tensor `w`
    Gaussian,
    /// The cosine of the angle times the tensor `temperature`
    Cosine,
    /// w·[q; k], or w·tanh(W [q; k]); needs the tensor `w`
    Concat,
    /// What --expression says, with parameters by their names
    Expression,
}

impl ScoreName {
    /// Whether the library computes it, with parameters of its own.
    pub(crate) fn has_parameters(self) -> bool {
        !matches!(self, Self::Dot | Self::ScaledDot | Self::Additive)
    }
}

/// The activations that the additive score has, by name.
fn activations() -> impl TypedValueParser<Value = Activation> {
    PossibleValuesParser::new(["tanh", "leaky-relu", "relu", "gelu", "identity"])
        .try_map(|name| name.parse::<Activation>())
}

/// The normalizers, by name.
#[derive(ValueEnum, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NormalizerName {
    /// exp(s), divided by its sum
    #[default]
    Softmax,
    /// The nearest point of the simplex, with exact zeros
    Sparsemax,
    /// Between softmax and sparsemax
    Entmax15,
    /// 1 / (1 + exp(−s)), each weight on its own
    Sigmoid,
    /// The scores themselves
    None,
    /// All on the largest score; also writes `index` and `log_prob`
    Argmax,
    /// All on one key drawn from the softmax; also writes `index` and `log_prob`
    Sample,
}

/// The types a tensor may be computed from and stored in, by name.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum DtypeName {
    /// 32 bits
    F32,
    /// 64 bits
    F64,
    /// 16 bits with the range of f32, computed in f32
    Bf16,
    /// IEEE half precision, computed in f32
    F16,
}

fn heads(given: &str) -> Result<usize, String> {
    let heads = given.parse::<usize>().ok().filter(|heads| (1..=1 << 20).contains(heads));
    heads.ok_or_else(|| "a whole number from 1 on is needed".into())
}

fn window(given: &str) -> Result<Window, String> {
    let number = |part: &str| part.trim().parse::<usize>().ok();
    given
        .split_once(',')
        .and_then(|(left, right)| Some(Window { left: number(left)?, right: number(right)? }))
        .ok_or_else(|| "two whole numbers are needed, as in 128,0".into())
}

impl Options {
    /// Refuses options that do not belong together, and an instruction set that is not here.
    pub fn check(&self) -> Result<()> {
        self.machine.cpu()?;
        let additive = self.score == ScoreName::Additive;
        use ScoreName::{Additive, Concat, Cosine, Expression, Gaussian};
        let scaled = !matches!(self.score, Additive | Concat | Cosine | Expression | Gaussian);
        ensure!(
            scaled || self.scale.is_none(),
            "--scale belongs to the dot scores, and --score is {}",
            name(self.score)
        );
        ensure!(
            (self.score == Expression) == self.expression.is_some(),
            "--score expression and --expression TEXT belong together"
        );
        ensure!(
            !(self.reference && self.score.has_parameters()),
            "--reference has the dot scores and the additive one, and --score is {}",
            name(self.score)
        );
        ensure!(
            additive || self.activation.is_none(),
            "--activation belongs to --score additive, and --score is {}",
            name(self.score)
        );
        ensure!(
            self.negative_slope.is_none()
                || matches!(self.activation, Some(Activation::LeakyRelu { .. })),
            "--negative-slope belongs to --activation leaky-relu, which was not asked for"
        );
        Ok(())
    }

    /// Whether weights are written, with dropout or without.
    pub(crate) fn writes_weights(&self) -> bool {
        self.weights || self.weights_before_dropout
    }

    /// The names of the parameters that the expression has; none where it cannot be read.
    pub(crate) fn own_parameters(&self) -> Vec<String> {
        let text = self.expression.as_deref().unwrap_or_default();
        let expression = text.parse::<regard::attention::Expression>();
        expression.map_or_else(|_| Vec::new(), |expression| expression.parameters().to_vec())
    }

    /// The normalizer, with its seed.
    pub fn normalizer(&self) -> Normalizer {
        match self.normalizer {
            NormalizerName::Softmax => Normalizer::Softmax,
            NormalizerName::Sparsemax => Normalizer::Sparsemax,
            NormalizerName::Entmax15 => Normalizer::Entmax15,
            NormalizerName::Sigmoid => Normalizer::Sigmoid,
            NormalizerName::None => Normalizer::None,
            NormalizerName::Argmax => Normalizer::Argmax,
            NormalizerName::Sample => Normalizer::Sample { seed: self.seed },
        }
    }

    fn activation(&self) -> Activation {
        match (self.activation.unwrap_or(Activation::Tanh), self.negative_slope) {
            (Activation::LeakyRelu { .. }, Some(slope)) => Activation::LeakyRelu { slope },
            (activation, _) => activation,
        }
    }

    /// The mask that the options and the file's tensors make together.
    pub(crate) fn mask<'a>(&self, masks: &'a Masks) -> Mask<'a> {
        Mask {
            causal: self.causal,
            window: self.window,
            key_lengths: masks.key_lengths.as_deref(),
            segments: masks.segments.as_ref().map(|(q, k)| Segments { q, k }),
            dense: masks.dense.as_ref().map(|x| Broadcast { data: &x.data, shape: x.full }),
            edges: masks.edges.as_ref(),
        }
    }

    /// The mechanism that the options and the file's tensors make together; q has width `width`.
    pub fn spec<'a, T: Real>(
        &self,
        learned: &'a Learned<T>,
        masks: &'a Masks,
        width: usize,
    ) -> Result<Spec<'a, T>> {
        let score = match self.score {
            ScoreName::Additive => {
                let w = learned.w.as_ref().context("--score additive needs the tensor `w`")?;
                Score::Additive { activation: self.activation(), w: &w.data }
            }
            dot => match self.scale {
                Some(scale) => Score::Dot { scale: T::of(scale) },
                None if dot == ScoreName::Dot => Score::Dot { scale: T::ONE },
                None => Score::scaled_dot(width),
            },
        };
        let bias = Bias {
            key: learned.key_bias.as_ref().map(|x| Broadcast { data: &x.data, shape: x.full }),
            full: learned.bias.as_ref().map(|x| Broadcast { data: &x.data, shape: x.full }),
            alibi: learned.alibi_slopes.as_deref(),
            relative: learned
                .relative_bias
                .as_ref()
                .map(|x| Relative { table: &x.data, max_distance: x.full[3] / 2 }),
        };
        Ok(Spec {
            score,
            mask: self.mask(masks),
            bias,
            normalizer: self.normalizer(),
            dropout: self.dropout.map(|p| Dropout { p, seed: self.seed }),
            offset: self.offset,
        })
    }
}

/// A value as it is written on the command line.
pub(crate) fn name(value: impl ValueEnum) -> String {
    value.to_possible_value().map_or_else(String::new, |v| v.get_name().to_owned())
}
