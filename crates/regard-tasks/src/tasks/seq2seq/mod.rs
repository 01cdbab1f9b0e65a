//! What the tasks that write a text share: options, sources in batches, searching, learning.

mod copying;
mod options;
mod scenes;
mod sources;
mod writer;

pub(crate) use copying::{CopyNames, check_copying};
pub(crate) use options::{SearchOptions, Seq2SeqOptions, alike, tokenization};
pub(crate) use scenes::{alignment, copied, decoder_scene, encoder_scene, some_scene, weight_maps};
pub(crate) use sources::{Sources, TokenSources, VectorSources};
pub(crate) use writer::{Limit, Writer, alternatives, tokens};

/// The part of a template's `[model]` that says how a text is written.
pub(crate) const TEMPLATE: &str = include_str!("options.toml");
