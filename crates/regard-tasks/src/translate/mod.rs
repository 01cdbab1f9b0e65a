//! `translate`: a sentence in, a sentence out.

mod config;
mod data;
mod model;

use crate::data::batches;
use crate::lengths::lengths;
use crate::options::Checked;
use crate::{
    Description, Error, JsonFile, Learner, Model, Options, Part, Result, Scores, Task, Variant,
    components, train,
};
use config::Config;
use data::{Dataset, Pair};
use model::{Preprocessor, Translator};
use regard::attention::{Reinforce, ReinforceConfig, Weighting};
use regard::models::Sentences;
use regard::tensor::Random;
use regard::{Mode, Tensor};
use std::collections::BTreeMap;

/// Translates sentences: any encoder, any decoder, any attention between them.
#[derive(Clone, Copy, Debug)]
pub struct Translate;

/// A translator and the pairs it learns from.
struct TranslateLearner {
    translator: Translator,
    pairs: Vec<(Vec<usize>, Vec<usize>)>,
    validation: Vec<Pair>,
    /// Trains hard attention that samples.
    reinforce: Option<Reinforce>,
}

impl Task for Translate {
    fn name(&self) -> &'static str {
        "translate"
    }

    fn about(&self) -> &'static str {
        "a sentence in, a sentence out"
    }

    fn template(&self) -> String {
        [
            include_str!("options.toml"),
            components::ENCODER,
            components::MECHANISM,
            "\n",
            train::TEMPLATE,
        ]
        .concat()
    }

    fn defaults(&self) -> &'static [&'static str] {
        &["epochs=12", "rate=0.002", "schedule=cosine", "model.dropout=0.2", "label_smoothing=0.1"]
    }

    fn begin(&self, options: &Options) -> Result<Box<dyn Learner>> {
        let config = Config::of(options)?;
        let dataset = Dataset::new(&config);
        let (training, validation) =
            (dataset.part(Part::Training)?, dataset.part(Part::Validation)?);
        drop(dataset);
        let preprocessor = Preprocessor::fit(&config, &training)?;
        let translator = Translator::new(config, preprocessor)?;
        let longest = translator.config.data.longest;
        let mut pairs: Vec<_> = training.iter().map(|pair| translator.encode(pair)).collect();
        pairs.retain(|(source, target)| {
            !source.is_empty() && source.len() <= longest && target.len() <= longest
        });
        if pairs.is_empty() || validation.is_empty() {
            return Err(Error::invalid(format!(
                "{} training pairs of at most {longest} tokens and {} validation pairs; both are \
                 wanted",
                pairs.len(),
                validation.len()
            )));
        }
        let encoder = &translator.config.model.encoder;
        let lengths = validation.iter().map(|pair| translator.encode(pair));
        let lengths = lengths.map(|(x, y)| x.len().max(y.len()));
        encoder.check_reach(translator.config.reach(), lengths)?;
        let samples = translator.config.model.mechanism.weighting == Weighting::Sample;
        let reinforce = samples.then(|| Reinforce::new(ReinforceConfig::default())).transpose()?;
        Ok(Box::new(TranslateLearner { translator, pairs, validation, reinforce }))
    }

    fn open(&self, options: &Options, vocabulary: &JsonFile) -> Result<Box<dyn Model>> {
        Ok(Box::new(Translator::new(Config::of(options)?, vocabulary.parse()?)?))
    }

    fn describe(&self, options: &Options) -> Result<Description> {
        let config = Config::of(options)?;
        let dataset = Dataset::new(&config);
        let training = dataset.part(Part::Training)?;
        let preprocessor = Preprocessor::fit(&config, &training)?;
        let length = |encode: &dyn Fn(&Pair) -> usize| {
            lengths(training.iter().map(encode).collect(), "tokens")
        };
        let facts = [
            ("training pairs", training.len().to_string()),
            ("validation pairs", dataset.part(Part::Validation)?.len().to_string()),
            ("test pairs", dataset.part(Part::Test)?.len().to_string()),
            ("source sentences", length(&|(s, _)| preprocessor.source.encode(s).len())),
            ("target sentences", length(&|(_, t)| preprocessor.target().encode(t).len())),
            ("source vocabulary", preprocessor.source.len().to_string()),
            ("target vocabulary", preprocessor.target().len().to_string()),
        ];
        let source = match (&config.data.train_source, &config.data.train_pairs) {
            (Some(path), _) | (_, Some(path)) => path.display().to_string(),
            _ => format!("embedded {:?}", config.data.embedded).to_lowercase(),
        };
        Ok(Description {
            source,
            facts: facts.map(|(name, text)| (name.to_string(), text)).into(),
            labels: Vec::new(),
            examples: training.iter().take(5).map(|(s, t)| format!("{s} → {t}")).collect(),
        })
    }

    fn comparison(&self) -> Vec<Variant> {
        vec![
            Variant::new("fixed vector", &["context=fixed"]),
            Variant::new("additive", &["context=attention", "score=additive"]),
            Variant::new("dot", &["context=attention", "score=dot", "both_directions=false"]),
            Variant::new(
                "Transformer",
                &["context=multi-head", "encoder=transformer", "decoder=transformer", "layers=2"],
            ),
        ]
    }
}

