//! A labeler: words and letters as numbers, and a label for each word.

use super::asked::Asked;
use super::config::Config;
use super::data::{Dataset, Sentences};
use super::encoded_sentence::EncodedSentence;
use crate::metric::judged::Judged;
use crate::metric::scores::Scores;
use crate::metric::{Confusion, mark_spans, span_scores};
use crate::task::abilities::{Abilities, Explains, Exports};
use crate::task::input::{Asks, Input, InputForm};
use crate::task::looked_up::LookedUp;
use crate::task::model::Model;
use crate::task::named_rows::NamedRows;
use crate::task::network::{Exported, Network};
use crate::task::part::Part;
use crate::task::prediction::unknown_words;
use crate::task::prediction::{Alternative, Prediction};
use crate::task::report::{Groups, PerExample, Report};
use crate::task::saliency::{How, Probe, Saliency};
use crate::tasks::components::made_up::made_up_lengths;
use crate::tasks::labels::labelings::likeliest_labelings;
use crate::tasks::labels::probabilities::{argmax, check_nan};
use crate::tasks::labels::truth::Truth;
use regard::attention::{Need, Site};
use regard::models::{SequenceLabeler, Sequences};
use regard::tensor::{Better, Parameters, Random, without_gradients};
use regard::{DType, Mode, Tensor};
use regard_data::files::{BatchSize, Tagged, batches};
use regard_data::text::{
    Labels, PADDING, Pretrained, Tokenizer, TokenizerKind, UNKNOWN, Vocabulary, split,
};
use regard_data::tick;
use regard_data::{Error, Result};
use regard_picture::scene::{Map, Maps, Scene};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Letters of a word that are read: of a longer word its beginning and its end.
pub(super) const LONGEST_WORD: usize = 16;

/// Sentences that are read at once where nothing is learned.
const EVALUATION_BATCH: usize = 64;

/// What a labeler knows of its data.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Preprocessor {
    pub(super) words: Vocabulary,
    pub(super) characters: Vocabulary,
    pub(super) labels: Labels,
    /// What makes pieces of words, where a pretrained tokenizer does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pieces: Option<Tokenizer>,
    /// Words that had several labels: what is around them must tell.
    ambiguous: BTreeSet<String>,
}

impl Preprocessor {
    pub(super) fn fit(config: &Config, sentences: &[Tagged]) -> Result<Self> {
        let text = &config.text.tokens;
        let written = || sentences.iter().flat_map(|sentence| &sentence.words);
        let labels = || sentences.iter().flat_map(|sentence| &sentence.labels);
        let read: Vec<String> = written().map(|word| cased(word, text.lowercase)).collect();
        let mut seen: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for (word, label) in read.iter().zip(labels()) {
            seen.entry(word).or_default().insert(label);
        }
        let several =
            |(word, labels): (&str, BTreeSet<&str>)| (labels.len() > 1).then(|| word.to_string());
        Ok(Self {
            words: Vocabulary::learn(
                read.iter().map(String::as_str),
                text.min_frequency,
                text.vocabulary_size,
            )?,
            characters: Vocabulary::characters(written().map(String::as_str), 1)?,
            labels: Labels::learn(labels().map(String::as_str)),
            pieces: (text.tokenizer == TokenizerKind::Pretrained)
                .then(|| Tokenizer::learn(&[""], &text.config()))
                .transpose()?,
            ambiguous: seen.into_iter().filter_map(several).collect(),
        })
    }
}

impl Preprocessor {
    /// What makes pieces of words, where words are read in pieces.
    pub(super) fn pieces(&self) -> Option<&Pretrained> {
        self.pieces.as_ref().and_then(Tokenizer::as_pretrained)
    }

    /// How many words or pieces there are.
    pub(super) fn vocabulary(&self) -> usize {
        self.pieces().map_or(self.words.len(), Pretrained::len)
    }
}

fn cased(word: &str, lower: bool) -> String {
    if lower { word.to_lowercase() } else { word.into() }
}

