//! `regard predict`: uses a run's model.

use super::Settings;
use super::threads::Threads;
use anyhow::{Context, Result};
use clap::Args;
use regard_tasks::{Model, Run};
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
image the path of a picture, graph a node's number, regress one number or several with commas. For
classify on sound and for image, test:17 is one of their data, counted from 0.")]
pub struct Command {
    /// The run's folder
    run: PathBuf,
    /// Inputs; without any, and without --file, lines of standard input
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
        let model = run.model(&self.settings.apply(run.options()?)?)?;
        if let Some(file) = &self.file {
            let text = std::fs::read_to_string(file).with_context(|| file.display().to_string())?;
            let lines: Vec<String> = text.lines().map(String::from).collect();
            return lines.chunks(TOGETHER).try_for_each(|some| self.answer(&*model, some, to));
        }
        if !self.inputs.is_empty() {
            return self.answer(&*model, &self.inputs, to);
        }
        // Each line is answered at once: somebody may be typing.
        for line in stdin().lock().lines() {
            self.answer(&*model, &[line.context("standard input")?], to)?;
            to.flush()?;
        }
        Ok(())
    }

    fn answer(&self, model: &dyn Model, inputs: &[String], to: &mut impl Write) -> Result<()> {
        for prediction in model.predict(inputs)? {
            match self.json {
                true => writeln!(to, "{}", serde_json::to_string(&prediction)?)?,
                false => writeln!(to, "{}", prediction.output)?,
            }
        }
        Ok(())
    }
}
