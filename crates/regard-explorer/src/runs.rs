//! The runs that were given. No other folder is ever looked into.

use crate::changes::NORMALIZERS;
use crate::refusal::Refusal;
use crate::shelf::Shelf;
use axum::http::StatusCode;
use regard_tasks::options::{Options, TrainingConfig};
use regard_tasks::run::{Record, Run};
use regard_tasks::task::{Input, InputForm, Model, Placement};
use regard_tasks::{Error, Result};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

/// The runs that were given, each by a name of its own.
pub(crate) struct Runs(Vec<Arc<OneRun>>);

/// A run, and its model once that was asked for.
pub(crate) struct OneRun {
    pub(crate) id: String,
    pub(crate) run: Run,
    device: Placement,
    shelf: Arc<Shelf>,
    /// The checkpoint that was loaded last, and which of the run's it was.
    last: Mutex<Option<(Stamp, u64)>>,
    truths: Mutex<VecDeque<(Input, Option<String>)>>,
}

/// Inputs of which the truth is remembered: it may be looked for in a file.
const TRUTHS: usize = 256;

/// A run's model as its best checkpoint was.
#[derive(Clone)]
pub(crate) struct Loaded {
    pub(crate) model: Arc<dyn Model>,
    /// Rises with every checkpoint that was loaded.
    pub(crate) generation: u64,
    stamp: Stamp,
}

/// When the best checkpoint was written, and how large it is.
type Stamp = Option<(SystemTime, u64)>;

impl Runs {
    /// Refuses a folder that holds no run. Keeps so many models in memory, which compute on a device.
    pub(crate) fn open(folders: &[PathBuf], models: usize, device: Placement) -> Result<Self> {
        let shelf = Arc::new(Shelf::new(models));
        let mut all: Vec<Arc<OneRun>> = Vec::new();
        for folder in folders {
            let run = Run::open(folder)?;
            let same = |other: &Arc<OneRun>| same_folder(other.run.folder(), folder);
            if all.iter().any(same) {
                continue;
            }
            let id = id(&run.name(), &all);
            all.push(Arc::new(OneRun {
                id,
                run,
                device,
                shelf: shelf.clone(),
                last: Mutex::new(None),
                truths: Mutex::default(),
            }));
        }
        Ok(Self(all))
    }

    pub(crate) fn all(&self) -> &[Arc<OneRun>] {
        &self.0
    }

    pub(crate) fn get(&self, id: &str) -> std::result::Result<&Arc<OneRun>, Refusal> {
        let found = self.0.iter().find(|run| run.id == id);
        found.ok_or_else(|| Refusal::not_found("there is no such run among those that were given"))
    }
}

fn same_folder(a: &Path, b: &Path) -> bool {
    matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b)
}

/// A folder's name as part of an address, with a number behind it where another has it.
fn id(name: &str, others: &[Arc<OneRun>]) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '-' };
    let name: String = name.chars().map(plain).take(60).collect();
    let name = if name.trim_matches('.').is_empty() { "run".into() } else { name };
    let numbered = (2..).map(|n| format!("{name}-{n}"));
    let mut all = std::iter::once(name.clone()).chain(numbered);
    let free = |id: &String| others.iter().all(|other| other.id != *id);
    all.find(free).unwrap_or(name)
}

impl OneRun {
    /// Its model with the parameters of the best checkpoint: loaded when it is first asked for, again
    /// where it was let go, and anew where there is a better checkpoint.
    pub(crate) fn loaded(&self) -> std::result::Result<Loaded, Refusal> {
        // Held while loading: who asks for the same model meanwhile waits for it.
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let stamp = self.stamp();
        if let Some(known) = self.shelf.take(&self.id).filter(|known| known.stamp == stamp) {
            return Ok(known);
        }
        if stamp.is_none() && !self.run.path("run.json").is_file() {
            let what = "the folder of this run is no longer there";
            return Err(Refusal::new(StatusCode::GONE, what));
        }
        if stamp.is_none() {
            let what = "no epoch of this run has been validated yet: there is no model to ask";
            return Err(Refusal::new(StatusCode::CONFLICT, what));
        }
        let model: Arc<dyn Model> = self.run.model(&self.run.options()?)?.into();
        self.device.place(model.as_ref())?;
        let generation = match *last {
            Some((known, generation)) if known == stamp => generation,
            Some((_, generation)) => generation + 1,
            None => 0,
        };
        *last = Some((stamp, generation));
        let new = Loaded { model, generation, stamp };
        self.shelf.put(&self.id, new.clone());
        Ok(new)
    }

