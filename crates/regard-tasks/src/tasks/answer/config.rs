//! The options of `answer`.

use crate::metric::AnswerRule;
use crate::options::requirement::Condition::{Ends, Is, IsNot};
use crate::options::requirement::Requirement;
use crate::options::template::{Checked, Options};
use crate::options::training::TrainingConfig;
use crate::task::held_out::HeldOutOptions;
use crate::tasks::components::{EncoderKind, EncoderOptions, MechanismOptions, TextOptions, needs};
use regard::attention::Weighting;
use regard::models::{
    ClassifierConfig, ClassifierPooling, InputConfig, MemoryNetworkConfig, SpanReaderConfig,
};
use regard_data::files::{AskedColumns, Unfound};
use regard_data::text::{PADDING, TokenizerKind};
use regard_data::toy::StoryLanguage;
use regard_data::{Error, Result};
use serde::Deserialize;
use std::path::PathBuf;

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Config {
    pub(super) data: Data,
    pub(super) text: TextOptions,
    pub(super) model: Model,
    pub(super) training: TrainingConfig,
}

/// What a file of questions is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Format {
    Auto,
    Babi,
    Squad,
    #[serde(alias = "csv")]
    Tsv,
}

/// How exact match and F1 are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Measure {
    Squad,
    Cmrc,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Data {
    pub(super) facts: usize,
    pub(super) language: StoryLanguage,
    pub(super) size: usize,
    pub(super) train: Option<PathBuf>,
    pub(super) validation: Option<PathBuf>,
    pub(super) test: Option<PathBuf>,
    pub(super) format: Format,
    #[serde(flatten)]
    pub(super) columns: AskedColumns,
    pub(super) unfound: Unfound,
    #[serde(flatten)]
    pub(super) held_out: HeldOutOptions,
    pub(super) encoding: Option<String>,
    pub(super) max_length: usize,
    pub(super) max_sentences: usize,
    pub(super) measure: Measure,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Kind {
    Memory,
    Reader,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Model {
    pub(super) model: Kind,
    pub(super) attention: bool,
    pub(super) hops: usize,
    shared_hops: bool,
    carry: bool,
    pub(super) hop_supervision: f64,
    positions: bool,
    times: usize,
    pub(super) features: bool,
    pub(super) max_answer_length: usize,
    embedding: usize,
    #[serde(flatten)]
    pub(super) encoder: EncoderOptions,
    #[serde(flatten)]
    mechanism: MechanismOptions,
}

/// What the options need of each other to have an effect.
pub(super) fn needs() -> Vec<Requirement> {
    let (kind, format) = ("model.model", "data.format");
    let memory = [Is(kind, &["memory"]), Is("model.attention", &["true"])];
    let reader = [vec![Is(kind, &["reader"])]];
    let attends = [vec![Is("model.attention", &["true"])]];
    let files = ["data.train", "data.validation", "data.test"];
    let by_name = |ends: &'static [&'static str]| {
        let auto = Is(format, &["auto"]);
        files.map(|file| vec![auto, Ends(file, ends)])
    };
    let columns = [&[vec![Is(format, &["tsv", "csv"])]], &by_name(&[".tsv", ".csv"])[..]].concat();
    let squad = [&[vec![Is(format, &["squad"])]], &by_name(&[".json"])[..]].concat();
    let of_columns = [
        "data.separator",
        "data.header",
        "data.text_column",
        "data.question_column",
        "data.answer_columns",
        "data.skip_bad_rows",
    ];
    let of_memory =
        ["model.hops", "model.shared_hops", "model.carry", "model.hop_supervision", "model.times"];
    let of_reader = ["model.features", "model.max_answer_length"];
    let of_embedded = ["data.facts", "data.language"];
    let longest = [
        reader[0].clone(),
        vec![Is("model.attention", &["false"])],
        vec![Is("model.encoder", &["cnn", "fully-connected", "transformer"])],
    ];
    let mut all = [needs::common(), needs::encoder(), needs::mechanism(&attends)].concat();
    all.extend(Requirement::each(&of_memory, &[memory.to_vec()]));
    all.extend(Requirement::each(&of_reader, &reader));
    all.extend(Requirement::each(&of_columns, &columns));
    all.extend(Requirement::each(&of_embedded, &[needs::embedded()]));
    all.extend([
        Requirement::new("model.shared_hops", &[IsNot("model.hops", "1")]),
        Requirement::new(
            "model.positions",
            &[Is("model.encoder", &["none", "auto"]), memory[0], memory[1]],
        ),
        Requirement::new("data.max_sentences", &memory[..1]),
        Requirement::any("data.max_length", &longest),
        Requirement::any("data.unfound", &squad),
        Requirement::any("data.format", &needs::any_file()),
        Requirement::new("training.label_smoothing", &memory[..1]),
    ]);
    all
}

impl Checked for Config {
    /// `encoder = "auto"` is what the model works with: none for a memory of sentences, a GRU for what
    /// reads word by word.
    fn of(options: &Options) -> Result<Self> {
        let is = |name: &str, value: &str| {
            options.get(name).is_some_and(|found| found.to_string().trim_matches('"') == value)
        };
        let sums_words = is("model.model", "memory") && is("model.attention", "true");
        let meant = match is("model.encoder", "auto") {
            true => {
                options.clone().set(["encoder=gru", "encoder=none"][usize::from(sums_words)])?
            }
            false => options.clone(),
        };
        let config: Self = meant.read()?;
        config.check()?;
        options.check_requirements()?;
        Ok(config)
    }

    fn check(&self) -> Result<()> {
        self.data.held_out.check()?;
        self.model.encoder.check()?;
        if self.text.tokenizer == TokenizerKind::Bpe {
            return Err(Error::invalid(
                "`text.tokenizer` is \"words\", \"whitespace\" or \"characters\" here",
            ));
        }
        let none = [
            ("data.max_length", self.data.max_length),
            ("data.max_sentences", self.data.max_sentences),
            ("model.max_answer_length", self.model.max_answer_length),
        ];
        if let Some((name, _)) = none.iter().find(|(_, n)| *n == 0) {
            return Err(Error::invalid(format!("`{name}` cannot be 0")));
        }
        if !(1..=3).contains(&self.data.facts) {
            let facts = self.data.facts;
            return Err(Error::invalid(format!("`data.facts` cannot be {facts}; it is 1 to 3")));
        }
        let taught = self.model.hop_supervision;
        if !(taught.is_finite() && taught >= 0.0) {
            return Err(Error::invalid(format!("`model.hop_supervision` cannot be {taught}")));
        }
        if self.model.model == Kind::Reader {
            self.check_reader()?;
        }
        self.training.check()
    }
}

impl Config {
    fn check_reader(&self) -> Result<()> {
        use Weighting::{Argmax, GumbelHard, Sample, StraightThrough};
        let weighting = self.model.mechanism.weighting;
        if matches!(weighting, Argmax | Sample | StraightThrough | GumbelHard) {
            return Err(Error::invalid(
                "`model.weighting` is soft where the model is a reader; hard weights are a memory \
                 network's",
            ));
        }
        if self.model.encoder.encoder == EncoderKind::None {
            return Err(Error::invalid(
                "a reader needs an encoder: with `model.encoder=none` a word knows nothing of its \
                 neighbors; `model.encoder=auto` is a GRU",
            ));
        }
        Ok(())
    }

    /// Whether sentences are chosen by chance during training, which REINFORCE trains.
    pub(super) fn samples(&self) -> bool {
        let m = &self.model;
        m.model == Kind::Memory && m.attention && m.mechanism.weighting == Weighting::Sample
    }

    pub(super) fn memory(&self, vocabulary: usize, answers: usize) -> MemoryNetworkConfig {
        let m = &self.model;
        MemoryNetworkConfig {
            vocabulary,
            width: m.embedding,
            padding: PADDING,
            encoder: m.encoder.config(self.data.max_length),
            positions: m.positions,
            times: m.times,
            hops: m.hops,
            shared: m.shared_hops,
            carry: m.carry,
            mechanism: m.mechanism.config(),
            answers,
            dropout: m.encoder.dropout,
        }
    }

    /// The baseline: story and question through one encoder, whose last state answers.
    pub(super) fn last_state(&self, vocabulary: usize, answers: usize) -> ClassifierConfig {
        let m = &self.model;
        let input = InputConfig::Tokens { vocabulary, width: m.embedding, padding: Some(PADDING) };
        ClassifierConfig {
            pooling: ClassifierPooling::Last,
            dropout: m.encoder.dropout,
            ..ClassifierConfig::new(input, m.encoder.config(self.data.max_length), answers)
        }
    }

    pub(super) fn reader(&self, vocabulary: usize) -> SpanReaderConfig {
        let m = &self.model;
        SpanReaderConfig {
            vocabulary,
            width: m.embedding,
            padding: PADDING,
            features: if m.features { super::encoding::FEATURES } else { 0 },
            // The place of "no answer" is one more.
            encoder: m.encoder.config(self.data.max_length + 1),
            attention: m.attention,
            mechanism: m.mechanism.config(),
            dropout: m.encoder.dropout,
        }
    }

    /// How answers are compared, where some questions have none and where all have one.
    pub(super) fn rule(&self, unanswerable: bool) -> AnswerRule {
        match (self.data.measure, unanswerable) {
            (Measure::Cmrc, _) => AnswerRule::Cmrc,
            (Measure::Squad, true) => AnswerRule::SquadTwo,
            (Measure::Squad, false) => AnswerRule::Squad,
        }
    }
}
