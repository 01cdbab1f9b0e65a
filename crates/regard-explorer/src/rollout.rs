//! Attention rollout: what flows from the input to each place through all layers (Abnar and Zuidema
//! 2020).
//!
//! R₀ = I and Rₗ = (½ Aₗ + ½ I) · Rₗ₋₁, with the heads' mean for A and its rows summing to 1; the half
//! is the residual connection. In a decoder the columns are what was written before each row, so that the
//! residual connection is its diagonal, too. From what is written to what is read it is the mean of
//! that attention times the rollout of the encoder.

use regard::attention::Site;
use regard::tensor::Tensor;
use regard_picture::scene::{Map, Maps, Scene};
use std::collections::BTreeMap;

/// The rollout of each scene; none where it is another scene, or one layer alone.
pub(crate) fn rollouts(scenes: &[(String, Scene)]) -> Vec<Option<Map>> {
    let encoder = scenes.iter().find_map(|(_, scene)| flow(scene, Site::Encoder));
    let of = |(_, scene): &(String, Scene)| {
        own(scene, Site::Encoder)
            .or_else(|| own(scene, Site::Decoder).map(Map::causal))
            .or_else(|| across(scene, encoder.as_ref()?))
    };
    scenes.iter().map(of).collect()
}

/// The rollout of self-attention of several layers.
fn own(scene: &Scene, site: Site) -> Option<Map> {
    let (flow, layers) = flow(scene, site)?;
    (layers > 1).then_some(Map::new("rollout", flow.to_vec().ok()?))
}

/// The rollout from what is written to what is read, through the encoder's.
fn across(scene: &Scene, (encoder, _): &(Tensor, usize)) -> Option<Map> {
    let Scene::Maps(maps) = scene else { return None };
    let layers = layers_of(maps, Site::Cross)?;
    let (rows, columns) = (maps.rows.len(), maps.columns.len());
    if encoder.shape() != [columns, columns] {
        return None;
    }
    let heads: Vec<&Map> = layers.into_values().flatten().collect();
    let mean = Tensor::from_vec(mean(&heads, columns), &[rows, columns]).ok()?;
    Some(Map::new("rollout", mean.matmul(encoder).ok()?.to_vec().ok()?))
}

/// The maps of an attention by layer; none where there is another, and where rows or columns are cut.
fn layers_of(maps: &Maps, site: Site) -> Option<BTreeMap<usize, Vec<&Map>>> {
    let mut layers: BTreeMap<usize, Vec<&Map>> = BTreeMap::new();
    for map in &maps.maps {
        let place = map.place.filter(|place| place.site == site && place.row == 0)?;
        if map.weights.len() != maps.rows.len() * maps.columns.len() {
            return None;
        }
        layers.entry(place.layer).or_default().push(map);
    }
    (!layers.is_empty()).then_some(layers)
}

/// What flows through the layers of self-attention, and how many these are.
fn flow(scene: &Scene, site: Site) -> Option<(Tensor, usize)> {
    let Scene::Maps(maps) = scene else { return None };
    let n = maps.columns.len();
    if maps.rows.len() != n || n == 0 {
        return None;
    }
    let layers = layers_of(maps, site)?;
    let matrix = |numbers: Vec<f32>| Tensor::from_vec(numbers, &[n, n]).ok();
    let mut flow = matrix(identity(n))?;
    for heads in layers.values() {
        flow = matrix(mixed(heads, n))?.matmul(&flow).ok()?;
    }
    Some((flow, layers.len()))
}

fn identity(n: usize) -> Vec<f32> {
    let mut all = vec![0.0; n * n];
    all.iter_mut().step_by(n + 1).for_each(|one| *one = 1.0);
    all
}

/// The heads' mean, its rows summing to 1; a row that attends to nothing stays 0.
fn mean(heads: &[&Map], columns: usize) -> Vec<f32> {
    let mut all = vec![0.0; heads.first().map_or(0, |head| head.weights.len())];
    for head in heads {
        let finite = |w: f32| if w.is_finite() { w } else { 0.0 };
        all.iter_mut().zip(&head.weights).for_each(|(sum, &w)| *sum += finite(w));
    }
    for weights in all.chunks_mut(columns.max(1)) {
        let sum: f32 = weights.iter().sum();
        if sum > 0.0 {
            weights.iter_mut().for_each(|w| *w /= sum);
        }
    }
    all
}

