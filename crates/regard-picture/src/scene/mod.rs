//! The attention weights for one input, before they are drawn: named maps, and the labels of their
//! queries and keys.
//!
//! A task fills a scene; [`picture`](crate::picture) draws it as SVG, PNG, a page or in a terminal,
//! and its numbers can be written as they are.

mod base64;
mod compact;
pub(crate) mod sound;
mod weights_file;

pub use base64::{base64, base64_decoded};
pub use sound::{SoundScene, Track};
pub use weights_file::WeightsFile;

use regard::Tensor;
use regard::attention::Site;
use regard_data::{Error, Result};
use serde::Serialize;

/// The attention weights for one input, with all that a picture of them needs.
///
/// ```
/// use regard_picture::scene::{Map, Maps, Scene};
/// let maps = Maps {
///     row_axis: "output".into(),
///     column_axis: "source".into(),
///     rows: vec!["我".into()],
///     columns: vec!["I".into(), "see".into()],
///     maps: vec![Map::new("layer 1, head 1", vec![0.75, 0.25])],
/// };
/// let scene = Scene::Maps(maps);
/// assert_eq!(scene.maps().len(), 1);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Scene {
    /// Rows of queries over columns of keys: alignments, heads of self-attention.
    Maps(Maps),
    /// Edges of a graph.
    Graph(GraphScene),
    /// Patches of an image.
    Image(ImageScene),
    /// A regression curve and its kernel.
    Curve(CurveScene),
    /// Moments of a recording.
    Sound(SoundScene),
}

/// An attention map: the weights of one head of one layer, or of one mechanism.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Map {
    /// Which head of which layer.
    pub name: String,
    /// Which attention of the model gave it; none where several did, or none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<Place>,
    /// Why no attention gave it, where that is so: a sentence for whoever wants to change it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fixed: Option<&'static str>,
    /// The weights, one for each cell, edge or patch of the scene they belong to, row by row.
    pub weights: Vec<f32>,
    /// Which of them a mask hides, one for each weight; empty where nothing is hidden. Such a weight
    /// is 0 because nobody asked, not because the score was low.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub masked: Vec<bool>,
}

/// An attention of a model: where an [`Intervention`](regard::attention::Intervention) on a map
/// applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Place {
    /// Which attention.
    pub site: Site,
    /// The layer, from 0.
    pub layer: usize,
    /// The head, from 0; none where the map is a mean of all.
    pub head: Option<usize>,
    /// What the first row of the scene is called inside the model.
    pub row: usize,
    /// What the first column of the scene is called inside the model.
    pub column: usize,
    /// Whether the columns of the scene are the layers from this one on, and its rows the keys: so the
    /// hops of a memory network are drawn. `row` is the first row that is a key then.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub columns_are_layers: bool,
}

impl Place {
    /// A head, whose rows and columns the scene has from the first on.
    ///
    /// ```
    /// use regard::attention::Site;
    /// use regard_picture::scene::Place;
    /// assert_eq!(Place::new(Site::Encoder, 2, 1).head, Some(1));
    /// ```
    pub fn new(site: Site, layer: usize, head: usize) -> Self {
        Self { site, layer, head: Some(head), row: 0, column: 0, columns_are_layers: false }
    }
}

/// Attention maps over the same queries (rows) and keys (columns).
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Maps {
    /// What the rows are: "output".
    pub row_axis: String,
    /// What the columns are: "source".
    pub column_axis: String,
    /// The label of each row.
    pub rows: Vec<String>,
    /// The label of each column.
    pub columns: Vec<String>,
    /// rows × columns weights each.
    pub maps: Vec<Map>,
}

impl Maps {
    /// What an encoder's own attention looked at, weights `[B, H, N, N]` layer by layer; none where it
    /// has none.
    pub fn of_encoder(layers: &[Tensor], names: Vec<String>) -> Result<Option<Self>> {
        if layers.is_empty() {
            return Ok(None);
        }
        Ok(Some(Self {
            row_axis: "attends".into(),
            column_axis: "is attended to".into(),
            rows: names.clone(),
            columns: names,
            maps: Map::of_layers(layers, Site::Encoder)?,
        }))
    }

    /// The same where each query sees so many keys on each side, all of them where none is given.
    ///
    /// ```
    /// use regard_picture::scene::{Map, Maps};
    /// let names: Vec<String> = ["a", "b", "c"].map(String::from).into();
    /// let maps = Maps {
    ///     row_axis: "attends".into(),
    ///     column_axis: "is attended to".into(),
    ///     rows: names.clone(),
    ///     columns: names,
    ///     maps: vec![Map::new("head 1", vec![0.0; 9])],
    /// };
    /// assert!(maps.truncated(Some(1)).maps[0].is_masked(2));
    /// ```
    pub fn truncated(self, window: Option<usize>) -> Self {
        let maps = self.maps.into_iter().map(|map| map.truncated(window)).collect();
        Self { maps, ..self }
    }
}

