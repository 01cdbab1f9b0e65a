//! A score of one's own, for tests of what takes one.

use regard::attention::{OwnGrads, OwnScore, Real};

/// a · Σ qk / (1 + |qk|) + b · Σ (q − k)
pub(crate) struct Squash;

impl<T: Real> OwnScore<T> for Squash {
    fn parameters(&self) -> usize {
        2
    }

    fn score(&self, p: &[T], q: &[T], k: &[T]) -> T {
        let pair = |(&q, &k): (&T, &T)| p[0] * q * k / (T::ONE + (q * k).abs()) + p[1] * (q - k);
        q.iter().zip(k).map(pair).sum()
    }

    fn backward(&self, p: &[T], q: &[T], k: &[T], grad: T, to: OwnGrads<T>) {
        for d in 0..q.len() {
            let below = T::ONE + (q[d] * k[d]).abs();
            let slope = p[0] / (below * below);
            to.q[d] += grad * (slope * k[d] + p[1]);
            to.k[d] += grad * (slope * q[d] - p[1]);
            to.parameters[0] += grad * q[d] * k[d] / below;
            to.parameters[1] += grad * (q[d] - k[d]);
        }
    }
}
