//! A captioner: an image in patches on one side, a tokenizer on the other, and a
//! sequence-to-sequence model between them.

use super::config::Config;
use super::data::{Dataset, ImageSources};
use crate::metric::judged::Judged;
use crate::metric::scores::Scores;
use crate::metric::{Bleu, Tokenization, chrf};
use crate::task::abilities::{Abilities, Explains, Exports, Searches, Sees};
use crate::task::input::{Asks, Input, InputForm};
use crate::task::looked_up::LookedUp;
use crate::task::model::Model;
use crate::task::named_rows::{NamedRows, all_tokens};
use crate::task::network::Exported;
use crate::task::part::Part;
use crate::task::prediction::{Alternative, Prediction};
use crate::task::report::{PerExample, Report};
use crate::task::saliency::{How, Probe, Saliency};
use crate::task::search_tree::SearchTree;
use crate::tasks::captioned::{Pictures, interleaved};
use crate::tasks::components::made_up;
use crate::tasks::seq2seq::{Limit, Sources, Writer, alternatives};
use regard::Tensor;
use regard::attention::Need;
use regard::models::{Hypothesis, Source};
use regard::tensor::{Better, Parameters};
use regard_data::text::Tokenizer;
use regard_data::{Error, Result};
use regard_picture::scene::{ImageScene, Scene};
use serde::{Deserialize, Serialize};

/// What a captioner knows of its data.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Preprocessor {
    pub(super) tokenizer: Tokenizer,
    /// The most tokens of a training sentence.
    longest: usize,
    /// The mean of all pixels, and how far they lie from it.
    mean: f32,
    deviation: f32,
}

impl Preprocessor {
    pub(super) fn fit(config: &Config, pictures: &Pictures) -> Result<Self> {
        let sentences: Vec<&String> = pictures.sentences.iter().flatten().collect();
        let tokenizer = Tokenizer::learn(&sentences, &config.text.config())?;
        let longest = sentences.iter().map(|text| tokenizer.encode(text).len()).max();
        let count = pictures.pixels.iter().map(Vec::len).sum::<usize>().max(1) as f64;
        let values = || pictures.pixels.iter().flatten().map(|&x| f64::from(x) / 255.0);
        let mean = values().sum::<f64>() / count;
        let variance = values().map(|x| (x - mean).powi(2)).sum::<f64>() / count;
        // Pictures that are all alike have no spread to divide by.
        let deviation = if variance > 0.0 { variance.sqrt() } else { 1.0 };
        Ok(Self {
            tokenizer,
            longest: longest.unwrap_or(0),
            mean: mean as f32,
            deviation: deviation as f32,
        })
    }
}

pub(super) struct Captioner {
    pub(super) config: Config,
    pub(super) preprocessor: Preprocessor,
    pub(super) writer: Writer,
    looked_up: LookedUp<(Vec<u8>, Vec<String>)>,
}

impl Captioner {
    pub(super) fn new(config: Config, preprocessor: Preprocessor) -> Result<Self> {
        // An output may be longer than what was learned, but not without end.
        let longest = 2 * preprocessor.longest + 10;
        let seq2seq = config.seq2seq(preprocessor.tokenizer.len(), longest);
        let (options, search, seed) =
            (&config.model.seq2seq, config.search.search, config.training.seed);
        let writer = Writer::new(&seq2seq, options, search, Limit::Tokens(longest), seed)?;
        Ok(Self { config, preprocessor, writer, looked_up: LookedUp::new() })
    }

