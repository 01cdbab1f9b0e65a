//! What the program says about itself.

use crate::file::regard;

/// All that the program does.
const VERBS: [&str; 21] = [
    "train",
    "eval",
    "predict",
    "show",
    "ablate",
    "heads",
    "explain",
    "compare",
    "explore",
    "serve",
    "list",
    "options",
    "init",
    "data",
    "export",
    "import",
    "attend",
    "bench",
    "info",
    "completions",
    "man",
];

fn said(arguments: &[&str]) -> String {
    let output = regard(arguments);
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn every_verb_has_help_with_examples() {
    for verb in [""].into_iter().chain(VERBS) {
        let verb = Some(verb).filter(|verb| !verb.is_empty());
        let help = said(&[verb.as_slice(), &["--help"]].concat());
        assert!(help.contains("Usage: regard") && help.contains("Examples:\n"), "{help}");
    }
}

#[test]
fn the_examples_of_the_help_are_accepted() {
    let mut examples = 0;
    for verb in VERBS {
        let help = said(&[verb, "--help"]);
        let lines = help.lines().filter_map(|line| line.trim().strip_prefix("regard "));
        for line in lines {
            // What follows is for people, or for the shell.
            let line = line.split(['#', '>', '|', '&']).next().unwrap();
            let quoted = line.split('"').enumerate();
            let arguments: Vec<&str> = quoted
                .flat_map(|(i, part)| match i % 2 {
                    0 => part.split_whitespace().collect(),
                    _ => vec![part],
                })
                .collect();
            // Options are read before the words after them are looked at.
            let output = regard(&[&arguments[..], &["--help"]].concat());
            assert!(output.status.success(), "{line}: {output:?}");
            examples += 1;
        }
    }
    assert!(examples >= 10);
}

#[test]
fn every_option_and_tensor_of_attend_is_in_its_help() {
    let help = said(&["attend", "--help"]);
    let options = [
        "score",
        "scale",
        "activation",
        "negative-slope",
        "causal",
        "window",
        "normalizer",
        "offset",
        "dropout",
        "seed",
        "dtype",
        "threads",
        "isa",
        "weights",
        "weights-before-dropout",
        "lse",
        "reference",
    ];
    for option in options {
        assert!(help.contains(&format!("--{option}")), "--{option}");
    }
    for tensor in regard_cli::inputs::NAMES.into_iter().chain(regard_cli::projected::NAMES) {
        assert!(help.contains(tensor), "{tensor}");
    }
}

#[test]
fn info_names_the_instruction_sets_and_the_threads() {
    let info = said(&["info", "--threads", "3", "--isa", "portable"]);
    let value = |name: &str| {
        let line = info.lines().find(|line| line.starts_with(name)).unwrap();
        line[name.len()..].trim().to_owned()
    };
    assert_eq!(value("threads"), "3");
    assert_eq!(value("used"), "portable");
    assert!(value("instruction sets").ends_with("portable"));
    assert_eq!(value("version"), env!("CARGO_PKG_VERSION"));
}

#[test]
fn wrong_usage_ends_with_status_2() {
    for arguments in [
        &["attend"][..],
        &["attend", "in"],
        &["atend"],
        &["attend", "in", "--out", "out", "--score", "sine"],
        &["attend", "in", "--out", "out", "--threads", "0"],
        &["attend", "in", "--out", "out", "--window", "3"],
        &["attend", "in", "--out", "out", "--window", "-1,2"],
        &["attend", "in", "--out", "out", "--seed", "-1"],
        &["bench", "--pass", "backward"],
        &["bench", "--threads", "0"],
        &["bench", "--threads", "65535"],
    ] {
        let output = regard(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(String::from_utf8(output.stderr).unwrap().starts_with("error: "), "{arguments:?}");
    }
}

/// The inputs that a text shows for a task's run, as `runs/translate "…"`.
fn shown_inputs(text: &str, task: &str) -> Vec<String> {
    let before = format!("runs/{task} \"");
    let behind = text.split(before.as_str()).skip(1);
    behind.filter_map(|rest| rest.split('"').next()).map(str::to_string).collect()
}

#[test]
fn models_of_embedded_data_know_every_word_of_the_examples() {
    let readme = |path: &str| {
        std::fs::read_to_string(std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(path))
            .unwrap()
    };
    let texts = [
        said(&["--help"]),
        said(&["predict", "--help"]),
        said(&["show", "--help"]),
        said(&["explore", "--help"]),
        readme("README.md"),
        readme("../../README.md"),
        readme("../../README.zh.md"),
    ];
    let mut count = 0;
    for (task, more) in [("translate", &["beam=1", "max_output_length=2"][..]), ("label", &[])] {
        let task = regard_tasks::tasks::task_named(task).unwrap();
        let options = more.iter().fold(task.options().unwrap(), |o, s| o.set(s).unwrap());
        let learner = task.begin(&options).unwrap();
        for sentence in texts.iter().flat_map(|text| shown_inputs(text, task.name())) {
            let found = learner.model().predict(&[sentence.clone().into()]).unwrap();
            assert_eq!(found[0].unknown_words(), [""; 0], "{sentence}");
            count += 1;
        }
    }
    assert!(count >= 7, "{count} sentences");
}
