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
