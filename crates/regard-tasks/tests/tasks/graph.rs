//! `graph`, from data to pictures.

use crate::corpus;
use crate::course;

use corpus::corpus;
use course::{Course, refusal, resumes_exactly};
use regard_picture::scene::Scene;
use regard_tasks::options::Options;
use regard_tasks::task::Part;
use regard_tasks::tasks::task_named;
use std::path::{Path, PathBuf};

fn accuracy(course: &Course, part: Part) -> f64 {
    course.model().evaluate(part).unwrap().scores.get("accuracy").unwrap()
}

/// Two classes: 0 to 4 in a ring, 5 to 9 in a ring, an edge between; a feature says who a node is.
fn write_folder(folder: &Path) {
    let nodes: String = (0..10).map(|n| format!("{} {}:1\n", ["a", "b"][n / 5], n)).collect();
    let ring = |first: usize| (0..5).map(move |n| (first + n, first + (n + 1) % 5));
    let edges = ring(0).chain(ring(5)).chain([(0, 5)]);
    let edges: String = edges.map(|(a, b)| format!("{a}\t{b}\n")).collect();
    let parts = ["train", "train", "val", "test", "test"];
    let split: String = (0..10).map(|n| format!("{}\t{n}\n", parts[n % 5])).collect();
    for (name, text) in [("nodes.svm", nodes), ("edges.tsv", edges), ("split.tsv", split)] {
        std::fs::write(folder.join(name), text).unwrap();
    }
}

fn folder_setting(folder: &Path) -> String {
    format!("data.folder={:?}", folder.display().to_string())
}

#[test]
fn every_layer_learns_the_blocks_far_beyond_chance() {
    for layer in ["gat", "gatv2", "mean"] {
        let course = Course::done("graph", &["epochs=100", &format!("layer={layer}")]);
        let test = accuracy(&course, Part::Test);
        assert!(test > 0.6, "{layer}: {test} of the test part; chance is 0.25");
        let records = course.records();
        assert_eq!(records.len(), 20);
        assert!(records[19].loss < 0.9 * records[0].loss, "{layer}");
    }
}

#[test]
fn the_karate_club_is_learned_from_a_few_members_and_drawn() {
    let course = Course::done("graph", &["embedded=karate", "labeled=3", "epochs=100"]);
    let test = accuracy(&course, Part::Test);
    assert!(test >= 0.8, "{test} of the test part; chance is 0.5");
    assert_eq!(course.drawn("33"), ["neighborhood"]);
    let scenes = course.model().show(&"33".into()).unwrap();
    let Scene::Graph(scene) = &scenes[0].1 else { panic!("no graph") };
    assert_eq!((scene.nodes.len(), &scene.nodes[0][..], scene.center), (18, "33", Some(0)));
    assert_eq!(scene.maps.len(), 8 + 1);
    assert_eq!(scene.maps[8].name, "layer 2, head 1");
    for map in &scene.maps {
        let own = scene.edges.iter().zip(&map.weights).filter(|((from, _), _)| *from == 0);
        let sum: f32 = own.map(|(_, weight)| weight).sum();
        assert!((sum - 1.0).abs() < 1e-4, "what the center gives is {sum}");
    }
}

#[test]
fn the_mean_is_drawn_with_equal_weights() {
    let course = Course::done("graph", &["embedded=karate", "layer=mean", "epochs=5"]);
    let scenes = course.model().show(&"0".into()).unwrap();
    let Scene::Graph(scene) = &scenes[0].1 else { panic!("no graph") };
    let own = scene.edges.iter().zip(&scene.maps[0].weights).filter(|((from, _), _)| *from == 0);
    assert!(own.into_iter().all(|(_, &weight)| (weight - 1.0 / 17.0).abs() < 1e-6));
}

#[test]
fn a_hub_is_drawn_with_its_heaviest_neighbors_only() {
    let folder = tempfile::tempdir().unwrap();
    let nodes: String = (0..61).map(|n| format!("{} {}:1\n", n % 2, n % 3)).collect();
    let edges: String = (1..61).map(|n| format!("0\t{n}\n")).collect();
    std::fs::write(folder.path().join("nodes.svm"), nodes).unwrap();
    std::fs::write(folder.path().join("edges.tsv"), edges).unwrap();
    std::fs::write(folder.path().join("split.tsv"), "train\t0\ntrain\t1\nval\t2\n").unwrap();
    let course = Course::done("graph", &["epochs=2", &folder_setting(folder.path())]);
    let scenes = course.model().show(&"0".into()).unwrap();
    let Scene::Graph(scene) = &scenes[0].1 else { panic!("no graph") };
    assert_eq!(scene.nodes.len(), 41);
}

