//! The verbs on tasks: train, eval, predict, show, compare, init, data.

use crate::file::regard;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// A model small enough for seconds.
pub(crate) const SMALL: [&str; 14] = [
    "--set",
    "embedded=dates",
    "--set",
    "tokenizer=characters",
    "--set",
    "size=300",
    "--set",
    "hidden=24",
    "--set",
    "embedding=16",
    "--set",
    "score_hidden=16",
    "--set",
    "epochs=2",
];

#[track_caller]
pub(crate) fn said(arguments: &[&str]) -> String {
    let output = regard(arguments);
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[track_caller]
pub(crate) fn refused(arguments: &[&str]) -> String {
    let output = regard(arguments);
    assert!(!output.status.success(), "{arguments:?}: {output:?}");
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(!told.contains("panicked"), "{told}");
    told.trim_end().to_string()
}

pub(crate) fn path(folder: &TempDir, name: &str) -> String {
    folder.path().join(name).display().to_string()
}

/// The program training in a folder, while it is still at it.
fn training(run: &str, more: &[&str]) -> std::process::Child {
    Command::new(env!("CARGO_BIN_EXE_regard"))
        .args(["train", "translate", "--out", run])
        .args(SMALL)
        .args(more)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Waits until the first epoch is over.
fn first_epoch(child: &mut std::process::Child) {
    let lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut lines = lines.map(Result::unwrap);
    assert!(lines.any(|line| line.starts_with("epoch   1")));
    // The pipe stays open, so that the program can go on writing.
    std::mem::forget(lines);
}

fn parameters(run: &str) -> Vec<(String, Vec<u8>)> {
    let bytes = fs::read(Path::new(run).join("last.safetensors")).unwrap();
    let file = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    let all = file.tensors().into_iter();
    let mut all: Vec<_> = all.map(|(name, x)| (name, x.data().to_vec())).collect();
    all.sort();
    all
}

#[test]
fn a_run_is_trained_measured_used_and_shown() {
    let folder = TempDir::new().unwrap();
    let run = path(&folder, "run");
    let told = said(&[&["train", "translate", "--out", &run][..], &SMALL].concat());
    for part in ["best epoch", "BLEU", "samples:", "attention", "alignment.png"] {
        assert!(told.contains(part), "{part}: {told}");
    }
    let told = said(&["eval", &run]);
    assert!(told.starts_with("test part, 50 examples") && told.contains("BLEU"), "{told}");
    let json: serde_json::Value = serde_json::from_str(&said(&["eval", &run, "--json"])).unwrap();
    assert_eq!(json["examples"], 50);
    let outputs = path(&folder, "outputs.txt");
    said(&["eval", &run, "--part", "validation", "--outputs", &outputs]);
    assert_eq!(fs::read_to_string(&outputs).unwrap().lines().count(), 50);
    let argument = said(&["predict", &run, "May 3, 1999", "4 May 2001"]);
    let file = path(&folder, "inputs.txt");
    fs::write(&file, "May 3, 1999\n4 May 2001\n").unwrap();
    assert_eq!(said(&["predict", &run, "--file", &file]), argument);
    let mut child = Command::new(env!("CARGO_BIN_EXE_regard"))
        .args(["predict", &run])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"May 3, 1999\n4 May 2001\n").unwrap();
    assert_eq!(String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap(), argument);
    for line in said(&["predict", &run, "--json", "--file", &file]).lines() {
        let json: serde_json::Value = serde_json::from_str(line).unwrap();
        assert!(json["output"].is_string() && json["details"]["score"].is_number(), "{line}");
    }
    assert!(said(&["show", &run, "May 3, 1999"]).contains('█'));
    for (form, begins) in [
        ("svg", &b"<svg"[..]),
        ("png", b"\x89PNG"),
        ("gif", b"GIF89a"),
        ("html", b"<!doctype html>"),
        ("json", b"{"),
        ("safetensors", b""),
    ] {
        let out = path(&folder, form);
        said(&["show", &run, "May 3, 1999", "--as", form, "--out", &out]);
        let bytes = fs::read(&out).unwrap();
        assert!(
            bytes.len() > 500
                && bytes.to_ascii_lowercase().starts_with(&begins.to_ascii_lowercase()),
            "{form}"
        );
    }
}

#[test]
fn heads_are_taken_away_over_a_part_and_what_they_do_is_told() {
    let folder = TempDir::new().unwrap();
    let run = path(&folder, "run");
    let small = ["size=60", "epochs=1", "encoder=transformer", "hidden=8", "heads=2", "layers=2"];
    let sets: Vec<&str> = small.iter().flat_map(|one| ["--set", one]).collect();
    said(&[&["train", "label", "--out", &run], &sets[..]].concat());
    let told = said(&["ablate", &run]);
    assert!(told.contains("encoder, change of accuracy where the output of a head is its mean"));
    assert!(told.contains("layer") && told.contains("head 2") && told.contains("all"), "{told}");
    // It is kept, and said again without being computed.
    let kept = fs::read_to_string(Path::new(&run).join("ablation.json")).unwrap();
    assert_eq!(said(&["ablate", &run]), told);
    let json: serde_json::Value = serde_json::from_str(&said(&["ablate", &run, "--json"])).unwrap();
    let kept: serde_json::Value = serde_json::from_str(&kept).unwrap();
    assert_eq!(json, kept["test"]);
    assert_eq!(json["heads"].as_array().unwrap().len(), 4);
    assert_eq!(json["layers"].as_array().unwrap().len(), 2);
    let heads = said(&["heads", &run, "--part", "validation"]);
    assert!(heads.contains("encoder, layer 2, head 1 ") && heads.contains(" → "), "{heads}");
    let json: serde_json::Value = serde_json::from_str(&said(&["heads", &run, "--json"])).unwrap();
    for head in json["heads"].as_array().unwrap() {
        assert!(head["sentence"].is_string() && head["same_label"].is_array(), "{head}");
    }
    let told = refused(&["ablate", &run, "heads=4"]);
    assert!(told.contains("heads"), "{told}");
}

#[test]
fn what_matters_is_told_in_several_ways_and_each_is_tried() {
    let folder = TempDir::new().unwrap();
    let run = path(&folder, "run");
    let small = ["size=60", "epochs=1", "embedding=8", "score_hidden=8"];
    let sets: Vec<&str> = small.iter().flat_map(|one| ["--set", one]).collect();
    said(&[&["train", "classify", "--out", &run], &sets[..]].concat());
    let told = said(&["explain", &run, "a good film"]);
    for words in
        ["integrated-gradients", "attention", "(fall)", "(any order)", "rollout: a rollout follows"]
    {
        assert!(told.contains(words), "{words}: {told}");
    }
    assert!(told.lines().any(|line| line.trim_start().starts_with("film ")), "{told}");
    let one = ["explain", &run, "a good film", "--method", "integrated-gradients", "--json"];
    let json: serde_json::Value = serde_json::from_str(&said(&one)).unwrap();
    let values = json[0]["values"].as_array().unwrap().iter();
    let sum: f64 = values.filter_map(serde_json::Value::as_f64).sum();
    let known = json[0]["difference"].as_f64().unwrap();
    assert!((sum - known).abs() < 0.03, "{sum} and {known}");
    let part = said(&["explain", &run, "--part", "validation", "--examples", "3"]);
    assert!(
        part.starts_with("validation part, 3 examples\n") && part.contains("any order"),
        "{part}"
    );
    let cases = [
        (vec!["a good film", "--method", "rollout"], "self-attention"),
        (vec!["a good film", "--method", "rollouts"], "there is no method `rollouts`"),
        (vec!["a good film", "--examples", "3"], "without an input"),
        (vec!["--method", "rollout"], "--method is for one input"),
        (vec!["--examples", "0"], "`examples` cannot be 0"),
        (vec!["a", "b"], "one input is explained at a time"),
    ];
    for (arguments, words) in cases {
        let told = refused(&[&["explain", &run], &arguments[..]].concat());
        assert!(told.contains(words), "{arguments:?}: {told}");
    }
}

#[test]
fn killed_in_the_middle_and_resumed_it_ends_with_the_same_bits() {
    let folder = TempDir::new().unwrap();
    let more = ["--set", "epochs=4", "--set", "dropout=0.2"];
    let (straight, killed) = (path(&folder, "straight"), path(&folder, "killed"));
    let mut child = training(&killed, &more);
    first_epoch(&mut child);
    child.kill().unwrap();
    child.wait().unwrap();
    let output = training(&straight, &more).wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_ne!(parameters(&straight), parameters(&killed));
    said(&["train", "--resume", &killed]);
    assert_eq!(parameters(&straight), parameters(&killed));
}

#[cfg(unix)]
#[test]
fn ctrl_c_writes_a_checkpoint_and_says_how_to_resume() {
    let folder = TempDir::new().unwrap();
    let run = path(&folder, "run");
    let mut child = training(&run, &["--set", "epochs=200"]);
    first_epoch(&mut child);
    Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    let told = String::from_utf8(output.stdout).unwrap();
    assert_eq!(told, format!("stopped; `regard train --resume {run}` goes on\n"));
    assert!(Path::new(&run).join("last.safetensors").exists());
}

#[test]
fn variants_are_compared_in_a_table_and_a_picture() {
    let folder = TempDir::new().unwrap();
    let out = path(&folder, "compared");
    let arguments = ["compare", "translate", "--over", "score=dot,additive", "--out", &out];
    let more = ["--set", "bidirectional=false", "--set", "epochs=1", "--seeds", "2"];
    let told = said(&[&arguments[..], &SMALL, &more].concat());
    for part in ["variant", "BLEU", "parameters", "time", "memory", "dot", "additive", "±"] {
        assert!(told.contains(part), "{part}: {told}");
    }
    let picture = fs::read_to_string(Path::new(&out).join("comparison.svg")).unwrap();
    assert!(picture.starts_with("<svg") && picture.contains("additive"));
    let wrong = ["compare", "translate", "--over", "scores=dot", "--out", &path(&folder, "no")];
    assert_eq!(
        refused(&wrong),
        "regard: there is no option `scores`; the nearest is `model.score`"
    );
    assert!(!folder.path().join("no").exists());
}

#[test]
fn a_configuration_is_written_once_and_can_be_trained_with() {
    let folder = TempDir::new().unwrap();
    let file = path(&folder, "mine.toml");
    assert!(said(&["init", "translate", "--out", &file, "--set", "hidden=24"]).contains(&file));
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.contains("hidden = 24") && text.contains("# Width of its state"), "{text}");
    assert!(refused(&["init", "translate", "--out", &file]).contains("is there already"));
    let run = path(&folder, "run");
    said(&[&["train", "translate", "--config", &file, "--out", &run][..], &SMALL].concat());
}

