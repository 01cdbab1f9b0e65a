//! A head with another head's weights or output in place of its own: from another input, or one
//! vector for every query.

use super::intervention::Here;
use super::{Attended, Recorded, Site};
use regard_tensor::{Error, Result, Tensor, ensure};
use std::sync::Arc;

/// What of a head is replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum Patched {
    /// Its weights; its output follows from them and from the values of this input.
    Attention,
    /// Its output.
    Output,
}

/// A head whose weights or output are these numbers and not its own.
///
/// ```
/// use regard::attention::{HeadPatch, Intervention, Patched, Site, recorded};
/// use regard::prelude::*;
/// let model = TransformerEncoder::new(&Parameters::new(DType::F64, 1), &TransformerConfig::new(8, 2, 1), 8)?;
/// let [a, b] = [1, 2].map(|seed| Random::new(seed).normal(&[1, 4, 8], 0.0, 1.0, DType::F64));
/// let (a, b) = (a?, b?);
/// let weights = |x: &Tensor| model.encode(x, None, Mode::Infer, Need::WEIGHTS);
/// let (other, calls) = recorded(|| weights(&b));
/// let patch = HeadPatch::of(&calls, Site::Encoder, 0, 1, Patched::Attention)?;
/// let patched = Intervention { patches: vec![patch], ..Default::default() }.during(|| weights(&a))?;
/// let head = |all: &Tensor, head| all.narrow(1, head, 1)?.contiguous()?.to_vec::<f64>();
/// let (patched, other, own) = (&patched.weights[0], &other?.weights[0], &weights(&a)?.weights[0]);
/// assert_eq!(head(patched, 0)?, head(own, 0)?);
/// let near = |(a, b): (&f64, &f64)| (a - b).abs() < 1e-6;
/// assert!(head(patched, 1)?.iter().zip(&head(other, 1)?).all(near));
/// # Ok::<(), regard::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct HeadPatch {
    /// Which attention.
    pub site: Site,
    /// The layer, from 0.
    pub layer: usize,
    /// The head, from 0.
    pub head: usize,
    /// What is replaced.
    pub what: Patched,
    /// The queries that are replaced, from the first on; all where there is none, each by the one row
    /// of `numbers`.
    pub rows: Option<usize>,
    /// rows × keys, or rows × width of a head.
    pub numbers: Arc<[f32]>,
}

impl HeadPatch {
    /// What a head gave in a computation that was [`recorded`](super::recorded): of calls that gave
    /// the same row the last counts. Refuses a head that was not there, and rows that several
    /// sequences gave side by side.
    pub fn of(
        calls: &[Recorded],
        site: Site,
        layer: usize,
        head: usize,
        what: Patched,
    ) -> Result<Self> {
        let mut rows: Vec<Vec<f32>> = Vec::new();
        for call in calls.iter().filter(|call| (call.site, call.layer) == (site, layer)) {
            let all = match what {
                Patched::Output => Some(&call.out),
                Patched::Attention => call.weights.as_ref(),
            };
            let Some(all) = all.filter(|all| all.shape()[0] == 1) else { continue };
            let heads = all.shape()[1];
            ensure!(head < heads, "there is no head {head}; there are {heads}, from 0");
            let one = all.narrow(1, head, 1)?.contiguous()?;
            let one = one.to_dtype(regard_tensor::DType::F32)?.to_vec::<f32>()?;
            let width = all.shape()[3].max(1);
            for (at, numbers) in one.chunks(width).enumerate() {
                let row = call.row + at;
                rows.resize(rows.len().max(row + 1), Vec::new());
                rows[row] = numbers.to_vec();
            }
        }
        let width = rows.first().map_or(0, Vec::len);
        ensure!(width > 0, "no call of that attention was for a single sequence");
        ensure!(
            rows.iter().all(|row| row.len() == width),
            "the rows of that attention have different lengths; its output can be taken instead"
        );
        let (count, numbers) = (rows.len(), rows.concat().into());
        Ok(Self { site, layer, head, what, rows: Some(count), numbers })
    }

    /// A head whose output is one vector, whatever is asked: for example its mean.
    ///
    /// ```
    /// use regard::attention::{HeadPatch, Site};
    /// assert_eq!(HeadPatch::constant(Site::Cross, 0, 1, vec![0.5; 4]).rows, None);
    /// ```
    pub fn constant(site: Site, layer: usize, head: usize, vector: Vec<f32>) -> Self {
        let numbers = vector.into();
        Self { site, layer, head, what: Patched::Output, rows: None, numbers }
    }

    /// With this head replaced in what an attention gave of values `[B, H, Nk, Dv]`.
    pub(super) fn apply(&self, here: Here, attended: Attended, v: &Tensor) -> Result<Attended> {
        if (self.site, self.layer) != (here.site, here.layer) {
            return Ok(attended);
        }
        let shape = attended.out.shape().to_vec();
        let [heads, queries, width] = [shape[1], shape[2], shape[3]];
        ensure!(self.head < heads, "there is no head {}; there are {heads}, from 0", self.head);
        match self.what {
            Patched::Output => {
                let (rows, numbers) = self.rows_of(here, heads, queries, width, "wide")?;
                let numbers = numbers.to_dtype(attended.out.dtype())?;
                let numbers = numbers.to_device(attended.out.device())?;
                let rows = rows.to_device(attended.out.device())?;
                Ok(Attended { out: rows.where_(&numbers, &attended.out)?, ..attended })
            }
            Patched::Attention => {
                let missing = || Error::new("attention along edges has no weights to replace");
                let own = attended.weights.as_ref().ok_or_else(missing)?;
                let keys = own.shape()[3];
                let (rows, numbers) = self.rows_of(here, heads, queries, keys, "long")?;
                let numbers = numbers.to_dtype(own.dtype())?.to_device(own.device())?;
                let rows = rows.to_device(own.device())?;
                let weights = rows.where_(&numbers, own)?;
                ensure!(
                    v.shape()[1] == heads || v.shape()[1] == 1,
                    "heads that share values keep their weights"
                );
                let out = weights.matmul(&v.to_dtype(weights.dtype())?)?;
                let out = out.to_dtype(attended.out.dtype())?;
                let out = rows.where_(&out, &attended.out)?;
                Ok(Attended { out, weights: Some(weights), ..attended })
            }
        }
    }

    /// Which rows of `[1, H, Nq, 1]` are replaced, and by what, `[1, H, Nq, width]`.
    fn rows_of(
        &self,
        here: Here,
        heads: usize,
        queries: usize,
        width: usize,
        how: &str,
    ) -> Result<(Tensor, Tensor)> {
        let count = self.rows.unwrap_or(1).max(1);
        let given = self.numbers.len() / count;
        ensure!(given == width, "the head that is put here is {given} {how}, this one {width}");
        ensure!(
            self.numbers.len() == count * width,
            "{} numbers are no {count} rows of {width}",
            self.numbers.len()
        );
        let mut is_new = vec![false; heads * queries];
        let mut numbers = vec![0.0; heads * queries * width];
        for query in 0..queries {
            let row = self.rows.map_or(0, |_| here.row + query);
            let Some(given) = self.numbers.chunks(width.max(1)).nth(row) else { continue };
            let place = self.head * queries + query;
            is_new[place] = true;
            numbers[place * width..][..width].copy_from_slice(given);
        }
        let is_new = Tensor::from_bools(&is_new, &[1, heads, queries, 1])?;
        Ok((is_new, Tensor::from_vec(numbers, &[1, heads, queries, width])?))
    }
}
