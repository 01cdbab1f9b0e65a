//! What a training may start from: another run, pretrained vectors, weights that stay.

use regard::tensor::load;
use regard_tasks::options::TrainingConfig;
use regard_tasks::run::Run;
use regard_tasks::tasks::{task_named, tasks};
use regard_tasks::train::{Callback, Silent, train};
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
    let options = all.fold(task.options()?, |options, s| options.set(s).unwrap()).set_by_nobody();
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
    let said = trained("label", &b, &[&from, "learning_rate=1e-12", "seed=2"]).unwrap();
    assert!(said[0].contains("weights are those of") && !said[0].contains("new are"), "{said:?}");
    let (old, new) = (weights(&a), weights(&b));
    for (name, numbers) in &old {
        let apart = numbers.iter().zip(&new[name]).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(apart < 1e-6, "{name} moved by {apart}");
    }
    // Another number of layers and other words: what fits is taken, and no row of a table.
    let said =
        trained("label", &c, &[&from, "layers=3", "learning_rate=1e-12", "seed=2", "size=90"])
            .unwrap();
    assert!(said[0].contains("encoder.layers.2.") && said[0].contains(" rows of "), "{said:?}");
    let newer = weights(&c);
    assert_eq!(newer["encoder.layers.0.linear1.bias"].len(), 8);
    let near = |a: &[f32], b: &[f32]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-6);
    let name = "encoder.layers.0.self_attn.in_proj_weight";
    assert!(near(&old[name], &newer[name]));
    // The words that both have keep their vectors, wherever they stand; the others are new.
    let (before, after) = (words(&a), words(&c));
    let row = |table: &[f32], at: usize| table[at * 8..][..8].to_vec();
    let mut moved = 0;
    for (at, word) in after.iter().enumerate() {
        let new = row(&newer["input.weight"], at);
        match before.iter().position(|known| known == word) {
            Some(place) => {
                moved += usize::from(place != at);
                assert!(near(&row(&old["input.weight"], place), &new), "{word}");
            }
            None => assert!(!near(&row(&old["input.weight"], at.min(before.len() - 1)), &new)),
        }
    }
    assert!(after.len() > before.len() && moved > 0, "{moved} of {}", after.len());
    let refusal = trained("image", &folder.path().join("d"), &[&from]).unwrap_err().to_string();
    assert!(refusal.contains("none of"), "{refusal}");
}

/// The words of a labeler's run, in their order.
fn words(folder: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(folder.join("vocabulary.json")).unwrap();
    let all: serde_json::Value = serde_json::from_str(&text).unwrap();
    serde_json::from_value(all["words"].clone()).unwrap()
}

#[test]
fn new_labels_cost_no_word_vectors_and_a_layer_is_no_vocabulary_for_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let [a, b] = ["a", "b"].map(|name| folder.path().join(name));
    let file = |name: &str, labels: [&str; 2]| {
        let line = |at: usize| format!("word{at}\t{}\nruns\t{}\n\n", labels[0], labels[1]);
        let text: String = (0..20).map(line).collect();
        std::fs::write(folder.path().join(name), text).unwrap();
        format!("data.train=\"{}\"", folder.path().join(name).display())
    };
    // `encoder.input` is a layer, whatever its name.
    let set = ["head_hidden=8", "embedding=6", "learning_rate=1e-12"];
    let first = file("a.conll", ["NOUN", "VERB"]);
    trained("label", &a, &[&[&first[..]], &set[..]].concat()).unwrap();
    let from = format!("init_from=\"{}\"", a.display());
    let other = file("b.conll", ["thing", "VERB"]);
    let said = trained("label", &b, &[&[&other[..], &from, "seed=2"], &set[..]].concat()).unwrap();
    let (old, new) = (weights(&a), weights(&b));
    let near = |a: &[f32], b: &[f32]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-6);
    for name in ["input.weight", "encoder.input.weight", "hidden.weight"] {
        assert!(near(&old[name], &new[name]), "{name}: {said:?}");
    }
    // The label that both have keeps its row.
    let rows = |all: &BTreeMap<String, Vec<f32>>| -> Vec<Vec<f32>> {
        all["out.weight"].chunks(8).map(<[f32]>::to_vec).collect()
    };
    let same: usize = rows(&old)
        .iter()
        .map(|one| rows(&new).iter().filter(|other| near(one, other)).count())
        .sum();
    assert_eq!(same, 1, "{said:?}");
    assert!(said[0].contains("1 of 2 rows of out.weight"), "{said:?}");
}