impl EncodedSentence {
    /// A sentence in pieces, between what its model wants around them.
    fn in_pieces<S: AsRef<str>>(pieces: &Pretrained, words: &[S]) -> Self {
        if words.is_empty() {
            return Self::default();
        }
        let mut ids: Vec<usize> = pieces.special("[CLS]").into_iter().collect();
        let mut bounds = Vec::with_capacity(words.len() + 1);
        for word in words {
            bounds.push(ids.len());
            ids.extend(pieces.word(word.as_ref()).into_iter().map(|piece| piece.id));
        }
        bounds.push(ids.len());
        ids.extend(pieces.special("[SEP]"));
        Self { words: ids, bounds: Some(bounds), characters: Vec::new() }
    }
}

/// Sentences as numbers, filled up to one length.
pub(super) struct Batch {
    words: Tensor,
    characters: Option<Tensor>,
    lengths: Vec<usize>,
}

impl Batch {
    pub(super) fn sequences(&self) -> Sequences<'_> {
        Sequences {
            x: &self.words,
            lengths: Some(&self.lengths),
            characters: self.characters.as_ref(),
        }
    }

    /// The labels of each sentence's words, `[B, N]`; −1 where no word is labeled.
    pub(super) fn targets(
        &self,
        sentences: &[EncodedSentence],
        labels: &[&[usize]],
    ) -> Result<Tensor> {
        let n = self.words.shape()[1];
        let mut numbers = vec![-1i64; sentences.len() * n];
        for (row, (sentence, labels)) in sentences.iter().zip(labels).enumerate() {
            for (place, &label) in sentence.places().into_iter().zip(*labels) {
                numbers[row * n + place] = label as i64;
            }
        }
        Ok(Tensor::from_vec(numbers, &[sentences.len(), n])?)
    }
}

fn filled(all: &[&[usize]], n: usize) -> Result<Tensor> {
    let mut numbers = vec![PADDING as i64; all.len() * n];
    for (row, one) in numbers.chunks_mut(n.max(1)).zip(all) {
        row.iter_mut().zip(*one).for_each(|(to, &from)| *to = from as i64);
    }
    Ok(Tensor::from_vec(numbers, &[all.len(), n])?)
}

/// What a labeler makes of a sentence.
#[derive(Clone, Debug, Default)]
struct Labeling {
    /// The logarithm of each label's probability, word by word: `[N][labels]`.
    log_probs: Vec<Vec<f32>>,
    /// The likeliest label of each word.
    labels: Vec<usize>,
}

impl Labeling {
    fn new(log_probs: Vec<Vec<f32>>) -> Self {
        let labels = log_probs.iter().map(|word| argmax(word)).collect();
        Self { log_probs, labels }
    }

    /// Of each word's likeliest label.
    fn probabilities(&self) -> Vec<f64> {
        let labels = self.labels.iter().enumerate();
        labels.map(|(word, &label)| self.log_prob(word, label).exp()).collect()
    }

    fn log_prob(&self, word: usize, label: usize) -> f64 {
        f64::from(self.log_probs[word][label])
    }
}

pub(super) struct Labeler {
    pub(super) config: Config,
    pub(super) preprocessor: Preprocessor,
    parameters: Parameters,
    pub(super) model: SequenceLabeler,
    looked_up: LookedUp<Tagged>,
}

impl Labeler {
    pub(super) fn new(config: Config, preprocessor: Preprocessor) -> Result<Self> {
        let parameters = Parameters::new(DType::F32, config.training.seed);
        let Preprocessor { characters, labels, .. } = &preprocessor;
        let labeler = config.labeler(preprocessor.vocabulary(), characters.len(), labels.len());
        Parameters::check_fit(DType::F32, |p| SequenceLabeler::new(p, &labeler))?;
        let model = SequenceLabeler::new(&parameters, &labeler)?;
        Ok(Self { config, preprocessor, parameters, model, looked_up: LookedUp::new() })
    }

