//! What a training would take is told from the beginnings of long files.

use crate::course::options;
use flate2::{Compression, write::GzEncoder};
use regard::tensor::{Parameter, Random};
use regard::{DType, Tensor};
use regard_data::files::{SoundOptions, Sounds, Waveform, wav_bytes};
use regard_data::text::set_vectors;
use regard_data::{SampledFile, SampledUnit, sampled};
use regard_tasks::metric::Scores;
use regard_tasks::options::TrainingConfig;
use regard_tasks::task::{Learner, Model};
use regard_tasks::tasks::task_named;
use regard_tasks::train::{Silent, rehearse};
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

/// Tasks, the settings that name a file, and lines of it by their number.
type Case = (&'static str, &'static [&'static str], fn(usize) -> String);

const CASES: [Case; 8] = [
    ("classify", &["data.train=FILE.tsv"], |n| format!("{}\tword {n} is here\n", n % 3)),
    ("classify", &["data.train=FILE.csv"], |n| format!("{},\"word {n},\nis here\"\n", n % 3)),
    ("translate", &["data.train_pairs=FILE.tsv"], |n| format!("ein wort {}\ta word\n", n % 50)),
    ("translate", &["data.train_source=FILE.de", "data.train_target=FILE.de"], |n| {
        format!("ein langer satz {}\n", n % 50)
    }),
    ("summarize", &["data.train_pairs=FILE.tsv"], |n| format!("a long text {}\ttext\n", n % 50)),
    ("label", &["data.train=FILE.txt"], |n| match n % 4 {
        3 => "\n".into(),
        _ => format!("word{}\tT{}\n", n % 50, n % 3),
    }),
    ("regress", &["data.train=FILE.csv"], |n| format!("{n},{}\n", n % 7)),
    ("answer", &["data.train=FILE.txt"], |n| match n % 3 {
        0 => format!("1 Mary went to room{}.\n", n % 5),
        1 => format!("2 John went to room{}.\n", n % 7),
        _ => format!("3 Where is Mary?\troom{}\t1\n", (n - 2) % 5),
    }),
];

/// Bytes that no reader takes.
static GARBAGE: [u8; 1 << 16] = [0xff; 1 << 16];

/// 5 MiB of lines, and then, up to 100 MB, what cannot be read.
fn write(path: &Path, line: fn(usize) -> String, gzip: bool) {
    let mut file = std::fs::File::create(path).unwrap();
    let mut text = String::new();
    let mut n = 0;
    while text.len() < 5 << 20 {
        text += &line(n);
        n += 1;
    }
    if gzip {
        let mut packed = GzEncoder::new(file, Compression::fast());
        packed.write_all(text.as_bytes()).unwrap();
        (0..64).for_each(|_| packed.write_all(&GARBAGE).unwrap());
        packed.finish().unwrap();
        return;
    }
    file.write_all(text.as_bytes()).unwrap();
    file.write_all(&GARBAGE).unwrap();
    file.set_len(100_000_000).unwrap();
}

fn begun(case: &Case, folder: &Path, gzip: bool) -> (Result<(), String>, Vec<SampledFile>) {
    let (task, settings, line) = case;
    let own: Vec<String> = settings
        .iter()
        .map(|setting| {
            let (key, name) = setting.split_once('=').unwrap();
            let path = folder.join(format!("{name}{}", if gzip { ".gz" } else { "" }));
            if !path.exists() {
                write(&path, *line, gzip);
            }
            format!("{key}={:?}", path.display().to_string())
        })
        .collect();
    let small = ["hidden=8", "embedding=8"].iter().filter(|_| *task != "regress").copied();
    let all: Vec<&str> = own.iter().map(String::as_str).chain(small).collect();
    let options = options(task, &all);
    let (begun, files) = sampled(|| task_named(task).unwrap().begin(&options));
    (begun.map(drop).map_err(|error| error.to_string()), files)
}

#[test]
fn of_a_file_of_any_size_no_more_than_its_beginning_is_read() {
    let mut done = 0;
    for case in &CASES {
        for gzip in [false, true] {
            let folder = tempfile::tempdir().unwrap();
            let (begun, files) = begun(case, folder.path(), gzip);
            let what = format!("{} {:?} {gzip}", case.0, case.1);
            assert_eq!(begun, Ok(()), "{what}");
            assert_eq!(files.len(), 1, "{what}");
            let file = &files[0];
            assert!(file.read <= (4 << 20) + 1, "{what}: {} bytes were read", file.read);
            assert!((1000..=20_000).contains(&file.lines), "{what}: {}", file.lines);
            assert!(file.is_cut() && file.used > 0.0, "{what}: {file:?}");
            assert!(file.used <= file.read as f64, "{what}: {file:?}");
            assert!(gzip || file.size == 100_000_000, "{what}");
            done += 1;
        }
    }
    assert_eq!(done, 16);
}

/// The number of a file of the folders below.
const MANY: usize = 1500;

/// A recording or a picture, as small as it may be.
fn small(kind: &str, n: usize) -> Vec<u8> {
    if kind == "wav" {
        let samples = (0..800).map(|at| ((at * (n % 5 + 1)) as f32 * 0.1).sin() * 0.5).collect();
        return wav_bytes(&Waveform { samples, rate: 8000 }).unwrap();
    }
    let mut to = std::io::Cursor::new(Vec::new());
    let pixels = image::GrayImage::from_pixel(8, 8, image::Luma([(n % 200) as u8]));
    pixels.write_to(&mut to, image::ImageFormat::Png).unwrap();
    to.into_inner()
}

#[test]
fn of_a_folder_or_list_of_any_size_some_files_of_every_label_are_read() {
    // Task, settings; how the n-th file is called, what the list says of it, what stands beside it.
    type Case = (
        &'static str,
        &'static [&'static str],
        &'static str,
        fn(usize) -> String,
        fn(usize) -> Option<String>,
    );
    const CASES: [Case; 7] = [
        ("image", &["data.train_folder=ROOT"], "png", |n| format!("{}/{n}.png", n / 500), |_| None),
        (
            "classify",
            &["kind=audio", "data.train=ROOT"],
            "wav",
            |n| format!("{}/{n}.wav", n / 500),
            |_| None,
        ),
        (
            "classify",
            &["kind=audio", "data.train=ROOT", "label_field=0"],
            "wav",
            |n| format!("{}_{n}.wav", n / 500),
            |_| None,
        ),
        (
            "classify",
            &["kind=audio", "data.train=ROOT/list.tsv"],
            "wav",
            |n| format!("{n}.wav"),
            |n| Some(format!("{}\t{n}.wav\n", n / 500)),
        ),
        (
            "transcribe",
            &["data.train=ROOT/list.tsv"],
            "wav",
            |n| format!("{n}.wav"),
            |n| Some(format!("{n}.wav\tone two {}\n", n % 9)),
        ),
        ("transcribe", &["data.train=ROOT"], "wav", |n| format!("{n}.wav"), |_| None),
        (
            "caption",
            &["data.train=ROOT/list.tsv", "image_size=8"],
            "png",
            |n| format!("{n}.png"),
            |n| Some(format!("{n}.png\ta thing of shade {}\n", n % 9)),
        ),
    ];
    for (task, settings, kind, name, listed) in CASES {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let mut list = String::new();
        for n in 0..MANY {
            let path = root.join(name(n));
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, small(kind, n)).unwrap();
            match listed(n) {
                Some(line) => list += &line,
                None if task == "transcribe" => {
                    std::fs::write(path.with_extension("txt"), "one two").unwrap();
                }
                None => {}
            }
        }
        if !list.is_empty() {
            std::fs::write(root.join("list.tsv"), list).unwrap();
        }
        let own: Vec<String> = settings
            .iter()
            .map(|setting| match setting.split_once("=ROOT") {
                Some((key, rest)) => format!("{key}={:?}", format!("{}{rest}", root.display())),
                None => setting.to_string(),
            })
            .collect();
        let options = options(task, &own.iter().map(String::as_str).collect::<Vec<_>>());
        let task = task_named(task).unwrap();
        let what = format!("{} {settings:?}", task.name());
        let (begun, files) = sampled(|| task.begin(&options));
        let begun = begun.unwrap_or_else(|error| panic!("{what}: {error}"));
        let cut: Vec<&SampledFile> = files.iter().filter(|file| file.is_cut()).collect();
        assert_eq!(cut.len(), 1, "{what}: {cut:?}");
        assert!(
            cut[0].unit == SampledUnit::Files && (398..=400).contains(&cut[0].lines),
            "{what}: {:?}",
            cut[0]
        );
        let share = cut[0].used / cut[0].size as f64;
        assert!((share - 400.0 / MANY as f64).abs() < 0.01, "{what}: {share}");
        // What a few hundred files hold is held by the learner: of every label, too.
        let labels = task.describe(&options).unwrap().labels.len();
        drop(begun);
        let (described, _) = sampled(|| task.describe(&options).unwrap().labels.len());
        assert_eq!(described, labels, "{what}");
    }
}

