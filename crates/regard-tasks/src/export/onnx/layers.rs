//! Encoders and the blocks of a Transformer in ONNX's operators.

use super::graph::{Attribute, Graph, Kind};
use regard::attention::{ScoreConfig, Weighting};
use regard::layers::{
    Activation, Cell, ConvolutionConfig, EncoderConfig, Position, RecurrentConfig,
    TransformerConfig, alibi_slopes,
};
use regard_data::{Error, Result};

/// What hides a key: no exponential is left of it, and no NaN where all are hidden.
const HIDDEN: f32 = -1e30;

/// What an encoder gives.
pub(super) struct Encoded {
    /// `[B, N, width]`, 0 past the lengths.
    pub(super) out: String,
    /// A recurrent network's last states.
    pub(super) last: Option<String>,
}

/// True where there is a vector, `[B, N]`, with further axes of 1.
pub(super) fn keep(graph: &mut Graph, lengths: &str, n: &str, axes: &[i64]) -> String {
    let (places, lengths) = (graph.range(n), graph.unsqueeze(lengths, &[1]));
    let there = graph.op("Less", &[&places, &lengths], &[]);
    if axes.is_empty() { there } else { graph.unsqueeze(&there, axes) }
}

/// Vectors `[B, N, D]` of these lengths, encoded.
pub(super) fn encoder(
    graph: &mut Graph,
    config: &EncoderConfig,
    at: &str,
    x: &str,
    lengths: &str,
) -> Result<Encoded> {
    let out = match config {
        EncoderConfig::None => {
            let n = graph.size(x, 1);
            let there = keep(graph, lengths, &n, &[2]);
            graph.keep(&there, x, 0.0)
        }
        EncoderConfig::Recurrent(config) => return recurrent(graph, config, at, x, lengths),
        EncoderConfig::Cnn(config) => convolution(graph, config, at, x, lengths)?,
        EncoderConfig::FullyConnected(_) => {
            return Err(Error::invalid("a fully connected encoder has no form in ONNX here"));
        }
        EncoderConfig::SelfAttention(_) => {
            return Err(Error::invalid("bare self-attention does not become ONNX"));
        }
        EncoderConfig::Transformer(config) => transformer(graph, config, at, x, lengths)?,
        other => return Err(no_onnx(other)),
    };
    Ok(Encoded { out, last: None })
}

pub(super) fn activated(graph: &mut Graph, x: &str, activation: Activation) -> Result<String> {
    Ok(match activation {
        Activation::Identity => x.to_owned(),
        Activation::Relu => graph.op("Relu", &[x], &[]),
        Activation::Tanh => graph.op("Tanh", &[x], &[]),
        Activation::Sigmoid => graph.op("Sigmoid", &[x], &[]),
        Activation::Exp => graph.op("Exp", &[x], &[]),
        Activation::LeakyRelu { slope } => {
            graph.op("LeakyRelu", &[x], &[("alpha", Attribute::Float(slope as f32))])
        }
        Activation::Elu { alpha } => {
            graph.op("Elu", &[x], &[("alpha", Attribute::Float(alpha as f32))])
        }
        Activation::Silu => {
            let share = graph.op("Sigmoid", &[x], &[]);
            graph.mul(x, &share)
        }
        Activation::Gelu => {
            let erf = graph.scale(x, std::f32::consts::FRAC_1_SQRT_2);
            let erf = graph.op("Erf", &[&erf], &[]);
            let one = graph.float(1.0);
            let sum = graph.add(&erf, &one);
            let half = graph.scale(x, 0.5);
            graph.mul(&half, &sum)
        }
        Activation::GeluTanh => {
            let square = graph.mul(x, x);
            let cube = graph.mul(&square, x);
            let cube = graph.scale(&cube, 0.044_715);
            let inner = graph.add(x, &cube);
            let inner = graph.scale(&inner, 2.0 * 0.797_884_6);
            let share = graph.op("Sigmoid", &[&inner], &[]);
            graph.mul(x, &share)
        }
        other => return Err(no_onnx(&other)),
    })
}

