//! Scores written as text: what is refused and where, what they compute, forward and backward.
#![allow(clippy::unwrap_used)] // a test that cannot go on says so by its panic

use crate::case::*;
use regard_kernels::{
    Activation, Backward, Cpu, Edges, Expression, Forward, Gradients, Isa, Node, Normalizer,
    Parameter, Real, Saved, Score, Spec, View, ViewMut, reference,
};

/// Every mask, bias and normalizer with one expression; the sizes go round while the choices do.
fn every_combination_with(score: ScoreKind) {
    let mut turn = 0;
    for mask in masks() {
        for bias in biases() {
            for normalizer in NORMALIZERS {
                turn += 1;
                let lengths = [1, 2, 3, 9, 17, 64, 33];
                let widths = [1, 3, 8, 31, 17];
                let (hq, hk) = [(1, 1), (2, 2), (4, 2), (3, 1)][turn % 4];
                keeps_the_rule(Case {
                    b: 1 + turn % 2,
                    hq,
                    hk,
                    nq: lengths[turn % 7],
                    nk: lengths[turn * 3 % 5 + 2],
                    d: widths[turn % 5],
                    dv: widths[turn * 2 % 5],
                    score,
                    mask,
                    bias,
                    normalizer,
                    dropout: (turn % 3 == 0).then_some(0.25),
                    arriving: turn % 11 < 5,
                    offset: (turn % 5 == 0).then_some(2),
                    w_per_head: turn % 2 == 0,
                    strided: turn % 2 == 1,
                    seed: turn as u64,
                    ..Case::default()
                });
            }
        }
    }
}

#[test]
fn a_weighted_distance_keeps_the_rule_in_every_combination() {
    every_combination_with(ScoreKind::Expression(0));
}

#[test]
fn a_cosine_with_a_temperature_keeps_the_rule_in_every_combination() {
    every_combination_with(ScoreKind::Expression(1));
}

#[test]
fn softplus_and_magnitudes_keep_the_rule_in_every_combination() {
    every_combination_with(ScoreKind::Expression(2));
}

#[test]
fn an_additive_expression_keeps_the_rule_in_every_combination() {
    every_combination_with(ScoreKind::Expression(3));
}

#[test]
fn expressions_with_kernels_of_their_own_keep_the_rule_in_every_combination() {
    for n in 4..EXPRESSIONS.len() {
        every_combination_with(ScoreKind::Expression(n));
    }
}

#[test]
fn double_precision_agrees_with_the_reference_to_a_few_roundings() {
    let mut turn = 0;
    for n in 0..EXPRESSIONS.len() {
        for mask in masks() {
            for normalizer in NORMALIZERS {
                turn += 1;
                agrees_in_double(Case {
                    b: 2,
                    hq: 2,
                    nq: [3, 33, 70][turn % 3],
                    nk: [5, 66][turn % 2],
                    d: [3, 9, 17][turn % 3],
                    dv: [8, 5][turn % 2],
                    score: ScoreKind::Expression(n),
                    mask,
                    bias: biases()[turn % 8],
                    normalizer,
                    dropout: (turn % 3 == 0).then_some(0.25),
                    arriving: turn % 11 < 5,
                    w_per_head: turn % 4 < 2,
                    strided: turn % 2 == 0,
                    seed: turn as u64,
                    ..Case::default()
                });
            }
        }
    }
}

#[test]
fn long_keys_and_long_queries_are_cut_and_added_up_within_the_rule() {
    for n in 0..4 {
        for (nq, nk) in [(300, 290), (3, 1500)] {
            for normalizer in [Normalizer::Softmax, Normalizer::Sparsemax] {
                keeps_the_rule(Case {
                    hq: 2,
                    nq,
                    nk,
                    d: 8,
                    dv: 5,
                    score: ScoreKind::Expression(n),
                    normalizer,
                    dropout: Some(0.5),
                    w_per_head: n % 2 == 0,
                    ..Case::default()
                });
            }
        }
    }
}

/// Some queries against some keys of one head, with one expression and nothing else.
struct Scores<T> {
    expression: Expression,
    q: Vec<T>,
    k: Vec<T>,
    /// Parameters named w… are rows, others numbers.
    parameters: Vec<Vec<T>>,
    /// The gradient that arrives at the scores.
    grad: Vec<T>,
    n: [usize; 2],
    d: usize,
    edges: Option<Edges>,
    normalizer: Normalizer,
}

