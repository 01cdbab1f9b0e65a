//! Finding the best output: greedily, or with a beam.

use super::decoder::Decoding;
use super::model::Next;
use super::{Hypothesis, Seq2Seq, Source};
use crate::Need;
use regard_tensor::{DType, Result, Tensor, ensure, without_gradients};

/// How outputs are searched for.
///
/// ```
/// use regard::prelude::*;
/// use regard::models::SearchConfig;
/// let config = SearchConfig { length_penalty: 1.0, ..SearchConfig::default() };
/// assert_eq!(config.penalty(7), 2.0);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
pub struct SearchConfig {
    /// How many hypotheses are kept at every step.
    pub width: usize,
    /// α of the length penalty ((5 + n) / 6)^α, which a log-probability is divided by; n counts
    /// the end (Wu and others 2016). 0 for none; larger for longer outputs.
    pub length_penalty: f64,
    /// How many tokens an output has at most, its end included.
    pub longest: usize,
    /// How many tokens an output has at least, before its end.
    pub shortest: usize,
    /// How many outputs are given for each source, the best first; at most the width.
    pub best: usize,
    /// Whether hypotheses carry the attention weights they were written with, which cost time and
    /// memory at every step.
    pub weights: bool,
}

impl Default for SearchConfig {
    fn default() -> Self {
        Self { width: 4, length_penalty: 0.6, longest: 128, shortest: 0, best: 1, weights: false }
    }
}

impl SearchConfig {
    /// What the log-probability of n tokens is divided by: ((5 + n) / 6)^α.
    ///
    /// ```
    /// use regard::prelude::*;
    /// use regard::models::SearchConfig;
    /// let config = SearchConfig { length_penalty: 2.0, ..SearchConfig::default() };
    /// assert_eq!((config.penalty(1), config.penalty(7)), (1.0, 4.0));
    /// ```
    pub fn penalty(&self, n: usize) -> f64 {
        ((5 + n) as f64 / 6.0).powf(self.length_penalty)
    }

    /// Refuses what cannot be searched, by name.
    ///
    /// ```
    /// use regard::prelude::*;
    /// use regard::models::SearchConfig;
    /// let error = SearchConfig { best: 5, ..SearchConfig::default() }.check().unwrap_err();
    /// assert_eq!(error.to_string(), "the 5 best of a beam of width 4");
    /// ```
    pub fn check(&self) -> Result<()> {
        ensure!(self.width > 0, "a beam of width 0");
        ensure!(self.longest > 0, "outputs of at most 0 tokens");
        ensure!(
            (1..=self.width).contains(&self.best),
            "the {} best of a beam of width {}",
            self.best,
            self.width
        );
        ensure!(
            self.length_penalty.is_finite() && self.length_penalty >= 0.0,
            "a length penalty of {}",
            self.length_penalty
        );
        Ok(())
    }
}

/// What all rows of a step were written with.
struct Seen {
    weights: Option<Tensor>,
    copied: Option<Tensor>,
}

/// A hypothesis while it is written.
#[derive(Clone)]
struct PartialHypothesis {
    sentence: usize,
    tokens: Vec<usize>,
    scores: Vec<f64>,
    total: f64,
    /// Its row at every step.
    rows: Vec<usize>,
    /// Its last token among all that were considered, where these are kept.
    node: Option<usize>,
}

