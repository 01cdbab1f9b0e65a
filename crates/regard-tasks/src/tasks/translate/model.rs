//! A translation model: tokenizers on both sides, and a sequence-to-sequence model between them.

use super::config::Config;
use super::data::{Dataset, Pair, is_whole, with_blank_lines};
use crate::metric::judged::Judged;
use crate::metric::scores::Scores;
use crate::metric::{Bleu, Rouge, RougeTokenization, Tokenization, chrf};
use crate::task::abilities::{Abilities, Explains, Exports, Searches};
use crate::task::input::{Asks, Input, InputForm};
use crate::task::lengths::read_so_far;
use crate::task::looked_up::LookedUp;
use crate::task::model::Model;
use crate::task::named_rows::{NamedRows, all_tokens};
use crate::task::network::Exported;
use crate::task::part::Part;
use crate::task::prediction::unknown_words;
use crate::task::prediction::{Alternative, Prediction};
use crate::task::report::{Groups, PerExample, Report, ValuesRead};
use crate::task::saliency::{How, Probe, Saliency};
use crate::task::search_tree::SearchTree;
use crate::tasks::components::made_up;
use crate::tasks::seq2seq::{
    CopyNames, Limit, Sources, TokenSources, Writer, alignment, copied, decoder_scene,
    encoder_scene, some_scene,
};
use regard::attention::Need;
use regard::models::Hypothesis;
use regard::tensor::{Better, Parameters};
use regard_data::text::Tokenizer;
use regard_data::{Error, Result};
use regard_picture::scene::Scene;
use serde::{Deserialize, Serialize};

/// What a translation model knows of its data.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Preprocessor {
    pub(super) source: Tokenizer,
    /// None where the source's serves both sides.
    target: Option<Tokenizer>,
}

impl Preprocessor {
    pub(super) fn fit(config: &Config, pairs: &[Pair]) -> Result<Self> {
        let tokenizer = config.text.tokens.config();
        let sources: Vec<&str> = pairs.iter().map(|(source, _)| &source[..]).collect();
        let targets: Vec<&str> = pairs.iter().map(|(_, target)| &target[..]).collect();
        if config.text.shared_vocabulary {
            let both: Vec<&str> = sources.into_iter().chain(targets).collect();
            return Ok(Self { source: Tokenizer::learn(&both, &tokenizer)?, target: None });
        }
        Ok(Self {
            source: Tokenizer::learn(&sources, &tokenizer)?,
            target: Some(Tokenizer::learn(&targets, &tokenizer)?),
        })
    }

    pub(super) fn target(&self) -> &Tokenizer {
        self.target.as_ref().unwrap_or(&self.source)
    }
}

/// Pairs as numbers.
pub(crate) struct EncodedPairs {
    pub(super) sources: TokenSources,
    pub(super) targets: Vec<Vec<usize>>,
}

pub(crate) struct Translator {
    pub(super) config: Config,
    pub(super) preprocessor: Preprocessor,
    pub(super) writer: Writer,
    looked_up: LookedUp<Pair>,
}

impl Translator {
    pub(super) fn new(config: Config, preprocessor: Preprocessor) -> Result<Self> {
        let seq2seq = config.seq2seq(preprocessor.source.len(), preprocessor.target().len());
        let (search, seed) = (config.search.search, config.training.seed);
        let writer = Writer::new(&seq2seq, &config.model, search, Limit::Source, seed)?;
        Ok(Self { config, preprocessor, writer, looked_up: LookedUp::new() })
    }

    /// Pairs as tokens, as many as are read of each side.
    pub(super) fn encode(&self, pairs: &[Pair]) -> EncodedPairs {
        let sources = self.encode_sources(pairs.iter().map(|(source, _)| &source[..]));
        let target = self.preprocessor.target();
        let encode = |(at, (_, text)): (usize, &Pair)| {
            let mut ids = match &sources.names {
                Some(names) => names[at].encode(text, target),
                None => target.encode(text),
            };
            ids.truncate(self.config.data.max_length);
            ids
        };
        let targets = pairs.iter().enumerate().map(encode).collect();
        EncodedPairs { sources, targets }
    }

