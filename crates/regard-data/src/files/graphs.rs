//! Graphs with one label each, as the TU datasets have them: files of one name, a line for each thing.
//!
//! `NAME_graph_indicator.txt`: the graph of each node, both counted from 1. `NAME_A.txt`: two nodes a
//! line, an edge. `NAME_graph_labels.txt`: the label of each graph. What may be missing:
//! `NAME_node_labels.txt` and `NAME_node_attributes.txt`, a line for each node; `NAME_edge_labels.txt`,
//! `NAME_edge_attributes.txt` and `NAME_edge_weights.txt`, a line for each edge; `split.tsv` (train, val or
//! test, and a graph's number). Morris and others, "TUDataset" (2020).

use super::graph::{Carried, Known, read_split, repeated_edges};
use super::lines::counted;
use super::opened::numbered_lines;
use crate::text::Labels;
use crate::{Error, Result, remark};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// What the name of the file ends with that says which graph a node belongs to.
const INDICATOR: &str = "_graph_indicator.txt";

/// Features are held densely; more of them than this (1 GiB) are refused.
const MOST_FEATURES: usize = 1 << 28;

/// One of several graphs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WholeGraph {
    /// Its label.
    pub label: String,
    /// How many nodes it has.
    pub nodes: usize,
    /// nodes × D numbers, row by row.
    pub features: Vec<f32>,
    /// The label of each node, as a place in [`LabeledGraphs::node_labels`]; none where nodes have none.
    pub kinds: Vec<usize>,
    /// (source, target), in both directions, from 0 within the graph.
    pub edges: Vec<(usize, usize)>,
    /// What the edges carry.
    pub carried: Carried,
}

/// Graphs with a label each.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LabeledGraphs {
    /// The graphs, of which the first is called 1.
    pub graphs: Vec<WholeGraph>,
    /// D: how many features a node has.
    pub width: usize,
    /// The labels that nodes have; each is a feature.
    pub node_labels: Vec<String>,
    /// The graphs to learn from, to choose a model by, and to measure it on; none where no file says so.
    pub parts: Option<[Vec<usize>; 3]>,
}

impl LabeledGraphs {
    /// Whether a folder has graphs with a label each.
    pub fn are_in(folder: &Path) -> bool {
        indicators(folder).is_ok_and(|found| !found.is_empty())
    }

    /// Reads the files of a folder. Refuses files of several names, files of different lengths, an edge
    /// that leads from one graph to another, and a graph without a node.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let folder = folder.path();
    /// let write = |name: &str, text| std::fs::write(folder.join(name), text).unwrap();
    /// write("AB_graph_indicator.txt", "1\n1\n2\n");
    /// write("AB_graph_labels.txt", "yes\nno\n");
    /// write("AB_A.txt", "1, 2\n2, 1\n");
    /// write("AB_node_labels.txt", "0\n7\n7\n");
    /// let all = regard_data::files::LabeledGraphs::read_folder(folder, None)?;
    /// assert_eq!(all.graphs[0].edges, [(0, 1), (1, 0)]);
    /// assert_eq!(all.graphs[0].features, [1.0, 0.0, 0.0, 1.0]);
    /// assert_eq!((&all.graphs[1].label[..], all.graphs[1].nodes), ("no", 1));
    /// # Ok::<(), regard_data::Error>(())
    /// ```
    pub fn read_folder(folder: &Path, encoding: Option<&str>) -> Result<Self> {
        let found = indicators(folder)?;
        let [name] = &found[..] else {
            let what = format!("one file *{INDICATOR} was expected, {} are there", found.len());
            return Err(Error::file(folder, what));
        };
        let files = Files { folder, name, encoding };
        let places = Places::read(&files)?;
        let labels = files.required("graph_labels")?;
        let label_path = files.path("graph_labels");
        if labels.len() != places.sizes.len() {
            let (graphs, lines) = (places.sizes.len(), counted(labels.len(), "line"));
            let what = format!("it has {lines}; the nodes belong to {graphs} graphs");
            return Err(Error::file(&label_path, what));
        }
        let mut graphs = vec![WholeGraph::default(); labels.len()];
        for (at, (line, label)) in labels.into_iter().enumerate() {
            if label.is_empty() {
                return Err(Error::line(&label_path, line, "there is no label"));
            }
            (graphs[at].label, graphs[at].nodes) = (label, places.sizes[at]);
        }
        read_edges(&files, &places, &mut graphs)?;
        let (width, node_labels) = read_nodes(&files, &places, &mut graphs)?;
        let parts = parts(&files, &graphs)?;
        Ok(Self { graphs, width, node_labels, parts })
    }

