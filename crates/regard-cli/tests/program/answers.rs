//! What `regard attend` computes.

use crate::file::{File, Folder, regard};
use crate::numbers::{assert_close, dot, noise, softmax_attention};
use safetensors::Dtype;
use std::fs;

/// q, k, v and grad_out of one head.
fn head(dtype: Dtype, [nq, nk, d, dv]: [usize; 4]) -> File {
    File::default()
        .reals("q", dtype, &[nq, d], &noise(1, nq * d))
        .reals("k", dtype, &[nk, d], &noise(2, nk * d))
        .reals("v", dtype, &[nk, dv], &noise(3, nk * dv))
        .reals("grad_out", dtype, &[nq, dv], &noise(4, nq * dv))
}

/// q, k, v and grad_out of two batch items with grouped heads, and every parameter there is.
fn everything() -> File {
    let [b, hq, hk, nq, nk, d, dv] = [2, 4, 2, 5, 7, 3, 6];
    let reals = |file: File, name, shape: &[usize], stream| {
        file.f32(name, shape, &noise(stream, shape.iter().product()))
    };
    let mut file = File::default();
    file = reals(file, "q", &[b, hq, nq, d], 1);
    file = reals(file, "k", &[b, hk, nk, d], 2);
    file = reals(file, "v", &[b, hk, nk, dv], 3);
    file = reals(file, "grad_out", &[b, hq, nq, dv], 4);
    file = reals(file, "bias", &[hq, nq, nk], 5);
    file = reals(file, "key_bias", &[b, nk], 6);
    file = reals(file, "relative_bias", &[hq, 5], 7);
    file = reals(file, "alibi_slopes", &[hq], 8);
    reals(file, "w", &[hq, d], 9)
}

const NORMALIZERS: [&str; 7] =
    ["softmax", "sparsemax", "entmax15", "sigmoid", "none", "argmax", "sample"];

#[test]
fn scaled_dot_attention_is_the_formula() {
    let [nq, nk, d, dv] = [3, 5, 4, 2];
    let (q, k, v, g) = (noise(1, nq * d), noise(2, nk * d), noise(3, nk * dv), noise(4, nq * dv));
    let score = |i, j| dot(&q, &k, d, i, j) / (d as f64).sqrt();
    let (out, weights) = softmax_attention([nq, nk, dv], score, &v);
    let lse: Vec<f64> =
        (0..nq).map(|i| (0..nk).map(|j| score(i, j).exp()).sum::<f64>().ln()).collect();

    let file = head(Dtype::F64, [nq, nk, d, dv]);
    let written = file.attend(&["--weights", "--lse"]);
    assert_close("out", written.values("out"), &out, 1e-14);
    assert_close("weights", written.values("weights"), &weights, 1e-14);
    assert_close("lse", written.values("lse"), &lse, 1e-14);

    // grad_v = weightsᵀ · grad_out, and grad_q by the softmax's derivative.
    let mut grad_v = vec![0.0; nk * dv];
    let mut grad_q = vec![0.0; nq * d];
    for i in 0..nq {
        let p = &weights[i * nk..][..nk];
        let dp: Vec<f64> = (0..nk).map(|j| dot(&g, &v, dv, i, j)).collect();
        let mean: f64 = p.iter().zip(&dp).map(|(p, dp)| p * dp).sum();
        for j in 0..nk {
            for c in 0..dv {
                grad_v[j * dv + c] += p[j] * g[i * dv + c];
            }
            for c in 0..d {
                grad_q[i * d + c] += p[j] * (dp[j] - mean) * k[j * d + c] / (d as f64).sqrt();
            }
        }
    }
    assert_close("grad_v", written.values("grad_v"), &grad_v, 1e-14);
    assert_close("grad_q", written.values("grad_q"), &grad_q, 1e-14);
}

