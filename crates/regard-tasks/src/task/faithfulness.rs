//! Whether what is said to matter does: parts of an input are taken away in order, and what is
//! predicted is looked at again.

use regard::tensor::Random;
use regard_data::{Result, tick};
use serde::Serialize;

/// Steps in which many parts are taken away.
const STEPS: usize = 20;
/// Orders by chance whose mean is the middle between right and wrong.
const ORDERS: usize = 5;

/// What becomes of the score where parts are set to zero, those first that matter most.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Faithfulness {
    /// The share of parts that are gone, from 0 to 1.
    pub removed: Vec<f64>,
    /// Those that matter most first: the better an explanation, the sooner the score falls.
    pub most: Curve,
    /// Those that matter least first: the better, the later.
    pub least: Curve,
    /// In any order, the mean of several.
    pub random: Curve,
}

/// The score while parts go.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Curve {
    /// The score at each share.
    pub scores: Vec<f64>,
    /// How far the score lies below that of the whole input, the mean over all shares.
    pub area: f64,
}

impl Faithfulness {
    /// Of the values of parts, by the score where each is multiplied by a factor.
    pub(crate) fn measure(values: &[f32], score: &dyn Fn(&[f64]) -> Result<f64>) -> Result<Self> {
        let n = values.len();
        let steps = n.clamp(1, STEPS);
        // Parts that are gone at each step, evenly.
        let gone: Vec<usize> = (0..=steps).map(|step| (step * n + steps / 2) / steps).collect();
        let removed: Vec<f64> = gone.iter().map(|&gone| gone as f64 / n.max(1) as f64).collect();
        let scores = |order: &[usize]| -> Result<Vec<f64>> {
            let mut factors = vec![1.0; n];
            let at = |window: &[usize], factors: &mut Vec<f64>| {
                order[window[0]..window[1]].iter().for_each(|&part| factors[part] = 0.0);
                tick("taking parts of the input away", window[1], n)?;
                score(factors)
            };
            let first = score(&factors)?;
            let rest = gone.windows(2).map(|window| at(window, &mut factors));
            std::iter::once(Ok(first)).chain(rest).collect()
        };
        let mut order: Vec<usize> = (0..n).collect();
        order.sort_by(|&a, &b| values[b].total_cmp(&values[a]));
        let most = scores(&order)?;
        order.reverse();
        let least = scores(&order)?;
        let random = Random::named(1, "faithfulness");
        let mut mean = vec![0.0; removed.len()];
        for _ in 0..ORDERS {
            let one = scores(&random.order(n))?;
            mean.iter_mut().zip(one).for_each(|(sum, score)| *sum += score / ORDERS as f64);
        }
        let curve = |scores| Curve::new(&removed, scores);
        Ok(Self { most: curve(most), least: curve(least), random: curve(mean), removed })
    }
}

impl Curve {
    /// With the area by the trapezoidal rule.
    fn new(removed: &[f64], scores: Vec<f64>) -> Self {
        let whole = scores.first().copied().unwrap_or(0.0);
        let pieces = removed.windows(2).zip(scores.windows(2));
        let piece =
            |(at, score): (&[f64], &[f64])| (at[1] - at[0]) * (whole - 0.5 * (score[0] + score[1]));
        Self { area: pieces.map(piece).sum(), scores }
    }
}
