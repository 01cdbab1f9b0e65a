//! The program `regard`.

use anyhow::Result;
use clap::{Parser, Subcommand};
use regard_cli::task::interrupt::{self, Interrupted};
use regard_cli::task::{compare, data, eval, explore, export, import, init, predict, show, train};
use regard_cli::{attend, bench, heap::Counted, info};
use std::io::{self, Write};
use std::process::ExitCode;

/// Counts, so that `bench` can say how much memory a case needs.
#[global_allocator]
static HEAP: Counted = Counted;

/// Attention you can pick, train, run fast and look at
#[derive(Parser)]
#[command(name = "regard", version, arg_required_else_help = true, after_help = EXAMPLES)]
struct Program {
    #[command(subcommand)]
    verb: Verb,
}

const EXAMPLES: &str = "\
Examples:
  regard train translate
  regard show runs/translate \"I see three birds in the garden\"
  regard compare translate
  regard explore runs/translate
  regard attend in.safetensors --out out.safetensors --causal
  regard bench --filter causal
  regard info

`regard VERB --help` says more about each.";

#[derive(Subcommand)]
enum Verb {
    Train(train::Command),
    Eval(eval::Command),
    Predict(predict::Command),
    Show(show::Command),
    Compare(compare::Command),
    Explore(explore::Explore),
    Serve(explore::Serve),
    Export(export::Command),
    Import(import::Command),
    Init(init::Command),
    Data(data::Command),
    Attend(attend::Command),
    Bench(bench::Command),
    Info(info::Command),
}

fn run(program: &Program, to: &mut (impl Write + Send)) -> Result<()> {
    match &program.verb {
        Verb::Train(command) => command.run(to),
        Verb::Eval(command) => command.run(to),
        Verb::Predict(command) => command.run(to),
        Verb::Show(command) => command.run(to),
        Verb::Compare(command) => command.run(to),
        Verb::Explore(command) => command.run(to),
        Verb::Serve(command) => command.run(to),
        Verb::Export(command) => command.run(to),
        Verb::Import(command) => command.run(to),
        Verb::Init(command) => command.run(to),
        Verb::Data(command) => command.run(to),
        Verb::Attend(command) => command.run(to),
        Verb::Bench(command) => command.run(to),
        Verb::Info(command) => command.run(to),
    }
}

fn main() -> ExitCode {
    let program = Program::parse();
    match run(&program, &mut io::stdout()) {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever reads the table has seen enough of it.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) if is_stopped(&error) => ExitCode::from(interrupt::status()),
        Err(error) => {
            // Nothing can be done about a closed standard error.
            let _ = writeln!(io::stderr(), "regard: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn is_stopped(error: &anyhow::Error) -> bool {
    error.is::<Interrupted>() || matches!(error.downcast_ref(), Some(regard_tasks::Error::Stopped))
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe)
}
