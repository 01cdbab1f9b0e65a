//! `summarize`, from data to pictures, and copying in `translate`.

use crate::course;

use course::{Course, refusal, resumes_exactly};
use regard_data::toy;
use regard_picture::scene::Scene;
use regard_tasks::task::Part;

/// Small enough for seconds.
const SMALL: [&str; 6] =
    ["size=300", "embedding=16", "hidden=32", "score_hidden=16", "batch_size=16", "epochs=2"];

fn with<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&SMALL[..], more].concat()
}

fn score(course: &Course, name: &str) -> f64 {
    course.model().evaluate(Part::Test).unwrap().scores.get(name).unwrap()
}

#[test]
fn no_name_of_one_report_is_in_another() {
    let reports = toy::reports(400, 1).unwrap();
    let names = |text: &str| -> Vec<String> {
        let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
        let made = |word: &&str| word.starts_with(char::is_uppercase);
        words.filter(made).map(str::to_string).collect()
    };
    let mut seen = std::collections::HashMap::new();
    for (text, _) in &reports {
        let mut own = names(text);
        own.sort();
        own.dedup();
        for name in own {
            *seen.entry(name).or_insert(0) += 1;
        }
    }
    // What occurs in several reports begins a sentence or is a day; it is no name.
    let common: Vec<_> =
        seen.iter().filter(|(_, count)| **count > 1).map(|(name, _)| name).collect();
    assert!(common.len() < 25, "{common:?}");
    assert!(seen.len() > 1500, "{} names", seen.len());
    for (text, headline) in &reports {
        for name in names(headline).iter().filter(|name| *name != "Fire") {
            assert!(text.contains(name.as_str()), "{headline} of {text}");
        }
    }
}

#[test]
fn with_copying_names_never_seen_come_out_right() {
    let settings = [
        "size=1200",
        "epochs=8",
        "embedding=32",
        "hidden=48",
        "score_hidden=32",
        "batch_size=16",
        "learning_rate=0.006",
    ];
    let copying = Course::done("summarize", &settings);
    let without = Course::done("summarize", &[&settings[..], &["copy=false"]].concat());
    let (with, without) = (score(&copying, "ROUGE-L"), score(&without, "ROUGE-L"));
    assert!(with > without + 10.0, "ROUGE-L of {with} with copying, {without} without");
    let text = "The weather was fine. Zorblax Quimby won the chess prize of Wexington last Monday.";
    let answer = copying.model().predict(&[text.into()]).unwrap().remove(0);
    let copied = ["Zorblax", "Quimby", "Wexington"].iter().filter(|n| answer.output.contains(**n));
    assert!(copied.count() >= 2, "{}", answer.output);
    assert!(!copying.drawn(text).is_empty());
    let scenes = copying.model().show(&text.into()).unwrap();
    let Scene::Maps(maps) = &scenes[0].1 else { panic!("{scenes:?}") };
    assert!(maps.columns.contains(&"Zorblax".to_string()));
    // A name is copied, and from where it stands; the end, which no source has, is not.
    let Scene::Maps(copied) = &scenes[1].1 else { panic!("{scenes:?}") };
    assert_eq!(
        (&scenes[1].0[..], &copied.rows, &copied.columns),
        ("copied", &maps.rows, &maps.columns)
    );
    let n = copied.columns.len();
    let share = |word: &str| -> f32 {
        let row = copied.rows.iter().position(|row| row == word).unwrap();
        copied.maps[0].weights[row * n..][..n].iter().sum()
    };
    assert!(share("<end>") < 0.1, "{}", share("<end>"));
    for name in ["Zorblax", "Quimby", "Wexington"].iter().filter(|n| answer.output.contains(**n)) {
        assert!(share(name) > 0.5, "{name}: {}", share(name));
    }
    for name in ["ROUGE-1", "ROUGE-2", "perplexity", "exact"] {
        assert!(score(&copying, name).is_finite(), "{name}");
    }
}

#[test]
fn stopped_and_resumed_or_straight_the_bits_are_the_same() {
    resumes_exactly("summarize", &with(&["dropout=0.1", "scheduled_sampling=0.2"]), 25);
}

#[test]
fn every_kind_of_model_copies() {
    let kinds: [&[&str]; 5] = [
        &["encoder=lstm", "decoder=lstm"],
        &["encoder=cnn", "decoder=cnn", "layers=2"],
        &[
            "encoder=transformer",
            "decoder=transformer",
            "context=multi-head",
            "heads=2",
            "feed_forward=32",
        ],
        &[
            "weighting=sparsemax",
            "shared_vocabulary=true",
            "tied_embeddings=all",
            "tokenizer=whitespace",
        ],
        &["weighting=sample", "tokenizer=characters", "max_length=600"],
    ];
    for kind in kinds {
        let course = Course::done("summarize", &with(&[&["size=60", "epochs=1"], kind].concat()));
        let text = "Bado Kelnar sold a boat near Mirby to Tosa Gelim on Friday.";
        assert_eq!(course.model().predict(&[text.into()]).unwrap().len(), 1, "{kind:?}");
        assert_eq!(course.drawn(text)[..2], ["alignment", "copied"], "{kind:?}");
    }
}

