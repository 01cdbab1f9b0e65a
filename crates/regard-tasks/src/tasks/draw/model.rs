//! An artist: a tokenizer on one side, a codebook of patches on the other, and a sequence-to-sequence
//! model between them.

use super::config::Config;
use super::data::Dataset;
use crate::metric::judged::Judged;
use crate::metric::scores::Scores;
use crate::task::abilities::{Abilities, Explains, Exports};
use crate::task::input::{Asks, Input, InputForm};
use crate::task::looked_up::LookedUp;
use crate::task::model::Model;
use crate::task::named_rows::{NamedRows, all_tokens};
use crate::task::network::Exported;
use crate::task::part::Part;
use crate::task::prediction::{Alternative, Prediction, unknown_words};
use crate::task::report::{PerExample, Report};
use crate::task::saliency::{How, Probe, Saliency};
use crate::tasks::captioned::Pictures;
use crate::tasks::components::made_up;
use crate::tasks::seq2seq::{Limit, Sources, TokenSources, Writer};
use image::codecs::png::PngEncoder;
use image::{ExtendedColorType, ImageEncoder};
use regard::attention::Need;
use regard::models::Hypothesis;
use regard::tensor::{Better, Parameters};
use regard_data::text::{Tokenizer, UNKNOWN};
use regard_data::toy::{Recognized, SceneReader};
use regard_data::{Codebook, Error, Result, remark};
use regard_picture::scene::{Scene, base64};
use serde::{Deserialize, Serialize};

/// The token of the first code. No word is unknown among patches, so that all tokens that can be written
/// are codes.
const FIRST: usize = UNKNOWN;

/// What an artist knows of its data.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Preprocessor {
    pub(super) tokenizer: Tokenizer,
    pub(super) codebook: Codebook,
    /// The most tokens of a training sentence.
    longest: usize,
}

impl Preprocessor {
    pub(super) fn fit(config: &Config, pictures: &Pictures) -> Result<Self> {
        let sentences: Vec<&String> = pictures.pairs().map(|(_, text)| text).collect();
        let tokenizer = Tokenizer::learn(&sentences, &config.text.config())?;
        let longest = sentences.iter().map(|text| tokenizer.encode(text).len()).max();
        let (patch, codes) = (config.model.patch_size, config.model.codes);
        let codebook = Codebook::learn(&pictures.pixels, pictures.size, patch, codes)?;
        if codebook.len() < 2 {
            return Err(Error::invalid(
                "all patches of the training pictures are alike: there is nothing to draw",
            ));
        }
        Ok(Self { tokenizer, codebook, longest: longest.unwrap_or(0) })
    }

    /// How far pictures are from what their codes make of them.
    pub(super) fn error(&self, pictures: &Pictures) -> Result<f64> {
        let codes = self.codebook.encode_all(&pictures.pixels)?;
        let made = codes.iter().map(|codes| self.codebook.decode(codes));
        Ok(error(&made.collect::<Result<Vec<_>>>()?, &pictures.pixels))
    }

    /// How many tokens of a sentence are read: more than were learned, but not without end.
    pub(super) fn reads(&self) -> usize {
        2 * self.longest + 10
    }
}

/// The root of the mean squared difference of pixels from 0 to 1.
fn error(drawn: &[Vec<u8>], pictures: &[Vec<u8>]) -> f64 {
    let pairs = drawn.iter().flatten().zip(pictures.iter().flatten());
    let sum: f64 = pairs.map(|(&a, &b)| (f64::from(a.abs_diff(b)) / 255.0).powi(2)).sum();
    (sum / drawn.iter().map(Vec::len).sum::<usize>().max(1) as f64).sqrt()
}

/// What was drawn for the first sentence of each picture, and how good it is.
pub(super) struct Measured {
    pub(super) scores: Scores,
    drawn: Vec<Vec<u8>>,
    each: PerExample,
    /// What a rule finds in what was drawn, where it knows what may stand there.
    found: Option<Vec<Recognized>>,
}

pub(super) struct Artist {
    pub(super) config: Config,
    pub(super) preprocessor: Preprocessor,
    pub(super) writer: Writer,
    looked_up: LookedUp<(Vec<u8>, Vec<String>)>,
}

