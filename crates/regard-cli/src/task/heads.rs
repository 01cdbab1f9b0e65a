//! `regard heads`: what each head of a run's model does.

use super::ablate::named;
use super::device::DeviceOption;
use super::eval::PartName;
use super::phase_bar::PhaseBar;
use super::threads::Threads;
use super::{Settings, table};
use anyhow::Result;
use clap::Args;
use regard_tasks::inspect::{HeadProfile, Profile};
use regard_tasks::run::Run;
use regard_tasks::task::Part;
use std::io::Write;
use std::path::PathBuf;

/// Say what each head of a run's model does over a part: where it looks, how sharply, at what
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  regard heads runs/translate
  regard heads runs/label --part validation --json")]
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
    /// Writes a sentence, numbers and the strongest examples of each head.
    pub fn run(&self, to: &mut impl Write) -> Result<()> {
        self.threads.start()?;
        let run = Run::open(&self.run)?;
        let options = self.settings.apply_to_run(&run, &self.words)?;
        let bar = PhaseBar::new();
        let model = run.model(&options)?;
        self.device.place(model.as_ref())?;
        let found = Profile::compute(model.as_ref(), Part::from(self.part))?;
        drop(bar);
        if self.json {
            let mut value = serde_json::to_value(&found)?;
            for (one, head) in found.heads.iter().enumerate() {
                value["heads"][one]["sentence"] = head.sentence().into();
            }
            writeln!(to, "{}", serde_json::to_string_pretty(&value)?)?;
            return Ok(());
        }
        written(&found, to)
    }
}

fn name(head: &HeadProfile) -> String {
    format!("{}, layer {}, head {}", named(head.site), head.layer + 1, head.head + 1)
}

fn written(found: &Profile, to: &mut impl Write) -> Result<()> {
    let examples = table::count(found.examples, "example", "examples");
    writeln!(to, "{} part, {examples} looked at\n", found.part.name())?;
    for head in &found.heads {
        writeln!(to, "{} {}", name(head), head.sentence())?;
        for one in &head.strongest {
            let text = format!("{} → {}", one.row, one.column);
            writeln!(
                to,
                "    {:.2}  {}  ({}:{}, number {})",
                one.weight,
                table::short(&text),
                found.part.name(),
                one.example,
                one.example + 1
            )?;
        }
    }
    let share = |x: Option<f64>| x.map_or_else(|| "–".into(), |x| format!("{x:.2}"));
    let row = |head: &HeadProfile| {
        vec![
            name(head),
            share(head.distance),
            share(head.previous),
            share(head.itself),
            share(head.next),
            share(Some(head.separators[0])),
            share(head.same_label.map(|[own, _]| own)),
            share(Some(head.sharpness)),
            format!("{:.1} of {:.1}", head.spread, head.keys),
        ]
    };
    let rows: Vec<Vec<String>> = found.heads.iter().map(row).collect();
    let columns = [
        "head",
        "distance",
        "previous",
        "itself",
        "next",
        "separators",
        "same label",
        "sharpness",
        "spread",
    ];
    write!(to, "\n{}", table::table(&columns, &rows))?;
    for (a, b, share) in found.alike.iter().take(10) {
        let (a, b) = (name(&found.heads[*a]), name(&found.heads[*b]));
        writeln!(to, "{a} and {b} do the same: {:.0}% of their weights", 100.0 * share)?;
    }
    Ok(())
}
