//! What tasks share that choose among labels.

pub(crate) mod check;
pub(crate) mod counts;
pub(crate) mod labelings;
pub(crate) mod probabilities;
pub(crate) mod truth;
pub(crate) mod weights;
