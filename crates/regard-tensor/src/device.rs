//! Where a tensor lives.

/// Where a tensor's numbers lie. There is one place so far.
///
/// ```
/// use regard_tensor::{Device, Tensor};
/// assert_eq!(Tensor::from_vec(vec![1f32], &[1])?.device(), Device::Cpu);
/// # Ok::<(), regard_tensor::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Device {
    /// Main memory.
    #[default]
    Cpu,
}
