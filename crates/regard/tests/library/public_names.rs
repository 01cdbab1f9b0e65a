//! The examples that read files under the names of other libraries, against plain loops over those files.

use regard::prelude::*;
use regard::tensor::save;
use std::collections::BTreeMap;

#[allow(dead_code, unreachable_pub)]
#[path = "../../examples/load_encoder.rs"]
mod load_encoder;
#[allow(dead_code, unreachable_pub)]
#[path = "../../examples/load_gpt2.rs"]
mod load_gpt2;
#[allow(dead_code, unreachable_pub)]
#[path = "../../examples/load_vit.rs"]
mod load_vit;

type Rows = Vec<Vec<f64>>;
type Tensors = BTreeMap<String, Tensor>;

fn numbers(tensors: &Tensors, name: &str) -> Vec<f64> {
    let tensor = tensors.get(name).unwrap_or_else(|| panic!("there is no {name}"));
    tensor.to_dtype(DType::F64).unwrap().to_vec::<f64>().unwrap()
}

fn rows(x: &Tensor) -> Rows {
    let width = x.size(-1).unwrap();
    let wide = x.to_dtype(DType::F64).unwrap().to_vec::<f64>().unwrap();
    wide.chunks(width).map(<[f64]>::to_vec).collect()
}

fn close(ours: &Tensor, wanted: &Rows, what: &str) {
    let ours = rows(ours);
    assert_eq!(ours.len(), wanted.len(), "{what}");
    for (ours, wanted) in ours.iter().flatten().zip(wanted.iter().flatten()) {
        assert!(
            (ours - wanted).abs() < 1e-3 * wanted.abs().max(1.0),
            "{what}: {ours}, not {wanted}"
        );
    }
}

/// What the names of a block's parts are, and how its numbers lie.
struct Names<'a> {
    tensors: &'a Tensors,
    at: String,
    /// The norms, the joint projection, the one after attention, and the two of the feed-forward layer;
    /// each has a weight and a bias behind it.
    parts: [&'a str; 6],
    /// Whether matrices are [in, out].
    turned: bool,
}

impl Names<'_> {
    fn get(&self, part: usize, what: &str) -> Vec<f64> {
        numbers(self.tensors, &format!("{}{}{what}", self.at, self.parts[part]))
    }

    fn norm(&self, part: usize, x: &Rows, eps: f64) -> Rows {
        normed(x, &self.get(part, "weight"), &self.get(part, "bias"), eps)
    }

    fn linear(&self, part: usize, x: &Rows) -> Rows {
        linear(x, &self.get(part, "weight"), &self.get(part, "bias"), self.turned)
    }
}

fn normed(x: &Rows, gain: &[f64], shift: &[f64], eps: f64) -> Rows {
    let one = |row: &Vec<f64>| {
        let n = row.len() as f64;
        let mean = row.iter().sum::<f64>() / n;
        let variance = row.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n;
        let each = row.iter().zip(gain).zip(shift);
        each.map(|((x, gain), shift)| (x - mean) / (variance + eps).sqrt() * gain + shift).collect()
    };
    x.iter().map(one).collect()
}

fn linear(x: &Rows, weight: &[f64], bias: &[f64], turned: bool) -> Rows {
    let (from, to) = (x[0].len(), bias.len());
    let at = |i: usize, o: usize| if turned { weight[i * to + o] } else { weight[o * from + i] };
    let one = |row: &Vec<f64>| {
        (0..to).map(|o| bias[o] + (0..from).map(|i| row[i] * at(i, o)).sum::<f64>()).collect()
    };
    x.iter().map(one).collect()
}

