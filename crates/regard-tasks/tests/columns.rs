//! Columns by name and by number, separators, headers.

#![allow(clippy::unwrap_used)] // a test that cannot go on says so by its panic

#[allow(dead_code, reason = "other tests use the rest of it")]
mod course;

use course::{options, refusal};
use regard_tasks::{Description, task_named};
use std::path::Path;

fn described(task: &str, settings: &[&str]) -> Description {
    let description = task_named(task).unwrap().describe(&options(task, settings)).unwrap();
    Description { source: String::new(), ..description }
}

fn written(folder: &Path, key: &str, name: &str, text: &str) -> String {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    format!("{key}={}", path.display())
}

#[test]
fn texts_are_the_same_however_their_columns_stand() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, line: &dyn Fn(&str, &str, usize) -> String, head: &str| {
        let row = |at: usize| line(["good", "bad"][at % 2], &format!("film, number {at}"), at);
        let rows: String = (0..30).map(row).collect();
        written(folder.path(), "train", name, &format!("{head}{rows}"))
    };
    let plain = file("a.tsv", &|label, text, _| format!("{label}\t{text}\n"), "");
    let usual = described("classify", &[&plain]);
    assert_eq!(usual.labels.len(), 2);
    let csv = |label: &str, text: &str, at: usize| format!("{at},\"{text}\",{label}\r\n");
    let by_name = file("b.csv", &csv, "id,text,label\r\n");
    let names = ["label_column=label", "text_column=text"];
    assert_eq!(described("classify", &[&[&by_name[..]], &names[..]].concat()), usual);
    let by_number = file("c.csv", &csv, "");
    let numbers = ["label_column=3", "text_column=2"];
    assert_eq!(described("classify", &[&[&by_number[..]], &numbers[..]].concat()), usual);
    let headed = [&[&by_name[..], "header=true"], &numbers[..]].concat();
    assert_eq!(described("classify", &headed), usual);
    let bars = |label: &str, text: &str, at: usize| format!("{text}|{label}|{at}\n");
    let bars = file("d.txt", &bars, "");
    let settings = [&bars[..], "separator=|", "label_column=2", "text_column=1"];
    assert_eq!(described("classify", &settings), usual);
    let tabs = |label: &str, text: &str, at: usize| format!("{at}\t{label}\t{text}\n");
    let tabs = file("e.tsv", &tabs, "nr\tlabel\ttext\n");
    assert_eq!(described("classify", &[&[&tabs[..]], &names[..]].concat()), usual);
    // A file of tabs is one of tabs, whatever it is called.
    let called = file("f.csv", &|label, text, _| format!("{label}\t{text}\n"), "");
    assert_eq!(described("classify", &[&called]), usual);
    let semicolons = |label: &str, text: &str, _: usize| format!("{label};{text}\n");
    let semicolons = file("g.csv", &semicolons, "label;text\n");
    assert_eq!(described("classify", &[&semicolons, "header=true"]), usual);
}

#[test]
fn pairs_are_the_same_however_their_columns_stand() {
    let folder = tempfile::tempdir().unwrap();
    let rows = |line: &dyn Fn(usize) -> String| (0..30).map(line).collect::<String>();
    let tabs = rows(&|at| format!("eins {at}\tone {at}\n"));
    let usual = described("translate", &[&written(folder.path(), "train_pairs", "a.tsv", &tabs)]);
    let csv = rows(&|at| format!("{at},one {at},\"eins\n{at}\"\n"));
    let csv = written(folder.path(), "train_pairs", "a.csv", &format!("n,en,de\n{csv}"));
    let names = ["source_column=de", "target_column=en"];
    assert_eq!(described("translate", &[&[&csv[..]], &names[..]].concat()), usual);
    let reports = described("summarize", &[&[&csv[..]], &names[..]].concat());
    assert_eq!(reports.examples, usual.examples);
    let three = rows(&|at| format!("eins {at}\tone {at}\t{at}\n"));
    let three = written(folder.path(), "train_pairs", "b.tsv", &three);
    let told = refusal("translate", &[&three]);
    assert!(told.contains("with a tab between were expected, 3 columns are there"), "{told}");
    let chosen = [&three[..], "source_column=1", "target_column=2", "separator=tab", "header=true"];
    let count = |description: &Description| description.facts[0].1.parse::<usize>().unwrap();
    assert_eq!(count(&described("translate", &chosen)) + 1, count(&usual));
}

