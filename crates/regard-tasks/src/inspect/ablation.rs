//! How much worse a model is without each of its heads, by its task's own measure over a part.

use super::{examples, places::places};
use crate::run::folder::Run;
use crate::run::record::Record;
use crate::task::input::InputForm;
use crate::task::json_file::JsonFile;
use crate::task::model::Model;
use crate::task::part::Part;
use regard::attention::{HeadPatch, HeadRef, Intervention, Recorded, Site, recorded};
use regard::tensor::{Better, DType};
use regard_data::{Error, Result, quietly};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a model's measure on a part changes by without each of its heads and layers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ablation {
    /// The part.
    pub part: Part,
    /// The measure that decides in the model's task.
    pub measure: String,
    /// Which way it gets better.
    pub better: Better,
    /// The examples it is measured on.
    pub examples: usize,
    /// The measure of the whole model.
    #[serde(deserialize_with = "crate::metric::scores::number")]
    pub whole: f64,
    /// Every head, site by site and layer by layer.
    pub heads: Vec<Ablated>,
    /// Every layer that has several heads, all of them together.
    pub layers: Vec<Ablated>,
    /// The examples whose mean a head's output is set to.
    pub mean_of: usize,
    /// The step of the checkpoint that was measured.
    pub step: u64,
}

/// What the measure changes by without a head, or without all heads of a layer.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ablated {
    /// Which attention.
    pub site: Site,
    /// The layer, from 0.
    pub layer: usize,
    /// The head, from 0; none where it is the whole layer.
    pub head: Option<usize>,
    /// The change of the measure where the output is zero; none where that is not known (yet).
    pub zero: Option<f64>,
    /// The same where the output is its mean over the part.
    pub mean: Option<f64>,
}

/// The file of a run that keeps it, by part.
const FILE: &str = "ablation.json";

/// The mean output of each head of an attention.
struct Means {
    site: Site,
    layer: usize,
    /// The sum of each head's outputs.
    sums: Vec<Vec<f64>>,
    rows: usize,
}

impl Ablation {
    /// Measures the model as it is, then without each head and each layer. `told` hears of every step,
    /// with how many are done and how many there are, and may end it. Refuses a part without examples
    /// and a model without attention that could be changed.
    pub fn compute(
        model: &dyn Model,
        part: Part,
        told: &mut dyn FnMut(&Self, usize, usize) -> Result<()>,
    ) -> Result<Self> {
        let measured = |change: &Intervention| {
            quietly(|| change.during(|| model.evaluate(part))).map(|report| report.scores)
        };
        // A report may count words; what is looked at is sentences.
        let examples = quietly(|| model.judge(part))?.len();
        if examples == 0 {
            let name = part.name();
            return Err(Error::invalid(format!("the {name} part holds no examples")));
        }
        let some = match model.asks().form {
            // Every node is computed with any of them.
            InputForm::Node => vec![0],
            _ => places(examples),
        };
        let means = means(model, part, &some)?;
        let scores = measured(&Intervention::default())?;
        let (name, whole) = scores.first();
        let mut all = Self {
            part,
            measure: name.into(),
            better: scores.better,
            examples,
            whole,
            heads: Vec::new(),
            layers: Vec::new(),
            mean_of: some.len(),
            step: 0,
        };
        for one in &means {
            let (site, layer) = (one.site, one.layer);
            let without = |head| Ablated { site, layer, head, zero: None, mean: None };
            all.heads.extend((0..one.sums.len()).map(|head| without(Some(head))));
            if one.sums.len() > 1 {
                all.layers.push(without(None));
            }
        }
        let (heads, layers) = (all.heads.len(), all.layers.len());
        let steps = 2 * (heads + layers);
        told(&all, 0, steps)?;
        for at in 0..steps {
            let (zero, place) = (at.is_multiple_of(2), at / 2);
            let one = if place < heads { all.heads[place] } else { all.layers[place - heads] };
            let change = if zero { one.as_zero() } else { one.as_mean(&means) };
            let change = measured(&change)?.first().1 - whole;
            let one = match place.checked_sub(heads) {
                None => &mut all.heads[place],
                Some(place) => &mut all.layers[place],
            };
            *(if zero { &mut one.zero } else { &mut one.mean }) = Some(change);
            told(&all, at + 1, steps)?;
        }
        Ok(all)
    }

    /// What a run keeps of a part; none where nothing is kept of the checkpoint that is there.
    pub fn kept(run: &Run, part: Part) -> Option<Self> {
        let found = all_kept(run).remove(part.name())?;
        (found.step == best_step(run)?).then_some(found)
    }

    /// The step of a run's best checkpoint: asked before its model is read, so that what is kept is that model's.
    pub fn step_of(run: &Run) -> Option<u64> {
        best_step(run)
    }

