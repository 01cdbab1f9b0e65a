//! A training in a folder of its own, as the tests of several tasks want it.

use regard_picture::picture;
use regard_tasks::options::{Options, TrainingConfig};
use regard_tasks::run::{Record, Run};
use regard_tasks::task::{Input, Task};
use regard_tasks::tasks::task_named;
use regard_tasks::train::{Callback, Ended, Silent, train};
use tempfile::TempDir;

/// A task's run in a folder that is gone with it.
pub(crate) struct Course {
    pub(crate) task: &'static dyn Task,
    pub(crate) options: Options,
    pub(crate) run: Run,
    _folder: TempDir,
}

/// Stops a training after so many batches.
pub(crate) struct StopAfter(pub(crate) usize);

impl Callback for StopAfter {
    fn batch(&mut self, _: &regard_tasks::train::Progress) {
        self.0 = self.0.saturating_sub(1);
    }

    fn stop(&self) -> bool {
        self.0 == 0
    }
}

/// A task's options as somebody set them.
pub(crate) fn set(task: &str, settings: &[&str]) -> Options {
    let all = task_named(task).unwrap().options().unwrap();
    settings.iter().fold(all, |options, setting| options.set(setting).unwrap())
}

/// A task's options with settings, of which some may have no effect: what makes one model small is set for all.
pub(crate) fn options(task: &str, settings: &[&str]) -> Options {
    set(task, settings).set_by_nobody()
}

/// What is said where a task cannot begin, or could if nobody had set what has no effect.
pub(crate) fn refusal(task: &str, settings: &[&str]) -> String {
    let options = set(task, settings);
    let task = task_named(task).unwrap();
    let begun = task.begin(&options.clone().set_by_nobody()).and_then(|_| task.begin(&options));
    match begun {
        Ok(_) => panic!("it should be refused"),
        Err(error) => error.to_string(),
    }
}

impl Course {
    /// A run that has not begun.
    pub(crate) fn new(task: &str, settings: &[&str]) -> Self {
        let options = options(task, settings);
        let task = task_named(task).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let learner = task.begin(&options).unwrap();
        let run = Run::create(&folder.path().join("run"), task, &options, learner.model()).unwrap();
        Self { task, options, run, _folder: folder }
    }

    /// A run that is done.
    pub(crate) fn done(task: &str, settings: &[&str]) -> Self {
        let course = Self::new(task, settings);
        assert_ne!(course.go_on(&mut Silent), Ended::Stopped);
        course
    }

    /// Goes on from the last checkpoint, with a learner of its own, as a new process would.
    pub(crate) fn go_on(&self, callback: &mut dyn Callback) -> Ended {
        let mut learner = self.task.begin(&self.options).unwrap();
        self.run.check_vocabulary(learner.model()).unwrap();
        let config = TrainingConfig::of(&self.options).unwrap();
        train(learner.as_mut(), &config, &self.run, callback).unwrap()
    }

    /// The lines of its measures, without the times.
    pub(crate) fn records(&self) -> Vec<Record> {
        let mut records = Record::read(&self.run, usize::MAX).unwrap();
        records.iter_mut().for_each(|record| record.seconds = 0.0);
        records
    }

    /// All numbers of its last checkpoint.
    pub(crate) fn last(&self) -> Vec<(String, Vec<u8>)> {
        let (tensors, _) = regard::tensor::load(self.run.path("last.safetensors")).unwrap();
        let bytes = |x: &regard::Tensor| -> Vec<u8> {
            let x = x.to_dtype(regard::DType::F64).unwrap();
            x.to_vec::<f64>().unwrap().iter().flat_map(|x| x.to_le_bytes()).collect()
        };
        tensors.iter().map(|(name, x)| (name.clone(), bytes(x))).collect()
    }

    /// Its model at its best.
    pub(crate) fn model(&self) -> Box<dyn regard_tasks::task::Model> {
        self.run.model(&self.options).unwrap()
    }

    /// Draws all scenes of an input in every way; gives their names.
    #[allow(dead_code, reason = "only the tasks draw")]
    pub(crate) fn drawn(&self, input: impl Into<Input>) -> Vec<String> {
        let input = input.into();
        let scenes = self.model().show(&input).unwrap();
        let input = &input.to_string();
        for (_, scene) in &scenes {
            assert!(picture::svg(scene, input, None).starts_with("<svg"));
            assert!(picture::svg(scene, input, Some(0)).starts_with("<svg"));
            assert!(picture::page(scene, input).contains("</html>"));
            assert!(!picture::terminal(scene, 0, 80, false).is_empty());
            assert!(!picture::numbers(scene).unwrap().is_empty());
        }
        scenes.into_iter().map(|(name, _)| name).collect()
    }
}

/// Stopped after so many batches and resumed, or straight through: the same bits.
pub(crate) fn resumes_exactly(task: &str, settings: &[&str], batches: usize) {
    let straight = Course::done(task, settings);
    let stopped = Course::new(task, settings);
    assert_eq!(stopped.go_on(&mut StopAfter(batches)), Ended::Stopped);
    assert_ne!(stopped.last(), straight.last());
    assert_ne!(stopped.go_on(&mut Silent), Ended::Stopped);
    assert_eq!(stopped.records(), straight.records());
    assert_eq!(stopped.last(), straight.last());
}
