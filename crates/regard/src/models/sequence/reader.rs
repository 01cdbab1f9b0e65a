//! From a batch of sequences to the vectors that an encoder takes.

use super::characters::Characters;
use super::input::Input;
use super::neighbors::neighbors;
use super::{CharactersConfig, InputConfig, Sequences};
use crate::mode::check_dropout;
use crate::{Mode, length};
use regard_tensor::{Parameters, Result, Tensor, ensure};

/// The part of a model's configuration that says what it reads.
pub(crate) struct ReaderConfig<'a> {
    pub(crate) input: &'a InputConfig,
    pub(crate) characters: Option<&'a CharactersConfig>,
    pub(crate) neighbors: Option<usize>,
    pub(crate) dropout: f64,
}

#[derive(Clone, Debug)]
pub(crate) struct Reader {
    input: Input,
    input_width: usize,
    characters: Option<Characters>,
    reach: usize,
    dropout: f64,
}

impl Reader {
    pub(crate) fn new(parameters: &Parameters, config: &ReaderConfig) -> Result<Self> {
        ensure!(
            config.neighbors != Some(0),
            "a window of 0 neighbors is each vector alone; leave it out for that"
        );
        check_dropout(config.dropout)?;
        let (input, input_width) = Input::new(&parameters.at("input"), config.input)?;
        let characters =
            config.characters.map(|c| Characters::new(&parameters.at("characters"), c));
        let reach = config.neighbors.unwrap_or(0);
        Ok(Self {
            input,
            input_width,
            characters: characters.transpose()?,
            reach,
            dropout: config.dropout,
        })
    }

    /// Width of the vectors it gives.
    pub(crate) fn width(&self) -> usize {
        let characters = self.characters.as_ref().map_or(0, Characters::width);
        let own = self.input_width.saturating_add(characters);
        own.saturating_mul(self.reach.saturating_mul(2).saturating_add(1))
    }

    /// → `[B, N, width]`
    pub(crate) fn forward(&self, sequences: &Sequences, mode: Mode) -> Result<Tensor> {
        let Sequences { x, lengths, characters } = *sequences;
        let x = self.input.vectors(x, self.input_width)?;
        let (b, n) = (x.shape()[0], x.shape()[1]);
        length::check("sequences", lengths, b, n)?;
        // Given vectors may hold anything past the lengths, even NaN: no gradient should meet it.
        let x = length::without_padding(&x, length::keep(lengths, n, x.device())?.as_ref())?;
        let x = match (&self.characters, characters) {
            (Some(own), Some(ids)) => Tensor::cat(&[x, own.vectors(ids, b, n, mode)?], 2)?,
            (None, None) => x,
            (Some(_), None) => {
                return Err(crate::Error::new("the model reads characters, was given none"));
            }
            (None, Some(_)) => {
                return Err(crate::Error::new("the model reads no characters, was given some"));
            }
        };
        let x = mode.dropout(&x, self.dropout)?;
        if self.reach == 0 { Ok(x) } else { neighbors(&x, self.reach) }
    }
}