/// A part of a graph, and the attention weights of its edges.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GraphScene {
    /// The label of each node.
    pub nodes: Vec<String>,
    /// The class of each node, for its color; none where it is not known.
    pub classes: Vec<Option<usize>>,
    /// The classes' names.
    pub class_names: Vec<String>,
    /// The node the picture is about.
    pub center: Option<usize>,
    /// (who attends, to whom), as places in `nodes`.
    pub edges: Vec<(usize, usize)>,
    /// One weight for each edge.
    pub maps: Vec<Map>,
}

/// An image, and the attention weights of its patches.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ImageScene {
    /// Pixels across.
    pub width: usize,
    /// Pixels down.
    pub height: usize,
    /// 1 (gray) or 3 (red, green, blue).
    pub channels: usize,
    /// Height × width × channels, from 0 (black) to 1.
    pub pixels: Vec<f32>,
    /// Patches across.
    pub columns: usize,
    /// Patches down.
    pub rows: usize,
    /// rows × columns weights each.
    pub maps: Vec<Map>,
}

/// A regression curve and its kernel's weights.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CurveScene {
    /// Where the data were measured.
    pub x: Vec<f32>,
    /// What was measured there.
    pub y: Vec<f32>,
    /// Where the curve was asked for, in order.
    pub at: Vec<f32>,
    /// The curve.
    pub curve: Vec<f32>,
    /// The curve the data were made from, where it is known.
    pub truth: Option<Vec<f32>>,
    /// The point of `at` that the picture is about, where there is one.
    pub query: Option<f32>,
    /// `at` × `x` weights each.
    pub maps: Vec<Map>,
}

impl Map {
    /// Weights with a name.
    ///
    /// ```
    /// use regard_picture::scene::Map;
    /// assert_eq!(Map::new("head 1", vec![1.0]).weights, [1.0]);
    /// ```
    pub fn new(name: impl Into<String>, weights: Vec<f32>) -> Self {
        Self { name: name.into(), place: None, fixed: None, weights, masked: Vec::new() }
    }

    /// The same, with some weights hidden by a mask; nothing changes where none is.
    ///
    /// ```
    /// use regard_picture::scene::Map;
    /// let map = Map::new("head 1", vec![1.0, 0.0]).hiding(vec![false, true]);
    /// assert_eq!([0, 1, 2].map(|place| map.is_masked(place)), [false, true, false]);
    /// assert!(Map::new("head 1", vec![1.0]).hiding(vec![false]).masked.is_empty());
    /// ```
    pub fn hiding(self, masked: Vec<bool>) -> Self {
        let any = masked.contains(&true);
        Self { masked: if any { masked } else { Vec::new() }, ..self }
    }

    /// The same over one sequence, of which each query sees so many keys on each side.
    ///
    /// ```
    /// use regard_picture::scene::Map;
    /// let map = Map::new("head 1", vec![0.0; 9]).truncated(Some(1));
    /// assert_eq!(map.masked.iter().filter(|&&hidden| hidden).count(), 2);
    /// ```
    pub fn truncated(self, window: Option<usize>) -> Self {
        let (Some(window), n) = (window, self.weights.len().isqrt()) else { return self };
        let hidden = (0..n * n).map(|place| (place / n).abs_diff(place % n) > window).collect();
        self.hiding(hidden)
    }

    /// The same over one sequence, of which no query sees what comes after it.
    ///
    /// ```
    /// use regard_picture::scene::Map;
    /// let map = Map::new("head 1", vec![1.0, 0.0, 0.5, 0.5]).causal();
    /// assert_eq!(map.masked, [false, true, false, false]);
    /// ```
    pub fn causal(self) -> Self {
        let n = self.weights.len().isqrt();
        let hidden = (0..n * n).map(|place| place % n > place / n).collect();
        self.hiding(hidden)
    }

    /// Whether a mask hides the weight at a place.
    pub fn is_masked(&self, place: usize) -> bool {
        self.masked.get(place).copied().unwrap_or(false)
    }

    /// The same, from a place.
    ///
    /// ```
    /// use regard::attention::Site;
    /// use regard_picture::scene::{Map, Place};
    /// let place = Place::new(Site::Cross, 0, 0);
    /// assert_eq!(Map::new("weights", vec![1.0]).at(place).place, Some(place));
    /// ```
    pub fn at(self, place: Place) -> Self {
        Self { place: Some(place), ..self }
    }

    /// The same, where it is no attention that could be changed, and why.
    ///
    /// ```
    /// use regard_picture::scene::Map;
    /// let map = Map::new("mean of all", vec![1.0]).fixed("every datum weighs the same");
    /// assert_eq!(map.fixed, Some("every datum weighs the same"));
    /// ```
    pub fn fixed(self, why: &'static str) -> Self {
        Self { fixed: Some(why), ..self }
    }

