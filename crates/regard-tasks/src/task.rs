//! What a task is: its options, its dataset, a learner that trains a model on it, and what the model
//! does once it is trained.

use crate::files::Waveform;
use crate::metric::Confusion;
use crate::{
    Answer, Asks, CaptionTask, Classify, Error, Exported, GraphTask, ImageTask, Input, JsonFile,
    Judged, Label, Options, Regress, Result, Saliency, Scene, Scores, SearchTree, Summarize,
    Transcribe, Translate,
};
use regard::Tensor;
use regard::attention::Reinforce;
use regard::tensor::{Parameters, Random};
use serde::{Deserialize, Serialize, Serializer};
use std::collections::BTreeMap;

/// A kind of model and the data it reads: `translate`, `label`, `classify`, …
pub trait Task: Sync {
    /// Its name on the command line.
    fn name(&self) -> &'static str;

    /// What it does, in a line.
    fn about(&self) -> &'static str;

    /// Its options as a TOML template, each under a comment.
    fn template(&self) -> String;

    /// Settings in which it differs from the template's values.
    fn defaults(&self) -> &'static [&'static str];

    /// Its options as they are if nobody says otherwise.
    fn options(&self) -> Result<Options> {
        let template = Options::new(&self.template())?;
        self.defaults().iter().try_fold(template, |options, setting| options.set(setting))
    }

    /// Reads the training and the validation part, builds the vocabulary from the former, and
    /// initializes a model. Refuses data from which there is nothing to learn; what is odd about them
    /// [`remarked`](crate::remarked) around the call hears.
    fn begin(&self, options: &Options) -> Result<Box<dyn Learner>>;

    /// Builds the model of a run from its options and its vocabulary, the file that holds what
    /// [`Model::vocabulary`] gave. Its parameters are set afterwards, from a checkpoint.
    fn open(&self, options: &Options, vocabulary: &JsonFile) -> Result<Box<dyn Model>>;

    /// What the data hold, as lines of a name and a text; what is odd about them
    /// [`remarked`](crate::remarked) around the call hears.
    fn describe(&self, options: &Options) -> Result<Description>;

    /// The comparison the task is known for: names, and the settings of each.
    fn comparison(&self) -> Vec<Variant>;
}

/// One of the models that are compared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Variant {
    /// What it is called in the table.
    pub name: String,
    /// Its settings, `key=value`.
    pub settings: Vec<String>,
}

impl Variant {
    /// A name and its settings.
    ///
    /// ```
    /// use regard_tasks::Variant;
    /// assert_eq!(Variant::new("dot", &["score=dot"]).settings, ["score=dot"]);
    /// ```
    pub fn new(name: &str, settings: &[&str]) -> Self {
        Self { name: name.into(), settings: settings.iter().map(|s| s.to_string()).collect() }
    }
}

/// What the data hold.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Description {
    /// Where the data come from.
    pub source: String,
    /// Facts: a name and a text; in JSON a number where the text is one.
    #[serde(serialize_with = "facts")]
    pub facts: Vec<(String, String)>,
    /// Labels and how often each occurs, most frequent first.
    pub labels: Vec<(String, usize)>,
    /// A few examples, each in a line.
    pub examples: Vec<String>,
}

fn facts<S: Serializer>(facts: &[(String, String)], to: S) -> std::result::Result<S::Ok, S::Error> {
    let value = |text: &str| match text.parse::<u64>() {
        Ok(number) => serde_json::Value::from(number),
        Err(_) => serde_json::Value::from(text),
    };
    to.collect_seq(facts.iter().map(|(name, text)| (name, value(text))))
}

/// A part of the dataset, often called a split.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Part {
    /// The examples that batches are made of.
    Training,
    /// The examples that the best epoch's checkpoint is chosen by.
    Validation,
    /// The examples that nothing is chosen by.
    Test,
}

