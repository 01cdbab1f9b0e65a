//! `regard init`: a configuration in which every option is commented.

use super::TaskArguments;
use crate::output::Destination;
use anyhow::Result;
use clap::Args;
use std::io::Write;
use std::path::PathBuf;

/// Write a configuration in which every option is commented
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  regard init translate                       # writes translate.toml
  regard init label encoder=transformer --out tagger.toml
  regard train translate --config translate.toml")]
pub struct Command {
    #[command(flatten)]
    arguments: TaskArguments,
    /// Where to write; TASK.toml unless given, `-` for standard output
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Replace a file that is there
    #[arg(long)]
    overwrite: bool,
}

impl Command {
    /// Writes the file and says where it is.
    pub fn run(&self, to: &mut impl Write) -> Result<()> {
        let text = self.arguments.options()?.to_string();
        let name = PathBuf::from(format!("{}.toml", self.arguments.task()?.name()));
        let path = self.out.clone().unwrap_or(name);
        let out = Destination::new(&path);
        out.check_new(self.overwrite)?;
        out.write(text.as_bytes(), to)?;
        if !out.is_standard_output() {
            writeln!(to, "wrote {}", path.display())?;
        }
        Ok(())
    }
}
