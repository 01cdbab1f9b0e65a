//! `regard attend` on x and matrices that make q, k and v of it: against PyTorch's `nn.MultiheadAttention`,
//! and against the formulas in plain loops.

use crate::file::regard;
use regard::tensor::{Random, load, save};
use regard::{DType, Tensor};
use std::collections::BTreeMap;
use std::path::Path;
use tempfile::TempDir;

type Tensors = BTreeMap<String, Tensor>;

fn normal(seed: u64, shape: &[usize]) -> Tensor {
    Random::new(seed).normal(shape, 0.0, 1.0, DType::F64).unwrap()
}

fn named(all: &[(&str, Tensor)]) -> Tensors {
    all.iter().map(|(name, x)| (name.to_string(), x.clone())).collect()
}

/// What the program writes, or the sentence with which it refuses.
fn attended(tensors: &Tensors, options: &[&str]) -> Result<Tensors, String> {
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    save(path("in.safetensors"), tensors, &BTreeMap::new()).unwrap();
    let (input, out) = (path("in.safetensors"), path("out.safetensors"));
    let output = regard(&[&["attend", &input, "--out", &out, "--weights"], options].concat());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    match output.status.success() {
        true => {
            assert!(said.is_empty(), "{options:?}: {said}");
            Ok(load(out).unwrap().0)
        }
        false => Err(said),
    }
}

