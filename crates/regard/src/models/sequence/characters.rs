//! What a word looks like, letter by letter.

use crate::{
    ConvolutionConfig, Embedding, Encoder, EncoderConfig, Mode, Need, Pooling, PoolingConfig,
    Position,
};
use regard_tensor::{DType, Parameters, Result, Tensor, ensure};

/// Features of a word from its characters: a vector per character, an encoder over the word, and
/// one vector of it all. That is the last state of a recurrent encoder, of both directions where
/// there are two, and the largest number of each feature for the other kinds.
///
/// ```
/// use regard::prelude::*;
/// use regard::layers::EncoderConfig;
/// use regard::models::CharactersConfig;
/// let config: CharactersConfig = serde_json::from_str(r#"{ "vocabulary": 80 }"#).unwrap();
/// assert!(matches!(config.encoder, EncoderConfig::Cnn(_)));
/// ```
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
pub struct CharactersConfig {
    /// How many characters there are.
    pub vocabulary: usize,
    /// Width of their vectors.
    pub width: usize,
    /// The character that fills up a word shorter than the longest.
    pub padding: usize,
    /// What goes over a word.
    pub encoder: EncoderConfig,
}

impl Default for CharactersConfig {
    fn default() -> Self {
        let cnn =
            ConvolutionConfig { layers: 1, position: Position::None, ..ConvolutionConfig::new(32) };
        Self { vocabulary: 256, width: 16, padding: 0, encoder: EncoderConfig::Cnn(cnn) }
    }
}

impl CharactersConfig {
    /// Of this many characters, with a small CNN.
    ///
    /// ```
    /// use regard::prelude::*;
    /// use regard::models::CharactersConfig;
    /// let config = CharactersConfig::new(80);
    /// assert_eq!(config, CharactersConfig { vocabulary: 80, ..Default::default() });
    /// ```
    pub fn new(vocabulary: usize) -> Self {
        Self { vocabulary, ..Self::default() }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Characters {
    embedding: Embedding,
    encoder: Encoder,
    pooling: Pooling,
}

impl Characters {
    pub(super) fn new(parameters: &Parameters, config: &CharactersConfig) -> Result<Self> {
        let CharactersConfig { vocabulary, width, padding, encoder } = config;
        let at = |name: &str| parameters.at(name);
        let build = || {
            let embedding = Embedding::new(&at("embedding"), *vocabulary, *width, Some(*padding))?;
            let encoder = Encoder::new(&at("encoder"), encoder, *width)?;
            let pooling = Pooling::new(&at("pooling"), &PoolingConfig::Max, encoder.width())?;
            Ok(Self { embedding, encoder, pooling })
        };
        build().map_err(|error: crate::Error| error.within("characters"))
    }

    pub(super) fn width(&self) -> usize {
        self.encoder.width()
    }

    /// The characters of each word `[B, N, C]` → `[B, N, width]`; zeros for a word of none.
    pub(super) fn vectors(&self, ids: &Tensor, b: usize, n: usize, mode: Mode) -> Result<Tensor> {
        ensure!(
            ids.rank() == 3
                && ids.shape()[..2] == [b, n]
                && matches!(ids.dtype(), DType::I64 | DType::U32),
            "characters: {} {:?} for words of shape [{b}, {n}]; they want ids [{b}, {n}, C]",
            ids.dtype(),
            ids.shape()
        );
        let c = ids.shape()[2];
        if b * n * c == 0 {
            let weight = self.embedding.weight.tensor();
            return Tensor::zeros(&[b, n, self.width()], weight.dtype())?
                .to_device(weight.device());
        }
        let padding = self.embedding.padding.map(|padding| padding as i64);
        let numbers = ids.to_indices("characters")?;
        let length = |word: &[i64]| word.iter().rposition(|&id| Some(id) != padding);
        let lengths = numbers.chunks(c).map(|word| length(word).map_or(0, |last| last + 1));
        let lengths: Vec<usize> = lengths.collect();
        let x = self.embedding.forward(&ids.reshape(&[b * n, c])?)?;
        let encoded = self.encoder.encode(&x, Some(&lengths), mode, Need::OUTPUT)?;
        let words = match encoded.state {
            Some(_) => encoded.summary,
            None => self.pooling.forward(&encoded.out, Some(&lengths), mode)?,
        };
        words.reshape(&[b, n, self.width()])
    }
}
