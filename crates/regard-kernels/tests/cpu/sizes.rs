//! Sizes near the end of what an address can say: every safe entrance refuses them with an error, or
//! has nothing to do; none overflows, and none reads or writes outside its slices.
#![allow(clippy::unwrap_used)] // a test that cannot go on says so by its panic

use regard_kernels::{
    Activation, Adam, AdamTensor, Backward, Base, Bias, Broadcast, Cell, Cpu, CrossEntropy,
    Dropout, Edges, Error, Forward, Gradients, Isa, LayerNorm, LayerNormGrads, Mask, Matrix,
    Normalizer, OwnGrads, OwnScore, Recurrent, RecurrentGrads, RecurrentOut, RecurrentSeed,
    Relative, Saved, Score, Segments, Sgd, SgdTensor, Shape, Spec, View, ViewMut, Window,
    large_pages, reference,
};

const MAX: usize = usize::MAX;
/// Its square, and four times itself, wrap round to 0.
const ROOT: usize = 1 << (usize::BITS / 2);
const QUARTER: usize = 1 << (usize::BITS - 2);

fn cpus() -> impl Iterator<Item = Cpu> {
    Isa::ALL.into_iter().filter_map(Cpu::with)
}

/// Panics unless it was refused in one sentence that has the words.
fn refused<T>(result: Result<T, Error>, words: &str) {
    let Err(error) = result else { panic!("accepted; expected a refusal about {words:?}") };
    let sentence = error.to_string();
    assert!(sentence.contains(words), "{sentence:?} does not say {words:?}");
    assert!(!sentence.contains('\n'), "{sentence:?} is no sentence");
}

#[test]
fn views_refuse_shapes_whose_product_wraps() {
    let x = [0f32; 4];
    for shape in [
        [ROOT, ROOT, 1, 1],
        [1, ROOT, ROOT, 4],
        [QUARTER, 4, 1, 1],
        [1, 1, MAX, MAX],
        [MAX; 4],
        [1, 1, 2, MAX],
    ] {
        refused(View::new(&x, shape), "the slice holds 4 elements");
        refused(View::new(&x[..0], shape), "the slice holds 0 elements");
        refused(ViewMut::new(&mut [0f32; 4], shape), "the slice holds 4 elements");
        refused(View::strided(&x, shape, [0; 3]), "");
        refused(ViewMut::strided(&mut [0f32; 4], shape, [0; 3]), "");
    }
}

#[test]
fn views_refuse_strides_that_wrap() {
    let x = [0f32; 8];
    for (shape, strides) in [
        ([2, 1, 1, 4], [MAX, 0, 0]),
        ([2, 1, 1, 4], [MAX - 3, 0, 0]),
        ([1, 1, 2, 4], [0, 0, MAX - 3]),
        ([3, 3, 1, 4], [QUARTER * 2, QUARTER, 0]),
        ([5, 1, 1, 4], [QUARTER, 0, 0]),
        ([2, 2, 2, 4], [MAX, MAX, MAX]),
    ] {
        refused(View::strided(&x, shape, strides), "strides");
        refused(ViewMut::strided(&mut [0f32; 8], shape, strides), "strides");
    }
    // A step that is never taken may be any.
    let row = View::strided(&x, [1, 1, 1, 8], [MAX; 3]).unwrap();
    assert_eq!(row.row(0, 0, 0).len(), 8);
    ViewMut::strided(&mut [0f32; 8], [1, 1, 1, 8], [MAX; 3]).unwrap();
}

#[test]
fn views_of_nothing_have_nothing_whatever_else_they_say() {
    let mut none = [0f32; 0];
    for shape in [[0, MAX, MAX, MAX], [1, 0, MAX, MAX], [1, 1, 0, MAX], [1, 1, 3, 0], [2, 3, 4, 0]]
    {
        assert_eq!(View::new(&none, shape).unwrap().shape(), shape);
        assert_eq!(View::strided(&none, shape, [MAX; 3]).unwrap().shape(), shape);
        assert_eq!(ViewMut::new(&mut none, shape).unwrap().shape(), shape);
        assert_eq!(ViewMut::strided(&mut none, shape, [MAX; 3]).unwrap().shape(), shape);
    }
    // Rows without columns, written through strides that lead nowhere.
    for cpu in cpus() {
        let (q, v) = (View::new(&[0f32; 6], [1, 1, 3, 2]).unwrap(), View::new(&none, [1, 1, 3, 0]));
        let mut out = [0f32; 0];
        let out = ViewMut::strided(&mut out, [1, 1, 3, 0], [MAX, MAX, MAX / 3]).unwrap();
        cpu.forward(&Spec::scaled_dot(2), q, q, v.unwrap(), Forward::new(out)).unwrap();
    }
}

