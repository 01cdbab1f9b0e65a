//! `transcribe`, from data to pictures.

use crate::{course, files};

use course::{Course, options, refusal, resumes_exactly};
use regard_data::toy;
use regard_picture::picture;
use regard_picture::scene::Scene;
use regard_tasks::task::{Input, Part};
use regard_tasks::tasks::task_named;
use std::path::Path;

/// A small and quick transcriber.
const SMALL: [&str; 8] = [
    "size=60",
    "embedding=16",
    "hidden=16",
    "score_hidden=16",
    "heads=2",
    "feed_forward=32",
    "batch_size=16",
    "epochs=1",
];

fn with<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&SMALL[..], more].concat()
}

#[test]
fn segments_of_the_embedded_recordings_hold_their_words_and_fill_their_time() {
    for one in toy::spoken(50, 1).unwrap() {
        let words: Vec<&str> =
            one.segments.iter().map(|(_, _, label)| &label[..]).filter(|l| *l != "pause").collect();
        assert_eq!(words, one.words);
        let seconds = one.samples.len() as f64 / f64::from(toy::SPOKEN_RATE);
        assert!((one.segments.last().unwrap().1 - seconds).abs() < 1e-9);
        for pair in one.segments.windows(2) {
            assert!(pair[0].0 < pair[0].1 && pair[0].1 == pair[1].0);
        }
        // Words are louder than pauses.
        let power = |segment: &(f64, f64, String)| {
            let at = |seconds: f64| (seconds * f64::from(toy::SPOKEN_RATE)) as usize;
            let part = &one.samples[at(segment.0)..at(segment.1)];
            part.iter().map(|x| x * x).sum::<f32>() / part.len() as f32
        };
        assert!(power(&one.segments[1]) > 5.0 * power(&one.segments[0]));
    }
}

#[test]
fn it_learns_to_write_what_is_said_and_then_predicts_and_draws() {
    let settings = [
        "size=800",
        "epochs=12",
        "batch_size=16",
        "hidden=32",
        "embedding=32",
        "score_hidden=32",
        "learning_rate=0.006",
    ];
    let course = Course::done("transcribe", &settings);
    let report = course.model().evaluate(Part::Test).unwrap();
    assert_eq!((report.examples, report.outputs.len()), (80, 80));
    let wer = report.scores.get("WER").unwrap();
    assert!(wer < 0.7, "{:?}", report.scores);
    assert!(report.scores.get("CER").unwrap() < 1.0);
    assert_eq!(report.scores.better, regard::tensor::Better::Lower);
    assert_eq!(course.drawn("test:0"), ["alignment"]);
    let scenes = course.model().show(&"test:0".into()).unwrap();
    let Scene::Sound(scene) = &scenes[0].1 else { panic!("{scenes:?}") };
    let keys = scene.weights.columns.len();
    assert_eq!(keys, (scene.spectrogram.len() / scene.features).div_ceil(3));
    for row in scene.weights.maps[0].weights.chunks(keys) {
        assert!((row.iter().sum::<f32>() - 1.0).abs() < 1e-4);
    }
    let svg = picture::svg(&scenes[0].1, "test:0", None);
    assert!(svg.contains("seconds") && svg.contains("&lt;end&gt;"), "a time axis, and the words");
}

#[test]
fn stopped_and_resumed_or_straight_the_bits_are_the_same() {
    let chance = [
        "epochs=2",
        "dropout=0.1",
        "time_masks=1",
        "frequency_masks=1",
        "gain=3.0",
        "augmentation.noise=0.01",
    ];
    resumes_exactly("transcribe", &with(&chance), 5);
}

