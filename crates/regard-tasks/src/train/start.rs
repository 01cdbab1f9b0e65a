//! What a training starts from: the weights of another run, and which weights stay.

use super::callback::Callback;
use crate::options::training::TrainingConfig;
use crate::run::checkpoint::Checkpoint;
use crate::run::folder::Run;
use crate::task::learner::Learner;
use crate::task::named_rows::NamedRows;
use regard::tensor::{Parameter, Parameters, load};
use regard::{DType, Tensor};
use regard_data::{Error, Result};
use std::collections::BTreeMap;
use std::path::Path;

/// Takes the weights that fit from a run's best checkpoint or from a safetensors file, and says what
/// it took. Of a weight that belongs to tokens or labels (`named`, see
/// [`Model::named_rows`](crate::task::Model::named_rows)) it takes the rows of those that the run has
/// too, under the same name; a file says no names, and is taken at its word. Refuses a file in which
/// nothing fits.
///
/// ```
/// use regard::prelude::*;
/// use regard_tasks::train::take_weights;
/// let folder = tempfile::tempdir().unwrap();
/// let file = folder.path().join("a.safetensors");
/// let (old, new) = (Parameters::new(DType::F32, 1), Parameters::new(DType::F32, 2));
/// for parameters in [&old, &new] {
///     Linear::new(&parameters.at("shared"), 3, 2, true)?;
/// }
/// Linear::new(&new.at("own"), 3, 2, true)?;
/// old.save(&file)?;
/// assert_eq!(take_weights(&new, &[], &file)?, "2 of 4 weights are those of ".to_string()
///     + &file.display().to_string() + "; new are own.bias, own.weight");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn take_weights(parameters: &Parameters, named: &[NamedRows], from: &Path) -> Result<String> {
    let source = Source::open(from)?;
    let (mut taken, mut parts, mut new) = (0, Vec::new(), Vec::new());
    let all = parameters.all();
    for parameter in &all {
        let name = parameter.name();
        match source.taken(parameter, names_of(named, name))? {
            Taken::Whole(weight) => {
                parameter.set(&weight)?;
                taken += 1;
            }
            Taken::Rows(weight, some, rows) => {
                parameter.set(&weight)?;
                parts.push(format!("{some} of {rows} rows of {name}"));
            }
            Taken::Nothing => new.push(name.to_owned()),
        }
    }
    if taken == 0 && parts.is_empty() {
        return Err(Error::file(
            from,
            "none of its weights has a name and a shape of this model's",
        ));
    }
    let mut said = format!("{taken} of {} weights are those of {}", all.len(), from.display());
    if !parts.is_empty() {
        said += &format!(", and {}, whose tokens or labels it has too", listed(parts));
    }
    if !new.is_empty() {
        said += &format!("; new are {}", listed(new));
    }
    Ok(said)
}

/// The first of some names, and how many more there are.
fn listed(mut names: Vec<String>) -> String {
    const SOME: usize = 8;
    let more = names.len().saturating_sub(SOME);
    names.truncate(SOME);
    match more {
        0 => names.join(", "),
        more => format!("{} and {more} more", names.join(", ")),
    }
}

/// The names that a weight belongs to, where it belongs to some.
fn names_of<'a>(named: &'a [NamedRows], parameter: &str) -> Option<&'a [String]> {
    named.iter().find(|rows| rows.parameter == parameter).map(|rows| &rows.names[..])
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
        callback.note(&take_weights(model.parameters(), &model.named_rows(), from)?);
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
    /// What belongs to tokens or labels; not known of a file that is no run's.
    named: Option<Vec<NamedRows>>,
}

/// What is taken of a weight.
enum Taken {
    Whole(Tensor),
    /// The weight with so many rows taken, of so many.
    Rows(Tensor, usize, usize),
    Nothing,
}

impl Source {
    fn open(from: &Path) -> Result<Self> {
        if !from.is_dir() {
            return Ok(Self { tensors: load(from)?.0, named: None });
        }
        let run = Run::open(from)?;
        let tensors = Checkpoint::read(&run.path("best.safetensors"))?.group("model");
        Ok(Self { tensors, named: Some(run.untrained_model()?.named_rows()) })
    }

    /// What a parameter that belongs to these names, or to none, takes over.
    fn taken(&self, parameter: &Parameter, names: Option<&[String]>) -> Result<Taken> {
        let own = parameter.tensor();
        let Some(found) = self.tensors.get(parameter.name()) else { return Ok(Taken::Nothing) };
        let whole = || match found.shape() == own.shape() {
            true => Ok(Taken::Whole(found.to_dtype(own.dtype())?)),
            false => Ok(Taken::Nothing),
        };
        let (Some(named), Some(names)) = (&self.named, names) else { return whole() };
        let Some(theirs) = names_of(named, parameter.name()) else { return Ok(Taken::Nothing) };
        if theirs == names {
            return whole();
        }
        let by_row = own.shape().first() == Some(&names.len())
            && found.shape().first() == Some(&theirs.len())
            && own.shape()[1..] == found.shape()[1..];
        if !by_row {
            return Ok(Taken::Nothing);
        }
        let numbers = |x: &Tensor| x.to_dtype(DType::F32)?.contiguous()?.to_vec::<f32>();
        let (mut to, from) = (numbers(&own)?, numbers(found)?);
        let width = to.len() / names.len().max(1);
        let places: BTreeMap<&String, usize> = theirs.iter().zip(0..).collect();
        let mut some = 0;
        for (row, name) in names.iter().enumerate() {
            if let Some(&place) = places.get(name) {
                to[row * width..][..width].copy_from_slice(&from[place * width..][..width]);
                some += 1;
            }
        }
        if some == 0 {
            return Ok(Taken::Nothing);
        }
        let weight = Tensor::from_vec(to, own.shape())?.to_dtype(own.dtype())?;
        Ok(Taken::Rows(weight, some, names.len()))
    }
}

/// Whether a name is one of those that patterns mean; `*` stands for anything.
///
/// ```
/// use regard_tasks::train::is_frozen;
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
