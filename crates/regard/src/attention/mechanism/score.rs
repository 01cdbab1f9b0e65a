//! Scores with parameters, each brought to one of the two that the kernels compute.

use crate::{Linear, Score};
use regard_kernels::Activation;
use regard_tensor::{Init, Parameter, Parameters, Result, Tensor, ensure};
use serde::{Deserialize, Serialize};

/// A score s(k, q), with keys of width Dk and queries of width Dq.
///
/// ```
/// use regard::prelude::*;
/// let score: ScoreConfig = serde_json::from_str(r#"{ "low-rank": { "rank": 4 } }"#).unwrap();
/// assert_eq!(score, ScoreConfig::LowRank { rank: 4 });
/// let dot = MechanismConfig::new(ScoreConfig::Dot);
/// let error = Mechanism::new(&Parameters::new(DType::F32, 1), &dot, 6, 10).unwrap_err().to_string();
/// assert_eq!(error, "the dot score needs equal widths; queries have 6, keys 10");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", rename_all_fields = "kebab-case", deny_unknown_fields)]
pub enum ScoreConfig {
    /// k·q
    Dot,
    /// k·q / √D
    ScaledDot,
    /// w · tanh(W_k k + W_q q) with W of `hidden` rows.
    Additive {
        /// Rows of W_k and W_q.
        hidden: usize,
    },
    /// w · [q; k], or w · tanh(W [q; k]) with a W of `hidden` rows.
    Concat {
        /// Rows of W; none for the plain form.
        hidden: Option<usize>,
    },
    /// kᵀ W q, scaled.
    Bilinear {
        /// The factor.
        scale: BilinearScale,
    },
    /// (U k) · (V q) with U and V of `rank` rows.
    LowRank {
        /// Rows of U and V.
        rank: usize,
    },
    /// −½ ‖ w ∘ (q − k) ‖²: Nadaraya and Watson's kernel.
    Gaussian {
        /// The first w, one over the kernel's width.
        inverse_width: f64,
        /// Whether w is learned.
        learned: bool,
        /// Whether each feature has its own w.
        per_feature: bool,
    },
    /// τ · k·q / (‖k‖ ‖q‖)
    Cosine {
        /// The first τ.
        temperature: f64,
        /// Whether τ is learned.
        learned: bool,
    },
}

/// What a bilinear score is multiplied by.
///
/// ```
/// use regard::prelude::*;
/// let score = ScoreConfig::Bilinear { scale: BilinearScale::Root };
/// let config = MechanismConfig { weighting: Weighting::None, ..MechanismConfig::new(score) };
/// let parameters = Parameters::new(DType::F32, 1);
/// let plain = Mechanism::new(&parameters, &config, 4, 4)?;
/// let ones = |shape: &[usize]| Tensor::full(shape, 1.0, DType::F32);
/// parameters.all()[0].set(&ones(&[4, 4])?)?;
/// let one = ones(&[1, 1, 4])?;
/// // 16 over the root of 4
/// let weights = plain.attend(&one, &one, &one, &Mask::none(), Mode::Infer, true)?.weights.unwrap();
/// assert_eq!(weights.item()?, 8.0);
/// # Ok::<(), regard::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BilinearScale {
    /// 1
    #[default]
    None,
    /// 1 / √D_k
    Root,
    /// 1 / ⁴√(D_q · D_k), for unequal widths.
    FourthRoot,
}

/// A score with its parameters.
#[derive(Clone, Debug)]
pub(super) enum Scorer {
    Dot { scale: f64 },
    Additive { q: Linear, k: Linear, w: Parameter },
    Concat { w: Parameter },
    ConcatTanh { weight: Parameter, w: Parameter },
    Bilinear { weight: Parameter, scale: f64 },
    LowRank { q: Linear, k: Linear },
    Gaussian { w: Width },
    Cosine { temperature: Width },
}

/// A number or a row of numbers, learned or not.
#[derive(Clone, Debug)]
pub(super) enum Width {
    Fixed(f64),
    Learned(Parameter),
}

