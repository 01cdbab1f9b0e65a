//! Variants side by side: a metric with its spread, and how it goes from bucket to bucket.

use super::chart::{self, Line, Panel};
use super::color::{self, GRID, INK};
use super::label;
use super::scale::Axis;
use super::svg::{Svg, Text};

/// What is compared.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Comparison {
    /// The metric: "BLEU".
    pub metric: String,
    /// The variants, in the order they are drawn.
    pub variants: Vec<Variant>,
    /// What the buckets are of: "source length". May be empty, as may be the buckets.
    pub bucket_axis: String,
    /// The buckets' names: "1–10".
    pub buckets: Vec<String>,
    /// What each variant costs; may be empty.
    pub costs: Vec<Cost>,
}

/// What variants cost, of one kind: "time".
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cost {
    /// The kind.
    pub name: String,
    /// For each variant a number, and how it is written: "1 min 20 s".
    pub values: Vec<(f64, String)>,
}

/// One of the compared.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Variant {
    /// Its name.
    pub name: String,
    /// The metric, for each seed.
    pub values: Vec<f64>,
    /// The metric in each bucket; not a number where the bucket is empty.
    pub by_bucket: Vec<f64>,
}

/// Draws a bar for each variant's mean, a dot for each seed, bars of what they cost, and lines over
/// the buckets, as SVG.
///
/// ```
/// use regard_tasks::picture::{self, Comparison, Variant};
/// let variant = |name: &str, values: &[f64]| Variant {
///     name: name.into(),
///     values: values.into(),
///     ..Variant::default()
/// };
/// let comparison = Comparison {
///     metric: "BLEU".into(),
///     variants: vec![variant("fixed", &[20.1, 20.7]), variant("additive", &[30.0, 31.2])],
///     ..Comparison::default()
/// };
/// assert!(picture::comparison("translate", &comparison).contains("30.6 ± 0.8"));
/// ```
pub fn comparison(title: &str, comparison: &Comparison) -> String {
    let (margin, width, bar) = (20.0, 620.0, 30.0);
    let mut svg = Svg::default();
    let mut y = svg.title(title, margin, width);
    svg.text(Text::at(margin, y + 8.0, &comparison.metric).size(13.0).bold());
    y += 20.0;
    let names = comparison.variants.iter().map(|variant| label::width(&variant.name, 12.0));
    let left = margin + names.fold(0.0, f64::max).min(220.0) + 12.0;
    let values = comparison.variants.iter().flat_map(|variant| variant.values.iter().copied());
    let axis = Axis::spanning(values.chain([0.0]), left, width + margin - 100.0);
    let bottom = y + bar * comparison.variants.len() as f64;
    for (value, text) in axis.ticks(6) {
        svg.line([axis.place(value), y], [axis.place(value), bottom + 4.0], GRID, 1.0);
        svg.text(Text::at(axis.place(value), bottom + 18.0, &text).size(11.0).middle().faint());
    }
    for (place, variant) in comparison.variants.iter().enumerate() {
        draw_bar(&mut svg, variant, place, axis, y + bar * place as f64, left);
    }
    y = bottom + 40.0;
    if !comparison.costs.is_empty() {
        let gap = 24.0;
        let available = (width + gap) / comparison.costs.len() as f64 - gap;
        for (place, cost) in comparison.costs.iter().enumerate() {
            draw_cost(&mut svg, cost, [margin + place as f64 * (available + gap), y], available);
        }
        y += 34.0 + COST * comparison.variants.len() as f64;
    }
    if !comparison.buckets.is_empty() {
        chart::draw(&mut svg, &over_buckets(comparison), [margin, y, width, 320.0]);
        y += 320.0;
    }
    svg.finish(width + 2.0 * margin, y + margin)
}

fn draw_bar(svg: &mut Svg, variant: &Variant, place: usize, axis: Axis, y: f64, left: f64) {
    let name = label::fitted(&variant.name, 12.0, left - 20.0);
    svg.text(Text::at(left - 8.0, y + 19.0, &name).end());
    let values: Vec<f64> =
        variant.values.iter().copied().filter(|value| value.is_finite()).collect();
    if values.is_empty() {
        return svg.text(Text::at(left + 6.0, y + 19.0, "no value").faint());
    }
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let (from, to) = (axis.place(0.0), axis.place(mean));
    let fill = color::hex(color::named(place));
    svg.rect(
        [from.min(to), y + 5.0, (to - from).abs(), 20.0],
        &fill,
        "rx=\"2\" fill-opacity=\"0.8\"",
    );
    let end = values.iter().map(|&value| axis.place(value)).fold(to.max(from), f64::max);
    if values.len() > 1 {
        for &value in &values {
            svg.circle([axis.place(value), y + 15.0], 2.6, INK, "fill-opacity=\"0.75\"");
        }
    }
    svg.text(Text::at(end + 9.0, y + 19.0, &with_spread(&values, mean)));
}

/// Height of one variant's cost.
const COST: f64 = 20.0;

fn draw_cost(svg: &mut Svg, cost: &Cost, [x, y]: [f64; 2], available: f64) {
    svg.text(Text::at(x, y + 8.0, &cost.name).size(13.0).bold());
    let written = cost.values.iter().map(|(_, text)| label::width(text, 11.0));
    let available = available - 8.0 - written.fold(0.0, f64::max);
    let most = cost.values.iter().map(|(value, _)| *value).fold(f64::MIN_POSITIVE, f64::max);
    for (place, (value, text)) in cost.values.iter().enumerate() {
        let top = y + 18.0 + COST * place as f64;
        let length = (available * value / most).max(1.0);
        let fill = color::hex(color::named(place));
        svg.rect([x, top, length, 12.0], &fill, "rx=\"2\" fill-opacity=\"0.8\"");
        svg.text(Text::at(x + length + 6.0, top + 10.0, text).size(11.0));
    }
}

/// The mean, and where there are several their standard deviation, to as many digits.
fn with_spread(values: &[f64], mean: f64) -> String {
    let square = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
    let spread = (square / (values.len() as f64 - 1.0).max(1.0)).sqrt();
    let digits = match mean.abs() {
        size if size >= 10.0 => 1,
        size if size >= 1.0 => 2,
        _ => 3,
    };
    match values.len() {
        1 => format!("{mean:.digits$}"),
        _ => format!("{mean:.digits$} ± {spread:.digits$}"),
    }
}

fn over_buckets(comparison: &Comparison) -> Panel {
    let line = |variant: &Variant| Line {
        name: variant.name.clone(),
        points: variant.by_bucket.iter().enumerate().map(|(i, &value)| (i as f64, value)).collect(),
    };
    Panel {
        lines: comparison.variants.iter().map(line).collect(),
        buckets: comparison.buckets.clone(),
        ..Panel::new(
            format!("{} by {}", comparison.metric, comparison.bucket_axis),
            comparison.bucket_axis.clone(),
        )
    }
}