    /// Pictures as the model reads them, each as often as it is named.
    pub(super) fn sources<'a>(
        &self,
        pictures: &'a Pictures,
        which: Vec<usize>,
    ) -> ImageSources<'a> {
        let Preprocessor { mean, deviation, .. } = self.preprocessor;
        ImageSources { pictures, which, patch: self.config.model.patch_size, mean, deviation }
    }

    /// Each picture once for each of its sentences, and these as tokens.
    pub(super) fn pairs(&self, pictures: &Pictures) -> (Vec<usize>, Vec<Vec<usize>>) {
        pictures.pairs().map(|(at, text)| (at, self.preprocessor.tokenizer.encode(text))).unzip()
    }

    /// How good it is on pictures, and all outputs. A beam of 1 is quick.
    pub(super) fn measure(
        &self,
        pictures: &Pictures,
        beam: usize,
    ) -> Result<(Scores, Vec<String>)> {
        let sources = self.sources(pictures, (0..pictures.len()).collect());
        let written = self.writer.write(&sources, beam, Need::OUTPUT)?;
        let outputs: Vec<String> =
            written.iter().map(|h| self.preprocessor.tokenizer.decode(&h.tokens)).collect();
        let by = self.tokenization(pictures);
        let bleu = Bleu::corpus(&outputs, &pictures.sentences, by)?.score;
        let (which, targets) = self.pairs(pictures);
        let perplexity = self.writer.perplexity(&self.sources(pictures, which), &targets)?;
        let right = outputs.iter().zip(&pictures.sentences);
        let right = right.filter(|(output, sentences)| sentences.contains(output)).count();
        let scores = Scores::new("BLEU", bleu, Better::Higher)
            .with("perplexity", perplexity)
            .with("exact", right as f64 / pictures.len().max(1) as f64);
        Ok((scores, outputs))
    }

    /// How BLEU splits outputs: as the options say, or as the references are written.
    fn tokenization(&self, pictures: &Pictures) -> Tokenization {
        let references = || pictures.sentences.iter().flatten().collect::<Vec<_>>();
        self.config.search.bleu.unwrap_or_else(|| Tokenization::suiting(&references()))
    }

    /// The pictures that inputs hold; `validation:3` is one of the data.
    fn pictures(&self, inputs: &[Input]) -> Result<Pictures> {
        let mut all = Pictures::new(&self.config.data);
        let examples = self.looked_up.within(&self.config, "pictures");
        for input in inputs {
            let pixels = match input.as_example() {
                None => {
                    let (name, bytes) = input.content("a picture")?;
                    self.config.data.decode(name, bytes)?
                }
                Some(key) => examples.get(input, key)?.0,
            };
            all.pixels.push(pixels);
            all.sentences.push(Vec::new());
        }
        Ok(all)
    }
}

impl Model for Captioner {
    fn parameters(&self) -> &Parameters {
        &self.writer.parameters
    }

    fn named_rows(&self) -> Vec<NamedRows> {
        let tokens = all_tokens(&self.preprocessor.tokenizer);
        NamedRows::of(&["target.weight", "output.weight", "output.bias"], &tokens)
    }

    fn vocabulary(&self) -> Result<String> {
        serde_json::to_string(&self.preprocessor).map_err(|e| Error::invalid(e.to_string()))
    }

    fn evaluate(&self, part: Part) -> Result<Report> {
        let pictures = Dataset::new(&self.config).part(part)?;
        let (scores, outputs) = self.measure(&pictures, self.config.search.search.beam)?;
        let one = |(output, sentences): (&String, &Vec<String>)| {
            chrf(&[output], std::slice::from_ref(sentences))
        };
        let values = outputs.iter().zip(&pictures.sentences).map(one).collect::<Result<_>>()?;
        let samples = outputs.iter().zip(&pictures.sentences).enumerate().take(3);
        let samples = samples.map(|(at, (output, sentences))| {
            (format!("{}:{at}", part.name()), sentences.join(" | "), output.clone())
        });
        Ok(Report {
            scores,
            examples: pictures.len(),
            samples: samples.collect(),
            each: Some(PerExample { measure: "chrF".into(), values }),
            signature: Some(self.tokenization(&pictures).signature_for(&pictures.sentences)),
            outputs,
            ..Report::default()
        })
    }

    fn asks(&self) -> Asks {
        Asks::new(InputForm::Picture, &[])
    }

    /// The loss is that of the sentence that the model likes best.
    fn judge(&self, part: Part) -> Result<Vec<Judged>> {
        let pictures = Dataset::new(&self.config).part(part)?;
        let sources = self.sources(&pictures, (0..pictures.len()).collect());
        let written = self.writer.write(&sources, 1, Need::OUTPUT)?;
        let (which, targets) = self.pairs(&pictures);
        let each = self.writer.losses(&self.sources(&pictures, which.clone()), &targets)?;
        let mut losses = vec![f64::NAN; pictures.len()];
        which.into_iter().zip(each).for_each(|(at, loss)| losses[at] = loss.min(losses[at]));
        let judged = |(index, h): (usize, Hypothesis)| {
            let output = self.preprocessor.tokenizer.decode(&h.tokens);
            let sentences = &pictures.sentences[index];
            // One of the sentences is as right as another.
            let same = sentences.iter().find(|sentence| **sentence == output);
            Judged {
                index,
                input: format!("{}:{index}", part.name()),
                truth: same.cloned().unwrap_or_else(|| sentences.join(" | ")),
                output,
                loss: losses[index],
                length: sources.length(index),
                labels: Vec::new(),
                numbers: None,
            }
        };
        Ok(written.into_iter().enumerate().map(judged).collect())
    }

