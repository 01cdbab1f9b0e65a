//! Options: templates, files, settings.

use regard_tasks::options::TrainingConfig;
use regard_tasks::run::Run;
use regard_tasks::tasks::{task_named, tasks};
use regard_tasks::train::{Silent, train};

#[test]
fn every_task_reads_its_own_template_and_what_it_writes_of_it() {
    let folder = tempfile::tempdir().unwrap();
    for task in tasks() {
        let options = task.options().unwrap();
        TrainingConfig::of(&options).unwrap().check().unwrap();
        let path = folder.path().join("config.toml");
        std::fs::write(&path, options.to_string()).unwrap();
        assert_eq!(task.options().unwrap().file(&path).unwrap(), options, "{}", task.name());
    }
}

#[test]
fn every_option_stands_under_a_comment() {
    for task in tasks() {
        let template = task.template();
        let lines: Vec<&str> = template.lines().collect();
        for (i, line) in lines.iter().enumerate() {
            let is_option = line.contains(" = ") && !line.starts_with('#');
            if is_option {
                // A comment may be about a few options that follow each other.
                let above =
                    lines[..i].iter().rev().find(|l| !l.contains(" = ") || l.starts_with('#'));
                assert!(above.is_some_and(|l| l.starts_with('#')), "{}: {line}", task.name());
            }
        }
    }
}

/// Every option that once had another name: section, old name, new name.
const RENAMED: [[&str; 3]; 30] = [
    ["audio", "every", "stride"],
    ["audio", "frame", "frame_length"],
    ["audio", "step", "frame_shift"],
    ["data", "deviation", "std"],
    ["data", "longest", "max_length"],
    ["data", "sentences", "max_sentences"],
    ["data", "side", "image_size"],
    ["model", "both_directions", "bidirectional"],
    ["model", "head", "head_hidden"],
    ["model", "kernel", "kernel_size"],
    ["model", "learned", "learn_bandwidth"],
    ["model", "longest_answer", "max_answer_length"],
    ["model", "patch", "patch_size"],
    ["model", "shared", "shared_hops"],
    ["model", "taught", "hop_supervision"],
    ["model", "tied", "tied_embeddings"],
    ["model", "weights_dropout", "attention_dropout"],
    ["model", "width", "bandwidth"],
    ["search", "longest_output", "max_output_length"],
    ["text", "lower", "lowercase"],
    ["text", "minimum", "min_frequency"],
    ["text", "shared", "shared_vocabulary"],
    ["text", "vocabulary", "vocabulary_size"],
    ["training", "accumulate", "accumulation_steps"],
    ["training", "average", "ema_decay"],
    ["training", "batch", "batch_size"],
    ["training", "clip", "clip_norm"],
    ["training", "floor", "min_learning_rate"],
    ["training", "rate", "learning_rate"],
    ["training", "warmup", "warmup_steps"],
];

#[test]
fn options_are_known_by_their_old_names_with_a_remark_and_in_old_runs_without() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mine.toml");
    let mut tried = 0;
    for [section, old, new] in RENAMED {
        let name = format!("{section}.{new}");
        let mut has_it = 0;
        for task in tasks() {
            let options = task.options().unwrap();
            if !options.names().contains(&name) {
                continue;
            }
            has_it += 1;
            // What stands in the template, so that it is a value that the option can have.
            let (before, value) = match options.get(&name) {
                Some(value) => (options.clone(), value.to_string()),
                None => {
                    let groups = options.groups();
                    let mut all = groups.iter().flat_map(|group| &group.options);
                    let value = all.find(|one| one.name == name).unwrap().example.clone().unwrap();
                    (options.clone().set(&format!("{name}={value}")).unwrap(), value)
                }
            };
            for called in [format!("{section}.{old}"), old.to_string()] {
                assert!(options.knows(&called), "{}: {called}", task.name());
                let (set, remarks) =
                    regard_data::remarked(|| options.clone().set(&format!("{called}={value}")));
                assert_eq!(set.unwrap(), before, "{}: {called}", task.name());
                assert_eq!(remarks, [format!("`{called}` is called `{name}` now")]);
                tried += 1;
            }
            let written = format!("[{section}]\n{old} = {value}\n");
            std::fs::write(&path, &written).unwrap();
            let (read, remarks) = regard_data::remarked(|| options.clone().text(&path, &written));
            assert_eq!((read.unwrap(), remarks.len()), (before, 1), "{}: {old}", task.name());
            let both = format!("{written}{new} = {value}\n");
            let told = options.clone().text(&path, &both).unwrap_err().to_string();
            assert!(told.contains(&format!("`{name}` is set twice, once as `")), "{told}");
        }
        assert!(has_it > 0, "{name} is an option of no task");
    }
    assert!(tried >= 250, "{tried}");
    // The options of a run that an older version trained.
    let out = folder.path().join("run");
    let task = task_named("regress").unwrap();
    let options = task.options().unwrap().set("epochs=1").unwrap().set("size=20").unwrap();
    let mut learner = task.begin(&options).unwrap();
    let run = Run::create(&out, task, &options, learner.model()).unwrap();
    train(learner.as_mut(), &TrainingConfig::of(&options).unwrap(), &run, &mut Silent).unwrap();
    let mut old = options.to_string();
    for [_, old_name, new] in RENAMED {
        old = old.replace(&format!("\n{new} = "), &format!("\n{old_name} = "));
    }
    assert_ne!(old, options.to_string());
    std::fs::write(run.path("config.toml"), old).unwrap();
    let (read, remarks) = regard_data::remarked(|| Run::open(&out).unwrap().options().unwrap());
    assert_eq!((read, remarks.len()), (options, 0));
}

