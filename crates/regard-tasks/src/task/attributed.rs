//! What attention says of the parts of an input: its weights, these times their gradients, and the
//! weights of all layers together.

use regard::Tensor;
use regard::attention::{Recorded, Site, Traced};
use regard::tensor::{DType, Gradients};
use regard_data::{Error, Result};
use std::collections::BTreeMap;

/// Attentions whose columns are the parts of what is read, the nearest to the output first.
const SITES: [Site; 4] = [Site::Cross, Site::Pooling, Site::Hops, Site::Encoder];

/// The mean weight of each part: over the rows, heads and layers of the attention that is nearest to the
/// output.
pub(crate) fn attention(calls: &[Traced], parts: usize) -> Result<Vec<f64>> {
    nearest(&here(calls, parts)?, parts, &SITES).and_then(|found| found.ok_or_else(nothing))
}

/// Each weight times its gradient, summed over rows and heads of all attentions that look at the parts.
pub(crate) fn attention_gradient(
    calls: &[Traced],
    gradients: &Gradients,
    parts: usize,
) -> Result<Vec<f64>> {
    let mut all = vec![0.0; parts];
    for traced in here(calls, parts)? {
        let (Some(weights), Some(gradient)) =
            (traced.call.weights.as_ref(), traced.gradient(gradients)?)
        else {
            continue;
        };
        let product = numbers(&weights.mul(&gradient.to_dtype(weights.dtype())?)?)?;
        for row in product.chunks(parts) {
            all.iter_mut().zip(row).for_each(|(sum, value)| *sum += value);
        }
    }
    Ok(all)
}

/// The rollout of the encoder's layers, R₀ = I and Rₗ = (½ Aₗ + ½ I) · Rₗ₋₁, its rows weighted as the
/// attention that is nearest to the output weights them; by the mean where there is none.
pub(crate) fn rollout(calls: &[Traced], parts: usize) -> Result<Vec<f64>> {
    let here = here(calls, parts)?;
    let mut layers: BTreeMap<usize, &Recorded> = BTreeMap::new();
    for call in here.iter().map(|traced| &traced.call).filter(|call| call.site == Site::Encoder) {
        layers.insert(call.layer, call);
    }
    if layers.is_empty() {
        return Err(Error::invalid(
            "a rollout follows self-attention through the layers that read; this model has none",
        ));
    }
    let seen = nearest(&here, parts, &SITES[..3])?;
    let mut row = seen.unwrap_or_else(|| vec![1.0 / parts as f64; parts]);
    // From the last layer down to the first.
    for call in layers.values().rev() {
        let mean = mean_of_heads(call, parts)?;
        let mut next: Vec<f64> = row.iter().map(|weight| 0.5 * weight).collect();
        for (from, weights) in mean.chunks(parts).enumerate() {
            let sum: f64 = weights.iter().sum();
            match sum > 0.0 {
                true => {
                    let add =
                        |(to, weight): (&mut f64, &f64)| *to += 0.5 * row[from] * weight / sum;
                    next.iter_mut().zip(weights).for_each(add);
                }
                // Nothing is attended to: only the residual connection is left.
                false => next[from] += 0.5 * row[from],
            }
        }
        row = next;
    }
    Ok(row)
}

/// The heads' mean of an attention of parts to parts, row by row.
fn mean_of_heads(call: &Recorded, parts: usize) -> Result<Vec<f64>> {
    let weights = call.weights.as_ref().ok_or_else(nothing)?;
    if weights.shape()[2] != parts || call.row != 0 {
        return Err(Error::invalid(
            "a rollout wants every part to attend to every part at once; here they do so one by one",
        ));
    }
    numbers(&weights.mean(1)?)
}

/// The calls whose columns are the parts; refuses where there are none.
fn here(calls: &[Traced], parts: usize) -> Result<Vec<&Traced>> {
    let reads = |traced: &&Traced| SITES.contains(&traced.call.site);
    let all: Vec<&Traced> = calls.iter().filter(reads).collect();
    if all.is_empty() {
        return Err(nothing());
    }
    let columns = |traced: &Traced| {
        let weights = traced.call.weights.as_ref()?;
        (weights.shape()[0] == 1).then(|| weights.shape()[3])
    };
    let found: Vec<&Traced> =
        all.iter().copied().filter(|traced| columns(traced) == Some(parts)).collect();
    if found.is_empty() {
        let columns = all.iter().find_map(|traced| columns(traced)).unwrap_or(0);
        return Err(Error::invalid(format!(
            "the input has {parts} parts and attention {columns} columns, so that it does not say which \
             part matters; gradients do"
        )));
    }
    Ok(found)
}

/// The mean over rows, heads and layers of the first of some attentions that is there.
fn nearest(calls: &[&Traced], parts: usize, sites: &[Site]) -> Result<Option<Vec<f64>>> {
    let is_there = |site: &&Site| calls.iter().any(|traced| traced.call.site == **site);
    let Some(site) = sites.iter().find(is_there) else { return Ok(None) };
    let (mut all, mut rows) = (vec![0.0; parts], 0);
    for traced in calls.iter().filter(|traced| traced.call.site == *site) {
        let Some(weights) = &traced.call.weights else { continue };
        for row in numbers(weights)?.chunks(parts) {
            all.iter_mut().zip(row).for_each(|(sum, weight)| *sum += weight);
            rows += 1;
        }
    }
    all.iter_mut().for_each(|sum| *sum /= rows.max(1) as f64);
    Ok(Some(all))
}

fn numbers(x: &Tensor) -> Result<Vec<f64>> {
    Ok(x.to_dtype(DType::F64)?.contiguous()?.to_vec::<f64>()?)
}

fn nothing() -> Error {
    Error::invalid("this model has no attention that looks at its input")
}
