//! `label` over sound, vectors and tables, from data to pictures.

use crate::{course, files};

use course::{Course, options, refusal, resumes_exactly};
use regard_data::files::{NumpyArray, NumpyValues};
use regard_data::toy;
use regard_picture::picture;
use regard_picture::scene::Scene;
use regard_tasks::task::Part;
use regard_tasks::tasks::task_named;
use std::path::Path;

/// A small and quick labeler.
const SMALL: [&str; 6] =
    ["size=60", "hidden=16", "heads=2", "feed_forward=32", "batch_size=8", "epochs=1"];

fn with<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&SMALL[..], more].concat()
}

/// An array as NumPy writes it: `np.save`.
fn npy(kind: &str, shape: &str, bytes: &[u8]) -> Vec<u8> {
    let mut header = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}");
    while !(10 + header.len() + 1).is_multiple_of(64) {
        header.push(' ');
    }
    header.push('\n');
    let length = (header.len() as u16).to_le_bytes();
    [&b"\x93NUMPY\x01\x00"[..], &length, header.as_bytes(), bytes].concat()
}

fn floats(numbers: &[f32]) -> Vec<u8> {
    numbers.iter().flat_map(|x| x.to_le_bytes()).collect()
}

#[test]
fn frames_of_tones_are_labeled_far_beyond_chance_and_drawn_with_their_segments() {
    let settings = ["kind=sound", "size=500", "epochs=16", "hidden=32", "learning_rate=0.006"];
    let course = Course::done("label", &settings);
    let report = course.model().evaluate(Part::Test).unwrap();
    assert_eq!(report.examples, 50);
    let score = |name: &str| report.scores.get(name).unwrap();
    assert!(score("accuracy") > 0.65, "{:?}", report.scores);
    assert!(score("segment F1") > 0.3, "{:?}", report.scores);
    assert!(report.samples[0].1.contains("pause"), "{:?}", report.samples[0]);
    assert_eq!(course.drawn("test:0@0.2"), ["segments"]);
    let scenes = course.model().show(&"test:0@0.2".into()).unwrap();
    let Scene::Sound(scene) = &scenes[0].1 else { panic!("{scenes:?}") };
    let names: Vec<&str> = scene.tracks.iter().map(|track| &track.name[..]).collect();
    assert_eq!(names, ["truth", "predicted"]);
    assert_eq!(scene.weights.rows, ["0.20 s"]);
    for map in &scene.weights.maps {
        assert_eq!(map.weights.len(), scene.weights.columns.len());
        assert!((map.weights.iter().sum::<f32>() - 1.0).abs() < 1e-4);
    }
    let svg = picture::svg(&scenes[0].1, "test:0", Some(0));
    assert!(svg.contains("predicted") && svg.contains("seconds"));
    let answer = course.model().predict(&["validation:1".into()]).unwrap().remove(0);
    assert!(answer.output.starts_with("0.00–"), "{}", answer.output);
}

#[test]
fn stopped_and_resumed_or_straight_the_bits_are_the_same() {
    resumes_exactly("label", &with(&["kind=sound", "epochs=2", "dropout=0.1"]), 9);
}

#[test]
fn every_encoder_labels_vectors_and_what_attends_to_nothing_is_drawn_without_weights() {
    for (kind, encoder) in
        [("sound", "gru"), ("vectors", "transformer"), ("table", "cnn"), ("vectors", "none")]
    {
        let settings =
            [&format!("kind={kind}")[..], &format!("encoder={encoder}")].map(String::from);
        let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
        let course = Course::done("label", &with(&settings));
        let scenes = course.model().show(&"test:1".into()).unwrap();
        let Scene::Sound(scene) = &scenes[0].1 else { panic!("{scenes:?}") };
        assert_eq!(scene.weights.maps.is_empty(), encoder != "transformer");
        assert_eq!(scene.unit, if kind == "sound" { "seconds" } else { "steps" });
        assert!(picture::svg(&scenes[0].1, "", None).contains("predicted"));
    }
}

