//! What a run's model answers: every call of [`Model`] that takes an input is here.

use regard::attention::Intervention;
use regard_picture::picture;
use regard_picture::scene::Scene;
use regard_tasks::inspect::{self, Change};
use regard_tasks::run::Run;
use regard_tasks::task::{How, Input, Model, Prediction, Saliency};
use regard_tasks::{Error, Result};

/// An input as the model takes it: a path names a file of the caller's own machine.
fn named(model: &dyn Model, text: &str) -> Result<Input> {
    Input::named(model.asks().form, text)
}

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
    inputs: &[String],
    changes: &[Change],
) -> Result<Vec<Prediction>> {
    if inputs.is_empty() {
        return Ok(Vec::new());
    }
    let inputs = inputs.iter().map(|text| named(model, text)).collect::<Result<Vec<Input>>>()?;
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

/// The scenes of an input with their numbers, each as a safetensors file.
pub(crate) fn numbers(
    model: &dyn Model,
    input: &str,
    changes: &[Change],
) -> Result<Vec<(String, Vec<u8>)>> {
    let input = named(model, input)?;
    let scenes = changed(model, &input, changes)?.during(|| model.show(&input))?;
    scenes.into_iter().map(|(name, scene)| Ok((name, picture::numbers(&scene)?))).collect()
}

/// How much each part of an input matters, under changes of the model's attention.
pub(crate) fn saliency(
    model: &dyn Model,
    input: &str,
    how: How,
    changes: &[Change],
) -> Result<Saliency> {
    let input = named(model, input)?;
    changed(model, &input, changes)?.during(|| model.abilities().saliency(&input, how))
}

/// A scene of an input as a page that stands alone and as SVG; the first where none is named.
pub(crate) struct Shown {
    pub(crate) page: String,
    pub(crate) svg: String,
}

impl Shown {
    pub(crate) fn new(
        run: &Run,
        model: &dyn Model,
        input: &str,
        wanted: Option<&str>,
    ) -> Result<Self> {
        let input = named(model, input)?;
        let scenes = model.show(&input)?;
        let is_wanted = |(name, _): &&(String, Scene)| wanted.is_none_or(|wanted| name == wanted);
        let Some((name, scene)) = scenes.iter().find(is_wanted) else {
            let names: Vec<&str> = scenes.iter().map(|(name, _)| &name[..]).collect();
            return Err(Error::invalid(match (wanted, names.is_empty()) {
                (Some(wanted), false) => {
                    format!("there is no scene `{wanted}`; there are: {}", names.join(", "))
                }
                _ => "this model attends to nothing that could be shown".into(),
            }));
        };
        let caption = run.caption(model, name, &input)?;
        Ok(Self { page: picture::page(scene, &caption), svg: picture::svg(scene, &caption, None) })
    }
}