#[test]
fn every_task_says_what_its_data_hold() {
    for task in regard_tasks::tasks::tasks() {
        let told = said(&["data", task.name()]);
        assert!(told.starts_with("data") && told.contains("examples"), "{told}");
        let json = said(&["data", task.name(), "--json"]);
        assert!(serde_json::from_str::<serde_json::Value>(&json).is_ok(), "{json}");
    }
}

#[test]
fn what_is_asked_for_wrongly_is_told_in_a_sentence_and_leaves_nothing_behind() {
    let folder = TempDir::new().unwrap();
    let run = path(&folder, "run");
    let told = refused(&["train", "translat", "--out", &run]);
    assert!(told.starts_with("regard: there is no task `translat`; there are "), "{told}");
    assert!(told.contains("translate"), "{told}");
    assert_eq!(
        refused(&["train", "translate", "--set", "hiden=3", "--out", &run]),
        "regard: there is no option `hiden`; the nearest is `model.hidden`"
    );
    let missing = path(&folder, "missing.toml");
    let told = refused(&["train", "translate", "--config", &missing, "--out", &run]);
    assert!(told.contains("missing.toml"), "{told}");
    assert!(refused(&["eval", &run]).contains("run.json"));
    assert!(refused(&["train", "--resume", &run]).contains("run.json"));
    assert!(refused(&["train"]).contains("TASK"));
    assert!(!Path::new(&run).exists());
}

