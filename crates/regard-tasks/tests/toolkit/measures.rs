//! What evaluation says beside the usual measures: spans, and how BLEU was counted.

use regard_tasks::options::TrainingConfig;
use regard_tasks::run::{Record, Run};
use regard_tasks::task::{Part, Report};
use regard_tasks::tasks::task_named;
use regard_tasks::train::{Silent, train};

/// Trains; gives what a part's evaluation says, and the lines of the epochs.
fn measured(task: &str, settings: &[&str], part: Part) -> (Report, Vec<Record>) {
    let task = task_named(task).unwrap();
    let options = settings.iter().fold(task.options().unwrap(), |o, s| o.set(s).unwrap());
    let mut learner = task.begin(&options).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let run = Run::create(&folder.path().join("run"), task, &options, learner.model()).unwrap();
    train(learner.as_mut(), &TrainingConfig::of(&options).unwrap(), &run, &mut Silent).unwrap();
    let report = run.model(&options).unwrap().evaluate(part).unwrap();
    (report, Record::read(&run, usize::MAX).unwrap())
}

#[test]
fn labels_that_mark_spans_are_judged_by_spans() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("names.txt");
    let one = "Ada B-PER\nLovelace I-PER\nsaw O\nParis B-LOC\n\nnobody O\nslept O\n\n";
    std::fs::write(&file, one.repeat(40)).unwrap();
    let train = format!("train=\"{}\"", file.display());
    let small = [
        "epochs=40",
        "hidden=16",
        "embedding=16",
        "heads=2",
        "feed_forward=16",
        "learning_rate=0.01",
        "dropout=0",
    ];
    let settings: Vec<&str> = small.iter().copied().chain([train.as_str()]).collect();
    let (report, records) = measured("label", &settings, Part::Validation);
    let names: Vec<&str> = report.scores.values.iter().map(|(name, _)| &name[..]).collect();
    assert_eq!(names[..4], ["span F1", "span precision", "span recall", "accuracy"]);
    // Eight words are learned by heart.
    assert_eq!(report.scores.first(), ("span F1", 1.0));
    assert!(records.iter().all(|record| record.validation.first().0 == "span F1"));
    let small = ["size=60", "epochs=1", "hidden=8", "embedding=8"];
    let (report, _) = measured("label", &small, Part::Validation);
    assert_eq!(report.scores.first().0, "accuracy");
}

#[test]
fn bleu_is_counted_by_characters_where_references_are_chinese_and_says_so() {
    let small = ["size=60", "epochs=1", "hidden=8", "embedding=8", "score_hidden=8"];
    let signature = |more: &[&str]| {
        let settings: Vec<&str> = small.iter().chain(more).copied().collect();
        let (report, _) = measured("translate", &settings, Part::Test);
        report.signature.unwrap()
    };
    assert!(signature(&[]).contains("|tok:zh|"));
    assert!(signature(&["embedded=dates"]).contains("|tok:13a|"));
    assert!(signature(&["bleu=char"]).contains("|tok:char|"));
}
