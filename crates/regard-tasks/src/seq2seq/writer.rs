//! A sequence-to-sequence model at work: it learns from batches, searches, and is measured.

use super::{SearchOptions, Seq2SeqOptions, Sources};
use crate::metric::perplexity;
use crate::text::{PADDING, Tokenizer};
use crate::watch::tick;
use crate::{Alternative, Error, Result};
use regard::attention::{Need, Reinforce, ReinforceConfig, Weighting};
use regard::layers::Encoded;
use regard::models::{Hypothesis, SearchConfig, Sentences, Seq2Seq, Seq2SeqConfig, Source};
use regard::tensor::{Parameters, Random, without_gradients};
use regard::{DType, Mode, Tensor};

/// Sources that are read at once where nothing is learned.
const EVALUATION_BATCH: usize = 64;

/// How long an output may be.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Limit {
    /// Twice its source, and 20.
    Source,
    /// So many tokens.
    Tokens(usize),
}

pub(crate) struct Writer {
    pub(crate) model: Seq2Seq,
    pub(crate) parameters: Parameters,
    search: SearchOptions,
    limit: Limit,
    scheduled_sampling: f64,
    /// Whether attention draws keys by chance, which REINFORCE trains.
    samples: bool,
}

impl Writer {
    pub(crate) fn new(
        config: &Seq2SeqConfig,
        options: &Seq2SeqOptions,
        search: SearchOptions,
        limit: Limit,
        seed: u64,
    ) -> Result<Self> {
        let parameters = Parameters::new(DType::F32, seed);
        Parameters::check_fit(DType::F32, |p| Seq2Seq::new(p, config))?;
        Ok(Self {
            model: Seq2Seq::new(&parameters, config)?,
            parameters,
            search,
            limit,
            scheduled_sampling: options.scheduled_sampling,
            samples: options.mechanism.weighting == Weighting::Sample,
        })
    }

    /// What trains hard attention that samples; none where attention is soft.
    pub(crate) fn reinforce(&self) -> Result<Option<Reinforce>> {
        Ok(self.samples.then(|| Reinforce::new(ReinforceConfig::default())).transpose()?)
    }

    /// The loss of a batch.
    pub(crate) fn loss(
        &self,
        source: &Source,
        targets: &[&[usize]],
        label_smoothing: f64,
        reinforce: &mut Option<Reinforce>,
        random: &Random,
    ) -> Result<Tensor> {
        let (target, mode) = (Sentences::new(targets, PADDING)?, Mode::Train(random));
        let forced = match self.scheduled_sampling {
            0.0 => self.model.teach(source, &target, mode)?,
            share => self.model.teach_sampled(source, &target, share, mode)?,
        };
        let loss = forced.loss(label_smoothing)?;
        match (reinforce, &forced.log_prob) {
            (Some(reinforce), Some(log_prob)) => {
                let rewards = forced.losses()?.scale(-1.0)?.detach();
                Ok(loss.add(&reinforce.loss(&rewards, log_prob, None)?)?)
            }
            _ => Ok(loss),
        }
    }

    /// The best hypothesis for each source, in order, an empty one for an empty source. A beam of 1 is
    /// quick; the attention weights come with them only where they are asked for.
    pub(crate) fn write(
        &self,
        sources: &dyn Sources,
        beam: usize,
        need: Need,
    ) -> Result<Vec<Hypothesis>> {
        let found = self.in_batches(sources, |batch, longest| {
            let search = self.search.config(longest, need.weights);
            match beam {
                0 | 1 => {
                    let lengths = search.shortest..=search.longest;
                    let found = self.model.greedy_within(batch, lengths, need)?;
                    Ok(found.into_iter().map(|best| vec![best]).collect())
                }
                _ => Ok(self.model.search(batch, &search)?),
            }
        })?;
        Ok(found.into_iter().map(|best| best.into_iter().next().unwrap_or_else(silence)).collect())
    }

