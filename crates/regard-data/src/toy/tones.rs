//! Tones of "speakers": each has a range of pitch, two formants that favor some harmonics, and a
//! vibrato.

use super::{balanced, normal};
use crate::Result;
use regard::tensor::Random;
use std::f64::consts::TAU;

/// Samples in a second of [`tones`].
pub const TONE_RATE: u32 = 8000;

struct Speaker {
    name: &'static str,
    /// Lowest and highest, in Hz; neighbors overlap, so pitch alone does not tell.
    pitch: (f64, f64),
    /// Where harmonics are strongest, in Hz.
    formants: [f64; 2],
    /// How often in a second the pitch sways, and by which part.
    vibrato: (f64, f64),
}

const SPEAKERS: [Speaker; 4] = [
    Speaker { name: "Ada", pitch: (210.0, 290.0), formants: [850.0, 2600.0], vibrato: (6.5, 0.02) },
    Speaker { name: "Ben", pitch: (90.0, 130.0), formants: [500.0, 1400.0], vibrato: (4.0, 0.01) },
    Speaker {
        name: "Cleo",
        pitch: (170.0, 240.0),
        formants: [450.0, 2000.0],
        vibrato: (5.0, 0.03),
    },
    Speaker {
        name: "Dan",
        pitch: (110.0, 180.0),
        formants: [700.0, 1100.0],
        vibrato: (7.0, 0.015),
    },
];

/// Width of a formant, in Hz.
const FORMANT: f64 = 250.0;
const NOISE: f64 = 0.02;
/// Seconds of sound: the least and the most. What is silent at the start is part of it.
const SECONDS: (f64, f64) = (0.3, 0.8);
/// The silence at the start is at most this part.
const SILENCE: f64 = 0.3;

/// `count` waveforms of 0.3 to 0.8 seconds at [`TONE_RATE`], within −1 and 1, as many of each of
/// four speakers: (speaker, samples).
///
/// ```
/// let tones = regard_data::toy::tones(4, 1)?;
/// assert!(tones.iter().all(|(_, wave)| (2400..=6400).contains(&wave.len())));
/// # Ok::<(), regard_data::Error>(())
/// ```
pub fn tones(count: usize, seed: u64) -> Result<Vec<(String, Vec<f32>)>> {
    let random = Random::named(seed, "tones");
    let labels = balanced(&random, count, SPEAKERS.len());
    labels.into_iter().map(|at| SPEAKERS[at].speak(&random)).collect()
}

fn within(random: &Random, (low, high): (f64, f64)) -> f64 {
    low + (high - low) * random.number()
}

impl Speaker {
    fn speak(&self, random: &Random) -> Result<(String, Vec<f32>)> {
        let rate = f64::from(TONE_RATE);
        let length = (within(random, SECONDS) * rate) as usize;
        let start = (random.number() * SILENCE * length as f64) as usize;
        let loudness = within(random, (0.3, 0.9));
        let pitch = within(random, self.pitch);
        let phase = TAU * random.number();
        let harmonics = self.harmonics(pitch);

        let mut wave = normal(random, length, NOISE)?;
        let mut angle = 0.0;
        for (at, sample) in wave[start..].iter_mut().enumerate() {
            let (sways, by) = self.vibrato;
            let sway = (TAU * sways * at as f64 / rate + phase).sin();
            angle += TAU * pitch * (1.0 + by * sway) / rate;
            let tone: f64 = harmonics
                .iter()
                .enumerate()
                .map(|(nth, strength)| strength * (angle * (nth + 1) as f64).sin())
                .sum();
            *sample += (loudness * tone) as f32;
        }
        wave.iter_mut().for_each(|sample| *sample = sample.clamp(-1.0, 1.0));
        Ok((self.name.into(), wave))
    }

    /// The strength of each harmonic below half the rate; together 1.
    fn harmonics(&self, pitch: f64) -> Vec<f64> {
        let highest = f64::from(TONE_RATE) / 2.0 / (pitch * (1.0 + self.vibrato.1));
        let strength = |nth: usize| {
            let bumps = self.formants.map(|formant| {
                let away = (nth as f64 * pitch - formant) / FORMANT;
                (-0.5 * away * away).exp()
            });
            1.0 / nth as f64 * 0.3 + bumps.iter().sum::<f64>()
        };
        let strengths: Vec<f64> = (1..=highest as usize).map(strength).collect();
        let sum: f64 = strengths.iter().sum();
        strengths.into_iter().map(|strength| strength / sum).collect()
    }
}
