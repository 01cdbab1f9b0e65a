//! Numbers as a machine might hum them: each word is a little tune of tones, and speakers have
//! pitches and paces of their own.

use super::{chance, normal};
use crate::Result;
use regard::tensor::Random;
use std::f64::consts::TAU;

/// Samples in a second of [`spoken`].
pub const SPOKEN_RATE: u32 = 8000;

const WORDS: [&str; 10] =
    ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"];
/// The tune of each word: steps of a scale, each a tone as long as the others.
const TUNES: [&[usize]; 10] = [
    &[0, 2],
    &[4],
    &[2, 0],
    &[1, 4],
    &[4, 1],
    &[0, 4, 0],
    &[3, 2],
    &[2, 3, 1],
    &[3, 0],
    &[1, 3, 4],
];
/// How much higher each step of the scale is than the first.
const SCALE: [f64; 5] = [1.0, 1.26, 1.59, 2.0, 2.52];
const NOISE: f64 = 0.02;
/// What is not a word.
const PAUSE: &str = "pause";

/// A recording and what is said in it.
#[derive(Clone, Debug, PartialEq)]
pub struct Spoken {
    /// At [`SPOKEN_RATE`], within −1 and 1.
    pub samples: Vec<f32>,
    /// The words.
    pub words: Vec<String>,
    /// Words and the pauses between them: where each begins and ends, in seconds.
    pub segments: Vec<(f64, f64, String)>,
}

/// `count` recordings of one to five words each, with pauses and noise.
///
/// ```
/// let spoken = regard_data::toy::spoken(3, 1)?;
/// assert!(spoken.iter().all(|one| (1..=5).contains(&one.words.len())));
/// let (start, end, _) = &spoken[0].segments[0];
/// assert!(*start == 0.0 && *end > 0.0);
/// # Ok::<(), regard_data::Error>(())
/// ```
pub fn spoken(count: usize, seed: u64) -> Result<Vec<Spoken>> {
    let random = Random::named(seed, "spoken");
    (0..count).map(|_| speak(&random)).collect()
}

fn within(random: &Random, low: f64, high: f64) -> f64 {
    low + (high - low) * random.number()
}

/// How one speaks.
struct Voice {
    /// Of the first step of the scale, in Hz.
    pitch: f64,
    /// Seconds of a tone.
    pace: f64,
    loudness: f64,
    /// The strength of the second and third harmonic.
    timbre: [f64; 2],
}

fn speak(random: &Random) -> Result<Spoken> {
    let voice = Voice {
        pitch: within(random, 280.0, 420.0),
        pace: within(random, 0.07, 0.11),
        loudness: within(random, 0.25, 0.7),
        timbre: [within(random, 0.0, 0.5), within(random, 0.0, 0.3)],
    };
    let (mut samples, mut words, mut segments) = (Vec::new(), Vec::new(), Vec::new());
    let rate = f64::from(SPOKEN_RATE);
    let pause = |samples: &mut Vec<f32>, segments: &mut Vec<_>, seconds: f64| {
        let start = samples.len() as f64 / rate;
        samples.extend(std::iter::repeat_n(0.0, (seconds * rate) as usize));
        segments.push((start, samples.len() as f64 / rate, PAUSE.to_string()));
    };
    pause(&mut samples, &mut segments, within(random, 0.03, 0.15));
    for _ in 0..1 + random.below(5) {
        let word = random.below(WORDS.len());
        let start = samples.len() as f64 / rate;
        let pace = voice.pace * within(random, 0.85, 1.15);
        TUNES[word].iter().for_each(|&step| voice.tone(random, step, pace, &mut samples));
        segments.push((start, samples.len() as f64 / rate, WORDS[word].to_string()));
        words.push(WORDS[word].to_string());
        pause(&mut samples, &mut segments, within(random, 0.04, 0.15));
    }
    let noise = normal(random, samples.len(), NOISE)?;
    let heard = samples.iter().zip(noise).map(|(x, noise)| (x + noise).clamp(-1.0, 1.0));
    Ok(Spoken { samples: heard.collect(), words, segments })
}

impl Voice {
    /// A tone that swells and fades.
    fn tone(&self, random: &Random, step: usize, seconds: f64, samples: &mut Vec<f32>) {
        let rate = f64::from(SPOKEN_RATE);
        let count = (seconds * rate) as usize;
        let bend = if chance(random, 0.5) { 1.01 } else { 0.99 };
        let pitch = self.pitch * SCALE[step] * bend;
        let whole = 1.0 + self.timbre.iter().sum::<f64>();
        for at in 0..count {
            let angle = TAU * pitch * at as f64 / rate;
            let over = self.timbre[0] * (2.0 * angle).sin() + self.timbre[1] * (3.0 * angle).sin();
            let swell = (std::f64::consts::PI * at as f64 / count as f64).sin().sqrt();
            samples.push((self.loudness * swell * (angle.sin() + over) / whole) as f32);
        }
    }
}
