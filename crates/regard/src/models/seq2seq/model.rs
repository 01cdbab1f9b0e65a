//! The model: what it learns from, and what it says one token at a time.

use super::copying::{Copied, Copying};
use super::decoder::{Decoder, Decoding, Written};
use super::reader::Reader;
use super::teacher_forcing::NOTHING;
use super::{
    ContextConfig, DecoderConfig, Sentences, Seq2SeqConfig, Source, SourceConfig, TeacherForced,
    Tied,
};
use crate::{Embedding, Encoded, Encoder, EncoderConfig, Linear, Mode, Need, Pooling, length};
use regard_tensor::{Init, Parameters, Result, Tensor, ensure, without_gradients};

/// From tokens, vectors or an image to a sequence of tokens: any encoder, any context, any decoder.
///
/// The model is rebuilt from its configuration and its parameters' file alone.
///
/// ```
/// use regard::prelude::*;
/// use regard::layers::{Cell, EncoderConfig, RecurrentConfig};
/// use regard::models::{ContextConfig, DecoderConfig, SearchConfig, Sentences, Seq2Seq, Seq2SeqConfig};
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
    source: Reader,
    target: Embedding,
    encoder: Encoder,
    /// Makes the fixed vector, where the encoder's own summary does not.
    pooling: Option<Pooling>,
    decoder: Decoder,
    output: Linear,
    copying: Option<Copying>,
}

