//! Files that people have, read into plain structs, and the batches made of them. Every refusal
//! names the file, and the line where there is one.

mod batches;
mod conll;
mod folder;
mod graph;
mod idx;
mod images;
mod labeled;
mod lines;
mod mel;
mod opened;
mod parallel;
mod sounds;
mod table;
mod wav;

pub use batches::{BatchSize, batches};
pub use conll::{ConllColumn, Tagged, conll};
pub use graph::LabeledGraph;
pub use idx::Idx;
pub use images::{ImageOptions, Images};
pub use labeled::{Labeled, labeled, labeled_files, labels_of_files};
pub use lines::{bytes, lines, text};
pub use mel::{LogMel, MelFilters, StandardScaler};
pub(crate) use opened::opened;
pub use parallel::{Parallel, parallel, parallel_tsv};
pub use sounds::{Sound, SoundOptions, Sounds};
pub use table::{Table, table};
pub use wav::Waveform;
