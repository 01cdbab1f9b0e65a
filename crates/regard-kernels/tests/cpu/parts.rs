//! Every core is used: the phases of a call are cut into 64 parts and more where there are so many of
//! a useful size. The counts are those the passes themselves ask for, and follow from the shape alone.
#![allow(clippy::unwrap_used)] // a test that cannot go on says so by its panic

use regard_kernels::{
    Activation, Bias, Broadcast, Cpu, Edges, Mask, Normalizer, Score, Shape, Spec, step::counts,
};

fn shape(b: usize, h: usize, n: usize, d: usize) -> Shape {
    Shape { b, hq: h, hk: h, nq: n, nk: n, dq: d, dk: d, dv: d }
}

/// The smallest number of parts of any phase.
fn fewest(spec: &Spec<f32>, s: &Shape) -> usize {
    let phases = Cpu::best().phases(spec, s);
    assert!(phases.len() >= 3, "{phases:?}");
    phases.iter().map(|phase| phase.parts).min().unwrap()
}

#[test]
fn every_phase_has_64_parts_where_there_are_64_of_a_useful_size() {
    let w = [0.5f32; 256];
    let dot = |d| Spec::<f32>::scaled_dot(d);
    let additive = Spec::new(Score::Additive { activation: Activation::Tanh, w: &w });
    let mut cases = vec![
        ("additive b4 n256", additive, shape(4, 1, 256, 256)),
        ("dot b2 h8 n1024", dot(64), shape(2, 8, 1024, 64)),
        ("dot b1 h8 n4096", dot(64), shape(1, 8, 4096, 64)),
        ("dot b1 h1 n4096", dot(64), shape(1, 1, 4096, 64)),
        ("dot b32 h8 n128", dot(32), shape(32, 8, 128, 32)),
        ("additive b1 h1 n32768", additive, shape(1, 1, 32768, 128)),
        (
            "cross attention of 128 queries to 5000 keys",
            dot(128),
            Shape { nq: 128, nk: 5000, ..shape(2, 8, 0, 128) },
        ),
        ("grouped heads", dot(128), Shape { hk: 2, ..shape(1, 16, 2048, 128) }),
        (
            "decoding",
            dot(128),
            Shape { b: 1, hq: 32, hk: 8, nq: 1, nk: 4096, dq: 128, dk: 128, dv: 128 },
        ),
    ];
    let sparse = Spec { normalizer: Normalizer::Sparsemax, ..dot(64) };
    cases.push(("sparsemax b4 n512", sparse, shape(4, 1, 512, 256)));
    let hard = Spec { normalizer: Normalizer::Argmax, ..dot(64) };
    cases.push(("argmax b2 h8 n1024", hard, shape(2, 8, 1024, 64)));
    for (name, spec, s) in cases {
        let phases = Cpu::best().phases(&spec, &s);
        // Few queries that read a long cache are one part of their walk back.
        let few = s.nq < 16;
        for phase in phases.iter().filter(|phase| !few || phase.name != "queries") {
            assert!(phase.parts >= 64, "{name}: {phase:?}");
        }
    }
}

#[test]
fn a_full_bias_that_all_heads_share_is_cut_by_queries_and_keys() {
    let numbers = vec![0f32; 1024 * 1024];
    let full = Some(Broadcast { data: &numbers[..], shape: [1, 1, 1024, 1024] });
    let spec = Spec { bias: Bias { full, ..Bias::default() }, ..Spec::scaled_dot(64) };
    let phases = Cpu::best().phases(&spec, &shape(2, 8, 1024, 64));
    let bias = phases.iter().find(|phase| phase.name == "full bias").unwrap();
    assert!(bias.parts >= 64, "{bias:?}");
}

#[test]
fn a_graph_is_cut_by_its_nodes() {
    let pairs: Vec<(usize, usize)> = (0..20000).map(|i| (i, i * 7 % 20000)).collect();
    let edges = Edges::new(20000, 20000, &pairs).unwrap();
    let mask = Mask { edges: Some(&edges), ..Mask::default() };
    let spec = Spec { mask, ..Spec::scaled_dot(16) };
    assert!(fewest(&spec, &shape(1, 8, 20000, 16)) >= 64);
}

#[test]
fn what_is_tiny_is_one_part_at_least() {
    let w = [0.5f32; 3];
    let additive = Spec::new(Score::Additive { activation: Activation::Tanh, w: &w });
    for (nq, nk) in [(1, 1), (1, 7), (3, 2), (17, 1), (64, 64), (65, 63)] {
        for normalizer in [Normalizer::Softmax, Normalizer::Entmax15, Normalizer::Argmax] {
            let s = Shape { nq, nk, ..shape(1, 1, 0, 3) };
            let spec = Spec { normalizer, ..Spec::scaled_dot(3) };
            assert!(fewest(&spec, &s) >= 1, "{nq} × {nk}");
            assert!(fewest(&Spec { normalizer, ..additive }, &s) >= 1, "{nq} × {nk}");
            assert!(Cpu::best().phases(&spec, &s).iter().all(|phase| phase.parts <= 8));
        }
    }
}

#[test]
fn the_operations_of_a_training_step_have_64_parts_where_there_is_work_for_them() {
    // A transformer's rows (32 sentences of 128 tokens), a large vocabulary, uneven numbers.
    for (rows, width) in [(4096, 256), (4096, 1024), (100, 32000), (1000, 2000), (65, 1 << 15)] {
        let parts = counts::rows(rows, width);
        assert!((64..=130).contains(&parts), "{rows} rows of {width}: {parts}");
    }
    assert!(counts::embedding(8000, 256) >= 64);
    assert!(counts::embedding(32000, 64) >= 64);
    assert!(counts::short_product(64, 8000, 256) >= 64);
    assert!(counts::short_product(128, 32000, 512) >= 64);
    // And no more than are worth it.
    assert_eq!(counts::rows(10, 10), 1);
    assert_eq!(counts::embedding(3, 3), 1);
    assert!((1..=8).contains(&counts::short_product(2, 256, 64)));
}
