//! The task `classify`, from end to end.

use crate::corpus;
use crate::{course, files};

use corpus::corpus;
use course::{Course, options, refusal, resumes_exactly};
use regard_picture::scene::Scene;
use regard_tasks::Result;
use regard_tasks::options::Options;
use regard_tasks::task::Part;
use regard_tasks::tasks::task_named;
use std::path::{Path, PathBuf};

const SMALL: [&str; 6] =
    ["size=200", "epochs=6", "batch_size=16", "embedding=16", "score_hidden=16", "hidden=16"];

fn small<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&SMALL[..], more].concat()
}

fn learned(more: &[&str]) -> Course {
    Course::done("classify", &small(more))
}

fn accuracy(course: &Course, part: Part) -> Result<f64> {
    Ok(course.model().evaluate(part)?.scores.first().1)
}

fn written(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    path
}

fn file(folder: &Path, name: &str, text: &str) -> String {
    format!("=\"{}\"", written(folder, name, text).display())
}

#[test]
fn texts_tones_and_vectors_are_learned_far_beyond_chance() -> Result<()> {
    // One label of four is right by chance.
    for kind in ["kind=text", "kind=audio", "kind=vectors"] {
        let accuracy = accuracy(&learned(&[kind, "epochs=15", "learning_rate=0.01"]), Part::Test)?;
        assert!(accuracy > 0.7, "{kind}: {accuracy}");
    }
    Ok(())
}

#[test]
fn every_pooling_and_encoder_learns_the_cues() -> Result<()> {
    let models: [&[&str]; 10] = [
        &["queries=3"],
        &["queries=2", "encoder=self-attention", "heads=1"],
        &["pooling=mean"],
        &["pooling=max"],
        &["pooling=gate"],
        &["pooling=last", "encoder=gru"],
        &["pooling=class-token", "encoder=transformer", "heads=2"],
        &["pooling=attention", "encoder=transformer", "heads=2", "window=2"],
        &["pooling=attention", "weighting=straight-through"],
        &["pooling=attention", "neighbors=1", "head_hidden=16", "token_dropout=0.1"],
    ];
    for model in models {
        let accuracy = accuracy(
            &learned(&[model, &["size=400", "epochs=12", "learning_rate=0.01"]].concat()),
            Part::Test,
        )?;
        assert!(accuracy > 0.45, "{model:?}: {accuracy}");
    }
    Ok(())
}

#[test]
fn soft_attention_finds_the_cue_word() -> Result<()> {
    let course = learned(&["size=800", "epochs=8"]);
    let text = "the old road and the harbour near a small green door";
    let Scene::Maps(maps) = course.model().show(&text.into())?.remove(0).1 else {
        panic!("no maps")
    };
    assert_eq!(maps.rows, ["sea"]);
    let weights = &maps.maps[0].weights;
    let most = (0..weights.len()).max_by(|&a, &b| weights[a].total_cmp(&weights[b])).unwrap();
    assert_eq!(maps.columns[most], "harbour");
    assert!(weights[most] > 0.3, "{weights:?}");
    Ok(())
}

#[test]
fn argmax_alone_teaches_the_scores_nothing_and_the_rest_still_learns() -> Result<()> {
    let moved = |weighting: &str| -> Result<Vec<String>> {
        let settings = small(&["size=60", "epochs=1", weighting]);
        let options = options("classify", &settings);
        let begun = task_named("classify")?.begin(&options)?.model().parameters().tensors();
        let course = Course::done("classify", &settings);
        let done = course.model().parameters().tensors();
        let differs = |name: &&String| {
            let numbers = |x: &regard::Tensor| x.to_vec::<f32>().unwrap();
            numbers(&begun[*name]) != numbers(&done[*name])
        };
        Ok(begun.keys().filter(differs).cloned().collect())
    };
    let scores = |names: &[String]| names.iter().filter(|n| n.starts_with("pooling")).count();
    let argmax = moved("weighting=argmax")?;
    assert_eq!(scores(&argmax), 0, "{argmax:?}");
    assert!(argmax.iter().any(|name| name.starts_with("input")), "{argmax:?}");
    for other in ["weighting=softmax", "weighting=sample", "weighting=straight-through"] {
        assert!(scores(&moved(other)?) > 0, "{other}");
    }
    Ok(())
}

