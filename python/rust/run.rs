//! A run as Python has it: what is asked and answered is JSON and bytes; `regard/run.py` makes
//! dictionaries and arrays of them.

use crate::failure::failure;
use crate::line::{Pool, serve};
use crate::model;
use crate::picture::Picture;
use crate::question::Question;
use pyo3::exceptions::{PyKeyError, PyUserWarning, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;
use regard::Tensor;
use regard::tensor::{DType, Parameter};
use regard_data::{remarked, tick};
use regard_tasks::export::export;
use regard_tasks::inspect::{Ablation, Attribution, Change, Profile};
use regard_tasks::options::Options;
use regard_tasks::run::Record;
use regard_tasks::task::{How, Model, Part, Placement};
use regard_tasks::tasks::{task_named, tasks};
use serde_json::{Map, Value, json};
use std::ffi::CString;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A run whose model has been loaded.
#[pyclass(frozen, module = "regard._native")]
pub(crate) struct Run {
    run: regard_tasks::run::Run,
    options: Options,
    /// The step of the checkpoint that its model is of.
    step: Option<u64>,
    model: Mutex<Box<dyn Model>>,
}

/// A parameter from Python: its name, its shape, its numbers as f32.
type Given = (String, Vec<usize>, PyBackedBytes);

#[pymethods]
impl Run {
    /// Opens a run with the parameters of its best epoch, under other settings of data and search.
    #[new]
    fn new(
        py: Python<'_>,
        threads: usize,
        folder: PathBuf,
        settings: Vec<String>,
        device: &str,
    ) -> PyResult<Self> {
        let (opened, remarks) = serve(py, Pool::Shared(threads), None, |_| {
            let placement: Placement = device.parse()?;
            let run = regard_tasks::run::Run::open(&folder)?;
            let mut all = settings.iter();
            let own = run.options()?;
            let (options, remarks) =
                remarked(|| all.try_fold(own, |options, setting| options.set(setting)));
            let options = options?;
            run.check_untrained(&options)?;
            let step = Ablation::step_of(&run);
            let model = run.model(&options)?;
            placement.place(model.as_ref())?;
            Ok((Self { run, options, step, model: Mutex::new(model) }, remarks))
        })?;
        warn(py, remarks)?;
        Ok(opened)
    }

    /// The name of its task.
    #[getter]
    fn task(&self) -> PyResult<String> {
        Ok(self.run.task().map_err(failure)?.name().into())
    }

    /// What its inputs look like, in a word: "text", "point", "picture".
    #[getter]
    fn form(&self) -> PyResult<String> {
        let form = serde_json::to_value(self.lock().asks().form).map_err(not_json)?;
        Ok(form.as_str().unwrap_or_default().into())
    }

    /// All options, by section, as JSON.
    #[getter]
    fn config(&self) -> PyResult<String> {
        Ok(sections(&self.options)?.to_string())
    }

    /// What should be known before it is measured.
    #[getter]
    fn notes(&self) -> PyResult<Vec<String>> {
        self.run.notes().map_err(failure)
    }

    /// One JSON object for each validated epoch.
    fn metrics(&self) -> PyResult<Vec<String>> {
        let records = Record::read(&self.run, usize::MAX).map_err(failure)?;
        Ok(records.iter().map(row).collect())
    }

    /// A JSON object for each input: input, output, details.
    fn predict(
        &self,
        py: Python<'_>,
        threads: usize,
        inputs: Vec<Question>,
        changes: &str,
    ) -> PyResult<Vec<String>> {
        let changes = read_changes(changes)?;
        let all = serve(py, Pool::Shared(threads), None, |_| {
            model::predict(self.lock().as_ref(), &inputs, &changes)
        })?;
        all.iter().map(|one| serde_json::to_string(one).map_err(not_json)).collect()
    }

    /// The scenes of an input: name, numbers as safetensors, picture.
    fn attention<'py>(
        &self,
        py: Python<'py>,
        threads: usize,
        input: Question,
        changes: &str,
    ) -> PyResult<Vec<(String, Bound<'py, PyBytes>, Picture)>> {
        let changes = read_changes(changes)?;
        let all = serve(py, Pool::Shared(threads), None, |_| {
            model::scenes(self.lock().as_ref(), &input, &changes)
        })?;
        let given = |(name, bytes, picture): (String, Vec<u8>, Picture)| {
            (name, PyBytes::new(py, &bytes), picture)
        };
        Ok(all.into_iter().map(given).collect())
    }

    /// The picture of a scene of an input.
    fn show(
        &self,
        py: Python<'_>,
        threads: usize,
        input: Question,
        scene: Option<&str>,
    ) -> PyResult<Picture> {
        serve(py, Pool::Shared(threads), None, |_| {
            model::shown(&self.run, self.lock().as_ref(), &input, scene)
        })
    }

    /// Writes the model as a PyTorch module into a folder; gives the reasons where something was left
    /// out.
    fn export(&self, py: Python<'_>, threads: usize, folder: PathBuf) -> PyResult<Vec<String>> {
        let written = serve(py, Pool::Shared(threads), None, |_| {
            export(&self.run, self.lock().as_ref(), &folder)
        })?;
        Ok(written.left_out)
    }

    /// The measures on a part as JSON, and all outputs.
    fn evaluate(
        &self,
        py: Python<'_>,
        threads: usize,
        part: &str,
        listener: &Bound<'_, PyAny>,
    ) -> PyResult<(String, Vec<String>)> {
        let part = part_named(part)?;
        let (report, remarks) = serve(py, Pool::Shared(threads), Some(listener), |_| {
            let (report, remarks) = remarked(|| self.lock().evaluate(part));
            Ok((report?, remarks))
        })?;
        warn(py, remarks)?;
        Ok((serde_json::to_string(&report).map_err(not_json)?, report.outputs))
    }

    /// What the measure on a part loses without each head, as JSON; kept in the run where it is
    /// computed with the run's own options and parameters.
    fn ablate(
        &self,
        py: Python<'_>,
        threads: usize,
        part: &str,
        own: bool,
        listener: &Bound<'_, PyAny>,
    ) -> PyResult<String> {
        let part = part_named(part)?;
        let found = serve(py, Pool::Shared(threads), Some(listener), |_| {
            let own = own && self.options.to_string() == self.run.options()?.to_string();
            if let Some(kept) = Ablation::kept(&self.run, part).filter(|_| own) {
                return Ok(kept);
            }
            let mut told = |_: &Ablation, done, all| tick("taking heads away", done, all);
            let mut found = Ablation::compute(self.lock().as_ref(), part, &mut told)?;
            if own {
                // A run may be somebody else's: what cannot be kept is known all the same.
                let _ = found.keep(&self.run, self.step);
            }
            Ok(found)
        })?;
        serde_json::to_string(&found).map_err(not_json)
    }

    /// What each head does over a part, as JSON.
    fn heads(
        &self,
        py: Python<'_>,
        threads: usize,
        part: &str,
        listener: &Bound<'_, PyAny>,
    ) -> PyResult<String> {
        let part = part_named(part)?;
        let found = serve(py, Pool::Shared(threads), Some(listener), |_| {
            Profile::compute(self.lock().as_ref(), part)
        })?;
        let mut value = serde_json::to_value(&found).map_err(not_json)?;
        for (at, head) in found.heads.iter().enumerate() {
            value["heads"][at]["sentence"] = head.sentence().into();
        }
        Ok(value.to_string())
    }

    /// How much each part of an input matters, as JSON.
    fn saliency(
        &self,
        py: Python<'_>,
        threads: usize,
        input: Question,
        method: &str,
        faithfulness: bool,
        changes: &str,
    ) -> PyResult<String> {
        let changes = read_changes(changes)?;
        let found = serve(py, Pool::Shared(threads), None, |_| {
            let how = How { method: method.parse()?, faithfulness };
            model::saliency(self.lock().as_ref(), &input, how, &changes)
        })?;
        serde_json::to_string(&found).map_err(not_json)
    }

    /// How faithful each method is over a part, as JSON.
    fn attribution(
        &self,
        py: Python<'_>,
        threads: usize,
        part: &str,
        examples: usize,
        listener: &Bound<'_, PyAny>,
    ) -> PyResult<String> {
        let part = part_named(part)?;
        let found = serve(py, Pool::Shared(threads), Some(listener), |_| {
            Attribution::compute(self.lock().as_ref(), part, examples)
        })?;
        serde_json::to_string(&found).map_err(not_json)
    }

    /// The names and shapes of all parameters.
    fn shapes(&self) -> Vec<(String, Vec<usize>)> {
        let shape = |p: Parameter| (p.name().to_string(), p.tensor().shape().to_vec());
        self.lock().parameters().all().into_iter().map(shape).collect()
    }

    /// A parameter's numbers as f32.
    fn parameter<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyBytes>> {
        let value = self.named(name)?.tensor().detach();
        let numbers = value.to_dtype(DType::F32).and_then(|value| value.to_vec::<f32>());
        let bytes: Vec<u8> =
            numbers.map_err(refused)?.iter().flat_map(|x| x.to_le_bytes()).collect();
        Ok(PyBytes::new(py, &bytes))
    }

    /// Sets some parameters; all of them or, where one is refused, none.
    fn set_parameters(&self, given: Vec<Given>) -> PyResult<()> {
        let mut all = Vec::new();
        for (name, shape, bytes) in given {
            let parameter = self.named(&name)?;
            let numbers =
                bytes.chunks_exact(4).map(|x| f32::from_le_bytes([x[0], x[1], x[2], x[3]]));
            let value = Tensor::from_vec(numbers.collect::<Vec<f32>>(), &shape).map_err(refused)?;
            let now = parameter.tensor();
            if now.shape() != value.shape() {
                let (now, new) = (now.shape(), value.shape());
                let what = format!("parameter {name:?} has shape {now:?}, the one given {new:?}");
                return Err(PyValueError::new_err(what));
            }
            all.push((parameter, value.to_dtype(now.dtype()).map_err(refused)?));
        }
        all.iter().try_for_each(|(parameter, value)| parameter.set(value).map_err(refused))
    }

    /// Writes all parameters to a safetensors file, whole or not at all.
    fn save_parameters(&self, path: PathBuf) -> PyResult<()> {
        self.lock().parameters().save(path).map_err(|e| failure(e.into()))
    }
}

