//! A recording, and what was attended to in it.

use crate::scene::Maps;
use regard_data::files::Segment;
use serde::Serialize;

/// A recording as a spectrogram over time, with the attention weights on its moments, and segments
/// with labels.
///
/// ```
/// use regard_data::files::Segment;
/// use regard_picture::scene::{Maps, Scene, SoundScene, Track};
/// let scene = SoundScene {
///     spectrogram: vec![0.0; 3 * 2],
///     features: 2,
///     step: 0.01,
///     unit: "seconds".into(),
///     key_step: 0.01,
///     weights: Maps {
///         row_axis: "output".into(),
///         column_axis: "time".into(),
///         rows: vec!["one".into()],
///         columns: SoundScene::times(3, 0.01),
///         maps: vec![],
///     },
///     tracks: vec![Track {
///         name: "truth".into(),
///         segments: vec![Segment { start: 0.0, end: 0.02, label: "one".into() }],
///     }],
///     moment: None,
/// };
/// assert_eq!((scene.seconds(), scene.weights.columns[1].as_str()), (0.03, "0.01 s"));
/// ```
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SoundScene {
    /// Frames × features, frame by frame, the lowest pitch first.
    pub spectrogram: Vec<f32>,
    /// Features of a frame.
    pub features: usize,
    /// Seconds from one frame's start to the next one's.
    pub step: f64,
    /// What time is counted in: "seconds", or "steps" where vectors have no time.
    pub unit: String,
    /// Seconds from one key's start to the next one's: a key may hold several frames.
    pub key_step: f64,
    /// The weights on the keys.
    pub weights: Maps,
    /// Segments with labels, to be compared: the truth, and what was predicted.
    pub tracks: Vec<Track>,
    /// The moment, in seconds, whose weights are shown, where it is one.
    pub moment: Option<f64>,
}

/// Segments of one kind, one after the other.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Track {
    /// What they are: "truth", "predicted".
    pub name: String,
    /// In the order of time.
    pub segments: Vec<Segment>,
}

impl SoundScene {
    /// How long the recording is.
    pub fn seconds(&self) -> f64 {
        (self.spectrogram.len() / self.features.max(1)) as f64 * self.step
    }

    /// The names of moments, each so many seconds after the one before.
    ///
    /// ```
    /// assert_eq!(regard_picture::scene::SoundScene::times(2, 0.03), ["0.00 s", "0.03 s"]);
    /// ```
    pub fn times(count: usize, step: f64) -> Vec<String> {
        (0..count).map(|n| format!("{:.2} s", n as f64 * step)).collect()
    }
}