    /// The heads of self-attention at a site over the first sequence of a batch: weights
    /// `[B, H, N, N]`, layer by layer.
    pub fn of_layers(layers: &[Tensor], site: Site) -> Result<Vec<Self>> {
        let mut maps = Vec::new();
        for (layer, weights) in layers.iter().enumerate() {
            let heads = weights.narrow(0, 0, 1)?.contiguous()?;
            let (count, one) = (heads.shape()[1], heads.shape()[2] * heads.shape()[3]);
            let numbers = heads.to_vec::<f32>()?;
            for head in 0..count {
                let name = format!("layer {}, head {}", layer + 1, head + 1);
                let map = Self::new(name, numbers[head * one..][..one].to_vec());
                maps.push(map.at(Place::new(site, layer, head)));
            }
        }
        Ok(maps)
    }

    /// The layer and the head that its name tells, counted from 1; what it does not tell is the first.
    ///
    /// ```
    /// use regard_picture::scene::Map;
    /// assert_eq!(Map::new("layer 2, head 3", vec![]).layer_and_head(), (2, 3));
    /// assert_eq!(Map::new("weights", vec![]).layer_and_head(), (1, 1));
    /// ```
    pub fn layer_and_head(&self) -> (usize, usize) {
        let number = |what: &str| {
            let parts = self.name.split(", ");
            let mut found = parts.filter_map(|part| part.strip_prefix(what)?.trim().parse().ok());
            found.next().unwrap_or(1)
        };
        (number("layer "), number("head "))
    }

    /// The weight at a place; none where it is missing or is not a number.
    ///
    /// ```
    /// use regard_picture::scene::Map;
    /// let map = Map::new("head 1", vec![0.5, f32::NAN]);
    /// assert_eq!([0, 1, 2].map(|place| map.weight(place)), [Some(0.5), None, None]);
    /// ```
    pub fn weight(&self, place: usize) -> Option<f32> {
        self.weights.get(place).copied().filter(|weight| weight.is_finite())
    }
}

impl Scene {
    /// With the maps of one layer, of one head, or of one head of one layer alone, counted from 1.
    /// Refuses a layer or a head that it does not have.
    ///
    /// ```
    /// use regard_picture::scene::{Map, Maps, Scene};
    /// let maps = ["layer 1, head 1", "layer 1, head 2", "layer 2, head 1", "layer 2, head 2"];
    /// let scene = Scene::Maps(Maps {
    ///     row_axis: "output".into(),
    ///     column_axis: "source".into(),
    ///     rows: vec!["a".into()],
    ///     columns: vec!["b".into()],
    ///     maps: maps.map(|name| Map::new(name, vec![1.0])).into(),
    /// });
    /// let one = scene.clone().with_heads(Some(2), Some(1))?;
    /// assert_eq!((one.maps().len(), &one.maps()[0].name[..]), (1, "layer 2, head 1"));
    /// let error = scene.with_heads(Some(3), None).unwrap_err().to_string();
    /// assert_eq!(error, "there is no layer 3; there are layers 1 to 2");
    /// # Ok::<(), regard_picture::Error>(())
    /// ```
    pub fn with_heads(mut self, layer: Option<usize>, head: Option<usize>) -> Result<Self> {
        let all: Vec<(usize, usize)> = self.maps().iter().map(Map::layer_and_head).collect();
        let layers = all.iter().map(|place| place.0).max().unwrap_or(0);
        if let Some(layer) = layer.filter(|layer| !(1..=layers).contains(layer)) {
            return Err(missing("layer", layer, layers));
        }
        let is_layer = |place: &&(usize, usize)| layer.is_none_or(|layer| layer == place.0);
        let heads = all.iter().filter(is_layer).map(|place| place.1).max().unwrap_or(0);
        if let Some(head) = head.filter(|head| !(1..=heads).contains(head)) {
            return Err(missing("head", head, heads));
        }
        self.maps_mut().retain(|map| {
            let (own_layer, own_head) = map.layer_and_head();
            layer.is_none_or(|layer| layer == own_layer) && head.is_none_or(|head| head == own_head)
        });
        Ok(self)
    }

    /// Its named weights.
    pub fn maps(&self) -> &[Map] {
        match self {
            Self::Maps(scene) => &scene.maps,
            Self::Graph(scene) => &scene.maps,
            Self::Image(scene) => &scene.maps,
            Self::Curve(scene) => &scene.maps,
            Self::Sound(scene) => &scene.weights.maps,
        }
    }
}

fn missing(what: &str, asked: usize, last: usize) -> Error {
    Error::invalid(match last {
        1 => format!("there is no {what} {asked}; there is one alone"),
        _ => format!("there is no {what} {asked}; there are {what}s 1 to {last}"),
    })
}
