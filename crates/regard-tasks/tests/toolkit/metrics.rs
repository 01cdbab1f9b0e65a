//! Metrics held against sacreBLEU's and scikit-learn's results, written by
//! `bench/fixtures/metrics.py`.

use regard_tasks::metric::{
    AnswerRule, Bleu, Confusion, Smoothing, Tokenization, chrf, chrf_plus_plus, mean_squared_error,
    permutation_test, perplexity, r_squared, span_scores, spans,
};
use serde::Deserialize;
use std::collections::HashMap;

#[derive(Deserialize)]
struct Fixture {
    corpora: Vec<Corpus>,
    classifications: Vec<Classification>,
    regressions: Vec<Regression>,
}

#[derive(Deserialize)]
struct Corpus {
    name: String,
    hypotheses: Vec<String>,
    references: Vec<Vec<String>>,
    /// By tokenization/smoothing.
    bleu: HashMap<String, KnownBleu>,
    /// By word order.
    chrf: HashMap<String, f64>,
}

#[derive(Deserialize)]
struct KnownBleu {
    score: f64,
    precisions: [f64; 4],
    correct: [usize; 4],
    total: [usize; 4],
    brevity: f64,
    hypothesis_length: usize,
    reference_length: usize,
}

#[derive(Deserialize)]
struct Classification {
    name: String,
    truth: Vec<String>,
    guess: Vec<String>,
    labels: Vec<String>,
    accuracy: f64,
    macro_f1: f64,
    micro_f1: f64,
    confusion: Vec<Vec<usize>>,
    precision: Vec<f64>,
    recall: Vec<f64>,
    f1: Vec<f64>,
    support: Vec<usize>,
}

#[derive(Deserialize)]
struct Regression {
    name: String,
    truth: Vec<f64>,
    guess: Vec<f64>,
    r2: f64,
    mean_squared_error: f64,
}

fn fixture() -> Fixture {
    serde_json::from_str(include_str!("../../../../fixtures/metrics.json")).expect("known scores")
}

#[track_caller]
fn near(ours: f64, known: f64, what: &str) {
    assert!((ours - known).abs() < 1e-9, "{what}: {ours} is not {known}");
}

/// All signs there are, instead of some.
fn by_enumeration(differences: &[f64]) -> f64 {
    let signed = |signs: usize| -> f64 {
        let each = differences.iter().enumerate();
        each.map(|(at, d)| if signs >> at & 1 == 1 { -d } else { *d }).sum::<f64>().abs()
    };
    let all = 1 << differences.len();
    let reached = (0..all).filter(|&signs| signed(signs) >= signed(0) - 1e-9).count();
    reached as f64 / all as f64
}

#[test]
fn a_permutation_test_draws_what_enumeration_counts() {
    let a = [0.9, 0.4, 0.8, 0.75, 0.3, 1.0, 0.55, 0.6, 0.95, 0.2];
    let b = [0.7, 0.5, 0.6, 0.70, 0.35, 0.8, 0.5, 0.1, 0.9, 0.25];
    for n in [4, 7, 10] {
        let differences: Vec<f64> = a[..n].iter().zip(&b[..n]).map(|(a, b)| a - b).collect();
        let (exact, drawn) = (by_enumeration(&differences), permutation_test(&a[..n], &b[..n]));
        // Ten thousand draws: five standard deviations of their mean.
        assert!((drawn.unwrap() - exact).abs() < 5.0 * 0.005, "{n}: {exact}");
    }
    assert!(permutation_test(&a, &b[..3]).is_err());
}

