//! Every option of every task, set to another value, changes something or is refused by name.

use regard::tensor::Random;
use regard_tasks::options::{Options, TrainingConfig};
use regard_tasks::run::{Record, Run};
use regard_tasks::task::{Input, Part, Task};
use regard_tasks::tasks::{task_named, tasks};
use regard_tasks::train::{Silent, train};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Options that change no model by nature, and why.
const BY_NATURE: [(&str, &str); 21] = [
    ("training.tensorboard", "which files are written beside the others"),
    ("training.checkpoint_minutes", "when files are written"),
    (
        "training.patience",
        "when a training ends that gets no better, which none here is long enough for",
    ),
    ("training.init_from", "the name of a file; start.rs has tests"),
    ("text.tokenizer_file", "the name of a file; import.rs has tests"),
    ("text.vectors", "the name of a file; start.rs has tests"),
    ("text.target_vectors", "the name of a file; start.rs has tests"),
    ("text.tokenizer", "of `label`, whose sentences are words already, and of a word alone"),
    ("data.encoding", "of files in another encoding; text_readers.rs has tests"),
    ("data.skip_bad_rows", "of files with bad rows; bad_rows.rs has tests"),
    (
        "training.precision",
        "a few products are the same in bf16 on a machine without a unit for them",
    ),
    ("model.norm_eps", "what is added to a variance far above it may round away"),
    ("training.clip_norm", "a gradient below the norm is not clipped"),
    ("search.length_penalty", "hypotheses that are all as long as they may be"),
    ("search.beam", "a best hypothesis that greedy search finds too"),
    ("model.bias", "what is so if it is not given"),
    ("model.window", "pictures of two by two patches"),
    ("search.bleu", "a BLEU of nothing found is 0, however it is split"),
    ("data.measure", "answers of one English word are compared alike"),
    ("model.per_column", "embedded data of one column"),
    ("training.class_weights", "a class that has as many examples as the others weighs as much"),
];

/// What makes models and data small, as far as it has an effect.
const SMALL: [&str; 16] = [
    "size=6",
    "facts=1",
    "embedding=8",
    "hidden=8",
    "score_hidden=4",
    "heads=2",
    "layers=1",
    "feed_forward=8",
    "epochs=3",
    "warmup_steps=1",
    "batch_size=4",
    "validate_every=1",
    "mels=8",
    "image_size=16",
    "patch_size=8",
    "max_output_length=4",
];

/// Settings of tasks under which other options have an effect.
const VARIANTS: [(&str, &[&str]); 38] = [
    ("translate", &["context=multi-head", "encoder=transformer", "decoder=transformer"]),
    ("translate", &["context=fixed", "schedule=plateau"]),
    ("translate", &["context=fixed", "fixed=learned", "encoder=cnn", "decoder=cnn"]),
    ("translate", &["encoder=self-attention", "score=bilinear", "optimizer=sgd"]),
    ("translate", &["encoder=fully-connected", "score=low-rank", "tokenizer=bpe"]),
    ("translate", &["bidirectional=false", "score=expression", "weighting=gumbel"]),
    ("translate", &["encoder=none", "embedding=8", "hidden=8", "score=scaled-dot", "beam=1"]),
    ("translate", &["batch_tokens=60", "decoder=transformer", "head_score=expression"]),
    ("translate", &["position=relative", "encoder=transformer", "head_score=additive"]),
    ("translate", &["FILE"]),
    ("summarize", &["copy=false", "encoder=transformer"]),
    ("transcribe", &["time_masks=1", "frequency_masks=1"]),
    ("transcribe", &["context=fixed", "encoder=cnn"]),
    ("transcribe", &["FILE"]),
    ("caption", &["encoder=cnn", "decoder=transformer"]),
    ("caption", &["encoder=none", "weighting=straight-through"]),
    ("draw", &["context=attention", "encoder=gru", "decoder=lstm", "bidirectional=false"]),
    ("label", &["encoder=gru"]),
    ("label", &["encoder=cnn", "characters=true"]),
    ("label", &["encoder=fully-connected", "max_length=100", "embedded=distance"]),
    ("label", &["encoder=none", "characters=true", "character_encoder=transformer"]),
    ("label", &["encoder=self-attention", "kind=sound"]),
    ("label", &["kind=vectors", "encoder=rnn"]),
    ("label", &["kind=table"]),
    ("label", &["FILE"]),
    ("classify", &["encoder=transformer", "pooling=class-token"]),
    ("classify", &["encoder=gru", "pooling=last"]),
    ("classify", &["kind=audio", "encoder=cnn", "pooling=gate"]),
    ("classify", &["kind=vectors", "score=concat", "weighting=gumbel-hard"]),
    ("classify", &["FILE"]),
    ("answer", &["attention=false"]),
    ("answer", &["model.model=reader"]),
    ("answer", &["encoder=transformer", "hops=1"]),
    ("answer", &["FILE"]),
    ("image", &["model.model=cnn"]),
    ("image", &["head_score=expression", "position=relative", "pooling=mean"]),
    ("graph", &["embedded=touching"]),
    ("graph", &["layer=mean", "embedded=karate"]),
];

