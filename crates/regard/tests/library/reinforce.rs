//! Hard attention trained by its choices.

use regard::attention::{Reinforce, ReinforceConfig, entropy};
use regard::layers::{Pooling, PoolingConfig};
use regard::prelude::*;
use regard::tensor::{finite_difference_error, load, save};
use std::collections::BTreeMap;

#[test]
fn the_estimator_agrees_with_the_exact_gradient_within_its_standard_error() {
    let config = MechanismConfig {
        score: ScoreConfig::Dot,
        weighting: Weighting::Sample,
        ..MechanismConfig::default()
    };
    let mechanism = Mechanism::new(&Parameters::new(DType::F64, 1), &config, 2, 2).unwrap();
    let normal =
        |seed, shape: &[usize]| Random::new(seed).normal(shape, 0.0, 1.0, DType::F64).unwrap();
    let k = Parameter::new("k", normal(1, &[1, 3, 2])).unwrap();
    let one = normal(2, &[1, 1, 2]);
    // The reward of a choice is its value.
    let v = Tensor::from_vec(vec![1.0, -0.5, 3.0], &[1, 3, 1]).unwrap();
    let p = mechanism.probabilities(&one, &k.tensor(), &Mask::none()).unwrap();
    let expected = p.matmul(&v).unwrap().sum_all().unwrap().scale(-1.0).unwrap();
    let exact = expected.backward().unwrap().get(&k).unwrap().to_vec::<f64>().unwrap();

    let (batches, each) = (200, 100);
    let q = one.broadcast_to(&[1, each, 2]).unwrap();
    let random = Random::new(3);
    let config = ReinforceConfig { entropy: 0.0, ..ReinforceConfig::default() };
    let mut reinforce = Reinforce::new(config).unwrap();
    let estimates: Vec<Vec<f64>> = (0..batches)
        .map(|_| {
            let mode = Mode::Train(&random);
            let seen =
                mechanism.attend(&q, &k.tensor(), &v, &Mask::none(), mode, Need::OUTPUT).unwrap();
            let reward = seen.out.squeeze(2).unwrap();
            let loss = reinforce.loss(&reward, &seen.log_prob.unwrap(), None).unwrap();
            loss.backward().unwrap().get(&k).unwrap().to_vec::<f64>().unwrap()
        })
        .collect();
    for (i, exact) in exact.iter().enumerate() {
        let mean = estimates.iter().map(|e| e[i]).sum::<f64>() / batches as f64;
        let variance = estimates.iter().map(|e| (e[i] - mean).powi(2)).sum::<f64>();
        let error = (variance / (batches * (batches - 1)) as f64).sqrt();
        assert!(
            error > 0.0 && error < 0.1 && exact.abs() > 3.0 * error,
            "a test that says something"
        );
        assert!((mean - exact).abs() < 4.0 * error, "{mean} ± {error}, exactly {exact}");
    }
}

#[test]
fn entropy_has_its_gradient_and_none_where_nothing_can_be_chosen() {
    let scores = Random::new(1).normal(&[3, 4], 0.0, 1.0, DType::F64).unwrap();
    let error = finite_difference_error(&[scores], |x| entropy(&x[0].softmax(1)?)).unwrap();
    assert!(error < 1e-7, "{error}");
    let mechanism = MechanismConfig::new(ScoreConfig::ScaledDot);
    let mechanism = Mechanism::new(&Parameters::new(DType::F32, 1), &mechanism, 2, 2).unwrap();
    let x = Random::new(1).normal(&[2, 3, 2], 0.0, 1.0, DType::F32).unwrap();
    let x = Parameter::new("x", x).unwrap();
    let mask = Mask::lengths(&[1, 0]);
    let p = mechanism.probabilities(&x.tensor(), &x.tensor(), &mask).unwrap();
    let all = entropy(&p).unwrap();
    assert!(all.to_vec::<f32>().unwrap().iter().all(|&h| h == 0.0));
    let gradients = all.sum_all().unwrap().backward().unwrap();
    assert_eq!(gradients.get(&x).unwrap().to_vec::<f32>().unwrap(), [0.0; 12]);
}

#[test]
fn the_baseline_is_a_moving_average_of_the_rewards_before() {
    let config = ReinforceConfig { keep: 0.75, entropy: 0.0 };
    let mut reinforce = Reinforce::new(config).unwrap();
    let row = |x: &[f64]| Tensor::from_vec(x.to_vec(), &[x.len()]).unwrap();
    let log_prob = row(&[-1.0, -2.0]);
    let loss = |reinforce: &mut Reinforce, reward: &[f64]| {
        reinforce.loss(&row(reward), &log_prob, None).unwrap().item().unwrap()
    };
    assert_eq!(loss(&mut reinforce, &[3.0, 5.0]), 0.5 * (3.0 + 10.0));
    assert_eq!(reinforce.baseline().unwrap(), 4.0);
    assert_eq!(loss(&mut reinforce, &[4.0, 8.0]), 0.5 * (0.0 + 8.0));
    assert_eq!(reinforce.baseline().unwrap(), 0.75 * 4.0 + 0.25 * 6.0);
    let error = reinforce.loss(&row(&[1.0]), &log_prob, None).unwrap_err().to_string();
    assert_eq!(
        error,
        "reinforce: rewards of shape [1] and log-probabilities of shape [2]; one each"
    );
}