/// The scores and the gradients of q, k and the parameters.
type Numbers<T> = [Vec<T>; 4];

impl<T: Real> Scores<T> {
    fn new(text: &str, n: [usize; 2], d: usize, seed: u64) -> Self {
        let expression = Expression::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        let mut draws = Draws::new(seed);
        let mut t = |n: usize, spread: f64| -> Vec<T> {
            draws.normals(n, spread).into_iter().map(T::of).collect()
        };
        let (q, k) = (t(n[0] * d, 0.7), t(n[1] * d, 0.7));
        let grad = t(n[0] * n[1], 1.0);
        let names = expression.parameters();
        let parameters =
            names.iter().map(|name| t(if name.starts_with('w') { d } else { 1 }, 0.7)).collect();
        Self { expression, q, k, parameters, grad, n, d, edges: None, normalizer: Normalizer::None }
    }

    /// Calls `f` with the spec and the views of q, k and a v of ones.
    fn with<R>(&self, f: impl FnOnce(&Spec<T>, [View<T>; 3]) -> R) -> R {
        let parameters: Vec<Parameter<T>> =
            self.parameters.iter().map(|data| Parameter::row(data)).collect();
        let score = Score::Expression { expression: &self.expression, parameters: &parameters };
        let mut spec = Spec { normalizer: self.normalizer, ..Spec::new(score) };
        spec.mask.edges = self.edges.as_ref();
        let v = vec![T::ONE; self.n[1]];
        f(
            &spec,
            [
                View::new(&self.q, [1, 1, self.n[0], self.d]).unwrap(),
                View::new(&self.k, [1, 1, self.n[1], self.d]).unwrap(),
                View::new(&v, [1, 1, self.n[1], 1]).unwrap(),
            ],
        )
    }

    fn reference(&self) -> Numbers<T> {
        self.with(|spec, [q, k, v]| {
            let output = reference::forward(spec, q, k, v).unwrap();
            let zeros = vec![T::ZERO; self.n[0]];
            let arriving = reference::Arriving {
                out: View::new(&zeros, [1, 1, self.n[0], 1]).unwrap(),
                edge_weights: None,
                lse: None,
                weights: Some(&self.grad),
                log_prob: None,
            };
            let g = reference::backward(spec, q, k, v, arriving).unwrap();
            [output.weights, g.q, g.k, g.own]
        })
    }

    /// How large the roundings that enter each result may be, in units of epsilon: the largest part
    /// that a pair has in it, times √n for a sum over n pairs.
    fn natural(&self) -> [f64; 4] {
        let ([nq, nk], d) = (self.n, self.d);
        let mut largest = [0.0f64; 4];
        for (i, j) in (0..nq).flat_map(|i| (0..nk).map(move |j| (i, j))) {
            let pair = Self {
                expression: self.expression.clone(),
                q: self.q[i * d..][..d].to_vec(),
                k: self.k[j * d..][..d].to_vec(),
                parameters: self.parameters.clone(),
                grad: vec![self.grad[i * nk + j]],
                n: [1, 1],
                d,
                edges: None,
                normalizer: self.normalizer,
            };
            for (top, part) in largest.iter_mut().zip(pair.reference()) {
                *top = part.iter().fold(*top, |top, x| top.max(x.f64().abs()));
            }
        }
        let roots = [1, nk, nq, nq * nk].map(|n| (n as f64).sqrt());
        std::array::from_fn(|at| largest[at] * roots[at])
    }

    fn kernels(&self, isa: Isa) -> Numbers<T> {
        let cpu = Cpu::with(isa).unwrap();
        self.with(|spec, [q, k, v]| {
            let [nq, nk] = self.n;
            let nan = |n: usize| vec![T::of(f64::NAN); n];
            let (mut out, mut weights) = (nan(nq), nan(nq * nk));
            let shape = [1, 1, nq, 1];
            let pass = Forward {
                weights: Some(&mut weights),
                ..Forward::new(ViewMut::new(&mut out, shape).unwrap())
            };
            cpu.forward(spec, q, k, v, pass).unwrap();
            let (mut gq, mut gk) = (nan(nq * self.d), nan(nk * self.d));
            let mut own = nan(self.parameters.iter().map(Vec::len).sum());
            let zeros = vec![T::ZERO; nq];
            let gradients = Gradients {
                q: Some(ViewMut::new(&mut gq, [1, 1, nq, self.d]).unwrap()),
                k: Some(ViewMut::new(&mut gk, [1, 1, nk, self.d]).unwrap()),
                own: Some(&mut own),
                ..Gradients::default()
            };
            let grad_out = View::new(&zeros, shape).unwrap();
            let pass = Backward {
                grad_weights: Some(&self.grad),
                ..Backward::new(grad_out, Saved::default(), gradients)
            };
            cpu.backward(spec, q, k, v, pass).unwrap();
            [weights, gq, gk, own]
        })
    }
}

