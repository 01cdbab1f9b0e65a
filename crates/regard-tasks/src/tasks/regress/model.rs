//! A regression: the data it learned from, and how near counts.

use super::config::{Config, Kind};
use super::data::{Dataset, Datum, Observations, by_line, same_columns};
use crate::metric::judged::Judged;
use crate::metric::scores::Scores;
use crate::metric::{mean_squared_error, r_squared};
use crate::task::abilities::{Abilities, Explains, Exports};
use crate::task::input::{Asks, Input, InputForm};
use crate::task::looked_up::LookedUp;
use crate::task::model::Model;
use crate::task::named_rows::NamedRows;
use crate::task::network::{Exported, Network};
use crate::task::part::Part;
use crate::task::prediction::Prediction;
use crate::task::report::{PerExample, Report};
use crate::task::saliency::{How, Probe, Saliency};
use regard::attention::{Attended, Need, Site};
use regard::models::KernelRegression;
use regard::tensor::{Better, Parameters, Random, without_gradients};
use regard::{DType, Tensor};
use regard_data::tick;
use regard_data::{Error, Result, toy};
use regard_picture::scene::{CurveScene, Map, Maps, Place, Scene};
use serde::{Deserialize, Serialize};

/// Points of a curve.
const POINTS: usize = 120;
/// Data that are named for one answer; the others weigh less.
const NAMED: usize = 5;
/// Data in a picture of one answer.
const PICTURED: usize = 40;
/// Every datum is compared with every other: more than this would take gigabytes.
pub(super) const MAX_POINTS: usize = 10_000;

/// What a regression knows of its data.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Preprocessor {
    /// The columns; the last is predicted from the others.
    pub(super) names: Vec<String>,
    /// How many data there are to learn from.
    points: usize,
    /// The mean of each column that is known, and how far its values lie from it.
    mean: Vec<f64>,
    deviation: Vec<f64>,
}

impl Preprocessor {
    pub(super) fn fit(observations: &Observations) -> Result<Self> {
        let points = observations.data.len();
        if points < 2 {
            return Err(Error::invalid(format!("{points} data to learn from; 2 are the fewest")));
        }
        let columns = 0..observations.names.len() - 1;
        let mean_of = |values: &dyn Fn(&Datum) -> f64| {
            observations.data.iter().map(values).sum::<f64>() / points as f64
        };
        let mean: Vec<f64> = columns.clone().map(|c| mean_of(&|(x, _)| x[c])).collect();
        let deviation = columns.map(|c| {
            let variance = mean_of(&|(x, _)| (x[c] - mean[c]).powi(2));
            // A column that never changes has no spread to divide by.
            if variance > 0.0 { variance.sqrt() } else { 1.0 }
        });
        let deviation = deviation.collect();
        Ok(Self { names: observations.names.clone(), points, mean, deviation })
    }
}

pub(super) struct Regression {
    pub(super) config: Config,
    pub(super) preprocessor: Preprocessor,
    parameters: Parameters,
    regression: KernelRegression,
    looked_up: LookedUp<Datum>,
}

impl Regression {
    /// One that has no data yet: a checkpoint holds them, or [`Regression::take`] gives them.
    pub(super) fn new(config: Config, preprocessor: Preprocessor) -> Result<Self> {
        let parameters = Parameters::new(DType::F32, config.training.seed);
        let of = config.regression(preprocessor.points, preprocessor.mean.len());
        let regression = KernelRegression::new(&parameters, &of)?;
        Ok(Self { config, preprocessor, parameters, regression, looked_up: LookedUp::new() })
    }

    /// Takes the data to learn from.
    pub(super) fn take(&self, data: &[Datum]) -> Result<()> {
        let y: Vec<f32> = data.iter().map(|&(_, y)| y as f32).collect();
        let x: Vec<&[f64]> = data.iter().map(|(x, _)| &x[..]).collect();
        Ok(self
            .regression
            .set_data(&self.standard(&x)?, &Tensor::from_vec(y, &[data.len(), 1])?)?)
    }

