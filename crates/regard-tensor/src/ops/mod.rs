//! The operations. Each file holds one kind; beside each forward stands its gradient.

mod binary;
mod cast;
mod choose;
mod convolution;
mod dropout;
mod gather;
mod join;
mod matmul;
mod pool;
pub(crate) mod reduce;
mod unary;
mod view;

pub(crate) use binary::{add_into, add_to_part, owned};
pub use convolution::Window;