#[test]
fn inputs_are_read_as_files_say_and_a_bad_line_is_named() {
    let folder = TempDir::new().unwrap();
    let (run, file) = (path(&folder, "run"), path(&folder, "numbers.txt"));
    said(&["train", "regress", "--out", &run, "--set", "size=60", "--set", "epochs=1"]);
    // A byte order mark, and answers up to the line that has none.
    fs::write(&file, "\u{feff}1\n2\nabc\n4\n").unwrap();
    let output = regard(&["predict", &run, "--file", &file]);
    assert!(!output.status.success());
    assert_eq!(String::from_utf8(output.stdout).unwrap().lines().count(), 2);
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(told, format!("regard: {file}, line 3: `abc` is not one number: x\n"));
    fs::write(&file, b"1\nSch\xf6ne Gr\xfc\xdfe\n").unwrap();
    let told = refused(&["predict", &run, "--file", &file]);
    assert_eq!(
        told,
        format!(
            "regard: {file}, line 2: these bytes are not UTF-8; they look like latin1: `--encoding \
             latin1` reads such files"
        )
    );
    let told = refused(&["predict", &run, "--file", &file, "--encoding", "latin1"]);
    assert_eq!(told, format!("regard: {file}, line 2: `Schöne Grüße` is not one number: x"));
    // A negative number is no option, and one beyond all data is no NaN.
    said(&["predict", &run, "-3"]);
    let told = refused(&["predict", &run, "1e300"]);
    assert!(told.ends_with("is too far from everything known of x"), "{told}");
}

