//! Stories, texts and questions as numbers.

use super::config::{Config, Kind};
use super::data::Questions;
use crate::task::prediction::unknown_words;
use regard::Tensor;
use regard::models::{Passages, Sentences, Stories};
use regard_data::files::Asked;
use regard_data::text::{Labels, PADDING, START, TokenizerKind, UNKNOWN, Vocabulary, split};
use regard_data::{Error, Result};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::ops::Range;
use std::path::Path;

/// Numbers known of each word of a reader's text: whether the question has the word, whether it has a
/// pair that the word is in, and what share of the question's words the sentence has.
pub(super) const FEATURES: usize = 3;

/// What a model knows of its data.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Preprocessor {
    pub(super) words: Vocabulary,
    /// The answers of a memory network, the empty one where there is none.
    pub(super) answers: Labels,
    /// Whether some questions have no answer.
    pub(super) unanswerable: bool,
}

impl Preprocessor {
    pub(super) fn fit(config: &Config, questions: &[Asked]) -> Result<Self> {
        let text = &config.text;
        let mut seen = HashSet::new();
        let mut tokens = Vec::new();
        for asked in questions {
            // Questions share their passage; its words count once.
            if seen.insert(std::sync::Arc::as_ptr(&asked.passage)) {
                tokens.extend(words(&asked.passage.text, text.tokenizer, text.lowercase));
            }
            tokens.extend(words(&asked.question, text.tokenizer, text.lowercase));
        }
        let spoken = tokens.iter().map(|word| word.text.as_str());
        let answers = match config.model.model {
            Kind::Memory => Labels::learn(questions.iter().map(first_answer)),
            Kind::Reader => Labels::learn([]),
        };
        Ok(Self {
            words: Vocabulary::learn(spoken, text.min_frequency, text.vocabulary_size)?,
            answers,
            unanswerable: questions.iter().any(|asked| asked.answers.is_empty()),
        })
    }
}

/// What is learned of the answers: the first, or that there is none.
pub(super) fn first_answer(asked: &Asked) -> &str {
    asked.answers.first().map_or("", |answer| &answer.text)
}

/// A token, and the bytes of the text where it stands.
#[derive(Clone, Debug)]
pub(super) struct Word {
    pub(super) text: String,
    pub(super) range: Range<usize>,
}

/// The words of a text, in small letters where that is asked for.
pub(super) fn words(text: &str, kind: TokenizerKind, lower: bool) -> Vec<Word> {
    let mut from = 0;
    let word = |token: &str| {
        let start = from + text[from..].find(token).unwrap_or(0);
        from = start + token.len();
        let text = if lower { token.to_lowercase() } else { token.to_string() };
        Word { text, range: start..from }
    };
    split(text, kind).into_iter().map(word).collect()
}

/// A story as a memory network reads it.
#[derive(Clone, Debug)]
pub(super) struct EncodedStory {
    /// Ids of the words of each sentence.
    pub(super) sentences: Vec<Vec<usize>>,
    /// Sentences at the beginning that are not read.
    pub(super) skipped: usize,
    pub(super) question: Vec<usize>,
    /// The sentences that tell the answer, of those that are read.
    pub(super) supporting: Vec<usize>,
    /// Where training has seen the answer.
    pub(super) answer: Option<usize>,
}

/// A text as a reader reads it.
#[derive(Clone, Debug)]
pub(super) struct EncodedPassage {
    /// Ids of the words, after that of "no answer" where there is such a thing.
    pub(super) text: Vec<usize>,
    /// [`FEATURES`] numbers for each, one word after the other.
    pub(super) features: Vec<f32>,
    pub(super) question: Vec<usize>,
    /// The bytes of each word; empty at the start for "no answer".
    pub(super) ranges: Vec<Range<usize>>,
    /// The answer's first and last word, as places in `text`; none where it is not there.
    pub(super) span: Option<(usize, usize)>,
}

pub(super) struct TextEncoder<'a> {
    pub(super) config: &'a Config,
    pub(super) preprocessor: &'a Preprocessor,
}

