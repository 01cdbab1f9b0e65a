//! Training steps: forward, backward and AdamW, on the sizes that docs/performance.md compares.

use crate::cases::Work;
use anyhow::Result;
use regard::attention::{Mask, MechanismConfig, ScoreConfig};
use regard::layers::{
    Activation, BlockConfig, Cell, EncoderBlock, EncoderConfig, Graph, Linear, RecurrentConfig,
};
use regard::models::{
    ContextConfig, DecoderConfig, GraphAttentionNetwork, GraphNetworkConfig, Sentences, Seq2Seq,
    Seq2SeqConfig,
};
use regard::tensor::{CrossEntropy, Optimizer, Parameters, Random, UpdateRule};
use regard::{DType, Mode, Tensor};
use regard_kernels::Cpu;
use std::collections::BTreeSet;

/// Which model is trained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A pre-norm Transformer block and a classifier at every position.
    Transformer,
    /// A GRU encoder and a GRU decoder with additive attention.
    Gru,
    /// Two layers of GAT on a graph of Cora's sizes.
    Gat,
}

impl Step {
    /// The model and its inputs, the same every time.
    pub fn prepare(self) -> Result<Box<dyn Work>> {
        let parameters = Parameters::new(DType::F32, 1);
        let random = Random::new(1);
        let model: Box<dyn Model> = match self {
            Self::Transformer => Box::new(Transformer::new(&parameters, &random)?),
            Self::Gru => Box::new(Gru::new(&parameters, &random)?),
            Self::Gat => Box::new(Gat::new(&parameters, &random)?),
        };
        let optimizer = Optimizer::new(&parameters, UpdateRule::adam_w())?;
        Ok(Box::new(Training { model, random, optimizer }))
    }
}

/// A model with its inputs.
trait Model: Send {
    /// What training makes smaller.
    fn loss(&self, mode: Mode) -> Result<Tensor>;
    /// Floating-point operations of a step.
    fn flops(&self) -> f64;
}

/// A model and what moves its parameters.
struct Training {
    model: Box<dyn Model>,
    random: Random,
    optimizer: Optimizer,
}

const RATE: f64 = 1e-4;

impl Work for Training {
    fn run(&mut self, _: Cpu) -> Result<()> {
        let loss = self.model.loss(Mode::Train(&self.random))?;
        self.optimizer.step(&loss.backward()?, RATE)?;
        Ok(())
    }

    fn flops(&self) -> f64 {
        self.model.flops()
    }
}

/// B32 T128 D256 H8, feed-forward 1,024, 100 classes.
struct Transformer {
    x: Tensor,
    targets: Tensor,
    block: EncoderBlock,
    head: Linear,
}

impl Transformer {
    const B: usize = 32;
    const T: usize = 128;
    const D: usize = 256;
    const INNER: usize = 1024;
    const CLASSES: usize = 100;

    fn new(parameters: &Parameters, random: &Random) -> Result<Self> {
        let rows = Self::B * Self::T;
        let config = BlockConfig {
            width: Self::D,
            heads: 8,
            feed_forward: Self::INNER,
            activation: Activation::Gelu,
            dropout: 0.0,
            ..BlockConfig::default()
        };
        let targets = (0..rows).map(|_| random.below(Self::CLASSES) as i64).collect();
        Ok(Self {
            x: random.normal(&[Self::B, Self::T, Self::D], 0.0, 1.0, DType::F32)?,
            targets: Tensor::from_vec(targets, &[rows])?,
            block: EncoderBlock::new(&parameters.at("block"), &config)?,
            head: Linear::new(&parameters.at("head"), Self::D, Self::CLASSES, true)?,
        })
    }
}

impl Model for Transformer {
    fn loss(&self, mode: Mode) -> Result<Tensor> {
        let y = self.block.forward(&self.x, &Mask::none(), mode)?;
        let logits = self.head.forward(&y.reshape(&[Self::B * Self::T, Self::D])?)?;
        Ok(logits.cross_entropy(&self.targets, CrossEntropy::default())?)
    }

