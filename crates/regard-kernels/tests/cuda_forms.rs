//! Which kernels a call goes to on a GPU, without one: no everyday call takes the generic ones.

#![allow(clippy::unwrap_used)] // a test that cannot go on says so by its panic

use half::{bf16, f16};
use regard_kernels::{
    Activation, Bias, Broadcast, Dropout, Edges, Element, Mask, Normalizer, Relative, Score,
    Segments, Spec, View, Window, cuda,
};

const B: usize = 2;
const HEADS: usize = 4;
const N: usize = 48;

/// What a call's masks and biases are made of.
struct Arrays {
    dense: Vec<bool>,
    lengths: Vec<usize>,
    segments: Vec<i64>,
    numbers: Vec<f32>,
    edges: Edges,
}

impl Arrays {
    fn new() -> Self {
        Self {
            dense: vec![true; B * N * N],
            lengths: vec![N; B],
            segments: vec![0; B * N],
            numbers: vec![0.5; B * HEADS * N * N],
            edges: Edges::new(N, N, &[(0, 1), (3, 2)]).unwrap(),
        }
    }

    fn masks(&self) -> Vec<Mask<'_>> {
        let none = Mask::default();
        let segments = Segments { q: &self.segments, k: &self.segments };
        let dense = Broadcast { data: &self.dense[..], shape: [B, 1, N, N] };
        vec![
            none,
            Mask { causal: true, ..none },
            Mask { window: Some(Window { left: 8, right: 0 }), ..none },
            Mask { key_lengths: Some(&self.lengths), ..none },
            Mask { segments: Some(segments), causal: true, ..none },
            Mask { dense: Some(dense), ..none },
        ]
    }

    fn biases(&self) -> Vec<Bias<'_, f32>> {
        let none = Bias::default();
        let of =
            |shape: [usize; 4]| Broadcast { data: &self.numbers[..shape.iter().product()], shape };
        let relative = Relative { table: &self.numbers[..HEADS * 33], max_distance: 16 };
        vec![
            none,
            Bias { full: Some(of([1, HEADS, N, N])), ..none },
            Bias { key: Some(of([B, 1, 1, N])), ..none },
            Bias { alibi: Some(&self.numbers[..HEADS]), ..none },
            Bias { relative: Some(relative), ..none },
        ]
    }
}

/// The forms of a call over heads of these widths.
fn forms<E: Element<Compute = f32>>(
    spec: &Spec<f32>,
    key_heads: usize,
    [d, dv]: [usize; 2],
) -> [String; 2] {
    let zero = E::narrow(0.0);
    let rows = |heads: usize, d: usize| (vec![zero; B * heads * N * d], [B, heads, N, d]);
    let [q, k, v] = [rows(HEADS, d), rows(key_heads, d), rows(key_heads, dv)];
    let [q, k, v] = [&q, &k, &v].map(|(x, shape)| View::new(x, *shape).unwrap());
    cuda::form(spec, q, k, v).unwrap()
}

fn each_type(spec: &Spec<f32>, key_heads: usize, widths: [usize; 2]) -> [[String; 2]; 3] {
    [
        forms::<f32>(spec, key_heads, widths),
        forms::<bf16>(spec, key_heads, widths),
        forms::<f16>(spec, key_heads, widths),
    ]
}

#[test]
fn no_everyday_call_takes_the_generic_form() {
    let arrays = Arrays::new();
    let mut calls = 0;
    for mask in arrays.masks() {
        for bias in arrays.biases() {
            for normalizer in [Normalizer::Softmax, Normalizer::Sigmoid, Normalizer::None] {
                for dropout in [None, Some(Dropout { p: 0.1, seed: 1 })] {
                    for d in [8, 32, 40, 64, 80, 96, 128, 192, 256] {
                        for key_heads in [HEADS, 1] {
                            let score = Score::scaled_dot(d);
                            let offset = Some(0);
                            let spec = Spec { score, mask, bias, normalizer, dropout, offset };
                            for found in each_type(&spec, key_heads, [d, d]) {
                                let takes = found.iter().any(|form| form == "Generic");
                                assert!(!takes, "{spec:?} of width {d}: {found:?}");
                                calls += 1;
                            }
                        }
                    }
                }
            }
        }
    }
    assert_eq!(calls, 6 * 5 * 3 * 2 * 9 * 2 * 3);
}

#[test]
fn no_graph_of_attention_layers_takes_the_generic_form() {
    let arrays = Arrays::new();
    let mask = Mask { edges: Some(&arrays.edges), ..Mask::default() };
    let mut calls = 0;
    for activation in [Activation::LeakyRelu { slope: 0.2 }, Activation::Relu] {
        for dv in [1, 2, 7, 8, 16, 32, 40, 64, 128, 200, 256] {
            for d in [1, dv] {
                for dropout in [None, Some(Dropout { p: 0.6, seed: 1 })] {
                    let w = vec![0.5; d];
                    let score = Score::Additive { activation, w: &w };
                    let spec = Spec { mask, dropout, ..Spec::new(score) };
                    for found in each_type(&spec, HEADS, [d, dv]) {
                        assert_eq!(found, ["Graph", "Graph"], "{spec:?} of widths {d}, {dv}");
                        calls += 1;
                    }
                }
            }
        }
    }
    assert_eq!(calls, 2 * 11 * 2 * 2 * 3);
}

/// What still does, so that a change is noticed: the list is to become shorter.
#[test]
fn what_takes_the_generic_form_is_known() {
    let w = [0.5; 64];
    let score = |activation| Score::Additive { activation, w: &w };
    let tanh = Spec::new(score(Activation::Tanh));
    let dropped = Spec { dropout: Some(Dropout { p: 0.1, seed: 1 }), ..tanh };
    let relu = Spec::new(score(Activation::Relu));
    let entmax = Spec { normalizer: Normalizer::Entmax15, ..Spec::scaled_dot(64) };
    let hard = Spec { normalizer: Normalizer::Argmax, ..Spec::scaled_dot(64) };
    let additive = "Additive";
    for (spec, [f32s, bf16s]) in [
        (tanh, [additive, "Generic"]),
        (dropped, ["Generic"; 2]),
        (relu, ["Generic"; 2]),
        (entmax, ["Generic", "DotThreshold"]),
        (hard, ["Generic"; 2]),
    ] {
        let [of_f32, of_bf16, _] = each_type(&spec, HEADS, [64, 64]);
        assert_eq!([of_f32[0].as_str(), of_bf16[0].as_str()], [f32s, bf16s], "{spec:?}");
    }
}