/// The refusal of a choice that came to the library later than here.
pub(super) fn no_onnx(choice: &impl std::fmt::Debug) -> Error {
    Error::invalid(format!("{choice:?} does not become ONNX"))
}

pub(super) fn normed(graph: &mut Graph, x: &str, name: &str, eps: f64) -> Result<String> {
    let (weight, bias) =
        (graph.weight(&format!("{name}weight"))?, graph.weight(&format!("{name}bias"))?);
    let options = [("axis", Attribute::Int(-1)), ("epsilon", Attribute::Float(eps as f32))];
    Ok(graph.op("LayerNormalization", &[x, &weight, &bias], &options))
}

/// sin(t · rate + phase) for the places t below n: `[n, rates]`. In double precision, as far places
/// times a rate need it.
fn waves(graph: &mut Graph, n: &str, rates: &[f64], phases: &[f64]) -> String {
    let places = graph.range(n);
    let places = graph.cast(&places, Kind::Double);
    let places = graph.unsqueeze(&places, &[1]);
    let rates = graph.doubles(rates, &[1, rates.len()]);
    let phases = graph.doubles(phases, &[1, phases.len()]);
    let angles = graph.mul(&places, &rates);
    let angles = graph.add(&angles, &phases);
    let waves = graph.op("Sin", &[&angles], &[]);
    graph.cast(&waves, Kind::Float)
}

/// Places that are added to the input.
fn placed(
    graph: &mut Graph,
    x: &str,
    position: Position,
    at: &str,
    width: usize,
) -> Result<String> {
    let n = graph.size(x, 1);
    let places = match position {
        Position::Sinusoidal => {
            let rates: Vec<f64> = (0..width)
                .map(|d| 1.0 / 10000f64.powf((d / 2 * 2) as f64 / width as f64))
                .collect();
            let cosine = |d: usize| if d % 2 == 1 { std::f64::consts::FRAC_PI_2 } else { 0.0 };
            waves(graph, &n, &rates, &(0..width).map(cosine).collect::<Vec<_>>())
        }
        Position::Learned => {
            let all = graph.weight(&format!("{at}positions"))?;
            let (from, to, axes) = (graph.ints(&[0]), graph.unsqueeze(&n, &[0]), graph.ints(&[0]));
            graph.op("Slice", &[&all, &from, &to, &axes], &[])
        }
        _ => return Ok(x.to_owned()),
    };
    Ok(graph.add(x, &places))
}

fn transformer(
    graph: &mut Graph,
    config: &TransformerConfig,
    at: &str,
    x: &str,
    lengths: &str,
) -> Result<String> {
    let c = config;
    if c.score != ScoreConfig::ScaledDot
        || c.weighting != Weighting::Softmax
        || c.key_heads.is_some()
        || c.head_key_width.is_some()
        || c.head_value_width.is_some()
        || !c.bias
        || c.causal
    {
        return Err(Error::invalid(
            "only Transformers with the scaled dot, softmax, biases and as many key heads as heads, of their \
             usual width, which see both sides, become ONNX",
        ));
    }
    let n = graph.size(x, 1);
    let there = keep(graph, lengths, &n, &[2]);
    let mut x = graph.keep(&there, x, 0.0);
    if graph.values(&format!("{at}input.weight")).is_ok() {
        x = graph.linear(&x, &format!("{at}input."), true)?;
    }
    x = placed(graph, &x, c.position, at, c.width)?;
    let scores = Scores::of(graph, c, &n, lengths);
    let block = Block {
        width: c.width,
        heads: c.heads,
        norm_first: c.norm_first,
        activation: c.activation,
        eps: c.eps,
    };
    if c.norm_input {
        x = normed(graph, &x, &format!("{at}input_norm."), c.eps)?;
    }
    for layer in 0..c.layers {
        x = block.forward(graph, &format!("{at}layers.{layer}."), &x, &scores)?;
    }
    if c.norm_first {
        x = normed(graph, &x, &format!("{at}norm."), c.eps)?;
    }
    Ok(graph.keep(&there, &x, 0.0))
}

