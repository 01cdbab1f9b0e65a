//! From a set of vectors to one: bottom-up (the largest, a gate), by place, or by attention with a
//! learned query.

mod config;
mod gate;

pub use config::PoolingConfig;
pub use gate::Gate;

use crate::attention::{Site, intervention};
use crate::{Attended, LearnedQueries, Mask, Mode, Need};
use regard_tensor::{DType, Error, Parameters, Result, Tensor, ensure};

/// A set of vectors `[B, N, D]`, padded to one length, becomes one vector `[B, D]`, or `[B, M · D]`
/// with M learned queries. Padding has no influence, and an empty set gives zeros.
///
/// ```
/// use regard::prelude::*;
/// use regard::layers::{Pooling, PoolingConfig};
/// let x = Tensor::from_vec(vec![1f32, 8.0, 3.0, 2.0, 99.0, 99.0], &[1, 3, 2])?;
/// let pooled = |config: PoolingConfig| {
///     let pooling = Pooling::new(&Parameters::new(DType::F32, 1), &config, 2)?;
///     pooling.forward(&x, Some(&[2]), Mode::Infer)?.to_vec::<f32>()
/// };
/// assert_eq!(pooled(PoolingConfig::Mean)?, [2.0, 5.0]);
/// assert_eq!(pooled(PoolingConfig::Max)?, [3.0, 8.0]);
/// assert_eq!(pooled(PoolingConfig::Last)?, [3.0, 2.0]);
/// assert!(pooled(PoolingConfig::Attention(MechanismConfig::default()))?[0] < 3.0);
/// # Ok::<(), regard::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Pooling {
    kind: Kind,
    width: usize,
}

#[derive(Clone, Debug)]
enum Kind {
    Mean,
    Max,
    Last,
    Gate(Gate),
    Attention(LearnedQueries),
    Queries(LearnedQueries),
}

impl Pooling {
    /// For vectors of a width.
    /// Refuses a configuration that does not fit together, and names that are taken.
    ///
    /// ```
    /// use regard::prelude::*;
    /// use regard::layers::{Pooling, PoolingConfig};
    /// let error = Pooling::new(&Parameters::new(DType::F32, 1), &PoolingConfig::Mean, 0).unwrap_err();
    /// assert_eq!(error.to_string(), "a pooling of vectors of width 0");
    /// ```
    pub fn new(parameters: &Parameters, config: &PoolingConfig, width: usize) -> Result<Self> {
        ensure!(width > 0, "a pooling of vectors of width 0");
        let kind = match config {
            PoolingConfig::Mean => Kind::Mean,
            PoolingConfig::Max => Kind::Max,
            PoolingConfig::Last => Kind::Last,
            PoolingConfig::Gate => Kind::Gate(Gate::new(&parameters.at("gate"), width)?),
            PoolingConfig::Attention(config) => {
                Kind::Attention(LearnedQueries::new(parameters, config, 1, width, width)?)
            }
            PoolingConfig::Queries { queries, mechanism } => {
                Kind::Queries(LearnedQueries::new(parameters, mechanism, *queries, width, width)?)
            }
        };
        Ok(Self { kind, width })
    }

    /// Width of what it gives.
    ///
    /// ```
    /// use regard::prelude::*;
    /// use regard::layers::{Pooling, PoolingConfig};
    /// let three = PoolingConfig::Queries { queries: 3, mechanism: MechanismConfig::default() };
    /// let pooling = Pooling::new(&Parameters::new(DType::F32, 1), &three, 2)?;
    /// assert_eq!(pooling.width(), 6);
    /// let x = Tensor::zeros(&[4, 5, 2], DType::F32)?;
    /// let pooled = pooling.pool(&x, None, Mode::Infer, Need::WEIGHTS)?;
    /// assert_eq!((pooled.out.shape(), pooled.weights.unwrap().shape()), (&[4, 6][..], &[4, 3, 5][..]));
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn width(&self) -> usize {
        match &self.kind {
            Kind::Queries(queries) => self.width.saturating_mul(queries.query.tensor().shape()[0]),
            _ => self.width,
        }
    }

