//! From a sequence to another: an encoder, a context and a decoder.

mod config;
mod convolutional;
mod copying;
mod decoder;
mod hypothesis;
mod model;
mod reader;
mod recurrent;
mod search;
mod sentences;
mod source;
mod teacher_forcing;

pub use config::{ContextConfig, DecoderConfig, Seq2SeqConfig, Tied};
pub use hypothesis::Hypothesis;
pub use model::Seq2Seq;
pub use search::{Considered, SearchConfig};
pub use sentences::Sentences;
pub use source::{Copies, Source, SourceConfig};
pub use teacher_forcing::TeacherForced;
