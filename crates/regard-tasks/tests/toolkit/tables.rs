//! Tables that cannot be meant: what is odd is said with counts, and what has nothing to learn is refused.

use crate::course::{options, refusal};
use regard_data::files::{Column, ColumnFormat, ConllColumn, captions, conll};
use regard_data::files::{labeled, labeled_columns, parallel_column_lines, parallel_tsv};
use regard_data::remarked;
use regard_tasks::tasks::task_named;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

fn file(folder: &TempDir, name: &str, content: &str) -> PathBuf {
    let path = folder.path().join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, content).unwrap();
    path
}

/// So many rows of two classes.
fn films(count: usize) -> String {
    let row = |at: usize| format!("{}\tfilm number {at}\n", ["good", "bad"][at % 2]);
    (0..count).map(row).collect()
}

/// What is said where a training begins, and where its data are described.
fn said(task: &str, settings: &[&str]) -> String {
    let (task, options) = (task_named(task).unwrap(), options(task, settings));
    let (learner, at_training) = remarked(|| task.begin(&options));
    let (description, at_data) = remarked(|| task.describe(&options));
    description.unwrap();
    let notes = learner.unwrap().notes();
    for text in &at_training {
        assert!(at_data.contains(text), "`regard data` does not say: {text}");
    }
    [at_training, notes].concat().join("\n")
}

fn set(key: &str, path: &Path) -> String {
    format!("{key}={}", path.display())
}

#[test]
fn a_header_is_no_example_in_any_table() {
    let folder = tempfile::tempdir().unwrap();
    for (names, labels) in [
        ("label\ttext", 2),
        ("Sentiment\tReview_Text", 2),
        ("标签\t文本", 2),
        // What may be a label is one.
        ("neutral\ta film", 3),
        ("label\ta film about labels", 3),
    ] {
        let path = file(&folder, "a.tsv", &format!("{names}\n{}", films(40)));
        let (read, remarks) = remarked(|| labeled(&path, None).unwrap());
        let is_header = labels == 2;
        assert_eq!(read.len(), if is_header { 40 } else { 41 }, "{names}");
        let told = remarks.join("\n");
        assert_eq!(told.contains("line 1 names the columns"), is_header, "{names}: {told}");
        // A label in the first line alone is at least odd.
        assert!(is_header || told.contains("occurs in line 1 alone"), "{names}: {told}");
    }
    let numbers = "grade\twords\n5\tgood\n1\tbad\n4\tfine\n";
    let (read, remarks) = remarked(|| labeled(file(&folder, "b.tsv", numbers), None).unwrap());
    assert_eq!((read.len(), &read[0].label[..], remarks.len()), (3, "5", 1));
    let csv = file(&folder, "c.csv", "text,label\na fine film,good\na bad film,bad\n");
    let columns = [Column::Number(2), Column::Number(1)];
    let read = labeled_columns(&csv, ColumnFormat::default(), &columns, None).unwrap();
    assert_eq!((read.len(), read[0].line), (2, 2));
    for (names, pairs) in
        [("source\ttarget", 1), ("en\tde", 1), ("text\tText", 2), ("dog\tHund", 2)]
    {
        let path = file(&folder, "d.tsv", &format!("{names}\na cat\teine Katze\n"));
        assert_eq!(parallel_tsv(&path, None).unwrap().pairs.len(), pairs, "{names}");
    }
    let asked =
        "context\tquestion\tanswer\n".to_string() + &"Mary left.\tWho left?\tMary\n".repeat(30);
    let train = set("train", &file(&folder, "e.tsv", &asked));
    let (learner, remarks) =
        remarked(|| task_named("answer").unwrap().begin(&options("answer", &[&train])).is_ok());
    assert!(learner && remarks[0].contains("line 1 names the columns"), "{remarks:?}");
}

