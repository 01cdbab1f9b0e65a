//! What a training may start from: another run, pretrained vectors, weights that stay.

use regard::tensor::load;
use regard_tasks::{Callback, Run, Silent, TrainingConfig, task_named, train};
use std::collections::BTreeMap;
use std::path::Path;

const SMALL: [&str; 6] =
    ["size=60", "epochs=1", "hidden=8", "embedding=8", "heads=2", "feed_forward=8"];

/// Keeps what is said.
#[derive(Default)]
struct Notes(Vec<String>);

impl Callback for Notes {
    fn note(&mut self, text: &str) {
        self.0.push(text.into());
    }
}

/// Trains, and gives what was said.
fn trained(task: &str, folder: &Path, settings: &[&str]) -> regard_tasks::Result<Vec<String>> {
    let task = task_named(task)?;
    let small = if task.name() == "label" { &SMALL[..] } else { &SMALL[..2] };
    let all = small.iter().chain(settings);
    let options = all.fold(task.options()?, |options, s| options.set(s).unwrap());
    let mut learner = task.begin(&options)?;
    let run = Run::create(folder, task, &options, learner.model())?;
    let mut notes = Notes::default();
    train(learner.as_mut(), &TrainingConfig::of(&options)?, &run, &mut notes)?;
    Ok(notes.0)
}

fn weights(folder: &Path) -> BTreeMap<String, Vec<f32>> {
    let (tensors, _) = load(folder.join("best.safetensors")).unwrap();
    let of_model = tensors.into_iter().filter_map(|(name, x)| {
        let name = name.strip_prefix("model/")?.to_owned();
        Some((name, x.to_vec::<f32>().unwrap()))
    });
    of_model.collect()
}

#[test]
fn a_run_begins_with_the_weights_of_another_and_says_which() {
    let folder = tempfile::tempdir().unwrap();
    let [a, b, c] = ["a", "b", "c"].map(|name| folder.path().join(name));
    trained("label", &a, &[]).unwrap();
    let from = format!("init_from=\"{}\"", a.display());
    // A rate of next to nothing: what was taken is still there.
    let said = trained("label", &b, &[&from, "rate=1e-12", "seed=2"]).unwrap();
    assert!(said[0].contains("weights are those of") && !said[0].contains("new are"), "{said:?}");
    let (old, new) = (weights(&a), weights(&b));
    for (name, numbers) in &old {
        let apart = numbers.iter().zip(&new[name]).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(apart < 1e-6, "{name} moved by {apart}");
    }
    // Another number of layers and other words: what fits is taken, and no row of a table.
    let said =
        trained("label", &c, &[&from, "layers=3", "rate=1e-12", "seed=2", "size=90"]).unwrap();
    assert!(
        said[0].contains("encoder.layers.2.") && said[0].contains("vocabularies differ"),
        "{said:?}"
    );
    let newer = weights(&c);
    assert_eq!(newer["encoder.layers.0.linear1.bias"].len(), 8);
    let near = |a: &[f32], b: &[f32]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-6);
    let name = "encoder.layers.0.self_attn.in_proj_weight";
    assert!(near(&old[name], &newer[name]));
    assert!(!near(&old["input.weight"], &newer["input.weight"]));
    let refusal = trained("image", &folder.path().join("d"), &[&from]).unwrap_err().to_string();
    assert!(refusal.contains("none of"), "{refusal}");
}

#[test]
fn frozen_weights_stay_and_the_others_move() {
    let folder = tempfile::tempdir().unwrap();
    let [a, b] = ["a", "b"].map(|name| folder.path().join(name));
    let options = task_named("label").unwrap().options().unwrap();
    let options = SMALL.iter().fold(options, |options, s| options.set(s).unwrap());
    let before =
        task_named("label").unwrap().begin(&options).unwrap().model().parameters().tensors();
    let said =
        trained("label", &a, &["freeze=[\"encoder.*\", \"*.bias\"]", "weight_decay=0.1"]).unwrap();
    assert!(said[0].contains("stay as they are"), "{said:?}");
    for (name, numbers) in weights(&a) {
        let is_frozen = name.starts_with("encoder.") || name.ends_with(".bias");
        let same = before[&name].to_vec::<f32>().unwrap() == numbers;
        assert_eq!(same, is_frozen, "{name}");
    }
    let refusal = trained("label", &b, &["freeze=[\"decoder.*\"]"]).unwrap_err().to_string();
    assert_eq!(refusal, "`training.freeze`: no weight has a name like decoder.*");
}

