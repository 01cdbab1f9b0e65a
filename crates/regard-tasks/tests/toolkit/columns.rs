//! Columns by name and by number, separators, headers.

use crate::course;

use course::{options, refusal};
use regard_data::remarked;
use regard_tasks::task::Description;
use regard_tasks::tasks::task_named;
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
    // Of a table, such as Tatoeba's with its sources, the first two columns are read; what they are is said.
    for explicit in [&["source_column=1", "target_column=2"][..], &[]] {
        let settings = [&[&three[..]], explicit].concat();
        let (read, remarks) = remarked(|| described("translate", &settings));
        assert_eq!(read, usual);
        assert!(remarks.iter().any(|text| text.contains("its rows have 3 columns")), "{remarks:?}");
    }
    let swapped = described("translate", &[&three, "source_column=2", "target_column=1"]);
    assert_eq!(swapped.examples[0].split(" → ").next(), usual.examples[0].split(" → ").nth(1));
    // A tab too many in a file of pairs is none of a table.
    let odd = tabs.clone() + "eins\tone\tmore\n";
    let odd = written(folder.path(), "train_pairs", "c.tsv", &odd);
    let told = refusal("translate", &[&odd]);
    assert!(
        told.contains("c.tsv, line 31: source and target with a tab between were expected"),
        "{told}"
    );
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
    // The last is predicted from the others unless another is; tabs and semicolons are seen.
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

/// The same two cells of thirty rows as lists are written: by name among others in CSV, by number
/// under a header, between bars; with the settings that read them.
fn lists(folder: &Path, rows: &[(String, String)]) -> Vec<Vec<String>> {
    let list = |name: &str, head: &str, line: &dyn Fn(&str, &str) -> String| {
        let lines: String = rows.iter().map(|(path, text)| line(path, text)).collect();
        written(folder, "train", name, &format!("{head}{lines}"))
    };
    let csv = list("a.csv", "id,says,file\r\n", &|path, text| format!("7,\"{text}\",{path}\r\n"));
    let tabs = list("b.tsv", "file\tby\tsays\n", &|path, text| format!("{path}\tann\t{text}\n"));
    let bars = list("c.list", "", &|path, text| format!("{text}|{path}\n"));
    let settings = |train: String, others: &[&str]| -> Vec<String> {
        [vec![train], others.iter().map(|other| other.to_string()).collect()].concat()
    };
    vec![
        settings(csv.clone(), &["path_column=file", "text_column=says"]),
        settings(csv, &["path_column=3", "text_column=2", "header=true", "separator=comma"]),
        settings(tabs, &["path_column=1", "text_column=3", "header=true"]),
        settings(bars, &["path_column=2", "text_column=1", "separator=|"]),
    ]
}

fn strings(settings: &[String]) -> Vec<&str> {
    settings.iter().map(String::as_str).collect()
}

#[test]
fn pictures_and_their_sentences_are_the_same_however_their_columns_stand() {
    let folder = tempfile::tempdir().unwrap();
    let row = |at: usize| {
        let (color, pixel) = [("red", [200, 0, 0]), ("blue", [0, 0, 200])][at % 2];
        let image = image::RgbImage::from_pixel(8, 8, image::Rgb(pixel));
        image.save(folder.path().join(format!("{at}.png"))).unwrap();
        (format!("{at}.png"), format!("all {color}, and nothing else"))
    };
    let rows: Vec<(String, String)> = (0..30).map(row).collect();
    let plain: String = rows.iter().map(|(path, text)| format!("{path}\t{text}\n")).collect();
    let plain = written(folder.path(), "train", "plain.tsv", &plain);
    let usual = described("caption", &[&plain]);
    assert_eq!(usual.facts[0].1, "24");
    for settings in lists(folder.path(), &rows) {
        assert_eq!(described("caption", &strings(&settings)), usual, "{settings:?}");
    }
    let told = refusal("caption", &[&plain, "path_column=file"]);
    assert!(
        told.ends_with(
            "line 1: the header has no column `file`; it has 0.png, all red, and nothing else"
        ),
        "{told}"
    );
    let told = refusal("caption", &[&plain, "text_column=3"]);
    assert!(told.ends_with("line 1: column 3 was expected, 2 columns are there"), "{told}");
    let blank = written(folder.path(), "train", "blank.csv", "0.png,\n");
    assert!(refusal("caption", &[&blank]).ends_with("blank.csv, line 1: the sentence is empty"));
    let gone = written(folder.path(), "train", "gone.csv", "0.png,a\n\nnone.png,b\n");
    assert!(refusal("caption", &[&gone]).contains("gone.csv, line 3: there is no file"));
}