impl Width {
    fn new(parameters: &Parameters, name: &str, x: f64, learned: bool, n: usize) -> Result<Self> {
        if !learned {
            return Ok(Self::Fixed(x));
        }
        Ok(Self::Learned(parameters.parameter(name, &[n], Init::Constant(x))?))
    }

    /// x times it.
    fn times(&self, x: &Tensor) -> Result<Tensor> {
        match self {
            Self::Fixed(w) => x.scale(*w),
            Self::Learned(w) => x.mul(&w.tensor()),
        }
    }
}

/// A query or a key as the kernels score it.
pub(super) struct Prepared {
    pub(super) x: Tensor,
    /// −½ ‖x‖² of each row, for the Gaussian kernel.
    pub(super) own: Option<Tensor>,
}

impl Scorer {
    pub(super) fn new(
        parameters: &Parameters,
        config: &ScoreConfig,
        dq: usize,
        dk: usize,
    ) -> Result<Self> {
        ensure!(dq > 0 && dk > 0, "a score of queries of width {dq} and keys of width {dk}");
        let equal = |name: &str| {
            ensure!(dq == dk, "the {name} score needs equal widths; queries have {dq}, keys {dk}");
            Ok(())
        };
        let linear =
            |name: &str, input, output| Linear::new(&parameters.at(name), input, output, false);
        Ok(match *config {
            ScoreConfig::Dot => {
                equal("dot")?;
                Self::Dot { scale: 1.0 }
            }
            ScoreConfig::ScaledDot => {
                equal("scaled dot")?;
                Self::Dot { scale: 1.0 / (dk as f64).sqrt() }
            }
            ScoreConfig::Additive { hidden } => {
                ensure!(hidden > 0, "an additive score of hidden size 0");
                Self::Additive {
                    q: linear("W_q", dq, hidden)?,
                    k: linear("W_k", dk, hidden)?,
                    w: parameters.parameter("w_v.weight", &[1, hidden], Init::Glorot)?,
                }
            }
            ScoreConfig::Concat { hidden: None } => {
                Self::Concat { w: parameters.parameter("w", &[1, dq + dk], Init::Glorot)? }
            }
            ScoreConfig::Concat { hidden: Some(hidden) } => {
                ensure!(hidden > 0, "a concat score of hidden size 0");
                Self::ConcatTanh {
                    weight: parameters.parameter("W", &[hidden, dq + dk], Init::Glorot)?,
                    w: parameters.parameter("w", &[1, hidden], Init::Glorot)?,
                }
            }
            ScoreConfig::Bilinear { scale } => Self::Bilinear {
                weight: parameters.parameter("W", &[dk, dq], Init::Glorot)?,
                scale: match scale {
                    BilinearScale::None => 1.0,
                    BilinearScale::Root => 1.0 / (dk as f64).sqrt(),
                    BilinearScale::FourthRoot => 1.0 / ((dq * dk) as f64).powf(0.25),
                },
            },
            ScoreConfig::LowRank { rank } => {
                ensure!(rank > 0, "a low-rank score of rank 0");
                Self::LowRank { q: linear("V", dq, rank)?, k: linear("U", dk, rank)? }
            }
            ScoreConfig::Gaussian { inverse_width, learned, per_feature } => {
                equal("Gaussian")?;
                ensure!(
                    inverse_width.is_finite() && inverse_width > 0.0,
                    "a Gaussian kernel with 1 / width = {inverse_width}"
                );
                ensure!(
                    learned || !per_feature,
                    "a Gaussian kernel with a width per feature wants them learned"
                );
                let n = if per_feature { dk } else { 1 };
                Self::Gaussian { w: Width::new(parameters, "w", inverse_width, learned, n)? }
            }
            ScoreConfig::Cosine { temperature, learned } => {
                equal("cosine")?;
                ensure!(temperature.is_finite(), "a cosine score with temperature {temperature}");
                let temperature = Width::new(parameters, "temperature", temperature, learned, 1)?;
                Self::Cosine { temperature }
            }
        })
    }