    /// x `[B, N, D]` → `[B, D]`; with lengths, only so many vectors of each set count.
    /// Refuses an input of another width or type, and lengths that are not one for each set or beyond N.
    ///
    /// ```
    /// # use regard::prelude::*;
    /// # use regard::layers::{Pooling, PoolingConfig};
    /// let x = Tensor::from_vec(vec![1f32, 8.0, 3.0, 2.0, 99.0, 99.0], &[1, 3, 2])?;
    /// let pooling = Pooling::new(&Parameters::new(DType::F32, 1), &PoolingConfig::Mean, 2)?;
    /// assert_eq!(pooling.forward(&x, Some(&[2]), Mode::Infer)?.to_vec::<f32>()?, [2.0, 5.0]);
    /// assert_eq!(pooling.forward(&x, Some(&[0]), Mode::Infer)?.to_vec::<f32>()?, [0.0, 0.0]);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn forward(&self, x: &Tensor, lengths: Option<&[usize]>, mode: Mode) -> Result<Tensor> {
        Ok(self.pool(x, lengths, mode, Need::OUTPUT)?.out)
    }

    /// As [`Pooling::forward`], with the weights where they are needed and there are any: `[B, N]`,
    /// how much of each vector there is in the output. For the largest numbers it is the share of
    /// features that the vector won; for a gate, which weighs each feature on its own, how far it is
    /// open, on average over the features. What hard attention chose is `[B]`. With M queries the weights
    /// are `[B, M, N]`, the choices `[B, M]`, and the log-probability is that of all of them together.
    /// Refuses an input of another width or type, and lengths that are not one for each set or beyond N.
    ///
    /// ```
    /// # use regard::prelude::*;
    /// # use regard::layers::{Pooling, PoolingConfig};
    /// let x = Tensor::from_vec(vec![1f32, 8.0, 3.0, 2.0, 99.0, 99.0], &[1, 3, 2])?;
    /// let pooling = Pooling::new(&Parameters::new(DType::F32, 1), &PoolingConfig::Last, 2)?;
    /// let pooled = pooling.pool(&x, Some(&[2]), Mode::Infer, Need::WEIGHTS)?;
    /// assert_eq!(pooled.weights.unwrap().to_vec::<f32>()?, [0.0, 1.0, 0.0]);
    /// let pooling = Pooling::new(&Parameters::new(DType::F32, 1), &PoolingConfig::Max, 2)?;
    /// let pooled = pooling.pool(&x, Some(&[2]), Mode::Infer, Need::WEIGHTS)?;
    /// // each of the first two vectors won one of the two features
    /// assert_eq!(pooled.weights.unwrap().to_vec::<f32>()?, [0.5, 0.5, 0.0]);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn pool(
        &self,
        x: &Tensor,
        lengths: Option<&[usize]>,
        mode: Mode,
        need: Need,
    ) -> Result<Attended> {
        self.pool_masked(x, lengths, &Mask::none(), mode, need)
    }

    /// As [`Pooling::pool`], where queries see only what a mask allows beside the lengths; it broadcasts to
    /// `[B, H, M, N]`, M the queries.
    /// Refuses what [`Pooling::pool`] refuses, a mask of another shape, and a mask where nothing attends: in every
    /// pooling without learned queries.
    ///
    /// ```
    /// # use regard::prelude::*;
    /// # use regard::layers::{Pooling, PoolingConfig};
    /// let x = Tensor::from_vec(vec![1f32, 8.0, 3.0, 2.0, 99.0, 99.0], &[1, 3, 2])?;
    /// let second = Mask::dense(Tensor::from_bools(&[false, true, false], &[3])?);
    /// let config = PoolingConfig::Attention(MechanismConfig::default());
    /// let pooling = Pooling::new(&Parameters::new(DType::F32, 1), &config, 2)?;
    /// let pooled = pooling.pool_masked(&x, None, &second, Mode::Infer, Need::WEIGHTS)?;
    /// assert_eq!(pooled.out.to_vec::<f32>()?, [3.0, 2.0]);
    /// let mean = Pooling::new(&Parameters::new(DType::F32, 1), &PoolingConfig::Mean, 2)?;
    /// let error = mean.pool_masked(&x, None, &second, Mode::Infer, Need::OUTPUT).unwrap_err();
    /// assert_eq!(error.to_string(), "pooling: a mean does not attend, so it takes no mask");
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn pool_masked(
        &self,
        x: &Tensor,
        lengths: Option<&[usize]>,
        mask: &Mask,
        mode: Mode,
        need: Need,
    ) -> Result<Attended> {
        if let (Some(kind), false) = (self.unmasked(), mask.allows_all()) {
            ensure!(false, "pooling: {kind} does not attend, so it takes no mask");
        }
        let set = Set::new(x, lengths, self.width)?;
        let mask = &set.mask().and(mask)?;
        let weights = need.weights;
        Ok(match &self.kind {
            Kind::Mean => {
                let shares = set.shares(|n| (0..n).map(|_| 1.0 / n as f64).collect())?;
                let out = set.clean()?.mul(&shares.unsqueeze(2)?)?.sum(1)?;
                Attended { weights: weights.then_some(shares), ..out.into() }
            }
            Kind::Max => {
                let (largest, winner) = set.largest()?;
                let weights = weights.then(|| set.won(&winner)).transpose()?;
                Attended { weights, ..largest.into() }
            }
            Kind::Last => {
                let one = |n: usize| (1..=n).map(|i| f64::from(u8::from(i == n))).collect();
                let weights = weights.then(|| set.shares(one)).transpose()?;
                Attended { weights, ..set.last()?.into() }
            }
            Kind::Gate(gate) => {
                let shares = set.shares(|n| (0..n).map(|_| 1.0 / n as f64).collect())?;
                let x = set.clean()?;
                let open = gate.openness(&x)?;
                let out = open.mul(&x)?.mul(&shares.unsqueeze(2)?)?.sum(1)?;
                let there = || set.shares(|n| vec![1.0; n])?.mul(&open.mean(2)?);
                Attended { weights: weights.then(there).transpose()?, ..out.into() }
            }
            Kind::Attention(query) => {
                let x = set.clean()?;
                let attend = || query.attend(&x, &x, mask, mode, need);
                let attended = intervention::at(Site::Pooling, 0, 0, attend)?;
                let out = attended.out.clone();
                attended.changed(out, |x| x.squeeze(1))?
            }
            Kind::Queries(queries) => {
                let x = set.clean()?;
                let attend = || queries.attend(&x, &x, mask, mode, need);
                let attended = intervention::at(Site::Pooling, 0, 0, attend)?;
                let log_prob = attended.log_prob.as_ref().map(|each| each.sum(1)).transpose()?;
                Attended { log_prob, ..attended }
            }
        })
    }

    /// What it is where it has no attention that a mask would change.
    fn unmasked(&self) -> Option<&'static str> {
        match &self.kind {
            Kind::Mean => Some("a mean"),
            Kind::Max => Some("the largest of each feature"),
            Kind::Last => Some("the last vector"),
            Kind::Gate(_) => Some("a gate"),
            Kind::Attention(_) | Kind::Queries(_) => None,
        }
    }

    /// The softmax probabilities `[B, N]` that hard attention draws from, `[B, M, N]` with M queries;
    /// refused where there is no attention.
    ///
    /// ```
    /// # use regard::prelude::*;
    /// # use regard::layers::{Pooling, PoolingConfig};
    /// let x = Tensor::from_vec(vec![1f32, 8.0, 3.0, 2.0, 99.0, 99.0], &[1, 3, 2])?;
    /// let pooling = Pooling::new(&Parameters::new(DType::F32, 1), &PoolingConfig::Mean, 2)?;
    /// let error = pooling.probabilities(&x, None).unwrap_err();
    /// assert_eq!(error.to_string(), "a pooling without attention has no probabilities");
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn probabilities(&self, x: &Tensor, lengths: Option<&[usize]>) -> Result<Tensor> {
        let set = Set::new(x, lengths, self.width)?;
        match &self.kind {
            Kind::Attention(query) => query.probabilities(&set.clean()?, &set.mask())?.squeeze(1),
            Kind::Queries(queries) => queries.probabilities(&set.clean()?, &set.mask()),
            _ => Err(Error::new("a pooling without attention has no probabilities")),
        }
    }
}