#[test]
fn writable_views_refuse_rows_that_share_a_number() {
    for (shape, strides) in [
        ([2, 2, 1, 2], [2, 2, 0]),
        ([1, 1, 3, 4], [0, 0, 3]),
        ([1, 2, 3, 4], [0, 0, 4]),
        ([2, 2, 2, 1], [1, 1, 1]),
        ([2, 3, 1, 4], [8, 4, MAX]),
    ] {
        refused(ViewMut::strided(&mut [0f32; 64], shape, strides), "overlap");
    }
}

/// Empty and repeating views say sizes that no memory has; the operator refuses to count them.
#[test]
fn the_operator_refuses_sizes_that_no_memory_has() {
    let (none, one) = ([0f32; 0], [0f32; 1]);
    let view = |shape| View::new(&none, shape).unwrap();
    let repeated = |shape| View::strided(&one, shape, [0; 3]).unwrap();
    let n = u32::MAX as usize;
    let problems = [
        (view([n / 2, 1, n / 2, 0]), view([n / 2, 1, n / 2, 0])),
        (view([1, 1, n, 0]), view([1, 1, 3, 0])),
        (view([1, 1, 3, 0]), view([1, 1, MAX, 0])),
        (view([0, MAX, 3, 2]), view([0, MAX, 3, 2])),
        (view([0, 2, 3, MAX]), view([0, 2, 3, MAX])),
        (view([3, 0, 1, 2]), view([3, MAX / 8, 0, 2])),
        (view([MAX, 0, 3, 2]), view([MAX, 0, 3, 2])),
        (repeated([1 << 20, 1 << 11, 1 << 31, 1]), repeated([1 << 20, 1, 1 << 31, 1])),
        (repeated([1, 1, 1, 1]), repeated([1, 1, MAX / 2, 1])),
    ];
    for (q, k) in problems {
        let spec = Spec::scaled_dot(1);
        refused(spec.check(&q, &k, &k), "q of shape");
        refused(reference::forward(&spec, q, k, k), "q of shape");
        refused(reference::backward(&spec, q, k, k, q), "q of shape");
        for cpu in cpus() {
            let mut out = [0f32; 0];
            let to = ViewMut::new(&mut out, [1, 1, 1, 0]).unwrap();
            refused(cpu.forward(&spec, q, k, k, Forward::new(to)), "q of shape");
            let pass = Backward::new(q, Saved::default(), Gradients::default());
            refused(cpu.backward(&spec, q, k, k, pass), "q of shape");
        }
    }
}

#[test]
fn the_reference_refuses_what_it_has_no_memory_for() {
    // Four numbers that say they are 2⁵⁰ rows: legal for the kernels, which keep no weights.
    let one = [0f32; 1];
    let q = View::strided(&one, [1 << 20, 1, 1 << 30, 1], [0; 3]).unwrap();
    let k = View::strided(&one, [1 << 20, 1, 1 << 30, 1], [0; 3]).unwrap();
    refused(reference::forward(&Spec::scaled_dot(1), q, k, k), "no memory");
    let grad = View::new(&[0f32; 0], [0, 1, 1, 1]).unwrap();
    refused(reference::backward(&Spec::scaled_dot(1), q, k, k, grad), "grad_out has shape");
}

struct Problem {
    q: [f32; 6],
    k: [f32; 8],
}

const PROBLEM: Problem = Problem { q: [0.5; 6], k: [0.25; 8] };

impl Problem {
    /// Three queries and four keys of width 2.
    fn views(&self) -> [View<'_, f32>; 2] {
        [View::new(&self.q, [1, 1, 3, 2]).unwrap(), View::new(&self.k, [1, 1, 4, 2]).unwrap()]
    }