    /// A sentence as numbers.
    pub(super) fn encode<S: AsRef<str>>(&self, words: &[S]) -> EncodedSentence {
        if let Some(pieces) = self.preprocessor.pieces() {
            return EncodedSentence::in_pieces(pieces, words);
        }
        let lower = self.config.text.tokens.lowercase;
        let spelled = |word: &S| {
            let mut letters = self.preprocessor.characters.spell(word.as_ref());
            if letters.len() > LONGEST_WORD {
                letters.drain(LONGEST_WORD / 2..letters.len() - LONGEST_WORD / 2);
            }
            letters
        };
        let id = |word: &S| self.preprocessor.words.id(&cased(word.as_ref(), lower));
        let characters = match self.config.model.characters {
            true => words.iter().map(spelled).collect(),
            false => vec![],
        };
        let words = words.iter().map(id).collect();
        EncodedSentence { words, characters, bounds: None }
    }

    /// Sentences as numbers, filled up to one length.
    pub(super) fn batch(&self, sentences: &[&EncodedSentence]) -> Result<Batch> {
        let words: Vec<&[usize]> = sentences.iter().map(|s| &s.words[..]).collect();
        let lengths: Vec<usize> = words.iter().map(|words| words.len()).collect();
        let n = lengths.iter().copied().max().unwrap_or(0);
        let characters = || {
            let spelled = sentences.iter().flat_map(|s| &s.characters);
            let c = spelled.map(Vec::len).max().unwrap_or(0);
            let mut rows: Vec<&[usize]> = Vec::with_capacity(sentences.len() * n);
            for sentence in sentences {
                rows.extend(sentence.characters.iter().map(Vec::as_slice));
                rows.resize(rows.len().next_multiple_of(n.max(1)), &[]);
            }
            Result::Ok(filled(&rows, c)?.reshape(&[sentences.len(), n, c])?)
        };
        let characters = self.config.model.characters.then(characters).transpose()?;
        Ok(Batch { words: filled(&words, n)?, characters, lengths })
    }

    /// The numbers of all words' labels, and of each sentence's.
    pub(super) fn targets(&self, sentences: &[Tagged]) -> (Truth, Vec<Vec<usize>>) {
        let labels = sentences.iter().flat_map(|sentence| &sentence.labels);
        let truth = Truth::new(&self.preprocessor.labels, labels.map(String::as_str));
        let mut rest = &truth.ids[..];
        let own = |sentence: &Tagged| {
            let (own, others) = rest.split_at(sentence.labels.len());
            rest = others;
            own.to_vec()
        };
        let each = sentences.iter().map(own).collect();
        (truth, each)
    }

    /// What to say of sentences that are read in parts, where there are some.
    pub(super) fn note_of_parts(&self, sentences: &Sentences) -> Option<String> {
        let (longest, all) = (self.config.data.max_length.max(1), sentences.all.len());
        let long = sentences.all.iter().filter(|sentence| sentence.words.len() > longest).count();
        (long > 0).then(|| {
            format!(
                "{long} of {all} sentences have more than `data.max_length` = {longest} words, and are \
                 read in parts that do not see each other"
            )
        })
    }

    /// The labels of each sentence, in order. One of more words than `data.max_length` is read in
    /// parts.
    fn label(&self, sentences: &[EncodedSentence]) -> Result<Vec<Labeling>> {
        let longest = self.config.data.max_length.max(1);
        let parts: Vec<Vec<EncodedSentence>> =
            sentences.iter().map(|sentence| sentence.cut(longest)).collect();
        let mut labelings = self.label_parts(&parts.concat())?.into_iter();
        let joined = |parts: &Vec<EncodedSentence>| {
            let mut whole = Labeling::default();
            for part in labelings.by_ref().take(parts.len()) {
                whole.log_probs.extend(part.log_probs);
                whole.labels.extend(part.labels);
            }
            whole
        };
        Ok(parts.iter().map(joined).collect())
    }

