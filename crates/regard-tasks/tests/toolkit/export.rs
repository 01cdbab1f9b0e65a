//! A run for other programs: what is written, and what is refused. Whether PyTorch and onnxruntime
//! answer as we do is shown by `bench/export.py`.

use regard::tensor::load;
use regard_tasks::{Export, Run, Silent, TrainingConfig, export, task_named, train};
use std::path::Path;

fn exported(task: &str, folder: &Path, settings: &[&str]) -> Export {
    let task = task_named(task).unwrap();
    let options = settings.iter().fold(task.options().unwrap(), |o, s| o.set(s).unwrap());
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
    assert!(module.lines().count() < 300, "{} lines", module.lines().count());
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
