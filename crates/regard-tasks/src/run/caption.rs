//! What a picture of a run's model says above itself.

use super::folder::Run;
use crate::task::input::Input;
use crate::task::model::Model;
use regard_data::Result;
use regard_picture::picture::{Caption, grouped};

impl Run {
    /// What stands above a picture of a scene that its model has for an input.
    pub fn caption(&self, model: &dyn Model, scene: &str, input: &Input) -> Result<Caption> {
        let task = self.task()?.name();
        let numbers = match model.learned() {
            1 => "1 parameter".to_owned(),
            more => format!("{} parameters", grouped(more)),
        };
        // What a model draws is what the picture shows; as text it says nothing.
        let (prediction, truth) = match model.asks().draws {
            true => Default::default(),
            false => {
                let first = model.predict(std::slice::from_ref(input))?.into_iter().next();
                let truth = model.truth(input).unwrap_or_else(|| "not known".into());
                (first.map_or(String::new(), |first| first.output), truth)
            }
        };
        Ok(Caption {
            title: format!("{task}: {scene}"),
            model: format!("{} ({task}, {numbers})", self.name()),
            input: input.to_string(),
            prediction,
            truth,
        })
    }
}
