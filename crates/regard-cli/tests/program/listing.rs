//! What there is: tasks and runs, runs side by side, an example of a run, what a training would take.

use crate::file::regard;
use crate::settings::WORDS;
use crate::tasks::{path, refused, said};
use std::fs;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

fn trained(folder: &TempDir, name: &str, more: &[&str]) -> String {
    let run = path(folder, name);
    said(&[&["train", "translate"], &WORDS[..], more, &["--out", &run]].concat());
    run
}

fn listed(folder: &TempDir) -> serde_json::Value {
    serde_json::from_str(&said(&["list", &path(folder, ""), "--json"])).unwrap()
}

#[test]
fn tasks_and_runs_are_listed_with_their_measures_and_how_they_stand() {
    let folder = TempDir::new().unwrap();
    let told = said(&["list", &path(&folder, "")]);
    assert!(told.contains("\n  translate    a sentence in, a sentence out\n"), "{told}");
    assert!(told.contains("no runs under"), "{told}");
    let done = trained(&folder, "deeper/done", &[]);
    let early = trained(&folder, "early", &["epochs=9", "learning_rate=1e-12", "patience=1"]);
    fs::create_dir(folder.path().join("damaged")).unwrap();
    fs::write(folder.path().join("damaged/run.json"), "{").unwrap();
    let stopped = trained(&folder, "stopped", &[]);
    let config = Path::new(&stopped).join("config.toml");
    let text = fs::read_to_string(&config).unwrap();
    fs::write(&config, text.replace("epochs = 2", "epochs = 5")).unwrap();
    let json = listed(&folder);
    // Of many runs, none's model is opened: what cannot be loaded is listed all the same.
    for file in ["best.safetensors", "last.safetensors", "vocabulary.json"] {
        let path = Path::new(&early).join(file);
        let whole = fs::read(&path).unwrap();
        fs::write(&path, "damaged").unwrap();
        assert_eq!(listed(&folder), json, "{file}");
        fs::write(&path, whole).unwrap();
    }
    assert_eq!(json["tasks"].as_array().unwrap().len(), regard_tasks::tasks::tasks().len());
    let runs = json["runs"].as_array().unwrap();
    let states: Vec<&str> = runs.iter().map(|run| run["state"].as_str().unwrap()).collect();
    assert_eq!(states, ["damaged", "done", "early", "stopped"]);
    assert_eq!((&runs[1]["folder"], &runs[1]["task"]), (&done.into(), &"translate".into()));
    assert_eq!((&runs[1]["epoch"], &runs[3]["epochs"]), (&2.into(), &5.into()));
    assert_eq!(runs[1]["best"][0], "BLEU");
    assert!(runs[1]["best"][1].is_number() && runs[1]["parameters"].as_u64().unwrap() > 1000);
    let told = said(&["list", &path(&folder, "")]);
    for part in ["run ", "2/2", "BLEU ", "(epoch ", "ended early", "damaged: "] {
        assert!(told.contains(part), "{part}: {told}");
    }
    assert!(told.contains(&early), "{told}");
    assert!(refused(&["list", &path(&folder, "nowhere")]).contains("nowhere"));
    // Without a folder, `runs` is meant, and its absence is no error.
    let output = Command::new(env!("CARGO_BIN_EXE_regard"))
        .arg("list")
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert!(String::from_utf8(output.stdout).unwrap().contains("no runs under runs;"));
}