    /// Refused by the check, by both passes and by the reference, all with the same words.
    fn refuses(&self, spec: &Spec<f32>, words: &str) {
        let [q, k] = self.views();
        refused(spec.check(&q, &k, &k), words);
        refused(reference::forward(spec, q, k, k), words);
        refused(reference::backward(spec, q, k, k, q), words);
        for cpu in cpus() {
            let mut out = [0f32; 6];
            let to = ViewMut::new(&mut out, [1, 1, 3, 2]).unwrap();
            refused(cpu.forward(spec, q, k, k, Forward::new(to)), words);
            let pass = Backward::new(q, Saved::default(), Gradients::default());
            refused(cpu.backward(spec, q, k, k, pass), words);
        }
    }

    /// The kernels give what the reference gives, forward and backward.
    fn accepts(&self, spec: &Spec<f32>) {
        let [q, k] = self.views();
        let plain = reference::forward(spec, q, k, k).unwrap();
        let gradients = reference::backward(spec, q, k, k, q).unwrap();
        for cpu in cpus() {
            let (mut out, mut lse) = ([f32::NAN; 6], [f32::NAN; 3]);
            let to = ViewMut::new(&mut out, [1, 1, 3, 2]).unwrap();
            cpu.forward(spec, q, k, k, Forward { lse: Some(&mut lse), ..Forward::new(to) })
                .unwrap();
            let mut grad = [f32::NAN; 6];
            let saved = Saved {
                out: Some(View::new(&out, [1, 1, 3, 2]).unwrap()),
                lse: Some(&lse),
                ..Saved::default()
            };
            let to = Some(ViewMut::new(&mut grad, [1, 1, 3, 2]).unwrap());
            let pass = Backward::new(q, saved, Gradients { q: to, ..Gradients::default() });
            cpu.backward(spec, q, k, k, pass).unwrap();
            for (x, y) in out.iter().zip(&plain.out).chain(grad.iter().zip(&gradients.q)) {
                assert!((x - y).abs() < 1e-5, "{} gives {x}, the reference {y}", cpu.isa());
            }
        }
    }
}

#[test]
fn masks_refuse_sizes_that_do_not_fit_and_take_any_window() {
    let of = |mask| Spec { mask, ..Spec::scaled_dot(2) };
    for length in [5, MAX] {
        let lengths = [length];
        let mask = Mask { key_lengths: Some(&lengths), ..Mask::default() };
        PROBLEM.refuses(&Spec { mask, ..Spec::scaled_dot(2) }, "key_lengths[0]");
    }
    let mask = Mask { segments: Some(Segments { q: &[], k: &[] }), ..Mask::default() };
    PROBLEM.refuses(&of(mask), "q_segments");
    for shape in [[1, 1, MAX, 1], [ROOT, ROOT, 1, 1], [0, 1, 1, 1], [MAX; 4]] {
        let mask = Mask { dense: Some(Broadcast { data: &[], shape }), ..Mask::default() };
        PROBLEM.refuses(&of(mask), "mask has shape");
    }
    let edges = Edges::new(3, 5, &[]).unwrap();
    PROBLEM.refuses(&of(Mask { edges: Some(&edges), ..Mask::default() }), "edges join");
    for (left, right) in [(MAX, 0), (0, MAX), (MAX, MAX), (MAX / 2, MAX / 2 + 1), (1, MAX / 8)] {
        for causal in [false, true] {
            let window = Some(Window { left, right });
            PROBLEM.accepts(&of(Mask { window, causal, ..Mask::default() }));
        }
    }
}

#[test]
fn segments_refuse_a_batch_whose_product_with_a_length_wraps() {
    // No heads: the batch and the lengths may say what they like, and say it to nobody.
    let none = [0f32; 0];
    let shape = [1 << 31, 0, 1 << 31, 2];
    let q = View::new(&none, shape).unwrap();
    let mask = Mask { segments: Some(Segments { q: &[], k: &[] }), ..Mask::default() };
    refused(Spec { mask, ..Spec::scaled_dot(2) }.check(&q, &q, &q), "q of shape");
}

