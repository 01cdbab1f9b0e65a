<<<<<<< HEAD
//! Data in: files of many formats as plain lists, and the batches made of them.

mod batches;
mod conll;
mod json;
mod labelled;
mod lines;
mod parallel;
mod table;

pub use batches::{BatchSize, batches};
pub use conll::{ConllColumn, Tagged, conll};
pub use json::{read_json, write_json};
pub use labelled::{Labelled, labelled, labelled_files, labels_of_files};
pub use lines::{bytes, lines, text};
pub use parallel::{Parallel, parallel, parallel_tsv};
pub use table::{Table, table};
=======
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
>>>>>>> senses
