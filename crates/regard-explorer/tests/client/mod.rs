//! A client that sends whatever it is told to, and small runs to ask.

use regard_explorer::{Server, Setup};
use regard_tasks::options::TrainingConfig;
use regard_tasks::run::Run;
use regard_tasks::tasks::task_named;
use regard_tasks::train::{Silent, train};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;

/// What a server answered.
#[derive(Debug)]
pub(crate) struct Answer {
    /// 0 where it hung up.
    pub(crate) status: u16,
    pub(crate) headers: String,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or(Value::Null)
    }

    /// The sentence of a refusal.
    pub(crate) fn error(&self) -> String {
        self.json()["error"].as_str().unwrap_or_default().into()
    }
}

/// Sends bytes as they are, and reads until the server hangs up.
pub(crate) fn send(address: SocketAddr, bytes: &[u8]) -> Answer {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    // A server that has refused the beginning may have hung up before the end.
    let _ = stream.write_all(bytes);
    let mut all = Vec::new();
    let _ = stream.read_to_end(&mut all);
    let end = all.windows(4).position(|four| four == b"\r\n\r\n").unwrap_or(all.len());
    let headers = String::from_utf8_lossy(&all[..end]).into_owned();
    let status = headers.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    let body = all.get(end + 4..).unwrap_or_default();
    let chunked = headers.to_ascii_lowercase().contains("transfer-encoding: chunked");
    let body = if chunked { unchunked(body) } else { body.to_vec() };
    Answer { status, headers, body }
}

fn unchunked(mut rest: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    while let Some(line) = rest.windows(2).position(|two| two == b"\r\n") {
        let size = String::from_utf8_lossy(&rest[..line]).into_owned();
        let Ok(size) = usize::from_str_radix(size.trim(), 16) else { break };
        let start = line + 2;
        if size == 0 || start + size > rest.len() {
            break;
        }
        body.extend_from_slice(&rest[start..start + size]);
        rest = rest.get(start + size + 2..).unwrap_or_default();
    }
    body
}

pub(crate) fn get(server: &Server, path: &str) -> Answer {
    let host = server.address();
    let text = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    send(server.address(), text.as_bytes())
}

pub(crate) fn post(server: &Server, path: &str, body: &Value) -> Answer {
    post_with(server, path, "Content-Type: application/json\r\n", &body.to_string())
}

/// With headers of one's own.
pub(crate) fn post_with(server: &Server, path: &str, headers: &str, body: &str) -> Answer {
    let (host, length) = (server.address(), body.len());
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{headers}\
         Content-Length: {length}\r\n\r\n{body}"
    );
    send(server.address(), head.as_bytes())
}

/// A small run of a task, in a folder of this name.
pub(crate) fn trained(folder: &Path, name: &str, task: &str, settings: &[&str]) -> PathBuf {
    let task = task_named(task).unwrap();
    let options = settings.iter().try_fold(task.options().unwrap(), |all, s| all.set(s)).unwrap();
    let mut learner = task.begin(&options).unwrap();
    let path = folder.join(name);
    let run = Run::create(&path, task, &options, learner.model()).unwrap();
    train(learner.as_mut(), &TrainingConfig::of(&options).unwrap(), &run, &mut Silent).unwrap();
    path
}

pub(crate) const TRANSLATE: [&str; 6] =
    ["size=80", "epochs=2", "hidden=8", "embedding=8", "score_hidden=8", "search.beam=3"];

/// A server of runs that is gone with its folder.
pub(crate) struct Served {
    pub(crate) server: Server,
    pub(crate) folder: TempDir,
}

/// An explorer of small runs: a name, a task and its settings each.
pub(crate) fn explorer(runs: &[(&str, &str, &[&str])]) -> Served {
    let folder = TempDir::new().unwrap();
    let runs =
        runs.iter().map(|(name, task, settings)| trained(folder.path(), name, task, settings));
    let runs = runs.collect();
    let server = Server::explore(&Setup { runs, port: Some(0), ..Setup::default() }).unwrap();
    Served { server, folder }
}
