//! `regard import`: public weights to begin with.

use anyhow::{Result, bail};
use clap::Args;
use regard_tasks::import::import;
use std::io::Write;
use std::path::PathBuf;

/// Take public weights to begin with: BERT for label and classify, ViT for image
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  regard import bert-base-cased --out bert
  regard train classify --config bert/classify.toml --set train=reviews.tsv
  regard import vit-base-patch16-224-in21k --out vit
  regard train image --config vit/image.toml --set train_folder=photos

The folder holds config.json, model.safetensors and BERT's tokenizer.json, as one downloads them.")]
pub struct Command {
    /// The folder of the public model
    folder: PathBuf,
    /// Where to write weights and options
    #[arg(long, value_name = "FOLDER")]
    out: PathBuf,
    /// Write into a folder that holds files already
    #[arg(long)]
    overwrite: bool,
}

impl Command {
    /// Writes, and says what comes next.
    pub fn run(&self, to: &mut impl Write) -> Result<()> {
        let holds_files = std::fs::read_dir(&self.out).is_ok_and(|mut all| all.next().is_some());
        if holds_files && !self.overwrite {
            bail!("{} holds files already; `--overwrite` replaces them", self.out.display());
        }
        let imported = import(&self.folder, &self.out)?;
        writeln!(to, "wrote {} ({})", imported.weights.display(), imported.model)?;
        for config in &imported.configs {
            let task = config.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
            writeln!(to, "wrote {0}\nnext: `regard train {task} --config {0}`", config.display())?;
        }
        Ok(())
    }
}
