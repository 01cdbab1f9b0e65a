//! A file is read once, however many parts of the data are held out of it.

use regard_tasks::options::{Options, TrainingConfig};
use regard_tasks::run::Run;
use regard_tasks::task::{Input, Model, Part};
use regard_tasks::tasks::task_named;
use regard_tasks::train::{Silent, train};
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tempfile::TempDir;

/// Something at a path that gives its bytes to whoever reads it, and counts how often.
struct Counted {
    path: PathBuf,
    reads: Arc<AtomicUsize>,
}

fn pipe(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

impl Counted {
    fn new(folder: &Path, name: &str, bytes: impl Into<Vec<u8>>) -> Self {
        let (path, next) = (folder.join(name), folder.join(format!("{name}.next")));
        let (reads, bytes) = (Arc::new(AtomicUsize::new(0)), bytes.into());
        pipe(&path);
        let (at, count) = (path.clone(), reads.clone());
        // It waits for a reader that may never come, and ends with the process.
        std::thread::spawn(move || {
            while let Ok(mut reader) = OpenOptions::new().write(true).open(&at) {
                count.fetch_add(1, Ordering::SeqCst);
                // The next reader gets a pipe of its own, which is there before this one is done.
                pipe(&next);
                fs::rename(&next, &at).unwrap();
                reader.write_all(&bytes).unwrap();
            }
        });
        Self { path, reads }
    }

    fn setting(&self, key: &str) -> String {
        format!("{key}=\"{}\"", self.path.display())
    }

    /// How often it was read since the last time this was asked.
    fn reads(&self) -> usize {
        self.reads.swap(0, Ordering::SeqCst)
    }
}

fn options(task: &str, settings: &[&str]) -> Options {
    let all = task_named(task).unwrap().options().unwrap();
    settings.iter().fold(all, |options, setting| options.set(setting).unwrap())
}

/// A model that was trained with these settings in a folder.
fn trained(folder: &Path, task: &str, settings: &[&str]) -> Box<dyn Model> {
    let options = options(task, settings);
    let task = task_named(task).unwrap();
    let mut learner = task.begin(&options).unwrap();
    let run = Run::create(&folder.join("run"), task, &options, learner.model()).unwrap();
    train(learner.as_mut(), &TrainingConfig::of(&options).unwrap(), &run, &mut Silent).unwrap();
    run.model(&options).unwrap()
}

/// Reads of a file that a task's three parts come from: to describe them, and to begin.
fn reads(task: &str, file: &Counted, settings: &[&str]) -> [usize; 2] {
    let options = options(task, settings);
    let task = task_named(task).unwrap();
    let description = task.describe(&options).unwrap();
    let count = |of: &str| {
        let fact = description.facts.iter().find(|(name, _)| name.starts_with(of)).unwrap();
        fact.1.parse::<usize>().unwrap()
    };
    let parts = ["training", "validation", "test"].map(count);
    assert!(parts.iter().all(|&part| part > 0), "{parts:?}");
    let described = file.reads();
    task.begin(&options).unwrap();
    [described, file.reads()]
}

#[test]
fn three_parts_of_one_text_file_are_read_at_once() {
    let folder = TempDir::new().unwrap();
    let lines = |line: &dyn Fn(usize) -> String| (0..40).map(line).collect::<String>();
    let cases = [
        ("translate", "train_pairs", lines(&|i| format!("wort {i}\tword {i}\n"))),
        ("label", "train", lines(&|i| format!("word{i}\tNOUN\nruns\tVERB\n\n"))),
        ("classify", "data.train", lines(&|i| format!("{}\ta word {i}\n", i % 2))),
        ("regress", "train", lines(&|i| format!("{i},{}\n", i * i))),
    ];
    for (task, key, text) in cases {
        let file = Counted::new(folder.path(), task, text);
        let set = [&file.setting(key)[..], "held_out=0.2"];
        assert_eq!(reads(task, &file, &set), [1, 1], "{task}");
    }
}

/// Forty images of 8×8 with two labels: the file of the images and that of the labels.
fn idx() -> [Vec<u8>; 2] {
    let mut images = vec![0, 0, 8, 3, 0, 0, 0, 40, 0, 0, 0, 8, 0, 0, 0, 8];
    images.extend((0..40 * 64).map(|i| (i * 37 % 251) as u8));
    let mut labels = vec![0, 0, 8, 1, 0, 0, 0, 40];
    labels.extend((0..40).map(|i| i % 2));
    [images, labels]
}

#[test]
fn three_parts_of_one_file_of_images_are_read_at_once_and_so_are_inputs_out_of_them() {
    let folder = TempDir::new().unwrap();
    let [images, labels] = idx();
    let images = Counted::new(folder.path(), "images", images);
    let labels = Counted::new(folder.path(), "labels", labels);
    let set = [images.setting("train_images"), labels.setting("train_labels")];
    let small = ["held_out=0.2", "epochs=1", "hidden=8", "heads=2", "layers=1", "patch_size=4"];
    let settings = [&[&set[0][..], &set[1]], &small[..]].concat();
    assert_eq!(reads("image", &images, &settings), [1, 1]);
    assert_eq!(labels.reads(), 2);
    let model = trained(folder.path(), "image", &settings);
    images.reads();
    let inputs = ["train:0", "validation:1", "test:2", "validation:3"].map(Input::from);
    assert_eq!(model.predict(&inputs).unwrap().len(), 4);
    assert_eq!(images.reads(), 1);
}

#[test]
fn inputs_out_of_the_data_are_read_together() {
    let folder = TempDir::new().unwrap();
    let text: String = (0..40).map(|i| format!("{}\t1,{i} 2,{i}\n", i % 2)).collect();
    let file = Counted::new(folder.path(), "vectors", text);
    let set = [&file.setting("data.train")[..], "kind=vectors", "held_out=0.2", "epochs=1"];
    let model = trained(folder.path(), "classify", &set);
    file.reads();
    let inputs = ["train:0", "validation:1", "test:2", "validation:3"].map(Input::from);
    assert_eq!(model.predict(&inputs).unwrap().len(), 4);
    assert_eq!(file.reads(), 1);
}

#[test]
fn samples_and_what_is_true_of_them_are_read_once() {
    let folder = TempDir::new().unwrap();
    let lines = |line: &dyn Fn(usize) -> String| (0..40).map(line).collect::<String>();
    // What is asked besides examples: a text that the validation part holds.
    let cases = [
        ("translate", "pairs", lines(&|i| format!("wort {i}\tword {i}\n")), Some("wort 3")),
        (
            "label",
            "data.train",
            lines(&|i| format!("word{i}\tNOUN\nruns\tVERB\n\n")),
            Some("word3 runs"),
        ),
        (
            "classify",
            "data.train",
            lines(&|i| format!("{}\ta word {i}\n", i % 2)),
            Some("a word 3"),
        ),
        ("regress", "data.train", lines(&|i| format!("{i},{}\n", i * i)), None),
        (
            "answer",
            "data.train",
            lines(&|i| format!("the key{i} is red\twhere is key{i}\tred\n")),
            None,
        ),
    ];
    for (task, key, text, typed) in cases {
        let (train, validation) = match key {
            "pairs" => ("train_pairs", "validation_pairs"),
            _ => ("data.train", "data.validation"),
        };
        let name = |part: &str| format!("{task}-{part}.tsv");
        let training = folder.path().join(name("train"));
        fs::write(&training, &text).unwrap();
        let file = Counted::new(folder.path(), &name("validation"), text);
        let train = format!("{train}=\"{}\"", training.display());
        let options = options(task, &[&train, &file.setting(validation)]);
        let learner = task_named(task).unwrap().begin(&options).unwrap();
        file.reads();
        for epoch in 0..3 {
            for at in 0..3 {
                let input = Input::example(Part::Validation, at);
                learner.model().predict(std::slice::from_ref(&input)).unwrap();
                assert!(learner.model().truth(&input).is_some(), "{task}");
            }
            assert_eq!(file.reads(), usize::from(epoch == 0), "{task}, epoch {epoch}");
        }
        let Some(typed) = typed else { continue };
        for time in 0..3 {
            assert!(learner.model().truth(&Input::from(typed)).is_some(), "{task}");
            assert!(file.reads() <= usize::from(time == 0), "{task}, asked {time} times before");
        }
    }
}
