//! Training steps: forward, backward and AdamW, on the sizes that docs/performance.md compares.

use crate::cases::Work;
use anyhow::Result;
use regard::{
    BlockConfig, CrossEntropy, DType, EncoderBlock, Linear, Mask, Mode, Nonlinearity, Optimiser,
    Parameters, Random, Rule, Tensor,
};
use regard_kernels::Cpu;

/// Which model is trained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A pre-norm Transformer block and a classifier of every place.
    Transformer,
}

impl Step {
    /// The model and its inputs, the same every time.
    pub fn prepare(self) -> Result<Box<dyn Work>> {
        Ok(match self {
            Self::Transformer => Box::new(Transformer::new()?),
        })
    }
}

const RATE: f64 = 1e-4;

/// B32 T128 D256 H8, feed-forward 1,024, 100 classes.
struct Transformer {
    x: Tensor,
    targets: Tensor,
    block: EncoderBlock,
    head: Linear,
    random: Random,
    optimiser: Optimiser,
}

impl Transformer {
    const B: usize = 32;
    const T: usize = 128;
    const D: usize = 256;
    const INNER: usize = 1024;
    const CLASSES: usize = 100;

    fn new() -> Result<Self> {
        let (rows, random) = (Self::B * Self::T, Random::new(1));
        let parameters = Parameters::new(DType::F32, 1);
        let config = BlockConfig {
            width: Self::D,
            heads: 8,
            feed_forward: Self::INNER,
            activation: Nonlinearity::Gelu,
            dropout: 0.0,
            ..BlockConfig::default()
        };
        let targets = (0..rows).map(|_| random.below(Self::CLASSES) as i64).collect();
        Ok(Self {
            x: random.normal(&[Self::B, Self::T, Self::D], 0.0, 1.0, DType::F32)?,
            targets: Tensor::from_vec(targets, &[rows])?,
            block: EncoderBlock::new(&parameters.at("block"), &config)?,
            head: Linear::new(&parameters.at("head"), Self::D, Self::CLASSES, true)?,
            optimiser: Optimiser::new(&parameters, Rule::adam_w())?,
            random,
        })
    }
}

impl Work for Transformer {
    fn run(&mut self, _: Cpu) -> Result<()> {
        let y = self.block.forward(&self.x, &Mask::none(), Mode::Train(&self.random))?;
        let logits = self.head.forward(&y.reshape(&[Self::B * Self::T, Self::D])?)?;
        let loss = logits.cross_entropy(&self.targets, CrossEntropy::default())?;
        self.optimiser.step(&loss.backward()?, RATE)?;
        Ok(())
    }

    fn flops(&self) -> f64 {
        let (rows, d) = ((Self::B * Self::T) as f64, Self::D as f64);
        let weights = 4.0 * d * d + 2.0 * d * Self::INNER as f64 + d * Self::CLASSES as f64;
        // Forward 2 a weight, backward twice that but for the input's; attention 4 and 10 a pair.
        let products = 6.0 * rows * weights - 2.0 * rows * 3.0 * d * d;
        products + 14.0 * rows * Self::T as f64 * d
    }
}
