//! `regard explain`: which parts of an input matter, told in several ways, and which of them is right.

use super::device::DeviceOption;
use super::eval::PartName;
use super::phase_bar::PhaseBar;
use super::settings::{Settings, settings_and_inputs};
use super::table;
use super::threads::Threads;
use anyhow::{Result, bail};
use clap::Args;
use regard_tasks::Error;
use regard_tasks::inspect::Attribution;
use regard_tasks::run::Run;
use regard_tasks::task::{How, Input, Method, Model, Part, Saliency};
use serde_json::json;
use std::io::Write;
use std::path::PathBuf;

/// Tell which parts of an input matter for what is predicted, and try which way of telling is right
#[derive(Args, Debug)]
#[command(after_help = "\
Parts of the input are set to zero in the order in which a method says that they matter. The more what
is predicted falls meanwhile (the mean over all shares that are gone), the more the method is right:
`fall`. In the reverse order it should fall little: `reversed`. Beside them stands any order.

Examples:
  regard explain runs/classify \"a dull and tired film\"
  regard explain runs/classify test:7 --method integrated-gradients
  regard explain runs/classify --part test --examples 64")]
pub struct Command {
    /// The run's folder
    #[arg(value_hint = clap::ValueHint::DirPath)]
    run: PathBuf,
    /// The input, as `regard predict` takes it, and options of [data] and [search] [default: the methods
    /// are tried on examples of a part]
    #[arg(value_name = "INPUT|KEY=VALUE", allow_negative_numbers = true)]
    words: Vec<String>,
    /// The input, whatever it looks like
    #[arg(value_name = "INPUT", last = true)]
    inputs: Vec<String>,
    #[command(flatten)]
    settings: Settings,
    /// One way of telling: gradient-input, integrated-gradients, attention, attention-gradient or
    /// rollout [default: all]
    #[arg(long, value_parser = |name: &str| name.parse::<Method>().map_err(|e| e.to_string()))]
    method: Option<Method>,
    /// Which part of the data, where no input is given [default: test]
    #[arg(long, value_enum)]
    part: Option<PartName>,
    /// Examples of the part, 1 to 128 [default: 64]
    #[arg(long, value_name = "N")]
    examples: Option<usize>,
    /// As JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    device: DeviceOption,
    #[command(flatten)]
    threads: Threads,
}

impl Command {
    /// Writes what each part is worth by each method, or how right each method is over a part.
    pub fn run(&self, to: &mut impl Write) -> Result<()> {
        self.threads.start()?;
        let run = Run::open(&self.run)?;
        let (settings, mut inputs) = settings_and_inputs(&run, &self.words)?;
        inputs.extend_from_slice(&self.inputs);
        let model = run.model(&self.settings.apply_to_run(&run, &settings)?)?;
        self.device.place(model.as_ref())?;
        match &inputs[..] {
            [] => self.over_part(model.as_ref(), to),
            [one] => {
                if self.part.is_some() || self.examples.is_some() {
                    bail!("--part and --examples are for a whole part, without an input");
                }
                let input = Input::named(model.asks().form, one)?;
                self.of_input(model.as_ref(), &input, to)
            }
            [_, second, ..] => bail!("one input is explained at a time, and `{second}` is another"),
        }
    }

    fn over_part(&self, model: &dyn Model, to: &mut impl Write) -> Result<()> {
        if self.method.is_some() {
            bail!("--method is for one input; over a part all methods are tried");
        }
        let part = self.part.map_or(Part::Test, Part::from);
        let bar = PhaseBar::new();
        let found = Attribution::compute(model, part, self.examples.unwrap_or(64))?;
        drop(bar);
        if self.json {
            writeln!(to, "{}", serde_json::to_string_pretty(&found)?)?;
            return Ok(());
        }
        let examples = table::count(found.examples, "example", "examples");
        writeln!(to, "{} part, {examples}", found.part.name())?;
        let area = |area: Option<f64>| area.map_or(String::new(), table::measure);
        let row = |areas: &regard_tasks::inspect::Areas| {
            vec![areas.method.name().to_string(), area(areas.most), area(areas.least)]
        };
        let mut rows: Vec<Vec<String>> = found.methods.iter().map(row).collect();
        rows.push(vec!["any order".into(), table::measure(found.random), String::new()]);
        write!(to, "{}", table::table(&["method", "fall", "reversed"], &rows))?;
        for areas in &found.methods {
            if let Some(refused) = &areas.refused {
                writeln!(to, "{}: {refused}", areas.method.name())?;
            }
        }
        Ok(())
    }

    fn of_input(&self, model: &dyn Model, input: &Input, to: &mut impl Write) -> Result<()> {
        let (mut found, mut refused) = (Vec::new(), Vec::new());
        let methods = self.method.map_or(Method::ALL.to_vec(), |method| vec![method]);
        let alone = methods.len() == 1;
        for method in methods {
            match model.abilities().saliency(input, How { method, faithfulness: true }) {
                Ok(one) => found.push(one),
                Err(Error::Stopped) => return Err(Error::Stopped.into()),
                Err(error) if alone || method == Method::GradientInput => return Err(error.into()),
                Err(error) => refused.push((method, error.to_string())),
            }
        }
        if self.json {
            let refused =
                refused.iter().map(|(method, why)| json!({"method": method, "refused": why}));
            let all: Vec<_> = found.iter().map(|one| json!(one)).chain(refused).collect();
            writeln!(to, "{}", serde_json::to_string_pretty(&all)?)?;
            return Ok(());
        }
        written(&found, to)?;
        refused.iter().try_for_each(|(method, why)| writeln!(to, "{}: {why}", method.name()))?;
        Ok(())
    }
}

/// A row for each part, a column for each method, and how far what is predicted falls.
fn written(found: &[Saliency], to: &mut impl Write) -> Result<()> {
    let Some(first) = found.first() else { return Ok(()) };
    writeln!(to, "{}", first.of)?;
    let mut head = vec!["part"];
    head.extend(found.iter().map(|one| one.method.name()));
    let row = |name: &String| {
        let value = |one: &Saliency| {
            // A graph's nodes are ordered by each method anew.
            let at = one.names.iter().position(|own| own == name);
            at.map_or(String::new(), |at| table::measure(f64::from(one.values[at])))
        };
        std::iter::once(name.clone()).chain(found.iter().map(value)).collect::<Vec<String>>()
    };
    let by_place = |at: usize| {
        let value = |one: &Saliency| table::measure(f64::from(one.values[at]));
        std::iter::once(first.names[at].clone()).chain(found.iter().map(value)).collect()
    };
    let same = found.iter().all(|one| one.names == first.names);
    let mut rows: Vec<Vec<String>> = match same {
        true => (0..first.names.len()).map(by_place).collect(),
        false => first.names.iter().map(row).collect(),
    };
    let fall = |name: &str, of: fn(&regard_tasks::task::Faithfulness) -> f64| {
        let each = found.iter().map(|one| one.faithfulness.as_ref());
        let each = each.map(|one| one.map_or(String::new(), |one| table::measure(of(one))));
        std::iter::once(name.to_string()).chain(each).collect::<Vec<String>>()
    };
    rows.push(fall("(fall)", |one| one.most.area));
    rows.push(fall("(reversed)", |one| one.least.area));
    rows.push(fall("(any order)", |one| one.random.area));
    write!(to, "{}", table::table(&head, &rows))?;
    Ok(())
}