#[test]
fn a_header_of_labeled_words_is_no_word() {
    let folder = tempfile::tempdir().unwrap();
    let rows = "Mary\tNOUN\nleft\tVERB\n\n".repeat(30);
    let same = |text: &str| text.replace('\t', " ");
    for header in ["word\ttag\n", "word\ttag\n\n", "Token\tPOS\n", "词\t词性\n"] {
        for text in [format!("{header}{rows}"), same(&format!("{header}{rows}"))] {
            let path = file(&folder, "a.txt", &text);
            let (read, remarks) = remarked(|| conll(&path, ConllColumn::Upos, None).unwrap());
            assert_eq!((read.len(), read[0].words.len()), (30, 2), "{header:?}");
            assert!(remarks[0].contains("line 1 names the columns"), "{header:?}: {remarks:?}");
        }
    }
    let names = "ID FORM LEMMA UPOS XPOS FEATS HEAD DEPREL DEPS MISC".replace(' ', "\t");
    let row = "1\tMary\tmary\tNOUN\t_\t_\t0\troot\t_\t_\n\n";
    let path = file(&folder, "a.conllu", &format!("{names}\n{row}"));
    assert_eq!(conll(&path, ConllColumn::Upos, None).unwrap()[0].labels, ["NOUN"]);
    // What may be a label is one; where it is odd, that is said.
    let path = file(&folder, "b.txt", &format!("word\ttag\nkey\ttag\n\n{rows}"));
    assert_eq!(conll(&path, ConllColumn::Upos, None).unwrap().len(), 31);
    let path = file(&folder, "c.txt", &format!("Wortform\tWortart\n\n{rows}"));
    let train = set("train", &path);
    let told = said("label", &[&train]);
    assert!(told.contains("the label `Wortart` occurs in line 1 alone"), "{told}");
}

#[test]
fn a_header_of_words_that_nobody_knows_is_left_out_or_at_least_said() {
    let folder = tempfile::tempdir().unwrap();
    for count in [4, 40] {
        let path = file(&folder, "a.tsv", &format!("Meinung\tWortlaut\n{}", films(count)));
        let (read, remarks) = remarked(|| labeled(&path, None).unwrap());
        assert_eq!(read.len(), count);
        assert!(remarks[0].contains("line 1 names the columns (Meinung, Wortlaut)"), "{remarks:?}");
    }
    // A text of one word among others is a text.
    let path = file(&folder, "b.tsv", "odd\tmeh\ngood\tfine\nbad\tbad\ngood\tfine\nbad\tlong\n");
    let (read, remarks) = remarked(|| labeled(&path, None).unwrap());
    assert_eq!(read.len(), 5);
    assert!(remarks[0].contains("the label `odd` occurs in line 1 alone"), "{remarks:?}");
    let pairs = "Der Hund läuft.\tThe dog runs.\n".repeat(5);
    for (name, text) in [("c.tsv", pairs.clone()), ("c.csv", pairs.replace('\t', ","))] {
        let header = "Quelle\tZiel\n".replace('\t', if name == "c.csv" { "," } else { "\t" });
        let path = file(&folder, name, &format!("{header}{text}"));
        let columns = [Column::Number(1), Column::Number(2)];
        let read = |header| {
            let format = ColumnFormat { header, ..ColumnFormat::default() };
            remarked(|| parallel_column_lines(&path, format, &columns, None).unwrap())
        };
        let (all, remarks) = read(false);
        assert_eq!(all.len(), 6);
        assert!(remarks[0].contains("line 1 (`Quelle`, `Ziel`) is read as a pair"), "{remarks:?}");
        let (all, remarks) = read(true);
        assert_eq!((all.len(), remarks.len()), (5, 0), "{remarks:?}");
        // Nothing is said of a pair like others, or of sentences.
        std::fs::write(&path, &text).unwrap();
        assert!(read(false).1.is_empty());
    }
    let words = file(&folder, "d.tsv", &"Hund\tdog\n".repeat(6));
    let read = || parallel_tsv(&words, None).unwrap().pairs.len();
    assert_eq!(remarked(read), (6, vec![]));
}

