//! A page that stands alone: one file, nothing fetched, every map to choose and every weight to
//! point at.

use serde_json::{Value, json};

use super::caption::Caption;
use super::color;
use super::heat::Blocks;
use super::scale::Scale;
use super::svg::escaped;
use super::{curve, graph, heat, label, layout, patches, running_text, sound};
use crate::scene::base64;
use crate::scene::{CurveScene, GraphScene, ImageScene, Map, Maps, Scene};

/// Weights that a page holds one by one: 2 bytes each. Of more it holds blocks, and of each row the
/// strongest weights, so that it loads at once.
const MOST_WEIGHTS: usize = 2_000_000;
const MOST_BLOCKS: usize = 1_000_000;
const MOST_STRONGEST: usize = 400_000;

/// A scene as a stand-alone HTML page: all maps and their mean to choose from; pointing (or the
/// arrow keys) shows whence, whither and the weight.
///
/// Weights are kept in 16 bits each, so that three digits are right: 500 × 500 of them take 0.7 MB.
/// Where all of them would be more than 5 MB the page shows the greatest weight of each block, and a
/// click on one lists the strongest weights of its rows.
///
/// ```
/// use regard_picture::picture;
/// use regard_picture::scene::{Map, Maps, Scene};
/// let scene = Scene::Maps(Maps {
///     row_axis: "output".into(),
///     column_axis: "source".into(),
///     rows: vec!["花园".into()],
///     columns: vec!["the".into(), "garden".into()],
///     maps: vec![Map::new("layer 1, head 1", vec![0.1, 0.9])],
/// });
/// assert!(picture::page(&scene, "alignment").starts_with("<!DOCTYPE html>"));
/// ```
pub fn page(scene: &Scene, caption: impl Into<Caption>) -> String {
    let (caption, maps) = (&caption.into(), scene.maps());
    let places = match scene {
        Scene::Maps(scene) => scene.rows.len() * scene.columns.len(),
        _ => order(scene).len(),
    };
    if maps.is_empty() || places == 0 {
        let none = Caption::default();
        let above = match scene {
            Scene::Sound(scene) => sound::draw(scene, &[], &none),
            _ => heat::nothing(&none, "There are no weights to draw."),
        };
        return filled(caption, &above, &Value::Null, "");
    }
    let scale = Scale::of(maps);
    let (mut data, above) = match scene {
        Scene::Maps(scene) => (grid(scene), String::new()),
        Scene::Graph(scene) => (nodes_and_edges(scene), String::new()),
        Scene::Image(scene) => (parts(scene), String::new()),
        Scene::Curve(scene) => (kernel(scene), curve::draw(scene, &[], &Caption::default())),
        Scene::Sound(scene) => {
            (grid(&scene.weights), sound::draw(scene, maps, &Caption::default()))
        }
    };
    let names: Vec<&str> = maps.iter().map(|map| map.name.as_str()).collect();
    data["names"] = json!(names);
    match scene {
        Scene::Maps(scene) if maps.len() * places > MOST_WEIGHTS => {
            in_blocks(&mut data, scene, scale);
        }
        _ => {
            let order = order(scene);
            let weights: Vec<String> = maps.iter().map(|map| packed(map, &order, scale)).collect();
            data["weights"] = json!(weights);
        }
    }
    data["low"] = json!(scale.low);
    data["high"] = json!(scale.high);
    filled(caption, &above, &data, concat!(include_str!("draw.js"), include_str!("page/page.js")))
}

fn filled(caption: &Caption, above: &str, data: &Value, script: &str) -> String {
    // Inside a script element only "<" could end it.
    let data = data.to_string().replace('<', "\\u003c");
    let line = |(name, text): (&str, &str)| format!("<dt>{name}</dt><dd>{}</dd>\n", escaped(text));
    let lines: String = caption.lines().map(line).collect();
    let (mut out, mut rest) = (String::new(), include_str!("page/page.html"));
    while let Some((before, after)) = rest.split_once('{') {
        let Some((name, after)) = after.split_once('}') else { break };
        out.push_str(before);
        match name {
            "title" => out.push_str(&escaped(&caption.title)),
            "lines" => out.push_str(&lines),
            "style" => out.push_str(include_str!("page/page.css")),
            "above" => out.push_str(above),
            "data" => out.push_str(&data),
            _ => out.push_str(script),
        }
        rest = after;
    }
    out + rest
}

/// The greatest weights of blocks, and of each row the strongest weights with their columns.
fn in_blocks(data: &mut Value, scene: &Maps, scale: Scale) {
    let (rows, columns, maps) = (scene.rows.len(), scene.columns.len(), scene.maps.len());
    let count = |block: usize| maps * rows.div_ceil(block) * columns.div_ceil(block);
    let block = (2..).find(|&block| count(block) <= MOST_BLOCKS).unwrap_or(2);
    let kept = (MOST_STRONGEST / (rows * maps).max(1)).clamp(1, 16).min(columns);
    let weights = scene.maps.iter().map(|map| {
        let blocks = Blocks::of(map, [rows, columns], block);
        let bytes = blocks.greatest.iter().zip(&blocks.masked).flat_map(|(&weight, &masked)| {
            if masked { MASKED.to_le_bytes() } else { steps(weight, scale).to_le_bytes() }
        });
        base64(&bytes.collect::<Vec<_>>())
    });
    let strongest = scene.maps.iter().map(|map| {
        let row = |row: usize| strongest(map, row, columns, kept);
        let cells = (0..rows).flat_map(row);
        let bytes = cells.flat_map(|(column, weight)| {
            let mut bytes = (column as u32).to_le_bytes().to_vec();
            bytes.extend(steps(weight, scale).to_le_bytes());
            bytes
        });
        base64(&bytes.collect::<Vec<_>>())
    });
    data["weights"] = json!(weights.collect::<Vec<_>>());
    data["strongest"] = json!(strongest.collect::<Vec<_>>());
    data["kept"] = json!(kept);
    data["block"] = json!(block);
}

