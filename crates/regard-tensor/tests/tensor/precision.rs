//! Products whose factors are rounded to bf16, against plain loops that round by themselves.

use crate::device::here;
use regard_tensor::{
    DType, Precision, Random, Result, Tensor, lerp_all, precision, with_gradients, with_precision,
};

/// The bf16 number next to an f32, the even one of two, by its bits.
fn rounded(x: f32) -> f64 {
    let bits = u64::from(x.to_bits());
    let (below, rest) = (bits >> 16, bits & 0xffff);
    let up = rest > 0x8000 || (rest == 0x8000 && below % 2 == 1);
    f64::from(f32::from_bits(((below + u64::from(up)) << 16) as u32))
}

fn numbers(x: &Tensor) -> Vec<f32> {
    x.to_vec::<f32>().unwrap()
}

/// `[m, k]` · `[k, n]` of rounded numbers.
fn product(a: &[f32], b: &[f32], [m, k, n]: [usize; 3]) -> Vec<f64> {
    let at = |i: usize, j: usize| {
        (0..k).map(|p| rounded(a[i * k + p]) * rounded(b[p * n + j])).sum::<f64>()
    };
    (0..m * n).map(|place| at(place / n, place % n)).collect()
}

/// `[m, k]` turned.
fn turned(a: &[f32], [m, k]: [usize; 2]) -> Vec<f32> {
    (0..m * k).map(|at| a[at % m * k + at / m]).collect()
}

#[track_caller]
fn close(name: &str, x: &Tensor, expected: &[f64]) {
    assert_eq!(x.dtype(), DType::F32, "{name}");
    let x = numbers(x);
    assert_eq!(x.len(), expected.len(), "{name}");
    let scale = expected.iter().fold(1e-3, |most: f64, x| most.max(x.abs()));
    for (x, expected) in x.iter().zip(expected) {
        assert!((f64::from(*x) - expected).abs() < 1e-5 * scale, "{name}: {x} for {expected}");
    }
}

fn normal(seed: u64, shape: &[usize]) -> Tensor {
    here(Random::new(seed).normal(shape, 0.0, 1.0, DType::F32).unwrap())
}

const SIZES: [[usize; 3]; 9] = [
    [1, 1, 1],
    [1, 7, 5],
    [3, 64, 1],
    [17, 33, 9],
    [64, 64, 64],
    [130, 70, 200],
    [256, 520, 96],
    [2, 1000, 3],
    [300, 1, 40],
];

#[test]
fn rounded_products_and_their_gradients_are_those_of_plain_loops() {
    let mut cases = 0;
    for size in SIZES {
        let [m, k, n] = size;
        for (turn_a, turn_b) in [(false, false), (true, false), (false, true), (true, true)] {
            let leaf = |seed, rows, columns, turn: bool| {
                let shape = if turn { [columns, rows] } else { [rows, columns] };
                let x = normal(seed, &shape);
                x.requires_grad().unwrap()
            };
            let (a, b) = (leaf(1, m, k, turn_a), leaf(2, k, n, turn_b));
            let lying = |x: &Tensor, turn: bool| {
                if turn { x.transpose(0, 1).unwrap() } else { x.clone() }
            };
            let (x, y) = (lying(&a, turn_a), lying(&b, turn_b));
            let out = with_precision(Precision::Bf16, || x.matmul(&y)).unwrap();
            let (na, nb) = (numbers(&x.detach()), numbers(&y.detach()));
            close("product", &out.detach(), &product(&na, &nb, size));
            let seed = normal(3, &[m, n]);
            // The gradient is rounded as the product was, whatever holds where it is asked for.
            let gradients = out.backward_with(&seed).unwrap();
            let g = numbers(&seed);
            let of = |leaf: &Tensor, turn: bool| lying(gradients.get(leaf).unwrap(), turn);
            close("left", &of(&a, turn_a), &product(&g, &turned(&nb, [k, n]), [m, n, k]));
            close("right", &of(&b, turn_b), &product(&turned(&na, [m, k]), &g, [k, m, n]));
            cases += 1;
        }
    }
    assert_eq!(cases, 36);
}

#[test]
fn a_rounded_layer_keeps_its_bias_and_the_gradient_of_it_in_f32() {
    for [m, k, n] in SIZES {
        let (x, w) = (normal(1, &[m, k]).requires_grad().unwrap(), normal(2, &[n, k]));
        let (w, bias) = (w.requires_grad().unwrap(), normal(3, &[n]).requires_grad().unwrap());
        let out = with_precision(Precision::Bf16, || x.linear(&w, Some(&bias))).unwrap();
        let (nx, nw) = (numbers(&x.detach()), numbers(&w.detach()));
        let mut expected = product(&nx, &turned(&nw, [n, k]), [m, k, n]);
        let nb = numbers(&bias.detach());
        expected.iter_mut().enumerate().for_each(|(at, y)| *y += f64::from(nb[at % n]));
        close("layer", &out.detach(), &expected);
        let seed = normal(4, &[m, n]);
        let g = numbers(&seed);
        let gradients = with_precision(Precision::Bf16, || out.backward_with(&seed)).unwrap();
        close("input", gradients.get(&x).unwrap(), &product(&g, &nw, [m, n, k]));
        close("weight", gradients.get(&w).unwrap(), &product(&turned(&g, [m, n]), &nx, [n, m, k]));
        let sums: Vec<f64> =
            (0..n).map(|j| (0..m).map(|i| f64::from(g[i * n + j])).sum()).collect();
        close("bias", gradients.get(&bias).unwrap(), &sums);
    }
}