fn every_isa() -> impl Iterator<Item = Isa> {
    Isa::ALL.into_iter().filter(|isa| isa.is_available())
}

fn largest(x: &[f64]) -> f64 {
    x.iter().fold(0.0, |top: f64, x| top.max(x.abs()))
}

/// One expression for every function, operator and name.
const ONE_OF_EACH: [&str; 27] = [
    "sum(q + k)",
    "(q - w) @ k",
    "sum(q * k * w)",
    "sum(q / (2 + square(k)))",
    "-sum(-q * k)",
    "q @ k",
    "(q + tau) @ (k - w)",
    "sum(q * w) + 0 * tau * d",
    "mean(q * exp(k)) * pi / d",
    "norm(q - k) * tau",
    "sum(square(q) * k)",
    "sum(sqrt(1 + square(q * k)))",
    "sum(abs(q - 0.3 * k) * w)",
    "sum(exp(q * w) * k)",
    "sum(log(1 + square(q - k)))",
    "sum(w * tanh(q + 2 * k))",
    "sum(w * sigmoid(q - k))",
    "sum(w * relu(q - k))",
    "sum(w * leaky_relu(q - k, 0.2))",
    "sum(leaky_relu(q - k, w) + leaky_relu(q, tau))",
    "sum(w * gelu(q - k))",
    "sum(w * softplus(3 * q - k))",
    "sum(sin(q * 2) * k)",
    "sum(cos(q * k) * w)",
    "sum(max(q, k) * w) + max(tau, q @ k)",
    "sum(min(q, w * k) * min(q, tau))",
    "norm(q) + tau * norm(w * k) + tau",
];

#[test]
fn the_formula_of_every_function_agrees_with_finite_differences() {
    for (seed, text) in ONE_OF_EACH.into_iter().enumerate() {
        for d in [1, 3] {
            let make = || Scores::<f64>::new(text, [2, 3], d, seed as u64);
            let [_, gq, gk, own] = make().reference();
            let loss = |scores: &Scores<f64>| -> f64 {
                let [values, ..] = scores.reference();
                values.iter().zip(&scores.grad).map(|(s, g)| s * g).sum()
            };
            let check =
                |name: &str, gradient: &[f64], part: &dyn Fn(&mut Scores<f64>, f64, usize)| {
                    for (at, analytic) in gradient.iter().enumerate() {
                        let step = 1e-5;
                        let [above, below] = [step, -step].map(|step| {
                            let mut moved = make();
                            part(&mut moved, step, at);
                            loss(&moved)
                        });
                        let numeric = (above - below) / (2.0 * step);
                        assert!(
                            (numeric - analytic).abs() <= 1e-6 * (1.0 + analytic.abs()),
                            "{text}: grad {name}[{at}] is {analytic}, differences give {numeric}"
                        );
                    }
                };
            check("q", &gq, &|scores, step, at| scores.q[at] += step);
            check("k", &gk, &|scores, step, at| scores.k[at] += step);
            check("own", &own, &|scores, step, at| {
                *scores.parameters.iter_mut().flatten().nth(at).unwrap() += step;
            });
        }
    }
}

