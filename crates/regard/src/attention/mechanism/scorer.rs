//! Scores with parameters, each brought to one that the kernels compute.

use super::own_config::Scaled;
use super::{BilinearScale, OwnConfig, ScoreConfig};
use crate::attention::axes::repeat_heads;
use crate::{AnyOwnScore, Expression, ExpressionError, Score};
use regard_kernels::Activation;
use regard_tensor::{Init, Parameter, Parameters, Result, Tensor, ensure};
use std::sync::Arc;

/// How many heads have parameters of their own: query heads, and the key heads that divide them.
/// What is applied to keys there is once for each key head.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeadCount {
    pub(crate) queries: usize,
    pub(crate) keys: usize,
}

/// A score with its parameters: each `[…]` for all heads, or `[H, …]` for one head each.
#[derive(Clone)]
pub(super) enum Scorer {
    Dot { scale: f64 },
    Additive { q: Parameter, k: Parameter, w: Parameter },
    Concat { w: Parameter },
    ConcatTanh { weight: Parameter, w: Parameter },
    Bilinear { weight: Parameter, scale: f64 },
    LowRank { q: Parameter, k: Parameter },
    Gaussian { w: Factor },
    Cosine { temperature: Factor },
    Own { score: Arc<dyn AnyOwnScore>, parameters: Parameter },
    Expression { expression: Arc<Expression>, parameters: Vec<Parameter> },
}

/// A number or a row of numbers, learned or not.
#[derive(Clone, Debug)]
pub(super) enum Factor {
    Fixed(f64),
    /// `[n]`, or `[H, 1, n]` for one head each.
    Learned(Parameter),
}

impl Factor {
    /// x `[B, H, N, D]` times it.
    fn times(&self, x: &Tensor) -> Result<Tensor> {
        match self {
            Self::Fixed(w) => x.scale(*w),
            Self::Learned(w) => x.mul(&for_heads(&w.tensor(), x.shape()[1])?),
        }
    }
}

/// A query or a key as the kernels score it.
pub(super) struct ScoredRows {
    /// `[B, H, N, D]`
    pub(super) x: Tensor,
    /// −½ ‖x‖² of each row, for the Gaussian kernel: `[B, H, N]` of queries, `[B, H, 1, N]` of
    /// keys.
    pub(super) own: Option<Tensor>,
}

impl From<Tensor> for ScoredRows {
    fn from(x: Tensor) -> Self {
        Self { x, own: None }
    }
}

/// Where parameters come from: their names, widths and heads.
struct Source<'a> {
    parameters: &'a Parameters,
    heads: Option<HeadCount>,
    dq: usize,
    dk: usize,
}

