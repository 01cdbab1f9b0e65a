//! What is there already is replaced on request, and nothing beside it.

use crate::tasks::{path, refused, said};
use std::fs;
use std::path::Path;
use tempfile::TempDir;

fn compared(out: &str, over: &str, more: &[&str]) -> Vec<String> {
    let words = ["compare", "regress", "size=60", "epochs=1", "--over", over, "--out", out];
    words.iter().chain(more).map(|word| word.to_string()).collect()
}

fn strings(words: &[String]) -> Vec<&str> {
    words.iter().map(String::as_str).collect()
}

fn names(folder: &str) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_comparison_is_replaced_on_request_and_its_own_files_alone() {
    let folder = TempDir::new().unwrap();
    let out = path(&folder, "compared");
    said(&strings(&compared(&out, "learn_bandwidth=true,false", &["--seeds", "2"])));
    fs::write(Path::new(&out).join("notes.txt"), "mine").unwrap();
    let before = names(&out);
    assert!(before.contains(&"true-seed2".to_string()), "{before:?}");
    let told = refused(&strings(&compared(&out, "learn_bandwidth=true", &[])));
    assert!(told.contains("holds a comparison already") && told.contains("--overwrite"), "{told}");
    assert_eq!(names(&out), before);
    // What cannot begin replaces nothing.
    let told = refused(&strings(&compared(&out, "learn_bandwidth=perhaps", &["--overwrite"])));
    assert!(told.contains("learn_bandwidth"), "{told}");
    assert_eq!(names(&out), before);
    let told = said(&strings(&compared(&out, "learn_bandwidth=false", &["--overwrite"])));
    assert!(told.contains("false") && !told.contains("true"), "{told}");
    let after = names(&out);
    let runs: Vec<&String> = after.iter().filter(|name| name.contains("-seed")).collect();
    assert_eq!(runs, ["false-seed1"], "{after:?}");
    assert_eq!(fs::read_to_string(Path::new(&out).join("notes.txt")).unwrap(), "mine");
    // It is one that can be gone on with.
    said(&["compare", "--resume", &out]);
    // What a damaged plan would have removed is not known, so that nothing is.
    fs::write(Path::new(&out).join("comparison-plan.json"), "{").unwrap();
    let told = refused(&strings(&compared(&out, "learn_bandwidth=true", &["--overwrite"])));
    assert!(told.contains("comparison-plan.json"), "{told}");
    assert_eq!(names(&out), after);
}

#[test]
fn what_is_no_comparison_is_never_replaced() {
    let folder = TempDir::new().unwrap();
    let [run, mine, out] = ["run", "mine", "out"].map(|name| path(&folder, name));
    said(&["train", "regress", "size=60", "epochs=1", "--out", &run]);
    fs::create_dir(&mine).unwrap();
    fs::write(Path::new(&mine).join("diary.txt"), "dear").unwrap();
    for place in [&run, &mine] {
        let before = names(place);
        let told = refused(&strings(&compared(place, "learn_bandwidth=true", &["--overwrite"])));
        assert!(told.contains("holds files that are no comparison's"), "{told}");
        let told = refused(&["compare", &run, &run, "--out", place, "--overwrite"]);
        assert!(told.contains("holds files that are no comparison's"), "{told}");
        assert_eq!(&names(place), &before);
    }
    // Runs that are done are compared into a folder in the same way.
    said(&["compare", &run, &run, "--out", &out]);
    let told = refused(&["compare", &run, &run, "--out", &out]);
    assert!(told.contains("--overwrite") && !told.contains("--resume"), "{told}");
    let told = refused(&["compare", "--resume", &out]);
    assert!(told.ends_with("a folder in which variants are trained has one"), "{told}");
    said(&["compare", &run, &run, "--out", &out, "--overwrite"]);
    let told = refused(&["compare", "regress", "--overwrite"]);
    assert!(told.contains("--out"), "{told}");
    let told = refused(&["compare", "--resume", &out, "--overwrite"]);
    assert!(told.contains("--overwrite"), "{told}");
}
