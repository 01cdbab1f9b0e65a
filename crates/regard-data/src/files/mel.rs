//! Log-mel frames: what an ear roughly hears of a waveform, as a sequence of vectors.
//!
//! A frame is `window` samples under a Hann window, ½ − ½ cos(2πn / window); its power spectrum
//! |DFT|² is summed under triangles that stand evenly on the mel scale,
//! m(f) = 2595 log₁₀(1 + f / 700); the logarithm of each sum is a feature.

use super::Waveform;
use crate::{Error, Result};
use realfft::{RealFftPlanner, RealToComplex};
use serde::{Deserialize, Serialize};
use std::f64::consts::TAU;
use std::sync::Arc;

/// Frames are padded with zeros to at least this many samples, so that the narrow triangles at
/// the low end hold a line of the spectrum.
const SHORTEST_TRANSFORM: usize = 512;

/// Silence has this power: the logarithm needs a floor.
const FLOOR: f64 = 1e-10;

/// How frames are made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogMel {
    /// Samples a second.
    pub rate: u32,
    /// Samples in a frame.
    pub window: usize,
    /// Samples from one frame's start to the next one's.
    pub hop: usize,
    /// M: features of a frame.
    pub mels: usize,
    /// Where the first triangle begins, in hertz.
    pub low: f64,
    /// Where the last triangle ends, in hertz.
    pub high: f64,
}

impl LogMel {
    /// The usual choice for speech at a rate: 25 ms every 10 ms, 40 features from 20 Hz to half
    /// the rate.
    ///
    /// ```
    /// let choice = regard_data::files::LogMel::new(8000);
    /// assert_eq!((choice.window, choice.hop, choice.high), (200, 80, 4000.0));
    /// ```
    pub fn new(rate: u32) -> Self {
        let samples = |milliseconds: f64| (f64::from(rate) * milliseconds / 1000.0) as usize;
        let high = f64::from(rate) / 2.0;
        Self { rate, window: samples(25.0), hop: samples(10.0), mels: 40, low: 20.0, high }
    }

    /// Makes the window, the transform and the triangles ready. Refuses empty windows, hertz that
    /// the rate cannot carry, and triangles too narrow for the spectrum.
    pub fn filters(&self) -> Result<MelFilters> {
        let &Self { rate, window, hop, mels, low, high } = self;
        for (name, value) in [("window", window), ("hop", hop), ("number of mels", mels)] {
            if value == 0 {
                return Err(Error::invalid(format!("a {name} of 0; it must be at least 1")));
            }
        }
        if window > rate as usize {
            let what = format!("window {window} is longer than a second, {rate} samples");
            return Err(Error::invalid(what));
        }
        let half = f64::from(rate) / 2.0;
        if !(0.0 <= low && low < high && high <= half) {
            let what = format!(
                "mel filters from {low} to {high} Hz; 0 ≤ low < high ≤ {half}, half the rate, is needed"
            );
            return Err(Error::invalid(what));
        }
        let size = window.max(SHORTEST_TRANSFORM).next_power_of_two();
        let line = f64::from(rate) / size as f64;
        let too_narrow = || {
            Error::invalid(format!(
                "{mels} mel filters from {low} to {high} Hz: some are narrower than the spectrum's \
                 lines of {line:.1} Hz; ask for fewer mels or a longer window"
            ))
        };
        if mels > size {
            return Err(too_narrow());
        }
        let triangles = triangles(self, size);
        if triangles.iter().any(|triangle| triangle.weights.is_empty()) {
            return Err(too_narrow());
        }
        let hann = |n: usize| 0.5 - 0.5 * (TAU * n as f64 / window as f64).cos();
        Ok(MelFilters {
            choice: self.clone(),
            hann: (0..window).map(hann).collect(),
            transform: RealFftPlanner::new().plan_fft_forward(size),
            triangles,
        })
    }
}

/// A triangle's weights on neighboring lines of the spectrum.
struct Triangle {
    first: usize,
    weights: Vec<f64>,
}

fn triangles(choice: &LogMel, size: usize) -> Vec<Triangle> {
    let mel = |hertz: f64| 2595.0 * (1.0 + hertz / 700.0).log10();
    let hertz = |mel: f64| 700.0 * (10f64.powf(mel / 2595.0) - 1.0);
    let (low, high) = (mel(choice.low), mel(choice.high));
    let corner = |m: usize| hertz(low + (high - low) * m as f64 / (choice.mels + 1) as f64);
    let triangle = |m: usize| {
        let (left, top, right) = (corner(m), corner(m + 1), corner(m + 2));
        let weight = |line: usize| {
            let at = f64::from(choice.rate) * line as f64 / size as f64;
            ((at - left) / (top - left)).min((right - at) / (right - top)).max(0.0)
        };
        let lines = 0..size / 2 + 1;
        let first = lines.clone().find(|&line| weight(line) > 0.0).unwrap_or(lines.end);
        let weights = (first..lines.end).map(weight).take_while(|&weight| weight > 0.0).collect();
        Triangle { first, weights }
    };
    (0..choice.mels).map(triangle).collect()
}

/// Window, transform and triangles, ready for any number of waveforms.
pub struct MelFilters {
    choice: LogMel,
    hann: Vec<f64>,
    transform: Arc<dyn RealToComplex<f64>>,
    triangles: Vec<Triangle>,
}

