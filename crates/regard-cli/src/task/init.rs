//! `regard init`: a configuration in which every option is commented.

use super::TaskArguments;
use anyhow::{Result, bail};
use clap::Args;
use std::io::Write;
use std::path::PathBuf;

/// Write a configuration in which every option is commented
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  regard init translate                       # writes translate.toml
  regard init label --out tagger.toml --set encoder=transformer
  regard train translate --config translate.toml")]
pub struct Command {
    #[command(flatten)]
    arguments: TaskArguments,
    /// Where to write; TASK.toml unless given, `-` for standard output
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

impl Command {
    /// Writes the file and says where it is.
    pub fn run(&self, to: &mut impl Write) -> Result<()> {
        let text = self.arguments.options()?.to_string();
        let name = PathBuf::from(format!("{}.toml", self.arguments.task()?.name()));
        let path = self.out.clone().unwrap_or(name);
        if path.as_os_str() == "-" {
            return Ok(to.write_all(text.as_bytes())?);
        }
        if path.exists() {
            bail!("{} is there already; `--out` names another file", path.display());
        }
        regard::tensor::write_whole(&path, text.as_bytes())?;
        writeln!(to, "wrote {}", path.display())?;
        Ok(())
    }
}
