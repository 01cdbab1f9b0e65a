//! The edges of a graph, by query and by key.

use crate::error::{Error, ensure};

/// A graph as a mask: query i may attend to key j where there is an edge (i, j).
///
/// An edge given twice says nothing new, unless the graph was made by [`Edges::repeated`]. Kept in
/// compressed rows (by query, keys ascending) and in compressed columns (by key), because backward walks
/// it both ways.
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
    /// Where an edge is there more than once, for each edge: the key that dropout is drawn for.
    draws: Option<Vec<u32>>,
    /// Their copy on a GPU, once one has been asked for.
    #[cfg(feature = "cuda")]
    pub(crate) on_gpu: crate::cuda::EdgesOnGpu,
}

impl Edges {
    /// From (query, key) pairs in any order; refuses a pair beyond `queries` or `keys`.
    ///
    /// ```
    /// use regard_kernels::Edges;
    /// let edges = Edges::new(3, 2, &[(0, 1), (2, 0), (2, 1)])?;
    /// assert_eq!(edges.len(), 3);
    /// assert!(Edges::new(3, 2, &[(0, 2)]).is_err());
    /// # Ok::<(), regard_kernels::Error>(())
    /// ```
    pub fn new(queries: usize, keys: usize, pairs: &[(usize, usize)]) -> Result<Self, Error> {
        let mut sorted = sorted(queries, keys, pairs)?;
        sorted.dedup();
        Ok(Self::of_sorted(queries, keys, sorted, None))
    }

    /// The same where an edge that is given n times counts n times, as in a multigraph: its softmax has n
    /// equal terms, and dropout draws for each. What is one number a pair does not go with such edges: other
    /// masks, biases, dense weights, a chosen key.
    /// Refuses a pair beyond `queries` or `keys`.
    ///
    /// ```
    /// use regard_kernels::Edges;
    /// let edges = Edges::repeated(3, 3, &[(0, 1), (2, 0), (0, 1), (0, 0)])?;
    /// assert_eq!(edges.of_query(0), &[0, 1, 1]);
    /// assert!(edges.has_repeats());
    /// # Ok::<(), regard_kernels::Error>(())
    /// ```
    pub fn repeated(queries: usize, keys: usize, pairs: &[(usize, usize)]) -> Result<Self, Error> {
        let sorted = sorted(queries, keys, pairs)?;
        let draws = draws(keys, &sorted)?;
        Ok(Self::of_sorted(queries, keys, sorted, draws))
    }

    /// As many edges as a graph has whose lists lie on a GPU: what stands for it in a specification. By itself it
    /// has no edge at any query.
    #[doc(hidden)]
    pub fn elsewhere(
        queries: usize,
        keys: usize,
        len: usize,
        has_repeats: bool,
    ) -> Result<Self, Error> {
        check_sizes(queries, keys, len)?;
        Ok(Self {
            row_start: vec![0; queries + 1],
            key: vec![0; len],
            column_start: vec![0; keys + 1],
            query: vec![0; len],
            position: vec![0; len],
            draws: has_repeats.then(|| vec![0; len]),
            #[cfg(feature = "cuda")]
            on_gpu: Default::default(),
        })
    }

    fn of_sorted(
        queries: usize,
        keys: usize,
        sorted: Vec<(u32, u32)>,
        draws: Option<Vec<u32>>,
    ) -> Self {
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
        Self {
            row_start,
            key,
            column_start,
            query,
            position,
            draws,
            #[cfg(feature = "cuda")]
            on_gpu: Default::default(),
        }
    }

    /// How many edges there are.
    ///
    /// ```
    /// use regard_kernels::Edges;
    /// let edges = Edges::new(3, 2, &[(0, 1), (2, 0), (2, 1)])?;
    /// assert_eq!(edges.len(), 3);
    /// # Ok::<(), regard_kernels::Error>(())
    /// ```
    pub fn len(&self) -> usize {
        self.key.len()
    }

    /// Whether there is no edge at all.
    ///
    /// ```
    /// use regard_kernels::Edges;
    /// let edges = Edges::new(3, 2, &[(0, 1), (2, 0), (2, 1)])?;
    /// assert!(!edges.is_empty() && Edges::new(3, 2, &[])?.is_empty());
    /// # Ok::<(), regard_kernels::Error>(())
    /// ```
    pub fn is_empty(&self) -> bool {
        self.key.is_empty()
    }

