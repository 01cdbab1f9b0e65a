//! `translate` from end to end on its embedded data: trains, improves, saves, resumes, predicts,
//! draws.

// A test that cannot be set up should stop.
use regard_data::toy;
use regard_picture::picture;
use regard_tasks::options::{Options, TrainingConfig};
use regard_tasks::run::{Checkpoint, Run};
use regard_tasks::task::Part;
use regard_tasks::tasks::task_named;
use regard_tasks::train::{Callback, Ended, Progress, Silent, train};
use std::fs;
use std::path::Path;
use tempfile::TempDir;

/// Small enough for seconds.
const SMALL: [&str; 9] = [
    "embedded=dates",
    "tokenizer=characters",
    "size=1200",
    "embedding=24",
    "hidden=48",
    "score_hidden=24",
    "epochs=3",
    "learning_rate=0.01",
    "dropout=0.0",
];

fn options(more: &[&str]) -> Options {
    let task = task_named("translate").unwrap();
    let all = SMALL.iter().chain(more);
    // What makes one model small is set for all, and has no effect on some.
    all.fold(task.options().unwrap(), |options, setting| options.set(setting).unwrap())
        .set_by_nobody()
}

#[test]
fn what_is_to_be_copied_is_measured_by_its_place_in_the_source_beside_its_length() {
    let folder = TempDir::new().unwrap();
    // The embedded rows, as files, so that they are known here.
    let written = |name: &str, rows: &[(String, String)]| {
        let lines: String = rows.iter().map(|(a, b)| format!("{a}\t{b}\n")).collect();
        let path = folder.path().join(format!("{name}.tsv"));
        fs::write(&path, lines).unwrap();
        format!("{name}_pairs={}", path.display())
    };
    let rows = toy::copies(400, 1).unwrap();
    let parts = [("train", 0..300), ("validation", 300..350), ("test", 350..400)];
    let files = parts.map(|(name, range)| written(name, &rows[range]));
    let more = [&files.each_ref().map(|f| &f[..])[..], &["tokenizer=words", "epochs=2"]].concat();
    let (run, _) = trained(&folder.path().join("copies"), &options(&more), &mut Silent);
    let model = run.model(&run.options().unwrap()).unwrap();
    let report = model.evaluate(Part::Test).unwrap();
    assert_eq!(report.groups.unwrap().by, "tokens of the source");
    let places = report.places.unwrap();
    assert_eq!((&*places.measure, &*places.by), ("accuracy", "position in the source"));
    // Counted again, place by place.
    let mut expected = Vec::new();
    for (first, name) in [(0, "1–5"), (5, "6–10"), (10, "11–15"), (15, "16–20")] {
        let (mut right, mut all) = (0, 0);
        for ((source, _), output) in rows[350..].iter().zip(&report.outputs) {
            let source: Vec<&str> = source.split(' ').collect();
            let output: Vec<&str> = output.split(' ').collect();
            for (place, letter) in source.iter().enumerate().skip(first).take(5) {
                all += 1;
                right += usize::from(output.get(place) == Some(letter));
            }
        }
        assert!(all > 0);
        expected.push((name.to_string(), f64::from(right as u32) / f64::from(all)));
    }
    assert_eq!(places.values, expected);
    assert!(expected[0].1 > 0.0, "{expected:?}");
    // Where a word of the target comes from is not known of other data.
    let dates = ["size=60", "epochs=1"];
    let (run, _) = trained(&folder.path().join("dates"), &options(&dates), &mut Silent);
    let report = run.model(&run.options().unwrap()).unwrap().evaluate(Part::Test).unwrap();
    assert_eq!(report.places, None);
}

fn trained(folder: &Path, options: &Options, callback: &mut dyn Callback) -> (Run, Ended) {
    let task = task_named("translate").unwrap();
    let mut learner = task.begin(options).unwrap();
    let run = match folder.exists() {
        true => Run::open(folder).unwrap(),
        false => Run::create(folder, task, options, learner.model()).unwrap(),
    };
    let config = TrainingConfig::of(options).unwrap();
    let ended = train(learner.as_mut(), &config, &run, callback).unwrap();
    (run, ended)
}

/// Stops after so many batches.
struct Until(usize);

impl Callback for Until {
    fn batch(&mut self, _: &Progress) {
        self.0 = self.0.saturating_sub(1);
    }

    fn stop(&self) -> bool {
        self.0 == 0
    }
}

/// All numbers of a checkpoint, as they are on disk.
fn numbers(path: &Path) -> Vec<(String, Vec<u8>)> {
    let bytes = fs::read(path).unwrap();
    let file = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    let mut all: Vec<_> =
        file.tensors().into_iter().map(|(name, x)| (name, x.data().to_vec())).collect();
    all.sort();
    all
}