    /// Sources as tokens, as many as are read of each.
    pub(super) fn encode_sources<'a>(&self, texts: impl Iterator<Item = &'a str>) -> TokenSources {
        let texts: Vec<&str> = texts.collect();
        let ids = |text: &&str| {
            let mut ids = self.preprocessor.source.encode(text);
            ids.truncate(self.config.data.max_length);
            ids
        };
        let names = |text: &&str| CopyNames::new(self.columns(text), self.preprocessor.target());
        TokenSources {
            ids: texts.iter().map(ids).collect(),
            names: self.config.model.copy.then(|| texts.iter().map(names).collect()),
        }
    }

    /// The tokens of a source that are read, as they are shown.
    fn columns(&self, source: &str) -> Vec<String> {
        let mut tokens = self.preprocessor.source.tokens(source);
        tokens.truncate(self.config.data.max_length);
        tokens
    }

    /// The text of an output of a source.
    fn decode(&self, sources: &TokenSources, at: usize, ids: &[usize]) -> String {
        let target = self.preprocessor.target();
        match &sources.names {
            Some(names) => names[at].decode(ids, target),
            None => target.decode(ids),
        }
    }

    /// The tokens of an output of a source, as they are shown.
    fn tokens(&self, sources: &TokenSources, at: usize, ids: &[usize]) -> Vec<String> {
        let target = self.preprocessor.target();
        let token = |&id: &usize| match &sources.names {
            Some(names) => names[at].token(id, target).to_string(),
            None => target.token(id).to_string(),
        };
        ids.iter().map(token).collect()
    }

    /// What inputs say: text, or the source of an example.
    fn texts(&self, inputs: &[Input]) -> Result<Vec<String>> {
        let examples = self.looked_up.within(&self.config, "pairs");
        let text = |input: &Input| match *input {
            Input::Example { part, index, .. } => Ok(examples.get(input, (part, index))?.0),
            _ => Ok(input.text()?.to_string()),
        };
        inputs.iter().map(text).collect()
    }

    /// The output for each source, blank for a blank one. A beam of 1 is quick.
    fn outputs(&self, pairs: &[Pair], beam: usize) -> Result<Vec<String>> {
        let sources = self.encode_sources(pairs.iter().map(|(source, _)| &source[..]));
        let written = self.writer.write(&sources, beam, Need::OUTPUT)?;
        let written = written.iter().enumerate();
        Ok(written.map(|(at, h)| self.decode(&sources, at, &h.tokens)).collect())
    }

    /// As [`Self::outputs`], with how many values of the source attention read.
    fn outputs_counted(
        &self,
        pairs: &[Pair],
        beam: usize,
    ) -> Result<(Vec<String>, Option<ValuesRead>)> {
        let sources = self.encode_sources(pairs.iter().map(|(source, _)| &source[..]));
        let (written, values_read) = self.writer.write_counted(&sources, beam)?;
        let written = written.iter().enumerate();
        let outputs = written.map(|(at, h)| self.decode(&sources, at, &h.tokens)).collect();
        Ok((outputs, values_read))
    }

    /// How good outputs are for pairs that have both sides.
    fn scores(&self, pairs: &[Pair], outputs: &[String]) -> Result<Scores> {
        let EncodedPairs { sources, targets } = self.encode(pairs);
        let references: Vec<String> = pairs.iter().map(|(_, target)| target.clone()).collect();
        let perplexity = self.writer.perplexity(&sources, &targets)?;
        let same = outputs.iter().zip(&references).filter(|(a, b)| a == b).count();
        let scores = match self.decisive(&references) {
            Decisive::Rouge(by) => {
                let rouge = Rouge::corpus(outputs, &references, by)?;
                Scores::new("ROUGE-L", 100.0 * rouge.l.f1, Better::Higher)
                    .with("ROUGE-1", 100.0 * rouge.one.f1)
                    .with("ROUGE-2", 100.0 * rouge.two.f1)
            }
            Decisive::Bleu(by) => {
                Scores::new("BLEU", bleu(outputs, &references, by)?, Better::Higher)
                    .with("chrF", chrf(outputs, &alone(&references))?)
            }
        };
        Ok(scores
            .with("perplexity", perplexity)
            .with("exact", same as f64 / pairs.len().max(1) as f64))
    }

    /// How good it is on pairs that have both sides, searching greedily.
    pub(super) fn measure(&self, pairs: &[Pair]) -> Result<Scores> {
        self.scores(pairs, &self.outputs(pairs, 1)?)
    }

    /// How good each output is: BLEU says nothing of one sentence, chrF and ROUGE do.
    fn each(&self, pairs: &[Pair], outputs: &[String]) -> Result<PerExample> {
        let decisive = self.decisive(&targets(pairs));
        let one = |((_, target), output): (&Pair, &String)| match decisive {
            Decisive::Rouge(by) => Ok(100.0 * Rouge::corpus(&[output], &[target], by)?.l.f1),
            Decisive::Bleu(_) => chrf(&[output], &[vec![target]]),
        };
        let values = pairs.iter().zip(outputs).map(one).collect::<Result<_>>()?;
        let measure = if self.config.search.rouge.is_some() { "ROUGE-L" } else { "chrF" };
        Ok(PerExample { measure: measure.into(), values })
    }

    /// What should be known of pairs that are measured on.
    fn notes(&self, lines: &[Pair], scored: usize) -> Vec<String> {
        let longest = self.config.data.max_length;
        let is_long = |(source, _): &&Pair| self.preprocessor.source.encode(source).len() > longest;
        let (blank, long) = (lines.len() - scored, lines.iter().filter(is_long).count());
        let mut notes = Vec::new();
        if blank > 0 {
            notes.push(format!(
                "{blank} of {} lines lack a source or a target: they have a line in the outputs, \
                 and are not measured",
                lines.len()
            ));
        }
        notes.extend(read_so_far(long, lines.len(), "sources", longest, "tokens"));
        notes
    }

    /// What decides, and how it splits: as the options say, or as the references are written.
    fn decisive<R: AsRef<str>>(&self, references: &[R]) -> Decisive {
        let search = &self.config.search;
        match search.rouge {
            Some(rouge) => Decisive::Rouge(rouge.tokenization(references)),
            None => {
                Decisive::Bleu(search.bleu.unwrap_or_else(|| Tokenization::suiting(references)))
            }
        }
    }

    /// What decides, of sentences by the length of their source, in fives or, where they are long,
    /// in fifties.
    fn by_length(&self, pairs: &[Pair], outputs: &[String], lengths: &[usize]) -> Result<Groups> {
        let longest = lengths.iter().copied().max().unwrap_or(0);
        let width = if longest <= 100 { 5 } else { 50 };
        let last = longest.saturating_sub(1) / width;
        let decisive = self.decisive(&targets(pairs));
        let mut values = Vec::new();
        for group in 0..=last {
            let of: Vec<usize> = (0..pairs.len())
                .filter(|&i| lengths[i].saturating_sub(1) / width == group)
                .collect();
            // The measure of a few sentences says nothing.
            if of.len() < 5 {
                continue;
            }
            let outputs: Vec<String> = of.iter().map(|&i| outputs[i].clone()).collect();
            let references: Vec<String> = of.iter().map(|&i| pairs[i].1.clone()).collect();
            let name = format!("{}–{}", group * width + 1, (group + 1) * width);
            values.push((name, decisive.of(&outputs, &references)?));
        }
        let measure = if self.config.search.rouge.is_some() { "ROUGE-L" } else { "BLEU" };
        Ok(Groups { measure: measure.into(), by: "tokens of the source".into(), values })
    }
}

