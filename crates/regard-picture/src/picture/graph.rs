//! Graphs: nodes in the colors of their classes, edges as wide as they weigh. A color means a class
//! and nothing else: edges are gray, the center's black.

use super::caption::Caption;
use super::chart::swatches;
use super::color::{self, INK, Rgb};
use super::heat;
use super::label;
use super::layout;
use super::scale::Scale;
use super::svg::{Svg, Text, escaped, short};
use crate::scene::{GraphScene, Map};

/// The color of an edge, and of one from the center.
const EDGE: &str = "#829ab1";
const CENTER_EDGE: &str = INK;
/// The color of a node whose class is not known.
const NO_CLASS: Rgb = [0xff, 0xff, 0xff];
/// More edges than this are drawn without heads: they would cover all else.
const MOST_HEADS: usize = 300;
/// Up to so many nodes each is named, also where names must touch.
const MOST_NAMED: usize = 60;

/// One map's weights, large.
pub(crate) fn one(scene: &GraphScene, map: &Map, caption: &Caption) -> String {
    let (margin, width, height) = (20.0, 720.0, 600.0);
    let mut svg = Svg::default();
    let mut y = caption.draw(&mut svg, margin, width);
    svg.text(Text::at(margin, y + 3.0, &label::fitted(&map.name, 12.0, width)).faint());
    y += 14.0;
    y += legend(&mut svg, scene, [margin, y], width);
    let scale = Scale::of(std::slice::from_ref(map));
    let top = explained(&mut svg, scene, scale, [margin, y], width) + 18.0;
    let places = layout::places(scene.nodes.len(), &scene.edges);
    Drawing::new(scene, &places, [margin, top, width, height], 11.0).draw(&mut svg, map, scale);
    svg.finish(width + 2.0 * margin, top + height + margin)
}

/// All maps, small, on one scale.
pub(crate) fn all(scene: &GraphScene, caption: &Caption) -> String {
    let across = heat::across(&scene.maps);
    let (margin, gap, side) = (20.0, 24.0, 300.0);
    let full = (across as f64 * (side + gap) - gap).max(heat::NARROWEST - 2.0 * margin);
    let mut svg = Svg::default();
    let mut y = caption.draw(&mut svg, margin, full) - 4.0;
    y += legend(&mut svg, scene, [margin, y], full);
    let scale = Scale::of(&scene.maps);
    let top = explained(&mut svg, scene, scale, [margin, y], full) + 20.0;
    let places = layout::places(scene.nodes.len(), &scene.edges);
    for (place, map) in scene.maps.iter().enumerate() {
        let x = margin + (place % across) as f64 * (side + gap);
        let y = top + (place / across) as f64 * (side + gap + 16.0);
        svg.text(Text::at(x, y + 8.0, &label::fitted(&map.name, 11.0, side)).size(11.0).bold());
        let drawing = Drawing::new(scene, &places, [x, y + 16.0, side, side], 9.5);
        drawing.draw(&mut svg, map, scale);
    }
    let down = scene.maps.len().div_ceil(across) as f64;
    svg.finish(full + 2.0 * margin, top + down * (side + gap + 16.0) - gap + margin)
}