    fn flops(&self) -> f64 {
        let (rows, d) = ((Self::B * Self::T) as f64, Self::D as f64);
        let weights = 4.0 * d * d + 2.0 * d * Self::INNER as f64 + d * Self::CLASSES as f64;
        // Forward 2 a weight, backward twice that but for the input's; attention 4 and 10 a pair.
        let products = 6.0 * rows * weights - 2.0 * rows * 3.0 * d * d;
        products + 14.0 * rows * Self::T as f64 * d
    }
}

/// B64 T20, hidden 256, vocabulary 8,000.
struct Gru {
    source: Sentences,
    target: Sentences,
    model: Seq2Seq,
}

impl Gru {
    const B: usize = 64;
    const T: usize = 20;
    const H: usize = 256;
    const V: usize = 8000;

    fn new(parameters: &Parameters, random: &Random) -> Result<Self> {
        let gru = RecurrentConfig::new(Cell::Gru, Self::H);
        let additive = MechanismConfig::new(ScoreConfig::Additive { hidden: Self::H });
        let config = Seq2SeqConfig {
            embedding: Self::H,
            ..Seq2SeqConfig::new(
                Self::V,
                Self::V,
                EncoderConfig::Recurrent(gru),
                DecoderConfig::Recurrent(gru),
                ContextConfig::Attention(additive),
            )
        };
        // Three tokens are padding, start and end; the end is the target's last.
        let draw = |n: usize| -> Vec<Vec<usize>> {
            let sentence = || (0..n).map(|_| 3 + random.below(Self::V - 3)).collect();
            (0..Self::B).map(|_| sentence()).collect()
        };
        Ok(Self {
            source: Sentences::new(&draw(Self::T), config.padding)?,
            target: Sentences::new(&draw(Self::T - 1), config.padding)?,
            model: Seq2Seq::new(parameters, &config)?,
        })
    }
}

impl Model for Gru {
    fn loss(&self, mode: Mode) -> Result<Tensor> {
        let taught = self.model.teach(&self.source, &self.target, mode)?;
        Ok(taught.loss(0.0)?)
    }

    fn flops(&self) -> f64 {
        let (rows, h) = ((Self::B * Self::T) as f64, Self::H as f64);
        // Encoder 6 h², decoder's cell 9 h², keys and queries 2 h², readout 3 h², vocabulary.
        let weights = 20.0 * h * h + h * Self::V as f64;
        6.0 * rows * weights + 26.0 * rows * Self::T as f64 * h
    }
}

/// 2,708 nodes, 10,556 edges, 1,433 features, 8 heads of 8, dropout 0.6, 7 classes.
struct Gat {
    x: Tensor,
    targets: Tensor,
    graph: Graph,
    model: GraphAttentionNetwork,
}

impl Gat {
    const N: usize = 2708;
    const E: usize = 10556;
    const FEATURES: usize = 1433;
    const CLASSES: usize = 7;

    fn new(parameters: &Parameters, random: &Random) -> Result<Self> {
        let config = GraphNetworkConfig {
            features: Self::FEATURES,
            classes: Self::CLASSES,
            hidden: 8,
            heads: 8,
            dropout: 0.6,
            ..GraphNetworkConfig::default()
        };
        // An edge is there once.
        let mut edges = BTreeSet::new();
        while edges.len() < Self::E {
            edges.insert((random.below(Self::N), random.below(Self::N)));
        }
        let edges: Vec<(usize, usize)> = edges.into_iter().collect();
        let targets = (0..Self::N).map(|_| random.below(Self::CLASSES) as i64).collect();
        Ok(Self {
            x: random.uniform(&[Self::N, Self::FEATURES], 0.0, 1.0, DType::F32)?,
            targets: Tensor::from_vec(targets, &[Self::N])?,
            graph: Graph::new(Self::N, &edges)?,
            model: GraphAttentionNetwork::new(parameters, &config)?,
        })
    }
}

impl Model for Gat {
    fn loss(&self, mode: Mode) -> Result<Tensor> {
        let logits = self.model.forward(&self.x, &self.graph, mode)?;
        Ok(logits.cross_entropy(&self.targets, CrossEntropy::default())?)
    }

    fn flops(&self) -> f64 {
        // The first layer's product and its weights' gradient are nearly all of it.
        let n = Self::N as f64;
        4.0 * n * (Self::FEATURES * 64) as f64 + 6.0 * n * (64 * Self::CLASSES) as f64
    }
}
