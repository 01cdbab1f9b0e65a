//! Which keys a query sees.

use crate::file::{File, Written};
use crate::numbers::{assert_close, dot, noise, softmax_attention};
use safetensors::Dtype;

const D: usize = 4;

/// Two batch items of one head each.
fn file(nq: usize, nk: usize) -> File {
    File::default()
        .reals("q", Dtype::F64, &[2, nq, D], &noise(1, 2 * nq * D))
        .reals("k", Dtype::F64, &[2, nk, D], &noise(2, 2 * nk * D))
        .reals("v", Dtype::F64, &[2, nk, D], &noise(3, 2 * nk * D))
        .reals("grad_out", Dtype::F64, &[2, nq, D], &noise(4, 2 * nq * D))
}

/// Fails unless exactly the pairs (b, i, j) that `sees` says were attended to, by the kernels and
/// by the reference.
#[track_caller]
fn assert_sees(
    file: &File,
    [nq, nk]: [usize; 2],
    options: &[&str],
    sees: impl Fn(usize, usize, usize) -> bool,
) {
    for reference in [&[][..], &["--reference"]] {
        let written = file.attend(&[options, &["--weights", "--lse"], reference].concat());
        // `mask` says what was hidden, where something was.
        let seen = |at: usize| sees(at / (nq * nk), at / nk % nq, at % nk);
        let expected: Vec<f64> = (0..2 * nq * nk).map(|at| u8::from(seen(at)).into()).collect();
        match expected.contains(&0.0) {
            true => assert_eq!(written.values("mask"), expected, "{options:?}"),
            false => assert!(!written.names().contains(&"mask"), "{options:?}"),
        }
        for b in 0..2 {
            let part = |stream, n: usize| noise(stream, 2 * n * D)[b * n * D..][..n * D].to_vec();
            let (q, k, v) = (part(1, nq), part(2, nk), part(3, nk));
            let score = |i, j| match sees(b, i, j) {
                true => dot(&q, &k, D, i, j) / (D as f64).sqrt(),
                false => f64::NEG_INFINITY,
            };
            let (out, weights) = softmax_attention([nq, nk, D], score, &v);
            assert_close("out", &written.values("out")[b * nq * D..][..nq * D], &out, 1e-14);
            let got = &written.values("weights")[b * nq * nk..][..nq * nk];
            assert_close("weights", got, &weights, 1e-14);
            assert_empty_rows(&written, b, [nq, nk], &sees);
        }
    }
}

/// A row that sees nothing has zeros, a log-sum-exp of −∞ and no gradient.
#[track_caller]
fn assert_empty_rows(
    written: &Written,
    b: usize,
    [nq, nk]: [usize; 2],
    sees: &impl Fn(usize, usize, usize) -> bool,
) {
    for i in (0..nq).filter(|&i| !(0..nk).any(|j| sees(b, i, j))) {
        let row = b * nq + i;
        assert_eq!(written.values("lse")[row], f64::NEG_INFINITY);
        for name in ["out", "grad_q"] {
            assert!(written.values(name)[row * D..][..D].iter().all(|&x| x == 0.0), "{name}");
        }
    }
}

#[test]
fn causal_lets_the_last_query_see_the_last_key() {
    for [nq, nk] in [[5, 5], [3, 7], [7, 3]] {
        let sees = |_, i: usize, j: usize| j + nq <= i + nk;
        assert_sees(&file(nq, nk), [nq, nk], &["--causal"], sees);
    }
}

#[test]
fn an_offset_moves_the_queries() {
    for offset in [-2, 0, 3, 100] {
        let sees = |_, i: usize, j: usize| j as i64 <= i as i64 + offset;
        let offset = offset.to_string();
        assert_sees(&file(4, 6), [4, 6], &["--causal", "--offset", &offset], sees);
    }
}

#[test]
fn a_window_lets_through_what_is_near() {
    for (window, left, right) in
        [("1,2", 1, 2), ("0,0", 0, 0), ("3,0", 3, 0), ("18446744073709551615,1", i64::MAX, 1)]
    {
        let near = move |_, i: usize, j: usize| {
            let distance = j as i64 - i as i64 - 2;
            -left <= distance && distance <= right
        };
        assert_sees(&file(5, 7), [5, 7], &["--window", window], near);
        let causal = |b, i, j: usize| near(b, i, j) && j <= i + 2;
        assert_sees(&file(5, 7), [5, 7], &["--window", window, "--causal"], causal);
    }
}

#[test]
fn key_lengths_hide_the_padding_in_any_integer_type() {
    let lengths = [3usize, 0];
    let sees = |b: usize, _, j: usize| j < lengths[b];
    assert_sees(&file(4, 6).i64("key_lengths", &[2], &[3, 0]), [4, 6], &[], sees);
    let bytes = file(4, 6).bytes("key_lengths", Dtype::U8, &[2], vec![3, 0]);
    assert_sees(&bytes, [4, 6], &[], sees);
    let short = vec![3, 0, 0, 0];
    assert_sees(&file(4, 6).bytes("key_lengths", Dtype::U16, &[2], short), [4, 6], &[], sees);
    let long = [3u64, 0].iter().flat_map(|x| x.to_le_bytes()).collect();
    assert_sees(&file(4, 6).bytes("key_lengths", Dtype::U64, &[2], long), [4, 6], &[], sees);
}

