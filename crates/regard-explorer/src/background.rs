//! The thread that computes whole parts beside the questions: one after the other, since each takes
//! minutes and all processors.

use crate::refusal::Refusal;
use crate::worker::{Progress, watched};
use axum::http::StatusCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex};

/// Parts that may wait beside the one that is computed.
const WAITING: usize = 8;

type Job = Box<dyn FnOnce() + Send>;

/// The thread and what waits for it. What is computed ends with this.
pub(crate) struct Background {
    jobs: SyncSender<Job>,
    ended: Arc<AtomicBool>,
}

impl Drop for Background {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
    }
}

/// How far something is that has not begun.
pub(crate) fn waiting() -> Arc<Mutex<Progress>> {
    Arc::new(Mutex::new(Progress { phase: "waiting".into(), ..Progress::default() }))
}

impl Background {
    pub(crate) fn start() -> std::io::Result<Self> {
        let (jobs, coming): (SyncSender<Job>, Receiver<Job>) = sync_channel(WAITING);
        let thread = std::thread::Builder::new().name("parts".into());
        thread.spawn(move || coming.into_iter().for_each(|job| job()))?;
        Ok(Self { jobs, ended: Arc::default() })
    }

    /// Computes when all that came before is done, and hands over what came of it. Refuses more than
    /// may wait.
    pub(crate) fn begin<T>(
        &self,
        progress: Arc<Mutex<Progress>>,
        work: impl FnOnce() -> T + Send + 'static,
        done: impl FnOnce(T) + Send + 'static,
    ) -> Result<(), Refusal> {
        let ended = self.ended.clone();
        let job = move || {
            let stop = Arc::new(move || ended.load(Ordering::Relaxed));
            done(watched(stop, Some(progress), work));
        };
        self.jobs.try_send(Box::new(job)).map_err(|error| match error {
            TrySendError::Full(_) => Refusal::new(
                StatusCode::SERVICE_UNAVAILABLE,
                format!("{WAITING} parts wait already to be computed; ask again later"),
            ),
            TrySendError::Disconnected(_) => Refusal::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                "the thread that computes has ended",
            ),
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn parts_are_computed_one_after_the_other_and_more_than_may_wait_are_refused() {
        let background = Background::start().unwrap();
        let (open, gate) = channel::<()>();
        let (told, order) = channel();
        let (began, begins) = channel();
        let first = move || {
            began.send(()).unwrap();
            gate.recv().unwrap();
        };
        let say = |what: usize| {
            let told = told.clone();
            move |()| told.send(what).unwrap()
        };
        background.begin(waiting(), first, say(0)).unwrap();
        begins.recv().unwrap();
        for at in 1..=WAITING {
            background.begin(waiting(), || (), say(at)).unwrap();
        }
        let refused = background.begin(waiting(), || (), say(99)).unwrap_err();
        assert_eq!(refused.status, StatusCode::SERVICE_UNAVAILABLE);
        assert!(order.try_recv().is_err(), "none is computed beside the first");
        open.send(()).unwrap();
        let found: Vec<usize> = (0..=WAITING).map(|_| order.recv().unwrap()).collect();
        assert_eq!(found, (0..=WAITING).collect::<Vec<_>>());
    }

    #[test]
    fn what_is_computed_ends_when_the_server_goes() {
        let background = Background::start().unwrap();
        let (told, heard) = channel();
        let endless = || loop {
            if let Err(error) = regard_data::tick("computing", 0, 1) {
                return error.to_string();
            }
        };
        background.begin(waiting(), endless, move |end| told.send(end).unwrap()).unwrap();
        drop(background);
        assert!(!heard.recv().unwrap().is_empty());
    }
}
