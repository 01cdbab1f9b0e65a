//! The general tiles: what is fixed in their text, and how large they are.

use super::source::Stored;
use crate::Real;
use crate::spec::{Normalizer, Shape, Spec};

/// The widest rows there are tiles for.
pub(in crate::cuda) const WIDEST: usize = 256;
/// Widths are rounded up to this.
const STEP: usize = 32;
/// Numbers by which a row in shared memory is longer than its width: `PAD` in the text.
const PAD: usize = 8;

/// What is fixed in the text.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TileSizes {
    /// Of queries and keys, rounded up.
    pub width: usize,
    /// Of values, rounded up.
    pub values: usize,
    /// bf16 numbers that a number is kept in.
    pub parts: usize,
    /// Whether rows are copied sixteen bytes at a time.
    pub aligned: bool,
    /// Which pass.
    pub backward: bool,
    /// Softmax, sigmoid or none, as `Normalizer::number` counts them.
    pub normalizer: usize,
    /// What the problem has.
    pub has: Choices,
    cut: Cut,
}

/// The choices that are in the text where a problem makes them.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Choices {
    /// A dense mask.
    pub dense: bool,
    /// Segments.
    pub segments: bool,
    /// A bias of the keys.
    pub key_bias: bool,
    /// A full bias.
    pub full_bias: bool,
    /// ALiBi.
    pub alibi: bool,
    /// A bias by distance.
    pub relative: bool,
    /// Dropout.
    pub dropout: bool,
    /// Backward: gradients that arrive at the weights.
    pub arriving: bool,
}

/// How a block is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Cut {
    warps: usize,
    /// Tiles of 16 queries that a warp has.
    tiles_each: usize,
    /// Keys of a tile.
    keys: usize,
    /// Queries of a tile, backward by key.
    queries: usize,
    /// Tiles on their way.
    stages: usize,
}

/// Warps, tiles each, keys, queries, stages: see [`Cut`].
type Sizes = [usize; 5];

/// Cuts in the order in which they are tried: the first that a GPU's shared memory has room for is taken.
const fn forward_cuts(wide: usize, parts: usize) -> &'static [Sizes] {
    match (parts, wide) {
        (1, 0..=64) => &[[4, 1, 64, 0, 2]],
        (1, 65..=128) => &[[4, 2, 32, 0, 2]],
        (1, _) => &[[8, 1, 64, 0, 1], [8, 1, 32, 0, 2], [4, 1, 32, 0, 1]],
        (_, 0..=64) => &[[4, 1, 32, 0, 1]],
        (_, 65..=128) => &[[8, 1, 32, 0, 1], [4, 1, 16, 0, 1]],
        _ => &[[4, 1, 32, 0, 1], [4, 1, 16, 0, 1], [2, 1, 16, 0, 1]],
    }
}

const fn backward_cuts(wide: usize, parts: usize) -> &'static [Sizes] {
    match (parts, wide) {
        (1, 0..=64) => &[[4, 1, 64, 64, 2], [4, 1, 64, 32, 2]],
        (1, 65..=128) => &[[8, 1, 64, 32, 1], [4, 1, 32, 32, 2], [4, 1, 16, 16, 1]],
        (1, _) => &[[4, 1, 32, 32, 1], [4, 1, 16, 16, 1], [2, 1, 16, 16, 1]],
        (_, 0..=64) => &[[4, 1, 16, 32, 1], [2, 1, 16, 32, 1]],
        (_, 65..=96) => &[[8, 1, 16, 16, 1], [4, 1, 16, 16, 1], [2, 1, 16, 16, 1]],
        (_, 97..=128) => &[[4, 1, 32, 32, 1], [2, 1, 16, 16, 1]],
        _ => &[[2, 1, 16, 16, 1], [1, 1, 16, 16, 1]],
    }
}

impl TileSizes {
    /// The tiles of a problem, on a GPU whose blocks have so many bytes of shared memory; none where no cut has room.
    pub(in crate::cuda) fn of<T: Real>(
        spec: &Spec<T>,
        s: &Shape,
        stored: Stored,
        [aligned, backward, arriving]: [bool; 3],
        room: usize,
    ) -> Option<Self> {
        let has = Choices {
            dense: spec.mask.dense.is_some(),
            segments: spec.mask.segments.is_some(),
            key_bias: spec.bias.key.is_some(),
            full_bias: spec.bias.full.is_some(),
            alibi: spec.bias.alibi.is_some(),
            relative: spec.bias.relative.is_some(),
            dropout: spec.dropout.is_some(),
            arriving,
        };
        Self::new([s.dk, s.dv], stored, [aligned, backward], spec.normalizer, has, room)
    }

