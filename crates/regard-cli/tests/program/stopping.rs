//! Trainings that end before they are done, however they end.

use crate::file::regard;
use crate::tasks::{SMALL, path, refused, said};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

fn started(arguments: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_regard"))
        .args(arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Waits until a running program has written a file.
#[track_caller]
fn wait_for(child: &mut Child, file: &Path) {
    while !file.exists() {
        let ended = child.try_wait().unwrap();
        assert!(ended.is_none() || file.exists(), "no {}: {ended:?}", file.display());
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// All files of a run but its clock, by name. What is hidden is nobody's result.
fn files(run: &str) -> BTreeMap<String, Vec<u8>> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(run).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.path().is_dir() {
            let inside = files(&entry.path().to_string_lossy()).into_iter();
            all.extend(inside.map(|(file, bytes)| (format!("{name}/{file}"), bytes)));
        } else if name != "clock.json" && !name.starts_with('.') {
            all.insert(name, fs::read(entry.path()).unwrap());
        }
    }
    all
}

#[track_caller]
fn assert_same(a: &str, b: &str) {
    let (a, b) = (files(a), files(b));
    assert_eq!(a.keys().collect::<Vec<_>>(), b.keys().collect::<Vec<_>>());
    for (name, bytes) in &a {
        assert!(bytes == &b[name], "{name} differs");
    }
    assert!(a.contains_key("best.safetensors") && a.contains_key("metrics.jsonl"));
}

#[cfg(unix)]
fn send(signal: &str, child: &Child) {
    Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
}

/// Small settings of every task, with chance in training where there is some.
#[cfg(unix)]
fn every_task() -> Vec<(&'static str, Vec<&'static str>)> {
    let mut all: Vec<(&str, Vec<&str>)> = vec![
        ("regress", vec!["size=100", "epochs=40", "schedule=plateau"]),
        ("translate", vec!["size=150", "embedded=dates", "hidden=16", "embedding=16", "epochs=3"]),
        ("label", vec!["size=120", "hidden=16", "embedding=16", "layers=1", "epochs=3"]),
        ("classify", vec!["size=150", "embedding=16", "epochs=5", "ema_decay=0.9"]),
        ("image", vec!["size=80", "epochs=3", "batch_size=16"]),
        ("graph", vec!["epochs=40", "dropout=0.5"]),
    ];
    let known = regard_tasks::tasks::tasks().iter().map(|task| task.name());
    let missing: Vec<&str> = known.filter(|name| all.iter().all(|(n, _)| n != name)).collect();
    all.extend(missing.into_iter().map(|name| (name, vec!["size=60", "epochs=2"])));
    all
}

#[cfg(unix)]
#[test]
fn killed_at_any_moment_a_run_of_any_task_ends_with_the_same_files() {
    const KILLS: usize = 6;
    let mut chance = 12345u64;
    for (task, settings) in every_task() {
        let folder = TempDir::new().unwrap();
        let (straight, killed) = (path(&folder, "straight/run"), path(&folder, "killed/run"));
        let sets: Vec<&str> = settings.iter().flat_map(|set| ["--set", set]).collect();
        let begun = Instant::now();
        said(&[&["train", task, "--out", &straight][..], &sets].concat());
        let whole = begun.elapsed();
        let begin = [&["train", task, "--out", &killed][..], &sets].concat();
        let resume = ["train", "--resume", &killed];
        let mut kills = 0;
        loop {
            // A training that was killed before it began begins anew.
            let there = Path::new(&killed).join("run.json").exists();
            let mut child = started(if there { &resume } else { &begin });
            if kills == KILLS {
                assert!(child.wait().unwrap().success(), "{task}");
                break;
            }
            chance = chance.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            std::thread::sleep(whole.mul_f64((chance >> 33) as f64 / (1u64 << 31) as f64));
            send(["-KILL", "-TERM", "-INT"][kills % 3], &child);
            child.wait().unwrap();
            kills += 1;
        }
        assert_same(&straight, &killed);
    }
}

#[test]
fn sixteen_epochs_and_one_more_are_seventeen() {
    let folder = TempDir::new().unwrap();
    let (straight, further) = (path(&folder, "straight/run"), path(&folder, "further/run"));
    let train = |out: &str, epochs: &str| {
        let sets = ["--set", "seed=3", "--set", "validate_every=1", "--set", epochs];
        said(&[&["train", "graph", "--out", out][..], &sets].concat());
    };
    train(&straight, "epochs=17");
    train(&further, "epochs=16");
    said(&["train", "--resume", &further, "--set", "epochs=17"]);
    assert_same(&straight, &further);
    let told = refused(&["train", "--resume", &further, "--set", "learning_rate=0.1"]);
    assert!(told.contains("`training.learning_rate` cannot change on the way"), "{told}");
}

#[cfg(unix)]
#[test]
fn kill_is_heard_like_ctrl_c() {
    let folder = TempDir::new().unwrap();
    let run = path(&folder, "run");
    let more = ["--set", "epochs=500"];
    let arguments = [&["train", "translate", "--out", &run][..], &SMALL, &more].concat();
    let mut child = started(&arguments);
    wait_for(&mut child, &Path::new(&run).join("last.safetensors"));
    send("-TERM", &child);
    assert_eq!(child.wait().unwrap().code(), Some(143));
    let epochs = |run: &str| fs::read_to_string(Path::new(run).join("metrics.jsonl")).unwrap();
    assert!(epochs(&run).lines().count() < 500);
    let state = regard(&["train", "--resume", &run, "--set", "epochs=500", "--threads", "0"]);
    assert!(!state.status.success());
}

#[cfg(unix)]
#[test]
fn one_folder_has_one_training_at_a_time() {
    let folder = TempDir::new().unwrap();
    let run = path(&folder, "run");
    let more = ["--set", "epochs=500"];
    let arguments = [&["train", "translate", "--out", &run][..], &SMALL, &more].concat();
    let mut child = started(&arguments);
    wait_for(&mut child, &Path::new(&run).join("run.json"));
    let id = child.id().to_string();
    for other in [
        &["train", "--resume", &run][..],
        &["train", "regress", "--out", &run],
        &["train", "regress", "--out", &run, "--overwrite"],
    ] {
        let told = refused(other);
        assert!(told.contains(&format!("process {id} is training here")), "{told}");
    }
    // Whoever only looks may look.
    wait_for(&mut child, &Path::new(&run).join("best.safetensors"));
    said(&["predict", &run, "May 3, 1999"]);
    child.kill().unwrap();
    child.wait().unwrap();
    // The lock goes with the process.
    said(&["train", "--resume", &run, "--set", "epochs=1"]);
}

#[test]
fn what_a_killed_training_left_is_cleaned_or_explained() {
    let folder = TempDir::new().unwrap();
    let run = path(&folder, "run");
    let at = |name: &str| Path::new(&run).join(name);
    let train = ["train", "regress", "--out", &run, "--set", "size=60", "--set", "epochs=1"];
    fs::create_dir(&run).unwrap();
    // Killed before run.json was there.
    for name in ["config.toml", ".regard-abc", ".lock"] {
        fs::write(at(name), "half").unwrap();
    }
    for verb in [&["train", "--resume", &run][..], &["eval", &run]] {
        let told = refused(verb);
        assert!(told.contains("no run.json: the training was ended before it began"), "{told}");
    }
    said(&train);
    assert!(!at(".regard-abc").exists());
    // Killed while a checkpoint was written.
    fs::write(at(".regard-def"), "half").unwrap();
    said(&["train", "--resume", &run]);
    assert!(!at(".regard-def").exists());
    let told = refused(&train);
    assert!(told.contains("`--resume` goes on with it, `--overwrite` replaces it"), "{told}");
    // What is not the run's stays.
    fs::write(at("notes.txt"), "mine").unwrap();
    said(&[&train[..], &["--overwrite", "--set", "seed=2"]].concat());
    assert_eq!(fs::read_to_string(at("notes.txt")).unwrap(), "mine");
    assert!(fs::read_to_string(at("config.toml")).unwrap().contains("seed = 2"));
    fs::remove_file(at("run.json")).unwrap();
    let told = refused(&[&train[..], &["--overwrite"]].concat());
    assert!(told.contains("holds files that are no run's"), "{told}");
}

#[test]
fn checkpoints_come_by_the_clock_too() {
    let folder = TempDir::new().unwrap();
    let run = path(&folder, "run");
    let more =
        ["--set", "size=4000", "--set", "batch_size=4", "--set", "checkpoint_minutes=0.0001"];
    let arguments = [&["train", "translate", "--out", &run][..], &SMALL, &more].concat();
    let mut child = started(&arguments);
    wait_for(&mut child, &Path::new(&run).join("last.safetensors"));
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(!Path::new(&run).join("metrics.jsonl").exists());
    let bytes = fs::read(Path::new(&run).join("last.safetensors")).unwrap();
    let (_, header) = safetensors::SafeTensors::read_metadata(&bytes).unwrap();
    let place = &header.metadata().as_ref().unwrap()["place"];
    let place: serde_json::Value = serde_json::from_str(place).unwrap();
    assert_eq!(place["epoch"], 0);
    assert!(place["batch"].as_u64().unwrap() > 0, "{place}");
}

#[cfg(unix)]
#[test]
fn a_comparison_is_resumed_and_shows_what_is_done() {
    let folder = TempDir::new().unwrap();
    let out = path(&folder, "compared");
    let over =
        ["compare", "regress", "--over", "bandwidth=0.5,1", "--set", "epochs=3000", "--out", &out];
    let mut child = Command::new(env!("CARGO_BIN_EXE_regard"))
        .args(over)
        .args(["--set", "size=60", "--set", "validate_every=1000"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_for(&mut child, &Path::new(&out).join("1-seed1/run.json"));
    send("-INT", &child);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    let told = String::from_utf8(output.stdout).unwrap();
    assert!(told.starts_with("measured on the validation part, 1 seed\n"), "{told}");
    assert!(told.contains("\n0.5 ") && !told.contains("\n1 "), "{told}");
    let goes_on = format!("1 of 2 variants are done, `regard compare --resume {out}` goes on");
    assert!(told.contains(&goes_on), "{told}");
    let done = fs::read(Path::new(&out).join("0-5-seed1/last.safetensors")).unwrap();
    let told = said(&["compare", "--resume", &out]);
    assert!(told.contains("\n0.5 ") && told.contains("\n1 ") && told.contains("  p  "), "{told}");
    assert_eq!(fs::read(Path::new(&out).join("0-5-seed1/last.safetensors")).unwrap(), done);
    let told = said(&["compare", "--resume", &out, "--test"]);
    assert!(told.starts_with("measured on the test part"), "{told}");
}
