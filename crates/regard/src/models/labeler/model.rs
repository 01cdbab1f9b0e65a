//! The labeler.

use super::LabelerConfig;
use crate::models::sequence::{Head, Reader, ReaderConfig};
use crate::{Encoder, Mode, Need, Sequences};
use regard_tensor::{CrossEntropy, Parameters, Result, Tensor, ensure, without_gradients};

/// One label for each vector of a sequence: reads tokens or vectors, characters where there are
/// any, and scores every label at every place.
///
/// ```
/// use regard::prelude::*;
/// use regard::layers::{Cell, EncoderConfig, RecurrentConfig};
/// use regard::models::{InputConfig, LabelerConfig, SequenceLabeler, Sequences};
/// let encoder = EncoderConfig::Recurrent(RecurrentConfig::new(Cell::Gru, 16));
/// let config = LabelerConfig::new(InputConfig::tokens(100, 8), encoder, 5);
/// let labeler = SequenceLabeler::new(&Parameters::new(DType::F32, 1), &config)?;
/// let ids = Tensor::from_vec(vec![3i64, 1, 4, 1, 5, 0], &[2, 3])?;
/// let sequences = Sequences { lengths: Some(&[3, 2]), ..Sequences::new(&ids) };
/// assert_eq!(labeler.forward(&sequences, Mode::Infer)?.shape(), [2, 3, 5]);
/// assert_eq!(labeler.predict(&sequences)?[1].len(), 2);
/// # Ok::<(), regard::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct SequenceLabeler {
    config: LabelerConfig,
    reader: Reader,
    encoder: Encoder,
    head: Head,
}

/// What a [`SequenceLabeler`] gives.
///
/// ```
/// # use regard::prelude::*;
/// # use regard::layers::EncoderConfig;
/// # use regard::models::{InputConfig, LabelerConfig, SequenceLabeler, Sequences};
/// # let encoder = EncoderConfig::Transformer(TransformerConfig::new(16, 4, 2));
/// # let config = LabelerConfig::new(InputConfig::tokens(100, 8), encoder, 5);
/// # let labeler = SequenceLabeler::new(&Parameters::new(DType::F32, 1), &config)?;
/// # let ids = Tensor::from_vec(vec![3i64, 1, 4, 1, 5, 0], &[2, 3])?;
/// let sequences = Sequences { lengths: Some(&[3, 2]), ..Sequences::new(&ids) };
/// let labeled = labeler.label(&sequences, Mode::Infer, Need::OUTPUT)?;
/// assert_eq!(labeled.logits.shape(), [2, 3, 5]);
/// assert!(labeled.weights.is_empty());
/// # Ok::<(), regard::Error>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Labeled {
    /// Scores of the labels, `[B, N, labels]`; past a sequence's length they mean nothing.
    pub logits: Tensor,
    /// A Transformer's weights `[B, H, N, N]`, block by block, where they were asked for.
    pub weights: Vec<Tensor>,
}

