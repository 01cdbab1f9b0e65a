//! The operator against its reference and its promises. One program: each would compile the
//! reference once more.

#[path = "../case/mod.rs"]
mod case;

mod asked;
mod edge_weights;
mod expression;
mod fused;
mod graphs;
mod halves;
mod lse;
mod parts;
mod promises;
mod properties;
mod random;
mod reference;
mod sizes;
mod undefined;
