//! What a memory network is made of.

use crate::mode::check_dropout;
use crate::{EncoderConfig, MechanismConfig};
use regard_tensor::{Result, ensure};

/// The most hops.
const MOST_HOPS: usize = 6;

/// What a [`MemoryNetwork`](crate::MemoryNetwork) is made of.
///
/// ```
/// use regard::prelude::*;
/// use regard::models::MemoryNetworkConfig;
/// let config: MemoryNetworkConfig =
///     serde_json::from_str(r#"{ "vocabulary": 40, "answers": 6, "hops": 2 }"#).unwrap();
/// assert_eq!((config.hops, config.width), (2, 64));
/// let error = MemoryNetworkConfig { hops: 9, ..config }.check().unwrap_err().to_string();
/// assert_eq!(error, "a memory network of 9 hops; there are 1 to 6");
/// ```
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
pub struct MemoryNetworkConfig {
    /// How many words there are.
    pub vocabulary: usize,
    /// Width of their vectors.
    pub width: usize,
    /// The word that fills up.
    pub padding: usize,
    /// What makes one vector of a sentence or a question: a sum of its words where it is none, else
    /// a recurrent encoder's last state, the mean of the others.
    pub encoder: EncoderConfig,
    /// Whether a sum weighs each word by its place.
    pub positions: bool,
    /// The ages of sentences that are told apart, counted from the newest; 0 for none.
    pub times: usize,
    /// How often the memory is asked, 1 to 6.
    pub hops: usize,
    /// Whether all hops have the same keys and values.
    pub shared: bool,
    /// Whether the next question is the one before plus what was found, rather than what was found
    /// alone.
    pub carry: bool,
    /// How the memory is attended to.
    pub mechanism: MechanismConfig,
    /// How many answers there are.
    pub answers: usize,
    /// The share left out of words and before the answers during training.
    pub dropout: f64,
}

impl Default for MemoryNetworkConfig {
    fn default() -> Self {
        Self {
            vocabulary: 1000,
            width: 64,
            padding: 0,
            encoder: EncoderConfig::None,
            positions: true,
            times: 50,
            hops: 1,
            shared: false,
            carry: false,
            mechanism: MechanismConfig::default(),
            answers: 10,
            dropout: 0.0,
        }
    }
}

impl MemoryNetworkConfig {
    /// Of this many words, answers and hops.
    ///
    /// ```
    /// use regard::prelude::*;
    /// use regard::models::MemoryNetworkConfig;
    /// assert_eq!(MemoryNetworkConfig::new(40, 6, 3).hops, 3);
    /// ```
    pub fn new(vocabulary: usize, answers: usize, hops: usize) -> Self {
        Self { vocabulary, answers, hops, ..Self::default() }
    }

    /// Refuses what cannot be built, by name. The parts check themselves as they are built.
    ///
    /// ```
    /// use regard::prelude::*;
    /// use regard::models::MemoryNetworkConfig;
    /// let error = MemoryNetworkConfig::new(40, 0, 1).check().unwrap_err().to_string();
    /// assert_eq!(error, "a memory network of 0 answers");
    /// ```
    pub fn check(&self) -> Result<()> {
        ensure!(
            (1..=MOST_HOPS).contains(&self.hops),
            "a memory network of {} hops; there are 1 to {MOST_HOPS}",
            self.hops
        );
        ensure!(self.answers > 0, "a memory network of 0 answers");
        check_dropout(self.dropout)?;
        Ok(())
    }
}
