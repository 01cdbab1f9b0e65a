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
        [&train[..], "label_column=stars", "text_column=review", "epochs=20", "rate=0.05"];
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
