//! What is changed of a model's attention, as a request writes it.

use crate::input::Asked;
use crate::limits::Limits;
use crate::refusal::Refusal;
use regard::attention::{CellChange, HeadRef, Intervention, Patched, Site};
use regard_tasks::inspect::{NormalizerName, patch};
use regard_tasks::task::Model;
use serde::Deserialize;

/// The most heads and cells that are changed at once.
const MOST: usize = 10_000;
/// The most heads that are put from other inputs: each of these is computed.
const MOST_PATCHES: usize = 32;

/// What is changed, as a request writes it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Changes {
    normalizer: Option<NormalizerName>,
    temperature: Option<f64>,
    window: Option<usize>,
    heads: Vec<HeadRef>,
    cells: Vec<CellChange>,
    patches: Vec<Patch>,
}

/// A head with what it does for another input.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Patch {
    site: Site,
    layer: usize,
    head: usize,
    what: Patched,
    from: Asked,
}

/// The names of the normalizers that can be chosen.
pub(crate) const NORMALIZERS: [&str; 4] = ["softmax", "sparsemax", "entmax", "argmax"];

impl Changes {
    /// Refuses what is too much, and numbers that cannot be meant.
    pub(crate) fn checked(self) -> Result<Self, Refusal> {
        if self.heads.len() + self.cells.len() > MOST {
            return Err(Refusal::too_large(format!(
                "more than {MOST} heads and cells are changed"
            )));
        }
        if self.patches.len() > MOST_PATCHES {
            let what = format!("more than {MOST_PATCHES} heads are put from other inputs");
            return Err(Refusal::too_large(what));
        }
        let plain = Self { patches: Vec::new(), ..self.clone() }.plain();
        plain.check().map_err(|error| Refusal::bad(format!("`changes`: {error}")))?;
        Ok(self)
    }

    /// What is changed of a model. Refuses heads that it does not have, and inputs that it does not
    /// read.
    pub(crate) fn intervention(
        mut self,
        model: &dyn Model,
        limits: &Limits,
    ) -> Result<Intervention, Refusal> {
        let form = model.asks().form;
        let mut patches = Vec::new();
        for Patch { site, layer, head, what, from } in std::mem::take(&mut self.patches) {
            let from = from.input(form)?;
            limits.check(&from, form)?;
            patches.push(patch(model, &from, site, layer, head, what)?);
        }
        Ok(Intervention { patches, ..self.plain() })
    }

    /// What is changed over a whole part, as a name for it; empty where nothing is. Refuses what is
    /// meant for a single input: its cells, and heads put from another one.
    pub(crate) fn of_a_part(&self) -> Result<String, Refusal> {
        if !self.cells.is_empty() || !self.patches.is_empty() {
            return Err(Refusal::bad(
                "cells, and heads from another input, are changed for one input alone; a whole part \
                 can be judged with another normalizer, temperature or window, and without heads",
            ));
        }
        let all = (&self.normalizer, self.temperature, self.window, &self.heads);
        let none = self.clone().plain().is_none();
        Ok(if none { String::new() } else { format!("{all:?}") })
    }

    pub(crate) fn plain(self) -> Intervention {
        Intervention {
            normalizer: self.normalizer.map(Into::into),
            temperature: self.temperature,
            window: self.window,
            heads: self.heads,
            cells: self.cells,
            patches: Vec::new(),
        }
    }
}
