//! A learning rate that goes down when a measure stops getting better.

/// Which way a measure gets better.
///
/// ```
/// use regard_tensor::{Better, Plateau};
/// let mut plateau = Plateau { better: Better::Higher, patience: 0, ..Plateau::new(1.0) };
/// // an accuracy that falls cuts the rate
/// assert_eq!([0.5, 0.6, 0.5].map(|accuracy| plateau.observe(accuracy)), [1.0, 1.0, 0.1]);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum Better {
    /// A loss.
    #[default]
    Lower,
    /// An accuracy.
    Higher,
}

/// A rate that is cut when a measure has not got better for a while. Its fields are all of its
/// state, so a copy of them goes on where it stopped.
///
/// ```
/// use regard_tensor::Plateau;
/// let mut plateau = Plateau { patience: 1, ..Plateau::new(1.0) };
/// let rates: Vec<f64> = [3.0, 2.0, 2.0, 2.0, 2.0].map(|loss| plateau.observe(loss)).into();
/// assert_eq!(rates, [1.0, 1.0, 1.0, 0.1, 0.1]);
/// ```
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Plateau {
    /// The rate now.
    pub rate: f64,
    /// What it is multiplied by.
    pub factor: f64,
    /// How many observations without a better one are borne.
    pub patience: u64,
    /// How many observations after a cut do not count.
    pub cooldown: u64,
    /// By what share of the best a better one must be better.
    pub threshold: f64,
    /// It never falls below this.
    pub floor: f64,
    /// Which way is better.
    pub better: Better,
    /// The best so far.
    pub best: Option<f64>,
    /// Observations since the best.
    pub waited: u64,
    /// Observations left of the cooldown.
    pub cooling: u64,
}

impl Plateau {
    /// A tenth of the rate after ten observations that are not better than the best by a
    /// ten-thousandth.
    ///
    /// ```
    /// use regard_tensor::Plateau;
    /// let mut plateau = Plateau::new(1.0);
    /// let rates = [2.0; 12].map(|loss| plateau.observe(loss));
    /// assert_eq!((rates[10], rates[11]), (1.0, 0.1));
    /// ```
    pub fn new(rate: f64) -> Self {
        Self {
            rate,
            factor: 0.1,
            patience: 10,
            cooldown: 0,
            threshold: 1e-4,
            floor: 0.0,
            better: Better::Lower,
            best: None,
            waited: 0,
            cooling: 0,
        }
    }

    /// Takes a measure and gives the rate from now on.
    ///
    /// ```
    /// use regard_tensor::Plateau;
    /// let mut plateau = Plateau { patience: 0, factor: 0.5, floor: 0.4, ..Plateau::new(1.0) };
    /// assert_eq!([2.0, 3.0, 3.0].map(|loss| plateau.observe(loss)), [1.0, 0.5, 0.4]);
    /// ```
    pub fn observe(&mut self, measure: f64) -> f64 {
        let is_better = match (self.best, self.better) {
            (None, _) => !measure.is_nan(),
            (Some(best), Better::Lower) => measure < best - best.abs() * self.threshold,
            (Some(best), Better::Higher) => measure > best + best.abs() * self.threshold,
        };
        if is_better {
            (self.best, self.waited) = (Some(measure), 0);
        } else {
            self.waited += 1;
        }
        if self.cooling > 0 {
            (self.cooling, self.waited) = (self.cooling - 1, 0);
        }
        if self.waited > self.patience {
            self.rate = (self.rate * self.factor).max(self.floor);
            (self.cooling, self.waited) = (self.cooldown, 0);
        }
        self.rate
    }
}
