//! Copying: the attention weights are a distribution over the source's words, mixed with the
//! vocabulary's (See, Liu and Manning 2017).
//!
//! P(w) = g · softmax(logits)_w + (1 − g) · Σ_{i: source_i = w} a_i, with g = σ(vᵀ h + b) of what the
//! output is made of, and a the weights of the last layer, the mean of its heads.

use super::Copies;
use crate::{Activation, Linear};
use regard_tensor::{Parameters, Result, Tensor};

/// What keeps the logarithm of a word that neither the vocabulary nor the source has finite.
const FLOOR: f64 = 1e-10;

#[derive(Clone, Debug)]
pub(super) struct Copying {
    gate: Linear,
}

/// Who copies from where: for each row of the decoder the words of its source.
pub(super) struct Copied<'a> {
    pub(super) copies: &'a Copies,
    /// The source of each row.
    pub(super) sources: &'a [usize],
}

impl Copying {
    pub(super) fn new(parameters: &Parameters, width: usize) -> Result<Self> {
        Ok(Self { gate: Linear::new(parameters, width, 1, true)? })
    }

    /// 1 − g `[B, T]`: the probability with which each word is copied.
    pub(super) fn share(&self, hidden: &Tensor) -> Result<Tensor> {
        let generate = self.gate.activated(hidden, Activation::Sigmoid)?;
        generate.scale(-1.0)?.shift(1.0)?.squeeze(2)
    }

    /// ln P `[B, T, V + X]`, X being the words that the vocabulary lacks, of the output's hidden
    /// vectors `[B, T, width]`, its logits `[B, T, V]` and the weights `[B, H, T, N]`.
    pub(super) fn mix(
        &self,
        hidden: &Tensor,
        logits: &Tensor,
        weights: &Tensor,
        copied: &Copied,
    ) -> Result<Tensor> {
        let (b, t, v) = (logits.shape()[0], logits.shape()[1], logits.shape()[2]);
        let words = copied.copies.words(v);
        let generate = self.gate.activated(hidden, Activation::Sigmoid)?;
        let vocabulary = logits.softmax(2)?.mul(&generate)?;
        let vocabulary = match words - v {
            0 => vocabulary,
            more => {
                let none = Tensor::zeros(&[b, t, more], logits.dtype())?;
                Tensor::cat(&[vocabulary, none.to_device(logits.device())?], 2)?
            }
        };
        let copy = generate.scale(-1.0)?.shift(1.0)?;
        let found = by_word(&weights.mean(1)?, copied, words)?.mul(&copy)?;
        vocabulary.add(&found)?.shift(FLOOR)?.ln()
    }
}

/// The weights `[B, T, N]` of each source's words added up, `[B, T, words]`.
fn by_word(weights: &Tensor, copied: &Copied, words: usize) -> Result<Tensor> {
    let (b, t, n) = (weights.shape()[0], weights.shape()[1], weights.shape()[2]);
    let word = |row: usize, at: usize| {
        // Where a source is padded its weights are 0.
        let id = copied.copies.ids[copied.sources[row]].get(at).copied().unwrap_or(0);
        (row * words + id) as i64
    };
    let index = (0..b).flat_map(|row| (0..n).map(move |at| (row, at)));
    let index = Tensor::from_vec(index.map(|(row, at)| word(row, at)).collect(), &[b * n])?;
    let columns = weights.transpose(1, 2)?.reshape(&[b * n, t])?;
    columns.segment_sum(&index, b * words)?.reshape(&[b, words, t])?.transpose(1, 2)
}
