//! Activations: what is applied to every number, in layers and inside the additive score.

use crate::Real;
use crate::error::{Error, ensure};
use std::f64::consts::FRAC_1_SQRT_2;
use std::fmt;
use std::str::FromStr;

/// What is applied to every number.
///
/// It is written by its name, the leaky ones with their number behind it where it is not the
/// usual one.
///
/// ```
/// use regard_kernels::Activation;
/// assert_eq!("gelu-tanh".parse(), Ok(Activation::GeluTanh));
/// assert_eq!("leaky-relu".parse(), Ok(Activation::LeakyRelu { slope: 0.2 }));
/// assert_eq!(Activation::Elu { alpha: 1.5 }.to_string(), "elu(1.5)");
/// let error = "rely".parse::<Activation>().unwrap_err().to_string();
/// assert!(error.starts_with("there is no activation \"rely\"; there are identity, relu,"));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(into = "String", try_from = "String"))]
#[non_exhaustive]
pub enum Activation {
    /// x
    Identity,
    /// max(x, 0)
    Relu,
    /// x where x > 0, slope · x elsewhere; GATv2's.
    LeakyRelu {
        /// 0.2 in the graph attention papers.
        slope: f64,
    },
    /// x · Φ(x), with the error function, not an approximation.
    Gelu,
    /// GELU's approximation by tanh.
    GeluTanh,
    /// x / (1 + e⁻ˣ)
    Silu,
    /// tanh x; Bahdanau's.
    Tanh,
    /// 1 / (1 + e⁻ˣ)
    Sigmoid,
    /// x where x > 0, alpha · (eˣ − 1) elsewhere.
    Elu {
        /// 1 in most networks.
        alpha: f64,
    },
    /// eˣ
    Exp,
}

/// √(2/π)
pub(crate) const ROOT: f64 = 0.797_884_560_802_865_4;
/// 1/√(2π)
const DENSITY: f64 = 0.398_942_280_401_432_7;
/// GELU's approximation is x · sigmoid(2√(2/π) · (x + this · x³)).
pub(crate) const CUBE: f64 = 0.044715;

/// Every activation under its name, with its usual number.
const NAMES: [(&str, Activation); 10] = [
    ("identity", Activation::Identity),
    ("relu", Activation::Relu),
    ("leaky-relu", Activation::LeakyRelu { slope: 0.2 }),
    ("gelu", Activation::Gelu),
    ("gelu-tanh", Activation::GeluTanh),
    ("silu", Activation::Silu),
    ("tanh", Activation::Tanh),
    ("sigmoid", Activation::Sigmoid),
    ("elu", Activation::Elu { alpha: 1.0 }),
    ("exp", Activation::Exp),
];

impl Activation {
    /// The activation at x and its derivative there.
    pub(crate) fn value_and_slope<T: Real>(self, x: T) -> (T, T) {
        let one = T::ONE;
        let sigmoid = |x: T| {
            let e = (-x.abs()).exp();
            if x < T::ZERO { e / (one + e) } else { one / (one + e) }
        };
        match self {
            Self::Identity => (x, one),
            Self::Relu if x <= T::ZERO => (T::ZERO, T::ZERO),
            Self::LeakyRelu { slope } if x <= T::ZERO => (T::of(slope) * x, T::of(slope)),
            Self::Relu | Self::LeakyRelu { .. } => (x, one),
            Self::Gelu => {
                let half = T::of(0.5);
                let cdf = half * (one + (x * T::of(FRAC_1_SQRT_2)).erf());
                let density = T::of(DENSITY) * (-half * x * x).exp();
                (x * cdf, cdf + x * density)
            }
            Self::GeluTanh => {
                let s = sigmoid(T::of(2.0 * ROOT) * (x + T::of(CUBE) * x * x * x));
                let slope = T::of(2.0 * ROOT) * (one + T::of(3.0 * CUBE) * x * x);
                (x * s, s + x * s * (one - s) * slope)
            }
            Self::Silu => {
                let s = sigmoid(x);
                (x * s, s + x * s * (one - s))
            }
            Self::Tanh => {
                let t = x.tanh();
                (t, one - t * t)
            }
            Self::Sigmoid => {
                let s = sigmoid(x);
                (s, s * (one - s))
            }
            Self::Elu { alpha } if x <= T::ZERO => {
                (T::of(alpha) * (x.exp() - one), T::of(alpha) * x.exp())
            }
            Self::Elu { .. } => (x, one),
            Self::Exp => (x.exp(), x.exp()),
        }
    }

    /// Whether the additive score has kernels for it.
    pub(crate) fn fits_additive(self) -> bool {
        use Activation::{Gelu, Identity, LeakyRelu, Relu, Tanh};
        matches!(self, Identity | Relu | LeakyRelu { .. } | Gelu | Tanh)
    }

    /// As the additive score computes it: ReLU is leaky with a slope of 0, which differs where its
    /// input is −∞ and 0 · −∞ is NaN.
    pub(crate) fn in_additive(self) -> Self {
        if self == Self::Relu { Self::LeakyRelu { slope: 0.0 } } else { self }
    }

    /// The number some activations have.
    fn number(self) -> Option<f64> {
        match self {
            Self::LeakyRelu { slope: number } | Self::Elu { alpha: number } => Some(number),
            _ => None,
        }
    }

    /// Refuses a number that is none.
    pub(crate) fn check(self) -> Result<(), Error> {
        let number = self.number();
        ensure!(number.is_none_or(f64::is_finite), "{self}: its number is not finite");
        Ok(())
    }
}

impl fmt::Display for Activation {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let same = |other: &Self| std::mem::discriminant(self) == std::mem::discriminant(other);
        let Some((name, usual)) = NAMES.iter().find(|(_, usual)| same(usual)) else {
            return Err(fmt::Error);
        };
        match self.number() {
            Some(number) if self != usual => write!(f, "{name}({number})"),
            _ => f.write_str(name),
        }
    }
}

impl FromStr for Activation {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let (name, number) = match text.split_once('(') {
            Some((name, rest)) => (name, rest.strip_suffix(')').map(str::parse::<f64>)),
            None => (text, None),
        };
        let known = NAMES.iter().find(|(known, _)| *known == name).map(|&(_, usual)| usual);
        let chosen = match (known, number) {
            (Some(usual), None) if name == text => Some(usual),
            (Some(Self::LeakyRelu { .. }), Some(Ok(slope))) => Some(Self::LeakyRelu { slope }),
            (Some(Self::Elu { .. }), Some(Ok(alpha))) => Some(Self::Elu { alpha }),
            _ => None,
        };
        let Some(chosen) = chosen else {
            let names = NAMES.map(|(name, _)| name).join(", ");
            return Err(Error::new(format!("there is no activation {text:?}; there are {names}")));
        };
        chosen.check()?;
        Ok(chosen)
    }
}

impl From<Activation> for String {
    fn from(activation: Activation) -> Self {
        activation.to_string()
    }
}

impl TryFrom<String> for Activation {
    type Error = Error;

    fn try_from(text: String) -> Result<Self, Error> {
        text.parse()
    }
}
