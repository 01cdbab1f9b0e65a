//! The weights as they are: JSON, or tensors in a safetensors file.

use std::collections::HashMap;

use safetensors::tensor::{Dtype, TensorView, serialize};
use serde_json::json;

use crate::scene::{Map, Scene};
use regard_data::{Error, Result};

/// A scene as JSON: its labels, and its weights row by row. What is not a number becomes `null`.
///
/// ```
/// use regard_picture::picture;
/// use regard_picture::scene::{GraphScene, Map, Scene};
/// let scene = Scene::Graph(GraphScene {
///     nodes: vec!["a".into(), "b".into()],
///     classes: vec![None, Some(0)],
///     class_names: vec!["one".into()],
///     center: None,
///     edges: vec![(0, 1)],
///     maps: vec![Map::new("head 1", vec![0.5])],
/// });
/// assert!(picture::numbers_json(&scene).contains(r#""weights":[0.5]"#));
/// ```
pub fn numbers_json(scene: &Scene) -> String {
    serde_json::to_string(scene).expect("strings and numbers have no reason to be refused")
}

/// A scene's weights as a safetensors file: `weights` [maps, rows, columns] (of a graph [maps,
/// edges]), with `mask` of the same shape where a mask hides some (false where it does), `edges` [edges, 2], `pixels` [height, width, channels], `spectrogram` [frames, features] or
/// `x`, `y`, `at`, `curve` and `truth` where the scene has them. The maps' names and the labels are in its metadata, as JSON under
/// `labels`.
///
/// Refuses maps that do not have a weight for each place, and an image that lacks pixels.
///
/// ```
/// use regard_picture::picture;
/// use regard_picture::scene::{GraphScene, Map, Scene};
/// let scene = Scene::Graph(GraphScene {
///     nodes: vec!["a".into(), "b".into()],
///     classes: vec![None, Some(0)],
///     class_names: vec!["one".into()],
///     center: None,
///     edges: vec![(0, 1)],
///     maps: vec![Map::new("head 1", vec![0.5])],
/// });
/// assert!(picture::numbers(&scene)?.len() > 100);
/// # Ok::<(), regard_picture::Error>(())
/// ```
pub fn numbers(scene: &Scene) -> Result<Vec<u8>> {
    let failed = |error| Error::invalid(format!("the weights were not written: {error}"));
    let shape = shape(scene);
    let places: usize = shape[1..].iter().product();
    if let Some(map) = scene.maps().iter().find(|map| map.weights.len() != places) {
        let (name, count) = (&map.name, map.weights.len());
        return Err(Error::invalid(format!(
            "map {name:?} has {count} weights, {places} are needed"
        )));
    }
    let floats = |values: &[f32]| values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>();
    let mut tensors: Vec<(&str, Dtype, Vec<usize>, Vec<u8>)> = vec![(
        "weights",
        Dtype::F32,
        shape,
        scene.maps().iter().flat_map(|map| floats(&map.weights)).collect(),
    )];
    if scene.maps().iter().any(|map| !map.masked.is_empty()) {
        let seen = |map: &Map| -> Vec<u8> {
            (0..places).map(|place| u8::from(!map.is_masked(place))).collect()
        };
        let shape = tensors[0].2.clone();
        tensors.push(("mask", Dtype::BOOL, shape, scene.maps().iter().flat_map(seen).collect()));
    }
    let mut add = |name, shape, values: &[f32]| {
        tensors.push((name, Dtype::F32, shape, floats(values)));
    };
    match scene {
        Scene::Maps(_) => {}
        Scene::Graph(scene) => {
            let ends = scene.edges.iter().flat_map(|&(from, to)| [from as i64, to as i64]);
            let bytes = ends.flat_map(i64::to_le_bytes).collect();
            tensors.push(("edges", Dtype::I64, vec![scene.edges.len(), 2], bytes));
        }
        Scene::Image(scene) => {
            add("pixels", vec![scene.height, scene.width, scene.channels], &scene.pixels);
        }
        Scene::Curve(scene) => {
            for (name, values) in
                [("x", &scene.x), ("y", &scene.y), ("at", &scene.at), ("curve", &scene.curve)]
            {
                add(name, vec![values.len()], values);
            }
            if let Some(truth) = &scene.truth {
                add("truth", vec![truth.len()], truth);
            }
        }
        Scene::Sound(scene) => {
            let frames = scene.spectrogram.len() / scene.features.max(1);
            let whole = &scene.spectrogram[..frames * scene.features];
            add("spectrogram", vec![frames, scene.features], whole);
        }
    }
    let views = tensors
        .iter()
        .map(|(name, kind, shape, bytes)| {
            Ok((*name, TensorView::new(*kind, shape.clone(), bytes).map_err(failed)?))
        })
        .collect::<Result<Vec<_>>>()?;
    serialize(views, Some(names(scene))).map_err(failed)
}

fn shape(scene: &Scene) -> Vec<usize> {
    let maps = scene.maps().len();
    match scene {
        Scene::Maps(scene) => vec![maps, scene.rows.len(), scene.columns.len()],
        Scene::Graph(scene) => vec![maps, scene.edges.len()],
        Scene::Image(scene) => vec![maps, scene.rows, scene.columns],
        Scene::Curve(scene) => vec![maps, scene.at.len(), scene.x.len()],
        Scene::Sound(scene) => vec![maps, scene.weights.rows.len(), scene.weights.columns.len()],
    }
}

/// Under one key, since several would be written in any order: the same scene, the same bytes.
fn names(scene: &Scene) -> HashMap<String, String> {
    let maps: Vec<&str> = scene.maps().iter().map(|map| map.name.as_str()).collect();
    let labels = match scene {
        Scene::Maps(scene) => json!({"maps": maps, "rows": scene.rows, "columns": scene.columns}),
        Scene::Graph(scene) => json!({"maps": maps, "nodes": scene.nodes}),
        Scene::Image(_) | Scene::Curve(_) => json!({"maps": maps}),
        Scene::Sound(scene) => {
            json!({"maps": maps, "rows": scene.weights.rows, "columns": scene.weights.columns})
        }
    };
    HashMap::from([("labels".to_owned(), labels.to_string())])
}