#[test]
fn stopped_and_resumed_or_straight_the_bits_are_the_same() {
    // In the middle of an epoch of four batches, and between validations.
    let settings = ["size=80", "epochs=7", "batch_size=10", "validate_every=3", "ema_decay=0.9"];
    resumes_exactly("graph", &settings, 14);
    resumes_exactly("graph", &settings, 16);
}

#[test]
fn the_last_epoch_is_validated_whatever_the_interval() {
    let course = Course::done("graph", &["size=80", "epochs=7", "validate_every=3"]);
    let epochs: Vec<usize> = course.records().iter().map(|record| record.epoch).collect();
    assert_eq!(epochs, [3, 6, 7]);
    assert!(course.run.path("curves.svg").exists());
}

#[test]
fn it_stops_early_when_the_loss_that_decides_gets_no_better() {
    let settings = ["size=80", "best_by=loss", "patience=3", "epochs=1000", "learning_rate=0.05"];
    let course = Course::done("graph", &settings);
    let records = course.records();
    assert!(records.len() < 200);
    assert_eq!(records[0].validation.first().0, "loss");
    let best = records.iter().rposition(|record| record.best).unwrap();
    assert_eq!(records.len() - best, 4);
}

#[test]
fn the_same_seed_gives_the_same_measures_and_another_seed_others() {
    let settings = ["size=80", "epochs=10"];
    let records = Course::done("graph", &settings).records();
    assert_eq!(records, Course::done("graph", &settings).records());
    let other = ["size=80", "epochs=10", "seed=2"];
    assert_ne!(records, Course::done("graph", &other).records());
}

#[test]
fn a_folder_is_learned_measured_and_predicted() {
    let folder = tempfile::tempdir().unwrap();
    write_folder(folder.path());
    let own = folder_setting(folder.path());
    let settings = [&own[..], "epochs=60", "dropout=0.0", "learning_rate=0.02"];
    let course = Course::done("graph", &settings);
    let report = course.model().evaluate(Part::Test).unwrap();
    assert_eq!((report.examples, report.outputs.len()), (4, 4));
    assert_eq!(report.scores.first(), ("accuracy", 1.0));
    let confusion = report.confusion.unwrap();
    assert_eq!(
        (confusion.labels, confusion.counts),
        (vec!["a".into(), "b".into()], vec![vec![2, 0], vec![0, 2]])
    );
    assert_eq!(report.samples[0], ("3".into(), "a".into(), "a".into()));
    let predictions = course.model().predict(&["3".into(), " 9 ".into()]).unwrap();
    assert_eq!([&predictions[0].output, &predictions[1].output], ["a", "b"]);
    let both = &predictions[0].details["probabilities"];
    let sum = both["a"].as_f64().unwrap() + both["b"].as_f64().unwrap();
    assert!((sum - 1.0).abs() < 1e-6);
    let error = course.model().predict(&["10".into()]).unwrap_err().to_string();
    assert_eq!(error, "`10` is no node; there are 10, counted from 0");
    assert!(course.model().show(&"x".into()).is_err());
    let learner = course.task.begin(&course.options).unwrap();
    assert_eq!(learner.samples(3), ["2", "7"]);

    let description = course.task.describe(&course.options).unwrap();
    assert_eq!(description.labels, [("a".into(), 5), ("b".into(), 5)]);
    assert!(description.facts.contains(&("edges, both ways".into(), "22".into())));
    assert_eq!(description.examples[0], "0 (a) beside 1, 4, 5");
}

#[test]
fn a_run_refuses_a_graph_of_other_classes() {
    let course = Course::done("graph", &["embedded=karate", "epochs=5"]);
    let options = course.options.clone().set("embedded=blocks").unwrap();
    let error = course.run.model(&options).err().unwrap().to_string();
    assert_eq!(
        error,
        "the graph has 4 features, 0 of an edge, and the classes block 1, block 2, block 3, block 4; the run's \
         had 34, 0 and Mr. Hi, Officer"
    );
}

