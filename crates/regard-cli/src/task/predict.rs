//! `regard predict`: uses a run's model.

use super::device::DeviceOption;
use super::phase_bar::PhaseBar;
use super::settings::{Settings, settings_and_inputs};
use super::threads::Threads;
use crate::output::{Destination, note};
use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use regard_data::files::{decoded, lines};
use regard_tasks::run::Run;
use regard_tasks::task::{Alternative, Input, Model, Prediction};
use serde::Serialize;
use std::cell::Cell;
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write, stdin};
use std::path::{Path, PathBuf};

/// Use a run's model: on arguments, on the lines of a file, or on standard input
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  regard predict runs/translate \"the children bought three red books yesterday\"
  regard predict runs/translate \"she is drawing a bird\" beam=10
  regard predict runs/translate \"she is drawing a bird\" --n-best 5
  regard predict runs/translate test:17
  regard predict runs/label --file sentences.txt --json
  cat sentences.txt | regard predict runs/classify
  regard predict runs/draw \"a red circle left of a small blue square\" --out circle.png

What an input is: translate, label and draw take a sentence, summarize a text, classify a text or the path
of a recording, answer a text and a question with a tab between, transcribe the path of a recording,
image and caption that of a picture, graph a node's name or number, or that of a whole graph, regress one
number or several with commas (`-- -1,2` where the first is negative). Everywhere test:17 is an example of the data, counted from
0. What begins with an option's name and =, as beam=10, sets that option; behind -- everything is an
input. Words that the model does not know are named beside the output, and in --json.")]
pub struct Command {
    /// The run's folder
    #[arg(value_hint = clap::ValueHint::DirPath)]
    run: PathBuf,
    /// Inputs, and options of [data] and [search]; without inputs, and without --file, lines of
    /// standard input
    #[arg(value_name = "INPUT|KEY=VALUE", allow_negative_numbers = true)]
    words: Vec<String>,
    /// Inputs, whatever they look like
    #[arg(value_name = "INPUT", last = true)]
    inputs: Vec<String>,
    #[command(flatten)]
    settings: Settings,
    /// Read inputs from the lines of this file
    #[arg(long, value_name = "FILE", conflicts_with = "inputs")]
    file: Option<PathBuf>,
    /// Go on where an input has no answer: its line says why, and the program fails in the end
    #[arg(long)]
    keep_going: bool,
    /// One JSON object a line, with scores
    #[arg(long)]
    json: bool,
    /// The best outputs for each input, so many at most, in lines of the input's number, the rank, the
    /// score and the output with tabs between (the score of a label or an answer is its probability; that
    /// of a sentence's labels the logarithm of theirs; that of a text the same, divided by the length
    /// penalty)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000))]
    n_best: Option<u16>,
    /// Where the pictures of a model that draws go: a .png file for one input, or a folder, which gets a
    /// picture for each and a list of them with their sentences, list.tsv, as `caption` reads it
    #[arg(long, value_name = "FILE|FOLDER", conflicts_with = "n_best")]
    out: Option<PathBuf>,
    /// Pictures that were written so far.
    #[arg(skip)]
    drawn: Cell<usize>,
    #[command(flatten)]
    device: DeviceOption,
    #[command(flatten)]
    threads: Threads,
}

/// Lines that are answered together when they come from a file.
const TOGETHER: usize = 256;

impl Command {
    /// Writes one line for each input.
    pub fn run(&self, to: &mut impl Write) -> Result<()> {
        self.threads.start()?;
        let run = Run::open(&self.run)?;
        let (settings, mut inputs) = settings_and_inputs(&run, &self.words)?;
        inputs.extend_from_slice(&self.inputs);
        let model = run.model(&self.settings.apply_to_run(&run, &settings)?)?;
        self.check_out(&*model)?;
        self.device.place(model.as_ref())?;
        let _bar = PhaseBar::new();
        let mut unknown = UnknownWords::default();
        let answered = self.answer(&*model, inputs, &mut unknown, to);
        // What was written so far stands before what is said of it.
        to.flush()?;
        unknown.tell();
        answered?;
        match unknown.failed {
            0 => Ok(()),
            failed => bail!("{failed} of {} inputs have no answer", unknown.inputs),
        }
    }