/// Sets of vectors with their lengths.
struct Set<'a> {
    x: &'a Tensor,
    lengths: Vec<usize>,
    full: bool,
}

impl<'a> Set<'a> {
    fn new(x: &'a Tensor, lengths: Option<&[usize]>, width: usize) -> Result<Self> {
        ensure!(
            x.rank() == 3 && x.shape()[2] == width,
            "pooling: x has shape {:?}; it wants [B, N, {width}]",
            x.shape()
        );
        let (b, n) = (x.shape()[0], x.shape()[1]);
        let lengths = lengths.map_or_else(|| vec![n; b], <[usize]>::to_vec);
        ensure!(lengths.len() == b, "pooling: {} lengths for a batch of {b}", lengths.len());
        if let Some((item, long)) = lengths.iter().enumerate().find(|(_, l)| **l > n) {
            return Err(Error::new(format!(
                "pooling: lengths[{item}] is {long}, x has only {n} vectors"
            )));
        }
        let full = lengths.iter().all(|&l| l == n);
        Ok(Self { x, lengths, full })
    }

    fn mask(&self) -> Mask {
        if self.full { Mask::none() } else { Mask::lengths(&self.lengths) }
    }

    /// `[B, N, 1]`: true where there is a vector.
    fn present(&self) -> Result<Tensor> {
        let n = self.x.shape()[1];
        let all = self.lengths.iter().flat_map(|&l| (0..n).map(move |i| i < l));
        let all = Tensor::from_bools(&all.collect::<Vec<_>>(), &[self.lengths.len(), n, 1])?;
        all.to_device(self.x.device())
    }

