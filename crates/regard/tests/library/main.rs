//! The library: mechanisms, layers and models against known tensors, by differences, and learning. One program, so
//! that the crate is linked once.

#![allow(clippy::unwrap_used)] // a test that cannot go on says so by its panic

#[path = "../../../regard-tensor/tests/known/mod.rs"]
mod known;
#[path = "../squash/mod.rs"]
mod squash;

mod classifier;
mod decoder_only;
mod device;
mod dropout;
mod encoder;
mod explained;
mod fixtures;
mod graph;
mod halves;
mod huge;
mod ids;
mod intervention;
mod labeler;
mod mask;
mod mechanism;
mod models;
mod multi_head;
mod operator;
mod plain_attention;
mod pooling;
mod public_api;
mod public_docs;
mod public_names;
mod recurrent;
mod reinforce;
mod reversal;
mod semver;
mod seq2seq;
mod seq2seq_sources;
mod signatures;