impl Source<'_> {
    /// A matrix for all heads, or one for each of `heads`, with Glorot's first values.
    fn matrix(&self, name: &str, heads: Option<usize>, size: [usize; 2]) -> Result<Parameter> {
        let [rows, columns] = size;
        match heads {
            None => self.parameters.parameter(name, &size, Init::Glorot),
            Some(heads) => {
                let bound = (6.0 / rows.saturating_add(columns) as f64).sqrt();
                let shape = [heads, rows, columns];
                self.parameters.parameter(name, &shape, Init::Uniform(bound))
            }
        }
    }

    fn of_queries(&self, name: &str, rows: usize, columns: usize) -> Result<Parameter> {
        self.matrix(name, self.heads.map(|heads| heads.queries), [rows, columns])
    }

    fn of_keys(&self, name: &str, rows: usize, columns: usize) -> Result<Parameter> {
        self.matrix(name, self.heads.map(|heads| heads.keys), [rows, columns])
    }

    /// A number or a row of `n` of them, the same at first.
    fn factor(&self, name: &str, heads: Option<usize>, x: f64, n: usize) -> Result<Factor> {
        let shape = heads.map_or_else(|| vec![n], |heads| vec![heads, 1, n]);
        self.parameters.parameter(name, &shape, Init::Constant(x)).map(Factor::Learned)
    }

    fn equal(&self, name: &str) -> Result<()> {
        let (dq, dk) = (self.dq, self.dk);
        ensure!(dq == dk, "the {name} score needs equal widths; queries have {dq}, keys {dk}");
        Ok(())
    }

    fn gaussian(&self, inverse_width: f64, learned: bool, per_feature: bool) -> Result<Scorer> {
        self.equal("Gaussian")?;
        ensure!(
            inverse_width.is_finite() && inverse_width > 0.0,
            "a Gaussian kernel with 1 / width = {inverse_width}"
        );
        ensure!(
            learned || !per_feature,
            "a Gaussian kernel with a width per feature wants them learned"
        );
        let (heads, n) =
            (self.heads.map(|heads| heads.keys), if per_feature { self.dk } else { 1 });
        Ok(Scorer::Gaussian {
            w: match learned {
                true => self.factor("w", heads, inverse_width, n)?,
                false => Factor::Fixed(inverse_width),
            },
        })
    }

    fn cosine(&self, temperature: f64, learned: bool) -> Result<Scorer> {
        self.equal("cosine")?;
        ensure!(temperature.is_finite(), "a cosine score with temperature {temperature}");
        let heads = self.heads.map(|heads| heads.queries);
        Ok(Scorer::Cosine {
            temperature: match learned {
                true => self.factor("temperature", heads, temperature, 1)?,
                false => Factor::Fixed(temperature),
            },
        })
    }

    fn expression(&self, text: &str, numbers: &[String]) -> Result<Scorer> {
        self.equal("expression's")?;
        let expression: Expression = text.parse().map_err(|error: ExpressionError| {
            crate::Error::new(format!("the score `{text}`: {error}"))
        })?;
        let names = expression.parameters();
        if let Some(name) = numbers.iter().find(|name| !names.contains(name)) {
            return Err(crate::Error::new(format!("the score `{text}` has no parameter `{name}`")));
        }
        let heads = self.heads.map(|heads| heads.queries);
        let parameters = names.iter().map(|name| {
            let number = numbers.contains(name);
            let width = if number { 1 } else { self.dk };
            let first = match number {
                true => Init::Constant(1.0),
                false => Init::Uniform((3.0 / self.dk as f64).sqrt()),
            };
            let shape = heads.map_or_else(|| vec![width], |heads| vec![heads, width]);
            self.parameters.parameter(name, &shape, first)
        });
        let parameters = parameters.collect::<Result<Vec<_>>>()?;
        Ok(Scorer::Expression { expression: Arc::new(expression), parameters })
    }

    fn own(&self, config: &OwnConfig) -> Result<Scorer> {
        let (score, n) = (config.score.clone(), config.parameters.len());
        let p = score.in_f64().parameters();
        ensure!(n == p, "an own score of {p} numbers was given {n} to start from");
        score.in_f64().check(self.dq, self.dk).map_err(crate::Error::new)?;
        let heads = self.heads.map(|heads| heads.queries);
        let shape = heads.map_or_else(|| vec![n], |heads| vec![heads, n]);
        let parameters = self.parameters.parameter("own", &shape, Init::Zeros)?;
        let first = Tensor::from_vec(config.parameters.clone(), &[n])?;
        let first = first.to_dtype(self.parameters.dtype())?.broadcast_to(&shape)?;
        parameters.set(&first)?;
        Ok(Scorer::Own { score, parameters })
    }
}

