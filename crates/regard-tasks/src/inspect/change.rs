//! What is changed of a model's attention while it is asked, as somebody writes it down.

use crate::task::input::Input;
use crate::task::model::Model;
use regard::attention::{
    CellChange, HeadPatch, HeadRef, Intervention, Normalizer, Patched, Recorded, Site, recorded,
};
use regard_data::{Error, Result};
use serde::{Deserialize, Serialize};

/// One change; several compose. Layers, heads, rows and columns count from 0, and what is not named is
/// every one of them.
///
/// ```
/// use regard_tasks::inspect::Change;
/// let json = r#"[{"change": "off", "site": "encoder", "layer": 0, "head": 2}, {"change": "temperature", "value": 2}]"#;
/// let changes: Vec<Change> = serde_json::from_str(json).unwrap();
/// assert_eq!(changes[1], Change::Temperature { value: 2.0 });
/// ```
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "change", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Change {
    /// Heads whose output is zero.
    Off {
        /// Which attention.
        site: Site,
        /// Its layer.
        layer: Option<usize>,
        /// Its head.
        head: Option<usize>,
    },
    /// Keys that are not seen.
    Forbid {
        /// Which attention.
        site: Site,
        /// Its layer.
        layer: Option<usize>,
        /// Its head.
        head: Option<usize>,
        /// The query.
        row: Option<usize>,
        /// The key.
        column: usize,
    },
    /// Keys whose score is raised, or lowered.
    Strengthen {
        /// Which attention.
        site: Site,
        /// Its layer.
        layer: Option<usize>,
        /// Its head.
        head: Option<usize>,
        /// The query.
        row: Option<usize>,
        /// The key.
        column: usize,
        /// What is added to the score.
        bias: f64,
    },
    /// What all scores are divided by.
    Temperature {
        /// A positive number.
        value: f64,
    },
    /// How scores become weights.
    Normalizer {
        /// softmax, sparsemax, entmax or argmax.
        name: NormalizerName,
    },
    /// How far self-attention sees.
    Window {
        /// The longest distance.
        reach: usize,
    },
    /// A head with what it does for another input.
    Patch {
        /// Which attention.
        site: Site,
        /// Its layer.
        layer: usize,
        /// Its head.
        head: usize,
        /// The other input, as `regard predict` takes it.
        from: String,
        /// Its attention, or its output.
        what: Patched,
    },
}

/// The normalizers that can be chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NormalizerName {
    /// Every key has a weight.
    Softmax,
    /// Weak keys have none.
    Sparsemax,
    /// Between the two.
    Entmax,
    /// The strongest key alone.
    Argmax,
}

impl From<NormalizerName> for Normalizer {
    fn from(name: NormalizerName) -> Self {
        match name {
            NormalizerName::Softmax => Self::Softmax,
            NormalizerName::Sparsemax => Self::Sparsemax,
            NormalizerName::Entmax => Self::Entmax15,
            NormalizerName::Argmax => Self::Argmax,
        }
    }
}

/// All changes as one. Refuses two temperatures, normalizers or windows, numbers that cannot be meant,
/// attention that the model does not have, and heads that cannot be put from another input.
pub fn intervention(model: &dyn Model, input: &Input, changes: &[Change]) -> Result<Intervention> {
    let mut all = Intervention::default();
    for change in changes {
        match change.clone() {
            Change::Off { site, layer, head } => all.heads.push(HeadRef { site, layer, head }),
            Change::Forbid { site, layer, head, row, column } => {
                all.cells.push(CellChange { site, layer, head, row, column, bias: None });
            }
            Change::Strengthen { site, layer, head, row, column, bias } => {
                let bias = Some(bias);
                all.cells.push(CellChange { site, layer, head, row, column, bias });
            }
            Change::Temperature { value } => once("temperature", &mut all.temperature, value)?,
            Change::Normalizer { name } => {
                once("normalizer", &mut all.normalizer, Normalizer::from(name))?;
            }
            Change::Window { reach } => once("window", &mut all.window, reach)?,
            Change::Patch { site, layer, head, from, what } => {
                let from = Input::named(model.asks().form, &from)?;
                all.patches.push(patch(model, &from, site, layer, head, what)?);
            }
        }
    }
    all.check()?;
    check_places(model, input, &all)?;
    Ok(all)
}