impl Run {
    fn lock(&self) -> MutexGuard<'_, Box<dyn Model>> {
        self.model.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn named(&self, name: &str) -> PyResult<Parameter> {
        let all = self.lock().parameters().all();
        let found = all.into_iter().find(|parameter| parameter.name() == name);
        found.ok_or_else(|| PyKeyError::new_err(format!("the model has no parameter {name:?}")))
    }
}

/// Says what was remarked, as warnings of whoever called.
fn warn(py: Python<'_>, remarks: Vec<String>) -> PyResult<()> {
    let category = py.get_type::<PyUserWarning>();
    remarks.into_iter().try_for_each(|text| {
        let text = CString::new(text)?;
        PyErr::warn(py, &category, &text, 2)
    })
}

/// The names of all tasks, and what each does.
#[pyfunction]
pub(crate) fn task_names() -> Vec<(&'static str, &'static str)> {
    tasks().iter().map(|task| (task.name(), task.about())).collect()
}

/// The options of a task as JSON, under some settings.
#[pyfunction]
pub(crate) fn task_options(py: Python<'_>, task: &str, settings: Vec<String>) -> PyResult<String> {
    let options = task_named(task).and_then(|task| task.options()).map_err(failure)?;
    let mut all = settings.iter();
    let (options, remarks) =
        remarked(|| all.try_fold(options, |options, setting| options.set(setting)));
    warn(py, remarks)?;
    Ok(sections(&options.map_err(failure)?)?.to_string())
}