#[test]
fn graphs_refuse_sizes_and_edges_beyond_theirs() {
    for (queries, keys) in [(MAX, 1), (1, MAX), (u32::MAX as usize, 1), (1, u32::MAX as usize)] {
        refused(Edges::new(queries, keys, &[]), "each stays below 2³²");
    }
    for edge in [(MAX, 0), (0, MAX), (3, 0), (0, 4), (1 << 32, 0), (0, 1 << 32)] {
        refused(Edges::new(3, 4, &[(0, 0), edge]), "edge 1 joins query");
    }
}

#[test]
fn biases_refuse_sizes_that_do_not_fit() {
    let of = |bias| Spec { bias, ..Spec::scaled_dot(2) };
    for shape in [[1, 1, 1, MAX], [ROOT, ROOT, 1, 1], [MAX; 4], [0, 0, 0, 0]] {
        let array = Broadcast { data: &[][..], shape };
        PROBLEM.refuses(&of(Bias { key: Some(array), ..Bias::default() }), "key_bias has shape");
        PROBLEM.refuses(&of(Bias { full: Some(array), ..Bias::default() }), "bias has shape");
    }
    let array = Broadcast { data: &[0f32; 3][..], shape: [1, 1, 3, 4] };
    PROBLEM.refuses(&of(Bias { full: Some(array), ..Bias::default() }), "bias has 3 elements");
    PROBLEM.refuses(&of(Bias { alibi: Some(&[]), ..Bias::default() }), "alibi_slopes has 0");
    for max_distance in [MAX, MAX / 2, MAX / 2 + 1, QUARTER, isize::MAX as usize, 1] {
        for table in [&[0f32; 0][..], &[0f32; 1]] {
            let relative = Some(Relative { table, max_distance });
            PROBLEM.refuses(&of(Bias { relative, ..Bias::default() }), "relative_bias has");
        }
    }
    let relative = Some(Relative { table: &[0.5f32], max_distance: 0 });
    PROBLEM.accepts(&of(Bias { relative, ..Bias::default() }));
}

#[test]
fn offsets_beyond_any_sequence_are_refused_and_others_count() {
    let of = |offset| Spec {
        offset: Some(offset),
        mask: Mask { window: Some(Window { left: MAX, right: 1 }), ..Mask::default() },
        bias: Bias { alibi: Some(&[0.0]), ..Bias::default() },
        ..Spec::scaled_dot(2)
    };
    for offset in [isize::MIN, isize::MIN + 1, isize::MAX, isize::MAX - 1, isize::MAX / 16 + 1] {
        PROBLEM.refuses(&of(offset), "lies beyond any sequence");
    }
    for offset in [-isize::MAX / 16, isize::MAX / 16, -1, 0, 1] {
        PROBLEM.accepts(&of(offset));
    }
}

#[test]
fn scores_refuse_weights_whose_product_wraps() {
    for w in [&[0f32; 0][..], &[0f32; 3]] {
        let score = Score::Additive { activation: Activation::Tanh, w };
        PROBLEM.refuses(&Spec::new(score), "w has");
    }
    let none = [0f32; 0];
    let q = View::new(&none, [0, ROOT, 1, ROOT]).unwrap();
    let score = Score::Additive { activation: Activation::Tanh, w: &none };
    refused(Spec::new(score).check(&q, &q, &q), "");
}

/// A score of one's own that says it has as many parameters as it likes.
struct Boastful(usize);

impl OwnScore<f32> for Boastful {
    fn score(&self, _: &[f32], q: &[f32], k: &[f32]) -> f32 {
        q[0] * k[0]
    }

    fn backward(&self, _: &[f32], _: &[f32], _: &[f32], grad: f32, to: OwnGrads<f32>) {
        if let Some(last) = to.parameters.last_mut() {
            *last += grad;
        }
    }

    fn parameters(&self) -> usize {
        self.0
    }
}

#[test]
fn own_scores_with_more_parameters_than_any_memory_are_refused() {
    for parameters in [MAX, QUARTER, QUARTER - 1, MAX / 4, MAX / 8] {
        PROBLEM.refuses(
            &Spec::new(Score::Own { score: &Boastful(parameters), parameters: &[] }),
            "the own score has",
        );
    }
}

