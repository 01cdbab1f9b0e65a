//! Sequences as labelers and classifiers read them: tokens or vectors, characters, neighbors.

mod batch;
mod characters;
mod head;
mod input;
mod neighbors;
mod reader;

pub use batch::Sequences;
pub use characters::CharactersConfig;
pub(crate) use head::Head;
pub use input::InputConfig;
pub(crate) use reader::{Reader, ReaderConfig};