    fn predict(&self, inputs: &[Input]) -> Result<Vec<Prediction>> {
        self.predict_with_beam(inputs, self.config.search.search.beam)
    }

    fn n_best(&self, inputs: &[Input], n: usize) -> Result<Vec<Vec<Alternative>>> {
        let pictures = self.pictures(inputs)?;
        let sources = self.sources(&pictures, (0..pictures.len()).collect());
        let found = self.writer.write_n_best(&sources, n)?;
        Ok(alternatives(&found, &self.preprocessor.tokenizer))
    }

    fn show(&self, input: &Input) -> Result<Vec<(String, Scene)>> {
        let pictures = self.pictures(std::slice::from_ref(input))?;
        self.scenes(&pictures)
    }

    /// The sentences of a picture of the data.
    fn truth(&self, input: &Input) -> Option<String> {
        let (_, sentences) = self.looked_up.within(&self.config, "pictures").find(input)?;
        Some(sentences.join(" | "))
    }

    fn abilities(&self) -> Abilities<'_> {
        Abilities {
            explains: Some(self),
            searches: Some(self),
            sees: Some(self),
            exports: Some(self),
            ..Abilities::default()
        }
    }
}

impl Sees for Captioner {
    fn picture(&self, input: &Input) -> Result<ImageScene> {
        let pictures = self.pictures(std::slice::from_ref(input))?;
        let [channels, height, width] = pictures.size;
        let pixels = interleaved(pictures.size, &pictures.pixels[0]);
        let (columns, rows, maps) = (1, 1, Vec::new());
        Ok(ImageScene { width, height, channels, pixels, columns, rows, maps })
    }
}

impl Explains for Captioner {
    fn saliency(&self, input: &Input, how: How) -> Result<Saliency> {
        let pictures = self.pictures(std::slice::from_ref(input))?;
        let sources = self.sources(&pictures, vec![0]);
        let tokens = self.writer.write_one(&sources)?.tokens;
        let source = sources.batch(&[0])?;
        let patch = self.config.model.patch_size;
        let score =
            |x: &Tensor| self.writer.log_prob(&Source { x: x.clone(), ..source.clone() }, &tokens);
        let found = Probe::image(source.x.clone(), patch, &score).explain(how)?;
        let side = self.config.patches();
        let names = (1..=found.values.len()).map(|n| n.to_string()).collect();
        let of = "the log-probability of the output".into();
        Ok(found.named(of, names, Some([side, side])))
    }
}

impl Searches for Captioner {
    fn search_tree(&self, input: &Input) -> Result<SearchTree> {
        let pictures = self.pictures(std::slice::from_ref(input))?;
        let tokenizer = &self.preprocessor.tokenizer;
        let token = |id: usize| tokenizer.token(id).to_string();
        let sources = self.sources(&pictures, vec![0]);
        self.writer.search_tree(&sources, token, |ids| tokenizer.decode(ids))
    }

    fn predict_with_beam(&self, inputs: &[Input], beam: usize) -> Result<Vec<Prediction>> {
        let pictures = self.pictures(inputs)?;
        let sources = self.sources(&pictures, (0..pictures.len()).collect());
        let written = self.writer.write(&sources, beam, Need::OUTPUT)?;
        let tokenizer = &self.preprocessor.tokenizer;
        let prediction = |(input, h): (&Input, Hypothesis)| Prediction {
            input: input.to_string(),
            output: tokenizer.decode(&h.tokens),
            details: serde_json::json!({
                "score": h.score,
                "log_probability": h.log_prob,
                "tokens": h.tokens.iter().map(|&id| tokenizer.token(id)).collect::<Vec<_>>(),
                "token_scores": h.token_scores.iter().take(h.tokens.len()).collect::<Vec<_>>(),
                "end_score": h.token_scores.get(h.tokens.len()),
                "ended": h.ended,
            }),
        };
        Ok(inputs.iter().zip(written).map(prediction).collect())
    }
}

impl Exports for Captioner {
    /// For each word the patches it looked at, and every head of encoder and decoder.
    fn exported(&self) -> Result<Exported> {
        made_up::seq2seq(&self.writer.model)
    }
}