fn attention(qkv: &Rows, heads: usize, causal: bool) -> Rows {
    let width = qkv[0].len() / 3;
    let head = width / heads;
    let mut out = vec![vec![0.0; width]; qkv.len()];
    for h in 0..heads {
        for i in 0..qkv.len() {
            let seen = if causal { i + 1 } else { qkv.len() };
            let score = |j: usize| {
                let dot = (0..head).map(|d| qkv[i][h * head + d] * qkv[j][width + h * head + d]);
                dot.sum::<f64>() / (head as f64).sqrt()
            };
            let weights: Vec<f64> = (0..seen).map(|j| score(j).exp()).collect();
            let sum: f64 = weights.iter().sum();
            for (j, weight) in weights.iter().enumerate() {
                for d in 0..head {
                    out[i][h * head + d] += weight / sum * qkv[j][2 * width + h * head + d];
                }
            }
        }
    }
    out
}

fn added(a: &Rows, b: &Rows) -> Rows {
    a.iter().zip(b).map(|(a, b)| a.iter().zip(b).map(|(a, b)| a + b).collect()).collect()
}

/// How a kind of block goes.
#[derive(Clone, Copy)]
struct Kind {
    heads: usize,
    causal: bool,
    norm_first: bool,
    eps: f64,
    f: fn(f64) -> f64,
}

fn block(x: &Rows, names: &Names, kind: Kind) -> Rows {
    let around = |x: &Rows, norm: usize, part: &dyn Fn(&Rows) -> Rows| {
        if kind.norm_first {
            added(x, &part(&names.norm(norm, x, kind.eps)))
        } else {
            names.norm(norm, &added(x, &part(x)), kind.eps)
        }
    };
    let x = around(x, 0, &|x| {
        names.linear(3, &attention(&names.linear(2, x), kind.heads, kind.causal))
    });
    around(&x, 1, &|x| {
        let inner = names.linear(4, x);
        names.linear(5, &inner.iter().map(|x| x.iter().map(|&x| (kind.f)(x)).collect()).collect())
    })
}

/// By the integral that it is.
fn gelu(x: f64) -> f64 {
    let steps = 2000;
    let h = x / 2f64.sqrt() / f64::from(steps);
    let density = |n: i32| (-(f64::from(n) * h).powi(2)).exp();
    let inner: f64 = (1..steps).map(|n| density(n) * if n % 2 == 1 { 4.0 } else { 2.0 }).sum();
    let erf = (density(0) + inner + density(steps)) * h / 3.0 * 2.0 / std::f64::consts::PI.sqrt();
    0.5 * x * (1.0 + erf)
}

fn gelu_tanh(x: f64) -> f64 {
    0.5 * x * (1.0 + ((2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x.powi(3))).tanh())
}

fn stored(tensors: &Tensors) -> tempfile::NamedTempFile {
    let file = tempfile::Builder::new().suffix(".safetensors").tempfile().unwrap();
    save(file.path(), tensors, &BTreeMap::new()).unwrap();
    file
}

#[test]
fn an_encoder_under_pytorchs_names_computes_what_the_file_says() {
    let tensors = load_encoder::written(16, 32, 2).unwrap();
    let (parameters, encoder) = load_encoder::read(stored(&tensors).path(), 4).unwrap();
    assert_eq!(parameters.all().len(), tensors.len() - 2);
    let x = Random::new(1).normal(&[1, 5, 16], 0.0, 1.0, DType::F32).unwrap();
    let kind = Kind { heads: 4, causal: false, norm_first: false, eps: 1e-5, f: |x| x.max(0.0) };
    let mut wanted = rows(&x);
    for layer in 0..2 {
        let parts = [
            "norm1.",
            "norm2.",
            "self_attn.in_proj_",
            "self_attn.out_proj.",
            "linear1.",
            "linear2.",
        ];
        let at = format!("encoder.layers.{layer}.");
        wanted = block(&wanted, &Names { tensors: &tensors, at, parts, turned: false }, kind);
    }
    close(&encoder.forward(&x, None, Mode::Infer).unwrap(), &wanted, "encoder");
}

