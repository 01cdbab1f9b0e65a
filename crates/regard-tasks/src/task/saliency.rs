//! How much each part of an input matters for what is predicted, told in several ways, and how right
//! each of them is.

use super::attributed;
use super::faithfulness::Faithfulness;
use super::quadrature::gauss_legendre;
use regard::Tensor;
use regard::attention::traced;
use regard::layers::probe_tokens;
use regard::tensor::{DType, Parameter, with_gradients, without_gradients};
use regard_data::{Error, Result};
use serde::{Deserialize, Serialize};
use std::cell::Cell;
use std::str::FromStr;

/// Points on the way from zero to the input where integrated gradients are computed.
const POINTS: usize = 32;

/// A way of telling how much each part of an input matters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Method {
    /// The gradient of what is predicted, times the input.
    #[default]
    GradientInput,
    /// The same, the gradient being the mean on the straight way from zero to the input: the values add
    /// up to the difference that the whole input makes (Sundararajan, Taly and Yan 2017).
    IntegratedGradients,
    /// The weight that a part is given, the mean over queries, heads and layers of the attention that
    /// is nearest to the output.
    Attention,
    /// Each weight times its gradient, summed over queries, heads and layers of all attentions that
    /// look at the input.
    AttentionGradient,
    /// The weights of all layers together (Abnar and Zuidema 2020), seen from the attention that is nearest
    /// to the output.
    Rollout,
}

impl Method {
    /// All there are.
    pub const ALL: [Self; 5] = [
        Self::GradientInput,
        Self::IntegratedGradients,
        Self::Attention,
        Self::AttentionGradient,
        Self::Rollout,
    ];

    /// As it is written in options.
    ///
    /// ```
    /// use regard_tasks::task::Method;
    /// assert_eq!(Method::Rollout.name(), "rollout");
    /// ```
    pub fn name(self) -> &'static str {
        match self {
            Self::GradientInput => "gradient-input",
            Self::IntegratedGradients => "integrated-gradients",
            Self::Attention => "attention",
            Self::AttentionGradient => "attention-gradient",
            Self::Rollout => "rollout",
        }
    }
}

impl FromStr for Method {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let found = Self::ALL.into_iter().find(|method| method.name() == name);
        found.ok_or_else(|| {
            let all = Self::ALL.map(|method| format!("`{}`", method.name())).join(", ");
            Error::invalid(format!("there is no method `{name}`; there are {all}"))
        })
    }
}

/// What is asked about an input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct How {
    /// How its parts are told to matter.
    pub method: Method,
    /// Whether it is tried by taking them away.
    pub faithfulness: bool,
}

/// How much each part of an input changes what is predicted.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Saliency {
    /// What is explained.
    pub of: String,
    /// What the tokens, vectors or patches are called.
    pub names: Vec<String>,
    /// One number for each; more matters more, and of gradients the sign says which way.
    pub values: Vec<f32>,
    /// Patches down and across, where it is a picture.
    pub grid: Option<[usize; 2]>,
    /// How the numbers were found.
    pub method: Method,
    /// What is explained, less what it is where all parts are zero: what integrated gradients add up to.
    pub difference: Option<f64>,
    /// What becomes of it where parts are taken away in this order.
    pub faithfulness: Option<Faithfulness>,
}

/// The numbers of a method, which a task gives names.
pub(crate) struct Explained {
    pub(crate) values: Vec<f32>,
    method: Method,
    difference: Option<f64>,
    faithfulness: Option<Faithfulness>,
}

impl Explained {
    pub(crate) fn named(
        self,
        of: String,
        names: Vec<String>,
        grid: Option<[usize; 2]>,
    ) -> Saliency {
        let Self { values, method, difference, faithfulness } = self;
        Saliency { of, names, values, grid, method, difference, faithfulness }
    }
}

type Score<'a> = &'a dyn Fn(&Tensor) -> Result<Tensor>;

/// Where a score has its input.
enum Place<'a> {
    /// Where its first tokens become vectors.
    Embedding(&'a dyn Fn() -> Result<Tensor>),
    /// At an input of vectors or pixels.
    Input(Tensor, Score<'a>),
}

/// A score that is looked at by the parts of its input.
pub(crate) struct Probe<'a> {
    place: Place<'a>,
    /// The parts that the rows make, as many to each; every row is one where there is none.
    grouped: Option<usize>,
    /// The pixels of a side, where parts are patches.
    patch: Option<usize>,
    /// The parts that are looked at; the others stay as they are.
    first: Option<usize>,
    /// The rows of the input, once they are known.
    rows: Cell<Option<usize>>,
}