/// Recordings with segments, listed and beside each other.
fn recordings(folder: &Path) -> String {
    let mut list = String::new();
    for (at, one) in toy::spoken(30, 5).unwrap().into_iter().enumerate() {
        files::wav(&folder.join(format!("{at:02}.wav")), &one.samples, toy::SPOKEN_RATE);
        let words = one.segments.iter().filter(|(_, _, label)| label != "pause");
        let marks: String = words.map(|(a, b, label)| format!("{a}\t{b}\t{label}\n")).collect();
        std::fs::write(folder.join(format!("{at:02}.txt")), marks).unwrap();
        list += &format!("{at:02}.wav\t{at:02}.txt\n");
    }
    let path = folder.join("list.tsv");
    std::fs::write(&path, list).unwrap();
    path.display().to_string()
}

#[test]
fn recordings_of_ones_own_are_read_and_gaps_have_a_label() {
    let folder = tempfile::tempdir().unwrap();
    let list = recordings(folder.path());
    let describe = |path: &str| {
        let train = format!("train={path}");
        let options = options("label", &with(&["kind=sound", &train, "gap=silence"]));
        task_named("label").unwrap().describe(&options).unwrap()
    };
    let (listed, beside) = (describe(&list), describe(&folder.path().display().to_string()));
    assert_eq!(listed.facts, beside.facts);
    // Ten words at most, and what stands between them.
    let labels = listed.facts.iter().find(|(name, _)| name == "labels").unwrap();
    let labels: usize = labels.1.parse().unwrap();
    assert!((5..=11).contains(&labels), "{labels}");
    let train = format!("train={list}");
    let course = Course::done("label", &with(&["kind=sound", &train]));
    let sound = files::content(folder.path().join("02.wav"));
    assert_eq!(course.model().predict(std::slice::from_ref(&sound)).unwrap().len(), 1);
    assert_eq!(course.drawn(sound), ["segments"]);
}

#[test]
fn a_table_and_numpy_files_hold_the_same_sequences() {
    let folder = tempfile::tempdir().unwrap();
    let mut table = String::from("run,x,y,state\n");
    for run in 0..30 {
        let mut numbers = Vec::new();
        let mut labels = String::new();
        for step in 0..8 {
            let (x, label) =
                ((run * step % 5) as f32, if run * step % 5 > 2 { "high" } else { "low" });
            numbers.extend([x, step as f32]);
            labels += &format!("{label}\n");
            table += &format!("{run},{x},{step},{label}\n");
        }
        std::fs::write(
            folder.path().join(format!("{run:02}.npy")),
            npy("<f4", "(8, 2)", &floats(&numbers)),
        )
        .unwrap();
        std::fs::write(folder.path().join(format!("{run:02}.txt")), labels).unwrap();
    }
    let csv = folder.path().join("table.csv");
    std::fs::write(&csv, table).unwrap();
    let small = with(&["epochs=30", "learning_rate=0.01", "warmup_steps=0"]);
    let run = |more: &[&str]| Course::done("label", &[&small[..], more].concat());
    let (csv, npy) =
        (format!("train={}", csv.display()), format!("train={}", folder.path().display()));
    let columns = ["kind=table", "sequence_column=run", "label_column=state"];
    let table = run(&[&columns[..], &[&csv]].concat());
    let arrays = run(&["kind=vectors", &npy]);
    assert_eq!(table.records(), arrays.records());
    let scores = table.model().evaluate(Part::Test).unwrap().scores;
    assert!(scores.get("accuracy").unwrap() > 0.9, "{scores:?}");
    let array = files::content(folder.path().join("03.npy"));
    assert!(arrays.model().predict(&[array]).unwrap()[0].output.contains("low"));
}