/// The columns of a row's greatest weights, the greatest first.
fn strongest(map: &Map, row: usize, columns: usize, kept: usize) -> Vec<(usize, Option<f32>)> {
    let weight = |column: usize| map.weight(row * columns + column);
    let greater = |a: &usize, b: &usize| {
        let of = |column: &usize| weight(*column).unwrap_or(f32::NEG_INFINITY);
        of(b).total_cmp(&of(a)).then(a.cmp(b))
    };
    let mut order: Vec<usize> = (0..columns).collect();
    if kept < columns {
        order.select_nth_unstable_by(kept, greater);
        order.truncate(kept);
    }
    order.sort_by(greater);
    order.into_iter().map(|column| (column, weight(column))).collect()
}

fn grid(scene: &Maps) -> Value {
    let spaces = running_text::suits(scene).then(|| running_text::spaces(&scene.columns));
    json!({
        "spaces": spaces,
        "rows": scene.rows,
        "columns": scene.columns,
        "rowAxis": scene.row_axis,
        "columnAxis": scene.column_axis,
    })
}

fn parts(scene: &ImageScene) -> Value {
    let numbers = |count: usize| -> Vec<String> { (1..=count).map(|i| i.to_string()).collect() };
    json!({
        "rows": numbers(scene.rows),
        "columns": numbers(scene.columns),
        "picture": patches::picture(scene).address(),
        "aspect": scene.width.max(1) as f64 / scene.height.max(1) as f64,
    })
}

fn kernel(scene: &CurveScene) -> Value {
    let numbers = |values: &mut dyn Iterator<Item = f32>| -> Vec<String> {
        values.map(|value| label::number(value.into())).collect()
    };
    json!({
        "rows": numbers(&mut scene.at.iter().copied()),
        "columns": numbers(&mut curve::data_in_order(scene).into_iter().map(|place| scene.x[place])),
        "rowAxis": "x asked for",
        "columnAxis": "x of the datum",
    })
}

/// The places of the weights in the order in which the page has them: of a regression, the data
/// stand in order of x; of a graph, edges to nowhere are left out.
fn order(scene: &Scene) -> Vec<usize> {
    match scene {
        Scene::Maps(scene) => (0..scene.rows.len() * scene.columns.len()).collect(),
        Scene::Sound(scene) => {
            (0..scene.weights.rows.len() * scene.weights.columns.len()).collect()
        }
        Scene::Image(scene) => (0..scene.rows * scene.columns).collect(),
        Scene::Graph(scene) => edges(scene).map(|(place, _)| place).collect(),
        Scene::Curve(scene) => {
            let order = curve::data_in_order(scene);
            let row = |at: usize| order.iter().map(move |&datum| at * scene.x.len() + datum);
            (0..scene.at.len()).flat_map(row).collect()
        }
    }
}

/// Edges between nodes that are there, with their places.
fn edges(scene: &GraphScene) -> impl Iterator<Item = (usize, (usize, usize))> {
    let edges = scene.edges.iter().copied().enumerate();
    edges.filter(|&(_, (from, to))| from.max(to) < scene.nodes.len())
}

fn nodes_and_edges(scene: &GraphScene) -> Value {
    let class = |node: usize| {
        let class = scene.classes.get(node).copied().flatten()?;
        scene.class_names.get(class)
    };
    let places = layout::places(scene.nodes.len(), &scene.edges);
    let nodes: Vec<Value> = (0..scene.nodes.len())
        .map(|node| {
            let [x, y] = places[node];
            let (label, color) = (&scene.nodes[node], color::hex(graph::fill(scene, node)));
            json!({"label": label, "class": class(node), "color": color, "x": x, "y": y})
        })
        .collect();
    let center = scene.center.filter(|&center| center < nodes.len());
    let edges: Vec<(usize, usize)> = edges(scene).map(|(_, edge)| edge).collect();
    let classes: Vec<(&String, String)> = (scene.class_names.iter().enumerate())
        .map(|(place, name)| (name, color::hex(color::named(place))))
        .collect();
    json!({ "nodes": nodes, "edges": edges, "center": center, "classes": classes })
}

/// Weights in 16 bits each, low byte first.
fn packed(map: &Map, order: &[usize], scale: Scale) -> String {
    let steps = |&place: &usize| match map.is_masked(place) {
        true => MASKED.to_le_bytes(),
        false => steps(map.weight(place), scale).to_le_bytes(),
    };
    base64(&order.iter().flat_map(steps).collect::<Vec<_>>())
}

/// A weight that a mask hides, in 16 bits.
const MASKED: u16 = 65534;

/// A weight in 16 bits; 65535 is not a number.
fn steps(weight: Option<f32>, scale: Scale) -> u16 {
    weight.map_or(u16::MAX, |weight| (scale.share(weight) * 65533.0).round() as u16)
}
