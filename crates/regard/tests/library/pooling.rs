//! Pooling: what each gives, its gradients, and that padding has no influence.

use crate::squash;

use regard::layers::{Gate, Pooling, PoolingConfig};
use regard::prelude::*;
use regard::tensor::finite_difference_error;
use squash::Squash;

fn all() -> Vec<PoolingConfig> {
    let gaussian = ScoreConfig::Gaussian { inverse_width: 0.7, learned: true, per_feature: false };
    let mechanism =
        |score, weighting| MechanismConfig { score, weighting, ..MechanismConfig::default() };
    vec![
        PoolingConfig::Mean,
        PoolingConfig::Max,
        PoolingConfig::Last,
        PoolingConfig::Gate,
        PoolingConfig::Attention(MechanismConfig::default()),
        PoolingConfig::Attention(mechanism(
            ScoreConfig::Additive { hidden: 6 },
            Weighting::Sparsemax,
        )),
        PoolingConfig::Attention(mechanism(gaussian, Weighting::Sigmoid)),
        PoolingConfig::Attention(mechanism(
            ScoreConfig::own(Squash, &[1.0, 0.5]),
            Weighting::Softmax,
        )),
        PoolingConfig::Attention(mechanism(ScoreConfig::ScaledDot, Weighting::Argmax)),
        PoolingConfig::Queries { queries: 3, mechanism: MechanismConfig::default() },
        PoolingConfig::Queries {
            queries: 2,
            mechanism: mechanism(ScoreConfig::Additive { hidden: 6 }, Weighting::Sparsemax),
        },
    ]
}

fn normal(seed: u64, shape: &[usize]) -> Tensor {
    Random::new(seed).normal(shape, 0.0, 1.0, DType::F64).unwrap()
}

fn numbers(x: &Tensor) -> Vec<f64> {
    x.to_vec().unwrap()
}

#[test]
fn padding_has_no_influence_even_where_it_is_not_a_number() {
    let lengths = [3, 5, 1, 0];
    let clean = normal(1, &[4, 5, 4]);
    let mut dirty = numbers(&clean);
    for (item, &length) in lengths.iter().enumerate() {
        dirty[(item * 5 + length) * 4..(item + 1) * 5 * 4].fill(f64::NAN);
    }
    let dirty = Tensor::from_vec(dirty, &[4, 5, 4]).unwrap();
    for config in all() {
        let pooling = Pooling::new(&Parameters::new(DType::F64, 1), &config, 4).unwrap();
        let pool = |x: &Tensor, lengths: &[usize]| {
            pooling.pool(x, Some(lengths), Mode::Infer, Need::WEIGHTS).unwrap()
        };
        let together = pool(&dirty, &lengths);
        assert_eq!(numbers(&together.out), numbers(&pool(&clean, &lengths).out), "{config:?}");
        for (item, &length) in lengths.iter().enumerate() {
            let alone = clean.narrow(0, item, 1).unwrap().narrow(1, 0, length).unwrap();
            let alone = pool(&alone, &[length]);
            let row = numbers(&together.out.select(0, item).unwrap());
            for (a, b) in row.iter().zip(numbers(&alone.out)) {
                assert!((a - b).abs() < 1e-14, "{config:?}: {a} and alone {b}");
            }
            if let Some(weights) = &together.weights {
                for weights in numbers(&weights.select(0, item).unwrap()).chunks(5) {
                    let padding = &weights[length..];
                    assert!(padding.iter().all(|&w| w == 0.0), "{config:?}: {weights:?}");
                }
            }
        }
    }
}

#[test]
fn every_pooling_has_its_gradients_and_none_for_padding() {
    for config in all() {
        let pooling = Pooling::new(&Parameters::new(DType::F64, 1), &config, 4).unwrap();
        let error = finite_difference_error(&[normal(2, &[3, 5, 4])], |x| {
            pooling.forward(&x[0], Some(&[3, 5, 1]), Mode::Infer)
        });
        let error = error.unwrap();
        assert!(error < 1e-6, "{config:?}: {error}");
    }
}

#[test]
fn weights_say_what_the_output_is_made_of() {
    let x = normal(3, &[2, 4, 3]);
    for config in all() {
        let pooling = Pooling::new(&Parameters::new(DType::F64, 1), &config, 3).unwrap();
        let pooled = pooling.pool(&x, Some(&[4, 2]), Mode::Infer, Need::WEIGHTS).unwrap();
        match config {
            PoolingConfig::Gate => {
                let gate = Gate::new(&Parameters::new(DType::F64, 1).at("gate"), 3).unwrap();
                let open = numbers(&gate.openness(&x).unwrap());
                let weights = numbers(&pooled.weights.unwrap());
                for (at, weight) in weights.iter().enumerate() {
                    let mean = open[at * 3..][..3].iter().sum::<f64>() / 3.0;
                    let expected = if at / 4 == 1 && at % 4 >= 2 { 0.0 } else { mean };
                    assert!((weight - expected).abs() < 1e-12, "{at}: {weight} {expected}");
                }
            }
            PoolingConfig::Max => {
                let shares = pooled.weights.unwrap().sum(1).unwrap();
                assert!(numbers(&shares).iter().all(|s| (s - 1.0).abs() < 1e-12));
            }
            _ => {
                // One row of weights for each query, their outputs side by side.
                let weights = pooled.weights.unwrap();
                let queries = weights.numel() / 8;
                assert_eq!(pooling.width(), queries * 3);
                let again = weights.reshape(&[2, queries, 4]).unwrap().matmul(&x).unwrap();
                for (a, b) in numbers(&again).iter().zip(numbers(&pooled.out)) {
                    assert!((a - b).abs() < 1e-12, "{config:?}");
                }
            }
        }
    }
}