#[test]
fn recordings_and_their_texts_are_the_same_however_their_columns_stand() {
    use regard_data::files::{Waveform, wav_bytes};
    let folder = tempfile::tempdir().unwrap();
    let row = |at: usize| {
        let samples = (0..4000).map(|i| (i as f32 * 0.01 * (1 + at) as f32).sin() / 2.0).collect();
        let sound = Waveform { samples, rate: 8000 };
        std::fs::write(folder.path().join(format!("{at}.wav")), wav_bytes(&sound).unwrap())
            .unwrap();
        (format!("{at}.wav"), ["high, then low", "low"][at % 2].to_string())
    };
    let rows: Vec<(String, String)> = (0..30).map(row).collect();
    let plain: String = rows.iter().map(|(path, text)| format!("{path}\t{text}\n")).collect();
    let plain = written(folder.path(), "train", "plain.tsv", &plain);
    let usual = described("transcribe", &[&plain]);
    assert_eq!(usual.facts[0].1, "24");
    let labels: String = rows.iter().map(|(path, text)| format!("{text}\t{path}\n")).collect();
    let labels = written(folder.path(), "train", "labels.tsv", &labels);
    let labeled = described("classify", &["kind=audio", &labels]);
    assert_eq!(labeled.labels.len(), 2);
    for settings in lists(folder.path(), &rows) {
        assert_eq!(described("transcribe", &strings(&settings)), usual, "{settings:?}");
        // A list of recordings with labels has the same options under its own names.
        let own = |setting: &String| {
            setting.replace("text_column", "label_column").replace("path_column", "text_column")
        };
        let own: Vec<String> = settings.iter().map(own).collect();
        let own = [&["kind=audio"], &strings(&own)[..]].concat();
        assert_eq!(described("classify", &own), labeled, "{own:?}");
    }
    let told = refusal("transcribe", &[&plain, "separator=ab"]);
    assert!(told.starts_with("`data.separator`: `ab` is no separator"), "{told}");
    let told = refusal("transcribe", &[&plain, "text_column=0"]);
    assert!(told.ends_with("plain.tsv: columns are counted from 1"), "{told}");
}

#[test]
fn questions_are_the_same_however_their_columns_stand() {
    let folder = tempfile::tempdir().unwrap();
    let who = |at: usize| ["Mary", "John", "Ann"][at % 3];
    let rows = |line: &dyn Fn(usize) -> String| (0..30).map(line).collect::<String>();
    let file = |name: &str, text: &str| written(folder.path(), "train", name, text);
    let text = |at: usize| format!("{} came, at {at}.", who(at));
    let plain = rows(&|at| format!("{}\tWho, at {at}?\t{}\t{at}\n", text(at), who(at)));
    let plain = file("plain.tsv", &plain);
    let usual = described("answer", &[&plain]);
    assert_eq!((&usual.facts[0].1[..], usual.labels.len()), ("24", 3));
    let csv = rows(&|at| format!("{at},\"Who, at {at}?\",\"{}\",{}\n", text(at), who(at)));
    let csv = file("asked.csv", &format!("id,question,context,answer\n{csv}"));
    let names = ["text_column=context", "question_column=question"];
    assert_eq!(described("answer", &[&[&csv[..]], &names[..]].concat()), usual);
    let answers = ["answer_columns=[\"answer\"]"];
    assert_eq!(described("answer", &[&[&csv[..]], &names[..], &answers].concat()), usual);
    let numbers = ["text_column=3", "question_column=2", "answer_columns=[4]", "header=true"];
    assert_eq!(described("answer", &[&[&csv[..]], &numbers[..]].concat()), usual);
    // Answers may stand before what is asked, and be none.
    let before = rows(&|at| format!("{};{};;{};Who, at {at}?\n", who(at), at, text(at)));
    let before = file("before.txt", &before);
    let settings = ["format=csv", "separator=semicolon", "text_column=4", "question_column=5"];
    let settings = [&[&before[..]], &settings[..]].concat();
    let named = [&settings[..], &["answer_columns=[1, 3]"]].concat();
    assert_eq!(described("answer", &named), usual);
    let none = described("answer", &settings);
    assert_eq!(none.facts[6], ("questions without an answer".into(), "24".into()));
    let told = refusal("answer", &[&csv, "text_column=story"]);
    assert!(
        told.ends_with(
            "line 1: the header has no column `story`; it has id, question, context, answer"
        ),
        "{told}"
    );
    let told = refusal("answer", &[&plain, "answer_columns=[9]"]);
    assert!(told.ends_with("line 1: column 9 was expected, 4 columns are there"), "{told}");
    let told = refusal("answer", &[&plain, "answer_columns=3"]);
    assert!(told.starts_with("`data.answer_columns`"), "{told}");
    let told = refusal("answer", &[&file("gap.csv", "a b,c?,d\n,c?,d\n")]);
    assert!(told.ends_with("gap.csv, line 2: the text is empty"), "{told}");
}

