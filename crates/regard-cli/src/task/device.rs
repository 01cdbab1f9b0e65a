//! Which device a verb computes on.

use crate::output::note;
use anyhow::Result;
use clap::Args;
use regard::tensor::Device;
use regard_tasks::task::{Model, Placement};

/// The option for the device.
#[derive(Args, Clone, Copy, Debug)]
pub(super) struct DeviceOption {
    /// Where to compute: cpu, cuda (the first GPU), cuda:1, …, or auto, which takes a GPU where there is one and the
    /// model gains from it. A run can be trained on one device and used on another
    #[arg(long, value_name = "DEVICE", default_value = "cpu", value_parser = str::parse::<Placement>)]
    pub(super) device: Placement,
}

impl DeviceOption {
    /// Moves a model there, and says so where nobody named the device.
    pub(super) fn place(self, model: &dyn Model) -> Result<()> {
        let device = self.device.place(model)?;
        if self.device == Placement::Auto && device != Device::Cpu {
            note(&format!("computes on {device}; `--device cpu` computes on the CPU"));
        }
        Ok(())
    }
}