    /// The same by what it depends on.
    pub fn new(
        [width, values]: [usize; 2],
        stored: Stored,
        [aligned, backward]: [bool; 2],
        normalizer: Normalizer,
        has: Choices,
        room: usize,
    ) -> Option<Self> {
        let [width, values] = [width, values].map(|n| n.next_multiple_of(STEP).max(STEP));
        let parts = if stored == Stored::F32 { 3 } else { 1 };
        let cuts = match backward {
            true => backward_cuts(width.max(values), parts),
            false => forward_cuts(width.max(values), parts),
        };
        let with = |&[warps, tiles_each, keys, queries, stages]: &Sizes| {
            let normalizer = normalizer.number();
            // Numbers that pass through registers are not on their way while others are computed.
            let stages = if parts == 1 && aligned { stages } else { 1 };
            let cut = Cut { warps, tiles_each, keys, queries, stages };
            Self { width, values, parts, aligned, backward, normalizer, has, cut }
        };
        cuts.iter().map(with).find(|sizes| sizes.shared() <= room)
    }

    /// `#define`s of the text, by name.
    pub(in crate::cuda) fn defines(&self) -> Vec<(&'static str, usize)> {
        let Choices { dense, segments, key_bias, full_bias, alibi, relative, dropout, arriving } =
            self.has;
        let mut all = vec![
            ("WIDTH", self.width),
            ("VALUES", self.values),
            ("PARTS", self.parts),
            ("ALIGNED", usize::from(self.aligned)),
            ("BACKWARD", usize::from(self.backward)),
            ("NORMALIZER", self.normalizer),
            ("WARPS", self.cut.warps),
            ("TILES_EACH", self.cut.tiles_each),
            ("KEYS", self.cut.keys),
            ("STAGES", self.cut.stages),
            ("HAS_DENSE", usize::from(dense)),
            ("HAS_SEGMENTS", usize::from(segments)),
            ("HAS_KEY_BIAS", usize::from(key_bias)),
            ("HAS_FULL_BIAS", usize::from(full_bias)),
            ("HAS_ALIBI", usize::from(alibi)),
            ("HAS_RELATIVE", usize::from(relative)),
            ("HAS_DROPOUT", usize::from(dropout)),
            ("HAS_ARRIVING", usize::from(arriving)),
            ("MOST_CHUNKS", WIDEST / 32),
            ("RELATIVE", 0),
        ];
        if self.backward {
            all.push(("QUERIES", self.cut.queries));
        }
        all
    }

    pub(in crate::cuda) fn threads(&self) -> usize {
        32 * self.cut.warps
    }

    /// Queries of a block.
    pub(in crate::cuda) fn rows(&self) -> usize {
        16 * self.cut.warps * self.cut.tiles_each
    }

    /// Keys of a tile.
    pub(in crate::cuda) fn keys(&self) -> usize {
        self.cut.keys
    }

    /// Keys of a block, backward by key.
    pub(in crate::cuda) fn own_keys(&self) -> usize {
        16 * self.cut.warps
    }

    /// Whether k's and v's gradients are summed in one walk.
    pub(in crate::cuda) fn is_together(&self) -> bool {
        self.width + self.values <= WIDEST
    }

    /// Bytes of so many rows of these widths.
    fn bytes(&self, rows: usize, widths: &[usize]) -> usize {
        widths.iter().map(|width| self.parts * rows * (width + PAD) * 2).sum()
    }

    /// Bytes of shared memory of a block that walks keys.
    pub(in crate::cuda) fn shared_by_query(&self) -> usize {
        let (both, rows) = ([self.width, self.values], self.rows());
        let own =
            if self.backward { self.bytes(rows, &both) } else { self.bytes(rows, &both[..1]) };
        own + self.cut.stages * self.bytes(self.cut.keys, &both)
    }

    /// The same with a tile of gradients to be summed along their diagonals.
    pub(in crate::cuda) fn shared_by_distance(&self) -> usize {
        let (rows, keys) = (self.rows(), self.cut.keys);
        self.shared_by_query() + (rows * (keys + 1) + rows + keys) * size_of::<f32>()
    }

    /// The same of a block that walks queries.
    pub(in crate::cuda) fn shared_by_key(&self) -> usize {
        let both = [self.width, self.values];
        let Cut { queries, stages, .. } = self.cut;
        let tile = self.bytes(queries, &both) + 2 * queries * size_of::<f32>();
        self.bytes(self.own_keys(), &both) + stages * tile
    }

    fn shared(&self) -> usize {
        match (self.backward, self.has.relative) {
            (false, _) => self.shared_by_query(),
            (true, false) => self.shared_by_query().max(self.shared_by_key()),
            (true, true) => self.shared_by_distance().max(self.shared_by_key()),
        }
    }
}
