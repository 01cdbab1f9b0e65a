//! Runs that are done, side by side.

use crate::compare::trials::Compared;
use crate::compare::trials::tested;
use crate::options::template::Options;
use crate::run::folder::Run;
use crate::run::record::Record;
use crate::task::part::Part;
use crate::task::placement::Placement;
use regard_data::{Error, Result};

/// What came of runs that were measured side by side.
#[derive(Clone, Debug, PartialEq)]
pub struct ComparedRuns {
    /// The runs, in the order in which they were named.
    pub runs: Vec<Compared>,
    /// What should be known of the measures, in sentences.
    pub notes: Vec<String>,
}

/// Measures runs on a part of their data, which their options name, on a device. Refuses runs of different tasks.
/// Where all were measured on the same examples, each has the probability that its difference from
/// the first is chance; where not, a note says why not.
pub fn compare_runs(
    runs: &[(Run, Options)],
    part: Part,
    device: Placement,
) -> Result<ComparedRuns> {
    check_tasks(runs)?;
    let mut compared = Vec::new();
    let mut notes = Vec::new();
    for (run, options) in runs {
        let name = name(run, runs);
        let model = run.model(options)?;
        device.place(model.as_ref())?;
        let report = model.evaluate(part)?;
        let told = [report.notes, run.notes()?].concat();
        notes.extend(told.iter().map(|note| format!("{name}: {note}")));
        compared.push(Compared {
            name,
            settings: Vec::new(),
            parameters: model.learned(),
            seconds: Record::read(run, usize::MAX)?.last().map_or(0.0, |last| last.seconds),
            peak_bytes: 0,
            scores: vec![report.scores],
            groups: report.groups,
            places: report.places,
            p: None,
            each: report.each,
        });
    }
    match runs.iter().find_map(|run| other_examples(&runs[0], run, part)) {
        Some(why) => {
            compared.iter_mut().for_each(|one| (one.groups, one.places) = (None, None));
            notes.push(format!(
                "the runs were not measured on the same examples: {why}; so no p-values are given"
            ));
        }
        None => compared = tested(compared)?,
    }
    Ok(ComparedRuns { runs: compared, notes })
}

/// What a run is called: its folder's name, or where it lies where another has the same.
fn name(run: &Run, runs: &[(Run, Options)]) -> String {
    let name = run.name();
    match runs.iter().filter(|(other, _)| other.name() == name).count() {
        1 => name,
        _ => run.folder().display().to_string(),
    }
}

fn check_tasks(runs: &[(Run, Options)]) -> Result<()> {
    let Some((first, _)) = runs.first() else { return Ok(()) };
    let task = first.task()?.name();
    for (run, _) in runs {
        let other = run.task()?.name();
        if other != task {
            return Err(Error::invalid(format!(
                "{} is a run of `{task}` and {} one of `{other}`: different tasks have different \
                 measures",
                first.folder().display(),
                run.folder().display()
            )));
        }
    }
    Ok(())
}

/// Why two runs' parts hold other examples; none where they hold the same.
fn other_examples(a: &(Run, Options), b: &(Run, Options), part: Part) -> Option<String> {
    let ((_, a), (_, b)) = (a, b);
    let names = a.names();
    let data: Vec<&String> = names.iter().filter(|name| name.starts_with("data.")).collect();
    let value = |of: &Options, name: &str| of.get(name).map_or("not set".into(), |x| x.to_string());
    let differs = |name: &str| a.get(name) != b.get(name);
    let why = |name: &str| format!("`{name}` is {} and {}", value(a, name), value(b, name));
    if let Some(name) = data.iter().find(|name| differs(name)) {
        return Some(why(name));
    }
    // A part that has files of its own, and embedded data, are the same for every seed.
    let is_given = |part: Part| {
        let before = format!("data.{}", part.name());
        data.iter().any(|name| name.starts_with(&before) && a.get(name).is_some())
    };
    let held_out = is_given(Part::Training) && !is_given(part);
    let seed = match a.get("data.held_out_seed") {
        Some(_) => "data.held_out_seed",
        None => "training.seed",
    };
    (held_out && differs(seed)).then(|| why(seed))
}
