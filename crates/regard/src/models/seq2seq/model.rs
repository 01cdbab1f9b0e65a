//! The model: what it learns from, and what it says one token at a time.

use super::decoder::{Decoder, Decoding, Written};
use super::teacher_forcing::NOTHING;
use super::{DecoderConfig, Sentences, Seq2SeqConfig, TeacherForced, Tied};
use crate::{Embedding, Encoded, Encoder, EncoderConfig, Linear, Mode, Need, length};
use regard_tensor::{Init, Parameters, Result, Tensor, ensure, without_gradients};

/// From a sequence of tokens to another: any encoder, any context, any decoder.
///
/// The model is rebuilt from its configuration and its parameters' file alone.
///
/// ```
/// use regard::prelude::*;
/// let gru = RecurrentConfig::new(Cell::Gru, 16);
/// let additive = MechanismConfig::new(ScoreConfig::Additive { hidden: 16 });
/// let config = Seq2SeqConfig::new(
///     10, 12, EncoderConfig::Recurrent(gru), DecoderConfig::Recurrent(gru), ContextConfig::Attention(additive),
/// );
/// let parameters = Parameters::new(DType::F32, 1);
/// let model = Seq2Seq::new(&parameters, &config)?;
/// let source = Sentences::new(&[vec![3, 4, 5], vec![6]], 0)?;
/// let target = Sentences::new(&[vec![7, 8], vec![9, 10, 11]], 0)?;
/// let loss = model.teach(&source, &target, Mode::Infer)?.loss(0.1)?;
/// let gradients = loss.backward()?;
/// assert!(parameters.all().iter().all(|p| gradients.get(p).is_some()));
/// let best = model.search(&source, &SearchConfig { longest: 5, ..SearchConfig::default() })?;
/// assert_eq!(best.len(), 2);
/// # Ok::<(), regard::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Seq2Seq {
    config: Seq2SeqConfig,
    source: Embedding,
    target: Embedding,
    encoder: Encoder,
    decoder: Decoder,
    output: Linear,
}

impl Seq2Seq {
    /// New; refuses what cannot be built, by name.
    ///
    /// ```
    /// # use regard::prelude::*;
    /// # let gru = RecurrentConfig::new(Cell::Gru, 8);
    /// # let config = Seq2SeqConfig::new(
    /// #     10, 12, EncoderConfig::Recurrent(gru), DecoderConfig::Recurrent(gru), ContextConfig::Fixed);
    /// let parameters = Parameters::new(DType::F32, 1);
    /// Seq2Seq::new(&parameters, &config)?;
    /// assert_eq!(parameters.tensors()["target.weight"].shape(), [12, 64]);
    /// let error = Seq2Seq::new(&parameters, &Seq2SeqConfig { embedding: 0, ..config }).unwrap_err();
    /// assert_eq!(error.to_string(), "an embedding of width 0");
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn new(parameters: &Parameters, config: &Seq2SeqConfig) -> Result<Self> {
        config.check()?;
        let c = config;
        let table = |name: &str, vocabulary| {
            Embedding::new(&parameters.at(name), vocabulary, c.embedding, Some(c.padding))
        };
        let target = table("target", c.target_vocabulary)?;
        let source = match c.tied {
            Tied::All => target.clone(),
            _ => table("source", c.source_vocabulary)?,
        };
        let encoder = Encoder::new(&parameters.at("encoder"), &c.encoder, c.embedding)?;
        let decoder = Decoder::new(&parameters.at("decoder"), c, encoder.width())
            .map_err(|error| error.within("decoder"))?;
        let (at, width) = (parameters.at("output"), decoder.width(c.embedding));
        let output = match c.tied {
            Tied::None => Linear::new(&at, width, c.target_vocabulary, true)?,
            _ => Linear {
                weight: target.weight.clone(),
                bias: Some(at.parameter("bias", &[c.target_vocabulary], Init::Zeros)?),
            },
        };
        Ok(Self { config: c.clone(), source, target, encoder, decoder, output })
    }

