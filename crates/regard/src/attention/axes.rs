//! The axes that attention may be given, and those that the operator reads.

use super::Attended;
use regard_tensor::{Error, Result, Tensor};

/// Which axes q, k and v have. The operator reads `[B, H, N, D]`; what is missing is put in front
/// and taken away from the results again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Axes {
    /// `[B, H, N, D]`
    Heads,
    /// `[B, N, D]`
    Batch,
    /// `[N, D]`
    Sequence,
    /// One query `[D]` over keys `[N, D]`.
    Query,
}

impl Axes {
    /// Of the shapes of q, k and v; refuses any others, naming all three.
    pub(crate) fn of(q: &[usize], k: &[usize], v: &[usize]) -> Result<Self> {
        match [q.len(), k.len(), v.len()] {
            [4, 4, 4] => Ok(Self::Heads),
            [3, 3, 3] => Ok(Self::Batch),
            [2, 2, 2] => Ok(Self::Sequence),
            [1, 2, 2] => Ok(Self::Query),
            _ => Err(Error::new(format!(
                "q, k and v have shapes {q:?}, {k:?} and {v:?}; attention wants [B, H, N, D], \
                 [B, N, D] or [N, D] for all three, or a query [D] with [N, D]"
            ))),
        }
    }

    /// The results without the axes that were put in front.
    pub(crate) fn drop_from(self, attended: Attended) -> Result<Attended> {
        let drop = |x: Tensor| match self {
            Self::Heads => Ok(x),
            Self::Batch => x.squeeze(1),
            Self::Sequence => x.squeeze(0)?.squeeze(0),
            Self::Query => x.squeeze(0)?.squeeze(0)?.squeeze(0),
        };
        // Edges have no axis of queries that could be missing.
        let edges = |x: Tensor| match self {
            Self::Query => x.squeeze(0)?.squeeze(0),
            _ => drop(x),
        };
        let edge_weights = attended.edge_weights.clone().map(edges).transpose()?;
        let out = drop(attended.out.clone())?;
        Ok(Attended { edge_weights, ..attended.changed(out, drop)? })
    }
}

/// x with the axes that it lacks of `[B, H, N, D]`.
pub(crate) fn lift(x: &Tensor) -> Result<Tensor> {
    match x.rank() {
        3 => x.unsqueeze(1),
        2 => x.unsqueeze(0)?.unsqueeze(0),
        1 => x.unsqueeze(0)?.unsqueeze(0)?.unsqueeze(0),
        _ => Ok(x.clone()),
    }
}

/// x `[B, Hk, …]` with each key head repeated for the query heads that share it: `[B, Hq, …]`.
pub(crate) fn repeat_heads(x: &Tensor, heads: usize) -> Result<Tensor> {
    let shape = x.shape();
    let own = shape[1];
    if own == heads || own == 0 || !heads.is_multiple_of(own) {
        return Ok(x.clone());
    }
    let mut grouped = vec![shape[0], own, heads / own];
    grouped.extend(&shape[2..]);
    let mut repeated = vec![shape[0], heads];
    repeated.extend(&shape[2..]);
    x.unsqueeze(2)?.broadcast_to(&grouped)?.reshape(&repeated)
}
