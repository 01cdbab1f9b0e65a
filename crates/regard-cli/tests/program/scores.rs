//! `regard attend` with the scores that have parameters in the file, against their formulas.

use crate::file::regard;
use regard::tensor::{Random, load, save};
use regard::{DType, Tensor};
use std::collections::BTreeMap;
use tempfile::TempDir;

const H: usize = 2;
const NQ: usize = 3;
const NK: usize = 5;
const D: usize = 4;

type Tensors = BTreeMap<String, Tensor>;

fn normal(seed: u64, shape: &[usize]) -> Tensor {
    Random::new(seed).normal(shape, 0.0, 1.0, DType::F64).unwrap()
}

/// q, k, v of two heads, a gradient, and the parameters of a score.
fn inputs(parameters: &[(&str, &[usize])]) -> Tensors {
    let mut all: Tensors = [
        ("q", normal(1, &[1, H, NQ, D])),
        ("k", normal(2, &[1, H, NK, D])),
        ("v", normal(3, &[1, H, NK, 2])),
        ("grad_out", normal(4, &[1, H, NQ, 2])),
    ]
    .into_iter()
    .map(|(name, x)| (name.to_string(), x))
    .collect();
    for (at, (name, shape)) in parameters.iter().enumerate() {
        all.insert(name.to_string(), normal(10 + at as u64, shape));
    }
    all
}

fn attended(tensors: &Tensors, options: &[&str]) -> Tensors {
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    save(path("in.safetensors"), tensors, &BTreeMap::new()).unwrap();
    let (input, out) = (path("in.safetensors"), path("out.safetensors"));
    let all = [&["attend", &input, "--out", &out, "--weights"], options].concat();
    let output = regard(&all);
    assert!(output.status.success(), "{options:?}: {output:?}");
    assert!(output.stderr.is_empty(), "{options:?}: {output:?}");
    load(out).unwrap().0
}

fn numbers(tensors: &Tensors, name: &str) -> Vec<f64> {
    tensors[name].to_vec().unwrap()
}

/// The score of a head for a query and a key.
type PairScore<'a> = &'a dyn Fn(usize, &[f64], &[f64]) -> f64;