/// More of them, of tasks whose steps are quick.
const QUICK: [(&str, &[&str]); 12] = [
    ("graph", &["embedded=touching", "pooling=gate"]),
    ("graph", &["embedded=misleading", "layer=gatv2"]),
    ("graph", &["embedded=matching", "layers=1"]),
    ("graph", &["embedded=touching", "layer=mean", "score=expression"]),
    ("graph", &["layer=dot", "optimizer=sgd", "schedule=plateau"]),
    ("regress", &["model.model=mean"]),
    ("regress", &["score=additive"]),
    ("regress", &["score=expression"]),
    ("regress", &["windowed=true"]),
    ("regress", &["per_column=true", "optimizer=sgd"]),
    ("regress", &["learn_bandwidth=false"]),
    ("regress", &["FILE"]),
];

/// Other values of an option, as they are typed.
fn others(task: &dyn Task, name: &str, options: &Options) -> Vec<String> {
    let words: &[&str] = match (task.name(), name) {
        (_, "model.encoder") => &["none", "gru", "cnn", "transformer", "self-attention"],
        (_, "model.decoder") => &["lstm", "cnn", "transformer"],
        (_, "model.character_encoder") => &["gru", "transformer"],
        (_, "model.context") => &["fixed", "attention", "multi-head"],
        (_, "model.fixed") => &["mean", "learned"],
        (_, "model.tied_embeddings") => &["output", "all"],
        (_, "model.head_score" | "model.score") => {
            &["dot", "scaled-dot", "additive", "concat", "bilinear", "gaussian", "expression"]
        }
        (_, "model.head_weighting" | "model.weighting") => &["sparsemax", "sigmoid", "gumbel"],
        (_, "model.head_expression" | "model.expression") => &["2 * tau * (q @ k)"],
        (_, "model.head_expression_numbers" | "model.expression_numbers") => &["[]"],
        (_, "model.position") => &["none", "learned", "rotary"],
        (_, "model.bilinear_scale") => &["none"],
        (_, "model.bias") => &["true", "false"],
        ("graph", "model.pooling") => &["mean", "gate", "attention"],
        ("image", "model.pooling") => &["mean", "class-token"],
        (_, "model.pooling") => &["mean", "gate", "last"],
        ("answer", "model.model") => &["memory", "reader"],
        ("image", "model.model") => &["vit", "cnn"],
        ("regress", "model.model") => &["kernel", "mean"],
        (_, "model.layer") => &["gat", "gatv2", "dot", "mean"],
        (_, "model.best_by") => &["loss"],
        (_, "model.channels") => &["[4]"],
        (_, "text.tokenizer") => &["whitespace", "words", "characters", "bpe"],
        ("label", "data.kind") => &["words", "sound", "vectors", "table"],
        (_, "data.kind") => &["text", "audio", "vectors"],
        ("translate", "data.embedded") => &["dates", "copies"],
        ("classify", "data.embedded") => &["opinions"],
        ("label", "data.embedded") => &["distance"],
        ("graph", "data.embedded") => &["karate", "misleading", "touching"],
        ("caption" | "draw", "data.embedded") => &["chinese"],
        (_, "data.language") => &["chinese"],
        (_, "data.format") => &["babi", "squad", "tsv"],
        (_, "data.unfound") => &["search"],
        (_, "data.measure") => &["cmrc"],
        (_, "data.separator") => &["semicolon"],
        (_, "data.edge_columns") => &["weight"],
        ("label", "data.column") => &["1"],
        (_, "data.sequence_column" | "data.label_column" | "data.gap") => &["other"],
        (_, "data.feature_columns" | "data.answer_columns") => &["[1]"],
        (_, "data.encoding") => &["utf-16"],
        (_, "search.bleu") => &["char"],
        (_, "search.rouge") => &["characters"],
        (_, "training.optimizer") => &["sgd"],
        (_, "training.warmup_steps") => &["7"],
        (_, "data.max_length") => &["2"],
        (_, "data.max_sentences" | "model.window" | "model.max_answer_length") => &["1"],
        (_, "text.min_frequency") => &["40"],
        ("image", "data.image_size") => &["24"],
        (_, "model.codes") => &["4"],
        (_, "text.vocabulary_size") => &["6"],
        (_, "search.length_penalty") => &["9.0"],
        (_, "training.schedule") => &["cosine", "inverse-square-root"],
        (_, "training.precision") => &["bf16"],
        (_, "training.betas") => &["[0.5, 0.9]"],
        (_, "training.freeze") => &["[\"*\"]"],
        (_, "training.class_weights") => &["balanced"],
        (_, "data.sample_rate" | "audio.sample_rate") => &["4000"],
        (_, "data.image_size") => &["24"],
        (_, "model.patch_size") => &["4"],
        (_, "model.kernel_size") => &["5"],
        (_, "data.held_out") => &["0.3"],
        _ => &[],
    };
    if !words.is_empty() {
        return words.iter().map(ToString::to_string).collect();
    }
    let groups = options.groups();
    let said = groups.iter().flat_map(|group| &group.options).find(|one| one.name == name);
    let said = said.and_then(|one| one.value.clone().or(one.example.clone())).unwrap();
    match (said.parse::<bool>(), said.parse::<i64>(), said.parse::<f64>()) {
        (Ok(is), ..) => vec![(!is).to_string()],
        (_, Ok(whole), _) => vec![(whole + 1).to_string()],
        (.., Ok(0.0)) => vec!["0.3".into()],
        (.., Ok(number)) => vec![(number / 2.0).to_string()],
        _ => Vec::new(),
    }
}