    /// Divides each node's features by the sum of their sizes; a node without features keeps its zeros.
    pub fn normalize_rows(&mut self) {
        for row in self.graphs.iter_mut().flat_map(|g| g.features.chunks_exact_mut(self.width)) {
            let sum: f32 = row.iter().map(|value| value.abs()).sum();
            if sum > 0.0 {
                row.iter_mut().for_each(|value| *value /= sum);
            }
        }
    }
}

/// The names before the ending of the file that says which graph a node belongs to.
fn indicators(folder: &Path) -> Result<Vec<String>> {
    let listed = std::fs::read_dir(folder).map_err(|error| Error::file(folder, error))?;
    let mut found = Vec::new();
    for entry in listed {
        let entry = entry.map_err(|error| Error::file(folder, error))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        found.extend(name.strip_suffix(INDICATOR).map(str::to_string));
    }
    found.sort();
    Ok(found)
}

/// The files of one name.
struct Files<'a> {
    folder: &'a Path,
    name: &'a str,
    encoding: Option<&'a str>,
}

type Lines = Vec<(usize, String)>;

impl Files<'_> {
    fn path(&self, what: &str) -> PathBuf {
        self.folder.join(format!("{}_{what}.txt", self.name))
    }

    fn required(&self, what: &str) -> Result<Lines> {
        numbered_lines(&self.path(what), self.encoding)
    }

    /// A file that may be missing; refuses one that has not as many lines as there are things.
    fn optional(&self, what: &str, count: usize, things: &str) -> Result<Option<Lines>> {
        let path = self.path(what);
        if !path.is_file() {
            return Ok(None);
        }
        let lines = self.required(what)?;
        if lines.len() != count {
            let lines = counted(lines.len(), "line");
            let what = format!("it has {lines}; there are {count} {things}");
            return Err(Error::file(&path, what));
        }
        Ok(Some(lines))
    }
}

/// The cells of a line, with commas or blanks between.
fn cells(line: &str) -> Vec<&str> {
    match line.contains(',') {
        true => line.split(',').map(str::trim).collect(),
        false => line.split_whitespace().collect(),
    }
}

/// The numbers of a line. Refuses what is none, and what is too large to compute with.
fn numbers(path: &Path, line: usize, text: &str) -> Result<Vec<f64>> {
    let number = |cell: &str| {
        let number = cell.parse::<f64>().ok().filter(|x| (*x as f32).is_finite());
        number.ok_or_else(|| Error::line(path, line, format!("\"{cell}\" is not a number")))
    };
    cells(text).into_iter().map(number).collect()
}

/// Where nodes are: the graph of each and its place there, from 0; and how many nodes graphs have.
struct Places {
    of_node: Vec<(usize, usize)>,
    sizes: Vec<usize>,
}

impl Places {
    fn read(files: &Files) -> Result<Self> {
        let path = files.path("graph_indicator");
        let lines = files.required("graph_indicator")?;
        let (mut of_node, mut sizes) = (Vec::new(), Vec::new());
        for (line, text) in &lines {
            let graph =
                text.trim().parse::<usize>().ok().filter(|&n| (1..=lines.len()).contains(&n));
            let Some(graph) = graph else {
                let what = format!("\"{text}\" is no graph's number, counted from 1");
                return Err(Error::line(&path, *line, what));
            };
            if sizes.len() < graph {
                sizes.resize(graph, 0);
            }
            of_node.push((graph - 1, sizes[graph - 1]));
            sizes[graph - 1] += 1;
        }
        if let Some(empty) = sizes.iter().position(|&size| size == 0) {
            return Err(Error::file(&path, format!("graph {} has no nodes", empty + 1)));
        }
        match sizes.is_empty() {
            true => Err(Error::file(&path, "it has no nodes")),
            false => Ok(Self { of_node, sizes }),
        }
    }
}

/// What an edge carries: a weight, and features.
#[derive(Clone, Debug, Default, PartialEq)]
struct Edge {
    weight: Option<f64>,
    features: Vec<f32>,
    line: usize,
    /// Whether a line says so, or only that of the same edge the other way.
    own: bool,
}

