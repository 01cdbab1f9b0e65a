//! Where a tensor lives.

use crate::{Error, Result};
use std::str::FromStr;

/// Where a tensor's numbers lie, and what computes with them.
///
/// ```
/// use regard_tensor::{Device, Tensor};
/// assert_eq!(Tensor::from_vec(vec![1f32], &[1])?.device(), Device::Cpu);
/// assert_eq!("cuda".parse::<Device>()?, Device::Cuda(0));
/// assert_eq!(Device::Cuda(1).to_string(), "cuda:1");
/// # Ok::<(), regard_tensor::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Device {
    /// Main memory, and the machine's cores.
    #[default]
    Cpu,
    /// An NVIDIA GPU, by its number.
    Cuda(usize),
}

impl std::fmt::Display for Device {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Cpu => f.write_str("cpu"),
            Self::Cuda(number) => write!(f, "cuda:{number}"),
        }
    }
}

impl FromStr for Device {
    type Err = Error;

    /// `cpu`, `cuda` (the first GPU) or `cuda:1`.
    fn from_str(name: &str) -> Result<Self> {
        let number = name.strip_prefix("cuda:").map(str::parse);
        match (name, number) {
            ("cpu", _) => Ok(Self::Cpu),
            ("cuda", _) => Ok(Self::Cuda(0)),
            (_, Some(Ok(number))) => Ok(Self::Cuda(number)),
            _ => Err(Error::new(format!("{name:?} is no device; cpu, cuda and cuda:1 are"))),
        }
    }
}
