//! Kernel regression: attention whose keys and values are the data.

use crate::attention::{Site, intervention};
use crate::{
    Attended, Attention, Mask, Mechanism, MechanismConfig, Mode, Need, Score, ScoreConfig,
};
use regard_tensor::{DType, Init, Parameter, Parameters, Result, Tensor, ensure};

/// What a [`KernelRegression`] is made of.
///
/// ```
/// use regard::prelude::*;
/// use regard::models::{KernelRegression, KernelRegressionConfig};
/// let parameters = Parameters::new(DType::F64, 1);
/// let each = KernelRegressionConfig { features: 3, learned: true, per_feature: true, ..Default::default() };
/// KernelRegression::new(&parameters, &each)?;
/// assert_eq!(parameters.tensors()["w"].to_vec::<f64>()?, [1.0; 3]);
/// # Ok::<(), regard::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
pub struct KernelRegressionConfig {
    /// How many data points it holds.
    pub points: usize,
    /// Width of x.
    pub features: usize,
    /// Width of y.
    pub outputs: usize,
    /// The first w, one over the kernel's width.
    pub inverse_width: f64,
    /// Whether w is learned.
    pub learned: bool,
    /// Whether each feature has its own w; then they are learned.
    pub per_feature: bool,
    /// Another score than the Gaussian, with parameters of its own; then width and window are not meant.
    pub score: Option<ScoreConfig>,
    /// Only so many of the nearest data are seen; all where none is given.
    pub nearest: Option<usize>,
    /// Whether all data within the width weigh the same and the others nothing; where there is none,
    /// the nearest one is all.
    pub windowed: bool,
}

impl Default for KernelRegressionConfig {
    fn default() -> Self {
        Self {
            points: 1,
            features: 1,
            outputs: 1,
            inverse_width: 1.0,
            learned: false,
            per_feature: false,
            score: None,
            nearest: None,
            windowed: false,
        }
    }
}

/// ŷ(x) = Σ_i softmax_i(−½ ‖w ∘ (x − x_i)‖²) y_i over data (x_i, y_i) (Nadaraya 1964, Watson
/// 1964): query x, keys x_i, values y_i.
///
/// The data are kept beside w, as `keys` and `values`, so that the configuration and a safetensors
/// file are the whole model. No gradient reaches them: an optimizer leaves them as they are.
///
/// ```
/// use regard::prelude::*;
/// use regard::models::{KernelRegression, KernelRegressionConfig};
/// let config = KernelRegressionConfig { points: 3, inverse_width: 2.0, ..Default::default() };
/// let regression = KernelRegression::new(&Parameters::new(DType::F64, 1), &config)?;
/// let x = Tensor::from_vec(vec![0.0, 1.0, 5.0], &[3, 1])?;
/// let y = Tensor::from_vec(vec![0.0, 1.0, 5.0], &[3, 1])?;
/// regression.set_data(&x, &y)?;
/// let half = regression.predict(&Tensor::from_vec(vec![0.5], &[1, 1])?)?;
/// assert!((half.item()? - 0.5).abs() < 1e-6);
/// assert_eq!(regression.mean()?.to_vec::<f64>()?, [2.0]);
/// # Ok::<(), regard::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct KernelRegression {
    config: KernelRegressionConfig,
    mechanism: Mechanism,
    keys: Parameter,
    values: Parameter,
}

/// Each datum sees the others.
fn all_but_itself(points: usize) -> Result<Mask> {
    let seen: Vec<bool> = (0..points * points).map(|at| at / points != at % points).collect();
    Ok(Mask { dense: Some(Tensor::from_bools(&seen, &[points, points])?), ..Mask::default() })
}

