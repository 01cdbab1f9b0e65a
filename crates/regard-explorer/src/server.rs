//! An address, and what answers there.

use crate::background::Background;
use crate::body::Room;
use crate::cache::Cache;
use crate::connections::answer_all;
use crate::errors::Judgements;
use crate::guard::{Guard, guard};
use crate::limits::Limits;
use crate::predict::{self, Predictor};
use crate::routes::{self, Explorer};
use crate::runs::Runs;
use crate::studies::Studies;
use crate::token::Token;
use crate::worker::Worker;
use axum::Router;
use axum::middleware::from_fn_with_state;
use regard_tasks::task::Placement;
use regard_tasks::{Error, Result};
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;
use tokio::runtime::{Builder, Runtime};

/// The first port that is tried where none is named.
const PORT: u16 = 7317;
/// How many ports are tried.
const PORTS: u16 = 50;
/// Bytes of answers that are kept.
const CACHED: usize = 256 << 20;

/// Which runs are served, and where.
///
/// ```
/// use regard_explorer::Setup;
/// // nobody but this machine reaches it unless a host is named
/// assert_eq!(Setup::default().host, None);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Setup {
    /// The folders of the runs.
    pub runs: Vec<PathBuf>,
    /// The name or the address to listen at; 127.0.0.1 where none is named.
    pub host: Option<String>,
    /// Further names under which it answers: behind a proxy, or in a network of its own.
    pub allowed_hosts: Vec<String>,
    /// The port; the first free one from 7317 on where none is named.
    pub port: Option<u16>,
    /// Where the models compute.
    pub device: Placement,
    /// How much may be asked at once.
    pub limits: Limits,
    /// What who asks must know, where not this machine alone can; one by chance where none is named.
    pub token: Option<String>,
    /// A folder whose files are sent in place of the page's own, for whoever works on them.
    pub page: Option<PathBuf>,
}

/// A server that answers until it is dropped.
pub struct Server {
    address: SocketAddr,
    host: Option<String>,
    token: Option<Token>,
    runtime: Option<Runtime>,
}

impl Server {
    /// The explorer for some runs. Refuses a folder that holds no run, and an address that cannot be
    /// listened at.
    pub fn explore(setup: &Setup) -> Result<Self> {
        let failed = |error: std::io::Error| Error::invalid(error.to_string());
        let background = Arc::new(Background::start().map_err(failed)?);
        let explorer = Explorer {
            runs: Runs::open(&setup.runs, setup.limits.models, setup.device)?,
            room: Room::new(setup.limits.waiting),
            started: Instant::now(),
            worker: worker(&setup.limits)?,
            cache: Cache::new(CACHED),
            judgements: Judgements::of(background.clone()),
            studies: Studies::of(background),
            limits: setup.limits,
            listeners: Arc::default(),
            page: setup.page.clone(),
        };
        let router = Router::new().fallback(routes::explore).with_state(Arc::new(explorer));
        Self::start(setup, router)
    }

    /// The prediction of one run's model, for other programs. Refuses what [`Server::explore`]
    /// refuses, several runs, and a run without a model.
    pub fn serve(setup: &Setup) -> Result<Self> {
        let [folder] = &setup.runs[..] else {
            return Err(Error::invalid("one run's model is served at a time"));
        };
        let runs = Runs::open(std::slice::from_ref(folder), 1, setup.device)?;
        let [run] = runs.all() else {
            return Err(Error::file(folder, "there is no run"));
        };
        let loaded = run.loaded().map_err(|refusal| Error::file(folder, refusal.what))?;
        let predictor = Predictor {
            health: predict::health(run, &loaded)?,
            run: run.clone(),
            worker: worker(&setup.limits)?,
            limits: setup.limits,
            room: Room::new(setup.limits.waiting),
        };
        let router = Router::new().fallback(predict::serve).with_state(Arc::new(predictor));
        Self::start(setup, router)
    }

    fn start(setup: &Setup, router: Router) -> Result<Self> {
        let host = setup.host.as_deref().unwrap_or("127.0.0.1");
        let listener = listen(host, setup.port)?;
        let failed = |error: std::io::Error| Error::invalid(format!("{host}: {error}"));
        let address = listener.local_addr().map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build();
        let runtime = runtime.map_err(failed)?;
        let token = match address.ip().is_loopback() {
            true => None,
            false => Some(Token::new(setup.token.as_deref(), address.port())?),
        };
        let own = Guard::new(address, setup.host.as_deref(), token.clone());
        let own = Arc::new(own.allow(&setup.allowed_hosts)?);
        let router = router.layer(from_fn_with_state(own, guard));
        let listener = {
            let _inside = runtime.enter();
            tokio::net::TcpListener::from_std(listener).map_err(failed)?
        };
        runtime.spawn(answer_all(listener, router, setup.limits));
        Ok(Self { address, host: setup.host.clone(), token, runtime: Some(runtime) })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The address for a browser on this machine, with the token where one is needed.
    pub fn url(&self) -> String {
        let query = self.token().map_or(String::new(), |token| format!("?token={token}"));
        format!("{}{query}", self.base())
    }

    /// The address without a token, for a path behind it.
    pub fn base(&self) -> String {
        let port = self.address.port();
        match &self.host {
            Some(host) if !self.address.ip().is_unspecified() => format!("http://{host}:{port}/"),
            _ => format!("http://127.0.0.1:{port}/"),
        }
    }

    /// What who asks must know; none where only this machine can ask.
    pub fn token(&self) -> Option<&str> {
        self.token.as_ref().map(Token::text)
    }

    /// Answers until the process ends.
    pub fn wait(mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.block_on(std::future::pending::<()>());
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // A page that listens to a training would keep it waiting.
            runtime.shutdown_background();
        }
    }
}

fn worker(limits: &Limits) -> Result<Worker> {
    Worker::start("model", limits.compute).map_err(|error| Error::invalid(error.to_string()))
}

fn listen(host: &str, port: Option<u16>) -> Result<TcpListener> {
    let bind = |port: u16| TcpListener::bind((host, port));
    match port {
        Some(port) => {
            let failed = |error| Error::invalid(format!("cannot listen at {host}:{port}: {error}"));
            bind(port).map_err(failed)
        }
        None => {
            let free = (PORT..PORT + PORTS).find_map(|port| bind(port).ok());
            free.map_or_else(|| bind(0), Ok)
                .map_err(|error| Error::invalid(format!("cannot listen at {host}: {error}")))
        }
    }
}