#[test]
fn bleu_is_sacrebleus() {
    let mut held = 0;
    for corpus in fixture().corpora {
        for (way, known) in &corpus.bleu {
            let (tokenization, smoothing) = way.split_once('/').unwrap();
            let smoothing =
                if smoothing == "exp" { Smoothing::Exponential } else { Smoothing::None };
            let tokenization = Tokenization::named(tokenization).unwrap();
            let ours =
                Bleu::smoothed(&corpus.hypotheses, &corpus.references, tokenization, smoothing)
                    .unwrap();
            let what = format!("{}, {way}", corpus.name);
            assert_eq!((ours.correct, ours.total), (known.correct, known.total), "{what}");
            assert_eq!(ours.hypothesis_length, known.hypothesis_length, "{what}");
            assert_eq!(ours.reference_length, known.reference_length, "{what}");
            near(ours.score, known.score, &what);
            near(ours.brevity, known.brevity, &what);
            for (ours, known) in ours.precisions.iter().zip(known.precisions) {
                near(*ours, known, &what);
            }
            held += 1;
        }
    }
    assert_eq!(held, 21 * 4 * 2);
}

#[test]
fn bleu_smooths_exponentially_unless_told_otherwise() {
    let line = ["a b x c d y"];
    let reference = [vec!["a b c d e f"]];
    let plain = Bleu::corpus(&line, &reference, Tokenization::Western).unwrap();
    assert!(plain.score > 0.0);
    let none = Bleu::smoothed(&line, &reference, Tokenization::Western, Smoothing::None).unwrap();
    assert_eq!(none.score, 0.0);
}

#[test]
fn chrf_is_sacrebleus() {
    for corpus in fixture().corpora {
        let Corpus { name, hypotheses, references, chrf: known, .. } = corpus;
        near(chrf(&hypotheses, &references).unwrap(), known["0"], &name);
        near(chrf_plus_plus(&hypotheses, &references).unwrap(), known["2"], &name);
    }
}

#[test]
fn a_missing_reference_is_refused_by_its_number() {
    let none: Vec<&str> = vec![];
    let error = Bleu::corpus(&["a", "b"], &[vec!["a"], none], Tokenization::Western).unwrap_err();
    assert_eq!(error.to_string(), "hypothesis 2 has no reference");
    let error = chrf(&["a", "b"], &[vec!["a"]]).unwrap_err();
    assert_eq!(error.to_string(), "there are 2 hypotheses for 1 sets of references");
}

#[test]
fn tokenizations_keep_sacrebleus_names_in_a_file() {
    for name in ["13a", "zh", "char", "none"] {
        let read: Tokenization = serde_json::from_value(name.into()).unwrap();
        assert_eq!(read, Tokenization::named(name).unwrap());
    }
}

#[test]
fn label_scores_are_scikit_learns() {
    for known in fixture().classifications {
        let place = |label: &String| known.labels.iter().position(|one| one == label).unwrap();
        let truth: Vec<usize> = known.truth.iter().map(place).collect();
        let guess: Vec<usize> = known.guess.iter().map(place).collect();
        let ours = Confusion::count(&truth, &guess, &known.labels).unwrap();
        assert_eq!(ours.counts, known.confusion, "{}", known.name);
        near(ours.accuracy(), known.accuracy, &known.name);
        near(ours.macro_f1(), known.macro_f1, &known.name);
        near(ours.micro_f1(), known.micro_f1, &known.name);
        for (at, line) in ours.table().iter().enumerate() {
            assert_eq!((&line.label, line.support), (&known.labels[at], known.support[at]));
            near(line.precision, known.precision[at], &known.name);
            near(line.recall, known.recall[at], &known.name);
            near(line.f1, known.f1[at], &known.name);
        }
    }
}

#[test]
fn a_label_that_never_occurs_does_not_lower_macro_f1() {
    let confusion = Confusion::count(&[0, 1], &[0, 1], &["a", "b", "never"]).unwrap();
    assert_eq!(confusion.macro_f1(), 1.0);
    assert_eq!(confusion.table()[2].f1, 0.0);
}