#[test]
fn every_kind_of_model_listens() {
    let kinds: [&[&str]; 6] = [
        &["context=fixed"],
        &["context=fixed", "fixed=learned", "score=scaled-dot", "bidirectional=false"],
        &["encoder=cnn", "decoder=cnn", "layers=2", "stack=1", "stride=2"],
        &["encoder=transformer", "decoder=transformer", "context=multi-head", "position=learned"],
        &["encoder=lstm", "decoder=lstm", "tokenizer=characters", "weighting=entmax15"],
        &["weighting=sample", "stack=5", "stride=5"],
    ];
    for (at, kind) in kinds.into_iter().enumerate() {
        let course = Course::done("transcribe", &with(kind));
        assert_eq!(course.model().predict(&["validation:0".into()]).unwrap().len(), 1, "{kind:?}");
        assert_eq!(course.model().show(&"test:1".into()).is_ok(), at > 1, "{kind:?}");
        if at == 3 {
            assert_eq!(course.drawn("test:1"), ["alignment", "encoder", "decoder"]);
        }
    }
}

/// Recordings of their own, listed and beside texts.
fn recordings(folder: &Path) -> String {
    let mut list = String::new();
    for (at, one) in toy::spoken(30, 5).unwrap().into_iter().enumerate() {
        files::wav(&folder.join(format!("{at:02}.wav")), &one.samples, toy::SPOKEN_RATE);
        let words = one.words.join(" ");
        std::fs::write(folder.join(format!("{at:02}.txt")), format!("{words}\n")).unwrap();
        list += &format!("{at:02}.wav\t{words}\n");
    }
    let path = folder.join("list.tsv");
    std::fs::write(&path, list).unwrap();
    path.display().to_string()
}

#[test]
fn a_list_and_a_folder_with_transcripts_hold_the_same_recordings() {
    let folder = tempfile::tempdir().unwrap();
    let list = recordings(folder.path());
    let describe = |path: &str| {
        let options = options("transcribe", &with(&[&format!("train={path}"), "held_out=0.2"]));
        task_named("transcribe").unwrap().describe(&options).unwrap()
    };
    let (listed, beside) = (describe(&list), describe(&folder.path().display().to_string()));
    assert_eq!(listed.facts, beside.facts);
    assert_eq!(listed.examples, beside.examples);
    let counts: Vec<&str> = listed.facts.iter().map(|(_, text)| &text[..]).take(3).collect();
    assert_eq!(counts, ["18", "6", "6"]);
    let course = Course::done("transcribe", &with(&[&format!("train={list}")]));
    let one = files::content(folder.path().join("03.wav"));
    assert_eq!(course.model().predict(&[one]).unwrap().len(), 1);
}

#[test]
fn what_cannot_be_read_is_told_with_file_and_line() {
    let folder = tempfile::tempdir().unwrap();
    recordings(folder.path());
    let list = |text: &str| files::refused_list("transcribe", folder.path(), text, &with(&[]));
    files::ends(
        &list("00.wav\tone\n01.wav\n"),
        "bad.tsv, line 2: path and transcript with a tab between were expected, 1 column is there",
    );
    files::ends(&list("\tone\n"), "bad.tsv, line 1: the path is empty");
    assert!(list("00.wav\tone\nmissing.wav\ttwo\n").contains("line 2: there is no file"));
    files::ends(&list(""), "bad.tsv: it has no recordings");
    std::fs::write(folder.path().join("04.wav"), "RIFF").unwrap();
    let told = list(&"04.wav\tone\n".repeat(20));
    assert!(told.contains("04.wav: not a recording"), "{told}");
    let told = refusal("transcribe", &["sample_rate=10"]);
    assert_eq!(told, "`audio.sample_rate` cannot be 10; it is 1000 to 384000");
    std::fs::remove_file(folder.path().join("07.txt")).unwrap();
    let told = refusal("transcribe", &[&format!("train={}", folder.path().display())]);
    assert!(told.contains("07.wav: there is no transcript"), "{told}");
    assert_eq!(
        refusal("transcribe", &["stack=0"]),
        "`audio.stack` cannot be 0; it is 1 to 100 frames"
    );
    assert_eq!(refusal("transcribe", &["gain=-1.0"]), "`augmentation.gain` cannot be -1");
}