    /// Keeps it in the run's folder, as that of the checkpoint of this step; not where there is a better one by now.
    pub fn keep(&mut self, run: &Run, step: Option<u64>) -> Result<()> {
        let Some(step) = step.filter(|_| step == best_step(run)) else { return Ok(()) };
        self.step = step;
        let mut all = all_kept(run);
        all.insert(self.part.name().into(), self.clone());
        let text = serde_json::to_string_pretty(&all)
            .map_err(|error| Error::file(run.path(FILE), error))?;
        run.write(FILE, text.as_bytes()).map(drop)
    }

    /// How much worse the model is without a head, as a number that grows with what the head gives;
    /// of zero and mean the one that was measured by mean, where both were.
    ///
    /// ```
    /// use regard::tensor::Better;
    /// use regard_tasks::inspect::{Ablated, Ablation};
    /// let json = r#"{"part": "test", "measure": "WER", "better": "lower", "examples": 9, "whole": 0.2,
    ///     "heads": [{"site": "encoder", "layer": 0, "head": 0, "zero": 0.5, "mean": 0.3}],
    ///     "layers": [], "mean_of": 9, "step": 1}"#;
    /// let ablation: Ablation = serde_json::from_str(json).unwrap();
    /// assert_eq!(ablation.importance(&ablation.heads[0]), Some(0.3));
    /// ```
    pub fn importance(&self, one: &Ablated) -> Option<f64> {
        let change = one.mean.or(one.zero)?;
        Some(if self.better == Better::Higher { -change } else { change })
    }
}

impl Ablated {
    fn as_zero(&self) -> Intervention {
        let off = HeadRef { site: self.site, layer: Some(self.layer), head: self.head };
        Intervention { heads: vec![off], ..Intervention::default() }
    }

    fn as_mean(&self, means: &[Means]) -> Intervention {
        let of = means.iter().filter(|one| (one.site, one.layer) == (self.site, self.layer));
        let patches = of.flat_map(|one| {
            let heads = (0..one.sums.len()).filter(|&head| self.head.is_none_or(|own| own == head));
            heads.map(|head| {
                let mean = one.sums[head].iter().map(|sum| (sum / one.rows as f64) as f32);
                HeadPatch::constant(one.site, one.layer, head, mean.collect())
            })
        });
        Intervention { patches: patches.collect(), ..Intervention::default() }
    }
}

/// The mean outputs over examples, each computed alone: what pads a batch is no output of a head.
fn means(model: &dyn Model, part: Part, places: &[usize]) -> Result<Vec<Means>> {
    let mut all: Vec<Means> = Vec::new();
    let mut sites: Vec<Site> = Vec::new();
    examples::each(model, part, places, |_, input| {
        let (answer, calls) = recorded(|| quietly(|| model.predict(std::slice::from_ref(input))));
        answer?;
        for call in &calls {
            if !sites.contains(&call.site) {
                sites.push(call.site);
            }
            add(&mut all, call)?;
        }
        Ok(())
    })?;
    if all.is_empty() {
        return Err(Error::invalid("this model has no attention that could be switched off"));
    }
    let order = |site: Site| sites.iter().position(|&known| known == site);
    all.sort_by_key(|one| (order(one.site), one.layer));
    Ok(all)
}

fn add(all: &mut Vec<Means>, call: &Recorded) -> Result<()> {
    let shape = call.out.shape();
    let [batch, heads, rows, width] = [shape[0], shape[1], shape[2], shape[3]];
    let sums = call.out.to_dtype(DType::F64)?.sum(0)?.sum(1)?.contiguous()?.to_vec::<f64>()?;
    let known = |one: &&mut Means| (one.site, one.layer) == (call.site, call.layer);
    let one = match all.iter_mut().find(known) {
        Some(one) => one,
        None => {
            let sums = vec![vec![0.0; width]; heads];
            all.push(Means { site: call.site, layer: call.layer, sums, rows: 0 });
            let last = all.len() - 1;
            &mut all[last]
        }
    };
    one.rows += batch * rows;
    for (sum, numbers) in one.sums.iter_mut().zip(sums.chunks(width.max(1))) {
        sum.iter_mut().zip(numbers).for_each(|(sum, number)| *sum += number);
    }
    Ok(())
}

fn all_kept(run: &Run) -> BTreeMap<String, Ablation> {
    // What cannot be read is computed again.
    JsonFile::read(&run.path(FILE)).and_then(|file| file.parse()).unwrap_or_default()
}

/// The step of the run's best checkpoint.
fn best_step(run: &Run) -> Option<u64> {
    let records = Record::read(run, usize::MAX).ok()?;
    records.iter().rev().find(|record| record.best).map(|record| record.step)
}
