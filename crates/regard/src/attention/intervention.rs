//! Changes to the attention of a model that is trained, while it is used: another normalizer or
//! temperature, heads switched off or replaced, pairs forbidden or strengthened.
//!
//! A model names its attentions by [`Site`] and layer where it calls them; [`Intervention::during`]
//! holds for what its closure computes on this thread, and nowhere else. What has no name is never
//! changed: scores that are a model's output stay as they are.

use super::{Attended, Attention, HeadPatch, Mask, Need, Normalizer, Patched, Score, Window};
use super::{recorded, traced};
use regard_tensor::{DType, Result, Tensor, ensure};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

/// Which attention of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum Site {
    /// Self-attention of what is read.
    Encoder,
    /// Self-attention of what is written.
    Decoder,
    /// From what is written to what is read.
    Cross,
    /// A learned query over a whole sequence.
    Pooling,
    /// The hops of a memory network; a hop is a layer.
    Hops,
    /// From the words of a text to those of a question.
    Question,
    /// Along the edges of a graph; rows and columns are nodes.
    Graph,
    /// The kernel of a regression; columns are the data.
    Kernel,
}

impl Site {
    /// Whether queries and keys are the same sequence, so that their distance means something.
    ///
    /// ```
    /// use regard::attention::Site;
    /// assert!(Site::Encoder.is_self_attention() && !Site::Cross.is_self_attention());
    /// ```
    pub fn is_self_attention(self) -> bool {
        matches!(self, Self::Encoder | Self::Decoder)
    }
}

/// A head of a layer; all there are where none is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct HeadRef {
    /// Which attention.
    pub site: Site,
    /// The layer, from 0.
    #[cfg_attr(feature = "serde", serde(default))]
    pub layer: Option<usize>,
    /// The head, from 0.
    #[cfg_attr(feature = "serde", serde(default))]
    pub head: Option<usize>,
}

impl HeadRef {
    fn is_at(&self, here: Here) -> bool {
        self.site == here.site && self.layer.is_none_or(|layer| layer == here.layer)
    }
}

/// Pairs of a query and a key, and what is done to their scores.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct CellChange {
    /// Which attention.
    pub site: Site,
    /// The layer, from 0; all where none is named.
    #[cfg_attr(feature = "serde", serde(default))]
    pub layer: Option<usize>,
    /// The head, from 0; all where none is named.
    #[cfg_attr(feature = "serde", serde(default))]
    pub head: Option<usize>,
    /// The query, from 0; all where none is named.
    #[cfg_attr(feature = "serde", serde(default))]
    pub row: Option<usize>,
    /// The key, from 0.
    pub column: usize,
    /// What is added to the score; where there is none, the pair is forbidden.
    #[cfg_attr(feature = "serde", serde(default))]
    pub bias: Option<f64>,
}

/// What is changed.
///
/// ```
/// use regard::prelude::*;
/// use regard::attention::Intervention;
/// let model = TransformerEncoder::new(&Parameters::new(DType::F64, 1), &TransformerConfig::new(8, 2, 1), 8)?;
/// let x = Random::new(1).normal(&[1, 4, 8], 0.0, 1.0, DType::F64)?;
/// let hard = Intervention { normalizer: Some(Normalizer::Argmax), ..Intervention::default() };
/// let weights = hard.during(|| model.encode(&x, None, Mode::Infer, Need::WEIGHTS))?.weights;
/// assert!(weights[0].to_vec::<f64>()?.iter().all(|&w| w == 0.0 || w == 1.0));
/// # Ok::<(), regard::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Intervention {
    /// How scores become weights; as the model does it where none is named.
    pub normalizer: Option<Normalizer>,
    /// What scores are divided by.
    pub temperature: Option<f64>,
    /// The longest distance that self-attention sees.
    pub window: Option<usize>,
    /// Heads that are switched off: their output is zero.
    pub heads: Vec<HeadRef>,
    /// Pairs that are forbidden or strengthened.
    pub cells: Vec<CellChange>,
    /// Heads that are replaced, one after the other.
    pub patches: Vec<HeadPatch>,
}

/// The most pairs for which a change of single ones is held in an array.
const MOST_PAIRS: usize = 1 << 26;

