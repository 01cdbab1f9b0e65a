//! Pictures of scenes and of trainings: SVG, PNG, stand-alone pages, in a terminal, as numbers.
//!
//! Nothing here refuses a scene: what is empty, or holds weights that are not numbers, is drawn so.

mod base64;
mod chart;
mod color;
mod comparison;
mod confusion;
mod curve;
mod graph;
mod heat;
mod label;
mod layout;
mod numbers;
mod page;
mod patches;
mod png;
mod scale;
mod sound;
mod svg;
mod terminal;

pub use chart::{Line, Panel, curves};
pub use comparison::{Comparison, Cost, Variant, comparison};
pub use confusion::confusion;
pub use numbers::{numbers, numbers_json};
pub use page::page;
pub use png::png;
pub use terminal::terminal;

use crate::Scene;

/// Draws a scene as SVG: one of its maps, or all of them side by side.
///
/// Where there is no such map, the picture says so.
///
/// ```
/// use regard_tasks::{Map, Maps, Scene, picture};
/// let scene = Scene::Maps(Maps {
///     row_axis: "output".into(),
///     column_axis: "source".into(),
///     rows: vec!["花园".into()],
///     columns: vec!["the".into(), "garden".into()],
///     maps: vec![Map::new("layer 1, head 1", vec![0.1, 0.9])],
/// });
/// assert!(picture::svg(&scene, "alignment", Some(0)).contains("花园"));
/// ```
pub fn svg(scene: &Scene, title: &str, which: Option<usize>) -> String {
    if let Scene::Sound(scene) = scene {
        return sound::draw(scene, which, title);
    }
    let maps = scene.maps();
    if maps.is_empty() {
        return heat::nothing(title, "There are no weights to draw.");
    }
    let which = if maps.len() == 1 { which.or(Some(0)) } else { which };
    if which.is_some_and(|which| which >= maps.len()) {
        return heat::nothing(title, &format!("There are {} maps only.", maps.len()));
    }
    let one = which.map(|which| &maps[which]);
    match (scene, one) {
        (Scene::Maps(scene), Some(map)) => heat::one(scene, map, title),
        (Scene::Maps(scene), None) => heat::all(scene, title),
        (Scene::Graph(scene), Some(map)) => graph::one(scene, map, title),
        (Scene::Graph(scene), None) => graph::all(scene, title),
        (Scene::Image(scene), Some(map)) => patches::one(scene, map, title),
        (Scene::Image(scene), None) => patches::all(scene, title),
        (Scene::Curve(scene), Some(map)) => curve::draw(scene, std::slice::from_ref(map), title),
        (Scene::Curve(scene), None) => curve::draw(scene, maps, title),
        (Scene::Sound(scene), _) => sound::draw(scene, which, title),
    }
}
