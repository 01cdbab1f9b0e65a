//! Recordings changed by chance during training: hidden stretches and bands (Park and others 2019),
//! loudness, noise.

use regard::DType;
use regard::tensor::Random;
use regard_data::files::Waveform;
use regard_data::{Error, Result};
use serde::Deserialize;

#[derive(Clone, Copy, Debug, Deserialize)]
pub(super) struct Augmentation {
    time_masks: usize,
    time_mask: usize,
    frequency_masks: usize,
    frequency_mask: usize,
    gain: f64,
    noise: f64,
}

impl Augmentation {
    pub(super) fn check(&self) -> Result<()> {
        for (name, value) in [("gain", self.gain), ("noise", self.noise)] {
            if !(value.is_finite() && value >= 0.0) {
                return Err(Error::invalid(format!("`augmentation.{name}` cannot be {value}")));
            }
        }
        Ok(())
    }

    /// Whether recordings themselves are changed, not only their frames.
    pub(super) fn changes_sound(&self) -> bool {
        self.gain > 0.0 || self.noise > 0.0
    }

    /// Louder or softer, and with noise.
    pub(super) fn sound(&self, sound: &Waveform, random: &Random) -> Result<Waveform> {
        let decibels = self.gain * (2.0 * random.number() - 1.0);
        let factor = 10f64.powf(decibels / 20.0) as f32;
        let mut samples: Vec<f32> = sound.samples.iter().map(|x| x * factor).collect();
        if self.noise > 0.0 {
            let deviation = self.noise * random.number();
            let noise = random.normal(&[samples.len()], 0.0, deviation, DType::F32)?;
            let noise = noise.to_vec::<f32>()?;
            samples.iter_mut().zip(noise).for_each(|(x, noise)| *x += noise);
        }
        Ok(Waveform { samples, rate: sound.rate })
    }

    /// Hides stretches and bands of frames `[T, M]`: they become the mean, which is 0.
    pub(super) fn hide(&self, frames: &mut [f32], mels: usize, random: &Random) {
        let count = frames.len() / mels;
        let range = |most: usize, of: usize| {
            let wide = random.below(most.min(of) + 1);
            let start = random.below(of - wide + 1);
            start..start + wide
        };
        for _ in 0..self.time_masks {
            let hidden = range(self.time_mask, count);
            frames[hidden.start * mels..hidden.end * mels].fill(0.0);
        }
        for _ in 0..self.frequency_masks {
            let hidden = range(self.frequency_mask, mels);
            frames.chunks_mut(mels).for_each(|frame| frame[hidden.clone()].fill(0.0));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_stretches_and_whole_bands_are_hidden_and_no_more_than_was_said() {
        let augmentation = Augmentation {
            time_masks: 1,
            time_mask: 3,
            frequency_masks: 1,
            frequency_mask: 2,
            gain: 6.0,
            noise: 0.1,
        };
        let random = Random::new(1);
        let (mut most_time, mut most_bands) = (0, 0);
        for _ in 0..200 {
            let mut frames = vec![1.0; 10 * 4];
            augmentation.hide(&mut frames, 4, &random);
            let time = frames.chunks(4).filter(|frame| frame.iter().all(|&x| x == 0.0)).count();
            let bands = (0..4).filter(|m| frames.iter().skip(*m).step_by(4).all(|&x| x == 0.0));
            let bands = bands.count();
            let hidden = frames.iter().filter(|&&x| x == 0.0).count();
            assert_eq!(hidden, time * 4 + bands * 10 - time * bands);
            (most_time, most_bands) = (most_time.max(time), most_bands.max(bands));
        }
        assert_eq!((most_time, most_bands), (3, 2));
        let sound = Waveform { samples: vec![0.5; 1000], rate: 8000 };
        for _ in 0..20 {
            let louder = augmentation.sound(&sound, &random).unwrap();
            let mean = louder.samples.iter().sum::<f32>() / 1000.0;
            assert!((0.24..1.01).contains(&mean), "{mean}: at most 6 dB each way");
        }
    }
}
