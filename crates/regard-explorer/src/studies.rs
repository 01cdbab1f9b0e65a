//! What takes minutes over a whole part: what each head is worth, and what it does. Computed beside
//! the questions, once for a checkpoint.

use crate::background::{Background, waiting};
use crate::input::part;
use crate::refusal::Refusal;
use crate::runs::{Loaded, OneRun};
use crate::worker::{Progress, caught};
use axum::http::StatusCode;
use regard_data::tick;
use regard_tasks::inspect::{Ablation, Profile};
use regard_tasks::task::Part;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What can be studied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Study {
    Ablation,
    Profile,
}

/// A run, its checkpoint, what is studied, and a part.
type Key = (String, u64, Study, &'static str);

/// What is known.
pub(crate) struct Studies {
    known: Arc<Mutex<HashMap<Key, State>>>,
    background: Arc<Background>,
}

#[derive(Clone)]
enum State {
    /// How far it is, and what is known so far.
    Running(Arc<Mutex<Progress>>, Arc<Mutex<Value>>),
    Done(Value),
    Failed(Refusal),
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Studies {
    /// Nothing yet; what is asked for is computed there.
    pub(crate) fn of(background: Arc<Background>) -> Self {
        Self { known: Arc::default(), background }
    }

    /// What a study found, or how far it is; begins it.
    pub(crate) fn answer(
        &self,
        run: &Arc<OneRun>,
        study: Study,
        part_name: &str,
    ) -> Result<Result<Value, Value>, Refusal> {
        let part = part(part_name)?;
        let loaded = run.loaded()?;
        let key = (run.id.clone(), loaded.generation, study, part.name());
        let mut known = lock(&self.known);
        match known.get(&key).cloned() {
            // What went wrong may go right the next time.
            Some(State::Failed(_)) => drop(known.remove(&key)),
            Some(state) => return told(state),
            None => {}
        }
        // An older checkpoint's are asked for no more.
        known.retain(|(id, generation, ..), _| *id != run.id || *generation == loaded.generation);
        if let Some(kept) = kept(run, study, part) {
            known.insert(key, State::Done(kept.clone()));
            return Ok(Ok(kept));
        }
        // What is done waits for the lock.
        let running = self.begin(run.clone(), loaded, key.clone(), part)?;
        known.insert(key, running.clone());
        drop(known);
        told(running)
    }

    /// The same where it was begun before, or kept in the run. Computes nothing.
    pub(crate) fn known(
        &self,
        run: &Arc<OneRun>,
        study: Study,
        part_name: &str,
    ) -> Result<Result<Value, Value>, Refusal> {
        let part = part(part_name)?;
        let all = lock(&self.known);
        let of = |key: &Key| key.0 == run.id && key.2 == study && key.3 == part.name();
        let newest = all.iter().filter(|(key, _)| of(key)).max_by_key(|(key, _)| key.1);
        let state = newest.map(|(_, state)| state.clone());
        drop(all);
        if let Some(state) = state {
            return told(state);
        }
        kept(run, study, part).map(Ok).ok_or_else(|| {
            let what = "this is not computed yet; a POST to the same address begins it";
            Refusal::new(StatusCode::METHOD_NOT_ALLOWED, what)
        })
    }

    fn begin(
        &self,
        run: Arc<OneRun>,
        loaded: Loaded,
        key: Key,
        part: Part,
    ) -> Result<State, Refusal> {
        let (progress, so_far): (_, Arc<Mutex<Value>>) = (waiting(), Arc::default());
        let (all, study, told) = (self.known.clone(), key.2, so_far.clone());
        let work = move || caught(|| compute(&run, &loaded, study, part, &told));
        let done = move |found: Result<Value, Refusal>| {
            let state = match found {
                Ok(value) => State::Done(value),
                Err(refusal) => State::Failed(refusal),
            };
            lock(&all).insert(key, state);
        };
        self.background.begin(progress.clone(), work, done)?;
        Ok(State::Running(progress, so_far))
    }
}

fn kept(run: &OneRun, study: Study, part: Part) -> Option<Value> {
    match study {
        Study::Ablation => Ablation::kept(&run.run, part).map(|found| json!(found)),
        Study::Profile => None,
    }
}

fn compute(
    run: &OneRun,
    loaded: &Loaded,
    study: Study,
    part: Part,
    so_far: &Mutex<Value>,
) -> Result<Value, Refusal> {
    match study {
        Study::Ablation => {
            let mut told = |found: &Ablation, done: usize, all: usize| {
                *lock(so_far) = json!(found);
                tick("measuring", done, all)
            };
            let step = Ablation::step_of(&run.run);
            let mut found = Ablation::compute(&*loaded.model, part, &mut told)?;
            // A run may be somebody else's: what cannot be kept is known all the same.
            if run.loaded().is_ok_and(|now| now.generation == loaded.generation) {
                let _ = found.keep(&run.run, step);
            }
            Ok(json!(found))
        }
        Study::Profile => Ok(json!(Profile::compute(&*loaded.model, part)?)),
    }
}

fn told(state: State) -> Result<Result<Value, Value>, Refusal> {
    match state {
        State::Done(value) => Ok(Ok(value)),
        State::Failed(refusal) => Err(refusal),
        State::Running(progress, so_far) => {
            let Progress { phase, done, total } = lock(&progress).clone();
            let so_far = lock(&so_far).clone();
            let running = json!({ "running": true, "phase": phase, "done": done, "total": total, "so_far": so_far });
            Ok(Err(running))
        }
    }
}