#[test]
fn a_run_ends_with_the_same_bits_whether_interrupted_or_not() {
    let short = ["size=100", "epochs=2"];
    let sampled = ["weighting=sample", "dropout=0.2", "token_dropout=0.2"];
    resumes_exactly("classify", &small(&[&short[..], &sampled].concat()), 3);
    let frames = ["kind=audio", "encoder=gru", "ema_decay=0.9", "schedule=plateau"];
    resumes_exactly("classify", &small(&[&short[..], &frames].concat()), 4);
}

#[test]
fn the_same_seed_gives_the_same_measures_and_another_gives_others() {
    let records = |seed| learned(&["size=60", "epochs=2", "dropout=0.3", seed]).records();
    assert_eq!(records("seed=1"), records("seed=1"));
    assert_ne!(records("seed=1"), records("seed=2"));
}

#[test]
fn a_report_has_measures_confusion_and_an_output_for_every_example() -> Result<()> {
    let report = learned(&["epochs=1"]).model().evaluate(Part::Validation)?;
    assert_eq!((report.examples, report.outputs.len(), report.samples.len()), (50, 50, 3));
    let confusion = report.confusion.unwrap();
    assert_eq!(confusion.counts.concat().iter().sum::<usize>(), 50);
    assert_eq!(report.scores.get("accuracy"), Some(confusion.accuracy()));
    Ok(())
}

#[test]
fn predictions_have_a_probability_for_every_label() -> Result<()> {
    let course = learned(&[]);
    let predictions = course.model().predict(&["the tide came".into(), "".into()])?;
    assert_eq!(predictions[0].output, "sea");
    let probabilities = predictions[0].details["probabilities"].as_object().unwrap();
    let sum: f64 = probabilities.values().map(|p| p.as_f64().unwrap()).sum();
    assert!(probabilities.len() == 4 && (sum - 1.0).abs() < 1e-5);
    Ok(())
}

#[test]
fn attention_over_words_and_frames_is_drawn() -> Result<()> {
    let text = "the old road and the harbour";
    let course = learned(&["size=60", "epochs=1"]);
    assert_eq!(course.drawn(text), ["attention"]);
    let both = ["size=60", "epochs=1", "encoder=transformer", "heads=2"];
    assert_eq!(learned(&both).drawn(text), ["attention", "self-attention"]);
    let token = learned(&[&both[..], &["pooling=class-token"]].concat());
    assert_eq!(token.drawn(text), ["self-attention"]);
    let Scene::Maps(maps) = token.model().show(&text.into())?.remove(0).1 else {
        panic!("no maps")
    };
    assert_eq!((maps.rows.len(), &maps.columns[1][..]), (7, "the"));
    assert!(maps.rows[0].starts_with("→ "));
    // Three queries are three rows, over words and over frames.
    let three = learned(&["size=60", "epochs=1", "queries=3"]);
    assert_eq!(three.drawn(text), ["attention"]);
    let Scene::Maps(maps) = three.model().show(&text.into())?.remove(0).1 else {
        panic!("no maps")
    };
    assert_eq!(maps.rows, ["query 1", "query 2", "query 3"]);
    assert!(maps.row_axis.starts_with("queries, for "));
    assert_eq!(maps.maps[0].weights.len(), 3 * 6);
    for row in maps.maps[0].weights.chunks(6) {
        assert!((row.iter().sum::<f32>() - 1.0).abs() < 1e-5);
    }
    let heard = learned(&["kind=audio", "size=60", "epochs=1", "queries=2"]);
    assert_eq!(heard.drawn("validation:3"), ["attention"]);
    let tones = learned(&["kind=audio", "size=60", "epochs=1"]);
    assert_eq!(tones.drawn("validation:3"), ["attention"]);
    let Scene::Sound(sound) = tones.model().show(&"validation:3".into())?.remove(0).1 else {
        panic!("no sound")
    };
    assert_eq!(sound.weights.columns[..3], ["0.00 s", "0.01 s", "0.02 s"]);
    let gate = learned(&["size=60", "epochs=1", "pooling=gate"]);
    assert_eq!(gate.drawn(text), ["gate"]);
    let Scene::Maps(maps) = gate.model().show(&text.into())?.remove(0).1 else { panic!("no maps") };
    assert!(maps.maps[0].weights.iter().all(|open| (0.0..=1.0).contains(open)));
    let last = learned(&["size=60", "epochs=1", "pooling=last", "encoder=gru"]);
    let error = last.model().show(&text.into()).unwrap_err().to_string();
    assert!(error.starts_with("this model attends to nothing"), "{error}");
    let error = tones.model().show(&"validation:99".into()).unwrap_err().to_string();
    assert!(error.contains("the part has 50 examples, from 0"), "{error}");
    Ok(())
}