impl KernelRegression {
    /// New, with data of zeros until [`KernelRegression::set_data`].
    /// Refuses a configuration that does not fit together, and names that are taken.
    ///
    /// ```
    /// use regard::prelude::*;
    /// use regard::models::{KernelRegression, KernelRegressionConfig};
    /// let config = KernelRegressionConfig { points: 0, ..Default::default() };
    /// let error = KernelRegression::new(&Parameters::new(DType::F64, 1), &config).unwrap_err();
    /// let said = "kernel regression with 0 points, x of width 1 and y of width 1";
    /// assert_eq!(error.to_string(), said);
    /// ```
    pub fn new(parameters: &Parameters, config: &KernelRegressionConfig) -> Result<Self> {
        let KernelRegressionConfig { points, features, outputs, .. } = *config;
        ensure!(
            points > 0 && features > 0 && outputs > 0,
            "kernel regression with {points} points, x of width {features} and y of width {outputs}"
        );
        ensure!(config.nearest != Some(0), "kernel regression over the 0 nearest data");
        ensure!(
            !(config.windowed && config.learned),
            "a window's width is not learned: what it leaves out has no gradient"
        );
        ensure!(
            config.score.is_none() || !(config.windowed || config.learned || config.per_feature),
            "a window and a learned width are the Gaussian's; another score has parameters of its own"
        );
        let gaussian = || ScoreConfig::Gaussian {
            inverse_width: config.inverse_width,
            learned: config.learned,
            per_feature: config.per_feature,
        };
        let score = config.score.clone().unwrap_or_else(gaussian);
        let mechanism = MechanismConfig::new(score);
        Ok(Self {
            config: config.clone(),
            mechanism: Mechanism::new(parameters, &mechanism, features, features)?,
            keys: parameters.parameter("keys", &[points, features], Init::Zeros)?,
            values: parameters.parameter("values", &[points, outputs], Init::Zeros)?,
        })
    }