#[test]
fn numpys_own_files_are_read_number_by_number() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.npy");
    let read = |bytes: Vec<u8>| {
        std::fs::write(&path, bytes).unwrap();
        NumpyArray::read(&path).map_err(|error| error.to_string())
    };
    let found = read(npy("<f4", "(2, 2)", &floats(&[1.0, -2.5, 0.0, 4.0]))).unwrap();
    assert_eq!(found.shape, [2, 2]);
    assert_eq!(found.values, NumpyValues::Numbers(vec![1.0, -2.5, 0.0, 4.0]));
    let found =
        read(npy("<i8", "(2,)", &[&7i64.to_le_bytes()[..], &(-1i64).to_le_bytes()].concat()));
    assert_eq!(found.unwrap().values, NumpyValues::Numbers(vec![7.0, -1.0]));
    let text: Vec<u8> = ['o', 'n', '\0', '关', '\0', '\0']
        .iter()
        .flat_map(|&c| u32::from(c).to_le_bytes())
        .collect();
    let found = read(npy("<U3", "(2,)", &text)).unwrap();
    assert_eq!(found.values, NumpyValues::Texts(vec!["on".into(), "关".into()]));
    let whole = npy("<f8", "(3, 1)", &[0; 24]);
    for cut in [0, 5, 9, 30, whole.len() - 1] {
        assert!(read(whole[..cut].to_vec()).is_err(), "{cut} bytes");
    }
    assert!(read(npy("<c8", "(1,)", &[0; 8])).unwrap_err().contains("<c8"));
}

#[test]
fn what_cannot_be_read_is_told_with_file_and_line() {
    let folder = tempfile::tempdir().unwrap();
    let list = recordings(folder.path());
    let marks = |text: &str| {
        std::fs::write(folder.path().join("04.txt"), text).unwrap();
        refusal("label", &with(&["kind=sound", &format!("train={list}")]))
    };
    let ends = |told: String, end: &str| assert!(told.ends_with(end), "{told}");
    ends(
        marks("0.1\t0.2\n"),
        "04.txt, line 1: start, end and label with tabs between were expected",
    );
    ends(marks("0.1\tx\tone\n"), "04.txt, line 1: `x` is no number of seconds");
    ends(
        marks("0.3\t0.2\tone\n"),
        "04.txt, line 1: a segment from 0.3 to 0.2 s ends before it begins",
    );
    ends(
        marks("0\t0.3\tone\n0.2\t0.4\ttwo\n"),
        "04.txt, line 2: it begins at 0.2 s; the one before ends at 0.3 s",
    );
    ends(
        marks("0\t0.3\t \n"),
        "04.txt, line 1: start, end and label with tabs between were expected",
    );
    ends(marks(""), "04.txt: there are no segments");
    let csv = |text: &str| {
        let path = folder.path().join("t.csv");
        std::fs::write(&path, text).unwrap();
        refusal("label", &with(&["kind=table", &format!("train={}", path.display())]))
    };
    ends(csv("a,b,label\n1,2,x\n"), "t.csv, line 1: the header has no column `sequence`");
    ends(
        csv("sequence,label\n1,x\n"),
        "t.csv, line 1: there is no column of numbers beside sequence and label",
    );
    ends(
        csv("sequence,v,label\n1,2,x\n1,no,x\n"),
        "t.csv, line 3: column v: `no` is not a finite number",
    );
    ends(
        csv("sequence,v,label\n1,2,x\n1,2\n"),
        "t.csv, line 3: 3 columns were expected, 2 are there",
    );
    ends(
        csv("sequence,v,label\n1,2,x\n2,2,x\n1,2,x\n"),
        "t.csv, line 4: sequence `1` is taken up again; its rows follow each other",
    );
    let arrays = folder.path().join("arrays");
    std::fs::create_dir(&arrays).unwrap();
    std::fs::write(arrays.join("a.npy"), npy("<f4", "(2, 2)", &[0; 16])).unwrap();
    let vectors = |labels: &str| {
        std::fs::write(arrays.join("a.txt"), labels).unwrap();
        refusal("label", &with(&["kind=vectors", &format!("train={}", arrays.display())]))
    };
    ends(vectors("x\n"), "a.npy: 1 labels for 2 vectors");
    ends(vectors("x\n\ny\n"), "a.txt, line 2: the label is empty");
    // Beyond what is computed in, whichever way it is written.
    let large = [1.0, 2.0, 1e39, 4.0].map(f64::to_le_bytes).concat();
    std::fs::write(arrays.join("a.npy"), npy("<f8", "(2, 2)", &large)).unwrap();
    let told = vectors("x\ny\n");
    assert!(told.contains("a.npy: vector 1 holds 1e39, which is beyond"), "{told}");
    std::fs::write(arrays.join("a.npy"), npy("<f4", "(2, 2)", &[0; 16])).unwrap();
    std::fs::write(arrays.join("b.npz"), "PK").unwrap();
    ends(vectors("x\ny\n"), "b.npz: not a .npz file: it is no zip, or cut short");
}

