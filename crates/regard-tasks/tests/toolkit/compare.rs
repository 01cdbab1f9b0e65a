//! Variants side by side.

use regard::Tensor;
use regard::tensor::Random;
use regard_tasks::Result;
use regard_tasks::compare::{Comparison, ComparisonFolder, Meter, compare};
use regard_tasks::metric::{Scores, permutation_test};
use regard_tasks::options::Options;
use regard_tasks::task::{Description, JsonFile, Learner, Model, Part, Placement, Task, Variant};
use regard_tasks::tasks::task_named;
use regard_tasks::train::Silent;
use std::cell::RefCell;
use std::path::Path;
use std::sync::{Arc, Mutex};
use tempfile::TempDir;

/// `regress`, writing down which variant it begins.
struct Recorded {
    events: Arc<Mutex<Vec<String>>>,
}

/// A learner that writes down when it ends.
struct Counted {
    learner: Box<dyn Learner>,
    events: Arc<Mutex<Vec<String>>>,
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.events.lock().unwrap().push("end".into());
    }
}

impl Learner for Counted {
    fn model(&self) -> &dyn Model {
        self.learner.model()
    }

    fn batches(&self, batch: usize, random: &Random) -> Result<Vec<Vec<usize>>> {
        self.learner.batches(batch, random)
    }

    fn loss(&mut self, batch: &[usize], random: &Random) -> Result<Tensor> {
        self.learner.loss(batch, random)
    }

    fn validate(&self) -> Result<Scores> {
        self.learner.validate()
    }

    fn samples(&self, n: usize) -> Vec<String> {
        self.learner.samples(n)
    }
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
        let (learner, events) = (Self::task().begin(options)?, self.events.clone());
        Ok(Box::new(Counted { learner, events }))
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
    let task = Recorded { events: Arc::default() };
    let options = task.options().unwrap().set("epochs=2").unwrap();
    let trained = RefCell::new(Vec::new());
    let callback = |name: &str| -> Box<dyn regard_tasks::train::Callback> {
        task.note(format!("train {name}"));
        trained.borrow_mut().push(name.to_string());
        Box::new(Silent)
    };
    let comparison = Comparison {
        variants: variants.to_vec(),
        seeds: 2,
        part: Part::Validation,
        device: Placement::default(),
    };
    let place = ComparisonFolder { path: folder.into(), overwrite: false };
    let compared = compare(&task, &options, &comparison, &place, METER, callback);
    if let Ok(outcome) = &compared {
        assert_eq!(trained.borrow().len(), 2 * outcome.finished.len());
    }
    let events = task.events.lock().unwrap().clone();
    (events, compared.is_ok())
}

