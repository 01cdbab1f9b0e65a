//! `regard completions`: what a shell must know to complete the program's words.

use crate::program::Program;
use anyhow::Result;
use clap::{Args, CommandFactory};
use clap_complete::{Shell, generate};
use std::io::Write;

/// Write what a shell needs to complete verbs, options and tasks
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  regard completions bash > ~/.local/share/bash-completion/completions/regard
  regard completions zsh > ~/.zfunc/_regard             # a folder of $fpath
  regard completions fish > ~/.config/fish/completions/regard.fish")]
pub struct Command {
    /// Which shell
    shell: Shell,
}

impl Command {
    /// Writes the script.
    pub fn run(&self, to: &mut impl Write) -> Result<()> {
        let mut script = Vec::new();
        generate(self.shell, &mut Program::command(), "regard", &mut script);
        Ok(to.write_all(&script)?)
    }
}