/// How to read it; gives where its last line stands.
fn explained(
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
    if let Some(center) = scene.center.and_then(|center| scene.nodes.get(center)) {
        out += &format!("; black edges are those of {center}, the node with the black rim");
    }
    if !scene.class_names.is_empty() && scene.classes.contains(&None) {
        out += "; the class of a white node is not known";
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
pub(crate) fn fill(scene: &GraphScene, node: usize) -> Rgb {
    let class = scene.classes.get(node).copied().flatten();
    class.map_or(NO_CLASS, color::named)
}

/// A graph on its place of the paper.
struct Drawing<'a> {
    scene: &'a GraphScene,
    places: Vec<[f64; 2]>,
    /// Where the paper's part begins and ends, across.
    sides: [f64; 2],
    radius: f64,
    font: f64,
    /// Whether the names stand in the nodes.
    is_inside: bool,
}

impl<'a> Drawing<'a> {
    fn new(
        scene: &'a GraphScene,
        places: &[[f64; 2]],
        [x, y, width, height]: [f64; 4],
        font: f64,
    ) -> Self {
        let usual = (width / 9.0 / (places.len().max(1) as f64).sqrt()).clamp(2.0, 11.0);
        let widest = scene.nodes.iter().map(|name| label::width(name, font)).fold(0.0, f64::max);
        let around = (widest / 2.0 + 1.5).max(font * 0.75);
        let is_inside = places.len() <= MOST_NAMED && around <= font * 1.3;
        let radius = if is_inside { usual.max(around) } else { usual };
        let edge = radius * 1.3 + 6.0;
        let place = |p: &[f64; 2]| {
            [x + edge + p[0] * (width - 2.0 * edge), y + edge + p[1] * (height - 2.0 * edge)]
        };
        let places = places.iter().map(place).collect();
        Self { scene, places, sides: [x, x + width], radius, font, is_inside }
    }

    fn draw(&self, svg: &mut Svg, map: &Map, scale: Scale) {
        self.edges(svg, map, scale);
        self.nodes(svg);
        match self.is_inside {
            true => self.labels_inside(svg),
            false => self.labels_beside(svg),
        }
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
        let is_of_center = self.scene.center == Some(from);
        // Black must not be taken for gray.
        let faintest = if is_of_center { 0.6 } else { faintest };
        let opacity = faintest + (0.94 - faintest) * share;
        let color = if is_of_center { CENTER_EDGE } else { EDGE };
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
                false if fill(self.scene, node) == NO_CLASS => {
                    "stroke=\"#829ab1\" stroke-width=\"1\""
                }
                false => "stroke=\"#ffffff\" stroke-width=\"1\"",
            };
            let radius = if self.scene.center == Some(node) { 1.3 } else { 1.0 } * self.radius;
            svg.raw(&format!("<g><title>{}</title>", escaped(&self.name(node))));
            svg.circle(place, radius, &color::hex(fill(self.scene, node)), stroke);
            svg.raw("</g>");
        }
    }

    fn labels_inside(&self, svg: &mut Svg) {
        for (node, &[x, y]) in self.places.iter().enumerate() {
            let (name, fill) = (self.name(node), fill(self.scene, node));
            let text = Text::at(x, y + self.font * 0.36, &name).middle().size(self.font);
            let text = if self.scene.center == Some(node) { text.bold() } else { text };
            svg.text(text.fill(color::ink_on(fill)));
        }
    }

    /// The center's label first, then each where it covers least; of very many nodes only those
    /// that find room.
    fn labels_beside(&self, svg: &mut Svg) {
        let around = |p: &[f64; 2]| {
            let r = self.radius;
            [p[0] - r, p[1] - r, p[0] + r, p[1] + r]
        };
        let mut taken: Vec<[f64; 4]> = self.places.iter().map(around).collect();
        let center = self.scene.center.filter(|&center| center < self.places.len());
        let others = (0..self.places.len()).filter(|&node| Some(node) != center);
        for node in center.into_iter().chain(others) {
            let text = label::fitted(&self.name(node), self.font, 12.0 * self.font);
            let (width, tall) = (label::width(&text, self.font), self.font + 1.0);
            let spot = |&[left, top]: &[f64; 2]| {
                let area = [left, top, left + width, top + tall];
                let beyond = (self.sides[0] - left).max(left + width - self.sides[1]).max(0.0);
                let covered: f64 = taken.iter().map(|other| overlap(*other, area)).sum();
                (covered + 100.0 * beyond, area)
            };
            let spots = self.spots(node, width);
            let spots = spots.iter().map(spot);
            let best = spots.min_by(|a, b| a.0.total_cmp(&b.0));
            let all = self.places.len() <= MOST_NAMED;
            if let Some((_, area)) = best.filter(|(cost, _)| all || *cost == 0.0) {
                taken.push(area);
                let text = Text::at(area[0], area[1] + 0.9 * self.font, &text).size(self.font);
                let text = if Some(node) == center { text.bold() } else { text };
                svg.text(text.halo().fill(INK));
            }
        }
    }

    /// Where a label of this width may begin: beside its node, above or below.
    fn spots(&self, node: usize, width: f64) -> [[f64; 2]; 8] {
        let [x, y] = self.places[node];
        let (away, tall) = (self.radius * 1.3 + 3.0, self.font + 1.0);
        let (near, half) = (0.7 * away, tall / 2.0);
        [
            [x + away, y - half],
            [x - away - width, y - half],
            [x - width / 2.0, y - away - tall],
            [x - width / 2.0, y + away],
            [x + near, y - near - tall],
            [x + near, y + near],
            [x - near - width, y - near - tall],
            [x - near - width, y + near],
        ]
    }

    fn name(&self, node: usize) -> String {
        self.scene.nodes.get(node).cloned().unwrap_or_default()
    }
}

/// The area that two boxes share.
fn overlap(a: [f64; 4], b: [f64; 4]) -> f64 {
    let shared = |from: usize, to: usize| (a[to].min(b[to]) - a[from].max(b[from])).max(0.0);
    shared(0, 2) * shared(1, 3)
}
