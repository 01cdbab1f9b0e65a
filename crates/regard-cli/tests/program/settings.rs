//! Options as words of the command line, and what is said of them.

use crate::tasks::{path, refused, said};
use std::fs;
use std::path::Path;
use tempfile::TempDir;

/// A model small enough for seconds, without `--set`.
pub(crate) const WORDS: [&str; 7] = [
    "embedded=dates",
    "tokenizer=characters",
    "size=300",
    "hidden=24",
    "embedding=16",
    "score_hidden=16",
    "epochs=2",
];

#[test]
fn options_are_set_without_a_flag_wherever_they_can_be_set() {
    let folder = TempDir::new().unwrap();
    let run = path(&folder, "run");
    said(&[&["train", "translate"], &WORDS[..], &["--out", &run]].concat());
    let config = fs::read_to_string(Path::new(&run).join("config.toml")).unwrap();
    assert!(config.contains("\nhidden = 24\n") && config.contains("\nepochs = 2\n"), "{config}");
    // A run to go on with knows its task.
    said(&["train", "--resume", &run, "epochs=3"]);
    let records = fs::read_to_string(Path::new(&run).join("metrics.jsonl")).unwrap();
    assert_eq!(records.lines().count(), 3);
    assert!(said(&["data", "translate", "embedded=dates", "size=70"]).contains("70"));
    let told = said(&["init", "translate", "hidden=24", "--out", "-"]);
    assert!(told.contains("\nhidden = 24\n"), "{told}");
    let told = said(&["eval", &run, "beam=1", "--json"]);
    assert!(told.contains("BLEU"), "{told}");
    let greedy = said(&["predict", &run, "beam=1", "May 3, 1999", "--json"]);
    assert_eq!(greedy, said(&["predict", &run, "--set", "beam=1", "May 3, 1999", "--json"]));
    assert_eq!(greedy.lines().count(), 1);
    said(&["show", &run, "May 3, 1999", "beam=2"]);
    let out = path(&folder, "compared");
    let sets = [&WORDS[..5], &["epochs=1", "bidirectional=false"]].concat();
    said(&[&["compare", "translate", "--over", "score=dot", "--out", &out][..], &sets].concat());
}

#[test]
fn a_word_that_sets_nothing_is_told_in_a_sentence() {
    let folder = TempDir::new().unwrap();
    let run = path(&folder, "run");
    for arguments in [
        &["train", "translate", "epochs", "5", "--out", &run][..],
        &["data", "translate", "epochs"],
        &["init", "translate", "epochs"],
        &["compare", "translate", "epochs"],
    ] {
        assert_eq!(
            refused(arguments),
            "regard: `epochs` is not of the form KEY=VALUE; `regard options translate` lists what \
             can be set"
        );
    }
    assert_eq!(refused(&["train", "epochs=5"]), "regard: no task is named before `epochs=5`");
    assert_eq!(
        refused(&["train", "translate", "epoch=5", "--out", &run]),
        "regard: there is no option `epoch`; the nearest is `training.epochs`"
    );
    assert_eq!(
        refused(&["train", "translate", "xyzzy=5", "--out", &run]),
        "regard: there is no option `xyzzy`"
    );
    assert!(!Path::new(&run).exists());
}

#[test]
fn an_input_that_looks_like_a_setting_stands_behind_two_dashes() {
    let folder = TempDir::new().unwrap();
    let run = path(&folder, "run");
    said(&[&["train", "translate"], &WORDS[..], &["--out", &run]].concat());
    let inputs = |arguments: &[&str]| -> Vec<String> {
        let told = said(&[&["predict", &run, "--json"], arguments].concat());
        let input = |line: &str| {
            let json: serde_json::Value = serde_json::from_str(line).unwrap();
            json["input"].as_str().unwrap().to_string()
        };
        told.lines().map(input).collect()
    };
    assert_eq!(inputs(&["beam=2", "May 3, 1999"]), ["May 3, 1999"]);
    assert_eq!(inputs(&["a=b"]), ["a=b"]);
    assert_eq!(inputs(&["May", "--", "beam=2"]), ["May", "beam=2"]);
    let told = refused(&["show", &run, "May", "June"]);
    assert_eq!(told, "regard: one input is shown at a time, and `June` is another");
    let file = path(&folder, "inputs.txt");
    fs::write(&file, "May 3, 1999\n").unwrap();
    assert_eq!(inputs(&["--file", &file, "beam=2"]), ["May 3, 1999"]);
    let told = refused(&["predict", &run, "--file", &file, "May"]);
    assert!(told.ends_with("has the inputs, and `May` is one too"), "{told}");
}

#[test]
fn every_option_of_every_task_is_listed_with_its_value_and_its_comment() {
    for task in regard_tasks::tasks::tasks() {
        let options = task.options().unwrap();
        let told = said(&["options", task.name()]);
        let help = said(&["train", task.name(), "--help"]);
        assert!(help.contains("Usage: regard train"), "{help}");
        let json: serde_json::Value =
            serde_json::from_str(&said(&["options", task.name(), "--json"])).unwrap();
        let groups = json.as_array().unwrap();
        let listed: usize =
            groups.iter().map(|group| group["options"].as_array().unwrap().len()).sum();
        assert_eq!(listed, options.names().len(), "{}", task.name());
        assert!(groups.iter().all(|group| !group["comment"].as_str().unwrap().is_empty()));
        for name in options.names() {
            let line = match options.get(name) {
                Some(value) => format!("{name} = {value}\n"),
                None => format!("{name} (not set; as "),
            };
            assert!(told.contains(&line), "{}: {line}", task.name());
            assert!(help.contains(line.trim_end()), "{}: {line}", task.name());
        }
    }
    // Task defaults, not the template's.
    assert!(said(&["options", "graph"]).contains("training.epochs = 300\n"));
}

#[test]
fn options_are_filtered_by_a_word_and_hints_are_near_or_none() {
    let told = said(&["options", "translate", "beam"]);
    assert!(told.starts_with("search.beam = 4\n    Hypotheses kept at every step"), "{told}");
    assert!(!told.contains("training.epochs"), "{told}");
    // Also in comments, in letters of any size.
    assert!(said(&["options", "label", "CoNLL"]).contains("data.column = \"upos\""));
    assert_eq!(
        refused(&["options", "translate", "hiden"]),
        "regard: `hiden` is in no option's name or comment; the nearest is `model.hidden`"
    );
    assert_eq!(
        refused(&["options", "translate", "xyzzy"]),
        "regard: `xyzzy` is in no option's name or comment"
    );
    assert!(refused(&["options", "translat"]).starts_with("regard: there is no task `translat`"));
}