#[test]
fn it_learns_dates_and_then_evaluates_predicts_and_draws() {
    let folder = TempDir::new().unwrap();
    let options = options(&["epochs=6"]);
    let (run, ended) = trained(&folder.path().join("run"), &options, &mut Silent);
    assert_eq!(ended, Ended::Done);
    let records = regard_tasks::run::Record::read(&run, usize::MAX).unwrap();
    assert_eq!(records.len(), 6);
    assert!(records[5].loss < 0.5 * records[0].loss, "{records:?}");
    let model = run.model(&options).unwrap();
    let report = model.evaluate(Part::Test).unwrap();
    assert_eq!(report.examples, 120);
    assert_eq!(report.outputs.len(), 120);
    let exact = report.scores.get("exact").unwrap();
    // By chance it would be none.
    assert!(exact > 0.2, "{:?}", report.scores);
    let answers = model.predict(&["May 3, 1999".into(), "the 21st of June 2004".into()]).unwrap();
    assert!(answers.iter().all(|answer| answer.output.len() == 10), "{answers:?}");
    let scenes = model.show(&"May 3, 1999".into()).unwrap();
    let (name, scene) = &scenes[0];
    assert_eq!(name, "alignment");
    let svg = picture::svg(scene, "May 3, 1999", None);
    assert!(svg.starts_with("<svg") && picture::png(&svg, 1.0).unwrap().len() > 1000);
    let regard_picture::scene::Scene::Maps(maps) = scene else { panic!("{scene:?}") };
    assert_eq!(maps.columns.concat(), "May 3, 1999");
    for row in maps.maps[0].weights.chunks(maps.columns.len()) {
        assert!((row.iter().sum::<f32>() - 1.0).abs() < 1e-4);
    }
    for name in [
        "config.toml",
        "run.json",
        "vocabulary.json",
        "metrics.jsonl",
        "curves.svg",
        "best.safetensors",
    ] {
        assert!(run.path(name).exists(), "{name}");
    }
}

#[test]
fn stopped_in_the_middle_of_an_epoch_and_resumed_it_ends_with_the_same_bits() {
    let folder = TempDir::new().unwrap();
    let more =
        ["size=400", "dropout=0.2", "ema_decay=0.9", "accumulation_steps=2", "schedule=plateau"];
    let options = options(&more);
    let (straight, _) = trained(&folder.path().join("straight"), &options, &mut Silent);
    let path = folder.path().join("stopped");
    let (_, ended) = trained(&path, &options, &mut Until(5));
    assert_eq!(ended, Ended::Stopped);
    let state = Checkpoint::read(&path.join("last.safetensors")).unwrap().state;
    assert!(state.epoch == 1 && state.batch > 0, "stopped in the middle of an epoch: {state:?}");
    let (_, ended) = trained(&path, &options, &mut Silent);
    assert_eq!(ended, Ended::Done);
    for name in ["last.safetensors", "best.safetensors"] {
        let (a, b) = (numbers(&straight.path(name)), numbers(&path.join(name)));
        for group in ["optimizer/", "average/"] {
            let is_there = a.iter().any(|(name, _)| name.starts_with(group));
            assert_eq!(is_there, name == "last.safetensors", "{name}: {group}");
        }
        assert_eq!(a, b, "{name}");
    }
}

#[test]
fn the_same_seed_gives_the_same_measures_and_another_does_not() {
    let folder = TempDir::new().unwrap();
    let measures = |name: &str, seed: &str| {
        let small = options(&["size=300", "epochs=1", "dropout=0.1", seed]);
        let (run, _) = trained(&folder.path().join(name), &small, &mut Silent);
        let record = regard_tasks::run::Record::read(&run, 1).unwrap().remove(0);
        (record.loss, record.validation)
    };
    assert_eq!(measures("a", "seed=1"), measures("b", "seed=1"));
    assert_ne!(measures("c", "seed=2"), measures("a2", "seed=1"));
}

