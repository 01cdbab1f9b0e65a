//! The classifier.

use super::{ClassifierConfig, ClassifierPooling};
use crate::models::sequence::{Head, Reader, ReaderConfig};
use crate::{Attended, Encoder, Mode, Need, Pooling, Sequences};
use regard_tensor::{
    CrossEntropy, Init, Parameter, Parameters, Result, Tensor, ensure, without_gradients,
};

/// One class for a whole sequence: an encoder, one vector of all it gives, and a score for every
/// class.
///
/// ```
/// use regard::prelude::*;
/// use regard::layers::EncoderConfig;
/// use regard::models::{ClassifierConfig, ClassifierPooling, InputConfig, SequenceClassifier, Sequences};
/// let encoder = EncoderConfig::Transformer(TransformerConfig::new(16, 4, 2));
/// let config = ClassifierConfig {
///     pooling: ClassifierPooling::Attention(MechanismConfig::default()),
///     ..ClassifierConfig::new(InputConfig::vectors(8), encoder, 3)
/// };
/// let classifier = SequenceClassifier::new(&Parameters::new(DType::F32, 1), &config)?;
/// let x = Random::new(1).normal(&[2, 7, 8], 0.0, 1.0, DType::F32)?;
/// let sequences = Sequences { lengths: Some(&[7, 4]), ..Sequences::new(&x) };
/// let classified = classifier.classify(&sequences, Mode::Infer, Need::WEIGHTS)?;
/// assert_eq!(classified.logits.shape(), [2, 3]);
/// assert_eq!(classified.weights[1].shape(), [2, 4, 7, 7]);
/// assert_eq!(classified.pooling.unwrap().shape(), [2, 7]);
/// assert_eq!(classifier.predict(&sequences)?.len(), 2);
/// # Ok::<(), regard::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct SequenceClassifier {
    config: ClassifierConfig,
    reader: Reader,
    encoder: Encoder,
    summary: Summary,
    head: Head,
}

#[derive(Clone, Debug)]
enum Summary {
    /// `[1, width]`, before each sequence.
    ClassToken(Parameter),
    /// A recurrent encoder's last state, another's last vector.
    Last(Pooling),
    Pooling(Pooling),
}

/// What a classifier gives: [`SequenceClassifier`], [`VisionTransformer`](crate::VisionTransformer)
/// and [`GraphAttentionNetwork`](crate::GraphAttentionNetwork).
///
/// ```
/// # use regard::prelude::*;
/// # use regard::layers::EncoderConfig;
/// # use regard::models::{ClassifierConfig, InputConfig, SequenceClassifier, Sequences};
/// # let config = ClassifierConfig::new(InputConfig::tokens(100, 8), EncoderConfig::None, 3);
/// # let classifier = SequenceClassifier::new(&Parameters::new(DType::F32, 1), &config)?;
/// # let ids = Tensor::from_vec(vec![3i64, 1, 4, 1, 5, 0], &[2, 3])?;
/// let sequences = Sequences { lengths: Some(&[3, 2]), ..Sequences::new(&ids) };
/// let classified = classifier.classify(&sequences, Mode::Infer, Need::WEIGHTS)?;
/// assert_eq!(classified.logits.shape(), [2, 3]);
/// // the mean takes as much of each, and nothing of the padding
/// assert_eq!(classified.pooling.unwrap().select(0, 1)?.to_vec::<f32>()?, [0.5, 0.5, 0.0]);
/// # Ok::<(), regard::Error>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Classified {
    /// Scores of the classes, `[B, classes]`; of nodes `[N, classes]`.
    pub logits: Tensor,
    /// A Transformer's weights `[B, H, N, N]`, block by block, where they were asked for; the
    /// class token comes first and makes them one longer. A graph's are `[E, H]`, layer by layer.
    pub weights: Vec<Tensor>,
    /// How much of each vector the pooling took, `[B, N]`, where it was asked for and there is
    /// such a thing: not for a class token or the last state of a recurrent encoder. Of a gate, how
    /// far it is open, on average over the features. `[B, M, N]` with M queries.
    pub pooling: Option<Tensor>,
    /// The vector that a hard pooling chose, `[B]`, or `[B, M]` with M queries; −1 where there was none.
    pub index: Option<Tensor>,
    /// The log-probability of that choice, `[B]`; its gradient trains the scores.
    pub log_prob: Option<Tensor>,
}

impl Classified {
    /// Without a pooling that weighs.
    pub(crate) fn new(logits: Tensor, weights: Vec<Tensor>) -> Self {
        Self { logits, weights, pooling: None, index: None, log_prob: None }
    }
}

