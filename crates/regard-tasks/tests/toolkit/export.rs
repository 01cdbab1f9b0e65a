//! A run for other programs: what is written, and what is refused. Whether PyTorch answers as we do is
//! tried by `python/tests/test_exports.py` on what the last test here writes where `REGARD_EXPORTS`
//! names a folder; onnxruntime's answers are compared by `bench/export.py`.

use regard::DType;
use regard::tensor::{Random, load};
use regard_tasks::export::{Export, export};
use regard_tasks::options::TrainingConfig;
use regard_tasks::run::Run;
use regard_tasks::tasks::task_named;
use regard_tasks::train::{Silent, train};
use std::path::Path;

fn exported(task: &str, folder: &Path, settings: &[&str]) -> Export {
    let task = task_named(task).unwrap();
    let options = settings.iter().fold(task.options().unwrap(), |o, s| o.set(s).unwrap());
    let options = options.set_by_nobody();
    let mut learner = task.begin(&options).unwrap();
    let run = Run::create(&folder.join("run"), task, &options, learner.model()).unwrap();
    train(learner.as_mut(), &TrainingConfig::of(&options).unwrap(), &run, &mut Silent).unwrap();
    export(&run, run.model(&options).unwrap().as_ref(), &folder.join("out")).unwrap()
}

fn names(export: &Export) -> Vec<String> {
    let name = |file: &std::path::PathBuf| file.file_name().unwrap().to_str().unwrap().to_owned();
    export.files.iter().map(name).collect()
}

#[test]
fn weights_alone_their_shapes_a_module_and_onnx_are_written() {
    let folder = tempfile::tempdir().unwrap();
    let small = ["size=60", "epochs=1", "hidden=8", "embedding=8", "heads=2", "feed_forward=8"];
    let export = exported("label", folder.path(), &small);
    let all = [
        "check.safetensors",
        "model.onnx",
        "model.py",
        "model.safetensors",
        "shapes.md",
        "vocabulary.json",
    ];
    assert_eq!(names(&export), all);
    assert!(export.left_out.is_empty());
    let out = folder.path().join("out");
    let (best, _) = load(folder.path().join("run/best.safetensors")).unwrap();
    let (weights, _) = load(out.join("model.safetensors")).unwrap();
    let page = std::fs::read_to_string(out.join("shapes.md")).unwrap();
    assert!(!weights.is_empty());
    for (name, tensor) in &weights {
        let kept = &best[&format!("model/{name}")];
        assert_eq!(tensor.to_vec::<f32>().unwrap(), kept.to_vec::<f32>().unwrap());
        let sizes: Vec<String> = tensor.shape().iter().map(usize::to_string).collect();
        let line = format!("| `{name}` | {} | f32 |", sizes.join(" × "));
        assert!(page.contains(&line), "{line} is not in\n{page}");
    }
    let count = best.keys().filter(|name| name.starts_with("model/")).count();
    assert_eq!(weights.len(), count);
    let module = std::fs::read_to_string(out.join("model.py")).unwrap();
    assert!(module.contains("class TransformerEncoder") && !module.contains("class Convolution"));
    assert!(module.lines().count() < 450, "{} lines", module.lines().count());
    let (check, _) = load(out.join("check.safetensors")).unwrap();
    assert_eq!(check["output"].shape()[..2], check["x"].shape()[..]);
    // Every weight is an initializer of the ONNX graph, under its name.
    let onnx = std::fs::read(out.join("model.onnx")).unwrap();
    for name in weights.keys() {
        let found = onnx.windows(name.len()).any(|bytes| bytes == name.as_bytes());
        assert!(found, "{name} is not in model.onnx");
    }
}

#[test]
fn hard_choices_and_other_tasks_say_why_there_is_no_onnx() {
    let folder = tempfile::tempdir().unwrap();
    let hard = ["size=60", "epochs=1", "hidden=8", "embedding=8", "weighting=argmax"];
    let export = exported("classify", folder.path(), &hard);
    assert!(names(&export).contains(&"model.py".to_owned()));
    assert!(!names(&export).contains(&"model.onnx".to_owned()));
    assert_eq!(export.left_out, ["no ONNX: hard choices (\"argmax\") do not become ONNX"]);
    let folder = tempfile::tempdir().unwrap();
    let export = exported("graph", folder.path(), &["epochs=1"]);
    assert_eq!(export.left_out, ["no ONNX: only label, classify and image models become ONNX"]);
    assert!(names(&export).contains(&"model.py".to_owned()));
}