impl Artist {
    pub(super) fn new(config: Config, preprocessor: Preprocessor) -> Result<Self> {
        let (words, codes) = (preprocessor.tokenizer.len(), FIRST + preprocessor.codebook.len());
        let seq2seq = config.seq2seq(words, codes, preprocessor.reads());
        let (options, search, seed) =
            (&config.model.seq2seq, config.search(), config.training.seed);
        let limit = Limit::Exactly(config.patches().pow(2));
        let writer = Writer::new(&seq2seq, options, search, limit, seed)?;
        Ok(Self { config, preprocessor, writer, looked_up: LookedUp::new() })
    }

    /// Sentences as tokens, as many as are read of each.
    pub(super) fn sources<S: AsRef<str>>(
        &self,
        sentences: impl Iterator<Item = S>,
    ) -> TokenSources {
        let ids = |text: S| {
            let mut ids = self.preprocessor.tokenizer.encode(text.as_ref());
            ids.truncate(self.preprocessor.reads());
            ids
        };
        TokenSources { ids: sentences.map(ids).collect(), names: None }
    }

    /// Pictures as the tokens of their patches.
    fn targets(&self, pictures: &Pictures) -> Result<Vec<Vec<usize>>> {
        let mut codes = self.preprocessor.codebook.encode_all(&pictures.pixels)?;
        codes.iter_mut().flatten().for_each(|code| *code += FIRST);
        Ok(codes)
    }

    /// Each sentence that says something with its picture.
    pub(super) fn pairs(&self, pictures: &Pictures) -> Result<(TokenSources, Vec<Vec<usize>>)> {
        let of_each = self.targets(pictures)?;
        let sources = self.sources(pictures.pairs().map(|(_, text)| text));
        let all = sources.ids.len();
        let pairs = sources.ids.into_iter().zip(pictures.pairs());
        let some = pairs.filter(|(ids, _)| !ids.is_empty());
        let (ids, targets): (Vec<_>, Vec<_>) =
            some.map(|(ids, (at, _))| (ids, of_each[at].clone())).unzip();
        if ids.len() < all {
            let blank = all - ids.len();
            remark(format!("{blank} of {all} training sentences have no token, and are left out"));
        }
        Ok((TokenSources { ids, names: None }, targets))
    }

    /// The picture of what was written, C × height × width.
    pub(super) fn picture(&self, tokens: &[usize]) -> Result<Vec<u8>> {
        let codes: Vec<usize> = tokens.iter().map(|token| token - FIRST).collect();
        self.preprocessor.codebook.decode(&codes)
    }

    /// What is written for sentences. Refuses one without words.
    fn written<S: AsRef<str>>(&self, sentences: &[S]) -> Result<(TokenSources, Vec<Hypothesis>)> {
        let sources = self.sources(sentences.iter());
        if let Some(at) = sources.ids.iter().position(Vec::is_empty) {
            let text = sentences[at].as_ref();
            return Err(Error::invalid(format!("`{text}`: there are no words to draw")));
        }
        let written = self.writer.write(&sources, self.config.search().beam, Need::OUTPUT)?;
        Ok((sources, written))
    }

    /// How good it is on pictures.
    pub(super) fn measure(&self, pictures: &Pictures) -> Result<Measured> {
        let sentences = firsts(pictures);
        let (sources, written) = self.written(&sentences)?;
        let drawn = written.iter().map(|h| self.picture(&h.tokens));
        let drawn = drawn.collect::<Result<Vec<_>>>()?;
        let losses = self.writer.losses(&sources, &self.targets(pictures)?)?;
        let perplexity = (losses.iter().sum::<f64>() / losses.len().max(1) as f64).exp();
        let error = error(&drawn, &pictures.pixels);
        if !self.config.is_embedded() {
            let values = losses.iter().map(|loss| -loss).collect();
            let each = PerExample { measure: "log-probability of a patch".into(), values };
            let scores = Scores::new("perplexity", perplexity, Better::Lower).with("error", error);
            return Ok(Measured { scores, drawn, each, found: None });
        }
        let reader =
            SceneReader::new(self.config.data.image_size, self.config.data.embedded.language());
        let found = reader.read_all(&drawn.iter().map(|one| from_bytes(one)).collect::<Vec<_>>());
        let share = |(found, text): (&Recognized, &&String)| {
            // A sentence of somebody's own test file may be about anything.
            reader.named(text).map_or([0.0; 4], |asked| found.shares_of(&asked))
        };
        let shares: Vec<[f64; 4]> = found.iter().zip(&sentences).map(share).collect();
        let mean = |of: &dyn Fn(&[f64; 4]) -> f64| {
            shares.iter().map(of).sum::<f64>() / shares.len().max(1) as f64
        };
        let exact = |shares: &[f64; 4]| f64::from(u8::from(shares.iter().all(|&x| x == 1.0)));
        let mut scores = Scores::new("exact", mean(&exact), Better::Higher);
        for (at, name) in ["shapes", "colors", "sizes", "places"].into_iter().enumerate() {
            scores = scores.with(name, mean(&|shares| shares[at]));
        }
        let scores = scores.with("perplexity", perplexity).with("error", error);
        let values = shares.iter().map(|shares| shares.iter().sum::<f64>() / 4.0).collect();
        let each = PerExample { measure: "share of what is named".into(), values };
        Ok(Measured { scores, drawn, each, found: Some(found) })
    }

