//! Images: what is attended to keeps its colors, the rest is dimmed.

use super::caption::Caption;
use super::color::Rgb;
use super::heat;
use super::label;
use super::scale::Scale;
use super::svg::{Pixels, Svg, Text};
use crate::scene::{ImageScene, Map};

/// What covers a part that is not attended to: neither black nor white, so that both stand out.
pub(crate) const DIM: Rgb = [0x70, 0x7d, 0x8c];
/// How much of the part without weight it covers.
pub(crate) const COVER: f32 = 0.88;
/// The frame of the heaviest parts.
const MARK: Rgb = [0xff, 0x8a, 0x1f];
/// Pixels a side that an image is drawn with at least: a frame must fit between its parts.
const FINE: usize = 280;

/// The image, and beside it the image under one map.
pub(crate) fn one(scene: &ImageScene, map: &Map, caption: &Caption) -> String {
    grid(scene, std::slice::from_ref(map), caption, 300.0, 2)
}

/// The image, and the image under each map.
pub(crate) fn all(scene: &ImageScene, caption: &Caption) -> String {
    grid(scene, &scene.maps, caption, 170.0, heat::across(&scene.maps))
}

fn grid(scene: &ImageScene, maps: &[Map], caption: &Caption, side: f64, across: usize) -> String {
    let (margin, gap, name) = (20.0, 18.0, 34.0);
    let [width, height] = fit(scene, side);
    let wide = width.max(120.0);
    let full = (2.0 * margin + across as f64 * (wide + gap) - gap).max(heat::NARROWEST);
    let mut svg = Svg::default();
    let top = caption.draw(&mut svg, margin, full - 2.0 * margin) - 4.0;
    // Beside one map the image itself is the first of the row; above several it has its own row.
    let skipped = if maps.len() == 1 { 1 } else { across };
    let corner = |place: usize| {
        let (column, row) = (place % across, place / across);
        [margin + column as f64 * (wide + gap), top + row as f64 * (height + name + gap) + name]
    };
    let [x, y] = corner(0);
    svg.text(Text::at(x, y - 7.0, "the image").size(11.0));
    svg.pixels([x, y, width, height], &picture(scene));
    svg.frame([x, y, width, height]);
    if maps.len() > 1 {
        legend(&mut svg, [x + wide + gap, y], full - margin - x - wide - gap);
    }
    for (place, map) in maps.iter().enumerate() {
        let [x, y] = corner(place + skipped);
        let scale = Scale::of(std::slice::from_ref(map));
        let words = label::fitted(&map.name, 11.0, wide + gap - 4.0);
        svg.text(Text::at(x, y - 20.0, &words).size(11.0));
        svg.text(Text::at(x, y - 7.0, &range(scale)).size(10.0).faint());
        svg.pixels([x, y, width, height], &dimmed(scene, map, scale));
        svg.frame([x, y, width, height]);
    }
    let [_, last] = corner(maps.len() - 1 + skipped);
    let mut bottom = last + height;
    if maps.len() == 1 {
        legend(&mut svg, [margin, bottom + 14.0], full - 2.0 * margin);
        bottom += 50.0;
    }
    svg.finish(full, bottom + margin)
}

/// Which weights the dimmest and the clearest part have.
fn range(scale: Scale) -> String {
    let [low, high] = [scale.low, scale.high].map(|value| label::number(value.into()));
    format!("dim {low}, clear {high}")
}

/// How to read it.
fn legend(svg: &mut Svg, [x, y]: [f64; 2], available: f64) {
    let words = "Clear parts are attended to, dim ones are not; each head has its own scale. \
                 Parts well above the mean, with half the greatest weight or more, are framed.";
    for (place, line) in label::wrapped(words, 11.0, available.max(140.0)).iter().enumerate() {
        let y = y + 12.0 + 14.0 * place as f64;
        svg.text(Text::at(x, y, line).size(11.0).faint());
    }
}

/// As large as it may be.
fn fit(scene: &ImageScene, side: f64) -> [f64; 2] {
    let (width, height) = (scene.width.max(1) as f64, scene.height.max(1) as f64);
    let scale = side / width.max(height);
    [width * scale, height * scale]
}

/// The image itself.
pub(crate) fn picture(scene: &ImageScene) -> Pixels {
    let bytes = (0..scene.width * scene.height).flat_map(|place| pixel(scene, place)).collect();
    Pixels { width: scene.width, height: scene.height, bytes }
}

fn pixel(scene: &ImageScene, place: usize) -> Rgb {
    [0, 1, 2].map(|channel| {
        let place = place * scene.channels + if scene.channels >= 3 { channel } else { 0 };
        let value = scene.pixels.get(place).copied().unwrap_or(0.0);
        // A value that is not a number becomes black.
        (value.clamp(0.0, 1.0) * 255.0).round() as u8
    })
}

/// The image with each part dimmed as far as it has no weight, and the heaviest parts framed.
fn dimmed(scene: &ImageScene, map: &Map, scale: Scale) -> Pixels {
    let longest = scene.width.max(scene.height).max(1);
    let fine = FINE.div_ceil(longest).clamp(1, 16);
    let (width, height) = (scene.width * fine, scene.height * fine);
    let share = |part: Option<usize>| {
        let weight = part.and_then(|part| map.weight(part));
        weight.map_or(0.0, |weight| scale.share(weight))
    };
    let part = |x: isize, y: isize| -> Option<usize> {
        let (x, y) = (usize::try_from(x).ok()?, usize::try_from(y).ok()?);
        let is_inside = x < width && y < height;
        is_inside.then(|| y * scene.rows / height * scene.columns + x * scene.columns / width)
    };
    let parts = scene.rows * scene.columns;
    let mean = (0..parts).map(|part| share(Some(part))).sum::<f32>() / parts.max(1) as f32;
    let least = (1.5 * mean).max(0.5);
    let is_heavy = |x: isize, y: isize| share(part(x, y)) >= least;
    let thick = (longest * fine / 90).max(1) as isize;
    let mut bytes = Vec::with_capacity(3 * width * height);
    for y in 0..height as isize {
        for x in 0..width as isize {
            let near = [(-thick, 0), (thick, 0), (0, -thick), (0, thick)];
            let is_edge = is_heavy(x, y) && near.iter().any(|&(dx, dy)| !is_heavy(x + dx, y + dy));
            let (column, row) = (x as usize / fine, y as usize / fine);
            let color = pixel(scene, row * scene.width + column);
            bytes.extend(match is_edge {
                true => MARK,
                false => blended(color, COVER * (1.0 - share(part(x, y)))),
            });
        }
    }
    Pixels { width, height, bytes }
}

fn blended(color: Rgb, cover: f32) -> Rgb {
    [0, 1, 2].map(|channel| {
        let (from, to) = (f32::from(color[channel]), f32::from(DIM[channel]));
        (from + (to - from) * cover).round() as u8
    })
}
