//! The best outputs beside the best, columns by name, numbers in JSON.

use crate::settings::WORDS;
use crate::tasks::{path, refused, said};
use std::fs;
use tempfile::TempDir;

fn json(line: &str) -> serde_json::Value {
    serde_json::from_str(line).unwrap()
}

#[test]
fn the_best_translations_come_with_their_scores_the_best_first() {
    let folder = TempDir::new().unwrap();
    let run = path(&folder, "run");
    said(&[&["train", "translate"], &WORDS[..], &["--out", &run]].concat());
    let told = said(&["predict", &run, "--n-best", "5", "May 3, 1999", "4 May 2001"]);
    let rows: Vec<Vec<&str>> = told.lines().map(|line| line.split('\t').collect()).collect();
    assert_eq!(rows.len(), 10, "{told}");
    for (at, row) in rows.iter().enumerate() {
        assert_eq!(row[0], (at / 5 + 1).to_string());
        assert_eq!(row[1], (at % 5 + 1).to_string());
    }
    for of in rows.chunks(5) {
        let scores: Vec<f64> = of.iter().map(|row| row[2].parse().unwrap()).collect();
        assert!(scores.windows(2).all(|two| two[0] >= two[1]), "{scores:?}");
        let mut outputs: Vec<&str> = of.iter().map(|row| row[3]).collect();
        outputs.sort_unstable();
        outputs.dedup();
        assert_eq!(outputs.len(), 5, "{told}");
    }
    // With a beam as wide, the first is what is predicted.
    let one = json(&said(&["predict", &run, "beam=5", "--json", "May 3, 1999"]));
    assert_eq!(rows[0][3], one["output"]);
    let file = path(&folder, "inputs.txt");
    fs::write(&file, "May 3, 1999\n\n4 May 2001\n").unwrap();
    let told = said(&["predict", &run, "--n-best", "3", "--json", "--file", &file]);
    let all: Vec<serde_json::Value> = told.lines().map(json).collect();
    assert_eq!(all.len(), 3);
    assert_eq!(all[1]["n_best"].as_array().unwrap().len(), 0);
    assert_eq!(all[0]["n_best"].as_array().unwrap().len(), 3);
    assert!(all[2]["n_best"][0]["score"].is_number() && all[2]["input"] == "4 May 2001");
}

#[test]
fn the_likeliest_labels_come_with_their_probabilities() {
    let folder = TempDir::new().unwrap();
    let run = path(&folder, "run");
    said(&["train", "classify", "size=100", "epochs=2", "--out", &run]);
    let text = "the old road and the harbour near a small green door";
    let all = json(&said(&["predict", &run, "--json", text]));
    let best = json(&said(&["predict", &run, "--json", "--n-best", "3", text]));
    let best = best["n_best"].as_array().unwrap();
    assert_eq!((best.len(), &best[0]["output"]), (3, &all["output"]));
    for one in best {
        let p = &all["details"]["probabilities"][one["output"].as_str().unwrap()];
        assert!((p.as_f64().unwrap() - one["score"].as_f64().unwrap()).abs() < 1e-6, "{p} {one}");
    }
    // No more than there are.
    assert_eq!(said(&["predict", &run, "--n-best", "99", text]).lines().count(), 4);
    let told = refused(&["predict", &run, "--n-best", "0", text]);
    assert!(told.contains("--n-best"), "{told}");
    let run = path(&folder, "curve");
    said(&["train", "regress", "size=60", "epochs=1", "--out", &run]);
    let told = refused(&["predict", &run, "--n-best", "2", "1"]);
    assert_eq!(told, "regard: this task has one output for an input, and no others beside it");
}

/// Lines of an input's number, the rank, the score and the output.
fn ranked(told: &str) -> Vec<(usize, usize, f64, String)> {
    let row = |line: &str| {
        let cells: Vec<&str> = line.split('\t').collect();
        assert_eq!(cells.len(), 4, "{line:?}");
        let number = |at: usize| cells[at].parse().unwrap();
        (number(0), number(1), cells[2].parse().unwrap(), cells[3].to_string())
    };
    told.lines().map(row).collect()
}

#[test]
fn the_likeliest_labelings_of_a_sentence_come_with_their_scores_the_best_first() {
    let folder = TempDir::new().unwrap();
    let run = path(&folder, "run");
    said(&["train", "label", "size=100", "epochs=1", "--out", &run]);
    let inputs = ["I saw a saw", "the old road"];
    let told = said(&[&["predict", &run, "--n-best", "6"], &inputs[..]].concat());
    let rows = ranked(&told);
    assert_eq!(rows.iter().map(|row| (row.0, row.1)).collect::<Vec<_>>(), {
        let ranks = |input: usize| (1..=6).map(move |rank| (input, rank));
        (1..=2).flat_map(ranks).collect::<Vec<_>>()
    });
    for (of, input) in rows.chunks(6).zip(inputs) {
        assert!(of.windows(2).all(|two| two[0].2 >= two[1].2), "{told}");
        let outputs: std::collections::BTreeSet<&String> = of.iter().map(|row| &row.3).collect();
        assert_eq!(outputs.len(), 6, "{told}");
        // The best is what is predicted, and its score the sum of its words' logarithms.
        let one = json(&said(&["predict", &run, "--json", input]));
        assert_eq!(of[0].3, one["output"]);
        let words = one["details"]["probabilities"].as_array().unwrap();
        let sum: f64 = words.iter().map(|p| p.as_f64().unwrap().ln()).sum();
        assert!((of[0].2 - sum).abs() < 1e-4, "{} {sum}", of[0].2);
        // The second differs from it in one word.
        let differs = of[0].3.split(' ').zip(of[1].3.split(' ')).filter(|(a, b)| a != b).count();
        assert_eq!(differs, 1, "{told}");
    }
    let told = said(&["predict", &run, "--n-best", "2", "--json", "I", " "]);
    let all: Vec<serde_json::Value> = told.lines().map(json).collect();
    assert_eq!(all[0]["n_best"].as_array().unwrap().len(), 2);
    assert!(all[0]["n_best"][0]["score"].is_number());
    assert_eq!(all[1]["n_best"].as_array().unwrap().len(), 0);
}