/// Panics unless the kernels agree with the reference, in double precision to a few roundings of
/// the largest number, in single by the twofold rule.
fn agree(text: &str, n: [usize; 2], d: usize, seed: u64, edges: bool) {
    let edges = edges.then(|| {
        let mut draws = Draws::new(seed ^ 0xed9e5);
        let pairs: Vec<(usize, usize)> =
            (0..3 * n[0]).map(|_| (draws.below(n[0]), draws.below(n[1]))).collect();
        Edges::new(n[0], n[1], &pairs).unwrap()
    });
    let exact = Scores::<f64> { edges: edges.clone(), ..Scores::new(text, n, d, seed) };
    let single = Scores::<f32> { edges, ..Scores::new(text, n, d, seed) };
    let (oracle, plain, natural) = (exact.reference(), single.reference(), exact.natural());
    let names = ["scores", "grad q", "grad k", "grad of the parameters"];
    for isa in every_isa() {
        let (double, fused) = (exact.kernels(isa), single.kernels(isa));
        for (at, name) in names.into_iter().enumerate() {
            let scale = largest(&oracle[at]).max(1.0);
            assert!(oracle[at].iter().all(|x| x.is_finite()), "{text}: {name} is not finite");
            for (x, o) in double[at].iter().zip(&oracle[at]) {
                assert!(
                    (x - o).abs() <= 1e-12 * scale,
                    "{isa} {text}: {name} is {x}, the reference gives {o} ({n:?}, width {d})"
                );
            }
            let error = |x: &[f32]| {
                let pairs = x.iter().zip(&oracle[at]);
                pairs.fold(0.0f64, |top, (&x, o)| top.max((f64::from(x) - o).abs()))
            };
            let rounding = f64::from(f32::EPSILON) * scale.max(natural[at]);
            let allowed = 2.0 * error(&plain[at]) + 2.0 * rounding;
            let found = error(&fused[at]);
            assert!(
                found <= allowed && fused[at].iter().all(|x| x.is_finite()),
                "{isa} {text}: {name} has error {found:e}, allowed {allowed:e} ({n:?}, width {d})"
            );
        }
    }
}

#[test]
fn every_function_agrees_with_the_reference_on_both_paths() {
    for (seed, text) in ONE_OF_EACH.into_iter().enumerate() {
        for (n, d, edges) in
            [([20, 30], 5, false), ([70, 13], 1, false), ([2, 40], 5, false), ([20, 30], 3, true)]
        {
            agree(text, n, d, seed as u64, edges);
        }
    }
}

/// A random expression of some depth: a row, or one number.
fn random(draws: &mut Draws, depth: usize, row: bool) -> String {
    if depth == 0 {
        let leaves: &[&str] =
            if row { &["q", "k", "w", "w2", "q", "k"] } else { &["tau", "0.5", "rate", "1.25"] };
        return leaves[draws.below(leaves.len())].into();
    }
    let mut part = |row: bool| random(draws, depth - 1, row);
    let (a, b) = (part(row), part(row));
    let (x, y) = (part(true), part(true));
    let number = part(false);
    // Nothing that leaves the range or meets a point without a slope by more than accident.
    let forms = [
        format!("({a} + {b})"),
        format!("({a} - {b})"),
        format!("tanh({a}) * {b}"),
        format!("{a} / (1 + square({b}))"),
        format!("-{a}"),
        format!("{number} * {a}"),
        format!("sqrt(1 + square({a}))"),
        format!("abs({a})"),
        format!("exp(tanh({a}))"),
        format!("log(1 + square({a}))"),
        format!("sigmoid({a})"),
        format!("relu({a})"),
        format!("leaky_relu({a}, 0.2)"),
        format!("gelu({a})"),
        format!("softplus({a})"),
        format!("sin({a})"),
        format!("cos({a})"),
        format!("max({a}, {b})"),
        format!("min({a}, {b})"),
        format!("tanh(({x}) @ ({y}))"),
        format!("mean({x})"),
        format!("sum({x}) / d"),
        format!("norm({x} + 1.5)"),
    ];
    let several = if row { forms.len() - 4 } else { forms.len() };
    forms[draws.below(several)].clone()
}

#[test]
fn random_expressions_agree_with_the_reference() {
    for seed in 0..300 {
        let mut draws = Draws::new(1000 + seed);
        let depth = 1 + seed as usize % 4;
        // The first operand sees to it that there are rows.
        let text = format!(
            "sum({}) + {}",
            random(&mut draws, depth, true),
            random(&mut draws, depth, false)
        );
        let n = [[9, 11], [2, 9]][seed as usize % 2];
        agree(&text, n, 1 + seed as usize % 5, seed, seed % 3 == 0);
    }
}