impl Scorer {
    /// For queries of width `dq` and keys of width `dk`: one for all heads, or one for each.
    pub(super) fn new(
        parameters: &Parameters,
        config: &ScoreConfig,
        heads: Option<HeadCount>,
        dq: usize,
        dk: usize,
    ) -> Result<Self> {
        ensure!(dq > 0 && dk > 0, "a score of queries of width {dq} and keys of width {dk}");
        let from = Source { parameters, heads, dq, dk };
        Ok(match *config {
            ScoreConfig::Dot => {
                from.equal("dot")?;
                Self::Dot { scale: 1.0 }
            }
            ScoreConfig::ScaledDot => {
                from.equal("scaled dot")?;
                Self::Dot { scale: 1.0 / (dk as f64).sqrt() }
            }
            ScoreConfig::Additive { hidden } => {
                ensure!(hidden > 0, "an additive score of hidden size 0");
                Self::Additive {
                    q: from.of_queries("W_q.weight", hidden, dq)?,
                    k: from.of_keys("W_k.weight", hidden, dk)?,
                    w: from.of_queries("w_v.weight", 1, hidden)?,
                }
            }
            ScoreConfig::Concat { hidden: None } => {
                Self::Concat { w: from.of_keys("w", 1, dq + dk)? }
            }
            ScoreConfig::Concat { hidden: Some(hidden) } => {
                ensure!(hidden > 0, "a concat score of hidden size 0");
                Self::ConcatTanh {
                    weight: from.of_keys("W", hidden, dq + dk)?,
                    w: from.of_queries("w", 1, hidden)?,
                }
            }
            ScoreConfig::Bilinear { scale } => Self::Bilinear {
                weight: from.of_queries("W", dk, dq)?,
                scale: match scale {
                    BilinearScale::None => 1.0,
                    BilinearScale::Root => 1.0 / (dk as f64).sqrt(),
                    BilinearScale::FourthRoot => 1.0 / (dq as f64 * dk as f64).powf(0.25),
                },
            },
            ScoreConfig::LowRank { rank } => {
                ensure!(rank > 0, "a low-rank score of rank 0");
                Self::LowRank {
                    q: from.of_queries("V.weight", rank, dq)?,
                    k: from.of_keys("U.weight", rank, dk)?,
                }
            }
            ScoreConfig::Gaussian { inverse_width, learned, per_feature } => {
                from.gaussian(inverse_width, learned, per_feature)?
            }
            ScoreConfig::Cosine { temperature, learned } => from.cosine(temperature, learned)?,
            ScoreConfig::Own(ref config) => from.own(config)?,
            ScoreConfig::Expression { ref score, ref numbers } => {
                from.expression(score, numbers)?
            }
        })
    }

    /// Whether anything of it is learned.
    pub(super) fn has_parameters(&self) -> bool {
        if let Self::Expression { parameters, .. } = self {
            return !parameters.is_empty();
        }
        !matches!(
            self,
            Self::Dot { .. }
                | Self::Gaussian { w: Factor::Fixed(_) }
                | Self::Cosine { temperature: Factor::Fixed(_) }
        )
    }

    /// What the Gaussian kernel subtracts from queries and keys, so that nothing large cancels:
    /// the first key, which no padding can move. Distances do not change, so neither do gradients.
    pub(super) fn center(&self, k: &Tensor) -> Result<Option<Tensor>> {
        match self {
            Self::Gaussian { .. } if k.shape()[2] > 0 => Ok(Some(k.detach().narrow(2, 0, 1)?)),
            _ => Ok(None),
        }
    }

    /// Keys `[B, Hk, Nk, Dk]` as the kernels score them.
    pub(super) fn keys(&self, k: &Tensor, center: Option<&Tensor>) -> Result<ScoredRows> {
        let dk = k.shape()[3];
        Ok(match self {
            Self::Dot { .. }
            | Self::Bilinear { .. }
            | Self::Own { .. }
            | Self::Expression { .. } => k.clone().into(),
            Self::Additive { k: weight, .. } | Self::LowRank { k: weight, .. } => {
                project(k, &weight.tensor())?.into()
            }
            Self::Concat { w } | Self::ConcatTanh { weight: w, .. } => {
                let w = w.tensor();
                let dq = w.shape()[w.rank() - 1].saturating_sub(dk);
                project(k, &w.narrow(-1, dq, dk)?)?.into()
            }
            Self::Gaussian { w } => {
                let ScoredRows { x, own } = gaussian(w, k, center)?;
                ScoredRows { x, own: own.map(|own| own.unsqueeze(2)).transpose()? }
            }
            Self::Cosine { .. } => unit(k)?.into(),
        })
    }