impl SequenceClassifier {
    /// New; refuses what cannot be built, by name.
    ///
    /// ```
    /// use regard::prelude::*;
    /// use regard::layers::EncoderConfig;
    /// use regard::models::{ClassifierConfig, InputConfig, SequenceClassifier};
    /// let parameters = Parameters::new(DType::F32, 1);
    /// let config = ClassifierConfig::new(InputConfig::tokens(100, 8), EncoderConfig::None, 3);
    /// SequenceClassifier::new(&parameters, &config)?;
    /// // the tokens' vectors, then weights and bias of the classes
    /// assert_eq!(parameters.numel(), 100 * 8 + 8 * 3 + 3);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn new(parameters: &Parameters, config: &ClassifierConfig) -> Result<Self> {
        config.check()?;
        let c = config;
        let reader = Reader::new(
            parameters,
            &ReaderConfig {
                input: &c.input,
                characters: c.characters.as_ref(),
                neighbors: c.neighbors,
                dropout: c.dropout,
            },
        )?;
        let wide = reader.width();
        let encoder = Encoder::new(&parameters.at("encoder"), &c.encoder, wide)?;
        let summary = match c.pooling.pooling() {
            None => {
                let init = Init::Normal((wide as f64).powf(-0.5));
                Summary::ClassToken(parameters.parameter("class_token", &[1, wide], init)?)
            }
            Some(pooling) => {
                let pooling = Pooling::new(&parameters.at("pooling"), &pooling, encoder.width())?;
                match c.pooling {
                    ClassifierPooling::Last => Summary::Last(pooling),
                    _ => Summary::Pooling(pooling),
                }
            }
        };
        let width = match &summary {
            Summary::ClassToken(_) | Summary::Last(_) => encoder.width(),
            Summary::Pooling(pooling) => pooling.width(),
        };
        let head = Head::new(parameters, width, c.hidden, c.classes, c.dropout)?;
        Ok(Self { config: c.clone(), reader, encoder, summary, head })
    }

    /// How it was made.
    ///
    /// ```
    /// # use regard::prelude::*;
    /// # use regard::layers::EncoderConfig;
    /// # use regard::models::{ClassifierConfig, InputConfig, SequenceClassifier, Sequences};
    /// # let config = ClassifierConfig::new(InputConfig::tokens(100, 8), EncoderConfig::None, 3);
    /// # let classifier = SequenceClassifier::new(&Parameters::new(DType::F32, 1), &config)?;
    /// # let ids = Tensor::from_vec(vec![3i64, 1, 4, 1, 5, 0], &[2, 3])?;
    /// let sequences = Sequences { lengths: Some(&[3, 2]), ..Sequences::new(&ids) };
    /// assert_eq!(classifier.config(), &config);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn config(&self) -> &ClassifierConfig {
        &self.config
    }

    /// Scores of the classes, `[B, classes]`.
    /// Refuses sequences of another kind, width or vocabulary than the configuration's.
    ///
    /// ```
    /// # use regard::prelude::*;
    /// # use regard::layers::EncoderConfig;
    /// # use regard::models::{ClassifierConfig, InputConfig, SequenceClassifier, Sequences};
    /// # let config = ClassifierConfig::new(InputConfig::tokens(100, 8), EncoderConfig::None, 3);
    /// # let classifier = SequenceClassifier::new(&Parameters::new(DType::F32, 1), &config)?;
    /// # let ids = Tensor::from_vec(vec![3i64, 1, 4, 1, 5, 0], &[2, 3])?;
    /// let sequences = Sequences { lengths: Some(&[3, 2]), ..Sequences::new(&ids) };
    /// assert_eq!(classifier.forward(&sequences, Mode::Infer)?.shape(), [2, 3]);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn forward(&self, sequences: &Sequences, mode: Mode) -> Result<Tensor> {
        Ok(self.classify(sequences, mode, Need::OUTPUT)?.logits)
    }

    /// As [`SequenceClassifier::forward`], with the weights of every block and head and of the
    /// pooling where they are needed.
    /// Refuses sequences of another kind, width or vocabulary than the configuration's.
    ///
    /// ```
    /// # use regard::prelude::*;
    /// # use regard::layers::EncoderConfig;
    /// # use regard::models::{ClassifierConfig, ClassifierPooling, InputConfig, SequenceClassifier, Sequences};
    /// let encoder = EncoderConfig::Transformer(TransformerConfig::new(16, 4, 2));
    /// let config = ClassifierConfig {
    ///     pooling: ClassifierPooling::ClassToken,
    ///     ..ClassifierConfig::new(InputConfig::vectors(8), encoder, 3)
    /// };
    /// let classifier = SequenceClassifier::new(&Parameters::new(DType::F32, 1), &config)?;
    /// let x = Tensor::zeros(&[2, 7, 8], DType::F32)?;
    /// let classified = classifier.classify(&Sequences::new(&x), Mode::Infer, Need::WEIGHTS)?;
    /// // seven vectors and the class token before them
    /// assert_eq!(classified.weights[0].shape(), [2, 4, 8, 8]);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn classify(&self, sequences: &Sequences, mode: Mode, need: Need) -> Result<Classified> {
        let x = self.reader.forward(sequences, mode)?;
        let lengths = sequences.lengths;
        let (pooled, weights) = match &self.summary {
            Summary::ClassToken(token) => {
                let token = token.tensor().broadcast_to(&[x.shape()[0], 1, x.shape()[2]])?;
                let longer =
                    lengths.map(|all| all.iter().map(|n| n.saturating_add(1)).collect::<Vec<_>>());
                let x = Tensor::cat(&[token, x], 1)?;
                let encoded = self.encoder.encode(&x, longer.as_deref(), mode, need)?;
                (Attended::from(encoded.out.select(1, 0)?), encoded.weights)
            }
            Summary::Last(pooling) => {
                let encoded = self.encoder.encode(&x, lengths, mode, need)?;
                let pooled = match encoded.state {
                    Some(_) => encoded.summary.into(),
                    None => pooling.pool(&encoded.out, lengths, mode, need)?,
                };
                (pooled, encoded.weights)
            }
            Summary::Pooling(pooling) => {
                let encoded = self.encoder.encode(&x, lengths, mode, need)?;
                (pooling.pool(&encoded.out, lengths, mode, need)?, encoded.weights)
            }
        };
        Ok(Classified {
            logits: self.head.forward(&pooled.out, mode)?,
            weights,
            pooling: pooled.weights,
            index: pooled.index,
            log_prob: pooled.log_prob,
        })
    }

    /// The mean loss for targets `[B]`.
    /// Refuses sequences of another kind, width or vocabulary than the configuration's, and targets that are no classes.
    ///
    /// ```
    /// # use regard::prelude::*;
    /// # use regard::layers::EncoderConfig;
    /// # use regard::models::{ClassifierConfig, InputConfig, SequenceClassifier, Sequences};
    /// # let config = ClassifierConfig::new(InputConfig::tokens(100, 8), EncoderConfig::None, 3);
    /// # let classifier = SequenceClassifier::new(&Parameters::new(DType::F32, 1), &config)?;
    /// # let ids = Tensor::from_vec(vec![3i64, 1, 4, 1, 5, 0], &[2, 3])?;
    /// let sequences = Sequences { lengths: Some(&[3, 2]), ..Sequences::new(&ids) };
    /// let targets = Tensor::from_vec(vec![0i64, 2], &[2])?;
    /// let loss = classifier.loss(&sequences, &targets, Mode::Infer)?;
    /// assert!(loss.item()? > 0.0 && loss.has_gradient());
    /// let error = classifier.loss(&sequences, &ids, Mode::Infer).unwrap_err();
    /// assert_eq!(error.to_string(), "targets of shape [2, 3] for 2 sequences");
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn loss(&self, sequences: &Sequences, targets: &Tensor, mode: Mode) -> Result<Tensor> {
        let logits = self.forward(sequences, mode)?;
        ensure!(
            targets.shape() == [logits.shape()[0]],
            "targets of shape {:?} for {} sequences",
            targets.shape(),
            logits.shape()[0]
        );
        let rule = CrossEntropy {
            label_smoothing: self.config.label_smoothing,
            ..CrossEntropy::default()
        };
        logits.cross_entropy(targets, rule)
    }

    /// The best class of each sequence.
    /// Refuses sequences of another kind, width or vocabulary than the configuration's.
    ///
    /// ```
    /// # use regard::prelude::*;
    /// # use regard::layers::EncoderConfig;
    /// # use regard::models::{ClassifierConfig, InputConfig, SequenceClassifier, Sequences};
    /// # let config = ClassifierConfig::new(InputConfig::tokens(100, 8), EncoderConfig::None, 3);
    /// # let classifier = SequenceClassifier::new(&Parameters::new(DType::F32, 1), &config)?;
    /// # let ids = Tensor::from_vec(vec![3i64, 1, 4, 1, 5, 0], &[2, 3])?;
    /// let sequences = Sequences { lengths: Some(&[3, 2]), ..Sequences::new(&ids) };
    /// let classes = classifier.predict(&sequences)?;
    /// assert!(classes.len() == 2 && classes.iter().all(|&class| class < 3));
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn predict(&self, sequences: &Sequences) -> Result<Vec<usize>> {
        without_gradients(|| {
            let (_, best) = self.forward(sequences, Mode::Infer)?.max(1)?;
            Ok(best.to_vec::<i64>()?.into_iter().map(|class| class as usize).collect())
        })
    }
}
