//! Files that people have, read into plain structs, and the batches made of them. Every refusal
//! names the file, and the line where there is one.

mod asked;
mod babi;
mod batches;
mod captions;
mod conll;
mod folder;
mod graph;
mod idx;
mod images;
mod labeled;
mod labeled_vectors;
mod lines;
mod mel;
mod npy;
mod opened;
mod parallel;
mod segments;
mod sounds;
mod squad;
mod table;
mod transcripts;
mod wav;

pub use asked::{Answer, Asked, Passage, Place, asked_tsv};
pub use babi::babi;
pub(crate) use babi::between;
pub use batches::{BatchSize, batches};
pub use captions::{Caption, captions};
pub use conll::{ConllColumn, Tagged, conll};
pub use graph::LabeledGraph;
pub use idx::Idx;
pub use images::{ImageOptions, Images};
pub use labeled::{Labeled, labeled, labeled_files, labels_of_files};
pub(crate) use labeled_vectors::feature_array;
pub use labeled_vectors::{LabeledVectors, SequenceColumns, labeled_arrays, labeled_table};
pub use lines::{bytes, lines, text};
pub use mel::{LogMel, MelFilters, StandardScaler};
pub use npy::{NumpyArray, NumpyValues};
pub(crate) use opened::opened;
pub use parallel::{Parallel, parallel, parallel_tsv};
pub use segments::segments;
pub use sounds::{Sound, SoundOptions, Sounds};
pub use squad::{Unfound, squad};
pub use table::{Table, table};
pub use transcripts::{Transcript, transcripts};
pub use wav::Waveform;
