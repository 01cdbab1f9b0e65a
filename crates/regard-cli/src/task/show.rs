//! `regard show`: what a run's model attends to, or weights from a file.

use super::device::DeviceOption;
use super::settings::{Settings, settings_and_inputs};
use super::threads::Threads;
use crate::output::{Destination, is_same_file, note};
use crate::terminal::columns;
use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use regard_picture::picture;
use regard_picture::picture::Caption;
use regard_picture::scene::{Scene, WeightsFile};
use regard_tasks::run::Run;
use regard_tasks::task::{Input, Model, Part};
use std::io::{IsTerminal, Write, stdout};
use std::path::PathBuf;

/// Draw what a run's model attends to for an input, or the weights of a file
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  regard show runs/translate                      # an example of the validation part
  regard show runs/translate \"she is drawing a bird\"              # in the terminal
  regard show runs/translate \"she is drawing a bird\" --as html --out page.html
  regard show runs/translate \"she is drawing a bird\" --as gif     # as it was written
  regard show runs/label \"I saw a saw\" --as png --layer 2 --head 3
  regard show runs/graph 14 --as svg
  regard show out.safetensors --as png       # what `regard attend --weights` wrote, or another
  regard show bert.safetensors --tensor layer.3.weights --rows \"I saw a saw\" --as html")]
pub struct Command {
    /// The run's folder, or a safetensors file with weights [Nq, Nk], [H, Nq, Nk] or [B, H, Nq, Nk]
    #[arg(value_name = "RUN|FILE.safetensors")]
    run: PathBuf,
    /// The input, as `regard predict` takes it, and options of [data] and [search] [default: the
    /// first example of the validation part]; a file needs none
    #[arg(value_name = "INPUT|KEY=VALUE", allow_negative_numbers = true)]
    words: Vec<String>,
    /// The input, whatever it looks like
    #[arg(value_name = "INPUT", last = true)]
    inputs: Vec<String>,
    #[command(flatten)]
    settings: Settings,
    /// What to make [default: what the ending of --out says, or for the terminal]
    #[arg(long = "as", value_enum)]
    form: Option<Form>,
    /// Where to write it, `-` for standard output [default: into the run's folder, named after the
    /// scene]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Which scene, where there are several (alignment, encoder, …) [default: the first]
    #[arg(long, value_name = "NAME")]
    scene: Option<String>,
    /// Which map, counted from 1 over the heads of all layers [default: all together; in the terminal
    /// the first]
    #[arg(long, value_name = "N", conflicts_with_all = ["layer", "head"])]
    which: Option<usize>,
    /// The heads of one layer alone, counted from 1
    #[arg(long, value_name = "N")]
    layer: Option<usize>,
    /// One head alone, counted from 1 within its layer
    #[arg(long, value_name = "N")]
    head: Option<usize>,
    /// Which tensor of a file [default: weights, or the only one that can be meant]
    #[arg(long, value_name = "NAME", help_heading = "Weights from a file")]
    tensor: Option<String>,
    /// What the queries are called, with spaces between [default: what the file says, or numbers]
    #[arg(long, value_name = "LABELS", help_heading = "Weights from a file")]
    rows: Option<String>,
    /// What the keys are called, with spaces between [default: what the file says, or numbers]
    #[arg(long, value_name = "LABELS", help_heading = "Weights from a file")]
    columns: Option<String>,
    #[command(flatten)]
    device: DeviceOption,
    #[command(flatten)]
    threads: Threads,
}

/// The scenes of an input, by name, with a title and the folder where pictures go.
struct Shown {
    scenes: Vec<(String, Scene)>,
    /// The input, or the file's name.
    title: String,
    /// Whose scenes they are, and of what; none where a file holds them.
    shows: Option<(Run, Box<dyn Model>, Input)>,
    /// Where a scene's picture goes, without its ending.
    beside: fn(&std::path::Path, &str) -> PathBuf,
}

impl Shown {
    /// What a picture of a scene says above itself.
    fn caption(&self, scene: &str) -> Result<Caption> {
        Ok(match &self.shows {
            Some((run, model, input)) => run.caption(model.as_ref(), scene, input)?,
            None => Caption::from(&self.title),
        })
    }
}

/// What a scene can become.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Characters
    Terminal,
    /// A picture that scales
    Svg,
    /// A picture of dots
    Png,
    /// A picture that moves: row after row as it was written, or map after map
    Gif,
    /// A page to look around in, without network
    Html,
    /// The numbers
    Json,
    /// The numbers
    Safetensors,
}

/// A picture of all of a scene.
pub(super) fn png(scene: &Scene, caption: &Caption) -> Result<Vec<u8>> {
    Ok(picture::png(&picture::svg(scene, caption, None), 2.0)?)
}