#[test]
fn a_longer_recording_is_heard_so_far_and_that_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let long = toy::spoken(1, 9).unwrap().remove(0).samples;
    // Thirty frames of 25 ms, each 10 ms after the one before, are ten vectors of three.
    let at = |milliseconds: usize| toy::SPOKEN_RATE as usize * milliseconds / 1000;
    let short = &long[..at(25) + 29 * at(10)];
    let path = |name: &str| folder.path().join(name);
    files::wav(&path("long.wav"), &long, toy::SPOKEN_RATE);
    files::wav(&path("short.wav"), short, toy::SPOKEN_RATE);
    let course = Course::done("transcribe", &with(&[]));
    let model = |setting: &str| {
        let own = course.options.clone().set(setting).unwrap();
        course.run.model(&own).unwrap()
    };
    let details = |setting: &str, name: &str| {
        model(setting).predict(&[files::content(path(name))]).unwrap().remove(0).details
    };
    let mut heard = details("max_length=10", "long.wav");
    let read = heard.as_object_mut().unwrap().remove("read").unwrap();
    assert_eq!((read["count"].as_u64(), read["unit"].as_str()), (Some(10), Some("vectors")));
    assert!(read["of"].as_u64() > Some(10), "{read}");
    assert_eq!(heard, details("max_length=1000", "short.wav"));
    assert_ne!(details("max_length=10", "long.wav"), details("max_length=1000", "long.wav"));
    let report = model("max_length=10").evaluate(Part::Test).unwrap();
    let told = "recordings have more than `data.max_length` = 10 vectors, and were read so far";
    assert!(report.notes[0].ends_with(told), "{:?}", report.notes);
    assert_eq!(report.each.unwrap().values.len(), report.outputs.len());
    assert!(model("max_length=1000").evaluate(Part::Test).unwrap().notes.is_empty());
}

#[test]
fn an_output_has_a_word_at_least_and_no_more_than_the_longest() {
    let course = Course::done("transcribe", &with(&["epochs=1", "learning_rate=1e-9"]));
    for (most, beam) in [(1, "beam=1"), (2, "beam=4")] {
        let own = course.options.clone().set(&format!("max_output_length={most}")).unwrap();
        let model = course.run.model(&own.set(beam).unwrap()).unwrap();
        let inputs: Vec<Input> = (0..5).map(|at| Input::example(Part::Test, at)).collect();
        for prediction in model.predict(&inputs).unwrap() {
            let words = prediction.details["tokens"].as_array().unwrap().len();
            assert!((1..=most).contains(&words), "{prediction:?}");
        }
    }
    let told = refusal("transcribe", &["max_output_length=0"]);
    assert_eq!(told, "`search.max_output_length` cannot be 0");
}

#[test]
fn recordings_of_several_rates_are_brought_to_one_with_a_word() {
    let folder = tempfile::tempdir().unwrap();
    let mut list = String::new();
    for (at, one) in toy::spoken(30, 5).unwrap().into_iter().enumerate() {
        let sound = regard_data::files::Waveform { samples: one.samples, rate: toy::SPOKEN_RATE };
        // The first of the training part, whichever it is, has the usual one.
        let other = at > 10 && at % 3 == 2;
        let sound = if other { sound.resampled(22_050).unwrap() } else { sound };
        files::wav(&folder.path().join(format!("{at:02}.wav")), &sound.samples, sound.rate);
        list += &format!("{at:02}.wav\t{}\n", one.words.join(" "));
    }
    let path = folder.path().join("list.tsv");
    std::fs::write(&path, list).unwrap();
    let train = format!("train={}", path.display());
    for (setting, rate) in [("stack=3", toy::SPOKEN_RATE), ("sample_rate=16000", 16_000)] {
        let options = options("transcribe", &[&train, setting]);
        let learner = task_named("transcribe").unwrap().begin(&options).unwrap();
        let notes = learner.notes();
        let said = format!("have another rate than {rate} samples a second");
        assert!(notes.len() == 1 && notes[0].contains(&said), "{notes:?}");
        let vocabulary = learner.model().vocabulary().unwrap();
        assert!(vocabulary.contains(&format!("\"rate\":{rate}")), "{vocabulary}");
    }
    let small = ["epochs=1", "hidden=8", "embedding=8", "score_hidden=8"];
    let course = Course::done("transcribe", &[&[&train[..]], &small[..]].concat());
    let other = files::content(folder.path().join("11.wav"));
    assert_eq!(course.model().predict(&[other]).unwrap().len(), 1);
}
