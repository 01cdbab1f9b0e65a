//! A scene as JSON whose long lists of numbers are text: what a page fetches, and what a run keeps.

use super::base64;
use crate::scene::{GraphScene, Map, Maps, Scene};
use serde_json::{Value, json};

/// Numbers as base64 of their 32 bits each, the low byte first.
fn packed(numbers: &[f32]) -> String {
    base64(&numbers.iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<u8>>())
}

impl Map {
    /// As JSON, its weights as base64 of 32-bit floats, the low byte first, and of a masked map a byte
    /// for each weight, 1 where it is hidden.
    ///
    /// ```
    /// use regard_picture::scene::Map;
    /// assert_eq!(Map::new("head 1", vec![0.0, 1.0]).compact()["weights"], "AAAAAAAAgD8=");
    /// ```
    pub fn compact(&self) -> Value {
        let mut all =
            json!({ "name": self.name, "place": self.place, "weights": packed(&self.weights) });
        if let Some(why) = self.fixed {
            all["fixed"] = json!(why);
        }
        if !self.masked.is_empty() {
            let bytes: Vec<u8> = self.masked.iter().copied().map(u8::from).collect();
            all["masked"] = json!(base64(&bytes));
        }
        all
    }
}

fn maps(all: &[Map]) -> Vec<Value> {
    all.iter().map(Map::compact).collect()
}

fn grid(scene: &Maps) -> Value {
    json!({
        "row_axis": scene.row_axis,
        "column_axis": scene.column_axis,
        "rows": scene.rows,
        "columns": scene.columns,
        "maps": maps(&scene.maps),
    })
}

fn graph(scene: &GraphScene) -> Value {
    json!({
        "kind": "graph",
        "nodes": scene.nodes,
        "classes": scene.classes,
        "class_names": scene.class_names,
        "center": scene.center,
        "edges": scene.edges,
        "maps": maps(&scene.maps),
    })
}

impl Scene {
    /// As JSON under the names of its fields; weights, pixels and spectrogram are base64 of 32-bit
    /// floats, the low byte first.
    ///
    /// ```
    /// use regard_picture::scene::{CurveScene, Scene};
    /// let (none, at) = (vec![], vec![0.5]);
    /// let scene = CurveScene {
    ///     x: none.clone(), y: none.clone(), curve: at.clone(), at, truth: None, query: None,
    ///     maps: vec![],
    /// };
    /// assert_eq!(Scene::Curve(scene).compact()["kind"], "curve");
    /// ```
    pub fn compact(&self) -> Value {
        match self {
            Self::Maps(scene) => {
                let mut value = grid(scene);
                value["kind"] = "maps".into();
                value
            }
            Self::Graph(scene) => graph(scene),
            Self::Image(scene) => json!({
                "kind": "image",
                "width": scene.width,
                "height": scene.height,
                "channels": scene.channels,
                "pixels": packed(&scene.pixels),
                "columns": scene.columns,
                "rows": scene.rows,
                "maps": maps(&scene.maps),
            }),
            Self::Curve(scene) => json!({
                "kind": "curve",
                "x": scene.x,
                "y": scene.y,
                "at": scene.at,
                "curve": scene.curve,
                "truth": scene.truth,
                "query": scene.query,
                "maps": maps(&scene.maps),
            }),
            Self::Sound(scene) => json!({
                "kind": "sound",
                "spectrogram": packed(&scene.spectrogram),
                "features": scene.features,
                "step": scene.step,
                "unit": scene.unit,
                "key_step": scene.key_step,
                "weights": grid(&scene.weights),
                "tracks": scene.tracks,
                "moment": scene.moment,
            }),
        }
    }

    /// Its maps, to be changed.
    pub fn maps_mut(&mut self) -> &mut Vec<Map> {
        match self {
            Self::Maps(scene) => &mut scene.maps,
            Self::Graph(scene) => &mut scene.maps,
            Self::Image(scene) => &mut scene.maps,
            Self::Curve(scene) => &mut scene.maps,
            Self::Sound(scene) => &mut scene.weights.maps,
        }
    }
}