/// softmax over keys of a score of (head, query, key), by plain loops.
fn expected(tensors: &Tensors, score: PairScore) -> Vec<f64> {
    let (q, k) = (numbers(tensors, "q"), numbers(tensors, "k"));
    let mut weights = Vec::new();
    for head in 0..H {
        for i in 0..NQ {
            let q = &q[(head * NQ + i) * D..][..D];
            let row: Vec<f64> =
                (0..NK).map(|j| score(head, q, &k[(head * NK + j) * D..][..D]).exp()).collect();
            let sum: f64 = row.iter().sum();
            weights.extend(row.iter().map(|x| x / sum));
        }
    }
    weights
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// W x of a matrix with so many columns.
fn times(w: &[f64], x: &[f64]) -> Vec<f64> {
    w.chunks(x.len()).map(|row| dot(row, x)).collect()
}

#[track_caller]
fn near(ours: &[f64], known: &[f64], what: &str) {
    assert_eq!(ours.len(), known.len(), "{what}");
    for (a, b) in ours.iter().zip(known) {
        assert!((a - b).abs() < 1e-9, "{what}: {a} is not {b}");
    }
}

/// The derivative of Σ grad_out · out in one number of a tensor, by a central difference.
fn slope(tensors: &Tensors, name: &str, at: usize, options: &[&str]) -> f64 {
    let step = 1e-5;
    let value = |by: f64| {
        let mut moved = tensors.clone();
        let mut x = numbers(tensors, name);
        x[at] += by;
        moved.insert(name.into(), Tensor::from_vec(x, tensors[name].shape()).unwrap());
        let out = attended(&moved, options);
        dot(&numbers(&out, "out"), &numbers(tensors, "grad_out"))
    };
    (value(step) - value(-step)) / (2.0 * step)
}

/// A score's options, its parameters and its formula over (parameters, head, q, k).
type Formula = fn(&Tensors, usize, &[f64], &[f64]) -> f64;
type Case = (&'static [&'static str], &'static [(&'static str, &'static [usize])], Formula);

fn cases() -> Vec<Case> {
    vec![
        (&["--score", "bilinear", "--scale", "0.5"], &[("W", &[D, D])], |p, _, q, k| {
            0.5 * dot(&times(&numbers(p, "W"), q), k)
        }),
        (&["--score", "bilinear"], &[("W", &[H, D, D])], |p, head, q, k| {
            dot(&times(&numbers(p, "W")[head * D * D..][..D * D], q), k)
        }),
        (&["--score", "low-rank"], &[("U", &[2, D]), ("V", &[2, D])], |p, _, q, k| {
            dot(&times(&numbers(p, "U"), k), &times(&numbers(p, "V"), q))
        }),
        (&["--score", "gaussian"], &[("w", &[D])], |p, _, q, k| {
            let w = numbers(p, "w");
            -0.5 * (0..D).map(|d| (w[d] * (q[d] - k[d])).powi(2)).sum::<f64>()
        }),
        (&["--score", "cosine"], &[("temperature", &[H])], |p, head, q, k| {
            numbers(p, "temperature")[head] * dot(q, k) / (dot(q, q) * dot(k, k)).sqrt()
        }),
        (&["--score", "concat"], &[("w", &[2 * D])], |p, _, q, k| {
            dot(&numbers(p, "w"), &[q, k].concat())
        }),
        (&["--score", "concat"], &[("w", &[3]), ("W", &[3, 2 * D])], |p, _, q, k| {
            let inside = times(&numbers(p, "W"), &[q, k].concat());
            dot(&numbers(p, "w"), &inside.iter().map(|x| x.tanh()).collect::<Vec<_>>())
        }),
        (
            &["--score", "expression", "--expression", "tau * sum(w * q * k) / sqrt(d)"],
            &[("tau", &[]), ("w", &[D])],
            |p, _, q, k| {
                let w = numbers(p, "w");
                let sum: f64 = (0..D).map(|d| w[d] * q[d] * k[d]).sum();
                numbers(p, "tau")[0] * sum / (D as f64).sqrt()
            },
        ),
    ]
}

#[test]
fn every_score_of_the_library_is_its_formula_with_parameters_from_the_file() {
    for (options, parameters, formula) in cases() {
        let tensors = inputs(parameters);
        let out = attended(&tensors, options);
        let known = expected(&tensors, &|head, q, k| formula(&tensors, head, q, k));
        near(&numbers(&out, "weights"), &known, &format!("{options:?}"));
    }
}

#[test]
fn the_gradients_of_every_score_and_its_parameters_are_its_slopes() {
    for (options, parameters, _) in cases() {
        let tensors = inputs(parameters);
        let out = attended(&tensors, options);
        let names = ["q", "k", "v"].into_iter().chain(parameters.iter().map(|(name, _)| *name));
        for name in names {
            let gradient = &out[&format!("grad_{name}")];
            assert_eq!(gradient.shape(), tensors[name].shape(), "{options:?}: {name}");
            let gradient: Vec<f64> = gradient.to_vec().unwrap();
            let at = gradient.len() / 2;
            let slope = slope(&tensors, name, at, options);
            assert!((gradient[at] - slope).abs() < 1e-6, "{options:?}: {name}[{at}]");
        }
    }
}

#[test]
fn a_score_takes_masks_and_biases_as_the_others_do() {
    let mut tensors = inputs(&[("W", &[D, D])]);
    tensors.insert("bias".into(), normal(30, &[NQ, NK]));
    let out = attended(&tensors, &["--score", "bilinear", "--causal", "--offset", "0"]);
    let weights = numbers(&out, "weights");
    for (at, weight) in weights.iter().enumerate() {
        let (i, j) = (at / NK % NQ, at % NK);
        assert_eq!(*weight == 0.0, j > i, "{i}, {j}: {weight}");
    }
    assert_eq!(out["grad_bias"].shape(), [NQ, NK]);
    assert_eq!(weights[0], 1.0);
}

#[test]
fn what_a_score_lacks_is_named() {
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    save(path("in.safetensors"), &inputs(&[("W", &[2, 3])]), &BTreeMap::new()).unwrap();
    let (input, out) = (path("in.safetensors"), path("out.safetensors"));
    let told = |options: &[&str]| {
        let output = regard(&[&["attend", &input, "--out", &out], options].concat());
        assert!(!output.status.success(), "{options:?}");
        String::from_utf8(output.stderr).unwrap().trim_end().to_string()
    };
    let ends = [
        (&["--score", "low-rank"][..], "--score low-rank needs the tensor `U`"),
        (&["--score", "bilinear"], "`W` has shape [2, 3]; it needs [.., 4] or [H, .., 4]"),
        (&["--score", "expression"], "--score expression and --expression TEXT belong together"),
        (&["--expression", "q @ k"], "--score expression and --expression TEXT belong together"),
        (
            &["--score", "cosine", "--scale", "2"],
            "--scale belongs to the dot scores, and --score is cosine",
        ),
        (
            &["--score", "bilinear", "--reference"],
            "--reference has the dot scores and the additive one, and --score is bilinear",
        ),
    ];
    for (options, what) in ends {
        let told = told(options);
        assert!(told.ends_with(what), "{told}");
    }
    let told = told(&["--score", "expression", "--expression", "tau * (q @ "]);
    assert!(told.contains("--expression"), "{told}");
}