    /// The vectors, with `x` in place of padding.
    fn filled(&self, x: f64) -> Result<Tensor> {
        if self.full {
            return Ok(self.x.clone());
        }
        self.present()?.where_(self.x, &Tensor::full(&[], x, self.x.dtype())?)
    }

    /// The vectors, with zeros in place of padding.
    fn clean(&self) -> Result<Tensor> {
        self.filled(0.0)
    }

    /// `[B, N]`: what `of` gives for each length, then zeros.
    fn shares(&self, of: impl Fn(usize) -> Vec<f64>) -> Result<Tensor> {
        let n = self.x.shape()[1];
        let mut all = vec![0.0; self.lengths.len() * n];
        for (item, &length) in self.lengths.iter().enumerate() {
            all[item * n..][..length].copy_from_slice(&of(length));
        }
        let all = Tensor::from_vec(all, &[self.lengths.len(), n])?.to_dtype(self.x.dtype())?;
        all.to_device(self.x.device())
    }

    /// `[B, 1]`: true where there is any vector.
    fn any(&self) -> Result<Tensor> {
        let any: Vec<bool> = self.lengths.iter().map(|&l| l > 0).collect();
        Tensor::from_bools(&any, &[any.len(), 1])?.to_device(self.x.device())
    }

    /// The largest numbers `[B, D]` and whose they are.
    fn largest(&self) -> Result<(Tensor, Tensor)> {
        let s = self.x.shape();
        if s[1] == 0 {
            let winner = Tensor::zeros(&[s[0], s[2]], DType::I64)?;
            let none = Tensor::zeros(&[s[0], s[2]], self.x.dtype())?;
            return Ok((none.to_device(self.x.device())?, winner.to_device(self.x.device())?));
        }
        let (largest, winner) = self.filled(f64::NEG_INFINITY)?.max(1)?;
        let largest = self.any()?.where_(&largest, &Tensor::zeros(&[], self.x.dtype())?)?;
        Ok((largest, winner))
    }

    /// `[B, N]`: the share of features that each vector won.
    fn won(&self, winner: &Tensor) -> Result<Tensor> {
        let (n, d) = (self.x.shape()[1], self.x.shape()[2]);
        let mut all = vec![0.0; self.lengths.len() * n];
        for (at, &i) in winner.to_vec::<i64>()?.iter().enumerate() {
            if self.lengths[at / d] > 0 {
                all[at / d * n + i as usize] += 1.0 / d as f64;
            }
        }
        let all = Tensor::from_vec(all, &[self.lengths.len(), n])?.to_dtype(self.x.dtype())?;
        all.to_device(self.x.device())
    }

    /// The last vectors `[B, D]`.
    fn last(&self) -> Result<Tensor> {
        let s = self.x.shape();
        if s[1] == 0 {
            return Tensor::zeros(&[s[0], s[2]], self.x.dtype())?.to_device(self.x.device());
        }
        let row = |(item, l): (usize, &usize)| (item * s[1] + l.saturating_sub(1)) as i64;
        let rows = self.lengths.iter().enumerate().map(row).collect::<Vec<_>>();
        let index = Tensor::from_vec(rows, &[s[0]])?;
        let last = self.x.reshape(&[s[0] * s[1], s[2]])?.rows(&index)?;
        self.any()?.where_(&last, &Tensor::zeros(&[], last.dtype())?)
    }
}