#[test]
fn what_is_printed_is_parsed_again_as_the_same() {
    let mut texts: Vec<String> = ONE_OF_EACH.iter().map(|text| text.to_string()).collect();
    texts.extend(EXPRESSIONS.iter().map(|written| written.text.to_string()));
    for (seed, depth) in (0..200).zip([1, 2, 3, 4].into_iter().cycle()) {
        texts.push(format!("sum({})", random(&mut Draws::new(seed), depth, true)));
    }
    texts.extend(
        ["-(-(1e-3 - (2 - q @ k)))", "1 - (2 / (3 / (w @ w) * 4))", "0.1 * (d - -pi)"]
            .map(String::from),
    );
    for text in texts {
        let expression = Expression::parse(&text).unwrap();
        let printed = expression.to_string();
        let again = Expression::parse(&printed).unwrap();
        assert_eq!(again, expression, "{text} was printed as {printed}");
        assert_eq!(again.to_string(), printed);
    }
    let spaced = Expression::parse(" sum( w*tanh(q+k) ) ").unwrap();
    assert_eq!(spaced.to_string(), "sum(w * tanh(q + k))");
    assert_ne!(spaced, Expression::parse("sum(w * tanh(k + q))").unwrap());
}

#[test]
fn parameters_stand_in_order_of_first_appearance() {
    let expression = Expression::parse("sum(w * q) * tau + q @ (w / b_2) + tau").unwrap();
    assert_eq!(expression.parameters(), ["w", "tau", "b_2"]);
}

#[test]
fn bad_expressions_are_refused_with_their_column() {
    let table = [
        ("", 1, "the expression is empty"),
        ("   ", 4, "the expression is empty"),
        ("sum(w * tahn(q + k))", 9, "`tahn` is no function; nearest is `tanh`"),
        ("sun(q)", 1, "`sun` is no function; nearest is `sum`"),
        ("sum(realu(q))", 5, "`realu` is no function; nearest is `relu`"),
        ("q(k)", 1, "`q` is no function"),
        ("sum(q", 6, "the `(` of column 4 is not closed"),
        ("sum  (q", 8, "the `(` of column 6 is not closed"),
        ("(q @ k", 7, "the `(` of column 1 is not closed"),
        ("q @ k)", 6, "`)` closes nothing"),
        ("q @", 4, "the expression ends where an operand is due"),
        ("q @ * k", 5, "`*` stands where an operand is due"),
        ("+q @ k", 1, "`+` stands where an operand is due"),
        ("()", 2, "`)` stands where an operand is due"),
        ("q k", 3, "`k` follows no operator"),
        ("q @ k 2", 7, "`2` follows no operator"),
        ("(q k)", 4, "`k` follows no operator"),
        ("2q @ k", 1, "`2q` is no number"),
        ("1.2.3 * q @ k", 1, "`1.2.3` is no number"),
        (". * q @ k", 1, "`.` is no number"),
        ("1e * q @ k", 1, "`1e` is no number"),
        ("1e999 * q @ k", 1, "1e999 is too large a number"),
        ("q @ k ^ 2", 7, "`^` has no meaning here"),
        ("q @ k²", 6, "`²` has no meaning here"),
        ("q, k", 2, "a comma stands between arguments only"),
        ("(q, k)", 3, "a comma stands between arguments only"),
        ("sum()", 1, "`sum` takes 1 argument, 0 given"),
        ("sum(q, k)", 1, "`sum` takes 1 argument, 2 given"),
        ("sum(leaky_relu(q))", 5, "`leaky_relu` takes 2 arguments, 1 given"),
        ("sum(q) + max(1, 2, 3)", 10, "`max` takes 2 arguments, 3 given"),
        ("tanh * q @ k", 1, "`tanh` is a function"),
        ("q", 1, "the result is a row"),
        ("q * w", 3, "the result is a row"),
        ("tanh(q + k)", 1, "the result is a row"),
        ("2 * (q @ k) * q", 13, "the result is a row"),
        ("sum(q @ k)", 1, "`sum` needs a row of the head width"),
        ("norm(d)", 1, "`norm` needs a row of the head width"),
        ("mean(2 * pi)", 1, "`mean` needs a row of the head width"),
        ("q @ k @ q", 7, "`@` needs two rows of the head width"),
    ];
    for (text, column, message) in table {
        let error = Expression::parse(text).unwrap_err();
        assert_eq!(error.column, column, "{text}: {error}");
        assert!(error.message.starts_with(message), "{text}: {error}");
        assert_eq!(error.to_string(), format!("column {column}: {}", error.message));
    }
}

