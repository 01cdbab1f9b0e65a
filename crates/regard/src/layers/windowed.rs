//! Truncated self-attention.

use super::{MultiHeadAttention, MultiHeadConfig};
use crate::{Attended, Mask, Mode, Need};
use regard_kernels::Window;
use regard_tensor::{Parameters, Result, Tensor, ensure};

/// What a [`WindowedSelfAttention`] is made of.
///
/// ```
/// use regard::prelude::*;
/// use regard::layers::WindowedConfig;
/// let config: WindowedConfig = serde_json::from_str(r#"{ "window": 2 }"#).unwrap();
/// assert_eq!(config, WindowedConfig { width: 64, heads: 4, window: 2, dropout: 0.0 });
/// ```
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
pub struct WindowedConfig {
    /// Width of the vectors.
    pub width: usize,
    /// Heads; they divide the width.
    pub heads: usize,
    /// How far a query sees, on both sides; at least 1.
    pub window: usize,
    /// The share of weights left out during training.
    pub dropout: f64,
}

impl WindowedConfig {
    /// Heads of a width that see so far to both sides, without dropout.
    ///
    /// ```
    /// use regard::layers::WindowedConfig;
    /// let config = WindowedConfig { dropout: 0.1, ..WindowedConfig::new(32, 8, 3) };
    /// assert_eq!((config.width, config.heads, config.window), (32, 8, 3));
    /// ```
    pub fn new(width: usize, heads: usize, window: usize) -> Self {
        Self { width, heads, window, ..Self::default() }
    }
}

impl Default for WindowedConfig {
    fn default() -> Self {
        Self { width: 64, heads: 4, window: 8, dropout: 0.0 }
    }
}

/// Truncated self-attention: query i sees the keys j with |i − j| ≤ window, so that its work grows
/// with N · window and not with N².
///
/// ```
/// use regard::prelude::*;
/// use regard::layers::{WindowedConfig, WindowedSelfAttention};
/// let config = WindowedConfig { width: 8, heads: 2, window: 1, dropout: 0.0 };
/// let windowed = WindowedSelfAttention::new(&Parameters::new(DType::F32, 1), &config)?;
/// let x = Random::new(1).normal(&[1, 4, 8], 0.0, 1.0, DType::F32)?;
/// let attended = windowed.attend(&x, &Mask::none(), Mode::Infer, Need::WEIGHTS)?;
/// assert_eq!(attended.out.shape(), [1, 4, 8]);
/// let far = attended.weights.unwrap().select(1, 0)?.select(1, 0)?.to_vec::<f32>()?;
/// assert_eq!(far[2..], [0.0, 0.0]);
/// # Ok::<(), regard::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct WindowedSelfAttention {
    /// What attends.
    pub attention: MultiHeadAttention,
    window: usize,
}

impl WindowedSelfAttention {
    /// New; refuses a window of 0, in which each vector would see itself alone.
    ///
    /// ```
    /// use regard::prelude::*;
    /// use regard::layers::{WindowedConfig, WindowedSelfAttention};
    /// let config = WindowedConfig { window: 0, ..WindowedConfig::default() };
    /// let error = WindowedSelfAttention::new(&Parameters::new(DType::F32, 1), &config).unwrap_err();
    /// assert_eq!(error.to_string(), "a window of 0: each vector would see itself alone");
    /// ```
    pub fn new(parameters: &Parameters, config: &WindowedConfig) -> Result<Self> {
        ensure!(config.window > 0, "a window of 0: each vector would see itself alone");
        let inner = MultiHeadConfig {
            dropout: config.dropout,
            ..MultiHeadConfig::new(config.width, config.heads)
        };
        Ok(Self { attention: MultiHeadAttention::new(parameters, &inner)?, window: config.window })
    }

    /// x `[B, N, width]` → `[B, N, width]`; a mask (padding, causal) may leave out more.
    /// Refuses an input of another width or type, and a mask of another shape.
    ///
    /// ```
    /// # use regard::prelude::*;
    /// # use regard::layers::{WindowedConfig, WindowedSelfAttention};
    /// # let config = WindowedConfig { width: 8, heads: 2, window: 1, dropout: 0.0 };
    /// # let windowed = WindowedSelfAttention::new(&Parameters::new(DType::F64, 1), &config)?;
    /// let x = Random::new(1).normal(&[1, 9, 8], 0.0, 1.0, DType::F64)?;
    /// let whole = windowed.forward(&x, &Mask::none(), Mode::Infer)?;
    /// // the first vector sees the second and no other
    /// let two = windowed.forward(&x.narrow(1, 0, 2)?, &Mask::none(), Mode::Infer)?;
    /// assert!(whole.select(1, 0)?.squared_error(&two.select(1, 0)?)?.item()? < 1e-20);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn forward(&self, x: &Tensor, mask: &Mask, mode: Mode) -> Result<Tensor> {
        Ok(self.attend(x, mask, mode, Need::OUTPUT)?.out)
    }

    /// As [`WindowedSelfAttention::forward`], with the weights `[B, H, N, N]` where they are needed.
    /// Refuses an input of another width or type, and a mask of another shape.
    ///
    /// ```
    /// # use regard::prelude::*;
    /// # use regard::layers::{WindowedConfig, WindowedSelfAttention};
    /// # let config = WindowedConfig { width: 8, heads: 2, window: 1, dropout: 0.0 };
    /// # let windowed = WindowedSelfAttention::new(&Parameters::new(DType::F64, 1), &config)?;
    /// let x = Random::new(1).normal(&[1, 4, 8], 0.0, 1.0, DType::F64)?;
    /// let seen = windowed.attend(&x, &Mask::causal(), Mode::Infer, Need::WEIGHTS)?.weights.unwrap();
    /// // causal too: the second vector sees the first and itself
    /// assert_eq!(seen.select(1, 0)?.select(1, 1)?.to_vec::<f64>()?[2..], [0.0, 0.0]);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn attend(&self, x: &Tensor, mask: &Mask, mode: Mode, need: Need) -> Result<Attended> {
        let reach = |given: Option<usize>| given.map_or(self.window, |g| g.min(self.window));
        let window = Window {
            left: reach(mask.window.map(|w| w.left)),
            right: reach(mask.window.map(|w| w.right)),
        };
        let mask = Mask { window: Some(window), ..mask.clone() };
        self.attention.attend(x, x, x, &mask, mode, need)
    }
}