#[test]
fn the_likeliest_labelings_of_a_recording_come_with_their_scores() {
    let folder = TempDir::new().unwrap();
    let run = path(&folder, "run");
    let small = ["kind=sound", "size=60", "epochs=1", "hidden=8", "layers=1"];
    said(&[&["train", "label", "--out", &run], &small[..]].concat());
    let rows = ranked(&said(&["predict", &run, "--n-best", "3", "validation:0"]));
    assert_eq!(rows.len(), 3);
    assert!(rows[0].2 >= rows[1].2 && rows[1].2 >= rows[2].2, "{rows:?}");
    let one = json(&said(&["predict", &run, "--json", "validation:0"]));
    assert_eq!(rows[0].3, one["output"]);
}

#[test]
fn a_reader_has_answers_beside_its_best_and_no_answer_may_be_one() {
    let folder = TempDir::new().unwrap();
    let (file, run) = (path(&folder, "asked.csv"), path(&folder, "run"));
    let mut text = String::from("context,question,answer\n");
    for at in 0..60 {
        let (name, place) = (["Mary", "John", "Ann"][at % 3], ["home", "away"][at % 2]);
        let answer = if at % 5 == 0 { "" } else { name };
        text += &format!("\"{name} went {place}, with {name}.\",Who went {place}?,{answer}\n");
    }
    fs::write(&file, text).unwrap();
    let train = format!("train={file}");
    let words = ["model=reader", "encoder=gru", "hidden=8", "embedding=8", "epochs=2"];
    let columns = ["text_column=context", "question_column=question"];
    said(&[&["train", "answer", &train, "--out", &run], &words[..], &columns[..]].concat());
    let input = "Mary went home, with Mary.\tWho went home?";
    let rows = ranked(&said(&["predict", &run, "--n-best", "100", input]));
    let one = json(&said(&["predict", &run, "--json", input]));
    assert_eq!((rows[0].1, &rows[0].3), (1, &one["output"].as_str().unwrap().to_string()));
    assert!((rows[0].2 - one["details"]["probability"].as_f64().unwrap()).abs() < 1e-6);
    assert!(rows.windows(2).all(|two| two[0].2 >= two[1].2), "{rows:?}");
    // Every answer is a piece of the text, none comes twice, and one says that there is none.
    let answers: std::collections::BTreeSet<&str> = rows.iter().map(|row| &row.3[..]).collect();
    assert_eq!(answers.len(), rows.len());
    assert!(answers.contains("") && answers.contains("Mary"), "{answers:?}");
    assert!(answers.iter().all(|answer| input.contains(answer)), "{answers:?}");
    // Seven tokens have 28 spans; "Mary" and "with Mary." stand in several.
    assert!((20..=29).contains(&rows.len()), "{}", rows.len());
    assert_eq!(ranked(&said(&["predict", &run, "--n-best", "2", input])), rows[..2]);
    let told = refused(&["predict", &run, "--n-best", "2", "no tab"]);
    assert!(told.contains("a text and a question with a tab between"), "{told}");
}

#[test]
fn numbers_are_numbers_in_json() {
    let folder = TempDir::new().unwrap();
    let run = path(&folder, "run");
    let data = json(&said(&["data", "translate", "size=70", "--json"]));
    let facts = data["facts"].as_array().unwrap();
    assert_eq!(facts[0][0], "training pairs");
    assert_eq!(facts[0][1], 70);
    said(&["train", "regress", "size=60", "epochs=1", "--out", &run]);
    let told = json(&said(&["predict", &run, "--json", "2"]));
    let value = told["details"]["value"].as_f64().unwrap();
    assert_eq!(told["output"].as_str().unwrap().parse::<f32>().unwrap(), value as f32);
}

#[test]
fn columns_are_chosen_by_name_and_a_wrong_one_is_told() {
    let folder = TempDir::new().unwrap();
    let (file, run) = (path(&folder, "films.csv"), path(&folder, "run"));
    let mut text = String::from("id,stars,review\n");
    for at in 0..40 {
        let (stars, word) = [("good", "fine"), ("bad", "dull")][at % 2];
        text += &format!("{at},{stars},\"a {word}, long film\"\n");
    }
    fs::write(&file, text).unwrap();
    let train = format!("train={file}");
    let words =
        [&train[..], "label_column=stars", "text_column=review", "epochs=20", "learning_rate=0.05"];
    said(&[&["train", "classify", "--out", &run], &words[..]].concat());
    assert_eq!(said(&["predict", &run, "a dull film"]).trim(), "bad");
    let data = said(&["data", "classify", words[0], words[1], words[2]]);
    assert!(data.contains("good ← a fine, long film"), "{data}");
    let told = refused(&["data", "classify", &train, "label_column=starz", "text_column=3"]);
    assert_eq!(
        told,
        format!(
            "regard: {file}, line 1: the header has no column `starz`; it has id, stars, review"
        )
    );
    let told = refused(&["data", "classify", &train, "label_column=2", "text_column=7"]);
    assert_eq!(told, format!("regard: {file}, line 1: column 7 was expected, 3 columns are there"));
    let told = refused(&["data", "classify", &train, "separator=dash"]);
    assert!(told.contains("`data.separator`: `dash` is no separator"), "{told}");
}
