//! What a run's model answers: every call of [`Model`] that takes an input is here.

use crate::picture::Picture;
use crate::question::Question;
use regard::attention::Intervention;
use regard_picture::picture::{self, Caption};
use regard_picture::scene::Scene;
use regard_tasks::inspect::{self, Change};
use regard_tasks::run::Run;
use regard_tasks::task::{How, Input, Model, Prediction, Saliency};
use regard_tasks::{Error, Result};

/// What is changed for an input.
fn changed(model: &dyn Model, input: &Input, changes: &[Change]) -> Result<Intervention> {
    match changes.is_empty() {
        true => Ok(Intervention::default()),
        false => inspect::intervention(model, input, changes),
    }
}

/// A prediction for each input, under changes of the model's attention.
pub(crate) fn predict(
    model: &dyn Model,
    inputs: &[Question],
    changes: &[Change],
) -> Result<Vec<Prediction>> {
    if inputs.is_empty() {
        return Ok(Vec::new());
    }
    let inputs = inputs.iter().map(|one| one.input(model)).collect::<Result<Vec<Input>>>()?;
    if changes.is_empty() {
        return model.predict(&inputs);
    }
    // Rows and columns are those of one input.
    let one = |input: &Input| {
        let change = changed(model, input, changes)?;
        change.during(|| model.predict(std::slice::from_ref(input)))
    };
    inputs.iter().map(one).collect::<Result<Vec<_>>>().map(|all| all.concat())
}

/// The scenes of an input: the name of each, its numbers as a safetensors file, and its picture.
pub(crate) fn scenes(
    model: &dyn Model,
    question: &Question,
    changes: &[Change],
) -> Result<Vec<(String, Vec<u8>, Picture)>> {
    let input = question.input(model)?;
    let scenes = changed(model, &input, changes)?.during(|| model.show(&input))?;
    let whole = |(name, scene): (String, Scene)| {
        let numbers = picture::numbers(&scene)?;
        let caption = Caption { input: input.to_string(), ..Caption::from(&name) };
        Ok((name, numbers, Picture { scene, caption }))
    };
    scenes.into_iter().map(whole).collect()
}

/// How much each part of an input matters, under changes of the model's attention.
pub(crate) fn saliency(
    model: &dyn Model,
    question: &Question,
    how: How,
    changes: &[Change],
) -> Result<Saliency> {
    let input = question.input(model)?;
    changed(model, &input, changes)?.during(|| model.abilities().saliency(&input, how))
}

/// The picture of one scene of an input; of the first where none is named.
pub(crate) fn shown(
    run: &Run,
    model: &dyn Model,
    question: &Question,
    wanted: Option<&str>,
) -> Result<Picture> {
    let input = question.input(model)?;
    let mut scenes = model.show(&input)?;
    let found = scenes.iter().position(|(name, _)| wanted.is_none_or(|wanted| name == wanted));
    let Some(found) = found else {
        let names: Vec<&str> = scenes.iter().map(|(name, _)| &name[..]).collect();
        return Err(Error::invalid(match (wanted, names.is_empty()) {
            (Some(wanted), false) => {
                format!("there is no scene `{wanted}`; there are: {}", names.join(", "))
            }
            _ => "this model attends to nothing that could be shown".into(),
        }));
    };
    let (name, scene) = scenes.swap_remove(found);
    let caption = run.caption(model, &name, &input)?;
    Ok(Picture { scene, caption })
}
