//! ONNX files of models that label, classify or look at images.

mod graph;
mod layers;
mod mechanism;

use crate::task::network::Network;
use graph::{Attribute, Graph, Kind, Size};
use layers::{Encoded, activated, encoder, keep, normed};
use regard::Tensor;
use regard::models::{
    CharactersConfig, ClassifierConfig, ClassifierPooling, ConvolutionalConfig, ImagePooling,
    InputConfig, LabelerConfig, VisionTransformerConfig,
};
use regard_data::{Error, Result};
use std::collections::BTreeMap;

/// A network with these weights as an ONNX file. Refuses networks that choose hard or have no
/// operators there, by name.
pub(super) fn onnx(network: &Network, weights: &BTreeMap<String, Tensor>) -> Result<Vec<u8>> {
    let mut graph = Graph::new(weights);
    match network {
        Network::Labeler(config) => labeler(&mut graph, config)?,
        Network::Classifier(config) => classifier(&mut graph, config)?,
        Network::Vision(config) => vision(&mut graph, config)?,
        Network::Convolutional(config) => convolutional(&mut graph, config)?,
        Network::Graph(_)
        | Network::Regression(_)
        | Network::Seq2Seq(_)
        | Network::Memory(_)
        | Network::SpanReader(_) => {
            return Err(Error::invalid("only label, classify and image models become ONNX"));
        }
    }
    Ok(graph.finish("regard"))
}

/// What a reader reads.
struct Read {
    x: String,
    lengths: String,
}

struct Reading<'a> {
    input: &'a InputConfig,
    characters: Option<&'a CharactersConfig>,
    neighbors: usize,
}

fn read(graph: &mut Graph, reading: &Reading) -> Result<Read> {
    let sizes = [Size::Any("batch"), Size::Any("length")];
    let mut x = match *reading.input {
        InputConfig::Tokens { .. } => {
            let ids = graph.input("x", Kind::Int64, &sizes);
            let table = graph.weight("input.weight")?;
            graph.op("Gather", &[&table, &ids], &[])
        }
        InputConfig::Vectors { width } => {
            let [batch, length] = sizes;
            graph.input("x", Kind::Float, &[batch, length, Size::Fixed(width)])
        }
        ref other => return Err(layers::no_onnx(other)),
    };
    let lengths = graph.input("lengths", Kind::Int64, &[Size::Any("batch")]);
    let n = graph.size(&x, 1);
    let there = keep(graph, &lengths, &n, &[2]);
    x = graph.keep(&there, &x, 0.0);
    if let Some(config) = reading.characters {
        let own = characters(graph, config)?;
        x = graph.concat(&[&x, &own], 2);
    }
    if reading.neighbors > 0 {
        x = neighbors(graph, &x, reading.neighbors as i64, &n);
    }
    Ok(Read { x, lengths })
}

/// Each vector between its neighbors.
fn neighbors(graph: &mut Graph, x: &str, reach: i64, n: &str) -> String {
    let pads = graph.ints(&[0, reach, 0, 0, reach, 0]);
    let around = graph.op("Pad", &[x, &pads], &[]);
    let axes = graph.ints(&[1]);
    let views: Vec<String> = (0..=2 * reach)
        .map(|from| {
            let from = graph.int(from);
            let to = graph.add(&from, n);
            let [from, to] = [&from, &to].map(|at| graph.unsqueeze(at, &[0]));
            graph.op("Slice", &[&around, &from, &to, &axes], &[])
        })
        .collect();
    let views: Vec<&str> = views.iter().map(String::as_str).collect();
    graph.concat(&views, 2)
}

/// A vector for each word out of its letters.
fn characters(graph: &mut Graph, config: &CharactersConfig) -> Result<String> {
    let sizes = [Size::Any("batch"), Size::Any("length"), Size::Any("letters")];
    let ids = graph.input("characters", Kind::Int64, &sizes);
    let shape = graph.op("Shape", &[&ids], &[]);
    let letters = graph.size(&ids, 2);
    let rows = graph.unsqueeze(&letters, &[0]);
    let rest = graph.ints(&[-1]);
    let rows = graph.concat(&[&rest, &rows], 0);
    let ids = graph.op("Reshape", &[&ids, &rows], &[]);
    let padding = graph.int(config.padding as i64);
    let is_padding = graph.op("Equal", &[&ids, &padding], &[]);
    let (places, one) = (graph.range(&letters), graph.int(1));
    let places = graph.add(&places, &one);
    let nothing = graph.int(0);
    let places = graph.op("Where", &[&is_padding, &nothing, &places], &[]);
    let lengths = graph.max(&places, 1);
    let table = graph.weight("characters.embedding.weight")?;
    let x = graph.op("Gather", &[&table, &ids], &[]);
    let is_padding = graph.unsqueeze(&is_padding, &[2]);
    let zero = graph.float(0.0);
    let x = graph.op("Where", &[&is_padding, &zero, &x], &[]);
    let Encoded { out, last } =
        encoder(graph, &config.encoder, "characters.encoder.", &x, &lengths)?;
    let words = match last {
        Some(last) => last,
        None => largest(graph, &out, &lengths),
    };
    let (from, to, wide) = (graph.ints(&[0]), graph.ints(&[2]), graph.ints(&[-1]));
    let shape = graph.op("Slice", &[&shape, &from, &to], &[]);
    let shape = graph.concat(&[&shape, &wide], 0);
    Ok(graph.op("Reshape", &[&words, &shape], &[]))
}

