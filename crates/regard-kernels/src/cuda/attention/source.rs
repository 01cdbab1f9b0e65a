//! The text of the kernels for a problem: what does not change within one is fixed in the text.

use super::dot_tiles::DotTiles;
use super::graph::GraphSizes;
use super::tile_sizes::TileSizes;
use super::{tensor_core, written};
use crate::Activation;
use crate::expression::Kind;
use crate::spec::{Score, Shape, Spec};
use crate::{Element, Real};
use std::fmt::Write;

/// What q, k, v and the output are kept in.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stored {
    /// `f32`
    F32,
    /// `f64`
    F64,
    /// `bf16`
    Bf16,
    /// `f16`
    F16,
}

impl Stored {
    pub(in crate::cuda) fn of<E: Element>() -> Self {
        use std::any::TypeId;
        match TypeId::of::<E>() {
            t if t == TypeId::of::<f64>() => Self::F64,
            t if t == TypeId::of::<half::bf16>() => Self::Bf16,
            t if t == TypeId::of::<half::f16>() => Self::F16,
            _ => Self::F32,
        }
    }
}

/// The score as text.
#[derive(Clone, Debug, PartialEq)]
enum Formula {
    Dot,
    Additive(Activation),
    /// An expression, as `written.rs` prints it.
    Written(String),
}

/// One text: a choice of everything that is fixed in it.
#[doc(hidden)]
#[derive(Clone, Debug, PartialEq)]
pub struct Variant {
    stored: Stored,
    formula: Formula,
    form: Form,
}

/// Which kernels: their text has what a problem of that form needs, and its sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Generic { chunks: usize, value_chunks: usize, row_warps: usize, key_warps: usize },
    Graph(GraphSizes),
    Additive { width: usize, value_width: usize, backward: bool },
    Dot(DotTiles),
    Decode { width: usize, value_width: usize },
    Split { backward: bool },
    Tile(TileSizes),
}

const LANES: usize = 32;

/// The most rows that a GPU is not busy with, a warp each.
const FEW_ROWS: usize = 1024;
/// Warps that share a row then.
const MANY_WARPS: usize = 16;

/// How many warps share a row in the generic kernels: several where rows are few and the score is one of those that
/// are summed feature by feature.
pub(in crate::cuda) fn row_warps<T: Real>(spec: &Spec<T>, s: &Shape) -> usize {
    if is_by_feature(spec) && s.rows() <= FEW_ROWS { MANY_WARPS } else { 1 }
}

/// Chunks of 32 numbers, of a key and its value, that a warp has registers for in backward.
const MOST_CHUNKS: usize = 32;
/// Warps that share a key of more.
const WIDE_KEY_WARPS: usize = 8;

/// How many warps share a key in the generic kernels' backward: several where its rows are wide.
pub(in crate::cuda) fn key_warps<T: Real>(spec: &Spec<T>, s: &Shape) -> usize {
    let chunks = s.dk.div_ceil(LANES) + s.dv.div_ceil(LANES);
    if is_by_feature(spec) && chunks > MOST_CHUNKS { WIDE_KEY_WARPS } else { 1 }
}

/// Whether a score is the sum of its features' own.
fn is_by_feature<T: Real>(spec: &Spec<T>) -> bool {
    matches!(spec.score, Score::Dot { .. } | Score::Additive { .. })
}

impl Variant {
    /// The generic kernels for a problem; none where its score is a caller's own code.
    pub fn generic<T: Real>(spec: &Spec<T>, s: &Shape, stored: Stored) -> Option<Self> {
        let formula = match &spec.score {
            Score::Dot { .. } => Formula::Dot,
            Score::Additive { activation, .. } => Formula::Additive(activation.in_additive()),
            Score::Expression { expression, parameters } => {
                let kinds: Vec<Kind> = parameters.iter().map(|p| p.kind()).collect();
                Formula::Written(written::score(expression, &kinds))
            }
            Score::Own { .. } => return None,
        };
        let chunks = |width: usize| width.div_ceil(LANES).max(1);
        let (row_warps, key_warps) = (row_warps(spec, s), key_warps(spec, s));
        let (chunks, value_chunks) = (chunks(s.dk), chunks(s.dv));
        let form = Form::Generic { chunks, value_chunks, row_warps, key_warps };
        Some(Self { stored, formula, form })
    }

    /// The kernels of graphs.
    pub fn graph(activation: Activation, sizes: GraphSizes, stored: Stored) -> Self {
        let formula = Formula::Additive(activation.in_additive());
        Self { stored, formula, form: Form::Graph(sizes) }
    }

    /// The tiles of additive scores with tanh; widths rounded up as the tiles have them.
    pub fn additive(width: usize, value_width: usize, backward: bool) -> Self {
        let form = Form::Additive { width, value_width, backward };
        Self { stored: Stored::F32, formula: Formula::Additive(Activation::Tanh), form }
    }

    /// The tiles of dot products on tensor cores.
    pub fn dot(tiles: DotTiles, stored: Stored) -> Self {
        Self { stored, formula: Formula::Dot, form: Form::Dot(tiles) }
    }

    /// Few queries over many keys; widths rounded up as the tiles have them.
    pub fn decode(width: usize, value_width: usize, stored: Stored) -> Self {
        Self { stored, formula: Formula::Dot, form: Form::Decode { width, value_width } }
    }

    /// Dot products of f32 numbers in parts.
    pub fn split(backward: bool) -> Self {
        Self { stored: Stored::F32, formula: Formula::Dot, form: Form::Split { backward } }
    }

    /// The general tiles.
    pub fn tile(sizes: TileSizes, stored: Stored) -> Self {
        Self { stored, formula: Formula::Dot, form: Form::Tile(sizes) }
    }