#[test]
fn every_kind_of_model_trains_and_translates() {
    let folder = TempDir::new().unwrap();
    let kinds: [&[&str]; 9] = [
        &["context=fixed"],
        &["encoder=lstm", "decoder=lstm", "score=dot", "bidirectional=false"],
        &["encoder=rnn", "decoder=rnn", "score=bilinear"],
        &["encoder=cnn", "score=cosine", "bidirectional=false"],
        &[
            "score=expression",
            "expression=\"sum(w * tanh(q + k))\"",
            "expression_numbers=[]",
            "bidirectional=false",
        ],
        &["encoder=gru", "decoder=transformer", "heads=2", "feed_forward=64", "score=concat"],
        &["encoder=transformer", "decoder=transformer", "context=multi-head", "heads=2"],
        &["weighting=sample", "scheduled_sampling=0.2"],
        &["weighting=sparsemax", "score=low-rank", "tied_embeddings=all", "shared_vocabulary=true"],
    ];
    for (i, kind) in kinds.into_iter().enumerate() {
        let small =
            options(&[&["size=100", "epochs=1", "hidden=24", "score_hidden=16"], kind].concat());
        let (run, ended) = trained(&folder.path().join(i.to_string()), &small, &mut Silent);
        assert_eq!(ended, Ended::Done, "{kind:?}");
        let model = run.model(&small).unwrap();
        assert_eq!(model.predict(&["May 3, 1999".into()]).unwrap().len(), 1, "{kind:?}");
        let shown = model.show(&"May 3, 1999".into());
        assert_eq!(shown.is_ok(), i > 0, "{kind:?}");
        // A Transformer's decoder attends to what it wrote, and to nothing else.
        let decoder = shown.iter().flatten().find(|(name, _)| name == "decoder");
        assert_eq!(decoder.is_some(), kind.contains(&"decoder=transformer"), "{kind:?}");
        if let Some((_, regard_picture::scene::Scene::Maps(maps))) = decoder {
            let n = maps.rows.len();
            assert_eq!(
                (&maps.columns[0][..], &maps.columns[1..]),
                ("<start>", &maps.rows[..n - 1])
            );
            for map in &maps.maps {
                for (at, row) in map.weights.chunks(n).enumerate() {
                    assert!(row[at + 1..].iter().all(|&w| w == 0.0), "{}", map.name);
                    assert!((row.iter().sum::<f32>() - 1.0).abs() < 1e-4, "{}", map.name);
                }
            }
        }
    }
}

#[test]
fn a_recurrent_decoder_learns_with_the_scaled_dot_as_with_the_plain_one() {
    let folder = TempDir::new().unwrap();
    let bleu = |name: &str, more: &[&str]| {
        let options = options(&[&["bidirectional=false", "epochs=6"], more].concat());
        let (run, _) = trained(&folder.path().join(name), &options, &mut Silent);
        let model = run.model(&options).unwrap();
        model.evaluate(Part::Validation).unwrap().scores.first().1
    };
    let dot = bleu("dot", &["score=dot"]);
    let scaled = bleu("scaled", &["score=scaled-dot"]);
    let small = bleu("small", &["score=scaled-dot", "query_gain=false"]);
    assert!(scaled > 0.9 * dot, "{scaled} with the scale, {dot} without");
    assert!(scaled > 1.3 * small, "{scaled} with a gain, {small} without");
}

#[test]
fn a_run_from_before_there_was_a_gain_has_none() {
    let folder = TempDir::new().unwrap();
    let (task, old) = (task_named("translate").unwrap(), ["score=scaled-dot", "query_gain=false"]);
    let options = options(&[&["bidirectional=false", "size=40"], &old[..]].concat());
    let learner = task.begin(&options).unwrap();
    let path = folder.path().join("run");
    let run = Run::create(&path, task, &options, learner.model()).unwrap();
    let text = fs::read_to_string(run.path("config.toml")).unwrap();
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with("query_gain")).collect();
    assert_eq!(lines.len() + 1, text.lines().count());
    fs::write(run.path("config.toml"), lines.join("\n")).unwrap();
    let found = Run::open(&path).unwrap().options().unwrap();
    assert_eq!(found.get("model.query_gain").unwrap().as_bool(), Some(false));
}

#[test]
fn own_files_are_read_and_parts_are_held_out() {
    let folder = TempDir::new().unwrap();
    let pairs: String = (0..50).map(|i| format!("wort {i}\tword {i}\n")).collect();
    let path = folder.path().join("pairs.tsv");
    fs::write(&path, pairs).unwrap();
    let set = format!("train_pairs={}", path.display());
    let options = options(&[&set, "tokenizer=whitespace", "epochs=1", "held_out=0.2"]);
    let description = task_named("translate").unwrap().describe(&options).unwrap();
    let facts: Vec<&str> = description.facts.iter().map(|(_, text)| &text[..]).take(3).collect();
    assert_eq!(facts, ["30", "10", "10"]);
    let (run, _) = trained(&folder.path().join("run"), &options, &mut Silent);
    assert_eq!(run.model(&options).unwrap().evaluate(Part::Test).unwrap().examples, 10);
}

