//! A scene as an animation: the rows of a map come one after the other, as they were written; where
//! each word or head has a map of its own, these follow each other.

use super::png::pixels;
use super::{Caption, heat, running_text, svg};
use crate::scene::{Map, Scene};
use image::codecs::gif::{GifEncoder, Repeat};
use image::{Delay, Frame, RgbaImage};
use regard_data::{Error, Result};
use std::time::Duration;

/// How long a step is seen, and the last one.
const STEP: Duration = Duration::from_millis(600);
const LAST: Duration = Duration::from_millis(2400);
/// Steps that are drawn at most.
const MOST: usize = 120;
/// From no to any: a palette of 256 colors is found so fast that a step costs little.
const SPEED: i32 = 30;

/// Draws a scene as a GIF that repeats: a map's rows one after the other, or map after map.
///
/// Refuses a scene of which there is one picture alone, and one of more than 120 steps.
///
/// ```
/// use regard_picture::picture;
/// use regard_picture::scene::{Map, Maps, Scene};
/// let names = |all: [&str; 3]| all.map(String::from).to_vec();
/// let scene = Scene::Maps(Maps {
///     row_axis: "output".into(),
///     column_axis: "source".into(),
///     rows: names(["the", "old", "garden"]),
///     columns: names(["le", "vieux", "jardin"]),
///     maps: vec![Map::new("weights", vec![0.8, 0.1, 0.1, 0.1, 0.8, 0.1, 0.1, 0.1, 0.8])],
/// });
/// assert_eq!(&picture::gif(&scene, "alignment", None)?[..6], b"GIF89a");
/// # Ok::<(), regard_picture::Error>(())
/// ```
pub fn gif(scene: &Scene, caption: impl Into<Caption>, which: Option<usize>) -> Result<Vec<u8>> {
    let steps = steps(scene, &caption.into(), which)?;
    let count = steps.len();
    if count > MOST {
        return Err(Error::invalid(format!(
            "an animation of {count} steps; {MOST} are drawn at most"
        )));
    }
    let mut bytes = Vec::new();
    let failed = |error: image::ImageError| Error::invalid(format!("GIF was not written: {error}"));
    let mut encoder = GifEncoder::new_with_speed(&mut bytes, SPEED);
    encoder.set_repeat(Repeat::Infinite).map_err(failed)?;
    for (at, step) in steps.iter().enumerate() {
        let delay = if at + 1 == count { LAST } else { STEP };
        let frame = Frame::from_parts(frame(step)?, 0, 0, Delay::from_saturating_duration(delay));
        encoder.encode_frame(frame).map_err(failed)?;
    }
    drop(encoder);
    Ok(bytes)
}

/// Its steps as SVG.
fn steps(scene: &Scene, caption: &Caption, which: Option<usize>) -> Result<Vec<String>> {
    let maps = scene.maps();
    if which.is_some_and(|which| which >= maps.len()) {
        return Err(Error::invalid(format!("there are {} maps only", maps.len())));
    }
    match scene {
        Scene::Maps(all) if !running_text::suits(all) && all.rows.len() > 1 && !maps.is_empty() => {
            let map = &maps[which.unwrap_or(0)];
            let width = all.columns.len();
            let until = |row: usize| Map {
                weights: map.weights.iter().take((row + 1) * width).copied().collect(),
                ..map.clone()
            };
            let drawn = |row: usize| heat::one_until(all, map, &until(row), caption);
            Ok((0..all.rows.len()).map(drawn).collect())
        }
        _ if maps.len() > 1 && which.is_none() => {
            Ok((0..maps.len()).map(|map| svg(scene, caption.clone(), Some(map))).collect())
        }
        _ => {
            Err(Error::invalid("there is one picture alone, in which nothing moves; png draws it"))
        }
    }
}

fn frame(svg: &str) -> Result<RgbaImage> {
    let pixels = pixels(svg, 1.5)?;
    let (width, height) = (pixels.width(), pixels.height());
    let bytes = pixels.pixels().iter().flat_map(|pixel| {
        let color = pixel.demultiply();
        [color.red(), color.green(), color.blue(), color.alpha()]
    });
    let image = RgbaImage::from_raw(width, height, bytes.collect());
    image.ok_or_else(|| Error::invalid("there is no memory for the picture's pixels"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scene::{ImageScene, Maps};
    use image::AnimationDecoder;
    use image::codecs::gif::GifDecoder;

    fn maps(rows: usize, columns: usize, count: usize) -> Scene {
        let names = |n: usize| (0..n).map(|i| format!("word{i}")).collect::<Vec<_>>();
        let weight = |i: usize| if i.is_multiple_of(columns + 1) { 0.9 } else { 0.05 };
        let map = |at: usize| {
            Map::new(format!("layer 1, head {}", at + 1), (0..rows * columns).map(weight).collect())
        };
        Scene::Maps(Maps {
            row_axis: "output".into(),
            column_axis: "source".into(),
            rows: names(rows),
            columns: names(columns),
            maps: (0..count).map(map).collect(),
        })
    }

    fn frames(scene: &Scene, which: Option<usize>) -> Vec<RgbaImage> {
        let bytes = gif(scene, "a title", which).unwrap();
        let decoder = GifDecoder::new(std::io::Cursor::new(bytes)).unwrap();
        let all = decoder.into_frames().collect_frames().unwrap();
        all.into_iter().map(Frame::into_buffer).collect()
    }

    #[test]
    fn every_row_comes_in_a_step_of_its_own_and_none_goes_again() {
        for (rows, columns) in [(3, 3), (4, 2), (3, 5)] {
            let all = frames(&maps(rows, columns, 2), Some(1));
            assert_eq!(all.len(), rows);
            let changed = |a: &RgbaImage, b: &RgbaImage| {
                let places = a.enumerate_pixels().zip(b.pixels());
                let differ = places.filter(|((_, _, a), b)| a != b).map(|((_, y, _), _)| y);
                (differ.clone().min(), differ.max())
            };
            // Each step changes dots below those of the step before.
            let steps: Vec<_> = all.windows(2).map(|two| changed(&two[0], &two[1])).collect();
            assert!(steps.iter().all(|step| step.0.is_some()), "{steps:?}");
            assert!(steps.windows(2).all(|two| two[0].1 <= two[1].1), "{steps:?}");
        }
    }

    #[test]
    fn a_picture_has_a_step_for_each_word_and_what_cannot_move_is_refused() {
        let map = |at: usize| {
            let weights = (0..4).map(|i| if i == at { 1.0 } else { 0.0 }).collect();
            Map::new(format!("word {at}"), weights)
        };
        let image = |count: usize| {
            let (width, height, channels, columns, rows) = (8, 8, 1, 2, 2);
            let (pixels, maps) = (vec![0.5; 64], (0..count).map(map).collect());
            Scene::Image(ImageScene { width, height, channels, pixels, columns, rows, maps })
        };
        assert_eq!(frames(&image(3), None).len(), 3);
        let refused = |scene: &Scene| gif(scene, "", None).unwrap_err().to_string();
        assert!(refused(&image(1)).contains("one picture alone"));
        assert!(refused(&image(0)).contains("one picture alone"));
        assert!(refused(&maps(200, 3, 1)).contains("200 steps; 120"));
        assert!(gif(&maps(3, 3, 2), "", Some(2)).is_err());
    }
}
