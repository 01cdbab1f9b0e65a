//! The operations. Each file holds one kind; beside each forward stands its gradient.

mod activation;
mod binary;
mod cast;
mod convolution;
mod dropout;
mod gather;
mod halves;
mod index;
mod join;
mod keepdim;
mod lerp;
mod loss;
mod matmul;
mod norm;
mod operator;
mod pool;
mod recurrent;
pub(crate) mod reduce;
mod scan;
mod softmax;
mod top;
mod unary;
mod view;
mod where_;

pub(crate) use binary::{add_into, add_to_part, own, same_dtype};
pub use convolution::SlidingWindow;
pub(crate) use halves::{check_float, in_f32};
pub use index::{Index, Indices};
pub use lerp::lerp_all;
pub use recurrent::{Recurred, RecurrentStart};
