//! The task `label`, from end to end.

use crate::corpus;
use crate::course;

use corpus::corpus;
use course::{Course, options, refusal, resumes_exactly};
use regard_picture::scene::Scene;
use regard_tasks::Result;
use regard_tasks::options::Options;
use regard_tasks::task::{Input, Part, Report};
use regard_tasks::tasks::task_named;
use std::path::{Path, PathBuf};

const SMALL: [&str; 8] = [
    "size=200",
    "epochs=8",
    "batch_size=16",
    "learning_rate=0.005",
    "embedding=24",
    "hidden=24",
    "layers=1",
    "warmup_steps=0",
];

fn small<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&SMALL[..], more].concat()
}

fn learned(more: &[&str]) -> Course {
    Course::done("label", &small(more))
}

fn written(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    path
}

#[test]
fn every_model_learns_the_embedded_sentences_far_beyond_chance() -> Result<()> {
    let models: [&[&str]; 9] = [
        // Without a residual path it has to learn first to look at the word itself.
        &["encoder=self-attention", "epochs=24", "learning_rate=0.01"],
        &[
            "encoder=self-attention",
            "epochs=24",
            "learning_rate=0.01",
            "key_width=9",
            "bias=true",
            "window=2",
        ],
        &["encoder=transformer", "heads=3", "key_width=4", "value_width=6", "bias=false"],
        &["encoder=none", "head_hidden=32"],
        &["encoder=none", "neighbors=1", "head_hidden=32"],
        &["encoder=lstm"],
        &["encoder=transformer", "heads=2"],
        &["encoder=transformer", "heads=2", "window=1"],
        &["encoder=gru", "characters=true", "word_dropout=0.3"],
    ];
    for model in models {
        // The commonest label is true of under a third of the words.
        let (_, accuracy) = learned(model).model().evaluate(Part::Test)?.scores.first();
        assert!(accuracy > 0.7, "{model:?}: {accuracy}");
    }
    Ok(())
}

#[test]
fn those_who_see_the_neighbors_tell_ambiguous_words_apart_better_than_one_who_does_not()
-> Result<()> {
    let several = |model: &[&str]| -> Result<f64> {
        let course = learned(&[model, &["size=400"]].concat());
        let groups = course.model().evaluate(Part::Test)?.groups.unwrap();
        let of = |(name, _): &&(String, f64)| name.starts_with("several");
        Ok(groups.values.iter().find(of).unwrap().1)
    };
    let alone = several(&["encoder=none", "head_hidden=32"])?;
    let recurrent = several(&["encoder=gru"])?;
    assert!(recurrent > alone + 0.1, "{recurrent} and {alone}");
    Ok(())
}

#[test]
fn a_run_ends_with_the_same_bits_whether_interrupted_or_not() {
    let short = ["size=100", "epochs=2"];
    let letters = ["encoder=lstm", "dropout=0.3", "word_dropout=0.5", "characters=true"];
    resumes_exactly("label", &small(&[&short[..], &letters, &["ema_decay=0.9"]].concat()), 3);
    let attention = ["encoder=transformer", "heads=2", "accumulation_steps=2", "schedule=plateau"];
    resumes_exactly("label", &small(&[&short[..], &attention].concat()), 2);
}

#[test]
fn the_same_seed_gives_the_same_measures_and_another_gives_others() {
    let records = |seed| learned(&["size=60", "epochs=2", "dropout=0.3", seed]).records();
    assert_eq!(records("seed=1"), records("seed=1"));
    assert_ne!(records("seed=1"), records("seed=2"));
}

#[test]
fn predictions_name_every_word_and_its_probability() -> Result<()> {
    let course = learned(&["encoder=gru"]);
    let model = course.model();
    let inputs = ["I saw a saw.", "", "unseen 单词"].map(Input::from);
    let predictions = model.predict(&inputs)?;
    let words: Vec<_> = predictions[0].output.split(' ').collect();
    assert_eq!(words.len(), 5);
    assert_eq!((words[0], words[4]), ("I/PRON", "./PUNCT"));
    assert_eq!(predictions[1].output, "");
    assert_eq!(predictions[2].output.split(' ').count(), 3);
    let probabilities = predictions[0].details["probabilities"].as_array().unwrap();
    assert!(probabilities.iter().all(|p| (0.05..=1.0).contains(&p.as_f64().unwrap())));
    // Alone or among others, a sentence has the same labels.
    assert_eq!(model.predict(&inputs[..1])?[0].output, predictions[0].output);
    Ok(())
}