#[test]
fn a_hard_pooling_says_what_it_chose_and_how_likely_that_was() {
    let config = MechanismConfig { weighting: Weighting::Sample, ..MechanismConfig::default() };
    let config = PoolingConfig::Attention(config);
    let pooling = Pooling::new(&Parameters::new(DType::F64, 1), &config, 3).unwrap();
    let x = normal(4, &[2, 4, 3]);
    let random = Random::new(1);
    let pooled = pooling.pool(&x, None, Mode::Train(&random), Need::OUTPUT).unwrap();
    let p = pooling.probabilities(&x, None).unwrap();
    let chosen = p.gather(1, &pooled.index.unwrap().unsqueeze(1).unwrap()).unwrap();
    for (p, log) in numbers(&chosen).iter().zip(numbers(&pooled.log_prob.unwrap())) {
        assert!((p.ln() - log).abs() < 1e-12);
    }
}

#[test]
fn several_queries_that_choose_are_as_likely_as_all_their_choices_together() {
    let mechanism = MechanismConfig { weighting: Weighting::Sample, ..MechanismConfig::default() };
    let config = PoolingConfig::Queries { queries: 3, mechanism };
    let pooling = Pooling::new(&Parameters::new(DType::F64, 1), &config, 3).unwrap();
    let (x, random) = (normal(4, &[2, 4, 3]), Random::new(1));
    let pooled = pooling.pool(&x, None, Mode::Train(&random), Need::OUTPUT).unwrap();
    let p = pooling.probabilities(&x, None).unwrap();
    let index = pooled.index.unwrap();
    assert_eq!((p.shape(), index.shape()), (&[2, 3, 4][..], &[2, 3][..]));
    let chosen = p.gather(2, &index.unsqueeze(2).unwrap()).unwrap();
    let log_prob = numbers(&pooled.log_prob.unwrap());
    for (row, log) in numbers(&chosen).chunks(3).zip(log_prob) {
        assert!((row.iter().product::<f64>().ln() - log).abs() < 1e-12);
    }
}

#[test]
fn what_does_not_fit_is_refused_by_name() {
    let parameters = Parameters::new(DType::F64, 1);
    let pooling = Pooling::new(&parameters, &PoolingConfig::Mean, 3).unwrap();
    let x = normal(1, &[2, 4, 3]);
    let refused = |x: &Tensor, lengths: &[usize]| {
        pooling.forward(x, Some(lengths), Mode::Infer).unwrap_err().to_string()
    };
    assert_eq!(refused(&x, &[4, 5]), "pooling: lengths[1] is 5, x has only 4 vectors");
    assert_eq!(refused(&x, &[4]), "pooling: 1 lengths for a batch of 2");
    let narrow = x.narrow(2, 0, 2).unwrap();
    assert_eq!(refused(&narrow, &[4, 4]), "pooling: x has shape [2, 4, 2]; it wants [B, N, 3]");
}

#[test]
fn a_mask_of_the_first_vectors_is_the_same_as_their_number_and_refused_where_nothing_attends() {
    let x = normal(5, &[2, 4, 4]);
    let first = [true, true, true, false, true, false, false, false];
    let mask = Mask::dense(Tensor::from_bools(&first, &[2, 1, 1, 4]).unwrap());
    let mut refused = 0;
    for config in all() {
        let pooling = Pooling::new(&Parameters::new(DType::F64, 1), &config, 4).unwrap();
        let masked = |lengths: Option<&[usize]>, mask: &Mask| {
            pooling.pool_masked(&x, lengths, mask, Mode::Infer, Need::WEIGHTS)
        };
        let by_length = pooling.pool(&x, Some(&[3, 1]), Mode::Infer, Need::WEIGHTS).unwrap();
        let unmasked = masked(Some(&[3, 1]), &Mask::none()).unwrap();
        assert_eq!(numbers(&unmasked.out), numbers(&by_length.out), "{config:?}");
        match (masked(None, &mask), &config) {
            (Ok(by_mask), PoolingConfig::Attention(_) | PoolingConfig::Queries { .. }) => {
                let pairs = [
                    (by_mask.out, by_length.out),
                    (by_mask.weights.unwrap(), by_length.weights.unwrap()),
                ];
                for (a, b) in pairs {
                    let error = a.squared_error(&b).unwrap().item().unwrap();
                    assert!(error < 1e-24, "{config:?}: {error}");
                }
                // What both allow: with one vector less of the first set, another result.
                let both = masked(Some(&[2, 4]), &mask).unwrap();
                let fewer = pooling.pool(&x, Some(&[2, 1]), Mode::Infer, Need::OUTPUT).unwrap();
                assert!(both.out.squared_error(&fewer.out).unwrap().item().unwrap() < 1e-24);
            }
            (Err(error), PoolingConfig::Mean | PoolingConfig::Max | PoolingConfig::Last)
            | (Err(error), PoolingConfig::Gate) => {
                refused += 1;
                let said = error.to_string();
                assert!(said.ends_with("does not attend, so it takes no mask"), "{said}");
            }
            (result, _) => panic!("{config:?}: {result:?}"),
        }
    }
    assert_eq!(refused, 4);
}
