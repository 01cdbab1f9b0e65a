//! Labels that count more than others while a model learns.

use crate::course;

use course::{Course, options, refusal, resumes_exactly};
use regard_tasks::options::{ClassWeights, TrainingConfig};
use regard_tasks::task::Part;
use regard_tasks::tasks::task_named;
use std::path::Path;

/// Texts of which one in ten is spam, which a word tells in most cases but not in all.
fn texts(folder: &Path) -> String {
    let line = |at: usize| {
        let spam = at.is_multiple_of(10);
        // Every third mail that is none has the word too.
        let word = if spam || at.is_multiple_of(3) { "offer" } else { "report" };
        format!("{}\tthe {word} of today {}\n", if spam { "spam" } else { "mail" }, at % 7)
    };
    let path = folder.join("texts.tsv");
    std::fs::write(&path, (0..600).map(line).collect::<String>()).unwrap();
    format!("train={}", path.display())
}

/// The share of spam that is found, and of mail that is taken for mail.
fn recalls(train: &str, weights: &str) -> (f64, f64) {
    let settings =
        [train, weights, "epochs=8", "learning_rate=0.02", "embedding=8", "score_hidden=8"];
    let report = Course::done("classify", &settings).model().evaluate(Part::Test).unwrap();
    let table = report.confusion.unwrap().table();
    let recall = |label: &str| table.iter().find(|row| row.label == label).unwrap().recall;
    (recall("spam"), recall("mail"))
}

#[test]
fn a_rare_label_is_found_where_labels_are_balanced_or_it_has_a_weight() {
    let folder = tempfile::tempdir().unwrap();
    let train = texts(folder.path());
    // One in four with the word is spam: without weights it is best to say mail, always.
    let (spam, mail) = recalls(&train, "class_weights=none");
    assert!(spam == 0.0 && mail == 1.0, "{spam} {mail}");
    for weights in ["class_weights=balanced", "class_weights={spam = 9.0}"] {
        let (spam, mail) = recalls(&train, weights);
        assert!(spam == 1.0 && mail > 0.5, "{weights}: {spam} {mail}");
    }
}

#[test]
fn every_task_that_tells_labels_apart_has_weights_and_the_others_do_not() {
    for task in regard_tasks::tasks::tasks() {
        let has = ["label", "classify", "image", "graph"].contains(&task.name());
        assert_eq!(task.options().unwrap().knows("class_weights"), has, "{}", task.name());
    }
    let graph = ["epochs=40", "embedded=blocks"];
    let label = ["size=60", "epochs=2", "hidden=8", "heads=2", "layers=1", "feed_forward=8"];
    let image = ["size=60", "epochs=2", "hidden=8", "heads=2", "layers=1", "feed_forward=8"];
    let sound = [&label[..], &["kind=sound"]].concat();
    for (task, small) in
        [("graph", &graph[..]), ("label", &label), ("label", &sound), ("image", &image)]
    {
        let with = |weights: &str| Course::done(task, &[small, &[weights]].concat()).last();
        let described = task_named(task).unwrap().describe(&options(task, small)).unwrap();
        let weights = format!("class_weights={{ \"{}\" = 3.0 }}", described.labels[0].0);
        assert_ne!(with(&weights), with("class_weights=none"), "{task}");
        // The embedded graph teaches as many nodes of every class: balanced is what they are.
        let balanced = with("class_weights=balanced") == with("class_weights=none");
        assert_eq!(balanced, task == "graph", "{task}");
    }
}

#[test]
fn equal_weights_are_the_loss_without_any() {
    let small = ["size=60", "epochs=1", "embedding=8", "score_hidden=8"];
    let loss =
        |more: &[&str]| Course::done("classify", &[&small[..], more].concat()).records()[0].loss;
    let names = task_named("classify").unwrap().describe(&options("classify", &small)).unwrap();
    let twos: Vec<String> =
        names.labels.iter().map(|(label, _)| format!("{label} = 2.0")).collect();
    let twos = format!("class_weights={{ {} }}", twos.join(", "));
    let (plain, weighted) = (loss(&[]), loss(&[&twos]));
    assert!((plain - weighted).abs() < 1e-5, "{plain} {weighted}");
}

#[test]
fn weights_are_kept_with_the_run_and_it_resumes_with_the_same_bits() {
    let small = ["size=100", "epochs=2", "embedding=8", "score_hidden=8"];
    resumes_exactly("classify", &[&small[..], &["class_weights=balanced"]].concat(), 3);
    let options = options("classify", &["class_weights={ sea = 2.5, \"a b\" = 0 }"]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config.toml");
    std::fs::write(&path, options.to_string()).unwrap();
    let again = task_named("classify").unwrap().options().unwrap().file(&path).unwrap();
    assert_eq!(again, options);
    let ClassWeights::ByLabel(weights) = TrainingConfig::of(&again).unwrap().class_weights else {
        panic!("no weights by label");
    };
    assert_eq!((weights["sea"], weights["a b"]), (2.5, 0.0));
}

#[test]
fn weights_that_cannot_be_meant_are_refused_by_name() {
    assert_eq!(
        refusal("classify", &["class_weights={ nothing = 2.0 }"]),
        "`training.class_weights`: `nothing` is not among the 4 labels of the training part"
    );
    assert_eq!(
        refusal("classify", &["class_weights={ sea = -1.0 }"]),
        "`training.class_weights`: the weight of `sea` cannot be -1"
    );
    let told = refusal("classify", &["class_weights=many"]);
    assert!(told.starts_with("`training.class_weights`: invalid value: string \"many\""), "{told}");
    assert!(told.contains("\"balanced\" or weights by label"), "{told}");
}
