//! A graph with features and labels on its nodes, from three small text files.
//!
//! `nodes.svm` (SVMlight): line n, counted from 0, is node n: a label, then `index:value` with
//! increasing indices; `#` begins a comment. The label `?` is one that is not known.
//! `edges.tsv`: two nodes a line. `split.tsv`: `train`, `val` or `test`, and a node, a line.

use super::opened::numbered_lines;
use crate::text::Labels;
use crate::{Error, Result};
use std::collections::{BTreeSet, HashMap};
use std::path::Path;

/// Features are held densely; more of them than this (1 GiB) are refused.
const MOST_FEATURES: usize = 1 << 28;

/// A graph whose N nodes have D features and, where it is known, a label.
#[derive(Clone, Debug, PartialEq)]
pub struct LabeledGraph {
    /// `[N, D]`, row by row.
    pub features: Vec<f32>,
    /// D: one more than the greatest index in the file.
    pub width: usize,
    /// (source, target) in order, each edge in both directions and once; a self-loop once.
    pub edges: Vec<(usize, usize)>,
    /// How many lines of edges named an edge that was there already, in either direction.
    pub repeated_edges: usize,
    /// The label of each node, as a place in `label_names`.
    pub labels: Vec<Option<usize>>,
    /// The labels: by number where all are numbers, else by name.
    pub label_names: Vec<String>,
    /// The nodes to learn from.
    pub train: Vec<usize>,
    /// The nodes to choose a model by.
    pub validation: Vec<usize>,
    /// The nodes to measure the chosen model on.
    pub test: Vec<usize>,
}

impl LabeledGraph {
    /// Reads `nodes.svm`, `edges.tsv` and `split.tsv` of a folder, as [`LabeledGraph::read`].
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let folder = folder.path();
    /// std::fs::write(folder.join("nodes.svm"), "cat 0:1\ndog 2:0.5\n").unwrap();
    /// std::fs::write(folder.join("edges.tsv"), "0\t1\n").unwrap();
    /// std::fs::write(folder.join("split.tsv"), "train\t0\n").unwrap();
    /// let graph = regard_data::files::LabeledGraph::read_folder(folder, None)?;
    /// assert_eq!(graph.features, [1.0, 0.0, 0.0, 0.0, 0.0, 0.5]);
    /// assert_eq!(graph.edges, [(0, 1), (1, 0)]);
    /// # Ok::<(), regard_data::Error>(())
    /// ```
    pub fn read_folder(folder: &Path, encoding: Option<&str>) -> Result<Self> {
        let [nodes, edges, split] = ["nodes.svm", "edges.tsv", "split.tsv"].map(|f| folder.join(f));
        Self::read(&nodes, &edges, &split, encoding)
    }

    /// Reads three files, plain or gzip, in UTF-8 or the encoding named. Refuses indices that do not increase, an edge to a node
    /// that is not there, a node in two parts or without a known label in any, a label that no
    /// node of the training part has, and an empty training part.
    pub fn read(nodes: &Path, edges: &Path, split: &Path, encoding: Option<&str>) -> Result<Self> {
        let Nodes { features, width, labels, label_names } = Nodes::read(nodes, encoding)?;
        let (edges, repeated_edges) = read_edges(edges, labels.len())?;
        let [train, validation, test] = read_split(split, &labels, &label_names)?;
        Ok(Self {
            features,
            width,
            edges,
            repeated_edges,
            labels,
            label_names,
            train,
            validation,
            test,
        })
    }

    /// Divides each node's features by the sum of their sizes, as the graph attention paper does
    /// with bags of words. A node without features keeps its zeros.
    pub fn normalize_rows(&mut self) {
        for row in self.features.chunks_exact_mut(self.width) {
            let sum: f32 = row.iter().map(|value| value.abs()).sum();
            if sum > 0.0 {
                row.iter_mut().for_each(|value| *value /= sum);
            }
        }
    }
}

/// What `nodes.svm` holds.
struct Nodes {
    features: Vec<f32>,
    width: usize,
    labels: Vec<Option<usize>>,
    label_names: Vec<String>,
}

impl Nodes {
    fn read(path: &Path, encoding: Option<&str>) -> Result<Self> {
        let mut names = Vec::new();
        let mut rows = Vec::new();
        let mut widest = (0, 0);
        for (line, text) in numbered_lines(path, encoding)? {
            if text.starts_with('#') {
                continue;
            }
            let (label, row) = read_node(&text).map_err(|what| Error::line(path, line, what))?;
            let width = row.last().map_or(0, |&(index, _)| index.saturating_add(1));
            widest = widest.max((width, line));
            names.push(label);
            rows.push(row);
        }
        if rows.is_empty() {
            return Err(Error::file(path, "it has no nodes"));
        }
        let (width, line) = widest;
        if width == 0 {
            return Err(Error::file(path, "no node has a feature"));
        }
        let size = rows.len().checked_mul(width).filter(|&size| size <= MOST_FEATURES);
        let Some(size) = size else {
            let nodes = rows.len();
            let what = format!(
                "index {} would make {nodes} × {width} features; at most {MOST_FEATURES} are held",
                width - 1
            );
            return Err(Error::line(path, line, what));
        };
        let mut features = vec![0.0; size];
        for (node, row) in rows.into_iter().enumerate() {
            row.into_iter().for_each(|(index, value)| features[node * width + index] = value);
        }
        let known = Labels::in_order(names.iter().flatten().map(String::as_str));
        let labels = names.iter().map(|name| known.id(name.as_ref()?)).collect();
        let label_names = known.into();
        Ok(Self { features, width, labels, label_names })
    }
}

