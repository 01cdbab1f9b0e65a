//! The tests that stand beside what they try, in the sources: these files alone are compiled once
//! more for them, not the whole crate.
#![allow(dead_code, unreachable_pub)] // what a file has for the rest of its crate

#[path = "../src/models/sequence/neighbors.rs"]
mod neighbors;
#[path = "../src/layers/position.rs"]
mod position;
#[path = "../src/models/memory_network/sentence_encoder.rs"]
mod sentence_encoder;

// What the files name as `crate::…` and `super::…`.
use regard::Mode;
use regard::attention::Need;
use regard::layers::{Embedding, Encoder, EncoderConfig};
use regard::models::MemoryNetworkConfig;