#[test]
fn stacks_of_matrices_and_one_for_all_are_rounded_too() {
    let (a, b) = (normal(1, &[3, 5, 7]), normal(2, &[7, 4]));
    let c = normal(3, &[3, 7, 4]);
    let one = with_precision(Precision::Bf16, || a.matmul(&b)).unwrap();
    let own = with_precision(Precision::Bf16, || a.matmul(&c)).unwrap();
    for item in 0..3 {
        let left = numbers(&a.select(0, item).unwrap());
        let [of_one, of_own] = [numbers(&b), numbers(&c.select(0, item).unwrap())]
            .map(|b| product(&left, &b, [5, 7, 4]));
        close("one", &one.select(0, item).unwrap(), &of_one);
        close("own", &own.select(0, item).unwrap(), &of_own);
    }
}

#[test]
fn a_precision_holds_for_its_scope_alone_and_for_f32_alone() {
    let bits = |x: Result<Tensor>| x.unwrap().to_vec::<f64>().unwrap();
    let x = Random::new(1).normal(&[9, 9], 0.0, 1.0, DType::F64).unwrap();
    assert_eq!(bits(with_precision(Precision::Bf16, || x.matmul(&x))), bits(x.matmul(&x)));
    let y = normal(1, &[9, 9]);
    let plain = numbers(&y.matmul(&y).unwrap());
    let inside = with_precision(Precision::Bf16, || {
        let back = with_precision(Precision::F32, || y.matmul(&y)).unwrap();
        assert_eq!(numbers(&back), plain);
        assert_eq!(precision(), Precision::Bf16);
        y.matmul(&y).unwrap()
    });
    assert_ne!(numbers(&inside), plain);
    let panicked = std::panic::catch_unwind(|| with_precision(Precision::Bf16, || panic!()));
    assert!(panicked.is_err());
    assert_eq!(precision(), Precision::F32);
    // An operation of f32 has a gradient of f32, wherever that is asked for.
    let leaf = y.requires_grad().unwrap();
    let out = with_gradients(|| leaf.matmul(&y)).unwrap();
    let seed = normal(2, &[9, 9]);
    let gradients = with_precision(Precision::Bf16, || out.backward_with(&seed)).unwrap();
    let expected = seed.matmul(&y.transpose(0, 1).unwrap()).unwrap();
    assert_eq!(numbers(gradients.get(&leaf).unwrap()), numbers(&expected));
}

#[test]
fn infinities_and_no_numbers_come_through_rounded_products() {
    let x =
        here(Tensor::from([[f32::INFINITY, 1.0], [f32::NAN, 1.0], [f32::MAX, 1.0], [1.0, 1.0]]));
    let y = here(Tensor::from([[1f32, 0.0], [1.0, 2.0]]));
    let out = numbers(&with_precision(Precision::Bf16, || x.matmul(&y)).unwrap());
    // The largest f32 is nearer to 2¹²⁸ than to the largest bf16.
    assert_eq!((out[0], out[4]), (f32::INFINITY, f32::INFINITY));
    assert!(out[1].is_nan() && out[2].is_nan() && out[3].is_nan() && out[5].is_nan());
    assert_eq!((out[6], out[7]), (2.0, 2.0));
}

#[test]
fn means_move_by_a_share_and_what_does_not_fit_is_refused() {
    let [a, b] = [Tensor::from([1f64, 2.0]), Tensor::from([3f64, 0.0])].map(here);
    let (keeps, mut all) = (a.clone(), [a.clone(), b.transpose(0, 0).unwrap()]);
    lerp_all(&mut all, &[b.clone(), a.clone()], 0.25).unwrap();
    let of = |x: &Tensor| x.to_vec::<f64>().unwrap();
    assert_eq!((of(&all[0]), of(&all[1])), (vec![1.5, 1.5], vec![2.5, 0.5]));
    assert_eq!(of(&keeps), [1.0, 2.0]);
    let refused = |all: &[Tensor], to: &[Tensor]| {
        lerp_all(&mut all.to_vec(), to, 0.5).unwrap_err().to_string()
    };
    assert_eq!(refused(&[a.clone()], &[]), "lerp_all: 1 tensors and 0 targets");
    let longer = here(Tensor::from([1f64, 2.0, 3.0]));
    assert!(refused(&[a.clone()], &[longer]).contains("shape [2], its target [3]"));
    let other = here(Tensor::from([1f32, 2.0]));
    assert!(refused(&[a], &[other]).contains("f32"));
    let ids = here(Tensor::from([1i64]));
    assert!(refused(&[ids.clone()], &[ids]).contains("wants f32 or f64"));
}