    /// The labels of each sentence, in order. Reads batches of similar lengths.
    fn label_parts(&self, sentences: &[EncodedSentence]) -> Result<Vec<Labeling>> {
        let mut all = vec![Labeling::default(); sentences.len()];
        let mut done = 0;
        let lengths: Vec<usize> = sentences.iter().map(|s| s.words.len()).collect();
        for mut indices in batches(&lengths, BatchSize::Sequences(EVALUATION_BATCH), None)? {
            indices.retain(|&index| lengths[index] > 0);
            if indices.is_empty() {
                continue;
            }
            let batch: Vec<&EncodedSentence> =
                indices.iter().map(|&index| &sentences[index]).collect();
            let batch = self.batch(&batch)?;
            let logits = without_gradients(|| self.model.forward(&batch.sequences(), Mode::Infer))?;
            let (n, labels) = (logits.shape()[1], logits.shape()[2]);
            let log_probs = logits.log_softmax(-1)?.to_vec::<f32>()?;
            check_nan(&log_probs)?;
            for (sentence, &index) in log_probs.chunks(n * labels).zip(&indices) {
                let words = sentences[index].places().into_iter();
                let words = words.map(|place| sentence[place * labels..][..labels].to_vec());
                all[index] = Labeling::new(words.collect());
            }
            done += indices.len();
            tick("labeling", done, sentences.len())?;
        }
        Ok(all)
    }

    /// How good it is on sentences.
    pub(super) fn measure(&self, sentences: &Sentences, part: Part) -> Result<Report> {
        let (truth, targets) = self.targets(&sentences.all);
        let read: Vec<EncodedSentence> =
            sentences.all.iter().map(|s| self.encode(&s.words)).collect();
        let labelings = self.label(&read)?;
        let labeling: Vec<usize> =
            labelings.iter().flat_map(|labeling| labeling.labels.clone()).collect();
        let names = [self.preprocessor.labels.names(), &truth.unseen].concat();
        let (truth_ids, given, groups) = match &sentences.distances {
            None => {
                let groups = self.groups(sentences, &truth.ids, &labeling);
                (truth.ids.clone(), labeling, groups)
            }
            Some(distances) => {
                let asked = Asked::new(&distances.concat(), &truth.ids, &labeling);
                let groups = asked.groups();
                (asked.truth, asked.labeling, groups)
            }
        };
        let confusion = Confusion::count(&truth_ids, &given, &names)?;
        let outputs: Vec<String> = sentences
            .all
            .iter()
            .zip(&labelings)
            .map(|(s, g)| self.tagged(&s.words, g).join(" "))
            .collect();
        let right = truth_ids.iter().zip(&given).map(|(a, b)| f64::from(a == b));
        let expected = |s: &Tagged| tagged(s.words.iter().zip(&s.labels)).join(" ");
        let samples = sentences.all.iter().zip(&outputs).take(3);
        let scores = confusion.scores(loss(&targets, &labelings));
        Ok(Report {
            scores: self.with_spans(scores, sentences, &labelings)?,
            examples: truth.ids.len(),
            confusion: Some(confusion),
            groups: Some(groups),
            samples: samples
                .map(|(s, output)| (s.words.join(" "), expected(s), output.clone()))
                .collect(),
            each: Some(PerExample { measure: "accuracy".into(), values: right.collect() }),
            notes: (truth.note(part.name()).into_iter())
                .chain(self.note_of_parts(sentences))
                .collect(),
            outputs,
            ..Report::default()
        })
    }

    /// The measures with those of spans before them, where labels mark spans (B-PER, I-PER, O).
    fn with_spans(
        &self,
        scores: Scores,
        sentences: &Sentences,
        labelings: &[Labeling],
    ) -> Result<Scores> {
        if !mark_spans(self.preprocessor.labels.names()) {
            return Ok(scores);
        }
        let truth: Vec<Vec<&str>> = (sentences.all.iter())
            .map(|sentence| sentence.labels.iter().map(String::as_str).collect())
            .collect();
        let name = |&id: &usize| self.preprocessor.labels.name(id);
        let predicted: Vec<Vec<&str>> =
            labelings.iter().map(|labeling| labeling.labels.iter().map(name).collect()).collect();
        let whole = span_scores(&truth, &predicted)?[""];
        let mut all = Scores::new("span F1", whole.f1, Better::Higher)
            .with("span precision", whole.precision)
            .with("span recall", whole.recall);
        all.values.extend(scores.values);
        Ok(all)
    }