#[test]
fn a_folder_that_is_named_for_two_parts_is_counted_once_and_rare_labels_of_a_list_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let mut list = String::new();
    for n in 0..MANY {
        let path = root.join(format!("{}/{n}.wav", n / 500));
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, small("wav", n)).unwrap();
        let label = if [7, 700, 1301].contains(&n) { "rare" } else { "usual" };
        list += &format!("{label}\t{}/{n}.wav\n", n / 500);
    }
    std::fs::write(root.join("list.tsv"), list).unwrap();
    let setting = |key: &str, path: &Path| format!("{key}={:?}", path.display().to_string());
    let begun = |settings: &[String]| {
        let all: Vec<&str> =
            ["kind=audio"].into_iter().chain(settings.iter().map(String::as_str)).collect();
        let options = options("classify", &all);
        sampled(|| task_named("classify").unwrap().begin(&options).map(drop))
    };
    let twice = [setting("data.train", root), setting("data.validation", root)];
    let (done, files) = begun(&twice);
    done.unwrap();
    assert_eq!(
        (files.len(), files[0].used, files[0].size),
        (1, files[0].lines as f64, MANY as u64)
    );
    let listed = root.join("list.tsv");
    let (read, _) = sampled(|| Sounds::find(&listed, &SoundOptions::default()).unwrap());
    assert_eq!(read.sounds.iter().filter(|sound| sound.label == "rare").count(), 3);
    assert!(read.sounds.len() <= 400);
}

