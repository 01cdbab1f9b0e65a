//! The sizes of the tiles of dot products on tensor cores: what is fixed in their text.

use super::dot::{WARPGROUP, WIDEST};
use crate::Real;
use crate::spec::{Normalizer, Shape, Spec};

/// Rows of a warpgroup.
pub(in crate::cuda) const SIDE: usize = 64;

/// What is fixed in the text: widths of 64 or 128, and what the masks ask for.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DotTiles {
    /// Of queries and keys.
    pub width: usize,
    /// Of values.
    pub values: usize,
    /// Whether a query sees less than all keys.
    pub masked: bool,
    /// Whether it sees those of its own segment alone.
    pub segments: bool,
    /// How far a bias by distance tells pairs apart; 0: there is none.
    pub distance: usize,
    /// Softmax, sparsemax or entmax.
    pub normalizer: Normalizer,
    /// Which pass.
    pub backward: bool,
}

impl DotTiles {
    /// Softmax, every key seen, no bias.
    pub fn new(width: usize, values: usize, backward: bool) -> Self {
        let normalizer = Normalizer::Softmax;
        Self { width, values, masked: false, segments: false, distance: 0, normalizer, backward }
    }

    pub(in crate::cuda) fn of<T: Real>(s: &Shape, spec: &Spec<T>, backward: bool) -> Self {
        let wide = |n: usize| if n <= SIDE { SIDE } else { WIDEST };
        let mask = &spec.mask;
        let segments = mask.segments.is_some();
        Self {
            masked: mask.causal || mask.window.is_some() || mask.key_lengths.is_some() || segments,
            segments,
            distance: spec.bias.relative.map_or(0, |relative| relative.max_distance),
            normalizer: spec.normalizer,
            ..Self::new(wide(s.dk), wide(s.dv), backward)
        }
    }

    /// Whether weights follow from a threshold.
    pub(in crate::cuda) fn has_threshold(&self) -> bool {
        self.normalizer.has_threshold()
    }

    /// Numbers of the bias's table.
    pub(in crate::cuda) fn table(&self) -> usize {
        if self.distance == 0 { 0 } else { 2 * self.distance + 1 }
    }

    /// Keys of a tile, backward by query. A bias by distance needs room for its sums.
    pub(in crate::cuda) fn by_query_keys(&self) -> usize {
        if self.distance == 0 { 128 } else { 64 }
    }

    /// Warpgroups that compute, forward.
    pub(in crate::cuda) fn consumers(&self) -> usize {
        if self.width.max(self.values) == SIDE { 3 } else { 2 }
    }

    /// Queries of a block, forward.
    pub(in crate::cuda) fn queries(&self) -> usize {
        SIDE * self.consumers()
    }

    /// Keys of a tile, forward.
    pub(in crate::cuda) fn keys(&self) -> usize {
        let wide = self.width.max(self.values) > SIDE;
        let plain = !self.masked && self.distance == 0 && !self.has_threshold();
        if wide && plain { 176 } else { 128 }
    }

    /// Bytes of what a threshold's forward collects: two rows of each thread that computes.
    pub(in crate::cuda) fn collected(&self) -> usize {
        let threads = WARPGROUP * self.consumers();
        if self.has_threshold() { threads * 2 * ROOM * size_of::<f32>() } else { 0 }
    }

    /// `#define`s of the text, by name.
    pub(in crate::cuda) fn defines(&self) -> Vec<(&'static str, usize)> {
        let mut all = vec![
            ("WIDTH", self.width),
            ("VALUES", self.values),
            ("SEGMENTS", usize::from(self.segments)),
            ("RELATIVE", usize::from(self.distance > 0)),
            ("DISTANCE", self.distance),
            ("NORMALIZER", self.normalizer.number()),
        ];
        match self.backward {
            true => all.extend([
                ("BACKWARD", 1),
                ("BY_KEY_QUERIES", BY_KEY_QUERIES),
                ("BY_QUERY_KEYS", self.by_query_keys()),
            ]),
            false => all.extend([
                ("CONSUMERS", self.consumers()),
                ("KEYS", self.keys()),
                ("TURNS", 1),
                ("ROOM", ROOM),
            ]),
        }
        all
    }

    /// How many columns the products have.
    pub(in crate::cuda) fn columns(&self) -> Vec<usize> {
        match self.backward {
            true => vec![self.width, self.values, BY_KEY_QUERIES, self.by_query_keys()],
            false => vec![self.values, self.keys()],
        }
    }
}

/// Scores that a thread collects of a row, forward under a threshold.
const ROOM: usize = 32;

/// Backward by key: queries of a tile, keys of a block, tiles on their way.
pub(in crate::cuda) const BY_KEY_QUERIES: usize = 64;
pub(in crate::cuda) const BY_KEY_KEYS: usize = 2 * SIDE;
pub(in crate::cuda) const BY_KEY_STAGES: usize = 3;
/// Backward by query.
pub(in crate::cuda) const BY_QUERY_QUERIES: usize = 2 * SIDE;
pub(in crate::cuda) const STAGES: usize = 2;