#[test]
fn a_report_has_measures_confusion_and_a_line_for_every_sentence() -> Result<()> {
    let course = learned(&["encoder=gru", "epochs=1"]);
    let report = course.model().evaluate(Part::Validation)?;
    let confusion = report.confusion.unwrap();
    assert_eq!(confusion.counts.concat().iter().sum::<usize>(), report.examples);
    assert_eq!(report.outputs.len(), 50);
    assert_eq!(report.scores.get("accuracy"), Some(confusion.accuracy()));
    assert!(report.scores.get("macro F1").is_some() && report.scores.get("loss").is_some());
    assert_eq!(report.samples.len(), 3);
    Ok(())
}

#[test]
fn attention_is_drawn_head_by_head_and_a_window_shows_as_zeros_beyond_it() -> Result<()> {
    let course =
        learned(&["encoder=transformer", "heads=2", "layers=2", "window=1", "epochs=1", "size=60"]);
    let model = course.model();
    let sentence = "I saw a saw .";
    assert_eq!(course.drawn(sentence), ["self-attention"]);
    let Some((_, Scene::Maps(maps))) = model.show(&sentence.into())?.pop() else {
        panic!("no maps")
    };
    assert_eq!((maps.maps.len(), &maps.maps[3].name[..]), (4, "layer 2, head 2"));
    assert!(maps.rows[0].starts_with("I/") && maps.columns[1] == "saw");
    assert!(maps.row_axis.contains("1 on each side"));
    for map in &maps.maps {
        for (row, weights) in map.weights.chunks(5).enumerate() {
            let sum: f32 = weights.iter().sum();
            assert!((sum - 1.0).abs() < 1e-5);
            let beyond = weights.iter().enumerate().filter(|(column, _)| column.abs_diff(row) > 1);
            assert!(beyond.into_iter().all(|(_, &weight)| weight == 0.0));
        }
    }
    Ok(())
}

#[test]
fn bare_self_attention_has_three_matrices_and_is_drawn() -> Result<()> {
    let settings = ["encoder=self-attention", "heads=1", "epochs=1", "size=60", "window=2"];
    let course = learned(&[&settings[..], &["layers=3", "key_width=5"]].concat());
    let model = course.model();
    let all = model.parameters().tensors();
    let own: Vec<_> = all.iter().filter(|(name, _)| name.starts_with("encoder.")).collect();
    let shapes: Vec<_> = own.iter().map(|(name, x)| (&name[8..], x.shape())).collect();
    let known: [(&str, &[usize]); 3] =
        [("W_k.weight", &[5, 24]), ("W_q.weight", &[5, 24]), ("W_v.weight", &[24, 24])];
    assert_eq!(shapes, known);
    let sentence = "I saw a saw .";
    assert_eq!(course.drawn(sentence), ["self-attention"]);
    let Some((_, Scene::Maps(maps))) = model.show(&sentence.into())?.pop() else {
        panic!("no maps")
    };
    assert_eq!(maps.maps.len(), 1);
    // Six cells lie further than two words from the diagonal.
    assert_eq!(maps.maps[0].masked.iter().filter(|hidden| **hidden).count(), 6);
    Ok(())
}

#[test]
fn a_model_without_attention_says_so() -> Result<()> {
    for encoder in ["encoder=none", "encoder=gru"] {
        let course = learned(&[encoder, "epochs=1", "size=60"]);
        let error = course.model().show(&"I saw a saw".into()).unwrap_err().to_string();
        assert!(error.starts_with("this model attends to nothing"), "{error}");
    }
    Ok(())
}

