//! Data in: files of many formats as plain lists, and the batches made of them.

mod batches;

pub use batches::{BatchSize, batches};
