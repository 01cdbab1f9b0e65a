//! A sequence-to-sequence model at work: it learns from batches, searches, and is measured.

use super::options::ContextKind;
use super::{SearchOptions, Seq2SeqOptions, Sources};
use crate::metric::perplexity;
use crate::task::prediction::Alternative;
use crate::task::report::ValuesRead;
use crate::task::search_tree::{SearchNode, SearchTree, Searched};
use crate::tasks::components::is_hard;
use regard::attention::{Need, Reinforce, ReinforceConfig, Weighting};
use regard::layers::Encoded;
use regard::models::{
    Considered, Hypothesis, SearchConfig, Sentences, Seq2Seq, Seq2SeqConfig, Source,
};
use regard::tensor::{Device, Parameters, Random, without_gradients};
use regard::{DType, Mode, Tensor};
use regard_data::text::{PADDING, Tokenizer};
use regard_data::tick;
use regard_data::{Error, Result};

/// Sources that are read at once where nothing is learned, on the CPU and on a GPU.
const EVALUATION_BATCHES: [usize; 2] = [64, 256];

/// How long an output may be.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Limit {
    /// Twice its source, and 20.
    Source,
    /// So many tokens.
    Tokens(usize),
    /// So many tokens, no more and no fewer.
    Exactly(usize),
}

