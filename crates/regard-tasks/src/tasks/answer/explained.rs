//! Why an answer was given, as far as gradients and hops tell.

use super::data::Questions;
use super::encoding::{EncodedStory, PassageBatch, StoryBatch, words};
use super::model::{Answerer, Network, joined};
use super::outcome::Outcome;
use crate::task::saliency::{How, Probe, Saliency};
use regard::attention::{Need, Site};
use regard::models::{MemoryNetwork, Sentences, SequenceClassifier, Sequences, SpanReader};
use regard::tensor::without_gradients;
use regard::{Mode, Tensor};
use regard_data::files::Asked;
use regard_data::text::PADDING;
use regard_data::{Error, Result};
use regard_picture::scene::{Map, Maps, Place, Scene};

impl Answerer {
    /// The words of a text, by how much they change the span that is pointed at.
    pub(super) fn span_saliency(
        &self,
        reader: &SpanReader,
        questions: &Questions,
        how: How,
    ) -> Result<Saliency> {
        let asked = &questions.all[0];
        let passage = self.encoder().passage(&questions.file, asked)?;
        let pointed = self.pointed(reader, &[&passage], Need::OUTPUT)?;
        let span = pointed.spans(&[passage.text.len()], self.config.model.max_answer_length)?[0];
        let batch = PassageBatch::new(&[&passage])?;
        let score = || {
            let pointed = reader.point(&batch.passages(), Mode::Infer, Need::OUTPUT)?;
            let at = |scores: &Tensor, word| scores.log_softmax(1)?.narrow(1, word, 1);
            Ok(at(&pointed.start, span.start)?.add(&at(&pointed.end, span.end)?)?)
        };
        let found = Probe::embedding(&score).explain(how)?;
        let name = |range: &std::ops::Range<usize>| match &asked.passage.text[range.clone()] {
            "" => "(none)".to_string(),
            word => word.to_string(),
        };
        let names = passage.ranges.iter().map(name).collect();
        Ok(found.named("the log-probability of the answer".into(), names, None))
    }

    /// The sentences of a story, or where they are read as one sequence its words, by how much they
    /// change the answer.
    pub(super) fn story_saliency(&self, questions: &Questions, how: How) -> Result<Saliency> {
        let asked = &questions.all[0];
        let story = self.encoder().story(&questions.file, asked)?;
        let best = self.best_answer(&story)?;
        let of = format!("the log-probability of {}", self.preprocessor.answers.name(best));
        let likely = |logits: &Tensor| Result::Ok(logits.log_softmax(1)?.narrow(1, best, 1)?);
        match &self.network {
            Network::Memory(network) => {
                let batch = StoryBatch::new(&[&story])?;
                let score =
                    || likely(&network.answer(&batch.stories(), Mode::Infer, Need::OUTPUT)?.logits);
                let found =
                    Probe::embedding(&score).in_parts(story.sentences.len()).explain(how)?;
                let names = asked.passage.sentences().skip(story.skipped);
                Ok(found.named(of, names.map(str::to_string).collect(), None))
            }
            Network::LastState(classifier) => {
                let ids = joined(&story, self.config.data.max_length);
                let batch = Sentences::new(&[&ids[..]], PADDING)?;
                let sequences =
                    Sequences { lengths: Some(&batch.lengths), ..Sequences::new(&batch.ids) };
                let score = || likely(&classifier.forward(&sequences, Mode::Infer)?);
                let found = Probe::embedding(&score).explain(how)?;
                let names = self.read_words(asked, &story, ids.len());
                Ok(found.named(of, names, None))
            }
            Network::Reader(_) => Err(Error::invalid("a reader chooses no answers")),
        }
    }

    /// What the encoder of a memory network's sentences attended to, each sentence and the question
    /// by itself; none where it has no attention.
    pub(super) fn inside_sentences(
        &self,
        network: &MemoryNetwork,
        questions: &Questions,
    ) -> Result<Option<(String, Scene)>> {
        let asked = &questions.all[0];
        let story = self.encoder().story(&questions.file, asked)?;
        let batch = StoryBatch::new(&[&story])?;
        let read = without_gradients(|| network.sentence_weights(&batch.stories(), Mode::Infer))?;
        let lengths: Vec<usize> = story.sentences.iter().map(Vec::len).collect();
        let layers = read.sentences.iter().zip(&read.questions);
        let layers: Vec<Tensor> = layers
            .map(|(sentences, question)| {
                let sentences = sentences.squeeze(0)?;
                let mut blocks = Vec::new();
                for (at, &words) in lengths.iter().enumerate() {
                    blocks.push((sentences.select(0, at)?, words));
                }
                blocks.push((question.squeeze(0)?, story.question.len()));
                block_diagonal(&blocks)
            })
            .collect::<Result<_>>()?;
        let words = lengths.iter().sum::<usize>() + story.question.len();
        let Some(maps) = Maps::of_encoder(&layers, self.read_words(asked, &story, words))? else {
            return Ok(None);
        };
        // Which sentence each word stands in, the question being the last.
        let counts = lengths.iter().copied().chain([story.question.len()]).enumerate();
        let sentence: Vec<usize> = counts.flat_map(|(at, n)| vec![at; n]).collect();
        let window = self.config.model.encoder.window;
        let apart = |cell: usize| {
            let (row, column) = (cell / words, cell % words);
            sentence[row] != sentence[column]
                || window.is_some_and(|window| row.abs_diff(column) > window)
        };
        let hidden: Vec<bool> = (0..words * words).map(apart).collect();
        let fixed = |map: Map| {
            Map::new(map.name, map.weights).hiding(hidden.clone()).fixed(
                "Each sentence is read by itself, so that a change would hold for the same words \
                 of all of them; the hops can be changed.",
            )
        };
        let maps = Maps { maps: maps.maps.into_iter().map(fixed).collect(), ..maps };
        Ok(Some(("self-attention".into(), Scene::Maps(maps))))
    }