    /// Queries `[B, Hq, Nq, Dq]` as the kernels score them.
    pub(super) fn queries(&self, q: &Tensor, center: Option<&Tensor>) -> Result<ScoredRows> {
        let dq = q.shape()[3];
        Ok(match self {
            Self::Dot { .. } | Self::Own { .. } | Self::Expression { .. } => q.clone().into(),
            Self::Additive { q: weight, .. }
            | Self::LowRank { q: weight, .. }
            | Self::Bilinear { weight, .. } => project(q, &weight.tensor())?.into(),
            Self::Concat { w } | Self::ConcatTanh { weight: w, .. } => {
                project(q, &w.tensor().narrow(-1, 0, dq)?)?.into()
            }
            Self::Gaussian { w } => gaussian(w, q, center)?,
            Self::Cosine { temperature } => temperature.times(&unit(q)?)?.into(),
        })
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
                let w = w.tensor();
                additive(Activation::Tanh, w.squeeze(w.rank() as isize - 2)?)
            }
            Self::Concat { w } => {
                let w = w.tensor();
                let one = Tensor::full(&[1], 1.0, w.dtype())?.to_device(w.device())?;
                additive(Activation::Identity, one)
            }
            Self::Own { score, parameters } => {
                let parameters = parameters.tensor();
                let score = match by {
                    1.0 => score.clone(),
                    factor => Arc::new(Scaled { score: score.clone(), factor }),
                };
                Ok(Score::Own { score, parameters })
            }
            Self::Expression { expression, parameters } => {
                let parameters: Vec<Tensor> = parameters.iter().map(Parameter::tensor).collect();
                let expression = match by {
                    1.0 => expression.clone(),
                    factor => {
                        let text = format!("({expression}) * {factor}");
                        Arc::new(text.parse().map_err(|error: ExpressionError| {
                            crate::Error::new(error.to_string())
                        })?)
                    }
                };
                Score::bound(expression, &parameters)
            }
        }
    }
}

impl std::fmt::Debug for Scorer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.score(1.0) {
            Ok(score) => write!(f, "Scorer({score:?})"),
            Err(error) => write!(f, "Scorer({error})"),
        }
    }
}

/// x `[B, H, N, in]` times the transpose of W, `[out, in]` or `[H, out, in]`: `[B, H, N, out]`.
fn project(x: &Tensor, weight: &Tensor) -> Result<Tensor> {
    if weight.rank() == 2 {
        return x.linear(weight, None);
    }
    x.matmul(&for_heads(weight, x.shape()[1])?.transpose(1, 2)?)
}

/// Parameters `[Hk, …, …]` for query heads that share them; those for all heads as they are.
fn for_heads(weight: &Tensor, heads: usize) -> Result<Tensor> {
    if weight.rank() < 3 || weight.shape()[0] == heads {
        return Ok(weight.clone());
    }
    repeat_heads(&weight.unsqueeze(0)?, heads)?.squeeze(0)
}

fn gaussian(w: &Factor, x: &Tensor, center: Option<&Tensor>) -> Result<ScoredRows> {
    let x = match center {
        Some(center) => x.sub(&repeat_heads(center, x.shape()[1])?)?,
        None => x.clone(),
    };
    let x = w.times(&x)?;
    let own = x.square()?.sum(3)?.scale(-0.5)?;
    Ok(ScoredRows { x, own: Some(own) })
}

/// Rows of length 1; a row of zeros stays one.
fn unit(x: &Tensor) -> Result<Tensor> {
    let squares = x.square()?.sum(3)?.unsqueeze(3)?;
    x.div(&squares.shift(1e-24)?.sqrt()?)
}