/// The edges, by their nodes, counted from 0 over all graphs.
type Edges = BTreeMap<(usize, usize), Edge>;

fn read_edges(files: &Files, places: &Places, graphs: &mut [WholeGraph]) -> Result<()> {
    let path = files.path("A");
    let lines = files.required("A")?;
    let mut carried = edge_lines(files, lines.len())?.into_iter();
    let mut edges = Edges::new();
    let mut repeated = 0;
    for (line, text) in &lines {
        let line = *line;
        let wrong = |what: String| Error::line(&path, line, what);
        let ends = edge_ends(text, places.of_node.len()).map_err(wrong)?;
        let [from, to] = ends.map(|node| places.of_node[node].0 + 1);
        if from != to {
            return Err(wrong(format!("this edge leads from graph {from} to graph {to}")));
        }
        let edge = Edge { line, own: true, ..carried.next().unwrap_or_default() };
        let [from, to] = ends;
        if let Some(first) = edges.get(&(from, to)).filter(|first| first.own) {
            repeated += 1;
            if (&first.weight, &first.features) != (&edge.weight, &edge.features) {
                let first = first.line;
                let what = format!(
                    "this edge is there already, in line {first}, and carries other numbers there"
                );
                return Err(wrong(what));
            }
        }
        edges.entry((to, from)).or_insert(Edge { own: false, ..edge.clone() });
        edges.insert((from, to), edge);
    }
    let path = path.display();
    if repeated > 0 {
        remark(repeated_edges(&path, repeated));
    }
    let one_way = edges.values().filter(|edge| !edge.own).count();
    if one_way > 0 {
        remark(format!(
            "{path}: {one_way} edges stand there one way only; attention goes both ways"
        ));
    }
    for (&(from, to), edge) in &edges {
        let (graph, from) = places.of_node[from];
        let own = &mut graphs[graph];
        own.edges.push((from, places.of_node[to].1));
        own.carried.width = edge.features.len();
        own.carried.features.extend(&edge.features);
        own.carried.weights = match (own.carried.weights.take(), edge.weight) {
            (None, None) => None,
            (all, weight) => Some(all.into_iter().flatten().chain(weight).collect()),
        };
    }
    // A graph without an edge carries what the others do: nothing, of the same kind.
    if let Some(first) = edges.values().next() {
        for graph in graphs.iter_mut().filter(|graph| graph.edges.is_empty()) {
            graph.carried.width = first.features.len();
            graph.carried.weights = first.weight.map(|_| Vec::new());
        }
    }
    Ok(())
}

/// The two nodes of an edge, from 0, or what is wrong.
fn edge_ends(text: &str, nodes: usize) -> std::result::Result<[usize; 2], String> {
    let cells = cells(text);
    let [from, to] = cells[..] else {
        return Err(format!("two nodes with a comma between were expected, not {}", cells.len()));
    };
    let node = |cell: &str| match cell.parse::<usize>() {
        Ok(node) if (1..=nodes).contains(&node) => Ok(node - 1),
        Ok(node) => Err(format!("there is no node {node}; there are {nodes}, counted from 1")),
        Err(_) => Err(format!("\"{cell}\" is not a node's number")),
    };
    Ok([node(from)?, node(to)?])
}

/// What the lines of edges carry: nothing, or something for each.
fn edge_lines(files: &Files, count: usize) -> Result<Vec<Edge>> {
    let mut all = vec![Edge::default(); count];
    let mut any = false;
    if let Some(lines) = files.optional("edge_labels", count, "edges")? {
        any = true;
        let known = Labels::in_order(lines.iter().map(|(_, text)| text.trim()));
        // Each edge may be there the other way round too.
        if known.len().saturating_mul(2 * count) > MOST_FEATURES {
            let what = format!(
                "{count} edges of {} labels, a feature each; at most {MOST_FEATURES} are held",
                known.len()
            );
            return Err(Error::file(files.path("edge_labels"), what));
        }
        for (edge, (_, text)) in all.iter_mut().zip(&lines) {
            edge.features = one_hot(known.id(text.trim()), known.len());
        }
    }
    if let Some(lines) = files.optional("edge_attributes", count, "edges")? {
        any = true;
        let path = files.path("edge_attributes");
        for (own, edge) in rows(&path, &lines)?.into_iter().zip(&mut all) {
            edge.features.extend(own);
        }
    }
    if let Some(lines) = files.optional("edge_weights", count, "edges")? {
        any = true;
        let path = files.path("edge_weights");
        for ((line, text), edge) in lines.iter().zip(&mut all) {
            let weight = match numbers(&path, *line, text)?[..] {
                [weight] if weight as f32 > 0.0 => weight,
                _ => {
                    let what =
                        format!("\"{text}\" is not the weight of an edge, a positive number");
                    return Err(Error::line(&path, *line, what));
                }
            };
            edge.weight = Some(weight);
        }
    }
    Ok(if any { all } else { Vec::new() })
}

