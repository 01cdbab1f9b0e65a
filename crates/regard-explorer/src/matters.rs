//! What matters for an answer: every head switched off in turn, and every word forbidden in turn, with
//! how far the prediction moves.

use crate::answer::predict;
use crate::ask::{Found, Ready};
use crate::body::Held;
use crate::refusal::Refusal;
use crate::routes::Explorer;
use regard::attention::{CellChange, HeadRef, Intervention, Site};
use regard_picture::scene::{Map, Scene};
use regard_tasks::task::Prediction;
use serde_json::{Value, json};
use std::sync::Arc;

/// Heads, and words, that are tried at most.
const MOST: usize = 96;

/// Something that is taken away.
struct Part {
    /// What is told of it beside its effect.
    told: Value,
    changes: Intervention,
}

/// An input, what is predicted, and what can be taken away.
struct Plan {
    ready: Ready,
    before: Prediction,
    heads: Vec<Part>,
    words: Vec<Part>,
    /// The room of the request, as long as its input is held.
    _held: Held,
}

impl Explorer {
    /// Tries one after the other; other questions are answered in between.
    pub(crate) async fn matters(
        self: &Arc<Self>,
        found: Found,
        held: Held,
    ) -> Result<Arc<[u8]>, Refusal> {
        let plan = move || plan(found.ready()?, held);
        let plan = Arc::new(self.worker.run(None, plan).await?);
        let key = plan.ready.key("matters");
        if let Some(known) = self.cache.get(&key) {
            return Ok(known);
        }
        let heads = self.effects(&plan, |plan| &plan.heads).await?;
        let words = self.effects(&plan, |plan| &plan.words).await?;
        let value = json!({ "output": plan.before.output, "heads": heads, "words": words });
        let bytes: Arc<[u8]> = value.to_string().into_bytes().into();
        self.cache.put(key, bytes.clone());
        Ok(bytes)
    }

    /// The effect of each part, the greatest first.
    async fn effects(
        self: &Arc<Self>,
        plan: &Arc<Plan>,
        of: fn(&Plan) -> &Vec<Part>,
    ) -> Result<Vec<Value>, Refusal> {
        let mut all: Vec<(f64, Value)> = Vec::new();
        for at in 0..of(plan).len() {
            let plan = plan.clone();
            let without = move || {
                let (part, ready) = (&of(&plan)[at], &plan.ready);
                let (model, input) = (&*ready.loaded.model, &ready.input);
                let after = part.changes.during(|| predict(model, input))?;
                let moved = effect(&plan.before, &after);
                let mut told = part.told.clone();
                told["effect"] = json!(moved);
                told["output"] = match after.output == plan.before.output {
                    true => Value::Null,
                    false => json!(after.output),
                };
                Ok((moved, told))
            };
            all.push(self.worker.run(None, without).await?);
        }
        all.sort_by(|(a, _), (b, _)| b.total_cmp(a));
        Ok(all.into_iter().map(|(_, told)| told).collect())
    }
}

fn plan(ready: Ready, held: Held) -> Result<Plan, Refusal> {
    let (model, input) = (&*ready.loaded.model, &ready.input);
    let both = || -> Result<_, Refusal> { Ok((predict(model, input)?, model.show(input)?)) };
    let (before, scenes) = ready.changes.during(both)?;
    let heads = heads(&scenes, &ready.changes);
    let words = scenes.first().map(|(_, scene)| words(scene, &ready.changes)).unwrap_or_default();
    Ok(Plan { ready, before, heads, words, _held: held })
}

/// Every head of every scene, once.
fn heads(scenes: &[(String, Scene)], changes: &Intervention) -> Vec<Part> {
    let mut found: Vec<HeadRef> = Vec::new();
    for place in scenes.iter().flat_map(|(_, scene)| scene.maps()).filter_map(|map| map.place) {
        let one = HeadRef { site: place.site, layer: Some(place.layer), head: place.head };
        let off = changes.heads.contains(&one);
        if place.head.is_some() && !off && !found.contains(&one) && found.len() < MOST {
            found.push(one);
        }
    }
    let part = |one: HeadRef| {
        let told = json!({ "site": one.site, "layer": one.layer, "head": one.head });
        let mut changes = changes.clone();
        changes.heads.push(one);
        Part { told, changes }
    };
    found.into_iter().map(part).collect()
}