    /// Prepares where pictures go. Refuses a model that draws nothing, and one whose pictures would go
    /// nowhere.
    fn check_out(&self, model: &dyn Model) -> Result<()> {
        match (&self.out, model.asks().draws) {
            (Some(out), true) => Pictures(out).begin(),
            (Some(_), false) => bail!("--out is for pictures, and this model answers with text"),
            (None, true) if !self.json => bail!(
                "this model answers with pictures: `--out picture.png` writes one, `--out FOLDER` \
                 several, `--json` has them in base64"
            ),
            (None, _) => Ok(()),
        }
    }

    /// Answers arguments, the lines of a file, or those of standard input.
    fn answer(
        &self,
        model: &dyn Model,
        inputs: Vec<String>,
        unknown: &mut UnknownWords,
        to: &mut impl Write,
    ) -> Result<()> {
        if let Some(file) = &self.file {
            if let Some(input) = inputs.first() {
                bail!("--file {} has the inputs, and `{input}` is one too", file.display());
            }
            let lines = lines(file, self.settings.encoding.as_deref())?;
            let mut chunks = lines.chunks(TOGETHER).enumerate();
            let file = file.display().to_string();
            return chunks.try_for_each(|(at, some)| {
                let from = Lines { file: &file, before: at * TOGETHER, lines: some };
                self.answer_lines(model, &from, unknown, to)
            });
        }
        if !inputs.is_empty() {
            if self.keep_going {
                let from = Lines { file: "arguments", before: 0, lines: &inputs };
                return self.answer_lines(model, &from, unknown, to);
            }
            let answers = self.predict(model, &inputs)?;
            unknown.count(&answers);
            return self.write(&answers, 0, to);
        }
        self.answer_standard_input(model, unknown, to)
    }

    /// Answers all lines that are there at once, and then what comes next: somebody may be typing, and
    /// another program may wait for an answer before it asks again.
    fn answer_standard_input(
        &self,
        model: &dyn Model,
        unknown: &mut UnknownWords,
        to: &mut impl Write,
    ) -> Result<()> {
        const AHEAD: usize = 1 << 16;
        let mut input = BufReader::with_capacity(AHEAD, stdin().lock());
        let (mut rest, mut before) = (Vec::new(), 0);
        loop {
            let there = input.fill_buf().context("standard input")?;
            let (count, is_end) = (there.len(), there.is_empty());
            rest.extend_from_slice(there);
            input.consume(count);
            let whole = match (is_end, rest.iter().rposition(|&byte| byte == b'\n')) {
                (true, _) => rest.len(),
                (false, Some(last)) => last + 1,
                (false, None) => continue,
            };
            let mut lines: Vec<Vec<u8>> =
                rest[..whole].split(|&byte| byte == b'\n').map(<[u8]>::to_vec).collect();
            // Behind the last end of a line there is no line.
            lines.pop_if(|line| line.is_empty());
            rest.drain(..whole);
            for some in lines.chunks(TOGETHER) {
                self.answer_bytes(model, some, before, unknown, to)?;
                before += some.len();
                to.flush()?;
            }
            if is_end {
                return Ok(());
            }
        }
    }

    /// Answers lines of standard input after so many others; those before one that is no text too.
    fn answer_bytes(
        &self,
        model: &dyn Model,
        lines: &[Vec<u8>],
        before: usize,
        unknown: &mut UnknownWords,
        to: &mut impl Write,
    ) -> Result<()> {
        let encoding = self.settings.encoding.as_deref();
        let mut texts = Vec::with_capacity(lines.len());
        let mut wrong = None;
        for (at, line) in lines.iter().enumerate() {
            match decoded(line, encoding) {
                Ok(line) => texts.push(line.strip_suffix('\r').unwrap_or(&line).to_string()),
                Err(error) => {
                    let place = format!("standard input, line {}", before + at + 1);
                    wrong = Some(anyhow::Error::from(error).context(place));
                    break;
                }
            }
        }
        let from = Lines { file: "standard input", before, lines: &texts };
        self.answer_lines(model, &from, unknown, to)?;
        wrong.map_or(Ok(()), Err)
    }

