//! What a training starts from: the weights of another run, and which weights stay.

use super::{Callback, Checkpoint, TrainingConfig};
use crate::{Error, Learner, Result, Run};
use regard::Tensor;
use regard::tensor::{Parameters, load};
use std::collections::BTreeMap;
use std::path::Path;

/// Parts of a name that say that its rows are tokens or labels: they fit no other vocabulary, however
/// equal the shapes.
const OF_VOCABULARY: [&str; 6] =
    ["input.weight", "embedding", "out.", "head.", "class", "generator"];

/// Takes the weights that fit from a run's best checkpoint or from a safetensors file, and says what
/// it took. `vocabulary` is the model's own, for comparison with the run's. Refuses a file in which
/// nothing fits.
///
/// ```
/// use regard::prelude::*;
/// use regard_tasks::take_weights;
/// let folder = tempfile::tempdir().unwrap();
/// let file = folder.path().join("a.safetensors");
/// let (old, new) = (Parameters::new(DType::F32, 1), Parameters::new(DType::F32, 2));
/// for parameters in [&old, &new] {
///     Linear::new(&parameters.at("shared"), 3, 2, true)?;
/// }
/// Linear::new(&new.at("own"), 3, 2, true)?;
/// old.save(&file)?;
/// assert_eq!(take_weights(&new, &file, "")?, "2 of 4 weights are those of ".to_string()
///     + &file.display().to_string() + "; new are own.bias, own.weight");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn take_weights(parameters: &Parameters, from: &Path, vocabulary: &str) -> Result<String> {
    let source = Source::open(from, vocabulary)?;
    let mut new = Vec::new();
    let mut taken = 0;
    let all = parameters.all();
    for parameter in &all {
        let name = parameter.name();
        let of_vocabulary = OF_VOCABULARY.iter().any(|part| name.contains(part));
        let found = source.tensors.get(name).filter(|_| source.same_vocabulary || !of_vocabulary);
        match found.filter(|found| found.shape() == parameter.tensor().shape()) {
            Some(found) => {
                parameter.set(&found.to_dtype(parameter.tensor().dtype())?)?;
                taken += 1;
            }
            None => new.push(name.to_owned()),
        }
    }
    if taken == 0 {
        return Err(Error::file(
            from,
            "none of its weights has a name and a shape of this model's",
        ));
    }
    let mut said = format!("{taken} of {} weights are those of {}", all.len(), from.display());
    if !new.is_empty() {
        let more = new.len().saturating_sub(8);
        new.truncate(8);
        said += &format!("; new are {}", new.join(", "));
        if more > 0 {
            said += &format!(" and {more} more");
        }
    }
    if !source.same_vocabulary {
        said += "; the vocabularies differ, so no weight of a token or label was taken";
    }
    Ok(said)
}

/// Gives a model what it begins with: what its task has for it, and the weights of another run. Says
/// what there is to be said, and refuses to freeze what is not there.
pub(super) fn prepare(
    learner: &mut dyn Learner,
    config: &TrainingConfig,
    callback: &mut dyn Callback,
) -> Result<()> {
    for note in learner.start()? {
        callback.note(&note);
    }
    let model = learner.model();
    if let Some(from) = &config.init_from {
        callback.note(&take_weights(model.parameters(), from, &model.vocabulary()?)?);
    }
    let all = model.parameters().all();
    let frozen = all.iter().filter(|p| is_frozen(p.name(), &config.freeze)).count();
    if let (Some(pattern), 0) = (config.freeze.first(), frozen) {
        let what = format!("`training.freeze`: no weight has a name like {pattern}");
        return Err(Error::invalid(what));
    }
    if frozen > 0 {
        callback.note(&format!("{frozen} of {} weights stay as they are", all.len()));
    }
    Ok(())
}

/// Weights to take from.
struct Source {
    tensors: BTreeMap<String, Tensor>,
    same_vocabulary: bool,
}

impl Source {
    fn open(from: &Path, vocabulary: &str) -> Result<Self> {
        if !from.is_dir() {
            return Ok(Self { tensors: load(from)?.0, same_vocabulary: true });
        }
        let run = Run::open(from)?;
        let tensors = Checkpoint::read(&run.path("best.safetensors"))?.group("model");
        let own = std::fs::read_to_string(run.path("vocabulary.json")).unwrap_or_default();
        Ok(Self { tensors, same_vocabulary: own == vocabulary })
    }
}

/// Whether a name is one of those that patterns mean; `*` stands for anything.
///
/// ```
/// use regard_tasks::is_frozen;
/// let patterns = ["encoder.*".to_string(), "*.bias".to_string()];
/// assert!(is_frozen("encoder.layers.0.norm1.weight", &patterns));
/// assert!(is_frozen("out.bias", &patterns) && !is_frozen("out.weight", &patterns));
/// ```
pub fn is_frozen(name: &str, patterns: &[String]) -> bool {
    patterns.iter().any(|pattern| {
        let mut parts = pattern.split('*');
        let Some(mut rest) = parts.next().and_then(|first| name.strip_prefix(first)) else {
            return false;
        };
        let parts: Vec<&str> = parts.collect();
        let Some((last, middle)) = parts.split_last() else { return rest.is_empty() };
        for part in middle {
            match rest.find(part) {
                Some(at) => rest = &rest[at + part.len()..],
                None => return false,
            }
        }
        rest.ends_with(last)
    })
}