#[test]
fn deep_nesting_and_endless_chains_are_refused() {
    let refusals = [
        ("(".repeat(10_000) + "q @ k" + &")".repeat(10_000), 101, "levels deep"),
        ("-".repeat(10_000) + "q @ k", 101, "levels deep"),
        ("exp(".repeat(10_000) + "q" + &")".repeat(10_000), 401, "levels deep"),
        ("(".repeat(10_000), 101, "levels deep"),
        ("q @ k".to_string() + &" + 1".repeat(10_000), 1999, "at most 1000 parts"),
    ];
    for (text, column, message) in refusals {
        let error = Expression::parse(&text).unwrap_err();
        assert!(error.message.contains(message), "{error}");
        assert_eq!(error.column, column, "{error}");
    }
    // The longest chain that is accepted is printed, computed and differentiated.
    let chain = "q @ k".to_string() + &" + 1".repeat(498);
    agree(&chain, [9, 5], 2, 1, false);
    assert_eq!(Expression::parse(&chain).unwrap().to_string(), chain);
}

#[test]
fn parameters_that_do_not_fit_are_refused_by_name() {
    let refusal = |text: &str, shapes: &[[usize; 2]], widths: [usize; 2]| -> String {
        let expression = Expression::parse(text).unwrap();
        let data = vec![0f32; 64];
        let parameters: Vec<Parameter<f32>> = shapes
            .iter()
            .map(|&shape| Parameter { data: &data[..shape[0] * shape[1]], shape })
            .collect();
        let spec =
            Spec::new(Score::Expression { expression: &expression, parameters: &parameters });
        let [dq, dk] = widths;
        let (q, k, v) = (vec![0f32; 6 * dq], vec![0f32; 6 * dk], vec![0f32; 6]);
        let checked = spec.check(
            &View::new(&q, [1, 2, 3, dq]).unwrap(),
            &View::new(&k, [1, 2, 3, dk]).unwrap(),
            &View::new(&v, [1, 2, 3, 1]).unwrap(),
        );
        checked.map(|_| "accepted".to_string()).unwrap_or_else(|error| error.to_string())
    };
    let text = "sum(w * tanh(q + k)) * tau";
    for shapes in [[[1, 4], [1, 1]], [[2, 4], [2, 1]], [[1, 1], [1, 1]], [[2, 1], [1, 1]]] {
        assert_eq!(refusal(text, &shapes, [4, 4]), "accepted");
    }
    assert_eq!(
        refusal(text, &[[1, 4]], [4, 4]),
        format!("`{text}` has 2 parameters, 1 given; `tau` is missing")
    );
    assert_eq!(
        refusal(text, &[[1, 4], [1, 1], [1, 1]], [4, 4]),
        format!("`{text}` has 2 parameters, 3 given")
    );
    assert_eq!(
        refusal(text, &[[1, 3], [1, 1]], [4, 4]),
        "parameter `w` has shape [1, 3]; with 2 heads of width 4 it is [1 or 2, 1 or 4]"
    );
    assert_eq!(
        refusal(text, &[[1, 4], [3, 1]], [4, 4]),
        "parameter `tau` has shape [3, 1]; with 2 heads of width 4 it is [1 or 2, 1 or 4]"
    );
    assert_eq!(
        refusal(text, &[[1, 4], [1, 4]], [4, 4]),
        format!("with these parameters `{text}` is a row of the head width; a score is one number")
    );
    assert_eq!(
        refusal("q @ k", &[], [4, 3]),
        "k has head width 3, q has 4; the expression's score needs them equal"
    );
    let (expression, short) = (Expression::parse("tau * q @ k").unwrap(), [0f32; 2]);
    let parameters = [Parameter { data: &short[..], shape: [1, 1] }];
    let spec = Spec::new(Score::Expression { expression: &expression, parameters: &parameters });
    let x = [0f32; 4];
    let view = View::new(&x, [1, 1, 2, 2]).unwrap();
    assert_eq!(
        spec.check(&view, &view, &view).unwrap_err().to_string(),
        "parameter `tau` has 2 elements, its shape [1, 1] needs 1"
    );
}