/// One computation of a score.
struct Pass {
    score: Tensor,
    /// The input as it went in, scaled.
    inputs: Vec<Parameter>,
}

impl<'a> Probe<'a> {
    fn new(place: Place<'a>) -> Self {
        Self { place, grouped: None, patch: None, first: None, rows: Cell::new(None) }
    }

    /// At the vectors of the tokens that are embedded first.
    pub(crate) fn embedding(score: &'a dyn Fn() -> Result<Tensor>) -> Self {
        Self::new(Place::Embedding(score))
    }

    /// At an input of vectors, `[…, D]`.
    pub(crate) fn input(x: Tensor, score: Score<'a>) -> Self {
        Self::new(Place::Input(x, score))
    }

    /// At an image `[1, C, height, width]`, by patches of so many pixels on a side, row by row.
    pub(crate) fn image(x: Tensor, patch: usize, score: Score<'a>) -> Self {
        Self { patch: Some(patch), ..Self::new(Place::Input(x, score)) }
    }

    /// The rows make so many parts, as many to each.
    pub(crate) fn in_parts(self, count: usize) -> Self {
        Self { grouped: Some(count), ..self }
    }

    /// Only so many parts are looked at.
    pub(crate) fn first(self, count: usize) -> Self {
        Self { first: Some(count), ..self }
    }

    /// What a method says of the parts, and how right it is where that is asked.
    pub(crate) fn explain(&self, how: How) -> Result<Explained> {
        let (mut values, mut difference) = (self.values(how.method)?, None);
        values.truncate(self.first.unwrap_or(values.len()));
        let parts = values.len();
        if how.method == Method::IntegratedGradients {
            let at = |factor| self.score_at(&vec![factor; parts]);
            difference = Some(at(1.0)? - at(0.0)?);
        }
        let measure = |factors: &[f64]| self.score_at(factors);
        let faithfulness = match how.faithfulness {
            true => Some(Faithfulness::measure(&values, &measure)?),
            false => None,
        };
        Ok(Explained { values, method: how.method, difference, faithfulness })
    }

    fn values(&self, method: Method) -> Result<Vec<f32>> {
        let found = match method {
            Method::GradientInput => self.gradients(None)?,
            Method::IntegratedGradients => self.integrated()?,
            Method::Attention | Method::AttentionGradient | Method::Rollout => {
                let (pass, calls) = traced(|| with_gradients(|| self.pass(None)));
                let pass = pass?;
                let parts = self.parts(&pass.inputs)?;
                match method {
                    Method::Attention => attributed::attention(&calls, parts)?,
                    Method::Rollout => attributed::rollout(&calls, parts)?,
                    _ => {
                        let gradients = pass.score.sum_all()?.backward()?;
                        attributed::attention_gradient(&calls, &gradients, parts)?
                    }
                }
            }
        };
        Ok(found.into_iter().map(|value| value as f32).collect())
    }

    /// The mean gradient on the way from zero, times the input.
    fn integrated(&self) -> Result<Vec<f64>> {
        let pass = without_gradients(|| self.pass(None))?;
        let parts = self.parts(&pass.inputs)?;
        let count = self.first.unwrap_or(parts).min(parts);
        let mut all = vec![0.0; parts];
        for (at, weight) in gauss_legendre(POINTS) {
            let gradients = self.gradients(Some(&vec![at; count]))?;
            // What went in was the input times `at`.
            let add = |(sum, value): (&mut f64, &f64)| *sum += weight * value / at;
            all.iter_mut().zip(&gradients).for_each(add);
        }
        Ok(all)
    }

    /// The gradient times what went in, summed over each part.
    fn gradients(&self, factors: Option<&[f64]>) -> Result<Vec<f64>> {
        let Pass { score, inputs } = with_gradients(|| self.pass(factors))?;
        let mut all = vec![0.0; self.parts(&inputs)?];
        let gradients = score.sum_all()?.backward()?;
        for input in &inputs {
            // None where the score does not depend on it.
            let Some(gradient) = gradients.get(input) else { continue };
            let value = input.tensor().detach();
            let product = gradient.mul(&value)?.to_dtype(DType::F64)?;
            let product = product.contiguous()?.to_vec::<f64>()?;
            for (at, number) in product.into_iter().enumerate() {
                if let Some(part) = self.part_of(at, value.shape()) {
                    all[part] += number;
                }
            }
        }
        Ok(all)
    }

    /// The score where each of the first parts is multiplied by a factor; [`Probe::values`] came before.
    fn score_at(&self, factors: &[f64]) -> Result<f64> {
        let pass = without_gradients(|| self.pass(Some(factors)))?;
        let score = pass.score.sum_all()?.to_dtype(DType::F64)?.to_vec::<f64>()?;
        Ok(score[0])
    }