#[test]
fn a_report_counts_the_values_that_were_read_for_each_output() -> Result<()> {
    let short = ["size=60", "epochs=1"];
    let read = |more: &[&str]| -> Result<_> {
        let report = learned(&[&short[..], more].concat()).model().evaluate(Part::Test)?;
        Ok(report.values_read)
    };
    for soft in ["softmax", "sparsemax", "entmax15", "sigmoid", "none", "gumbel"] {
        let read = read(&[&format!("weighting={soft}")])?.unwrap();
        assert!(read.per_output == read.of && read.of > 4.0, "{soft}: {read:?}");
    }
    for hard in ["argmax", "sample", "straight-through", "gumbel-hard"] {
        for queries in ["queries=1", "queries=3"] {
            let read = read(&[&format!("weighting={hard}"), queries])?.unwrap();
            assert!(read.per_output == 1.0 && read.of > 4.0, "{hard}: {read:?}");
        }
    }
    assert!(read(&["pooling=mean"])?.is_none());
    Ok(())
}

#[test]
fn a_window_of_the_encoder_is_hatched_with_a_class_token_and_without() -> Result<()> {
    let text = "the old road and the harbour";
    let mut tried = 0;
    for pooling in ["pooling=attention", "pooling=class-token"] {
        for encoder in ["encoder=transformer", "encoder=self-attention"] {
            let course = learned(&["size=60", "epochs=1", "heads=2", "window=2", pooling, encoder]);
            let Some((_, Scene::Maps(maps))) = course.model().show(&text.into())?.pop() else {
                panic!("no maps")
            };
            let n = maps.columns.len();
            for map in &maps.maps {
                assert_eq!(map.masked.len(), n * n, "{pooling} {encoder}");
                for (cell, &hidden) in map.masked.iter().enumerate() {
                    assert_eq!(hidden, (cell / n).abs_diff(cell % n) > 2, "{pooling}: {cell}");
                    assert!(!hidden || map.weights[cell] == 0.0);
                }
                tried += 1;
            }
        }
    }
    assert_eq!(tried, 8);
    Ok(())
}

#[test]
fn own_texts_are_read_from_one_file_or_from_one_per_label() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let all: String = (0..40)
        .map(|n| ["good\ta fine film", "bad\ta dull film"][n % 2].to_string() + &format!(" {n}\n"))
        .collect();
    let train = format!("train{}", file(folder.path(), "films.tsv", &all));
    let course = learned(&[&train]);
    assert_eq!(accuracy(&course, Part::Test)?, 1.0);
    assert_eq!(course.model().predict(&["a dull thing".into()])?[0].output, "bad");

    let good = written(folder.path(), "film.good", &"a fine film\n".repeat(20));
    let bad = folder.path().join("film.bad");
    std::fs::write(&bad, b"a d\xfcll film\n".repeat(20)).unwrap();
    let files = format!("train_files=[\"{}\", \"{}\"]", good.display(), bad.display());
    let course = learned(&[&files, "encoding=latin1", "epochs=20"]);
    for (text, label) in [("a düll film", "bad"), ("a fine film", "good")] {
        assert_eq!(course.model().predict(&[text.into()])?[0].output, label);
    }
    let error = refusal("classify", &small(&[&files]));
    assert!(error.contains("film.bad, line 1: these bytes are not UTF-8"), "{error}");
    Ok(())
}

/// A second of a tone, as a WAV file.
fn recording(path: &Path, pitch: f64, rate: u32) {
    let spec = hound::WavSpec {
        channels: 1,
        sample_rate: rate,
        bits_per_sample: 16,
        sample_format: hound::SampleFormat::Int,
    };
    let mut writer = hound::WavWriter::create(path, spec).unwrap();
    for at in 0..rate / 10 {
        let angle = f64::from(at) * pitch * std::f64::consts::TAU / f64::from(rate);
        writer.write_sample((angle.sin() * 9000.0) as i16).unwrap();
    }
    writer.finalize().unwrap();
}

