//! A graph with features and labels on its nodes, from three small text files.
//!
//! `nodes.svm` (SVMlight): line n, counted from 0, is node n: a label, then `index:value` with
//! increasing indices; `#` begins a comment. The label `?` is one that is not known. Or `nodes.tsv`,
//! whose lines are a node's name, its label, and its features. `edges.tsv`: two nodes a line, and the
//! weight of the edge or its features where it has any.
//! `split.tsv`, which may be missing: `train`, `val` or `test`, and a node, a line. Any of them but the
//! first may end with .csv or .txt; columns stand between tabs, commas, semicolons or blanks, and a
//! first line may name them.

use super::opened::numbered_lines;
use crate::text::Labels;
use crate::{Error, Result, remark};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

/// What parts are called.
const PARTS: [&str; 5] = ["train", "val", "validation", "dev", "test"];

/// Features are held densely; more of them than this (1 GiB) are refused.
const MOST_FEATURES: usize = 1 << 28;

/// What the columns behind the two nodes of an edge are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EdgeColumns {
    /// One is a weight, several are features.
    #[default]
    Auto,
    /// A weight.
    Weight,
    /// Features.
    Features,
}

/// What E edges carry, in their order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Carried {
    /// A positive weight each, where they have weights.
    pub weights: Option<Vec<f64>>,
    /// `[E, width]`, row by row.
    pub features: Vec<f32>,
    /// How many features an edge has; 0 where edges have none.
    pub width: usize,
}

/// A graph whose N nodes have D features and, where it is known, a label.
#[derive(Clone, Debug, PartialEq)]
pub struct LabeledGraph {
    /// `[N, D]`, row by row.
    pub features: Vec<f32>,
    /// D: one more than the greatest index in the file.
    pub width: usize,
    /// What the nodes are called; none where they are numbers from 0.
    pub names: Option<Vec<String>>,
    /// (source, target) in order, each edge in both directions and once; a self-loop once.
    pub edges: Vec<(usize, usize)>,
    /// How many lines of edges named an edge that was there already, in either direction.
    pub repeated_edges: usize,
    /// What the edges carry.
    pub carried: Carried,
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
    /// Reads `nodes.svm` or `nodes.tsv`, `edges.tsv` and `split.tsv` of a folder, as [`LabeledGraph::read`].
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let folder = folder.path();
    /// std::fs::write(folder.join("nodes.svm"), "cat 0:1\ndog 2:0.5\n").unwrap();
    /// std::fs::write(folder.join("edges.tsv"), "0\t1\n").unwrap();
    /// std::fs::write(folder.join("split.tsv"), "train\t0\n").unwrap();
    /// let graph = regard_data::files::LabeledGraph::read_folder(folder, None, Default::default())?;
    /// assert_eq!(graph.features, [1.0, 0.0, 0.0, 0.0, 0.0, 0.5]);
    /// assert_eq!(graph.edges, [(0, 1), (1, 0)]);
    /// # Ok::<(), regard_data::Error>(())
    /// ```
    pub fn read_folder(
        folder: &Path,
        encoding: Option<&str>,
        columns: EdgeColumns,
    ) -> Result<Self> {
        let found = |stem: &str, endings: &[&str]| {
            let files = endings.iter().map(|ending| folder.join(format!("{stem}.{ending}")));
            files.clone().find(|file| file.is_file()).or(files.clone().next())
        };
        let table = ["tsv", "csv", "txt"];
        let nodes = found("nodes", &["svm", "tsv", "csv", "txt"]).unwrap_or_default();
        let edges = found("edges", &table).unwrap_or_default();
        let split = found("split", &table).filter(|file| file.is_file());
        Self::read(&nodes, (&edges, columns), split.as_deref(), encoding)
    }

    /// What a node is called.
    pub fn name(&self, node: usize) -> String {
        let name = self.names.as_ref().and_then(|names| names.get(node));
        name.cloned().unwrap_or_else(|| node.to_string())
    }

    /// The node that is called so.
    pub fn node(&self, name: &str) -> Option<usize> {
        match &self.names {
            Some(names) => names.iter().position(|known| known == name),
            None => name.parse().ok().filter(|&node| node < self.labels.len()),
        }
    }

