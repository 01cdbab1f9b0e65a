//! Weights by the names that the library transformers gives them, and by ours.

use regard::{DType, Tensor};
use regard_data::files::text;
use regard_data::{Error, Result};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;

/// What a model's `config.json` says.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Config {
    pub(super) model_type: String,
    pub(super) hidden_size: usize,
    pub(super) num_hidden_layers: usize,
    pub(super) num_attention_heads: usize,
    pub(super) intermediate_size: usize,
    #[serde(default = "gelu")]
    pub(super) hidden_act: String,
    #[serde(default = "little")]
    pub(super) layer_norm_eps: f64,
    #[serde(default)]
    pub(super) position_embedding_type: Option<String>,
    #[serde(default)]
    pub(super) max_position_embeddings: usize,
    #[serde(default)]
    pub(super) image_size: usize,
    #[serde(default)]
    pub(super) patch_size: usize,
    #[serde(default)]
    pub(super) num_channels: usize,
}

fn gelu() -> String {
    "gelu".into()
}

fn little() -> f64 {
    1e-12
}

impl Config {
    /// Reads `config.json`; refuses a model that has no place here, by its type, and what our layers do
    /// not compute.
    pub(super) fn read(file: &Path) -> Result<Self> {
        let refuse = |what: String| Error::file(file, what);
        let json: serde_json::Value =
            serde_json::from_str(&text(file, None)?).map_err(|e| refuse(e.to_string()))?;
        match json["model_type"].as_str() {
            Some("bert" | "vit") => {}
            Some(other) => {
                return Err(refuse(format!(
                    "a model of type {other:?}; bert begins `label` and `classify`, vit begins `image`, \
                     and others are not imported{}",
                    writes_text(other)
                )));
            }
            None => {
                let what = "it does not say `model_type`; transformers writes it with \
                            `save_pretrained`";
                return Err(refuse(what.into()));
            }
        }
        let config: Self = serde_json::from_value(json).map_err(|e| refuse(e.to_string()))?;
        config.check().map_err(|e| Error::file(file, e))?;
        Ok(config)
    }

    /// Refuses what our layers do not compute.
    fn check(&self) -> Result<()> {
        if self.hidden_act != "gelu" {
            let what = format!("the activation {:?}; only \"gelu\" is known here", self.hidden_act);
            return Err(Error::invalid(what));
        }
        let position = self.position_embedding_type.as_deref().unwrap_or("absolute");
        if position != "absolute" {
            let what = format!("{position} positions; only absolute ones are known here");
            return Err(Error::invalid(what));
        }
        let (width, heads) = (self.hidden_size, self.num_attention_heads);
        if heads == 0 || !width.is_multiple_of(heads) {
            let what = format!(
                "`hidden_size` is {width} and `num_attention_heads` {heads}: heads share the width \
                 evenly, so it is a multiple of their number; one of both is not what the model was \
                 trained with"
            );
            return Err(Error::invalid(what));
        }
        Ok(())
    }
}

/// What is said beside of a model that only writes text.
fn writes_text(kind: &str) -> &'static str {
    match kind {
        "gpt2" | "gpt_neo" | "gpt_neox" | "gptj" | "llama" | "mistral" | "opt" | "qwen2" => {
            ": it only goes on with a text, and every task here reads one; `regard train translate` \
             trains an encoder and a decoder"
        }
        _ => "",
    }
}

/// A model's tensors, without the name of the model before theirs.
pub(super) struct Weights {
    tensors: BTreeMap<String, Tensor>,
}

impl Weights {
    pub(super) fn new(tensors: BTreeMap<String, Tensor>, model: &str) -> Self {
        let before = format!("{model}.");
        let named = tensors.into_iter().map(|(name, x)| {
            let name = name.strip_prefix(&before).unwrap_or(&name);
            // As the first checkpoints had them.
            (
                name.replace("LayerNorm.gamma", "LayerNorm.weight")
                    .replace("LayerNorm.beta", "LayerNorm.bias"),
                x,
            )
        });
        Self { tensors: named.collect() }
    }

    pub(super) fn get(&self, name: &str) -> Result<Tensor> {
        let missing = || Error::invalid(format!("there is no weight {name}"));
        Ok(self.tensors.get(name).ok_or_else(missing)?.to_dtype(DType::F32)?)
    }

