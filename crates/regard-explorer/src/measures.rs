//! What can be said of a head in numbers.

use regard_picture::scene::{Map, Scene};
use serde::Serialize;

/// What can be said of a head in numbers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Measures {
    /// −Σ w ln w of a row, in nats, the mean over all rows; not there where nothing weighs.
    entropy: Option<f64>,
    /// How far the keys are that are attended to, Σ w |row − column|, the mean over all rows.
    distance: Option<f64>,
    /// The share of the weights that lies on the diagonal.
    diagonal: Option<f64>,
}

/// What can be said of each map of a scene.
pub(crate) fn measures(scene: &Scene) -> Vec<Measures> {
    let by_width = |width: usize, places: Option<f64>| {
        scene.maps().iter().map(|map| of_rows(map, width, places)).collect()
    };
    match scene {
        // Each column is a hop, or the start or the end, over all sentences.
        Scene::Maps(maps) if maps.row_axis == "sentence" => {
            let (rows, columns) = (maps.rows.len(), maps.columns.len());
            let turned = |map: &Map| {
                let place = |at: usize| map.weights[at % rows * columns + at / rows];
                Map::new(&map.name[..], (0..map.weights.len()).map(place).collect())
            };
            scene.maps().iter().map(|map| of_rows(&turned(map), rows, None)).collect()
        }
        Scene::Maps(maps) => {
            by_width(maps.columns.len(), slope(maps.rows.len(), maps.columns.len()))
        }
        Scene::Sound(sound) => {
            let (rows, columns) = (sound.weights.rows.len(), sound.weights.columns.len());
            by_width(columns, slope(rows, columns))
        }
        Scene::Curve(curve) => by_width(curve.x.len(), None),
        Scene::Image(image) => by_width(image.rows * image.columns, None),
        // The edges of one node are a row.
        Scene::Graph(graph) => scene.maps().iter().map(|map| of_edges(map, &graph.edges)).collect(),
    }
}

/// How many columns a row is further; none where there is one row, which has no place.
fn slope(rows: usize, columns: usize) -> Option<f64> {
    (rows > 1).then(|| columns as f64 / rows as f64)
}

fn entropy(weights: impl Iterator<Item = f64>) -> f64 {
    weights.filter(|&w| w > 0.0).map(|w| -w * w.ln()).sum()
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

fn of_rows(map: &Map, width: usize, slope: Option<f64>) -> Measures {
    let (mut entropies, mut distances) = (Vec::new(), Vec::new());
    let (mut diagonal, mut all) = (0.0, 0.0);
    for (row, weights) in map.weights.chunks(width.max(1)).enumerate() {
        let weights: Vec<f64> =
            weights.iter().map(|&w| if w.is_finite() { f64::from(w) } else { 0.0 }).collect();
        let sum: f64 = weights.iter().sum();
        if sum <= 0.0 {
            continue;
        }
        entropies.push(entropy(weights.iter().map(|w| w / sum)));
        let Some(slope) = slope else { continue };
        // The middle of the row, among the columns.
        let place = (row as f64 + 0.5) * slope - 0.5;
        let far = weights.iter().enumerate().map(|(column, w)| w * (column as f64 - place).abs());
        distances.push(far.sum::<f64>() / sum);
        diagonal += weights.get(place.round().max(0.0) as usize).copied().unwrap_or(0.0);
        all += sum;
    }
    Measures {
        entropy: mean(&entropies),
        distance: mean(&distances),
        diagonal: (all > 0.0).then(|| diagonal / all),
    }
}

fn of_edges(map: &Map, edges: &[(usize, usize)]) -> Measures {
    let nodes = edges.iter().map(|&(from, _)| from + 1).max().unwrap_or(0);
    let mut rows = vec![Vec::new(); nodes];
    let (mut own, mut all) = (0.0, 0.0);
    for (&(from, to), &weight) in edges.iter().zip(&map.weights) {
        let weight = if weight.is_finite() { f64::from(weight) } else { 0.0 };
        rows[from].push(weight);
        all += weight;
        own += if from == to { weight } else { 0.0 };
    }
    let sums = |row: &&Vec<f64>| row.iter().sum::<f64>() > 0.0;
    let one = |row: &Vec<f64>| {
        let sum: f64 = row.iter().sum();
        entropy(row.iter().map(|w| w / sum))
    };
    let entropies: Vec<f64> = rows.iter().filter(sums).map(one).collect();
    Measures { entropy: mean(&entropies), distance: None, diagonal: (all > 0.0).then(|| own / all) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use regard_picture::scene::Maps;

    fn of(weights: Vec<f32>, rows: usize, columns: usize) -> Measures {
        let names = |n: usize| (0..n).map(|i| i.to_string()).collect();
        let scene = Scene::Maps(Maps {
            row_axis: String::new(),
            column_axis: String::new(),
            rows: names(rows),
            columns: names(columns),
            maps: vec![Map::new("head", weights)],
        });
        measures(&scene)[0]
    }

    #[test]
    fn the_identity_lies_on_the_diagonal_and_even_weights_have_the_greatest_entropy() {
        let identity = of(vec![1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0], 3, 3);
        assert_eq!(
            identity,
            Measures { entropy: Some(0.0), distance: Some(0.0), diagonal: Some(1.0) }
        );
        let even = of(vec![0.25; 16], 4, 4);
        assert!((even.entropy.unwrap_or(0.0) - 4f64.ln()).abs() < 1e-9);
        // |0−0|+1+2+3, 1+0+1+2, … over four: 1.5, 1, 1, 1.5
        assert!((even.distance.unwrap_or(0.0) - 1.25).abs() < 1e-9);
        assert!((even.diagonal.unwrap_or(0.0) - 0.25).abs() < 1e-9);
    }

    #[test]
    fn hops_over_sentences_are_measured_hop_by_hop() {
        let scene = Scene::Maps(Maps {
            row_axis: "sentence".into(),
            column_axis: String::new(),
            rows: vec!["a".into(), "b".into()],
            columns: vec!["hop 1".into(), "hop 2".into(), "hop 3".into()],
            maps: vec![Map::new("weight", vec![1.0, 0.5, 0.0, 0.0, 0.5, 1.0])],
        });
        let measured = measures(&scene)[0];
        assert!((measured.entropy.unwrap_or(0.0) - 2f64.ln() / 3.0).abs() < 1e-9);
        assert_eq!((measured.distance, measured.diagonal), (None, None));
    }

    #[test]
    fn a_row_without_weights_says_nothing_and_neither_does_a_single_row_of_distance() {
        assert_eq!(of(vec![0.0; 4], 2, 2).entropy, None);
        assert_eq!(of(vec![0.5, 0.5], 1, 2).distance, None);
    }
}
