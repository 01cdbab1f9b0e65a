//! Public weights of models whose architecture is ours: BERT as the encoder of `label` and
//! `classify`, and ViT for `image`.

mod public;

use crate::tasks::task_named;
use public::{Config, Weights, bert, vit};
use regard::Tensor;
use regard::tensor::{load, save, write_whole};
use regard_data::files::text;
use regard_data::text::Tokenizer;
use regard_data::{Error, Result};
use std::collections::BTreeMap;
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

/// What is written into the folder: a name, and its bytes or its weights.
enum Content {
    Bytes(String),
    Weights(BTreeMap<String, Tensor>),
}

/// Reads a folder with `config.json` and `model.safetensors` (and BERT's `tokenizer.json`), as the
/// library transformers writes it, and writes into another folder the weights under our names and for
/// each task that can begin with them a file of options. Refuses another architecture than ours, by
/// what differs; then nothing is written.
pub fn import(from: &Path, to: &Path) -> Result<Imported> {
    let file = from.join("config.json");
    let config = Config::read(&file)?;
    let stored = from.join("model.safetensors");
    if !stored.exists() {
        return Err(Error::file(&stored, why_no_weights(from)));
    }
    let tensors = Weights::new(load(&stored)?.0, &config.model_type);
    let refuse = |e: Error| Error::file(&stored, e);
    let mut files = Vec::new();
    let (converted, tasks) = match config.model_type.as_str() {
        "bert" => {
            let tokenizer = from.join("tokenizer.json");
            let pretrained = Tokenizer::pretrained(&tokenizer)?;
            let class_token = pretrained.as_pretrained().and_then(|t| t.special("[CLS]"));
            files.push(("tokenizer.json".to_string(), Content::Bytes(text(&tokenizer, None)?)));
            let settings = of_bert(&config);
            let places = config.max_position_embeddings;
            let label = [&settings[..], &[format!("max_length={places}")]].concat();
            // The class token takes a place.
            let longest = format!("max_length={}", places.saturating_sub(1));
            let classify = [&settings[..], &["pooling=class-token".into(), longest]].concat();
            let converted = bert(&config, &tensors, class_token).map_err(refuse)?;
            (converted, vec![("label", label), ("classify", classify)])
        }
        _ => (vit(&config, &tensors).map_err(refuse)?, vec![("image", of_vit(&config))]),
    };
    files.push(("weights.safetensors".into(), Content::Weights(converted)));
    let mut configs = Vec::new();
    for (task, settings) in tasks {
        // Paths in a configuration are relative to it.
        let begin = "init_from=weights.safetensors".to_string();
        let mut all = settings.iter().chain([&begin]);
        let options = all.try_fold(task_named(task)?.options()?, |o, setting| o.set(setting))?;
        let name = format!("{task}.toml");
        configs.push(to.join(&name));
        files.push((name, Content::Bytes(options.to_string())));
    }
    write(to, &files)?;
    Ok(Imported { model: config.model_type, weights: to.join("weights.safetensors"), configs })
}

/// Writes all files, or leaves none of them.
fn write(to: &Path, files: &[(String, Content)]) -> Result<()> {
    let was_there = to.exists();
    std::fs::create_dir_all(to).map_err(|e| Error::file(to, e))?;
    let mut done = 0;
    let written = files.iter().try_for_each(|(name, content)| {
        match content {
            Content::Bytes(text) => write_whole(to.join(name), text.as_bytes())?,
            Content::Weights(weights) => save(to.join(name), weights, &Default::default())?,
        }
        done += 1;
        Ok(())
    });
    if written.is_err() {
        for (name, _) in &files[..done] {
            let _ = std::fs::remove_file(to.join(name));
        }
        if !was_there {
            let _ = std::fs::remove_dir(to);
        }
    }
    written
}

/// Why there is no `model.safetensors`, and what to do about it.
fn why_no_weights(from: &Path) -> String {
    let has = |name: &str| from.join(name).exists();
    if has("model.safetensors.index.json") {
        return "is not there: the weights lie in several files; in Python \
                `AutoModel.from_pretrained(\"FOLDER\").save_pretrained(\"OTHER\", \
                max_shard_size=\"1000GB\")` writes them as one"
            .into();
    }
    match ["pytorch_model.bin", "tf_model.h5", "flax_model.msgpack"].into_iter().find(|f| has(f)) {
        Some(other) => format!(
            "is not there, and {other}, which is, can hold programs and is not read; in Python \
             `AutoModel.from_pretrained(\"FOLDER\").save_pretrained(\"OTHER\", \
             safe_serialization=True)` writes it as safetensors"
        ),
        None => "there is no such file".into(),
    }
}

fn of_bert(config: &Config) -> Vec<String> {
    let c = config;
    vec![
        "tokenizer=pretrained".into(),
        "tokenizer_file=tokenizer.json".into(),
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
        "learning_rate=5e-5".into(),
        "epochs=3".into(),
    ]
}

fn of_vit(config: &Config) -> Vec<String> {
    let c = config;
    vec![
        format!("image_size={}", c.image_size),
        format!("color={}", c.num_channels == 3),
        "mean=0.5".into(),
        "std=0.5".into(),
        "model=vit".into(),
        format!("patch_size={}", c.patch_size),
        format!("hidden={}", c.hidden_size),
        format!("layers={}", c.num_hidden_layers),
        format!("heads={}", c.num_attention_heads),
        format!("feed_forward={}", c.intermediate_size),
        "pooling=class-token".into(),
        format!("norm_eps={:e}", c.layer_norm_eps),
        "learning_rate=5e-5".into(),
        "epochs=3".into(),
    ]
}