#[test]
fn dot_attention_has_no_factor_but_the_one_that_is_given() {
    let [nq, nk, d, dv] = [3, 5, 4, 2];
    let (q, k, v) = (noise(1, nq * d), noise(2, nk * d), noise(3, nk * dv));
    let file = head(Dtype::F64, [nq, nk, d, dv]);
    for (options, scale) in [
        (&["--score", "dot"][..], 1.0),
        (&["--score", "dot", "--scale", "-0.25"], -0.25),
        (&["--scale", "2e0"], 2.0),
    ] {
        let (out, _) = softmax_attention([nq, nk, dv], |i, j| scale * dot(&q, &k, d, i, j), &v);
        assert_close("out", file.attend(options).values("out"), &out, 1e-14);
    }
}

#[test]
fn additive_attention_is_the_formula_for_every_activation() {
    let [nq, nk, d, dv] = [3, 5, 4, 2];
    let (q, k, v, w) = (noise(1, nq * d), noise(2, nk * d), noise(3, nk * dv), noise(9, d));
    let file = head(Dtype::F64, [nq, nk, d, dv]).reals("w", Dtype::F64, &[d], &w);
    type Activation = fn(f64) -> f64;
    let activations: [(&[&str], Activation); 5] = [
        (&[], f64::tanh),
        (&["--activation", "leaky-relu"], |x| if x > 0.0 { x } else { 0.2 * x }),
        (&["--activation", "leaky-relu", "--negative-slope", "-0.5"], |x| x.max(-0.5 * x)),
        (&["--activation", "relu"], |x| x.max(0.0)),
        (&["--activation", "identity"], |x| x),
    ];
    for (options, activation) in activations {
        let term = |i: usize, j: usize, c: usize| w[c] * activation(q[i * d + c] + k[j * d + c]);
        let score = |i, j| (0..d).map(|c| term(i, j, c)).sum::<f64>();
        let (out, _) = softmax_attention([nq, nk, dv], score, &v);
        let written = file.attend(&[&["--score", "additive"], options].concat());
        assert_close(&format!("{options:?}"), written.values("out"), &out, 1e-14);
    }
}

#[test]
fn biases_are_added_to_the_scores() {
    let [nq, nk, d] = [3, 5, 4];
    let (q, k, v) = (noise(1, nq * d), noise(2, nk * d), noise(3, nk * d));
    let (bias, key_bias, table) = (noise(5, nq * nk), noise(6, nk), noise(7, 5));
    let file = head(Dtype::F64, [nq, nk, d, d])
        .reals("bias", Dtype::F64, &[nq, nk], &bias)
        .reals("key_bias", Dtype::F64, &[nk], &key_bias)
        .reals("relative_bias", Dtype::F64, &[5], &table)
        .reals("alibi_slopes", Dtype::F64, &[1], &[0.25]);
    for (options, offset) in [(&[][..], 2), (&["--offset", "-1"][..], -1)] {
        let score = |i: usize, j: usize| {
            let distance = j as i64 - (i as i64 + offset);
            dot(&q, &k, d, i, j) / 2.0 + bias[i * nk + j] + key_bias[j]
                - 0.25 * distance.abs() as f64
                + table[(distance.clamp(-2, 2) + 2) as usize]
        };
        let (out, _) = softmax_attention([nq, nk, d], score, &v);
        assert_close("out", file.attend(options).values("out"), &out, 1e-14);
    }
}

#[test]
fn kernels_and_reference_agree_for_every_score_and_normalizer() {
    let scores: [&[&str]; 7] = [
        &["--score", "dot"],
        &["--score", "scaled-dot"],
        &["--score", "additive"],
        &["--score", "additive", "--activation", "leaky-relu"],
        &["--score", "additive", "--activation", "relu"],
        &["--score", "additive", "--activation", "gelu"],
        &["--score", "additive", "--activation", "identity"],
    ];
    for score in scores {
        let file =
            if score.contains(&"additive") { everything() } else { everything().without("w") };
        for normalizer in NORMALIZERS {
            let options = [score, &["--normalizer", normalizer, "--weights", "--lse"]].concat();
            let fused = file.attend(&options);
            let exact = file.attend(&[&options[..], &["--reference"]].concat());
            assert_eq!(fused.names(), exact.names());
            for name in exact.names() {
                let what = format!("{name} of {score:?} {normalizer}");
                let (got, expected) = (fused.get(name), exact.get(name));
                assert_eq!((got.dtype, &got.shape), (expected.dtype, &expected.shape), "{what}");
                assert_close(&what, &got.values, &expected.values, 2e-5);
            }
        }
    }
}

