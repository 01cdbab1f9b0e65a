//! A task from end to end in a folder that goes away again.

use regard_tasks::{
    Checkpoint, Ended, Model, Options, Progress, Record, Result, Run, Silent, TrainingConfig,
    Watch, picture, task_named, train,
};
use std::collections::BTreeMap;
use tempfile::TempDir;

/// A task with some settings, and a folder for its runs.
pub struct Trial {
    task: &'static str,
    settings: Vec<String>,
    folder: TempDir,
}

/// Stops after so many batches.
struct StopAfter(usize);

impl Watch for StopAfter {
    fn batch(&mut self, _: &Progress) {
        self.0 = self.0.saturating_sub(1);
    }

    fn stop(&self) -> bool {
        self.0 == 0
    }
}

#[allow(dead_code, reason = "not every test file uses all of it")]
impl Trial {
    pub fn new(task: &'static str, settings: &[&str]) -> Self {
        let settings = settings.iter().map(|setting| setting.to_string()).collect();
        Self { task, settings, folder: tempfile::tempdir().unwrap() }
    }

    pub fn options(&self) -> Result<Options> {
        let options = task_named(self.task)?.options()?;
        self.settings.iter().try_fold(options, |options, setting| options.set(setting))
    }

    /// Trains a new run, stopped after so many batches and resumed each time.
    fn turned(&self, name: &str, stops: &[usize]) -> Result<Run> {
        let (task, options) = (task_named(self.task)?, self.options()?);
        let config = TrainingConfig::of(&options)?;
        let mut learner = task.begin(&options)?;
        let run = Run::create(&self.folder.path().join(name), task, &options, learner.model())?;
        for &batches in stops {
            let ended = train(learner.as_mut(), &config, &run, &mut StopAfter(batches))?;
            assert_eq!(ended, Ended::Stopped);
            learner = task.begin(&run.options()?)?;
            run.check_knowledge(learner.model())?;
        }
        assert_eq!(train(learner.as_mut(), &config, &run, &mut Silent)?, Ended::Done);
        Ok(run)
    }

    /// Trains a new run.
    pub fn run(&self) -> Result<Run> {
        self.turned("run", &[])
    }

    /// The sentence that beginning is refused with.
    pub fn refusal(&self) -> String {
        let begun = self.options().and_then(|o| task_named(self.task)?.begin(&o).map(|_| ()));
        begun.expect_err("this was to be refused").to_string()
    }

    /// Trains straight, again, and with stops in the middle of epochs; all must end with the same
    /// bits and the same measures.
    pub fn is_the_same_when_repeated_or_interrupted(&self) -> Result<()> {
        let straight = self.turned("straight", &[])?;
        let again = self.turned("again", &[])?;
        let stopped = self.turned("stopped", &[1, 3])?;
        assert_eq!(state(&straight)?, state(&again)?);
        assert_eq!(state(&straight)?, state(&stopped)?);
        Ok(())
    }
}

/// All tensors of the last checkpoint, by bits, and the measures of every epoch.
type State = (BTreeMap<String, Vec<u8>>, Vec<(u64, String)>);

fn state(run: &Run) -> Result<State> {
    let checkpoint = Checkpoint::read(&run.path("last.safetensors"))?;
    let mut bits = BTreeMap::new();
    for group in ["model", "optimiser"] {
        for (name, tensor) in checkpoint.group(group) {
            let numbers = tensor.to_dtype(regard::DType::F64)?.to_vec::<f64>()?;
            let bytes = numbers.iter().flat_map(|x| x.to_le_bytes()).collect();
            bits.insert(format!("{group}/{name}"), bytes);
        }
    }
    assert!(bits.keys().any(|name| name.starts_with("model/")));
    let records = Record::read(run, usize::MAX)?;
    let measures =
        records.iter().map(|r| (r.loss.to_bits(), format!("{:?}", r.validation))).collect();
    Ok((bits, measures))
}

/// Draws every scene in every form.
#[allow(dead_code, reason = "not every test file uses all of it")]
pub fn draws(model: &dyn Model, input: &str) -> Result<Vec<String>> {
    let scenes = model.show(input)?;
    for (name, scene) in &scenes {
        let maps = scene.maps().len();
        assert!(maps > 0, "{name}");
        for which in [None, Some(0), Some(maps - 1)] {
            assert!(picture::svg(scene, input, which).starts_with("<svg"), "{name}");
        }
        assert!(!picture::terminal(scene, 0, 80, false).is_empty(), "{name}");
        assert!(picture::page(scene, input).contains("<html"), "{name}");
        assert!(!picture::numbers(scene)?.is_empty() && !picture::numbers_json(scene).is_empty());
    }
    Ok(scenes.into_iter().map(|(name, _)| name).collect())
}
