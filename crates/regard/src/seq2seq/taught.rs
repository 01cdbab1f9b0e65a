//! What a model makes of sequences it is shown.

use regard_tensor::{CrossEntropy, Result, Tensor};

/// What a [`Seq2Seq`](crate::Seq2Seq) makes of a target that it is shown, T being the longest
/// target and its end.
#[derive(Clone, Debug)]
pub struct Taught {
    /// The scores of every token at every place, `[B, T, V]`.
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

impl Taught {
    /// The mean cross entropy over all places that are not padded, with a share of the target
    /// spread over all tokens.
    pub fn loss(&self, label_smoothing: f64) -> Result<Tensor> {
        let (logits, targets) = self.rows()?;
        logits
            .cross_entropy(&targets, CrossEntropy { label_smoothing, ignore_index: Some(NOTHING) })
    }

    /// −ln p of the right token at every place, `[B, T]`, 0 where a sequence is padded.
    pub fn losses(&self) -> Result<Tensor> {
        let (logits, targets) = self.rows()?;
        let rule = CrossEntropy { ignore_index: Some(NOTHING), ..CrossEntropy::default() };
        logits.cross_entropy_rows(&targets, rule)?.reshape(self.targets.shape())
    }

    fn rows(&self) -> Result<(Tensor, Tensor)> {
        let places = self.targets.count();
        let logits = self.logits.reshape(&[places, self.logits.size(2)?])?;
        Ok((logits, self.targets.reshape(&[places])?))
    }
}