#[test]
fn every_instruction_set_gives_the_same_answer() {
    let file = everything().without("w");
    let expected = file.attend(&["--reference", "--causal"]);
    for isa in regard_kernels::Isa::ALL.into_iter().filter(|isa| isa.is_available()) {
        let written = file.attend(&["--isa", &isa.to_string(), "--causal", "--threads", "1"]);
        for name in expected.names() {
            assert_close(
                &format!("{name}, {isa}"),
                written.values(name),
                expected.values(name),
                2e-5,
            );
        }
    }
}

#[test]
fn gradients_have_the_shape_of_what_was_given() {
    let file = everything();
    let written = file.attend(&["--score", "additive"]);
    let expected: [(&str, &[usize]); 8] = [
        ("out", &[2, 4, 5, 6]),
        ("grad_q", &[2, 4, 5, 3]),
        ("grad_k", &[2, 2, 7, 3]),
        ("grad_v", &[2, 2, 7, 6]),
        ("grad_w", &[4, 3]),
        ("grad_bias", &[4, 5, 7]),
        ("grad_key_bias", &[2, 7]),
        ("grad_relative_bias", &[4, 5]),
    ];
    assert_eq!(written.names().len(), expected.len());
    for (name, shape) in expected {
        assert_eq!(written.get(name).shape, shape, "{name}");
    }
    let scalar =
        file.clone().without("w").f32("bias", &[], &[0.5]).f32("relative_bias", &[3], &[0.0; 3]);
    let written = scalar.attend(&[]);
    assert_eq!(written.get("grad_bias").shape, [0; 0]);
    assert_eq!(written.get("grad_relative_bias").shape, [3]);
    assert!(!written.names().contains(&"grad_w"));
    // One number added to every score changes nothing.
    assert_close("grad_bias", written.values("grad_bias"), &[0.0], 1e-5);
}

#[test]
fn only_what_is_asked_for_is_written() {
    let file = everything().without("w").without("grad_out");
    assert_eq!(file.attend(&[]).names(), ["out"]);
    assert_eq!(file.attend(&["--weights", "--lse"]).names(), ["lse", "out", "weights"]);
    for normalizer in ["argmax", "sample"] {
        let written = file.attend(&["--normalizer", normalizer]);
        assert_eq!(written.names(), ["index", "log_prob", "out"]);
        assert_eq!(written.get("index").dtype, Dtype::I64);
    }
}

