//! Instruction sets, found at run time.

use std::fmt;

/// The instruction sets there are kernels for.
///
/// ```
/// use regard_kernels::{Cpu, Isa};
/// assert!(Isa::Portable.is_available());
/// assert_eq!(Cpu::best().isa().to_string(), Isa::best().to_string());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Isa {
    /// AVX-512, and AMX for products of `f32`: three bf16 numbers stand for one, as exact.
    Amx,
    /// Sixteen `f32` at once: AVX-512 F and DQ.
    Avx512,
    /// Eight `f32` at once: AVX2 and FMA.
    Avx2,
    /// Whatever the compiler makes of plain loops: every other machine.
    Portable,
}

impl Isa {
    /// All of them, fastest first.
    ///
    /// ```
    /// use regard_kernels::Isa;
    /// assert_eq!(Isa::ALL.last(), Some(&Isa::Portable));
    /// ```
    pub const ALL: [Self; 4] = [Self::Amx, Self::Avx512, Self::Avx2, Self::Portable];

    /// Whether this machine has it.
    ///
    /// ```
    /// use regard_kernels::Isa;
    /// assert!(Isa::best().is_available());
    /// ```
    pub fn is_available(self) -> bool {
        #[cfg(target_arch = "x86_64")]
        match self {
            #[cfg(target_os = "linux")]
            Self::Amx => {
                is_x86_feature_detected!("avx512bw")
                    && Self::Avx512.is_available()
                    && super::amx::is_available()
            }
            #[cfg(not(target_os = "linux"))]
            Self::Amx => false,
            Self::Avx512 => {
                is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512dq")
                    && Self::Avx2.is_available()
            }
            Self::Avx2 => is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma"),
            Self::Portable => true,
        }
        #[cfg(not(target_arch = "x86_64"))]
        {
            self == Self::Portable
        }
    }

    /// The fastest this machine has.
    ///
    /// ```
    /// use regard_kernels::Isa;
    /// assert_eq!(Some(Isa::best()), Isa::ALL.into_iter().find(|isa| isa.is_available()));
    /// ```
    pub fn best() -> Self {
        Self::ALL.into_iter().find(|isa| isa.is_available()).unwrap_or(Self::Portable)
    }
}

impl fmt::Display for Isa {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Self::Amx => "amx",
            Self::Avx512 => "avx512",
            Self::Avx2 => "avx2",
            Self::Portable => "portable",
        })
    }
}
