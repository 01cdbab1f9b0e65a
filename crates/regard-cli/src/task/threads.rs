//! How many threads a verb computes with.

use anyhow::{Context, Result};
use clap::Args;

/// The option for threads.
#[derive(Args, Clone, Copy, Debug)]
pub(super) struct Threads {
    /// Threads to compute with [default: all cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
}

impl Threads {
    /// Sets them, once in a program.
    pub(super) fn start(self) -> Result<()> {
        let Some(threads) = self.threads else { return Ok(()) };
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads.into());
        pool.build_global().with_context(|| format!("{threads} threads cannot be started"))
    }
}
