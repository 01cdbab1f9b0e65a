//! How much of the machine is used: threads and instruction set.

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use rayon::ThreadPoolBuilder;
use regard_kernels::{Cpu, Isa};

/// The options for threads and instruction set.
#[derive(Args, Clone, Debug, Default)]
pub struct Machine {
    /// Threads to compute with [default: all cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,

    /// Instruction set to compute with [default: the fastest this machine has]
    #[arg(long, value_enum)]
    pub isa: Option<IsaName>,
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

    /// Runs `work` on a pool of the chosen number of threads.
    pub fn install<R: Send>(&self, work: impl FnOnce() -> R + Send) -> Result<R> {
        // 0 means all cores to rayon.
        let threads = self.threads.map_or(0, usize::from);
        let pool = ThreadPoolBuilder::new().num_threads(threads).build();
        let pool = pool.with_context(|| format!("{threads} threads cannot be started"))?;
        Ok(pool.install(work))
    }
}
