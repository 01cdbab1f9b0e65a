//! Rows that cannot be read: refused, or left out and counted.

use regard_data::files::{Waveform, wav_bytes};
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
    let idx = ["train_images=a.idx", "train_labels=b.idx"];
    for (task, settings) in
        [("label", ["kind=table", "size=8"]), ("answer", [&babi[..], "size=8"]), ("image", idx)]
    {
        let options = task_named(task).unwrap().options().unwrap();
        let options = options.set("skip_bad_rows=true").unwrap();
        let options = settings.iter().fold(options, |all, one| all.set(one).unwrap());
        let error =
            task_named(task).unwrap().begin(&options.set_by_nobody()).err().unwrap().to_string();
        assert!(error.contains("`data.skip_bad_rows` is for"), "{task}: {error}");
    }
}

/// A picture or a recording, as small as it may be.
fn content(kind: &str, n: usize) -> Vec<u8> {
    if kind == "wav" {
        let samples = (0..4000).map(|at| ((at * (n % 5 + 1)) as f32 * 0.1).sin() * 0.5).collect();
        return wav_bytes(&Waveform { samples, rate: 8000 }).unwrap();
    }
    let mut to = std::io::Cursor::new(Vec::new());
    let pixels = image::GrayImage::from_pixel(8, 8, image::Luma([(n * 6) as u8]));
    pixels.write_to(&mut to, image::ImageFormat::Png).unwrap();
    to.into_inner()
}

#[test]
fn damaged_files_are_refused_and_left_out_with_their_count_where_that_is_asked_for() {
    // Task, settings; the kind of its files, how they are called, what a list says, what stands beside each.
    type Case = (
        &'static str,
        &'static [&'static str],
        &'static str,
        fn(usize) -> String,
        Option<fn(usize) -> String>,
        &'static str,
    );
    let flat = |n: usize| format!("{n}");
    let in_folders = |n: usize| format!("{}/{n}", n % 2);
    let cases: [Case; 7] = [
        ("image", &["data.train_folder=ROOT", "patch_size=4"], "png", in_folders, None, ""),
        (
            "caption",
            &["data.train=ROOT/list.tsv", "image_size=8"],
            "png",
            flat,
            Some(|n| format!("{n}.png\ta shade {}\n", n % 3)),
            "",
        ),
        (
            "draw",
            &["data.train=ROOT/list.tsv", "image_size=8", "patch_size=4"],
            "png",
            flat,
            Some(|n| format!("{n}.png\ta shade {}\n", n % 3)),
            "",
        ),
        (
            "transcribe",
            &["data.train=ROOT/list.tsv"],
            "wav",
            flat,
            Some(|n| format!("{n}.wav\tone two\n")),
            "",
        ),
        ("transcribe", &["data.train=ROOT"], "wav", flat, None, "one two"),
        ("classify", &["kind=audio", "data.train=ROOT"], "wav", in_folders, None, ""),
        ("label", &["kind=sound", "data.train=ROOT"], "wav", flat, None, "0.1\t0.2\ta\n"),
    ];
    for (task, settings, kind, name, listed, beside) in cases {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let mut list = String::new();
        for n in 0..40 {
            let path = root.join(format!("{}.{kind}", name(n)));
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, if n == 6 || n == 9 { b"bad".into() } else { content(kind, n) })
                .unwrap();
            if !beside.is_empty() {
                std::fs::write(path.with_extension("txt"), beside).unwrap();
            }
            list += &listed.map_or_else(String::new, |line| line(n));
        }
        if listed.is_some() {
            // A picture that is listed and gone is a bad row of the list.
            let gone = list.replace("\n17.", "\nnone.");
            std::fs::write(root.join("list.tsv"), gone).unwrap();
        }
        let own = |setting: &&str| setting.replace("ROOT", &root.display().to_string());
        let task = task_named(task).unwrap();
        let options = settings
            .iter()
            .map(own)
            .fold(task.options().unwrap(), |all, one| all.set(&one).unwrap());
        let what = format!("{} {settings:?}", task.name());
        assert!(task.begin(&options).is_err(), "{what}: a damaged file was taken");
        let skipping = options.set("skip_bad_rows=true").unwrap();
        // The test part is read where data are described.
        let (done, remarks) =
            remarked(|| task.begin(&skipping).and_then(|_| task.describe(&skipping)));
        assert!(done.is_ok(), "{what}: {:?}", done.err());
        let count = |thing: &str| -> usize {
            let of = |text: &String| {
                let (count, rest) = text.split_once(" bad ")?;
                if rest.starts_with(thing) { count.parse::<usize>().ok() } else { None }
            };
            remarks.iter().filter_map(of).sum()
        };
        assert_eq!(count("file"), 2, "{what}: {remarks:?}");
        assert_eq!(count("row"), usize::from(listed.is_some()), "{what}: {remarks:?}");
    }
}