    /// x `[M, D]`, in deviations from the mean.
    fn standard(&self, x: &[&[f64]]) -> Result<Tensor> {
        let Preprocessor { mean, deviation, .. } = &self.preprocessor;
        let each = |x: &&[f64]| -> Vec<f32> {
            (0..mean.len()).map(|c| ((x[c] - mean[c]) / deviation[c]) as f32).collect()
        };
        let numbers: Vec<f32> = x.iter().flat_map(each).collect();
        Ok(Tensor::from_vec(numbers, &[x.len(), mean.len()])?)
    }

    /// The squared error at the data, each predicted from the others.
    pub(super) fn loss(&self) -> Result<Tensor> {
        match self.config.model.model {
            Kind::Kernel => Ok(self.regression.loss()?),
            Kind::Mean => {
                let n = self.preprocessor.points as f64;
                let (_, y) = self.data()?;
                let sum: f64 = y.iter().map(|&y| f64::from(y)).sum();
                let squares =
                    y.iter().map(|&y| (f64::from(y) - (sum - f64::from(y)) / (n - 1.0)).powi(2));
                Ok(Tensor::scalar((squares.sum::<f64>() / n) as f32)?)
            }
        }
    }

    /// ŷ at some x, with the weights `[M, points]` where they are asked for.
    fn regressed(&self, x: &[&[f64]], need: Need) -> Result<Attended> {
        let points = self.preprocessor.points;
        without_gradients(|| match self.config.model.model {
            Kind::Kernel => Ok(self.regression.attend(&self.standard(x)?, need)?),
            Kind::Mean => {
                let out = self.regression.mean()?.unsqueeze(0)?.broadcast_to(&[x.len(), 1])?;
                let equal = || Tensor::full(&[x.len(), points], 1.0 / points as f64, DType::F32);
                let weights = need.weights.then(equal).transpose()?;
                let mut attended = Attended::from(out.contiguous()?);
                attended.weights = weights;
                Ok(attended)
            }
        })
    }

    fn predicted(&self, x: &[&[f64]]) -> Result<Vec<f64>> {
        let mut predicted = Vec::with_capacity(x.len());
        for some in x.chunks(1024) {
            tick("predicting", predicted.len(), x.len())?;
            predicted.extend(
                self.regressed(some, Need::OUTPUT)?.out.to_vec::<f32>()?.into_iter().map(f64::from),
            );
        }
        Ok(predicted)
    }

    /// How good it is on data, and what it tells of each.
    pub(super) fn measure(&self, data: &[Datum]) -> Result<(Scores, Vec<f64>)> {
        let x: Vec<&[f64]> = data.iter().map(|(x, _)| &x[..]).collect();
        let y: Vec<f64> = data.iter().map(|&(_, y)| y).collect();
        let predicted = self.predicted(&x)?;
        let scores = Scores::new("R²", r_squared(&y, &predicted)?, Better::Higher)
            .with("MSE", mean_squared_error(&y, &predicted)?);
        Ok((scores, predicted))
    }

    /// The data it holds: x `[points, D]` as they were observed, and y.
    fn data(&self) -> Result<(Vec<Vec<f64>>, Vec<f32>)> {
        let tensors = self.parameters.tensors();
        let held = |name: &str| -> Result<Vec<f32>> {
            let found = tensors.get(name);
            let found = found.ok_or_else(|| Error::invalid(format!("the model has no {name}")))?;
            Ok(found.to_vec::<f32>()?)
        };
        let Preprocessor { mean, deviation, .. } = &self.preprocessor;
        let back = |row: &[f32]| -> Vec<f64> {
            (0..mean.len()).map(|c| f64::from(row[c]) * deviation[c] + mean[c]).collect()
        };
        Ok((held("keys")?.chunks(mean.len()).map(back).collect(), held("values")?))
    }