/// What all blocks do to their scores.
#[derive(Default)]
pub(super) struct Scores {
    /// True where a key may be seen: broadcasts to `[B, H, N, N]`.
    seen: Option<String>,
    /// Added to the scores.
    bias: Option<String>,
    /// Cosines and sines that queries and keys are turned by.
    turns: Option<[String; 2]>,
    /// How far a learned bias by distance reaches, and the distances in it.
    relative: Option<String>,
}

impl Scores {
    fn of(graph: &mut Graph, c: &TransformerConfig, n: &str, lengths: &str) -> Self {
        let mut seen = keep(graph, lengths, n, &[1, 2]);
        let places = graph.range(n);
        let (across, down) = (graph.unsqueeze(&places, &[0]), graph.unsqueeze(&places, &[1]));
        let distance = graph.op("Sub", &[&across, &down], &[]);
        let far = graph.op("Abs", &[&distance], &[]);
        if let Some(window) = c.window {
            let window = graph.int(window as i64);
            let near = graph.op("LessOrEqual", &[&far, &window], &[]);
            seen = graph.op("And", &[&seen, &near], &[]);
        }
        let bias = (c.position == Position::Alibi).then(|| {
            let slopes: Vec<f32> =
                alibi_slopes(c.heads).iter().map(|&slope| -slope as f32).collect();
            let slopes = graph.floats(&slopes, &[c.heads, 1, 1]);
            let far = graph.cast(&far, Kind::Float);
            graph.mul(&slopes, &far)
        });
        let relative = (c.position == Position::Relative).then(|| {
            let most = c.max_distance as i64;
            let (low, high) = (graph.int(-most), graph.int(most));
            let near = graph.op("Max", &[&distance, &low], &[]);
            let near = graph.op("Min", &[&near, &high], &[]);
            graph.add(&near, &high)
        });
        let turns = (c.position == Position::Rotary).then(|| {
            let (head, half) = (c.width / c.heads, c.width / c.heads / 2);
            let rate = |i: usize| 1.0 / 10000f64.powf((2 * i) as f64 / head as f64);
            let rates: Vec<f64> = (0..half).map(rate).collect();
            let cosines = vec![std::f64::consts::FRAC_PI_2; half];
            [waves(graph, n, &rates, &cosines), waves(graph, n, &rates, &vec![0.0; half])]
        });
        Self { seen: Some(seen), bias, turns, relative }
    }
}

/// A block of a Transformer.
pub(super) struct Block {
    pub(super) width: usize,
    pub(super) heads: usize,
    pub(super) norm_first: bool,
    pub(super) activation: Activation,
    pub(super) eps: f64,
}

impl Block {
    pub(super) fn forward(
        &self,
        graph: &mut Graph,
        at: &str,
        x: &str,
        scores: &Scores,
    ) -> Result<String> {
        let [first, second] = ["norm1.", "norm2."].map(|norm| format!("{at}{norm}"));
        if self.norm_first {
            let y = normed(graph, x, &first, self.eps)?;
            let y = self.attention(graph, &format!("{at}self_attn."), &y, scores)?;
            let x = graph.add(x, &y);
            let y = normed(graph, &x, &second, self.eps)?;
            let y = self.feed(graph, at, &y)?;
            return Ok(graph.add(&x, &y));
        }
        let y = self.attention(graph, &format!("{at}self_attn."), x, scores)?;
        let x = graph.add(x, &y);
        let x = normed(graph, &x, &first, self.eps)?;
        let y = self.feed(graph, at, &x)?;
        let x = graph.add(&x, &y);
        normed(graph, &x, &second, self.eps)
    }

