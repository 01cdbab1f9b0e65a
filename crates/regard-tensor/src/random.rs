//! Random numbers by counter: a seed and a place give a number, whatever was drawn before and
//! on however many threads.

use crate::dtype::{floats, fractions};
use crate::parallel;
use crate::{DType, Result, Scalar, Tensor, ensure};
use regard_kernels::philox;
use std::sync::atomic::{AtomicU64, Ordering};

/// A stream of random numbers. Its state is two numbers: the seed and how many draws were made.
///
/// ```
/// use regard_tensor::Random;
/// let (a, b) = (Random::new(1), Random::new(1));
/// assert_eq!(a.key(), b.key());
/// let (seed, drawn) = a.state();
/// assert_eq!(a.key(), Random::resume(seed, drawn).key());
/// # Ok::<(), regard_tensor::Error>(())
/// ```
#[derive(Debug)]
pub struct Random {
    seed: u64,
    drawn: AtomicU64,
}

impl Random {
    /// A stream from its start.
    ///
    /// ```
    /// use regard_tensor::Random;
    /// assert_eq!(Random::new(7).key(), Random::new(7).key());
    /// assert_ne!(Random::new(7).key(), Random::new(8).key());
    /// ```
    pub fn new(seed: u64) -> Self {
        Self::resume(seed, 0)
    }

    /// A stream from the middle.
    ///
    /// ```
    /// use regard_tensor::Random;
    /// let random = Random::new(7);
    /// let [_, _, third] = [random.key(), random.key(), random.key()];
    /// assert_eq!(Random::resume(7, 2).key(), third);
    /// ```
    pub fn resume(seed: u64, drawn: u64) -> Self {
        Self { seed, drawn: AtomicU64::new(drawn) }
    }

    /// A stream of its own for a name.
    ///
    /// ```
    /// use regard_tensor::Random;
    /// assert_ne!(Random::named(1, "a").key(), Random::named(1, "b").key());
    /// ```
    pub fn named(seed: u64, name: &str) -> Self {
        // FNV-1a: any fixed mixing will do, Philox spreads it.
        let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        Self::new(word(seed, hash, 0x6e61_6d65))
    }

    /// The seed and how many draws were made.
    ///
    /// ```
    /// let random = regard_tensor::Random::new(7);
    /// random.number();
    /// assert_eq!(random.state(), (7, 1));
    /// ```
    pub fn state(&self) -> (u64, u64) {
        (self.seed, self.drawn.load(Ordering::Relaxed))
    }

    /// The next key: for a dropout, a shuffle, a tensor of random numbers.
    ///
    /// ```
    /// let random = regard_tensor::Random::new(7);
    /// assert_ne!(random.key(), random.key());
    /// ```
    pub fn key(&self) -> u64 {
        word(self.seed, self.drawn.fetch_add(1, Ordering::Relaxed), 0x6b65_7973)
    }

    /// The next number within 0..1.
    ///
    /// ```
    /// let random = regard_tensor::Random::new(3);
    /// assert!((0..100).all(|_| (0.0..1.0).contains(&random.number())));
    /// ```
    pub fn number(&self) -> f64 {
        unit(self.key())
    }

    /// The next whole number within 0..n; 0 where n is 0.
    ///
    /// ```
    /// let random = regard_tensor::Random::new(3);
    /// assert!((0..100).all(|_| random.below(6) < 6));
    /// ```
    pub fn below(&self, n: usize) -> usize {
        ((u128::from(self.key()) * n as u128) >> 64) as usize
    }