    /// The numbers of an input, one for each column that is known.
    fn numbers(&self, input: &Input) -> Result<Vec<f64>> {
        let columns = &self.preprocessor.names[..self.preprocessor.mean.len()];
        if let Input::Example { part, index, .. } = *input {
            let examples = self.looked_up.within(&self.config, "data");
            return Ok(examples.get(input, (part, index))?.0);
        }
        let input = input.text()?;
        let numbers = input.split(',').map(|cell| cell.trim().parse::<f64>().ok());
        let numbers: Option<Vec<f64>> = numbers.map(|x| x.filter(|x| x.is_finite())).collect();
        let numbers =
            numbers.filter(|numbers| numbers.len() == columns.len()).ok_or_else(|| {
                let wanted = match columns.len() {
                    1 => "one number".into(),
                    n => format!("{n} numbers with commas between"),
                };
                Error::invalid(format!("`{input}` is not {wanted}: {}", columns.join(", ")))
            })?;
        let Preprocessor { mean, deviation, .. } = &self.preprocessor;
        for (c, x) in numbers.iter().enumerate() {
            // Squares of distances must fit the numbers computed in.
            if ((x - mean[c]) / deviation[c]).abs() > 1e15 {
                let what = format!("`{x}` is too far from everything known of {}", columns[c]);
                return Err(Error::invalid(what));
            }
        }
        Ok(numbers)
    }

    /// The curve over the one column that is known, with the point that is asked for.
    fn curve(&self, query: f64) -> Result<CurveScene> {
        let (x, y) = self.data()?;
        let x: Vec<f64> = x.into_iter().map(|x| x[0]).collect();
        let low = x.iter().copied().fold(query, f64::min);
        let high = x.iter().copied().fold(query, f64::max);
        let step = (high - low) / (POINTS - 1) as f64;
        let mut at: Vec<f64> = (0..POINTS).map(|i| low + i as f64 * step).collect();
        at.push(query);
        at.sort_by(f64::total_cmp);
        let rows: Vec<&[f64]> = at.iter().map(std::slice::from_ref).collect();
        let Attended { out, weights, .. } = self.regressed(&rows, Need::WEIGHTS)?;
        let weights = weights.map_or(Ok(vec![]), |weights| weights.to_vec::<f32>())?;
        let single = |all: &[f64]| all.iter().map(|&x| x as f32).collect::<Vec<f32>>();
        let at = single(&at);
        let truth = self.config.data.train.is_none();
        Ok(CurveScene {
            x: single(&x),
            y,
            curve: out.to_vec::<f32>()?,
            truth: truth.then(|| at.iter().map(|&x| toy::sine_truth(x)).collect()),
            at,
            query: Some(query as f32),
            maps: vec![self.map(weights)],
        })
    }

    /// The heaviest data for one answer.
    fn heaviest(&self, query: &[f64]) -> Result<Maps> {
        let (x, y) = self.data()?;
        let weights = self.regressed(&[query], Need::WEIGHTS)?.weights;
        let weights = weights.map_or(Ok(vec![]), |weights| weights.to_vec::<f32>())?;
        let order = heaviest(&weights, PICTURED);
        let map = Map::new(self.name(), order.iter().map(|&at| weights[at]).collect());
        let label = |&at: &usize| format!("{} → {}", written(&x[at]), short(f64::from(y[at])));
        Ok(Maps {
            row_axis: "query".into(),
            column_axis: "data, the heaviest first".into(),
            rows: vec![written(query)],
            columns: order.iter().map(label).collect(),
            maps: vec![match self.config.model.model {
                Kind::Kernel => map.fixed(
                    "The heaviest data change with every change of their weights; normalizer and \
                     temperature can be changed.",
                ),
                Kind::Mean => map.fixed(EVEN),
            }],
        })
    }

