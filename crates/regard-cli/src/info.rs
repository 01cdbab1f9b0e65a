//! `regard info`: what this machine has, and what will be used of it.

use crate::machine::Machine;
use anyhow::Result;
use clap::Args;
use regard_kernels::{Cuda, Isa};
use std::fs;
use std::io::Write;
use std::thread::available_parallelism;

/// What this machine has, and what will be used of it
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  regard info
  regard info --threads 4 --isa avx2    # what these options would use")]
pub struct Command {
    #[command(flatten)]
    machine: Machine,
}

impl Command {
    /// Writes a line for each fact.
    pub fn run(&self, to: &mut impl Write) -> Result<()> {
        let used = self.machine.cpu()?.isa();
        let threads = self.machine.install(rayon::current_num_threads)?;
        let available: Vec<String> =
            Isa::ALL.iter().filter(|isa| isa.is_available()).map(Isa::to_string).collect();
        let (registers, lanes) = registers(used);
        let cores = available_parallelism().map_or("unknown".into(), |n| n.to_string());
        let mut line = |name: &str, value: &str| writeln!(to, "{name:<18} {value}");
        line("version", env!("CARGO_PKG_VERSION"))?;
        line("processor", model().as_deref().unwrap_or("unknown"))?;
        line("features", &features().join(" "))?;
        line("instruction sets", &available.join(", "))?;
        line("used", &used.to_string())?;
        line("registers", &format!("{registers}, each {lanes} f32 or {} f64", lanes / 2))?;
        line("cores", &cores)?;
        line("threads", &threads.to_string())?;
        line("caches", &caches().join(", "))?;
        for (name, value) in gpu() {
            line(name, &value)?;
        }
        Ok(())
    }
}

/// The first GPU and the compiler of its kernels, or what is missing and how to get it.
fn gpu() -> Vec<(&'static str, String)> {
    let found = Cuda::new(0).and_then(|cuda| cuda.info().map(|info| (info, cuda.cache_folder())));
    let (info, kept) = match found {
        Ok(found) => found,
        Err(error) => return vec![("GPU", format!("none: {error}"))],
    };
    let kept = match kept {
        Ok(folder) => folder.display().to_string(),
        Err(error) => format!("none: {error}"),
    };
    let (major, minor) = info.capability;
    let memory = info.memory as f64 / (1 << 30) as f64;
    let nvrtc = match info.nvrtc {
        Ok((major, minor)) => format!("{major}.{minor}"),
        Err(error) => format!("none: {error}"),
    };
    vec![
        ("GPU", format!("{}, compute capability {major}.{minor}", info.name)),
        ("GPU memory", format!("{memory:.0} GiB")),
        ("CUDA of driver", format!("{}.{}", info.driver / 1000, info.driver % 1000 / 10)),
        ("NVRTC", nvrtc),
        ("kernels kept in", kept),
    ]
}

/// How many vector registers the kernels' code for an instruction set has, and their `f32` lanes.
fn registers(isa: Isa) -> (usize, usize) {
    match isa {
        Isa::Amx | Isa::Avx512 => (32, 16),
        Isa::Avx2 => (16, 8),
        // Both x86-64 and 64-bit ARM begin with registers of 128 bits.
        _ => (if cfg!(target_arch = "x86_64") { 16 } else { 32 }, 4),
    }
}

fn model() -> Option<String> {
    let text = fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

fn features() -> Vec<&'static str> {
    #[cfg(target_arch = "x86_64")]
    {
        macro_rules! found {
            ($($feature:tt)*) => {
                [$(($feature, is_x86_feature_detected!($feature))),*]
            };
        }
        found!["sse4.2" "avx" "f16c" "fma" "avx2" "avx512f" "avx512dq" "avx512bw" "avx512vl"
               "avx512vnni" "avx512bf16" "avx512fp16"]
        .into_iter()
        .filter_map(|(feature, has)| has.then_some(feature))
        .collect()
    }
    #[cfg(not(target_arch = "x86_64"))]
    Vec::new()
}

/// The caches of the first core, as "L1 data 48K".
fn caches() -> Vec<String> {
    let cache = |index: usize| {
        let read = |name: &str| {
            let path = format!("/sys/devices/system/cpu/cpu0/cache/index{index}/{name}");
            fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
        };
        let kind = match read("type")?.as_str() {
            "Unified" => String::new(),
            kind => format!(" {}", kind.to_lowercase()),
        };
        Some(format!("L{}{kind} {}", read("level")?, read("size")?))
    };
    let found: Vec<String> = (0..).map_while(cache).collect();
    if found.is_empty() { vec!["unknown".into()] } else { found }
}