impl SequenceLabeler {
    /// New; refuses what cannot be built, by name.
    ///
    /// ```
    /// use regard::prelude::*;
    /// use regard::layers::EncoderConfig;
    /// use regard::models::{InputConfig, LabelerConfig, SequenceLabeler};
    /// let parameters = Parameters::new(DType::F32, 1);
    /// let alone = LabelerConfig::new(InputConfig::vectors(8), EncoderConfig::None, 5);
    /// SequenceLabeler::new(&parameters, &LabelerConfig { neighbors: Some(1), ..alone })?;
    /// // each vector and one on each side of it
    /// assert_eq!(parameters.numel(), 3 * 8 * 5 + 5);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn new(parameters: &Parameters, config: &LabelerConfig) -> Result<Self> {
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
        let encoder = Encoder::new(&parameters.at("encoder"), &c.encoder, reader.width())?;
        let head = Head::new(parameters, encoder.width(), c.hidden, c.labels, c.dropout)?;
        Ok(Self { config: c.clone(), reader, encoder, head })
    }

    /// How it was made.
    ///
    /// ```
    /// # use regard::prelude::*;
    /// # use regard::layers::EncoderConfig;
    /// # use regard::models::{InputConfig, LabelerConfig, SequenceLabeler, Sequences};
    /// # let encoder = EncoderConfig::Transformer(TransformerConfig::new(16, 4, 2));
    /// # let config = LabelerConfig::new(InputConfig::tokens(100, 8), encoder, 5);
    /// # let labeler = SequenceLabeler::new(&Parameters::new(DType::F32, 1), &config)?;
    /// # let ids = Tensor::from_vec(vec![3i64, 1, 4, 1, 5, 0], &[2, 3])?;
    /// let sequences = Sequences { lengths: Some(&[3, 2]), ..Sequences::new(&ids) };
    /// assert_eq!(labeler.config(), &config);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn config(&self) -> &LabelerConfig {
        &self.config
    }

    /// Scores of the labels, `[B, N, labels]`.
    /// Refuses sequences of another kind, width or vocabulary than the configuration's.
    ///
    /// ```
    /// # use regard::prelude::*;
    /// # use regard::layers::EncoderConfig;
    /// # use regard::models::{InputConfig, LabelerConfig, SequenceLabeler, Sequences};
    /// # let encoder = EncoderConfig::Transformer(TransformerConfig::new(16, 4, 2));
    /// # let config = LabelerConfig::new(InputConfig::tokens(100, 8), encoder, 5);
    /// # let labeler = SequenceLabeler::new(&Parameters::new(DType::F32, 1), &config)?;
    /// # let ids = Tensor::from_vec(vec![3i64, 1, 4, 1, 5, 0], &[2, 3])?;
    /// let sequences = Sequences { lengths: Some(&[3, 2]), ..Sequences::new(&ids) };
    /// assert_eq!(labeler.forward(&sequences, Mode::Infer)?.shape(), [2, 3, 5]);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn forward(&self, sequences: &Sequences, mode: Mode) -> Result<Tensor> {
        Ok(self.label(sequences, mode, Need::OUTPUT)?.logits)
    }

    /// As [`SequenceLabeler::forward`], with the weights of every block and head where they are
    /// needed.
    /// Refuses sequences of another kind, width or vocabulary than the configuration's.
    ///
    /// ```
    /// # use regard::prelude::*;
    /// # use regard::layers::EncoderConfig;
    /// # use regard::models::{InputConfig, LabelerConfig, SequenceLabeler, Sequences};
    /// # let encoder = EncoderConfig::Transformer(TransformerConfig::new(16, 4, 2));
    /// # let config = LabelerConfig::new(InputConfig::tokens(100, 8), encoder, 5);
    /// # let labeler = SequenceLabeler::new(&Parameters::new(DType::F32, 1), &config)?;
    /// # let ids = Tensor::from_vec(vec![3i64, 1, 4, 1, 5, 0], &[2, 3])?;
    /// let sequences = Sequences { lengths: Some(&[3, 2]), ..Sequences::new(&ids) };
    /// let weights = labeler.label(&sequences, Mode::Infer, Need::WEIGHTS)?.weights;
    /// assert_eq!((weights.len(), weights[0].shape()), (2, &[2, 4, 3, 3][..]));
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn label(&self, sequences: &Sequences, mode: Mode, need: Need) -> Result<Labeled> {
        let x = self.reader.forward(sequences, mode)?;
        let encoded = self.encoder.encode(&x, sequences.lengths, mode, need)?;
        let logits = self.head.forward(&encoded.out, mode)?;
        Ok(Labeled { logits, weights: encoded.weights })
    }

    /// The mean loss over all places with a label, for targets `[B, N]`. Padding has none,
    /// whatever its target; a target below 0 says that a place within a sequence has none either.
    /// Refuses sequences of another kind, width or vocabulary than the configuration's, and targets of another shape or
    /// beyond the labels.
    ///
    /// ```
    /// # use regard::prelude::*;
    /// # use regard::layers::EncoderConfig;
    /// # use regard::models::{InputConfig, LabelerConfig, SequenceLabeler, Sequences};
    /// # let encoder = EncoderConfig::Transformer(TransformerConfig::new(16, 4, 2));
    /// # let config = LabelerConfig::new(InputConfig::tokens(100, 8), encoder, 5);
    /// # let labeler = SequenceLabeler::new(&Parameters::new(DType::F32, 1), &config)?;
    /// # let ids = Tensor::from_vec(vec![3i64, 1, 4, 1, 5, 0], &[2, 3])?;
    /// let sequences = Sequences { lengths: Some(&[3, 2]), ..Sequences::new(&ids) };
    /// let loss = |last: i64| -> regard::Result<f64> {
    ///     let targets = Tensor::from_vec(vec![0i64, 1, 2, 3, 4, last], &[2, 3])?;
    ///     labeler.loss(&sequences, &targets, Mode::Infer)?.item()
    /// };
    /// // the last place is padding
    /// assert_eq!(loss(0)?, loss(3)?);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn loss(&self, sequences: &Sequences, targets: &Tensor, mode: Mode) -> Result<Tensor> {
        let logits = self.forward(sequences, mode)?;
        let (b, n) = (logits.shape()[0], logits.shape()[1]);
        ensure!(
            targets.shape() == [b, n],
            "targets of shape {:?} for sequences of shape [{b}, {n}]",
            targets.shape()
        );
        let mut targets = targets.to_indices("the labels")?;
        for (at, target) in targets.iter_mut().enumerate() {
            let length = sequences.lengths.map_or(n, |lengths| lengths[at / n]);
            if at % n >= length || *target < 0 {
                *target = NO_LABEL;
            }
        }
        let rule = CrossEntropy {
            label_smoothing: self.config.label_smoothing,
            ignore_index: Some(NO_LABEL),
        };
        let logits = logits.reshape(&[b * n, self.config.labels])?;
        logits.cross_entropy(&Tensor::from_vec(targets, &[b * n])?, rule)
    }

    /// The best label of each place, sequence by sequence, each as long as it is.
    /// Refuses sequences of another kind, width or vocabulary than the configuration's.
    ///
    /// ```
    /// # use regard::prelude::*;
    /// # use regard::layers::EncoderConfig;
    /// # use regard::models::{InputConfig, LabelerConfig, SequenceLabeler, Sequences};
    /// # let encoder = EncoderConfig::Transformer(TransformerConfig::new(16, 4, 2));
    /// # let config = LabelerConfig::new(InputConfig::tokens(100, 8), encoder, 5);
    /// # let labeler = SequenceLabeler::new(&Parameters::new(DType::F32, 1), &config)?;
    /// # let ids = Tensor::from_vec(vec![3i64, 1, 4, 1, 5, 0], &[2, 3])?;
    /// let sequences = Sequences { lengths: Some(&[3, 2]), ..Sequences::new(&ids) };
    /// let lengths: Vec<_> = labeler.predict(&sequences)?.iter().map(Vec::len).collect();
    /// assert_eq!(lengths, [3, 2]);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn predict(&self, sequences: &Sequences) -> Result<Vec<Vec<usize>>> {
        without_gradients(|| {
            let (_, best) = self.forward(sequences, Mode::Infer)?.max(2)?;
            let (b, n) = (best.shape()[0], best.shape()[1]);
            let best = best.to_vec::<i64>()?;
            let row = |item: usize| {
                let length = sequences.lengths.map_or(n, |lengths| lengths[item]);
                best[item * n..][..length].iter().map(|&label| label as usize).collect()
            };
            Ok((0..b).map(row).collect())
        })
    }
}

/// The target of a place without a label.
const NO_LABEL: i64 = -1;