/// Where attention is being computed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Here {
    pub(crate) site: Site,
    pub(crate) layer: usize,
    /// The row that the first query stands for.
    pub(crate) row: usize,
}

thread_local! {
    static ACTIVE: RefCell<Option<Rc<Intervention>>> = const { RefCell::new(None) };
    static HERE: Cell<Option<Here>> = const { Cell::new(None) };
    static COLUMNS: RefCell<Option<Arc<[usize]>>> = const { RefCell::new(None) };
}

/// Puts back what was there, also where a closure panics.
struct Restore<F: FnMut()>(F);

impl<F: FnMut()> Drop for Restore<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// Computes the attention of a layer, whose first query stands for this row.
pub(crate) fn at<R>(site: Site, layer: usize, row: usize, f: impl FnOnce() -> R) -> R {
    let before = HERE.replace(Some(Here { site, layer, row }));
    let _restore = Restore(|| HERE.set(before));
    f()
}

/// Computes attention whose keys stand for these columns: those of edges for the nodes they come from.
pub(crate) fn with_columns<R>(columns: &Arc<[usize]>, f: impl FnOnce() -> R) -> R {
    let mut before = COLUMNS.replace(Some(columns.clone()));
    let _restore = Restore(move || {
        COLUMNS.replace(before.take());
    });
    f()
}

/// Computes attention beside, above or below the one that is named already.
pub(crate) fn moved<R>(to: impl FnOnce(&mut Here), f: impl FnOnce() -> R) -> R {
    let Some(mut here) = HERE.get() else { return f() };
    to(&mut here);
    at(here.site, here.layer, here.row, f)
}

/// What is to be changed here, or kept; none where it is neither.
pub(super) fn active() -> Option<Active> {
    let here = HERE.get()?;
    let intervention = ACTIVE.with_borrow(|active| active.clone());
    if intervention.is_none() && !recorded::is_on() && !traced::is_on() {
        return None;
    }
    Some(Active { intervention: intervention.unwrap_or_default(), here })
}

impl Intervention {
    /// Whether nothing is changed.
    ///
    /// ```
    /// use regard::attention::Intervention;
    /// assert!(Intervention::default().is_none());
    /// ```
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// Refuses a temperature that is no positive number, and a bias that is none.
    ///
    /// ```
    /// use regard::attention::Intervention;
    /// let cold = Intervention { temperature: Some(0.0), ..Intervention::default() };
    /// assert_eq!(cold.check().unwrap_err().to_string(), "a temperature of 0");
    /// ```
    pub fn check(&self) -> Result<()> {
        if let Some(t) = self.temperature {
            ensure!(t.is_finite() && t > 0.0, "a temperature of {t}");
        }
        for bias in self.cells.iter().filter_map(|cell| cell.bias) {
            ensure!(bias.is_finite(), "a bias of {bias}");
        }
        Ok(())
    }

    /// Holds while `f` runs, on this thread.
    ///
    /// ```
    /// use regard::attention::Intervention;
    /// assert_eq!(Intervention::default().during(|| 3), 3);
    /// ```
    pub fn during<R>(&self, f: impl FnOnce() -> R) -> R {
        let own = (!self.is_none()).then(|| Rc::new(self.clone()));
        let mut before = ACTIVE.replace(own);
        let _restore = Restore(move || {
            ACTIVE.replace(before.take());
        });
        f()
    }
}

/// What is to be changed, and where.
pub(super) struct Active {
    intervention: Rc<Intervention>,
    here: Here,
}