#[test]
fn every_line_of_chosen_columns_is_a_pair_blank_or_not() {
    let folder = tempfile::tempdir().unwrap();
    let rows = |blank: &str| -> String {
        let row =
            |at: usize| format!("{at}\teins {at}\tone {at}\n{}", if at == 4 { blank } else { "" });
        (0..30).map(row).collect()
    };
    let settings = ["source_column=2", "target_column=3", "separator=tab"];
    let test = written(folder.path(), "test_pairs", "test.tsv", &(rows("\n \t \t\n") + "\n"));
    let train = written(folder.path(), "train_pairs", "train.tsv", &rows(""));
    let settings = [&[&train[..], &test, "epochs=1", "beam=1"], &settings[..]].concat();
    let course = course::Course::done("translate", &settings);
    let report = course.model().evaluate(regard_tasks::task::Part::Test).unwrap();
    assert_eq!((report.outputs.len(), report.examples), (33, 30));
    assert_eq!(report.outputs.iter().position(String::is_empty), Some(5));
    // Where a line needs a label, a blank one is refused and not passed over.
    let text = format!("good\ta fine\tx\n{}", "\nbad\ta dull\tx\n".repeat(20));
    let labels = written(folder.path(), "train", "labels.tsv", &text);
    let told = refusal("classify", &[&labels, "text_column=3"]);
    assert!(told.ends_with("labels.tsv, line 2: column 1 is empty"), "{told}");
}

#[test]
fn time_steps_are_the_same_whatever_stands_between_their_columns() {
    let folder = tempfile::tempdir().unwrap();
    let table = |name: &str, between: &str| {
        let row = |at: usize| {
            let cells =
                [(at / 5).to_string(), format!("{}.5", at % 7), ["on", "off"][at % 2].into()];
            cells.join(between) + "\n"
        };
        let rows: String = (0..150).map(row).collect();
        let head = ["sequence", "load", "label"].join(between);
        written(folder.path(), "train", name, &format!("{head}\n{rows}"))
    };
    let usual = described("label", &["kind=table", &table("a.csv", ",")]);
    assert_eq!(usual.labels.len(), 2);
    for (name, between) in [("b.csv", ";"), ("c.tsv", "\t")] {
        assert_eq!(described("label", &["kind=table", &table(name, between)]), usual, "{name}");
    }
}

#[test]
fn blank_rows_of_a_table_are_passed_over_and_have_blank_outputs() {
    let folder = tempfile::tempdir().unwrap();
    let rows: String = (0..40).map(|at| format!("{at},{}\n", at * 2)).collect();
    let train = written(folder.path(), "train", "train.csv", &format!("x,y\n{rows}"));
    let plain = ["epochs=1", &train];
    let chosen = [&plain[..], &["feature_columns=[\"x\"]", "target_column=y"]].concat();
    for (head, settings) in [("x,y\n", &plain[..]), ("", &plain), ("\nx,y\n", &chosen)] {
        let text = format!("{head}1,2\n\n3,6\n  \n4,8\n\n");
        let test = written(folder.path(), "test", "test.csv", &text);
        let course = course::Course::done("regress", &[settings, &[&test]].concat());
        let report = course.model().evaluate(regard_tasks::task::Part::Test).unwrap();
        let blank: Vec<bool> = report.outputs.iter().map(String::is_empty).collect();
        assert_eq!(blank, [false, true, false, true, false, true], "{head:?}");
        assert_eq!(report.examples, 3);
    }
    // A row that holds something else is none of these.
    let some = format!("x,y,city\n{rows},,Rome\n");
    let some = written(folder.path(), "train", "some.csv", &some);
    let told = refusal("regress", &[&some, "target_column=y", "feature_columns=[\"x\"]"]);
    assert!(told.ends_with("some.csv, line 42: column x: `` is not a finite number"), "{told}");
}