    /// What the baseline's own encoder attended to; none where it has no attention.
    pub(super) fn last_state_scene(
        &self,
        classifier: &SequenceClassifier,
        questions: &Questions,
    ) -> Result<Option<(String, Scene)>> {
        let asked = &questions.all[0];
        let story = self.encoder().story(&questions.file, asked)?;
        let ids = joined(&story, self.config.data.max_length);
        let batch = Sentences::new(&[&ids[..]], PADDING)?;
        let sequences = Sequences { lengths: Some(&batch.lengths), ..Sequences::new(&batch.ids) };
        let classified =
            without_gradients(|| classifier.classify(&sequences, Mode::Infer, Need::WEIGHTS))?;
        let names = self.read_words(asked, &story, ids.len());
        self_attention(&classified.weights, names, self.config.model.encoder.window)
    }

    /// The last words of a story and its question, as they are written.
    fn read_words(&self, asked: &Asked, story: &EncodedStory, last: usize) -> Vec<String> {
        let kind = self.config.text.tokenizer;
        let texts = asked.passage.sentences().skip(story.skipped);
        let texts = texts.chain(std::iter::once(&asked.question[..]));
        let mut names: Vec<String> =
            texts.flat_map(|text| words(text, kind, false)).map(|word| word.text).collect();
        if words(&asked.question, kind, false).is_empty() {
            names.push("(none)".into());
        }
        names.drain(..names.len().saturating_sub(last));
        names
    }

    /// The sentences' weights with what can be changed of them: a memory network's hops are its
    /// attention, a reader's span is its output.
    pub(super) fn changeable(&self, asked: &Asked, map: Map) -> Map {
        match self.network {
            Network::Memory(_) => map.at(Place {
                head: None,
                row: self.skipped(asked),
                columns_are_layers: true,
                ..Place::new(Site::Hops, 0, 0)
            }),
            Network::Reader(_) if self.config.model.attention => map.fixed(
                "These are the reader's output, how likely its answer begins and ends in a \
                 sentence, and no attention; its attention to the question can be changed.",
            ),
            Network::Reader(_) | Network::LastState(_) => map.fixed(
                "These are the reader's output, how likely its answer begins and ends in a \
                 sentence; it was trained without attention.",
            ),
        }
    }

    /// The first sentences of a story that its memory has no room for.
    fn skipped(&self, asked: &Asked) -> usize {
        asked.passage.ranges.len().saturating_sub(self.config.data.max_sentences)
    }

    /// The hops of a memory network, each a map of the question over the sentences.
    pub(super) fn hops(&self, asked: &Asked, outcome: &Outcome) -> Option<Maps> {
        if !matches!(self.network, Network::Memory(_)) {
            return None;
        }
        let skipped = self.skipped(asked);
        let map = |(hop, weights): (usize, &Vec<f32>)| {
            Map::new(format!("hop {}", hop + 1), weights[skipped..].to_vec()).at(Place::new(
                Site::Hops,
                hop,
                0,
            ))
        };
        Some(Maps {
            row_axis: "question".into(),
            column_axis: "sentence".into(),
            rows: vec![asked.question.clone()],
            columns: asked.passage.sentences().skip(skipped).map(str::to_string).collect(),
            maps: outcome.weights.iter().enumerate().map(map).collect(),
        })
    }
}

/// The first so many rows and columns of each block `[H, W, W]`, one after another down the diagonal
/// of `[1, H, N, N]`.
fn block_diagonal(blocks: &[(Tensor, usize)]) -> Result<Tensor> {
    let n: usize = blocks.iter().map(|&(_, words)| words).sum();
    let heads = blocks.first().map_or(0, |(block, _)| block.shape()[0]);
    let mut all = vec![0.0; heads * n * n];
    let mut first = 0;
    for (block, words) in blocks {
        let (numbers, wide) = (block.contiguous()?.to_vec::<f32>()?, block.shape()[1]);
        for (head, row) in (0..heads).flat_map(|head| (0..*words).map(move |row| (head, row))) {
            let to = (head * n + first + row) * n + first;
            let from = (head * wide + row) * wide;
            all[to..to + words].copy_from_slice(&numbers[from..from + words]);
        }
        first += words;
    }
    Ok(Tensor::from_vec(all, &[1, heads, n, n])?)
}

/// What an encoder's own attention looked at; none where it has none.
pub(super) fn self_attention(
    weights: &[Tensor],
    names: Vec<String>,
    window: Option<usize>,
) -> Result<Option<(String, Scene)>> {
    let maps = Maps::of_encoder(weights, names)?.map(|maps| maps.truncated(window));
    Ok(maps.map(|maps| ("self-attention".into(), Scene::Maps(maps))))
}
