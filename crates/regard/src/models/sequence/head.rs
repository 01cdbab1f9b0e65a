//! From vectors to scores of classes.

use crate::{Activation, Linear, Mode};
use regard_tensor::{Parameters, Result, Tensor, ensure};

/// Dropout, a hidden layer with ReLU where there is one, and a linear layer.
#[derive(Clone, Debug)]
pub(crate) struct Head {
    hidden: Option<Linear>,
    out: Linear,
    dropout: f64,
}

impl Head {
    pub(crate) fn new(
        parameters: &Parameters,
        width: usize,
        hidden: Option<usize>,
        classes: usize,
        dropout: f64,
    ) -> Result<Self> {
        ensure!(hidden != Some(0), "a hidden layer of width 0");
        let linear = |wide| Linear::new(&parameters.at("hidden"), width, wide, true);
        Ok(Self {
            out: Linear::new(&parameters.at("out"), hidden.unwrap_or(width), classes, true)?,
            hidden: hidden.map(linear).transpose()?,
            dropout,
        })
    }

    /// `[…, width]` → `[…, classes]`
    pub(crate) fn forward(&self, x: &Tensor, mode: Mode) -> Result<Tensor> {
        let x = mode.dropout(x, self.dropout)?;
        match &self.hidden {
            Some(hidden) => {
                let x = hidden.activated(&x, Activation::Relu)?;
                self.out.forward(&mode.dropout(&x, self.dropout)?)
            }
            None => self.out.forward(&x),
        }
    }
}