    /// The weights as a map; the mean of all has none that could be changed.
    fn map(&self, weights: Vec<f32>) -> Map {
        let map = Map::new(self.name(), weights);
        match self.config.model.model {
            Kind::Kernel => map.at(Place::new(Site::Kernel, 0, 0)),
            Kind::Mean => map.fixed(EVEN),
        }
    }

    fn name(&self) -> &'static str {
        match self.config.model.model {
            Kind::Kernel if self.config.model.is_gaussian() => "kernel",
            Kind::Kernel => "attention",
            Kind::Mean => "mean of all",
        }
    }
}

/// Why nothing can be changed of a mean.
const EVEN: &str = "Every datum weighs the same in a mean: there is no attention.";

/// The places of the heaviest weights, at most so many.
fn heaviest(weights: &[f32], most: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..weights.len()).collect();
    order.sort_by(|&a, &b| weights[b].total_cmp(&weights[a]));
    order.truncate(most);
    order
}

/// A number in about five digits.
fn short(number: f64) -> String {
    let text = format!("{number:.4}");
    text.trim_end_matches('0').trim_end_matches('.').into()
}

/// Numbers as an input.
pub(super) fn written(numbers: &[f64]) -> String {
    numbers.iter().map(|&number| short(number)).collect::<Vec<_>>().join(",")
}

impl Model for Regression {
    fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// The width alone: keys and values are the training data.
    fn learned(&self) -> usize {
        let of = self.regression.config();
        self.parameters.numel() - of.points * (of.features + of.outputs)
    }

    fn named_rows(&self) -> Vec<NamedRows> {
        // Its weights are data: they are those of nobody else.
        let data = self.data().map(|(x, y)| format!("{x:?} {y:?}")).unwrap_or_default();
        NamedRows::of(&["keys", "values"], &[data])
    }

    fn vocabulary(&self) -> Result<String> {
        serde_json::to_string(&self.preprocessor).map_err(|e| Error::invalid(e.to_string()))
    }

    fn evaluate(&self, part: Part) -> Result<Report> {
        let dataset = Dataset::new(&self.config);
        let observations = dataset.part(part)?;
        same_columns(&self.preprocessor.names, &observations, part)?;
        let data = &observations.data;
        if data.is_empty() {
            let what = format!("the {} part holds no examples", part.name());
            return Err(Error::invalid(what));
        }
        let (scores, predicted) = self.measure(data)?;
        let outputs = predicted.iter().map(|y| y.to_string()).collect();
        let outputs = by_line(&self.config.data, part, outputs)?;
        let samples = data.iter().zip(&predicted).take(3);
        let samples =
            samples.map(|((x, y), predicted)| (written(x), short(*y), short(*predicted))).collect();
        let nearness =
            data.iter().zip(&predicted).map(|((_, y), predicted)| -(y - predicted).powi(2));
        let each = PerExample { measure: "squared error".into(), values: nearness.collect() };
        let (examples, each) = (data.len(), Some(each));
        Ok(Report { scores, examples, samples, each, outputs, ..Report::default() })
    }

    fn asks(&self) -> Asks {
        let x = self.data().map(|(x, _)| x).unwrap_or_default();
        let range = |c: usize| {
            let values = || x.iter().map(|x| x[c]);
            let low = values().fold(f64::INFINITY, f64::min);
            [low, values().fold(f64::NEG_INFINITY, f64::max)]
        };
        let names = self.preprocessor.names.iter().take(self.preprocessor.mean.len());
        let columns = names.enumerate().map(|(c, name)| (name.clone(), range(c))).collect();
        Asks { columns, ..Asks::new(InputForm::Point, &[]) }
    }

