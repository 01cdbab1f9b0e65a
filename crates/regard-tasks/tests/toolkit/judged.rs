//! Every example of a part with its loss, and what training keeps to be looked at.

use crate::course;

use course::{Course, StopAfter};
use regard_tasks::metric::Judged;
use regard_tasks::run::Snapshot;
use regard_tasks::task::{Input, Part};
use regard_tasks::train::{Ended, Silent};

fn mean(judged: &[Judged]) -> f64 {
    judged.iter().map(|one| one.loss).sum::<f64>() / judged.len() as f64
}

/// Tasks, their settings, and the measure that is the mean of the losses.
const TASKS: [(&str, &[&str], Option<&str>); 8] = [
    ("regress", &["epochs=1"], Some("MSE")),
    ("graph", &["epochs=2"], Some("loss")),
    ("graph", &["embedded=touching", "size=60", "epochs=2"], Some("loss")),
    ("classify", &["size=60", "epochs=1", "hidden=8", "embedding=8"], Some("loss")),
    ("image", &["size=60", "epochs=1"], Some("loss")),
    ("label", &["size=60", "epochs=1", "hidden=8", "embedding=8"], None),
    ("translate", &["size=60", "epochs=1", "hidden=8", "embedding=8", "score_hidden=8"], None),
    ("answer", &["size=60", "epochs=1", "hidden=8", "embedding=8"], None),
];

#[test]
fn the_losses_of_the_examples_have_the_mean_that_is_reported() {
    for (task, settings, measure) in TASKS {
        let course = Course::done(task, settings);
        let model = course.model();
        let judged = model.judge(Part::Validation).unwrap();
        let report = model.evaluate(Part::Validation).unwrap();
        assert!(judged.iter().enumerate().all(|(at, one)| one.index == at), "{task}");
        assert!(judged.iter().all(|one| one.loss >= 0.0 || one.loss.is_nan()), "{task}");
        if let Some(measure) = measure {
            let (ours, told) = (mean(&judged), report.scores.get(measure).unwrap());
            assert!((ours - told).abs() < 1e-4 * told.abs().max(1.0), "{task}: {ours} {told}");
            assert_eq!(judged.len(), report.examples, "{task}");
        }
        if let Some(confusion) = report.confusion {
            let right: usize = (0..confusion.labels.len()).map(|at| confusion.counts[at][at]).sum();
            let labels = judged.iter().flat_map(|one| &one.labels);
            let ours = labels.filter(|(truth, predicted)| truth == predicted).count();
            assert_eq!(ours, right, "{task}");
        }
        // Each is asked by its number, and is what is listed.
        let worst = judged.iter().max_by(|a, b| a.loss.total_cmp(&b.loss)).unwrap();
        let input = Input::example(Part::Validation, worst.index);
        assert_eq!(model.truth(&input).as_ref(), Some(&worst.truth), "{task}");
        assert_eq!(model.predict(&[input]).unwrap().len(), 1, "{task}");
    }
}

#[test]
fn a_loss_of_a_text_is_its_mean_over_the_tokens() {
    let settings = ["size=60", "epochs=1", "hidden=8", "embedding=8", "score_hidden=8"];
    let model = Course::done("translate", &settings).model();
    let judged = model.judge(Part::Test).unwrap();
    // Embedded phrases are split at blanks and signs; every target has its own tokens and an end.
    let perplexity = model.evaluate(Part::Test).unwrap().scores.get("perplexity").unwrap();
    let (low, high) = judged
        .iter()
        .fold((f64::MAX, f64::MIN), |(low, high), one| (low.min(one.loss), high.max(one.loss)));
    assert!(low < perplexity.ln() && perplexity.ln() < high, "{low} {high} {}", perplexity.ln());
}

fn files(course: &Course) -> Vec<(String, Vec<u8>)> {
    let folder = course.run.path("scenes");
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    let file = |entry: std::fs::DirEntry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        (name, std::fs::read(entry.path()).unwrap())
    };
    let mut all: Vec<_> = entries.map(file).collect();
    all.sort();
    all
}

#[test]
fn scenes_are_kept_after_each_epoch_small_and_the_same_for_a_training_that_was_stopped() {
    let settings =
        ["size=60", "epochs=3", "hidden=8", "embedding=8", "score_hidden=8", "batch_size=10"];
    let straight = Course::done("translate", &settings);
    assert_eq!(Snapshot::epochs(&straight.run), [1, 2, 3]);
    let snapshot = Snapshot::read(&straight.run, 3).unwrap();
    assert_eq!((snapshot.epoch, snapshot.samples.len()), (3, 3));
    assert_eq!(snapshot.samples[0].scenes[0]["name"], "alignment");
    assert!(files(&straight).iter().all(|(_, bytes)| bytes.len() < 200_000));
    let stopped = Course::new("translate", &settings);
    assert_eq!(stopped.go_on(&mut StopAfter(8)), Ended::Stopped);
    assert_ne!(stopped.go_on(&mut Silent), Ended::Stopped);
    assert_eq!(files(&stopped), files(&straight));
    assert_eq!(stopped.last(), straight.last());
}