    /// How many queries the graph was made for.
    ///
    /// ```
    /// use regard_kernels::Edges;
    /// let edges = Edges::new(3, 2, &[(0, 1), (2, 0), (2, 1)])?;
    /// assert_eq!(edges.queries(), 3);
    /// # Ok::<(), regard_kernels::Error>(())
    /// ```
    pub fn queries(&self) -> usize {
        self.row_start.len() - 1
    }

    /// How many keys the graph was made for.
    ///
    /// ```
    /// use regard_kernels::Edges;
    /// let edges = Edges::new(3, 2, &[(0, 1), (2, 0), (2, 1)])?;
    /// assert_eq!(edges.keys(), 2);
    /// # Ok::<(), regard_kernels::Error>(())
    /// ```
    pub fn keys(&self) -> usize {
        self.column_start.len() - 1
    }

    /// The keys of a query, ascending.
    ///
    /// ```
    /// use regard_kernels::Edges;
    /// let edges = Edges::new(3, 2, &[(0, 1), (2, 0), (2, 1)])?;
    /// assert_eq!(edges.of_query(2), &[0, 1]);
    /// # Ok::<(), regard_kernels::Error>(())
    /// ```
    pub fn of_query(&self, i: usize) -> &[u32] {
        &self.key[self.row_start[i]..self.row_start[i + 1]]
    }

    /// Where the edges of each query begin among all edges, and, last, where they end.
    ///
    /// ```
    /// use regard_kernels::Edges;
    /// let edges = Edges::new(3, 2, &[(0, 1), (2, 0), (2, 1)])?;
    /// assert_eq!(edges.starts(), &[0, 1, 1, 3]);
    /// # Ok::<(), regard_kernels::Error>(())
    /// ```
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

    /// Whether an edge is there more than once.
    ///
    /// ```
    /// use regard_kernels::Edges;
    /// let edges = Edges::new(3, 2, &[(0, 1), (2, 0), (2, 1)])?;
    /// assert!(!edges.has_repeats());
    /// assert!(Edges::repeated(1, 1, &[(0, 0), (0, 0)])?.has_repeats());
    /// # Ok::<(), regard_kernels::Error>(())
    /// ```
    pub fn has_repeats(&self) -> bool {
        self.draws.is_some()
    }

    /// For each edge, the key that dropout is drawn for: its own, and for the n-th more of the same edge a key
    /// that is n times all keys further.
    pub(crate) fn draws(&self) -> &[u32] {
        self.draws.as_deref().unwrap_or(&self.key)
    }
}

fn check_sizes(queries: usize, keys: usize, len: usize) -> Result<(), Error> {
    let most = u32::MAX as usize;
    ensure!(
        queries < most && keys < most && len < most,
        "a graph of {queries} queries, {keys} keys and {len} edges: each stays below 2³²"
    );
    Ok(())
}

fn sorted(queries: usize, keys: usize, pairs: &[(usize, usize)]) -> Result<Vec<(u32, u32)>, Error> {
    check_sizes(queries, keys, pairs.len())?;
    if let Some((n, (i, j))) =
        pairs.iter().enumerate().find(|(_, (i, j))| *i >= queries || *j >= keys)
    {
        return Err(Error::new(format!(
            "edge {n} joins query {i} to key {j}; there are {queries} queries and {keys} keys"
        )));
    }
    let mut sorted: Vec<(u32, u32)> = pairs.iter().map(|p| (p.0 as u32, p.1 as u32)).collect();
    sorted.sort_unstable();
    Ok(sorted)
}

/// What [`Edges::draws`] gives, where an edge is there more than once.
fn draws(keys: usize, sorted: &[(u32, u32)]) -> Result<Option<Vec<u32>>, Error> {
    if sorted.windows(2).all(|two| two[0] != two[1]) {
        return Ok(None);
    }
    let mut draws = Vec::with_capacity(sorted.len());
    let mut copies = 0;
    for (n, &(i, j)) in sorted.iter().enumerate() {
        copies = if n > 0 && sorted[n - 1] == (i, j) { copies + 1 } else { 0 };
        let draw = u32::try_from(j as usize + copies * keys).map_err(|_| {
            Error::new(format!(
                "the edge from key {j} to query {i} is there more than {copies} times; with {keys} keys it \
                 may be there {} times",
                u32::MAX as usize / keys.max(1)
            ))
        })?;
        draws.push(draw);
    }
    Ok(Some(draws))
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