#[test]
fn labels_that_do_not_fit_are_refused() {
    let error = Confusion::count(&[0, 1], &[0], &["a", "b"]).unwrap_err();
    assert_eq!(error.to_string(), "there are 1 predictions for 2 labels");
    let error = Confusion::count(&[2], &[0], &["a", "b"]).unwrap_err();
    assert_eq!(error.to_string(), "label 2 is not among 2 labels");
    let nothing = Confusion::count(&[], &[], &["a"]).unwrap();
    assert_eq!((nothing.accuracy(), nothing.macro_f1()), (0.0, 0.0));
}

#[test]
fn regression_scores_are_scikit_learns() {
    for Regression { name, truth, guess, r2, mean_squared_error: error } in fixture().regressions {
        near(r_squared(&truth, &guess).unwrap(), r2, &name);
        near(mean_squared_error(&truth, &guess).unwrap(), error, &name);
    }
    assert!(r_squared::<f32>(&[], &[]).is_err());
}

#[test]
fn perplexity_of_a_uniform_guess_is_the_number_of_choices() {
    near(perplexity(7.0 * 50f64.ln(), 7), 50.0, "uniform");
}

#[derive(Deserialize)]
struct Answered {
    predicted: String,
    answers: Vec<String>,
    #[serde(flatten)]
    by_rule: HashMap<String, KnownAnswer>,
}

#[derive(Deserialize)]
struct KnownAnswer {
    exact: f64,
    f1: f64,
}

#[test]
fn answers_are_compared_as_the_scripts_of_squad_and_cmrc_do() {
    let known: Vec<Answered> =
        serde_json::from_str(include_str!("../../../../fixtures/answers.json")).unwrap();
    let mut held = 0;
    for Answered { predicted, answers, by_rule } in &known {
        for (name, known) in by_rule {
            let rule: AnswerRule = serde_json::from_value(name.as_str().into()).unwrap();
            let what = format!("{name}: {predicted:?} for {answers:?}");
            near(rule.exact_match(predicted, answers), known.exact, &what);
            near(rule.f1(predicted, answers), known.f1, &what);
            held += 1;
        }
    }
    assert_eq!(held, 3 * known.len());
    assert!(held > 1500, "{held}");
}

#[test]
fn spans_and_their_scores_are_those_of_seqeval() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/spans.json");
    let known: serde_json::Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    let cases = known["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 4);
    let mut seen = 0;
    for case in cases {
        let labels = |name: &str| -> Vec<Vec<String>> {
            serde_json::from_value(case[name].clone()).unwrap()
        };
        let (truth, guess) = (labels("truth"), labels("guess"));
        for (sentence, known) in truth.iter().zip(case["spans"].as_array().unwrap()) {
            let known: Vec<(String, usize, usize)> = serde_json::from_value(known.clone()).unwrap();
            let found = spans(sentence).into_iter().map(|span| (span.kind, span.first, span.last));
            assert_eq!(found.collect::<Vec<_>>(), known, "{sentence:?}");
            seen += known.len();
        }
        let scores = span_scores(&truth, &guess).unwrap();
        for (kind, known) in case["report"].as_object().unwrap() {
            let kind = if kind == "micro avg" { "" } else { kind };
            let Some(ours) = scores.get(kind) else {
                assert_eq!(known["support"], 0.0, "{kind}");
                continue;
            };
            let ours = [ours.precision, ours.recall, ours.f1, ours.support as f64];
            for (ours, name) in ours.iter().zip(["precision", "recall", "f1-score", "support"]) {
                let known = known[name].as_f64().unwrap();
                assert!((ours - known).abs() < 1e-12, "{kind} {name}: {ours}, seqeval {known}");
            }
        }
    }
    assert!(seen > 100, "{seen} spans");
}

#[test]
fn the_signature_is_what_sacrebleu_writes_and_names_the_version_of_the_fixtures() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/metrics.json");
    let known: serde_json::Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    for (name, signature) in known["signatures"].as_object().unwrap() {
        let ours = Tokenization::named(name).unwrap().signature();
        assert_eq!(ours, signature.as_str().unwrap());
    }
    assert_eq!(known["signatures"].as_object().unwrap().len(), 4);
}
