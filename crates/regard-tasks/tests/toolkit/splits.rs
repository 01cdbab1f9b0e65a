//! The three parts of a dataset: what is held out, by which seed, and what is refused.

use regard_tasks::options::Options;
use regard_tasks::run::Run;
use regard_tasks::task::{JsonFile, Part};
use regard_tasks::tasks::{task_named, tasks};
use std::path::Path;
use tempfile::TempDir;

const EXAMPLES: usize = 40;

fn written(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

fn lines(line: impl Fn(usize) -> String) -> String {
    (0..EXAMPLES).map(line).collect()
}

/// Pictures of one shade each, or recordings of one pitch each, and a list of them.
fn listed(folder: &Path, sound: bool) -> String {
    for at in 0..EXAMPLES {
        if sound {
            let spec = hound::WavSpec {
                channels: 1,
                sample_rate: 4000,
                bits_per_sample: 16,
                sample_format: hound::SampleFormat::Int,
            };
            let path = folder.join(format!("{at}.wav"));
            let mut file = hound::WavWriter::create(path, spec).unwrap();
            for time in 0..800 {
                let turns = f64::from(time) * (300.0 + 20.0 * at as f64) / 4000.0;
                let sample = (turns * std::f64::consts::TAU).sin() * 8000.0;
                file.write_sample(sample as i16).unwrap();
            }
            file.finalize().unwrap();
        } else {
            let shade = image::Luma([(at * 6) as u8]);
            image::GrayImage::from_pixel(8, 8, shade)
                .save(folder.join(format!("{at}.png")))
                .unwrap();
        }
    }
    let kind = if sound { "wav" } else { "png" };
    written(folder, "list.tsv", &lines(|at| format!("{at}.{kind}\tword{at}\n")))
}

/// Forty images of one shade each, of two labels: settings.
fn idx(folder: &Path) -> Vec<String> {
    let mut images = vec![0, 0, 8, 3, 0, 0, 0, 40, 0, 0, 0, 8, 0, 0, 0, 8];
    images.extend((0..EXAMPLES * 64).map(|at| (at / 64 * 6) as u8));
    let mut labels = vec![0, 0, 8, 1, 0, 0, 0, 40];
    labels.extend((0..EXAMPLES).map(|at| (at % 2) as u8));
    let write = |name: &str, bytes: Vec<u8>| {
        let path = folder.join(name);
        std::fs::write(&path, bytes).unwrap();
        path.display().to_string()
    };
    vec![
        format!("train_images=\"{}\"", write("images", images)),
        format!("train_labels=\"{}\"", write("labels", labels)),
    ]
}

/// Every task that holds examples out of a file, with such a file; `label` twice.
fn cases(folder: &Path) -> Vec<(&'static str, Vec<String>)> {
    let at = |name: &str| {
        let own = folder.join(name);
        std::fs::create_dir_all(&own).unwrap();
        own
    };
    let train = |key: &str, path: String| vec![format!("{key}=\"{path}\"")];
    let pairs = lines(|at| format!("wort{at} gut\tword{at} good\n"));
    let pairs = written(folder, "pairs.tsv", &pairs);
    let tagged = lines(|at| format!("word{at}\tNOUN\nruns{at}\tVERB\n\n"));
    let steps = lines(|at| format!("s{at},a,{at}.5,1\ns{at},b,2,{at}\n"));
    let steps = format!("sequence,label,x,y\n{steps}");
    let texts = lines(|at| format!("{}\ta word{at}\n", at % 2));
    let asked = lines(|at| format!("the key{at} is red\twhere is key{at}\tred\n"));
    vec![
        ("translate", train("train_pairs", pairs.clone())),
        ("summarize", [train("train_pairs", pairs), vec!["text.min_frequency=1".into()]].concat()),
        ("transcribe", train("data.train", listed(&at("sounds"), true))),
        (
            "caption",
            [train("data.train", listed(&at("pictures"), false)), vec!["image_size=8".into()]]
                .concat(),
        ),
        (
            "draw",
            [
                train("data.train", listed(&at("drawings"), false)),
                vec!["image_size=8".into(), "patch_size=4".into()],
            ]
            .concat(),
        ),
        ("image", idx(&at("idx"))),
        (
            "regress",
            train("data.train", written(folder, "r.csv", &lines(|i| format!("{i},{}\n", i * i)))),
        ),
        ("label", train("data.train", written(folder, "l.conll", &tagged))),
        (
            "label",
            [train("data.train", written(folder, "l.csv", &steps)), vec!["kind=table".into()]]
                .concat(),
        ),
        ("classify", train("data.train", written(folder, "c.tsv", &texts))),
        ("answer", train("data.train", written(folder, "a.tsv", &asked))),
    ]
}

/// What was learned from the training part: another part, another vocabulary.
fn learned(task: &str, settings: &[String], seed: &str) -> String {
    let task = task_named(task).unwrap();
    let all = settings.iter().map(String::as_str).chain(["data.held_out=0.25", seed]);
    let options = all.fold(task.options().unwrap(), |options, s| options.set(s).unwrap());
    task.begin(&options).unwrap().model().vocabulary().unwrap()
}

#[test]
fn what_is_held_out_depends_on_its_own_seed_alone_in_every_task() {
    let folder = TempDir::new().unwrap();
    let cases = cases(folder.path());
    let knows = |option: &str| {
        let has = |options: Options| options.knows(option);
        tasks().iter().filter(|task| has(task.options().unwrap())).map(|t| t.name()).collect()
    };
    let (held_out, seeded): (Vec<&str>, Vec<&str>) =
        (knows("data.held_out"), knows("data.held_out_seed"));
    assert_eq!((held_out.len(), &held_out), (11, &seeded));
    // Every graph shows the same features: which are held out, the tests of whole graphs say.
    let others = held_out.iter().filter(|name| **name != "graph");
    assert!(others.into_iter().all(|name| cases.iter().any(|(task, _)| task == name)));
    for (task, settings) in &cases {
        let plain = learned(task, settings, "training.seed=1");
        assert_eq!(plain, learned(task, settings, "training.seed=2"), "{task} {settings:?}");
        assert_ne!(plain, learned(task, settings, "held_out_seed=2"), "{task} {settings:?}");
    }
}

#[test]
fn a_run_of_a_version_without_the_seed_keeps_the_split_it_began_with() {
    let folder = TempDir::new().unwrap();
    let csv = written(folder.path(), "r.csv", &lines(|i| format!("{i},{}\n", i * i)));
    let task = task_named("regress").unwrap();
    let settings = [&format!("data.train=\"{csv}\"")[..], "training.seed=7", "held_out_seed=7"];
    let set = settings.iter().fold(task.options().unwrap(), |options, s| options.set(s).unwrap());
    let learner = task.begin(&set).unwrap();
    let run = Run::create(&folder.path().join("run"), task, &set, learner.model()).unwrap();
    let judged = learner.model().judge(Part::Validation).unwrap();
    let config = run.path("config.toml");
    let text = std::fs::read_to_string(&config).unwrap();
    let old: Vec<&str> = text.lines().filter(|line| !line.starts_with("held_out_seed")).collect();
    std::fs::write(&config, old.join("\n")).unwrap();
    let options = run.options().unwrap();
    assert_eq!(options.get("data.held_out_seed").unwrap().as_integer(), Some(7));
    let again = task.begin(&options).unwrap();
    let again = again.model().judge(Part::Validation).unwrap();
    let truth = |all: &[regard_tasks::metric::Judged]| -> Vec<String> {
        all.iter().map(|one| one.truth.clone()).collect()
    };
    assert_eq!(truth(&judged), truth(&again));
    // One that says its seed means that.
    let new: Vec<String> =
        text.lines().map(|line| line.replace("held_out_seed = 7", "held_out_seed = 3")).collect();
    std::fs::write(&config, new.join("\n")).unwrap();
    let said = run.options().unwrap();
    assert_eq!(said.get("data.held_out_seed").unwrap().as_integer(), Some(3));
}

#[test]
fn validation_data_without_training_data_are_refused_by_every_task() {
    let mut refused = 0;
    for task in tasks() {
        for name in task.options().unwrap().names() {
            let Some(kind) = name.strip_prefix("data.validation") else { continue };
            let value = if kind == "_files" { "[\"a.txt\", \"b.txt\"]" } else { "file" };
            let options = task.options().unwrap().set(&format!("{name}={value}")).unwrap();
            // A file and what belongs to it are named together.
            let options = match kind {
                "_source" => options.set("data.validation_target=file").unwrap(),
                "_images" => options.set("data.validation_labels=file").unwrap(),
                "_target" | "_labels" => continue,
                _ => options,
            };
            for said in [task.begin(&options).err(), task.describe(&options).err()] {
                let said = said.unwrap().to_string();
                let expected = format!(
                    "`{name}` is given, and `data.train{kind}` is not: the model would be trained on \
                     embedded data and validated on yours; set `data.train{kind}` too"
                );
                assert_eq!(said, expected, "{}", task.name());
                refused += 1;
            }
        }
    }
    // label, classify, answer, transcribe, caption, draw, regress; one more form of classify; two of
    // translate, of summarize and of image.
    assert_eq!(refused, 2 * (7 + 1 + 3 * 2));
}

#[test]
fn a_model_of_embedded_data_is_measured_on_validation_data_of_ones_own() {
    let folder = TempDir::new().unwrap();
    let csv = written(folder.path(), "v.csv", "0.5,1\n0.6,2\n");
    let task = task_named("regress").unwrap();
    let options = task.options().unwrap();
    let learner = task.begin(&options).unwrap();
    let run = Run::create(&folder.path().join("run"), task, &options, learner.model()).unwrap();
    let vocabulary = JsonFile::read(&run.path("vocabulary.json")).unwrap();
    let options = options.set(&format!("data.validation=\"{csv}\"")).unwrap();
    let model = task.open(&options, &vocabulary).unwrap();
    assert_eq!(model.judge(Part::Validation).unwrap().len(), 2);
}
