//! What matters for an answer: every head and every layer taken away in turn, and every word forbidden
//! in turn, with how far the prediction moves.

use crate::answer::predict;
use crate::ask::{Found, Ready};
use crate::body::Held;
use crate::refusal::Refusal;
use crate::routes::Explorer;
use regard::attention::{CellChange, HeadPatch, HeadRef, Intervention, Recorded, Site, recorded};
use regard::prelude::DType;
use regard_picture::scene::{Map, Place, Scene};
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
    /// The same of a head whose output is its mean over this input, where that is known.
    mean: Option<Intervention>,
}

impl Part {
    fn new(told: Value, changes: Intervention) -> Self {
        Self { told, changes, mean: None }
    }
}

/// What is tried of a kind, and how many there are.
#[derive(Default)]
struct Parts {
    tried: Vec<Part>,
    all: usize,
}

/// An input, what is predicted, and what can be taken away.
struct Plan {
    ready: Ready,
    before: Prediction,
    heads: Parts,
    layers: Parts,
    words: Parts,
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
        let layers = self.effects(&plan, |plan| &plan.layers).await?;
        let words = self.effects(&plan, |plan| &plan.words).await?;
        // What was not tried is said: each of them is computed.
        let all =
            json!({ "heads": plan.heads.all, "layers": plan.layers.all, "words": plan.words.all });
        let value = json!({
            "output": plan.before.output,
            "heads": heads,
            "layers": layers,
            "words": words,
            "all": all,
        });
        let bytes: Arc<[u8]> = value.to_string().into_bytes().into();
        self.cache.put(key, bytes.clone());
        Ok(bytes)
    }

    /// The effect of each part, the greatest first.
    async fn effects(
        self: &Arc<Self>,
        plan: &Arc<Plan>,
        of: fn(&Plan) -> &Parts,
    ) -> Result<Vec<Value>, Refusal> {
        let mut all: Vec<(f64, Value)> = Vec::new();
        for at in 0..of(plan).tried.len() {
            let plan = plan.clone();
            let without = move || {
                let (part, ready) = (&of(&plan).tried[at], &plan.ready);
                let (model, input) = (&*ready.loaded.model, &ready.input);
                let after = part.changes.during(|| predict(model, input))?;
                let by_mean = part.mean.as_ref().map(|mean| mean.during(|| predict(model, input)));
                let by_mean = by_mean.transpose()?;
                let moved = effect(&plan.before, &after);
                let mut told = part.told.clone();
                told["effect"] = json!(moved);
                told["mean"] = json!(by_mean.map(|after| effect(&plan.before, &after)));
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
    let both =
        || -> Result<_, Refusal> { Ok((predict(model, input)?, recorded(|| model.show(input)))) };
    let (before, (scenes, calls)) = ready.changes.during(both)?;
    let scenes: Vec<Scene> = scenes?.into_iter().map(|(_, scene)| scene).collect();
    let found = heads(&scenes, &ready.changes);
    let layers = limited(layers(&found, &ready.changes));
    let part = |one: HeadRef| head_part(one, &calls, &ready.changes);
    let heads = limited(found.into_iter().map(part).collect());
    let words = limited(words(&scenes, &ready.changes));
    Ok(Plan { ready, before, heads, layers, words, _held: held })
}

/// The first of them: each is computed.
fn limited(mut tried: Vec<Part>) -> Parts {
    let all = tried.len();
    tried.truncate(MOST);
    Parts { tried, all }
}

/// Every head of every scene, once; of what stands over hops, every hop.
fn heads(scenes: &[Scene], changes: &Intervention) -> Vec<HeadRef> {
    let mut found: Vec<HeadRef> = Vec::new();
    for scene in scenes {
        for place in scene.maps().iter().filter_map(|map| map.place) {
            let layers = match scene {
                Scene::Maps(maps) if place.columns_are_layers => maps.columns.len(),
                _ => 1,
            };
            let head = place.head.or((place.site == Site::Hops).then_some(0));
            for layer in (place.layer..place.layer + layers).filter(|_| head.is_some()) {
                let one = HeadRef { site: place.site, layer: Some(layer), head };
                if !changes.heads.contains(&one) && !found.contains(&one) {
                    found.push(one);
                }
            }
        }
    }
    found
}

fn told(one: HeadRef) -> Value {
    json!({ "site": one.site, "layer": one.layer, "head": one.head })
}

/// A head that is switched off, and the same with its mean output where that is known.
fn head_part(one: HeadRef, calls: &[Recorded], changes: &Intervention) -> Part {
    let mut off = changes.clone();
    off.heads.push(one);
    let mean = mean(one, calls).map(|patch| {
        let mut changes = changes.clone();
        changes.patches.push(patch);
        changes
    });
    Part { mean, ..Part::new(told(one), off) }
}

/// A head whose output is its mean over the places of this input.
fn mean(one: HeadRef, calls: &[Recorded]) -> Option<HeadPatch> {
    let (layer, head) = (one.layer?, one.head?);
    let (mut sums, mut rows) = (Vec::new(), 0);
    for call in calls.iter().filter(|call| (call.site, call.layer) == (one.site, layer)) {
        let width = *call.out.shape().get(3)?;
        let own = call.out.narrow(1, head, 1).ok()?.contiguous().ok()?.to_dtype(DType::F32).ok()?;
        sums.resize(width, 0.0);
        for row in own.to_vec::<f32>().ok()?.chunks(width.max(1)) {
            rows += 1;
            sums.iter_mut().zip(row).for_each(|(sum, &x): (&mut f64, _)| *sum += f64::from(x));
        }
    }
    let mean = sums.iter().map(|sum| (sum / f64::from(rows)) as f32).collect();
    (rows > 1).then(|| HeadPatch::constant(one.site, layer, head, mean))
}

/// Every layer that has several heads.
fn layers(heads: &[HeadRef], changes: &Intervention) -> Vec<Part> {
    let mut found: Vec<HeadRef> = Vec::new();
    for &HeadRef { site, layer, .. } in heads {
        let one = HeadRef { site, layer, head: None };
        let count = heads.iter().filter(|head| (head.site, head.layer) == (site, layer)).count();
        if count > 1 && !found.contains(&one) {
            found.push(one);
        }
    }
    let part = |one: HeadRef| {
        let mut changes = changes.clone();
        changes.heads.push(one);
        Part::new(told(one), changes)
    };
    found.into_iter().map(part).collect()
}

/// Everything that is read in any scene: words, sentences, patches, moments, data, neighbors.
fn words(scenes: &[Scene], changes: &Intervention) -> Vec<Part> {
    let mut known: Vec<(Site, usize)> = Vec::new();
    let mut parts = Vec::new();
    for scene in scenes {
        let Some(place) = scene.maps().first().and_then(|map: &Map| map.place) else { continue };
        for (name, column) in named(scene, place) {
            if known.contains(&(place.site, column)) {
                continue;
            }
            known.push((place.site, column));
            let mut changes = changes.clone();
            let (layer, head, row, bias) = (None, None, None, None);
            changes.cells.push(CellChange { site: place.site, layer, head, row, column, bias });
            let told = json!({ "name": name, "site": place.site, "column": column });
            parts.push(Part::new(told, changes));
        }
    }
    parts
}

/// What is read in a scene, by its name and its place in the model. What was written before is not
/// read: it is the model's own.
fn named(scene: &Scene, place: Place) -> Vec<(String, usize)> {
    let in_order = |names: &[String]| {
        let one = |(at, name): (usize, &String)| (name.clone(), place.column + at);
        names.iter().enumerate().map(one).collect()
    };
    match scene {
        Scene::Maps(maps) if place.columns_are_layers => {
            let rows = maps.rows.iter().skip(place.row).enumerate();
            rows.map(|(at, name)| (name.clone(), at)).collect()
        }
        Scene::Maps(maps) if place.site != Site::Decoder => in_order(&maps.columns),
        Scene::Sound(sound) if place.site != Site::Decoder => in_order(&sound.weights.columns),
        Scene::Image(image) => {
            let name = |at: usize| format!("{},{}", at / image.columns + 1, at % image.columns + 1);
            (0..image.rows * image.columns).map(|at| (name(at), place.column + at)).collect()
        }
        Scene::Curve(curve) => {
            let one = |(at, x): (usize, &f32)| (format!("x = {x:.2}"), place.column + at);
            curve.x.iter().enumerate().map(one).collect()
        }
        Scene::Graph(graph) => {
            let read = |node: usize| graph.edges.iter().any(|&(_, to)| to == node);
            let all = graph.nodes.iter().enumerate().filter(|(node, _)| read(*node));
            all.filter_map(|(_, name)| Some((name.clone(), name.parse().ok()?))).collect()
        }
        Scene::Maps(_) | Scene::Sound(_) => Vec::new(),
    }
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