#[test]
fn two_three_and_four_axes_give_the_same_numbers_in_as_many_axes() {
    let [b, n, d] = [2, 4, 3];
    let parts: [(&'static str, u32); 4] = [("q", 1), ("k", 2), ("v", 3), ("grad_out", 4)];
    let with = |shape: &[usize], at: std::ops::Range<usize>| {
        parts.iter().fold(File::default(), |file, &(name, stream)| {
            file.f32(name, shape, &noise(stream, b * n * d)[at.clone()])
        })
    };
    let options = ["--weights", "--lse", "--normalizer", "argmax"];
    let four = with(&[b, 1, n, d], 0..b * n * d).attend(&options);
    let three = with(&[b, n, d], 0..b * n * d).attend(&options);
    let two = with(&[n, d], n * d..b * n * d).attend(&options);
    for (name, last) in [
        ("out", &[n, d][..]),
        ("weights", &[n, n]),
        ("lse", &[n]),
        ("index", &[n]),
        ("log_prob", &[n]),
        ("grad_q", &[n, d]),
    ] {
        assert_eq!(four.get(name).shape, [&[b, 1], last].concat());
        assert_eq!(three.get(name).shape, [&[b], last].concat());
        assert_eq!(two.get(name).shape, last);
        assert_eq!(four.get(name).bits, three.get(name).bits, "{name}");
        let second = &three.values(name)[three.values(name).len() / 2..];
        assert_eq!(second, two.values(name), "{name}");
    }
}

#[test]
fn grouped_heads_read_the_keys_of_their_group() {
    let [hq, hk, n, d] = [4, 2, 3, 2];
    let file = File::default()
        .f32("q", &[1, hq, n, d], &noise(1, hq * n * d))
        .f32("k", &[1, hk, n, d], &noise(2, hk * n * d))
        .f32("v", &[1, hk, n, d], &noise(3, hk * n * d));
    let written = file.attend(&[]);
    for h in 0..hq {
        let part = |stream, heads: usize, h: usize| {
            noise(stream, heads * n * d)[h * n * d..][..n * d].to_vec()
        };
        let head = File::default()
            .f32("q", &[n, d], &part(1, hq, h))
            .f32("k", &[n, d], &part(2, hk, h / 2))
            .f32("v", &[n, d], &part(3, hk, h / 2));
        let out = &written.values("out")[h * n * d..][..n * d];
        assert_close("out", out, head.attend(&[]).values("out"), 1e-6);
    }
}

#[test]
fn every_type_is_read_and_converted_to_every_other() {
    let shape = [3, 5, 4, 2];
    let expected = head(Dtype::F64, shape).attend(&["--reference", "--weights", "--lse"]);
    let types = [
        ("f32", Dtype::F32, Dtype::F32, 1e-6),
        ("f64", Dtype::F64, Dtype::F64, 1e-14),
        ("bf16", Dtype::BF16, Dtype::F32, 1e-2),
        ("f16", Dtype::F16, Dtype::F32, 1e-3),
    ];
    for (_, from, ..) in types {
        let file = head(from, shape).f32("key_bias", &[5], &[0.0; 5]);
        for (name, stored, computed, tolerance) in types {
            for reference in [&[][..], &["--reference"]] {
                let options = [&["--dtype", name, "--weights", "--lse"], reference].concat();
                let written = file.attend(&options);
                for name in ["out", "grad_q", "grad_k", "grad_v"] {
                    assert_eq!(written.get(name).dtype, stored);
                    assert_close(name, written.values(name), expected.values(name), tolerance);
                }
                for name in ["weights", "lse", "grad_key_bias"] {
                    assert_eq!(written.get(name).dtype, computed, "{name}");
                }
                assert_close("lse", written.values("lse"), expected.values("lse"), 1e-6);
            }
        }
        // Without --dtype it is q's.
        assert_eq!(file.attend(&[]).get("out").dtype, from);
    }
}

#[test]
fn the_weights_times_v_are_the_output_with_dropout_too() {
    let [nq, nk, d, dv] = [17, 33, 4, 3];
    let v = noise(3, nk * dv);
    let file = head(Dtype::F32, [nq, nk, d, dv]);
    for normalizer in NORMALIZERS {
        let options = ["--normalizer", normalizer, "--weights", "--dropout", "0.4", "--seed", "11"];
        let written = file.attend(&options);
        let weights = written.values("weights");
        let product: Vec<f64> = (0..nq * dv)
            .map(|at| (0..nk).map(|j| weights[at / dv * nk + j] * v[j * dv + at % dv]).sum())
            .collect();
        assert_close(normalizer, written.values("out"), &product, 1e-5);
        assert_eq!(written, file.attend(&options), "the same seed, the same bits");
    }
    let weights = |options: &[&str]| file.attend(&[options, &["--weights"]].concat());
    let (plain, dropped) = (weights(&[]), weights(&["--dropout", "0.4"]));
    let (plain, dropped) = (plain.values("weights"), dropped.values("weights"));
    let zeros = dropped.iter().filter(|&&p| p == 0.0).count() as f64 / (nq * nk) as f64;
    assert!((zeros - 0.4).abs() < 0.1, "{zeros}");
    for (p, q) in plain.iter().zip(dropped).filter(|(_, q)| **q != 0.0) {
        assert!((q * 0.6 - p).abs() < 1e-6, "{p} {q}");
    }
    let other = weights(&["--dropout", "0.4", "--seed", "1"]);
    assert_ne!(dropped, other.values("weights"));
}

#[test]
fn weights_are_written_as_they_are_before_dropout_where_that_is_asked_for() {
    let file = head(Dtype::F32, [17, 33, 4, 3]).f32("temperature", &[1], &[2.0]);
    let dropout = ["--dropout", "0.4", "--seed", "3"];
    let mut tried = 0;
    for normalizer in NORMALIZERS {
        for more in
            [&["--score", "dot"][..], &["--score", "dot", "--reference"], &["--score", "cosine"]]
        {
            let file = if more.contains(&"cosine") {
                file.clone()
            } else {
                file.clone().without("temperature")
            };
            let options = [&["--normalizer", normalizer], more].concat();
            let before =
                file.attend(&[&options[..], &dropout, &["--weights-before-dropout"]].concat());
            let seed = ["--seed", "3", "--weights"];
            let plain = file.attend(&[&options[..], &seed].concat());
            let dropped = file.attend(&[&options[..], &dropout, &["--weights"]].concat());
            assert_eq!(before.values("weights"), plain.values("weights"), "{options:?}");
            assert_eq!(before.values("out"), dropped.values("out"), "{options:?}");
            assert_eq!(before.values("grad_q"), dropped.values("grad_q"), "{options:?}");
            tried += 1;
        }
    }
    assert_eq!(tried, 21);
    // What includes dropout says so.
    let folder = Folder::new(&file.without("temperature").serialized());
    let said = |options: &[&str]| String::from_utf8(folder.attend(options).stderr).unwrap();
    let told = said(&["--weights", "--dropout", "0.4"]);
    assert!(
        told.contains("`weights` include dropout") && told.contains("--weights-before-dropout")
    );
    assert_eq!(said(&["--weights"]), "");
    assert_eq!(said(&["--weights-before-dropout", "--dropout", "0.4"]), "");
    assert_eq!(said(&["--weights", "--dropout", "0"]), "");
}

#[test]
fn hard_choices_give_the_row_they_chose_and_its_log_probability() {
    let [nq, nk, d, dv] = [17, 9, 4, 3];
    let v = noise(3, nk * dv);
    let file = head(Dtype::F32, [nq, nk, d, dv]);
    let soft = file.attend(&["--weights"]);
    for (normalizer, seed) in [("argmax", "0"), ("sample", "0"), ("sample", "5")] {
        let written = file.attend(&["--normalizer", normalizer, "--seed", seed]);
        for i in 0..nq {
            let j = written.values("index")[i] as usize;
            let row = &soft.values("weights")[i * nk..][..nk];
            assert_close("out", &written.values("out")[i * dv..][..dv], &v[j * dv..][..dv], 0.0);
            assert_close("log_prob", &written.values("log_prob")[i..=i], &[row[j].ln()], 1e-5);
            assert!(normalizer != "argmax" || row.iter().all(|&p| p <= row[j]));
        }
        // No gradient reaches the scores.
        assert!(written.values("grad_q").iter().chain(written.values("grad_k")).all(|&g| g == 0.0));
    }
    let index = |seed: &str| {
        let written = file.attend(&["--normalizer", "sample", "--seed", seed]);
        written.values("index").to_vec()
    };
    assert_eq!(index("5"), index("5"));
    assert_ne!(index("5"), index("6"));
}

#[test]
fn the_number_of_threads_does_not_change_the_answer() {
    let file = head(Dtype::F32, [130, 200, 8, 8]);
    let one = file.attend(&["--threads", "1", "--causal"]);
    let three = file.attend(&["--threads", "3", "--causal"]);
    for name in one.names() {
        assert_close(name, three.values(name), one.values(name), 1e-5);
    }
}

#[test]
fn empty_sequences_batches_and_widths_are_legal() {
    for (q, k, v) in [
        ([0, 3], [4, 3], [4, 2]),
        ([5, 3], [0, 3], [0, 2]),
        ([5, 0], [4, 0], [4, 2]),
        ([5, 3], [4, 3], [4, 0]),
        ([0, 0], [0, 0], [0, 0]),
    ] {
        let shape = [q[0], v[1]];
        let zeros = [0.0; 20];
        let file = File::default()
            .f32("q", &q, &zeros[..q[0] * q[1]])
            .f32("k", &k, &zeros[..k[0] * k[1]])
            .f32("v", &v, &zeros[..v[0] * v[1]])
            .f32("grad_out", &shape, &zeros[..shape[0] * shape[1]]);
        for options in [&["--weights", "--lse"][..], &["--weights", "--lse", "--reference"]] {
            let written = file.attend(options);
            assert_eq!(written.get("out").shape, shape);
            assert_eq!(written.get("grad_q").shape, q);
            assert_eq!(written.get("weights").shape, [q[0], k[0]]);
            assert!(written.values("out").iter().all(|&x| x == 0.0));
        }
    }
    let nothing = File::default().f32("q", &[0, 4, 3, 2], &[]).f32("k", &[0, 2, 3, 2], &[]).f32(
        "v",
        &[0, 2, 3, 2],
        &[],
    );
    assert_eq!(nothing.attend(&[]).get("out").shape, [0, 4, 3, 2]);
}

#[test]
fn the_output_takes_the_place_of_the_input_where_that_is_asked_for() {
    let folder = Folder::new(&head(Dtype::F32, [3, 5, 4, 2]).serialized());
    let path = folder.path("in.safetensors");
    let path = path.to_str().unwrap();
    let before = fs::metadata(path).unwrap().permissions();
    let whole = fs::read(path).unwrap();
    let refused = regard(&["attend", path, "--out", path]);
    assert!(!refused.status.success() && fs::read(path).unwrap() == whole, "{refused:?}");
    let output = regard(&["attend", path, "--out", path, "--overwrite"]);
    assert!(output.status.success(), "{output:?}");
    let bytes = fs::read(path).unwrap();
    let file = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    assert!(file.tensor("out").is_ok() && file.tensor("q").is_err());
    assert_eq!(folder.files(), ["in.safetensors"]);
    assert_eq!(fs::metadata(path).unwrap().permissions(), before);
}

#[test]
fn what_was_written_is_listed() {
    let folder = Folder::new(&head(Dtype::F32, [3, 5, 4, 2]).serialized());
    let output = folder.attend(&["--lse"]);
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.starts_with("out                 F32   [3, 2]\n"), "{said}");
    assert_eq!(said.lines().count(), 5, "{said}");
}

#[test]
fn a_tensor_that_is_not_read_is_noted_and_changes_nothing() {
    let file = File::default()
        .f32("q", &[1, 2], &[1.0, 0.0])
        .f32("k", &[2, 2], &[1.0, 0.0, 0.0, 1.0])
        .f32("v", &[2, 1], &[3.0, 5.0]);
    let alone = file.attend(&[]);
    let more = file.f32("baise", &[1], &[0.0]).f32("w", &[2], &[1.0; 2]);
    let folder = Folder::new(&more.serialized());
    let output = folder.attend(&[]);
    assert!(output.status.success());
    let said = String::from_utf8(output.stderr).unwrap();
    let lines: Vec<&str> = said.lines().collect();
    let note = "regard: note: in.safetensors: tensor";
    assert!(
        lines[0].starts_with(&format!("{note} \"baise\" is not read; those that are: q, k, v"))
    );
    assert_eq!(lines[1], format!("{note} `w` is left aside; it belongs to --score additive"));
    assert_eq!(lines.len(), 2);
    assert_eq!(folder.written().unwrap(), alone);
}
