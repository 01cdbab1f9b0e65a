//! Graphs: nodes in the colors of their classes, edges as wide as they weigh.

use super::chart::swatches;
use super::color::{self, INK};
use super::heat;
use super::label;
use super::layout;
use super::scale::Scale;
use super::svg::{Svg, Text, escaped, short};
use crate::{GraphScene, Map};

const EDGE: &str = "#486581";
/// The color of a node whose class is not known.
const NO_CLASS: &str = "#9aa5b1";
/// More edges than this are drawn without heads: they would cover all else.
const MOST_HEADS: usize = 300;

/// One map's weights, large, with labels.
pub(crate) fn one(scene: &GraphScene, map: &Map, title: &str) -> String {
    let (margin, width, height) = (20.0, 720.0, 600.0);
    let mut svg = Svg::default();
    let mut y = svg.title(title, margin, width);
    svg.text(Text::at(margin, y + 3.0, &label::fitted(&map.name, 12.0, width)).faint());
    y += 14.0;
    y += legend(&mut svg, scene, [margin, y], width);
    let scale = Scale::of(std::slice::from_ref(map));
    let top = caption(&mut svg, scene, scale, [margin, y], width) + 18.0;
    let drawing = Drawing::new(scene, [margin, top, width, height]);
    drawing.edges(&mut svg, map, scale);
    drawing.nodes(&mut svg);
    drawing.labels(&mut svg);
    svg.finish(width + 2.0 * margin, top + height + margin)
}

/// All maps, small, on one scale.
pub(crate) fn all(scene: &GraphScene, title: &str) -> String {
    let across = heat::across(&scene.maps);
    let (margin, gap, side) = (20.0, 24.0, 270.0);
    let full = across as f64 * (side + gap) - gap;
    let mut svg = Svg::default();
    let mut y = svg.title(title, margin, full.max(300.0)) - 4.0;
    y += legend(&mut svg, scene, [margin, y], full);
    let scale = Scale::of(&scene.maps);
    let top = caption(&mut svg, scene, scale, [margin, y], full) + 20.0;
    let places = layout::places(scene.nodes.len(), &scene.edges);
    for (place, map) in scene.maps.iter().enumerate() {
        let x = margin + (place % across) as f64 * (side + gap);
        let y = top + (place / across) as f64 * (side + gap + 16.0);
        svg.text(Text::at(x, y + 8.0, &label::fitted(&map.name, 11.0, side)).size(11.0));
        let drawing = Drawing::with(scene, &places, [x, y + 16.0, side, side]);
        drawing.edges(&mut svg, map, scale);
        drawing.nodes(&mut svg);
    }
    let down = scene.maps.len().div_ceil(across) as f64;
    svg.finish(full.max(300.0) + 2.0 * margin, top + down * (side + gap + 16.0) - gap + margin)
}

/// How to read it; gives where its last line stands.
fn caption(
    svg: &mut Svg,
    scene: &GraphScene,
    scale: Scale,
    corner: [f64; 2],
    available: f64,
) -> f64 {
    let mut out = format!("The widest edge weighs {}", label::number(scale.high.into()));
    if scene.edges.len() <= MOST_HEADS {
        out += "; arrows point to whom is attended";
    }
    if scene.edges.iter().any(|(from, to)| from == to) {
        out += "; a ring is what a node gives itself";
    }
    if scene.center.is_some() {
        out += "; orange is from the center";
    }
    out += ".";
    let mut y = corner[1] - 3.0;
    for line in label::wrapped(&out, 11.0, available) {
        y += 15.0;
        svg.text(Text::at(corner[0], y, &line).size(11.0).faint());
    }
    y
}

fn legend(svg: &mut Svg, scene: &GraphScene, corner: [f64; 2], available: f64) -> f64 {
    let names: Vec<&str> = scene.class_names.iter().map(String::as_str).take(24).collect();
    swatches(svg, &names, corner, available)
}

/// A node's color.
pub(crate) fn fill(scene: &GraphScene, node: usize) -> String {
    let class = scene.classes.get(node).copied().flatten();
    class.map_or(NO_CLASS.to_owned(), |class| color::hex(color::named(class)))
}

/// A graph on its place of the paper.
struct Drawing<'a> {
    scene: &'a GraphScene,
    places: Vec<[f64; 2]>,
    right: f64,
    radius: f64,
}

impl<'a> Drawing<'a> {
    fn new(scene: &'a GraphScene, available: [f64; 4]) -> Self {
        Self::with(scene, &layout::places(scene.nodes.len(), &scene.edges), available)
    }

    fn with(scene: &'a GraphScene, places: &[[f64; 2]], [x, y, width, height]: [f64; 4]) -> Self {
        let radius = (width / 9.0 / (places.len().max(1) as f64).sqrt()).clamp(2.0, 11.0);
        let edge = radius + 6.0;
        let place = |p: &[f64; 2]| {
            [x + edge + p[0] * (width - 2.0 * edge), y + edge + p[1] * (height - 2.0 * edge)]
        };
        Self { scene, places: places.iter().map(place).collect(), right: x + width, radius }
    }

