//! `regard predict`: uses a run's model.

use super::Settings;
use super::argument::input;
use super::phase_bar::PhaseBar;
use super::threads::Threads;
use anyhow::{Context, Result};
use clap::Args;
use regard_tasks::data::{decoded, lines};
use regard_tasks::{Input, Model, Prediction, Run};
use std::io::{BufRead, Write, stdin};
use std::path::PathBuf;

/// Use a run's model: on arguments, on the lines of a file, or on standard input
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  regard predict runs/translate \"I saw three red books in the garden\"
  regard predict runs/label --file sentences.txt --json
  cat sentences.txt | regard predict runs/classify

What an input is: translate and label take a sentence, classify a text or the path of a WAV file,
image the path of a picture, graph a node's number, regress one number or several with commas
(`-- -1,2` where the first is negative). For classify on sound and for image, test:17 is one of
their data, counted from 0.")]
pub struct Command {
    /// The run's folder
    run: PathBuf,
    /// Inputs; without any, and without --file, lines of standard input
    #[arg(allow_negative_numbers = true)]
    inputs: Vec<String>,
    #[command(flatten)]
    settings: Settings,
    /// Read inputs from the lines of this file
    #[arg(long, value_name = "FILE", conflicts_with = "inputs")]
    file: Option<PathBuf>,
    /// One JSON object a line, with scores
    #[arg(long)]
    json: bool,
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
        let model = run.model(&self.settings.apply_to_run(&run)?)?;
        let _bar = PhaseBar::new();
        if let Some(file) = &self.file {
            let lines = lines(file, self.settings.encoding.as_deref())?;
            let mut chunks = lines.chunks(TOGETHER).enumerate();
            let file = file.display().to_string();
            return chunks.try_for_each(|(at, some)| {
                self.answer_lines(&*model, &file, at * TOGETHER, some, to)
            });
        }
        if !self.inputs.is_empty() {
            return self.answer(&*model, &self.inputs, to);
        }
        // Each line is answered at once: somebody may be typing.
        let encoding = self.settings.encoding.as_deref();
        for (at, line) in stdin().lock().split(b'\n').enumerate() {
            let place = || format!("standard input, line {}", at + 1);
            let line = decoded(&line.with_context(place)?, encoding).with_context(place)?;
            let line = line.strip_suffix('\r').unwrap_or(&line).to_string();
            self.answer_lines(&*model, "standard input", at, &[line], to)?;
            to.flush()?;
        }
        Ok(())
    }

    /// As [`Self::answer`], for the lines of a file after so many others: one that has no answer is
    /// named, and those before it are answered.
    fn answer_lines(
        &self,
        model: &dyn Model,
        file: &str,
        before: usize,
        lines: &[String],
        to: &mut impl Write,
    ) -> Result<()> {
        match predict(model, lines) {
            Ok(all) => return self.write(&all, to),
            Err(regard_tasks::Error::Stopped) => return Err(regard_tasks::Error::Stopped.into()),
            Err(_) => {}
        }
        for (at, line) in lines.iter().enumerate() {
            let place = || format!("{file}, line {}", before + at + 1);
            self.answer(model, std::slice::from_ref(line), to).with_context(place)?;
        }
        Ok(())
    }

    fn answer(&self, model: &dyn Model, inputs: &[String], to: &mut impl Write) -> Result<()> {
        self.write(&predict(model, inputs)?, to)
    }

    fn write(&self, predictions: &[Prediction], to: &mut impl Write) -> Result<()> {
        for prediction in predictions {
            match self.json {
                true => writeln!(to, "{}", serde_json::to_string(&prediction)?)?,
                false => writeln!(to, "{}", prediction.output)?,
            }
        }
        Ok(())
    }
}

/// A prediction for each input, blank for a blank one: lines in and lines out stay side by side.
fn predict(model: &dyn Model, inputs: &[String]) -> regard_tasks::Result<Vec<Prediction>> {
    let is_blank = |input: &String| input.trim().is_empty();
    let form = model.asks().form;
    let asked = inputs.iter().filter(|text| !is_blank(text)).map(|text| input(form, text));
    let asked = asked.collect::<regard_tasks::Result<Vec<Input>>>()?;
    let mut answers = match asked.is_empty() {
        true => Vec::new(),
        false => model.predict(&asked)?,
    }
    .into_iter();
    let blank = |input: &String| Prediction {
        input: input.clone(),
        output: String::new(),
        details: serde_json::Value::Null,
    };
    let answer = |input: &String| match is_blank(input) {
        true => Some(blank(input)),
        false => answers.next(),
    };
    Ok(inputs.iter().filter_map(answer).collect())
}
