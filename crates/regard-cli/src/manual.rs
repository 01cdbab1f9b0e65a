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

fn page(mut command: clap::Command) -> Result<Vec<u8>> {
    let after = command.get_after_long_help().or(command.get_after_help());
    let after = after.map(ToString::to_string).unwrap_or_default();
    let none = None::<&'static str>;
    command = command.after_help(none).after_long_help(none);
    let mut page = Vec::new();
    Man::new(command).source(SOURCE).manual("Regard Manual").render(&mut page)?;
    // The date that it does not have must be there, or the source would be taken for it.
    let page = String::from_utf8(page)?.replacen(
        &format!(" 1  \"{SOURCE}\" "),
        &format!(" 1 \"\" \"{SOURCE}\" "),
        1,
    );
    Ok((page + &sections(&after)).into_bytes())
}

const SOURCE: &str = concat!("regard ", env!("CARGO_PKG_VERSION"));

/// What the help says at its end, as sections of a page: what is indented there are lines to be kept
/// as they are, all else is running text.
fn sections(help: &str) -> String {
    let mut page = String::new();
    let (mut section, mut kept) = ("", false);
    for line in help.lines() {
        let keep = line.starts_with(' ') || kept && line.is_empty();
        if kept && !keep {
            page += ".fi\n";
        }
        if line == "Examples:" {
            section = "EXAMPLES";
            page += ".SH EXAMPLES\n";
        } else if keep {
            page += if kept { "" } else { ".nf\n" };
            page += &format!("{}\n", escaped(line.strip_prefix("  ").unwrap_or(line)));
        } else {
            if section != "NOTES" {
                section = "NOTES";
                page += ".SH NOTES\n";
            } else if kept || line.is_empty() {
                page += ".PP\n";
            }
            if !line.is_empty() {
                page += &format!("{}\n", escaped(line));
            }
        }
        kept = keep;
    }
    page + if kept { ".fi\n" } else { "" }
}

/// A line as roff takes it for what it is.
fn escaped(line: &str) -> String {
    let line = line.replace('\\', "\\e").replace('-', "\\-");
    if line.starts_with(['.', '\'']) { format!("\\&{line}") } else { line }
}
