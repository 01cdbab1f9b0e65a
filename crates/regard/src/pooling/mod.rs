//! From a set of vectors to one: bottom-up (the largest, a gate), by place, or by attention with a
//! learned query.

mod config;
mod gate;
mod whole;

pub use config::PoolingConfig;
pub use gate::Gate;
pub use whole::{Pooled, Pooling};
