//! Files into words, vectors, pictures, sounds and graphs, and data made by rules: what the tasks of
//! `regard-tasks` learn from. Optimized more than those are, for here every byte of a file passes.
//!
//! | to … | look at |
//! |---|---|
//! | read files | [`files`]: parallel text, CoNLL, CSV, WAV, FLAC, MP3, Ogg Vorbis, IDX, PNG, JPEG, graphs, questions |
//! | turn text into ids | [`text`]: tokenizers, vocabularies, labels |
//! | turn pictures into ids | [`Codebook`]: patches, the nearest of those that were learned |
//! | have data without a file | [`toy`]: datasets made by rules |
//! | hear what is read with a remark | [`remarked`] |
//! | read the beginnings of long texts only | [`sampled`] |
//! | leave out rows that cannot be read | [`skipping_bad_rows`] |
//! | see how far a long reading is, and stop it | [`watch`](fn@watch) |
//!
//! Every refusal is one sentence that names the file and the line ([`Error`]).

mod bad_rows;
mod codebook;
mod error;
pub mod files;
mod remark;
mod sample;
pub mod text;
pub mod toy;
mod watch;

pub use bad_rows::{example_or_skipped, skipping_bad_rows};
pub use codebook::Codebook;
pub use error::{Error, Result};
pub use remark::{remark, remarked};
pub use sample::{SampledFile, SampledUnit, sampled, sampled_count};
pub use watch::{Watch, quietly, tick, unwatched, watch};

/// The README's snippet, compiled with the tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
