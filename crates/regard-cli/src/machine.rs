//! What of the machine is used: threads, instruction set, GPU.

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use rayon::ThreadPoolBuilder;
use regard_kernels::{Backward, Cpu, Cuda, Element, Error, Forward, Isa, Spec, View};

/// The options for threads, instruction set and GPU.
#[derive(Args, Clone, Debug, Default)]
pub struct Machine {
    /// Threads to compute with [default: all cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,

    /// Instruction set to compute with [default: the fastest this machine has]
    #[arg(long, value_enum)]
    pub isa: Option<IsaName>,

    /// What to compute on
    #[arg(long, value_enum, default_value_t)]
    pub device: DeviceName,
}

/// What there is to compute on, by name.
#[derive(ValueEnum, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DeviceName {
    /// This machine's processor
    #[default]
    Cpu,
    /// The first NVIDIA GPU
    Cuda,
    /// The first NVIDIA GPU, or the processor where there is none
    Auto,
}

/// What computes the operator.
#[derive(Clone, Debug)]
pub enum Operator {
    /// The processor.
    Cpu(Cpu),
    /// A GPU.
    Cuda(Cuda),
}

impl Operator {
    /// As [`Cpu::forward`].
    pub fn forward<E: Element>(
        &self,
        spec: &Spec<E::Compute>,
        [q, k, v]: [View<E>; 3],
        pass: Forward<E>,
    ) -> Result<(), Error> {
        match self {
            Self::Cpu(cpu) => cpu.forward(spec, q, k, v, pass),
            Self::Cuda(cuda) => cuda.forward(spec, q, k, v, pass),
        }
    }

    /// As [`Cpu::backward`].
    pub fn backward<E: Element>(
        &self,
        spec: &Spec<E::Compute>,
        [q, k, v]: [View<E>; 3],
        pass: Backward<E>,
    ) -> Result<(), Error> {
        match self {
            Self::Cpu(cpu) => cpu.backward(spec, q, k, v, pass),
            Self::Cuda(cuda) => cuda.backward(spec, q, k, v, pass),
        }
    }
}

/// The instruction sets, by name.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum IsaName {
    /// AVX-512, and AMX for products
    Amx,
    /// AVX-512 F and DQ
    Avx512,
    /// AVX2 and FMA
    Avx2,
    /// What every machine has
    Portable,
}

impl Machine {
    /// The operator with the chosen instruction set; refuses one that this machine lacks.
    pub fn cpu(&self) -> Result<Cpu> {
        let isa = match self.isa {
            None => return Ok(Cpu::best()),
            Some(IsaName::Amx) => Isa::Amx,
            Some(IsaName::Avx512) => Isa::Avx512,
            Some(IsaName::Avx2) => Isa::Avx2,
            Some(IsaName::Portable) => Isa::Portable,
        };
        match Cpu::with(isa) {
            Some(cpu) => Ok(cpu),
            None => bail!("--isa {isa}: this machine does not have these instructions"),
        }
    }

    /// What the operator is computed on; refuses a GPU that is not there, with the reason.
    pub fn operator(&self) -> Result<Operator> {
        let cpu = Operator::Cpu(self.cpu()?);
        if self.device == DeviceName::Cpu {
            return Ok(cpu);
        }
        // Without NVRTC there may be nothing to run on the GPU. Whoever asks for the GPU is told so where a
        // kernel must be compiled: a start whose kernels are kept does not open the compiler.
        let auto = self.device == DeviceName::Auto;
        let ready = |cuda: Cuda| if auto { cuda.info()?.nvrtc.map(|_| cuda) } else { Ok(cuda) };
        match Cuda::new(0).and_then(ready) {
            Ok(cuda) => Ok(Operator::Cuda(cuda)),
            Err(_) if auto => Ok(cpu),
            Err(error) => bail!("--device cuda: {error}"),
        }
    }

    /// Runs `work` on a pool of the chosen number of threads.
    pub fn install<R: Send>(&self, work: impl FnOnce() -> R + Send) -> Result<R> {
        // 0 means all cores to rayon.
        let threads = self.threads.map_or(0, usize::from);
        let pool = ThreadPoolBuilder::new().num_threads(threads).build();
        let pool = pool.with_context(|| format!("{threads} threads cannot be started"))?;
        Ok(pool.install(work))
    }
}