/// Of sources that are to be written again: how many of their words are, each at its place, in
/// fives. Elsewhere nobody knows which word of the source a word comes from.
fn by_place(pairs: &[Pair], outputs: &[String]) -> Option<Groups> {
    const WIDTH: usize = 5;
    if pairs.iter().any(|(source, target)| source != target) {
        return None;
    }
    let mut counts: Vec<(usize, usize)> = Vec::new();
    for ((source, _), output) in pairs.iter().zip(outputs) {
        let mut written = output.split_whitespace();
        for (place, word) in source.split_whitespace().enumerate() {
            if counts.len() <= place / WIDTH {
                counts.resize(place / WIDTH + 1, (0, 0));
            }
            let (right, all) = &mut counts[place / WIDTH];
            *all += 1;
            *right += usize::from(written.next() == Some(word));
        }
    }
    let named = |(group, (right, all)): (usize, (usize, usize))| {
        let name = format!("{}–{}", group * WIDTH + 1, (group + 1) * WIDTH);
        (name, right as f64 / all.max(1) as f64)
    };
    let values: Vec<(String, f64)> = counts.into_iter().enumerate().map(named).collect();
    let (measure, by) = ("accuracy".into(), "position in the source".into());
    (values.len() > 1).then_some(Groups { measure, by, values })
}

/// The measure that decides, and how it splits texts.
#[derive(Clone, Copy)]
enum Decisive {
    Bleu(Tokenization),
    Rouge(RougeTokenization),
}

impl Decisive {
    fn of(self, outputs: &[String], references: &[String]) -> Result<f64> {
        match self {
            Self::Rouge(by) => Ok(100.0 * Rouge::corpus(outputs, references, by)?.l.f1),
            Self::Bleu(by) => bleu(outputs, references, by),
        }
    }

