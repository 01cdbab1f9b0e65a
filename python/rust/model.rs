//! What a run's model answers: every call of [`Model`] that takes an input is here.

use regard_picture::picture;
use regard_picture::scene::Scene;
use regard_tasks::run::Run;
use regard_tasks::task::{Input, Model, Prediction};
use regard_tasks::{Error, Result};

/// An input as the model takes it: a path names a file of the caller's own machine.
fn named(model: &dyn Model, text: &str) -> Result<Input> {
    Input::named(model.asks().form, text)
}

/// A prediction for each input.
pub(crate) fn predict(model: &dyn Model, inputs: &[String]) -> Result<Vec<Prediction>> {
    if inputs.is_empty() {
        return Ok(Vec::new());
    }
    let inputs = inputs.iter().map(|text| named(model, text));
    model.predict(&inputs.collect::<Result<Vec<Input>>>()?)
}

/// The scenes of an input with their numbers, each as a safetensors file.
pub(crate) fn numbers(model: &dyn Model, input: &str) -> Result<Vec<(String, Vec<u8>)>> {
    let scenes = model.show(&named(model, input)?)?;
    scenes.into_iter().map(|(name, scene)| Ok((name, picture::numbers(&scene)?))).collect()
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