    /// Answers the lines of a file after so many others: one that has no answer is named, and those
    /// before it are answered.
    fn answer_lines(
        &self,
        model: &dyn Model,
        from: &Lines,
        unknown: &mut UnknownWords,
        to: &mut impl Write,
    ) -> Result<()> {
        let &Lines { file, before, lines } = from;
        match self.predict(model, lines) {
            Ok(all) => {
                unknown.count(&all);
                return self.write(&all, before, to);
            }
            Err(regard_tasks::Error::Stopped) => return Err(regard_tasks::Error::Stopped.into()),
            Err(_) => {}
        }
        for (at, line) in lines.iter().enumerate() {
            let place = || format!("{file}, line {}", before + at + 1);
            let one = match self.predict(model, std::slice::from_ref(line)) {
                Err(error) if self.keep_going && !matches!(error, regard_tasks::Error::Stopped) => {
                    unknown.failed += 1;
                    vec![Answer::None { input: line.clone(), error: error.to_string() }]
                }
                one => one.with_context(place)?,
            };
            unknown.count(&one);
            self.write(&one, before + at, to)?;
        }
        Ok(())
    }

    /// An answer for each input, blank for a blank one: lines in and lines out stay side by side.
    fn predict(&self, model: &dyn Model, inputs: &[String]) -> regard_tasks::Result<Vec<Answer>> {
        let is_blank = |input: &String| input.trim().is_empty();
        let form = model.asks().form;
        let asked =
            inputs.iter().filter(|text| !is_blank(text)).map(|text| Input::named(form, text));
        let asked = asked.collect::<regard_tasks::Result<Vec<Input>>>()?;
        let mut answers = match (asked.is_empty(), self.n_best) {
            (true, _) => Vec::new(),
            (false, None) => model.predict(&asked)?.into_iter().map(Answer::One).collect(),
            (false, Some(n)) => {
                let found = model.n_best(&asked, n.into())?.into_iter().zip(asked);
                found
                    .map(|(n_best, input)| Answer::Several { input: input.to_string(), n_best })
                    .collect()
            }
        }
        .into_iter();
        let answer = |input: &String| match is_blank(input) {
            true => Some(Answer::blank(input, self.n_best.is_some())),
            false => answers.next(),
        };
        Ok(inputs.iter().filter_map(answer).collect())
    }

    /// Writes answers to inputs after so many others.
    fn write(&self, answers: &[Answer], before: usize, to: &mut impl Write) -> Result<()> {
        for (answer, number) in answers.iter().zip(before + 1..) {
            let picture = match (&self.out, answer) {
                (Some(out), Answer::One(prediction)) => {
                    let before = self.drawn.get();
                    let picture = Pictures(out).write(prediction, number, before)?;
                    self.drawn.set(before + usize::from(picture.is_some()));
                    picture
                }
                _ => None,
            };
            match answer {
                _ if self.json => writeln!(to, "{}", serde_json::to_string(answer)?)?,
                Answer::One(prediction) => match picture {
                    Some(path) => writeln!(to, "{}", path.display())?,
                    None => writeln!(to, "{}", prediction.output)?,
                },
                Answer::None { error, .. } => writeln!(to, "error: {error}")?,
                Answer::Several { n_best, .. } => {
                    for (Alternative { output, score }, rank) in n_best.iter().zip(1..) {
                        writeln!(to, "{number}\t{rank}\t{score}\t{output}")?;
                    }
                }
            }
        }
        Ok(())
    }
}

/// Where pictures go: a file for one, or a folder.
struct Pictures<'a>(&'a Path);

/// The list of a folder's pictures and what was asked for, as `caption` reads it.
const LIST: &str = "list.tsv";

