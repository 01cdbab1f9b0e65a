//! Graph attention: two clubs whose members know each other; two members are labeled, the rest
//! are found through their friends.
//!
//!     cargo run -p regard --example graph

use regard::Result;
use regard::layers::Graph;
use regard::models::{Classified, GraphAttentionNetwork, GraphLayer, GraphNetworkConfig};
use regard::prelude::*;

fn main() -> Result<()> {
    // Ten members each; most friendships lie within a club.
    let random = Random::new(4);
    let mut edges = Vec::new();
    for a in 0..20 {
        for b in 0..20 {
            let together = (a < 10) == (b < 10);
            if a != b && random.number() < if together { 0.4 } else { 0.03 } {
                edges.push((a, b));
            }
        }
    }
    let graph = Graph::new(20, &edges)?;
    let x = random.normal(&[20, 8], 0.0, 1.0, DType::F32)?;
    // Only members 0 and 10 have a label; the others are ignored.
    let labels = (0..20).map(|n| if n % 10 == 0 { n / 10 } else { -1 }).collect::<Vec<i64>>();
    let labels = Tensor::from_vec(labels, &[20])?;
    let rule = CrossEntropy { ignore_index: Some(-1), ..CrossEntropy::default() };
    for layer in [GraphLayer::Gat, GraphLayer::Gatv2, GraphLayer::Mean] {
        let config = GraphNetworkConfig {
            features: 8,
            layer,
            heads: 4,
            layers: 3,
            dropout: 0.3,
            ..GraphNetworkConfig::default()
        };
        let parameters = Parameters::new(DType::F32, 1);
        let network = GraphAttentionNetwork::new(&parameters, &config)?;
        let mut optimizer = Optimizer::new(&parameters, UpdateRule::adam_w())?;
        for _ in 0..100 {
            let logits = network.forward(&x, &graph, Mode::Train(&random))?;
            optimizer.step(&logits.cross_entropy(&labels, rule)?.backward()?, 0.01)?;
        }
        let Classified { logits, weights, .. } =
            network.classify(&x, &graph, Mode::Infer, Need::WEIGHTS)?;
        let found = logits.max(1)?.1.to_vec::<i64>()?;
        let right = (0..20).filter(|&n| found[n] == (n / 10) as i64).count();
        print!("{layer:?}: {right} of 20 members in their club");
        match weights.first() {
            Some(first) => {
                let (source, target) = graph.edges(true)[0];
                let weight = first.select(0, 0)?.mean_all()?.item()?;
                println!("; {target} listens to {source} with weight {weight:.2}");
            }
            None => println!(),
        }
    }
    Ok(())
}