/// Rows of which one carries a mark; its letter is the answer. What picks a row is hard attention,
/// what reads the letter a linear layer.
struct Task {
    parameters: Parameters,
    pooling: Pooling,
    read: Linear,
    optimizer: Optimizer,
    reinforce: Reinforce,
    random: Random,
}

const LETTERS: usize = 4;
const LENGTH: usize = 6;

impl Task {
    fn new() -> Self {
        let parameters = Parameters::new(DType::F32, 1);
        let config = MechanismConfig {
            score: ScoreConfig::Additive { hidden: 8 },
            weighting: Weighting::Sample,
            ..MechanismConfig::default()
        };
        let width = LETTERS + 1;
        let config = PoolingConfig::Attention(config);
        let pooling = Pooling::new(&parameters.at("pooling"), &config, width).unwrap();
        let read = Linear::new(&parameters.at("read"), width, LETTERS, true).unwrap();
        let optimizer = Optimizer::new(&parameters, UpdateRule::adam()).unwrap();
        let reinforce = Reinforce::new(ReinforceConfig { keep: 0.9, entropy: 0.02 }).unwrap();
        Self { parameters, pooling, read, optimizer, reinforce, random: Random::new(5) }
    }

    fn batch(&self, size: usize) -> (Tensor, Tensor) {
        let width = LETTERS + 1;
        let mut x = vec![0f32; size * LENGTH * width];
        let mut answers = Vec::new();
        for item in 0..size {
            let marked = self.random.below(LENGTH);
            for place in 0..LENGTH {
                let row = &mut x[(item * LENGTH + place) * width..][..width];
                let letter = self.random.below(LETTERS);
                row[letter] = 1.0;
                if place == marked {
                    row[LETTERS] = 1.0;
                    answers.push(letter as i64);
                }
            }
        }
        let x = Tensor::from_vec(x, &[size, LENGTH, width]).unwrap();
        (x, Tensor::from_vec(answers, &[size]).unwrap())
    }

    fn step(&mut self) {
        let (x, answers) = self.batch(64);
        let pooled = self.pooling.pool(&x, None, Mode::Train(&self.random), Need::OUTPUT).unwrap();
        let logits = self.read.forward(&pooled.out).unwrap();
        let losses = logits.cross_entropy_rows(&answers, CrossEntropy::default()).unwrap();
        let reward = losses.detach().scale(-1.0).unwrap();
        let p = self.pooling.probabilities(&x, None).unwrap();
        let choice = self.reinforce.loss(&reward, &pooled.log_prob.unwrap(), Some(&p)).unwrap();
        let loss = losses.mean_all().unwrap().add(&choice).unwrap();
        self.optimizer.step(&loss.backward().unwrap(), 0.02).unwrap();
    }

    fn right(&self) -> f64 {
        let (x, answers) = self.batch(500);
        let out = self.pooling.forward(&x, None, Mode::Infer).unwrap();
        let (_, best) = self.read.forward(&out).unwrap().max(1).unwrap();
        let (best, answers) = (best.to_vec::<i64>().unwrap(), answers.to_vec::<i64>().unwrap());
        best.iter().zip(&answers).filter(|(a, b)| a == b).count() as f64 / 500.0
    }
}

#[test]
fn hard_attention_learns_to_pick_the_one_place_that_matters() {
    let mut task = Task::new();
    let before = task.right();
    for _ in 0..600 {
        task.step();
    }
    let after = task.right();
    assert!(before < 0.6 && after > 0.98, "right before {before}, after {after}");
}

#[test]
fn an_interrupted_run_and_a_straight_one_give_the_same_bits() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let mut straight = Task::new();
    for _ in 0..5 {
        straight.step();
    }
    straight.parameters.save(at("model")).unwrap();
    let nothing = BTreeMap::new();
    save(at("optimizer"), &straight.optimizer.state().unwrap(), &nothing).unwrap();
    save(at("reinforce"), &straight.reinforce.state().unwrap(), &nothing).unwrap();
    let (seed, drawn) = straight.random.state();

    let mut resumed = Task::new();
    resumed.parameters.load(at("model")).unwrap();
    resumed.optimizer.set_state(&load(at("optimizer")).unwrap().0).unwrap();
    resumed.reinforce.set_state(&load(at("reinforce")).unwrap().0).unwrap();
    resumed.random = Random::resume(seed, drawn);
    for task in [&mut straight, &mut resumed] {
        for _ in 0..5 {
            task.step();
        }
    }
    for (a, b) in straight.parameters.all().iter().zip(resumed.parameters.all()) {
        let (a, b) = (a.tensor().to_vec::<f32>().unwrap(), b.tensor().to_vec::<f32>().unwrap());
        assert_eq!(a, b);
    }
}

#[test]
fn numbers_that_make_no_sense_are_refused() {
    let refused =
        |keep, entropy| Reinforce::new(ReinforceConfig { keep, entropy }).unwrap_err().to_string();
    assert_eq!(refused(1.0, 0.0), "a baseline that keeps 1 of itself is not within 0..1");
    assert_eq!(refused(0.9, -1.0), "an entropy bonus of -1");
    let mut reinforce = Reinforce::new(ReinforceConfig::default()).unwrap();
    let error = reinforce.set_state(&BTreeMap::new()).unwrap_err().to_string();
    assert_eq!(error, "the \"baseline\" of reinforce is missing");
}
