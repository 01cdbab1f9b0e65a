//! Rows that cannot be read: refused, or left out and counted.

use regard_data::remarked;
use regard_tasks::tasks::task_named;
use std::path::Path;

/// A task, a file's name, its good rows, a bad one, what sets the file, and what is wrong.
type Case = (&'static str, &'static str, fn(usize) -> String, &'static str, &'static str);

const CASES: [Case; 8] = [
    ("classify", "a.tsv", |i| format!("{}\ta fine film {i}\n", i % 2), "no tab\n", "train"),
    ("classify", "b.csv", |i| format!("{},a fine film {i}\n", i % 2), "1,\n", "train"),
    ("translate", "c.tsv", |i| format!("one {i}\ttwo {i}\n"), "alone\n", "train_pairs"),
    ("summarize", "d.csv", |i| format!("one {i},two {i}\n"), "alone\n", "train_pairs"),
    (
        "label",
        "e.conll",
        |i| format!("I PRON\nsaw{i} VERB\n\n"),
        "a DET\nbird\nsings VERB\n\n",
        "train",
    ),
    ("answer", "f.tsv", |i| format!("Mary left {i}.\tWho left?\tMary\n"), "a text\n", "train"),
    ("regress", "g.csv", |i| format!("{i},{}\n", 2 * i), "3,x\n", "train"),
    ("regress", "h.tsv", |i| format!("{i}\t{}\n", 2 * i), "3\t4\t5\n", "train"),
];

fn write(folder: &Path, &(_, name, good, bad, _): &Case, bad_rows: usize) -> String {
    let path = folder.join(name);
    let mut text: String = (0..20).map(good).collect();
    (0..bad_rows).for_each(|_| text.push_str(bad));
    text.extend((20..40).map(good));
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

#[test]
fn bad_rows_are_refused_and_left_out_with_their_count_where_that_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let mut counted = 0;
    for case in &CASES {
        let (task, name, .., key) = *case;
        let file = write(folder.path(), case, 3);
        let options = task_named(task).unwrap().options().unwrap();
        let options = options.set(&format!("{key}={file}")).unwrap().set("epochs=1").unwrap();
        let error = task_named(task).unwrap().begin(&options).err().map(|e| e.to_string());
        let error = error.unwrap_or_else(|| panic!("{name}: a bad row was taken"));
        assert!(error.contains(&format!("{name}, line ")), "{name}: {error}");
        let skipping = options.set("skip_bad_rows=true").unwrap();
        let (begun, remarks) = remarked(|| task_named(task).unwrap().begin(&skipping));
        assert!(begun.is_ok(), "{name}: {:?}", begun.err());
        let told = remarks.iter().find(|text| text.contains("3 bad rows are left out; the first"));
        assert!(told.is_some_and(|text| text.contains(&error)), "{name}: {remarks:?}");
        // The same model comes of the good rows alone.
        write(folder.path(), case, 0);
        let (_, remarks) = remarked(|| task_named(task).unwrap().begin(&skipping).unwrap());
        assert!(!remarks.iter().any(|text| text.contains("left out")), "{name}: {remarks:?}");
        counted += 1;
    }
    assert_eq!(counted, 8);
}

#[test]
fn what_has_no_rows_to_leave_out_refuses_to_be_asked() {
    let folder = tempfile::tempdir().unwrap();
    let babi = folder.path().join("a.txt");
    std::fs::write(&babi, "1 Mary left.\n2 Who left?\tMary\t1\n").unwrap();
    let babi = format!("train={}", babi.display());
    for (task, settings) in [
        ("classify", ["kind=audio", "size=8"]),
        ("label", ["kind=vectors", "size=8"]),
        ("answer", [&babi[..], "size=8"]),
    ] {
        let options = task_named(task).unwrap().options().unwrap();
        let options = options.set("skip_bad_rows=true").unwrap();
        let options = settings.iter().fold(options, |all, one| all.set(one).unwrap());
        let error = task_named(task).unwrap().begin(&options).err().unwrap().to_string();
        assert!(error.contains("`data.skip_bad_rows` is for"), "{task}: {error}");
    }
}