/// A token that a search considered.
///
/// ```
/// use regard::prelude::*;
/// use regard::models::{ContextConfig, DecoderConfig, SearchConfig, Sentences, Seq2Seq, Seq2SeqConfig};
/// let gru = RecurrentConfig::new(Cell::Gru, 8);
/// let config = Seq2SeqConfig::new(
///     10, 12, EncoderConfig::Recurrent(gru), DecoderConfig::Recurrent(gru), ContextConfig::Fixed);
/// let model = Seq2Seq::new(&Parameters::new(DType::F32, 1), &config)?;
/// let source = Sentences::new(&[vec![3, 4, 5]], 0)?;
/// let search = SearchConfig { width: 2, longest: 3, ..SearchConfig::default() };
/// let (found, considered) = model.search_considering(&source, &search)?;
/// assert_eq!(found[0][0].tokens, model.search(&source, &search)?[0][0].tokens);
/// assert_eq!(considered.iter().filter(|one| one.step == 0 && one.kept).count(), 2);
/// # Ok::<(), regard::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Considered {
    /// The token before it, as a place among all; none where it is the first.
    pub parent: Option<usize>,
    /// How many tokens stand before it.
    pub step: usize,
    /// The token.
    pub token: usize,
    /// Its log-probability behind those before it.
    pub log_prob: f64,
    /// The log-probability of all tokens so far.
    pub total: f64,
    /// Whether it stayed in the beam.
    pub kept: bool,
}

/// Where padding, start and end are the whole vocabulary.
fn nothing_to_write() -> regard_tensor::Error {
    regard_tensor::Error::new("the vocabulary has no token that may be written")
}

/// Tokens of a hypothesis that are kept to be looked at, however narrow the beam is.
const LOOKED_AT: usize = 3;

impl PartialHypothesis {
    fn new(sentence: usize) -> Self {
        Self {
            sentence,
            tokens: Vec::new(),
            scores: Vec::new(),
            total: 0.0,
            rows: Vec::new(),
            node: None,
        }
    }

    fn with(&self, row: usize, token: usize, score: f64) -> Self {
        let mut next = self.clone();
        next.tokens.push(token);
        next.scores.push(score);
        next.total += score;
        next.rows.push(row);
        next
    }
}