    /// How it was made.
    ///
    /// ```
    /// # use regard::prelude::*;
    /// # use regard::models::{KernelRegression, KernelRegressionConfig};
    /// # let config = KernelRegressionConfig { points: 3, inverse_width: 10.0, ..Default::default() };
    /// # let regression = KernelRegression::new(&Parameters::new(DType::F64, 1), &config)?;
    /// let x = Tensor::from_vec(vec![0.0, 1.0, 5.0], &[3, 1])?;
    /// regression.set_data(&x, &x.scale(2.0)?)?;
    /// assert_eq!(regression.config(), &config);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn config(&self) -> &KernelRegressionConfig {
        &self.config
    }

    /// The data: x `[points, features]`, y `[points, outputs]`.
    /// Refuses data of another shape or type than the configuration's.
    ///
    /// ```
    /// # use regard::prelude::*;
    /// # use regard::models::{KernelRegression, KernelRegressionConfig};
    /// # let config = KernelRegressionConfig { points: 3, inverse_width: 10.0, ..Default::default() };
    /// # let regression = KernelRegression::new(&Parameters::new(DType::F64, 1), &config)?;
    /// let x = Tensor::from_vec(vec![0.0, 1.0, 5.0], &[3, 1])?;
    /// regression.set_data(&x, &x.scale(2.0)?)?;
    /// let error = regression.set_data(&x.narrow(0, 0, 2)?, &x).unwrap_err();
    /// assert_eq!(error.to_string(), "kernel regression: x has shape [2, 1]; it wants [3, 1]");
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn set_data(&self, x: &Tensor, y: &Tensor) -> Result<()> {
        for (name, given, now) in [("x", x, &self.keys), ("y", y, &self.values)] {
            ensure!(
                given.shape() == now.tensor().shape(),
                "kernel regression: {name} has shape {:?}; it wants {:?}",
                given.shape(),
                now.tensor().shape()
            );
        }
        self.keys.set(&x.to_dtype(self.keys.tensor().dtype())?)?;
        self.values.set(&y.to_dtype(self.values.tensor().dtype())?)
    }

    /// ŷ `[M, outputs]` at x `[M, features]`.
    /// Refuses an x of another width or type.
    ///
    /// ```
    /// # use regard::prelude::*;
    /// # use regard::models::{KernelRegression, KernelRegressionConfig};
    /// # let config = KernelRegressionConfig { points: 3, inverse_width: 10.0, ..Default::default() };
    /// # let regression = KernelRegression::new(&Parameters::new(DType::F64, 1), &config)?;
    /// let x = Tensor::from_vec(vec![0.0, 1.0, 5.0], &[3, 1])?;
    /// regression.set_data(&x, &x.scale(2.0)?)?;
    /// // the kernel is narrow: at a data point there is nothing but that point
    /// let at_one = regression.predict(&Tensor::from_vec(vec![1.0], &[1, 1])?)?;
    /// assert!((at_one.item()? - 2.0).abs() < 1e-9);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn predict(&self, x: &Tensor) -> Result<Tensor> {
        Ok(self.attend(x, Need::OUTPUT)?.out)
    }

    /// As [`KernelRegression::predict`], with how much each data point weighs, `[M, points]`, where
    /// that is needed.
    /// Refuses an x of another width or type.
    ///
    /// ```
    /// # use regard::prelude::*;
    /// # use regard::models::{KernelRegression, KernelRegressionConfig};
    /// # let config = KernelRegressionConfig { points: 3, inverse_width: 10.0, ..Default::default() };
    /// # let regression = KernelRegression::new(&Parameters::new(DType::F64, 1), &config)?;
    /// let x = Tensor::from_vec(vec![0.0, 1.0, 5.0], &[3, 1])?;
    /// regression.set_data(&x, &x.scale(2.0)?)?;
    /// let attended = regression.attend(&Tensor::from_vec(vec![0.5, 4.0], &[2, 1])?, Need::WEIGHTS)?;
    /// assert_eq!(attended.out.shape(), [2, 1]);
    /// // half of 0 and half of 2
    /// let weights = attended.weights.unwrap().select(0, 0)?.to_vec::<f64>()?;
    /// assert!((weights[0] - 0.5).abs() < 1e-9 && (weights[1] - 0.5).abs() < 1e-9);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn attend(&self, x: &Tensor, need: Need) -> Result<Attended> {
        ensure!(
            x.rank() == 2 && x.shape()[1] == self.config.features,
            "kernel regression: x has shape {:?}; it wants [M, {}]",
            x.shape(),
            self.config.features
        );
        self.over_data(x, false, need)
    }

    /// ŷ at the data points themselves, each left out of its own keys: what a width is judged by,
    /// since a point that sees itself is best described by itself.
    /// Refuses only where there is no memory for it.
    ///
    /// ```
    /// # use regard::prelude::*;
    /// # use regard::models::{KernelRegression, KernelRegressionConfig};
    /// # let config = KernelRegressionConfig { points: 3, inverse_width: 10.0, ..Default::default() };
    /// # let regression = KernelRegression::new(&Parameters::new(DType::F64, 1), &config)?;
    /// let x = Tensor::from_vec(vec![0.0, 1.0, 5.0], &[3, 1])?;
    /// regression.set_data(&x, &x.scale(2.0)?)?;
    /// // each point has the value of its neighbor
    /// let y = regression.leave_one_out(Need::OUTPUT)?.out.to_vec::<f64>()?;
    /// assert!(y.iter().zip([2.0, 0.0, 2.0]).all(|(y, near)| (y - near).abs() < 1e-9));
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn leave_one_out(&self, need: Need) -> Result<Attended> {
        let n = self.config.points;
        ensure!(n > 1, "with 1 point, leaving it out leaves nothing");
        self.over_data(&self.keys.tensor().detach(), true, need)
    }

    /// The mean squared error at the data points, each left out of its own keys; its gradient
    /// trains w.
    /// Refuses only where there is no memory for it.
    ///
    /// ```
    /// # use regard::prelude::*;
    /// # use regard::models::{KernelRegression, KernelRegressionConfig};
    /// # let config = KernelRegressionConfig { points: 3, inverse_width: 10.0, ..Default::default() };
    /// # let regression = KernelRegression::new(&Parameters::new(DType::F64, 1), &config)?;
    /// let x = Tensor::from_vec(vec![0.0, 1.0, 5.0], &[3, 1])?;
    /// regression.set_data(&x, &x.scale(2.0)?)?;
    /// // 0, 2 and 10 are taken for 2, 0 and 2
    /// assert!((regression.loss()?.item()? - (4.0 + 4.0 + 64.0) / 3.0).abs() < 1e-9);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn loss(&self) -> Result<Tensor> {
        self.leave_one_out(Need::OUTPUT)?.out.squared_error(&self.values.tensor().detach())
    }

    /// The baseline: the mean of y, `[outputs]`.
    /// Refuses only where there is no memory for it.
    ///
    /// ```
    /// # use regard::prelude::*;
    /// # use regard::models::{KernelRegression, KernelRegressionConfig};
    /// # let config = KernelRegressionConfig { points: 3, inverse_width: 10.0, ..Default::default() };
    /// # let regression = KernelRegression::new(&Parameters::new(DType::F64, 1), &config)?;
    /// let x = Tensor::from_vec(vec![0.0, 1.0, 5.0], &[3, 1])?;
    /// regression.set_data(&x, &x.scale(2.0)?)?;
    /// assert_eq!(regression.mean()?.to_vec::<f64>()?, [4.0]);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn mean(&self) -> Result<Tensor> {
        self.values.tensor().detach().mean(0)
    }

    /// x over the data, without the datum of the same number where `others` alone are asked for.
    fn over_data(&self, x: &Tensor, others: bool, need: Need) -> Result<Attended> {
        let (k, v) = (self.keys.tensor().detach(), self.values.tensor().detach());
        let limited = self.config.windowed || self.config.nearest.is_some();
        let mask = match (limited, others) {
            (true, _) => self.visible(x, others)?,
            (false, true) => all_but_itself(self.config.points)?,
            (false, false) => Mask::none(),
        };
        if self.config.windowed {
            // Scores of 0: all that is seen weighs the same.
            let even = Attention::new(Score::Dot { scale: 0.0 });
            return even.attend(x, &k, &v, &mask, need);
        }
        let attend = || self.mechanism.attend(x, &k, &v, &mask, Mode::Infer, need);
        intervention::at(Site::Kernel, 0, 0, attend)
    }

    /// Which data each x sees, where these are limited to the nearest.
    fn visible(&self, x: &Tensor, others: bool) -> Result<Mask> {
        let KernelRegressionConfig { points: n, features: d, inverse_width, .. } = self.config;
        let numbers = |x: &Tensor| x.to_dtype(DType::F64)?.to_vec::<f64>();
        let (x, keys) = (numbers(x)?, numbers(&self.keys.tensor())?);
        let m = x.len() / d;
        let mut seen = vec![true; m * n];
        for (row, (x, seen)) in x.chunks(d).zip(seen.chunks_mut(n)).enumerate() {
            let distance = |key: usize| {
                let key = &keys[key * d..][..d];
                x.iter().zip(key).map(|(x, k)| (x - k).powi(2)).sum::<f64>().sqrt()
            };
            let mut order: Vec<usize> = (0..n).filter(|&key| !(others && key == row)).collect();
            order.sort_by(|&a, &b| distance(a).total_cmp(&distance(b)));
            order.truncate(self.config.nearest.unwrap_or(n));
            if self.config.windowed {
                let within = order.iter().filter(|&&key| distance(key) * inverse_width <= 1.0);
                order.truncate(within.count().max(1));
            }
            seen.fill(false);
            order.into_iter().for_each(|key| seen[key] = true);
        }
        Ok(Mask { dense: Some(Tensor::from_bools(&seen, &[m, n])?), ..Mask::default() })
    }
}