#[test]
fn of_embedded_data_of_any_size_few_examples_are_made() {
    const TEXTS: (usize, u64) = (5000, 100_000);
    const LONG: (usize, u64) = (1000, 100_000);
    const PICTURES: (usize, u64) = (200, 20_000);
    let mut done = 0;
    for (task, settings, (most, size)) in [
        ("translate", &[][..], TEXTS),
        ("summarize", &[], LONG),
        ("classify", &[], TEXTS),
        ("label", &[], TEXTS),
        ("label", &["embedded=distance"], LONG),
        ("answer", &[], TEXTS),
        ("classify", &["kind=audio"], PICTURES),
        ("label", &["kind=sound"], PICTURES),
        ("image", &[], PICTURES),
        ("graph", &["embedded=touching"], PICTURES),
        ("caption", &["hidden=8", "embedding=8"], PICTURES),
        ("draw", &["codes=8"], PICTURES),
        ("transcribe", &[], PICTURES),
    ] {
        let size_setting = format!("size={size}");
        let all: Vec<&str> = settings.iter().copied().chain([&size_setting[..]]).collect();
        let options = options(task, &all);
        let what = format!("{task} {settings:?}");
        let (begun, noted) = sampled(|| task_named(task).unwrap().begin(&options));
        let learner = begun.unwrap_or_else(|error| panic!("{what}: {error}"));
        let [one] = &noted[..] else { panic!("{what}: {noted:?}") };
        assert_eq!(one.unit, SampledUnit::Examples, "{what}");
        assert_eq!((one.used, one.size), (most as f64, size), "{what}");
        // What is noted is what is learned: no more was made, or it is not what the learner holds.
        let batches = learner.batches(1, &Random::named(1, "batches")).unwrap();
        let mut learned: Vec<usize> = batches.into_iter().flatten().collect();
        learned.sort_unstable();
        learned.dedup();
        let pictures = ["caption", "draw"].contains(&task);
        assert!(
            learned.len() <= if pictures { 4 * most } else { most },
            "{what}: {}",
            learned.len()
        );
        assert!(2 * learned.len() >= most, "{what}: {}", learned.len());
        done += 1;
    }
    assert_eq!(done, 13);
    // What is small, and what is not sampled, is made as it is asked for.
    let small = options("transcribe", &["size=150"]);
    assert!(sampled(|| task_named("transcribe").unwrap().begin(&small).map(drop)).1.is_empty());
}