    fn feed(&self, graph: &mut Graph, at: &str, x: &str) -> Result<String> {
        let x = graph.linear(x, &format!("{at}linear1."), true)?;
        let x = activated(graph, &x, self.activation)?;
        graph.linear(&x, &format!("{at}linear2."), true)
    }

    fn attention(&self, graph: &mut Graph, at: &str, x: &str, scores: &Scores) -> Result<String> {
        let weight = graph.weight(&format!("{at}in_proj_weight"))?;
        let bias = graph.weight(&format!("{at}in_proj_bias"))?;
        let all = graph.product(x, &weight, Some(&bias));
        let sizes = graph.ints(&[self.width as i64; 3]);
        let parts = graph.ops("Split", &[&all, &sizes], &[("axis", Attribute::Int(-1))], 3);
        let head = self.width / self.heads;
        let heads: Vec<String> = parts
            .iter()
            .map(|part| {
                let part = graph.reshape(part, &[0, 0, self.heads as i64, head as i64]);
                graph.transpose(&part, &[0, 2, 1, 3])
            })
            .collect();
        let [mut q, mut k, v] = [heads[0].clone(), heads[1].clone(), heads[2].clone()];
        if let Some(turns) = &scores.turns {
            [q, k] = [q, k].map(|x| turned(graph, &x, turns, head as i64 / 2));
        }
        let k = graph.transpose(&k, &[0, 1, 3, 2]);
        let s = graph.matmul(&q, &k);
        let mut s = graph.scale(&s, 1.0 / (head as f32).sqrt());
        if let Some(bias) = &scores.bias {
            s = graph.add(&s, bias);
        }
        if let Some(places) = &scores.relative {
            let table = graph.weight(&format!("{at}relative"))?;
            let bias = graph.op("Gather", &[&table, places], &[("axis", Attribute::Int(1))]);
            s = graph.add(&s, &bias);
        }
        if let Some(seen) = &scores.seen {
            s = graph.keep(seen, &s, HIDDEN);
        }
        let weights = graph.op("Softmax", &[&s], &[("axis", Attribute::Int(-1))]);
        let out = graph.matmul(&weights, &v);
        let out = graph.transpose(&out, &[0, 2, 1, 3]);
        let out = graph.reshape(&out, &[0, 0, self.width as i64]);
        graph.linear(&out, &format!("{at}out_proj."), true)
    }
}

/// Pairs of features turned by their place.
fn turned(graph: &mut Graph, x: &str, [cos, sin]: &[String; 2], half: i64) -> String {
    let sizes = graph.ints(&[half, half]);
    let parts = graph.ops("Split", &[x, &sizes], &[("axis", Attribute::Int(-1))], 2);
    let [a, b] = [&parts[0], &parts[1]];
    let [ac, bs, as_, bc] =
        [(a, cos), (b, sin), (a, sin), (b, cos)].map(|(x, by)| graph.mul(x, by));
    let first = graph.op("Sub", &[&ac, &bs], &[]);
    let second = graph.add(&as_, &bc);
    graph.concat(&[&first, &second], -1)
}

fn convolution(
    graph: &mut Graph,
    config: &ConvolutionConfig,
    at: &str,
    x: &str,
    lengths: &str,
) -> Result<String> {
    let n = graph.size(x, 1);
    let there = keep(graph, lengths, &n, &[2]);
    let x = graph.linear(x, &format!("{at}input."), true)?;
    let x = placed(graph, &x, config.position, at, config.width)?;
    let mut x = graph.keep(&there, &x, 0.0);
    let half = (config.kernel / 2) as i64;
    for layer in 0..config.layers {
        let weight = graph.weight(&format!("{at}layers.{layer}.weight"))?;
        let bias = graph.weight(&format!("{at}layers.{layer}.bias"))?;
        let columns = graph.transpose(&x, &[0, 2, 1]);
        let pads = [("pads", Attribute::Ints(&[half, half]))];
        let y = graph.op("Conv", &[&columns, &weight, &bias], &pads);
        let y = graph.transpose(&y, &[0, 2, 1]);
        let y = activated(graph, &y, config.activation)?;
        let sum = graph.add(&x, &y);
        let sum = graph.scale(&sum, 0.5f32.sqrt());
        x = graph.keep(&there, &sum, 0.0);
    }
    Ok(x)
}