#[test]
fn what_cannot_be_read_is_told_in_a_sentence() {
    let folder = TempDir::new().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let (long, short) = (file("a.de", "a\nb\nc\n"), file("a.en", "a\nb\n"));
    let refused = |settings: &[&str]| {
        let options = options(settings);
        task_named("translate").unwrap().begin(&options).err().unwrap().to_string()
    };
    let ragged = refused(&[&format!("train_source={long}"), &format!("train_target={short}")]);
    assert!(ragged.contains("a.de") && ragged.contains("a.en"), "{ragged}");
    assert!(ragged.contains('3') && ragged.contains('2'), "{ragged}");
    assert_eq!(
        refused(&[&format!("train_source={long}")]),
        "the train part needs `data.train_source` and `data.train_target`, or `data.train_pairs` \
         alone"
    );
    assert_eq!(refused(&["held_out=0.9"]), "`data.held_out` cannot be 0.9; it is below 0.5");
    assert!(refused(&["encoder=gruu"]).contains("gruu"));
    let written = ["score=expression", "expression=\"q @ tahn(k)\"", "bidirectional=false"];
    assert!(refused(&written).contains("column 5"), "{}", refused(&written));
    assert!(
        refused(&["score=dot"]).starts_with("this `model.score` compares vectors of one width")
    );
}

#[test]
fn a_truncated_or_foreign_checkpoint_is_refused_by_name() {
    let folder = TempDir::new().unwrap();
    let options = options(&["size=100", "epochs=1"]);
    let (run, _) = trained(&folder.path().join("run"), &options, &mut Silent);
    let best = run.path("best.safetensors");
    let whole = fs::read(&best).unwrap();
    let told = || run.model(&options).err().unwrap().to_string();
    fs::write(&best, &whole[..whole.len() / 2]).unwrap();
    assert!(told().contains("best.safetensors") && told().contains("damaged"), "{}", told());
    let foreign = safetensors::serialize([("x", view())], None);
    fs::write(&best, foreign.unwrap()).unwrap();
    assert!(told().ends_with("a safetensors file, but not a checkpoint of regard"), "{}", told());
    fs::remove_file(&best).unwrap();
    assert!(told().contains("best.safetensors"), "{}", told());
}

#[test]
fn a_vocabulary_that_is_no_json_or_another_tasks_is_refused_by_name() {
    let folder = TempDir::new().unwrap();
    let options = options(&["size=100", "epochs=1"]);
    let (run, _) = trained(&folder.path().join("run"), &options, &mut Silent);
    let vocabulary = run.path("vocabulary.json");
    for (text, what) in [("{", "EOF"), (r#"{"labels":[]}"#, "missing field `source`")] {
        fs::write(&vocabulary, text).unwrap();
        let told = run.model(&options).err().unwrap().to_string();
        assert!(told.starts_with(&format!("{}: ", vocabulary.display())), "{told}");
        assert!(told.contains(what) && told.contains("line 1"), "{told}");
    }
}

fn view() -> safetensors::tensor::TensorView<'static> {
    safetensors::tensor::TensorView::new(safetensors::Dtype::F32, vec![1], &[0; 4]).unwrap()
}

#[test]
fn a_report_counts_the_values_that_were_read_for_each_word() {
    let small = ["size=60", "epochs=1", "hidden=8", "embedding=8", "score_hidden=8"];
    let read = |more: &[&str]| {
        let course = crate::course::Course::done("translate", &[&small[..], more].concat());
        course.model().evaluate(Part::Test).unwrap().values_read
    };
    let mut counted = 0;
    for decoder in ["decoder=gru", "decoder=cnn", "decoder=transformer"] {
        for soft in ["softmax", "sparsemax", "sigmoid"] {
            let read = read(&[decoder, &format!("weighting={soft}")]).unwrap();
            assert!(read.per_output == read.of && read.of > 2.0, "{decoder} {soft}: {read:?}");
            counted += 1;
        }
        for hard in ["argmax", "sample", "straight-through", "gumbel-hard"] {
            for beam in ["beam=1", "beam=2"] {
                let read = read(&[decoder, beam, &format!("weighting={hard}")]).unwrap();
                let what = format!("{decoder} {hard} {beam}: {read:?}");
                assert!(read.per_output == 1.0 && read.of > 2.0, "{what}");
                counted += 1;
            }
        }
        assert!(read(&[decoder, "context=fixed"]).is_none());
    }
    let heads = ["decoder=transformer", "encoder=transformer", "context=multi-head", "heads=2"];
    let soft = read(&heads).unwrap();
    assert_eq!(soft.per_output, soft.of);
    let hard = read(&[&heads[..], &["head_weighting=argmax"]].concat()).unwrap();
    assert!(hard.per_output == 1.0 && hard.of > 2.0, "{hard:?}");
    assert_eq!(counted, 33);
}
