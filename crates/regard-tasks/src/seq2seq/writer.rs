//! A sequence-to-sequence model at work: it learns from batches, searches, and is measured.

use super::{SearchOptions, Seq2SeqOptions, Sources};
use crate::metric::perplexity;
use crate::text::PADDING;
use crate::watch::tick;
use crate::{Error, Result};
use regard::attention::{Need, Reinforce, ReinforceConfig, Weighting};
use regard::layers::Encoded;
use regard::models::{Hypothesis, Sentences, Seq2Seq, Seq2SeqConfig, Source};
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

    /// The best hypothesis for each source, in order, an empty one for an empty source. Searches batches of similar lengths; how
    /// long an output may be depends on its own source alone. A beam of 1 is quick; the attention
    /// weights come with them only where they are asked for.
    pub(crate) fn write(
        &self,
        sources: &dyn Sources,
        beam: usize,
        need: Need,
    ) -> Result<Vec<Hypothesis>> {
        const STEP: usize = 8;
        let length = |&i: &usize| sources.length(i).next_multiple_of(STEP);
        let mut indices: Vec<usize> = (0..sources.count()).collect();
        indices.retain(|&i| sources.length(i) > 0);
        indices.sort_by_key(|i| (length(i), sources.length(*i)));
        let mut all: Vec<Hypothesis> = vec![silence(); sources.count()];
        let mut done = 0;
        let alike = indices.chunk_by(|a, b| length(a) == length(b));
        for indices in alike.flat_map(|indices| indices.chunks(EVALUATION_BATCH)) {
            let batch = sources.batch(indices)?;
            let longest = match self.limit {
                Limit::Source => 2 * length(&indices[0]) + 20,
                Limit::Tokens(tokens) => tokens,
            };
            let search = self.search.config(longest, need.weights);
            let best: Vec<Hypothesis> = match beam {
                0 | 1 => {
                    self.model.greedy_within(&batch, search.shortest..=search.longest, need)?
                }
                _ => {
                    let all = self.model.search(&batch, &search)?;
                    all.into_iter().filter_map(|best| best.into_iter().next()).collect()
                }
            };
            for (&index, hypothesis) in indices.iter().zip(best) {
                all[index] = hypothesis;
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

/// How many tokens the loss of a batch is a mean over: those of each target, and its end.
pub(crate) fn tokens(batch: &[usize], targets: &[Vec<usize>]) -> f64 {
    batch.iter().map(|&i| targets[i].len() + 1).sum::<usize>() as f64
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
