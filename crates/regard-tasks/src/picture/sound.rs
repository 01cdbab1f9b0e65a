//! Recordings: the weight of each moment over the spectrogram.

use super::caption::Caption;
use super::chart::axes;
use super::color::{self, INK};
use super::label;
use super::scale::{Axis, Scale};
use super::svg::{Pixels, Svg, Text, short};
use crate::{Map, SoundScene};

/// Rows that are drawn as curves; more are a heat-map over the spectrogram.
const MOST_CURVES: usize = 3;
/// The most pixels across and down.
const MOST_PIXELS: usize = 1200;
const WIDTH: f64 = 680.0;
const SPECTROGRAM: f64 = 150.0;

/// The weights of each map, and under them the spectrogram on the same axis of time.
pub(crate) fn draw(scene: &SoundScene, maps: &[Map], caption: &Caption) -> String {
    let (margin, right) = (20.0, 70.0);
    let names = scene.rows.iter().map(|name| label::width(name, 11.0)).fold(0.0, f64::max);
    let left = margin + names.min(140.0).max(46.0) + 12.0;
    let mut svg = Svg::default();
    let mut y = caption.draw(&mut svg, margin, left + WIDTH + right - 2.0 * margin) + 6.0;
    let seconds = f64::from(scene.seconds.max(1e-3));
    let time = Axis::spanning([0.0, seconds], left, left + WIDTH);
    let scale = Scale::of(maps);
    for map in maps {
        let name = label::fitted(&map.name, 12.0, WIDTH);
        svg.text(Text::at(left, y + 4.0, &name).bold());
        y += 12.0;
        let height = match scene.rows.len() <= MOST_CURVES {
            true => curves(&mut svg, scene, map, scale, [left, y]),
            false => heat(&mut svg, scene, map, scale, [left, y]),
        };
        y += height + 18.0;
    }
    let energies = Map::new("", scene.energies.clone());
    let loudness = Loudness::of(&energies);
    svg.text(Text::at(left, y + 4.0, "spectrogram").bold());
    y += 12.0;
    let plot = [left, y, WIDTH, SPECTROGRAM];
    let band = Axis::spanning([0.0, scene.bands.max(1) as f64], y + SPECTROGRAM, y);
    axes(&mut svg, time, band, plot, "seconds");
    svg.text(Text::at(margin + 4.0, y + SPECTROGRAM / 2.0, "mel band").middle().turned(-90.0));
    svg.pixels(plot, &spectrogram(scene, &loudness));
    svg.frame(plot);
    svg.finish(left + WIDTH + right, y + SPECTROGRAM + 50.0)
}

/// A curve for each row, filled; gives its height.
fn curves(svg: &mut Svg, scene: &SoundScene, map: &Map, scale: Scale, corner: [f64; 2]) -> f64 {
    let ([left, mut y], height) = (corner, 64.0);
    for (row, name) in scene.rows.iter().enumerate() {
        let up = Axis::spanning([scale.low.into(), scale.high.into()], y + height, y);
        let step = WIDTH / scene.columns.max(1) as f64;
        let mut d = format!("M{} {}", short(left), short(y + height));
        for column in 0..scene.columns {
            let weight = map.weight(row * scene.columns + column).unwrap_or(scale.low);
            let (x, top) = (left + column as f64 * step, up.place(weight.into()));
            d += &format!("H{}V{}H{}", short(x), short(top), short(x + step));
        }
        d += &format!("V{}z", short(y + height));
        svg.path(&d, &format!("fill=\"{}\"", color::hex(color::heat(0.75))));
        svg.line([left, y + height], [left + WIDTH, y + height], color::FAINT, 1.0);
        let name = label::fitted(name, 11.0, left - 28.0);
        svg.text(Text::at(left - 8.0, y + height / 2.0 + 4.0, &name).size(11.0).end().fill(INK));
        for (value, at) in [(scale.high, y + 8.0), (scale.low, y + height)] {
            let text = label::number(value.into());
            svg.text(Text::at(left + WIDTH + 8.0, at, &text).size(11.0).faint());
        }
        y += height + 8.0;
    }
    y - corner[1] - 8.0
}

/// A line of colors for each row; gives its height.
fn heat(svg: &mut Svg, scene: &SoundScene, map: &Map, scale: Scale, corner: [f64; 2]) -> f64 {
    let ([left, y], rows) = (corner, scene.rows.len());
    let line = (420.0 / rows as f64).clamp(4.0, 18.0);
    let height = line * rows as f64;
    let block = scene.columns.div_ceil(MOST_PIXELS).max(1);
    let width = scene.columns.div_ceil(block);
    let greatest = |row: usize, column: usize| {
        let columns = column * block..((column + 1) * block).min(scene.columns);
        columns.filter_map(|at| map.weight(row * scene.columns + at)).reduce(f32::max)
    };
    let bytes =
        (0..rows * width).flat_map(|at| scale.color(greatest(at / width, at % width))).collect();
    svg.pixels([left, y, WIDTH, height], &Pixels { width, height: rows, bytes });
    svg.frame([left, y, WIDTH, height]);
    let step = (13.0 / line).ceil() as usize;
    for (row, name) in scene.rows.iter().enumerate().step_by(step.max(1)) {
        let name = label::fitted(name, 11.0, left - 28.0);
        let y = y + (row as f64 + 0.5) * line + 4.0;
        svg.text(Text::at(left - 8.0, y, &name).size(11.0).end());
    }
    scale.legend(svg, left + WIDTH + 12.0, y, height.clamp(40.0, 120.0));
    height
}

/// From the quietest to the loudest.
struct Loudness {
    low: f32,
    high: f32,
}

impl Loudness {
    fn of(energies: &Map) -> Self {
        let all = || energies.weights.iter().copied().filter(|energy| energy.is_finite());
        let low = all().fold(f32::INFINITY, f32::min);
        let high = all().fold(f32::NEG_INFINITY, f32::max);
        Self { low, high: if high > low { high } else { low + 1.0 } }
    }

    /// Gray, so that color is the weights' alone.
    fn gray(&self, energy: f32) -> u8 {
        let share = ((energy - self.low) / (self.high - self.low)).clamp(0.0, 1.0);
        (250.0 - 230.0 * share).round() as u8
    }
}

/// Time across, bands from low at the bottom to high; of several frames in a pixel the loudest.
fn spectrogram(scene: &SoundScene, loudness: &Loudness) -> Pixels {
    let frames = scene.energies.len() / scene.bands.max(1);
    let block = frames.div_ceil(MOST_PIXELS).max(1);
    let width = frames.div_ceil(block);
    let gray = |place: usize| {
        let (band, column) = (scene.bands - 1 - place / width, place % width);
        let frames = column * block..((column + 1) * block).min(frames);
        let energies = frames.map(|frame| scene.energies[frame * scene.bands + band]);
        loudness.gray(energies.fold(f32::NEG_INFINITY, f32::max))
    };
    let bytes = (0..scene.bands * width).flat_map(|place| [gray(place); 3]).collect();
    Pixels { width, height: if width == 0 { 0 } else { scene.bands }, bytes }
}
