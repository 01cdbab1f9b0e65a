//! A run for other programs: its weights alone, a page of their shapes, a PyTorch module that loads
//! them, and ONNX where there are operators for it.

mod onnx;
mod pytorch;

use crate::run::folder::Run;
use crate::task::model::Model;
use crate::task::network::Exported;
use regard::Tensor;
use regard::tensor::{save, write_whole};
use regard_data::Result;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// What was exported.
#[derive(Clone, Debug)]
pub struct Export {
    /// The files that were written.
    pub files: Vec<PathBuf>,
    /// Why there is no PyTorch module, or no ONNX file, where there is none.
    pub left_out: Vec<String>,
}

/// Writes a run's model into a folder: `model.safetensors` (weights alone), `shapes.md` (the shape of
/// each), `vocabulary.json` (what preprocessing learned), and where the task's network can be written
/// so `model.py` (a PyTorch module) with `check.safetensors` (inputs and what the model answers), and
/// `model.onnx`.
///
/// ```
/// use regard_tasks::export::export;
/// use regard_tasks::options::TrainingConfig;
/// use regard_tasks::run::Run;
/// use regard_tasks::tasks::task_named;
/// use regard_tasks::train::{Silent, train};
/// let task = task_named("regress")?;
/// let options = task.options()?.set("epochs=1")?;
/// let mut learner = task.begin(&options)?;
/// let folder = tempfile::tempdir().unwrap();
/// let run = Run::create(&folder.path().join("run"), task, &options, learner.model())?;
/// train(learner.as_mut(), &TrainingConfig::of(&options)?, &run, &mut Silent)?;
/// let exported = export(&run, run.model(&options)?.as_ref(), &folder.path().join("out"))?;
/// assert!(exported.files.iter().any(|file| file.ends_with("model.py")));
/// assert!(exported.left_out[0].contains("only label, classify and image models become ONNX"));
/// # Ok::<(), regard_tasks::Error>(())
/// ```
pub fn export(run: &Run, model: &dyn Model, folder: &Path) -> Result<Export> {
    std::fs::create_dir_all(folder).map_err(|e| regard_data::Error::file(folder, e))?;
    let weights = model.parameters().tensors();
    let about = format!(
        "{}: task {}, written by `regard export` {}.",
        run.folder().display(),
        run.task()?.name(),
        env!("CARGO_PKG_VERSION")
    );
    let mut export = Export { files: Vec::new(), left_out: Vec::new() };
    let mut write = |name: &str, bytes: &[u8]| -> Result<()> {
        write_whole(folder.join(name), bytes)?;
        export.files.push(folder.join(name));
        Ok(())
    };
    write("shapes.md", shapes(&about, &weights).as_bytes())?;
    write("vocabulary.json", model.vocabulary()?.as_bytes())?;
    let mut left_out = Vec::new();
    match model.abilities().exported() {
        Err(why) => left_out.push(format!("no PyTorch module and no ONNX: {why}")),
        Ok(Exported { network, inputs, output }) => {
            match pytorch::module(&network, &about) {
                Ok(module) => write("model.py", module.as_bytes())?,
                Err(why) => left_out.push(format!("no PyTorch module: {why}")),
            }
            match onnx::onnx(&network, &weights) {
                Ok(file) => write("model.onnx", &file)?,
                Err(why) => left_out.push(format!("no ONNX: {why}")),
            }
            let mut check = inputs;
            check.insert("output".into(), output);
            tensors(&folder.join("check.safetensors"), &check)?;
            export.files.push(folder.join("check.safetensors"));
        }
    }
    tensors(&folder.join("model.safetensors"), &weights)?;
    export.files.push(folder.join("model.safetensors"));
    export.files.sort();
    Ok(Export { left_out, ..export })
}

fn tensors(path: &Path, tensors: &BTreeMap<String, Tensor>) -> Result<()> {
    let texts = [("format".to_string(), "pt".to_string())].into();
    Ok(save(path, tensors, &texts)?)
}

/// The page of shapes.
fn shapes(about: &str, weights: &BTreeMap<String, Tensor>) -> String {
    let numel: usize =
        weights.values().map(|tensor| tensor.shape().iter().product::<usize>()).sum();
    let mut page = format!("# {about}\n\n{} tensors, {numel} numbers.\n\n", weights.len());
    page += "| name | shape | type |\n|---|---|---|\n";
    for (name, tensor) in weights {
        let sizes: Vec<String> = tensor.shape().iter().map(usize::to_string).collect();
        let _ = writeln!(page, "| `{name}` | {} | {} |", sizes.join(" × "), tensor.dtype());
    }
    page + "\nMatrices of linear layers are [output, input] and names are those of PyTorch's modules.\n"
}