const SCORES: [&str; 11] = [
    "dot",
    "scaled-dot",
    "additive",
    "concat",
    "concat plain",
    "bilinear",
    "low-rank",
    "gaussian",
    "cosine",
    "expression",
    "expression long",
];
const WEIGHTINGS: [&str; 10] = [
    "softmax",
    "sparsemax",
    "entmax15",
    "sigmoid",
    "none",
    "argmax",
    "sample",
    "straight-through",
    "gumbel",
    "gumbel-hard",
];
const POSITIONS: [&str; 6] = ["none", "sinusoidal", "learned", "rotary", "alibi", "relative"];
const CELLS: [&str; 4] = ["rnn", "rnn-relu", "gru", "lstm"];

/// Every function, operator and kind of parameter, one of which has a name that Python keeps.
const LONG: &str = "lambda * tanh(w @ abs(q - k)) - 0.5e0 * norm(q * k) / sqrt(d) + \
    max(mean(relu(q) + gelu(k)), min(softplus(q @ k), sum(leaky_relu(q, 0.1) * sigmoid(k)))) + \
    cos(pi * tanh(sum(square(q) - square(k)) / 9)) * exp(-log(1 + square(sin(sigmoid(q @ k)))))";

/// The settings of a score; `head` says whether it is one of heads.
fn score(name: &str, head: bool) -> Vec<String> {
    let prefix = if head { "head_" } else { "" };
    let set = |key: &str, value: &str| format!("{prefix}{key}={value}");
    match name {
        "concat plain" => vec![set("score", "concat"), set("score_hidden", "0")],
        "expression" => vec![
            set("score", "expression"),
            set("expression", "tau * sum(w * q * k)"),
            set("expression_numbers", "[\"tau\"]"),
        ],
        "expression long" => vec![
            set("score", "expression"),
            set("expression", LONG),
            set("expression_numbers", "[\"lambda\"]"),
        ],
        other => vec![set("score", other)],
    }
}

