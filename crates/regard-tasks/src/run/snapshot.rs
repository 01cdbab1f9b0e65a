//! What a model made of a few samples after an epoch: kept while it learns, to be looked at later.

use crate::run::folder::Run;
use crate::task::input::Input;
use crate::task::json_file::JsonFile;
use crate::task::model::Model;
use regard_data::{Error, Result};
use regard_picture::scene::Scene;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// What a model made of a few samples after an epoch. A run keeps one for each epoch that was
/// validated, in its folder `scenes`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// The epoch, from 1.
    pub epoch: usize,
    /// The same samples in every epoch.
    pub samples: Vec<Sample>,
}

/// A sample, and what was made of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// The input, as text.
    pub input: String,
    /// The output.
    pub output: String,
    /// What is true, where it is known.
    pub truth: Option<String>,
    /// Its scenes, each with its name, as [`Scene::compact`] writes them.
    pub scenes: Vec<Value>,
    /// Why there are none, where there are none.
    pub blank: Option<String>,
}

/// The folder of a run that holds them.
const FOLDER: &str = "scenes";
/// Samples that are kept.
pub(crate) const SAMPLES: usize = 3;
/// Weights that are kept of a sample, and as many pixels or frames: a training of a hundred epochs
/// keeps a few megabytes at most.
const MOST_NUMBERS: usize = 8192;

impl Sample {
    fn take(model: &dyn Model, input: &str) -> Result<Self> {
        let input = Input::from(input);
        let prediction = model.predict(std::slice::from_ref(&input))?.pop();
        let (scenes, blank) = match model.show(&input) {
            Ok(scenes) => (kept(scenes), None),
            Err(Error::Stopped) => return Err(Error::Stopped),
            Err(error) => (Vec::new(), Some(error.to_string())),
        };
        let output = prediction.map_or_else(String::new, |prediction| prediction.output);
        Ok(Self { truth: model.truth(&input), input: input.to_string(), output, scenes, blank })
    }
}

/// Scenes with as many maps as are kept, the first ones first.
fn kept(scenes: Vec<(String, Scene)>) -> Vec<Value> {
    let mut left = MOST_NUMBERS;
    let mut all = Vec::new();
    for (name, mut scene) in scenes {
        let mut fits = |numbers: usize| {
            let fits = numbers <= left;
            left -= if fits { numbers } else { 0 };
            fits
        };
        scene.maps_mut().retain(|map| fits(map.weights.len()));
        match &mut scene {
            Scene::Image(image) if image.pixels.len() > MOST_NUMBERS => image.pixels.clear(),
            Scene::Sound(sound) if sound.spectrogram.len() > MOST_NUMBERS => {
                sound.spectrogram.clear();
            }
            _ => {}
        }
        if !scene.maps().is_empty() {
            all.push(json!({ "name": name, "scene": scene.compact() }));
        }
    }
    all
}

impl Snapshot {
    /// What a model makes of samples now.
    pub(crate) fn take(epoch: usize, model: &dyn Model, samples: &[String]) -> Result<Self> {
        let samples = samples.iter().map(|input| Sample::take(model, input));
        Ok(Self { epoch, samples: samples.collect::<Result<_>>()? })
    }

    /// Keeps it in a run's folder.
    pub(crate) fn write(&self, run: &Run) -> Result<()> {
        let folder = run.path(FOLDER);
        std::fs::create_dir_all(&folder).map_err(|error| Error::file(&folder, error))?;
        let text = serde_json::to_string(self).map_err(|error| Error::file(&folder, error))?;
        run.write(&name(self.epoch), text.as_bytes())?;
        Ok(())
    }

    /// The one that a run keeps of an epoch.
    pub fn read(run: &Run, epoch: usize) -> Result<Self> {
        JsonFile::read(&run.path(&name(epoch)))?.parse()
    }

    /// The epochs of which a run keeps one, in order.
    pub fn epochs(run: &Run) -> Vec<usize> {
        let Ok(entries) = std::fs::read_dir(run.path(FOLDER)) else { return Vec::new() };
        let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
        let epoch = |name: String| name.strip_suffix(".json")?.parse().ok();
        let mut epochs: Vec<usize> = names.filter_map(epoch).collect();
        epochs.sort_unstable();
        epochs
    }

    /// Removes all that a run keeps, and nothing else.
    pub(crate) fn remove_all(run: &Run) -> Result<()> {
        for epoch in Self::epochs(run) {
            let path = run.path(&name(epoch));
            std::fs::remove_file(&path).map_err(|error| Error::file(path, error))?;
        }
        // Where something else lies there, the folder stays.
        let _ = std::fs::remove_dir(run.path(FOLDER));
        Ok(())
    }
}

fn name(epoch: usize) -> String {
    format!("{FOLDER}/{epoch:05}.json")
}
