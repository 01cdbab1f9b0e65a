//! A question: a run, an input, and what is changed.

use crate::changes::Changes;
use crate::input::Asked;
use crate::limits::Limits;
use crate::refusal::Refusal;
use crate::runs::{Loaded, OneRun, Runs};
use crate::worker::View;
use regard::attention::Intervention;
use regard_tasks::task::{How, Input, Method};
use serde::Deserialize;
use std::sync::Arc;

/// A question as a request writes it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Question {
    run: String,
    input: Asked,
    #[serde(default)]
    changes: Option<Changes>,
    #[serde(default)]
    view: Option<String>,
    #[serde(default)]
    serial: Option<u64>,
    /// Of a picture: which scene, which of its maps, and what is made of it.
    #[serde(default)]
    pub(crate) scene: usize,
    #[serde(default)]
    pub(crate) map: Option<usize>,
    #[serde(default, rename = "as")]
    pub(crate) form: Option<String>,
    /// Of saliency: how it is told what matters; the answer then tries it, too.
    #[serde(default)]
    method: Option<Method>,
}

/// A question whose run is there; its input is read where the model is.
pub(crate) struct Found {
    pub(crate) run: Arc<OneRun>,
    pub(crate) view: Option<View>,
    changes: Changes,
    input: Asked,
    limits: Limits,
    pub(crate) method: Option<Method>,
}

/// A question that can be answered.
pub(crate) struct Ready {
    pub(crate) run: Arc<OneRun>,
    pub(crate) loaded: Loaded,
    pub(crate) input: Input,
    pub(crate) changes: Intervention,
    pub(crate) how: How,
}

impl Question {
    /// Refuses a run that was not given, and changes that cannot be made.
    pub(crate) fn find(self, runs: &Runs, limits: Limits) -> Result<Found, Refusal> {
        let run = runs.get(&self.run)?.clone();
        let changes = self.changes.unwrap_or_default().checked()?;
        let view = match (self.view, self.serial) {
            (Some(name), serial) => {
                let name: String = name.chars().take(100).collect();
                Some(View { name, serial: serial.unwrap_or(0) })
            }
            (None, _) => None,
        };
        Ok(Found { run, view, changes, input: self.input, limits, method: self.method })
    }
}

impl Found {
    /// Loads the model where that was not done before. Refuses an input that it does not read, and
    /// one that is too large.
    pub(crate) fn ready(self) -> Result<Ready, Refusal> {
        let loaded = self.run.loaded()?;
        let form = loaded.model.asks().form;
        let input = self.input.input(form)?;
        self.limits.check(&input, form)?;
        let changes = self.changes.intervention(&*loaded.model, &self.limits)?;
        let how =
            How { method: self.method.unwrap_or_default(), faithfulness: self.method.is_some() };
        Ok(Ready { run: self.run, loaded, input, changes, how })
    }
}