/// What a score of another kind gives for the same numbers: scores, gradients of q, k and w.
fn by_another_score(x: &Scores<f64>, score: Score<f64>) -> Numbers<f64> {
    x.with(|spec, [q, k, v]| {
        let spec = Spec { score, ..*spec };
        let output = reference::forward(&spec, q, k, v).unwrap();
        let zeros = vec![0.0; x.n[0]];
        let arriving = reference::Arriving {
            out: View::new(&zeros, [1, 1, x.n[0], 1]).unwrap(),
            edge_weights: None,
            lse: None,
            weights: Some(&x.grad),
            log_prob: None,
        };
        let g = reference::backward(&spec, q, k, v, arriving).unwrap();
        [output.weights, g.q, g.k, g.w]
    })
}

/// Panics unless the kernels are as near to what is known as the plain formula, twofold.
fn agrees_with_known(text: &str, n: [usize; 2], known: impl Fn(&Scores<f64>) -> Vec<Vec<f64>>) {
    let known = known(&Scores::new(text, n, 7, 3));
    let single = Scores::<f32>::new(text, n, 7, 3);
    let plain = single.reference();
    for isa in every_isa() {
        let fused = single.kernels(isa);
        for (at, known) in known.iter().enumerate() {
            let error = |x: &[f32]| {
                assert_eq!(x.len(), known.len());
                x.iter().zip(known).fold(0.0f64, |top, (&x, o)| top.max((f64::from(x) - o).abs()))
            };
            let scale = f64::from(f32::EPSILON) * largest(known).max(1.0);
            let (found, allowed) = (error(&fused[at]), 2.0 * error(&plain[at]) + 2.0 * scale);
            assert!(found <= allowed, "{isa} {text}: error {found:e}, allowed {allowed:e}");
        }
    }
}

#[test]
fn expressions_of_known_scores_give_those_scores() {
    for n in [[33, 20], [2, 50]] {
        for text in ["q @ k / sqrt(d)", "sum(k * q / sqrt(d))", "q @ k * (1 / sqrt(d))"] {
            agrees_with_known(text, n, |x| {
                let [scores, q, k, _] = by_another_score(x, Score::scaled_dot(x.d));
                vec![scores, q, k]
            });
        }
        let activations = [
            ("tanh(q + k)", Activation::Tanh),
            ("tanh(q + k + 0)", Activation::Tanh),
            ("relu(k + q)", Activation::Relu),
            ("gelu(q + k)", Activation::Gelu),
            ("leaky_relu(q + k, 0.2)", Activation::LeakyRelu { slope: 0.2 }),
            ("(q + k)", Activation::Identity),
        ];
        for (inner, activation) in activations {
            for text in [format!("sum(w * {inner})"), format!("{inner} @ w")] {
                agrees_with_known(&text, n, |x| {
                    let score = Score::Additive { activation, w: &x.parameters[0] };
                    by_another_score(x, score).to_vec()
                });
            }
        }
        // −½|q − k|² = q·k − ½|q|² − ½|k|²
        agrees_with_known("-sum(square(q - k)) / 2", n, |x| {
            let mut scores = by_another_score(x, Score::Dot { scale: 1.0 })[0].clone();
            let half = |row: &[f64]| row.iter().map(|x| x * x).sum::<f64>() / 2.0;
            for (at, score) in scores.iter_mut().enumerate() {
                let (i, j) = (at / n[1], at % n[1]);
                *score -= half(&x.q[i * x.d..][..x.d]) + half(&x.k[j * x.d..][..x.d]);
            }
            vec![scores]
        });
        agrees_with_known("q @ k / (norm(q) * norm(k))", n, |x| {
            let unit = |rows: &[f64]| -> Vec<f64> {
                let length = |row: &[f64]| row.iter().map(|x| x * x).sum::<f64>().sqrt();
                rows.chunks(x.d).flat_map(|row| row.iter().map(move |x| x / length(row))).collect()
            };
            let (q, k, grad) = (unit(&x.q), unit(&x.k), x.grad.clone());
            let (expression, parameters) = (x.expression.clone(), Vec::new());
            let units = Scores { expression, q, k, parameters, grad, edges: None, ..*x };
            vec![by_another_score(&units, Score::Dot { scale: 1.0 })[0].clone()]
        });
    }
}