    /// How it was made.
    ///
    /// ```
    /// # use regard::prelude::*;
    /// # let gru = RecurrentConfig::new(Cell::Gru, 8);
    /// # let config = Seq2SeqConfig::new(
    /// #     10, 12, EncoderConfig::Recurrent(gru), DecoderConfig::Recurrent(gru), ContextConfig::Fixed);
    /// let model = Seq2Seq::new(&Parameters::new(DType::F32, 1), &config)?;
    /// assert_eq!(model.config(), &config);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn config(&self) -> &Seq2SeqConfig {
        &self.config
    }

    /// Reads sources: `[B, N]` tokens → `[B, N, width]`, and a summary of each; with the weights of
    /// a Transformer's encoder where they are needed.
    ///
    /// ```
    /// # use regard::prelude::*;
    /// # let gru = RecurrentConfig::new(Cell::Gru, 8);
    /// # let config = Seq2SeqConfig::new(
    /// #     10, 12, EncoderConfig::Recurrent(gru), DecoderConfig::Recurrent(gru), ContextConfig::Fixed);
    /// # let model = Seq2Seq::new(&Parameters::new(DType::F32, 1), &config)?;
    /// let source = Sentences::new(&[vec![3, 4, 5], vec![6]], 0)?;
    /// let encoded = model.encode(&source, Mode::Infer, Need::OUTPUT)?;
    /// assert_eq!(encoded.out.shape(), [2, 3, 8]);
    /// assert_eq!(encoded.summary.shape(), [2, 8]);
    /// // a recurrent encoder attends to nothing
    /// assert!(model.encode(&source, Mode::Infer, Need::WEIGHTS)?.weights.is_empty());
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn encode(&self, source: &Sentences, mode: Mode, need: Need) -> Result<Encoded> {
        ensure!(
            source.ids.rank() == 2,
            "sources of shape {:?}; they are [B, N]",
            source.ids.shape()
        );
        let transformer = matches!(self.config.encoder, EncoderConfig::Transformer(_));
        let x = self.embed(&self.source, &source.ids, transformer, mode)?;
        self.encoder.encode(&x, Some(&source.lengths), mode, need)
    }

    /// Shows it targets (without start and end, which it adds): at every place it is given the
    /// tokens before. The steps' products are made together: the tokens' and the vocabulary's once
    /// for all, and with a fixed context the whole decoder in one call.
    ///
    /// ```
    /// # use regard::prelude::*;
    /// # let gru = RecurrentConfig::new(Cell::Gru, 8);
    /// # let config = Seq2SeqConfig::new(
    /// #     10, 12, EncoderConfig::Recurrent(gru), DecoderConfig::Recurrent(gru), ContextConfig::Fixed);
    /// # let model = Seq2Seq::new(&Parameters::new(DType::F32, 1), &config)?;
    /// let source = Sentences::new(&[vec![3, 4, 5], vec![6]], 0)?;
    /// let target = Sentences::new(&[vec![7, 8], vec![9, 10, 11]], 0)?;
    /// let taught = model.teach(&source, &target, Mode::Infer)?;
    /// assert_eq!(taught.logits.shape(), [2, 4, 12]);
    /// // an end behind each, and nothing where the shorter one is padded
    /// assert_eq!(taught.targets.to_vec::<i64>()?, [7, 8, 2, -1, 9, 10, 11, 2]);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn teach(
        &self,
        source: &Sentences,
        target: &Sentences,
        mode: Mode,
    ) -> Result<TeacherForced> {
        self.taught(source, target, mode, Need::OUTPUT)
    }

    /// As [`Seq2Seq::teach`] in use, with the weights on the source: an alignment of two sequences
    /// that are given.
    ///
    /// ```
    /// # use regard::prelude::*;
    /// # let gru = RecurrentConfig::new(Cell::Gru, 64);
    /// # let context = ContextConfig::Attention(MechanismConfig::default());
    /// # let config = Seq2SeqConfig::new(
    /// #     10, 12, EncoderConfig::Recurrent(gru), DecoderConfig::Recurrent(gru), context);
    /// # let model = Seq2Seq::new(&Parameters::new(DType::F32, 1), &config)?;
    /// let source = Sentences::new(&[vec![3, 4, 5]], 0)?;
    /// let target = Sentences::new(&[vec![7, 8]], 0)?;
    /// let aligned = model.align(&source, &target)?;
    /// // One sentence, one head, two tokens and the end, three tokens of the source.
    /// assert_eq!(aligned.weights[0].shape(), [1, 1, 3, 3]);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn align(&self, source: &Sentences, target: &Sentences) -> Result<TeacherForced> {
        without_gradients(|| self.taught(source, target, Mode::Infer, Need::WEIGHTS))
    }

    fn taught(
        &self,
        source: &Sentences,
        target: &Sentences,
        mode: Mode,
        need: Need,
    ) -> Result<TeacherForced> {
        let encoded = self.encode(source, mode, Need::OUTPUT)?;
        let Shifted { given, right } = self.shifted(source, target)?;
        let y = self.embed_target(&given, mode)?;
        let written = self.decoder.forward(&y, &encoded, &source.lengths, mode, need)?;
        self.finish(written.hidden, right, written.log_prob, written.weights)
    }

    /// Scheduled sampling: as [`Seq2Seq::teach`], but each token it is given is, with this
    /// probability, its own best one in place of the right one (Bengio and others 2015). A
    /// recurrent decoder goes step by step; a Transformer first runs over the right tokens to have
    /// its own (Mihaylova and Martins 2019). Draws from the mode's random numbers, so it wants a
    /// mode that learns.
    ///
    /// ```
    /// # use regard::prelude::*;
    /// # let gru = RecurrentConfig::new(Cell::Gru, 8);
    /// # let config = Seq2SeqConfig::new(
    /// #     10, 12, EncoderConfig::Recurrent(gru), DecoderConfig::Recurrent(gru), ContextConfig::Fixed);
    /// # let model = Seq2Seq::new(&Parameters::new(DType::F32, 1), &config)?;
    /// let source = Sentences::new(&[vec![3, 4, 5], vec![6]], 0)?;
    /// let target = Sentences::new(&[vec![7, 8], vec![9, 10, 11]], 0)?;
    /// let random = Random::new(1);
    /// let taught = model.teach_sampled(&source, &target, 0.5, Mode::Train(&random))?;
    /// assert_eq!(taught.logits.shape(), [2, 4, 12]);
    /// let error = model.teach_sampled(&source, &target, 0.5, Mode::Infer).unwrap_err();
    /// assert_eq!(error.to_string(), "scheduled sampling is for learning, not for use");
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn teach_sampled(
        &self,
        source: &Sentences,
        target: &Sentences,
        probability: f64,
        mode: Mode,
    ) -> Result<TeacherForced> {
        ensure!(
            (0.0..=1.0).contains(&probability),
            "scheduled sampling with a probability of {probability}"
        );
        let Mode::Train(random) = mode else {
            return Err(crate::Error::new("scheduled sampling is for learning, not for use"));
        };
        if probability == 0.0 {
            return self.teach(source, target, mode);
        }
        let encoded = self.encode(source, mode, Need::OUTPUT)?;
        let Shifted { given, right } = self.shifted(source, target)?;
        let swap = || random.number() < probability;
        let written = match &self.decoder {
            Decoder::Transformer { .. } => {
                self.write_twice(&given, &encoded, source, mode, swap)?
            }
            Decoder::Recurrent(_) => self.write_stepwise(&given, &encoded, source, mode, swap)?,
        };
        self.finish(written.hidden, right, written.log_prob, Vec::new())
    }

    /// Over the right tokens first, then over those that its own take the place of.
    fn write_twice(
        &self,
        given: &Tensor,
        encoded: &Encoded,
        source: &Sentences,
        mode: Mode,
        swap: impl Fn() -> bool,
    ) -> Result<Written> {
        let (b, t) = (given.shape()[0], given.shape()[1]);
        let write = |ids: &Tensor, mode: Mode| {
            let y = self.embed_target(ids, mode)?;
            self.decoder.forward(&y, encoded, &source.lengths, mode, Need::OUTPUT)
        };
        let own = without_gradients(|| -> Result<Vec<i64>> {
            let written = write(given, Mode::Infer)?;
            self.output.forward(&written.hidden)?.max(2)?.1.to_vec::<i64>()
        })?;
        let mut ids = given.to_vec::<i64>()?;
        for place in (0..b * t).filter(|place| place % t > 0) {
            if swap() {
                ids[place] = own[place - 1];
            }
        }
        write(&Tensor::from_vec(ids, &[b, t])?, mode)
    }

    /// Step by step: each token is the right one, or the best of the step before.
    fn write_stepwise(
        &self,
        given: &Tensor,
        encoded: &Encoded,
        source: &Sentences,
        mode: Mode,
        swap: impl Fn() -> bool,
    ) -> Result<Written> {
        let (b, t) = (given.shape()[0], given.shape()[1]);
        let ids = given.to_vec::<i64>()?;
        let mut decoding = self.decoder.start(encoded, &source.lengths)?;
        let (mut hidden, mut log_probs) = (Vec::new(), Vec::new());
        let mut own: Option<Vec<i64>> = None;
        for step in 0..t {
            let tokens = (0..b).map(|row| match &own {
                Some(own) if swap() => own[row],
                _ => ids[row * t + step],
            });
            let tokens = Tensor::from_vec(tokens.collect(), &[b])?;
            let y = self.embed_target(&tokens, mode)?;
            let written = self.decoder.step(&y, &mut decoding, mode, Need::OUTPUT)?;
            let logits = without_gradients(|| self.output.forward(&written.hidden))?;
            own = Some(logits.max(2)?.1.to_vec::<i64>()?);
            hidden.push(written.hidden);
            log_probs.extend(written.log_prob);
        }
        let log_prob = match log_probs.is_empty() {
            true => None,
            false => Some(Tensor::cat(&log_probs, 1)?),
        };
        Ok(Written { hidden: Tensor::cat(&hidden, 1)?, weights: Vec::new(), log_prob })
    }

    /// A start before the target, and an end behind it.
    fn shifted(&self, source: &Sentences, target: &Sentences) -> Result<Shifted> {
        ensure!(
            source.lengths.len() == target.lengths.len(),
            "{} sources and {} targets",
            source.lengths.len(),
            target.lengths.len()
        );
        let (b, n) = match target.ids.shape() {
            &[b, n] => (b, n),
            shape => {
                return Err(crate::Error::new(format!(
                    "targets of shape {shape:?}; they are [B, N]"
                )));
            }
        };
        length::check("targets", Some(&target.lengths), b, n)?;
        let c = &self.config;
        let t = target.lengths.iter().max().map_or(1, |longest| longest + 1);
        let (mut given, mut right) = (Vec::with_capacity(b * t), Vec::with_capacity(b * t));
        let ids = target.ids.to_vec::<i64>()?;
        for (row, &length) in target.lengths.iter().enumerate() {
            let tokens = &ids[row * n..][..length];
            given.push(c.start as i64);
            given.extend(tokens);
            given.extend(std::iter::repeat_n(c.padding as i64, t - 1 - length));
            right.extend(tokens);
            right.push(c.end as i64);
            right.extend(std::iter::repeat_n(NOTHING, t - 1 - length));
        }
        let (given, right) = (Tensor::from_vec(given, &[b, t])?, Tensor::from_vec(right, &[b, t])?);
        Ok(Shifted { given, right })
    }

    fn finish(
        &self,
        hidden: Tensor,
        targets: Tensor,
        log_prob: Option<Tensor>,
        weights: Vec<Tensor>,
    ) -> Result<TeacherForced> {
        let log_prob = match log_prob {
            Some(log_prob) => {
                let there: Vec<bool> =
                    targets.to_vec::<i64>()?.iter().map(|&x| x != NOTHING).collect();
                let there = Tensor::from_bools(&there, targets.shape())?;
                Some(there.where_(&log_prob, &Tensor::zeros(&[], log_prob.dtype())?)?)
            }
            None => None,
        };
        Ok(TeacherForced { logits: self.output.forward(&hidden)?, targets, log_prob, weights })
    }

    /// The vectors of tokens. Beside positions they want to be as large as these, so a Transformer
    /// has them times √width (Vaswani and others 2017); it drops from their sum itself.
    fn embed(
        &self,
        table: &Embedding,
        ids: &Tensor,
        transformer: bool,
        mode: Mode,
    ) -> Result<Tensor> {
        let x = table.forward(ids)?;
        if transformer {
            return x.scale((self.config.embedding as f64).sqrt());
        }
        mode.dropout(&x, self.config.dropout)
    }

    fn embed_target(&self, ids: &Tensor, mode: Mode) -> Result<Tensor> {
        let transformer = matches!(self.config.decoder, DecoderConfig::Transformer(_));
        self.embed(&self.target, ids, transformer, mode)
    }

    /// What decoding these sources starts with.
    pub(super) fn start(&self, source: &Sentences) -> Result<Decoding> {
        let encoded = self.encode(source, Mode::Infer, Need::OUTPUT)?;
        self.decoder.start(&encoded, &source.lengths)
    }

    /// The next token after these.
    pub(super) fn next(
        &self,
        tokens: &[usize],
        decoding: &mut Decoding,
        need: Need,
    ) -> Result<Next> {
        let ids = Tensor::from_vec(tokens.iter().map(|&x| x as i64).collect(), &[tokens.len()])?;
        let y = self.embed_target(&ids, Mode::Infer)?;
        let written = self.decoder.step(&y, decoding, Mode::Infer, need)?;
        let weights = match written.weights.is_empty() {
            true => None,
            false => Some(Tensor::stack(&written.weights, 1)?.squeeze(3)?),
        };
        let log_probs = self.output.forward(&written.hidden.squeeze(1)?)?.log_softmax(1)?;
        Ok(Next { log_probs, weights })
    }
}

/// What the decoder is given and what it is to answer, both `[B, T]`.
struct Shifted {
    given: Tensor,
    right: Tensor,
}

/// What a decoder says of the next token.
pub(super) struct Next {
    /// `[R, V]`
    pub(super) log_probs: Tensor,
    /// `[R, layers, H, N]`: what it was written with, where the decoder attends.
    pub(super) weights: Option<Tensor>,
}
