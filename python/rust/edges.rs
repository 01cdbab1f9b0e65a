//! The edges of a graph, prepared once for many calls.

use crate::array::{Block, refused};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::sync::Arc;

/// Edges by query and by key.
#[pyclass(frozen, module = "regard._native")]
pub(crate) struct Edges {
    pub(crate) edges: Arc<regard_kernels::Edges>,
}

#[pymethods]
impl Edges {
    /// Of `keys[n]` → `queries[n]`; writes each edge's place among the distinct ones, which are
    /// ordered by query and then by key, to `places`.
    #[new]
    fn new(
        py: Python<'_>,
        sizes: (usize, usize),
        queries: Block<i64>,
        keys: Block<i64>,
        places: Block<i64>,
    ) -> PyResult<Self> {
        // SAFETY: the caller keeps the arrays for the length of this call; `places` is fresh.
        let (queries, keys, places) =
            unsafe { (queries.slice()?, keys.slice()?, places.slice_mut()?) };
        if queries.len() != keys.len() || keys.len() != places.len() {
            return Err(PyValueError::new_err("edges have as many queries as keys"));
        }
        let edges = py.detach(|| build(sizes, queries, keys, places))?;
        Ok(Self { edges: Arc::new(edges) })
    }

    /// How many distinct edges there are.
    fn __len__(&self) -> usize {
        self.edges.len()
    }

    /// How many queries and keys they were made for.
    #[getter]
    fn sizes(&self) -> (usize, usize) {
        (self.edges.queries(), self.edges.keys())
    }
}

fn build(
    (nq, nk): (usize, usize),
    queries: &[i64],
    keys: &[i64],
    places: &mut [i64],
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
    let edges = regard_kernels::Edges::new(nq, nk, &pairs).map_err(refused)?;
    for (place, &(i, j)) in places.iter_mut().zip(&pairs) {
        let of_query = edges.of_query(i);
        let at = of_query.partition_point(|&key| (key as usize) < j);
        *place = (edges.starts()[i] + at) as i64;
    }
    Ok(edges)
}