    /// The accuracy on words that are unknown, that had one label in training, and that had
    /// several.
    fn groups(&self, sentences: &Sentences, truth: &[usize], labeling: &[usize]) -> Groups {
        let lower = self.config.text.tokens.lowercase;
        let words = sentences.all.iter().flat_map(|sentence| &sentence.words);
        let kind = |word: &String| {
            let word = cased(word, lower);
            match self.preprocessor.words.id(&word) {
                UNKNOWN => 2,
                _ => usize::from(self.preprocessor.ambiguous.contains(&word)),
            }
        };
        let mut counts = [(0, 0); 3];
        for (kind, (truth, labeling)) in words.map(kind).zip(truth.iter().zip(labeling)) {
            counts[kind].0 += usize::from(truth == labeling);
            counts[kind].1 += 1;
        }
        let names = ["one", "several", "unknown"];
        let named = names.into_iter().zip(counts).filter(|(_, (_, all))| *all > 0);
        Groups {
            measure: "accuracy".into(),
            by: "labels of the word in training".into(),
            values: named
                .map(|(name, (right, all))| (name.into(), right as f64 / all as f64))
                .collect(),
        }
    }

    fn tagged<S: AsRef<str>>(&self, words: &[S], labeling: &Labeling) -> Vec<String> {
        tagged(
            words.iter().zip(labeling.labels.iter().map(|&id| self.preprocessor.labels.name(id))),
        )
    }

    /// What inputs say: text, or the words of an example.
    fn texts(&self, inputs: &[Input]) -> Result<Vec<String>> {
        let examples = self.looked_up.within(&self.config, "sentences");
        let text = |input: &Input| match *input {
            Input::Example { part, index, .. } => {
                Ok(examples.get(input, (part, index))?.words.join(" "))
            }
            _ => Ok(input.text()?.to_string()),
        };
        inputs.iter().map(text).collect()
    }

    fn split<'a>(&self, sentence: &'a str) -> Vec<&'a str> {
        split(sentence, self.config.text.tokens.tokenizer)
    }
}

/// "I/PRON", "saw/VERB"
pub(super) fn tagged<W, L>(words: impl Iterator<Item = (W, L)>) -> Vec<String>
where
    W: AsRef<str>,
    L: AsRef<str>,
{
    words.map(|(word, label)| format!("{}/{}", word.as_ref(), label.as_ref())).collect()
}

/// The mean of −ln p of what is true, over the words whose label the model knows.
fn loss(targets: &[Vec<usize>], labelings: &[Labeling]) -> f64 {
    let (mut sum, mut words) = (0.0, 0);
    for (targets, labeling) in targets.iter().zip(labelings) {
        for (word, &label) in targets.iter().enumerate() {
            if label < labeling.log_probs[word].len() {
                sum -= labeling.log_prob(word, label);
                words += 1;
            }
        }
    }
    sum / words.max(1) as f64
}

impl Model for Labeler {
    fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    fn named_rows(&self) -> Vec<NamedRows> {
        let Preprocessor { words, characters, labels, .. } = &self.preprocessor;
        let word = |id: usize| match self.preprocessor.pieces() {
            Some(pieces) => pieces.name(id).to_string(),
            None => words.name(id).to_string(),
        };
        let words: Vec<String> = (0..self.preprocessor.vocabulary()).map(word).collect();
        let letter = |id: usize| characters.name(id).to_string();
        let letters: Vec<String> = (0..characters.len()).map(letter).collect();
        [
            NamedRows::of(&["input.weight"], &words),
            NamedRows::of(&["characters.embedding.weight"], &letters),
            NamedRows::of(&["out.weight", "out.bias"], labels.names()),
        ]
        .concat()
    }

    fn vocabulary(&self) -> Result<String> {
        serde_json::to_string(&self.preprocessor).map_err(|e| Error::invalid(e.to_string()))
    }

    fn evaluate(&self, part: Part) -> Result<Report> {
        self.measure(&Dataset::new(&self.config).part(part)?, part)
    }

    fn asks(&self) -> Asks {
        Asks::new(InputForm::Sentence, self.preprocessor.labels.names())
    }

