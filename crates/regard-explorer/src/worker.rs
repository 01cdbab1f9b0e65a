//! The thread that computes. One question after another; what nobody waits for any more, or what a
//! newer question of the same view has overtaken, is not computed.

use crate::refusal::Refusal;
use axum::http::StatusCode;
use regard_data::{Watch, watch};
use std::cell::RefCell;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// Questions that may wait.
const WAITING: usize = 1024;
/// Views whose newest question is remembered.
const VIEWS: usize = 1000;

type Job = Box<dyn FnOnce() + Send>;

/// What a question belongs to: a pane of a page, and how many came before it there.
#[derive(Clone, Debug)]
pub(crate) struct View {
    pub(crate) name: String,
    pub(crate) serial: u64,
}

#[derive(Clone)]
pub(crate) struct Worker {
    jobs: SyncSender<Job>,
    newest: Arc<Mutex<HashMap<String, u64>>>,
    /// How long a question may be computed.
    longest: Duration,
}

/// Whether somebody still waits; says so when it is dropped.
struct Waits(Arc<AtomicBool>);

impl Drop for Waits {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

type Stop = Arc<dyn Fn() -> bool + Send + Sync>;
type Told = Arc<Mutex<Progress>>;

/// How far a long phase has come.
#[derive(Clone, Debug, Default)]
pub(crate) struct Progress {
    pub(crate) phase: String,
    pub(crate) done: usize,
    pub(crate) total: usize,
}

thread_local! {
    static STOP: RefCell<Option<Stop>> = const { RefCell::new(None) };
    static TOLD: RefCell<Option<Told>> = const { RefCell::new(None) };
}

fn is_over() -> bool {
    STOP.with_borrow(|stop| stop.as_ref().is_some_and(|stop| stop()))
}

fn progress(phase: &str, done: usize, total: usize) {
    TOLD.with_borrow(|told| {
        if let Some(told) = told {
            let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
            *told = Progress { phase: phase.into(), done, total };
        }
    });
}

/// Runs on this thread what tells how far it has come, and is ended where `stop` says so.
pub(crate) fn watched<R>(stop: Stop, told: Option<Told>, f: impl FnOnce() -> R) -> R {
    STOP.set(Some(stop));
    TOLD.set(told);
    watch(Some(Watch { progress, stop: is_over }));
    let result = f();
    watch(None);
    STOP.set(None);
    TOLD.set(None);
    result
}

/// What went wrong where code gave up: our fault, and not the end of the server.
pub(crate) fn caught<T>(f: impl FnOnce() -> Result<T, Refusal>) -> Result<T, Refusal> {
    catch_unwind(AssertUnwindSafe(f)).unwrap_or_else(|_| {
        let what = "this question broke something in the program; others are still answered";
        Err(Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, what))
    })
}

impl Worker {
    pub(crate) fn start(name: &str, longest: Duration) -> std::io::Result<Self> {
        let (jobs, coming): (SyncSender<Job>, Receiver<Job>) = sync_channel(WAITING);
        let thread = std::thread::Builder::new().name(name.into());
        thread.spawn(move || coming.into_iter().for_each(|job| job()))?;
        Ok(Self { jobs, newest: Arc::default(), longest })
    }

