//! What a model makes of sequences it is shown.

use regard_tensor::{CrossEntropy, Result, Tensor};

/// What a [`Seq2Seq`](crate::Seq2Seq) makes of a target that it is shown, T being the longest
/// target and its end.
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
/// // three tokens at most, and the end; twelve in the vocabulary
/// assert_eq!((taught.logits.shape(), taught.targets.shape()), (&[2, 4, 12][..], &[2, 4][..]));
/// assert!(taught.log_prob.is_none() && taught.weights.is_empty());
/// # Ok::<(), regard::Error>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TeacherForced {
    /// The scores of every token at every place, `[B, T, V]`; of a model that copies the
    /// log-probabilities `[B, T, V + X]`, with the X words of the sources that the vocabulary lacks.
    pub logits: Tensor,
    /// The tokens that were right, `[B, T]`; −1 where a sequence is padded.
    pub targets: Tensor,
    /// The log-probability of what hard attention chose at every place, `[B, T]`, 0 where a
    /// sequence is padded: what REINFORCE trains.
    pub log_prob: Option<Tensor>,
    /// The weights on the source `[B, H, T, N]`, layer by layer, where they were asked for; a
    /// recurrent decoder has one layer and one head.
    pub weights: Vec<Tensor>,
}

/// The target where a sequence is padded.
pub(super) const NOTHING: i64 = -1;

impl TeacherForced {
    /// The mean cross entropy over all places that are not padded, with a share of the target
    /// spread over all tokens.
    /// Refuses a share that is not within 0..=1.
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
    /// // seven of the eight places are not padded
    /// let mean = taught.losses()?.sum_all()?.item()? / 7.0;
    /// assert!((taught.loss(0.0)?.item()? - mean).abs() < 1e-5);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn loss(&self, label_smoothing: f64) -> Result<Tensor> {
        let (logits, targets) = self.rows()?;
        logits
            .cross_entropy(&targets, CrossEntropy { label_smoothing, ignore_index: Some(NOTHING) })
    }

    /// −ln p of the right token at every place, `[B, T]`, 0 where a sequence is padded.
    /// Refuses only where there is no memory for it.
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
    /// let losses = model.teach(&source, &target, Mode::Infer)?.losses()?.to_vec::<f32>()?;
    /// assert!(losses[2] > 0.0 && losses[3] == 0.0);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn losses(&self) -> Result<Tensor> {
        let (logits, targets) = self.rows()?;
        let rule = CrossEntropy { ignore_index: Some(NOTHING), ..CrossEntropy::default() };
        logits.cross_entropy_rows(&targets, rule)?.reshape(self.targets.shape())
    }

    fn rows(&self) -> Result<(Tensor, Tensor)> {
        let places = self.targets.numel();
        let logits = self.logits.reshape(&[places, self.logits.size(2)?])?;
        Ok((logits, self.targets.reshape(&[places])?))
    }
}
