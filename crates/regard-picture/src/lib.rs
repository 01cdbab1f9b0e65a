//! Attention weights as pictures: a [`Scene`](scene::Scene) in; SVG, PNG, a page, text for a
//! terminal, numbers out. Knows no model and no training.
//!
//! | to … | look at |
//! |---|---|
//! | say what was attended to | [`scene`]: weights over tokens, patches, edges, moments, points of a curve |
//! | take weights from a file | [`WeightsFile`](scene::WeightsFile) |
//! | draw it | [`picture`]: [`svg`](picture::svg), [`png`](picture::png), [`page`](picture::page), [`terminal`](picture::terminal), [`numbers`](picture::numbers) |
//! | draw a training | [`curves`](picture::curves), [`comparison`](picture::comparison), [`confusion`](picture::confusion) |

pub mod picture;
pub mod scene;

pub use regard_data::{Error, Result};

/// The README's snippet, compiled with the tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
