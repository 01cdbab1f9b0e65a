//! `regard man`: the manual, as `man` shows it.

use crate::output::Destination;
use crate::program::Program;
use anyhow::{Context, Result};
use clap::{Args, CommandFactory};
use clap_mangen::Man;
use std::io::Write;
use std::path::PathBuf;

/// Write the manual: a page for the program and one for each verb
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  regard man ~/.local/share/man/man1      # then `man regard` and `man regard-train`
  regard man | man -l -                   # the program's own page")]
pub struct Command {
    /// The folder that the pages are written into; without it the program's own page goes to standard
    /// output
    #[arg(value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    folder: Option<PathBuf>,
}

impl Command {
    /// Writes the pages, and says how many.
    pub fn run(&self, to: &mut impl Write) -> Result<()> {
        let mut program = Program::command().disable_help_subcommand(true);
        // Every verb is called `regard-VERB` from now on, as its page is looked for.
        program.build();
        let Some(folder) = &self.folder else {
            return Ok(to.write_all(&page(program)?)?);
        };
        std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        let verbs: Vec<clap::Command> = program.get_subcommands().cloned().collect();
        let count = verbs.len() + 1;
        for command in [program].into_iter().chain(verbs) {
            let name = command.get_display_name().unwrap_or(command.get_name()).to_string();
            let path = folder.join(format!("{name}.1"));
            Destination::new(&path).write(&page(command)?, to)?;
        }
        writeln!(to, "wrote {count} pages into {}", folder.display())?;
        Ok(())
    }
}

fn page(command: clap::Command) -> Result<Vec<u8>> {
    let mut page = Vec::new();
    Man::new(command).render(&mut page)?;
    Ok(page)
}