    /// 0..n in a random order.
    ///
    /// ```
    /// let mut order = regard_tensor::Random::new(3).order(5);
    /// order.sort();
    /// assert_eq!(order, [0, 1, 2, 3, 4]);
    /// ```
    pub fn order(&self, n: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..n).collect();
        for i in (1..n).rev() {
            order.swap(i, self.below(i + 1));
        }
        order
    }

    /// A tensor of numbers within low..high, all equally likely; none is rounded up to `high`. All are `low` where both
    /// are the same.
    /// Refuses ends that are not finite or in the wrong order, whole numbers and bools, and a shape of more numbers
    /// than a tensor has.
    ///
    /// ```
    /// use regard_tensor::{DType, Random};
    /// let x = Random::new(1).uniform(&[100], -1.0, 1.0, DType::F32)?;
    /// assert!(x.to_vec::<f32>()?.iter().all(|x| (-1.0..1.0).contains(x)));
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn uniform(&self, shape: &[usize], low: f64, high: f64, dtype: DType) -> Result<Tensor> {
        ensure!(
            low <= high && (high - low).is_finite(),
            "uniform: no numbers can be drawn from {low} to {high}"
        );
        let most = largest_below(low, high, dtype)?;
        let key = self.key();
        self.fill(shape, dtype, |at| (low + (high - low) * unit(word(key, at, 1))).min(most))
    }

    /// A tensor of normally distributed numbers.
    /// Refuses a deviation below 0, a mean or deviation that is not finite, whole numbers and bools, and a shape of
    /// more numbers than a tensor has.
    ///
    /// ```
    /// use regard_tensor::{DType, Random};
    /// let x = Random::new(1).normal(&[10_000], 0.0, 2.0, DType::F64)?.to_vec::<f64>()?;
    /// let mean = x.iter().sum::<f64>() / 1e4;
    /// let variance = x.iter().map(|x| x * x).sum::<f64>() / 1e4;
    /// assert!(mean.abs() < 0.1 && (variance - 4.0).abs() < 0.2);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn normal(
        &self,
        shape: &[usize],
        mean: f64,
        deviation: f64,
        dtype: DType,
    ) -> Result<Tensor> {
        ensure!(
            mean.is_finite() && (0.0..f64::INFINITY).contains(&deviation),
            "normal: no numbers can be drawn with mean {mean} and deviation {deviation}"
        );
        let key = self.key();
        self.fill(shape, dtype, |at| mean + deviation * normal(key, at))
    }

    fn fill(&self, shape: &[usize], dtype: DType, f: impl Fn(u64) -> f64 + Sync) -> Result<Tensor> {
        fractions!(dtype, "random", T => Tensor::build(shape, |to: &mut [T]| {
            parallel::pieces(to, |start, to| {
                to.iter_mut().enumerate().for_each(|(i, to)| *to = <T as Scalar>::from_f64(f((start + i) as u64)));
            });
        }))
    }
}

/// The random word of a place.
/// A number from `low` on that a type rounds below `high`, and hardly any is larger: found by halving.
fn largest_below(low: f64, high: f64, dtype: DType) -> Result<f64> {
    fractions!(dtype, "random", T => {
        let rounded = |x: f64| <T as Scalar>::from_f64(x).to_f64();
        let (mut below, mut above) = (low, high);
        for _ in 0..128 {
            let middle = below + (above - below) / 2.0;
            if rounded(middle) < high { below = middle } else { above = middle }
        }
        Ok(below)
    })
}

fn word(seed: u64, at: u64, stream: u32) -> u64 {
    let counter = [at as u32, (at >> 32) as u32, 0, stream];
    let [a, b, _, _] = philox(counter, [seed as u32, (seed >> 32) as u32]);
    u64::from(a) | u64::from(b) << 32
}

/// Within 0..1.
fn unit(word: u64) -> f64 {
    (word >> 11) as f64 / (1u64 << 53) as f64
}

/// Box and Muller: two uniform numbers make a normal one.
fn normal(key: u64, at: u64) -> f64 {
    let (u, v) = (unit(word(key, at, 2)), unit(word(key, at, 3)));
    (-2.0 * (1.0 - u).ln()).sqrt() * (std::f64::consts::TAU * v).cos()
}