/// A file in CoNLL-U of so many sentences.
fn universal(sentences: usize) -> String {
    let line = |place: usize, word: &str, upos: &str, xpos: &str| {
        format!("{place}\t{word}\t_\t{upos}\t{xpos}\t_\t_\t_\t_\t_\n")
    };
    (0..sentences)
        .map(|n| {
            let name = format!("w{}", n % 5);
            format!("# {n}\n{}{}\n", line(1, &name, "NOUN", "NN"), line(2, "runs", "VERB", "VBZ"))
        })
        .collect()
}

#[test]
fn own_files_are_read_with_any_column_and_held_out_parts() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let train = written(folder.path(), "train.conllu", &universal(40));
    let train = format!("train=\"{}\"", train.display());
    let course = learned(&[&train, "column=xpos", "encoder=gru", "epochs=6"]);
    let report = course.model().evaluate(Part::Test)?;
    assert_eq!(report.examples, 8);
    assert!(report.confusion.unwrap().labels.contains(&"VBZ".to_string()));
    let predicted = course.model().predict(&["w1 runs".into()])?;
    assert_eq!(predicted[0].output, "w1/NN runs/VBZ");

    // Two columns, in another encoding, as a test of the same run.
    let test = folder.path().join("test.txt");
    std::fs::write(&test, b"gr\xfcn NN\nruns VBZ\n").unwrap();
    let options = course.options.clone().set(&format!("test=\"{}\"", test.display()))?;
    let error = course.run.model(&options)?.evaluate(Part::Test).unwrap_err().to_string();
    assert!(error.contains("test.txt, line 1: these bytes are not UTF-8"), "{error}");
    let options = options.set("encoding=latin1")?;
    assert_eq!(course.run.model(&options)?.evaluate(Part::Test)?.examples, 2);
    Ok(())
}

#[test]
fn the_held_out_sentences_are_the_same_for_every_seed_of_training() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let train = written(folder.path(), "train.conllu", &universal(40));
    let train = format!("train=\"{}\"", train.display());
    let samples = |more: &str| -> Result<Vec<String>> {
        let options = options("label", &small(&[&train, more]));
        Ok(task_named("label")?.begin(&options)?.samples(4))
    };
    assert_eq!(samples("training.seed=1")?, samples("training.seed=2")?);
    assert_ne!(samples("held_out_seed=1")?, samples("held_out_seed=2")?);
    Ok(())
}

#[test]
fn what_cannot_be_is_refused_in_a_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let file =
        |name: &str, text: &str| format!("=\"{}\"", written(folder.path(), name, text).display());
    let good = format!("train{}", file("good.conllu", &universal(20)));
    let refused = |settings: &[&str], what: &str| {
        let error = refusal("label", &small(settings));
        assert!(error.contains(what), "{settings:?}: {error}");
    };
    refused(&["held_out=0.7"], "`data.held_out` cannot be 0.7");
    refused(&["word_dropout=-1"], "`text.word_dropout` cannot be -1");
    refused(
        &["tokenizer=bpe"],
        "`text.tokenizer` is \"words\", \"whitespace\" or \"pretrained\" here",
    );
    refused(&["encoder=grue"], "there is no encoder \"grue\"; there are none, rnn,");
    refused(&["neighbors=0"], "a window of 0 neighbors");
    let idle = |settings: &[&str], what: &str| {
        let error = refusal("label", settings);
        assert!(error.starts_with(what), "{settings:?}: {error}");
    };
    for encoder in ["none", "gru", "cnn", "fully-connected"] {
        let encoder = format!("encoder={encoder}");
        idle(&[&encoder, "key_width=4"], "`model.key_width=4` has no effect with `model.encoder=");
        idle(
            &[&encoder, "value_width=4"],
            "`model.value_width=4` has no effect with `model.encoder=",
        );
        idle(&[&encoder, "bias=false"], "`model.bias=false` has no effect with `model.encoder=");
        idle(
            &[&encoder, "bias=true", "kind=vectors"],
            "`model.bias=true` has no effect with `model.encoder=",
        );
    }
    let bare = "encoder=self-attention";
    refused(
        &[bare, "heads=5"],
        "5 heads do not divide a width of 24 (`model.heads`, `model.hidden`)",
    );
    refused(&[bare, "heads=0"], "0 heads do not divide a width of 24");
    refused(&[bare, "key_width=0"], "a key width of 0");
    refused(&[bare, "head_weighting=sample"], "sampling within an encoder");
    refused(&["value_width=0"], "a value width of 0");
    refused(
        &["characters=true", "character_encoder=self-attention", "character_hidden=32", "heads=3"],
        "3 heads do not divide a width of 32",
    );
    refused(&["batch_size=0"], "`training.batch_size` cannot be 0");
    refused(&["label_smoothing=1.5"], "`training.label_smoothing` cannot be 1.5");
    refused(&["validation=dev.conllu"], "`data.validation` is given, and `data.train` is not");
    refused(&["train=missing.conllu"], "missing.conllu: there is no such file");
    refused(&[&good, "max_length=1"], "0 training sentences of at most 1 words");
    let ragged = format!("train{}", file("ragged.txt", "I PRON\nsaw\n"));
    refused(&[&ragged], "ragged.txt, line 2: 2 columns were expected, 1 column is there");
    let empty = format!("train{}", file("empty.conllu", "\n\n"));
    refused(&[&empty], "empty.conllu: there is no sentence");
}

