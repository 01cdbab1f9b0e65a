//! The verbs on the tasks that write a text, and on labels of sound: train, eval, predict, show.

use crate::file::regard;
use tempfile::TempDir;

#[track_caller]
fn said(arguments: &[&str]) -> String {
    let output = regard(arguments);
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Trains a task with small settings, and gives the folder.
fn trained(folder: &TempDir, task: &str, settings: &[&str]) -> String {
    let run = folder.path().join(task).display().to_string();
    let small = ["size=60", "hidden=16", "epochs=1", "batch_size=16"];
    let set = small.iter().chain(settings).flat_map(|setting| ["--set", setting]);
    let arguments: Vec<&str> = ["train", task, "--out", &run].into_iter().chain(set).collect();
    said(&arguments);
    run
}

#[test]
fn texts_recordings_and_pictures_are_written_about_measured_and_shown() {
    let folder = TempDir::new().unwrap();
    let written = ["embedding=16", "score_hidden=16", "heads=2"];
    for (task, settings, input, measure, scene) in [
        (
            "summarize",
            vec![],
            "Bado Kel sold a mill near Mirby to Tosa Gel.",
            "ROUGE-L",
            "alignment",
        ),
        ("transcribe", vec![], "test:0", "WER", "alignment"),
        ("caption", vec!["image_size=16"], "test:0", "BLEU", "words"),
    ] {
        let run = trained(&folder, task, &[&written[..], &settings].concat());
        assert!(said(&["eval", &run]).contains(measure), "{task}");
        assert!(!said(&["predict", &run, input]).is_empty(), "{task}");
        let out = folder.path().join(format!("{task}.png")).display().to_string();
        said(&["show", &run, input, "--scene", scene, "--out", &out]);
        assert!(std::fs::read(&out).unwrap().starts_with(b"\x89PNG"), "{task}");
        assert!(!said(&["show", &run, input]).is_empty(), "{task}");
    }
}

#[test]
fn frames_of_sound_are_labeled_and_shown_at_a_moment() {
    let folder = TempDir::new().unwrap();
    let run = trained(&folder, "label", &["kind=sound", "heads=2", "feed_forward=32"]);
    assert!(said(&["eval", &run]).contains("segment F1"));
    assert!(said(&["predict", &run, "test:2"]).contains('–'));
    let out = folder.path().join("segments.svg").display().to_string();
    said(&["show", &run, "test:2@0.3", "--out", &out]);
    assert!(std::fs::read_to_string(&out).unwrap().contains("predicted"));
}
