//! The edges of a graph, by query and by key.

use crate::error::{Error, ensure};

/// A graph as a mask: query i may attend to key j where there is an edge (i, j).
///
/// An edge given twice says nothing new. Kept in compressed rows (by query, keys ascending) and in
/// compressed columns (by key), because backward walks it both ways.
///
/// ```
/// use regard_kernels::Edges;
/// let edges = Edges::new(3, 3, &[(0, 1), (2, 0), (0, 1), (0, 0)])?;
/// assert_eq!(edges.len(), 3);
/// assert_eq!(edges.of_query(0), &[0, 1]);
/// # Ok::<(), regard_kernels::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Edges {
    row_start: Vec<usize>,
    key: Vec<u32>,
    column_start: Vec<usize>,
    query: Vec<u32>,
    /// Position in `key` of each entry of `query`.
    position: Vec<u32>,
}

impl Edges {
    /// From (query, key) pairs in any order; refuses a pair beyond `queries` or `keys`.
    pub fn new(queries: usize, keys: usize, pairs: &[(usize, usize)]) -> Result<Self, Error> {
        ensure!(
            queries < u32::MAX as usize
                && keys < u32::MAX as usize
                && pairs.len() < u32::MAX as usize,
            "a graph of {queries} queries, {keys} keys and {} edges: each stays below 2³²",
            pairs.len()
        );
        if let Some((n, (i, j))) =
            pairs.iter().enumerate().find(|(_, (i, j))| *i >= queries || *j >= keys)
        {
            return Err(Error::new(format!(
                "edge {n} joins query {i} to key {j}; there are {queries} queries and {keys} keys"
            )));
        }
        let mut sorted: Vec<(u32, u32)> = pairs.iter().map(|p| (p.0 as u32, p.1 as u32)).collect();
        sorted.sort_unstable();
        sorted.dedup();
        let row_start = starts(queries, sorted.iter().map(|p| p.0));
        let column_start = starts(keys, sorted.iter().map(|p| p.1));
        let mut next = column_start.clone();
        let mut query = vec![0; sorted.len()];
        let mut position = vec![0; sorted.len()];
        for (at, &(i, j)) in sorted.iter().enumerate() {
            let to = next[j as usize];
            (query[to], position[to]) = (i, at as u32);
            next[j as usize] += 1;
        }
        let key = sorted.into_iter().map(|p| p.1).collect();
        Ok(Self { row_start, key, column_start, query, position })
    }

    /// How many distinct edges there are.
    pub fn len(&self) -> usize {
        self.key.len()
    }

    /// Whether there is no edge at all.
    pub fn is_empty(&self) -> bool {
        self.key.is_empty()
    }

    /// How many queries the graph was made for.
    pub fn queries(&self) -> usize {
        self.row_start.len() - 1
    }

    /// How many keys the graph was made for.
    pub fn keys(&self) -> usize {
        self.column_start.len() - 1
    }

    /// The keys of a query, ascending.
    pub fn of_query(&self, i: usize) -> &[u32] {
        &self.key[self.row_start[i]..self.row_start[i + 1]]
    }

    /// Where the edges of each query begin among all edges, and, last, where they end.
    pub fn starts(&self) -> &[usize] {
        &self.row_start
    }

    /// By key, ascending: where the entries of each begin, the queries, and the place of each
    /// entry's edge among all edges.
    pub(crate) fn by_key(&self) -> (&[usize], &[u32], &[u32]) {
        (&self.column_start, &self.query, &self.position)
    }

    /// The keys of all queries, one query after the other.
    pub(crate) fn all_keys(&self) -> &[u32] {
        &self.key
    }
}

fn starts(n: usize, of: impl Iterator<Item = u32>) -> Vec<usize> {
    let mut starts = vec![0; n + 1];
    for x in of {
        starts[x as usize + 1] += 1;
    }
    for x in 0..n {
        starts[x + 1] += starts[x];
    }
    starts
}