/// Everything that is read in a scene: words, sentences, patches. None where that is too much, or
/// has no place of its own.
fn words(scene: &Scene, changes: &Intervention) -> Vec<Part> {
    let Some(place) = scene.maps().first().and_then(|map: &Map| map.place) else {
        return Vec::new();
    };
    let named: Vec<(String, usize)> = match scene {
        Scene::Maps(maps) if place.columns_are_layers => {
            let rows = maps.rows.iter().skip(place.row).enumerate();
            rows.map(|(at, name)| (name.clone(), at)).collect()
        }
        Scene::Maps(maps) if place.site != Site::Decoder => {
            let columns = maps.columns.iter().enumerate();
            columns.map(|(at, name)| (name.clone(), place.column + at)).collect()
        }
        Scene::Image(image) => {
            let name = |at: usize| format!("{},{}", at / image.columns + 1, at % image.columns + 1);
            (0..image.rows * image.columns).map(|at| (name(at), place.column + at)).collect()
        }
        Scene::Maps(_) | Scene::Sound(_) | Scene::Curve(_) | Scene::Graph(_) => Vec::new(),
    };
    if named.len() > MOST {
        return Vec::new();
    }
    let part = |(name, column): (String, usize)| {
        let mut changes = changes.clone();
        let (layer, head, row, bias) = (None, None, None, None);
        changes.cells.push(CellChange { site: place.site, layer, head, row, column, bias });
        Part { told: json!({ "name": name, "site": place.site, "column": column }), changes }
    };
    named.into_iter().map(part).collect()
}

/// How far a prediction moves, from 0 (not at all) to 1: of probabilities half the sum of what they
/// differ in; of labels the share that is another, or less likely; of a text the share of its tokens
/// that is not there any more, or how much less likely they are; of a number what it differs in,
/// against its size.
fn effect(before: &Prediction, after: &Prediction) -> f64 {
    let (old, new) = (&before.details, &after.details);
    let number = |value: &Value| value.as_f64().unwrap_or(0.0);
    if let (Some(old), Some(new)) =
        (old["probabilities"].as_object(), new["probabilities"].as_object())
    {
        let moved =
            |(name, p): (&String, &Value)| (number(p) - new.get(name).map_or(0.0, number)).abs();
        return old.iter().map(moved).sum::<f64>() / 2.0;
    }
    if let (Some(was), Some(is)) = (old["labels"].as_array(), new["labels"].as_array()) {
        let moved = |at: usize| match was[at] == is[at] {
            true => (number(&old["probabilities"][at]) - number(&new["probabilities"][at])).abs(),
            false => 1.0,
        };
        let count = was.len().min(is.len());
        return (0..count).map(moved).sum::<f64>() / count.max(1) as f64;
    }
    // What is written: tokens, or the codes of a picture's patches.
    let written = |of: &Value| of["tokens"].as_array().or(of["codes"].as_array()).cloned();
    if let (Some(was), Some(is)) = (written(old), written(new)) {
        let lost = lost(&was, &is);
        return if lost > 0.0 { lost } else { (sureness(old) - sureness(new)).abs() };
    }
    if let (Some(was), Some(is)) = (old["probability"].as_f64(), new["probability"].as_f64()) {
        return if before.output == after.output { (was - is).abs() } else { 1.0 };
    }
    match (before.output.trim().parse::<f64>(), after.output.trim().parse::<f64>()) {
        (Ok(was), Ok(is)) => ((was - is).abs() / was.abs().max(1e-9)).min(1.0),
        _ => f64::from(before.output != after.output),
    }
}

/// The share of tokens that is not written any more, whatever its place.
fn lost(was: &[Value], is: &[Value]) -> f64 {
    let mut left: Vec<&Value> = is.iter().collect();
    let kept = |token: &&Value| match left.iter().position(|other| other == token) {
        Some(at) => {
            left.swap_remove(at);
            true
        }
        None => false,
    };
    let kept = was.iter().filter(kept).count();
    1.0 - kept as f64 / was.len().max(is.len()).max(1) as f64
}

/// The mean probability of what was written, token by token.
fn sureness(details: &Value) -> f64 {
    let scores: Vec<f64> = details["token_scores"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_f64)
        .collect();
    (scores.iter().sum::<f64>() / scores.len().max(1) as f64).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(output: &str, details: Value) -> Prediction {
        Prediction { input: String::new(), output: output.into(), details }
    }

    #[test]
    fn what_did_not_move_has_no_effect_and_what_is_all_another_has_all_of_it() {
        let likely = |p: f64| of("a", json!({ "probabilities": { "a": p, "b": 1.0 - p } }));
        assert_eq!(effect(&likely(0.9), &likely(0.9)), 0.0);
        assert!((effect(&likely(0.9), &likely(0.4)) - 0.5).abs() < 1e-9);
        let text = |tokens: &[&str]| of("", json!({ "tokens": tokens, "token_scores": [-0.1] }));
        assert_eq!(effect(&text(&["a", "b"]), &text(&["a", "b"])), 0.0);
        assert_eq!(effect(&text(&["a", "b"]), &text(&["a", "c"])), 0.5);
        assert_eq!(effect(&text(&["a", "b"]), &text(&["c", "d"])), 1.0);
        let labels = |all: &[&str]| of("", json!({ "labels": all, "probabilities": [1.0, 1.0] }));
        assert_eq!(effect(&labels(&["X", "Y"]), &labels(&["X", "Z"])), 0.5);
        assert_eq!(effect(&of("2", Value::Null), &of("1", Value::Null)), 0.5);
    }
}
