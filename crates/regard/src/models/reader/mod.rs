//! Questions about a text, answered by a span of it.

mod config;
mod model;
mod passage;

pub use config::SpanReaderConfig;
pub use model::{Pointed, Span, SpanReader};
pub use passage::Passages;