#[test]
fn translate_copies_where_it_is_asked_to() {
    let small = ["embedded=dates", "tokenizer=characters", "size=200", "epochs=1", "hidden=16"];
    let course =
        Course::done("translate", &[&small[..], &["copy=true", "score_hidden=16"]].concat());
    assert_eq!(course.model().predict(&["May 3, 1999".into()]).unwrap().len(), 1);
    resumes_exactly("translate", &[&small[..], &["copy=true", "score_hidden=16"]].concat(), 3);
}

#[test]
fn what_cannot_be_copied_or_read_is_told_in_a_sentence() {
    assert_eq!(
        refusal("summarize", &["tokenizer=bpe"]),
        "`model.copy` copies whole words; `text.tokenizer=bpe` has pieces of them, of which none is \
         unknown"
    );
    assert_eq!(
        refusal("summarize", &["context=fixed"]),
        "`model.copy` copies what is attended to, and `model.context=fixed` attends to nothing"
    );
    assert!(refusal("summarize", &with(&["weighting=sigmoid"])).contains("sum to 1"));
    assert_eq!(
        refusal("summarize", &["fixed=mean"]),
        "`model.fixed=mean` has no effect with `model.context=attention`; it needs `model.context` to be fixed"
    );
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pairs.tsv");
    std::fs::write(&path, "a long text\tshort\nno tab here\n").unwrap();
    let told = refusal("summarize", &[&format!("train_pairs={}", path.display())]);
    assert!(told.ends_with(
        "pairs.tsv, line 2: source and target with a tab between were expected, 1 column is there"
    ), "{told}");
}

#[test]
fn a_fixed_vector_of_every_kind_serves_translation() {
    let small = ["embedded=dates", "tokenizer=characters", "size=60", "epochs=1", "hidden=16"];
    for fixed in ["last", "mean", "max", "learned"] {
        for encoder in ["gru", "cnn", "transformer"] {
            let (fixed, encoder) = (format!("fixed={fixed}"), format!("encoder={encoder}"));
            let more = ["context=fixed", &fixed, &encoder, "score_hidden=16", "heads=2"];
            let course = Course::done("translate", &[&small[..], &more].concat());
            assert_eq!(course.model().predict(&["May 3".into()]).unwrap().len(), 1);
        }
    }
}

#[test]
fn every_line_has_an_output_and_a_longer_text_is_read_so_far() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("test.tsv");
    let lines = "a report of a fire in a town by the sea\tfire\n\nnobody knows\tnews\n\tlost\n";
    std::fs::write(&file, lines).unwrap();
    let test = format!("test_pairs={}", file.display());
    let course = Course::done("summarize", &with(&["epochs=1"]));
    let own = course.options.clone().set(&test).unwrap().set("max_length=4").unwrap();
    let model = course.run.model(&own).unwrap();
    let report = model.evaluate(Part::Test).unwrap();
    assert_eq!((report.examples, report.outputs.len()), (2, 4));
    assert!(!report.outputs[0].is_empty() && !report.outputs[2].is_empty());
    assert!(report.outputs[1].is_empty() && report.outputs[3].is_empty());
    assert!(report.notes[0].starts_with("2 of 4 lines lack a source or a target"), "{report:?}");
    let told = "1 of 4 sources have more than `data.max_length` = 4 tokens, and were read so far";
    assert_eq!(report.notes[1], told);
    let each = report.each.unwrap();
    assert_eq!((&each.measure[..], each.values.len()), ("ROUGE-L", 2));
    let predicted = |text: &str| model.predict(&[text.into()]).unwrap().remove(0).output;
    assert_eq!(predicted("a report of a fire in a town"), predicted("a report of a"));
    assert_eq!(predicted(" "), "");
    assert!(model.show(&"".into()).unwrap_err().to_string().contains("nothing to look at"));
}

#[test]
fn summaries_in_other_scripts_are_counted_by_default() {
    let folder = tempfile::tempdir().unwrap();
    for (text, summary, counts) in [
        ("一场 大火 烧毁 了 海边 的 房子", "海边火灾", "characters"),
        ("اندلع حريق كبير في بيت قرب البحر", "حريق قرب البحر", "unicode"),
        ("שריפה גדולה פרצה בבית ליד הים", "שריפה ליד הים", "unicode"),
    ] {
        let file = folder.path().join("pairs.tsv");
        std::fs::write(&file, format!("{text}\t{summary}\n").repeat(60)).unwrap();
        let train = format!("train_pairs={}", file.display());
        let course = Course::done("summarize", &with(&[&train, "epochs=6", "learning_rate=0.02"]));
        let report = course.model().evaluate(Part::Test).unwrap();
        assert_eq!(report.samples[0].2, report.samples[0].1, "{summary}");
        assert_eq!(report.scores.get("ROUGE-L"), Some(100.0), "{summary}");
        assert!(report.notes.iter().any(|note| note.contains(counts)), "{:?}", report.notes);
    }
}
