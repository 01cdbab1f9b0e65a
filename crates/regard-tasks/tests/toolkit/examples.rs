//! Inputs that name an example of the data, as `test:1`, in every task.

use regard_tasks::task::{Input, Part};
use regard_tasks::tasks::{task_named, tasks};

const SMALL: [(&str, &[&str]); 14] = [
    ("regress", &["size=60"]),
    ("translate", &["size=60", "embedding=8", "score_hidden=8", "hidden=8", "max_output_length=5"]),
    ("summarize", &["size=60", "embedding=8", "score_hidden=8", "hidden=8", "max_output_length=5"]),
    (
        "transcribe",
        &["size=20", "embedding=8", "score_hidden=8", "hidden=8", "max_output_length=5"],
    ),
    ("caption", &["size=20", "embedding=8", "score_hidden=8", "hidden=8", "max_output_length=5"]),
    ("draw", &["size=20", "embedding=8", "hidden=8", "heads=2", "image_size=16", "patch_size=8"]),
    ("answer", &["size=60", "embedding=8", "hidden=8"]),
    ("label", &["size=60", "embedding=8", "hidden=8"]),
    ("label", &["size=20", "kind=sound", "hidden=8", "heads=2"]),
    ("classify", &["size=60", "embedding=8", "hidden=8"]),
    ("classify", &["size=20", "kind=audio", "hidden=8"]),
    ("image", &["size=20"]),
    ("graph", &[]),
    ("graph", &["embedded=touching", "size=60"]),
];

#[test]
fn an_example_is_named_alike_in_every_task() {
    for task in tasks() {
        assert!(SMALL.iter().any(|(name, _)| *name == task.name()), "{}", task.name());
    }
    for (task, settings) in SMALL {
        let options = task_named(task).unwrap().options().unwrap();
        let options = settings.iter().fold(options, |options, s| options.set(s).unwrap());
        let learner = task_named(task).unwrap().begin(&options.set_by_nobody()).unwrap();
        let model = learner.model();
        let form = model.asks().form;
        let named = |text: &str| Input::named(form, text).unwrap();
        let [ours, theirs] = [named("test:1"), Input::example(Part::Test, 1)]
            .map(|input| model.predict(&[input]).unwrap());
        assert_eq!(ours, theirs, "{task} {settings:?}");
        assert_ne!(ours, model.predict(&[named("test:2")]).unwrap(), "{task} {settings:?}");
        // What is shown is the example as well, and its truth is known.
        assert_eq!(model.truth(&named("test:1")), model.truth(&Input::example(Part::Test, 1)));
        assert!(model.truth(&named("test:1")).is_some(), "{task} {settings:?}");
        let error = model.predict(&[named("test:100000")]).unwrap_err().to_string();
        assert!(error.contains("test:100000`: the part has ") || error.contains("no image 100000"));
    }
}