#[test]
fn what_is_wrong_with_a_column_is_told_with_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let told = |text: &str, settings: &[&str]| {
        let train = written(folder.path(), "train", "bad.csv", text);
        let told = refusal("classify", &[&[&train[..]], settings].concat());
        told.rsplit_once("bad.csv").unwrap().1.to_string()
    };
    assert_eq!(
        told("a,b\n1,2\n", &["label_column=c"]),
        ", line 1: the header has no column `c`; it has a, b"
    );
    assert_eq!(
        told("good,fine\n\nbad\n", &[]),
        ", line 3: column 2 was expected, 1 column is there"
    );
    assert_eq!(told("good,fine\nbad,\n", &[]), ", line 2: column 2 is empty");
    assert_eq!(
        told("a,b\n,x\n", &["label_column=a", "text_column=b"]),
        ", line 2: column `a` is empty"
    );
    assert_eq!(told("good,fine\n", &["label_column=0"]), ": columns are counted from 1");
    assert_eq!(told("a,b\n", &["header=true"]), ": there are no texts");
    let wrong = refusal("classify", &["label_column=1.5"]);
    assert_eq!(wrong, "`data.label_column`: a column's name, or its number from 1, was expected");
}

#[test]
fn numbers_of_chosen_columns_are_read_and_the_others_may_be_anything() {
    let folder = tempfile::tempdir().unwrap();
    let row = |at: usize| format!("Rome;{at};{}.5;{}\n", at % 7, at % 5);
    let rows: String = (0..40).map(row).collect();
    let text = format!("city;price;area;rooms\n{rows}");
    let train = written(folder.path(), "train", "homes.csv", &text);
    let chosen = ["target_column=price", "feature_columns=[\"rooms\", \"area\"]"];
    let usual = described("regress", &[&[&train[..]], &chosen[..]].concat());
    let numbers = ["target_column=2", "feature_columns=[4, 3]"];
    assert_eq!(described("regress", &[&[&train[..]], &numbers[..]].concat()), usual);
    let plain: String = (0..40).map(|at| format!("{},{}.5,{at}\n", at % 5, at % 7)).collect();
    let plain = format!("rooms,area,price\n{plain}");
    let plain = written(folder.path(), "train", "plain.csv", &plain);
    assert_eq!(described("regress", &[&plain]), usual);
    // The last is told from the others unless another is; tabs and semicolons are seen.
    let tabs: String = (0..40).map(|at| format!("{at}\t{}\t{}.5\n", at % 5, at % 7)).collect();
    let tabs = written(folder.path(), "train", "plain.tsv", &tabs);
    let by_target = described("regress", &[&tabs, "target_column=1"]);
    assert_eq!(by_target.facts[..3], usual.facts[..3]);
    let told = refusal("regress", &[&train, "target_column=city", "feature_columns=[2]"]);
    assert!(
        told.ends_with("homes.csv, line 2: column city: `Rome` is not a finite number"),
        "{told}"
    );
    let told = refusal("regress", &[&train, "target_column=prize"]);
    assert!(
        told.contains("line 1: the header has no column `prize`; it has city, price"),
        "{told}"
    );
}

#[test]
fn words_and_labels_are_chosen_by_number() {
    let folder = tempfile::tempdir().unwrap();
    let sentence = "EU NNP B-NP B-ORG\nrejects VBZ B-VP O\n\n";
    let train = written(folder.path(), "train", "conll.txt", &sentence.repeat(30));
    let labels = |settings: &[&str]| -> Vec<String> {
        let found = described("label", &[&[&train[..]], settings].concat()).labels;
        found.into_iter().map(|(label, _)| label).collect()
    };
    assert_eq!(labels(&[]), ["B-ORG", "O"]);
    assert_eq!(labels(&["column=2"]), ["NNP", "VBZ"]);
    let swapped = described("label", &[&train, "column=1", "word_column=2"]);
    assert_eq!(swapped.examples[0], "NNP/EU VBZ/rejects");
    let told = refusal("label", &[&train, "column=5"]);
    assert!(told.ends_with("line 1: column 5 was expected, 4 columns are there"), "{told}");
    let told = refusal("label", &[&train, "column=uposs"]);
    assert!(told.starts_with("`data.column`: a column of CoNLL-U, such as"), "{told}");
}