#[test]
fn a_label_unseen_in_training_counts_as_wrong_and_is_told() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    std::fs::write(path("good.conllu"), universal(20)).unwrap();
    let seen = universal(6);
    std::fs::write(path("seen.conllu"), &seen).unwrap();
    std::fs::write(path("unseen.conllu"), seen.replacen("VERB", "ADV", 1)).unwrap();
    let own = [
        format!("train={:?}", path("good.conllu")),
        format!("validation={:?}", path("unseen.conllu")),
        format!("test={:?}", path("seen.conllu")),
    ];
    let own: Vec<&str> = own.iter().map(String::as_str).collect();
    let course = Course::done("label", &small(&[&own[..], &["epochs=3"]].concat()));
    let learner = course.task.begin(&course.options)?;
    let notes = learner.notes();
    assert!(notes[0].starts_with("1 of the validation part's "), "{notes:?}");
    assert!(notes[0].contains("unseen in training (ADV): counted as wrong"), "{notes:?}");
    let model = course.model();
    let [with, without] = [model.evaluate(Part::Validation)?, model.evaluate(Part::Test)?];
    // The same sentences but for one label, which no model can have right.
    let right = |report: &Report| report.scores.get("accuracy").unwrap() * report.examples as f64;
    let told_verb = without.confusion.as_ref().unwrap();
    assert!(told_verb.labels.iter().all(|label| label != "ADV"));
    assert!(right(&without) - right(&with) <= 1.0 + 1e-9 && right(&with) <= right(&without) + 1e-9);
    let confusion = with.confusion.as_ref().unwrap();
    assert_eq!(confusion.labels.last().map(String::as_str), Some("ADV"));
    assert_eq!(confusion.table().last().unwrap().support, 1);
    assert!(with.scores.get("loss").unwrap().is_finite());
    assert_eq!(with.notes.len(), 1);
    let facts = course.task.describe(&course.options)?.facts;
    assert!(facts.contains(&("unseen in validation".into(), "1 (ADV)".into())), "{facts:?}");
    assert!(facts.contains(&("unseen in test".into(), "none".into())), "{facts:?}");
    Ok(())
}

#[test]
fn a_sentence_longer_than_longest_is_labeled_in_pieces() -> Result<()> {
    let course = Course::done("label", &small(&["epochs=1", "max_length=8", "position=learned"]));
    let long = vec!["we"; 30].join(" ");
    let labeled = course.model().predict(&[long.into()])?;
    assert_eq!(labeled[0].output.split(' ').count(), 30);
    Ok(())
}

