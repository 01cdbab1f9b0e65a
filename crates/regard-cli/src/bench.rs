//! `regard bench`: the cases, timed on this machine.

use crate::cases::{CASES, Case, Pass, Work, Yardstick};
use crate::gpu;
use crate::machine::{Machine, Operator};
use crate::{bandwidth, heap, matmul};
use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use regard_kernels::Cpu;
use serde_json::{Value, json};
use std::io::{self, BufRead, Write};
use std::time::Instant;

/// How fast the operator is on this machine
#[derive(Args, Debug)]
#[command(
    long_about = "How fast the operator is on this machine: the median of several rounds of each \
                  case, how far the rounds are apart (half of them lie within the spread), GFLOP/s \
                  or GB/s, the share of what the machine can do (its matrix products for dot \
                  scores, its memory for decoding, measured between the rounds), and the most \
                  memory in use, inputs included.",
    after_help = "\
Examples:
  regard bench                                # every case but the slow one
  regard bench --list                         # their names
  regard bench --filter causal,window         # those with either in their name
  regard bench --filter b2h8 --threads 2 --json
  regard bench --filter memory                # the slow one: minutes
  regard bench --device cuda                  # the cases of a GPU, on one"
)]
pub struct Command {
    /// Only cases whose name has S in it; several may be given
    #[arg(long, value_name = "S", value_delimiter = ',')]
    filter: Vec<String>,

    /// Only this pass: forward, forward+backward or step
    #[arg(long, value_name = "PASS")]
    pass: Option<Pass>,

    /// Rounds of each case [default: as many as take 1.5 seconds, at least 5]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    rounds: Option<u32>,

    /// One JSON object a line instead of a table
    #[arg(long)]
    json: bool,

    /// Only name the cases
    #[arg(long)]
    list: bool,

    #[command(flatten)]
    machine: Machine,

    /// Answers lines `CASE PASS ROUNDS` on standard input with the times of the rounds, so that
    /// another program can take turns with this one.
    #[arg(long, hide = true)]
    serve: bool,
}

impl Command {
    /// Times the chosen cases and writes a line for each.
    pub fn run(&self, to: &mut (impl Write + Send)) -> Result<()> {
        let cpu = match self.machine.operator()? {
            Operator::Cpu(cpu) => cpu,
            Operator::Cuda(cuda) => {
                let rounds = self.rounds.map_or(50, |rounds| rounds as usize);
                return gpu::bench(&cuda, &self.filter, rounds, self.json, to);
            }
        };
        if self.serve {
            return self.machine.install(|| serve(cpu, &mut io::stdin().lock(), to))?;
        }
        let chosen: Vec<&'static Case> = match self.list {
            true if self.filter.is_empty() => CASES.iter().collect(),
            _ => CASES.iter().filter(|case| case.is_chosen_by(&self.filter)).collect(),
        };
        ensure!(
            !chosen.is_empty(),
            "no case has {} in its name; `regard bench --list` names them",
            self.filter.join(" or ")
        );
        if self.list {
            for case in chosen {
                let note = if case.is_slow() { "  (minutes; only when asked for)" } else { "" };
                writeln!(to, "{}{note}", case.name)?;
            }
            return Ok(());
        }
        self.measure(cpu, &chosen, to)
    }

    fn measure(&self, cpu: Cpu, chosen: &[&'static Case], to: &mut impl Write) -> Result<()> {
        let wide = chosen.iter().map(|case| case.name.len()).max().unwrap_or(0);
        if !self.json {
            writeln!(
                to,
                "{:wide$}  {:16}  {:>9}  {:>9}  {:>6}  {:>13}  {:>5}  {:>9}",
                "case", "pass", "median", "min", "spread", "speed", "share", "memory"
            )?;
        }
        for case in chosen {
            for &pass in case.passes() {
                if self.pass.is_some_and(|only| only != pass) {
                    continue;
                }
                // On fresh threads, which keep no memory of the cases before.
                let measured =
                    self.machine.install(|| Measured::of(cpu, case, pass, self.rounds))??;
                match self.json {
                    true => writeln!(to, "{}", measured.json())?,
                    false => writeln!(to, "{:wide$}  {}", case.name, measured.columns())?,
                }
                to.flush()?;
            }
        }
        Ok(())
    }
}

/// Seconds that a case's rounds take together, where their number is not given.
const SECONDS: f64 = 1.5;

