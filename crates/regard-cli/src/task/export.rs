//! `regard export`: a run's model for other programs.

use super::threads::Threads;
use anyhow::{Result, bail};
use clap::Args;
use regard_tasks::export::export;
use regard_tasks::run::Run;
use std::io::Write;
use std::path::PathBuf;

/// Write a run's model for other programs: weights, shapes, a PyTorch module, ONNX
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  regard export runs/label
  regard export runs/image --out model && python3 model/model.py   # how far PyTorch is from us

In the folder: model.safetensors (weights alone), shapes.md, vocabulary.json, model.py (a PyTorch
module; `load()` gives it with its weights; run as a program it compares its answers with ours and
fails where they differ), check.safetensors (inputs and our answers), and model.onnx of label,
classify and image models that make no hard choices.")]
pub struct Command {
    /// The run's folder
    run: PathBuf,
    /// Where to write [default: `export` in the run's folder]
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Write into a folder that holds files already
    #[arg(long)]
    overwrite: bool,
    #[command(flatten)]
    threads: Threads,
}

impl Command {
    /// Writes, and says what.
    pub fn run(&self, to: &mut impl Write) -> Result<()> {
        self.threads.start()?;
        let run = Run::open(&self.run)?;
        let folder = self.out.clone().unwrap_or_else(|| run.path("export"));
        let holds_files = std::fs::read_dir(&folder).is_ok_and(|mut all| all.next().is_some());
        if holds_files && !self.overwrite {
            bail!("{} holds files already; `--overwrite` replaces them", folder.display());
        }
        let model = run.model(&run.options()?)?;
        let export = export(&run, model.as_ref(), &folder)?;
        for file in &export.files {
            writeln!(to, "wrote {}", file.display())?;
        }
        for why in &export.left_out {
            writeln!(to, "{why}")?;
        }
        Ok(())
    }
}