    /// How BLEU counts, in sacreBLEU's words.
    fn signature(self) -> Option<String> {
        match self {
            Self::Bleu(by) => Some(by.signature()),
            Self::Rouge(_) => None,
        }
    }

    /// How ROUGE counts where rouge-score would count otherwise.
    fn note(self) -> Option<String> {
        match self {
            Self::Bleu(_) | Self::Rouge(RougeTokenization::Words) => None,
            Self::Rouge(RougeTokenization::Unicode) => Some(
                "ROUGE counts the words of every script (`search.rouge=unicode`); rouge-score counts \
                 Latin ones alone"
                    .into(),
            ),
            Self::Rouge(RougeTokenization::Characters) => Some(
                "ROUGE counts characters (`search.rouge=characters`); rouge-score counts Latin words \
                 alone"
                    .into(),
            ),
        }
    }
}

fn targets(pairs: &[Pair]) -> Vec<&String> {
    pairs.iter().map(|(_, target)| target).collect()
}

fn bleu(outputs: &[String], references: &[String], by: Tokenization) -> Result<f64> {
    Ok(Bleu::corpus(outputs, &alone(references), by)?.score)
}

/// Each reference as the only one of its sentence.
fn alone(references: &[String]) -> Vec<Vec<&String>> {
    references.iter().map(|one| vec![one]).collect()
}

impl Model for Translator {
    fn parameters(&self) -> &Parameters {
        &self.writer.parameters
    }

    fn named_rows(&self) -> Vec<NamedRows> {
        let target = all_tokens(self.preprocessor.target());
        let source = NamedRows::of(&["source.weight"], &all_tokens(&self.preprocessor.source));
        let target = NamedRows::of(&["target.weight", "output.weight", "output.bias"], &target);
        [source, target].concat()
    }

    fn vocabulary(&self) -> Result<String> {
        serde_json::to_string(&self.preprocessor).map_err(|e| Error::invalid(e.to_string()))
    }

    fn evaluate(&self, part: Part) -> Result<Report> {
        let lines = with_blank_lines(&self.config, part)?;
        let (all, values_read) = self.outputs_counted(&lines, self.config.search.search.beam)?;
        let whole = lines.iter().zip(&all).filter(|(pair, _)| is_whole(pair));
        let (pairs, outputs): (Vec<Pair>, Vec<String>) =
            whole.map(|(pair, output)| (pair.clone(), output.clone())).unzip();
        let scores = self.scores(&pairs, &outputs)?;
        let lengths: Vec<usize> =
            pairs.iter().map(|(source, _)| self.preprocessor.source.encode(source).len()).collect();
        let groups = self.by_length(&pairs, &outputs, &lengths)?;
        let places = by_place(&pairs, &outputs);
        let decisive = self.decisive(&targets(&pairs));
        let samples = pairs.iter().zip(&outputs).take(3);
        let samples = samples.map(|((s, t), o)| (s.clone(), t.clone(), o.clone())).collect();
        Ok(Report {
            scores,
            examples: pairs.len(),
            groups: Some(groups),
            places,
            samples,
            each: Some(self.each(&pairs, &outputs)?),
            notes: self.notes(&lines, pairs.len()).into_iter().chain(decisive.note()).collect(),
            signature: decisive.signature(),
            outputs: all,
            values_read,
            ..Report::default()
        })
    }

    fn asks(&self) -> Asks {
        let long = self.config.search.rouge.is_some();
        Asks::new(if long { InputForm::Text } else { InputForm::Sentence }, &[])
    }

    fn judge(&self, part: Part) -> Result<Vec<Judged>> {
        let pairs = Dataset::new(&self.config).part(part)?;
        let outputs = self.outputs(&pairs, 1)?;
        let EncodedPairs { sources, targets } = self.encode(&pairs);
        let losses = self.writer.losses(&sources, &targets)?;
        let judged = |(index, (source, target)): (usize, Pair)| Judged {
            index,
            input: source,
            truth: target,
            output: outputs[index].clone(),
            loss: losses[index],
            length: sources.ids[index].len(),
            labels: Vec::new(),
            numbers: None,
        };
        Ok(pairs.into_iter().enumerate().map(judged).collect())
    }

    fn predict(&self, inputs: &[Input]) -> Result<Vec<Prediction>> {
        self.predict_with_beam(inputs, self.config.search.search.beam)
    }

