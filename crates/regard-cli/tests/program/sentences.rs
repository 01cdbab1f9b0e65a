//! The sentences that help and READMEs ask the embedded models about.

use crate::file::regard;
use regard_tasks::options::Options;
use regard_tasks::task::Model;
use regard_tasks::tasks::task_named;
use std::path::Path;

/// Every sentence that a text gives to a run of a task's embedded data.
fn sentences(text: &str, task: &str) -> Vec<String> {
    let asked = |line: &str| -> Option<String> {
        let (_, rest) = line.split_once(&format!("runs/{task} "))?;
        let quoted = rest.trim_start().strip_prefix('"')?;
        Some(quoted.split_once('"')?.0.to_string())
    };
    text.lines().filter_map(asked).collect()
}

/// All that is said about the program: every page of help, and the READMEs.
fn told() -> String {
    let mut all = String::new();
    for verb in ["", "train", "predict", "show", "eval", "explore", "serve", "compare", "data"] {
        let words: Vec<&str> = [verb, "--help"].into_iter().filter(|w| !w.is_empty()).collect();
        all.push_str(&String::from_utf8(regard(&words).stdout).unwrap());
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for file in ["README.md", "README.zh.md", "crates/regard-cli/README.md"] {
        all.push_str(&std::fs::read_to_string(root.join(file)).unwrap());
    }
    all
}

/// Every sentence that the Python package's README and its notebook about a run ask of `translate`.
fn asked_in_python() -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python");
    let mut asked = Vec::new();
    for file in ["README.md", "examples/a_run_explored.ipynb"] {
        let text = std::fs::read_to_string(root.join(file)).unwrap().replace("\\\"", "\"");
        for line in text.lines() {
            for call in ["run.predict(", "run.attention(", "run.show("] {
                let Some((_, rest)) = line.split_once(call) else { continue };
                // One in quotes, or several in brackets.
                let end = rest.find(')').unwrap();
                asked.extend(
                    rest[..end]
                        .split('"')
                        .skip(1)
                        .step_by(2)
                        .filter(|s| s.contains(' '))
                        .map(str::to_string),
                );
            }
        }
    }
    asked
}

/// The words of a vocabulary, as a run keeps it.
fn vocabulary(task: &str) -> String {
    let options: Options = task_named(task).unwrap().options().unwrap();
    let learner = task_named(task).unwrap().begin(&options).unwrap();
    let model: &dyn Model = learner.model();
    model.vocabulary().unwrap()
}

/// What each of them is to be answered.
const ANSWERS: [(&str, &str, &str); 3] = [
    ("translate", "she is drawing a bird", "她正在画一只鸟"),
    ("translate", "the children bought three red books yesterday", "孩子们昨天买了三本红色的书"),
    ("label", "I saw a saw", "I/PRON saw/VERB a/DET saw/NOUN"),
];

fn answer(task: &str, sentence: &str) -> Option<&'static str> {
    let found = ANSWERS.iter().find(|(of, asked, _)| (*of, *asked) == (task, sentence));
    found.map(|(_, _, answer)| *answer)
}

/// Where `.ci/explorer` has trained the runs of the test below.
const RUNS: &str = "REGARD_SENTENCES";

#[test]
#[ignore = "trains two models with the options that a reader has, for minutes, or is told where they are"]
fn the_embedded_models_get_right_what_help_and_readmes_ask() {
    let folder = tempfile::tempdir().unwrap();
    let trained = std::env::var_os(RUNS).map(std::path::PathBuf::from);
    let mut asked = 0;
    for task in ["translate", "label"] {
        let run = trained.as_deref().unwrap_or(folder.path()).join(format!("sentences-{task}"));
        let run = run.display().to_string();
        if trained.is_none() {
            assert!(regard(&["train", task, "--out", &run]).status.success());
        }
        let mut all = sentences(&told(), task);
        all.extend(asked_in_python().into_iter().filter(|_| task == "translate"));
        all.sort();
        all.dedup();
        for sentence in all {
            let told = String::from_utf8(regard(&["predict", &run, &sentence]).stdout).unwrap();
            assert_eq!(told.lines().next(), answer(task, &sentence), "{sentence}");
            asked += 1;
        }
    }
    assert!(asked >= 3, "{asked}");
}

#[test]
fn help_and_readmes_ask_the_embedded_models_what_they_know() {
    let told = told();
    let mut asked = 0;
    for (task, least) in [("translate", 6), ("label", 1)] {
        let sentences = sentences(&told, task);
        assert!(sentences.len() >= least, "{task}: {sentences:?}");
        let known = vocabulary(task);
        for sentence in &sentences {
            for word in sentence.split_whitespace() {
                let small = word.to_lowercase();
                let is_known = [word, &small].iter().any(|w| known.contains(&format!("\"{w}\"")));
                assert!(is_known, "{task} does not know `{word}` of `{sentence}`");
            }
            assert!(answer(task, sentence).is_some(), "what is the answer to `{sentence}`?");
            asked += 1;
        }
    }
    assert!(asked >= 7);
    let in_python = asked_in_python();
    assert!(in_python.len() >= 7, "{in_python:?}");
    for sentence in &in_python {
        assert!(answer("translate", sentence).is_some(), "what is the answer to `{sentence}`?");
    }
    // `regard serve` has its sentences in JSON.
    let served = told.matches("{\"input\": \"she is drawing a bird\"}").count();
    assert_eq!(served, 1);
}