    /// Reads three files, plain or gzip, in UTF-8 or the encoding named; without the one of the parts no
    /// node is in any. Refuses indices that do not increase, two nodes of one name, an edge to a node that
    /// is not there or whose weight is not positive, a node in two parts or without a known label in any, a label
    /// that no node of the training part has, and an empty training part.
    pub fn read(
        nodes: &Path,
        edges: (&Path, EdgeColumns),
        split: Option<&Path>,
        encoding: Option<&str>,
    ) -> Result<Self> {
        let is_table = nodes.extension().is_none_or(|ending| ending != "svm");
        let read =
            if is_table { Nodes::table(nodes, encoding) } else { Nodes::read(nodes, encoding) };
        let Nodes { features, width, labels, label_names, names } = read?;
        let known = Known::new(labels.len(), names.as_deref());
        let ReadEdges { edges, repeated: repeated_edges, carried } =
            read_edges(edges, &known, encoding)?;
        let [train, validation, test] = match split {
            Some(split) => read_split(split, &labels, &label_names, &known, encoding)?,
            None => Default::default(),
        };
        Ok(Self {
            features,
            width,
            names,
            edges,
            repeated_edges,
            carried,
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
    names: Option<Vec<String>>,
}

impl Nodes {
    /// Lines of a name, a label and features, with a first line that names them or without.
    fn table(path: &Path, encoding: Option<&str>) -> Result<Self> {
        let lines = numbered_lines(path, encoding)?;
        let between = separator(&lines);
        let mut rows: Vec<(usize, Vec<&str>)> =
            lines.iter().map(|(line, text)| (*line, between.cells(text))).collect();
        let is_number = |cell: &&str| cell.parse::<f32>().is_ok();
        // Features may be called by numbers, as pandas does; then the label's column says it.
        let is_title = |label: &str| {
            let titles = ["label", "class"];
            titles.contains(&&label.to_ascii_lowercase()[..])
                && rows.iter().skip(1).all(|(_, cells)| cells.get(1) != Some(&label))
        };
        let names_columns = |cells: &[&str]| {
            cells.len() > 2 && (!cells[2..].iter().any(is_number) || is_title(cells[1]))
        };
        if rows.len() > 1 && rows.first().is_some_and(|(_, cells)| names_columns(cells)) {
            remark_header(path, &rows.remove(0).1);
        }
        let width = rows.first().map_or(0, |(_, cells)| cells.len());
        let (mut names, mut labels, mut features) = (Vec::new(), Vec::new(), Vec::new());
        let mut seen = HashMap::new();
        for (line, cells) in &rows {
            let wrong = |what: String| Error::line(path, *line, what);
            if cells.len() != width || width < 3 {
                let what = "a node's name, its label and its features were expected";
                return Err(wrong(format!("{what}, {} columns are there", cells.len())));
            }
            if let Some(first) = seen.insert(cells[0].to_string(), *line) {
                return Err(wrong(format!(
                    "the node {} is there already, in line {first}",
                    cells[0]
                )));
            }
            names.push(cells[0].to_string());
            labels.push((cells[1] != "?").then(|| cells[1].to_string()));
            for cell in &cells[2..] {
                let number = cell.parse::<f32>().ok().filter(|number| number.is_finite());
                features.push(number.ok_or_else(|| wrong(format!("\"{cell}\" is not a number")))?);
            }
        }
        if rows.is_empty() {
            return Err(Error::file(path, "it has no nodes"));
        }
        let known = Labels::in_order(labels.iter().flatten().map(String::as_str));
        let labels = labels.iter().map(|name| known.id(name.as_ref()?)).collect();
        // Numbers from 0, in their order, are what nodes are called anyhow.
        let plain = names.iter().enumerate().all(|(at, name)| *name == at.to_string());
        let names = (!plain).then_some(names);
        Ok(Self { features, width: width - 2, labels, label_names: known.into(), names })
    }

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
        Ok(Self { features, width, labels, label_names, names: None })
    }
}

/// What stands between columns.
#[derive(Clone, Copy)]
enum Between {
    Character(char),
    Blanks,
}

impl Between {
    fn cells(self, line: &str) -> Vec<&str> {
        match self {
            Self::Character(character) => line.split(character).map(str::trim).collect(),
            Self::Blanks => line.split_whitespace().collect(),
        }
    }
}

/// What stands between the columns of a file, by its first line.
fn separator(lines: &[(usize, String)]) -> Between {
    let first = lines.first().map_or("", |(_, text)| text);
    let found = ['\t', ',', ';'].into_iter().find(|&character| first.contains(character));
    match found {
        Some(character) => Between::Character(character),
        None if first.trim().contains(char::is_whitespace) => Between::Blanks,
        None => Between::Character('\t'),
    }
}

fn remark_header(path: &Path, cells: &[&str]) {
    let (path, columns) = (path.display(), cells.join(", "));
    remark(format!("{path}: line 1 names the columns ({columns}); it is not read as data"));
}

/// The nodes there are, by what they are called.
pub(super) struct Known<'a> {
    count: usize,
    names: Option<HashMap<&'a str, usize>>,
    /// What they are: nodes or graphs.
    thing: &'static str,
}

impl<'a> Known<'a> {
    fn new(count: usize, names: Option<&'a [String]>) -> Self {
        let places = |names: &'a [String]| names.iter().map(String::as_str).zip(0..).collect();
        Self { count, names: names.map(places), thing: "node" }
    }