/// ½ of the heads' mean and ½ of the identity.
fn mixed(heads: &[&Map], n: usize) -> Vec<f32> {
    let mut all = mean(heads, n);
    for (row, weights) in all.chunks_mut(n).enumerate() {
        // Where nothing is attended to, only the residual is left.
        let blank = weights.iter().all(|&w| w == 0.0);
        weights.iter_mut().for_each(|w| *w *= 0.5);
        weights[row] += if blank { 1.0 } else { 0.5 };
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use regard_picture::scene::{Maps, Place};

    fn rollout(scene: &Scene) -> Option<Map> {
        rollouts(&[("attention".into(), scene.clone())]).remove(0)
    }

    fn at(site: Site, rows: usize, columns: usize, layers: &[Vec<f32>]) -> Scene {
        let names = |n: usize| (0..n).map(|i| i.to_string()).collect();
        let map = |(layer, weights): (usize, &Vec<f32>)| {
            Map::new("head", weights.clone()).at(Place::new(site, layer, 0))
        };
        Scene::Maps(Maps {
            row_axis: String::new(),
            column_axis: String::new(),
            rows: names(rows),
            columns: names(columns),
            maps: layers.iter().enumerate().map(map).collect(),
        })
    }

    #[test]
    fn what_is_written_reaches_what_is_read_through_the_encoder() {
        let (a, b) = (vec![0.0, 1.0, 1.0, 0.0], vec![0.5, 0.5, 0.0, 1.0]);
        let cross = [vec![1.0, 0.0, 0.5, 0.5, 0.0, 1.0], vec![0.0, 1.0, 0.5, 0.5, 0.0, 1.0]];
        let scenes = [
            ("alignment".to_string(), at(Site::Cross, 3, 2, &cross)),
            ("encoder".to_string(), at(Site::Encoder, 2, 2, &[a, b.clone()])),
            ("decoder".to_string(), at(Site::Decoder, 2, 2, &[vec![1.0, 0.0, 0.5, 0.5], b])),
        ];
        let rolled = rollouts(&scenes);
        let weights = |at: usize| rolled[at].as_ref().map(|map| map.weights.clone());
        // The mean of the layers, [½ ½; ½ ½; 0 1], times [½ ½; ½ ½].
        assert_eq!(weights(0), Some(vec![0.5; 6]));
        assert_eq!(weights(1), Some(vec![0.5; 4]));
        // [¾ ¼; 0 1] · [1 0; ¼ ¾]
        assert_eq!(weights(2), Some(vec![0.8125, 0.1875, 0.25, 0.75]));
        // Without what the encoder does there is nothing to follow.
        assert_eq!(rollouts(&scenes[..1]), [None]);
    }

    fn scene(layers: &[Vec<f32>]) -> Scene {
        let n = layers[0].len().isqrt();
        let names: Vec<String> = (0..n).map(|i| i.to_string()).collect();
        let map = |(layer, weights): (usize, &Vec<f32>)| {
            Map::new("head", weights.clone()).at(Place::new(Site::Encoder, layer, 0))
        };
        Scene::Maps(Maps {
            row_axis: String::new(),
            column_axis: String::new(),
            rows: names.clone(),
            columns: names,
            maps: layers.iter().enumerate().map(map).collect(),
        })
    }

    #[test]
    fn two_layers_are_the_product_of_their_halves_with_the_identity() {
        let (a, b) = (vec![0.0, 1.0, 1.0, 0.0], vec![0.5, 0.5, 0.0, 1.0]);
        let rolled = rollout(&scene(&[a, b])).map(|map| map.weights);
        // (½B + ½I) · (½A + ½I) = [¾ ¼; 0 1] · [½ ½; ½ ½]
        assert_eq!(rolled, Some(vec![0.5, 0.5, 0.5, 0.5]));
    }

    #[test]
    fn rows_sum_to_one_and_one_layer_alone_has_no_rollout() {
        let a = vec![0.2, 0.3, 0.5, 0.1, 0.1, 0.8, 1.0, 0.0, 0.0];
        let rolled = rollout(&scene(&[a.clone(), a.clone(), a.clone()])).map(|map| map.weights);
        for row in rolled.unwrap_or_default().chunks(3) {
            assert!((row.iter().sum::<f32>() - 1.0).abs() < 1e-6);
        }
        assert_eq!(rollout(&scene(&[a])), None);
    }
}
