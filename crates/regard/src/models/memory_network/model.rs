//! The memory network.

use super::sentence_encoder::SentenceEncoder;
use super::{MemoryNetworkConfig, Stories};
use crate::attention::{Site, intervention};
use crate::models::sequence::Head;
use crate::{Linear, Mask, Mechanism, Mode, Need};
use regard_tensor::{Init, Parameter, Parameters, Result, Tensor};

/// Answers questions about stories. Every sentence is a vector, the story is the memory; the question
/// attends to it once for each hop, and what it finds is the next question: where is the key → it is
/// in the box → John took the box → John went to the kitchen.
///
/// ```
/// use regard::prelude::*;
/// use regard::models::{MemoryNetwork, MemoryNetworkConfig, Stories};
/// let config = MemoryNetworkConfig { width: 8, ..MemoryNetworkConfig::new(20, 3, 2) };
/// let network = MemoryNetwork::new(&Parameters::new(DType::F32, 1), &config)?;
/// let sentences = Tensor::from_vec(vec![3i64, 4, 5, 4, 6, 0, 0, 0], &[2, 2, 2])?;
/// let questions = Tensor::from_vec(vec![7i64, 3, 7, 6], &[2, 2])?;
/// let stories = Stories { sentences: &sentences, lengths: &[2, 1], questions: &questions };
/// let answered = network.answer(&stories, Mode::Infer, Need::WEIGHTS)?;
/// assert_eq!(answered.logits.shape(), [2, 3]);
/// assert_eq!(answered.weights.len(), 2);
/// // the second story has one sentence
/// assert_eq!(answered.weights[0].select(0, 1)?.to_vec::<f32>()?, [1.0, 0.0]);
/// # Ok::<(), regard::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct MemoryNetwork {
    config: MemoryNetworkConfig,
    sentences: SentenceEncoder,
    question: Linear,
    /// One, or one for each hop.
    hops: Vec<Hop>,
    head: Head,
}

/// What a hop asks with.
#[derive(Clone, Debug)]
struct Hop {
    key: Linear,
    value: Linear,
    /// What an age adds to keys and to values, `[times, width]` each.
    times: Option<(Parameter, Parameter)>,
    mechanism: Mechanism,
}

/// What a [`MemoryNetwork`] gives.
///
/// ```
/// # use regard::prelude::*;
/// # use regard::models::{MemoryNetwork, MemoryNetworkConfig, Stories};
/// # let config = MemoryNetworkConfig { width: 8, ..MemoryNetworkConfig::new(20, 3, 2) };
/// # let network = MemoryNetwork::new(&Parameters::new(DType::F32, 1), &config)?;
/// # let sentences = Tensor::from_vec(vec![3i64, 4, 5, 4, 6, 0, 0, 0], &[2, 2, 2])?;
/// # let questions = Tensor::from_vec(vec![7i64, 3, 7, 6], &[2, 2])?;
/// # let stories = Stories { sentences: &sentences, lengths: &[2, 1], questions: &questions };
/// let answered = network.answer(&stories, Mode::Infer, Need::OUTPUT)?;
/// assert!(answered.weights.is_empty() && answered.log_prob.is_none());
/// # Ok::<(), regard::Error>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Answered {
    /// Scores of the answers, `[B, answers]`.
    pub logits: Tensor,
    /// The weights of the sentences `[B, S]`, hop by hop, where they were asked for.
    pub weights: Vec<Tensor>,
    /// The log-probability of all sentences that hard attention chose, `[B]`; its gradient trains
    /// the scores.
    pub log_prob: Option<Tensor>,
}

/// What words attended to inside their own sentence, layer by layer; nothing where sentences are read
/// without attention.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SentenceWeights {
    /// Of the stories' sentences, `[B, S, H, W, W]`.
    pub sentences: Vec<Tensor>,
    /// Of the questions, `[B, H, W, W]`.
    pub questions: Vec<Tensor>,
}