#[test]
fn a_translator_takes_the_rows_of_the_words_that_both_know() {
    let folder = tempfile::tempdir().unwrap();
    let [a, b] = ["a", "b"].map(|name| folder.path().join(name));
    let file = |name: &str, first: usize| {
        let text: String =
            (first..first + 20).map(|at| format!("wort{at} gut\tword{at} good\n")).collect();
        std::fs::write(folder.path().join(name), text).unwrap();
        format!("train_pairs=\"{}\"", folder.path().join(name).display())
    };
    let set = ["hidden=8", "embedding=8", "score_hidden=8", "learning_rate=1e-12"];
    trained("translate", &a, &[&[&file("a.tsv", 0)[..]], &set[..]].concat()).unwrap();
    let from = format!("init_from=\"{}\"", a.display());
    // As many words, nearly all of them others: equal shapes say nothing.
    let other = file("b.tsv", 100);
    let said =
        trained("translate", &b, &[&[&other[..], &from, "seed=2"], &set[..]].concat()).unwrap();
    let (old, new) = (weights(&a), weights(&b));
    let tokens = |run: &Path, side: &str| -> Vec<String> {
        let text = std::fs::read_to_string(run.join("vocabulary.json")).unwrap();
        let all: serde_json::Value = serde_json::from_str(&text).unwrap();
        serde_json::from_value(all[side]["known"]["tokens"].clone()).unwrap()
    };
    let mut new_rows = 0;
    for (table, side) in [("source.weight", "source"), ("output.weight", "target")] {
        let (before, after) = (tokens(&a, side), tokens(&b, side));
        assert_eq!(before.len(), after.len());
        for (at, token) in after.iter().enumerate() {
            let row = |all: &[f32], at: usize| all[at * 8..][..8].to_vec();
            let near = |place: usize| {
                let (a, b) = (row(&old[table], place), row(&new[table], at));
                a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-6)
            };
            match before.iter().position(|known| known == token) {
                Some(place) => assert!(near(place), "{table}: {token}"),
                None => {
                    new_rows += 1;
                    assert!(!near(at), "{table}: {token} has the row of {}", before[at]);
                }
            }
        }
    }
    assert!(new_rows > 20, "{new_rows}");
    let readout = |all: &BTreeMap<String, Vec<f32>>| all["decoder.readout.weight"].clone();
    let near = readout(&old).iter().zip(readout(&new)).all(|(a, b)| (a - b).abs() < 1e-6);
    assert!(near && said[0].contains("rows of source.weight"), "{said:?}");
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

#[test]
fn batches_by_tokens_are_made_by_every_task_with_tokens_and_refused_by_the_others() {
    let mut without = Vec::new();
    for task in tasks() {
        let small = task.options().unwrap().set("data.size=60").unwrap();
        let begin = |tokens: usize| {
            task.begin(&small.clone().set(&format!("batch_tokens={tokens}")).unwrap())
        };
        match (begin(1), begin(100_000)) {
            (Ok(one), Ok(all)) => {
                let batches = |learner: &dyn regard_tasks::task::Learner| {
                    learner.batches(7, &regard::tensor::Random::new(1)).unwrap()
                };
                // One token holds one example, and so many hold all of them, whatever `batch` says.
                let one = batches(one.as_ref());
                assert!(one.iter().all(|batch| batch.len() == 1), "{}", task.name());
                assert_eq!(batches(all.as_ref()).len(), 1, "{}", task.name());
            }
            (Err(said), Err(_)) => {
                assert!(said.to_string().starts_with("`training.batch_tokens` counts"), "{said}");
                without.push(task.name());
            }
            _ => panic!("{} takes some numbers of tokens only", task.name()),
        }
    }
    assert_eq!((tasks().len(), &without[..]), (11, &["regress", "image", "graph"][..]));
}
