//! Positions that are added to the input.

use super::position::PositionTable;
use super::{Position, sinusoids};
use regard_tensor::{Init, Parameter, Parameters, Result, Tensor, ensure};

/// What is added to the vectors of a sequence so that they know their place.
#[derive(Clone, Debug)]
pub(crate) enum PositionalEncoding {
    /// Nothing: the model knows otherwise, or not at all.
    None,
    Sinusoidal(PositionTable),
    /// `[longest, width]`
    Learned(Parameter),
}

impl PositionalEncoding {
    pub(crate) fn new(
        parameters: &Parameters,
        position: Position,
        longest: usize,
        width: usize,
    ) -> Result<Self> {
        Ok(match position {
            Position::None | Position::Rotary | Position::Alibi | Position::Relative => Self::None,
            Position::Sinusoidal => Self::Sinusoidal(PositionTable::default()),
            Position::Learned => {
                ensure!(longest > 0, "learned positions for a longest sequence of 0");
                let init = Init::Normal(0.02);
                Self::Learned(parameters.parameter("positions", &[longest, width], init)?)
            }
        })
    }

    /// x `[B, N, D]` with the positions from `start` on added.
    pub(crate) fn add(&self, x: &Tensor, start: usize) -> Result<Tensor> {
        let (n, width) = (x.shape()[1], x.shape()[2]);
        match self {
            Self::None => Ok(x.clone()),
            Self::Sinusoidal(table) => {
                let make = |start, n| sinusoids(start, n, width, x.dtype());
                x.add(&table.rows(start, n, x, make)?)
            }
            Self::Learned(all) => {
                let all = all.tensor();
                let longest = all.shape()[0];
                ensure!(
                    start.saturating_add(n) <= longest,
                    "a sequence of {} vectors; there are learned positions for {longest}",
                    start.saturating_add(n)
                );
                x.add(&all.narrow(0, start, n)?)
            }
        }
    }
}
