//! Attention with a learned query in ONNX's operators.

use super::graph::{Attribute, Graph};
use crate::{Error, Result};
use regard::attention::{BilinearScale, MechanismConfig, ScoreConfig, Weighting};

/// The weights `[B, N]` of vectors `[B, N, D]` under the learned query; 0 where there is no vector.
pub(super) fn weights(
    graph: &mut Graph,
    config: &MechanismConfig,
    x: &str,
    there: &str,
) -> Result<String> {
    let scores = scores(graph, &config.score, x)?;
    let scores = graph.scale(&scores, (1.0 / config.temperature) as f32);
    let weights = match config.weighting {
        Weighting::Softmax | Weighting::Gumbel => {
            let hidden = graph.keep(there, &scores, -1e30);
            graph.op("Softmax", &[&hidden], &[("axis", Attribute::Int(-1))])
        }
        Weighting::Sigmoid => graph.op("Sigmoid", &[&scores], &[]),
        Weighting::None => scores,
        other => {
            let name = serde_json::to_string(&other).unwrap_or_default();
            return Err(Error::invalid(format!(
                "a model that weighs by {name} does not become ONNX; softmax, gumbel, sigmoid and \
                 none do"
            )));
        }
    };
    Ok(graph.keep(there, &weights, 0.0))
}

fn scores(graph: &mut Graph, score: &ScoreConfig, x: &str) -> Result<String> {
    let query = graph.weight("pooling.query")?;
    let (_, shape) = graph.values("pooling.query")?;
    let d = shape[1];
    let at = |name: &str| format!("pooling.mechanism.{name}");
    let dot = |graph: &mut Graph, q: &str, k: &str, scale: f64| {
        let product = graph.mul(q, k);
        let sum = graph.sum(&product, -1);
        graph.scale(&sum, scale as f32)
    };
    Ok(match score {
        ScoreConfig::Dot => dot(graph, &query, x, 1.0),
        ScoreConfig::ScaledDot => dot(graph, &query, x, 1.0 / (d as f64).sqrt()),
        ScoreConfig::Additive { .. } => {
            let q = graph.linear(&query, &at("W_q."), false)?;
            let k = graph.linear(x, &at("W_k."), false)?;
            let sum = graph.add(&q, &k);
            let tanh = graph.op("Tanh", &[&sum], &[]);
            let s = graph.linear(&tanh, &at("w_v."), false)?;
            graph.sum(&s, -1)
        }
        ScoreConfig::LowRank { .. } => {
            let q = graph.linear(&query, &at("V."), false)?;
            let k = graph.linear(x, &at("U."), false)?;
            dot(graph, &q, &k, 1.0)
        }
        ScoreConfig::Bilinear { scale } => {
            let weight = graph.weight(&at("W"))?;
            let q = graph.product(&query, &weight, None);
            let scale = match scale {
                BilinearScale::None => 1.0,
                BilinearScale::Root => 1.0 / (d as f64).sqrt(),
                BilinearScale::FourthRoot => 1.0 / ((d * d) as f64).powf(0.25),
            };
            dot(graph, &q, x, scale)
        }
        ScoreConfig::Concat { hidden } => {
            let name = if hidden.is_some() { "W" } else { "w" };
            let weight = graph.weight(&at(name))?;
            let sizes = graph.ints(&[d as i64; 2]);
            let parts = graph.ops("Split", &[&weight, &sizes], &[("axis", Attribute::Int(1))], 2);
            let q = graph.product(&query, &parts[0], None);
            let k = graph.product(x, &parts[1], None);
            let mut s = graph.add(&q, &k);
            if hidden.is_some() {
                let tanh = graph.op("Tanh", &[&s], &[]);
                let w = graph.weight(&at("w"))?;
                s = graph.product(&tanh, &w, None);
            }
            graph.sum(&s, -1)
        }
        ScoreConfig::Gaussian { inverse_width, learned, .. } => {
            let difference = graph.op("Sub", &[&query, x], &[]);
            let scaled = match learned {
                true => {
                    let w = graph.weight(&at("w"))?;
                    graph.mul(&difference, &w)
                }
                false => graph.scale(&difference, *inverse_width as f32),
            };
            dot(graph, &scaled, &scaled, -0.5)
        }
        ScoreConfig::Cosine { temperature, learned } => {
            let [q, k] = [query.as_str(), x].map(|x| unit(graph, x));
            let s = dot(graph, &q, &k, 1.0);
            match learned {
                true => {
                    let by = graph.weight(&at("temperature"))?;
                    graph.mul(&s, &by)
                }
                false => graph.scale(&s, *temperature as f32),
            }
        }
        ScoreConfig::Expression { .. } | ScoreConfig::Own(_) => {
            return Err(Error::invalid("a score of one's own does not become ONNX"));
        }
    })
}

/// A vector of length 1.
fn unit(graph: &mut Graph, x: &str) -> String {
    let square = graph.mul(x, x);
    let axis = graph.ints(&[-1]);
    let sum = graph.op("ReduceSum", &[&square, &axis], &[("keepdims", Attribute::Int(1))]);
    let little = graph.float(1e-24);
    let sum = graph.add(&sum, &little);
    let length = graph.op("Sqrt", &[&sum], &[]);
    graph.op("Div", &[x, &length], &[])
}