#[test]
fn show_makes_what_the_ending_says_and_refuses_what_would_do_nothing() {
    let folder = TempDir::new().unwrap();
    let (run, svg) = (path(&folder, "run"), path(&folder, "curve.svg"));
    said(&["train", "regress", "--out", &run, "--set", "size=60", "--set", "epochs=1"]);
    said(&["show", &run, "2", "--out", &svg]);
    assert!(fs::read_to_string(&svg).unwrap().starts_with("<svg"));
    let told = refused(&["show", &run, "2", "--out", "curve.bmp"]);
    assert!(told.contains("curve.bmp: svg, png, gif, html, json or safetensors"), "{told}");
    let told = refused(&["show", &run, "2", "--out", "curve", "--as", "terminal"]);
    assert!(told.contains("--out is for files"), "{told}");
    let told = refused(&["show", &run, "2", "--as", "json", "--which", "1"]);
    assert!(told.contains("--which is for svg, png, gif and the terminal"), "{told}");
}

#[test]
fn what_cannot_be_trained_is_refused_before_a_run_is_there() {
    let folder = TempDir::new().unwrap();
    let run = path(&folder, "run");
    for (task, setting, told) in [
        ("regress", "epochs=0", "`training.epochs` cannot be 0"),
        ("regress", "betas=[1, 1]", "`training.betas` cannot be 1"),
        ("regress", "weight_decay=-1", "`training.weight_decay` cannot be -1"),
        (
            "regress",
            "min_learning_rate=5",
            "`training.min_learning_rate` cannot be 5, above the learning rate",
        ),
        ("label", "size=9000000000000000000", "`data.size` cannot be 9000000000000000000"),
        ("graph", "size=9000000000000000000", "`data.size` cannot be 9000000000000000000"),
        ("translate", "beam=0", "`search.beam` cannot be 0"),
        ("translate", "length_penalty=-5", "`search.length_penalty` cannot be -5"),
        ("translate", "score=dot", "`model.bidirectional=false` makes them one"),
    ] {
        let mut arguments = vec!["train", task, "--out", &run, "--set", setting];
        if task == "graph" {
            arguments.extend(["--set", "embedded=blocks"]);
        }
        let error = refused(&arguments);
        assert!(error.contains(told), "{setting}: {error}");
        assert!(!Path::new(&run).exists(), "{setting}");
    }
}

#[test]
fn a_comparison_makes_every_variant_before_it_trains_one() {
    let folder = TempDir::new().unwrap();
    let out = path(&folder, "compared");
    for (over, told) in [
        ("model=kernel,foo", "`model.model` cannot be \"foo\"; there are `"),
        ("bandwidth=1,1", "`1` is asked for twice"),
        ("seed=1,2", "`training.seed` is not compared over; `--seeds` varies it"),
    ] {
        let error = refused(&["compare", "regress", "--over", over, "--out", &out]);
        assert!(error.contains(told), "{over}: {error}");
        assert!(!Path::new(&out).exists(), "{over}");
    }
}

#[test]
fn a_run_with_a_measure_that_is_no_number_can_be_gone_on_with() {
    let folder = TempDir::new().unwrap();
    let run = path(&folder, "run");
    regard(&[
        "train",
        "regress",
        "--out",
        &run,
        "--set",
        "epochs=1",
        "--set",
        "learning_rate=1e30",
    ]);
    let records = fs::read_to_string(Path::new(&run).join("metrics.jsonl")).unwrap();
    assert!(records.contains("null"), "{records}");
    let output = regard(&["train", "--resume", &run]);
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(!told.contains("metrics.jsonl"), "{told}");
}
