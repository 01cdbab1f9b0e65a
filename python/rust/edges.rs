//! The edges of a graph, prepared once for many calls.

use crate::array::{Block, refused};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use regard_kernels::cuda;
use std::sync::Arc;

/// Edges by query and by key.
#[pyclass(frozen, module = "regard._native")]
pub(crate) struct Edges {
    pub(crate) edges: Arc<regard_kernels::Edges>,
}

#[pymethods]
impl Edges {
    /// Of `keys[n]` → `queries[n]`; writes each edge's place among all, which are ordered by query and then by
    /// key, to `places`. One that is given twice counts once, unless they may be repeated.
    #[new]
    fn new(
        py: Python<'_>,
        sizes: (usize, usize),
        queries: Block<i64>,
        keys: Block<i64>,
        places: Block<i64>,
        repeated: bool,
    ) -> PyResult<Self> {
        // SAFETY: the caller keeps the arrays for the length of this call; `places` is fresh.
        let (queries, keys, places) =
            unsafe { (queries.slice()?, keys.slice()?, places.slice_mut()?) };
        if queries.len() != keys.len() || keys.len() != places.len() {
            return Err(PyValueError::new_err("edges have as many queries as keys"));
        }
        let edges = py.detach(|| build(sizes, queries, keys, places, repeated))?;
        Ok(Self { edges: Arc::new(edges) })
    }

    /// How many edges there are.
    fn __len__(&self) -> usize {
        self.edges.len()
    }

    /// How many queries and keys they were made for.
    #[getter]
    fn sizes(&self) -> (usize, usize) {
        (self.edges.queries(), self.edges.keys())
    }

    /// Whether an edge is there more than once.
    #[getter]
    fn has_repeats(&self) -> bool {
        self.edges.has_repeats()
    }

    /// Writes the queries and keys of all edges, in their order.
    fn pairs(&self, queries: Block<i64>, keys: Block<i64>) -> PyResult<()> {
        // SAFETY: the caller keeps the arrays for the length of this call; they are fresh.
        let (queries, keys) = unsafe { (queries.slice_mut()?, keys.slice_mut()?) };
        if queries.len() != self.edges.len() || keys.len() != self.edges.len() {
            return Err(PyValueError::new_err("there is no room for as many edges"));
        }
        let all = (0..self.edges.queries())
            .flat_map(|i| self.edges.of_query(i).iter().map(move |&j| (i as i64, i64::from(j))));
        for ((query, key), (i, j)) in queries.iter_mut().zip(keys).zip(all) {
            (*query, *key) = (i, j);
        }
        Ok(())
    }
}

/// Edges whose lists lie on a GPU; whoever made this keeps them there.
#[pyclass(frozen, module = "regard._native")]
pub(crate) struct EdgesAt {
    /// What stands for them in a specification.
    pub(crate) edges: Arc<regard_kernels::Edges>,
    pub(crate) at: cuda::EdgesAt,
}

/// Addresses of row_start, row_keys, column_start, column_queries, column_edges and row_draws.
type Addresses = (u64, u64, u64, u64, u64, Option<u64>);

#[pymethods]
impl EdgesAt {
    /// So many edges between so many queries and keys, at most `longest` of a query.
    #[new]
    fn new(
        sizes: (usize, usize),
        len: usize,
        longest: usize,
        addresses: Addresses,
    ) -> PyResult<Self> {
        let (row_start, row_keys, column_start, column_queries, column_edges, row_draws) =
            addresses;
        let has_repeats = row_draws.is_some();
        let edges = regard_kernels::Edges::elsewhere(sizes.0, sizes.1, len, has_repeats);
        let at = cuda::EdgesAt {
            row_start,
            row_keys,
            column_start,
            column_queries,
            column_edges,
            row_draws,
            longest,
        };
        Ok(Self { edges: Arc::new(edges.map_err(refused)?), at })
    }
}

fn build(
    (nq, nk): (usize, usize),
    queries: &[i64],
    keys: &[i64],
    places: &mut [i64],
    repeated: bool,
) -> PyResult<regard_kernels::Edges> {
    let index = |x: i64| usize::try_from(x).ok();
    let mut pairs = Vec::with_capacity(queries.len());
    for (n, (&query, &key)) in queries.iter().zip(keys).enumerate() {
        let (Some(i), Some(j)) = (index(query), index(key)) else {
            return Err(PyValueError::new_err(format!(
                "edge {n} joins key {key} to query {query}; places are counted from 0"
            )));
        };
        pairs.push((i, j));
    }
    let edges = match repeated {
        true => regard_kernels::Edges::repeated(nq, nk, &pairs),
        false => regard_kernels::Edges::new(nq, nk, &pairs),
    }
    .map_err(refused)?;
    // Equal edges stand side by side: each takes the next place.
    let mut taken = vec![0u32; if edges.has_repeats() { edges.len() } else { 0 }];
    for (place, &(i, j)) in places.iter_mut().zip(&pairs) {
        let of_query = edges.of_query(i);
        let at = edges.starts()[i] + of_query.partition_point(|&key| (key as usize) < j);
        *place = at as i64;
        if let Some(before) = taken.get_mut(at) {
            *place += i64::from(*before);
            *before += 1;
        }
    }
    Ok(edges)
}