impl MelFilters {
    /// Waveform → frames `[T, M]`, row by row. The last frame is padded with zeros, so that no
    /// sample is lost, and there is at least one. A recording of another rate than the filters' is
    /// resampled first.
    ///
    /// ```
    /// use regard_data::files::{LogMel, Waveform};
    /// let filters = LogMel::new(8000).filters()?;
    /// let frames = filters.frames(&Waveform { samples: vec![0.0; 201], rate: 8000 })?;
    /// assert_eq!(frames.len(), 2 * 40);
    /// # Ok::<(), regard_data::Error>(())
    /// ```
    pub fn frames(&self, waveform: &Waveform) -> Result<Vec<f32>> {
        let &LogMel { rate, window, hop, mels, .. } = &self.choice;
        let resampled = (waveform.rate != rate).then(|| waveform.resampled(rate)).transpose()?;
        let samples = &resampled.as_ref().unwrap_or(waveform).samples;
        let count = 1 + samples.len().saturating_sub(window).div_ceil(hop);
        let mut frames = Vec::with_capacity(count * mels);
        let mut input = self.transform.make_input_vec();
        let mut spectrum = self.transform.make_output_vec();
        for start in (0..count).map(|frame| frame * hop) {
            input.fill(0.0);
            let heard = samples.get(start..).unwrap_or_default();
            for ((to, &sample), hann) in input.iter_mut().zip(heard).zip(&self.hann) {
                *to = f64::from(sample) * hann;
            }
            self.transform
                .process(&mut input, &mut spectrum)
                .map_err(|error| Error::invalid(error.to_string()))?;
            frames.extend(self.triangles.iter().map(|triangle| {
                let lines = spectrum[triangle.first..].iter().zip(&triangle.weights);
                let power: f64 = lines.map(|(line, weight)| line.norm_sqr() * weight).sum();
                power.max(FLOOR).ln() as f32
            }));
        }
        Ok(frames)
    }
}

/// The mean and the deviation of each feature over the training part, and how to take them away.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StandardScaler {
    /// `[D]`
    pub mean: Vec<f32>,
    /// `[D]`; 1 for a feature that never changes.
    pub deviation: Vec<f32>,
}

impl StandardScaler {
    /// Measures sequences `[T, D]` of vectors of width D. Refuses a width that does not fit, and
    /// no vectors at all.
    ///
    /// ```
    /// use regard_data::files::StandardScaler;
    /// let mut rows = vec![1.0, 5.0, 3.0, 5.0];
    /// let standard = StandardScaler::fit(&[rows.clone()], 2)?;
    /// standard.apply(&mut rows)?;
    /// assert_eq!(rows, [-1.0, 0.0, 1.0, 0.0]);
    /// # Ok::<(), regard_data::Error>(())
    /// ```
    pub fn fit(sequences: &[Vec<f32>], width: usize) -> Result<Self> {
        sequences.iter().try_for_each(|sequence| fits(sequence, width))?;
        let rows = || sequences.iter().flat_map(|sequence| sequence.chunks_exact(width));
        let count = rows().count() as f64;
        if count == 0.0 {
            return Err(Error::invalid("there are no vectors to measure a mean and deviation of"));
        }
        let averaged = |of: &dyn Fn(usize, f64) -> f64| {
            let mut sums = vec![0.0; width];
            for row in rows() {
                for (at, (sum, &value)) in sums.iter_mut().zip(row).enumerate() {
                    *sum += of(at, f64::from(value));
                }
            }
            sums.into_iter().map(|sum| sum / count).collect::<Vec<f64>>()
        };
        let mean = averaged(&|_, value| value);
        let variance = averaged(&|at, value| (value - mean[at]).powi(2));
        // What is left of a constant after rounding is no deviation.
        let deviation = |(mean, variance): (&f64, f64)| match variance.sqrt() {
            deviation if deviation <= mean.abs() * f64::from(f32::EPSILON) => 1.0,
            deviation => deviation as f32,
        };
        Ok(Self {
            mean: mean.iter().map(|&mean| mean as f32).collect(),
            deviation: mean.iter().zip(variance).map(deviation).collect(),
        })
    }

    /// Vectors `[T, D]`, less the mean and divided by the deviation, in place. Refuses what is beyond all
    /// numbers then.
    pub fn apply(&self, sequence: &mut [f32]) -> Result<()> {
        fits(sequence, self.mean.len())?;
        for row in sequence.chunks_exact_mut(self.mean.len()) {
            for ((value, mean), deviation) in row.iter_mut().zip(&self.mean).zip(&self.deviation) {
                let given = *value;
                *value = (given - mean) / deviation;
                if !value.is_finite() {
                    return Err(Error::invalid(format!(
                        "the number {given:e} is too far from what was learned, {mean} ± {deviation}"
                    )));
                }
            }
        }
        Ok(())
    }
}

fn fits(sequence: &[f32], width: usize) -> Result<()> {
    if width == 0 || !sequence.len().is_multiple_of(width) {
        let what = format!("{} values are not vectors of width {width}", sequence.len());
        return Err(Error::invalid(what));
    }
    Ok(())
}