impl Seq2Seq {
    /// New; refuses what cannot be built, by name.
    ///
    /// ```
    /// # use regard::prelude::*;
    /// # use regard::layers::{Cell, EncoderConfig, RecurrentConfig};
    /// # use regard::models::{ContextConfig, DecoderConfig, Seq2Seq, Seq2SeqConfig};
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
        let source = |vocabulary| match c.tied {
            Tied::All => Ok(target.clone()),
            _ => table("source", vocabulary),
        };
        let source = Reader::new(parameters, &c.source, c.embedding, source)?;
        let width = source.width(c.embedding);
        let encoder = Encoder::new(&parameters.at("encoder"), &c.encoder, width)?;
        let pooling = match &c.context {
            ContextConfig::Pooled { pooling } => {
                Some(Pooling::new(&parameters.at("pooling"), pooling, encoder.width())?)
            }
            _ => None,
        };
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
        let copying = c.copying.then(|| Copying::new(&parameters.at("copying"), width));
        let copying = copying.transpose()?;
        Ok(Self { config: c.clone(), source, target, encoder, pooling, decoder, output, copying })
    }

    /// How it was made.
    ///
    /// ```
    /// # use regard::prelude::*;
    /// # use regard::layers::{Cell, EncoderConfig, RecurrentConfig};
    /// # use regard::models::{ContextConfig, DecoderConfig, Seq2Seq, Seq2SeqConfig};
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

    /// Reads sources of N tokens, vectors or patches → `[B, N, width]`, and a summary of each; with
    /// the weights of a Transformer's encoder where they are needed.
    /// Refuses a source of another kind, width or vocabulary than the configuration's.
    ///
    /// ```
    /// # use regard::prelude::*;
    /// # use regard::layers::{Cell, EncoderConfig, RecurrentConfig};
    /// # use regard::models::{ContextConfig, DecoderConfig, Sentences, Seq2Seq, Seq2SeqConfig};
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
    pub fn encode(&self, source: impl Into<Source>, mode: Mode, need: Need) -> Result<Encoded> {
        self.read(&source.into(), mode, need)
    }

    fn read(&self, source: &Source, mode: Mode, need: Need) -> Result<Encoded> {
        let mut x = self.source.vectors(source)?;
        if matches!(self.config.source, SourceConfig::Tokens { .. }) {
            let transformer = matches!(self.config.encoder, EncoderConfig::Transformer(_));
            x = self.scaled(x, transformer, mode)?;
        }
        let mut encoded = self.encoder.encode(&x, Some(&source.lengths), mode, need)?;
        if let Some(pooling) = &self.pooling {
            encoded.summary = pooling.forward(&encoded.out, Some(&source.lengths), mode)?;
        }
        Ok(encoded)
    }

    /// Shows it targets (without start and end, which it adds): at every place it is given the
    /// tokens before. The steps' products are made together: the tokens' and the vocabulary's once
    /// for all, and with a fixed context the whole decoder in one call.
    /// Refuses a source of another kind than the configuration's, another number of targets, and tokens beyond the
    /// vocabulary.
    ///
    /// ```
    /// # use regard::prelude::*;
    /// # use regard::layers::{Cell, EncoderConfig, RecurrentConfig};
    /// # use regard::models::{ContextConfig, DecoderConfig, Sentences, Seq2Seq, Seq2SeqConfig};
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
        source: impl Into<Source>,
        target: &Sentences,
        mode: Mode,
    ) -> Result<TeacherForced> {
        self.taught(&source.into(), target, mode, Need::OUTPUT)
    }

    /// As [`Seq2Seq::teach`] in use, with the weights on the source: an alignment of two sequences
    /// that are given.
    /// Refuses a source of another kind than the configuration's, another number of targets, and tokens beyond the
    /// vocabulary.
    ///
    /// ```
    /// # use regard::prelude::*;
    /// # use regard::layers::{Cell, EncoderConfig, RecurrentConfig};
    /// # use regard::models::{ContextConfig, DecoderConfig, Sentences, Seq2Seq, Seq2SeqConfig};
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
    pub fn align(&self, source: impl Into<Source>, target: &Sentences) -> Result<TeacherForced> {
        without_gradients(|| self.taught(&source.into(), target, Mode::Infer, Need::WEIGHTS))
    }

    /// The weights of a Transformer's decoder over what was written before, `[B, H, T, T]` layer by
    /// layer, while it writes these targets: column 0 is the start, row t the place that writes
    /// token t. None where the decoder is another.
    /// Refuses a source of another kind than the configuration's, another number of targets, and tokens beyond the
    /// vocabulary.
    ///
    /// ```
    /// # use regard::prelude::*;
    /// # use regard::layers::EncoderConfig;
    /// # use regard::models::{ContextConfig, DecoderConfig, Sentences, Seq2Seq, Seq2SeqConfig};
    /// # let transformer = TransformerConfig::new(16, 4, 2);
    /// # let (encoder, decoder) =
    /// #     (EncoderConfig::Transformer(transformer.clone()), DecoderConfig::Transformer(transformer));
    /// # let config = Seq2SeqConfig { embedding: 16, ..Seq2SeqConfig::new(
    /// #     10, 12, encoder, decoder, ContextConfig::MultiHead) };
    /// # let model = Seq2Seq::new(&Parameters::new(DType::F32, 1), &config)?;
    /// let source = Sentences::new(&[vec![3, 4, 5]], 0)?;
    /// let target = Sentences::new(&[vec![7, 8]], 0)?;
    /// let own = model.self_attention_weights(&source, &target)?;
    /// // Two layers of four heads; two tokens and the end, over the start and the tokens.
    /// assert_eq!((own.len(), own[0].shape()), (2, &[1, 4, 3, 3][..]));
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn self_attention_weights(
        &self,
        source: impl Into<Source>,
        target: &Sentences,
    ) -> Result<Vec<Tensor>> {
        // Others need not read the source for it.
        if !matches!(self.config.decoder, DecoderConfig::Transformer(_)) {
            return Ok(Vec::new());
        }
        let source = &source.into();
        without_gradients(|| {
            let encoded = self.read(source, Mode::Infer, Need::OUTPUT)?;
            let given = self.shifted(source, target)?.given;
            let y = self.embed_target(&given, Mode::Infer)?;
            self.decoder.self_attention_weights(&y, &encoded, &source.lengths)
        })
    }

    fn taught(
        &self,
        source: &Source,
        target: &Sentences,
        mode: Mode,
        need: Need,
    ) -> Result<TeacherForced> {
        let encoded = self.read(source, mode, Need::OUTPUT)?;
        let Shifted { given, right } = self.shifted(source, target)?;
        let y = self.embed_target(&given, mode)?;
        let decoder_need = self.decoder_need(need);
        let mut written =
            self.decoder.forward(&y, &encoded, &source.lengths, mode, decoder_need)?;
        let logits = self.logits(&written, source)?;
        if !need.weights {
            written.weights.clear();
        }
        finish(logits, right, written)
    }

    /// What is asked of the decoder: its weights too, where words are copied by them.
    fn decoder_need(&self, need: Need) -> Need {
        Need { weights: need.weights || self.copying.is_some(), ..need }
    }

    /// The scores of every word that can be written, `[B, T, V]`; with copying they are
    /// log-probabilities, and behind the vocabulary come the words of the source that it lacks.
    fn logits(&self, written: &Written, source: &Source) -> Result<Tensor> {
        let all: Vec<usize> = (0..source.lengths.len()).collect();
        let copied = match &self.copying {
            Some(_) => Some(Copied { copies: source.check_copies()?, sources: &all }),
            None => None,
        };
        self.mixed(written, copied.as_ref())
    }

    fn mixed(&self, written: &Written, copied: Option<&Copied>) -> Result<Tensor> {
        let logits = self.output.forward(&written.hidden)?;
        match (&self.copying, copied, written.weights.last()) {
            (Some(copying), Some(copied), Some(weights)) => {
                copying.mix(&written.hidden, &logits, weights, copied)
            }
            _ => Ok(logits),
        }
    }

    /// Scheduled sampling: as [`Seq2Seq::teach`], but each token it is given is, with this
    /// probability, its own best one in place of the right one (Bengio and others 2015). A
    /// recurrent decoder goes step by step; another first runs over the right tokens to have its own
    /// (Mihaylova and Martins 2019). Draws from the mode's random numbers, so it wants a
    /// mode that learns.
    /// Refuses what [`Seq2Seq::teach`] refuses, and a probability that is not within 0..=1.
    ///
    /// ```
    /// # use regard::prelude::*;
    /// # use regard::layers::{Cell, EncoderConfig, RecurrentConfig};
    /// # use regard::models::{ContextConfig, DecoderConfig, Sentences, Seq2Seq, Seq2SeqConfig};
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
        source: impl Into<Source>,
        target: &Sentences,
        probability: f64,
        mode: Mode,
    ) -> Result<TeacherForced> {
        let source = &source.into();
        ensure!(
            (0.0..=1.0).contains(&probability),
            "scheduled sampling with a probability of {probability}"
        );
        let Mode::Train(random) = mode else {
            return Err(crate::Error::new("scheduled sampling is for learning, not for use"));
        };
        if probability == 0.0 {
            return self.taught(source, target, mode, Need::OUTPUT);
        }
        let encoded = self.read(source, mode, Need::OUTPUT)?;
        let Shifted { given, right } = self.shifted(source, target)?;
        let swap = || random.number() < probability;
        let mut written = match &self.decoder {
            Decoder::Recurrent(_) => self.write_stepwise(&given, &encoded, source, mode, swap)?,
            _ => self.write_twice(&given, &encoded, source, mode, swap)?,
        };
        let logits = self.logits(&written, source)?;
        written.weights.clear();
        finish(logits, right, written)
    }

    /// Over the right tokens first, then over those that its own take the place of.
    fn write_twice(
        &self,
        given: &Tensor,
        encoded: &Encoded,
        source: &Source,
        mode: Mode,
        swap: impl Fn() -> bool,
    ) -> Result<Written> {
        let (b, t) = (given.shape()[0], given.shape()[1]);
        let need = self.decoder_need(Need::OUTPUT);
        let write = |ids: &Tensor, mode: Mode| {
            let y = self.embed_target(ids, mode)?;
            self.decoder.forward(&y, encoded, &source.lengths, mode, need)
        };
        let own = without_gradients(|| -> Result<Vec<i64>> {
            let written = write(given, Mode::Infer)?;
            self.logits(&written, source)?.max(2)?.1.to_vec::<i64>()
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
        source: &Source,
        mode: Mode,
        swap: impl Fn() -> bool,
    ) -> Result<Written> {
        let (b, t) = (given.shape()[0], given.shape()[1]);
        let ids = given.to_vec::<i64>()?;
        let mut decoding = self.decoder.start(encoded, &source.lengths)?;
        let (mut hidden, mut log_probs, mut weights) = (Vec::new(), Vec::new(), Vec::new());
        let need = self.decoder_need(Need::OUTPUT);
        let mut own: Option<Vec<i64>> = None;
        for step in 0..t {
            let tokens = (0..b).map(|row| match &own {
                Some(own) if swap() => own[row],
                _ => ids[row * t + step],
            });
            let tokens = Tensor::from_vec(tokens.collect(), &[b])?;
            let y = self.embed_target(&tokens, mode)?;
            let written = self.decoder.step(&y, &mut decoding, mode, need)?;
            let logits = without_gradients(|| self.logits(&written, source))?;
            own = Some(logits.max(2)?.1.to_vec::<i64>()?);
            hidden.push(written.hidden);
            log_probs.extend(written.log_prob);
            weights.extend(written.weights);
        }
        let joined = |all: &[Tensor], at| match all.is_empty() {
            true => Ok(None),
            false => Tensor::cat(all, at).map(Some),
        };
        let weights = joined(&weights, 2)?.into_iter().collect();
        Ok(Written { hidden: Tensor::cat(&hidden, 1)?, weights, log_prob: joined(&log_probs, 1)? })
    }

    /// A start before the target, and an end behind it.
    fn shifted(&self, source: &Source, target: &Sentences) -> Result<Shifted> {
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

    /// The vectors of tokens. Beside positions they want to be as large as these, so a Transformer
    /// has them times √width (Vaswani and others 2017); it drops from their sum itself.
    fn scaled(&self, x: Tensor, transformer: bool, mode: Mode) -> Result<Tensor> {
        if transformer {
            return x.scale((self.config.embedding as f64).sqrt());
        }
        mode.dropout(&x, self.config.dropout)
    }

    /// The vectors of tokens that were written; a copied word that the vocabulary lacks is read as
    /// unknown.
    fn embed_target(&self, ids: &Tensor, mode: Mode) -> Result<Tensor> {
        let transformer = matches!(self.config.decoder, DecoderConfig::Transformer(_));
        let (known, unknown) = (self.config.target_vocabulary as i64, self.config.unknown as i64);
        let x = match self.config.copying {
            true => {
                let read = ids.to_vec::<i64>()?.into_iter();
                let read = read.map(|id| if id < known { id } else { unknown });
                self.target.forward(&Tensor::from_vec(read.collect(), ids.shape())?)?
            }
            false => self.target.forward(ids)?,
        };
        self.scaled(x, transformer, mode)
    }

    /// What decoding these sources starts with.
    pub(super) fn start(&self, source: &Source) -> Result<Decoding> {
        let encoded = self.read(source, Mode::Infer, Need::OUTPUT)?;
        let mut decoding = self.decoder.start(&encoded, &source.lengths)?;
        if self.copying.is_some() {
            decoding.copies = Some(source.check_copies()?.clone());
        }
        Ok(decoding)
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
        let written = self.decoder.step(&y, decoding, Mode::Infer, self.decoder_need(need))?;
        let weights = match written.weights.is_empty() || !need.weights {
            true => None,
            false => Some(Tensor::stack(&written.weights, 1)?.squeeze(3)?),
        };
        let share = match (&self.copying, need.weights) {
            (Some(copying), true) => Some(copying.share(&written.hidden)?.squeeze(1)?),
            _ => None,
        };
        let copied = decoding.copies.as_ref();
        let copied = copied.map(|copies| Copied { copies, sources: &decoding.sources });
        let log_probs = self.mixed(&written, copied.as_ref())?.squeeze(1)?.log_softmax(1)?;
        Ok(Next { log_probs, weights, copied: share })
    }
}

/// What was made of targets: scores of every word, and no choice of hard attention where a sequence
/// is padded.
fn finish(logits: Tensor, targets: Tensor, written: Written) -> Result<TeacherForced> {
    let log_prob = match written.log_prob {
        Some(log_prob) => {
            let there: Vec<bool> = targets.to_vec::<i64>()?.iter().map(|&x| x != NOTHING).collect();
            let there =
                Tensor::from_bools(&there, targets.shape())?.to_device(log_prob.device())?;
            Some(there.where_(&log_prob, &Tensor::zeros(&[], log_prob.dtype())?)?)
        }
        None => None,
    };
    Ok(TeacherForced { logits, targets, log_prob, weights: written.weights })
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
    /// `[R]`: the probability with which it is copied, where weights are asked of a model that copies.
    pub(super) copied: Option<Tensor>,
}
