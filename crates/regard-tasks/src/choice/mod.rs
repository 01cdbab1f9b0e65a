//! Choices that several tasks offer, as plain options: encoders and mechanisms.

mod encoder;
mod mechanism;

pub(crate) use encoder::EncoderOptions;
pub(crate) use mechanism::MechanismOptions;

/// The encoder's part of a template's `[model]`.
pub(crate) const ENCODER: &str = include_str!("encoder.toml");
/// The mechanism's part of a template's `[model]`.
pub(crate) const MECHANISM: &str = include_str!("mechanism.toml");
