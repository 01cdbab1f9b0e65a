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
    /// Metrics over buckets, a chart for each; may be empty.
    pub buckets: Vec<Buckets>,
    /// What each variant costs; may be empty.
    pub costs: Vec<Cost>,
}

/// A metric of each variant over buckets of examples.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Buckets {
    /// The metric: "BLEU".
    pub metric: String,
    /// What the buckets are of: "source length".
    pub axis: String,
    /// Their names: "1–10".
    pub names: Vec<String>,
    /// For each variant the metric in each bucket; not a number where the bucket is empty.
    pub values: Vec<Vec<f64>>,
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
}

/// Draws each variant's mean on an axis from the least to the greatest, a dot for each seed, bars of
/// what they cost, and lines over the buckets, as SVG.
///
/// ```
/// use regard_picture::picture;
/// use regard_picture::picture::{Comparison, Variant};
/// let variant = |name: &str, values: &[f64]| Variant {
///     name: name.into(),
///     values: values.into(),
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
    let digits = digits(&comparison.variants);
    let room = label::width(&"0".repeat(2 * digits + 8), 12.0);
    // From the least to the greatest, not from 0: .986 and .995 must look different.
    let axis = Axis::spanning(values, left + 6.0, width + margin - room).with_margin();
    let bottom = y + bar * comparison.variants.len() as f64;
    for (value, text) in axis.ticks(6) {
        svg.line([axis.place(value), y], [axis.place(value), bottom + 4.0], GRID, 1.0);
        svg.text(Text::at(axis.place(value), bottom + 18.0, &text).size(11.0).middle().faint());
    }
    for (place, variant) in comparison.variants.iter().enumerate() {
        let row = Row { place, axis, y: y + bar * place as f64, left, digits };
        row.draw(&mut svg, variant);
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
    for buckets in &comparison.buckets {
        let panel = over_buckets(&comparison.variants, buckets);
        chart::draw(&mut svg, &panel, [margin, y, width, 320.0]);
        y += 320.0;
    }
    svg.finish(width + 2.0 * margin, y + margin)
}

/// A variant's place.
struct Row {
    place: usize,
    axis: Axis,
    y: f64,
    left: f64,
    digits: usize,
}

impl Row {
    /// Its name, its mean as a large dot with its deviation on each side, and a dot for each seed.
    fn draw(&self, svg: &mut Svg, variant: &Variant) {
        let &Self { place, axis, y, left, digits } = self;
        let name = label::fitted(&variant.name, 12.0, left - 20.0);
        svg.text(Text::at(left - 8.0, y + 19.0, &name).end());
        let Some(Spread { mean, deviation, seeds }) = Spread::of(variant) else {
            return svg.text(Text::at(left + 6.0, y + 19.0, "no value").faint());
        };
        let (middle, fill) = (y + 15.0, color::hex(color::named(place)));
        svg.line([left, middle], [axis.place(mean), middle], GRID, 1.0);
        let mut end = axis.place(mean);
        if seeds.len() > 1 {
            let [from, to] = [mean - deviation, mean + deviation].map(|value| axis.place(value));
            svg.line([from, middle], [to, middle], &fill, 3.0);
            for &value in &seeds {
                svg.circle([axis.place(value), middle + 7.0], 2.2, INK, "fill-opacity=\"0.75\"");
            }
            end = seeds.iter().map(|&value| axis.place(value)).fold(to, f64::max);
        }
        svg.circle([axis.place(mean), middle], 6.0, &fill, "");
        let written = match seeds.len() {
            1 => format!("{mean:.digits$}"),
            _ => format!("{mean:.digits$} ± {deviation:.digits$}"),
        };
        svg.text(Text::at(end + 12.0, y + 19.0, &written));
    }
}

/// The mean of a variant's seeds and their standard deviation.
struct Spread {
    mean: f64,
    deviation: f64,
    seeds: Vec<f64>,
}

impl Spread {
    /// None where no seed gave a number.
    fn of(variant: &Variant) -> Option<Self> {
        let seeds: Vec<f64> =
            variant.values.iter().copied().filter(|value| value.is_finite()).collect();
        let mean = seeds.iter().sum::<f64>() / seeds.len() as f64;
        let square = seeds.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
        let deviation = (square / (seeds.len() as f64 - 1.0).max(1.0)).sqrt();
        (!seeds.is_empty()).then_some(Self { mean, deviation, seeds })
    }
}

/// Digits after the point, the same for all: three or so of the greatest, and more where two means
/// would read the same.
fn digits(variants: &[Variant]) -> usize {
    let means: Vec<f64> =
        variants.iter().filter_map(Spread::of).map(|spread| spread.mean).collect();
    let fewest = match means.iter().fold(0.0, |most: f64, mean| most.max(mean.abs())) {
        size if size >= 10.0 => 1,
        size if size >= 1.0 => 2,
        _ => 3,
    };
    let tells_apart = |digits: usize| {
        let mut written: Vec<(String, f64)> =
            means.iter().map(|&mean| (format!("{mean:.digits$}"), mean)).collect();
        written.sort_by(|a, b| a.0.cmp(&b.0));
        written.windows(2).all(|pair| pair[0].0 != pair[1].0 || pair[0].1 == pair[1].1)
    };
    (fewest..=fewest + 3).find(|&digits| tells_apart(digits)).unwrap_or(fewest)
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

fn over_buckets(variants: &[Variant], buckets: &Buckets) -> Panel {
    let line = |(variant, values): (&Variant, &Vec<f64>)| Line {
        name: variant.name.clone(),
        points: values.iter().enumerate().map(|(i, &value)| (i as f64, value)).collect(),
    };
    Panel {
        lines: variants.iter().zip(&buckets.values).map(line).collect(),
        buckets: buckets.names.clone(),
        ..Panel::new(format!("{} by {}", buckets.metric, buckets.axis), buckets.axis.clone())
    }
}
