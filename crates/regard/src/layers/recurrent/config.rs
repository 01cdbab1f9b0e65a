//! What a recurrent network is made of.

use crate::mode::check_dropout;
use regard_tensor::{Cell, Result, ensure};

/// What a [`Recurrent`](crate::Recurrent) network is made of.
///
/// ```
/// use regard::prelude::*;
/// use regard::layers::{Cell, RecurrentConfig};
/// let config = RecurrentConfig { both_directions: true, ..RecurrentConfig::new(Cell::Gru, 32) };
/// assert_eq!(config.width(), 64);
/// let error = RecurrentConfig { layers: 0, ..config }.check().unwrap_err();
/// assert_eq!(error.to_string(), "a recurrent network of 0 layers");
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
pub struct RecurrentConfig {
    /// The cell f of h_t = f(h_{t−1}, x_t).
    pub cell: Cell,
    /// Width of the state, H.
    pub hidden: usize,
    /// Layers, each over the outputs of the one before.
    pub layers: usize,
    /// Whether each layer also runs from the last vector to the first.
    pub both_directions: bool,
    /// The share left out between layers during training.
    pub dropout: f64,
}

impl Default for RecurrentConfig {
    fn default() -> Self {
        Self { cell: Cell::default(), hidden: 64, layers: 1, both_directions: false, dropout: 0.0 }
    }
}

impl RecurrentConfig {
    /// One layer in one direction.
    ///
    /// ```
    /// use regard::prelude::*;
    /// use regard::layers::{Cell, RecurrentConfig};
    /// let config = RecurrentConfig::new(Cell::Gru, 32);
    /// assert_eq!((config.hidden, config.layers, config.both_directions), (32, 1, false));
    /// ```
    pub fn new(cell: Cell, hidden: usize) -> Self {
        Self { cell, hidden, ..Self::default() }
    }

    /// How many directions there are.
    pub(crate) fn directions(&self) -> usize {
        1 + usize::from(self.both_directions)
    }

    /// Width of the outputs: H, or 2·H with both directions.
    ///
    /// ```
    /// use regard::prelude::*;
    /// use regard::layers::{Cell, RecurrentConfig};
    /// assert_eq!(RecurrentConfig::new(Cell::Gru, 32).width(), 32);
    /// assert_eq!(RecurrentConfig { both_directions: true, ..RecurrentConfig::new(Cell::Gru, 32) }.width(), 64);
    /// ```
    pub fn width(&self) -> usize {
        self.hidden.saturating_mul(self.directions())
    }

    /// Refuses what cannot be built, by name.
    ///
    /// ```
    /// use regard::prelude::*;
    /// use regard::layers::{Cell, RecurrentConfig};
    /// let error = RecurrentConfig::new(Cell::Gru, 0).check().unwrap_err();
    /// assert_eq!(error.to_string(), "a recurrent network of hidden size 0");
    /// ```
    pub fn check(&self) -> Result<()> {
        ensure!(self.hidden > 0, "a recurrent network of hidden size 0");
        ensure!(self.layers > 0, "a recurrent network of 0 layers");
        check_dropout(self.dropout)?;
        Ok(())
    }
}