fn one_hot(place: Option<usize>, count: usize) -> Vec<f32> {
    (0..count).map(|at| if Some(at) == place { 1.0 } else { 0.0 }).collect()
}

/// Rows of numbers, each as long as the first.
fn rows(path: &Path, lines: &Lines) -> Result<Vec<Vec<f32>>> {
    let mut all: Vec<Vec<f32>> = Vec::with_capacity(lines.len());
    for (line, text) in lines {
        let row: Vec<f32> = numbers(path, *line, text)?.into_iter().map(|x| x as f32).collect();
        if let Some(first) = all.first()
            && first.len() != row.len()
        {
            let what = format!("{} numbers; the first line has {}", row.len(), first.len());
            return Err(Error::line(path, *line, what));
        }
        all.push(row);
    }
    Ok(all)
}

/// Gives the nodes their features; how many there are, and what the labels of nodes are called.
fn read_nodes(
    files: &Files,
    places: &Places,
    graphs: &mut [WholeGraph],
) -> Result<(usize, Vec<String>)> {
    let count = places.of_node.len();
    let labels = files.optional("node_labels", count, "nodes")?;
    let known = Labels::in_order(labels.iter().flatten().map(|(_, text)| text.trim()));
    let attributes = files.optional("node_attributes", count, "nodes")?;
    let path = files.path("node_attributes");
    let attributes = attributes.map(|lines| rows(&path, &lines)).transpose()?;
    let wide = attributes.as_ref().and_then(|rows| rows.first()).map_or(0, Vec::len);
    let mut width = known.len() + wide;
    if width.saturating_mul(count) > MOST_FEATURES {
        let what = format!("{count} nodes of {width} features; at most {MOST_FEATURES} are held");
        return Err(Error::file(files.folder, what));
    }
    if width == 0 {
        width = 1;
        let folder = files.folder.display();
        remark(format!(
            "{folder}: nodes have neither labels nor attributes; each has the number of its edges as its \
             feature"
        ));
    }
    for graph in graphs.iter_mut() {
        graph.features = vec![0.0; graph.nodes * width];
        if known.is_empty() && attributes.is_none() {
            graph.edges.iter().for_each(|&(_, target)| graph.features[target] += 1.0);
        }
        if labels.is_some() {
            graph.kinds = vec![0; graph.nodes];
        }
    }
    for (node, &(graph, at)) in places.of_node.iter().enumerate() {
        let own = &mut graphs[graph];
        let row = &mut own.features[at * width..(at + 1) * width];
        if let Some(kind) = labels.as_ref().and_then(|lines| known.id(lines[node].1.trim())) {
            own.kinds[at] = kind;
            row[kind] = 1.0;
        }
        if let Some(rows) = &attributes {
            row[known.len()..].copy_from_slice(&rows[node]);
        }
    }
    Ok((width, known.into()))
}

/// The parts that `split.tsv` names, or `.csv` or `.txt`, where one is there.
fn parts(files: &Files, graphs: &[WholeGraph]) -> Result<Option<[Vec<usize>; 3]>> {
    let named = ["tsv", "csv", "txt"].map(|ending| files.folder.join(format!("split.{ending}")));
    let Some(path) = named.into_iter().find(|path| path.is_file()) else { return Ok(None) };
    let known = Labels::in_order(graphs.iter().map(|graph| &graph.label[..]));
    let labels: Vec<Option<usize>> = graphs.iter().map(|graph| known.id(&graph.label)).collect();
    let names: Vec<String> = (1..=graphs.len()).map(|number| number.to_string()).collect();
    let called = Known::graphs(&names);
    read_split(&path, &labels, known.names(), &called, files.encoding).map(Some)
}
