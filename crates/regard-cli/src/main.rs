//! The program `regard`.

use regard_cli::closed::is_standard_output_closed;
use regard_cli::heap::Counted;
use regard_cli::program::Program;
use regard_cli::sentence::sentence;
use regard_cli::task::interrupt::{self, Interrupted};
use std::io::{self, Write};
use std::process::ExitCode;

/// Counts, so that `bench` can say how much memory a case needs.
#[global_allocator]
static HEAP: Counted = Counted;

fn main() -> ExitCode {
    let program = Program::parse_from_words(std::env::args_os().collect());
    if is_standard_output_closed() {
        // Nothing can be done about a closed standard error.
        let _ = writeln!(
            io::stderr(),
            "regard: standard output is closed; nothing could be written to it"
        );
        return ExitCode::FAILURE;
    }
    match program.run(&mut io::stdout()) {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever reads the table has seen enough of it.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) if is_stopped(&error) => ExitCode::from(interrupt::status()),
        Err(error) => {
            // What was written to somebody else's file says which.
            let bare = error.is::<io::Error>() && error.chain().len() == 1;
            let place = if bare { "standard output: " } else { "" };
            // Nothing can be done about a closed standard error.
            let _ = writeln!(io::stderr(), "regard: {place}{}", sentence(&error));
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