    /// Computes in the order of the questions. Refuses what was overtaken, and what comes when too
    /// many wait.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        view: Option<View>,
        work: impl FnOnce() -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        if let Some(view) = &view {
            self.came(view)?;
        }
        let (sender, receiver) = oneshot::channel();
        let waits = Waits(Arc::new(AtomicBool::new(true)));
        let (waited_for, newest, longest) = (waits.0.clone(), self.newest.clone(), self.longest);
        let overtaken = move || {
            let newest = newest.lock().unwrap_or_else(PoisonError::into_inner);
            view.as_ref().is_some_and(|view| newest.get(&view.name) > Some(&view.serial))
        };
        let job: Job = Box::new(move || {
            if overtaken() {
                let _ = sender.send(Err(Refusal::overtaken()));
                return;
            }
            if !waited_for.load(Ordering::Relaxed) {
                return;
            }
            let overtaken = Arc::new(overtaken);
            let (end, known) = (Instant::now() + longest, overtaken.clone());
            let stop: Stop = Arc::new(move || {
                known() || !waited_for.load(Ordering::Relaxed) || Instant::now() > end
            });
            let result = watched(stop, None, || caught(work));
            let result = if overtaken() { Err(Refusal::overtaken()) } else { result };
            let _ = sender.send(result);
        });
        self.jobs.try_send(job).map_err(|error| match error {
            TrySendError::Full(_) => Refusal::new(
                StatusCode::SERVICE_UNAVAILABLE,
                format!("{WAITING} questions wait already; ask again later"),
            ),
            TrySendError::Disconnected(_) => gone(),
        })?;
        let result = receiver.await.unwrap_or_else(|_| Err(gone()));
        drop(waits);
        result
    }

    /// Remembers a view's newest question; refuses one that is older.
    fn came(&self, view: &View) -> Result<(), Refusal> {
        let mut newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        if newest.len() >= VIEWS && !newest.contains_key(&view.name) {
            newest.clear();
        }
        let known = newest.entry(view.name.clone()).or_insert(view.serial);
        if *known > view.serial {
            return Err(Refusal::overtaken());
        }
        *known = view.serial;
        Ok(())
    }
}

fn gone() -> Refusal {
    Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "the thread that computes has ended")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::sync::mpsc::channel;

    fn view(serial: u64) -> Option<View> {
        Some(View { name: "v".into(), serial })
    }

    #[test]
    fn what_was_overtaken_while_it_waited_is_not_computed() {
        let runtime = tokio::runtime::Builder::new_multi_thread().build().unwrap();
        let worker = Worker::start("test", Duration::from_secs(60)).unwrap();
        let ((open, gate), (began, begins)) = (channel::<()>(), channel::<()>());
        let busy = worker.clone();
        let busy = runtime.spawn(async move {
            let work = move || {
                began.send(()).unwrap();
                Ok(gate.recv().is_ok())
            };
            busy.run(None, work).await
        });
        // Whatever is asked from now on waits.
        begins.recv().unwrap();
        let ask = |serial: u64| {
            let task = worker.clone();
            let asked =
                runtime.spawn(async move { task.run(view(serial), move || Ok(serial)).await });
            while worker.newest.lock().unwrap().get("v") != Some(&serial) {
                std::thread::yield_now();
            }
            asked
        };
        let (first, second) = (ask(1), ask(2));
        open.send(()).unwrap();
        assert!(runtime.block_on(busy).unwrap().unwrap());
        assert!(runtime.block_on(first).unwrap().unwrap_err().overtaken);
        assert_eq!(runtime.block_on(second).unwrap(), Ok(2));
    }

    #[test]
    fn a_question_that_takes_too_long_is_ended_and_the_next_is_answered() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let worker = Worker::start("test", Duration::from_millis(20)).unwrap();
        let endless = || -> Result<(), Refusal> {
            loop {
                regard_data::tick("computing", 0, 0)?;
                std::thread::sleep(Duration::from_millis(1));
            }
        };
        let ended = runtime.block_on(worker.run(None, endless)).unwrap_err();
        assert_eq!(ended.status, StatusCode::SERVICE_UNAVAILABLE);
        assert!(ended.what.starts_with("it took too long"), "{}", ended.what);
        assert_eq!(runtime.block_on(worker.run(None, || Ok(3))), Ok(3));
    }

    #[test]
    fn a_question_that_panics_is_answered_and_so_is_the_next() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let worker = Worker::start("test", Duration::from_secs(60)).unwrap();
        let broken = runtime.block_on(worker.run(None, || -> Result<(), Refusal> { panic!("no") }));
        assert_eq!(broken.unwrap_err().status, StatusCode::INTERNAL_SERVER_ERROR);
        assert_eq!(runtime.block_on(worker.run(None, || Ok(3))), Ok(3));
    }
}
