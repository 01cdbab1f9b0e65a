//! Choices that several tasks offer, as plain options: encoders, mechanisms, tokens.

mod encoder;
pub(crate) mod made_up;
mod mechanism;
pub(crate) mod needs;
mod sound;
mod text;

pub(crate) use encoder::{EncoderKind, EncoderOptions};
pub(crate) use mechanism::{MechanismOptions, ScoreKind, ScoreOptions, is_hard};
pub(crate) use sound::{
    SoundFrameOptions, SoundFrames, check_frames, check_rate, note_of_rates, read_together,
    together,
};
pub(crate) use text::{TextOptions, pretrained};

/// The encoder's part of a template's `[model]`.
pub(crate) const ENCODER: &str = include_str!("encoder.toml");
/// The mechanism's part of a template's `[model]`.
pub(crate) const MECHANISM: &str = include_str!("mechanism.toml");
/// The part of a template's `[audio]` that says how sound becomes vectors.
pub(crate) const SOUND: &str = include_str!("sound.toml");
