//! Where what a specification names lies on the GPU already.

use crate::Real;
use crate::error::{Error, ensure};
use crate::spec::{Score, Spec};

/// The most parameters an expression has on a GPU.
///
/// ```
/// assert!(regard_kernels::cuda::PARAMETERS >= 4);
/// ```
pub const PARAMETERS: usize = 16;

/// Where the lists of a graph's edges lie on the GPU: by query, keys ascending, and by key, queries ascending.
///
/// Every entry is within the graph that the specification's edges stand for; whoever made the lists saw to that.
/// The keys of query i are `row_keys[row_start[i]..row_start[i + 1]]`, the queries of key j
/// `column_queries[column_start[j]..column_start[j + 1]]`: 0 ≤ i < Nq, 0 ≤ j < Nk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EdgesAt {
    /// `u64`, one more than queries: where each query's edges begin.
    pub row_start: u64,
    /// `u32`: the keys of the edges.
    pub row_keys: u64,
    /// `u64`, one more than keys: where each key's entries begin.
    pub column_start: u64,
    /// `u32`: the queries of the entries.
    pub column_queries: u64,
    /// `u32`: the place of each entry's edge among all edges.
    pub column_edges: u64,
    /// `u32`, where an edge is there more than once: for each edge what dropout draws by, its key plus so many times
    /// all keys as there were equal edges before it.
    pub row_draws: Option<u64>,
    /// The most edges of a query.
    pub longest: usize,
}

impl EdgesAt {
    fn check(&self, has_repeats: bool) -> Result<(), Error> {
        let lists = [
            ("row_start", self.row_start, 8),
            ("row_keys", self.row_keys, 4),
            ("column_start", self.column_start, 8),
            ("column_queries", self.column_queries, 4),
            ("column_edges", self.column_edges, 4),
            ("row_draws", self.row_draws.unwrap_or(4), 4),
        ];
        for (name, at, size) in lists {
            check_address(name, at, size)?;
        }
        ensure!(
            self.row_draws.is_some() == has_repeats,
            "edges that are there more than once have row_draws, and no others"
        );
        Ok(())
    }
}

fn check_address(name: &str, at: u64, size: u64) -> Result<(), Error> {
    ensure!(
        at != 0 && at.is_multiple_of(size),
        "the address of {name}, {at:#x}, is 0 or not a multiple of {size}, the size of a number"
    );
    Ok(())
}

/// Addresses on the GPU of what a specification names. Where there is one, the specification's own slice says how many
/// numbers there are, and is not read; it can be anything of that length.
///
/// Nothing on the GPU is looked at beforehand: a length of more keys than there are counts as all of them, and a
/// negative one as none.
///
/// ```
/// use regard_kernels::cuda::OptionsAt;
/// let options = OptionsAt { key_lengths: Some(0x7f00_0000_0000), ..OptionsAt::default() };
/// # let _ = options;
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OptionsAt {
    /// Of the keys' bias.
    pub key_bias: Option<u64>,
    /// Of the full bias.
    pub bias: Option<u64>,
    /// Of ALiBi's slopes.
    pub alibi: Option<u64>,
    /// Of the bias by distance.
    pub relative: Option<u64>,
    /// Of the keys' lengths: `i64`.
    pub key_lengths: Option<u64>,
    /// Of the segments of queries: `i64`.
    pub q_segments: Option<u64>,
    /// Of the segments of keys: `i64`.
    pub k_segments: Option<u64>,
    /// Of the dense mask: bytes, 0 where a query does not see a key.
    pub dense: Option<u64>,
    /// Of the additive score's vector.
    pub w: Option<u64>,
    /// Of an expression's parameters, in their order.
    pub parameters: [Option<u64>; PARAMETERS],
    /// Of a graph's lists; the specification's edges then say how many there are, and are not read.
    pub edges: Option<EdgesAt>,
}

impl OptionsAt {
    /// Refuses an address of what the specification does not name, and one at which no such number stands.
    pub(in crate::cuda) fn check<T: Real>(&self, spec: &Spec<T>) -> Result<(), Error> {
        let (mask, bias, real) = (&spec.mask, &spec.bias, size_of::<T>() as u64);
        let all = [
            ("key_bias", self.key_bias, bias.key.is_some(), real),
            ("bias", self.bias, bias.full.is_some(), real),
            ("alibi_slopes", self.alibi, bias.alibi.is_some(), real),
            ("relative_bias", self.relative, bias.relative.is_some(), real),
            ("key_lengths", self.key_lengths, mask.key_lengths.is_some(), 8),
            ("q_segments", self.q_segments, mask.segments.is_some(), 8),
            ("k_segments", self.k_segments, mask.segments.is_some(), 8),
            ("mask", self.dense, mask.dense.is_some(), 1),
            ("w", self.w, matches!(spec.score, Score::Additive { .. }), real),
        ];
        for (name, at, is_named, size) in all {
            let Some(at) = at else { continue };
            ensure!(is_named, "{name} has an address on the GPU, but the specification has none");
            check_address(name, at, size)?;
        }
        let own = match &spec.score {
            Score::Expression { parameters, .. } => parameters.len(),
            _ => 0,
        };
        for (n, at) in self.parameters.iter().enumerate() {
            let Some(at) = *at else { continue };
            ensure!(n < own, "parameter {n} has an address on the GPU, but the score has {own}");
            check_address("a parameter", at, real)?;
        }
        match (self.edges, mask.edges) {
            (Some(at), Some(edges)) => at.check(edges.has_repeats()),
            (Some(_), None) => {
                Err(Error::new("edges have addresses on the GPU, but the specification has none"))
            }
            (None, _) => Ok(()),
        }
    }

    /// The same for a score that became an additive one: its vector is one of the parameters.
    pub(in crate::cuda) fn lowered<T: Real>(mut self, from: &Score<T>, to: &Score<T>) -> Self {
        if let (Score::Expression { parameters, .. }, Score::Additive { w, .. }) = (from, to) {
            let place = parameters.iter().position(|own| std::ptr::eq(own.data, *w));
            self.w = place.and_then(|n| self.parameters.get(n).copied().flatten());
        }
        self
    }
}