    /// What inputs say: text, or the sentences of an example, of which the first is drawn.
    fn sentences(&self, inputs: &[Input]) -> Result<Vec<Vec<String>>> {
        let examples = self.looked_up.within(&self.config, "pictures");
        let text = |input: &Input| match input.as_example() {
            Some(key) => Ok(examples.get(input, key)?.1),
            None => Ok(vec![input.text()?.to_string()]),
        };
        inputs.iter().map(text).collect()
    }

    /// What is drawn for inputs.
    fn texts(&self, inputs: &[Input]) -> Result<Vec<String>> {
        let all = self.sentences(inputs)?;
        Ok(all.into_iter().map(|mut sentences| sentences.swap_remove(0)).collect())
    }

    /// A picture as a PNG that stands in a text: `data:image/png;base64,…`.
    fn url(&self, picture: &[u8]) -> Result<String> {
        let side = self.config.data.image_size;
        let (channels, plane) = (self.config.data.channels(), side * side);
        let pixel = |at: usize| (0..channels).map(move |channel| picture[channel * plane + at]);
        let bytes: Vec<u8> = (0..plane).flat_map(pixel).collect();
        let color = if channels == 3 { ExtendedColorType::Rgb8 } else { ExtendedColorType::L8 };
        let (mut png, side) = (Vec::new(), side as u32);
        PngEncoder::new(&mut png)
            .write_image(&bytes, side, side, color)
            .map_err(|error| Error::invalid(format!("PNG was not written: {error}")))?;
        Ok(format!("{}{}", Prediction::PICTURE, base64(&png)))
    }

    /// What a rule finds in a picture, in the words that were asked with where it is that.
    fn said(&self, found: &Recognized, asked: &str) -> String {
        let [one, other] = found.sentences(self.config.data.embedded.language());
        if other == asked { other } else { one }
    }
}

/// The first sentence of each picture.
fn firsts(pictures: &Pictures) -> Vec<&String> {
    pictures.sentences.iter().filter_map(|all| all.first()).collect()
}

fn from_bytes(picture: &[u8]) -> Vec<f32> {
    picture.iter().map(|&value| f32::from(value) / 255.0).collect()
}

impl Model for Artist {
    fn parameters(&self) -> &Parameters {
        &self.writer.parameters
    }

    fn named_rows(&self) -> Vec<NamedRows> {
        let words = all_tokens(&self.preprocessor.tokenizer);
        let codes = self.preprocessor.codebook.names();
        let codes: Vec<String> = (0..FIRST).map(|at| format!("<{at}>")).chain(codes).collect();
        let source = NamedRows::of(&["source.weight"], &words);
        let target = NamedRows::of(&["target.weight", "output.weight", "output.bias"], &codes);
        [source, target].concat()
    }

    fn vocabulary(&self) -> Result<String> {
        serde_json::to_string(&self.preprocessor).map_err(|e| Error::invalid(e.to_string()))
    }

    fn evaluate(&self, part: Part) -> Result<Report> {
        let pictures = Dataset::new(&self.config).part(part)?;
        let measured = self.measure(&pictures)?;
        let sentences = firsts(&pictures);
        let found = measured.found.iter().flatten().zip(&sentences).take(3);
        let samples = found.map(|(found, asked)| {
            let [asked, found] = [asked.to_string(), self.said(found, asked)];
            (asked.clone(), asked, found)
        });
        let outputs = measured.drawn.iter().map(|picture| self.url(picture));
        let (reads, tokenizer) = (self.preprocessor.reads(), &self.preprocessor.tokenizer);
        let long = sentences.iter().filter(|text| tokenizer.encode(text).len() > reads).count();
        let all = sentences.len();
        let notes = (long > 0).then(|| {
            format!("{long} of {all} sentences have more than {reads} tokens, and were read so far")
        });
        Ok(Report {
            scores: measured.scores,
            examples: pictures.len(),
            samples: samples.collect(),
            each: Some(measured.each),
            outputs: outputs.collect::<Result<_>>()?,
            notes: notes.into_iter().collect(),
            ..Report::default()
        })
    }