pub(crate) struct Writer {
    pub(crate) model: Seq2Seq,
    pub(crate) parameters: Parameters,
    search: SearchOptions,
    limit: Limit,
    scheduled_sampling: f64,
    /// Whether attention draws keys by chance, which REINFORCE trains.
    samples: bool,
    /// Whether attention to the source chooses one value; none where nothing is attended to.
    chooses: Option<bool>,
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
            chooses: match options.context {
                ContextKind::Fixed => None,
                ContextKind::Attention => Some(is_hard(options.mechanism.weighting)),
                ContextKind::MultiHead => Some(is_hard(options.encoder.head_weighting)),
            },
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
            let search = self.search_config(longest, need.weights);
            match beam {
                0 | 1 => {
                    let lengths = search.shortest..=search.longest;
                    let found = self.model.greedy_within(batch, lengths, need)?;
                    Ok(found.into_iter().map(|best| vec![best]).collect())
                }
                width => Ok(self.model.search(batch, &SearchConfig { width, ..search })?),
            }
        })?;
        Ok(found.into_iter().map(|best| best.into_iter().next().unwrap_or_else(silence)).collect())
    }

    /// As [`Writer::write`], with how many values of the source were read for each token that was
    /// written, on average over layers and heads.
    pub(crate) fn write_counted(
        &self,
        sources: &dyn Sources,
        beam: usize,
    ) -> Result<(Vec<Hypothesis>, Option<ValuesRead>)> {
        let hard = self.chooses == Some(true);
        let need = if hard { Need::WEIGHTS } else { Need::OUTPUT };
        let written = self.write(sources, beam, need)?;
        let (mut read, mut seen, mut outputs) = (0, 0, 0);
        for (at, one) in written.iter().enumerate() {
            let length = sources.length(at);
            let (own, queries) = match (&one.heads, hard) {
                _ if length == 0 => (0, 0),
                (_, false) => (one.token_scores.len() * length, one.token_scores.len()),
                (None, true) => (0, 0),
                (Some(heads), true) => {
                    let chosen =
                        heads.to_vec::<f32>()?.iter().filter(|weight| **weight != 0.0).count();
                    (chosen, heads.shape()[..3].iter().product())
                }
            };
            (read, seen, outputs) = (read + own, seen + queries * length, outputs + queries);
        }
        let mean = |count: usize| count as f64 / outputs as f64;
        let counted = ValuesRead { per_output: mean(read), of: mean(seen) };
        Ok((written, (self.chooses.is_some() && outputs > 0).then_some(counted)))
    }

    /// The best hypotheses for each source, so many at most, the best first; the beam is at least as
    /// wide.
    pub(crate) fn write_n_best(
        &self,
        sources: &dyn Sources,
        n: usize,
    ) -> Result<Vec<Vec<Hypothesis>>> {
        self.in_batches(sources, |batch, longest| {
            let search = self.search_config(longest, false);
            let search = SearchConfig { width: search.width.max(n), best: n, ..search };
            Ok(self.model.search(batch, &search)?)
        })
    }

    /// How many sources are read at once where nothing is learned.
    fn evaluation_batch(&self) -> usize {
        let [cpu, gpu] = EVALUATION_BATCHES;
        let first = self.parameters.all().first().map(|parameter| parameter.tensor().device());
        if first.is_none_or(|device| device == Device::Cpu) { cpu } else { gpu }
    }

    /// What a search finds for each source, in order, an empty output for an empty source. Searches
    /// batches of similar lengths; how long an output may be depends on its own source alone.
    fn in_batches(
        &self,
        sources: &dyn Sources,
        search: impl Fn(&Source, usize) -> Result<Vec<Vec<Hypothesis>>>,
    ) -> Result<Vec<Vec<Hypothesis>>> {
        let length = |&i: &usize| sources.length(i).next_multiple_of(STEP);
        let mut indices: Vec<usize> = (0..sources.count()).collect();
        indices.retain(|&i| sources.length(i) > 0);
        indices.sort_by_key(|i| (length(i), sources.length(*i)));
        let mut all: Vec<Vec<Hypothesis>> = vec![vec![silence()]; sources.count()];
        let mut done = 0;
        let alike = indices.chunk_by(|a, b| length(a) == length(b));
        for indices in alike.flat_map(|indices| indices.chunks(self.evaluation_batch())) {
            let batch = sources.batch(indices)?;
            let longest = self.longest(sources.length(indices[0]));
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

    /// The weights of a Transformer's decoder over what it had written of a hypothesis for the first
    /// source, layer by layer; none where the decoder is another.
    pub(crate) fn self_attention(
        &self,
        sources: &dyn Sources,
        hypothesis: &Hypothesis,
    ) -> Result<Vec<Tensor>> {
        let target = Sentences::new(&[&hypothesis.tokens[..]], PADDING)?;
        Ok(self.model.self_attention_weights(sources.batch(&[0])?, &target)?)
    }

    pub(crate) fn perplexity(&self, sources: &dyn Sources, targets: &[Vec<usize>]) -> Result<f64> {
        let (mut sum, mut tokens) = (0.0, 0);
        self.taught(sources, targets, |indices, losses| {
            tokens += indices.iter().map(|&i| targets[i].len() + 1).sum::<usize>();
            sum += losses.sum_all()?.item()?;
            Ok(())
        })?;
        Ok(perplexity(sum, tokens))
    }

    /// The mean of −ln p over the tokens of each target and its end.
    pub(crate) fn losses(&self, sources: &dyn Sources, targets: &[Vec<usize>]) -> Result<Vec<f64>> {
        let mut all = vec![f64::NAN; sources.count()];
        self.taught(sources, targets, |indices, losses| {
            let sums = losses.sum(1)?.to_vec::<f32>()?;
            for (&index, sum) in indices.iter().zip(sums) {
                all[index] = f64::from(sum) / (targets[index].len() + 1) as f64;
            }
            Ok(())
        })?;
        Ok(all)
    }

    /// Hands over −ln p of every target's tokens, `[B, T]`, batch by batch.
    fn taught(
        &self,
        sources: &dyn Sources,
        targets: &[Vec<usize>],
        mut each: impl FnMut(&[usize], &Tensor) -> Result<()>,
    ) -> Result<()> {
        let mut indices: Vec<usize> = (0..sources.count()).collect();
        indices.sort_by_key(|&i| targets[i].len());
        let mut done = 0;
        for indices in indices.chunks(self.evaluation_batch()) {
            let target: Vec<&[usize]> = indices.iter().map(|&i| &targets[i][..]).collect();
            let (source, target) = (sources.batch(indices)?, Sentences::new(&target, PADDING)?);
            let losses =
                without_gradients(|| self.model.teach(&source, &target, Mode::Infer)?.losses())?;
            each(indices, &losses)?;
            done += indices.len();
            tick("measuring", done, sources.count())?;
        }
        Ok(())
    }

    /// The log-probability of what is written for one source, with its gradient.
    pub(crate) fn log_prob(&self, source: &Source, tokens: &[usize]) -> Result<Tensor> {
        let target = Sentences::new(&[tokens], PADDING)?;
        let losses = self.model.teach(source, &target, Mode::Infer)?.losses()?;
        Ok(losses.sum_all()?.scale(-1.0)?)
    }

    /// What a search for the first source's output considers; tokens and outputs as they are shown.
    pub(crate) fn search_tree(
        &self,
        sources: &dyn Sources,
        token: impl Fn(usize) -> String,
        text: impl Fn(&[usize]) -> String,
    ) -> Result<SearchTree> {
        if sources.length(0) == 0 {
            return Err(Error::invalid("there is nothing to write of"));
        }
        let longest = self.longest(sources.length(0));
        let width = self.search.beam;
        let config = SearchConfig { best: width, ..self.search_config(longest, false) };
        let (found, considered) = self.model.search_considering(sources.batch(&[0])?, &config)?;
        let end = self.model.config().end;
        let node = |(id, one): (usize, &Considered)| SearchNode {
            id,
            parent: one.parent,
            step: one.step,
            token: if one.token == end { "<end>".into() } else { token(one.token) },
            log_prob: one.log_prob,
            total: one.total,
            kept: one.kept,
            ended: one.token == end,
        };
        let path = |hypothesis: &Hypothesis| {
            let end = hypothesis.ended.then_some(end);
            let mut nodes: Vec<usize> = Vec::new();
            for token in hypothesis.tokens.iter().copied().chain(end) {
                let parent = nodes.last().copied();
                let next = considered
                    .iter()
                    .position(|one| one.kept && one.parent == parent && one.token == token);
                nodes.extend(next);
            }
            nodes
        };
        let searched = |hypothesis: &Hypothesis| Searched {
            output: text(&hypothesis.tokens),
            score: hypothesis.score,
            log_prob: hypothesis.log_prob,
            nodes: path(hypothesis),
        };
        let hypotheses = found.iter().flatten().map(searched).collect();
        Ok(SearchTree {
            width,
            nodes: considered.iter().enumerate().map(node).collect(),
            hypotheses,
        })
    }

    /// How many tokens the output of a source of so many may have.
    fn longest(&self, source: usize) -> usize {
        match self.limit {
            Limit::Source => 2 * source.next_multiple_of(STEP) + 20,
            Limit::Tokens(tokens) | Limit::Exactly(tokens) => tokens,
        }
    }

    fn search_config(&self, longest: usize, weights: bool) -> SearchConfig {
        let config = self.search.config(longest, weights);
        match self.limit {
            Limit::Exactly(tokens) => SearchConfig { shortest: tokens, ..config },
            _ => config,
        }
    }
}

/// Sources whose lengths are equal to so many tokens are searched together.
const STEP: usize = 8;

/// How many tokens the loss of a batch is a mean over: those of each target, and its end.
pub(crate) fn tokens(batch: &[usize], targets: &[Vec<usize>]) -> f64 {
    batch.iter().map(|&i| targets[i].len() + 1).sum::<usize>() as f64
}

/// The output for an empty source.
fn silence() -> Hypothesis {
    let mut silence = Hypothesis::default();
    silence.ended = true;
    silence
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