    pub(super) fn find(&self, name: &str) -> Option<Result<Tensor>> {
        self.tensors.contains_key(name).then(|| self.get(name))
    }

    /// Puts a layer's weight and bias under another name.
    fn layer(&self, from: &str, to: &str, into: &mut BTreeMap<String, Tensor>) -> Result<()> {
        for part in ["weight", "bias"] {
            into.insert(format!("{to}.{part}"), self.get(&format!("{from}.{part}"))?);
        }
        Ok(())
    }

    /// The projections of queries, keys and values in one.
    fn joint(&self, at: &str, to: &str, into: &mut BTreeMap<String, Tensor>) -> Result<()> {
        for part in ["weight", "bias"] {
            let parts = ["query", "key", "value"];
            let parts = parts.map(|name| self.get(&format!("{at}.{name}.{part}")));
            let parts = parts.into_iter().collect::<Result<Vec<_>>>()?;
            into.insert(format!("{to}.in_proj_{part}"), Tensor::cat(&parts, 0)?);
        }
        Ok(())
    }
}

/// BERT's as those of an encoder with learned positions: every token is of the first type, so its
/// vector is a part of the places'.
pub(super) fn bert(
    config: &Config,
    weights: &Weights,
    class_token: Option<usize>,
) -> Result<BTreeMap<String, Tensor>> {
    let mut out = BTreeMap::new();
    let words = weights.get("embeddings.word_embeddings.weight")?;
    if let Some(token) = class_token {
        out.insert("class_token".into(), words.narrow(0, token, 1)?.contiguous()?);
    }
    out.insert("input.weight".into(), words);
    let mut places = weights.get("embeddings.position_embeddings.weight")?;
    if let Some(kinds) = weights.find("embeddings.token_type_embeddings.weight") {
        places = places.add(&kinds?.narrow(0, 0, 1)?)?;
    }
    out.insert("encoder.positions".into(), places);
    weights.layer("embeddings.LayerNorm", "encoder.input_norm", &mut out)?;
    for layer in 0..config.num_hidden_layers {
        let (from, to) = (format!("encoder.layer.{layer}"), format!("encoder.layers.{layer}"));
        weights.joint(&format!("{from}.attention.self"), &format!("{to}.self_attn"), &mut out)?;
        for (old, new) in [
            ("attention.output.dense", "self_attn.out_proj"),
            ("attention.output.LayerNorm", "norm1"),
            ("intermediate.dense", "linear1"),
            ("output.dense", "linear2"),
            ("output.LayerNorm", "norm2"),
        ] {
            weights.layer(&format!("{from}.{old}"), &format!("{to}.{new}"), &mut out)?;
        }
    }
    Ok(out)
}

/// A ViT's: a convolution over patches is a linear layer over their numbers.
pub(super) fn vit(config: &Config, weights: &Weights) -> Result<BTreeMap<String, Tensor>> {
    let mut out = BTreeMap::new();
    let at = "embeddings.patch_embeddings.projection";
    let patch = weights.get(&format!("{at}.weight"))?;
    let numbers = patch.shape()[1..].iter().product();
    out.insert("patch.weight".into(), patch.reshape(&[config.hidden_size, numbers])?);
    out.insert("patch.bias".into(), weights.get(&format!("{at}.bias"))?);
    out.insert("class_token".into(), weights.get("embeddings.cls_token")?.squeeze(0)?);
    out.insert("position".into(), weights.get("embeddings.position_embeddings")?.squeeze(0)?);
    for layer in 0..config.num_hidden_layers {
        let (from, to) = (format!("encoder.layer.{layer}"), format!("blocks.{layer}"));
        let attention = format!("{from}.attention.attention");
        weights.joint(&attention, &format!("{to}.self_attn"), &mut out)?;
        for (old, new) in [
            ("attention.output.dense", "self_attn.out_proj"),
            ("layernorm_before", "norm1"),
            ("layernorm_after", "norm2"),
            ("intermediate.dense", "linear1"),
            ("output.dense", "linear2"),
        ] {
            weights.layer(&format!("{from}.{old}"), &format!("{to}.{new}"), &mut out)?;
        }
    }
    weights.layer("layernorm", "norm", &mut out)?;
    if weights.find("classifier.weight").is_some() {
        weights.layer("classifier", "head", &mut out)?;
    }
    Ok(out)
}