    /// What the Gaussian kernel subtracts from queries and keys, so that nothing large cancels:
    /// the first key, which no padding can move. Distances do not change, so neither do gradients.
    pub(super) fn center(&self, k: &Tensor) -> Result<Option<Tensor>> {
        match self {
            Self::Gaussian { .. } if k.shape()[1] > 0 => Ok(Some(k.detach().narrow(1, 0, 1)?)),
            _ => Ok(None),
        }
    }

    /// Keys `[B, Nk, Dk]` as the kernels score them.
    pub(super) fn keys(&self, k: &Tensor, center: Option<&Tensor>) -> Result<Prepared> {
        let dk = k.shape()[2];
        let x = match self {
            Self::Dot { .. } | Self::Bilinear { .. } => k.clone(),
            Self::Additive { k: linear, .. } | Self::LowRank { k: linear, .. } => {
                linear.forward(k)?
            }
            Self::Concat { w } | Self::ConcatTanh { weight: w, .. } => {
                let w = w.tensor();
                let dq = w.shape()[1] - dk;
                k.linear(&w.narrow(1, dq, dk)?, None)?
            }
            Self::Gaussian { w } => return gaussian(w, k, center),
            Self::Cosine { .. } => unit(k)?,
        };
        Ok(Prepared { x, own: None })
    }

    /// Queries `[B, Nq, Dq]` as the kernels score them.
    pub(super) fn queries(&self, q: &Tensor, center: Option<&Tensor>) -> Result<Prepared> {
        let dq = q.shape()[2];
        let x = match self {
            Self::Dot { .. } => q.clone(),
            Self::Additive { q: linear, .. } | Self::LowRank { q: linear, .. } => {
                linear.forward(q)?
            }
            Self::Concat { w } | Self::ConcatTanh { weight: w, .. } => {
                q.linear(&w.tensor().narrow(1, 0, dq)?, None)?
            }
            Self::Bilinear { weight, .. } => q.linear(&weight.tensor(), None)?,
            Self::Gaussian { w } => return gaussian(w, q, center),
            Self::Cosine { temperature } => temperature.times(&unit(q)?)?,
        };
        Ok(Prepared { x, own: None })
    }

    /// The score of what was prepared, all of it divided by a temperature.
    pub(super) fn score(&self, temperature: f64) -> Result<Score> {
        let by = 1.0 / temperature;
        let additive = |activation, w: Tensor| -> Result<Score> {
            let w = if by == 1.0 { w } else { w.scale(by)? };
            Ok(Score::Additive { activation, w })
        };
        match self {
            Self::Dot { scale } | Self::Bilinear { scale, .. } => {
                Ok(Score::Dot { scale: scale * by })
            }
            Self::LowRank { .. } | Self::Gaussian { .. } | Self::Cosine { .. } => {
                Ok(Score::Dot { scale: by })
            }
            Self::Additive { w, .. } | Self::ConcatTanh { w, .. } => {
                additive(Activation::Tanh, w.tensor().select(0, 0)?)
            }
            Self::Concat { w } => {
                let one = Tensor::full(&[1], 1.0, w.tensor().dtype())?;
                additive(Activation::Identity, one)
            }
        }
    }
}

fn gaussian(w: &Width, x: &Tensor, center: Option<&Tensor>) -> Result<Prepared> {
    let x = match center {
        Some(center) => x.sub(center)?,
        None => x.clone(),
    };
    let x = w.times(&x)?;
    let own = x.square()?.sum(2)?.scale(-0.5)?;
    Ok(Prepared { x, own: Some(own) })
}

/// Rows of length 1; a row of zeros stays one.
fn unit(x: &Tensor) -> Result<Tensor> {
    let squares = x.square()?.sum(2)?.unsqueeze(2)?;
    x.div(&squares.shift(1e-24)?.sqrt()?)
}
