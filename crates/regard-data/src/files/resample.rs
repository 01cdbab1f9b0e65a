//! A recording at another rate: band-limited interpolation by a windowed sinc.
//!
//! A sample at time t of the new rate is Σ x[n] h(t − n / rate) with h the impulse response of a low-pass
//! below half of the lower rate, cut off by a Kaiser window (J. O. Smith, *Digital Audio Resampling*).
//! The rates' ratio is a fraction, so that the moments fall on few phases, whose weights are made once.

use super::Waveform;
use crate::{Error, Result};
use std::cell::RefCell;
use std::f64::consts::PI;
use std::rc::Rc;

/// Zero crossings of the sinc on each side.
const ZEROS: f64 = 64.0;
/// The cut-off as a share of half the lower rate: what is above is on its way down.
const ROLLOFF: f64 = 0.9476;
/// The Kaiser window's β: side lobes of about −140 dB.
const BETA: f64 = 14.77;
/// The most weights on a side that are kept: rates without a common divisor have as many phases as a
/// second has samples.
const MOST_WEIGHTS: u64 = 8_000_000;

impl Waveform {
    /// The same sound at another rate; as it is where that is its own. What lies above half of the new
    /// rate is taken away rather than mirrored. Refuses a rate of 0 and rates that have nothing in
    /// common.
    ///
    /// ```
    /// use regard_data::files::Waveform;
    /// let silence = Waveform { samples: vec![0.0; 441], rate: 44_100 };
    /// assert_eq!(silence.resampled(16_000)?.samples.len(), 160);
    /// # Ok::<(), regard_data::Error>(())
    /// ```
    pub fn resampled(&self, rate: u32) -> Result<Self> {
        if rate == self.rate {
            return Ok(self.clone());
        }
        if rate == 0 || self.rate == 0 {
            return Err(Error::invalid("a recording has at least 1 sample a second"));
        }
        let common = greatest_common_divisor(self.rate, rate);
        let filter = filter((self.rate / common).into(), (rate / common).into())?;
        Ok(Self { samples: filter.apply(&self.samples), rate })
    }
}

fn greatest_common_divisor(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

thread_local! {
    /// The last filter that was made: the recordings of a folder want the same.
    static LAST: RefCell<Option<Rc<Filter>>> = const { RefCell::new(None) };
}

fn filter(from: u64, to: u64) -> Result<Rc<Filter>> {
    LAST.with_borrow_mut(|last| match last {
        Some(filter) if filter.from == from && filter.to == to => Ok(filter.clone()),
        _ => {
            let filter = Rc::new(Filter::new(from, to)?);
            *last = Some(filter.clone());
            Ok(filter)
        }
    })
}

/// From `from` samples to `to` samples, a fraction in its lowest terms.
struct Filter {
    from: u64,
    to: u64,
    /// Samples on each side of a moment that count.
    reach: usize,
    /// The weights of the samples around a moment, for each of the `to` phases.
    weights: Vec<f32>,
}

impl Filter {
    fn new(from: u64, to: u64) -> Result<Self> {
        // In units of the old rate: the lower of both rates limits the band.
        let cutoff = ROLLOFF * (to as f64 / from as f64).min(1.0);
        let reach = (ZEROS / cutoff).ceil() as usize;
        if to.saturating_mul(reach as u64) > MOST_WEIGHTS {
            let what = format!("{from} to {to} samples have too little in common to be resampled");
            return Err(Error::invalid(what));
        }
        let mut weights = Vec::with_capacity(to as usize * 2 * reach);
        for phase in 0..to {
            let moment = phase as f64 / to as f64;
            let first = 1 - reach as i64;
            let all = (first..=reach as i64).map(|n| response(moment - n as f64, cutoff));
            let all: Vec<f64> = all.collect();
            // A constant stays what it is.
            let sum: f64 = all.iter().sum();
            weights.extend(all.iter().map(|weight| (weight / sum) as f32));
        }
        Ok(Self { from, to, reach, weights })
    }

    fn apply(&self, samples: &[f32]) -> Vec<f32> {
        let count = (samples.len() as u64 * self.to).div_ceil(self.from);
        let one = |at: u64| {
            let (before, phase) = (at * self.from / self.to, at * self.from % self.to);
            let weights = &self.weights[phase as usize * 2 * self.reach..][..2 * self.reach];
            let first = before as i64 + 1 - self.reach as i64;
            let skipped = usize::try_from(-first).unwrap_or(0);
            let start = usize::try_from(first).unwrap_or(0);
            let heard = samples.get(start..).unwrap_or_default();
            let products = heard.iter().zip(&weights[skipped..]);
            let products = products.map(|(x, weight)| f64::from(*x) * f64::from(*weight));
            products.sum::<f64>() as f32
        };
        (0..count).map(one).collect()
    }
}

/// The low-pass at a time, in samples of the old rate.
fn response(time: f64, cutoff: f64) -> f64 {
    let width = ZEROS / cutoff;
    if time.abs() >= width {
        return 0.0;
    }
    let angle = PI * cutoff * time;
    let sinc = if angle == 0.0 { 1.0 } else { angle.sin() / angle };
    sinc * bessel(BETA * (1.0 - (time / width).powi(2)).sqrt())
}

/// I₀, the modified Bessel function of order 0, by its series.
fn bessel(x: f64) -> f64 {
    let (mut sum, mut term, mut k) = (1.0, 1.0, 1.0);
    while term > sum * 1e-17 {
        term *= (x / 2.0 / k).powi(2);
        sum += term;
        k += 1.0;
    }
    sum
}
