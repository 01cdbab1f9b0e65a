//! Long work on threads of its own, while the thread that called tells Python of it.
//!
//! Python's code runs on the thread that called alone: there a notebook can draw, signals are heard,
//! and a process group is used in one order.

use crate::threads;
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use regard_data::{Watch, watch};
use regard_tasks::Error;
use regard_tasks::run::Record;
use regard_tasks::train::{Plan, Progress};
use std::cell::RefCell;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How often signals are looked for while nothing is told.
const TICK: Duration = Duration::from_millis(50);

/// What work tells.
pub(crate) enum Event {
    /// Where the run is.
    Place(PathBuf),
    /// What should be known of data and options.
    Note(String),
    /// What is shown where progress is.
    Line(String),
    Begin(Plan),
    Batch(Progress),
    Phase(String, usize, usize),
    /// Waits for an answer: whoever listens may look at the run.
    Epoch(Box<Record>),
    /// Numbers to be added up over all ranks.
    AllReduce(Vec<f32>),
    /// Bytes that all ranks shall have as rank 0 has them.
    Broadcast(Vec<u8>),
}

/// What is answered to an event that waits.
pub(crate) enum Answer {
    Done,
    Numbers(Vec<f32>),
    Bytes(Vec<u8>),
    /// It could not be done; the reason is kept for whoever called.
    Failed,
}

/// The work's end of the line.
pub(crate) struct Line {
    events: Sender<Event>,
    answers: Receiver<Answer>,
    stop: Arc<AtomicBool>,
}

impl Line {
    /// Tells, and goes on.
    pub(crate) fn tell(&self, event: Event) {
        // Nobody listens only where the caller is gone.
        let _ = self.events.send(event);
    }

    /// Tells, and waits for the answer.
    pub(crate) fn ask(&self, event: Event) -> Answer {
        self.tell(event);
        self.answers.recv().unwrap_or(Answer::Failed)
    }

    /// Whether to stop.
    pub(crate) fn stop(&self) -> bool {
        self.stop.load(Ordering::SeqCst)
    }
}

type Watched = (Sender<Event>, Arc<AtomicBool>);

thread_local! {
    static WATCHED: RefCell<Option<Watched>> = const { RefCell::new(None) };
}

fn progress(phase: &str, done: usize, all: usize) {
    WATCHED.with_borrow(|watched| {
        if let Some((events, _)) = watched {
            let _ = events.send(Event::Phase(phase.into(), done, all));
        }
    });
}

fn is_asked_to_stop() -> bool {
    WATCHED.with_borrow(|watched| {
        watched.as_ref().is_some_and(|(_, stop)| stop.load(Ordering::SeqCst))
    })
}

/// Which threads work computes on.
#[derive(Clone, Copy)]
pub(crate) enum Pool {
    /// Those of all calls.
    Shared(usize),
    /// So many of its own: it waits for Python's code, which may call us again.
    Own(usize),
}

/// Works, and tells a listener of it; gives what came of it, or what a listener or a signal raised.
pub(crate) fn serve<R: Send>(
    py: Python<'_>,
    pool: Pool,
    listener: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce(&Line) -> Result<R, Error> + Send,
) -> PyResult<R> {
    let (told, events) = channel();
    let (answer, answers) = channel();
    let stop = Arc::new(AtomicBool::new(false));
    let line = Line { events: told, answers, stop: stop.clone() };
    let watched = move || {
        WATCHED.set(Some((line.events.clone(), line.stop.clone())));
        watch(Some(Watch { progress, stop: is_asked_to_stop }));
        let done = work(&line);
        watch(None);
        WATCHED.set(None);
        done
    };
    let mut desk = Desk { listener, answer, stop, raised: None };
    let done = std::thread::scope(|scope| {
        let worker = scope.spawn(move || match pool {
            Pool::Shared(threads) => threads::within(threads, watched),
            Pool::Own(threads) => threads::apart(threads, watched),
        });
        desk.listen(py, events);
        py.detach(|| worker.join())
    });
    match (desk.raised, done) {
        (_, Err(panic)) => std::panic::resume_unwind(panic),
        (Some(raised), _) => Err(raised),
        (None, Ok(done)) => done.map_err(crate::failure::failure),
    }
}

