//! Pictures of scenes and of trainings: SVG, PNG, GIF, stand-alone pages, in a terminal, as numbers.
//!
//! Nothing but [`gif`] refuses a scene: what is empty, or holds weights that are not numbers, is drawn so.

mod animation;
mod bitmap_font;
mod caption;
mod chart;
mod color;
mod comparison;
mod confusion;
mod curve;
mod fonts;
mod graph;
mod heat;
mod label;
mod layout;
mod numbers;
mod page;
mod patches;
mod png;
mod running_text;
mod scale;
mod sound;
mod svg;
mod terminal;

pub use animation::gif;
pub use caption::Caption;
pub use chart::{Line, Panel, curves};
pub use comparison::{Buckets, Comparison, Cost, Variant, comparison};
pub use confusion::confusion;
pub use label::grouped;
pub use numbers::{numbers, numbers_json};
pub use page::page;
pub use png::{missing_fonts, png};
pub use terminal::terminal;

use crate::scene::{ImageScene, Scene};

/// How a browser draws weights, as an ES module: what the explorer's page imports.
pub const DRAW_MODULE: &str = include_str!("draw.js");

/// The image of a scene as PNG, a pixel for each, without its weights.
///
/// ```
/// use regard_picture::{picture, scene::ImageScene};
/// let (pixels, maps) = (vec![0.0, 1.0], Vec::new());
/// let gray = ImageScene { width: 2, height: 1, channels: 1, pixels, columns: 1, rows: 1, maps };
/// assert!(picture::image(&gray)?.starts_with(b"\x89PNG"));
/// # Ok::<(), regard_data::Error>(())
/// ```
pub fn image(scene: &ImageScene) -> regard_data::Result<Vec<u8>> {
    let written = patches::picture(scene).png();
    written.map_err(|error| regard_data::Error::invalid(format!("PNG was not written: {error}")))
}

/// Draws a scene as SVG: one of its maps, or all of them side by side.
///
/// A [`Caption`], or a title alone, says what it is of. Weights of one text are drawn in it; where
/// there is no such map, the picture says so.
///
/// ```
/// use regard_picture::picture;
/// use regard_picture::scene::{Map, Maps, Scene};
/// let scene = Scene::Maps(Maps {
///     row_axis: "output".into(),
///     column_axis: "source".into(),
///     rows: vec!["花园".into()],
///     columns: vec!["the".into(), "garden".into()],
///     maps: vec![Map::new("layer 1, head 1", vec![0.1, 0.9])],
/// });
/// assert!(picture::svg(&scene, "alignment", Some(0)).contains("花园"));
/// ```
pub fn svg(scene: &Scene, caption: impl Into<Caption>, which: Option<usize>) -> String {
    let (caption, maps) = (&caption.into(), scene.maps());
    if maps.is_empty() {
        return match scene {
            Scene::Sound(scene) => sound::draw(scene, &[], caption),
            _ => heat::nothing(caption, "There are no weights to draw."),
        };
    }
    let which = if maps.len() == 1 { which.or(Some(0)) } else { which };
    if which.is_some_and(|which| which >= maps.len()) {
        return heat::nothing(caption, &format!("There are {} maps only.", maps.len()));
    }
    let one = which.map(|which| &maps[which]);
    let shown = one.map_or(maps, std::slice::from_ref);
    match (scene, one) {
        (Scene::Maps(scene), _) if running_text::suits(scene) => {
            running_text::draw(scene, shown, caption)
        }
        (Scene::Maps(scene), Some(map)) => heat::one(scene, map, caption),
        (Scene::Maps(scene), None) => heat::all(scene, caption),
        (Scene::Graph(scene), Some(map)) => graph::one(scene, map, caption),
        (Scene::Graph(scene), None) => graph::all(scene, caption),
        (Scene::Image(scene), Some(map)) => patches::one(scene, map, caption),
        (Scene::Image(scene), None) => patches::all(scene, caption),
        (Scene::Curve(scene), _) => curve::draw(scene, shown, caption),
        (Scene::Sound(scene), _) => sound::draw(scene, shown, caption),
    }
}