#[test]
fn own_recordings_are_read_and_split_by_their_names() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    for take in 0..12 {
        for (label, pitch) in [("low", 200.0), ("high", 1500.0)] {
            let name = format!("{label}_{take}.wav");
            recording(&folder.path().join(name), pitch + f64::from(take), 8000);
        }
    }
    let train = format!("train=\"{}\"", folder.path().display());
    let fields = ["kind=audio", "label_field=0", "split_field=1", "split_test_below=3"];
    let settings = [&[&train[..]], &fields[..], &["held_out=0.2", "learning_rate=0.02"]].concat();
    let course = learned(&settings);
    let report = course.model().evaluate(Part::Test)?;
    assert_eq!((report.examples, report.scores.first().1), (6, 1.0));
    assert_eq!(course.model().evaluate(Part::Validation)?.examples, 4);
    let sound = files::content(folder.path().join("high_1.wav"));
    assert_eq!(course.model().predict(std::slice::from_ref(&sound))?[0].output, "high");
    assert_eq!(course.drawn(sound), ["attention"]);

    recording(&folder.path().join("low_12.wav"), 200.0, 16000);
    let rate = learned(&settings).model().evaluate(Part::Test)?.scores.first().1;
    assert_eq!(rate, 1.0);
    let other = files::content(folder.path().join("low_12.wav"));
    assert_eq!(course.model().predict(&[other])?[0].output, "low");

    // A compressed recording of 440 Hz is answered as the WAV file of the same tone is.
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/sound");
    let told = |path| course.model().predict(&[files::content(path)]).unwrap().remove(0);
    let expected = told(folder.path().join("low_1.wav")).output;
    for name in ["mono.mp3", "stream.mp3", "tone.ogg", "tone.flac"] {
        assert_eq!(told(fixtures.join(name)).output, expected, "{name}");
        let to = folder.path().join(format!("low_{}_{name}", 20 + name.len()));
        std::fs::copy(fixtures.join(name), to).unwrap();
    }
    let described = options("classify", &small(&settings));
    let described = task_named("classify").unwrap().describe(&described).unwrap();
    let counts: Vec<usize> =
        described.facts.iter().take(3).filter_map(|(_, text)| text.parse().ok()).collect();
    assert_eq!(counts.iter().sum::<usize>(), 24 + 1 + 4, "{:?}", described.facts);

    std::fs::write(folder.path().join("low_12.wav"), "MThd").unwrap();
    let error = refusal("classify", &small(&settings));
    assert!(error.contains("low_12.wav: not a recording"), "{error}");
    Ok(())
}

#[test]
fn own_vectors_are_read() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let line = |n: usize| match n % 2 {
        0 => format!("up\t{},1 0,2 1,3\n", n % 7),
        _ => format!("down\t{},-1 0,-2\n", n % 7),
    };
    let all: String = (0..200).map(line).collect();
    let train = format!("train{}", file(folder.path(), "walks.tsv", &all));
    let course = learned(&["kind=vectors", &train, "learning_rate=0.02", "epochs=30"]);
    assert_eq!(accuracy(&course, Part::Test)?, 1.0);
    assert_eq!(course.model().predict(&["3,2 3,3".into()])?[0].output, "up");
    let error = course.model().predict(&["3,2,1".into()]).unwrap_err().to_string();
    assert_eq!(error, "vectors of 3 numbers; the model has learned vectors of 2");
    let error = course.model().predict(&["3,x".into()]).unwrap_err().to_string();
    assert_eq!(error, "`3,x`: `x` is not a finite number");
    Ok(())
}

