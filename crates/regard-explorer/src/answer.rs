//! What comes of a question.

use crate::ask::Ready;
use crate::cache::{Cache, Key};
use crate::difference::difference;
use crate::measures::measures;
use crate::refusal::Refusal;
use crate::rollout::rollouts;
use regard::attention::recorded;
use regard_picture::scene::{Map, Scene};
use regard_tasks::Error;
use regard_tasks::inspect::Unmet;
use regard_tasks::task::{Input, Method, Model, Prediction};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Instant;

/// The scenes of an input, or why there are none.
type Shown = Result<Vec<(String, Scene)>, Error>;

impl Ready {
    pub(crate) fn key(&self, kind: &'static str) -> Key {
        Key {
            kind,
            run: self.run.id.clone(),
            generation: self.loaded.generation,
            input: self.input.clone(),
            changes: self.changes.clone(),
        }
    }

    /// What was answered before, or what is answered now.
    pub(crate) fn cached(
        &self,
        kind: &'static str,
        cache: &Cache,
        answer: impl FnOnce(&Self) -> Result<Value, Refusal>,
    ) -> Result<Arc<[u8]>, Refusal> {
        let key = self.key(kind);
        if let Some(known) = cache.get(&key) {
            return Ok(known);
        }
        let started = Instant::now();
        let mut value = answer(self)?;
        value["milliseconds"] = json!(started.elapsed().as_secs_f64() * 1000.0);
        let bytes: Arc<[u8]> = value.to_string().into_bytes().into();
        cache.put(key, bytes.clone());
        Ok(bytes)
    }

    /// The prediction and every head; where something is changed, beside what it was before.
    pub(crate) fn answer(&self) -> Result<Value, Refusal> {
        let (model, input) = (&*self.loaded.model, &self.input);
        let now = || -> Result<(Prediction, Shown), Error> {
            Ok((predict(model, input)?, model.show(input)))
        };
        let (prediction, shown) = self.changes.during(now)?;
        let (scenes, blank) = match shown {
            Ok(scenes) => (scenes, None),
            Err(Error::Stopped) => return Err(Error::Stopped.into()),
            Err(error) => (Vec::new(), Some(error.to_string())),
        };
        let (before, unmet) = match self.changes.is_none() {
            true => (None, Unmet::default()),
            // What names heads and cells may name some that are not there.
            false if !self.changes.heads.is_empty() || !self.changes.cells.is_empty() => {
                let (before, calls) = recorded(|| predict(model, input));
                (Some(before?), Unmet::of(&self.changes, &calls))
            }
            false => (Some(predict(model, input)?), Unmet::default()),
        };
        let difference = before.as_ref().map(|before| difference(before, &prediction));
        let sound = match input {
            Input::Example { part, index, .. } if is_sound(&scenes) => {
                let part = Input::example(*part, 0).to_string();
                let part = part.trim_end_matches(":0");
                Some(format!("/api/runs/{}/sound/{part}/{index}.wav", self.run.id))
            }
            _ => None,
        };
        let text = match input {
            Input::Example { .. } => model.typed(input)?,
            Input::Text(_) | Input::File { .. } => None,
        };
        Ok(json!({
            "run": self.run.id,
            "text": text,
            "prediction": prediction,
            "before": before,
            "unmet": unmet,
            "difference": difference,
            "truth": self.run.truth(model, input),
            "scenes": described(&scenes),
            "blank": blank,
            "sound": sound,
        }))
    }

    /// How much each part of the input changes what is predicted.
    pub(crate) fn saliency(&self) -> Result<Value, Refusal> {
        let saliency = self
            .changes
            .during(|| self.loaded.model.abilities().saliency(&self.input, self.how))?;
        let mut value = json!(saliency);
        value["note"] = json!(note(self.how.method));
        Ok(value)
    }

    /// What was considered while the output was searched for.
    pub(crate) fn search_tree(&self) -> Result<Value, Refusal> {
        let tree =
            self.changes.during(|| self.loaded.model.abilities().search_tree(&self.input))?;
        Ok(json!(tree))
    }
}

/// What a method tells.
fn note(method: Method) -> &'static str {
    match method {
        Method::IntegratedGradients => {
            "integrated gradients: the values add up to what the input changes, compared with all of its \
             vectors being zero"
        }
        Method::Attention => {
            "attention: the mean weight of each part; what was read, not what it was worth"
        }
        Method::AttentionGradient => {
            "attention × gradient: what each weight adds to the output, as far as a small change tells"
        }
        Method::Rollout => {
            "rollout: the weights of all layers together; half of each layer is what is carried on"
        }
        _ => {
            "gradient × input: how the output would change with a small change there; like attention \
             weights, no proof of why it was given"
        }
    }
}

pub(crate) fn predict(model: &dyn Model, input: &Input) -> Result<Prediction, Error> {
    let prediction = model.predict(std::slice::from_ref(input))?.pop();
    prediction.ok_or_else(|| Error::invalid("the model gave no prediction"))
}

fn is_sound(scenes: &[(String, Scene)]) -> bool {
    scenes.iter().any(|(_, scene)| matches!(scene, Scene::Sound(sound) if sound.unit == "seconds"))
}

/// Scenes with all that is said of each.
pub(crate) fn described(scenes: &[(String, Scene)]) -> Vec<Value> {
    let one = |((name, scene), rollout): (&(String, Scene), Option<Map>)| {
        json!({
            "name": name,
            "scene": scene.compact(),
            "measures": measures(scene),
            "rollout": rollout.as_ref().map(Map::compact),
        })
    };
    scenes.iter().zip(rollouts(scenes)).map(one).collect()
}