    /// What is true of an input, where it is known. What somebody types is not looked for in the data:
    /// that would be done anew with every letter.
    pub(crate) fn truth(&self, model: &dyn Model, input: &Input) -> Option<String> {
        let form = model.asks().form;
        let typed = matches!(input, Input::Text(_));
        if typed && !matches!(form, InputForm::Node | InputForm::Graph | InputForm::Point) {
            return None;
        }
        let known = || self.truths.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, truth)) = known().iter().find(|(other, _)| other == input) {
            return truth.clone();
        }
        let truth = model.truth(input);
        let mut known = known();
        known.truncate(TRUTHS - 1);
        known.push_front((input.clone(), truth.clone()));
        truth
    }

    fn stamp(&self) -> Stamp {
        let metadata = std::fs::metadata(self.run.path("best.safetensors")).ok()?;
        Some((metadata.modified().ok()?, metadata.len()))
    }

    /// What is known of it without its model. What cannot be opened says why.
    pub(crate) fn outline(&self) -> Value {
        let mut all = self.facts().unwrap_or_else(
            |error| json!({ "error": error.to_string(), "records": [], "task": null }),
        );
        all["id"] = json!(self.id);
        all["name"] = json!(self.run.name());
        all["training"] = json!(self.run.is_training());
        all["parts"] = json!(["train", "validation", "test"]);
        all["ready"] = json!(self.stamp().is_some());
        let sample = |index| json!({"kind": "example", "part": "validation", "index": index});
        all["samples"] = (0..3).map(sample).collect();
        all["loaded"] = json!(self.shelf.holds(&self.id));
        all
    }

    /// All that a page wants to know of it, for which its model is loaded.
    pub(crate) fn describe(&self) -> Value {
        let ready = self.loaded();
        let mut all = self.outline();
        all["ready"] = json!(ready.is_ok());
        match ready {
            Ok(loaded) => describe_model(&mut all, &*loaded.model),
            // A run that has just begun has no model yet, which is nothing wrong with it.
            Err(refusal) if refusal.status == StatusCode::CONFLICT => {}
            Err(refusal) => all["error"] = json!(refusal.what),
        }
        all
    }

    fn facts(&self) -> Result<Value> {
        let (task, options) = (self.run.task()?, self.run.options()?);
        let records = records(&self.run)?;
        let measured = std::fs::read_to_string(self.run.path("measured.json")).ok();
        let measured: Value =
            measured.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or(Value::Null);
        Ok(json!({
            "task": task.name(),
            "about": task.about(),
            "parameters": self.run.parameters()?,
            "options": options.to_string(),
            "settings": settings(&options),
            "seconds": records.last().and_then(|last| last["seconds"].as_f64()),
            "records": records,
            "measured": measured,
            "epochs": TrainingConfig::of(&options)?.epochs,
            "error": null,
        }))
    }
}

/// What a model can be asked, and what can be changed of it.
fn describe_model(all: &mut Value, model: &dyn Model) {
    let asks = model.asks();
    let columns: Vec<_> = asks.columns.iter().map(|(name, _)| name).collect();
    let range: Vec<_> = asks.columns.iter().map(|(_, range)| range).collect();
    all["input"] = json!({
        "kinds": kinds(asks.form),
        "form": asks.form,
        "columns": columns,
        "range": range,
        "nodes": asks.nodes,
        "labels": asks.labels,
        "moments": asks.moments,
    });
    let window = !matches!(asks.form, InputForm::Node | InputForm::Graph | InputForm::Point);
    all["changes"] =
        json!({ "normalizers": NORMALIZERS, "window": window, "heads": true, "cells": true });
}

/// The kinds of input that a form can be asked by, the best first.
fn kinds(form: InputForm) -> [&'static str; 2] {
    let first = match form {
        InputForm::Sentence
        | InputForm::Text
        | InputForm::PassageQuestion
        | InputForm::Vectors
        | InputForm::Graph => "text",
        InputForm::Node => "node",
        InputForm::Point => "point",
        InputForm::Picture | InputForm::Recording | InputForm::Features => "bytes",
    };
    [first, "example"]
}

/// Options by name.
fn settings(options: &Options) -> Value {
    let named = |name: &String| Some((name.clone(), json!(options.get(name)?.to_string())));
    Value::Object(options.names().iter().filter_map(named).collect())
}

/// A run's records, each with the seconds until then.
pub(crate) fn records(run: &Run) -> Result<Vec<Value>> {
    let with_time = |record: Record| {
        let seconds = record.seconds;
        let mut value = serde_json::to_value(record).map_err(|e| Error::invalid(e.to_string()))?;
        value["seconds"] = json!(seconds);
        Ok(value)
    };
    Record::read(run, usize::MAX)?.into_iter().map(with_time).collect()
}