#[test]
fn segments_keep_documents_apart() {
    let (q, k) = ([0, 0, 1, 1, 1, 1, 2, 9], [0, 0, 1, 1, 2, 1, 1, -2, 1, 2]);
    let with = file(4, 5).i64("q_segments", &[2, 4], &q).i64("k_segments", &[2, 5], &k);
    assert_sees(&with, [4, 5], &[], |b, i, j| q[b * 4 + i] == k[b * 5 + j]);
}

#[test]
fn edges_are_all_that_is_seen_and_twice_is_once() {
    let [nq, nk] = [4, 5];
    let pairs = [(0, 4), (2, 1), (0, 0), (2, 1), (3, 3), (2, 1)];
    let ends: Vec<i64> = pairs.iter().map(|p| p.0).chain(pairs.iter().map(|p| p.1)).collect();
    let with = file(nq, nk).i64("edges", &[2, pairs.len()], &ends);
    let sees = |_, i: usize, j: usize| pairs.contains(&(i as i64, j as i64));
    assert_sees(&with, [nq, nk], &[], sees);
    assert_sees(&with, [nq, nk], &["--causal"], |b, i, j| sees(b, i, j) && j <= i + 1);
    assert_sees(&file(nq, nk).i64("edges", &[2, 0], &[]), [nq, nk], &[], |_, _, _| false);
}

#[test]
fn a_mask_of_bytes_or_truths_lets_through_what_is_not_zero() {
    let [nq, nk] = [4, 5];
    let mask: Vec<u8> = (0..nq * nk).map(|at| [0, 1, 0, 7][at * 5 % 4]).collect();
    for dtype in [Dtype::BOOL, Dtype::U8] {
        let with = file(nq, nk).bytes("mask", dtype, &[nq, nk], mask.clone());
        assert_sees(&with, [nq, nk], &[], |_, i, j| mask[i * nk + j] != 0);
    }
    let keys = file(nq, nk).bytes("mask", Dtype::BOOL, &[1, 1, nk], mask[..nk].to_vec());
    assert_sees(&keys, [nq, nk], &[], |_, _, j| mask[j] != 0);
}

#[test]
fn a_mask_and_a_bias_of_three_axes_are_by_batch_where_q_has_three() {
    let [nq, nk] = [3, 5];
    let mask: Vec<u8> = (0..2 * nq * nk).map(|at| u8::from(at % 3 != 0)).collect();
    let with = file(nq, nk).bytes("mask", Dtype::BOOL, &[2, nq, nk], mask.clone());
    assert_sees(&with, [nq, nk], &[], |b, i, j| mask[(b * nq + i) * nk + j] != 0);

    let hidden: Vec<f64> =
        mask.iter().map(|&seen| if seen == 0 { f64::NEG_INFINITY } else { 0.0 }).collect();
    let with = file(nq, nk).reals("bias", Dtype::F64, &[2, nq, nk], &hidden);
    assert_sees(&with, [nq, nk], &[], |b, i, j| mask[(b * nq + i) * nk + j] != 0);
    assert_eq!(with.attend(&[]).get("grad_bias").shape, [2, nq, nk]);
}

#[test]
fn a_row_with_nothing_to_attend_to_chooses_nothing() {
    let with = file(3, 4).i64("key_lengths", &[2], &[4, 0]);
    for normalizer in ["softmax", "sparsemax", "entmax15", "sigmoid", "none", "argmax", "sample"] {
        for reference in [&[][..], &["--reference"]] {
            let options = [&["--normalizer", normalizer, "--lse", "--weights"], reference].concat();
            let written = with.attend(&options);
            assert_eq!(written.values("lse")[3..], [f64::NEG_INFINITY; 3], "{normalizer}");
            assert!(written.values("lse")[..3].iter().all(|x| x.is_finite()), "{normalizer}");
            for (name, half) in
                [("out", 3 * D), ("weights", 3 * 4), ("grad_q", 3 * D), ("grad_k", 4 * D)]
            {
                let values = &written.values(name)[half..];
                assert!(values.iter().all(|&x| x == 0.0), "{name} of {normalizer}");
            }
            if ["argmax", "sample"].contains(&normalizer) {
                assert_eq!(written.values("index")[3..], [-1.0; 3]);
                assert_eq!(written.values("log_prob")[3..], [0.0; 3]);
                assert!(written.values("index")[..3].iter().all(|&j| (0.0..4.0).contains(&j)));
            }
        }
    }
}

#[test]
fn masks_combine_by_and() {
    let [nq, nk] = [5, 6];
    let mask: Vec<u8> = (0..nq * nk).map(|at| u8::from(at % 4 != 1)).collect();
    let segments = [0, 0, 1, 1, 1, 0];
    let with = file(nq, nk)
        .bytes("mask", Dtype::U8, &[nq, nk], mask.clone())
        .i64("key_lengths", &[2], &[5, 6])
        .i64("q_segments", &[2, nq], &[&segments[..nq], &segments[..nq]].concat())
        .i64("k_segments", &[2, nk], &[segments, segments].concat());
    assert_sees(&with, [nq, nk], &["--causal", "--window", "2,0"], |b, i, j| {
        let (near, early) = (j <= i + 1 && j + 1 >= i, j < [5, 6][b]);
        near && early && mask[i * nk + j] != 0 && segments[i] == segments[j]
    });
}
