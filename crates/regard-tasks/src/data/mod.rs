//! Files that people have, read into plain structs. Every refusal names the file, and the line
//! where there is one.

mod folder;
mod graph;
mod idx;
mod images;
mod mel;
mod opened;
mod sounds;
mod wav;

pub use graph::LabelledGraph;
pub use idx::Idx;
pub use images::{ImageOptions, Images};
pub use mel::{LogMel, MelFilters, Standard};
pub use sounds::{Sound, SoundOptions, Sounds};
pub use wav::Waveform;