/// What was found out about one case.
struct Measured {
    case: &'static str,
    pass: Pass,
    /// Seconds of the rounds.
    rounds: Vec<f64>,
    flops: f64,
    peak_bytes: usize,
    yardstick: Option<Rate>,
}

/// What the machine can do, in the yardstick's unit per second.
#[derive(Clone, Copy)]
enum Rate {
    Flops(f64),
    Bytes { read: usize, per_second: f64 },
}

impl Measured {
    fn of(cpu: Cpu, case: &'static Case, pass: Pass, rounds: Option<u32>) -> Result<Self> {
        let mut work = case.prepare(pass)?;
        heap::reset_peak();
        let first = seconds(&mut *work, cpu)?;
        // Now, because what the yardstick uses is not the case's.
        let peak_bytes = heap::peak();
        let flops = work.flops();
        let name = case.name;
        if case.is_slow() {
            let rounds = vec![first];
            return Ok(Self { case: name, pass, rounds, flops, peak_bytes, yardstick: None });
        }
        let warm = seconds(&mut *work, cpu)?;
        // Fewer than five say nothing of the spread, more than a thousand nothing new.
        let enough = ((SECONDS / warm) as usize).clamp(5, 1000);
        let n = rounds.map_or(enough, |n| n as usize);
        let mut meter = case.yardstick(pass).map(|kind| Meter::new(kind, cpu)).transpose()?;
        let (mut rounds, mut meter_rounds) = (Vec::new(), Vec::new());
        for _ in 0..n {
            rounds.push(seconds(&mut *work, cpu)?);
            meter_rounds.extend(meter.as_mut().map(Meter::seconds).transpose()?);
        }
        let yardstick = meter.map(|meter| meter.rate(quantile(&meter_rounds, 0.5)));
        Ok(Self { case: name, pass, rounds, flops, peak_bytes, yardstick })
    }

    fn json(&self) -> String {
        let median = quantile(&self.rounds, 0.5);
        let mut fields = vec![
            ("case", json!(self.case)),
            ("pass", json!(self.pass.to_string())),
            ("median_ms", rounded(median * 1e3)),
            ("min_ms", rounded(quantile(&self.rounds, 0.0) * 1e3)),
            ("rounds", json!(self.rounds.len())),
            ("gflops", rounded(self.flops / median * 1e-9)),
            ("peak_bytes", json!(self.peak_bytes)),
        ];
        match self.yardstick {
            Some(Rate::Flops(rate)) => fields.push(("matmul_gflops", rounded(rate * 1e-9))),
            Some(Rate::Bytes { read, per_second }) => {
                fields.push(("gb_per_s", rounded(read as f64 / median * 1e-9)));
                fields.push(("read_gb_per_s", rounded(per_second * 1e-9)));
            }
            None => {}
        }
        object(&fields)
    }

    /// The table's columns after the name.
    fn columns(&self) -> String {
        let median = quantile(&self.rounds, 0.5);
        let spread = (quantile(&self.rounds, 0.75) - quantile(&self.rounds, 0.25)) / median;
        let flops = self.flops / median;
        let (speed, share) = match self.yardstick {
            None => (format!("{:.1} GFLOP/s", flops * 1e-9), None),
            Some(Rate::Flops(rate)) => (format!("{:.1} GFLOP/s", flops * 1e-9), Some(flops / rate)),
            Some(Rate::Bytes { read, per_second }) => {
                let speed = read as f64 / median;
                (format!("{:.1} GB/s", speed * 1e-9), Some(speed / per_second))
            }
        };
        format!(
            "{:16}  {:>9}  {:>9}  {:>6}  {:>13}  {:>5}  {:>9}",
            self.pass,
            duration(median),
            duration(quantile(&self.rounds, 0.0)),
            percent(spread),
            speed,
            share.map_or("".into(), percent),
            format!("{:.1} MiB", self.peak_bytes as f64 / (1 << 20) as f64),
        )
    }
}

/// Something that shows what the machine can do.
enum Meter {
    F32(matmul::Yardstick<f32>),
    F64(matmul::Yardstick<f64>),
    Reading(bandwidth::Yardstick),
}

impl Meter {
    fn new(kind: Yardstick, cpu: Cpu) -> Result<Self> {
        Ok(match kind {
            Yardstick::ProductF32 => Self::F32(matmul::Yardstick::new(cpu)?),
            Yardstick::ProductF64 => Self::F64(matmul::Yardstick::new(cpu)?),
            Yardstick::Reading { bytes } => Self::Reading(bandwidth::Yardstick::new(bytes)),
        })
    }

