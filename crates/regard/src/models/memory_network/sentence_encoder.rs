//! One vector for each sentence.

use super::MemoryNetworkConfig;
use crate::{Embedding, Encoder, EncoderConfig, Mode, Need};
use regard_tensor::{Parameters, Result, Tensor};

#[derive(Clone, Debug)]
pub(super) struct SentenceEncoder {
    embedding: Embedding,
    /// None for the sum of the words.
    encoder: Option<Encoder>,
    positions: bool,
    width: usize,
    dropout: f64,
}

impl SentenceEncoder {
    pub(super) fn new(parameters: &Parameters, config: &MemoryNetworkConfig) -> Result<Self> {
        let MemoryNetworkConfig { vocabulary, width, padding, .. } = *config;
        let embedding =
            Embedding::new(&parameters.at("embedding"), vocabulary, width, Some(padding))?;
        let encoder = match &config.encoder {
            EncoderConfig::None => None,
            encoder => Some(Encoder::new(&parameters.at("encoder"), encoder, width)?),
        };
        let width = encoder.as_ref().map_or(width, Encoder::width);
        let &MemoryNetworkConfig { positions, dropout, .. } = config;
        Ok(Self { embedding, encoder, positions, width, dropout })
    }

    /// Width of a sentence's vector.
    pub(super) fn width(&self) -> usize {
        self.width
    }

    fn embedding_width(&self) -> usize {
        self.embedding.weight.tensor().shape()[1]
    }

    /// Ids `[N, W]` → `[N, width]`, and what the words of each attended to, `[N, H, W, W]` layer by
    /// layer, where that is needed and the encoder attends.
    pub(super) fn forward(
        &self,
        ids: &Tensor,
        mode: Mode,
        need: Need,
    ) -> Result<(Tensor, Vec<Tensor>)> {
        let (n, w) = (ids.shape()[0], ids.shape()[1]);
        let padding = self.embedding.padding.map(|padding| padding as i64);
        let numbers = ids.to_indices("sentences")?;
        let length = |sentence: &[i64]| sentence.iter().rposition(|&id| Some(id) != padding);
        let lengths: Vec<usize> =
            numbers.chunks(w.max(1)).map(|s| length(s).map_or(0, |last| last + 1)).collect();
        // Words of length 1 a feature: with less all sentences look alike at first, and questions never
        // learn to tell them apart.
        let x = self.embedding.forward(ids)?.scale((self.embedding_width() as f64).sqrt())?;
        let x = mode.dropout(&x, self.dropout)?;
        match &self.encoder {
            Some(encoder) => {
                let encoded = encoder.encode(&x, Some(&lengths), mode, need)?;
                Ok((encoded.summary, encoded.weights))
            }
            None if self.positions => Ok((weighted_sum(&x, &lengths, n, w)?, Vec::new())),
            None => Ok((x.sum(1)?, Vec::new())),
        }
    }
}

/// Σⱼ lⱼ ∘ xⱼ with lⱼₖ = (1 − j/J) − (k/D) (1 − 2j/J), j = 1 … J words and k = 1 … D features: a sum
/// that knows the order. It is aⱼ + bⱼ k/D with a = 1 − j/J and b = 2j/J − 1, two plain sums.
fn weighted_sum(x: &Tensor, lengths: &[usize], n: usize, w: usize) -> Result<Tensor> {
    let d = x.shape()[2];
    let factors = |of: fn(f64) -> f64| {
        let one = |&length: &usize| (1..=w).map(move |j| of(j as f64 / length.max(1) as f64));
        let all: Vec<f64> = lengths.iter().flat_map(one).collect();
        Tensor::from_vec(all, &[n, w, 1])?.to_dtype(x.dtype())?.to_device(x.device())
    };
    let feature = Tensor::from_vec((1..=d).map(|k| k as f64 / d as f64).collect::<Vec<_>>(), &[d])?
        .to_dtype(x.dtype())?
        .to_device(x.device())?;
    let a = x.mul(&factors(|share| 1.0 - share)?)?.sum(1)?;
    let b = x.mul(&factors(|share| 2.0 * share - 1.0)?)?.sum(1)?;
    a.add(&b.mul(&feature)?)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use regard_tensor::{DType, Random};

    #[test]
    fn a_sum_that_knows_places_is_the_published_formula() {
        let (n, w, d) = (3, 5, 4);
        let lengths = [5usize, 3, 1];
        let mut numbers =
            Random::new(1).normal(&[n, w, d], 0.0, 1.0, DType::F64).unwrap().to_vec().unwrap();
        for (sentence, &length) in numbers.chunks_mut(w * d).zip(&lengths) {
            sentence[length * d..].fill(0.0);
        }
        let x = Tensor::from_vec(numbers.clone(), &[n, w, d]).unwrap();
        let ours = weighted_sum(&x, &lengths, n, w).unwrap().to_vec::<f64>().unwrap();
        for (s, &length) in lengths.iter().enumerate() {
            for k in 0..d {
                let weight = |j: usize| {
                    let (j, words) = ((j + 1) as f64, length as f64);
                    let k = (k + 1) as f64 / d as f64;
                    (1.0 - j / words) - k * (1.0 - 2.0 * j / words)
                };
                let known: f64 =
                    (0..length).map(|j| weight(j) * numbers[(s * w + j) * d + k]).sum();
                assert!((ours[s * d + k] - known).abs() < 1e-12);
            }
        }
    }
}
