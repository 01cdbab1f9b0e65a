//! How good an answer is.

mod bleu;
mod text;

pub use bleu::{Bleu, Smoothing, Tokenisation};
