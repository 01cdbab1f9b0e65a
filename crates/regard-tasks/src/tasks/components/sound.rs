//! How sound becomes vectors, as plain options in `[audio]`.

use rayon::prelude::*;
use regard_data::files::{LogMel, MelFilters, StandardScaler, Waveform};
use regard_data::{Error, Result, example_or_skipped};
use serde::{Deserialize, Serialize};

/// How sound becomes vectors, as plain options in `[audio]`.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct SoundFrameOptions {
    sample_rate: Option<u32>,
    mels: usize,
    frame_length: f64,
    pub(crate) frame_shift: f64,
    pub(crate) stack: usize,
    pub(crate) stride: usize,
}

impl SoundFrameOptions {
    pub(crate) fn check(&self) -> Result<()> {
        check_rate(self.sample_rate)?;
        check_frames(self.mels, self.frame_length, self.frame_shift)?;
        for (name, value) in [("stack", self.stack), ("stride", self.stride)] {
            if !(1..=100).contains(&value) {
                return Err(Error::invalid(format!(
                    "`audio.{name}` cannot be {value}; it is 1 to 100 frames"
                )));
            }
        }
        Ok(())
    }

    /// How frames of recordings of a rate are made.
    fn mel(&self, rate: u32) -> LogMel {
        let samples = |milliseconds: f64| (f64::from(rate) * milliseconds / 1000.0) as usize;
        let (window, hop) = (samples(self.frame_length), samples(self.frame_shift));
        LogMel { window, hop, mels: self.mels, ..LogMel::new(rate) }
    }

    /// Seconds from one frame's start to the next one's.
    pub(crate) fn seconds(&self) -> f64 {
        self.frame_shift / 1000.0
    }

    /// Frames as they are, for recordings of a rate, without a mean to take away.
    pub(crate) fn plain(&self, rate: u32) -> Result<SoundFrames> {
        let mel = self.mel(rate);
        let standard = StandardScaler { mean: vec![0.0; mel.mels], deviation: vec![1.0; mel.mels] };
        Ok(SoundFrames { mel, standard, stack: self.stack, every: self.stride })
    }

    /// What the training part tells.
    pub(crate) fn fit(&self, sounds: &[&Waveform]) -> Result<SoundFrames> {
        let Some(first) = sounds.first() else {
            return Err(Error::invalid("there are no recordings to learn"));
        };
        let mel = self.mel(self.sample_rate.unwrap_or(first.rate));
        let filters = mel.filters()?;
        let frames = together(sounds, |sound| filters.frames(sound))?;
        let (stack, every) = (self.stack, self.stride);
        Ok(SoundFrames { standard: StandardScaler::fit(&frames, mel.mels)?, mel, stack, every })
    }
}

/// What becomes of each recording, several at a time; refuses what the first that is refused is refused for.
pub(crate) fn together<T: Sync, R: Send>(
    recordings: &[T],
    one: impl Fn(&T) -> Result<R> + Sync + Send,
) -> Result<Vec<R>> {
    recordings.par_iter().map(one).collect::<Vec<_>>().into_iter().collect()
}

/// As [`together`], of what is read; none in the place of what cannot be read and is left out.
pub(crate) fn read_together<T: Sync, R: Send>(
    recordings: &[T],
    one: impl Fn(&T) -> Result<R> + Sync + Send,
) -> Result<Vec<Option<R>>> {
    let read: Vec<Result<R>> = recordings.par_iter().map(one).collect();
    read.into_iter().map(example_or_skipped).collect()
}

/// Refuses frames that are none, by the option.
pub(crate) fn check_frames(mels: usize, length: f64, shift: f64) -> Result<()> {
    if mels == 0 {
        return Err(Error::invalid(
            "`audio.mels` cannot be 0: a frame needs a number to describe it",
        ));
    }
    for (name, value) in [("frame_length", length), ("frame_shift", shift)] {
        if !(value.is_finite() && value > 0.0) {
            return Err(Error::invalid(format!(
                "`audio.{name}` cannot be {value}; it is so many milliseconds, above 0"
            )));
        }
    }
    Ok(())
}