#[test]
fn what_cannot_be_is_refused_in_a_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |settings: &[&str], what: &str| {
        let error = refusal("classify", &small(settings));
        assert!(error.contains(what), "{settings:?}: {error}");
    };
    let train = |name: &str, text: &str| format!("train{}", file(folder.path(), name, text));
    let good = train("good.tsv", &"a\tone\nb\ttwo\n".repeat(10));
    refused(&["held_out=0.5"], "`data.held_out` cannot be 0.5");
    refused(&["max_length=0"], "`data.max_length` cannot be 0");
    refused(&["token_dropout=1.0"], "`text.token_dropout` cannot be 1");
    refused(&["kind=smell"], "`data.kind` cannot be \"smell\"; there are `text`");
    refused(&["pooling=median"], "`model.pooling` cannot be \"median\"; there are `mean`");
    refused(&["pooling=class-token"], "a class token before an encoder of kind none");
    refused(&["queries=0"], "`model.queries` cannot be 0");
    for pooling in ["mean", "max", "last", "gate", "class-token"] {
        let pooling = format!("pooling={pooling}");
        let why = refusal("classify", &["queries=2", "encoder=gru", &pooling]);
        assert!(why.starts_with("`model.queries=2` has no effect with `model.pooling="), "{why}");
    }
    refused(
        &["encoder=gru", "bias=true"],
        "`model.bias=true` has no effect with `model.encoder=gru`; it needs",
    );
    refused(&["mels=0", "kind=audio"], "`audio.mels` cannot be 0");
    refused(&["validation=v.tsv"], "`data.validation` is given, and `data.train` is not");
    refused(&["train=missing.tsv"], "missing.tsv: there is no such file");
    refused(&[&good, "held_out=0.0"], "20 training examples and 0 validation examples");
    refused(&["train=a", "train_files=[\"b\"]"], "`data.train` and `data.train_files` are both");
    refused(&["kind=audio", "train_files=[\"b\"]"], "`data.train_files` is for text alone");
    refused(&[&train("tabless.tsv", "a\tone\nb two\n")], "tabless.tsv, line 2: a label and a text");
    let unseen = format!("validation{}", file(folder.path(), "unseen.tsv", "a\tone\nc\tsix\n"));
    let learner = task_named("classify").unwrap().begin(&options("classify", &[&good, &unseen]));
    let learner = learner.unwrap();
    assert!(learner.notes()[0].contains("unseen in training (c)"), "{:?}", learner.notes());
    let scores = learner.validate().unwrap();
    assert!(scores.get("accuracy").unwrap() <= 0.5 && scores.get("loss").unwrap().is_finite());
    let vectors = |name: &str, text: &str, what: &str| {
        refused(&["kind=vectors", &train(name, text)], what);
    };
    vectors("words.tsv", "a\t1,2\nb\t1,two\n", "words.tsv, line 2: `two` is not a finite number");
    vectors("ragged.tsv", "a\t1,2 3\n", "ragged.tsv, line 1: a vector of 1 numbers after one of 2");
    vectors("widths.tsv", "a\t1,2\nb\t1\n", "widths.tsv, line 2: vectors of 1 numbers");
}

#[test]
fn the_comparison_is_made_of_settings_that_can_be_made() -> Result<()> {
    let task = task_named("classify")?;
    let variants = task.comparison();
    let names: Vec<&str> = variants.iter().map(|variant| &variant.name[..]).collect();
    assert_eq!(names, ["soft", "argmax", "argmax, straight through", "sampled", "max", "gate"]);
    for variant in &variants {
        let settings: Vec<&str> = variant.settings.iter().map(String::as_str).collect();
        task.begin(&options("classify", &small(&settings)))?;
    }
    Ok(())
}

#[test]
fn a_description_counts_examples_and_labels() -> Result<()> {
    for (kind, fact) in [
        ("kind=text", "vocabulary"),
        ("kind=audio", "recordings"),
        ("kind=vectors", "width of a vector"),
    ] {
        let description =
            task_named("classify")?.describe(&options("classify", &small(&[kind])))?;
        assert_eq!(description.facts[0], ("training examples".to_string(), "200".to_string()));
        assert!(description.facts.iter().any(|(name, _)| name == fact), "{kind}");
        assert_eq!(description.labels.iter().map(|(_, n)| n).sum::<usize>(), 200);
        assert_eq!(description.examples.len(), 5);
    }
    Ok(())
}

fn configured(name: &str) -> Result<Options> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    task_named("classify")?.options()?.file(&root.join(format!("configs/{name}.toml")))
}

#[test]
fn the_configurations_for_real_data_have_known_options() -> Result<()> {
    for (name, kind) in
        [("rt-polarity", "text"), ("fsdd-digit", "audio"), ("fsdd-speaker", "audio")]
    {
        assert_eq!(configured(name)?.get("data.kind").unwrap().as_str(), Some(kind), "{name}");
    }
    Ok(())
}

#[test]
#[ignore = "needs ../shared/data"]
fn the_configurations_for_real_data_read_them() -> Result<()> {
    let task = task_named("classify")?;
    let (films, digits) = (configured("rt-polarity")?, configured("fsdd-digit")?);
    let film = |part: &str| corpus("rt-polarity").join(format!("rt-polarity.{part}"));
    let files = [film("neg"), film("pos")].map(|path| format!("\"{}\"", path.display()));
    let films = films.set(&format!("train_files=[{}]", files.join(",")))?;
    let films = task.describe(&films)?;
    assert_eq!(
        films.facts[..3].iter().map(|(_, n)| &n[..]).collect::<Vec<_>>(),
        ["8530", "1066", "1066"]
    );
    let recordings = format!("train=\"{}\"", corpus("fsdd/recordings").display());
    let description = task.describe(&digits.set(&recordings)?)?;
    assert_eq!((&description.facts[2].1[..], description.labels.len()), ("300", 10));
    Ok(())
}