/// The caller's end of the line.
struct Desk<'a, 'py> {
    listener: Option<&'a Bound<'py, PyAny>>,
    answer: Sender<Answer>,
    stop: Arc<AtomicBool>,
    /// What Python's code raised first.
    raised: Option<PyErr>,
}

impl Desk<'_, '_> {
    /// Until the work is done.
    fn listen(&mut self, py: Python<'_>, events: Receiver<Event>) {
        // A receiver alone may not be used while the interpreter is released.
        let events = Mutex::new(events);
        loop {
            let next = || {
                let events = events.lock().unwrap_or_else(PoisonError::into_inner);
                events.recv_timeout(TICK)
            };
            match py.detach(next) {
                Ok(event) => self.hear(py, event),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            if let Err(raised) = py.check_signals().and_then(|()| self.check_listener()) {
                self.fail(raised);
            }
        }
    }

    /// A listener may have been asked to stop, by a signal that it heard itself.
    fn check_listener(&self) -> PyResult<()> {
        let Some(listener) = self.listener else { return Ok(()) };
        match listener.getattr("interrupted")?.is_truthy()? && !self.stop.load(Ordering::SeqCst) {
            true => Err(PyKeyboardInterrupt::new_err(())),
            false => Ok(()),
        }
    }

    fn fail(&mut self, raised: PyErr) {
        self.stop.store(true, Ordering::SeqCst);
        self.raised.get_or_insert(raised);
    }

    fn hear(&mut self, py: Python<'_>, event: Event) {
        let waits = matches!(event, Event::Epoch(_) | Event::AllReduce(_) | Event::Broadcast(_));
        let answer = match self.listener {
            Some(listener) => told(py, listener, event),
            None => Ok(Answer::Done),
        };
        let answer = answer.unwrap_or_else(|raised| {
            self.fail(raised);
            Answer::Failed
        });
        if waits {
            // The work waits: it cannot be gone.
            let _ = self.answer.send(answer);
        }
    }
}

/// Calls the listener's method for an event.
fn told(py: Python<'_>, listener: &Bound<'_, PyAny>, event: Event) -> PyResult<Answer> {
    match event {
        Event::Place(folder) => listener.call_method1("place", (folder.to_string_lossy(),))?,
        Event::Note(text) => listener.call_method1("note", (text,))?,
        Event::Line(text) => listener.call_method1("line", (text,))?,
        Event::Begin(plan) => {
            let plan = (plan.epochs, plan.done, plan.batches, plan.batch, plan.parameters);
            listener.call_method1("begin", plan)?
        }
        Event::Batch(at) => {
            let at = (at.epoch, at.batch, at.batches, at.examples, at.loss, at.rate);
            listener.call_method1("batch", at)?
        }
        Event::Phase(phase, done, all) => listener.call_method1("phase", (phase, done, all))?,
        Event::Epoch(record) => {
            let goes_on = listener.call_method1("epoch", (crate::run::row(&record),))?;
            // Returned, not raised: a wish to stop is no failure.
            return Ok(if goes_on.is_truthy()? { Answer::Done } else { Answer::Failed });
        }
        Event::AllReduce(mut numbers) => {
            let place = (numbers.as_mut_ptr() as usize, numbers.len());
            listener.call_method1("all_reduce", place)?;
            return Ok(Answer::Numbers(numbers));
        }
        Event::Broadcast(bytes) => {
            let bytes = pyo3::types::PyBytes::new(py, &bytes);
            let all: Vec<u8> = listener.call_method1("broadcast", (bytes,))?.extract()?;
            return Ok(Answer::Bytes(all));
        }
    };
    Ok(Answer::Done)
}