#[test]
fn passes_refuse_arrays_of_another_length() {
    let [q, k] = PROBLEM.views();
    let spec = Spec::scaled_dot(2);
    for cpu in cpus() {
        let run = |shape: [usize; 4], lse: usize, weights: usize| {
            let (mut out, mut lse, mut weights) =
                (vec![0f32; 6], vec![0f32; lse], vec![0f32; weights]);
            let out = ViewMut::new(&mut out[..shape.iter().product()], shape)?;
            let pass =
                Forward { lse: Some(&mut lse), weights: Some(&mut weights), ..Forward::new(out) };
            cpu.forward(&spec, q, k, k, pass)
        };
        refused(run([1, 1, 2, 2], 3, 12), "out has shape");
        refused(run([1, 1, 3, 2], 2, 12), "lse has 2 elements");
        refused(run([1, 1, 3, 2], 3, 11), "weights has 11 elements");
        run([1, 1, 3, 2], 3, 12).unwrap();
    }
    // A choice that backward is told, beyond the keys there are, is nobody's.
    for cpu in cpus() {
        for index in [[i64::MAX; 3], [i64::MIN; 3], [4; 3], [1 << 40; 3]] {
            let mut grad = [f32::NAN; 8];
            let saved = Saved { index: Some(&index), lse: Some(&[0.0; 3]), ..Saved::default() };
            let to = Some(ViewMut::new(&mut grad, [1, 1, 4, 2]).unwrap());
            let spec = Spec { normalizer: Normalizer::Argmax, ..spec };
            let pass = Backward {
                grad_log_prob: Some(&[1.0; 3]),
                ..Backward::new(q, saved, Gradients { v: to, ..Gradients::default() })
            };
            cpu.backward(&spec, q, k, k, pass).unwrap();
            assert_eq!(grad, [0.0; 8]);
        }
    }
}

#[test]
fn shapes_count_without_wrapping() {
    let shape = Shape { b: MAX, hq: MAX, hk: 0, nq: MAX, nk: 1, dq: 1, dk: 1, dv: 1 };
    assert_eq!((shape.rows(), shape.group()), (MAX, 0));
    assert_eq!(Shape { nq: 0, ..shape }.rows(), 0);
}

#[test]
fn matrices_refuse_strides_and_sizes_that_wrap() {
    let x = [1f32];
    for (sizes, strides) in [
        ([2, 2], [MAX, 1]),
        ([2, 2], [1, MAX]),
        ([2, 2], [MAX, MAX]),
        ([3, 1], [1 << (usize::BITS - 1), 0]),
        ([QUARTER + 1, 1], [4, 0]),
        ([MAX, MAX], [0, 0]),
        ([ROOT, ROOT], [0, 0]),
        ([MAX, 1], [0, 0]),
        ([0, MAX], [0, 0]),
        ([1, 2], [0, 1]),
    ] {
        refused(Matrix::strided(&x, sizes, strides), "a matrix of");
    }
    refused(Matrix::new(&x, ROOT, ROOT), "a matrix of");
    refused(Matrix::new(&x, MAX, 1), "a matrix of");
    // A step that is never taken may be any, and the product is the number's square.
    let x = [3f32];
    let matrix = Matrix::strided(&x, [1, 1], [MAX, MAX]).unwrap();
    for cpu in cpus() {
        let mut to = [f32::NAN];
        cpu.matmul(matrix, matrix.transposed(), Base::Nothing, &mut to).unwrap();
        assert_eq!(to, [9.0]);
    }
}