    fn asks(&self) -> Asks {
        Asks { draws: true, ..Asks::new(InputForm::Sentence, &[]) }
    }

    /// Where a rule finds what stands in a picture, its words are the output; else the picture is.
    fn judge(&self, part: Part) -> Result<Vec<Judged>> {
        let pictures = Dataset::new(&self.config).part(part)?;
        let measured = self.measure(&pictures)?;
        let sentences = firsts(&pictures);
        let sources = self.sources(sentences.iter());
        let losses = self.writer.losses(&sources, &self.targets(&pictures)?)?;
        let judged = |(index, asked): (usize, &&String)| {
            let (output, truth) = match &measured.found {
                Some(found) => (self.said(&found[index], asked), asked.to_string()),
                None => (self.url(&measured.drawn[index])?, self.url(&pictures.pixels[index])?),
            };
            let (input, length, loss) = (asked.to_string(), sources.length(index), losses[index]);
            Ok(Judged { index, input, truth, output, loss, length, ..Judged::default() })
        };
        sentences.iter().enumerate().map(judged).collect()
    }

    fn predict(&self, inputs: &[Input]) -> Result<Vec<Prediction>> {
        let sentences = self.sentences(inputs)?;
        let texts: Vec<&String> = sentences.iter().map(|all| &all[0]).collect();
        let (sources, written) = self.written(&texts)?;
        let tokenizer = &self.preprocessor.tokenizer;
        let predict = |(at, h): (usize, Hypothesis)| {
            let codes: Vec<usize> = h.tokens.iter().map(|token| token - FIRST).collect();
            let one = Prediction {
                input: texts[at].to_string(),
                output: self.url(&self.picture(&h.tokens)?)?,
                details: serde_json::json!({
                    "log_probability": h.log_prob,
                    "codes": codes,
                    "sentences": sentences[at],
                    "token_scores": h.token_scores,
                }),
            };
            let (read, words) = (&sources.ids[at], tokenizer.tokens(texts[at]));
            let of = words.len();
            Ok(one.with_unknown(unknown_words(words, read)).with_cut(read.len(), of, "tokens"))
        };
        written.into_iter().enumerate().map(predict).collect()
    }

    fn n_best(&self, inputs: &[Input], n: usize) -> Result<Vec<Vec<Alternative>>> {
        let texts = self.texts(inputs)?;
        self.written(&texts)?;
        let found = self.writer.write_n_best(&self.sources(texts.iter()), n)?;
        let alternative = |h: &Hypothesis| {
            Ok(Alternative { output: self.url(&self.picture(&h.tokens)?)?, score: h.score })
        };
        found.iter().map(|best| best.iter().map(alternative).collect()).collect()
    }

    fn show(&self, input: &Input) -> Result<Vec<(String, Scene)>> {
        let text = self.texts(std::slice::from_ref(input))?.remove(0);
        self.scenes(&text)
    }

    /// The picture of an example of the data.
    fn truth(&self, input: &Input) -> Option<String> {
        let (picture, _) = self.looked_up.within(&self.config, "pictures").find(input)?;
        self.url(&picture).ok()
    }

    fn typed(&self, input: &Input) -> Result<Option<String>> {
        Ok(Some(self.texts(std::slice::from_ref(input))?.remove(0)))
    }

    fn abilities(&self) -> Abilities<'_> {
        Abilities { explains: Some(self), exports: Some(self), ..Abilities::default() }
    }
}

impl Explains for Artist {
    fn saliency(&self, input: &Input, how: How) -> Result<Saliency> {
        let text = self.texts(std::slice::from_ref(input))?.remove(0);
        let (sources, written) = self.written(std::slice::from_ref(&text))?;
        let source = sources.batch(&[0])?;
        let score = || self.writer.log_prob(&source, &written[0].tokens);
        let found = Probe::embedding(&score).explain(how)?;
        let mut names = self.preprocessor.tokenizer.tokens(&text);
        names.truncate(found.values.len());
        Ok(found.named("the log-probability of the output".into(), names, None))
    }
}

impl Exports for Artist {
    fn exported(&self) -> Result<Exported> {
        made_up::seq2seq(&self.writer.model)
    }
}