/// Options by section; those without a value are left out.
fn sections(options: &Options) -> PyResult<Value> {
    let mut all = Map::new();
    for name in options.names() {
        let Some(value) = options.get(name) else { continue };
        let value = serde_json::to_value(value).map_err(not_json)?;
        match name.split_once('.') {
            None => all.insert(name.clone(), value),
            Some((section, key)) => {
                let section = all.entry(section).or_insert_with(|| json!({}));
                section.as_object_mut().and_then(|section| section.insert(key.into(), value))
            }
        };
    }
    Ok(Value::Object(all))
}

/// What a validated epoch gave, as JSON.
pub(crate) fn row(record: &Record) -> String {
    json!({
        "epoch": record.epoch,
        "step": record.step,
        "training_loss": record.loss,
        "rate": record.rate,
        "seconds": record.seconds,
        "best": record.best,
        "validation": record.validation.values,
    })
    .to_string()
}

fn part_named(part: &str) -> PyResult<Part> {
    match part {
        "training" => Ok(Part::Training),
        "validation" => Ok(Part::Validation),
        "test" => Ok(Part::Test),
        other => {
            let what = format!(
                "there is no part {other:?}; there are 'training', 'validation' and 'test'"
            );
            Err(PyValueError::new_err(what))
        }
    }
}

/// Changes as JSON; an empty text is none.
fn read_changes(json: &str) -> PyResult<Vec<Change>> {
    if json.is_empty() {
        return Ok(Vec::new());
    }
    let all: Vec<Value> = serde_json::from_str(json).map_err(not_json)?;
    let read = |(at, one): (usize, Value)| {
        serde_json::from_value(one)
            .map_err(|error| PyValueError::new_err(format!("changes[{at}]: {error}")))
    };
    all.into_iter().enumerate().map(read).collect()
}

fn refused(error: regard::Error) -> PyErr {
    failure(error.into())
}

fn not_json(error: serde_json::Error) -> PyErr {
    PyValueError::new_err(format!("what was answered is no JSON: {error}"))
}