#[test]
fn a_run_in_progress_is_listed_with_its_process() {
    let folder = TempDir::new().unwrap();
    let run = path(&folder, "run");
    let mut child = Command::new(env!("CARGO_BIN_EXE_regard"))
        .args([&["train", "translate"], &WORDS[..], &["epochs=5000", "--out", &run]].concat())
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    while !Path::new(&run).join("metrics.jsonl").exists() {
        assert!(child.try_wait().unwrap().is_none());
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let json = listed(&folder);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(json["runs"][0]["state"], "training");
    assert_eq!(json["runs"][0]["why"], format!("process {}", child.id()));
    assert_eq!(listed(&folder)["runs"][0]["state"], "stopped");
}

#[test]
fn runs_that_are_done_are_set_side_by_side() {
    let folder = TempDir::new().unwrap();
    let (a, b) =
        (trained(&folder, "a", &[]), trained(&folder, "b", &["learning_rate=0.01", "seed=2"]));
    let told = said(&["compare", &a, &b]);
    assert!(told.starts_with("measured on the validation part\n\nrun "), "{told}");
    assert!(told.contains("\na ") && told.contains("\nb "), "{told}");
    assert!(told.contains("p: how likely a difference from the first run"), "{told}");
    // The same measures as each has alone.
    let bleu = |run: &str, part: &str| {
        let json = said(&["eval", run, "--part", part, "--json"]);
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        json["scores"]["values"][0][1].as_f64().unwrap()
    };
    let out = path(&folder, "out");
    let told = said(&["compare", &a, &b, "--test", "--out", &out]);
    assert!(told.starts_with("measured on the test part\n"), "{told}");
    let json = fs::read_to_string(Path::new(&out).join("comparison.json")).unwrap();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    for (at, run) in [&a, &b].into_iter().enumerate() {
        let value = json["variants"][at]["scores"][0]["values"][0][1].as_f64().unwrap();
        assert_eq!(value, bleu(run, "test"));
    }
    assert!(Path::new(&out).join("comparison.svg").exists());
    // Other examples have no p, and it is said why.
    let c = trained(&folder, "c", &["size=350"]);
    let output = regard(&["compare", &a, &c]);
    let aside = String::from_utf8(output.stderr).unwrap();
    assert!(aside.contains("same examples: `data.size` is 300 and 350; so no p"), "{aside}");
    assert!(!String::from_utf8(output.stdout).unwrap().contains("p: how likely"));
}

#[test]
fn runs_that_cannot_be_compared_are_refused_by_name() {
    let folder = TempDir::new().unwrap();
    let (a, b) = (trained(&folder, "a", &[]), path(&folder, "b"));
    said(&["train", "regress", "size=60", "epochs=1", "--out", &b]);
    assert_eq!(
        refused(&["compare", &a, &b]),
        format!(
            "regard: {a} is a run of `translate` and {b} one of `regress`: different tasks have \
             different measures"
        )
    );
    let told = refused(&["compare", &a]);
    assert!(told.contains("alone has nothing to be compared with; `regard eval"), "{told}");
    let told = refused(&["compare", &a, &b, "--over", "layers=1,2"]);
    assert!(told.contains("--over is for variants that are trained"), "{told}");
    assert!(refused(&["compare", &a, &path(&folder, "none")]).contains("run.json"));
}

#[test]
fn every_task_shows_an_example_where_no_input_is_given() {
    let folder = TempDir::new().unwrap();
    for task in regard_tasks::tasks::tasks() {
        let name = task.name();
        let run = path(&folder, name);
        let small: &[&str] = match name {
            "graph" => &["epochs=1"],
            "regress" => &["size=60", "epochs=1"],
            "image" | "label" => &["size=60", "epochs=1", "hidden=8", "heads=2", "layers=1"],
            "answer" => &["size=60", "epochs=1", "embedding=8"],
            "classify" => &["size=60", "epochs=1", "embedding=8", "score_hidden=8"],
            "draw" => &["size=60", "epochs=1", "hidden=8", "embedding=8"],
            _ => &["size=60", "epochs=1", "hidden=8", "embedding=8", "score_hidden=8"],
        };
        said(&[&["train", name, "--out", &run][..], small].concat());
        let output = regard(&["show", &run]);
        assert!(output.status.success(), "{name}: {output:?}");
        assert!(!output.stdout.is_empty(), "{name}");
        let aside = String::from_utf8(output.stderr).unwrap();
        let said_which = "note: no input is given; this is an example of the data, validation:0";
        assert!(aside.contains(said_which), "{name}: {aside}");
    }
}

#[test]
fn one_layer_or_head_is_shown_alone() {
    let folder = TempDir::new().unwrap();
    let run = path(&folder, "run");
    let small = ["size=60", "epochs=1", "hidden=8", "heads=2", "layers=3", "feed_forward=8"];
    said(&[&["train", "label", "--out", &run][..], &small].concat());
    let names = |more: &[&str]| -> Vec<String> {
        let out = path(&folder, "maps.json");
        said(&[&["show", &run, "I saw a saw", "--out", &out][..], more].concat());
        let json: serde_json::Value = serde_json::from_slice(&fs::read(&out).unwrap()).unwrap();
        let maps = json["maps"].as_array().unwrap();
        maps.iter().map(|map| map["name"].as_str().unwrap().to_string()).collect()
    };
    assert_eq!(names(&[]).len(), 6);
    assert_eq!(names(&["--layer", "2"]), ["layer 2, head 1", "layer 2, head 2"]);
    assert_eq!(names(&["--layer", "3", "--head", "1"]), ["layer 3, head 1"]);
    let second = ["layer 1, head 2", "layer 2, head 2", "layer 3, head 2"];
    assert_eq!(names(&["--head", "2"]), second);
    let told = said(&["show", &run, "I saw a saw", "--layer", "2", "--head", "2"]);
    assert!(told.starts_with("layer 2, head 2\n") && !told.contains("1 of"), "{told}");
    let told = refused(&["show", &run, "I saw a saw", "--layer", "4"]);
    assert_eq!(told, "regard: there is no layer 4; there are layers 1 to 3");
    let told = refused(&["show", &run, "I saw a saw", "--head", "0"]);
    assert_eq!(told, "regard: there is no head 0; there are heads 1 to 2");
}

#[test]
fn a_dry_run_says_what_it_would_take_and_writes_nothing() {
    let folder = TempDir::new().unwrap();
    let run = path(&folder, "run");
    let dry = |more: &[&str]| {
        let arguments = [&["train", "translate"], &WORDS[..], &["--out", &run], more].concat();
        [&arguments[..], &["--dry-run"]].concat().iter().map(|s| s.to_string()).collect::<Vec<_>>()
    };
    let arguments = dry(&[]);
    let told = said(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
    for part in ["task         translate", "parameters   ", "2 of 5 batches", "memory ", "time "] {
        assert!(told.contains(part), "{part}: {told}");
    }
    // What would be refused is refused, and data that cannot be read are told.
    for (setting, why) in [
        ("epochs=0", "`training.epochs` cannot be 0"),
        (
            "train_pairs=missing.tsv",
            "`data.size=300` has no effect with `data.train_pairs=missing.tsv`",
        ),
        ("freeze=[\"nothing.*\"]", "no weight has a name like nothing.*"),
        ("init_from=nowhere", "nowhere"),
    ] {
        let arguments = dry(&[setting]);
        let told = refused(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
        assert!(told.contains(why), "{setting}: {told}");
    }
    let missing = ["train", "translate", "train_pairs=missing.tsv", "--dry-run"];
    assert!(refused(&missing).contains("missing.tsv: there is no such file"));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn a_dry_run_refuses_nothing_for_what_only_the_beginning_lacks() {
    let folder = TempDir::new().unwrap();
    let run = path(&folder, "run");
    // One label in the first 20,000 lines, and another behind them.
    let sorted = path(&folder, "sorted.tsv");
    fs::write(&sorted, "neg\tbad\n".repeat(21_000) + &"pos\tgood\n".repeat(2_000)).unwrap();
    let told =
        said(&["train", "classify", &format!("data.train={sorted}"), "--out", &run, "--dry-run"]);
    assert!(told.contains("parameters   "), "{told}");
    // Short files are compared whole.
    let (from, to) = (path(&folder, "from.txt"), path(&folder, "to.txt"));
    fs::write(&from, "a\n".repeat(30)).unwrap();
    fs::write(&to, "b\n".repeat(29)).unwrap();
    let (from, to) = (format!("train_source={from}"), format!("train_target={to}"));
    let told = refused(&["train", "translate", &from, &to, "--out", &run, "--dry-run"]);
    assert!(told.contains("30 lines, but"), "{told}");
}
