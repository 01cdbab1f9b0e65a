//! `regard ablate`: what a run's measure loses without each head.

use super::device::DeviceOption;
use super::eval::PartName;
use super::phase_bar::PhaseBar;
use super::threads::Threads;
use super::{Settings, table};
use crate::output;
use anyhow::Result;
use clap::Args;
use regard::attention::Site;
use regard::tensor::Better;
use regard_data::tick;
use regard_tasks::inspect::{Ablated, Ablation};
use regard_tasks::run::Run;
use regard_tasks::task::Part;
use std::io::Write;
use std::path::PathBuf;

/// Measure a run's model without each of its heads and layers: what is each worth?
#[derive(Args, Debug)]
#[command(after_help = "\
A head's output is set to zero, and to its mean over up to 128 examples of the part; the table says
what the task's own measure changes by. It is kept in the run's folder (ablation.json) and not
computed again.

Examples:
  regard ablate runs/translate
  regard ablate runs/label --part validation --json")]
pub struct Command {
    /// The run's folder
    #[arg(value_hint = clap::ValueHint::DirPath)]
    run: PathBuf,
    /// Options of [data] and [search], as `regard options TASK` lists them
    #[arg(value_name = "KEY=VALUE")]
    words: Vec<String>,
    #[command(flatten)]
    settings: Settings,
    /// Which part of the data
    #[arg(long, value_enum, default_value = "test")]
    part: PartName,
    /// As JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    device: DeviceOption,
    #[command(flatten)]
    threads: Threads,
}

impl Command {
    /// Writes a map of layers and heads for each attention.
    pub fn run(&self, to: &mut impl Write) -> Result<()> {
        self.threads.start()?;
        let run = Run::open(&self.run)?;
        let options = self.settings.apply_to_run(&run, &self.words)?;
        run.notes()?.iter().for_each(|text| output::note(text));
        let part = Part::from(self.part);
        // Under other options it is another measure, which the run does not keep.
        let is_own = options.to_string() == run.options()?.to_string();
        let found = match Ablation::kept(&run, part).filter(|_| is_own) {
            Some(kept) => kept,
            None => {
                let bar = PhaseBar::new();
                let step = Ablation::step_of(&run);
                let model = run.model(&options)?;
                self.device.place(model.as_ref())?;
                let mut told = |_: &Ablation, done, all| tick("taking heads away", done, all);
                let mut found = Ablation::compute(model.as_ref(), part, &mut told)?;
                drop(bar);
                let kept = if is_own { found.keep(&run, step) } else { Ok(()) };
                if let Err(error) = kept {
                    output::note(&format!("not kept in the run ({error})"));
                }
                found
            }
        };
        if self.json {
            writeln!(to, "{}", serde_json::to_string_pretty(&found)?)?;
            return Ok(());
        }
        written(&found, to)
    }
}

fn written(found: &Ablation, to: &mut impl Write) -> Result<()> {
    let examples = table::count(found.examples, "example", "examples");
    writeln!(to, "{} part, {examples}", found.part.name())?;
    writeln!(to, "  {} of the whole model: {}", found.measure, table::measure(found.whole))?;
    let mut sites: Vec<Site> = Vec::new();
    for one in &found.heads {
        if !sites.contains(&one.site) {
            sites.push(one.site);
        }
    }
    for site in sites {
        for (name, of) in [("mean", mean as fn(&Ablated) -> Option<f64>), ("zero", zero)] {
            let what = match name {
                "mean" => {
                    let of = table::count(found.mean_of, "example", "examples");
                    format!("the output of a head is its mean (over {of})")
                }
                _ => "the output of a head is zero".to_string(),
            };
            writeln!(to, "\n{}, change of {} where {what}", named(site), found.measure)?;
            write!(to, "{}", map(found, site, of))?;
        }
    }
    match most(found) {
        Some(text) => writeln!(to, "\n{text}")?,
        None => writeln!(to, "\nWithout any single head the model is as good as whole.")?,
    }
    Ok(())
}

fn mean(one: &Ablated) -> Option<f64> {
    one.mean
}

fn zero(one: &Ablated) -> Option<f64> {
    one.zero
}

/// "encoder", "cross".
pub(super) fn named(site: Site) -> String {
    let name = serde_json::to_value(site).ok();
    name.as_ref().and_then(|name| name.as_str()).unwrap_or_default().to_string()
}

/// A row for each layer, a column for each head, and one for all of them together; the more a model
/// loses, the darker the mark.
fn map(found: &Ablation, site: Site, of: fn(&Ablated) -> Option<f64>) -> String {
    let here = |one: &&Ablated| one.site == site;
    let heads = found.heads.iter().filter(here).filter_map(|one| one.head).max().unwrap_or(0) + 1;
    let layers = found.heads.iter().filter(here).map(|one| one.layer).max().unwrap_or(0) + 1;
    let lost = |change: f64| if found.better == Better::Higher { -change } else { change };
    let all = || found.heads.iter().chain(&found.layers).filter_map(of);
    let most = all().map(lost).fold(0.0, f64::max);
    let cell = |one: Option<&Ablated>| match one.and_then(of) {
        None => String::new(),
        Some(change) => {
            const MARKS: [char; 5] = [' ', '░', '▒', '▓', '█'];
            let share = if most > 0.0 { lost(change).max(0.0) / most } else { 0.0 };
            let mark = MARKS[((share * 4.0).round() as usize).min(4)];
            format!("{} {mark}", Rounded(change))
        }
    };
    let together = found.layers.iter().any(|one| one.site == site);
    let mut head = vec!["layer".to_string()];
    head.extend((1..=heads).map(|head| format!("head {head}")));
    if together {
        head.push("all".into());
    }
    let row = |layer: usize| {
        let mut row = vec![(layer + 1).to_string()];
        let at = |head: Option<usize>| {
            let mut all = found.heads.iter().chain(&found.layers).filter(here);
            all.find(|one| one.layer == layer && one.head == head)
        };
        row.extend((0..heads).map(|head| cell(at(Some(head)))));
        if together {
            row.push(cell(at(None)));
        }
        row
    };
    let rows: Vec<Vec<String>> = (0..layers).map(row).collect();
    let head: Vec<&str> = head.iter().map(|name| &name[..]).collect();
    table::table(&head, &rows)
}

/// A change with its sign and as many digits as a measure has.
struct Rounded(f64);

impl std::fmt::Display for Rounded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let sign = if self.0 < 0.0 { "−" } else { "+" };
        write!(f, "{sign}{}", table::measure(self.0.abs()))
    }
}

/// The head that matters most, in a sentence; none where none makes the model worse.
fn most(found: &Ablation) -> Option<String> {
    let worth = |one: &&Ablated| found.importance(one).unwrap_or(0.0);
    let best = found.heads.iter().max_by(|a, b| worth(a).total_cmp(&worth(b)))?;
    if worth(&best) <= 0.0 {
        return None;
    }
    let idle = found.heads.iter().filter(|one| worth(one) <= 0.0).count();
    let change = best.mean.or(best.zero)?;
    Some(format!(
        "Most is lost without head {} of layer {} ({}): {} {}. {idle} of {} heads can go one at a time \
         without a loss.",
        best.head.unwrap_or(0) + 1,
        best.layer + 1,
        named(best.site),
        found.measure,
        Rounded(change),
        found.heads.len()
    ))
}