#[test]
fn dot_products_and_additive_scores_run_as_their_own_kernels() {
    // To the bit, gradients included, whatever they are written as; others do not.
    let same = |n: usize, score: ScoreKind| {
        let case = Case { nq: 33, nk: 70, d: 8, ..Case::default() };
        let written = Case { score: ScoreKind::Expression(n), ..case }.data::<f32>();
        let mut own = Case { score, ..case }.data::<f32>();
        own.w.clone_from(&written.parameters);
        every_isa().all(|isa| {
            let (a, b) = (written.fused(isa), own.fused(isa));
            a.out == b.out
                && a.gradients[..3] == b.gradients[..3]
                && a.gradients[4] == b.gradients[3]
        })
    };
    assert!(same(4, ScoreKind::Additive(Activation::Tanh)));
    assert!(same(5, ScoreKind::Additive(Activation::LeakyRelu { slope: 0.2 })));
    assert!(!same(3, ScoreKind::Additive(Activation::Tanh)), "the strips were not tried");
}

#[test]
fn what_is_masked_may_be_undefined_and_nothing_of_it_arrives() {
    // log of a negative number is NaN, and so is its slope.
    for (nq, edges) in [(70, false), (2, false), (30, true)] {
        for n in [1, 2] {
            let mask = MaskKind { lengths: !edges, causal: true, edges, ..MaskKind::default() };
            let case =
                Case { nq, nk: 70, d: 5, score: ScoreKind::Expression(n), ..Case::default() };
            let mut data = Case { mask, seed: 5, ..case }.data::<f32>();
            for isa in every_isa() {
                let before = data.fused(isa);
                let weighed: Vec<bool> = (0..70)
                    .map(|j| before.weights.iter().skip(j).step_by(70).any(|&x| x != 0.0))
                    .collect();
                assert!(weighed.contains(&false), "every key is seen");
                let kept = data.k.clone();
                for (j, seen) in weighed.into_iter().enumerate() {
                    if !seen {
                        data.k[j * 5..][..5].fill(f32::NAN);
                    }
                }
                let after = data.fused(isa);
                assert_eq!(after.out, before.out);
                assert_eq!(after.gradients, before.gradients);
                data.k = kept;
            }
        }
    }
}

#[test]
fn undefined_inputs_give_undefined_scores() {
    for text in ["sum(relu(q - k))", "sum(abs(q * k))", "sum(tanh(q + k) * w) + 0", "norm(q - k)"] {
        for n in [[20, 30], [2, 30]] {
            let mut scores = Scores::<f32>::new(text, n, 4, 1);
            scores.k[4 * 7 + 2] = f32::NAN;
            // A sigmoid shows each score by itself.
            scores.normalizer = Normalizer::Sigmoid;
            for isa in every_isa() {
                let [found, ..] = scores.kernels(isa);
                for (at, x) in found.iter().enumerate() {
                    assert_eq!(x.is_nan(), at % n[1] == 7, "{isa} {text}: score {at} is {x}");
                }
            }
        }
    }
}

#[test]
fn equal_operands_and_zeros_have_the_slopes_that_are_documented() {
    let slopes = |text: &str| -> (f64, f64) {
        let mut scores = Scores::<f64>::new(text, [9, 1], 1, 1);
        scores.q.fill(0.0);
        scores.k.fill(0.0);
        scores.grad.fill(1.0);
        let [_, q, k, _] = scores.reference();
        for isa in every_isa() {
            let [_, fused_q, fused_k, _] = scores.kernels(isa);
            assert_eq!((&fused_q, &fused_k), (&q, &k), "{isa} {text}");
        }
        (q[0], k[0] / 9.0)
    };
    assert_eq!(slopes("sum(max(q, k))"), (1.0, 0.0));
    assert_eq!(slopes("sum(min(q, k))"), (1.0, 0.0));
    assert_eq!(slopes("sum(relu(q) + k)"), (0.0, 1.0));
    assert_eq!(slopes("sum(leaky_relu(q, 0.25) + k)"), (0.25, 1.0));
    assert_eq!(slopes("sum(abs(q) + k)"), (0.0, 1.0));
    assert_eq!(slopes("norm(q) + sum(k)"), (0.0, 1.0));
    assert_eq!(slopes("sum(sqrt(q) + k)"), (0.0, 1.0));
}

#[test]
fn expressions_are_plain_data() {
    fn plain<T: Send + Sync + Clone + std::fmt::Debug + PartialEq + 'static>() {}
    plain::<Expression>();
    plain::<Node>();
    assert_eq!("q @ k".parse(), Expression::parse("q @ k"));
}