#[test]
fn every_variant_begins_before_the_first_is_trained_and_one_is_in_memory_at_a_time() {
    let folder = TempDir::new().unwrap();
    let variants = [Variant::new("few", &["size=60"]), Variant::new("many", &["size=90"])];
    let (events, fine) = events(&folder.path().join("out"), &variants);
    assert!(fine);
    let expected = [
        "begin 90 1",
        "end",
        "begin 60 1",
        "train few, seed 1",
        "end",
        "begin 60 2",
        "train few, seed 2",
        "end",
        "begin 90 1",
        "train many, seed 1",
        "end",
        "begin 90 2",
        "train many, seed 2",
        "end",
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
    assert_eq!(events, ["begin 90000000 1"]);
}

#[test]
fn the_same_example_with_another_seed_is_no_other_example() {
    let folder = TempDir::new().unwrap();
    let out = folder.path().join("out");
    let task = task_named("classify").unwrap();
    let small = ["size=60", "epochs=2", "embedding=8"];
    let options = small.iter().fold(task.options().unwrap(), |options, s| options.set(s).unwrap());
    let variants =
        [Variant::new("mean", &["pooling=mean"]), Variant::new("last", &["pooling=last"])];
    let comparison = Comparison {
        variants: variants.to_vec(),
        seeds: 3,
        part: Part::Validation,
        device: Placement::default(),
    };
    let place = ComparisonFolder { path: out.clone(), overwrite: false };
    let silent = |_: &str| -> Box<dyn regard_tasks::train::Callback> { Box::new(Silent) };
    let outcome = compare(task, &options, &comparison, &place, METER, silent).unwrap();
    // What each run told of each example, by hand.
    let told = |name: &str, seed: usize| -> Vec<f64> {
        let path = out.join(format!("{name}-seed{seed}/measured.json"));
        let all: serde_json::Value = JsonFile::read(&path).unwrap().parse().unwrap();
        let values = all["each"]["values"].as_array().unwrap();
        values.iter().map(|value| value.as_f64().unwrap()).collect()
    };
    let mean = |name: &str| -> Vec<f64> {
        let seeds: Vec<Vec<f64>> = (1..=3).map(|seed| told(name, seed)).collect();
        (0..seeds[0].len()).map(|at| seeds.iter().map(|s| s[at]).sum::<f64>() / 3.0).collect()
    };
    let (first, second) = (mean("mean"), mean("last"));
    for (compared, mean) in outcome.finished.iter().zip([&first, &second]) {
        assert_eq!(&compared.each.as_ref().unwrap().values, mean);
    }
    assert_eq!(outcome.finished[1].p, Some(permutation_test(&second, &first).unwrap()));
}

#[test]
fn a_comparison_that_held_out_other_examples_for_every_seed_is_not_gone_on_with() {
    let folder = TempDir::new().unwrap();
    let csv = folder.path().join("r.csv");
    let rows: String = (0..40).map(|i| format!("{i},{}\n", i * i)).collect();
    std::fs::write(&csv, rows).unwrap();
    let task = task_named("regress").unwrap();
    let own = format!("data.train=\"{}\"", csv.display());
    // Embedded data are the same for every seed, and so is what one seed holds out.
    for (set, seeds, refused) in [(Some(&own), 2, true), (Some(&own), 1, false), (None, 2, false)] {
        let out = folder.path().join(format!("{}-{seeds}", set.is_some()));
        let options = task.options().unwrap().set("epochs=1").unwrap();
        let options = set.iter().fold(options, |options, s| options.set(s).unwrap());
        let variants = vec![Variant::new("few", &["nearest=3"])];
        let comparison =
            Comparison { variants, seeds, part: Part::Validation, device: Placement::default() };
        let place = ComparisonFolder { path: out.clone(), overwrite: false };
        let silent = |_: &str| -> Box<dyn regard_tasks::train::Callback> { Box::new(Silent) };
        compare(task, &options, &comparison, &place, METER, silent).unwrap();
        assert!(Comparison::open(&out).is_ok());
        let config = out.join("config.toml");
        let text = std::fs::read_to_string(&config).unwrap();
        let old: Vec<&str> =
            text.lines().filter(|line| !line.starts_with("held_out_seed")).collect();
        std::fs::write(&config, old.join("\n")).unwrap();
        let said = Comparison::open(&out).err().map(|error| error.to_string());
        assert_eq!(said.is_some(), refused, "{said:?}");
        assert!(said.is_none_or(|said| said.contains("held out other examples for every seed")));
    }
}

#[test]
fn scores_of_one_width_and_of_two_are_compared_like_with_like() {
    const SMALL: [&str; 6] =
        ["size=60", "epochs=1", "hidden=8", "embedding=8", "score_hidden=8", "batch_size=16"];
    let compared = |variants: Vec<Variant>| {
        let folder = TempDir::new().unwrap();
        let task = task_named("translate").unwrap();
        let options = SMALL.iter().fold(task.options().unwrap(), |all, one| all.set(one).unwrap());
        let comparison =
            Comparison { variants, seeds: 1, part: Part::Validation, device: Placement::default() };
        let place = ComparisonFolder { path: folder.path().join("all"), overwrite: false };
        let (done, remarks) = regard_data::remarked(|| {
            compare(task, &options, &comparison, &place, METER, |_| Box::new(Silent))
        });
        let done = done.map(|outcome| outcome.finished.len()).map_err(|error| error.to_string());
        let mut directions = Vec::new();
        for run in regard_tasks::run::runs_under(&folder.path().join("all")).unwrap_or_default() {
            let options = regard_tasks::run::Run::open(&run.folder).unwrap().options().unwrap();
            directions.push(options.get("model.bidirectional").unwrap().as_bool().unwrap());
        }
        (done, directions, remarks)
    };
    let over = |text: &str| regard_tasks::compare::variants(&[text.to_string()]).unwrap();
    let (done, directions, remarks) = compared(over("score=additive,dot,scaled-dot,bilinear"));
    assert_eq!((done, &directions[..]), (Ok(4), &[false; 4][..]));
    assert!(
        remarks
            .iter()
            .any(|text| text.starts_with("4 variants: ") && text.contains("one direction"))
    );
    // Where all can read in both directions, nothing is changed.
    let (done, directions, remarks) = compared(over("score=additive,bilinear"));
    assert_eq!((done, &directions[..]), (Ok(2), &[true; 2][..]));
    assert!(!remarks.iter().any(|text| text.contains("one direction")), "{remarks:?}");
    // Who varies it himself is not overruled.
    let both = ["score=additive,dot".to_string(), "bidirectional=true".to_string()];
    let (done, ..) = compared(regard_tasks::compare::variants(&both).unwrap());
    assert!(done.unwrap_err().contains("compares vectors of one width"));
    // The comparison the task is known for is one of like with like too.
    let known = task_named("translate").unwrap().comparison();
    let (done, directions, _) = compared(known[..3].to_vec());
    assert_eq!((done, &directions[..]), (Ok(3), &[false; 3][..]));
}