#[test]
fn what_cannot_be_is_refused_in_a_sentence() {
    let folder = tempfile::tempdir().unwrap();
    write_folder(folder.path());
    let own = folder_setting(folder.path());
    let edges = folder.path().join("edges.tsv");
    std::fs::write(&edges, "0\t1\n3\t10\n").unwrap();
    let expected =
        format!("{}, line 2: there is no node 10; there are 10, counted from 0", edges.display());
    assert_eq!(refusal("graph", &[&own]), expected);
    std::fs::write(&edges, "0\t1\n").unwrap();
    std::fs::write(folder.path().join("split.tsv"), "train\t0\n").unwrap();
    let nobody = "the graph has no validation nodes; split.tsv names them";
    assert_eq!(refusal("graph", &[&own]), nobody);
    assert!(refusal("graph", &["layer=gat3"]).contains("gat3"));
    assert!(refusal("graph", &["embedded=club"]).contains("club"));
    assert_eq!(refusal("graph", &["validate_every=0"]), "`training.validate_every` cannot be 0");
    assert_eq!(
        refusal("graph", &["labeled=0"]),
        "`data.labeled` cannot be 0; something must be taught"
    );
    assert!(refusal("graph", &["labeled=100"]).contains("leaves 0 of 400 nodes"));
    assert!(refusal("graph", &["dropout=1.5"]).contains("1.5"));
    assert!(refusal("graph", &["encoding=klingon", &own]).contains("klingon"));
}

#[test]
fn labels_in_another_encoding_are_read() {
    let folder = tempfile::tempdir().unwrap();
    write_folder(folder.path());
    let nodes = std::fs::read_to_string(folder.path().join("nodes.svm")).unwrap();
    let bytes: Vec<u8> = nodes.bytes().map(|b| if b == b'a' { 0xe4 } else { b }).collect();
    std::fs::write(folder.path().join("nodes.svm"), bytes).unwrap();
    let own = folder_setting(folder.path());
    assert!(refusal("graph", &[&own]).contains("these bytes are not UTF-8"));
    let options = course::options("graph", &[&own, "encoding=latin1"]);
    let description = task_named("graph").unwrap().describe(&options).unwrap();
    assert!(description.labels.contains(&("ä".into(), 5)));
}

#[test]
fn the_comparison_is_of_both_versions_and_the_mean() {
    let names: Vec<String> =
        task_named("graph").unwrap().comparison().into_iter().map(|v| v.name).collect();
    assert_eq!(names, ["GAT", "GATv2", "mean"]);
}

fn configured() -> Options {
    let root = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let options = task_named("graph").unwrap().options().unwrap();
    options.file(&root.join("configs/cora-gat.toml")).unwrap()
}

#[test]
fn the_configuration_for_cora_has_known_options() {
    assert_eq!(configured().get("model.heads").unwrap().as_integer(), Some(8));
}

#[test]
#[ignore = "needs ../shared/data"]
fn the_configuration_for_cora_trains_on_it() {
    let options = configured().set(&folder_setting(&corpus("cora"))).unwrap();
    let options = options.set("epochs=4").unwrap();
    let mut learner = task_named("graph").unwrap().begin(&options).unwrap();
    let random = regard::tensor::Random::new(1);
    let batches = learner.batches(10_000, &random).unwrap();
    assert_eq!((batches.len(), batches[0].len()), (1, 140));
    let loss = learner.loss(&batches[0], &random).unwrap().item().unwrap();
    assert!((loss - 7f64.ln()).abs() < 0.1, "{loss}");
}

fn told(more: &[&str]) -> regard_tasks::task::Report {
    let settings = ["size=600", "labeled=80", "epochs=150", "learning_rate=0.02", "dropout=0.0"];
    Course::done("graph", &[&settings[..], more].concat()).model().evaluate(Part::Test).unwrap()
}

#[test]
fn attention_learns_whom_to_trust_where_most_neighbors_mislead() {
    let accuracy = |layer: &str| {
        let report = told(&["embedded=misleading", "layers=1", layer]);
        assert_eq!(report.groups.unwrap().by, "neighbors that mislead");
        report.scores.first().1
    };
    let (gat, mean) = (accuracy("layer=gat"), accuracy("layer=mean"));
    assert!(gat > mean + 0.1, "GAT: {gat}, mean: {mean}");
}

#[test]
fn only_the_second_version_asks_another_neighbor_for_another_node() {
    let accuracy = |layer: &str| {
        let shape = ["embedded=matching", "heads=1", "hidden=32"];
        told(&[&shape[..], &[layer]].concat()).scores.first().1
    };
    let (second, first) = (accuracy("layer=gatv2"), accuracy("layer=gat"));
    assert!(second > first + 0.1, "GATv2: {second}, GAT: {first}");
}