/// Numbers as bits, so that any difference is one.
fn bits(task: &dyn Task, options: &Options) -> Result<Vec<u64>, String> {
    let mut learner = task.begin(options).map_err(|e| options.explain(e).to_string())?;
    learner.start().map_err(|e| e.to_string())?;
    let training = TrainingConfig::of(options).unwrap();
    let random = Random::named(training.seed, "effects");
    let mut found = Vec::new();
    let mut hash = |text: &str| {
        use std::hash::{DefaultHasher, Hash, Hasher};
        let mut hasher = DefaultHasher::new();
        text.hash(&mut hasher);
        found.push(hasher.finish());
    };
    for parameter in learner.model().parameters().all() {
        let tensor = parameter.tensor();
        hash(&format!("{} {:?}", parameter.name(), tensor.shape()));
        hash(&format!("{:?}", tensor.to_vec::<f32>().unwrap_or_default()));
    }
    hash(&learner.model().vocabulary().map_err(|e| e.to_string())?);
    let batches = learner.batches(training.batch_size, &random).map_err(|e| e.to_string())?;
    hash(&format!("{batches:?}"));
    for batch in batches.iter().take(2) {
        let loss = learner.loss(batch, &random).map_err(|e| e.to_string())?;
        hash(&format!("{:?}", loss.item().unwrap()));
    }
    Ok(found)
}

