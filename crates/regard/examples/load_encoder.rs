//! Weights of PyTorch's `nn.TransformerEncoder`, read from a `.safetensors` file under PyTorch's names.
//!
//!     cargo run --release --example load_encoder [FILE]
//!
//! Without a file the example writes a small one first, with the names that this program has in PyTorch:
//!
//! ```python
//! layer = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True)
//! model = nn.ModuleDict({"encoder": nn.TransformerEncoder(layer, 2), "head": nn.Linear(16, 3)})
//! safetensors.torch.save_file(model.state_dict(), "encoder.safetensors")
//! ```

use regard::prelude::*;
use regard::tensor::{load, save};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

fn main() -> Result<(), regard::Error> {
    let folder = std::env::temp_dir().join("regard-load-encoder");
    let file = match std::env::args().nth(1) {
        Some(file) => PathBuf::from(file),
        None => {
            let file = folder.join("encoder.safetensors");
            std::fs::create_dir_all(&folder).map_err(|e| regard::Error::new(e.to_string()))?;
            save(&file, &written(16, 32, 2)?, &BTreeMap::new())?;
            file
        }
    };
    let (parameters, encoder) = read(&file, 4)?;
    let x = Random::new(1).normal(&[2, 5, encoder.config().width], 0.0, 1.0, DType::F32)?;
    let y = encoder.forward(&x, Some(&[5, 3]), Mode::Infer)?;
    println!(
        "{}: {} numbers in {} layers",
        file.display(),
        parameters.numel(),
        encoder.config().layers
    );
    println!("{:?} became {:?}", x.shape(), y.shape());
    Ok(())
}

/// The encoder in a file. How wide it is and how many layers it has is in its shapes and names; how many
/// heads it has is not.
pub fn read(file: &Path, heads: usize) -> Result<(Parameters, TransformerEncoder), regard::Error> {
    let (tensors, _) = load(file)?;
    let inner = &tensors
        .get("encoder.layers.0.linear1.weight")
        .ok_or_else(|| regard::Error::new("there is no encoder.layers.0.linear1.weight"))?;
    let layers = (0..).find(|n| !tensors.contains_key(&format!("encoder.layers.{n}.norm1.weight")));
    // PyTorch's defaults: ReLU, normalization after each part, and no positions of its own.
    let config = TransformerConfig {
        feed_forward: inner.size(0)?,
        activation: Activation::Relu,
        norm_first: false,
        position: Position::None,
        ..TransformerConfig::new(inner.size(1)?, heads, layers.unwrap_or(0))
    };
    let parameters = Parameters::new(DType::F32, 1);
    let encoder = TransformerEncoder::new(&parameters, &config, config.width)?;
    // The names below `encoder` are ours already; the head is not part of the encoder.
    let report =
        parameters.set_renamed(&tensors, |name| name.strip_prefix("encoder.").map(String::from))?;
    report.complete()?;
    println!("left out: {}", report.left_out.join(", "));
    Ok((parameters, encoder))
}

/// Weights by chance under PyTorch's names.
pub fn written(
    width: usize,
    inner: usize,
    layers: usize,
) -> Result<BTreeMap<String, Tensor>, regard::Error> {
    let mut all = BTreeMap::new();
    let mut add = |name: String, shape: &[usize]| {
        let tensor = Random::named(7, &name).normal(shape, 0.0, 0.3, DType::F32)?;
        all.insert(name, tensor);
        Ok::<_, regard::Error>(())
    };
    for layer in 0..layers {
        let mut add =
            |name: &str, shape: &[usize]| add(format!("encoder.layers.{layer}.{name}"), shape);
        add("self_attn.in_proj_weight", &[3 * width, width])?;
        add("self_attn.in_proj_bias", &[3 * width])?;
        add("self_attn.out_proj.weight", &[width, width])?;
        add("self_attn.out_proj.bias", &[width])?;
        add("linear1.weight", &[inner, width])?;
        add("linear1.bias", &[inner])?;
        add("linear2.weight", &[width, inner])?;
        add("linear2.bias", &[width])?;
        for norm in ["norm1", "norm2"] {
            add(&format!("{norm}.weight"), &[width])?;
            add(&format!("{norm}.bias"), &[width])?;
        }
    }
    add("head.weight".into(), &[3, width])?;
    add("head.bias".into(), &[3])?;
    Ok(all)
}