    fn pass(&self, factors: Option<&[f64]>) -> Result<Pass> {
        match &self.place {
            Place::Embedding(score) => {
                let rows = self.rows.get();
                let factors = factors.zip(rows).map(|(factors, rows)| self.by_row(factors, rows));
                let (score, inputs) = probe_tokens(factors.as_deref(), score);
                let score = score?;
                self.rows.set(Some(self::rows(&inputs)?));
                Ok(Pass { score, inputs })
            }
            Place::Input(x, score) => {
                let x = match factors {
                    None => x.clone(),
                    Some(factors) => x.mul(&self.by_number(factors, x)?)?,
                };
                let input = Parameter::new("input", x)?;
                Ok(Pass { score: score(&input.tensor())?, inputs: vec![input] })
            }
        }
    }

    /// A factor for each row, 1 where none is given.
    fn by_row(&self, factors: &[f64], rows: usize) -> Vec<f64> {
        let wide = self.wide(rows);
        (0..rows).map(|row| factors.get(row / wide).copied().unwrap_or(1.0)).collect()
    }

    /// A factor for each number of an input.
    fn by_number(&self, factors: &[f64], x: &Tensor) -> Result<Tensor> {
        let factor = |at| {
            let part = self.part_of(at, x.shape());
            part.and_then(|part| factors.get(part).copied()).unwrap_or(1.0)
        };
        let all: Vec<f64> = (0..x.numel()).map(factor).collect();
        Ok(Tensor::from_vec(all, x.shape())?.to_dtype(x.dtype())?.to_device(x.device())?)
    }

    /// The part that a number of an input of this shape belongs to; none beyond the last whole patch.
    fn part_of(&self, at: usize, shape: &[usize]) -> Option<usize> {
        let last = shape.last().copied().unwrap_or(1).max(1);
        let Some(patch) = self.patch else {
            return Some(at / last / self.wide(shape.iter().product::<usize>() / last));
        };
        let (down, across) = (shape[shape.len() - 2] / patch, last / patch);
        let (row, column) = (at / last % shape[shape.len() - 2] / patch, at % last / patch);
        (row < down && column < across).then_some(row * across + column)
    }

    /// The rows of a part.
    fn wide(&self, rows: usize) -> usize {
        self.grouped.map_or(1, |count| rows / count.max(1)).max(1)
    }

    fn parts(&self, inputs: &[Parameter]) -> Result<usize> {
        let rows = rows(inputs)?;
        let Some(patch) = self.patch else { return Ok(rows / self.wide(rows)) };
        let input = inputs[0].tensor();
        let shape = input.shape();
        Ok((shape[shape.len() - 2] / patch) * (shape[shape.len() - 1] / patch))
    }
}

