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
    let written = ["embedding=16", "score_hidden=16"];
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
fn sentences_are_drawn_into_files_that_caption_reads() {
    let folder = TempDir::new().unwrap();
    let small = ["image_size=16", "patch_size=4", "heads=2", "embedding=16"];
    let run = trained(&folder, "draw", &small);
    assert!(said(&["eval", &run]).contains("places"));
    let sentence = "a red circle left of a small blue square";
    let refused = regard(&["predict", &run, sentence]);
    let told = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && told.contains("answers with pictures"), "{told}");
    // One picture to a file, several to a folder with a list.
    let out = folder.path().join("one.png").display().to_string();
    assert_eq!(said(&["predict", &run, sentence, "--out", &out]).trim(), out);
    assert!(std::fs::read(&out).unwrap().starts_with(b"\x89PNG"));
    let refused = regard(&["predict", &run, sentence, "test:1", "--out", &out]);
    let told = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && told.contains("several go to a folder"), "{told}");
    let several = folder.path().join("drawn");
    let out = several.display().to_string();
    let drawn = said(&["predict", &run, sentence, "test:0", "test:1", "--out", &out]);
    assert_eq!(drawn.lines().count(), 3, "{drawn}");
    assert!(drawn.lines().all(|path| std::fs::read(path).unwrap().starts_with(b"\x89PNG")));
    let list = std::fs::read_to_string(several.join("list.tsv")).unwrap();
    assert!(list.starts_with(&format!("0001.png\t{sentence}\n0002.png\t")), "{list}");
    // Both sentences of an example are right for its picture.
    assert_eq!(list.lines().count(), 1 + 2 + 2);
    let captions = trained(&folder, "caption", &["image_size=16", "embedding=16", "heads=2"]);
    let test = format!("data.test=\"{}\"", several.join("list.tsv").display());
    assert!(said(&["eval", &captions, &test]).contains("exact"));
    // As JSON it needs no file; a model of text has none.
    let json: serde_json::Value =
        serde_json::from_str(&said(&["predict", &run, sentence, "--json"])).unwrap();
    assert!(json["output"].as_str().unwrap().starts_with("data:image/png;base64,"));
    let refused = regard(&["predict", &captions, "test:0", "--out", &out]);
    let told = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && told.contains("answers with text"), "{told}");
    let shown = folder.path().join("words.png").display().to_string();
    said(&["show", &run, sentence, "--scene", "words", "--out", &shown]);
    assert!(std::fs::read(&shown).unwrap().starts_with(b"\x89PNG"));
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