impl TextEncoder<'_> {
    pub(super) fn words(&self, text: &str) -> Vec<Word> {
        words(text, self.config.text.tokenizer, self.config.text.lowercase)
    }

    fn ids(&self, words: &[Word]) -> Vec<usize> {
        words.iter().map(|word| self.preprocessor.words.id(&word.text)).collect()
    }

    /// The words of a question and its text that are not known.
    pub(super) fn unknown(&self, asked: &Asked) -> Vec<String> {
        let words = [self.words(&asked.passage.text), self.words(&asked.question)].concat();
        unknown_words(words.iter().map(|word| &word.text), &self.ids(&words))
    }

    /// A story; refuses one without a word.
    pub(super) fn story(&self, file: &Path, asked: &Asked) -> Result<EncodedStory> {
        let encode = |text: &str| self.ids(&self.words(text));
        let mut sentences: Vec<Vec<usize>> = asked.passage.sentences().map(encode).collect();
        let skipped = sentences.len().saturating_sub(self.config.data.max_sentences);
        sentences.drain(..skipped);
        let question = at_least_one(encode(&asked.question));
        if sentences.iter().all(Vec::is_empty) {
            return Err(asked.wrong(file, "the text is empty"));
        }
        let answer = self.preprocessor.answers.id(first_answer(asked));
        let supporting = asked.supporting.iter().filter_map(|at| at.checked_sub(skipped));
        let supporting = supporting.collect();
        Ok(EncodedStory { sentences, skipped, question, supporting, answer })
    }

    /// A text; refuses one without a word.
    pub(super) fn passage(&self, file: &Path, asked: &Asked) -> Result<EncodedPassage> {
        let mut words = self.words(&asked.passage.text);
        words.truncate(self.config.data.max_length);
        let question = self.words(&asked.question);
        if words.is_empty() {
            return Err(asked.wrong(file, "the text is empty"));
        }
        let before = usize::from(self.preprocessor.unanswerable);
        let mut text = vec![START; before];
        text.extend(self.ids(&words));
        let mut features = Vec::new();
        if self.config.model.features {
            features.resize(before * FEATURES, 0.0);
            features.extend(features_of(asked, &words, &question));
        }
        let mut ranges = vec![0..0; before];
        ranges.extend(words.into_iter().map(|word| word.range));
        let span = match asked.answers.is_empty() {
            true => (before == 1).then_some((0, 0)),
            false => asked.answers.iter().find_map(|answer| {
                let bytes = answer.start?..answer.start? + answer.text.len();
                let first = ranges.iter().position(|range| range.end > bytes.start)?;
                let last = ranges.iter().rposition(|range| range.start < bytes.end)?;
                (ranges[last].end >= bytes.end && first <= last).then_some((first, last))
            }),
        };
        let question = at_least_one(self.ids(&question));
        Ok(EncodedPassage { text, features, question, ranges, span })
    }

    pub(super) fn stories(&self, questions: &Questions) -> Result<Vec<EncodedStory>> {
        questions.all.iter().map(|asked| self.story(&questions.file, asked)).collect()
    }

    pub(super) fn passages(&self, questions: &Questions) -> Result<Vec<EncodedPassage>> {
        questions.all.iter().map(|asked| self.passage(&questions.file, asked)).collect()
    }
}

/// A question without a word is one unknown word.
fn at_least_one(mut question: Vec<usize>) -> Vec<usize> {
    if question.is_empty() {
        question.push(UNKNOWN);
    }
    question
}

fn features_of(asked: &Asked, words: &[Word], question: &[Word]) -> Vec<f32> {
    let known: HashSet<&str> = question.iter().map(|word| word.text.as_str()).collect();
    let pairs: HashSet<(&str, &str)> =
        question.windows(2).map(|pair| (pair[0].text.as_str(), pair[1].text.as_str())).collect();
    let mut shared: Vec<HashSet<&str>> = vec![HashSet::new(); asked.passage.ranges.len()];
    let sentence = |word: &Word| asked.passage.sentence_at(word.range.start);
    for word in words.iter().filter(|word| known.contains(word.text.as_str())) {
        if let Some(at) = sentence(word) {
            shared[at].insert(&word.text);
        }
    }
    let truth = |fact: bool| f32::from(u8::from(fact));
    let mut features = Vec::with_capacity(words.len() * FEATURES);
    for (at, word) in words.iter().enumerate() {
        let pair = |first: usize| {
            let pair = words.get(first).zip(words.get(first + 1));
            pair.is_some_and(|(a, b)| pairs.contains(&(a.text.as_str(), b.text.as_str())))
        };
        let share =
            sentence(word).map_or(0.0, |s| shared[s].len() as f32 / known.len().max(1) as f32);
        features.extend([
            truth(known.contains(word.text.as_str())),
            truth(pair(at) || at.checked_sub(1).is_some_and(pair)),
            share,
        ]);
    }
    features
}

