//! Attention with a learned query in ONNX's operators.

use super::graph::{Attribute, Graph, Kind};
use super::layers::no_onnx;
use regard::attention::{BilinearScale, MechanismConfig, ScoreConfig, Weighting};
use regard_data::{Error, Result};

/// The weights `[B, N]` of vectors `[B, N, D]` under the learned query; 0 where there is no vector.
pub(super) fn weights(
    graph: &mut Graph,
    config: &MechanismConfig,
    x: &str,
    there: &str,
) -> Result<String> {
    let scores = scores(graph, &config.score, x)?;
    let weights = match config.weighting {
        Weighting::Softmax | Weighting::Gumbel => {
            let hidden = graph.keep(there, &scores, -1e30);
            graph.op("Softmax", &[&hidden], &[("axis", Attribute::Int(-1))])
        }
        Weighting::Sigmoid => graph.op("Sigmoid", &[&scores], &[]),
        Weighting::None => scores,
        Weighting::Sparsemax => sparse(graph, &scores, there, Power::One),
        Weighting::Entmax15 => sparse(graph, &scores, there, Power::Two),
        other => {
            let name = serde_json::to_string(&other).unwrap_or_default();
            return Err(Error::invalid(format!("hard choices ({name}) do not become ONNX")));
        }
    };
    Ok(graph.keep(there, &weights, 0.0))
}

/// What a sparse weight is of its score's distance to the threshold.
#[derive(Clone, Copy, PartialEq)]
enum Power {
    /// Sparsemax: the distance itself.
    One,
    /// 1.5-entmax: its square, scores being halved.
    Two,
}

/// Sparse weights, by the threshold that follows from the sorted scores (Martins and Astudillo 2016,
/// Peters, Niculae and Martins 2019).
fn sparse(graph: &mut Graph, scores: &str, there: &str, power: Power) -> String {
    let scores = match power {
        Power::One => scores.to_owned(),
        Power::Two => graph.scale(scores, 0.5),
    };
    let greatest = graph.keep(there, &scores, -1e30);
    let options = [("axes", Attribute::Ints(&[-1])), ("keepdims", Attribute::Int(1))];
    let greatest = graph.op("ReduceMax", &[&greatest], &options);
    let scores = graph.op("Sub", &[&scores, &greatest], &[]);
    // No threshold lies more than 1 below the greatest; squares of what is hidden must stay finite.
    let scores = graph.keep(there, &scores, -1e4);
    let n = graph.size(&scores, 1);
    let count = graph.unsqueeze(&n, &[0]);
    let sorted = graph.ops("TopK", &[&scores, &count], &[("axis", Attribute::Int(1))], 2);
    let sorted = sorted[0].clone();
    let (axis, one) = (graph.int(1), graph.float(1.0));
    let places = graph.range(&n);
    let places = graph.cast(&places, Kind::Float);
    let places = graph.add(&places, &one);
    let sum = graph.op("CumSum", &[&sorted, &axis], &[]);
    let mean = graph.op("Div", &[&sum, &places], &[]);
    let thresholds = match power {
        Power::One => {
            let share = graph.op("Div", &[&one, &places], &[]);
            graph.op("Sub", &[&mean, &share], &[])
        }
        Power::Two => {
            let squares = graph.mul(&sorted, &sorted);
            let squares = graph.op("CumSum", &[&squares, &axis], &[]);
            let of_mean = graph.mul(&sum, &mean);
            let spread = graph.op("Sub", &[&squares, &of_mean], &[]);
            let rest = graph.op("Sub", &[&one, &spread], &[]);
            let rest = graph.op("Div", &[&rest, &places], &[]);
            let rest = graph.op("Relu", &[&rest], &[]);
            let root = graph.op("Sqrt", &[&rest], &[]);
            graph.op("Sub", &[&mean, &root], &[])
        }
    };
    // The threshold of as many as lie above the one they give.
    let is_above = graph.op("Less", &[&thresholds, &sorted], &[]);
    let above = graph.cast(&is_above, Kind::Int64);
    let above = graph.sum(&above, 1);
    let above = graph.unsqueeze(&above, &[1]);
    let last = graph.int(1);
    let last = graph.op("Sub", &[&above, &last], &[]);
    let threshold =
        graph.op("GatherElements", &[&thresholds, &last], &[("axis", Attribute::Int(1))]);
    let distance = graph.op("Sub", &[&scores, &threshold], &[]);
    let distance = graph.op("Relu", &[&distance], &[]);
    match power {
        Power::One => distance,
        Power::Two => graph.mul(&distance, &distance),
    }
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
                other => return Err(no_onnx(other)),
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
            return Err(Error::invalid("a custom score cannot be exported to ONNX"));
        }
        other => return Err(no_onnx(other)),
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