type Row = Vec<(usize, f32)>;

/// The label and the features of a line, or what is wrong with it.
fn read_node(text: &str) -> std::result::Result<(Option<String>, Row), String> {
    let text = text.split('#').next().unwrap_or_default();
    let mut words = text.split_whitespace();
    let label = words.next().ok_or("a label was expected, the line is empty")?;
    if label.contains(':') {
        return Err(format!("a label was expected, there is the feature \"{label}\""));
    }
    let mut row = Row::new();
    for word in words {
        let (index, value) = read_feature(word)
            .ok_or_else(|| format!("\"{word}\" is not a feature; index:value was expected"))?;
        match row.last() {
            Some(&(last, _)) if last == index => {
                return Err(format!("index {index} comes twice"));
            }
            Some(&(last, _)) if last > index => {
                return Err(format!("index {index} comes after {last}; indices must increase"));
            }
            _ => row.push((index, value)),
        }
    }
    Ok(((label != "?").then(|| label.to_owned()), row))
}

fn read_feature(word: &str) -> Option<(usize, f32)> {
    let (index, value) = word.split_once(':')?;
    let value: f32 = value.parse().ok()?;
    value.is_finite().then_some((index.parse().ok()?, value))
}

/// The edges in both directions, and how many were repeated.
fn read_edges(path: &Path, nodes: usize) -> Result<(Vec<(usize, usize)>, usize)> {
    let mut edges = BTreeSet::new();
    let mut repeated = 0;
    for (line, text) in numbered_lines(path, None)? {
        let [from, to] = columns(path, line, &text)?;
        let [from, to] = [node(path, line, from, nodes)?, node(path, line, to, nodes)?];
        if !edges.insert((from, to)) {
            repeated += 1;
        }
        edges.insert((to, from));
    }
    Ok((edges.into_iter().collect(), repeated))
}

/// The nodes of the parts train, validation and test.
fn read_split(
    path: &Path,
    labels: &[Option<usize>],
    label_names: &[String],
) -> Result<[Vec<usize>; 3]> {
    let mut parts = [const { Vec::new() }; 3];
    let mut seen = HashMap::new();
    for (line, text) in numbered_lines(path, None)? {
        let [part, at] = columns(path, line, &text)?;
        let part = match part {
            "train" => 0,
            "val" | "validation" | "dev" => 1,
            "test" => 2,
            other => {
                let what = format!("\"{other}\" is not a part; train, val or test was expected");
                return Err(Error::line(path, line, what));
            }
        };
        let at = node(path, line, at, labels.len())?;
        if let Some(first) = seen.insert(at, line) {
            let what = format!("node {at} is in a part already, by line {first}");
            return Err(Error::line(path, line, what));
        }
        let Some(label) = labels[at] else {
            let what = format!("node {at} has no label, so it cannot be in a part");
            return Err(Error::line(path, line, what));
        };
        parts[part].push((at, label, line));
    }
    if parts[0].is_empty() {
        return Err(Error::file(path, "no node is in the part train"));
    }
    let trained: BTreeSet<usize> = parts[0].iter().map(|&(_, label, _)| label).collect();
    if let Some(&(at, label, line)) =
        parts[1..].iter().flatten().find(|(_, label, _)| !trained.contains(label))
    {
        let name = &label_names[label];
        let what = format!("node {at} has the label \"{name}\", which no training node has");
        return Err(Error::line(path, line, what));
    }
    Ok(parts.map(|part| part.into_iter().map(|(at, ..)| at).collect()))
}

fn columns<'a>(path: &Path, line: usize, text: &'a str) -> Result<[&'a str; 2]> {
    let columns: Vec<&str> = text.split('\t').collect();
    let count = columns.len();
    columns.try_into().map_err(|_| {
        Error::line(path, line, format!("2 columns with a tab between were expected, not {count}"))
    })
}

fn node(path: &Path, line: usize, text: &str, nodes: usize) -> Result<usize> {
    let wrong = |what| Error::line(path, line, what);
    let at: usize =
        text.parse().map_err(|_| wrong(format!("\"{text}\" is not a node's number")))?;
    if at >= nodes {
        return Err(wrong(format!("there is no node {at}; there are {nodes}, counted from 0")));
    }
    Ok(at)
}
