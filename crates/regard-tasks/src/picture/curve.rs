//! Regression: the data, the curve, and below it the weight that each datum has in each of its
//! points.

use super::chart::{axes, swatches};
use super::color;
use super::label;
use super::scale::{Axis, Scale};
use super::svg::{Pixels, Svg, Text};
use crate::{CurveScene, Map};

/// Pixels a side of the kernel's image.
const FINE: usize = 240;

/// Data, curve and truth above; the kernels of these maps below, under the same x.
pub(crate) fn draw(scene: &CurveScene, maps: &[Map], title: &str) -> String {
    let (margin, width, height) = (20.0, 620.0, 280.0);
    let left = margin + 50.0;
    let mut svg = Svg::default();
    let mut y = svg.title(title, margin, width);
    let names: &[&str] = match scene.truth {
        Some(_) => &["curve", "data", "truth"],
        None => &["curve", "data"],
    };
    y += swatches(&mut svg, names, [left, y - 8.0], width);
    let across = x_axis(scene, left, left + width);
    let plot = [left, y, width, height];
    upper(&mut svg, scene, across, plot);
    y += height + 62.0;
    let scale = Scale::of(maps);
    for map in maps {
        let side = 240.0;
        let name = format!("{}: the weight of each datum", map.name);
        svg.text(Text::at(left, y - 8.0, &label::fitted(&name, 12.0, width)).bold());
        let down = x_axis(scene, y + side, y);
        axes(&mut svg, across, down, [left, y, width, side], "x asked for");
        svg.text(Text::at(margin + 4.0, y + side / 2.0, "x of the datum").middle().turned(-90.0));
        svg.pixels([left, y, width, side], &kernel(scene, map, scale));
        svg.frame([left, y, width, side]);
        scale.legend(&mut svg, left + width + 14.0, y, 120.0);
        y += side + 66.0;
    }
    svg.finish(left + width + 70.0, y - 22.0)
}

/// Spans both where the data are and where the curve was asked for.
fn x_axis(scene: &CurveScene, from: f64, to: f64) -> Axis {
    Axis::spanning(scene.x.iter().chain(&scene.at).map(|&x| f64::from(x)), from, to)
}

fn upper(svg: &mut Svg, scene: &CurveScene, x: Axis, plot: [f64; 4]) {
    let truth = scene.truth.as_deref().unwrap_or_default();
    let values = scene.y.iter().chain(&scene.curve).chain(truth).map(|&y| f64::from(y));
    let y = Axis::spanning(values, plot[1] + plot[3], plot[1]).with_margin();
    axes(svg, x, y, plot, "x");
    let points = |xs: &[f32], ys: &[f32]| -> Vec<[f64; 2]> {
        xs.iter().zip(ys).map(|(&a, &b)| [x.place(a.into()), y.place(b.into())]).collect()
    };
    let [curve, data, real] = [0, 1, 2].map(|place| color::hex(color::named(place)));
    svg.polyline(&points(&scene.at, truth), &real, "stroke-width=\"2\" stroke-dasharray=\"6 4\"");
    for point in points(&scene.x, &scene.y).into_iter().filter(|p| p.iter().all(|v| v.is_finite()))
    {
        svg.circle(point, 3.2, &data, "fill-opacity=\"0.65\"");
    }
    svg.polyline(&points(&scene.at, &scene.curve), &curve, "stroke-width=\"2.5\"");
}

/// The kernel as an image over two equal axes: each pixel takes the nearest point asked for and the
/// nearest datum.
fn kernel(scene: &CurveScene, map: &Map, scale: Scale) -> Pixels {
    let axis = x_axis(scene, 0.0, 1.0);
    let nearest = |values: &[f32]| -> Vec<Option<usize>> {
        let middle = |i: usize| axis.value((i as f64 + 0.5) / FINE as f64) as f32;
        (0..FINE).map(|i| place_of_nearest(values, middle(i))).collect()
    };
    let (at, x) = (nearest(&scene.at), nearest(&scene.x));
    let weight = |row: usize, column: usize| {
        let (at, x) = (at[column]?, x[FINE - 1 - row]?);
        map.weight(at * scene.x.len() + x)
    };
    let bytes = (0..FINE * FINE).flat_map(|i| scale.color(weight(i / FINE, i % FINE))).collect();
    Pixels { width: FINE, height: FINE, bytes }
}

fn place_of_nearest(values: &[f32], to: f32) -> Option<usize> {
    let distance = |i: usize| (values[i] - to).abs();
    (0..values.len())
        .filter(|&i| values[i].is_finite())
        .min_by(|&a, &b| distance(a).total_cmp(&distance(b)))
}

/// The data's places in order of x.
pub(crate) fn data_in_order(scene: &CurveScene) -> Vec<usize> {
    let mut order: Vec<usize> = (0..scene.x.len()).collect();
    order.sort_by(|&a, &b| scene.x[a].total_cmp(&scene.x[b]));
    order
}