#[test]
fn the_comparison_is_made_of_settings_that_can_be_made() -> Result<()> {
    let task = task_named("label")?;
    let variants = task.comparison();
    let names: Vec<&str> = variants.iter().map(|variant| &variant.name[..]).collect();
    let expected = [
        "per-vector",
        "window",
        "fully connected",
        "recurrent",
        "self-attention",
        "without positions",
        "truncated, 2",
        "truncated, 8",
        "truncated, 32",
    ];
    assert_eq!(names, expected);
    for variant in &variants {
        let settings: Vec<&str> = variant.settings.iter().map(String::as_str).collect();
        task.begin(&options("label", &small(&settings)))?;
    }
    Ok(())
}

#[test]
fn a_description_counts_sentences_words_and_labels() -> Result<()> {
    let description = task_named("label")?.describe(&options("label", &small(&[])))?;
    let fact = |name: &str| {
        let (_, text) = description.facts.iter().find(|(known, _)| known == name).unwrap();
        text.clone()
    };
    assert_eq!(fact("training sentences"), "200");
    assert_eq!(fact("test sentences"), "50");
    assert!(fact("sentences").contains("words"));
    let words: usize = description.labels.iter().map(|(_, n)| n).sum();
    assert_eq!(fact("training words"), words.to_string());
    assert_eq!(description.examples.len(), 5);
    Ok(())
}

fn configured() -> Result<Options> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    task_named("label")?.options()?.file(&root.join("configs/ewt-upos.toml"))
}

#[test]
fn the_configuration_for_real_data_has_known_options() -> Result<()> {
    assert_eq!(configured()?.get("model.encoder").unwrap().as_str(), Some("lstm"));
    Ok(())
}

#[test]
#[ignore = "needs ../shared/data"]
fn the_configuration_for_real_data_reads_them() -> Result<()> {
    let (data, options) = (corpus("ud-english-ewt"), configured()?);
    let at = |key: &str, part: &str| {
        format!("{key}=\"{}\"", data.join(format!("en_ewt-ud-{part}.conllu.gz")).display())
    };
    let options = options.set(&at("train", "train"))?.set(&at("validation", "dev"))?;
    let description = task_named("label")?.describe(&options.set(&at("test", "test"))?)?;
    assert_eq!(description.facts[0].1, "12544");
    assert_eq!(description.labels.len(), 17);
    Ok(())
}

#[test]
fn labels_told_at_a_distance_are_found_by_attention_and_not_beyond_a_window() -> Result<()> {
    let settings = [
        "embedded=distance",
        "distance=16",
        "size=800",
        "epochs=12",
        "embedding=32",
        "hidden=32",
        "layers=1",
        "heads=2",
        "feed_forward=64",
        "position=relative",
        "learning_rate=0.01",
        "dropout=0.0",
    ];
    let far = |more: &[&str]| {
        let course = Course::done("label", &[&settings[..], more].concat());
        let report = course.model().evaluate(Part::Test).unwrap();
        let groups = report.groups.unwrap();
        assert_eq!((&*groups.measure, &*groups.by), ("accuracy", "distance in words"));
        let names: Vec<&str> = groups.values.iter().map(|(name, _)| &name[..]).collect();
        assert_eq!(names, ["2", "3 to 4", "5 to 8", "9 to 16"]);
        // Only the words that ask are counted, not those whose label is always the same.
        let confusion = report.confusion.unwrap();
        assert!(confusion.counts.iter().flatten().sum::<usize>() < 80 * NAMES);
        groups.values[3].1
    };
    let (all, window) = (far(&[]), far(&["window=4"]));
    assert!(all > 0.6 && window < 0.5, "all: {all}, window of 4: {window}; chance: 0.25");
    Ok(())
}

/// Names that are asked for in a sentence, at most.
const NAMES: usize = 7;

#[test]
fn a_distance_that_cannot_be_is_refused() {
    let told = refusal("label", &["embedded=distance", "distance=1"]);
    assert_eq!(told, "a distance of 1 words; it is 2 to 1000");
    let settings = ["embedded=distance", "encoder=fully-connected", "max_length=60"];
    let told = refusal("label", &settings);
    assert!(told.starts_with("0 training sentences of at most 60 words"), "{told}");
}