#[test]
fn products_refuse_sizes_that_wrap() {
    let x = [1f32];
    let repeated = |rows, columns| Matrix::strided(&x, [rows, columns], [0, 0]).unwrap();
    for cpu in cpus() {
        // 2³² · 2³² results wrap round to none.
        let long = 1 << 50;
        let mut to = [0f32; 4];
        let product = cpu.matmul(repeated(2, long), repeated(long, 2), Base::Nothing, &mut to);
        refused(product, "more work than can be counted");
        let wide = repeated(1, ROOT);
        let product = cpu.matmul(wide.transposed(), wide, Base::Nothing, &mut []);
        refused(product, "does not fit");
        refused(
            cpu.matmul(repeated(1, 1), repeated(1, 1), Base::Row(&[]), &mut [0.0]),
            "a bias of",
        );
        let pair = [wide.transposed(), wide];
        refused(cpu.matmuls(&[pair], &mut []), "does not fit");
        refused(cpu.matmuls(&[pair, pair], &mut [0.0]), "not of one shape");
        refused(cpu.matmuls::<f32>(&[], &mut [0.0]), "no products");
    }
}

#[test]
fn rows_of_any_width_are_refused_or_none() {
    for cpu in cpus() {
        let (x, mut out) = ([1f32; 6], [0f32; 6]);
        for width in [MAX, MAX / 2, ROOT, 4] {
            refused(cpu.softmax(&x, width, &mut out), "no whole rows");
            refused(cpu.log_softmax(&x, width, &mut out), "no whole rows");
            refused(cpu.softmax_backward(&x, width, &x, &mut out), "no whole rows");
            refused(cpu.log_softmax_backward(&x, width, &x, &mut out), "no whole rows");
            let norm = LayerNorm { width, gamma: None, beta: None, eps: 1e-5 };
            refused(cpu.layer_norm(&x, &norm, &mut out, &mut []), "no whole rows");
            let grads = LayerNormGrads { x: None, gamma: None, beta: None };
            refused(cpu.layer_norm_backward(&x, &norm, &[], &x, grads), "no whole rows");
            // No numbers are no rows of any width.
            cpu.softmax::<f32>(&[], width, &mut []).unwrap();
            cpu.log_softmax_backward::<f32>(&[], width, &[], &mut []).unwrap();
            cpu.layer_norm(&[], &norm, &mut [], &mut []).unwrap();
            let grads = LayerNormGrads { x: Some(&mut []), gamma: None, beta: None };
            cpu.layer_norm_backward(&[], &norm, &[], &[], grads).unwrap();
        }
        refused(cpu.pointwise(&x, Some(&[]), Activation::Relu, &mut out), "no whole rows");
        refused(cpu.pointwise(&x, None, Activation::Relu, &mut []), "out has 0");
        let act = Activation::Identity;
        refused(cpu.pointwise_backward(&x, None, act, &x[..5], None, None), "grad_out has 5");
        refused(cpu.dropout(&x, 0.5, 1, &mut []), "out has 0");
    }
}

#[test]
fn class_targets_and_ids_beyond_the_array_are_refused() {
    for cpu in cpus() {
        let (x, mut loss, mut lse) = ([1f32; 6], [0f32; 2], [0f32; 2]);
        let rule = CrossEntropy::default();
        for target in [i64::MAX, i64::MIN, -1, 3, 1 << 32] {
            let targets = [0, target];
            refused(cpu.cross_entropy(&x, &targets, &rule, &mut loss, &mut lse), "target");
            let mut grad = [0f32; 6];
            let (rows, to) = ([0f32; 2], &mut grad);
            refused(cpu.cross_entropy_backward(&x, &targets, &rule, &lse, &rows, to), "target");
            let mut table = [0f32; 6];
            refused(cpu.embedding_backward(&[target], &[0.0; 2], 2, None, &mut table), "id");
        }
        for width in [MAX, ROOT, QUARTER] {
            let mut table = [0f32; 4];
            refused(cpu.embedding_backward(&[0; 4], &[], width, None, &mut table), "grad has 0");
            refused(
                cpu.embedding_backward::<f32>(&[], &[], width, None, &mut table),
                "no whole rows",
            );
            cpu.embedding_backward::<f32>(&[], &[], width, None, &mut []).unwrap();
        }
    }
}