/// Tasks and settings whose networks are exported: every score with every weighting, in heads and
/// alone, and every encoder, decoder and context with each other.
fn combinations() -> Vec<(&'static str, Vec<String>)> {
    let mut all: Vec<(&str, Vec<String>)> = Vec::new();
    let texts = |words: &[&str]| words.iter().map(|word| word.to_string()).collect::<Vec<_>>();
    let mut add = |task, parts: &[Vec<String>]| all.push((task, parts.concat()));
    let transformer = texts(&["encoder=transformer"]);
    for score_name in SCORES {
        for weighting in WEIGHTINGS {
            let heads = [score(score_name, true), vec![format!("head_weighting={weighting}")]];
            add("label", &[transformer.clone(), heads.concat()]);
            let alone = [score(score_name, false), vec![format!("weighting={weighting}")]];
            add("classify", &[texts(&["pooling=attention", "temperature=0.5"]), alone.concat()]);
            add("answer", &[texts(&["hops=2"]), alone.concat()]);
            let one_way = texts(&["bidirectional=false"]);
            add("translate", &[one_way.clone(), texts(&["decoder=gru"]), alone.concat()]);
        }
        add("answer", &[texts(&["model.model=reader", "encoder=gru"]), score(score_name, false)]);
        add("classify", &[texts(&["queries=3"]), score(score_name, false)]);
        add("regress", &[score(score_name, false)]);
        add("regress", &[score(score_name, false), texts(&["nearest=7"])]);
        add("image", &[score(score_name, true)]);
        add("label", &[texts(&["encoder=self-attention", "window=2"]), score(score_name, true)]);
        for decoder in ["decoder=cnn", "decoder=transformer"] {
            let plain = texts(&["bidirectional=false", decoder]);
            add("translate", &[plain, score(score_name, false), score(score_name, true)]);
        }
        for position in POSITIONS {
            let position = vec![format!("position={position}"), "window=2".into()];
            add("label", &[transformer.clone(), score(score_name, true), position]);
        }
    }
    let encoders = CELLS.iter().map(|cell| format!("encoder={cell}"));
    let rest = ["none", "cnn", "fully-connected", "self-attention", "transformer"];
    let rest = rest.map(|e| format!("encoder={e}"));
    let encoders: Vec<String> = encoders.chain(rest).collect();
    let decoders = CELLS.iter().chain(&["cnn", "transformer"]).map(|d| format!("decoder={d}"));
    for decoder in decoders {
        for encoder in &encoders {
            for context in [
                &["context=attention"][..],
                &["context=multi-head"],
                &["context=fixed"],
                &["context=fixed", "fixed=last"],
                &["context=fixed", "fixed=mean"],
                &["context=fixed", "fixed=max"],
                &["context=fixed", "fixed=learned"],
            ] {
                let own = vec![decoder.clone(), encoder.clone(), "layers=2".into()];
                add("translate", &[own, texts(context)]);
            }
        }
        for position in POSITIONS {
            let own = vec![decoder.clone(), format!("position={position}"), "layers=2".into()];
            let norm = if position == "none" { "norm_first=false" } else { "norm_first=true" };
            add("translate", &[own, texts(&["encoder=transformer", "embedding=6", norm])]);
        }
        for gain in ["query_gain=true", "query_gain=false"] {
            let scaled = texts(&["bidirectional=false", "score=scaled-dot", gain]);
            add("translate", &[vec![decoder.clone()], scaled]);
        }
        for tied in ["tied_embeddings=output", "tied_embeddings=all"] {
            add("translate", &[vec![decoder.clone()], texts(&[tied, "shared_vocabulary=true"])]);
        }
        for task in ["summarize", "transcribe", "caption"] {
            add(task, &[vec![decoder.clone()]]);
        }
        add("draw", &[vec![decoder.clone()], texts(&["context=attention"])]);
    }
    for encoder in &encoders {
        for task in ["label", "classify", "answer"] {
            add(task, &[vec![encoder.clone()]]);
        }
        add(
            "label",
            &[vec![encoder.clone()], texts(&["characters=true", "neighbors=1", "head_hidden=8"])],
        );
        // Sound takes its time to be made.
        if ["encoder=gru", "encoder=transformer"].contains(&&encoder[..]) {
            add("label", &[vec![encoder.clone()], texts(&["kind=sound", "max_length=100"])]);
            add("classify", &[vec![encoder.clone()], texts(&["kind=audio", "max_length=100"])]);
        }
        let reader = texts(&["model.model=reader", "features=true", "attention=false"]);
        add("answer", &[vec![encoder.clone()], reader]);
        add("answer", &[vec![encoder.clone()], texts(&["attention=false"])]);
        for pooling in ["mean", "max", "last", "gate", "attention", "class-token"] {
            add(
                "classify",
                &[vec![encoder.clone(), format!("pooling={pooling}"), "max_length=3".into()]],
            );
        }
    }
    for settings in
        [["hops=3", "carry=true"], ["shared_hops=true", "hops=2"], ["positions=false", "times=0"]]
    {
        add("answer", &[texts(&settings)]);
    }
    for settings in ["pooling=class-token", "pooling=mean", "model=cnn"] {
        add("image", &[texts(&[settings])]);
    }
    for pooling in ["pooling=class-token", "pooling=mean"] {
        for position in POSITIONS {
            for window in [&["patch_size=4"][..], &["patch_size=4", "window=1"]] {
                let own = vec![pooling.into(), format!("position={position}")];
                add("image", &[own, texts(window)]);
            }
        }
        for weighting in WEIGHTINGS {
            add("image", &[vec![pooling.into(), format!("head_weighting={weighting}")]]);
        }
    }
    // Heads of other widths, with biases and without.
    let heads = texts(&["decoder=transformer", "context=multi-head"]);
    for widths in [&["key_width=6"][..], &["value_width=5"], &["key_width=2", "value_width=7"]] {
        for bias in ["bias=true", "bias=false"] {
            let own = [texts(widths), texts(&[bias])].concat();
            for encoder in ["encoder=self-attention", "encoder=transformer"] {
                for task in ["label", "classify", "answer"] {
                    add(task, &[own.clone(), texts(&[encoder])]);
                }
                add("translate", &[own.clone(), texts(&[encoder]), heads.clone()]);
            }
            for task in ["summarize", "transcribe", "caption"] {
                add(task, &[own.clone(), heads.clone()]);
            }
            add("image", &[own.clone(), texts(&["position=rotary"])]);
        }
    }
    for settings in ["windowed=true", "learn_bandwidth=false", "per_column=true", "bandwidth=0.3"] {
        add("regress", &[texts(&[settings, "nearest=9"])]);
    }
    for weighting in WEIGHTINGS {
        let weighting = format!("weighting={weighting}");
        add("classify", &[texts(&["queries=2"]), vec![weighting.clone()]]);
        add("label", &[texts(&["encoder=self-attention"]), vec![format!("head_{weighting}")]]);
    }
    for layer in ["gat", "gatv2", "dot", "scaled-dot", "mean"] {
        let own = vec![format!("layer={layer}"), "layers=2".into()];
        add("graph", &[own.clone(), texts(&["size=200"])]);
        for pooling in ["attention", "mean", "max", "gate"] {
            let pooling = vec![format!("pooling={pooling}"), "embedded=touching".into()];
            add("graph", &[own.clone(), pooling]);
        }
        for weighting in WEIGHTINGS.into_iter().filter(|_| layer != "mean") {
            let head = vec![format!("head_weighting={weighting}"), "size=200".into()];
            add("graph", &[own.clone(), head]);
        }
    }
    for name in SCORES {
        let one = vec!["embedded=touching".into(), "queries=2".into()];
        add("graph", &[one, score(name, false)]);
    }
    for weighting in WEIGHTINGS {
        add("graph", &[vec!["embedded=touching".into(), format!("weighting={weighting}")]]);
    }
    add("regress", &[]);
    add("draw", &[]);
    all
}

