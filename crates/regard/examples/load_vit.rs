//! A vision transformer with weights read from a `.safetensors` file under the names that the library timm
//! gives them.
//!
//!     cargo run --release --example load_vit [FILE [HEADS]]
//!
//! Without a file the example writes a small one first, with such names and weights by chance.

use regard::models::{VisionTransformer, VisionTransformerConfig};
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
            let folder = std::env::temp_dir().join("regard-load-vit");
            std::fs::create_dir_all(&folder).map_err(|e| regard::Error::new(e.to_string()))?;
            let file = folder.join("model.safetensors");
            save(&file, &written(16, 2)?, &BTreeMap::new())?;
            (file, 4)
        }
    };
    let (parameters, model) = read(&file, heads)?;
    let config = model.config();
    let [height, width] = config.image;
    let images =
        Random::new(1).normal(&[2, config.channels, height, width], 0.0, 1.0, DType::F32)?;
    let (_, class) = model.forward(&images, Mode::Infer)?.max(1)?;
    println!("{}: {} numbers, images of {height} × {width}", file.display(), parameters.numel());
    println!("two images of noise are of classes {:?}", class.to_vec::<i64>()?);
    Ok(())
}

/// The model in a file, whose images are square.
pub fn read(file: &Path, heads: usize) -> Result<(Parameters, VisionTransformer), regard::Error> {
    let (mut tensors, _) = load(file)?;
    let shape = |name: &str| match tensors.get(name) {
        Some(tensor) => Ok(tensor.shape().to_vec()),
        None => Err(regard::Error::new(format!("there is no {name}"))),
    };
    let [width, channels, patch, _] = shape("patch_embed.proj.weight")?[..] else {
        return Err(regard::Error::new("patch_embed.proj.weight is no convolution"));
    };
    let side = (shape("pos_embed")?[1] - 1).isqrt() * patch;
    let depth = (0..).find(|n| !tensors.contains_key(&format!("blocks.{n}.norm1.weight")));
    let config = VisionTransformerConfig {
        image: [side, side],
        channels,
        patch,
        classes: shape("head.weight")?[0],
        width,
        depth: depth.unwrap_or(0),
        heads,
        feed_forward: shape("blocks.0.mlp.fc1.weight")?[0],
        eps: 1e-6,
        ..VisionTransformerConfig::default()
    };
    // A convolution whose windows do not overlap is a linear layer over patches; the axes of size 1 go.
    for (name, tensor) in &mut tensors {
        match name.as_str() {
            "patch_embed.proj.weight" => *tensor = tensor.flatten(1, 3)?,
            "cls_token" | "pos_embed" => *tensor = tensor.squeeze(0)?,
            _ => {}
        }
    }
    let parameters = Parameters::new(DType::F32, 1);
    let model = VisionTransformer::new(&parameters, &config)?;
    parameters.set_renamed(&tensors, |name| Some(renamed(name)))?.complete()?;
    Ok((parameters, model))
}

/// timm's name of a parameter → ours.
fn renamed(name: &str) -> String {
    match name {
        "cls_token" => return "class_token".into(),
        "pos_embed" => return "position".into(),
        _ => {}
    }
    let parts = [
        ("patch_embed.proj.", "patch."),
        (".attn.qkv.", ".self_attn.in_proj_"),
        (".attn.proj.", ".self_attn.out_proj."),
        (".mlp.fc1.", ".linear1."),
        (".mlp.fc2.", ".linear2."),
    ];
    parts.iter().fold(name.to_string(), |name, (theirs, ours)| name.replace(theirs, ours))
}

/// Weights by chance under timm's names, for images of 8 × 8 in patches of 4.
pub fn written(width: usize, depth: usize) -> Result<BTreeMap<String, Tensor>, regard::Error> {
    let mut shapes: Vec<(String, Vec<usize>)> = vec![
        ("cls_token".into(), vec![1, 1, width]),
        ("pos_embed".into(), vec![1, 5, width]),
        ("patch_embed.proj.weight".into(), vec![width, 3, 4, 4]),
        ("patch_embed.proj.bias".into(), vec![width]),
        ("norm.weight".into(), vec![width]),
        ("norm.bias".into(), vec![width]),
        ("head.weight".into(), vec![10, width]),
        ("head.bias".into(), vec![10]),
    ];
    for block in 0..depth {
        let inner = 4 * width;
        for (name, shape) in [
            ("norm1.weight", vec![width]),
            ("norm1.bias", vec![width]),
            ("attn.qkv.weight", vec![3 * width, width]),
            ("attn.qkv.bias", vec![3 * width]),
            ("attn.proj.weight", vec![width, width]),
            ("attn.proj.bias", vec![width]),
            ("norm2.weight", vec![width]),
            ("norm2.bias", vec![width]),
            ("mlp.fc1.weight", vec![inner, width]),
            ("mlp.fc1.bias", vec![inner]),
            ("mlp.fc2.weight", vec![width, inner]),
            ("mlp.fc2.bias", vec![width]),
        ] {
            shapes.push((format!("blocks.{block}.{name}"), shape));
        }
    }
    let drawn = shapes.into_iter().map(|(name, shape)| {
        let tensor = Random::named(7, &name).normal(&shape, 0.0, 0.3, DType::F32)?;
        Ok((name, tensor))
    });
    drawn.collect()
}
