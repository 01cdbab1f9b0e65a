//! The weights along the edges of a graph: those of the dense array, without the array.
#![allow(clippy::unwrap_used)] // a test that cannot go on says so by its panic

use crate::case::*;
use regard_kernels::{
    Backward, Cpu, Edges, Forward, Gradients, Mask, Saved, Spec, View, ViewMut, reference,
};

fn graphs() -> Vec<MaskKind> {
    masks().into_iter().filter(|mask| mask.edges).collect()
}

/// Every score, normalizer and mask with edges, by turns with everything else.
fn each_case(mut f: impl FnMut(Case), small: bool) {
    let mut turn = 0;
    for score in SCORES {
        for normalizer in NORMALIZERS {
            for mask in graphs() {
                turn += 1;
                let sizes = [(17, 5), (70, 130), (3, 40)];
                let (nq, nk) = if small { (3, 4) } else { sizes[turn % 3] };
                f(Case {
                    b: 1 + turn % 2,
                    hq: 2,
                    hk: 1 + turn % 2,
                    nq,
                    nk,
                    d: if small { 2 } else { [3, 8, 16][turn % 3] },
                    dv: if small { 2 } else { [4, 16][turn % 2] },
                    score,
                    normalizer,
                    mask,
                    bias: biases()[turn % 8],
                    dropout: (turn % 3 == 0).then_some(0.25),
                    arriving: turn % 4 == 0,
                    arriving_edges: true,
                    strided: turn % 2 == 1,
                    seed: turn as u64,
                    ..Case::default()
                });
            }
        }
    }
}

#[test]
fn weights_along_edges_and_their_gradients_keep_the_rule() {
    each_case(
        |case| {
            keeps_the_rule(case);
            agrees_in_double(case);
        },
        false,
    );
}

#[test]
fn the_gradient_of_weights_along_edges_agrees_with_finite_differences() {
    let loss = |data: &Data<f64>| -> f64 {
        let [q, k, v, _] = data.shapes();
        let views = [(&data.q, q), (&data.k, k), (&data.v, v)];
        let [q, k, v] = views.map(|(x, shape)| View::new(x, shape).unwrap());
        let output = reference::forward(&data.spec(), q, k, v).unwrap();
        let sum = |x: &[f64], grad: &[f64]| -> f64 { x.iter().zip(grad).map(|(x, g)| x * g).sum() };
        sum(&output.out, &data.grad_out)
            + sum(&data.along_edges(&output.weights), data.grad_edge_weights.as_ref().unwrap())
    };
    each_case(
        |case| {
            let case = Case { arriving: false, ..case };
            let gradients = case.data::<f64>().reference().gradients;
            for (at, &analytic) in gradients[0].iter().enumerate() {
                let at_step = |step: f64| {
                    let mut data = case.data::<f64>();
                    data.q[at] += step;
                    loss(&data)
                };
                let numeric = (at_step(1e-5) - at_step(-1e-5)) / 2e-5;
                // A hard choice moves by jumps: its gradient is 0.
                assert!(
                    case.normalizer.is_hard() && analytic == 0.0
                        || (numeric - analytic).abs() <= 1e-6 * (1.0 + analytic.abs()),
                    "{at}: {analytic}, differences give {numeric}\n{case:?}"
                );
            }
        },
        true,
    );
}

#[test]
fn weights_along_edges_are_those_of_the_dense_array_to_the_bit() {
    each_case(
        |case| {
            let data = case.data::<f32>();
            let fused = data.fused(Cpu::best().isa());
            assert_eq!(fused.edge_weights, data.along_edges(&fused.weights), "{case:?}");
        },
        false,
    );
}

#[test]
fn weights_along_edges_are_refused_without_edges_and_in_another_number() {
    let x = [0f32; 12];
    let (q, k) = (View::new(&x[..8], [1, 1, 2, 4]).unwrap(), View::new(&x, [1, 1, 3, 4]).unwrap());
    let edges = Edges::new(2, 3, &[(0, 1), (1, 2)]).unwrap();
    let with =
        Spec { mask: Mask { edges: Some(&edges), ..Mask::default() }, ..Spec::scaled_dot(4) };
    let forward = |spec: &Spec<f32>, n: usize| {
        let (mut out, mut weights) = ([0f32; 8], vec![0f32; n]);
        let pass = Forward {
            edge_weights: Some(&mut weights),
            ..Forward::new(ViewMut::new(&mut out, [1, 1, 2, 4]).unwrap())
        };
        Cpu::best().forward(spec, q, k, k, pass).unwrap_err().to_string()
    };
    assert_eq!(forward(&Spec::scaled_dot(4), 2), "edge_weights was given; the mask has no edges");
    assert_eq!(forward(&with, 3), "edge_weights has 3 elements, [B, Hq, E] is [1, 1, 2]");
    let backward = |spec: &Spec<f32>, n: usize| {
        let saved = Saved { out: Some(q), lse: Some(&x[..2]), ..Saved::default() };
        let pass = Backward {
            grad_edge_weights: Some(&x[..n]),
            ..Backward::new(q, saved, Gradients::default())
        };
        Cpu::best().backward(spec, q, k, k, pass).unwrap_err().to_string()
    };
    assert_eq!(
        backward(&Spec::scaled_dot(4), 2),
        "grad_edge_weights was given; the mask has no edges"
    );
    assert_eq!(backward(&with, 1), "grad_edge_weights has 1 elements, [B, Hq, E] is [1, 1, 2]");
}