#[test]
fn a_list_of_files_may_begin_with_a_header() {
    let folder = tempfile::tempdir().unwrap();
    file(&folder, "a.png", "");
    file(&folder, "b.png", "");
    let rows = "a.png\ta dog\nb.png\ta cat\n";
    for header in ["image\tcaption\n", "Bild\tSatz\n"] {
        let list = file(&folder, "list.tsv", &format!("{header}{rows}"));
        let (read, remarks) = remarked(|| captions(&list, None).unwrap());
        assert_eq!((read.len(), read[0].line), (2, 2), "{header}");
        assert!(remarks[0].contains("line 1 names the columns"), "{header}: {remarks:?}");
    }
    let gone = file(&folder, "list.tsv", &format!("gone.png\ta bird\n{rows}"));
    assert!(captions(&gone, None).unwrap_err().to_string().contains("line 1: there is no file"));
}

#[test]
fn a_target_that_is_the_same_everywhere_or_beyond_what_is_computed_in_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let rows: String = (0..40).map(|at| format!("{at},7\n")).collect();
    let train = set("train", &file(&folder, "same.csv", &format!("x,y\n{rows}")));
    let told = refusal("regress", &[&train]);
    assert!(
        told.contains("training rows have 7 in the target, column y: there is nothing"),
        "{told}"
    );
    let task = task_named("regress").unwrap();
    let (_, remarks) = remarked(|| task.describe(&options("regress", &[&train])).unwrap());
    assert!(remarks.contains(&told), "{remarks:?}");
    for (number, column) in [("1e39", 2), ("-1e300", 2), ("1e999", 1)] {
        let row = if column == 2 { format!("3,{number}\n") } else { format!("{number},3\n") };
        let rows: String = (0..40).map(|at| format!("{at},{}\n", at % 7)).collect();
        let train = set("train", &file(&folder, "far.csv", &format!("x,y\n{row}{rows}")));
        for more in [&[][..], &["target_column=2"]] {
            let told = refusal("regress", &[&[&train[..]], more].concat());
            let name = ["x", "y"][column - 1];
            let expected =
                format!("far.csv, line 2: column {name}: `{number}` is beyond the numbers");
            assert!(told.contains(&expected), "{told}");
        }
    }
}

#[test]
fn further_columns_are_no_text_and_that_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let table: String = films(30).lines().map(|line| format!("{line}\t2024\n")).collect();
    let path = file(&folder, "a.tsv", &table);
    let (read, remarks) = remarked(|| labeled(&path, None).unwrap());
    assert_eq!(read[3].text, "film number 3");
    assert!(remarks[0].contains("every row has 3 columns"), "{remarks:?}");
    let path = file(&folder, "b.tsv", &(films(30) + "good\ta\tb\n"));
    let (read, remarks) = remarked(|| labeled(&path, None).unwrap());
    assert_eq!(read[30].text, "a\tb");
    assert!(remarks[0].contains("1 of 31 rows have more than one tab"), "{remarks:?}");
}

#[test]
fn a_quote_that_would_merge_rows_is_refused_by_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let columns = [Column::Number(1), Column::Number(2)];
    let read = |text: &str| {
        let path = file(&folder, "a.csv", text);
        labeled_columns(&path, ColumnFormat::default(), &columns, None)
    };
    for fine in [
        "a,b\n\"c, d\",e\n",
        "\"two\nlines\",x\n",
        "\"he said \"\"no\"\"\",x\n",
        "6\" nails,x\n",
        "\"a \"b\" c\",x\n",
        "\"x\",\"y\"\r\n\"a\",\"b\"",
    ] {
        assert!(read(fine).is_ok(), "{fine:?}");
    }
    let told = read("a,b\n\"c,d\ne,f\n").unwrap_err().to_string();
    assert!(told.contains("a.csv, line 2: a quote is opened here and never closed"), "{told}");
    let told = read("a,\"b\nc,\"d\"\ne,f\n").unwrap_err().to_string();
    assert!(told.contains("a.csv, line 1: ") && told.contains("of line 2"), "{told}");
}