/// A learner of which each example takes its time.
struct Slow(Box<dyn Learner>);

/// How long.
const EACH: Duration = Duration::from_millis(15);

impl Learner for Slow {
    fn model(&self) -> &dyn Model {
        self.0.model()
    }

    fn batches(&self, batch: usize, random: &Random) -> regard_data::Result<Vec<Vec<usize>>> {
        self.0.batches(batch, random)
    }

    fn loss(&mut self, batch: &[usize], random: &Random) -> regard_data::Result<Tensor> {
        std::thread::sleep(EACH * batch.len() as u32);
        self.0.loss(batch, random)
    }

    fn weight(&self, batch: &[usize]) -> f64 {
        self.0.weight(batch)
    }

    fn validate(&self) -> regard_data::Result<Scores> {
        self.0.validate()
    }

    fn samples(&self, n: usize) -> Vec<String> {
        self.0.samples(n)
    }
}

#[test]
fn a_batch_that_would_take_too_long_is_tried_in_part_and_extrapolated() {
    let options = options("classify", &["size=384", "batch_size=128", "hidden=4", "embedding=4"]);
    let learner = task_named("classify").unwrap().begin(&options).unwrap();
    let config = TrainingConfig::of(&options).unwrap();
    let begun = Instant::now();
    let tried = rehearse(&mut Slow(learner), &config, &mut Silent).unwrap();
    let took = begun.elapsed().as_secs_f64();
    // 128 examples would sleep for 1.9 s.
    assert_eq!(tried.tried, 0, "{tried:?}");
    assert!((4..128).contains(&tried.examples), "{tried:?}");
    let whole = 128.0 * EACH.as_secs_f64();
    assert!(tried.seconds >= whole && tried.seconds < 128.0 * took, "{tried:?}, {took}");
    assert_eq!(tried.plan.batches, 3);
}

#[test]
fn vectors_of_words_behind_the_first_lines_refuse_no_dry_run() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("vectors.txt");
    let mut all: String = (0..20_001).map(|n| format!("other{n} 1 2\n")).collect();
    all += "rare 1 2\n";
    std::fs::write(&file, all).unwrap();
    let zeros = Tensor::zeros(&[1, 2], DType::F32).unwrap();
    let table = Parameter::new("table", zeros).unwrap();
    let set = || set_vectors(&table, &["rare".into()], &file).unwrap();
    let told = sampled(set).0;
    assert!(told.starts_with("0 of 1 tokens have a vector in the first 20000 lines of "), "{told}");
    let told = set();
    assert!(told.starts_with("1 of 1 tokens have a vector of "), "{told}");
}

#[test]
fn a_label_of_one_picture_is_no_line_that_names_columns() {
    for lone in ["a", "z"] {
        let folder = tempfile::tempdir().unwrap();
        for n in 0..30 {
            let label = if n == 0 { lone } else { "m" };
            let path = folder.path().join(format!("{label}/{n}.png"));
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, small("png", n)).unwrap();
        }
        let own = format!("data.train_folder={:?}", folder.path().display().to_string());
        let begun = task_named("image").unwrap().begin(&options("image", &[&own])).map(drop);
        assert_eq!(begun.map_err(|error| error.to_string()), Ok(()), "{lone}");
    }
}