/// Writes a network with made-up weights; gives why it cannot be made, or why it is not written.
fn exported_untrained(task: &str, settings: &[String], folder: &Path) -> Result<Export, String> {
    let task = task_named(task).unwrap();
    let small = [
        "size=20",
        "hidden=8",
        "embedding=8",
        "score_hidden=6",
        "feed_forward=8",
        "heads=2",
        "image_size=16",
        "patch_size=8",
    ];
    let mut options = task.options().unwrap();
    let graph = task.name() == "graph";
    for setting in small.into_iter().filter(|setting| !(graph && setting.starts_with("score"))) {
        // Not every task has every one.
        options = options.clone().set(setting).unwrap_or(options);
    }
    for setting in settings {
        options = options.set(setting).map_err(|error| error.to_string())?;
    }
    // Of all combinations some have settings without an effect.
    let options = options.set_by_nobody();
    let learner = task.begin(&options).map_err(|error| error.to_string())?;
    let random = Random::named(3, "weights");
    for parameter in learner.model().parameters().all() {
        let shape = parameter.tensor().shape().to_vec();
        parameter.set(&random.normal(&shape, 0.0, 0.4, DType::F32).unwrap()).unwrap();
    }
    let run = Run::create(&folder.join("run"), task, &options, learner.model()).unwrap();
    export(&run, learner.model(), &folder.join("out")).map_err(|error| error.to_string())
}

#[test]
fn every_network_that_can_be_made_becomes_a_module() {
    let (kept, own) = (std::env::var_os("REGARD_EXPORTS"), tempfile::tempdir().unwrap());
    let root = kept.as_ref().map_or(own.path(), Path::new);
    let (mut written, mut refused) = (0, Vec::new());
    for (task, settings) in combinations() {
        let folder = root.join(format!("{written:04}"));
        match exported_untrained(task, &settings, &folder) {
            Ok(export) => {
                let why = format!("{task} {settings:?}: {:?}", export.left_out);
                assert!(names(&export).contains(&"model.py".to_owned()), "{why}");
                std::fs::write(
                    folder.join("settings.txt"),
                    format!("{task} {}", settings.join(" ")),
                )
                .unwrap();
                written += 1;
            }
            Err(why) => refused.push(format!("{task} {}: {why}", settings.join(" "))),
        }
        if kept.is_none() {
            let _ = std::fs::remove_dir_all(&folder);
        }
    }
    if kept.is_some() {
        std::fs::write(root.join("count.txt"), written.to_string()).unwrap();
    }
    // What cannot be made is refused by what it is, and is little.
    for why in &refused {
        let known = [
            "Transformer's",
            "one width",
            "sum to 1",
            "sampl",
            "needs an encoder",
            "class-token",
            "act within attention",
            "weighs edges by softmax",
        ];
        assert!(known.iter().any(|word| why.contains(word)), "{why}");
    }
    println!("{written} written, {} refused", refused.len());
    assert!(
        written >= 1306 && refused.len() <= 86,
        "{written} written, {} refused: {refused:#?}",
        refused.len()
    );
}