impl Pictures<'_> {
    fn is_file(&self) -> bool {
        self.0.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("png"))
    }

    /// Makes the folder with an empty list. Refuses a file that cannot be written, and a folder that holds files.
    fn begin(&self) -> Result<()> {
        if self.is_file() {
            return Destination::new(self.0).check();
        }
        let list = self.0.join(LIST);
        let is_empty = |mut files: std::fs::ReadDir| files.next().is_none();
        ensure!(
            std::fs::read_dir(self.0).map_or(true, is_empty),
            "{} holds files already; `--out` names a new folder",
            self.0.display()
        );
        std::fs::create_dir_all(self.0).with_context(|| self.0.display().to_string())?;
        std::fs::write(&list, "").with_context(|| list.display().to_string())
    }

    /// Writes the picture of the input of this number, from 1; gives where it lies. None of a blank input.
    /// So many were written before.
    fn write(
        &self,
        prediction: &Prediction,
        number: usize,
        before: usize,
    ) -> Result<Option<PathBuf>> {
        let Some(png) = prediction.picture() else { return Ok(None) };
        if self.is_file() {
            let out = self.0.display();
            ensure!(before == 0, "{out} is one picture; several go to a folder: `--out FOLDER`");
            regard::tensor::write_whole(self.0, &png)?;
            return Ok(Some(self.0.to_path_buf()));
        }
        let name = format!("{number:04}.png");
        let (path, list) = (self.0.join(&name), self.0.join(LIST));
        regard::tensor::write_whole(&path, &png)?;
        let sentences = prediction.details["sentences"].as_array().into_iter().flatten();
        let lines: String = sentences
            .filter_map(|sentence| sentence.as_str())
            // A tab or the end of a line would begin another cell.
            .map(|sentence| sentence.split_whitespace().collect::<Vec<_>>().join(" "))
            .map(|sentence| format!("{name}\t{sentence}\n"))
            .collect();
        let file = std::fs::OpenOptions::new().append(true).open(&list);
        let written = file.and_then(|mut file| file.write_all(lines.as_bytes()));
        written.with_context(|| list.display().to_string())?;
        Ok(Some(path))
    }
}

/// Some lines of a file, after so many others.
struct Lines<'a> {
    file: &'a str,
    before: usize,
    lines: &'a [String],
}

/// Words of the inputs that the model does not know.
#[derive(Default)]
struct UnknownWords {
    inputs: usize,
    /// How many have no answer.
    failed: usize,
    with_unknown: usize,
    words: BTreeSet<String>,
}

impl UnknownWords {
    fn count(&mut self, answers: &[Answer]) {
        self.inputs += answers.len();
        for answer in answers {
            let Answer::One(prediction) = answer else { continue };
            let words = prediction.unknown_words();
            self.with_unknown += usize::from(!words.is_empty());
            self.words.extend(words.into_iter().map(str::to_string));
        }
    }

    /// Says which they are, some of them where they are many.
    fn tell(&self) {
        const SOME: usize = 8;
        if self.words.is_empty() {
            return;
        }
        let named: Vec<&str> = self.words.iter().take(SOME).map(String::as_str).collect();
        let more = match self.words.len().saturating_sub(SOME) {
            0 => String::new(),
            more => format!(" and {more} more (--json has them all)"),
        };
        let whose = match self.inputs {
            1 => String::new(),
            all => format!("{} of {all} inputs have ", self.with_unknown),
        };
        let named = named.join(", ");
        note(&format!("{whose}words that the model does not know: {named}{more}"));
    }
}

/// What is told of one input.
#[derive(Serialize)]
#[serde(untagged)]
enum Answer {
    One(Prediction),
    Several { input: String, n_best: Vec<Alternative> },
    None { input: String, error: String },
}

impl Answer {
    /// The answer to a blank input.
    fn blank(input: &str, several: bool) -> Self {
        let input = input.to_string();
        match several {
            true => Self::Several { input, n_best: Vec::new() },
            false => Self::One(Prediction {
                input,
                output: String::new(),
                details: serde_json::Value::Null,
            }),
        }
    }
}