/// What a whole training and what is asked of its model give, as text.
fn course(task: &dyn Task, options: &Options) -> Result<String, String> {
    let said = |error: regard_tasks::Error| options.clone().explain(error).to_string();
    let folder = tempfile::tempdir().unwrap();
    let mut learner = task.begin(options).map_err(said)?;
    let path = folder.path().join("run");
    let run = Run::create(&path, task, options, learner.model()).map_err(said)?;
    let config = TrainingConfig::of(options).unwrap();
    train(learner.as_mut(), &config, &run, &mut Silent).map_err(said)?;
    let mut told = String::new();
    for record in Record::read(&run, usize::MAX).map_err(said)? {
        told += &format!("{} {:?} {:?}\n", record.epoch, record.loss, record.validation.values);
    }
    let model = run.model(options).map_err(said)?;
    let report = model.evaluate(Part::Validation);
    told += &format!("{:?}\n", report.map(|report| (report.scores, report.examples)));
    let inputs: Vec<Input> = learner.samples(2).into_iter().map(Input::from).collect();
    let outputs = model.predict(&inputs);
    told += &format!(
        "{:?}\n",
        outputs.map(|all| all.into_iter().map(|one| one.output).collect::<Vec<_>>())
    );
    Ok(told)
}

/// The settings of a variant on small data and as a small model.
fn options_of(task: &dyn Task, settings: &[&str], folder: &Path) -> Options {
    let mut options = task.options().unwrap();
    for setting in settings.iter().filter(|setting| **setting != "FILE") {
        options = options.set(setting).unwrap();
    }
    if settings.contains(&"FILE") {
        for setting in files(task, folder) {
            options = options.set(&setting).unwrap();
        }
    }
    for setting in SMALL {
        let key = setting.split('=').next().unwrap();
        let is_said = settings.iter().any(|said| said.starts_with(&format!("{key}=")));
        if let (false, true, Ok(set)) = (is_said, options.knows(key), options.clone().set(setting))
            && set.check_requirements().is_ok()
            && !(["regress", "graph"].contains(&task.name()) && key == "size")
        {
            options = set;
        }
    }
    options
}

/// Small files of one's own for a task.
fn files(task: &dyn Task, folder: &Path) -> Vec<String> {
    let line = |at: usize| match task.name() {
        "translate" => format!("a{} b c{at}\tx{} y z{at}\tmore\n", at % 3, at % 3),
        "label" => format!("a{}\tx\tN\nb\ty\tV\n\n", at % 3),
        "classify" => format!("{}\tword{} and {at}\tmore\n", ["yes", "no"][at % 2], at % 3),
        "answer" => format!("Tom has {at} cats.\tHow many cats?\t{at}\n"),
        "regress" => format!("{},{},{}\n", at, at * at % 7, at * 3 % 5),
        _ => format!("{at}.wav\tsay {}\n", at % 3),
    };
    let end = if task.name() == "regress" { "csv" } else { "tsv" };
    let path = folder.join(format!("{}.{end}", task.name()));
    std::fs::write(&path, (0..24).map(line).collect::<String>()).unwrap();
    if task.name() == "transcribe" {
        for at in 0..24 {
            let spec = hound::WavSpec {
                channels: 1,
                sample_rate: 8000,
                bits_per_sample: 16,
                sample_format: hound::SampleFormat::Int,
            };
            let file = folder.join(format!("{at}.wav"));
            let mut wav = hound::WavWriter::create(file, spec).unwrap();
            for sample in 0..2000 {
                wav.write_sample(((sample * (at + 3)) % 199 * 50) as i16).unwrap();
            }
            wav.finalize().unwrap();
        }
    }
    let name = if task.name() == "translate" { "train_pairs" } else { "train" };
    vec![format!("{name}=\"{}\"", path.display())]
}

#[derive(Default)]
struct Swept {
    changed: usize,
    refused: usize,
    silent: Vec<String>,
}