/// The largest number of each feature; 0 where there is no vector.
fn largest(graph: &mut Graph, x: &str, lengths: &str) -> String {
    let n = graph.size(x, 1);
    let there = keep(graph, lengths, &n, &[2]);
    let x = graph.keep(&there, x, -1e30);
    let x = graph.max(&x, 1);
    any(graph, &x, lengths)
}

/// 0 where a sequence is empty.
fn any(graph: &mut Graph, x: &str, lengths: &str) -> String {
    let zero = graph.int(0);
    let some = graph.op("Greater", &[lengths, &zero], &[]);
    let some = graph.unsqueeze(&some, &[1]);
    graph.keep(&some, x, 0.0)
}

fn head(graph: &mut Graph, x: &str, hidden: Option<usize>) -> Result<String> {
    let x = match hidden {
        Some(_) => {
            let x = graph.linear(x, "hidden.", true)?;
            graph.op("Relu", &[&x], &[])
        }
        None => x.to_owned(),
    };
    graph.linear(&x, "out.", true)
}

fn labeler(graph: &mut Graph, config: &LabelerConfig) -> Result<()> {
    let reading = Reading {
        input: &config.input,
        characters: config.characters.as_ref(),
        neighbors: config.neighbors.unwrap_or(0),
    };
    let Read { x, lengths } = read(graph, &reading)?;
    let encoded = encoder(graph, &config.encoder, "encoder.", &x, &lengths)?;
    let logits = head(graph, &encoded.out, config.hidden)?;
    let sizes = [Size::Any("batch"), Size::Any("length"), Size::Fixed(config.labels)];
    graph.output(&logits, "output", &sizes);
    Ok(())
}

fn classifier(graph: &mut Graph, config: &ClassifierConfig) -> Result<()> {
    let reading = Reading {
        input: &config.input,
        characters: config.characters.as_ref(),
        neighbors: config.neighbors.unwrap_or(0),
    };
    let Read { x, lengths } = read(graph, &reading)?;
    let one = match &config.pooling {
        ClassifierPooling::ClassToken => {
            let x = with_token(graph, &x, "class_token")?;
            let one = graph.int(1);
            let lengths = graph.add(&lengths, &one);
            let encoded = encoder(graph, &config.encoder, "encoder.", &x, &lengths)?;
            first(graph, &encoded.out)
        }
        pooling => {
            let encoded = encoder(graph, &config.encoder, "encoder.", &x, &lengths)?;
            match (pooling, &encoded.last) {
                (ClassifierPooling::Last, Some(last)) => last.clone(),
                _ => pooled(graph, pooling, &encoded.out, &lengths)?,
            }
        }
    };
    let logits = head(graph, &one, config.hidden)?;
    graph.output(&logits, "output", &[Size::Any("batch"), Size::Fixed(config.classes)]);
    Ok(())
}

/// A learned vector before each sequence.
fn with_token(graph: &mut Graph, x: &str, name: &str) -> Result<String> {
    let batch = graph.size(x, 0);
    let batch = graph.unsqueeze(&batch, &[0]);
    let ones = graph.ints(&[1, 1]);
    let shape = graph.concat(&[&batch, &ones], 0);
    let token = graph.weight(name)?;
    let token = graph.unsqueeze(&token, &[0]);
    let token = graph.op("Expand", &[&token, &shape], &[]);
    Ok(graph.concat(&[&token, x], 1))
}

fn first(graph: &mut Graph, x: &str) -> String {
    let at = graph.int(0);
    graph.op("Gather", &[x, &at], &[("axis", Attribute::Int(1))])
}

