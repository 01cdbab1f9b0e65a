//! The models that are in memory: the ones used last, and no more than so many.

use crate::runs::Loaded;
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

/// The models that are in memory, the one used last first.
pub(crate) struct Shelf {
    most: usize,
    held: Mutex<VecDeque<(String, Loaded)>>,
}

impl Shelf {
    /// For so many models, one at least.
    pub(crate) fn new(most: usize) -> Self {
        Self { most: most.max(1), held: Mutex::default() }
    }

    /// A run's model, if it is there; it is let go last from now on.
    pub(crate) fn take(&self, run: &str) -> Option<Loaded> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let at = held.iter().position(|(id, _)| id == run)?;
        let found = held.remove(at)?;
        held.push_front(found.clone());
        Some(found.1)
    }

    /// Keeps a run's model, in place of the one it had, and of the one that was not used for longest.
    pub(crate) fn put(&self, run: &str, loaded: Loaded) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.retain(|(id, _)| id != run);
        held.push_front((run.to_string(), loaded));
        held.truncate(self.most);
    }

    pub(crate) fn holds(&self, run: &str) -> bool {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.iter().any(|(id, _)| id == run)
    }
}