impl Hop {
    fn new(parameters: &Parameters, config: &MemoryNetworkConfig, width: usize) -> Result<Self> {
        let linear = |name: &str| Linear::new(&parameters.at(name), width, width, false);
        let init = Init::Normal(0.1);
        let time = |name: &str| parameters.parameter(name, &[config.times, width], init);
        let times = || Result::Ok((time("key_times")?, time("value_times")?));
        Ok(Self {
            key: linear("key")?,
            value: linear("value")?,
            times: (config.times > 0).then(times).transpose()?,
            mechanism: Mechanism::new(
                &parameters.at("mechanism"),
                &config.mechanism,
                width,
                width,
            )?,
        })
    }

    /// Keys and values of the sentences `[B, S, width]`, whose ages are `[B, S]`.
    fn memory(&self, sentences: &Tensor, ages: &Tensor) -> Result<(Tensor, Tensor)> {
        let (k, v) = (self.key.forward(sentences)?, self.value.forward(sentences)?);
        match &self.times {
            None => Ok((k, v)),
            Some((keys, values)) => Ok((
                k.add(&keys.tensor().embed(ages, None)?)?,
                v.add(&values.tensor().embed(ages, None)?)?,
            )),
        }
    }
}

impl MemoryNetwork {
    /// New; refuses what cannot be built, by name.
    ///
    /// ```
    /// use regard::prelude::*;
    /// use regard::models::{MemoryNetwork, MemoryNetworkConfig};
    /// let parameters = Parameters::new(DType::F32, 1);
    /// let config = MemoryNetworkConfig { width: 8, ..MemoryNetworkConfig::new(20, 3, 2) };
    /// MemoryNetwork::new(&parameters, &config)?;
    /// assert_eq!(parameters.tensors()["hops.1.key_times"].shape(), [50, 8]);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn new(parameters: &Parameters, config: &MemoryNetworkConfig) -> Result<Self> {
        config.check()?;
        let sentences = SentenceEncoder::new(parameters, config)?;
        let width = sentences.width();
        let count = if config.shared { 1 } else { config.hops };
        let hop = |at: usize| Hop::new(&parameters.at("hops").at(at), config, width);
        Ok(Self {
            config: config.clone(),
            sentences,
            question: Linear::new(&parameters.at("question"), width, width, false)?,
            hops: (0..count).map(hop).collect::<Result<_>>()?,
            head: Head::new(parameters, width, None, config.answers, config.dropout)?,
        })
    }

    /// How it was made.
    ///
    /// ```
    /// use regard::prelude::*;
    /// use regard::models::{MemoryNetwork, MemoryNetworkConfig};
    /// let config = MemoryNetworkConfig::new(20, 3, 2);
    /// let network = MemoryNetwork::new(&Parameters::new(DType::F32, 1), &config)?;
    /// assert_eq!(network.config(), &config);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn config(&self) -> &MemoryNetworkConfig {
        &self.config
    }

    /// The scores of the answers, with the weights of each hop where they are needed.
    /// Refuses stories of another shape than [`Stories`] says, and words beyond the vocabulary.
    ///
    /// ```
    /// # use regard::prelude::*;
    /// # use regard::models::{MemoryNetwork, MemoryNetworkConfig, Stories};
    /// # let config = MemoryNetworkConfig { width: 8, ..MemoryNetworkConfig::new(20, 3, 2) };
    /// # let network = MemoryNetwork::new(&Parameters::new(DType::F32, 1), &config)?;
    /// let sentences = Tensor::from_vec(vec![3i64, 4], &[1, 1, 2])?;
    /// let questions = Tensor::from_vec(vec![7i64], &[1, 1])?;
    /// let stories = Stories { sentences: &sentences, lengths: &[0], questions: &questions };
    /// let error = network.answer(&stories, Mode::Infer, Need::OUTPUT).unwrap_err();
    /// assert_eq!(error.to_string(), "story 0 has no sentence");
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn answer(&self, stories: &Stories, mode: Mode, need: Need) -> Result<Answered> {
        stories.check()?;
        let Stories { sentences, lengths, questions } = *stories;
        let (b, s, w) = (sentences.shape()[0], sentences.shape()[1], sentences.shape()[2]);
        let width = self.sentences.width();
        let flat = sentences.reshape(&[b * s, w])?;
        let (memory, _) = self.sentences.forward(&flat, mode, Need::OUTPUT)?;
        let memory = memory.reshape(&[b, s, width])?;
        let ages = self.ages(lengths, s)?;
        let mask = Mask::lengths(lengths);
        let (question, _) = self.sentences.forward(questions, mode, Need::OUTPUT)?;
        let mut question = self.question.forward(&question)?;
        let (mut weights, mut log_prob): (_, Option<Tensor>) = (Vec::new(), None);
        for at in 0..self.config.hops {
            let hop = &self.hops[at.min(self.hops.len() - 1)];
            let (k, v) = hop.memory(&memory, &ages)?;
            let asked = question.unsqueeze(1)?;
            let attend = || hop.mechanism.attend(&asked, &k, &v, &mask, mode, need);
            let found = intervention::at(Site::Hops, at, 0, attend)?;
            let out = found.out.squeeze(1)?;
            question = if self.config.carry { question.add(&out)? } else { out };
            weights.extend(found.weights.map(|weights| weights.squeeze(1)).transpose()?);
            if let Some(now) = found.log_prob.map(|p| p.squeeze(1)).transpose()? {
                log_prob = Some(log_prob.map_or(Ok(now.clone()), |before| before.add(&now))?);
            }
        }
        Ok(Answered { logits: self.head.forward(&question, mode)?, weights, log_prob })
    }

    /// What the words of sentences and questions attend to while they are read.
    /// Refuses stories of another shape than [`Stories`] says, and words beyond the vocabulary.
    ///
    /// ```
    /// # use regard::prelude::*;
    /// # use regard::models::{MemoryNetwork, MemoryNetworkConfig, Stories};
    /// # let config = MemoryNetworkConfig { width: 8, ..MemoryNetworkConfig::new(20, 3, 2) };
    /// # let network = MemoryNetwork::new(&Parameters::new(DType::F32, 1), &config)?;
    /// # let sentences = Tensor::from_vec(vec![3i64, 4], &[1, 1, 2])?;
    /// # let questions = Tensor::from_vec(vec![7i64], &[1, 1])?;
    /// # let stories = Stories { sentences: &sentences, lengths: &[1], questions: &questions };
    /// let read = network.sentence_weights(&stories, Mode::Infer)?;
    /// assert!(read.sentences.is_empty()); // sums of embeddings attend to nothing
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn sentence_weights(&self, stories: &Stories, mode: Mode) -> Result<SentenceWeights> {
        stories.check()?;
        let Stories { sentences, questions, .. } = *stories;
        let (b, s, w) = (sentences.shape()[0], sentences.shape()[1], sentences.shape()[2]);
        let flat = sentences.reshape(&[b * s, w])?;
        let (_, layers) = self.sentences.forward(&flat, mode, Need::WEIGHTS)?;
        let by_story = |layer: &Tensor| {
            let [heads, words] = [layer.shape()[1], layer.shape()[2]];
            layer.reshape(&[b, s, heads, words, words])
        };
        let sentences = layers.iter().map(by_story).collect::<Result<_>>()?;
        let (_, questions) = self.sentences.forward(questions, mode, Need::WEIGHTS)?;
        Ok(SentenceWeights { sentences, questions })
    }

    /// How many sentences came after each, `[B, S]`, as far as it is told apart.
    fn ages(&self, lengths: &[usize], s: usize) -> Result<Tensor> {
        let most = self.config.times.saturating_sub(1);
        let age = |length: usize, at: usize| length.saturating_sub(at + 1).min(most) as i64;
        let all = lengths.iter().flat_map(|&length| (0..s).map(move |at| age(length, at)));
        Tensor::from_vec(all.collect::<Vec<i64>>(), &[lengths.len(), s])
    }
}
