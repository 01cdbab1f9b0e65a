//! Attention and the layers of a Transformer held against what PyTorch computes.

use crate::known;

use known::Case;
use regard::Result;
use regard::layers::{BlockConfig, DecoderBlock, EncoderBlock};
use regard::prelude::*;

/// PyTorch's masks of modules are true where a key may not be seen; ours where it may.
fn turned(mask: &Tensor) -> Result<Tensor> {
    let seen = mask.to_vec::<u8>()?.into_iter().map(|x| x == 0).collect::<Vec<_>>();
    Tensor::from_bools(&seen, mask.shape())
}

/// `[B, N]` that is true past each row's length.
fn lengths(padding: &Tensor) -> Result<Vec<usize>> {
    let rows = padding.to_vec::<u8>()?;
    let rows = rows.chunks(padding.shape()[1]);
    let lengths = rows.map(|row| {
        let length = row.iter().take_while(|&&x| x == 0).count();
        assert!(row[length..].iter().all(|&x| x == 1), "padding is at the end");
        length
    });
    Ok(lengths.collect())
}

fn is_causal(mask: &Tensor) -> Result<bool> {
    let n = mask.shape()[1];
    let hidden = mask.to_vec::<u8>()?;
    Ok(hidden.iter().enumerate().all(|(at, &x)| (x == 1) == (at % n > at / n)))
}

/// The mask of a module: `attention` and `padding` are the names of its inputs, where it has them.
/// A causal one is given as such, or written out.
fn mask(case: &Case, attention: &str, padding: &str, written_out: bool) -> Result<Mask> {
    let mut mask = Mask::none();
    if case.has(&format!("input/{attention}")) {
        let given = case.input(attention);
        assert!(is_causal(&given)?, "{}: the fixtures' masks are causal", case.name);
        if written_out {
            mask.dense = Some(turned(&given)?);
        } else {
            mask.causal = true;
        }
    }
    if case.has(&format!("input/{padding}")) {
        mask.key_lengths = Some(lengths(&case.input(padding))?);
    }
    Ok(mask)
}

#[test]
fn fixture_multihead() {
    known::each("multihead", 9, |case| {
        for written_out in [false, true] {
            let config = MultiHeadConfig {
                key_width: case.size("kdim"),
                value_width: case.size("vdim"),
                bias: case.flag("bias").unwrap_or(true),
                ..MultiHeadConfig::new(
                    case.size("embed_dim").unwrap(),
                    case.size("num_heads").unwrap(),
                )
            };
            let parameters = Parameters::new(case.dtype, 1);
            let attention = MultiHeadAttention::new(&parameters, &config)?;
            case.fill(&parameters)?;
            let q = case.input("q");
            let other = |name| {
                if case.has(&format!("input/{name}")) { case.input(name) } else { q.clone() }
            };
            let (k, v) = (other("k"), other("v"));
            let mask = mask(case, "attn_mask", "key_padding_mask", written_out)?;
            let attended = attention.attend(&q, &k, &v, &mask, Mode::Infer, Need::WEIGHTS)?;
            let weights = attended.weights.unwrap();
            case.compare("output/weights_per_head", &weights);
            case.compare("output/weights", &weights.mean(1)?);
            case.check("out", &attended.out)?;
        }
        Ok(())
    });
}

#[test]
fn fixture_sdpa() {
    known::each("sdpa", 10, |case| {
        let score = case.number("scale").map_or(Score::ScaledDot, |scale| Score::Dot { scale });
        let mut attention = Attention::new(score);
        let causal = case.flag("is_causal").unwrap_or(false);
        let mut mask = Mask { causal, ..Mask::none() };
        if case.has("input/mask") {
            // True where a key may be seen; a real one is added to the scores.
            let given = case.input("mask");
            if given.dtype() == DType::Bool {
                mask.dense = Some(given);
            } else {
                attention.bias = Bias { full: Some(given), ..Bias::default() };
            }
        }
        let [q, k, v] = ["q", "k", "v"].map(|name| case.input(name));
        case.check("out", &attention.forward(&q, &k, &v, &mask)?)
    });
}