    fn n_best(&self, inputs: &[Input], n: usize) -> Result<Vec<Vec<Alternative>>> {
        let texts = self.texts(inputs)?;
        let sources = self.encode_sources(texts.iter().map(String::as_str));
        let found = self.writer.write_n_best(&sources, n)?.into_iter().enumerate();
        let alternative = |at: usize, h: &Hypothesis| Alternative {
            output: self.decode(&sources, at, &h.tokens),
            score: h.score,
        };
        Ok(found.map(|(at, best)| best.iter().map(|h| alternative(at, h)).collect()).collect())
    }

    fn show(&self, input: &Input) -> Result<Vec<(String, Scene)>> {
        let text = self.texts(std::slice::from_ref(input))?.remove(0);
        let sources = self.encode_sources(std::iter::once(&text[..]));
        let h = self.writer.write_one(&sources)?;
        let columns = self.columns(&text);
        let mut rows = self.tokens(&sources, 0, &h.tokens);
        if h.ended {
            rows.push("<end>".into());
        }
        let encoded = self.writer.encode_one(&sources)?;
        let own = self.writer.self_attention(&sources, &h)?;
        let scenes = [
            alignment(&h, &rows, &columns)?,
            copied(&h, &rows, &columns)?,
            encoder_scene(&encoded, columns, self.config.model.encoder.window)?,
            decoder_scene(&own, &rows)?,
        ];
        let scenes: Vec<_> = scenes.into_iter().flatten().collect();
        some_scene(scenes)
    }

    /// The translation of a sentence that the validation or the test part holds.
    fn truth(&self, input: &Input) -> Option<String> {
        match input {
            Input::Text(text) => {
                let dataset = Dataset::new(&self.config);
                self.looked_up.truth(text, |part| dataset.part(part))
            }
            _ => Some(self.looked_up.within(&self.config, "pairs").find(input)?.1),
        }
    }

    fn abilities(&self) -> Abilities<'_> {
        Abilities {
            explains: Some(self),
            searches: Some(self),
            exports: Some(self),
            ..Abilities::default()
        }
    }
}

impl Explains for Translator {
    fn saliency(&self, input: &Input, how: How) -> Result<Saliency> {
        let text = self.texts(std::slice::from_ref(input))?.remove(0);
        let sources = self.encode_sources(std::iter::once(&text[..]));
        let tokens = self.writer.write_one(&sources)?.tokens;
        let source = sources.batch(&[0])?;
        let found = Probe::embedding(&|| self.writer.log_prob(&source, &tokens)).explain(how)?;
        let of = "the log-probability of the output".into();
        Ok(found.named(of, self.columns(&text), None))
    }
}

impl Searches for Translator {
    fn search_tree(&self, input: &Input) -> Result<SearchTree> {
        let text = self.texts(std::slice::from_ref(input))?.remove(0);
        let sources = self.encode_sources(std::iter::once(&text[..]));
        let token = |id: usize| self.tokens(&sources, 0, &[id]).remove(0);
        self.writer.search_tree(&sources, token, |ids| self.decode(&sources, 0, ids))
    }

    fn predict_with_beam(&self, inputs: &[Input], beam: usize) -> Result<Vec<Prediction>> {
        let texts = self.texts(inputs)?;
        let sources = self.encode_sources(texts.iter().map(String::as_str));
        let outputs = self.writer.write(&sources, beam, Need::OUTPUT)?;
        let prediction = |(at, h): (usize, Hypothesis)| Prediction {
            input: texts[at].clone(),
            output: self.decode(&sources, at, &h.tokens),
            details: serde_json::json!({
                "score": h.score,
                "log_probability": h.log_prob,
                "tokens": self.tokens(&sources, at, &h.tokens),
                "token_scores": h.token_scores.iter().take(h.tokens.len()).collect::<Vec<_>>(),
                "end_score": h.token_scores.get(h.tokens.len()),
                "ended": h.ended,
            }),
        };
        // What can be copied need not be known.
        let unknown = |at: usize| match self.config.model.copy {
            true => Vec::new(),
            false => unknown_words(self.columns(&texts[at]), &sources.ids[at]),
        };
        let whole = |at: usize| match sources.ids[at].len() < self.config.data.max_length {
            true => sources.ids[at].len(),
            false => self.preprocessor.source.encode(&texts[at]).len(),
        };
        let described = |(at, h): (usize, Hypothesis)| {
            let one = prediction((at, h)).with_unknown(unknown(at));
            one.with_cut(sources.ids[at].len(), whole(at), "tokens")
        };
        Ok(outputs.into_iter().enumerate().map(described).collect())
    }
}

impl Exports for Translator {
    fn exported(&self) -> Result<Exported> {
        made_up::seq2seq(&self.writer.model)
    }
}