    /// Graphs that are called so.
    pub(super) fn graphs(names: &'a [String]) -> Self {
        Self { thing: "graph", ..Self::new(names.len(), Some(names)) }
    }

    fn find(&self, name: &str) -> Option<usize> {
        match &self.names {
            Some(names) => names.get(name).copied(),
            None => name.parse().ok().filter(|&node| node < self.count),
        }
    }

    /// A node of a line; refuses one that is not there.
    fn node(&self, path: &Path, line: usize, name: &str) -> Result<usize> {
        self.find(name).ok_or_else(|| {
            let count = self.count;
            let what = match (&self.names, name.parse::<usize>()) {
                (Some(_), _) => format!("there is no {} \"{name}\" among {count}", self.thing),
                (None, Ok(at)) => {
                    format!("there is no node {at}; there are {count}, counted from 0")
                }
                (None, Err(_)) => format!("\"{name}\" is not a node's number"),
            };
            Error::line(path, line, what)
        })
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

/// The edges in both directions, how many were repeated, and what they carry.
struct ReadEdges {
    edges: Vec<(usize, usize)>,
    repeated: usize,
    carried: Carried,
}

/// What stands behind the two nodes of an edge, in which line, and whether that line is the edge's own
/// or that of the same edge the other way.
struct Found {
    numbers: Vec<f64>,
    line: usize,
    own: bool,
}

fn read_edges(
    (path, columns): (&Path, EdgeColumns),
    known: &Known,
    encoding: Option<&str>,
) -> Result<ReadEdges> {
    let lines = numbered_lines(path, encoding)?;
    let between = separator(&lines);
    let mut found: BTreeMap<(usize, usize), Found> = BTreeMap::new();
    let (mut repeated, mut width) = (0, None);
    for (line, text) in &lines {
        let line = *line;
        let cells = between.cells(text);
        let is_header = line == 1
            && lines.len() > 1
            && cells.len() > 1
            && cells.iter().all(|cell| known.find(cell).is_none() && cell.parse::<f64>().is_err());
        if is_header {
            remark_header(path, &cells);
            continue;
        }
        let [from, to, more @ ..] = &cells[..] else {
            return Err(two_columns(path, line, cells.len()));
        };
        let wide = *width.get_or_insert(more.len());
        if more.len() != wide {
            let what = format!("{} columns; the lines before have {}", cells.len(), wide + 2);
            return Err(Error::line(path, line, what));
        }
        let [from, to] = [known.node(path, line, from)?, known.node(path, line, to)?];
        let numbers = carried_numbers(path, line, more, columns)?;
        if let Some(first) = found.get(&(from, to)) {
            // The other way it may carry something else.
            repeated += usize::from(first.numbers == numbers);
            if first.own && first.numbers != numbers {
                let what = format!(
                    "this edge is there already, in line {}, and carries other \
                                    numbers there",
                    first.line
                );
                return Err(Error::line(path, line, what));
            }
        }
        let other = Found { numbers: numbers.clone(), line, own: false };
        found.insert((from, to), Found { numbers, line, own: true });
        found.entry((to, from)).or_insert(other);
    }
    let carried = carried(path, &found, width.unwrap_or(0), columns);
    let path = path.display();
    if repeated > 0 {
        remark(repeated_edges(&path, repeated));
    }
    let edges: Vec<(usize, usize)> = found.into_keys().collect();
    let attached: BTreeSet<usize> = edges.iter().map(|&(from, _)| from).collect();
    let alone = known.count - attached.len();
    if alone > 0 {
        remark(format!(
            "{path}: {alone} of {} nodes have no edge; with `model.self_loops` each sees itself alone",
            known.count
        ));
    }
    Ok(ReadEdges { edges, repeated, carried })
}

/// Whether so many columns are a weight.
fn is_weight(columns: EdgeColumns, width: usize) -> bool {
    columns == EdgeColumns::Weight || (columns == EdgeColumns::Auto && width == 1)
}

/// The numbers of a line behind the two nodes. Refuses what is none, and a weight that is not positive.
fn carried_numbers(
    path: &Path,
    line: usize,
    cells: &[&str],
    columns: EdgeColumns,
) -> Result<Vec<f64>> {
    let wrong = |what: String| Err(Error::line(path, line, what));
    let weight = is_weight(columns, cells.len());
    if columns == EdgeColumns::Weight && cells.len() != 1 {
        return wrong(format!(
            "a weight behind two nodes was expected, not {} columns",
            cells.len()
        ));
    }
    if columns == EdgeColumns::Features && cells.is_empty() {
        return wrong("features behind two nodes were expected, and there are none".into());
    }
    let mut numbers = Vec::new();
    for cell in cells {
        match cell.parse::<f64>().ok().filter(|x| (*x as f32).is_finite()) {
            None => return wrong(format!("\"{cell}\" is not a number that an edge could carry")),
            Some(number) if weight && number as f32 <= 0.0 => {
                return wrong(format!(
                    "this edge weighs {cell}; a weight is a positive number, and an edge that weighs \
                     nothing is left out"
                ));
            }
            Some(number) => numbers.push(number),
        }
    }
    Ok(numbers)
}

/// What edges carry, as they are used; says how.
fn carried(
    path: &Path,
    found: &BTreeMap<(usize, usize), Found>,
    width: usize,
    columns: EdgeColumns,
) -> Carried {
    let all = || found.values().flat_map(|one| one.numbers.iter().copied());
    let path = path.display();
    if width == 0 {
        return Carried::default();
    }
    if !is_weight(columns, width) {
        let features = all().map(|number| number as f32).collect();
        remark(format!("{path}: edges have {width} features each, which enter the scores"));
        return Carried { weights: None, features, width };
    }
    let weights: Vec<f64> = all().collect();
    match weights.iter().all(|&weight| weight == 1.0) {
        true => {
            remark(format!("{path}: every edge weighs 1, as edges without a weight do"));
            Carried::default()
        }
        false => {
            remark(format!(
                "{path}: edges have weights, whose logarithms are added to the scores: softmax and \
                 the mean are multiplied by them (a self-loop weighs 1)"
            ));
            Carried { weights: Some(weights), ..Carried::default() }
        }
    }
}

fn two_columns(path: &Path, line: usize, count: usize) -> Error {
    Error::line(path, line, format!("2 columns with a tab between were expected, not {count}"))
}

/// The nodes, or graphs, of the parts train, validation and test.
pub(super) fn read_split(
    path: &Path,
    labels: &[Option<usize>],
    label_names: &[String],
    known: &Known,
    encoding: Option<&str>,
) -> Result<[Vec<usize>; 3]> {
    let mut parts = [const { Vec::new() }; 3];
    let mut seen = HashMap::new();
    let lines = numbered_lines(path, encoding)?;
    let between = separator(&lines);
    for (line, text) in &lines {
        let line = *line;
        let cells = between.cells(text);
        let [part, named] = cells[..] else { return Err(two_columns(path, line, cells.len())) };
        if line == 1 && lines.len() > 1 && known.find(named).is_none() && !PARTS.contains(&part) {
            remark_header(path, &cells);
            continue;
        }
        let part = match part {
            "train" => 0,
            "val" | "validation" | "dev" => 1,
            "test" => 2,
            other => {
                let what = format!("\"{other}\" is not a part; train, val or test was expected");
                return Err(Error::line(path, line, what));
            }
        };
        let at = known.node(path, line, named)?;
        if let Some(first) = seen.insert(at, line) {
            let thing = known.thing;
            let what = format!("{thing} {named} is in a part already, by line {first}");
            return Err(Error::line(path, line, what));
        }
        let Some(label) = labels[at] else {
            let thing = known.thing;
            let what = format!("{thing} {named} has no label, so it cannot be in a part");
            return Err(Error::line(path, line, what));
        };
        parts[part].push((at, label, line, named));
    }
    if parts[0].is_empty() {
        return Err(Error::file(path, format!("no {} is in the part train", known.thing)));
    }
    let trained: BTreeSet<usize> = parts[0].iter().map(|&(_, label, ..)| label).collect();
    if let Some(&(_, label, line, named)) =
        parts[1..].iter().flatten().find(|(_, label, ..)| !trained.contains(label))
    {
        let name = &label_names[label];
        let thing = known.thing;
        let what =
            format!("{thing} {named} has the label \"{name}\", which no training {thing} has");
        return Err(Error::line(path, line, what));
    }
    Ok(parts.map(|part| part.into_iter().map(|(at, ..)| at).collect()))
}

/// What is said of edges that are named again.
pub(super) fn repeated_edges(path: &std::path::Display, lines: usize) -> String {
    match lines {
        1 => format!("{path}: 1 line names an edge that was there before; it counts once"),
        _ => format!("{path}: {lines} lines name edges that were there before; each counts once"),
    }
}