#[track_caller]
fn assert_near(a: &Tensor, b: &Tensor, what: &str) {
    assert_eq!(a.shape(), b.shape(), "{what}");
    let (a, b) = (a.to_vec::<f64>().unwrap(), b.to_vec::<f64>().unwrap());
    let apart = a.iter().zip(&b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    assert!(apart < 1e-12, "{what}: {apart}");
}

#[test]
fn what_is_projected_is_not_rounded_before_the_type_that_is_asked_for() {
    let (x, w) = (normal(1, &[5, 4]), |seed| normal(seed, &[4, 4]));
    // The same numbers in both types.
    let x = x.to_dtype(DType::F32).unwrap();
    let matrices = [("W_q", w(2)), ("W_k", w(3)), ("W_v", w(4)), ("W_o", w(5))];
    let with = |x: Tensor| named(&[&[("x", x)][..], &matrices].concat());
    let wide = attended(&with(x.to_dtype(DType::F64).unwrap()), &["--heads", "2"]).unwrap();
    let asked = attended(&with(x), &["--heads", "2", "--dtype", "f64"]).unwrap();
    assert_near(&asked["out"], &wide["out"], "f32 vectors, f64 asked for");
    assert_near(&asked["weights"], &wide["weights"], "f32 vectors, f64 asked for");
}

#[test]
fn pytorchs_multi_head_attention_comes_of_its_own_weights() {
    let fixture =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/multihead.safetensors");
    let all = load(fixture).unwrap().0;
    let cases =
        ["self", "self-no-bias", "self-padding", "self-causal", "self-causal-padding", "cross"];
    let cases = [&cases[..], &["cross-padding", "cross-widths", "cross-widths-no-bias"]].concat();
    let mut compared = 0;
    for case in cases {
        let of = |kind: &str| -> Tensors {
            let before = format!("{case}/{kind}/");
            let own = all.iter().filter_map(|(name, x)| Some((name.strip_prefix(&before)?, x)));
            own.map(|(name, x)| (name.to_string(), x.clone())).collect()
        };
        let (mut input, output) = (of("weight"), of("output"));
        let given = of("input");
        if case.starts_with("self") {
            input.insert("x".into(), given["q"].clone());
        } else {
            input.extend(["q", "k", "v"].map(|name| (name.to_string(), given[name].clone())));
        }
        // PyTorch says true where a key is hidden.
        if let Some(padding) = given.get("key_padding_mask") {
            let hidden = padding.to_dtype(DType::F64).unwrap().to_vec::<f64>().unwrap();
            let seen: Vec<bool> = hidden.iter().map(|&hidden| hidden == 0.0).collect();
            let s = padding.shape();
            let mask = Tensor::from_bools(&seen, &[s[0], 1, 1, s[1]]).unwrap();
            input.insert("mask".into(), mask);
        }
        let causal = if case.contains("causal") { &["--causal"][..] } else { &[] };
        for more in [&[][..], &["--reference"]] {
            let options = [&["--heads", "2"], causal, more].concat();
            let written = attended(&input, &options).unwrap();
            assert_near(&written["out"], &output["out"], case);
            assert_near(&written["weights"], &output["weights_per_head"], case);
            compared += 1;
        }
    }
    assert_eq!(compared, 18);
}

/// x Wᵀ + b by plain loops.
fn linear(x: &[f64], w: &Tensor, b: Option<&Tensor>) -> Vec<f64> {
    let (out, width) = (w.shape()[0], w.shape()[1]);
    let w = w.to_vec::<f64>().unwrap();
    let b = b.map_or(vec![0.0; out], |b| b.to_vec().unwrap());
    let row = |x: &[f64]| -> Vec<f64> {
        (0..out).map(|o| b[o] + (0..width).map(|i| w[o * width + i] * x[i]).sum::<f64>()).collect()
    };
    x.chunks(width).flat_map(row).collect()
}

/// Softmax of scores over keys, times the values.
fn mixed(
    q: &[f64],
    k: &[f64],
    v: &[f64],
    n: [usize; 2],
    score: impl Fn(&[f64], &[f64]) -> f64,
) -> Vec<f64> {
    let (dq, dk, dv) = (q.len() / n[0], k.len() / n[1], v.len() / n[1]);
    let mut out = Vec::new();
    for q in q.chunks(dq) {
        let e: Vec<f64> = k.chunks(dk).map(|k| score(q, k).exp()).collect();
        let sum: f64 = e.iter().sum();
        out.extend((0..dv).map(|d| (0..n[1]).map(|j| e[j] / sum * v[j * dv + d]).sum::<f64>()));
    }
    out
}

#[test]
fn self_attention_comes_of_x_and_its_matrices_with_any_width() {
    let x = normal(1, &[5, 6]);
    let mut compared = 0;
    for (dk, dv) in [(4, 3), (6, 6), (1, 7)] {
        for bias in [false, true] {
            for project_out in [false, true] {
                let matrices = [normal(2, &[dk, 6]), normal(3, &[dk, 6]), normal(4, &[dv, 6])];
                let biases = [normal(5, &[dk]), normal(6, &[dk]), normal(7, &[dv])];
                let (wo, bo) = (normal(8, &[2, dv]), normal(9, &[2]));
                let mut input = named(&[("x", x.clone())]);
                for (at, name) in ["q", "k", "v"].iter().enumerate() {
                    input.insert(format!("W_{name}"), matrices[at].clone());
                    if bias {
                        input.insert(format!("b_{name}"), biases[at].clone());
                    }
                }
                if project_out {
                    input.extend(named(&[("W_o", wo.clone()), ("b_o", bo.clone())]));
                }
                let written = attended(&input, &[]).unwrap();
                let numbers = x.to_vec::<f64>().unwrap();
                let made = |at: usize| linear(&numbers, &matrices[at], bias.then_some(&biases[at]));
                let root = (dk as f64).sqrt();
                let dot =
                    |q: &[f64], k: &[f64]| q.iter().zip(k).map(|(a, b)| a * b).sum::<f64>() / root;
                let mut expected = mixed(&made(0), &made(1), &made(2), [5, 5], dot);
                if project_out {
                    expected = linear(&expected, &wo, Some(&bo));
                }
                let width = expected.len() / 5;
                let expected = Tensor::from_vec(expected, &[5, width]).unwrap();
                assert_near(&written["out"], &expected, &format!("{dk} {dv} {bias} {project_out}"));
                assert_eq!(written["weights"].shape(), [5, 5]);
                compared += 1;
            }
        }
    }
    assert_eq!(compared, 12);
}

#[test]
fn additive_attention_compares_queries_and_keys_of_other_widths() {
    let (q, k, v) = (normal(1, &[3, 4]), normal(2, &[5, 7]), normal(3, &[5, 2]));
    let (wq, wk, w) = (normal(4, &[6, 4]), normal(5, &[6, 7]), normal(6, &[6]));
    let input = [("q", &q), ("k", &k), ("v", &v), ("W_q", &wq), ("W_k", &wk), ("w", &w)];
    let input = named(&input.map(|(name, x)| (name, x.clone())));
    let written = attended(&input, &["--score", "additive"]).unwrap();
    let all = |x: &Tensor| x.to_vec::<f64>().unwrap();
    let (pq, pk) = (linear(&all(&q), &wq, None), linear(&all(&k), &wk, None));
    let w = all(&w);
    let score = |q: &[f64], k: &[f64]| (0..6).map(|i| w[i] * (q[i] + k[i]).tanh()).sum::<f64>();
    let expected = mixed(&pq, &pk, &all(&v), [3, 5], score);
    assert_near(&written["out"], &Tensor::from_vec(expected, &[3, 2]).unwrap(), "additive");
}

#[test]
fn an_unbatched_input_with_heads_has_the_same_numbers_as_a_batch_of_one() {
    let x = normal(1, &[5, 6]);
    let matrices =
        [("W_q", normal(2, &[8, 6])), ("W_k", normal(3, &[8, 6])), ("W_v", normal(4, &[4, 6]))];
    let mut one = named(&matrices);
    let mut batch = one.clone();
    one.insert("x".into(), x.clone());
    batch.insert("x".into(), x.unsqueeze(0).unwrap());
    let [one, batch] = [one, batch].map(|input| attended(&input, &["--heads", "2"]).unwrap());
    assert_eq!(one["out"].shape(), [5, 4]);
    assert_eq!(one["weights"].shape(), [2, 5, 5]);
    for name in ["out", "weights"] {
        assert_near(&one[name].unsqueeze(0).unwrap(), &batch[name], name);
    }
}

/// Tensors, options, and what is said.
type Refused = (Vec<(&'static str, Tensor)>, &'static [&'static str], &'static str);

#[test]
fn what_cannot_be_projected_is_refused_by_name() {
    let x = || ("x", normal(1, &[5, 6]));
    let w = |name: &'static str, shape: &[usize]| (name, normal(2, shape));
    let cases: [Refused; 9] = [
        (vec![x(), w("W_q", &[4, 5])], &[], "`x` has shape [5, 6], and what projects it [4, 5]"),
        (vec![x(), w("W_q", &[4, 6]), w("b_q", &[3])], &[], "the bias of `x` has shape [3]"),
        (vec![x(), w("q", &[5, 6])], &[], "`q` and `x` are both there"),
        (
            vec![x(), w("W_q", &[4, 6]), w("q_proj_weight", &[4, 6])],
            &[],
            "`W_q` and `q_proj_weight`",
        ),
        (vec![x(), w("in_proj_weight", &[16, 6])], &[], "three times as many rows"),
        (vec![x()], &["--heads", "4"], "q is 6 wide, which --heads 4 does not divide evenly"),
        (
            vec![x(), w("grad_out", &[5, 6])],
            &[],
            "gradients are computed of q, k and v that are given",
        ),
        (vec![w("W_q", &[4, 6])], &[], "there is no tensor `q`"),
        (vec![x(), w("memory", &[1, 4, 6])], &[], "`memory` has shape [1, 4, 6]"),
    ];
    for (input, options, told) in cases {
        let said = attended(&named(&input), options).unwrap_err();
        assert!(said.contains(told), "{told}: {said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    }
}