fn pooled(
    graph: &mut Graph,
    pooling: &ClassifierPooling,
    x: &str,
    lengths: &str,
) -> Result<String> {
    let n = graph.size(x, 1);
    match pooling {
        ClassifierPooling::Max => Ok(largest(graph, x, lengths)),
        ClassifierPooling::Last => {
            let (one, zero) = (graph.int(1), graph.int(0));
            let at = graph.op("Sub", &[lengths, &one], &[]);
            let at = graph.op("Max", &[&at, &zero], &[]);
            let places = graph.range(&n);
            let at = graph.unsqueeze(&at, &[1]);
            let is_last = graph.op("Equal", &[&places, &at], &[]);
            let is_last = graph.unsqueeze(&is_last, &[2]);
            let x = graph.keep(&is_last, x, 0.0);
            let x = graph.sum(&x, 1);
            Ok(any(graph, &x, lengths))
        }
        ClassifierPooling::Attention(config) => {
            let there = keep(graph, lengths, &n, &[]);
            let weights = mechanism::weights(graph, config, x, &there)?;
            let weights = graph.unsqueeze(&weights, &[2]);
            let weighted = graph.mul(&weights, x);
            Ok(graph.sum(&weighted, 1))
        }
        ClassifierPooling::Queries { .. } => {
            Err(Error::invalid("a pooling with several queries does not become ONNX"))
        }
        ClassifierPooling::Mean | ClassifierPooling::Gate | ClassifierPooling::ClassToken => {
            let x = match pooling {
                ClassifierPooling::Gate => {
                    let gate = graph.linear(x, "pooling.gate.", false)?;
                    let gate = graph.op("Sigmoid", &[&gate], &[]);
                    graph.mul(&gate, x)
                }
                _ => x.to_owned(),
            };
            let (sum, one) = (graph.sum(&x, 1), graph.int(1));
            let count = graph.op("Max", &[lengths, &one], &[]);
            let count = graph.cast(&count, Kind::Float);
            let count = graph.unsqueeze(&count, &[1]);
            Ok(graph.op("Div", &[&sum, &count], &[]))
        }
        other => Err(layers::no_onnx(other)),
    }
}

fn images(graph: &mut Graph, channels: usize, [height, width]: [usize; 2]) -> String {
    let sizes = [channels, height, width].map(Size::Fixed);
    let sizes: Vec<Size> = std::iter::once(Size::Any("batch")).chain(sizes).collect();
    graph.input("images", Kind::Float, &sizes)
}

fn vision(graph: &mut Graph, config: &VisionTransformerConfig) -> Result<()> {
    let c = config;
    let usual = VisionTransformerConfig {
        image: c.image,
        channels: c.channels,
        patch: c.patch,
        classes: c.classes,
        width: c.width,
        depth: c.depth,
        heads: c.heads,
        feed_forward: c.feed_forward,
        pooling: c.pooling,
        dropout: c.dropout,
        eps: c.eps,
        max_distance: c.max_distance,
        ..VisionTransformerConfig::default()
    };
    if *c != usual {
        return Err(Error::invalid(
            "only vision transformers with learned positions, the scaled dot, softmax, biases and heads of \
             their usual width, which see the whole picture, become ONNX",
        ));
    }
    let x = images(graph, c.channels, c.image);
    // A linear layer over patches is a convolution that steps from patch to patch.
    let (weight, bias) = (graph.weight("patch.weight")?, graph.weight("patch.bias")?);
    let side = c.patch as i64;
    let weight = graph.reshape(&weight, &[0, c.channels as i64, side, side]);
    let step = [("strides", Attribute::Ints(&[side, side]))];
    let x = graph.op("Conv", &[&x, &weight, &bias], &step);
    let x = graph.reshape(&x, &[0, 0, -1]);
    let mut x = graph.transpose(&x, &[0, 2, 1]);
    if c.pooling == ImagePooling::ClassToken {
        x = with_token(graph, &x, "class_token")?;
    }
    let position = graph.weight("position")?;
    x = graph.add(&x, &position);
    let block = layers::Block {
        width: c.width,
        heads: c.heads,
        norm_first: true,
        activation: regard::layers::Activation::Gelu,
        eps: c.eps,
    };
    for at in 0..c.depth {
        x = block.forward(graph, &format!("blocks.{at}."), &x, &layers::Scores::default())?;
    }
    let one = match c.pooling {
        ImagePooling::ClassToken => {
            let x = normed(graph, &x, "norm.", c.eps)?;
            first(graph, &x)
        }
        ImagePooling::Mean => {
            let x = normed(graph, &x, "norm.", c.eps)?;
            let axis = [("axes", Attribute::Ints(&[1])), ("keepdims", Attribute::Int(0))];
            graph.op("ReduceMean", &[&x], &axis)
        }
        ref other => return Err(layers::no_onnx(other)),
    };
    let logits = graph.linear(&one, "head.", true)?;
    graph.output(&logits, "output", &[Size::Any("batch"), Size::Fixed(c.classes)]);
    Ok(())
}

fn convolutional(graph: &mut Graph, config: &ConvolutionalConfig) -> Result<()> {
    let mut x = images(graph, config.channels, config.image);
    let half = (config.kernel / 2) as i64;
    for at in 0..config.widths.len() {
        let weight = graph.weight(&format!("layers.{at}.weight"))?;
        let bias = graph.weight(&format!("layers.{at}.bias"))?;
        let pads = [("pads", Attribute::Ints(&[half; 4]))];
        let y = graph.op("Conv", &[&x, &weight, &bias], &pads);
        let y = activated(graph, &y, regard::layers::Activation::Relu)?;
        let window =
            [("kernel_shape", Attribute::Ints(&[2, 2])), ("strides", Attribute::Ints(&[2, 2]))];
        x = graph.op("MaxPool", &[&y], &window);
    }
    let x = graph.op("Flatten", &[&x], &[]);
    let logits = graph.linear(&x, "head.", true)?;
    graph.output(&logits, "output", &[Size::Any("batch"), Size::Fixed(config.classes)]);
    Ok(())
}
