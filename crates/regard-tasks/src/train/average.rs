//! A running mean of the parameters, which is often better than their last values (Polyak and
//! Juditsky 1992).

use regard::Tensor;
use regard::tensor::{Parameter, Parameters, lerp_all};
use regard_data::Result;
use std::collections::BTreeMap;

/// A running mean of the parameters.
pub(super) struct Average {
    keep: f64,
    parameters: Vec<Parameter>,
    means: Vec<Tensor>,
}

/// The values as they are; a step leaves these copies alone.
fn values(parameters: &[Parameter]) -> Vec<Tensor> {
    parameters.iter().map(|p| p.tensor().detach()).collect()
}

impl Average {
    /// From the values as they are.
    pub(super) fn new(parameters: &Parameters, keep: f64) -> Self {
        let parameters = parameters.all();
        let means = values(&parameters);
        Self { keep, parameters, means }
    }

    /// Takes the values after a step; the first ones weigh more, so that the start is soon
    /// forgotten.
    pub(super) fn take(&mut self, step: u64) -> Result<()> {
        let keep = self.keep.min((1.0 + step as f64) / (10.0 + step as f64));
        Ok(lerp_all(&mut self.means, &values(&self.parameters), 1.0 - keep)?)
    }

    /// Runs with the means in the place of the values, which are put back afterwards.
    pub(super) fn with<R>(&self, run: impl FnOnce() -> Result<R>) -> Result<R> {
        let before = values(&self.parameters);
        let set = |values: &[Tensor]| -> Result<()> {
            for (parameter, value) in self.parameters.iter().zip(values) {
                parameter.set(value)?;
            }
            Ok(())
        };
        set(&self.means)?;
        let result = run();
        set(&before)?;
        result
    }

    pub(super) fn state(&self) -> BTreeMap<String, Tensor> {
        let named = self.parameters.iter().map(|p| p.name().to_string());
        named.zip(self.means.iter().cloned()).collect()
    }

    pub(super) fn set_state(&mut self, state: &BTreeMap<String, Tensor>) -> Result<()> {
        for (parameter, mean) in self.parameters.iter().zip(&mut self.means) {
            let given = state.get(parameter.name()).filter(|x| x.shape() == mean.shape());
            let given = given.ok_or_else(|| {
                regard_data::Error::invalid(format!(
                    "the mean of {:?} is missing",
                    parameter.name()
                ))
            })?;
            *mean = given.to_device(mean.device())?;
        }
        Ok(())
    }
}
