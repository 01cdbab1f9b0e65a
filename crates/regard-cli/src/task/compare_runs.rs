//! Runs that are done, side by side.

use super::comparison_table::{self, Heading};
use super::phase_bar::PhaseBar;
use super::settings::Settings;
use crate::output::note;
use crate::terminal::columns;
use anyhow::{Result, bail};
use regard_tasks::compare::{ComparedRuns, ComparisonFolder, compare_runs};
use regard_tasks::run::Run;
use regard_tasks::task::{Part, Placement};
use std::io::Write;
use std::path::PathBuf;

/// Which runs, and how they are measured.
pub(super) struct CompareRuns<'a> {
    pub(super) folders: Vec<PathBuf>,
    /// Settings of the form KEY=VALUE, for all of them.
    pub(super) words: Vec<String>,
    pub(super) settings: &'a Settings,
    pub(super) part: Part,
    pub(super) device: Placement,
    /// Where table and picture are kept, if anywhere.
    pub(super) out: Option<ComparisonFolder>,
}

impl CompareRuns<'_> {
    /// Measures all and writes the table.
    pub(super) fn run(&self, to: &mut impl Write) -> Result<()> {
        if let [one] = &self.folders[..] {
            let run = one.display();
            bail!("{run} alone has nothing to be compared with; `regard eval {run}` measures it");
        }
        if let Some(out) = &self.out {
            out.check()?;
        }
        let mut runs = Vec::new();
        for folder in &self.folders {
            let run = Run::open(folder)?;
            let options = self.settings.apply_to_run(&run, &self.words)?;
            runs.push((run, options));
        }
        let bar = PhaseBar::new();
        let ComparedRuns { runs: compared, notes } = compare_runs(&runs, self.part, self.device)?;
        drop(bar);
        notes.iter().for_each(|text| note(text));
        let heading = Heading { what: "run", part: self.part, seeds: None };
        write!(to, "{}", comparison_table::written(&compared, &heading, columns()))?;
        if let Some(out) = &self.out {
            let task = runs[0].0.task()?.name();
            out.make()?;
            comparison_table::write(&out.path, task, &compared, &heading)?;
            writeln!(to, "\npicture {}", out.path.join("comparison.svg").display())?;
        }
        Ok(())
    }
}
