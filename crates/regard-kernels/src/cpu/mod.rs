//! Computing on the CPU: in SIMD, on every core. `attention/` has the operator, `step/` what else a training step is
//! made of; both stand on the rest: instruction sets and their table of kernels, threads, memory.
//!
//! Threads are rayon's: run inside a pool's `install` to choose how many, inside [`sequential`] to
//! use none but the calling one, inside [`on_team`] to use somebody else's.

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod amx;
mod attention;
pub(crate) mod denormal;
mod isa;
mod kernels;
mod scratch;
mod shared;
mod simd;
pub(crate) mod step;
mod tasks;

#[doc(hidden)]
pub use attention::{Path, Phase};
pub use denormal::flush_denormals;
pub use isa::Isa;
pub use kernels::Kernels;
pub(crate) use kernels::{kernels_f32, kernels_f64};
pub use scratch::{pooled_bytes, release_memory};
pub use tasks::{Team, on_team, sequential};

/// The operator, with one instruction set.
///
/// ```
/// use regard_kernels::{Cpu, Isa};
/// assert_eq!(Cpu::best().isa(), Isa::best());
/// assert!(Cpu::with(Isa::Portable).is_some());
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Cpu {
    isa: Isa,
}

impl Cpu {
    /// The fastest instruction set of this machine.
    ///
    /// ```
    /// use regard_kernels::{Cpu, Isa};
    /// assert_eq!(Cpu::best().isa(), Isa::best());
    /// ```
    pub fn best() -> Self {
        Self { isa: Isa::best() }
    }

    /// A given instruction set; none where this machine does not have it.
    ///
    /// ```
    /// use regard_kernels::{Cpu, Isa};
    /// assert!(Cpu::with(Isa::Portable).is_some());
    /// assert_eq!(Cpu::with(Isa::Amx).is_some(), Isa::Amx.is_available());
    /// ```
    pub fn with(isa: Isa) -> Option<Self> {
        isa.is_available().then_some(Self { isa })
    }

    /// The instruction set in use.
    ///
    /// ```
    /// use regard_kernels::{Cpu, Isa};
    /// assert_eq!(Cpu::with(Isa::Portable).map(|cpu| cpu.isa()), Some(Isa::Portable));
    /// ```
    pub fn isa(&self) -> Isa {
        self.isa
    }
}
