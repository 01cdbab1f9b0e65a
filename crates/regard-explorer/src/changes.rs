//! What is changed of a model's attention, as a request writes it.

use crate::refusal::Refusal;
use regard::attention::{CellChange, HeadRef, Intervention, Normalizer};
use serde::Deserialize;

/// The most heads and cells that are changed at once.
const MOST: usize = 10_000;

/// What is changed, as a request writes it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Changes {
    normalizer: Option<Named>,
    temperature: Option<f64>,
    window: Option<usize>,
    heads: Vec<HeadRef>,
    cells: Vec<CellChange>,
}

/// The normalizers that can be chosen.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Named {
    Softmax,
    Sparsemax,
    Entmax,
    Argmax,
}

/// The names of the normalizers that can be chosen.
pub(crate) const NORMALIZERS: [&str; 4] = ["softmax", "sparsemax", "entmax", "argmax"];

impl Changes {
    pub(crate) fn intervention(self) -> Result<Intervention, Refusal> {
        if self.heads.len() + self.cells.len() > MOST {
            return Err(Refusal::too_large(format!(
                "more than {MOST} heads and cells are changed"
            )));
        }
        let intervention = Intervention {
            normalizer: self.normalizer.map(|named| match named {
                Named::Softmax => Normalizer::Softmax,
                Named::Sparsemax => Normalizer::Sparsemax,
                Named::Entmax => Normalizer::Entmax15,
                Named::Argmax => Normalizer::Argmax,
            }),
            temperature: self.temperature,
            window: self.window,
            heads: self.heads,
            cells: self.cells,
        };
        intervention.check().map_err(|error| Refusal::bad(format!("`changes`: {error}")))?;
        Ok(intervention)
    }
}