#[test]
fn a_short_file_is_read_whole_and_nothing_is_cut_from_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("short.tsv");
    let text: String = (0..60).map(|n| format!("{}\ttext {n}\n", n % 2)).collect();
    std::fs::write(&path, &text).unwrap();
    let (read, files) = sampled(|| regard_data::files::labeled(&path, None).unwrap());
    assert_eq!((read.len(), files[0].lines, files[0].is_cut()), (60, 60, false));
    assert_eq!((files[0].read, files[0].size), (text.len() as u64, text.len() as u64));
    // Without being asked for, no file is cut.
    let long = folder.path().join("long.tsv");
    std::fs::write(&long, text.repeat(1000)).unwrap();
    assert_eq!(regard_data::files::labeled(&long, None).unwrap().len(), 60_000);
}

#[test]
fn a_character_or_a_quoted_row_that_the_end_cuts_is_left_out() {
    let folder = tempfile::tempdir().unwrap();
    for (name, encoding) in [("utf-8", None), ("utf-16", Some("utf-16le")), ("gbk", Some("gbk"))] {
        let path = folder.path().join(name);
        let line = "好\t一二三四五六七八九十\n";
        let bytes: Vec<u8> = match encoding {
            Some("utf-16le") => line.encode_utf16().flat_map(u16::to_le_bytes).collect(),
            Some(_) => encoding_rs::GBK.encode(line).0.into_owned(),
            None => line.into(),
        };
        std::fs::write(&path, bytes.repeat(300_000)).unwrap();
        let (read, files) = sampled(|| regard_data::files::labeled(&path, encoding));
        assert_eq!(read.unwrap().len(), 20_000, "{name}");
        assert!(files[0].is_cut());
    }
}

#[test]
fn a_header_of_any_words_over_one_label_is_refused_in_every_table() {
    let rows = |between: &str, header: &str, row: &dyn Fn(usize) -> String| -> String {
        let lines = (0..20).map(|n| row(n).replace('|', between) + "\n");
        std::iter::once(header.replace('|', between) + "\n").chain(lines).collect()
    };
    let text = |n: usize| format!("gut|ein film {n}");
    let vectors = |n: usize| format!("gut|1,{n} 2,3");
    let words = |n: usize| format!("wort{n}|NOUN");
    let mut refused = 0;
    for (task, ending, between, header, row, more) in [
        ("classify", "tsv", "\t", "Meinung|Wortlaut", &text as &dyn Fn(usize) -> String, ""),
        ("classify", "csv", ",", "Meinung|Wortlaut", &text, ""),
        ("classify", "csv", ";", "Meinung|Wortlaut", &text, ""),
        ("classify", "tsv", "\t", "Meinung|7,7 7,7", &vectors, "kind=vectors"),
        ("label", "txt", "\t", "Wortform|Wortart", &words, ""),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(format!("table.{ending}"));
        std::fs::write(&path, rows(between, header, row)).unwrap();
        let own = format!("data.train={:?}", path.display().to_string());
        let other = folder.path().join(format!("other.{ending}"));
        std::fs::write(&other, rows(between, &row(99), row)).unwrap();
        let validation = format!("data.validation={:?}", other.display().to_string());
        let mut settings = vec![&own[..], &validation, "held_out=0.0"];
        settings.extend(Some(more).filter(|more| !more.is_empty()));
        let why = crate::course::refusal(task, &settings);
        assert!(why.contains("only the first of 21 training "), "{task} {ending}: {why}");
        assert!(why.contains("there is one label and nothing to learn"), "{why}");
        let task = task_named(task).unwrap();
        let options = options(task.name(), &settings);
        let (_, remarks) = regard_data::remarked(|| task.describe(&options));
        assert!(remarks.iter().any(|text| text.contains("only the first of 21")), "{remarks:?}");
        refused += 1;
    }
    assert_eq!(refused, 5);
}
