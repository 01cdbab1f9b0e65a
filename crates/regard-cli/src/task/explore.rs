//! `regard explore` and `regard serve`: runs in a browser, and a run's predictions over HTTP.

use super::device::DeviceOption;
use super::threads::Threads;
use anyhow::{Result, bail};
use clap::Args;
use regard_explorer::{Server, Setup};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command as Process, Stdio};

/// Look into runs in a browser: ask, watch every head, change the mechanism, see what changes
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  regard explore                                # all runs of the folder runs
  regard explore runs/translate runs/dot        # side by side
  regard explore runs/label --no-open --port 8000

The page is served by the program itself, to this machine alone: nothing is fetched, nothing leaves.
While `regard train` runs in another terminal, its curves and samples are drawn as they come.")]
pub struct Explore {
    /// The runs' folders [default: all runs in the folder runs]
    #[arg(value_name = "RUN")]
    runs: Vec<PathBuf>,
    #[command(flatten)]
    place: Place,
    /// Do not open a browser
    #[arg(long)]
    no_open: bool,
    #[command(flatten)]
    threads: Threads,
}

/// Offer a run's predictions to other programs: HTTP with JSON or forms
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  regard serve runs/translate --port 8000
  curl -H 'Content-Type: application/json' -d '{\"input\": \"she is drawing a bird\"}' localhost:8000/predict
  curl -H 'Content-Type: application/json' -d '{\"inputs\": [\"a\", \"b\"]}' localhost:8000/predict
  curl -H 'Content-Type: application/json' -d '{\"input\": \"a\", \"beam\": 10}' localhost:8000/predict
  curl -F input=@a.png localhost:8000/predict   # a picture or a recording, as a form
  curl -H 'Content-Type: application/json' localhost:8000/predict \\
    -d '{\"input\": {\"kind\": \"bytes\", \"name\": \"a.png\", \"base64\": \"'$(base64 -w0 a.png)'\"}}'
  curl localhost:8000/health
  curl localhost:8000/openapi.json              # all of it, for machines")]
pub struct Serve {
    /// The run's folder
    run: PathBuf,
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    threads: Threads,
}

/// Where a server listens.
#[derive(Args, Debug)]
struct Place {
    /// The port [default: the first free one from 7317 on]
    #[arg(long)]
    port: Option<u16>,
    /// The name or address to listen at; whoever reaches it needs the token of the address that is
    /// printed, or of REGARD_TOKEN [default: 127.0.0.1, this machine alone]
    #[arg(long)]
    host: Option<String>,
    /// Answer under this name too, as behind a proxy: NAME, or NAME:PORT for that port alone; may be
    /// given many times
    #[arg(long, value_name = "NAME")]
    allow_host: Vec<String>,
    #[command(flatten)]
    device: DeviceOption,
}

impl Place {
    fn setup(&self, runs: Vec<PathBuf>) -> Setup {
        let token = std::env::var("REGARD_TOKEN").ok().filter(|token| !token.is_empty());
        let allowed_hosts = self.allow_host.clone();
        let (host, port, device) = (self.host.clone(), self.port, self.device.device);
        Setup { runs, host, allowed_hosts, port, token, device, ..Setup::default() }
    }

    /// Says who can ask where not this machine alone can.
    fn warn(&self, server: &Server) {
        if server.token().is_some() {
            let place = server.address();
            eprintln!(
                "regard: whoever reaches {place} and knows the token can ask; nothing is encrypted"
            );
        }
    }
}

impl Explore {
    /// Serves until it is stopped.
    pub fn run(&self, to: &mut impl Write) -> Result<()> {
        self.threads.start()?;
        let runs = match self.runs.is_empty() {
            true => found(Path::new("runs"))?,
            false => self.runs.clone(),
        };
        let count = runs.len();
        let page = std::env::var_os("REGARD_PAGE").filter(|_| cfg!(debug_assertions));
        let setup = Setup { page: page.map(PathBuf::from), ..self.place.setup(runs) };
        let server = Server::explore(&setup)?;
        self.place.warn(&server);
        let url = server.url();
        writeln!(
            to,
            "{} at {url}",
            if count == 1 { "1 run".into() } else { format!("{count} runs") }
        )?;
        writeln!(to, "Ctrl-C ends it")?;
        to.flush()?;
        if !self.no_open && !open(&url) {
            eprintln!("regard: no browser could be opened; the address above opens in any");
        }
        server.wait();
        Ok(())
    }
}

impl Serve {
    /// Serves until it is stopped.
    pub fn run(&self, to: &mut impl Write) -> Result<()> {
        self.threads.start()?;
        let server = Server::serve(&self.place.setup(vec![self.run.clone()]))?;
        self.place.warn(&server);
        let url = server.base();
        writeln!(to, "predictions at {url}predict, described at {url}openapi.json")?;
        if let Some(token) = server.token() {
            writeln!(to, "asked with the header `Authorization: Bearer {token}`")?;
        }
        writeln!(to, "Ctrl-C ends it")?;
        to.flush()?;
        server.wait();
        Ok(())
    }
}

/// The runs in a folder, the one that was trained last first.
fn found(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut runs: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    runs.retain(|path| path.join("run.json").is_file());
    runs.sort();
    let trained = |run: &PathBuf| {
        let files = ["metrics.jsonl", "run.json"].map(|name| run.join(name).metadata());
        files.into_iter().flatten().find_map(|file| file.modified().ok())
    };
    runs.sort_by_cached_key(|run| std::cmp::Reverse(trained(run)));
    if runs.is_empty() {
        bail!(
            "there are no runs in the folder {}; `regard train TASK` makes one, and `regard explore \
             RUN` names it",
            folder.display()
        );
    }
    Ok(runs)
}

/// Opens an address in whatever opens addresses here; whether there is such a thing.
fn open(url: &str) -> bool {
    let opener = match std::env::consts::OS {
        "macos" => "open",
        "windows" => "explorer",
        _ => "xdg-open",
    };
    let mut opener = Process::new(opener);
    opener.arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    opener.spawn().is_ok()
}
