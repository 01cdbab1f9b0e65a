//! `regard compare`: mechanisms side by side.

use super::interrupt::Interrupted;
use super::threads::Threads;
use super::{TaskArguments, progress::ProgressReport, table};
use crate::heap;
use anyhow::{Result, bail};
use clap::Args;
use regard_tasks::picture::{Comparison, Cost};
use regard_tasks::{Compared, Meter, Run, compare, picture, variants};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Train variants of a model on the same data and seeds, and set them side by side
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  regard compare translate                    # fixed vector, additive, dot, Transformer
  regard compare translate --over score=additive,bilinear,concat --seeds 3
  regard compare label --over encoder=gru,transformer --over layers=1,2")]
pub struct Command {
    #[command(flatten)]
    arguments: TaskArguments,
    /// What to vary, as KEY=A,B,C; several make all combinations
    #[arg(long, value_name = "KEY=A,B,C")]
    over: Vec<String>,
    /// How many seeds each variant is trained with
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=100))]
    seeds: u16,
    /// Where the runs, the table and the picture are kept [default: runs/compare-TASK]
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    #[command(flatten)]
    threads: Threads,
}

impl Command {
    /// Trains all and writes the table.
    pub fn run(&self, to: &mut impl Write) -> Result<()> {
        self.threads.start()?;
        let (task, options) = (self.arguments.task()?, self.arguments.options()?);
        let all = match self.over.is_empty() {
            true => task.comparison(),
            false => variants(&self.over)?,
        };
        let usual = Path::new("runs").join(format!("compare-{}", task.name()));
        let folder = self.out.clone().unwrap_or_else(|| Run::free(&usual));
        if folder.exists() {
            bail!("{} is there already; `--out` names another folder", folder.display());
        }
        let meter = Meter { reset: heap::reset_peak, peak: heap::peak };
        let callback = |name: &str| {
            eprintln!("\n{name}");
            Box::new(ProgressReport::new()) as Box<dyn regard_tasks::Callback>
        };
        let seeds = usize::from(self.seeds);
        let Some(compared) = compare(task, &options, &all, seeds, &folder, meter, callback)? else {
            writeln!(to, "stopped; the runs so far are in {}", folder.display())?;
            return Err(Interrupted.into());
        };
        let text = written(&compared);
        let write =
            |name: &str, bytes: &[u8]| regard::tensor::write_whole(folder.join(name), bytes);
        write("comparison.txt", text.as_bytes())?;
        write("comparison.json", serde_json::to_string_pretty(&compared)?.as_bytes())?;
        let svg = picture::comparison(task.name(), &drawn(&compared));
        write("comparison.svg", svg.as_bytes())?;
        write("comparison.png", &picture::png(&svg, 2.0)?)?;
        write!(to, "{text}")?;
        writeln!(to, "\npicture {}", folder.join("comparison.svg").display())?;
        Ok(())
    }
}

/// The table: measures, parameters, time, memory; then the measure by groups.
fn written(compared: &[Compared]) -> String {
    let Some(first) = compared.first().and_then(|c| c.scores.first()) else {
        return String::new();
    };
    let names: Vec<&str> = first.values.iter().map(|(name, _)| &name[..]).collect();
    let head: Vec<&str> =
        ["variant"].into_iter().chain(names).chain(["parameters", "time", "memory"]).collect();
    let row = |c: &Compared| {
        let measure = |i: usize| {
            let (mean, deviation) = c.spread(i);
            match c.scores.len() {
                1 => table::measure(mean),
                _ => format!("{} ± {}", table::measure(mean), table::measure(deviation)),
            }
        };
        let mut row = vec![c.name.clone()];
        row.extend((0..first.values.len()).map(measure));
        row.push(table::number(c.parameters));
        row.push(table::seconds(c.seconds));
        row.push(table::bytes(c.peak_bytes));
        row
    };
    let mut text = table::table(&head, &compared.iter().map(row).collect::<Vec<_>>());
    if let Some(groups) = compared.first().and_then(|c| c.groups.as_ref()) {
        let by = format!("{} by {}", groups.measure, groups.by);
        let head: Vec<&str> =
            [&by[..]].into_iter().chain(groups.values.iter().map(|(name, _)| &name[..])).collect();
        let row = |c: &Compared| {
            let values = c.groups.iter().flat_map(|g| &g.values);
            let cells = values.map(|(_, value)| table::measure(*value));
            [c.name.clone()].into_iter().chain(cells).collect()
        };
        text +=
            &format!("\n{}", table::table(&head, &compared.iter().map(row).collect::<Vec<_>>()));
    }
    text
}

fn drawn(compared: &[Compared]) -> Comparison {
    let first = compared.first();
    let metric = first.and_then(|c| c.scores.first()).map_or("", |scores| scores.first().0);
    let groups = first.and_then(|c| c.groups.as_ref());
    let of = |c: &Compared| picture::Variant {
        name: c.name.clone(),
        values: c.scores.iter().map(|scores| scores.first().1).collect(),
        by_bucket: c.groups.iter().flat_map(|g| &g.values).map(|(_, value)| *value).collect(),
    };
    let cost = |name: &str, of: &dyn Fn(&Compared) -> (f64, String)| Cost {
        name: name.into(),
        values: compared.iter().map(of).collect(),
    };
    let parameters = |c: &Compared| (c.parameters as f64, table::number(c.parameters));
    let memory = |c: &Compared| (c.peak_bytes as f64, table::bytes(c.peak_bytes));
    Comparison {
        metric: metric.into(),
        variants: compared.iter().map(of).collect(),
        bucket_axis: groups.map_or(String::new(), |g| g.by.clone()),
        buckets: groups.iter().flat_map(|g| &g.values).map(|(name, _)| name.clone()).collect(),
        costs: vec![
            cost("parameters", &parameters),
            cost("time", &|c| (c.seconds, table::seconds(c.seconds))),
            cost("memory", &memory),
        ],
    }
}
