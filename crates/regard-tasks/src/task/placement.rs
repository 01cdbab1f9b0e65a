//! Which device a model computes on: said by whoever runs it, never kept with it.

use crate::task::model::Model;
use regard::tensor::{Device, Tensor};
use regard_data::{Error, Result};
use std::str::FromStr;

/// Which device a model computes on.
///
/// ```
/// use regard::tensor::Device;
/// use regard_tasks::task::Placement;
/// assert_eq!("cuda:1".parse::<Placement>()?, Placement::On(Device::Cuda(1)));
/// assert_eq!("auto".parse::<Placement>()?, Placement::Auto);
/// assert!("gpu".parse::<Placement>().is_err());
/// # Ok::<(), regard_tasks::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// This one.
    On(Device),
    /// The first GPU where there is one and the model is large enough to gain from it, else the CPU.
    Auto,
}

impl Default for Placement {
    fn default() -> Self {
        Self::On(Device::Cpu)
    }
}

/// Parameters from which on `auto` takes a GPU: smaller models spend their time on launches there.
const WORTH_A_GPU: usize = 200_000;

impl Placement {
    /// Moves a model's parameters there, and gives where they lie now. Refuses a device that is not there, with what
    /// is missing.
    pub fn place(self, model: &dyn Model) -> Result<Device> {
        let parameters = model.parameters();
        let device = match self {
            Self::On(device) => device,
            Self::Auto if parameters.numel() >= WORTH_A_GPU && has_gpu() => Device::Cuda(0),
            Self::Auto => Device::Cpu,
        };
        parameters.to_device(device)?;
        Ok(device)
    }
}

/// Whether the first GPU can be computed on: that wants more than a driver, since kernels are compiled there.
fn has_gpu() -> bool {
    let two = || -> regard::Result<f64> {
        let one = Tensor::scalar(1f32)?.to_device(Device::Cuda(0))?;
        one.add(&one)?.item()
    };
    two().is_ok_and(|two| two == 2.0)
}

impl FromStr for Placement {
    type Err = Error;

    /// `auto`, or a device: `cpu`, `cuda` (the first GPU), `cuda:1`.
    fn from_str(name: &str) -> Result<Self> {
        let unknown =
            || Error::invalid(format!("{name:?} is no device; auto, cpu, cuda and cuda:1 are"));
        match name {
            "auto" => Ok(Self::Auto),
            name => name.parse().map(Self::On).map_err(|_| unknown()),
        }
    }
}