#[test]
fn arrays_that_numpy_stored_and_deflated_are_read() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures");
    let numbers: Vec<f64> = (0..15).map(|x| (f64::from(x) - 7.0) / 4.0).collect();
    let texts = ["on", "off", "关", "on", "off"].map(String::from).to_vec();
    for (name, labels) in [
        ("stored.npz", NumpyValues::Texts(texts)),
        ("deflated.npz", NumpyValues::Numbers(vec![1.0, 0.0, 2.0, 1.0, 0.0])),
    ] {
        let all = NumpyArray::read_all(&folder.join(name)).unwrap();
        let found = |name: &str| &all.iter().find(|(known, _)| known == name).unwrap().1;
        assert_eq!(found("features").shape, [5, 3], "{name}");
        assert_eq!(found("features").values, NumpyValues::Numbers(numbers.clone()), "{name}");
        assert_eq!(found("labels").values, labels, "{name}");
        let bytes = std::fs::read(folder.join(name)).unwrap();
        let cut = tempfile::tempdir().unwrap();
        for length in (0..bytes.len()).step_by(7) {
            let path = cut.path().join("cut.npz");
            std::fs::write(&path, &bytes[..length]).unwrap();
            assert!(NumpyArray::read_all(&path).is_err(), "{length} bytes of {name}");
        }
    }
    let copied = tempfile::tempdir().unwrap();
    for at in 0..20 {
        let to = copied.path().join(format!("{at}.npz"));
        std::fs::copy(folder.join("stored.npz"), to).unwrap();
    }
    let train = format!("train={}", copied.path().display());
    let description = task_named("label")
        .unwrap()
        .describe(&options("label", &with(&["kind=vectors", &train])))
        .unwrap();
    let labels = description.facts.iter().find(|(name, _)| name == "labels");
    assert_eq!(labels.unwrap().1, "3");
}

/// A table of sequences of so many steps, whose numbers tell their labels; the last row of all has
/// another label.
fn table(folder: &Path, name: &str, steps: usize, last: &str) -> String {
    let mut text = String::from("sequence,x,y,label\n");
    for run in 0..12 {
        for step in 0..steps {
            let x = run * step % 5;
            let label = match (run, step) {
                (11, step) if step + 1 == steps => last,
                _ if x > 2 => "high",
                _ => "low",
            };
            text += &format!("{run},{x},{step},{label}\n");
        }
    }
    std::fs::write(folder.join(name), text).unwrap();
    folder.join(name).display().to_string()
}

#[test]
fn a_label_unseen_in_training_counts_as_wrong_and_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let train = format!("train={}", table(folder.path(), "train.csv", 8, "low"));
    let validation = format!("validation={}", table(folder.path(), "new.csv", 8, "never"));
    let settings = with(&["kind=table", &train, &validation, "held_out=0.2"]);
    let own = options("label", &settings);
    let learner = task_named("label").unwrap().begin(&own).unwrap();
    let told = "1 of the validation part's 96 labels is unseen in training (never)";
    assert!(learner.notes()[0].starts_with(told), "{:?}", learner.notes());
    let facts = task_named("label").unwrap().describe(&own).unwrap().facts;
    assert!(facts.contains(&("unseen in validation".into(), "1 (never)".into())), "{facts:?}");
    assert!(facts.contains(&("unseen in test".into(), "none".into())), "{facts:?}");
    let report = Course::done("label", &settings).model().evaluate(Part::Validation).unwrap();
    assert!(report.notes[0].starts_with(told), "{:?}", report.notes);
    let each = report.each.unwrap().values;
    assert_eq!((each.len(), each[95]), (96, 0.0));
    let accuracy = each.iter().sum::<f64>() / 96.0;
    assert!((report.scores.get("accuracy").unwrap() - accuracy).abs() < 1e-12);
    assert!(report.scores.get("loss").unwrap().is_finite());
    assert_eq!(report.confusion.unwrap().labels.last().unwrap(), "never");
}