/// Every option of a variant with other values.
fn sweep(task: &dyn Task, settings: &[&str], folder: &Path) -> Swept {
    let mut swept = Swept::default();
    let base = options_of(task, settings, folder);
    let before = match bits(task, &base) {
        Ok(before) => before,
        Err(why) => panic!("{} {settings:?}: {why}", task.name()),
    };
    let mut whole: Option<String> = None;
    for name in base.names() {
        if BY_NATURE.iter().any(|(natural, _)| natural == name) && settings.contains(&"FILE") {
            continue;
        }
        // How a model is trained and searched is the same for all models of a task, and so are its data,
        // unless another kind is what is varied.
        let key = |setting: &str| setting.split('=').next().unwrap_or_default().to_string();
        let is_varied =
            |of: &str| settings.iter().any(|one| name.ends_with(&key(one)) || key(one) == of);
        let is_of_data = ["data.", "text.", "audio."].iter().any(|of| name.starts_with(of));
        let is_apart = match is_of_data {
            true => {
                !["kind", "FILE", "embedded", "model.model", "tokenizer"].into_iter().any(is_varied)
            }
            false => !name.starts_with("model.") && !is_varied("FILE"),
        };
        // What writes is trained and searched for by the same lines in every task.
        let is_slow = ["summarize", "transcribe", "caption", "draw"].contains(&task.name());
        let is_said = name.starts_with("training.") || name.starts_with("search.");
        if is_apart && !settings.is_empty() || is_slow && is_said {
            continue;
        }
        for value in others(task, name, &base) {
            let set = base.clone().set(&format!("{name}={value}")).unwrap();
            if task.name() == "regress" && name == "training.seed" {
                // Nothing is drawn where all points are learned.
                continue;
            }
            let is_meant = task.name() == "answer"
                && value == "none"
                && !settings.contains(&"attention=false");
            if set == base || is_meant {
                continue;
            }
            let what = format!("{} {settings:?} {name}={value}", task.name());
            if let Err(told) = set.check_requirements() {
                let told = told.to_string();
                // By name, with the option that is missing.
                let names = told.matches('`').count() / 2;
                assert!(
                    told.contains(name) && (names >= 2 || told.contains("in this task")),
                    "{told}"
                );
                swept.refused += 1;
                continue;
            }
            match bits(task, &set) {
                Ok(after) if after != before => swept.changed += 1,
                Err(_) => swept.refused += 1,
                Ok(_) if BY_NATURE.iter().any(|(natural, _)| natural == name) => {}
                Ok(_) => {
                    let before = whole.get_or_insert_with(|| course(task, &base).unwrap());
                    match course(task, &set) {
                        Ok(after) if after == *before => {
                            println!("SILENT {what}");
                            swept.silent.push(what);
                        }
                        Ok(_) => swept.changed += 1,
                        Err(_) => swept.refused += 1,
                    }
                }
            }
        }
    }
    swept
}

#[test]
fn every_option_of_every_task_changes_something_or_is_refused_by_name() {
    let started = std::time::Instant::now();
    let folder = tempfile::tempdir().unwrap();
    let mut all: Vec<(&str, &[&str])> = tasks().iter().map(|task| (task.name(), &[][..])).collect();
    all.extend(VARIANTS);
    all.extend(QUICK);
    let next = std::sync::atomic::AtomicUsize::new(0);
    let found = std::sync::Mutex::new(BTreeMap::new());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                    let Some((name, settings)) = all.get(at) else { break };
                    let began = std::time::Instant::now();
                    let own = folder.path().join(at.to_string());
                    std::fs::create_dir(&own).unwrap();
                    let swept = sweep(task_named(name).unwrap(), settings, &own);
                    println!(
                        "{name} {settings:?}: {} changed, {} refused, {:?}",
                        swept.changed,
                        swept.refused,
                        began.elapsed()
                    );
                    found.lock().unwrap().insert(at, swept);
                }
            });
        }
    });
    let found = found.into_inner().unwrap();
    let changed: usize = found.values().map(|swept| swept.changed).sum();
    let refused: usize = found.values().map(|swept| swept.refused).sum();
    let silent: BTreeSet<&String> = found.values().flat_map(|swept| &swept.silent).collect();
    println!(
        "{changed} changed, {refused} refused, {} silent, {:?}",
        silent.len(),
        started.elapsed()
    );
    assert!(silent.is_empty(), "{} without effect:\n{silent:#?}", silent.len());
    assert!(found.len() == all.len());
}
