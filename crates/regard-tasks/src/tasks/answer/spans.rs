//! What a reader answers: spans of a text.

use super::encoding::{EncodedPassage, PassageBatch};
use super::model::Answerer;
use super::outcome::Outcome;
use crate::task::prediction::Alternative;
use regard::attention::Need;
use regard::models::{Pointed, Span, SpanReader};
use regard::tensor::without_gradients;
use regard::{Mode, Tensor};
use regard_data::Result;
use regard_data::files::Asked;
use std::collections::HashSet;

impl Answerer {
    pub(super) fn pointed(
        &self,
        reader: &SpanReader,
        all: &[&EncodedPassage],
        need: Need,
    ) -> Result<Pointed> {
        let batch = PassageBatch::new(all)?;
        Ok(without_gradients(|| reader.point(&batch.passages(), Mode::Infer, need))?)
    }

    pub(super) fn read(
        &self,
        reader: &SpanReader,
        all: &[(&Asked, &EncodedPassage)],
    ) -> Result<Vec<Outcome>> {
        let passages: Vec<&EncodedPassage> = all.iter().map(|(_, passage)| *passage).collect();
        let pointed = self.pointed(reader, &passages, Need::OUTPUT)?;
        let lengths: Vec<usize> = passages.iter().map(|passage| passage.text.len()).collect();
        let spans = pointed.spans(&lengths, self.config.model.max_answer_length)?;
        let n = pointed.start.shape()[1];
        let numbers = |x: &Tensor| x.softmax(1)?.to_vec::<f32>();
        let (start, end) = (numbers(&pointed.start)?, numbers(&pointed.end)?);
        let outcome = |(row, (asked, passage)): (usize, &(&Asked, &EncodedPassage))| {
            let span = spans[row];
            let (start, end) = (&start[row * n..][..n], &end[row * n..][..n]);
            let log = |p: f32| -f64::from(p).max(1e-30).ln();
            Outcome {
                answer: self.answer(asked, passage, span).into(),
                probability: span.log_prob.exp(),
                loss: passage.span.map(|(first, last)| log(start[first]) + log(end[last])),
                weights: vec![by_sentence(asked, passage, start), by_sentence(asked, passage, end)],
                seen: 0,
            }
        };
        Ok(all.iter().enumerate().map(outcome).collect())
    }

    /// What a span of a text says; nothing where it begins at "no answer".
    fn answer<'a>(&self, asked: &'a Asked, passage: &EncodedPassage, span: Span) -> &'a str {
        match self.preprocessor.unanswerable && span.start == 0 {
            true => "",
            false => {
                let bytes = passage.ranges[span.start].start..passage.ranges[span.end].end;
                &asked.passage.text[bytes]
            }
        }
    }

    /// The likeliest answers that a text has, each with the probability of its likeliest span.
    pub(super) fn best_spans(
        &self,
        reader: &SpanReader,
        asked: &Asked,
        passage: &EncodedPassage,
        n: usize,
    ) -> Result<Vec<Alternative>> {
        let pointed = self.pointed(reader, &[passage], Need::OUTPUT)?;
        let longest = self.config.model.max_answer_length;
        let spans = pointed.n_best_spans(&[passage.text.len()], longest, usize::MAX)?.remove(0);
        let mut seen = HashSet::new();
        let alternative = |span: Span| {
            let answer = self.answer(asked, passage, span);
            let score = span.log_prob.exp();
            seen.insert(answer).then(|| Alternative { output: answer.into(), score })
        };
        Ok(spans.into_iter().filter_map(alternative).take(n).collect())
    }
}

/// The sum of the words' weights in every sentence.
fn by_sentence(asked: &Asked, passage: &EncodedPassage, weights: &[f32]) -> Vec<f32> {
    let mut sums = vec![0.0; asked.passage.ranges.len()];
    for (range, weight) in passage.ranges.iter().zip(weights).filter(|(range, _)| !range.is_empty())
    {
        if let Some(at) = asked.passage.sentence_at(range.start) {
            sums[at] += weight;
        }
    }
    sums
}
