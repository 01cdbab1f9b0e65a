//! Charts of numbers over numbers: what a training did, epoch by epoch.

use super::color::{self, GRID};
use super::label;
use super::scale::Axis;
use super::svg::{Svg, Text};

/// A chart with its axes: lines of (x, y) points.
///
/// ```
/// use regard_picture::picture::Panel;
/// let panel = Panel::new("loss", "epoch").line("training", &[(1.0, 2.5), (2.0, 1.9)]);
/// assert_eq!(panel.lines.len(), 1);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Panel {
    /// What is measured: "loss".
    pub name: String,
    /// Over what: "epoch".
    pub x_axis: String,
    /// The lines.
    pub lines: Vec<Line>,
    /// Names for x = 0, 1, 2, …, where those are no numbers.
    pub buckets: Vec<String>,
    /// A value of x to mark, with what to say there: the epoch whose checkpoint is the best.
    pub mark: Option<(f64, String)>,
}

/// A line with a name. A point that is not a number breaks it.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// The name, in the legend.
    pub name: String,
    /// (x, y), in order of x.
    pub points: Vec<(f64, f64)>,
}

impl Panel {
    /// A chart without lines.
    pub fn new(name: impl Into<String>, x_axis: impl Into<String>) -> Self {
        let (name, x_axis) = (name.into(), x_axis.into());
        Self { name, x_axis, lines: Vec::new(), buckets: Vec::new(), mark: None }
    }

    /// The same with one line more.
    pub fn line(mut self, name: impl Into<String>, points: &[(f64, f64)]) -> Self {
        self.lines.push(Line { name: name.into(), points: points.to_vec() });
        self
    }

    /// The same with a mark at a value of x.
    pub fn mark(mut self, x: f64, what: impl Into<String>) -> Self {
        self.mark = Some((x, what.into()));
        self
    }
}

/// Draws charts side by side as SVG: for a training, its loss and its validation metric.
///
/// ```
/// use regard_picture::picture;
/// use regard_picture::picture::Panel;
/// let loss = Panel::new("loss", "epoch").line("training", &[(1.0, 2.5), (2.0, 1.9)]);
/// let bleu = Panel::new("BLEU", "epoch").line("validation", &[(1.0, 8.0), (2.0, 21.5)]);
/// assert!(picture::curves("run 1", &[loss, bleu.mark(2.0, "best")]).starts_with("<svg"));
/// ```
pub fn curves(title: &str, panels: &[Panel]) -> String {
    let (width, height, gap, margin) = (400.0, 250.0, 30.0, 20.0);
    let full = 2.0 * margin + panels.len().max(1) as f64 * (width + gap) - gap;
    let mut svg = Svg::default();
    let top = svg.title(title, margin, full - 2.0 * margin);
    for (place, panel) in panels.iter().enumerate() {
        let left = margin + place as f64 * (width + gap);
        draw(&mut svg, panel, [left, top, width, height]);
    }
    svg.finish(full, top + height + margin)
}

/// One chart in a box that holds its name, axes and legend too.
pub(crate) fn draw(svg: &mut Svg, panel: &Panel, [left, top, width, height]: [f64; 4]) {
    svg.text(
        Text::at(left, top + 10.0, &label::fitted(&panel.name, 13.0, width)).size(13.0).bold(),
    );
    let legend = legend(svg, &panel.lines, [left, top + 20.0], width);
    let above = 24.0 + legend + if panel.mark.is_some() { 14.0 } else { 0.0 };
    let plot = [left + 46.0, top + above, width - 54.0, height - above - 40.0];
    let points = || panel.lines.iter().flat_map(|line| &line.points);
    let places = points().map(|p| p.0).chain((0..panel.buckets.len()).map(|i| i as f64));
    let mut x = Axis::spanning(places, plot[0], plot[0] + plot[2]);
    if !panel.buckets.is_empty() {
        x = x.with_margin();
    }
    let y = Axis::spanning(points().map(|p| p.1), plot[1] + plot[3], plot[1]).with_margin();
    match panel.buckets.as_slice() {
        [] => axes(svg, x, y, plot, &panel.x_axis),
        buckets => {
            y_axis(svg, y, plot);
            bucket_axis(svg, x, buckets, plot, &panel.x_axis);
        }
    }
    if let Some((value, what)) = panel.mark.as_ref().filter(|mark| mark.0.is_finite()) {
        mark(svg, x.place(*value), what, plot);
    }
    for (place, line) in panel.lines.iter().enumerate() {
        let color = color::hex(color::named(place));
        let points: Vec<[f64; 2]> =
            line.points.iter().map(|&(px, py)| [x.place(px), y.place(py)]).collect();
        svg.polyline(&points, &color, "stroke-width=\"2\"");
        if points.len() <= 40 {
            for point in points.into_iter().filter(|p| p.iter().all(|v| v.is_finite())) {
                svg.circle(point, 2.6, &color, "");
            }
        }
    }
}

