//! What explanations are made of: gradients of weights against finite differences, tokens that are
//! taken away against a model that never had them.

use regard::Result;
use regard::attention::{HeadPatch, Intervention, Patched, Site, traced};
use regard::layers::probe_tokens;
use regard::prelude::*;
use std::sync::Arc;

const N: usize = 4;
const HEADS: usize = 2;
const WIDTH: usize = 8;

fn encoder() -> (TransformerEncoder, Tensor) {
    let config = TransformerConfig::new(WIDTH, HEADS, 2);
    let encoder = TransformerEncoder::new(&Parameters::new(DType::F64, 3), &config, WIDTH).unwrap();
    let x = Random::new(5).normal(&[1, N, WIDTH], 0.0, 1.0, DType::F64).unwrap();
    (encoder, x)
}

/// A number that depends on every output.
fn score(encoder: &TransformerEncoder, x: &Tensor) -> Result<Tensor> {
    let y = encoder.forward(x, None, Mode::Infer)?;
    y.mul(&Random::new(9).normal(y.shape(), 0.0, 1.0, DType::F64)?)?.sum_all()
}

#[test]
fn the_gradient_of_a_weight_is_what_finite_differences_of_the_weights_say() -> Result<()> {
    let (encoder, x) = encoder();
    let (found, calls) = traced(|| score(&encoder, &x));
    let gradients = found?.backward()?;
    assert_eq!(calls.len(), 2);
    for (layer, traced) in calls.iter().enumerate() {
        let ours = traced.gradient(&gradients)?.expect("a gradient").to_vec::<f64>()?;
        let weights = traced.call.weights.as_ref().expect("weights").to_vec::<f64>()?;
        let weights: Vec<f32> = weights.iter().map(|&w| w as f32).collect();
        for (at, ours) in ours.iter().enumerate() {
            const STEP: f32 = 1.0 / 128.0;
            let (head, cell) = (at / (N * N), at % (N * N));
            let patched = |by: f32| -> Result<f64> {
                let mut numbers = weights[head * N * N..(head + 1) * N * N].to_vec();
                numbers[cell] += by;
                let (site, what) = (Site::Encoder, Patched::Attention);
                let (rows, numbers) = (Some(N), Arc::from(numbers));
                let patch = HeadPatch { site, layer, head, what, rows, numbers };
                let change = Intervention { patches: vec![patch], ..Intervention::default() };
                Ok(change.during(|| score(&encoder, &x))?.to_vec::<f64>()?[0])
            };
            let known = (patched(STEP)? - patched(-STEP)?) / (2.0 * f64::from(STEP));
            let near = 1e-3 * known.abs().max(1.0);
            assert!((ours - known).abs() < near, "layer {layer}, weight {at}: {ours} and {known}");
        }
    }
    Ok(())
}

#[test]
fn tracing_changes_no_output_and_ends_with_its_closure() -> Result<()> {
    let (encoder, x) = encoder();
    let plain = score(&encoder, &x)?.to_vec::<f64>()?;
    let (found, calls) = traced(|| score(&encoder, &x));
    assert_eq!(found?.to_vec::<f64>()?, plain);
    assert_eq!(calls.len(), 2);
    let (none, calls) = traced(|| 3);
    assert_eq!((none, calls.len()), (3, 0));
    Ok(())
}

#[test]
fn heads_that_share_values_have_a_gradient_each() -> Result<()> {
    let heads = 4;
    let config =
        TransformerConfig { key_heads: Some(2), ..TransformerConfig::new(WIDTH, heads, 1) };
    let encoder = TransformerEncoder::new(&Parameters::new(DType::F64, 3), &config, WIDTH)?;
    let (_, x) = self::encoder();
    let (found, calls) = traced(|| score(&encoder, &x));
    let gradients = found?.backward()?;
    let all = calls[0].gradient(&gradients)?.expect("a gradient");
    assert_eq!(all.shape(), [1, heads, N, N]);
    // Σⱼ Aᵢⱼ ∂f/∂Aᵢⱼ is how f changes where the head's whole output grows: by finite differences of
    // the head's weights, all of them scaled.
    let weights = calls[0].call.weights.as_ref().expect("weights");
    let sums = all.mul(weights)?.sum(3)?.sum(2)?.contiguous()?.to_vec::<f64>()?;
    for (head, ours) in sums.iter().enumerate() {
        let scaled = |by: f64| -> Result<f64> {
            let own = calls[0].call.out.narrow(1, head, 1)?.contiguous()?.to_vec::<f64>()?;
            let numbers: Vec<f32> = own.iter().map(|w| (w * by) as f32).collect();
            let (site, what, layer) = (Site::Encoder, Patched::Output, 0);
            let (rows, numbers) = (Some(N), Arc::from(numbers));
            let patch = HeadPatch { site, layer, head, what, rows, numbers };
            let change = Intervention { patches: vec![patch], ..Intervention::default() };
            Ok(change.during(|| score(&encoder, &x))?.to_vec::<f64>()?[0])
        };
        let known = (scaled(1.0 + 1e-2)? - scaled(1.0 - 1e-2)?) / 2e-2;
        assert!((ours - known).abs() < 1e-3 * known.abs().max(1.0), "{head}: {ours} and {known}");
    }
    Ok(())
}

#[test]
fn only_the_tokens_of_the_first_embedding_are_taken_away_wherever_they_are_embedded() -> Result<()>
{
    let parameters = Parameters::new(DType::F64, 1);
    let [a, b] = ["a", "b"].map(|name| Embedding::new(&parameters.at(name), 7, 3, None));
    let (a, b) = (a?, b?);
    let read = Tensor::from_vec(vec![2i64, 5], &[1, 2])?;
    let written = Tensor::from_vec(vec![2i64, 6], &[1, 2])?;
    let (found, vectors) = probe_tokens(Some(&[0.0, 0.5]), || -> Result<_> {
        Ok([a.forward(&read)?, b.forward(&read)?, a.forward(&written)?])
    });
    let (found, plain) = (found?, [a.forward(&read)?, b.forward(&read)?, a.forward(&written)?]);
    assert_eq!(vectors.len(), 2);
    for (at, (found, plain)) in found.iter().zip(&plain).enumerate() {
        let (found, plain) = (found.to_vec::<f64>()?, plain.to_vec::<f64>()?);
        let factor = |i: usize| if at == 2 { 1.0 } else { [0.0, 0.5][i / 3] };
        let known: Vec<f64> = plain.iter().enumerate().map(|(i, x)| x * factor(i)).collect();
        assert_eq!(found, known, "embedding {at}");
    }
    Ok(())
}