impl Learner for TranslateLearner {
    fn model(&self) -> &dyn Model {
        &self.translator
    }

    fn start(&mut self) -> Result<Vec<String>> {
        let Translator { preprocessor, config, .. } = &self.translator;
        let text = &config.text;
        let tables = [
            ("source.weight", &preprocessor.source, &text.tokens.vectors),
            ("target.weight", preprocessor.target(), &text.target_vectors),
        ];
        let mut notes = Vec::new();
        for (name, tokenizer, vectors) in tables {
            let tokens: Vec<String> =
                (0..tokenizer.len()).map(|id| tokenizer.token(id).into()).collect();
            let parameters = self.translator.parameters();
            notes.extend(components::pretrained(parameters, name, &tokens, vectors.as_deref())?);
        }
        Ok(notes)
    }

    fn batches(&self, batch: usize, random: &Random) -> Result<Vec<Vec<usize>>> {
        let lengths: Vec<usize> = self.pairs.iter().map(|(s, t)| s.len().max(t.len())).collect();
        let size = self.translator.config.training.batch_size(batch);
        batches(&lengths, size, Some(random))
    }

    fn loss(&mut self, batch: &[usize], random: &Random) -> Result<Tensor> {
        let source: Vec<&[usize]> = batch.iter().map(|&i| &self.pairs[i].0[..]).collect();
        let target: Vec<&[usize]> = batch.iter().map(|&i| &self.pairs[i].1[..]).collect();
        let (source, target) = (Sentences::new(&source, 0)?, Sentences::new(&target, 0)?);
        let config = &self.translator.config;
        let (model, mode) = (&self.translator.model, Mode::Train(random));
        let forced = match config.model.scheduled_sampling {
            0.0 => model.teach(&source, &target, mode)?,
            share => model.teach_sampled(&source, &target, share, mode)?,
        };
        let loss = forced.loss(config.training.label_smoothing)?;
        match (&mut self.reinforce, &forced.log_prob) {
            (Some(reinforce), Some(log_prob)) => {
                let rewards = forced.losses()?.scale(-1.0)?.detach();
                Ok(loss.add(&reinforce.loss(&rewards, log_prob, None)?)?)
            }
            _ => Ok(loss),
        }
    }

    fn validate(&self) -> Result<Scores> {
        Ok(self.translator.measure(&self.validation, 1)?.0)
    }

    fn samples(&self, n: usize) -> Vec<String> {
        self.validation.iter().take(n).map(|(source, _)| source.clone()).collect()
    }

    fn state(&self) -> Result<BTreeMap<String, Tensor>> {
        Ok(self.reinforce.as_ref().map_or(Ok(BTreeMap::new()), Reinforce::state)?)
    }

    fn set_state(&mut self, state: &BTreeMap<String, Tensor>) -> Result<()> {
        match &mut self.reinforce {
            Some(reinforce) => Ok(reinforce.set_state(state)?),
            None => Ok(()),
        }
    }
}
