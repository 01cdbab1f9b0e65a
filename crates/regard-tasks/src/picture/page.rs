//! A page that stands alone: one file, nothing fetched, every map to choose and every weight to
//! point at.

use serde_json::{Value, json};

use super::base64::base64;
use super::color::{self, Rgb};
use super::scale::Scale;
use super::svg::escaped;
use super::{curve, graph, heat, label, layout, patches, sound};
use crate::{CurveScene, GraphScene, ImageScene, Map, Maps, Scene};

/// A scene as a stand-alone HTML page: all maps and their mean to choose from; pointing (or the
/// arrow keys) shows whence, whither and the weight.
///
/// Weights are kept in 16 bits each, so that three digits are right: 500 × 500 of them take 0.7 MB.
///
/// ```
/// use regard_tasks::{Map, Maps, Scene, picture};
/// let scene = Scene::Maps(Maps {
///     row_axis: "output".into(),
///     column_axis: "source".into(),
///     rows: vec!["花园".into()],
///     columns: vec!["the".into(), "garden".into()],
///     maps: vec![Map::new("layer 1, head 1", vec![0.1, 0.9])],
/// });
/// assert!(picture::page(&scene, "alignment").starts_with("<!DOCTYPE html>"));
/// ```
pub fn page(scene: &Scene, title: &str) -> String {
    let maps = scene.maps();
    let order = order(scene);
    if maps.is_empty() || order.is_empty() {
        let why = "There are no weights to draw.";
        return filled(title, &heat::nothing("", why), &Value::Null, "");
    }
    let scale = Scale::of(maps);
    let (mut data, above) = match scene {
        Scene::Maps(scene) => (grid(scene), String::new()),
        Scene::Graph(scene) => (nodes_and_edges(scene), String::new()),
        Scene::Image(scene) => (parts(scene), String::new()),
        Scene::Curve(scene) => (kernel(scene), curve::draw(scene, &[], "")),
        Scene::Sound(scene) => (grid(&scene.weights), sound::draw(scene, None, "")),
    };
    let names: Vec<&str> = maps.iter().map(|map| map.name.as_str()).collect();
    let weights: Vec<String> = maps.iter().map(|map| packed(map, &order, scale)).collect();
    data["names"] = json!(names);
    data["weights"] = json!(weights);
    data["low"] = json!(scale.low);
    data["high"] = json!(scale.high);
    data["ramp"] = json!(ramp(color::heat));
    data["rampInTheDark"] = json!(ramp(color::heat_in_the_dark));
    filled(title, &above, &data, include_str!("page/page.js"))
}

fn filled(title: &str, above: &str, data: &Value, script: &str) -> String {
    // Inside a script element only "<" could end it.
    let data = data.to_string().replace('<', "\\u003c");
    let (mut out, mut rest) = (String::new(), include_str!("page/page.html"));
    while let Some((before, after)) = rest.split_once('{') {
        let Some((name, after)) = after.split_once('}') else { break };
        out.push_str(before);
        match name {
            "title" => out.push_str(&escaped(title)),
            "style" => out.push_str(include_str!("page/page.css")),
            "above" => out.push_str(above),
            "data" => out.push_str(&data),
            _ => out.push_str(script),
        }
        rest = after;
    }
    out + rest
}

fn grid(scene: &Maps) -> Value {
    json!({
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
        "hot": patches::HOT,
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
            let (label, color) = (&scene.nodes[node], graph::fill(scene, node));
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

/// Weights in 16 bits each, low byte first; 65535 is not a number.
fn packed(map: &Map, order: &[usize], scale: Scale) -> String {
    let steps = |&place: &usize| match map.weight(place) {
        Some(weight) => (scale.share(weight) * 65534.0).round() as u16,
        None => u16::MAX,
    };
    let bytes: Vec<u8> = order.iter().flat_map(|place| steps(place).to_le_bytes()).collect();
    base64(&bytes)
}

fn ramp(colors: fn(f32) -> Rgb) -> String {
    let hex = |i: u16| color::hex(colors(f32::from(i) / 255.0)).split_off(1);
    (0..256).map(hex).collect()
}