impl Command {
    /// Draws, and says where.
    pub fn run(&self, to: &mut impl Write) -> Result<()> {
        let form = self.form()?;
        if let Some(out) = &self.out {
            Destination::new(out).check()?;
        }
        self.threads.start()?;
        let shown = self.shown()?;
        let scenes = &shown.scenes;
        let names: Vec<&str> = scenes.iter().map(|(name, _)| &name[..]).collect();
        let found = match &self.scene {
            None => scenes.first(),
            Some(wanted) => scenes.iter().find(|(name, _)| name == wanted),
        };
        let Some((name, scene)) = found else {
            bail!("there is no such scene; there are: {}", names.join(", "));
        };
        let scene = &scene.clone().with_heads(self.layer, self.head)?;
        let maps = scene.maps().len();
        let which = match self.which {
            None => None,
            Some(n) if (1..=maps).contains(&n) => Some(n - 1),
            Some(n) => bail!("--which {n}: there are {maps}"),
        };
        let caption = || shown.caption(name);
        let (bytes, ending) = match form {
            Form::Terminal => {
                const USUAL: usize = 100;
                let width = columns().unwrap_or(USUAL);
                let color = stdout().is_terminal();
                let text = picture::terminal(scene, which.unwrap_or(0), width, color);
                to.write_all(text.as_bytes())?;
                if maps > 1 && which.is_none() {
                    let how = match (self.layer, self.head) {
                        (None, None) => "--which",
                        (Some(_), _) => "--head",
                        (None, Some(_)) => "--layer",
                    };
                    writeln!(to, "1 of {maps}; {how} N shows another")?;
                }
                return self.say_others(&names, to);
            }
            Form::Svg => (picture::svg(scene, &caption()?, which).into_bytes(), "svg"),
            Form::Png => {
                let svg = picture::svg(scene, &caption()?, which);
                if let Some(advice) = picture::missing_fonts(&svg)? {
                    eprintln!("regard: {advice}");
                }
                (picture::png(&svg, 2.0)?, "png")
            }
            Form::Gif => (picture::gif(scene, caption()?, which)?, "gif"),
            Form::Html => (picture::page(scene, &caption()?).into_bytes(), "html"),
            Form::Json => (format!("{}\n", picture::numbers_json(scene)).into_bytes(), "json"),
            Form::Safetensors => (picture::numbers(scene)?, "safetensors"),
        };
        let beside = || (shown.beside)(&self.run, name).with_extension(ending);
        let path = self.out.clone().unwrap_or_else(beside);
        if is_same_file(&path, &self.run) {
            bail!("{}: this is the file that is shown; --out names another", path.display());
        }
        let out = Destination::new(&path);
        let unwritable = || match self.out {
            Some(_) => "nothing was drawn",
            None => "its folder cannot be written to; `--out` names another place",
        };
        out.write(&bytes, to).with_context(unwritable)?;
        if out.is_standard_output() {
            return Ok(());
        }
        writeln!(to, "wrote {}", path.display())?;
        self.say_others(&names, to)
    }

    /// The scenes of a run's model for the input, or the weights of a file.
    fn shown(&self) -> Result<Shown> {
        if self.run.is_file() {
            if !self.words.is_empty() || !self.inputs.is_empty() {
                bail!("{} is a file, which is shown without an input", self.run.display());
            }
            let labels = |text: &Option<String>| {
                let text = text.as_deref().unwrap_or_default();
                text.split_whitespace().map(str::to_string).collect()
            };
            let (rows, columns) = (labels(&self.rows), labels(&self.columns));
            let file = WeightsFile { tensor: self.tensor.clone(), rows, columns };
            let title = self.run.file_name().unwrap_or_default().to_string_lossy().into_owned();
            return Ok(Shown {
                scenes: vec![("weights".into(), file.scene(&self.run)?)],
                title,
                shows: None,
                beside: |file, _| file.to_path_buf(),
            });
        }
        if self.tensor.is_some() || self.rows.is_some() || self.columns.is_some() {
            bail!("--tensor, --rows and --columns are for a file of weights, not for a run");
        }
        let run = Run::open(&self.run)?;
        let (settings, mut inputs) = settings_and_inputs(&run, &self.words)?;
        inputs.extend_from_slice(&self.inputs);
        let model = run.model(&self.settings.apply_to_run(&run, &settings)?)?;
        self.device.place(model.as_ref())?;
        let input = match &inputs[..] {
            [] => example(),
            [one] => Input::named(model.asks().form, one)?,
            [_, second, ..] => bail!("one input is shown at a time, and `{second}` is another"),
        };
        let title = input.to_string();
        Ok(Shown {
            scenes: model.show(&input)?,
            title,
            shows: Some((run, model, input)),
            beside: |run, name| run.join(name),
        })
    }

    fn say_others(&self, names: &[&str], to: &mut impl Write) -> Result<()> {
        if names.len() > 1 && self.scene.is_none() {
            writeln!(to, "other scenes: {}", names[1..].join(", "))?;
        }
        Ok(())
    }

    /// What to make; refuses options that would do nothing.
    fn form(&self) -> Result<Form> {
        let form = match (self.form, &self.out) {
            (Some(Form::Terminal), Some(_)) => {
                bail!("--out is for files; the terminal writes none")
            }
            (Some(form), _) => form,
            (None, Some(out)) if Destination::new(out).is_standard_output() => {
                bail!("--out -: --as says what is written to standard output, as `--as svg`")
            }
            (None, None) => Form::Terminal,
            (None, Some(out)) => {
                let ending = out.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
                match Form::from_str(ending, true) {
                    Ok(form) if form != Form::Terminal => form,
                    _ => bail!(
                        "{}: svg, png, gif, html, json or safetensors, by its ending or by --as",
                        out.display()
                    ),
                }
            }
        };
        if self.which.is_some() && matches!(form, Form::Html | Form::Json | Form::Safetensors) {
            bail!("--which is for svg, png, gif and the terminal; the others hold every head");
        }
        Ok(form)
    }
}

/// The first example of the validation part, and a word about it.
fn example() -> Input {
    let example = Input::example(Part::Validation, 0);
    note(&format!("no input is given; this is an example of the data, {example}"));
    example
}