#[test]
fn rows_that_are_not_learned_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let pairs = "ein Hund läuft\ta dog runs\n".repeat(60) + "\tlost\n";
    let train = set("train_pairs", &file(&folder, "pairs.tsv", &pairs));
    let told = said("translate", &[&train, "size=60"]);
    assert!(told.contains("61 rows: 60 used, 1 with an empty source or target"), "{told}");
    assert!(!told.contains("longest"), "{told}");
    let long = pairs + "eins zwei drei vier fünf\tone\n";
    let train = set("train_pairs", &file(&folder, "long.tsv", &long));
    let told = said("translate", &[&train, "max_length=3", "held_out=0.05"]);
    assert!(
        told.contains("1 left out for having more than `data.max_length` = 3 tokens"),
        "{told}"
    );
    // Labels of words, and classes of texts.
    let told = said("label", &["size=60", "encoder=fully-connected", "max_length=9"]);
    assert!(told.contains("left out for having more than `data.max_length` = 9 words"), "{told}");
    assert!(told.contains("read in parts that do not see each other"), "{told}");
    let told = said("classify", &["size=60", "max_length=3"]);
    assert!(
        told.contains("have more than `data.max_length` = 3 tokens, and were read so far"),
        "{told}"
    );
    let told = said("label", &["size=20", "kind=sound", "max_length=60"]);
    assert!(
        told.contains("left out for having more than `data.max_length` = 60 vectors"),
        "{told}"
    );
    // Nothing is said of what the tasks learn by default.
    for task in
        ["translate", "summarize", "label", "classify", "answer", "image", "graph", "regress"]
    {
        let small: &[&str] = if task == "graph" { &[] } else { &["size=60"] };
        assert_eq!(said(task, small), "", "{task}");
    }
}

#[test]
fn pictures_that_are_not_read_are_counted_by_kind() {
    let folder = tempfile::tempdir().unwrap();
    let mut bitmap = vec![b'B', b'M', 70, 0, 0, 0, 0, 0, 0, 0, 54, 0, 0, 0, 40, 0, 0, 0];
    bitmap.extend([2, 0, 0, 0, 2, 0, 0, 0, 1, 0, 24, 0]);
    bitmap.resize(54, 0);
    bitmap.resize(70, 9);
    for label in ["cat", "dog"] {
        std::fs::create_dir_all(folder.path().join(label).join("more")).unwrap();
        for at in 0..10 {
            std::fs::write(folder.path().join(label).join(format!("{at}.bmp")), &bitmap).unwrap();
        }
        std::fs::write(folder.path().join(label).join("scan.tiff"), "II*").unwrap();
    }
    std::fs::write(folder.path().join("stray.png"), "").unwrap();
    let train = set("train_folder", folder.path());
    let told = said("image", &[&train, "patch_size=1"]);
    assert!(told.contains("5 files and folders are not read: "), "{told}");
    for kind in ["2 .tiff", "1 beside the labels' folders", "2 in folders of folders"] {
        assert!(told.contains(kind), "{kind}: {told}");
    }
}

#[test]
fn data_with_nothing_to_learn_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let one = "good\ta fine film\n".repeat(30);
    let train = set("train", &file(&folder, "one.tsv", &one));
    let told = refusal("classify", &[&train]);
    assert!(told.contains("have the label `good`: there is nothing to learn"), "{told}");
    let words = "Mary\tX\nleft\tX\n\n".repeat(30);
    let train = set("train", &file(&folder, "one.conll", &words));
    assert!(refusal("label", &[&train]).contains("there is nothing to learn"));
    let asked = "Who left?\tMary\n".repeat(30);
    let train = set("train", &file(&folder, "asked.tsv", &asked));
    for model in ["model.model=memory", "model.model=reader"] {
        let told = refusal("answer", &[&train, model, "encoder=gru"]);
        assert!(told.contains("training questions has an answer: there is nothing"), "{told}");
    }
    // The columns are swapped: said, for it may be meant.
    let swapped: String = films(60)
        .lines()
        .filter_map(|l| l.split_once('\t'))
        .map(|(a, b)| format!("{b}\t{a}\n"))
        .collect();
    let train = set("train", &file(&folder, "swapped.tsv", &swapped));
    let (_, remarks) =
        remarked(|| task_named("classify").unwrap().begin(&options("classify", &[&train])).is_ok());
    let told = remarks.join("\n");
    assert!(told.contains("different labels: nearly each has its own"), "{told}");
}