/// Both axes with round values.
pub(crate) fn axes(svg: &mut Svg, x: Axis, y: Axis, plot: [f64; 4], x_axis: &str) {
    y_axis(svg, y, plot);
    let ticks = x.ticks((plot[2] / 60.0) as usize);
    let ticks = ticks.into_iter().map(|(value, text)| (x.place(value), text)).collect();
    axis_below(svg, ticks, plot, x_axis);
}

fn y_axis(svg: &mut Svg, y: Axis, [left, _, width, _]: [f64; 4]) {
    for (value, text) in y.ticks(5) {
        let place = y.place(value);
        svg.line([left, place], [left + width, place], GRID, 1.0);
        svg.text(Text::at(left - 6.0, place + 4.0, &text).size(11.0).end().faint());
    }
}

/// The buckets' names, thinned out so that they do not touch.
fn bucket_axis(svg: &mut Svg, x: Axis, buckets: &[String], plot: [f64; 4], x_axis: &str) {
    let widest = buckets.iter().map(|name| label::width(name, 11.0)).fold(0.0, f64::max) + 8.0;
    let step = (widest / (x.place(1.0) - x.place(0.0))).ceil().max(1.0) as usize;
    let names = buckets.iter().enumerate().step_by(step);
    let ticks = names.map(|(i, name)| (x.place(i as f64), name.clone())).collect();
    axis_below(svg, ticks, plot, x_axis);
}

fn axis_below(svg: &mut Svg, ticks: Vec<(f64, String)>, plot: [f64; 4], name: &str) {
    let [left, top, width, height] = plot;
    let bottom = top + height;
    for (place, text) in ticks {
        svg.line([place, bottom], [place, bottom + 4.0], color::FAINT, 1.0);
        svg.text(Text::at(place, bottom + 17.0, &text).size(11.0).middle().faint());
    }
    svg.line([left, bottom], [left + width, bottom], color::FAINT, 1.0);
    svg.text(Text::at(left + width / 2.0, bottom + 34.0, name).size(12.0).middle());
}

fn mark(svg: &mut Svg, x: f64, what: &str, [left, top, width, height]: [f64; 4]) {
    if !(left - 1.0..=left + width + 1.0).contains(&x) {
        return;
    }
    let more = "stroke=\"#52606d\" stroke-width=\"1\" stroke-dasharray=\"3 3\"";
    svg.path(&format!("M{x:.1} {top:.1}V{:.1}", top + height), more);
    let beside = match x > left + width * 0.7 {
        true => Text::at(x + 4.0, top - 5.0, what).end(),
        false => Text::at(x - 4.0, top - 5.0, what),
    };
    svg.text(beside.size(11.0).faint());
}

/// Names beside their colors, in as many lines as they need; gives the height it took.
pub(crate) fn legend(svg: &mut Svg, lines: &[Line], corner: [f64; 2], available: f64) -> f64 {
    let names: Vec<&str> = lines.iter().map(|line| line.name.as_str()).collect();
    swatches(svg, &names, corner, available)
}

/// The same for any names.
pub(crate) fn swatches(svg: &mut Svg, names: &[&str], corner: [f64; 2], available: f64) -> f64 {
    let [mut x, mut y] = corner;
    for (place, name) in names.iter().enumerate() {
        let name = label::fitted(name, 11.5, available - 20.0);
        let width = label::width(&name, 11.5) + 32.0;
        if x + width - 16.0 > corner[0] + available && x > corner[0] {
            (x, y) = (corner[0], y + 17.0);
        }
        let fill = color::hex(color::named(place));
        svg.rect([x, y + 1.0, 11.0, 11.0], &fill, "rx=\"2\"");
        svg.text(Text::at(x + 16.0, y + 11.0, &name).size(11.5));
        x += width;
    }
    if names.is_empty() { 0.0 } else { y - corner[1] + 17.0 }
}