/// Refuses a rate that no recording is brought to.
pub(crate) fn check_rate(rate: Option<u32>) -> Result<()> {
    const LEAST: u32 = 1000;
    const MOST: u32 = 384_000;
    match rate.filter(|rate| !(LEAST..=MOST).contains(rate)) {
        Some(rate) => {
            let what = format!("`audio.sample_rate` cannot be {rate}; it is {LEAST} to {MOST}");
            Err(Error::invalid(what))
        }
        None => Ok(()),
    }
}

/// What to say of recordings of these rates, where some have another than all are brought to.
pub(crate) fn note_of_rates(rates: &[u32], rate: u32) -> Option<String> {
    let others = rates.iter().filter(|&&own| own != rate).count();
    (others > 0).then(|| {
        format!(
            "{others} of {} recordings have another rate than {rate} samples a second, to which they \
             are brought; `audio.sample_rate` sets another",
            rates.len()
        )
    })
}

/// Log-mel frames less their mean, some of them side by side.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct SoundFrames {
    pub(crate) mel: LogMel,
    standard: StandardScaler,
    stack: usize,
    every: usize,
}

impl SoundFrames {
    pub(crate) fn filters(&self) -> Result<MelFilters> {
        self.mel.filters()
    }

    /// Frames `[T, M]`, less the mean and divided by the deviation.
    pub(crate) fn frames(&self, filters: &MelFilters, sound: &Waveform) -> Result<Vec<f32>> {
        let mut frames = filters.frames(sound)?;
        self.standard.apply(&mut frames)?;
        Ok(frames)
    }

    /// Width of a vector.
    pub(crate) fn width(&self) -> usize {
        self.mel.mels * self.stack
    }

    /// The moment, in seconds, in the middle of what a vector holds.
    pub(crate) fn middle(&self, vector: usize) -> f64 {
        let LogMel { rate, window, hop, .. } = self.mel;
        let samples = vector * self.every * hop * 2 + (self.stack - 1) * hop + window;
        samples as f64 / 2.0 / f64::from(rate)
    }

    /// How many vectors so many frames make.
    pub(crate) fn count(&self, frames: usize) -> usize {
        frames.div_ceil(self.every)
    }

    /// Frames `[T, M]` as vectors `[count(T), stack · M]`: every so many frames a vector, which holds
    /// the frame and those after it side by side, zeros behind the last.
    pub(crate) fn stacked(&self, frames: &[f32]) -> Vec<f32> {
        if self.stack == 1 && self.every == 1 {
            return frames.to_vec();
        }
        let (mels, width) = (self.mel.mels, self.width());
        let count = frames.len() / mels;
        let mut vectors = Vec::with_capacity(self.count(count) * width);
        for (vector, first) in (0..count).step_by(self.every).enumerate() {
            let last = (first + self.stack).min(count);
            vectors.extend_from_slice(&frames[first * mels..last * mels]);
            vectors.resize((vector + 1) * width, 0.0);
        }
        vectors
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_so_many_frames_stand_side_by_side_and_zeros_behind_the_last() {
        let standard = StandardScaler { mean: vec![0.0; 2], deviation: vec![1.0; 2] };
        let mel = LogMel { mels: 2, ..LogMel::new(8000) };
        let frames: Vec<f32> = (0..10).map(|x| x as f32).collect();
        let stacked = |stack, every| {
            let frames = SoundFrames { mel: mel.clone(), standard: standard.clone(), stack, every };
            (frames.count(5), frames)
        };
        assert_eq!(stacked(1, 1).1.stacked(&frames), frames);
        assert_eq!(stacked(1, 2).1.stacked(&frames), [0.0, 1.0, 4.0, 5.0, 8.0, 9.0]);
        let (count, three) = stacked(3, 2);
        let expected = [0., 1., 2., 3., 4., 5., 4., 5., 6., 7., 8., 9., 8., 9., 0., 0., 0., 0.];
        assert_eq!((count, three.stacked(&frames)), (3, expected.to_vec()));
    }
}