impl Active {
    /// As [`Attention::attend`] on q, k and v `[B, H, N, D]`, changed.
    pub(super) fn attend(
        &self,
        attention: &Attention,
        [q, k, v]: [&Tensor; 3],
        mask: &Mask,
        need: Need,
    ) -> Result<Attended> {
        let change = &self.intervention;
        change.check()?;
        let pairs = [q.shape()[1], q.shape()[2], k.shape()[2]];
        let mut mask = mask.clone();
        if let Some(reach) = change.window.filter(|_| self.here.site.is_self_attention()) {
            let given = mask.window.unwrap_or(Window { left: reach, right: reach });
            let window = Window { left: given.left.min(reach), right: given.right.min(reach) };
            mask.window = Some(window);
        }
        if let Some(allowed) = self.allowed(pairs)? {
            mask.dense = Some(match mask.dense {
                Some(dense) => both(&dense, &allowed)?,
                None => allowed,
            });
        }
        let mut attention = attention.clone();
        if let Some(bias) = self.bias(pairs, q.dtype())? {
            attention.bias.full = Some(match attention.bias.full {
                Some(full) => full.add(&bias)?,
                None => bias,
            });
        }
        let temperature = change.temperature.unwrap_or(1.0);
        if temperature != 1.0 {
            attention = tempered(&attention, [q, k, v], temperature)?;
        }
        attention.normalizer = change.normalizer.unwrap_or(attention.normalizer);
        let kept = recorded::is_on() || traced::is_on();
        let wants = kept || self.patches(Patched::Attention).next().is_some();
        let weights = need.weights || (wants && mask.edges.is_none());
        let attended = attention.attend_lifted([q, k, v], &mask, Need { weights, ..need })?;
        let mut patches =
            [Patched::Attention, Patched::Output].into_iter().flat_map(|what| self.patches(what));
        let attended =
            patches.try_fold(attended, |attended, patch| patch.apply(self.here, attended, v))?;
        let attended = self.without_heads(attended, pairs[0])?;
        recorded::keep(self.here, &attended);
        let attended = traced::keep(self.here, attended, v)?;
        let weights = attended.weights.filter(|_| need.weights);
        Ok(Attended { out: attended.out, weights, ..attended })
    }

    /// What is replaced here, the weights before the outputs.
    fn patches(&self, what: Patched) -> impl Iterator<Item = &HeadPatch> {
        let here = self.here;
        let is_here = move |patch: &&HeadPatch| {
            (patch.site, patch.layer, patch.what) == (here.site, here.layer, what)
        };
        self.intervention.patches.iter().filter(is_here)
    }

    fn cells(&self) -> impl Iterator<Item = &CellChange> {
        let of =
            |cell: &CellChange| HeadRef { site: cell.site, layer: cell.layer, head: cell.head };
        self.intervention.cells.iter().filter(move |cell| of(cell).is_at(self.here))
    }

    /// The places of a cell among H × Nq × Nk, or 1 × Nq × Nk where all heads are alike.
    fn places(&self, cell: &CellChange, [h, nq, nk]: [usize; 3]) -> Vec<usize> {
        let columns: Vec<usize> = COLUMNS.with_borrow(|stand_for| match stand_for {
            Some(all) => (0..nk).filter(|&key| all.get(key) == Some(&cell.column)).collect(),
            None => (cell.column..nk).take(1).collect(),
        });
        let heads = match cell.head {
            Some(head) if h > 1 => head..(head + 1).min(h),
            Some(head) => 0..usize::from(head == 0),
            None => 0..h,
        };
        let row = cell.row.map(|row| row.checked_sub(self.here.row));
        let rows = match row {
            None => 0..nq,
            Some(Some(row)) if row < nq => row..row + 1,
            _ => 0..0,
        };
        heads
            .flat_map(|head| rows.clone().map(move |row| (head * nq + row) * nk))
            .flat_map(|first| columns.iter().map(move |column| first + column))
            .collect()
    }

    /// The sizes of an array of changes: one for all heads where none is named.
    fn sizes(&self, [h, nq, nk]: [usize; 3], forbidding: bool) -> Result<Option<[usize; 3]>> {
        let mut cells = self.cells().filter(|cell| cell.bias.is_none() == forbidding).peekable();
        if cells.peek().is_none() {
            return Ok(None);
        }
        let sizes = [if cells.any(|cell| cell.head.is_some()) { h } else { 1 }, nq, nk];
        ensure!(
            sizes.iter().product::<usize>() <= MOST_PAIRS,
            "single pairs cannot be changed among {nq} × {nk}"
        );
        Ok(Some(sizes))
    }

