//! Images, and over them the weight of each part.

use super::color::Rgb;
use super::heat;
use super::label;
use super::scale::Scale;
use super::svg::{Pixels, Svg, Text};
use crate::{ImageScene, Map};

/// What lies over a part that is attended to.
pub(crate) const HOT: Rgb = [0xe8, 0x3f, 0x1c];
/// How much of it covers the part with the greatest weight.
const COVER: f32 = 0.8;

/// The image, and beside it the image under one map.
pub(crate) fn one(scene: &ImageScene, map: &Map, title: &str) -> String {
    grid(scene, std::slice::from_ref(map), title, 300.0, 2)
}

/// The image, and the image under each map.
pub(crate) fn all(scene: &ImageScene, title: &str) -> String {
    grid(scene, &scene.maps, title, 170.0, heat::across(&scene.maps))
}

fn grid(scene: &ImageScene, maps: &[Map], title: &str, side: f64, across: usize) -> String {
    let (margin, gap, name) = (20.0, 18.0, 18.0);
    let [width, height] = fit(scene, side);
    let full = (2.0 * margin + across as f64 * (width + gap) - gap + 64.0).max(300.0);
    let mut svg = Svg::default();
    let top = svg.title(title, margin, full - 2.0 * margin) - 4.0;
    let scale = Scale::of(maps);
    let picture = picture(scene);
    // Beside one map the image itself is the first of the row; above several it has its own row.
    let skipped = if maps.len() == 1 { 1 } else { across };
    let corner = |place: usize| {
        let (column, row) = (place % across, place / across);
        [margin + column as f64 * (width + gap), top + row as f64 * (height + name + gap) + name]
    };
    for place in 0..=maps.len() {
        let map = place.checked_sub(1).map(|place| &maps[place]);
        let [x, y] = corner(map.map_or(0, |_| place - 1 + skipped));
        let words = map.map_or("the image", |map| map.name.as_str());
        let words = label::fitted(words, 11.0, width + gap - 4.0);
        svg.text(Text::at(x, y - 6.0, &words).size(11.0));
        svg.pixels([x, y, width, height], &picture);
        if let Some(map) = map {
            svg.pixels([x, y, width, height], &cover(scene, map, scale));
        }
        svg.frame([x, y, width, height]);
    }
    let [_, last] = corner(maps.len() - 1 + skipped);
    let x = margin + across as f64 * (width + gap) - gap + 16.0;
    scale.legend_in(&mut svg, [x, top + name], height.min(120.0), &|share| {
        [0, 1, 2].map(|i| {
            let (paper, cover) = (225.0, COVER * share);
            (paper * (1.0 - cover) + f32::from(HOT[i]) * cover).round() as u8
        })
    });
    svg.finish(full, last + height + margin)
}

/// As large as it may be.
fn fit(scene: &ImageScene, side: f64) -> [f64; 2] {
    let (width, height) = (scene.width.max(1) as f64, scene.height.max(1) as f64);
    let scale = side / width.max(height);
    [width * scale, height * scale]
}

/// The image itself.
pub(crate) fn picture(scene: &ImageScene) -> Pixels {
    let channel = |place: usize, channel: usize| {
        let place = place * scene.channels + if scene.channels >= 3 { channel } else { 0 };
        let value = scene.pixels.get(place).copied().unwrap_or(0.0);
        // A value that is not a number becomes black.
        (value.clamp(0.0, 1.0) * 255.0).round() as u8
    };
    let bytes = (0..scene.width * scene.height)
        .flat_map(|place| [0, 1, 2].map(|c| channel(place, c)))
        .collect();
    Pixels { width: scene.width, height: scene.height, bytes }
}

/// What lies over the image: a see-through pixel for each part.
fn cover(scene: &ImageScene, map: &Map, scale: Scale) -> Pixels {
    let opacity = |part| map.weight(part).map_or(0.0, |weight| COVER * scale.share(weight));
    let bytes = (0..scene.rows * scene.columns)
        .flat_map(|part| [HOT[0], HOT[1], HOT[2], (opacity(part) * 255.0).round() as u8])
        .collect();
    Pixels { width: scene.columns, height: scene.rows, bytes }
}