/// Stories filled up to one number of sentences and words.
pub(super) struct StoryBatch {
    sentences: Tensor,
    lengths: Vec<usize>,
    questions: Tensor,
}

impl StoryBatch {
    pub(super) fn new(all: &[&EncodedStory]) -> Result<Self> {
        let lengths: Vec<usize> = all.iter().map(|story| story.sentences.len()).collect();
        let s = lengths.iter().copied().max().unwrap_or(0);
        let mut rows: Vec<&[usize]> = Vec::with_capacity(all.len() * s);
        for story in all {
            rows.extend(story.sentences.iter().map(Vec::as_slice));
            rows.resize(rows.len().next_multiple_of(s.max(1)), &[]);
        }
        let ids = Sentences::new(&rows, PADDING)?.ids;
        let w = ids.shape()[1];
        let questions: Vec<&[usize]> = all.iter().map(|story| &story.question[..]).collect();
        Ok(Self {
            sentences: ids.reshape(&[all.len(), s, w])?,
            lengths,
            questions: Sentences::new(&questions, PADDING)?.ids,
        })
    }

    pub(super) fn stories(&self) -> Stories<'_> {
        Stories { sentences: &self.sentences, lengths: &self.lengths, questions: &self.questions }
    }
}

/// Texts filled up to one length.
pub(super) struct PassageBatch {
    text: Tensor,
    lengths: Vec<usize>,
    features: Option<Tensor>,
    questions: Tensor,
    question_lengths: Vec<usize>,
}

impl PassageBatch {
    pub(super) fn new(all: &[&EncodedPassage]) -> Result<Self> {
        let texts: Vec<&[usize]> = all.iter().map(|passage| &passage.text[..]).collect();
        let questions: Vec<&[usize]> = all.iter().map(|passage| &passage.question[..]).collect();
        let text = Sentences::new(&texts, PADDING)?.ids;
        let n = text.shape()[1];
        let features = || {
            let mut numbers = Vec::with_capacity(all.len() * n * FEATURES);
            for passage in all {
                numbers.extend_from_slice(&passage.features);
                numbers.resize(numbers.len().next_multiple_of(n * FEATURES), 0.0);
            }
            Result::Ok(Tensor::from_vec(numbers, &[all.len(), n, FEATURES])?)
        };
        let some = all.iter().any(|passage| !passage.features.is_empty());
        Ok(Self {
            text,
            lengths: texts.iter().map(|text| text.len()).collect(),
            features: some.then(features).transpose()?,
            questions: Sentences::new(&questions, PADDING)?.ids,
            question_lengths: questions.iter().map(|question| question.len()).collect(),
        })
    }

    pub(super) fn passages(&self) -> Passages<'_> {
        Passages {
            text: &self.text,
            lengths: &self.lengths,
            features: self.features.as_ref(),
            questions: &self.questions,
            question_lengths: &self.question_lengths,
        }
    }
}

/// A text and a question with a tab between, as `predict` and `show` take them.
pub(super) fn parsed(input: &str) -> Result<Asked> {
    let Some((text, question)) = input.split_once('\t') else {
        return Err(Error::invalid(
            "an input is a text and a question with a tab between, or a question of the data, as \
             `test:3`",
        ));
    };
    for (part, name) in [(text, "text"), (question, "question")] {
        if part.trim().is_empty() {
            return Err(Error::invalid(format!(
                "the {name} is empty: an input is a text and a question with a tab between"
            )));
        }
    }
    Ok(Asked {
        passage: std::sync::Arc::new(regard_data::files::Passage::new(text.trim())),
        question: question.trim().into(),
        answers: Vec::new(),
        supporting: Vec::new(),
        place: regard_data::files::Place::Line(1),
    })
}