impl Part {
    /// A part by its name.
    ///
    /// ```
    /// use regard_tasks::Part;
    /// assert_eq!([Part::named("test"), Part::named("rest")], [Some(Part::Test), None]);
    /// ```
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "train" | "training" => Some(Self::Training),
            "val" | "validation" => Some(Self::Validation),
            "test" => Some(Self::Test),
            _ => None,
        }
    }
}

/// A model in training, together with its training and validation examples. [`train`](crate::train)
/// runs its epochs.
pub trait Learner {
    /// The model.
    fn model(&self) -> &dyn Model;

    /// The batches of an epoch: shuffled indices into the training part, at most `batch` in each.
    fn batches(&self, batch: usize, random: &Random) -> Result<Vec<Vec<usize>>>;

    /// The loss of a batch, a scalar that [`Tensor::backward`] takes the gradients of.
    fn loss(&mut self, batch: &[usize], random: &Random) -> Result<Tensor>;

    /// What the mean that is the loss of a batch divides by: the number of its examples, unless a
    /// task says otherwise. Where several processes share a batch, their losses weigh by this.
    fn weight(&self, batch: &[usize]) -> f64 {
        batch.len() as f64
    }

    /// The metrics on the validation part; the first decides which epoch is the best.
    fn validate(&self) -> Result<Scores>;

    /// Prepares the model for its first step, such as by pretrained vectors; gives what is worth
    /// saying of it. Not called where a training is resumed.
    fn start(&mut self) -> Result<Vec<String>> {
        Ok(Vec::new())
    }

    /// Inputs for [`Model::predict`] out of the validation part, as text.
    fn samples(&self, n: usize) -> Vec<String>;

    /// What should be known before hours are spent, in sentences: labels of the validation part that
    /// training does not have, rows that were left out.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }

    /// What trains its hard attention, where that samples.
    fn reinforce(&self) -> Option<&Reinforce> {
        None
    }

    /// The same, to be trained or restored.
    fn reinforce_mut(&mut self) -> Option<&mut Reinforce> {
        None
    }

    /// What a checkpoint must hold beside the parameters and the optimizer's state: the baseline of
    /// REINFORCE, where there is one.
    fn state(&self) -> Result<BTreeMap<String, Tensor>> {
        Ok(self.reinforce().map_or(Ok(BTreeMap::new()), Reinforce::state)?)
    }

    /// Restores what [`Learner::state`] gave, from a checkpoint.
    fn set_state(&mut self, state: &BTreeMap<String, Tensor>) -> Result<()> {
        match self.reinforce_mut() {
            Some(reinforce) => Ok(reinforce.set_state(state)?),
            None => Ok(()),
        }
    }
}

/// A model that can be evaluated, used and looked at, from any thread.
pub trait Model: Send + Sync {
    /// Its parameters.
    fn parameters(&self) -> &Parameters;

    /// What its preprocessing learned from the training part, as JSON: vocabularies, labels, means.
    /// A run keeps it in `vocabulary.json`.
    fn vocabulary(&self) -> Result<String>;

    /// The metrics on a part of the dataset that its options name.
    fn evaluate(&self, part: Part) -> Result<Report>;

    /// What can be asked of it.
    fn asks(&self) -> Asks;

    /// Every example of a part, in order, with what it makes of it and how far that is from the
    /// truth.
    fn judge(&self, part: Part) -> Result<Vec<Judged>>;

    /// A prediction for each input.
    fn predict(&self, inputs: &[Input]) -> Result<Vec<Prediction>>;

    /// The best outputs for each input, so many at most, the best first. Refuses where a task has one
    /// output alone.
    fn n_best(&self, _inputs: &[Input], _n: usize) -> Result<Vec<Vec<Alternative>>> {
        Err(Error::invalid("this task has one output for an input, and no others beside it"))
    }

    /// Its attention weights for an input, as named scenes, the most telling first.
    fn show(&self, input: &Input) -> Result<Vec<(String, Scene)>>;

