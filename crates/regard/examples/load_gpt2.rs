//! A decoder-only model with the weights of GPT-2, read from a `.safetensors` file under the names that
//! the library transformers gives them, and text ids written place by place.
//!
//!     cargo run --release --example load_gpt2 [FILE [HEADS]]
//!
//! Without a file the example writes a small one first, with such names and weights by chance.

use regard::prelude::*;
use regard::tensor::{load, save};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

fn main() -> Result<(), regard::Error> {
    let mut arguments = std::env::args().skip(1);
    let (file, heads) = match arguments.next() {
        Some(file) => {
            let heads = arguments.next().map_or(Ok(12), |n| n.parse());
            (PathBuf::from(file), heads.map_err(|_| regard::Error::new("HEADS is a number"))?)
        }
        None => {
            let folder = std::env::temp_dir().join("regard-load-gpt2");
            std::fs::create_dir_all(&folder).map_err(|e| regard::Error::new(e.to_string()))?;
            let file = folder.join("model.safetensors");
            save(&file, &written(50, 16, 24, 2)?, &BTreeMap::new())?;
            (file, 4)
        }
    };
    let model = Gpt2::read(&file, heads)?;
    println!("{}: {} numbers", file.display(), model.parameters.numel());
    println!("{:?}", model.write(&[5, 3, 11], 8)?);
    Ok(())
}

/// Ids → vectors, causal blocks, and the vectors' products with each id's own.
pub struct Gpt2 {
    /// All of them, by name.
    pub parameters: Parameters,
    embedding: Embedding,
    blocks: TransformerEncoder,
}

impl Gpt2 {
    /// The model in a file.
    pub fn read(file: &Path, heads: usize) -> Result<Self, regard::Error> {
        let (mut tensors, _) = load(file)?;
        // Some files have everything below `transformer`, some have not.
        let plain = |name: &str| name.strip_prefix("transformer.").unwrap_or(name).to_string();
        tensors = tensors.into_iter().map(|(name, tensor)| (plain(&name), tensor)).collect();
        let shape = |name: &str| match tensors.get(name) {
            Some(tensor) => Ok(tensor.shape().to_vec()),
            None => Err(regard::Error::new(format!("there is no {name}"))),
        };
        let (ids, places) = (shape("wte.weight")?, shape("wpe.weight")?);
        let layers = (0..).find(|n| !tensors.contains_key(&format!("h.{n}.ln_1.weight")));
        let config = TransformerConfig {
            causal: true,
            activation: Activation::GeluTanh,
            position: Position::Learned,
            longest: places[0],
            ..TransformerConfig::new(ids[1], heads, layers.unwrap_or(0))
        };
        let parameters = Parameters::new(DType::F32, 1);
        let model = Self {
            embedding: Embedding::new(&parameters.at("embedding"), ids[0], ids[1], None)?,
            blocks: TransformerEncoder::new(&parameters.at("blocks"), &config, ids[1])?,
            parameters,
        };
        // GPT-2 multiplies by its matrices from the other side: [in, out], where a linear layer has [out, in].
        for (name, tensor) in &mut tensors {
            if name.starts_with("h.") && tensor.rank() == 2 {
                *tensor = tensor.transpose(0, 1)?;
            }
        }
        model.parameters.set_renamed(&tensors, renamed)?.complete()?;
        Ok(model)
    }

    /// The logits of what comes next at each place: ids `[N]` → `[1, N, V]`.
    pub fn forward(&self, ids: &[u32]) -> Result<Tensor, regard::Error> {
        let x = self.vectors(ids)?;
        self.logits(&self.blocks.forward(&x, None, Mode::Infer)?)
    }

    /// The most likely ids after a prompt.
    pub fn write(&self, prompt: &[u32], count: usize) -> Result<Vec<u32>, regard::Error> {
        let mut cache = self.blocks.start()?;
        let mut ids = prompt.to_vec();
        for step in 0..count {
            let new = if step == 0 { prompt } else { &ids[ids.len() - 1..] };
            let out = self.blocks.extend(&self.vectors(new)?, &mut cache, Need::OUTPUT)?.out;
            let last = self.logits(&out.narrow(1, new.len() - 1, 1)?)?;
            ids.push(last.argmax(2)?.item()? as u32);
        }
        Ok(ids)
    }

    fn vectors(&self, ids: &[u32]) -> Result<Tensor, regard::Error> {
        self.embedding.forward(&Tensor::from_ids(ids, &[1, ids.len()])?)
    }

    fn logits(&self, x: &Tensor) -> Result<Tensor, regard::Error> {
        x.linear(&self.embedding.weight.tensor(), None)
    }
}

/// GPT-2's name of a parameter → ours; nothing for its causal masks, and for the head, which is the
/// embedding once more.
fn renamed(name: &str) -> Option<String> {
    let parts: Vec<&str> = name.split('.').collect();
    Some(match parts[..] {
        ["wte", "weight"] => "embedding.weight".into(),
        ["wpe", "weight"] => "blocks.positions".into(),
        ["ln_f", what] => format!("blocks.norm.{what}"),
        ["h", _, "attn", "bias" | "masked_bias"] | ["lm_head", "weight"] => return None,
        ["h", layer, ref part @ ..] => {
            let own = match part {
                ["ln_1", what] => format!("norm1.{what}"),
                ["ln_2", what] => format!("norm2.{what}"),
                ["attn", "c_attn", what] => format!("self_attn.in_proj_{what}"),
                ["attn", "c_proj", what] => format!("self_attn.out_proj.{what}"),
                ["mlp", "c_fc", what] => format!("linear1.{what}"),
                ["mlp", "c_proj", what] => format!("linear2.{what}"),
                // Under its own name, so that it is told as unknown.
                other => other.join("."),
            };
            format!("blocks.layers.{layer}.{own}")
        }
        _ => name.into(),
    })
}

/// Weights by chance under GPT-2's names.
pub fn written(
    ids: usize,
    width: usize,
    places: usize,
    layers: usize,
) -> Result<BTreeMap<String, Tensor>, regard::Error> {
    let mut shapes: Vec<(String, Vec<usize>)> = vec![
        ("wte.weight".into(), vec![ids, width]),
        ("wpe.weight".into(), vec![places, width]),
        ("ln_f.weight".into(), vec![width]),
        ("ln_f.bias".into(), vec![width]),
    ];
    for layer in 0..layers {
        let inner = 4 * width;
        for (name, shape) in [
            ("ln_1.weight", vec![width]),
            ("ln_1.bias", vec![width]),
            ("attn.bias", vec![1, 1, places, places]),
            ("attn.c_attn.weight", vec![width, 3 * width]),
            ("attn.c_attn.bias", vec![3 * width]),
            ("attn.c_proj.weight", vec![width, width]),
            ("attn.c_proj.bias", vec![width]),
            ("ln_2.weight", vec![width]),
            ("ln_2.bias", vec![width]),
            ("mlp.c_fc.weight", vec![width, inner]),
            ("mlp.c_fc.bias", vec![inner]),
            ("mlp.c_proj.weight", vec![inner, width]),
            ("mlp.c_proj.bias", vec![width]),
        ] {
            shapes.push((format!("h.{layer}.{name}"), shape));
        }
    }
    let drawn = shapes.into_iter().map(|(name, shape)| {
        let tensor = Random::named(7, &name).normal(&shape, 0.0, 0.3, DType::F32)?;
        Ok((format!("transformer.{name}"), tensor))
    });
    drawn.collect()
}