#[test]
fn gpt2_under_its_names_computes_what_the_file_says_and_writes_what_it_computes() {
    let tensors = load_gpt2::written(50, 16, 24, 2).unwrap();
    let model = load_gpt2::Gpt2::read(stored(&tensors).path(), 4).unwrap();
    let get = |name: &str| &tensors[&format!("transformer.{name}")];
    let ids = [5u32, 3, 11, 0, 49];
    let (words, places) = (rows(get("wte.weight")), rows(get("wpe.weight")));
    let mut x = added(&ids.iter().map(|&id| words[id as usize].clone()).collect(), &places);
    let kind = Kind { heads: 4, causal: true, norm_first: true, eps: 1e-5, f: gelu_tanh };
    for layer in 0..2 {
        let parts = ["ln_1.", "ln_2.", "attn.c_attn.", "attn.c_proj.", "mlp.c_fc.", "mlp.c_proj."];
        let at = format!("transformer.h.{layer}.");
        x = block(&x, &Names { tensors: &tensors, at, parts, turned: true }, kind);
    }
    let of = |name: &str| numbers(&tensors, &format!("transformer.ln_f.{name}"));
    let x = normed(&x, &of("weight"), &of("bias"), 1e-5);
    let flat: Vec<f64> = words.iter().flatten().copied().collect();
    let wanted = linear(&x, &flat, &[0.0; 50], false);
    close(&model.forward(&ids).unwrap(), &wanted, "gpt2");
    // With a cache, the same ids as by the whole pass at each step.
    let written = model.write(&ids, 6).unwrap();
    let mut by_hand = ids.to_vec();
    for _ in 0..6 {
        let logits = model.forward(&by_hand).unwrap();
        let next = logits.i((0, by_hand.len() - 1)).unwrap().argmax(0).unwrap();
        by_hand.push(next.item().unwrap() as u32);
    }
    assert_eq!(written, by_hand);
    // Another file's names are told.
    let mut other = tensors.clone();
    other.insert("transformer.h.0.attn.rotary".into(), get("ln_f.bias").clone());
    other.remove("transformer.h.1.mlp.c_fc.bias");
    let said = load_gpt2::Gpt2::read(stored(&other).path(), 4).err().unwrap().to_string();
    assert!(said.contains("\"blocks.layers.1.linear1.bias\""), "{said}");
    assert!(said.contains("\"h.0.attn.rotary\""), "{said}");
}

#[test]
fn a_vision_transformer_under_timms_names_computes_what_the_file_says() {
    let tensors = load_vit::written(16, 2).unwrap();
    let (parameters, model) = load_vit::read(stored(&tensors).path(), 4).unwrap();
    assert_eq!(parameters.all().len(), tensors.len());
    assert_eq!(model.config().image, [8, 8]);
    let image = Random::new(1).normal(&[1, 3, 8, 8], 0.0, 1.0, DType::F32).unwrap();
    let pixels = image.to_dtype(DType::F64).unwrap().to_vec::<f64>().unwrap();
    // Patches row by row; within one, channel by channel.
    let patches: Rows = (0..4)
        .map(|patch| {
            let (top, left) = (patch / 2 * 4, patch % 2 * 4);
            let pixel = |i: usize| (i / 16 * 8 + top + i / 4 % 4) * 8 + left + i % 4;
            (0..48).map(|i| pixels[pixel(i)]).collect()
        })
        .collect();
    let of = |name: &str| numbers(&tensors, name);
    let patches =
        linear(&patches, &of("patch_embed.proj.weight"), &of("patch_embed.proj.bias"), false);
    let mut x: Rows = vec![of("cls_token")];
    x.extend(patches);
    let mut x = added(&x, &rows(&tensors["pos_embed"]));
    let kind = Kind { heads: 4, causal: false, norm_first: true, eps: 1e-6, f: gelu };
    for depth in 0..2 {
        let parts = ["norm1.", "norm2.", "attn.qkv.", "attn.proj.", "mlp.fc1.", "mlp.fc2."];
        let at = format!("blocks.{depth}.");
        x = block(&x, &Names { tensors: &tensors, at, parts, turned: false }, kind);
    }
    let x = normed(&vec![x[0].clone()], &of("norm.weight"), &of("norm.bias"), 1e-6);
    let wanted = linear(&x, &of("head.weight"), &of("head.bias"), false);
    close(&model.forward(&image, Mode::Infer).unwrap(), &wanted, "vit");
}
