//! Regression: the data, the curve, and below it the weight that each datum has in each of its
//! points.

use super::caption::Caption;
use super::chart::{axes, swatches};
use super::color::{self, INK};
use super::label;
use super::scale::{Axis, Scale};
use super::svg::{Pixels, Svg, Text};
use crate::scene::{CurveScene, Map};

/// Pixels a side of the kernel's image.
const FINE: usize = 240;

/// Data, curve and truth above; the kernels of these maps below, under the same x. The query is
/// marked in all of them.
pub(crate) fn draw(scene: &CurveScene, maps: &[Map], caption: &Caption) -> String {
    let (margin, width, height) = (20.0, 620.0, 280.0);
    let left = margin + 50.0;
    let mut svg = Svg::default();
    let mut y = caption.draw(&mut svg, margin, width + 50.0);
    let names: &[&str] = match scene.truth {
        Some(_) => &["curve", "data", "truth"],
        None => &["curve", "data"],
    };
    y += swatches(&mut svg, names, [left, y - 8.0], width);
    let query = Query::of(scene);
    if query.is_some() {
        y += 16.0;
    }
    let across = x_axis(scene, left, left + width);
    let plot = [left, y, width, height];
    upper(&mut svg, scene, maps.first(), across, plot);
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
        if let Some(query) = &query {
            let x = across.place(query.x.into());
            svg.line([x, y], [x, y + side], QUERY, 1.5);
        }
        scale.legend(&mut svg, left + width + 14.0, y, 120.0);
        y += side + 66.0;
    }
    svg.finish(left + width + 70.0, y - 22.0)
}

/// The color of the query.
const QUERY: &str = "#b91c5c";

/// What was asked for, and what the curve says there.
struct Query {
    /// Its place in `at`.
    place: usize,
    x: f32,
    y: Option<f32>,
    truth: Option<f32>,
}

impl Query {
    fn of(scene: &CurveScene) -> Option<Self> {
        let x = scene.query?;
        let place = place_of_nearest(&scene.at, x)?;
        let truth = scene.truth.as_ref().and_then(|truth| truth.get(place).copied());
        Some(Self { place, x, y: scene.curve.get(place).copied(), truth })
    }

    /// "query x = 1.5: y = 2.31, truth 2.4"
    fn words(&self) -> String {
        let written = |value: f32| label::number(value.into());
        let mut words = format!("query x = {}", written(self.x));
        if let Some(y) = self.y {
            words += &format!(": y = {}", written(y));
        }
        if let Some(truth) = self.truth {
            words += &format!(", truth {}", written(truth));
        }
        words
    }
}

/// Spans both where the data are and where the curve was asked for.
fn x_axis(scene: &CurveScene, from: f64, to: f64) -> Axis {
    Axis::spanning(scene.x.iter().chain(&scene.at).map(|&x| f64::from(x)), from, to)
}

fn upper(svg: &mut Svg, scene: &CurveScene, map: Option<&Map>, x: Axis, plot: [f64; 4]) {
    let truth = scene.truth.as_deref().unwrap_or_default();
    let values = scene.y.iter().chain(&scene.curve).chain(truth).map(|&y| f64::from(y));
    let y = Axis::spanning(values, plot[1] + plot[3], plot[1]).with_margin();
    axes(svg, x, y, plot, "x");
    let points = |xs: &[f32], ys: &[f32]| -> Vec<[f64; 2]> {
        xs.iter().zip(ys).map(|(&a, &b)| [x.place(a.into()), y.place(b.into())]).collect()
    };
    let [curve, data, real] = [0, 1, 2].map(|place| color::hex(color::named(place)));
    svg.polyline(&points(&scene.at, truth), &real, "stroke-width=\"2\" stroke-dasharray=\"6 4\"");
    let query = Query::of(scene);
    // Of a query, a datum is as large as the weight that it has there.
    let shares = query.as_ref().zip(map).map(|(query, map)| {
        let weight = |datum: usize| map.weight(query.place * scene.x.len() + datum);
        let most = (0..scene.x.len()).filter_map(weight).fold(f32::MIN_POSITIVE, f32::max);
        (0..scene.x.len()).map(|datum| weight(datum).unwrap_or(0.0) / most).collect::<Vec<_>>()
    });
    let is_drawn = |point: &[f64; 2]| point.iter().all(|value| value.is_finite());
    for (datum, point) in points(&scene.x, &scene.y).into_iter().enumerate() {
        let share = shares.as_ref().map_or(0.2, |shares| f64::from(shares[datum].max(0.0)));
        if is_drawn(&point) {
            let opacity = format!("fill-opacity=\"{:.2}\"", 0.45 + 0.5 * share);
            svg.circle(point, 2.4 + 4.0 * share.sqrt(), &data, &opacity);
        }
    }
    svg.polyline(&points(&scene.at, &scene.curve), &curve, "stroke-width=\"2.5\"");
    let Some(query) = query else { return };
    let at = x.place(query.x.into());
    svg.line([at, plot[1]], [at, plot[1] + plot[3]], QUERY, 1.5);
    if let Some(value) = query.y.filter(|value| value.is_finite()) {
        let more = format!("stroke=\"{QUERY}\" stroke-width=\"2.5\"");
        svg.circle([at, y.place(value.into())], 6.0, "#ffffff", &more);
    }
    let words = format!("{}; the larger a datum, the more it weighs there", query.words());
    let width = label::width(&words, 11.5);
    let left = (at - width / 2.0).clamp(plot[0], (plot[0] + plot[2] - width).max(plot[0]));
    svg.text(Text::at(left, plot[1] - 7.0, &words).size(11.5).fill(INK));
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
