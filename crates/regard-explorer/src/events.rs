//! A training while it runs: only what is new travels.

use crate::runs::{OneRun, records};
use axum::body::{Body, Bytes};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use regard_tasks::options::TrainingConfig;
use regard_tasks::run::{Pace, Snapshot};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime};

/// How often the run's folder is looked at.
const EVERY: Duration = Duration::from_millis(400);
/// How often something is sent where nothing is new, so that a page that has gone is noticed.
const SIGN_OF_LIFE: Duration = Duration::from_secs(15);
/// Pages that may listen at once.
pub(crate) const LISTENERS: usize = 64;

/// What has been sent to one page.
struct Tail {
    run: Arc<OneRun>,
    records: usize,
    snapshots: Vec<usize>,
    state: Value,
    /// What was seen of `metrics.jsonl`, and of `clock.json`.
    seen: Stamp,
    clock: Stamp,
    /// How often the folder was looked at.
    looks: usize,
    waiting: VecDeque<String>,
    spoke: Instant,
    _listener: Listener,
}

/// When a file was written last, and how large it was.
type Stamp = Option<(SystemTime, u64)>;

/// One of the pages that listen.
pub(crate) struct Listener(Arc<AtomicUsize>);

impl Listener {
    /// None where too many listen already.
    pub(crate) fn new(count: &Arc<AtomicUsize>) -> Option<Self> {
        let before = count.fetch_add(1, Ordering::Relaxed);
        let listener = Self(count.clone());
        (before < LISTENERS).then_some(listener)
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn event(kind: &str, id: Option<usize>, data: &Value) -> String {
    let id = id.map_or(String::new(), |id| format!("id: {id}\n"));
    format!("event: {kind}\n{id}data: {data}\n\n")
}

impl Tail {
    /// Looks at the run's folder for what is new.
    fn look(&mut self) {
        let now = self.stamp("metrics.jsonl");
        // A run that began anew has no such file, and fewer lines than were sent.
        let all = match now.is_some() && now == self.seen {
            true => None,
            false => records(&self.run.run).ok(),
        };
        if let Some(all) = all {
            self.seen = now;
            if all.len() < self.records {
                self.records = 0;
                self.snapshots.clear();
                self.waiting.push_back(event("reset", Some(0), &json!({})));
            }
            for (at, record) in all.iter().enumerate().skip(self.records) {
                self.waiting.push_back(event("record", Some(at + 1), record));
            }
            self.records = all.len();
            self.tell_state(all.last());
        } else if self.is_due() {
            let last = records(&self.run.run).unwrap_or_default();
            self.tell_state(last.last());
        }
        for epoch in Snapshot::epochs(&self.run.run) {
            if !self.snapshots.contains(&epoch) {
                self.snapshots.push(epoch);
                self.waiting.push_back(event("snapshot", None, &json!({ "epoch": epoch })));
            }
        }
    }

    fn stamp(&self, name: &str) -> Stamp {
        let metadata = std::fs::metadata(self.run.run.path(name)).ok()?;
        Some((metadata.modified().ok()?, metadata.len()))
    }

    /// Whether a training has begun, has ended, or tells how far it is within an epoch.
    fn is_due(&mut self) -> bool {
        let clock = self.stamp("clock.json");
        let told = self.state["training"] == true && clock != self.clock;
        self.clock = clock;
        told || self.lock_is_due() && self.state["training"] != self.run.run.is_training()
    }

    /// Whether it is time to see if somebody trains. Looking holds the lock for a moment, in which no
    /// training can begin: where none runs, that is done seldom.
    fn lock_is_due(&mut self) -> bool {
        self.looks += 1;
        self.state["training"] == true || self.looks.is_multiple_of(5)
    }

    fn tell_state(&mut self, last: Option<&Value>) {
        let options = self.run.run.options();
        let config = options.and_then(|options| TrainingConfig::of(&options)).ok();
        let plan = config.map_or((0, 0), |config| (config.epochs, config.patience));
        let training = self.run.run.is_training();
        let pace = Pace::read(&self.run.run).ok().flatten().filter(|_| training);
        let state = state(last, plan, training, pace);
        if state != self.state {
            self.waiting.push_back(event("state", None, &state));
            self.state = state;
        }
    }
}

/// How far a training of so many epochs, with so much patience, has come after its last record; or
/// within the epoch that it is in, where it tells.
fn state(
    last: Option<&Value>,
    (epochs, patience): (usize, usize),
    training: bool,
    pace: Option<Pace>,
) -> Value {
    let number = |name: &str| last.and_then(|last| last[name].as_f64());
    let (epoch, seconds) = (number("epoch").unwrap_or(0.0), number("seconds"));
    let spent = seconds.filter(|seconds| epoch > 0.0 && *seconds > 0.0);
    let left = spent.map(|spent| spent / epoch * (epochs as f64 - epoch).max(0.0));
    let speed = spent.and_then(|spent| Some(number("step")? / spent));
    // What was told of an epoch that has a record since is old.
    let pace = pace.filter(|pace| pace.epoch as f64 > epoch);
    json!({
        "training": training,
        "epoch": epoch as u64,
        "epochs": epochs,
        "patience": patience,
        "now": pace.map(|pace| json!({
            "epoch": pace.epoch, "batch": pace.batch, "batches": pace.batches, "loss": pace.loss,
        })),
        "seconds": pace.map(|pace| pace.seconds).or(seconds),
        "seconds_left": pace.map(|pace| pace.seconds_left).or(left).filter(|_| training),
        "steps_per_second": pace.map(|pace| pace.steps_per_second).or(speed),
    })
}

/// Sends what is new as long as somebody listens, after so many records.
pub(crate) fn events(run: Arc<OneRun>, after: usize, listener: Listener) -> Response {
    let tail = Tail {
        run,
        records: after,
        snapshots: Vec::new(),
        state: Value::Null,
        seen: None,
        clock: None,
        looks: 0,
        waiting: VecDeque::new(),
        spoke: Instant::now(),
        _listener: listener,
    };
    let chunks = stream::unfold(tail, |mut tail| async move {
        loop {
            if !tail.waiting.is_empty() {
                let chunk: String = tail.waiting.drain(..).collect();
                tail.spoke = Instant::now();
                return Some((Ok::<_, Infallible>(Bytes::from(chunk)), tail));
            }
            if tail.spoke.elapsed() > SIGN_OF_LIFE {
                tail.waiting.push_back(": still here\n\n".into());
                continue;
            }
            if tail.seen.is_some() || tail.state != Value::Null {
                tokio::time::sleep(EVERY).await;
            }
            let looked = tokio::task::spawn_blocking(move || {
                tail.look();
                if tail.state == Value::Null {
                    tail.tell_state(None);
                }
                tail
            });
            match looked.await {
                Ok(looked) => tail = looked,
                Err(_) => return None,
            }
        }
    });
    let kind = [(header::CONTENT_TYPE, "text/event-stream")];
    (kind, Body::from_stream(chunks)).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_left_is_that_of_the_epochs_left_at_the_same_speed() {
        let last = json!({ "epoch": 4, "step": 200, "seconds": 40.0 });
        let told = state(Some(&last), (10, 0), true, None);
        assert_eq!((&told["seconds_left"], &told["steps_per_second"]), (&json!(60.0), &json!(5.0)));
        assert_eq!(state(Some(&last), (10, 0), false, None)["seconds_left"], Value::Null);
        assert_eq!(state(None, (10, 0), true, None)["epoch"], 0);
    }

    #[test]
    fn within_an_epoch_its_own_pace_is_told_and_one_that_is_done_has_none() {
        let last = json!({ "epoch": 4, "step": 200, "seconds": 40.0 });
        let pace = Pace {
            epoch: 5,
            batch: 7,
            batches: 50,
            loss: 0.5,
            seconds: 43.0,
            steps_per_second: 3.0,
            seconds_left: 90.0,
        };
        let told = state(Some(&last), (10, 2), true, Some(pace));
        assert_eq!((&told["now"]["batch"], &told["seconds"]), (&json!(7), &json!(43.0)));
        assert_eq!((&told["seconds_left"], &told["steps_per_second"]), (&json!(90.0), &json!(3.0)));
        let old = state(Some(&last), (10, 2), true, Some(Pace { epoch: 4, ..pace }));
        assert_eq!((&old["now"], &old["seconds_left"]), (&Value::Null, &json!(60.0)));
    }
}