#[test]
fn a_sequence_longer_than_the_longest_is_read_in_pieces() {
    let folder = tempfile::tempdir().unwrap();
    let train = format!("train={}", table(folder.path(), "train.csv", 8, "low"));
    let validation = format!("validation={}", table(folder.path(), "long.csv", 20, "low"));
    let settings = with(&["kind=table", &train, &validation, "max_length=8"]);
    // What labels each vector by itself says the same of pieces and of the whole.
    let alone = Course::done("label", &[&settings[..], &["encoder=none"]].concat());
    let outputs = |longest: &str| {
        let own = alone.options.clone().set(longest).unwrap();
        alone.run.model(&own).unwrap().evaluate(Part::Validation).unwrap().outputs
    };
    assert_eq!(outputs("max_length=3"), outputs("max_length=100"));
    // What has places for eight vectors alone reads twenty.
    for places in [&["encoder=fully-connected"][..], &["position=learned"]] {
        let course = Course::done("label", &[&settings[..], places].concat());
        let report = course.model().evaluate(Part::Validation).unwrap();
        assert_eq!((report.examples, report.each.unwrap().values.len()), (12, 240));
    }
}

#[test]
fn arrays_of_any_byte_order_column_order_and_half_precision_are_read() {
    let numbers = [1.0, -2.5, 0.0, 4.0, 0.125, -65504.0];
    let halves: [u16; 6] = [0x3c00, 0xc100, 0, 0x4400, 0x3000, 0xfbff];
    // [2, 3], column by column.
    let columns = [0, 3, 1, 4, 2, 5].map(|at| numbers[at]);
    let bytes = |all: &[f64], wide: usize, big: bool| -> Vec<u8> {
        let one = |&x: &f64| {
            let mut bytes = match wide {
                2 => halves[numbers.iter().position(|y| *y == x).unwrap()].to_le_bytes().to_vec(),
                4 => (x as f32).to_le_bytes().to_vec(),
                _ => x.to_le_bytes().to_vec(),
            };
            if big {
                bytes.reverse();
            }
            bytes
        };
        all.iter().flat_map(one).collect()
    };
    let mut tried = 0;
    for wide in [2, 4, 8] {
        for big in [false, true] {
            for fortran in [false, true] {
                let order = if big { '>' } else { '<' };
                let stored = if fortran { columns } else { numbers };
                let mut file =
                    npy(&format!("{order}f{wide}"), "(2, 3)", &bytes(&stored, wide, big));
                if fortran {
                    let at = file.windows(5).position(|five| five == b"False").unwrap();
                    file.splice(at..at + 5, *b"True ");
                }
                let read = NumpyArray::decode(Path::new("a.npy"), &file).unwrap();
                assert_eq!(
                    read.values,
                    NumpyValues::Numbers(numbers.to_vec()),
                    "{wide} {big} {fortran}"
                );
                assert_eq!(read.shape, [2, 3]);
                tried += 1;
            }
        }
    }
    assert_eq!(tried, 12);
    let text = npy(">U2", "(1,)", &[0, 0, 0x51, 0x73, 0, 0, 0, 0x78]);
    let read = NumpyArray::decode(Path::new("a.npy"), &text).unwrap();
    assert_eq!(read.values, NumpyValues::Texts(vec!["关x".into()]));
}
