//! Memory from the pool still holds what it was used for: attention never shows it, whatever is
//! masked and however little there is. Alone in its file, so that no other test takes the blocks
//! that this one prepared.
#![allow(clippy::unwrap_used)]

use regard::prelude::*;

/// Fills the pool with blocks of NaN, of every size that the cases below ask for.
fn poison() {
    // As the pool rounds them: in sixteenths of a power of two, in cache lines of 8 numbers.
    let powers = (6..12).map(|power| 1usize << power);
    let lines = powers.flat_map(|power| (9..=16).map(move |n| power / 16 * n));
    let fill = |n| (0..6).map(move |_| Tensor::full(&[8 * n], f64::NAN, DType::F64).unwrap());
    drop(lines.filter(|&n| n >= 64).flat_map(fill).collect::<Vec<_>>());
    let taken = Tensor::uninit(&[5000], DType::F64).unwrap();
    assert!(
        taken.to_vec::<f64>().unwrap().iter().all(|x| x.is_nan()),
        "the pool gave fresh memory"
    );
}

#[track_caller]
fn assert_no_nan(what: &str, x: &Tensor) {
    let numbers = x.to_vec::<f64>().unwrap();
    assert!(numbers.iter().all(|x| !x.is_nan()), "{what} {:?} shows recycled memory", x.shape());
}

/// Attention over lengths Nq and Nk, forward and backward, in poisoned memory.
fn run(nq: usize, nk: usize, mask: &Mask, attention: impl Fn(&Tensor, &Tensor) -> Attention) {
    let input = |shape: &[usize]| {
        let x = Tensor::full(shape, 0.25, DType::F64).unwrap();
        x.requires_grad().unwrap()
    };
    let (q, k, v) = (input(&[2, 4, nq, 16]), input(&[2, 4, nk, 16]), input(&[2, 4, nk, 16]));
    let (w, bias) = (input(&[4, 16]), input(&[2, 4, nq, nk]));
    let attention = attention(&w, &bias);
    let what = format!("{:?}, {nq} by {nk}", attention.normalizer);
    poison();
    let attended = attention.attend(&q, &k, &v, mask, Need::WEIGHTS).unwrap();
    let mut sum = Tensor::new(0f64).unwrap();
    for x in [Some(&attended.out), attended.weights.as_ref()].into_iter().flatten() {
        assert_no_nan(&what, x);
        sum = sum.add(&x.sum_all().unwrap()).unwrap();
    }
    poison();
    let gradients = sum.backward().unwrap();
    for x in [&q, &k, &v, &w, &bias] {
        if let Some(gradient) = gradients.get(x) {
            assert_no_nan(&format!("{what}: gradient"), gradient);
        }
    }
}

#[test]
fn attention_never_shows_recycled_memory() {
    let normalizers = [
        Normalizer::Softmax,
        Normalizer::Sparsemax,
        Normalizer::Entmax15,
        Normalizer::Sigmoid,
        Normalizer::None,
        Normalizer::Argmax,
        Normalizer::Sample { seed: 1 },
    ];
    let masks =
        [Mask::none(), Mask::causal(), Mask { key_lengths: Some(vec![0, 1]), ..Mask::none() }];
    for normalizer in normalizers {
        for mask in &masks {
            for (nq, nk) in [(40, 40), (40, 1), (1, 40)] {
                run(nq, nk, mask, |_, bias| Attention {
                    normalizer,
                    bias: Bias { full: Some(bias.clone()), ..Bias::default() },
                    // Queries before the first key see nothing under a causal mask.
                    offset: Some(-20),
                    ..Attention::new(Score::ScaledDot)
                });
                run(nq, nk, mask, |w, _| {
                    let activation = Activation::Tanh;
                    let score = Score::Additive { w: w.clone(), activation };
                    Attention { normalizer, ..Attention::new(score) }
                });
            }
        }
        for (nq, nk) in [(40, 0), (0, 40), (0, 0)] {
            run(nq, nk, &Mask::none(), |_, _| Attention {
                normalizer,
                ..Attention::new(Score::ScaledDot)
            });
        }
    }
}