    fn judge(&self, part: Part) -> Result<Vec<Judged>> {
        let data = Dataset::new(&self.config).part(part)?.data;
        let x: Vec<&[f64]> = data.iter().map(|(x, _)| &x[..]).collect();
        let predicted = self.predicted(&x)?;
        let judged = |(index, (x, y)): (usize, &Datum)| Judged {
            index,
            input: written(x),
            truth: short(*y),
            output: short(predicted[index]),
            loss: (y - predicted[index]).powi(2),
            length: 1,
            labels: Vec::new(),
            numbers: Some((*y, predicted[index])),
        };
        Ok(data.iter().enumerate().map(judged).collect())
    }

    fn predict(&self, inputs: &[Input]) -> Result<Vec<Prediction>> {
        let (x, y) = self.data()?;
        let predict = |input: &Input| {
            let query = self.numbers(input)?;
            let Attended { out, weights, .. } = self.regressed(&[&query], Need::WEIGHTS)?;
            let weights = weights.map_or(Ok(vec![]), |weights| weights.to_vec::<f32>())?;
            let datum = |at: usize| {
                let (x, y, weight) = (&x[at], y[at], weights[at]);
                serde_json::json!({ "x": x, "y": y, "weight": weight })
            };
            let most: Vec<_> = heaviest(&weights, NAMED).into_iter().map(datum).collect();
            let value = out.to_vec::<f32>()?[0];
            let output = value.to_string();
            let details = serde_json::json!({ "value": value, "heaviest": most });
            Ok(Prediction { input: input.to_string(), output, details })
        };
        inputs.iter().map(predict).collect()
    }

    fn typed(&self, input: &Input) -> Result<Option<String>> {
        let numbers: Vec<String> = self.numbers(input)?.iter().map(f64::to_string).collect();
        Ok(Some(numbers.join(" ")))
    }

    fn show(&self, input: &Input) -> Result<Vec<(String, Scene)>> {
        let query = self.numbers(input)?;
        Ok(match query[..] {
            [one] => vec![("curve".into(), Scene::Curve(self.curve(one)?))],
            _ => vec![("weights".into(), Scene::Maps(self.heaviest(&query)?))],
        })
    }

    /// The curve that the embedded data were made from, or what was observed.
    fn truth(&self, input: &Input) -> Option<String> {
        if let Input::Example { .. } = input {
            let (_, y) = self.looked_up.within(&self.config, "data").find(input)?;
            return Some(short(y));
        }
        match self.numbers(input).ok()?[..] {
            [x] if self.config.data.train.is_none() => {
                Some(short(f64::from(toy::sine_truth(x as f32))))
            }
            _ => None,
        }
    }

    fn abilities(&self) -> Abilities<'_> {
        Abilities { explains: Some(self), exports: Some(self), ..Abilities::default() }
    }
}

impl Explains for Regression {
    /// How much each column changes what is predicted.
    fn saliency(&self, input: &Input, how: How) -> Result<Saliency> {
        if self.config.model.model == Kind::Mean {
            return Err(Error::invalid("the mean of all does not depend on the input"));
        }
        let query = self.numbers(input)?;
        let x = self.standard(&[&query])?.transpose(0, 1)?.contiguous()?;
        let score = |x: &Tensor| Ok(self.regression.predict(&x.transpose(0, 1)?.contiguous()?)?);
        let found = Probe::input(x, &score).explain(how)?;
        let names = self.preprocessor.names[..query.len()].to_vec();
        Ok(found.named("the prediction".into(), names, None))
    }
}

impl Exports for Regression {
    fn exported(&self) -> Result<Exported> {
        if self.config.model.model == Kind::Mean {
            return Err(Error::invalid("the mean of all is no network"));
        }
        let config = self.regression.config().clone();
        let x = Random::named(1, "export").normal(&[5, config.features], 0.0, 1.0, DType::F32)?;
        let output = without_gradients(|| self.regression.predict(&x))?;
        let inputs = [("x".to_string(), x)].into();
        Ok(Exported { network: Network::Regression(config), inputs, output })
    }
}
