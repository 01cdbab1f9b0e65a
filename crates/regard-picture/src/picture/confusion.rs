//! What was taken for what.

use super::heat;
use crate::scene::{Map, Maps};

/// Draws how often each label (a row) was taken for each (a column), as SVG. Colors show shares of
/// the row; numbers are the counts.
///
/// `counts` are `labels` × `labels`; what is missing counts as none.
///
/// ```
/// use regard_picture::picture;
/// let labels = ["cat", "dog"].map(String::from);
/// let svg = picture::confusion("test", &labels, &[vec![48, 2], vec![5, 45]]);
/// assert!(svg.contains(">48</text>"));
/// ```
pub fn confusion(title: &str, labels: &[String], counts: &[Vec<usize>]) -> String {
    let count = |row: usize, column: usize| {
        counts.get(row).and_then(|row| row.get(column)).copied().unwrap_or(0)
    };
    let shares = (0..labels.len()).flat_map(|row| {
        let all: usize = (0..labels.len()).map(|column| count(row, column)).sum();
        (0..labels.len()).map(move |column| count(row, column) as f32 / all.max(1) as f32)
    });
    let map = Map::new("share of the row", shares.collect());
    let scene = Maps {
        row_axis: "truth".into(),
        column_axis: "predicted".into(),
        rows: labels.to_vec(),
        columns: labels.to_vec(),
        maps: Vec::new(),
    };
    let words = |place: usize| {
        let count = count(place / labels.len(), place % labels.len()).to_string();
        [count.clone(), if count == "0" { String::new() } else { count }]
    };
    heat::matrix(&scene, [&map, &map], &title.into(), 42.0, &words)
}
