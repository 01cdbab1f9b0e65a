//! The weights of a head over its keys, query by query, whatever kind of scene they stand in.

use regard_picture::scene::{Map, Maps, Scene};

/// The weights of a head, query by query.
pub(super) struct Rows<'a> {
    /// The rows whose weights sum to something, divided by their sum.
    pub(super) all: Vec<Row>,
    pub(super) row_names: Vec<&'a str>,
    /// What the keys are called, by place; none where they are patches of a picture.
    pub(super) key_names: Vec<&'a str>,
    /// The keys' classes, by place, where they are known.
    pub(super) labels: Vec<Option<&'a str>>,
}

/// A query's weights.
pub(super) struct Row {
    /// Its place among the row names.
    pub(super) at: usize,
    /// Its place among the keys, where the two are the same sequence.
    pub(super) own: Option<usize>,
    /// Places and weights.
    pub(super) keys: Vec<(usize, f64)>,
}

impl<'a> Rows<'a> {
    /// Of a scene's map. `labels` are those of the words, where a sentence has them.
    pub(super) fn of(scene: &'a Scene, map: &'a Map, labels: &'a [String]) -> Self {
        let mut rows = match scene {
            Scene::Maps(maps) => Self::of_maps(maps, map, labels),
            Scene::Sound(sound) => Self::of_maps(&sound.weights, map, labels),
            Scene::Image(image) => {
                let keys = (0..image.rows * image.columns).map(|at| (at, weight(map, at)));
                let row = Row { at: 0, own: None, keys: keys.collect() };
                let row_names = vec![&map.name[..]];
                Self { all: vec![row], row_names, key_names: Vec::new(), labels: Vec::new() }
            }
            Scene::Graph(graph) => {
                let center = graph.center.unwrap_or(0);
                let edges = graph.edges.iter().enumerate().filter(|(_, edge)| edge.0 == center);
                let keys = edges.map(|(at, edge)| (edge.1, weight(map, at))).collect();
                let class = |class: &Option<usize>| graph.class_names.get((*class)?);
                let names: Vec<&str> = graph.nodes.iter().map(|name| &name[..]).collect();
                Self {
                    all: vec![Row { at: center, own: Some(center), keys }],
                    row_names: names.clone(),
                    key_names: names,
                    labels: graph.classes.iter().map(|c| class(c).map(|c| &c[..])).collect(),
                }
            }
            // A curve has one kernel and no heads.
            Scene::Curve(_) => {
                let (row_names, key_names) = (Vec::new(), Vec::new());
                Self { all: Vec::new(), row_names, key_names, labels: Vec::new() }
            }
        };
        rows.all.retain_mut(|row| {
            let sum: f64 = row.keys.iter().map(|key| key.1).sum();
            row.keys.iter_mut().for_each(|key| key.1 /= sum);
            sum > 0.0
        });
        rows
    }

    fn of_maps(maps: &'a Maps, map: &Map, labels: &'a [String]) -> Self {
        let names = |all: &'a [String]| all.iter().map(|name| &name[..]).collect::<Vec<&str>>();
        let width = maps.columns.len();
        let turned = map.place.filter(|place| place.columns_are_layers);
        // The hops of a memory network are columns over the sentences.
        if let Some(place) = turned {
            let keys = |column: usize| {
                let all = place.row..maps.rows.len();
                all.map(|at| (at - place.row, weight(map, at * width + column))).collect()
            };
            let row = |column| Row { at: column, own: None, keys: keys(column) };
            return Self {
                all: (0..width).map(row).collect(),
                row_names: names(&maps.columns),
                key_names: names(&maps.rows[place.row.min(maps.rows.len())..]),
                labels: Vec::new(),
            };
        }
        let own = map.place.is_some_and(|place| place.site.is_self_attention());
        // What is masked is no key of that row's.
        let keys = |at: usize| {
            let seen = (0..width).filter(|key| !map.is_masked(at * width + key));
            seen.map(|key| (key, weight(map, at * width + key))).collect()
        };
        let row = |at| Row { at, own: own.then_some(at), keys: keys(at) };
        let labels = if labels.len() == width { labels } else { &[] };
        Self {
            all: (0..maps.rows.len()).map(row).collect(),
            row_names: names(&maps.rows),
            key_names: names(&maps.columns),
            labels: labels.iter().map(|label| Some(&label[..])).collect(),
        }
    }

    /// What a key is called.
    pub(super) fn key_name(&self, place: usize) -> String {
        self.key_names.get(place).map_or_else(|| format!("patch {}", place + 1), |s| s.to_string())
    }

    /// A key's class.
    pub(super) fn label(&self, place: usize) -> Option<&'a str> {
        self.labels.get(place).copied().flatten()
    }
}

fn weight(map: &Map, at: usize) -> f64 {
    map.weight(at).map_or(0.0, f64::from)
}