#[test]
fn recurrent_layers_refuse_sizes_that_wrap() {
    for cpu in cpus() {
        for (batch, steps, hidden) in [
            (MAX, 1, 1),
            (1 << (usize::BITS - 1), 2, 1),
            (ROOT, ROOT, 1),
            (1, MAX, 1),
            (1, 1, ROOT),
            (1, 1, MAX),
            (QUARTER, 4, 1),
        ] {
            for cell in [Cell::Rnn, Cell::RnnRelu, Cell::Gru, Cell::Lstm] {
                let w = vec![0f32; if hidden == 1 { cell.gates() } else { 0 }];
                let layer = Recurrent {
                    cell,
                    batch,
                    steps,
                    hidden,
                    w_hh: &w,
                    b_hh: None,
                    h0: None,
                    c0: None,
                    lengths: None,
                    reverse: false,
                };
                let to = RecurrentOut { out: &mut [], h: None, c: None, saved: None };
                refused(cpu.recurrent(&[], &layer, to), "elements");
                let (seed, mut gates_x) = (RecurrentSeed { out: None, h: None, c: None }, []);
                let grads = RecurrentGrads {
                    gates_x: &mut gates_x,
                    w_hh: None,
                    b_hh: None,
                    h0: None,
                    c0: None,
                };
                refused(cpu.recurrent_backward(&layer, &[], &[], seed, grads), "elements");
                let h0 = Some(&[0f32; 0][..]);
                let to = RecurrentOut { out: &mut [], h: None, c: None, saved: None };
                refused(cpu.recurrent(&[], &Recurrent { h0, ..layer }, to), "elements");
                layer.saved_len();
            }
        }
    }
}

#[test]
fn recurrent_layers_of_nothing_end_at_once() {
    for cpu in cpus() {
        for (batch, steps, hidden) in [(MAX, MAX, 0), (MAX, 0, 1), (0, MAX, 1)] {
            let layer = Recurrent {
                cell: Cell::Gru,
                batch,
                steps,
                hidden,
                w_hh: &[0f32; 3][..3 * hidden],
                b_hh: None,
                h0: None,
                c0: None,
                lengths: None,
                reverse: true,
            };
            let to = RecurrentOut { out: &mut [], h: None, c: None, saved: Some(&mut []) };
            cpu.recurrent(&[], &layer, to).unwrap();
            let mut w_hh = [f32::NAN; 3];
            let grads = RecurrentGrads {
                gates_x: &mut [],
                w_hh: Some(&mut w_hh[..3 * hidden]),
                b_hh: None,
                h0: None,
                c0: None,
            };
            let seed = RecurrentSeed { out: None, h: None, c: None };
            cpu.recurrent_backward(&layer, &[], &[], seed, grads).unwrap();
            assert!(w_hh[..3 * hidden].iter().all(|&x| x == 0.0));
        }
        let layer = Recurrent {
            cell: Cell::Rnn,
            batch: 1,
            steps: 1,
            hidden: 1,
            w_hh: &[0f32],
            b_hh: None,
            h0: None,
            c0: None,
            lengths: Some(&[MAX]),
            reverse: false,
        };
        let to = RecurrentOut { out: &mut [0.0], h: None, c: None, saved: None };
        refused(cpu.recurrent(&[0.0], &layer, to), "more than the 1 steps");
    }
}

#[test]
fn optimizers_refuse_arrays_of_another_length() {
    for cpu in cpus() {
        let tensor = AdamTensor { param: &mut [0f32; 3], grad: &[], m: &mut [], v: &mut [] };
        refused(cpu.adam(&mut [tensor], &Adam::default()), "grad of tensor 0");
        let tensor = SgdTensor { param: &mut [0f32; 3], grad: &[0.0; 3], momentum: &mut [] };
        let sgd = Sgd { momentum: 0.5, ..Sgd::default() };
        refused(cpu.sgd(&mut [tensor], &sgd), "momentum of tensor 0");
        let last = Adam { step: u64::MAX, ..Adam::default() };
        cpu.adam::<f32>(&mut [], &last).unwrap();
    }
}

#[test]
fn draws_and_pages_take_anything() {
    regard_kernels::philox([u32::MAX; 4], [u32::MAX; 2]);
    large_pages::<f32>(&mut []);
    large_pages::<[f32; 0]>(&mut [[]; 3]);
    let dropout = Some(Dropout { p: 1.0 - f64::EPSILON, seed: u64::MAX });
    PROBLEM.accepts(&Spec { dropout, ..Spec::scaled_dot(2) });
}