/// The rows of an input.
fn rows(inputs: &[Parameter]) -> Result<usize> {
    let first = inputs.first().ok_or_else(|| Error::invalid("this model embeds no tokens"))?;
    let value = first.tensor();
    Ok(value.numel() / value.shape().last().copied().unwrap_or(1).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use regard::Mode;
    use regard::attention::{Site, recorded};
    use regard::layers::{Embedding, TransformerConfig, TransformerEncoder};
    use regard::tensor::{Parameters, Random};

    const WORDS: usize = 5;
    const READ: usize = 2;

    /// (w · x)² of one word's vector x, whatever the other words are.
    fn one_word(embedding: &Embedding) -> Result<Tensor> {
        let ids = Tensor::from_vec(vec![3i64, 1, 4, 0, 5], &[1, WORDS])?;
        let x = embedding.forward(&ids)?.narrow(1, READ, 1)?;
        let product = x.mul(&Tensor::from_vec(vec![1.0, -2.0, 0.5], &[1, 1, 3])?)?.sum_all()?;
        Ok(product.mul(&product)?)
    }

    #[test]
    fn a_model_that_reads_one_word_is_explained_by_that_word_alone() -> Result<()> {
        let embedding = Embedding::new(&Parameters::new(DType::F64, 1), 7, 3, None)?;
        let score = || one_word(&embedding);
        let f = score()?.to_vec::<f64>()?[0];
        for (method, factor) in [(Method::GradientInput, 2.0), (Method::IntegratedGradients, 1.0)] {
            let found = Probe::embedding(&score).explain(How { method, faithfulness: true })?;
            for (at, &value) in found.values.iter().enumerate() {
                let known = if at == READ { factor * f } else { 0.0 };
                assert!((f64::from(value) - known).abs() < 1e-6 * f, "{method:?} {at}: {value}");
            }
            let faithful = found.faithfulness.expect("asked for");
            assert_eq!(faithful.removed, [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]);
            assert_eq!(faithful.most.scores, [f, 0.0, 0.0, 0.0, 0.0, 0.0]);
            assert!((faithful.most.area - 0.9 * f).abs() < 1e-9);
            // All others are equal, and the word that is read goes last.
            assert_eq!(faithful.least.scores, [f, f, f, f, f, 0.0]);
            assert!((faithful.least.area - 0.1 * f).abs() < 1e-9);
            assert!(faithful.random.area > 0.1 * f && faithful.random.area < 0.9 * f);
        }
        Ok(())
    }

    fn encoder() -> Result<(TransformerEncoder, Tensor)> {
        let config = TransformerConfig::new(8, 2, 3);
        let encoder = TransformerEncoder::new(&Parameters::new(DType::F64, 3), &config, 8)?;
        Ok((encoder, Random::new(5).normal(&[1, 4, 8], 0.0, 1.0, DType::F64)?))
    }

    #[test]
    fn integrated_gradients_add_up_to_what_the_input_changes() -> Result<()> {
        let (encoder, x) = encoder()?;
        let weights = Random::new(9).normal(&[1, 4, 8], 0.0, 1.0, DType::F64)?;
        let score = |x: &Tensor| -> Result<Tensor> {
            Ok(encoder.forward(x, None, Mode::Infer)?.mul(&weights)?.sum_all()?)
        };
        let how = How { method: Method::IntegratedGradients, faithfulness: false };
        let zero = Tensor::zeros(x.shape(), DType::F64)?;
        let known = score(&x)?.to_vec::<f64>()?[0] - score(&zero)?.to_vec::<f64>()?[0];
        let found = Probe::input(x, &score).explain(how)?;
        let difference = found.difference.expect("integrated gradients have one");
        assert!((difference - known).abs() < 1e-9);
        let sum: f64 = found.values.iter().map(|&value| f64::from(value)).sum();
        assert!((sum - known).abs() < 0.02 * known.abs().max(1.0), "{sum} and {known}");
        Ok(())
    }

    #[test]
    fn a_rollout_is_the_product_of_all_layers_and_seen_by_every_row() -> Result<()> {
        let (encoder, x) = encoder()?;
        let score = |x: &Tensor| Ok(encoder.forward(x, None, Mode::Infer)?.sum_all()?);
        let (_, calls) = recorded(|| score(&x));
        let n = 4;
        let mut flow: Vec<Vec<f64>> =
            (0..n).map(|i| (0..n).map(|j| f64::from(u8::from(i == j))).collect()).collect();
        for call in &calls {
            assert_eq!(call.site, Site::Encoder);
            let weights = call.weights.as_ref().expect("weights").to_vec::<f64>()?;
            let mixed = |i: usize, j: usize| {
                let mean = 0.5 * (weights[i * n + j] + weights[(n + i) * n + j]);
                0.5 * mean + 0.5 * f64::from(u8::from(i == j))
            };
            let cell = |i: usize, j: usize| (0..n).map(|k| mixed(i, k) * flow[k][j]).sum();
            flow = (0..n).map(|i| (0..n).map(|j| cell(i, j)).collect()).collect();
        }
        let how = How { method: Method::Rollout, faithfulness: false };
        let found = Probe::input(x.clone(), &score).explain(how)?;
        for (j, &value) in found.values.iter().enumerate() {
            let known: f64 = flow.iter().map(|row| row[j]).sum::<f64>() / n as f64;
            assert!((f64::from(value) - known).abs() < 1e-6, "{j}: {value} and {known}");
        }
        Ok(())
    }

    #[test]
    fn patches_of_a_picture_are_told_apart() -> Result<()> {
        // 5 × 4 pixels are two rows of two patches, and a row of pixels that belongs to none.
        let x = Tensor::from_vec((1..=20).map(f64::from).collect::<Vec<_>>(), &[1, 1, 5, 4])?;
        let score = |x: &Tensor| Ok(x.sum_all()?);
        let how = How { method: Method::IntegratedGradients, faithfulness: true };
        let found = Probe::image(x, 2, &score).explain(how)?;
        let known = [14.0, 22.0, 46.0, 54.0];
        let near = |(ours, known): (&f32, f64)| (f64::from(*ours) - known).abs() < 1e-4;
        assert!(found.values.iter().zip(known).all(near), "{:?}", found.values);
        let faithful = found.faithfulness.expect("asked for");
        assert_eq!(faithful.most.scores, [210.0, 156.0, 110.0, 88.0, 74.0]);
        Ok(())
    }
}