#[test]
fn pretrained_vectors_are_read_in_every_form_and_refused_by_line() {
    let folder = tempfile::tempdir().unwrap();
    let numbers =
        |x: f32| (0..8).map(|i| format!("{}", x + i as f32)).collect::<Vec<_>>().join(" ");
    let lines = format!(
        "the {}\nsaw {}\nword with spaces {}\n",
        numbers(0.5),
        numbers(100.0),
        numbers(7.0)
    );
    let plain = folder.path().join("glove.txt");
    std::fs::write(&plain, &lines).unwrap();
    let headed = folder.path().join("word2vec.vec");
    std::fs::write(&headed, format!("3 8\n{lines}")).unwrap();
    let packed = folder.path().join("fasttext.vec.gz");
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut gzip, format!("3 8\n{lines}").as_bytes()).unwrap();
    std::fs::write(&packed, gzip.finish().unwrap()).unwrap();
    let mut tables = Vec::new();
    for (at, file) in [&plain, &headed, &packed].into_iter().enumerate() {
        let run = folder.path().join(format!("run{at}"));
        let vectors = format!("vectors=\"{}\"", file.display());
        let said = trained("label", &run, &[&vectors, "freeze=[\"input.*\"]"]).unwrap();
        assert!(said[0].contains("tokens have a vector of"), "{said:?}");
        tables.push(weights(&run)["input.weight"].clone());
    }
    assert!(tables[0] == tables[1] && tables[1] == tables[2]);
    let rows: Vec<&[f32]> = tables[0].chunks(8).collect();
    for first in [0.5, 100.0] {
        let wanted: Vec<f32> = (0..8).map(|i| first + i as f32).collect();
        assert!(rows.contains(&&wanted[..]), "no row begins with {first}");
    }
    let wrong = folder.path().join("wrong.txt");
    for (text, said) in [
        ("the 1 2 3\n".to_owned(), "the vectors of this model have 8"),
        (format!("the {}\nsaw 1 2 3 4 5 6 7 x\n", numbers(1.0)), "line 2: `x` is not a number"),
        (format!("zzz {}\n", numbers(1.0)), "none of the tokens"),
    ] {
        std::fs::write(&wrong, text).unwrap();
        let vectors = format!("vectors=\"{}\"", wrong.display());
        let run = folder.path().join("wrong");
        let refusal = trained("label", &run, &[&vectors]).unwrap_err().to_string();
        assert!(refusal.contains(said), "{refusal}");
        std::fs::remove_dir_all(&run).unwrap();
    }
}

#[test]
fn batches_by_tokens_hold_no_more_tokens_and_every_example() {
    for task in ["label", "translate", "classify"] {
        let task = task_named(task).unwrap();
        let options =
            task.options().unwrap().set("size=200").unwrap().set("batch_tokens=100").unwrap();
        let learner = task.begin(&options).unwrap();
        let random = regard::tensor::Random::new(1);
        let batches = learner.batches(7, &random).unwrap();
        let mut seen = batches.concat();
        seen.sort_unstable();
        assert_eq!(seen, (0..seen.len()).collect::<Vec<_>>());
        assert!(seen.len() >= 190, "{} examples", seen.len());
        let sizes: std::collections::BTreeSet<usize> = batches.iter().map(Vec::len).collect();
        // Short examples come in larger batches than long ones.
        assert!(sizes.len() > 2 && sizes.last() > sizes.first(), "{sizes:?}");
    }
    let mut silent = Silent;
    Callback::note(&mut silent, "nothing is said");
}