#[test]
fn a_key_that_is_not_known_is_refused_with_the_nearest() {
    let options = task_named("translate").unwrap().options().unwrap();
    let told = |setting: &str| options.clone().set(setting).unwrap_err().to_string();
    assert_eq!(
        told("training.epoch=3"),
        "there is no option `training.epoch`; the nearest is `training.epochs`"
    );
    assert_eq!(told("hiden=3"), "there is no option `hiden`; the nearest is `model.hidden`");
    assert_eq!(told("epochs"), "`epochs` is not of the form key=value");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mine.toml");
    std::fs::write(&path, "[model]\nhidden = 3\nlayer = 2\n").unwrap();
    let told = options.clone().file(&path).unwrap_err().to_string();
    assert!(
        told.ends_with(
            "mine.toml: there is no option `model.layer`; the nearest is `model.layers`"
        ),
        "{told}"
    );
    std::fs::write(&path, "[model]\nhidden = \n").unwrap();
    let told = options.clone().file(&path).unwrap_err().to_string();
    assert!(told.contains("mine.toml, line 2: "), "{told}");
}

#[test]
fn a_run_whose_options_are_spelled_as_before_is_refused_with_the_spelling_of_today() {
    let folder = tempfile::tempdir().unwrap();
    for (task, old, new) in [
        ("translate", "text.tokeniser", "text.tokenizer"),
        ("translate", "training.optimiser", "training.optimizer"),
        ("label", "model.neighbours", "model.neighbors"),
        ("image", "data.colour", "data.color"),
    ] {
        let run = format!(r#"{{"task":"{task}","version":"0.1.0","parameters":1}}"#);
        std::fs::write(folder.path().join("run.json"), run).unwrap();
        let config = task_named(task).unwrap().options().unwrap().to_string();
        let key = |name: &str| name.split('.').next_back().unwrap().to_string();
        let line = format!("{} = ", key(new));
        assert!(config.contains(&line), "{config}");
        let config = config.replace(&line, &format!("{} = ", key(old)));
        let config = config.replace(&format!("# {}", key(old)), &key(old));
        let path = folder.path().join("config.toml");
        std::fs::write(&path, config).unwrap();
        let told = Run::open(folder.path()).unwrap().options().unwrap_err().to_string();
        let expected = format!("there is no option `{old}`; the nearest is `{new}`");
        assert_eq!(told, format!("{}: {expected}", path.display()));
    }
}

#[test]
fn a_value_of_the_wrong_kind_is_refused_with_its_option() {
    let options = task_named("translate").unwrap().options().unwrap();
    let told = options.set("training.epochs=many").unwrap();
    let told = TrainingConfig::of(&told).unwrap_err().to_string();
    assert!(told.contains("epochs") && told.contains("many"), "{told}");
}

#[test]
fn training_options_that_cannot_be_meant_are_refused_by_name() {
    let options = task_named("translate").unwrap().options().unwrap();
    for (setting, sentence) in [
        ("batch_size=0", "`training.batch_size` cannot be 0"),
        ("accumulation_steps=0", "`training.accumulation_steps` cannot be 0"),
        ("learning_rate=-1.0", "`training.learning_rate` cannot be -1"),
        ("clip_norm=-2.0", "`training.clip_norm` cannot be -2"),
        ("ema_decay=1.0", "`training.ema_decay` cannot be 1"),
        ("plateau_factor=1.5", "`training.plateau_factor` cannot be 1.5"),
    ] {
        let config = TrainingConfig::of(&options.clone().set(setting).unwrap()).unwrap();
        assert_eq!(config.check().unwrap_err().to_string(), sentence);
    }
}

#[test]
fn a_training_that_diverges_ends_as_no_best() {
    let folder = tempfile::tempdir().unwrap();
    let task = task_named("translate").unwrap();
    let settings =
        ["size=60", "embedding=8", "hidden=8", "score_hidden=8", "epochs=2", "learning_rate=1e9"];
    let options = settings.iter().fold(task.options().unwrap(), |o, s| o.set(s).unwrap());
    let mut learner = task.begin(&options).unwrap();
    let run = Run::create(&folder.path().join("run"), task, &options, learner.model()).unwrap();
    let config = TrainingConfig::of(&options).unwrap();
    let told = train(learner.as_mut(), &config, &run, &mut Silent).unwrap_err().to_string();
    assert!(told.contains("diverged") || told.contains("the loss became"), "{told}");
    assert!(told.contains("`training.learning_rate`"), "{told}");
    assert!(!run.path("best.safetensors").exists());
}

#[test]
fn options_without_effect_on_gray_pictures_are_refused() {
    let refused = |settings: &[&str]| {
        let task = task_named("image").unwrap();
        let options = settings.iter().fold(task.options().unwrap(), |o, s| o.set(s).unwrap());
        task.begin(&options).err().unwrap().to_string()
    };
    assert!(refused(&["color=true"]).starts_with("`data.color` is for folders of pictures"));
    let idx = ["train_images=a.idx", "train_labels=b.idx"];
    assert!(refused(&[&idx[..], &["color=true"]].concat()).contains("`data.color`"));
    assert!(
        refused(&[&idx[..], &["image_size=8"]].concat())
            .starts_with("`data.image_size` is for folders")
    );
}

#[test]
fn paths_in_a_configuration_are_relative_to_it_for_every_option_that_names_files() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("mine")).unwrap();
    let path = folder.path().join("mine/config.toml");
    let mut counted = 0;
    for task in tasks() {
        let options = task.options().unwrap();
        for name in options.names() {
            let (section, key) = name.split_once('.').unwrap();
            let is_file = section == "data"
                && ["train", "validation", "test", "folder"]
                    .iter()
                    .any(|part| key == *part || key.starts_with(&format!("{part}_")))
                || ["tokenizer_file", "vectors", "target_vectors", "init_from"].contains(&key);
            if !is_file {
                continue;
            }
            let value = if key.ends_with("_files") { "[\"a.txt\"]" } else { "\"a.txt\"" };
            std::fs::write(&path, format!("[{section}]\n{key} = {value}\n")).unwrap();
            let read = options.clone().file(&path).unwrap().get(name).unwrap().to_string();
            let whole = folder.path().join("mine").join("a.txt").display().to_string();
            assert!(read.contains(&whole), "{} {name}: {read}", task.name());
            // A setting is relative to where it is typed.
            let typed = options.clone().set(&format!("{name}={value}")).unwrap();
            assert_eq!(typed.get(name).unwrap().to_string().trim_matches(['[', ']', '"']), "a.txt");
            counted += 1;
        }
    }
    assert_eq!(counted, 70);
    let options = task_named("label").unwrap().options().unwrap();
    std::fs::write(&path, "[data]\ntrain = \"Cargo.toml\"\n").unwrap();
    let told = options.file(&path).unwrap_err().to_string();
    assert!(told.contains("paths in a configuration are relative to its folder"), "{told}");
}

