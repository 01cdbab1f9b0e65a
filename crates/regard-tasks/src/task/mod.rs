//! What a task is: its options, its dataset, a learner that trains a model on it, and what the model
//! does once it is trained.

pub(crate) mod abilities;
mod attributed;
pub(crate) mod embedded;
mod faithfulness;
pub(crate) mod held_out;
pub(crate) mod input;
pub(crate) mod json_file;
pub(crate) mod learner;
pub(crate) mod lengths;
pub(crate) mod lesson;
pub(crate) mod looked_up;
pub(crate) mod model;
pub(crate) mod named_rows;
pub(crate) mod network;
pub(crate) mod part;
pub(crate) mod placement;
pub(crate) mod prediction;
pub(crate) mod quadrature;
pub(crate) mod report;
pub(crate) mod saliency;
pub(crate) mod search_tree;
pub(crate) mod splits;

pub use abilities::{Abilities, Explains, Exports, Hears, Searches, Sees};
pub use faithfulness::{Curve, Faithfulness};
pub use input::{Asks, Input, InputForm};
pub use json_file::JsonFile;
pub use learner::Learner;
pub use model::Model;
pub use named_rows::NamedRows;
pub use network::{Exported, Network};
pub use part::Part;
pub use placement::Placement;
pub use prediction::{Alternative, Prediction};
pub use report::{Groups, PerExample, Report};
pub use saliency::{How, Method, Saliency};
pub use search_tree::{SearchNode, SearchTree, Searched};

use crate::options::requirement::Requirement;
use crate::options::template::Options;
use regard_data::Result;
use serde::{Deserialize, Serialize, Serializer};

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
        let mut usual = self.defaults().iter();
        let usual = usual.try_fold(template, |options, setting| options.set(setting))?;
        Ok(usual.with_requirements(self.requirements()))
    }

    /// What its options need of each other to have an effect: one that somebody set and that would have
    /// none is refused.
    fn requirements(&self) -> Vec<Requirement> {
        Vec::new()
    }

    /// Reads the training and the validation part, builds the vocabulary from the former, and
    /// initializes a model. Refuses data from which there is nothing to learn; what is odd about them
    /// [`remarked`](regard_data::remarked) around the call hears.
    fn begin(&self, options: &Options) -> Result<Box<dyn Learner>>;

    /// Builds the model of a run from its options and its vocabulary, the file that holds what
    /// [`Model::vocabulary`] gave. Its parameters are set afterwards, from a checkpoint.
    fn open(&self, options: &Options, vocabulary: &JsonFile) -> Result<Box<dyn Model>>;

    /// What the data hold, as lines of a name and a text; what is odd about them
    /// [`remarked`](regard_data::remarked) around the call hears.
    fn describe(&self, options: &Options) -> Result<Description>;

    /// The comparison the task is known for: names, and the settings of each.
    fn comparison(&self) -> Vec<Variant>;

    /// A setting that variants need to be compared like with like, where these options, one for each,
    /// would not be or some cannot be built; with why, in a sentence.
    fn alike(&self, _all: &[Options]) -> Result<Option<(&'static str, &'static str)>> {
        Ok(None)
    }
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
    /// use regard_tasks::task::Variant;
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