    /// What NVRTC is given.
    pub fn text(&self) -> String {
        let mut text = String::new();
        let mut define = |name: &str, value: &dyn std::fmt::Display| {
            // Writing to a string does not fail.
            let _ = writeln!(text, "#define {name} {value}");
        };
        for (n, name) in ["SAME", "BF16", "F16"].into_iter().enumerate() {
            define(name, &n);
        }
        for (n, name) in ["DOT", "ADDITIVE", "WRITTEN"].into_iter().enumerate() {
            define(name, &n);
        }
        for (n, name) in ["TANH", "LEAKY_RELU", "GELU", "IDENTITY"].into_iter().enumerate() {
            define(name, &n);
        }
        define("REAL", &if self.stored == Stored::F64 { "double" } else { "float" });
        define(
            "STORED",
            &match self.stored {
                Stored::F32 | Stored::F64 => "SAME",
                Stored::Bf16 => "BF16",
                Stored::F16 => "F16",
            },
        );
        match self.form {
            Form::Generic { chunks, value_chunks, row_warps, key_warps } => {
                define("CHUNKS", &chunks);
                define("VALUE_CHUNKS", &value_chunks);
                define("ROW_WARPS", &row_warps);
                define("KEY_WARPS", &key_warps);
            }
            Form::Graph(sizes) => {
                for (name, value) in sizes.defines() {
                    define(name, &value);
                }
            }
            Form::Additive { width, value_width, backward } => {
                if backward {
                    define("BACKWARD", &1);
                }
                define("WIDTH_PADDED", &width);
                define("VALUE_PADDED", &value_width);
            }
            Form::Split { backward } => {
                define("SPLIT", &1);
                define("BACKWARD", &usize::from(backward));
                for (name, value) in [("SEGMENTS", 0), ("RELATIVE", 0), ("NORMALIZER", 0)] {
                    define(name, &value);
                }
                for name in ["WIDTH", "VALUES", "BY_KEY_QUERIES"] {
                    define(name, &64);
                }
            }
            Form::Decode { width, value_width } => {
                define("DECODE", &1);
                define("WIDTH", &width);
                define("VALUES", &value_width);
            }
            Form::Dot(tiles) => {
                for (name, value) in tiles.defines() {
                    define(name, &value);
                }
            }
            Form::Tile(sizes) => {
                for (name, value) in sizes.defines() {
                    define(name, &value);
                }
            }
        }
        match &self.formula {
            Formula::Dot => define("SCORE", &"DOT"),
            Formula::Written(_) => define("SCORE", &"WRITTEN"),
            Formula::Additive(activation) => {
                define("SCORE", &"ADDITIVE");
                match activation {
                    Activation::Tanh => define("ACTIVATION", &"TANH"),
                    Activation::Gelu => define("ACTIVATION", &"GELU"),
                    Activation::LeakyRelu { slope } => {
                        define("ACTIVATION", &"LEAKY_RELU");
                        define("LEAK", &format!("{slope:?}"));
                    }
                    _ => define("ACTIVATION", &"IDENTITY"),
                }
            }
        }
        text += include_str!("../text/numbers.cu");
        text += include_str!("../text/problem.cu");
        text += include_str!("../text/pass.cu");
        match self.form {
            Form::Generic { .. } => {
                text += include_str!("../text/scores.cu");
                if let Formula::Written(score) = &self.formula {
                    text += score;
                }
                text += include_str!("../text/generic.cu");
            }
            Form::Graph(_) => text += include_str!("../text/graph.cu"),
            Form::Additive { backward, .. } => {
                text += include_str!("../text/additive.cu");
                if backward {
                    text += include_str!("../text/additive_backward.cu");
                }
            }
            Form::Split { backward, .. } => {
                text += include_str!("../text/running.cu");
                text += include_str!("../text/hopper.cu");
                text += &tensor_core::products(Stored::Bf16, &[64]);
                text += include_str!("../text/undefined.cu");
                text += include_str!("../text/dot.cu");
                if backward {
                    text += include_str!("../text/undefined_backward.cu");
                    text += include_str!("../text/dot_by_key.cu");
                }
                text += include_str!("../text/dot_split.cu");
            }
            Form::Decode { .. } => {
                text += include_str!("../text/running.cu");
                text += include_str!("../text/mma.cu");
                text += include_str!("../text/undefined.cu");
                text += include_str!("../text/decode.cu");
            }
            Form::Tile(sizes) => {
                text += include_str!("../text/running.cu");
                text += include_str!("../text/mma.cu");
                text += include_str!("../text/undefined.cu");
                text += include_str!("../text/tile.cu");
                text += include_str!("../text/tile_walk.cu");
                text += match sizes.backward {
                    true => include_str!("../text/tile_backward.cu"),
                    false => include_str!("../text/tile_forward.cu"),
                };
            }
            Form::Dot(tiles) => {
                text += include_str!("../text/running.cu");
                text += include_str!("../text/hopper.cu");
                text += &tensor_core::products(self.stored, &tiles.columns());
                text += include_str!("../text/undefined.cu");
                text += include_str!("../text/dot.cu");
                if tiles.backward {
                    text += include_str!("../text/undefined_backward.cu");
                    text += include_str!("../text/dot_by_key.cu");
                }
                text += match (tiles.backward, tiles.has_threshold()) {
                    (true, _) => include_str!("../text/dot_backward.cu"),
                    (false, true) => include_str!("../text/dot_threshold.cu"),
                    (false, false) => include_str!("../text/dot_forward.cu"),
                };
            }
        }
        text
    }
}