    /// What should be predicted for an input, as text; none where that is not known.
    fn truth(&self, _input: &Input) -> Option<String> {
        None
    }

    /// An example as somebody would type it; none where it is nothing that is typed.
    fn typed(&self, _input: &Input) -> Result<Option<String>> {
        Ok(None)
    }

    /// How much each part of an input changes what is predicted: the gradient times the input.
    fn saliency(&self, _input: &Input) -> Result<Saliency> {
        Err(Error::invalid("this task has no gradient at its input"))
    }

    /// What was considered while an output was searched for.
    fn search_tree(&self, _input: &Input) -> Result<SearchTree> {
        Err(Error::invalid("this task writes no text, so that it searches for none"))
    }

    /// The sound of an example, where it has one.
    fn sound(&self, _input: &Input) -> Result<Option<Waveform>> {
        Ok(None)
    }

    /// Its network and what that answers for some inputs, for other programs. Refuses where the
    /// network has no form elsewhere.
    fn exported(&self) -> Result<Exported> {
        Err(Error::invalid("this task's network has no form for other programs"))
    }
}

/// What a model predicts for one input.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Prediction {
    /// The input.
    pub input: String,
    /// The output, as text.
    pub output: String,
    /// More about it: scores, probabilities, alternatives.
    pub details: serde_json::Value,
}

/// One of the best outputs for an input.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Alternative {
    /// The output, as text.
    pub output: String,
    /// How good the model finds it: the probability of a label or an answer; of all labels of a
    /// sequence the logarithm of their probability; of a text the same, divided by the length penalty.
    pub score: f64,
}

/// A model's metrics on a part of the dataset.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Report {
    /// The metrics.
    pub scores: Scores,
    /// How many examples.
    pub examples: usize,
    /// The confusion matrix of a model that chooses among labels.
    pub confusion: Option<Confusion>,
    /// A metric over groups of examples, such as sentences by length.
    pub groups: Option<Groups>,
    /// A few examples: input, expected output, output.
    pub samples: Vec<(String, String, String)>,
    /// A number for each example, by which two models can be compared example by example.
    #[serde(skip)]
    pub each: Option<PerExample>,
    /// What should be known of the measures, in sentences.
    pub notes: Vec<String>,
    /// How the measures were counted, in sacreBLEU's words, where that has to be said beside them.
    pub signature: Option<String>,
    /// All outputs, in the order of the data and one for each of its lines, for a file.
    #[serde(skip)]
    pub outputs: Vec<String>,
}

/// A number for each example; a higher one is better.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PerExample {
    /// What it says.
    pub measure: String,
    /// One for each example that was measured, in the order of the data.
    pub values: Vec<f64>,
}

/// A metric over groups of examples.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Groups {
    /// What is measured.
    pub measure: String,
    /// What the groups are made by.
    pub by: String,
    /// Names and values.
    pub values: Vec<(String, f64)>,
}

/// All tasks.
pub fn tasks() -> &'static [&'static dyn Task] {
    &[
        &Regress,
        &Translate,
        &Summarize,
        &Transcribe,
        &CaptionTask,
        &Answer,
        &Label,
        &Classify,
        &ImageTask,
        &GraphTask,
    ]
}

/// A task by its name; refuses another, with those there are.
///
/// ```
/// use regard_tasks::task_named;
/// assert_eq!(task_named("translate")?.name(), "translate");
/// assert!(task_named("translat").err().unwrap().to_string().contains("translate"));
/// # Ok::<(), regard_tasks::Error>(())
/// ```
pub fn task_named(name: &str) -> Result<&'static dyn Task> {
    let found = tasks().iter().copied().find(|task| task.name() == name);
    found.ok_or_else(|| {
        let names: Vec<&str> = tasks().iter().map(|task| task.name()).collect();
        Error::invalid(format!("there is no task `{name}`; there are {}", names.join(", ")))
    })
}
