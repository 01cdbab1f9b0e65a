//! Variants side by side.

use regard_tasks::{
    Comparison, ComparisonFolder, Description, JsonFile, Learner, Meter, Model, Options, Part,
    Result, Silent, Task, Variant, compare, task_named,
};
use std::cell::RefCell;
use std::path::Path;
use std::sync::Mutex;
use tempfile::TempDir;

/// `regress`, writing down which variant it begins.
struct Recorded {
    events: Mutex<Vec<String>>,
}

impl Recorded {
    fn task() -> &'static dyn Task {
        task_named("regress").unwrap()
    }

    fn note(&self, event: String) {
        self.events.lock().unwrap().push(event);
    }
}

impl Task for Recorded {
    fn name(&self) -> &'static str {
        Self::task().name()
    }

    fn about(&self) -> &'static str {
        Self::task().about()
    }

    fn template(&self) -> String {
        Self::task().template()
    }

    fn defaults(&self) -> &'static [&'static str] {
        Self::task().defaults()
    }

    fn begin(&self, options: &Options) -> Result<Box<dyn Learner>> {
        let number = |name: &str| options.get(name).unwrap().as_integer().unwrap();
        self.note(format!("begin {} {}", number("data.size"), number("training.seed")));
        Self::task().begin(options)
    }

    fn open(&self, options: &Options, vocabulary: &JsonFile) -> Result<Box<dyn Model>> {
        Self::task().open(options, vocabulary)
    }

    fn describe(&self, options: &Options) -> Result<Description> {
        Self::task().describe(options)
    }

    fn comparison(&self) -> Vec<Variant> {
        Self::task().comparison()
    }
}

const METER: Meter = Meter { reset: || (), peak: || 0 };

/// What happened while these variants were compared with two seeds, and whether they could be.
fn events(folder: &Path, variants: &[Variant]) -> (Vec<String>, bool) {
    let task = Recorded { events: Mutex::default() };
    let options = task.options().unwrap().set("epochs=2").unwrap();
    let trained = RefCell::new(Vec::new());
    let callback = |name: &str| -> Box<dyn regard_tasks::Callback> {
        task.note(format!("train {name}"));
        trained.borrow_mut().push(name.to_string());
        Box::new(Silent)
    };
    let comparison = Comparison { variants: variants.to_vec(), seeds: 2, part: Part::Validation };
    let place = ComparisonFolder { path: folder.into(), overwrite: false };
    let compared = compare(&task, &options, &comparison, &place, METER, callback);
    if let Ok(outcome) = &compared {
        assert_eq!(trained.borrow().len(), 2 * outcome.finished.len());
    }
    (task.events.into_inner().unwrap(), compared.is_ok())
}

#[test]
fn every_variant_begins_once_for_each_seed_and_before_the_first_is_trained() {
    let folder = TempDir::new().unwrap();
    let variants = [Variant::new("few", &["size=60"]), Variant::new("many", &["size=90"])];
    let (events, fine) = events(&folder.path().join("out"), &variants);
    assert!(fine);
    let expected = [
        "begin 60 1",
        "begin 90 1",
        "train few, seed 1",
        "begin 60 2",
        "train few, seed 2",
        "train many, seed 1",
        "begin 90 2",
        "train many, seed 2",
    ];
    assert_eq!(events, expected);
}

#[test]
fn a_variant_that_cannot_begin_costs_no_training() {
    let folder = TempDir::new().unwrap();
    let out = folder.path().join("out");
    let variants = [Variant::new("few", &["size=60"]), Variant::new("none", &["size=90000000"])];
    let (events, fine) = events(&out, &variants);
    assert!(!fine && !out.exists());
    assert_eq!(events, ["begin 60 1", "begin 90000000 1"]);
}