impl Seq2Seq {
    /// The best token at every step, one output for each source, of at most `longest` tokens.
    /// Refuses a source of another kind, width or vocabulary than the configuration's.
    ///
    /// ```
    /// # use regard::prelude::*;
    /// # use regard::models::{ContextConfig, DecoderConfig, Sentences, Seq2Seq, Seq2SeqConfig};
    /// # let gru = RecurrentConfig::new(Cell::Gru, 8);
    /// # let config = Seq2SeqConfig::new(
    /// #     10, 12, EncoderConfig::Recurrent(gru), DecoderConfig::Recurrent(gru), ContextConfig::Fixed);
    /// # let model = Seq2Seq::new(&Parameters::new(DType::F32, 1), &config)?;
    /// let outputs = model.greedy(&Sentences::new(&[vec![3, 4, 5], vec![6]], 0)?, 4)?;
    /// assert!(outputs.len() == 2 && outputs[0].tokens.len() <= 4);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn greedy(&self, source: impl Into<Source>, longest: usize) -> Result<Vec<Hypothesis>> {
        self.greedy_with(source, longest, Need::OUTPUT)
    }

    /// As [`Seq2Seq::greedy`], with the attention weights where they are asked for.
    /// Refuses a source of another kind, width or vocabulary than the configuration's.
    ///
    /// ```
    /// # use regard::prelude::*;
    /// # use regard::models::{ContextConfig, DecoderConfig, Sentences, Seq2Seq, Seq2SeqConfig};
    /// # let gru = RecurrentConfig::new(Cell::Gru, 64);
    /// # let context = ContextConfig::Attention(MechanismConfig::default());
    /// # let config = Seq2SeqConfig::new(
    /// #     10, 12, EncoderConfig::Recurrent(gru), DecoderConfig::Recurrent(gru), context);
    /// # let model = Seq2Seq::new(&Parameters::new(DType::F32, 1), &config)?;
    /// let source = Sentences::new(&[vec![3, 4, 5]], 0)?;
    /// let output = &model.greedy_with(&source, 4, Need::WEIGHTS)?[0];
    /// assert_eq!(output.alignment.as_ref().unwrap().shape(), [output.token_scores.len(), 3]);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn greedy_with(
        &self,
        source: impl Into<Source>,
        longest: usize,
        need: Need,
    ) -> Result<Vec<Hypothesis>> {
        self.greedy_within(source, 0..=longest, need)
    }

    /// As [`Seq2Seq::greedy_with`], with outputs of at least so many tokens too.
    /// Refuses a source of another kind, width or vocabulary than the configuration's.
    ///
    /// ```
    /// # use regard::prelude::*;
    /// # use regard::models::{ContextConfig, DecoderConfig, Sentences, Seq2Seq, Seq2SeqConfig};
    /// # let gru = RecurrentConfig::new(Cell::Gru, 8);
    /// # let config = Seq2SeqConfig::new(
    /// #     10, 12, EncoderConfig::Recurrent(gru), DecoderConfig::Recurrent(gru), ContextConfig::Fixed);
    /// # let model = Seq2Seq::new(&Parameters::new(DType::F32, 1), &config)?;
    /// let source = Sentences::new(&[vec![3, 4, 5]], 0)?;
    /// let output = &model.greedy_within(&source, 2..=4, Need::OUTPUT)?[0];
    /// assert!((2..=4).contains(&output.tokens.len()));
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn greedy_within(
        &self,
        source: impl Into<Source>,
        lengths: std::ops::RangeInclusive<usize>,
        need: Need,
    ) -> Result<Vec<Hypothesis>> {
        let source = &source.into();
        let (shortest, longest) = lengths.into_inner();
        ensure!(longest > 0, "outputs of at most 0 tokens");
        without_gradients(|| {
            let mut decoding = self.start(source)?;
            let mut trails: Vec<PartialHypothesis> =
                (0..source.lengths.len()).map(PartialHypothesis::new).collect();
            let end = self.config().end;
            let ended = |trail: &PartialHypothesis| trail.tokens.last() == Some(&end);
            let mut history = Vec::new();
            while history.len() < longest && !trails.iter().all(ended) {
                let may_end = history.len() >= shortest;
                let next = self.next_of(&trails, &mut decoding, &mut history, need)?;
                let best = self.best_tokens(&next, 1, may_end)?;
                for (row, trail) in trails.iter_mut().enumerate() {
                    if trail.tokens.last() != Some(&end) {
                        let &(token, score) = best[row].first().ok_or_else(nothing_to_write)?;
                        *trail = trail.with(row, token, score);
                    }
                }
            }
            let plain = SearchConfig { length_penalty: 0.0, ..SearchConfig::default() };
            let all = trails.into_iter();
            all.map(|trail| self.hypothesis(trail, source, &history, &plain)).collect()
        })
    }

    /// Beam search: for each source its best outputs, the best first. At every step a source's
    /// hypotheses are its `width` best so far; one that ends is put aside and keeps its place among
    /// them. Those that do not end within `longest` are given as they stand. Padding and start are
    /// never written.
    /// Refuses a source of another kind, width or vocabulary than the configuration's, and what
    /// [`SearchConfig::check`] refuses.
    ///
    /// ```
    /// # use regard::prelude::*;
    /// # use regard::models::{ContextConfig, DecoderConfig, SearchConfig, Sentences, Seq2Seq, Seq2SeqConfig};
    /// # let gru = RecurrentConfig::new(Cell::Gru, 8);
    /// # let config = Seq2SeqConfig::new(
    /// #     10, 12, EncoderConfig::Recurrent(gru), DecoderConfig::Recurrent(gru), ContextConfig::Fixed);
    /// # let model = Seq2Seq::new(&Parameters::new(DType::F32, 1), &config)?;
    /// let source = Sentences::new(&[vec![3, 4, 5], vec![6]], 0)?;
    /// let config = SearchConfig { width: 3, best: 2, longest: 4, ..SearchConfig::default() };
    /// let outputs = model.search(&source, &config)?;
    /// assert_eq!((outputs.len(), outputs[0].len()), (2, 2));
    /// assert!(outputs[0][0].score >= outputs[0][1].score);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn search(
        &self,
        source: impl Into<Source>,
        config: &SearchConfig,
    ) -> Result<Vec<Vec<Hypothesis>>> {
        self.searching(&source.into(), config, None)
    }

    /// As [`Seq2Seq::search`], with all tokens that were considered: those that stayed in the beam,
    /// and the best of those that did not.
    /// Refuses a source of another kind, width or vocabulary than the configuration's, and what
    /// [`SearchConfig::check`] refuses.
    ///
    /// ```
    /// # use regard::prelude::*;
    /// # use regard::models::{ContextConfig, DecoderConfig, SearchConfig, Sentences, Seq2Seq, Seq2SeqConfig};
    /// # let gru = RecurrentConfig::new(Cell::Gru, 8);
    /// # let config = Seq2SeqConfig::new(
    /// #     10, 12, EncoderConfig::Recurrent(gru), DecoderConfig::Recurrent(gru), ContextConfig::Fixed);
    /// # let model = Seq2Seq::new(&Parameters::new(DType::F32, 1), &config)?;
    /// let source = Sentences::new(&[vec![3, 4, 5]], 0)?;
    /// let config = SearchConfig { width: 1, longest: 4, ..SearchConfig::default() };
    /// let (found, considered) = model.search_considering(&source, &config)?;
    /// let kept = considered.iter().filter(|one| one.kept).map(|one| one.token);
    /// assert!(kept.zip(&found[0][0].tokens).all(|(a, b)| a == *b));
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn search_considering(
        &self,
        source: impl Into<Source>,
        config: &SearchConfig,
    ) -> Result<(Vec<Vec<Hypothesis>>, Vec<Considered>)> {
        let mut considered = Vec::new();
        let found = self.searching(&source.into(), config, Some(&mut considered))?;
        Ok((found, considered))
    }

    fn searching(
        &self,
        source: &Source,
        config: &SearchConfig,
        mut considered: Option<&mut Vec<Considered>>,
    ) -> Result<Vec<Vec<Hypothesis>>> {
        config.check()?;
        without_gradients(|| {
            let b = source.lengths.len();
            let mut decoding = self.start(source)?;
            let mut live: Vec<PartialHypothesis> = (0..b).map(PartialHypothesis::new).collect();
            let mut done: Vec<Vec<PartialHypothesis>> = vec![Vec::new(); b];
            let mut history = Vec::new();
            while history.len() < config.longest && !live.is_empty() {
                let need = Need { weights: config.weights, ..Need::OUTPUT };
                let may_end = history.len() >= config.shortest;
                let log_probs = self.next_of(&live, &mut decoding, &mut history, need)?;
                let widest =
                    if considered.is_some() { config.width.max(LOOKED_AT) } else { config.width };
                let tokens = self.best_tokens(&log_probs, widest, may_end)?;
                let mut next = Vec::new();
                let mut start = 0;
                while start < live.len() {
                    let sentence = live[start].sentence;
                    let same = live[start..].iter().take_while(|t| t.sentence == sentence);
                    let rows = start..start + same.count();
                    start = rows.end;
                    let free = config.width - done[sentence].len();
                    let most = if considered.is_some() { free.max(LOOKED_AT) } else { free };
                    let mut candidates = Vec::new();
                    for row in rows {
                        for &(token, score) in tokens[row].iter().take(most) {
                            candidates.push((live[row].total + score, row, token, score));
                        }
                    }
                    // Stable: among equals the earlier row and the smaller token.
                    candidates.sort_by(|a, b| b.0.total_cmp(&a.0));
                    let first = considered.as_ref().map(|all| all.len());
                    if let Some(all) = considered.as_deref_mut() {
                        let step = history.len() - 1;
                        let ranked = candidates.iter().enumerate();
                        all.extend(ranked.map(|(rank, &(total, row, token, log_prob))| {
                            let (parent, kept) = (live[row].node, rank < free);
                            Considered { parent, step, token, log_prob, total, kept }
                        }));
                    }
                    let best = candidates.into_iter().take(free).enumerate();
                    for (rank, (_, row, token, score)) in best {
                        let node = first.map(|first| first + rank);
                        let trail = PartialHypothesis { node, ..live[row].with(row, token, score) };
                        if token == self.config().end {
                            done[sentence].push(trail);
                        } else {
                            next.push(trail);
                        }
                    }
                }
                live = next;
                let parents = live.iter().filter_map(|trail| trail.rows.last().copied());
                decoding.reorder(&parents.collect::<Vec<_>>())?;
            }
            for trail in live {
                done[trail.sentence].push(trail);
            }
            let one = |trails: Vec<PartialHypothesis>| -> Result<Vec<Hypothesis>> {
                let all = trails.into_iter();
                let all = all.map(|trail| self.hypothesis(trail, source, &history, config));
                let mut all = all.collect::<Result<Vec<_>>>()?;
                all.sort_by(|a, b| b.score.total_cmp(&a.score));
                all.truncate(config.best);
                Ok(all)
            };
            done.into_iter().map(one).collect()
        })
    }

    /// The log-probabilities of every next token, `[rows, vocabulary]`.
    fn next_of(
        &self,
        trails: &[PartialHypothesis],
        decoding: &mut Decoding,
        history: &mut Vec<Seen>,
        need: Need,
    ) -> Result<Tensor> {
        let start = self.config().start;
        let last = trails.iter().map(|trail| trail.tokens.last().copied().unwrap_or(start));
        let tokens: Vec<usize> = last.collect();
        let Next { log_probs, weights, copied } = self.next(&tokens, decoding, need)?;
        history.push(Seen { weights, copied });
        Ok(log_probs)
    }

    /// The best tokens of each row and their log-probabilities, the best first, among equals the smaller.
    /// They are found where the numbers lie; the host reads no others.
    fn best_tokens(
        &self,
        log_probs: &Tensor,
        most: usize,
        may_end: bool,
    ) -> Result<Vec<Vec<(usize, f64)>>> {
        let config = self.config();
        let mut never = vec![config.padding, config.start];
        never.extend((!may_end).then_some(config.end));
        let found = (most + never.len()).min(log_probs.size(1)?);
        let (scores, tokens) = log_probs.topk(found, 1)?;
        let scores = scores.to_dtype(DType::F64)?.to_vec::<f64>()?;
        let tokens = tokens.to_vec::<i64>()?;
        // A NaN comes before any number.
        ensure!(!scores.iter().any(|x| x.is_nan()), "the model's scores are not numbers");
        let rows = tokens.chunks(found).zip(scores.chunks(found)).map(|(tokens, scores)| {
            let all = tokens.iter().map(|&token| token as usize).zip(scores.iter().copied());
            all.filter(|(token, _)| !never.contains(token)).take(most).collect()
        });
        Ok(rows.collect())
    }

    fn hypothesis(
        &self,
        trail: PartialHypothesis,
        source: &Source,
        history: &[Seen],
        config: &SearchConfig,
    ) -> Result<Hypothesis> {
        let length = source.lengths[trail.sentence];
        let (mut steps, mut shares) = (Vec::new(), Vec::new());
        for (&row, seen) in trail.rows.iter().zip(history) {
            if let Some(weights) = &seen.weights {
                steps.push(weights.select(0, row)?.narrow(2, 0, length)?);
            }
            if let Some(copied) = &seen.copied {
                shares.push(copied.select(0, row)?.to_dtype(DType::F64)?.item()?);
            }
        }
        let heads = match steps.is_empty() {
            true => None,
            false => Some(Tensor::stack(&steps, 2)?),
        };
        let alignment = match &heads {
            Some(heads) => Some(heads.select(0, heads.size(0)? - 1)?.mean(0)?),
            None => None,
        };
        let mut tokens = trail.tokens;
        let ended = tokens.last() == Some(&self.config().end);
        if ended {
            tokens.pop();
        }
        Ok(Hypothesis {
            tokens,
            score: trail.total / config.penalty(trail.scores.len()),
            log_prob: trail.total,
            token_scores: trail.scores,
            ended,
            alignment,
            heads,
            copied: (!shares.is_empty()).then_some(shares),
        })
    }
}
