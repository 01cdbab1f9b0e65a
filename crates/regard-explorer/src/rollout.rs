//! Attention rollout: what flows from the input to each place through all layers (Abnar and Zuidema
//! 2020).
//!
//! R₀ = I and Rₗ = (½ Aₗ + ½ I) · Rₗ₋₁, with the heads' mean for A and its rows summing to 1; the half
//! is the residual connection.

use regard::attention::Site;
use regard::tensor::Tensor;
use regard_picture::scene::{Map, Scene};
use std::collections::BTreeMap;

/// The rollout of a scene of self-attention; none where it is another scene, or one layer alone.
pub(crate) fn rollout(scene: &Scene) -> Option<Map> {
    let Scene::Maps(maps) = scene else { return None };
    let n = maps.columns.len();
    if maps.rows.len() != n || n == 0 {
        return None;
    }
    let mut layers: BTreeMap<usize, Vec<&Map>> = BTreeMap::new();
    for map in &maps.maps {
        let place = map.place.filter(|place| place.site == Site::Encoder && place.row == 0)?;
        if map.weights.len() != n * n {
            return None;
        }
        layers.entry(place.layer).or_default().push(map);
    }
    if layers.len() < 2 {
        return None;
    }
    let matrix = |numbers: Vec<f32>| Tensor::from_vec(numbers, &[n, n]).ok();
    let mut flow = matrix(identity(n))?;
    for heads in layers.values() {
        flow = matrix(mixed(heads, n))?.matmul(&flow).ok()?;
    }
    Some(Map::new("rollout", flow.to_vec().ok()?))
}

fn identity(n: usize) -> Vec<f32> {
    let mut all = vec![0.0; n * n];
    all.iter_mut().step_by(n + 1).for_each(|one| *one = 1.0);
    all
}

/// ½ of the heads' mean, its rows summing to 1, and ½ of the identity.
fn mixed(heads: &[&Map], n: usize) -> Vec<f32> {
    let mut all = vec![0.0; n * n];
    for head in heads {
        let finite = |w: f32| if w.is_finite() { w } else { 0.0 };
        all.iter_mut().zip(&head.weights).for_each(|(sum, &w)| *sum += finite(w));
    }
    for (row, weights) in all.chunks_mut(n).enumerate() {
        let sum: f32 = weights.iter().sum();
        if sum > 0.0 {
            weights.iter_mut().for_each(|w| *w *= 0.5 / sum);
            weights[row] += 0.5;
        } else {
            // Nothing is attended to: only the residual is left.
            weights[row] = 1.0;
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use regard_picture::scene::{Maps, Place};

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