    /// Truths `[1, 1 or H, Nq, Nk]`, where a pair is forbidden.
    fn allowed(&self, pairs: [usize; 3]) -> Result<Option<Tensor>> {
        let Some(sizes) = self.sizes(pairs, true)? else { return Ok(None) };
        let mut truths = vec![true; sizes.iter().product()];
        for cell in self.cells().filter(|cell| cell.bias.is_none()) {
            self.places(cell, sizes).into_iter().for_each(|place| truths[place] = false);
        }
        Tensor::from_bools(&truths, &[1, sizes[0], sizes[1], sizes[2]]).map(Some)
    }

    /// What is added to the scores, `[1, 1 or H, Nq, Nk]`, where a pair is strengthened.
    fn bias(&self, pairs: [usize; 3], dtype: DType) -> Result<Option<Tensor>> {
        let Some(sizes) = self.sizes(pairs, false)? else { return Ok(None) };
        let mut numbers = vec![0.0; sizes.iter().product()];
        for cell in self.cells() {
            let bias = cell.bias.unwrap_or(0.0);
            self.places(cell, sizes).into_iter().for_each(|place| numbers[place] += bias);
        }
        let computed = if dtype == DType::F64 { DType::F64 } else { DType::F32 };
        let bias = Tensor::from_vec(numbers, &[1, sizes[0], sizes[1], sizes[2]])?;
        bias.to_dtype(computed).map(Some)
    }

    /// With zeros for the heads that are switched off.
    fn without_heads(&self, attended: Attended, heads: usize) -> Result<Attended> {
        let mut keep = vec![true; heads];
        for off in self.intervention.heads.iter().filter(|off| off.is_at(self.here)) {
            match off.head {
                Some(head) if head < heads => keep[head] = false,
                Some(_) => {}
                None => keep.fill(false),
            }
        }
        if keep.iter().all(|&keep| keep) {
            return Ok(attended);
        }
        let kept = |x: &Tensor| {
            let mut shape = vec![1; x.rank()];
            shape[1] = heads;
            let keep = Tensor::from_bools(&keep, &shape)?.to_device(x.device())?;
            keep.where_(x, &Tensor::zeros(&[], x.dtype())?)
        };
        let each = |x: &Option<Tensor>| x.as_ref().map(kept).transpose();
        Ok(Attended {
            out: kept(&attended.out)?,
            weights: each(&attended.weights)?,
            edge_weights: each(&attended.edge_weights)?,
            ..attended
        })
    }
}

/// Where both allow.
fn both(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    let no = Tensor::from_bools(&[false], &[])?;
    a.where_(b, &no)
}

/// The scores, biases included, divided by a temperature.
fn tempered(attention: &Attention, [q, k, v]: [&Tensor; 3], t: f64) -> Result<Attention> {
    let by = |x: &Tensor| x.scale(1.0 / t);
    let score = match &attention.score {
        Score::ScaledDot => Score::Dot { scale: 1.0 / ((q.shape()[3] as f64).sqrt() * t) },
        Score::Dot { scale } => Score::Dot { scale: scale / t },
        Score::Additive { activation, w } => Score::Additive { activation: *activation, w: by(w)? },
        Score::Own { .. } | Score::Expression { .. } => return of_scores(attention, [q, k, v], t),
    };
    let mut changed = Attention { score, ..attention.clone() };
    let bias = &mut changed.bias;
    for tensor in [&mut bias.key, &mut bias.full, &mut bias.relative].into_iter().flatten() {
        *tensor = by(tensor)?;
    }
    bias.alibi.iter_mut().flatten().for_each(|slope| *slope /= t);
    Ok(changed)
}

/// The same where a score has no factor: its scores, computed, are the bias of a score of zero.
fn of_scores(attention: &Attention, qkv: [&Tensor; 3], t: f64) -> Result<Attention> {
    let plain = Attention { normalizer: Normalizer::None, dropout: None, ..attention.clone() };
    let scores = plain.attend_lifted(qkv, &Mask::none(), Need::WEIGHTS)?.weights;
    let scores = scores.ok_or_else(|| crate::Error::new("attention gave no weights"))?;
    let mut changed = Attention { score: Score::Dot { scale: 0.0 }, ..attention.clone() };
    changed.bias = super::Bias { full: Some(scores.scale(1.0 / t)?), ..super::Bias::default() };
    Ok(changed)
}