#[test]
fn a_value_that_cannot_be_is_refused_with_what_it_can_be() {
    for (task, setting, told) in [
        ("classify", "epochs=-1", "`training.epochs` cannot be -1; it is a whole number from 0 on"),
        (
            "classify",
            "epochs=1.5",
            "`training.epochs` cannot be 1.5; it is a whole number from 0 on",
        ),
        ("classify", "epochs=many", "`training.epochs` cannot be \"many\"; it is a whole number"),
        (
            "classify",
            "learning_rate=fast",
            "`training.learning_rate` cannot be \"fast\"; it is a number",
        ),
        ("classify", "train_files=a,b", "`data.train_files` cannot be \"a,b\"; it is a list, as"),
        ("classify", "header=yes", "`data.header` cannot be \"yes\"; it is true or false"),
        ("classify", "kind=smell", "`data.kind` cannot be \"smell\"; there are `text`, `audio`"),
        ("classify", "betas=[0.9]", "`training.betas` cannot be [0.9]; it is a list of two"),
        (
            "classify",
            "audio.frame_shift=0",
            "`audio.frame_shift` cannot be 0; it is so many milliseconds, above 0",
        ),
        ("classify", "audio.mels=0", "`audio.mels` cannot be 0"),
        (
            "transcribe",
            "audio.frame_shift=0.0",
            "`audio.frame_shift` cannot be 0; it is so many milliseconds",
        ),
        (
            "transcribe",
            "audio.frame_length=-1",
            "`audio.frame_length` cannot be -1; it is so many milliseconds",
        ),
    ] {
        let task = task_named(task).unwrap();
        let options = task.options().unwrap().set(setting).unwrap();
        let error = task.begin(&options).err().unwrap().to_string();
        assert!(error.starts_with(told), "{setting}: {error}");
    }
}