    fn judge(&self, part: Part) -> Result<Vec<Judged>> {
        let sentences = Dataset::new(&self.config).part(part)?.all;
        let (_, targets) = self.targets(&sentences);
        let read: Vec<EncodedSentence> = sentences.iter().map(|s| self.encode(&s.words)).collect();
        let labelings = self.label(&read)?;
        let judged = |(index, sentence): (usize, &Tagged)| {
            let labeling = std::slice::from_ref(&labelings[index]);
            let given = labeling[0].labels.iter().map(|&id| self.preprocessor.labels.name(id));
            let given: Vec<String> = given.map(str::to_string).collect();
            Judged {
                index,
                input: sentence.words.join(" "),
                truth: tagged(sentence.words.iter().zip(&sentence.labels)).join(" "),
                output: tagged(sentence.words.iter().zip(&given)).join(" "),
                loss: loss(&targets[index..=index], labeling),
                length: sentence.words.len(),
                labels: sentence.labels.iter().cloned().zip(given).collect(),
                numbers: None,
            }
        };
        Ok(sentences.iter().enumerate().map(judged).collect())
    }

    fn predict(&self, inputs: &[Input]) -> Result<Vec<Prediction>> {
        let inputs = &self.texts(inputs)?;
        let words: Vec<Vec<&str>> = inputs.iter().map(|input| self.split(input)).collect();
        let read: Vec<EncodedSentence> = words.iter().map(|words| self.encode(words)).collect();
        let labelings = self.label(&read)?;
        let label = |&id: &usize| self.preprocessor.labels.name(id);
        let prediction = |(at, labeling): (usize, Labeling)| {
            let words = &words[at];
            let details = serde_json::json!({
                "words": words,
                "labels": labeling.labels.iter().map(label).collect::<Vec<_>>(),
                "probabilities": labeling.probabilities(),
            });
            let (input, output) = (inputs[at].clone(), self.tagged(words, &labeling).join(" "));
            let unknown = match read[at].bounds {
                Some(_) => Vec::new(),
                None => unknown_words(words, &read[at].words),
            };
            Prediction { input, output, details }.with_unknown(unknown)
        };
        Ok(labelings.into_iter().enumerate().map(prediction).collect())
    }

    /// The likeliest labelings of whole sentences.
    fn n_best(&self, inputs: &[Input], n: usize) -> Result<Vec<Vec<Alternative>>> {
        let texts = self.texts(inputs)?;
        let words: Vec<Vec<&str>> = texts.iter().map(|text| self.split(text)).collect();
        let read: Vec<EncodedSentence> = words.iter().map(|words| self.encode(words)).collect();
        let name = |&id: &usize| self.preprocessor.labels.name(id);
        let written = |words: &[&str], labels: &[usize]| {
            tagged(words.iter().zip(labels.iter().map(name))).join(" ")
        };
        let alternatives = |(words, labeling): (&Vec<&str>, Labeling)| {
            let found = likeliest_labelings(&labeling.log_probs, n).into_iter();
            found
                .map(|(labels, score)| Alternative { output: written(words, &labels), score })
                .collect()
        };
        Ok(words.iter().zip(self.label(&read)?).map(alternatives).collect())
    }