    fn seconds(&mut self) -> Result<f64> {
        match self {
            Self::F32(product) => product.seconds(),
            Self::F64(product) => product.seconds(),
            Self::Reading(buffer) => Ok(buffer.seconds()),
        }
    }

    fn rate(&self, seconds: f64) -> Rate {
        match self {
            Self::F32(_) | Self::F64(_) => Rate::Flops(matmul::YARDSTICK_FLOPS / seconds),
            Self::Reading(buffer) => {
                let read = buffer.bytes();
                Rate::Bytes { read, per_second: read as f64 / seconds }
            }
        }
    }
}

fn seconds(work: &mut dyn Work, cpu: Cpu) -> Result<f64> {
    let start = Instant::now();
    work.run(cpu)?;
    Ok(start.elapsed().as_secs_f64())
}

/// The time below which a share of the rounds lie; 0.5 gives the median.
fn quantile(rounds: &[f64], share: f64) -> f64 {
    let mut sorted = rounds.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = share * (sorted.len() - 1) as f64;
    let (below, above) = (sorted[at.floor() as usize], sorted[at.ceil() as usize]);
    below + (above - below) * at.fract()
}

/// Answers each line `CASE PASS ROUNDS` with the milliseconds of its rounds, one object a line.
/// What a case needs is kept until another is asked for.
fn serve(cpu: Cpu, from: &mut impl BufRead, to: &mut impl Write) -> Result<()> {
    let mut kept = None;
    for line in from.lines() {
        let answer = answer(cpu, &line?, &mut kept)
            .unwrap_or_else(|error| object(&[("error", json!(crate::sentence::sentence(&error)))]));
        writeln!(to, "{answer}")?;
        to.flush()?;
    }
    Ok(())
}

type Kept = Option<(&'static str, Pass, Box<dyn Work>)>;

fn answer(cpu: Cpu, line: &str, kept: &mut Kept) -> Result<String> {
    let [name, pass, rounds] = *line.split_whitespace().collect::<Vec<_>>() else {
        bail!("{line:?} is not CASE PASS ROUNDS");
    };
    let case = Case::named(name).with_context(|| format!("there is no case {name:?}"))?;
    let pass: Pass = pass.parse().map_err(anyhow::Error::msg)?;
    let rounds: usize = rounds.parse().with_context(|| format!("{rounds:?} is not a number"))?;
    ensure!(case.passes().contains(&pass), "{name} has no pass {pass}");
    if kept.as_ref().is_none_or(|(kept, of, _)| (*kept, *of) != (case.name, pass)) {
        *kept = None;
    }
    let work = match kept {
        Some((_, _, work)) => work,
        None => {
            let mut work = case.prepare(pass)?;
            if !case.is_slow() {
                seconds(&mut *work, cpu)?;
            }
            &mut kept.insert((case.name, pass, work)).2
        }
    };
    let times = (0..rounds).map(|_| Ok(rounded(seconds(&mut **work, cpu)? * 1e3)));
    let times: Vec<Value> = times.collect::<Result<_>>()?;
    Ok(object(&[
        ("case", json!(name)),
        ("pass", json!(pass.to_string())),
        ("times_ms", json!(times)),
    ]))
}

/// A JSON object whose fields stand in the order they are given in.
fn object(fields: &[(&str, Value)]) -> String {
    let fields: Vec<String> =
        fields.iter().map(|(name, value)| format!("{}: {value}", json!(name))).collect();
    format!("{{{}}}", fields.join(", "))
}

fn rounded(x: f64) -> Value {
    json!((x * 1e5).round() / 1e5)
}

fn duration(seconds: f64) -> String {
    if seconds < 10.0 { format!("{:.3} ms", seconds * 1e3) } else { format!("{seconds:.1} s") }
}

fn percent(x: f64) -> String {
    format!("{:.0}%", 100.0 * x)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_an_even_number_of_rounds_lies_between_the_middle_two() {
        assert_eq!(quantile(&[4.0, 1.0, 3.0, 2.0], 0.5), 2.5);
        assert_eq!(quantile(&[3.0, 1.0, 2.0], 0.5), 2.0);
        assert_eq!(quantile(&[3.0, 1.0, 2.0], 0.0), 1.0);
        assert_eq!(quantile(&[7.0], 0.75), 7.0);
    }
}