/// A head with what it does for another input. Refuses a head that the model does not have.
pub fn patch(
    model: &dyn Model,
    from: &Input,
    site: Site,
    layer: usize,
    head: usize,
    what: Patched,
) -> Result<HeadPatch> {
    let (shown, calls) = recorded(|| model.show(from));
    shown?;
    HeadPatch::of(&calls, site, layer, head, what).map_err(|error| {
        Error::invalid(format!("{}: {error}", place(site, Some(layer), Some(head))))
    })
}

fn once<T>(what: &str, slot: &mut Option<T>, value: T) -> Result<()> {
    match slot.replace(value) {
        None => Ok(()),
        Some(_) => Err(Error::invalid(format!("there are two changes of the {what}"))),
    }
}

/// Refuses changes of attention that is not there: they would do nothing, and not say so.
fn check_places(model: &dyn Model, input: &Input, all: &Intervention) -> Result<()> {
    if all.heads.is_empty() && all.cells.is_empty() && all.patches.is_empty() {
        return Ok(());
    }
    let (answer, calls) = recorded(|| model.predict(std::slice::from_ref(input)));
    answer?;
    let Unmet { heads, cells } = Unmet::of(all, &calls);
    let what = match (heads.first(), cells.first()) {
        (Some(&at), _) => {
            let HeadRef { site, layer, head } = all.heads[at];
            place(site, layer, head)
        }
        (None, Some(&at)) => {
            let CellChange { site, layer, head, row, column, .. } = all.cells[at];
            let row = row.map(|row| format!(", row {row}")).unwrap_or_default();
            format!("{}{row}, column {column}", place(site, layer, head))
        }
        (None, None) => return Ok(()),
    };
    Err(Error::invalid(format!("the model has no {what} for this input")))
}

/// The changes that change nothing, since what they name is not there: their places in the lists of an
/// [`Intervention`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Unmet {
    /// Of the heads that are switched off.
    pub heads: Vec<usize>,
    /// Of the cells that are forbidden or strengthened.
    pub cells: Vec<usize>,
}

impl Unmet {
    /// Those of which none of a model's recorded calls has anything.
    pub fn of(all: &Intervention, calls: &[Recorded]) -> Self {
        let met = |site, layer: Option<usize>, head: Option<usize>, cell: Option<&CellChange>| {
            calls.iter().any(|call| {
                let shape = call.out.shape();
                let keys = call.weights.as_ref().map(|weights| weights.shape()[3]);
                let row = cell.and_then(|cell| cell.row);
                call.site == site
                    && layer.is_none_or(|layer| layer == call.layer)
                    && head.is_none_or(|head| head < shape[1])
                    && row.is_none_or(|row| (call.row..call.row + shape[2]).contains(&row))
                    && cell.is_none_or(|cell| keys.is_none_or(|keys| cell.column < keys))
            })
        };
        let head = |one: &HeadRef| met(one.site, one.layer, one.head, None);
        let cell = |one: &CellChange| met(one.site, one.layer, one.head, Some(one));
        let heads = (0..all.heads.len()).filter(|&at| !head(&all.heads[at])).collect();
        let cells = (0..all.cells.len()).filter(|&at| !cell(&all.cells[at])).collect();
        Self { heads, cells }
    }

    /// Whether all that is named is there.
    pub fn is_empty(&self) -> bool {
        self.heads.is_empty() && self.cells.is_empty()
    }
}

/// "encoder attention, layer 0, head 2".
fn place(site: Site, layer: Option<usize>, head: Option<usize>) -> String {
    let site = serde_json::to_value(site).ok();
    let site = site.as_ref().and_then(|site| site.as_str()).unwrap_or_default();
    let layer = layer.map(|layer| format!(", layer {layer}")).unwrap_or_default();
    let head = head.map(|head| format!(", head {head}")).unwrap_or_default();
    format!("{site} attention{layer}{head}")
}
