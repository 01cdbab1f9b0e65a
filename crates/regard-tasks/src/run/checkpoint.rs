//! All of a run at one moment, in one file.

use regard::Tensor;
use regard::tensor::{Loaded, Parameters, from_bytes, load, save, to_bytes};
use regard_data::{Error, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// The mark of our checkpoints among safetensors files.
const FORMAT: &str = "regard-checkpoint-1";

/// All of a run at one moment: tensors in groups (`model/…`, `optimizer/…`), and the state of its trainer.
#[derive(Clone, Debug, Default)]
pub struct Checkpoint {
    tensors: BTreeMap<String, Tensor>,
    /// How far the training has come.
    pub state: TrainerState,
}

/// How far a training has come: epochs, batches and steps done. With the seed these are its random
/// numbers' state: each step draws from numbers named after it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TrainerState {
    /// The seed of all random numbers.
    pub seed: u64,
    /// Epochs done.
    pub epoch: usize,
    /// Batches done of the epoch that has begun.
    pub batch: usize,
    /// Steps done in all.
    pub step: u64,
    /// The sum of the losses of this epoch's batches.
    pub loss: f64,
    /// The best validation measure so far.
    pub best: Option<f64>,
    /// The validation loss that came with it.
    #[serde(default)]
    pub best_loss: Option<f64>,
    /// Validations since the best.
    pub waited: usize,
    /// The state of a rate that follows a plateau.
    pub plateau: Option<regard::tensor::Plateau>,
}

impl Checkpoint {
    /// At a state of its trainer, with no tensors yet.
    pub fn new(state: TrainerState) -> Self {
        Self { tensors: BTreeMap::new(), state }
    }

    /// Puts tensors in, in a group.
    pub fn put(&mut self, group: &str, tensors: BTreeMap<String, Tensor>) {
        let named = tensors.into_iter().map(|(name, x)| (format!("{group}/{name}"), x));
        self.tensors.extend(named);
    }

    /// The tensors of a group.
    pub fn group(&self, group: &str) -> BTreeMap<String, Tensor> {
        let before = format!("{group}/");
        let of =
            |(name, x): (&String, &Tensor)| Some((name.strip_prefix(&before)?.into(), x.clone()));
        self.tensors.iter().filter_map(of).collect()
    }

    /// Sets a model's parameters; refuses other names or shapes, by name.
    pub fn set_parameters(&self, parameters: &Parameters) -> Result<()> {
        Ok(parameters.set(&self.group("model"))?)
    }

    /// What stands beside the tensors.
    fn texts(&self) -> std::result::Result<BTreeMap<String, String>, serde_json::Error> {
        let texts = [
            ("format", FORMAT.to_string()),
            ("version", env!("CARGO_PKG_VERSION").to_string()),
            ("place", serde_json::to_string(&self.state)?),
        ];
        Ok(texts.map(|(name, text)| (name.to_string(), text)).into())
    }

    /// Writes it whole or not at all.
    pub fn write(&self, path: &Path) -> Result<()> {
        let texts = self.texts().map_err(|e| Error::file(path, e))?;
        Ok(save(path, &self.tensors, &texts)?)
    }

    /// What [`Checkpoint::write`] writes, for another process.
    pub(crate) fn to_bytes(&self) -> Result<Vec<u8>> {
        let texts = self.texts().map_err(|e| Error::invalid(e.to_string()))?;
        Ok(to_bytes(&self.tensors, &texts)?)
    }

    /// Reads one; refuses a file that is truncated, or is no checkpoint of ours, by name.
    pub fn read(path: &Path) -> Result<Self> {
        Self::of(load(path)?).map_err(|what| Error::file(path, what))
    }

    /// What [`Checkpoint::to_bytes`] gave.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Self> {
        Self::of(from_bytes(bytes)?).map_err(Error::invalid)
    }

    fn of((tensors, texts): Loaded) -> std::result::Result<Self, String> {
        if texts.get("format").map(String::as_str) != Some(FORMAT) {
            return Err("a safetensors file, but not a checkpoint of regard".into());
        }
        let state = texts.get("place").map_or("", |state| state);
        let state =
            serde_json::from_str(state).map_err(|e| format!("the checkpoint's state: {e}"))?;
        Ok(Self { tensors, state })
    }
}