/// ONNX has gates in another order: where each of its gates stands among PyTorch's.
fn gates(cell: Cell) -> (&'static str, &'static [usize]) {
    match cell {
        Cell::Rnn | Cell::RnnRelu => ("RNN", &[0]),
        Cell::Gru => ("GRU", &[1, 0, 2]),
        Cell::Lstm => ("LSTM", &[0, 3, 1, 2]),
    }
}

fn recurrent(
    graph: &mut Graph,
    config: &RecurrentConfig,
    at: &str,
    x: &str,
    lengths: &str,
) -> Result<Encoded> {
    let (operator, order) = gates(config.cell);
    let directions = if config.both_directions { 2 } else { 1 };
    let zero = graph.int(0);
    let some = graph.op("Greater", &[lengths, &zero], &[]);
    let one = graph.int(1);
    let at_least_one = graph.op("Max", &[lengths, &one], &[]);
    let steps = graph.cast(&at_least_one, Kind::Int32);
    let mut x = graph.transpose(x, &[1, 0, 2]);
    let mut last = String::new();
    for layer in 0..config.layers {
        let ordered = |graph: &mut Graph, names: &[&str]| -> Result<String> {
            let mut values = Vec::new();
            let mut columns = 1;
            for suffix in ["", "_reverse"].iter().take(directions) {
                for name in names {
                    let (numbers, shape) = graph.values(&format!("{at}{name}_l{layer}{suffix}"))?;
                    columns = shape.get(1).copied().unwrap_or(1);
                    let gate = config.hidden * columns;
                    order.iter().for_each(|&at| values.extend(&numbers[at * gate..][..gate]));
                }
            }
            let rows = values.len() / directions / columns;
            let shape: &[usize] = match names.len() {
                1 => &[directions, rows, columns],
                _ => &[directions, rows],
            };
            Ok(graph.floats(&values, shape))
        };
        let w = ordered(graph, &["weight_ih"])?;
        let r = ordered(graph, &["weight_hh"])?;
        let b = ordered(graph, &["bias_ih", "bias_hh"])?;
        let direction = if config.both_directions { "bidirectional" } else { "forward" };
        let mut options = vec![
            ("hidden_size", Attribute::Int(config.hidden as i64)),
            ("direction", Attribute::Text(direction)),
        ];
        if config.cell == Cell::Gru {
            options.push(("linear_before_reset", Attribute::Int(1)));
        }
        let relu = vec!["Relu"; directions];
        if config.cell == Cell::RnnRelu {
            options.push(("activations", Attribute::Texts(&relu)));
        }
        let outputs = graph.ops(operator, &[&x, &w, &r, &b, &steps], &options, 2);
        // [N, directions, B, H] → [N, B, directions · H]
        let y = graph.transpose(&outputs[0], &[0, 2, 1, 3]);
        x = graph.reshape(&y, &[0, 0, -1]);
        last = graph.transpose(&outputs[1], &[1, 0, 2]);
        last = graph.reshape(&last, &[0, -1]);
    }
    let out = graph.transpose(&x, &[1, 0, 2]);
    let n = graph.size(&out, 1);
    let there = keep(graph, lengths, &n, &[2]);
    let out = graph.keep(&there, &out, 0.0);
    let some = graph.unsqueeze(&some, &[1]);
    Ok(Encoded { out, last: Some(graph.keep(&some, &last, 0.0)) })
}
