//! `regard compare`: mechanisms side by side.

use super::interrupt::Interrupted;
use super::threads::Threads;
use super::{Settings, progress::ProgressReport, table};
use crate::heap;
use crate::output::note;
use anyhow::{Context, Result, bail};
use clap::Args;
use regard::tensor::write_whole;
use regard_tasks::picture::{self, Cost};
use regard_tasks::{
    Compared, Comparison, Meter, Options, Outcome, Part, Run, Task, compare, task_named, variants,
};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Train variants of a model on the same data and seeds, and set them side by side
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  regard compare translate                    # fixed vector, additive, dot, Transformer
  regard compare translate --over score=additive,bilinear,concat --seeds 3
  regard compare label --over encoder=gru,transformer --over layers=1,2
  regard compare --resume runs/compare-label  # goes on where it stopped

Variants are measured on the validation part, so that the test part stays what nothing was chosen
by; `--test` measures them on that. With p the table says how likely a difference as large as that
from the first variant would be by chance.")]
pub struct Command {
    /// regress, translate, label, classify, image or graph
    #[arg(required_unless_present = "resume")]
    task: Option<String>,
    #[command(flatten)]
    settings: Settings,
    /// What to vary, as KEY=A,B,C; several make all combinations
    #[arg(long, value_name = "KEY=A,B,C")]
    over: Vec<String>,
    /// How many seeds each variant is trained with
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=100))]
    seeds: u16,
    /// Measure on the test part instead of the validation part
    #[arg(long)]
    test: bool,
    /// Where the runs, the table and the picture are kept [default: runs/compare-TASK]
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Go on with the comparison in this folder where it stopped
    #[arg(
        long,
        value_name = "FOLDER",
        conflicts_with_all = ["task", "out", "over", "seeds", "config", "sets", "encoding"]
    )]
    resume: Option<PathBuf>,
    #[command(flatten)]
    threads: Threads,
}

/// What is compared, and where.
struct Begun {
    task: &'static dyn Task,
    options: Options,
    comparison: Comparison,
    folder: PathBuf,
}

impl Command {
    /// Trains all and writes the table.
    pub fn run(&self, to: &mut impl Write) -> Result<()> {
        self.threads.start()?;
        let Begun { task, options, comparison, folder } = self.begin()?;
        let meter = Meter { reset: heap::reset_peak, peak: heap::peak };
        let callback = |name: &str| {
            eprintln!("\n{name}");
            Box::new(ProgressReport::new()) as Box<dyn regard_tasks::Callback>
        };
        let outcome = compare(task, &options, &comparison, &folder, meter, callback)?;
        let Outcome { finished, stopped } = outcome;
        if !finished.is_empty() {
            let text = written(&finished, &comparison);
            write_whole(folder.join("comparison.txt"), text.as_bytes())?;
            let json = serde_json::json!({ "part": comparison.part, "variants": finished });
            let json = serde_json::to_string_pretty(&json)?;
            write_whole(folder.join("comparison.json"), json.as_bytes())?;
            let svg = picture::comparison(task.name(), &drawn(&finished));
            write_whole(folder.join("comparison.svg"), svg.as_bytes())?;
            // The table is what hours were spent on.
            match picture::png(&svg, 2.0) {
                Ok(png) => write_whole(folder.join("comparison.png"), &png)?,
                Err(error) => note(&format!("no comparison.png: {error}")),
            }
            write!(to, "{text}")?;
            writeln!(to, "\npicture {}", folder.join("comparison.svg").display())?;
        }
        if stopped {
            let (done, all) = (finished.len(), comparison.variants.len());
            writeln!(
                to,
                "stopped; {done} of {all} variants are done, `regard compare --resume {}` goes on",
                folder.display()
            )?;
            return Err(Interrupted.into());
        }
        Ok(())
    }

    fn begin(&self) -> Result<Begun> {
        if let Some(folder) = &self.resume {
            let (task, options, mut comparison) =
                Comparison::open(folder).context("no comparison can be gone on with")?;
            if self.test {
                comparison.part = Part::Test;
            }
            return Ok(Begun { task, options, comparison, folder: folder.clone() });
        }
        let Some(task) = &self.task else { bail!("no task is named") };
        let task = task_named(task)?;
        let options = self.settings.apply(task.options()?)?;
        let variants = match self.over.is_empty() {
            true => task.comparison(),
            false => variants(&self.over)?,
        };
        let part = if self.test { Part::Test } else { Part::Validation };
        let usual = Path::new("runs").join(format!("compare-{}", task.name()));
        let folder = self.out.clone().unwrap_or_else(|| Run::free(&usual));
        if folder.exists() {
            bail!(
                "{0} is there already; `regard compare --resume {0}` goes on with it, `--out` names \
                 another folder",
                folder.display()
            );
        }
        let comparison = Comparison { variants, seeds: self.seeds.into(), part };
        Ok(Begun { task, options, comparison, folder })
    }
}

/// The table: measures, parameters, time, memory; then the measure by groups.
fn written(compared: &[Compared], comparison: &Comparison) -> String {
    let Some(first) = compared.first().and_then(|c| c.scores.first()) else {
        return String::new();
    };
    let names: Vec<&str> = first.values.iter().map(|(name, _)| &name[..]).collect();
    let has_p = compared.iter().any(|c| c.p.is_some());
    let p = if has_p { &["p"][..] } else { &[] };
    let head: Vec<&str> = ["variant"].into_iter().chain(names).chain(p.iter().copied()).collect();
    let head = [&head[..], &["parameters", "time", "memory"]].concat();
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
        if has_p {
            row.push(c.p.map_or("".into(), significance));
        }
        row.push(table::number(c.parameters));
        row.push(table::seconds(c.seconds));
        row.push(table::bytes(c.peak_bytes));
        row
    };
    let part = match comparison.part {
        Part::Training => "training",
        Part::Validation => "validation",
        Part::Test => "test",
    };
    let seeds = table::count(comparison.seeds, "seed", "seeds");
    let spread = if comparison.seeds > 1 { ", mean ± standard deviation" } else { "" };
    let mut text = format!("measured on the {part} part, {seeds}{spread}\n\n");
    text += &table::table(&head, &compared.iter().map(row).collect::<Vec<_>>());
    if let Some(each) = compared.first().and_then(|c| c.each.as_ref()).filter(|_| has_p) {
        text += &format!(
            "\np: how likely a difference from the first variant at least as large would be by chance \
             (paired permutation test over the examples' {})\n",
            each.measure
        );
    }
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

/// A probability with as many digits as say something.
fn significance(p: f64) -> String {
    if p < 0.001 { "< 0.001".into() } else { format!("{p:.3}") }
}

fn drawn(compared: &[Compared]) -> picture::Comparison {
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
    picture::Comparison {
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
