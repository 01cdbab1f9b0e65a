//! The operations of a training step: by the twofold rule against the oracle, in both precisions,
//! on every instruction set, with the same bits on any number of threads.
#![allow(unreachable_pub, missing_docs)]
#![allow(clippy::unwrap_used)] // a test that cannot go on says so by its panic

#[path = "../case/mod.rs"]
mod case;
mod cross_entropy;
mod denormal;
mod dropout;
mod embedding;
mod known;
mod layer_norm;
mod matmul;
mod optimizer;
mod pointwise;
mod recurrent;
mod rule;
mod softmax;