    /// The light ones first, so that the heavy ones lie on top.
    fn edges(&self, svg: &mut Svg, map: &Map, scale: Scale) {
        let weight = |edge: usize| map.weight(edge).unwrap_or(0.0);
        let mut order: Vec<usize> = (0..self.scene.edges.len()).collect();
        order.sort_by(|&a, &b| weight(a).total_cmp(&weight(b)));
        for edge in order {
            let (from, to) = self.scene.edges[edge];
            if from.max(to) >= self.places.len() {
                continue;
            }
            let names = [from, to].map(|node| self.name(node));
            let [from_name, to_name] = names.map(|name| escaped(&name));
            svg.raw(&format!("<g><title>{from_name} → {to_name}: {:.3}</title>", weight(edge)));
            self.edge(svg, from, to, f64::from(scale.share(weight(edge))));
            svg.raw("</g>");
        }
    }

    fn edge(&self, svg: &mut Svg, from: usize, to: usize, share: f64) {
        // Of very many edges the light ones fade, or they would cover the heavy ones.
        let faintest = 0.14 * (600.0 / self.scene.edges.len() as f64).min(1.0);
        let width = self.radius * (0.05 + 0.42 * share);
        let opacity = faintest + (0.94 - faintest) * share;
        let is_of_center = self.scene.center == Some(from);
        let color = if is_of_center { "#c2410c" } else { EDGE };
        let [a, b] = [self.places[from], self.places[to]];
        let stroke = format!(
            "stroke=\"{color}\" stroke-width=\"{}\" stroke-opacity=\"{}\"",
            short(width),
            short(opacity)
        );
        let distance = (b[0] - a[0]).hypot(b[1] - a[1]);
        if from == to || distance < 1e-6 {
            return svg.circle(a, self.radius + 1.5 + width / 2.0, "none", &stroke);
        }
        // A bend to the left: the edge back takes the other side.
        let bend = 0.1;
        let control = [
            (a[0] + b[0]) / 2.0 + bend * (b[1] - a[1]),
            (a[1] + b[1]) / 2.0 - bend * (b[0] - a[0]),
        ];
        let back = (b[0] - control[0]).hypot(b[1] - control[1]).max(1e-9);
        let [ux, uy] = [(b[0] - control[0]) / back, (b[1] - control[1]) / back];
        let has_head = self.scene.edges.len() <= MOST_HEADS;
        let head = if has_head { (3.0 + 1.4 * width).min(distance / 3.0) } else { 0.0 };
        let tip = [b[0] - ux * (self.radius + 1.0), b[1] - uy * (self.radius + 1.0)];
        let neck = [tip[0] - ux * head, tip[1] - uy * head];
        let [ax, ay, cx, cy, nx, ny] =
            [a[0], a[1], control[0], control[1], neck[0], neck[1]].map(short);
        svg.path(&format!("M{ax} {ay}Q{cx} {cy} {nx} {ny}"), &format!("fill=\"none\" {stroke}"));
        if has_head {
            let half = head * 0.5;
            let corners = [
                tip[0],
                tip[1],
                neck[0] - uy * half,
                neck[1] + ux * half,
                neck[0] + uy * half,
                neck[1] - ux * half,
            ];
            let [tx, ty, lx, ly, rx, ry] = corners.map(short);
            let fill = format!("fill=\"{color}\" fill-opacity=\"{}\"", short(opacity));
            svg.path(&format!("M{tx} {ty}L{lx} {ly}L{rx} {ry}z"), &fill);
        }
    }

    fn nodes(&self, svg: &mut Svg) {
        for (node, &place) in self.places.iter().enumerate() {
            let stroke = match self.scene.center == Some(node) {
                true => "stroke=\"#1f2933\" stroke-width=\"2.5\"",
                false => "stroke=\"#ffffff\" stroke-width=\"1\"",
            };
            let radius = if self.scene.center == Some(node) { 1.3 } else { 1.0 } * self.radius;
            svg.raw(&format!("<g><title>{}</title>", escaped(&self.name(node))));
            svg.circle(place, radius, &fill(self.scene, node), stroke);
            svg.raw("</g>");
        }
    }

    /// The center's label first, then each that finds room beside its node.
    fn labels(&self, svg: &mut Svg) {
        let size = 11.0;
        let around = |p: &[f64; 2]| {
            let r = self.radius;
            [p[0] - r, p[1] - r, p[0] + r, p[1] + r]
        };
        let mut taken: Vec<[f64; 4]> = self.places.iter().map(around).collect();
        let center = self.scene.center.filter(|&center| center < self.places.len());
        let others = (0..self.places.len()).filter(|&node| Some(node) != center);
        for node in center.into_iter().chain(others) {
            let text = label::fitted(&self.name(node), size, 150.0);
            let [x, y] = self.places[node];
            let (width, away) = (label::width(&text, size), self.radius * 1.3 + 3.0);
            let spots = [
                [x + away, y - 6.0],
                [x - away - width, y - 6.0],
                [x - width / 2.0, y - away - 11.0],
                [x - width / 2.0, y + away],
            ];
            let free = spots.into_iter().find(|&[left, top]| {
                let on_paper = left >= 0.0 && left + width <= self.right + 20.0;
                on_paper
                    && !taken.iter().any(|b| overlap(*b, [left, top, left + width, top + 12.0]))
            });
            if let Some([left, top]) = free {
                taken.push([left, top, left + width, top + 12.0]);
                let text = Text::at(left, top + 10.0, &text).size(size).halo();
                svg.text(if Some(node) == center { text.bold() } else { text }.fill(INK));
            }
        }
    }

    fn name(&self, node: usize) -> String {
        self.scene.nodes.get(node).cloned().unwrap_or_default()
    }
}

fn overlap(a: [f64; 4], b: [f64; 4]) -> bool {
    a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3]
}