/// The mask of a textbook module: one length per sequence, or one per query, written out.
fn textbook_mask(case: &Case, keys: usize) -> Result<Mask> {
    if !case.has("input/lengths") {
        return Ok(Mask::none());
    }
    let lengths = case.input("lengths");
    let numbers: Vec<usize> = lengths.to_vec::<i64>()?.into_iter().map(|n| n as usize).collect();
    if lengths.rank() == 1 {
        return Ok(Mask::lengths(&numbers));
    }
    let seen: Vec<bool> = numbers.iter().flat_map(|&n| (0..keys).map(move |key| key < n)).collect();
    let shape = [lengths.shape()[0], 1, lengths.shape()[1], keys];
    Ok(Mask { dense: Some(Tensor::from_bools(&seen, &shape)?), ..Mask::none() })
}

fn textbook(case: &Case, score: ScoreConfig) -> Result<()> {
    let [q, k, v] = ["q", "k", "v"].map(|name| case.input(name));
    let parameters = Parameters::new(case.dtype, 1);
    let config = MechanismConfig::new(score);
    let mechanism = Mechanism::new(&parameters, &config, q.shape()[2], k.shape()[2])?;
    case.fill(&parameters)?;
    let mask = textbook_mask(case, k.shape()[1])?;
    let attended = mechanism.attend(&q, &k, &v, &mask, Mode::Infer, Need::WEIGHTS)?;
    case.compare("output/weights", &attended.weights.unwrap());
    case.check("out", &attended.out)
}

#[test]
fn fixture_additive() {
    known::each("additive", 3, |case| {
        textbook(case, ScoreConfig::Additive { hidden: case.size("num_hiddens").unwrap() })
    });
}

#[test]
fn fixture_dot() {
    known::each("dot", 4, |case| {
        let plain = case.number("scale") == Some(1.0);
        textbook(case, if plain { ScoreConfig::Dot } else { ScoreConfig::ScaledDot })
    });
}

fn block(case: &Case) -> BlockConfig {
    BlockConfig {
        width: case.size("d_model").unwrap(),
        heads: case.size("nhead").unwrap(),
        feed_forward: case.size("dim_feedforward").unwrap(),
        activation: match case.text("activation").unwrap() {
            "relu" => Activation::Relu,
            "gelu" => Activation::Gelu,
            other => panic!("no activation {other}"),
        },
        dropout: 0.0,
        norm_first: case.flag("norm_first").unwrap(),
        ..BlockConfig::default()
    }
}

#[test]
fn fixture_transformer_encoder_layer() {
    known::each("transformer_encoder_layer", 7, |case| {
        for written_out in [false, true] {
            let parameters = Parameters::new(case.dtype, 1);
            let layer = EncoderBlock::new(&parameters, &block(case))?;
            case.fill(&parameters)?;
            let mask = mask(case, "src_mask", "src_key_padding_mask", written_out)?;
            case.check("out", &layer.forward(&case.input("x"), &mask, Mode::Infer)?)?;
        }
        Ok(())
    });
}

#[test]
fn fixture_transformer_decoder_layer() {
    known::each("transformer_decoder_layer", 3, |case| {
        let parameters = Parameters::new(case.dtype, 1);
        let layer = DecoderBlock::new(&parameters, &block(case))?;
        case.fill(&parameters)?;
        let own = mask(case, "tgt_mask", "tgt_key_padding_mask", false)?;
        let other = mask(case, "memory_mask", "memory_key_padding_mask", false)?;
        let (x, memory) = (case.input("x"), case.input("memory"));
        let out = layer.attend(&x, &memory, &own, &other, Mode::Infer, Need::OUTPUT)?.out;
        case.check("out", &out)
    });
}