    fn show(&self, input: &Input) -> Result<Vec<(String, Scene)>> {
        let text = self.texts(std::slice::from_ref(input))?.remove(0);
        let words = self.split(&text);
        if words.is_empty() {
            return Err(Error::invalid("there is no word to look at"));
        }
        let read = self.encode(&words);
        let batch = self.batch(&[&read])?;
        let attended =
            without_gradients(|| self.model.label(&batch.sequences(), Mode::Infer, Need::WEIGHTS))?;
        if attended.weights.is_empty() {
            return Err(Error::invalid(
                "this model attends to nothing: only `encoder = \"transformer\"` \
                 and \"self-attention\" have attention",
            ));
        }
        let row_axis = match self.config.model.encoder.window {
            Some(window) => format!("attends, {window} on each side"),
            None => "attends".into(),
        };
        let labeling = self.label(std::slice::from_ref(&read))?.pop().unwrap_or_default();
        let tagged = self.tagged(&words, &labeling);
        let (rows, columns) = match self.preprocessor.pieces() {
            None => (tagged, words.iter().map(|word| word.to_string()).collect()),
            Some(pieces) => {
                let columns: Vec<String> =
                    read.words.iter().map(|&id| pieces.name(id).to_owned()).collect();
                let mut rows = columns.clone();
                read.places().into_iter().zip(tagged).for_each(|(at, tagged)| rows[at] = tagged);
                (rows, columns)
            }
        };
        let maps = Maps {
            row_axis,
            column_axis: "is attended to".into(),
            rows,
            columns,
            maps: Map::of_layers(&attended.weights, Site::Encoder)?,
        }
        .truncated(self.config.model.encoder.window);
        Ok(vec![("self-attention".into(), Scene::Maps(maps))])
    }

    /// The labels of a sentence that the validation or the test part holds.
    fn truth(&self, input: &Input) -> Option<String> {
        let labeled = |found: &Tagged| tagged(found.words.iter().zip(&found.labels)).join(" ");
        let Input::Text(text) = input else {
            return Some(labeled(&self.looked_up.within(&self.config, "sentences").find(input)?));
        };
        // No word holds a line's end.
        let words = self.split(text).join("\n");
        let dataset = Dataset::new(&self.config);
        self.looked_up.truth(&words, |part| {
            let all = dataset.part(part)?.all.into_iter();
            Ok(all.map(move |found| (found.words.join("\n"), labeled(&found))))
        })
    }

    fn abilities(&self) -> Abilities<'_> {
        Abilities { explains: Some(self), exports: Some(self), ..Abilities::default() }
    }
}

impl Explains for Labeler {
    fn saliency(&self, input: &Input, how: How) -> Result<Saliency> {
        let text = self.texts(std::slice::from_ref(input))?.remove(0);
        let words = self.split(&text);
        if words.is_empty() {
            return Err(Error::invalid("there is no word to look at"));
        }
        let read = self.encode(&words);
        let batch = self.batch(&[&read])?;
        // What is predicted is one label for each word; all of them together are explained.
        let score = || {
            let logits = self.model.forward(&batch.sequences(), Mode::Infer)?;
            Ok(logits.log_softmax(-1)?.max(2)?.0.sum_all()?)
        };
        let found = Probe::embedding(&score).first(read.words.len()).explain(how)?;
        let names = match self.preprocessor.pieces() {
            None => words.iter().map(|word| word.to_string()).collect(),
            Some(pieces) => read.words.iter().map(|&id| pieces.name(id).to_owned()).collect(),
        };
        Ok(found.named("the log-probability of all labels".into(), names, None))
    }
}

impl Exports for Labeler {
    fn exported(&self) -> Result<Exported> {
        let random = Random::named(1, "export");
        let (words, characters) =
            (self.preprocessor.vocabulary(), self.preprocessor.characters.len());
        let sentence = |n: usize| EncodedSentence {
            words: (0..n).map(|_| 1 + random.below(words - 1)).collect(),
            characters: match self.config.model.characters {
                true => (0..n)
                    .map(|at| (0..1 + at % 5).map(|_| 1 + random.below(characters - 1)).collect())
                    .collect(),
                false => vec![],
            },
            bounds: None,
        };
        let sentences = made_up_lengths(&self.model.config().encoder, 0).map(sentence);
        let batch = self.batch(&sentences.iter().collect::<Vec<_>>())?;
        let output = without_gradients(|| self.model.forward(&batch.sequences(), Mode::Infer))?;
        let mut inputs = BTreeMap::from([("x".to_string(), batch.words.clone())]);
        let lengths = batch.lengths.iter().map(|&n| n as i64).collect();
        inputs.insert("lengths".into(), Tensor::from_vec(lengths, &[batch.lengths.len()])?);
        if let Some(characters) = &batch.characters {
            inputs.insert("characters".into(), characters.clone());
        }
        Ok(Exported { network: Network::Labeler(self.model.config().clone()), inputs, output })
    }
}
