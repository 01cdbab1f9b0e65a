//! Public weights of models whose architecture is ours: BERT as the encoder of `label` and
//! `classify`, and ViT for `image`.

mod public;

use crate::tasks::task_named;
use public::{Config, Weights, bert, vit};
use regard::tensor::{load, save, write_whole};
use regard_data::files::text;
use regard_data::text::Tokenizer;
use regard_data::{Error, Result};
use std::path::{Path, PathBuf};

/// What was imported.
#[derive(Clone, Debug)]
pub struct Imported {
    /// The model's type, as it calls itself: "bert".
    pub model: String,
    /// Weights under our names.
    pub weights: PathBuf,
    /// Options for each task that can begin with it.
    pub configs: Vec<PathBuf>,
}

/// Reads a folder with `config.json` and `model.safetensors` (and BERT's `tokenizer.json`), as the
/// library transformers writes it, and writes into another folder the weights under our names and for
/// each task that can begin with them a file of options. Refuses another architecture than ours, by
/// what differs.
pub fn import(from: &Path, to: &Path) -> Result<Imported> {
    let file = from.join("config.json");
    let config: Config =
        serde_json::from_str(&text(&file, None)?).map_err(|e| Error::file(&file, e))?;
    config.check().map_err(|e| Error::file(&file, e))?;
    let stored = from.join("model.safetensors");
    let tensors = Weights::new(load(&stored)?.0, &config.model_type);
    std::fs::create_dir_all(to).map_err(|e| Error::file(to, e))?;
    let refuse = |e: Error| Error::file(&stored, e);
    let weights = to.join("weights.safetensors");
    let (converted, tasks) = match config.model_type.as_str() {
        "bert" => {
            let tokenizer = from.join("tokenizer.json");
            let pretrained = Tokenizer::pretrained(&tokenizer)?;
            let class_token = pretrained.as_pretrained().and_then(|t| t.special("[CLS]"));
            let copy = to.join("tokenizer.json");
            write_whole(&copy, text(&tokenizer, None)?.as_bytes())?;
            let settings = of_bert(&config, &copy);
            let places = config.max_position_embeddings;
            let label = [&settings[..], &[format!("longest={places}")]].concat();
            // The class token takes a place.
            let longest = format!("longest={}", places.saturating_sub(1));
            let classify = [&settings[..], &["pooling=class-token".into(), longest]].concat();
            let converted = bert(&config, &tensors, class_token).map_err(refuse)?;
            (converted, vec![("label", label), ("classify", classify)])
        }
        "vit" => (vit(&config, &tensors).map_err(refuse)?, vec![("image", of_vit(&config))]),
        other => {
            let what = format!("a model of type {other:?}; bert and vit are known");
            return Err(Error::file(&file, what));
        }
    };
    save(&weights, &converted, &Default::default())?;
    let mut configs = Vec::new();
    for (task, settings) in tasks {
        let begin = format!("init_from={}", toml_text(&weights));
        let mut all = settings.iter().chain([&begin]);
        let options = all.try_fold(task_named(task)?.options()?, |o, setting| o.set(setting))?;
        let path = to.join(format!("{task}.toml"));
        write_whole(&path, options.to_string().as_bytes())?;
        configs.push(path);
    }
    Ok(Imported { model: config.model_type, weights, configs })
}

/// A path as TOML writes a text.
fn toml_text(path: &Path) -> String {
    toml::Value::String(path.display().to_string()).to_string()
}

fn of_bert(config: &Config, tokenizer: &Path) -> Vec<String> {
    let c = config;
    vec![
        "tokenizer=pretrained".into(),
        format!("tokenizer_file={}", toml_text(tokenizer)),
        format!("embedding={}", c.hidden_size),
        "encoder=transformer".into(),
        format!("hidden={}", c.hidden_size),
        format!("layers={}", c.num_hidden_layers),
        format!("heads={}", c.num_attention_heads),
        format!("feed_forward={}", c.intermediate_size),
        "norm_first=false".into(),
        "norm_input=true".into(),
        format!("norm_eps={:e}", c.layer_norm_eps),
        "position=learned".into(),
        "rate=5e-5".into(),
        "epochs=3".into(),
    ]
}

fn of_vit(config: &Config) -> Vec<String> {
    let c = config;
    vec![
        format!("side={}", c.image_size),
        format!("color={}", c.num_channels == 3),
        "mean=0.5".into(),
        "deviation=0.5".into(),
        "model=vit".into(),
        format!("patch={}", c.patch_size),
        format!("hidden={}", c.hidden_size),
        format!("layers={}", c.num_hidden_layers),
        format!("heads={}", c.num_attention_heads),
        format!("feed_forward={}", c.intermediate_size),
        "pooling=class-token".into(),
        format!("norm_eps={:e}", c.layer_norm_eps),
        "rate=5e-5".into(),
        "epochs=3".into(),
    ]
}
