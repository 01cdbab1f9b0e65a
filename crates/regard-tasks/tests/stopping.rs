//! Trainings that are stopped outside their batches, and splits that lose no label.

#![allow(clippy::unwrap_used)]

#[allow(dead_code, reason = "other tests use the rest of it")]
mod course;

use course::{Course, options};
use regard_data::{Watch, watch};
use regard_tasks::tasks::task_named;
use regard_tasks::train::{Ended, Silent};
use std::sync::atomic::{AtomicUsize, Ordering};

const SETTINGS: [&str; 5] = ["size=200", "epochs=3", "batch_size=16", "embedding=16", "hidden=16"];

/// How often it is still asked before somebody stops it.
static LEFT: AtomicUsize = AtomicUsize::new(usize::MAX);

#[test]
fn stopped_while_it_is_validated_a_training_goes_on_with_the_same_bits() {
    let few = ["size=60", "epochs=2", "batch_size=16", "hidden=16"];
    let writing = [&few[..], &["embedding=16", "score_hidden=16"]].concat();
    for (task, settings) in [
        ("classify", SETTINGS.to_vec()),
        ("label", SETTINGS.to_vec()),
        ("label", [&few[..], &["kind=sound"]].concat()),
        ("translate", [&SETTINGS[..], &["embedded=dates", "score_hidden=16"]].concat()),
        ("summarize", writing.clone()),
        ("transcribe", writing.clone()),
        ("caption", writing.clone()),
        ("draw", [&writing[..], &["image_size=16", "patch_size=8"]].concat()),
        ("answer", SETTINGS.to_vec()),
        ("image", vec!["size=200", "epochs=2", "batch_size=16", "hidden=16"]),
    ] {
        let straight = Course::done(task, &settings);
        let stopped = Course::new(task, &settings);
        let stop = || LEFT.fetch_sub(1, Ordering::SeqCst) == 0;
        watch(Some(Watch { progress: |_, _, _| (), stop }));
        // At the first step of a validation, then at the second, and so on until it gets through.
        let mut stops = 0;
        LEFT.store(stops, Ordering::SeqCst);
        while stopped.go_on(&mut Silent) == Ended::Stopped {
            stops += 1;
            LEFT.store(stops, Ordering::SeqCst);
        }
        watch(None);
        assert!(stops > 0, "{task}");
        assert_eq!(stopped.records(), straight.records(), "{task}");
        for file in ["best.safetensors", "last.safetensors", "metrics.jsonl", "curves.svg"] {
            let bytes = |course: &Course| std::fs::read(course.run.path(file)).unwrap();
            assert!(bytes(&stopped) == bytes(&straight), "{task}: {file}");
        }
    }
}

#[test]
fn a_random_split_has_its_share_of_every_label() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("texts.tsv");
    // A hundred of one label, thirty of another, one of a third.
    let labels = [("many", 100), ("some", 30), ("one", 1)];
    let lines = labels.iter().flat_map(|&(label, n)| {
        (0..n).map(move |i| format!("{label}\ttext number {i} of {label}\n"))
    });
    std::fs::write(&file, lines.collect::<String>()).unwrap();
    let train = format!("train={file:?}");
    for seed in 1..6 {
        let seed = format!("held_out_seed={seed}");
        let own = options("classify", &[&train, &seed, "held_out=0.1"]);
        let described = task_named("classify").unwrap().describe(&own).unwrap();
        let expected = [("many", 80), ("some", 24), ("one", 1)];
        assert_eq!(described.labels.len(), 3);
        for ((label, count), (name, about)) in described.labels.iter().zip(expected) {
            assert_eq!(label, name);
            assert!(count.abs_diff(about) <= 2, "{label}: {count}");
        }
        for fact in [
            ("unseen in validation", "none"),
            ("unseen in test", "none"),
            ("validation examples", "13"),
            ("test examples", "13"),
        ] {
            let fact = (fact.0.to_string(), fact.1.to_string());
            assert!(described.facts.contains(&fact), "{:?}", described.facts);
        }
    }
}