    /// The best hypotheses for each source, so many at most, the best first; the beam is at least as
    /// wide.
    pub(crate) fn write_n_best(
        &self,
        sources: &dyn Sources,
        n: usize,
    ) -> Result<Vec<Vec<Hypothesis>>> {
        self.in_batches(sources, |batch, longest| {
            let search = self.search.config(longest, false);
            let search = SearchConfig { width: search.width.max(n), best: n, ..search };
            Ok(self.model.search(batch, &search)?)
        })
    }

    /// What a search finds for each source, in order, an empty output for an empty source. Searches
    /// batches of similar lengths; how long an output may be depends on its own source alone.
    fn in_batches(
        &self,
        sources: &dyn Sources,
        search: impl Fn(&Source, usize) -> Result<Vec<Vec<Hypothesis>>>,
    ) -> Result<Vec<Vec<Hypothesis>>> {
        const STEP: usize = 8;
        let length = |&i: &usize| sources.length(i).next_multiple_of(STEP);
        let mut indices: Vec<usize> = (0..sources.count()).collect();
        indices.retain(|&i| sources.length(i) > 0);
        indices.sort_by_key(|i| (length(i), sources.length(*i)));
        let mut all: Vec<Vec<Hypothesis>> = vec![vec![silence()]; sources.count()];
        let mut done = 0;
        let alike = indices.chunk_by(|a, b| length(a) == length(b));
        for indices in alike.flat_map(|indices| indices.chunks(EVALUATION_BATCH)) {
            let batch = sources.batch(indices)?;
            let longest = match self.limit {
                Limit::Source => 2 * length(&indices[0]) + 20,
                Limit::Tokens(tokens) => tokens,
            };
            for (&index, found) in indices.iter().zip(search(&batch, longest)?) {
                all[index] = found;
            }
            done += indices.len();
            tick("writing", done, sources.count())?;
        }
        Ok(all)
    }

    /// The one hypothesis for one source, with its weights.
    pub(crate) fn write_one(&self, sources: &dyn Sources) -> Result<Hypothesis> {
        let found = self.write(sources, self.search.beam, Need::WEIGHTS)?.pop();
        let found = found.filter(|_| sources.length(0) > 0);
        found.ok_or_else(|| Error::invalid("there is nothing to look at"))
    }

    /// What the encoder makes of the first source, with its weights.
    pub(crate) fn encode_one(&self, sources: &dyn Sources) -> Result<Encoded> {
        let batch = sources.batch(&[0])?;
        Ok(without_gradients(|| self.model.encode(&batch, Mode::Infer, Need::WEIGHTS))?)
    }

    pub(crate) fn perplexity(&self, sources: &dyn Sources, targets: &[Vec<usize>]) -> Result<f64> {
        let (mut sum, mut tokens, mut done) = (0.0, 0, 0);
        let mut indices: Vec<usize> = (0..sources.count()).collect();
        indices.sort_by_key(|&i| targets[i].len());
        for indices in indices.chunks(EVALUATION_BATCH) {
            let target: Vec<&[usize]> = indices.iter().map(|&i| &targets[i][..]).collect();
            tokens += target.iter().map(|t| t.len() + 1).sum::<usize>();
            let (source, target) = (sources.batch(indices)?, Sentences::new(&target, PADDING)?);
            sum += without_gradients(|| {
                self.model.teach(&source, &target, Mode::Infer)?.losses()?.sum_all()?.item()
            })?;
            done += indices.len();
            tick("measuring", done, sources.count())?;
        }
        Ok(perplexity(sum, tokens))
    }
}

/// The output for an empty source.
fn silence() -> Hypothesis {
    Hypothesis {
        tokens: Vec::new(),
        score: 0.0,
        log_prob: 0.0,
        token_scores: Vec::new(),
        ended: true,
        alignment: None,
        heads: None,
    }
}

/// What hypotheses say, with their scores.
pub(crate) fn alternatives(
    found: &[Vec<Hypothesis>],
    tokenizer: &Tokenizer,
) -> Vec<Vec<Alternative>> {
    let alternative =
        |h: &Hypothesis| Alternative { output: tokenizer.decode(&h.tokens), score: h.score };
    found.iter().map(|best| best.iter().map(alternative).collect()).collect()
}
