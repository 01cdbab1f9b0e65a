//! Where in the sequence a vector stands: attention itself does not see it.

use regard_tensor::{DType, Result, Tensor, ensure};
use std::sync::{Arc, Mutex};

/// How a model knows about order.
///
/// ```
/// use regard::prelude::*;
/// assert_eq!(serde_json::from_str::<Position>("\"alibi\"").unwrap(), Position::Alibi);
/// let odd = MultiHeadConfig { position: Position::Rotary, ..MultiHeadConfig::new(6, 2) };
/// let error = odd.check().unwrap_err().to_string();
/// assert_eq!(error, "rotary positions turn pairs; a head width of 3 is odd");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum Position {
    /// It does not: a set.
    None,
    /// Sines and cosines are added to the input.
    #[default]
    Sinusoidal,
    /// A learned vector per place is added to the input.
    Learned,
    /// Queries and keys are turned by their place.
    Rotary,
    /// A penalty that grows with the distance.
    Alibi,
    /// A learned bias per distance and head.
    Relative,
}

/// p_{t,2i} = sin(t / 10000^{2i/D}), p_{t,2i+1} = cos(same), for places from `start` on:
/// `[length, width]`. Refuses more than memory holds.
///
/// ```
/// use regard::prelude::*;
/// use regard::layers::sinusoids;
/// let p = sinusoids(0, 2, 4, DType::F64)?.to_vec::<f64>()?;
/// assert_eq!(p[..4], [0.0, 1.0, 0.0, 1.0]);
/// assert!((p[4] - 1f64.sin()).abs() < 1e-12 && (p[7] - 0.01f64.cos()).abs() < 1e-12);
/// # Ok::<(), regard::Error>(())
/// ```
pub fn sinusoids(start: usize, length: usize, width: usize, dtype: DType) -> Result<Tensor> {
    let number = |t: usize, d: usize| {
        let angle = t as f64 / 10000f64.powf((d / 2 * 2) as f64 / width as f64);
        if d.is_multiple_of(2) { angle.sin() } else { angle.cos() }
    };
    places("sinusoids", start, length)?;
    let mut all = Tensor::uninit(&[length, width], DType::F64)?;
    for (at, to) in all.as_mut_slice::<f64>()?.iter_mut().enumerate() {
        *to = number(start + at / width, at % width);
    }
    all.to_dtype(dtype)
}

/// Refuses places that no number holds.
fn places(op: &str, start: usize, length: usize) -> Result<()> {
    ensure!(
        start.checked_add(length).is_some(),
        "{op}: {length} places from {start} on are more than can be counted"
    );
    Ok(())
}

/// Turns pairs of features by their place: x `[B, H, N, D]` with D even, the first row at place
/// `start`. The pair (x_i, x_{i+D/2}) is turned by t / 10000^{2i/D}, so that q·k depends on the
/// distance alone (Su and others 2021).
/// Refuses a tensor that is not `[B, H, N, D]`, and an odd D.
///
/// ```
/// use regard::prelude::*;
/// use regard::layers::rotate;
/// let random = Random::new(1);
/// let (q, k) = (random.normal(&[1, 1, 1, 8], 0.0, 1.0, DType::F64)?, random.normal(&[1, 1, 1, 8], 0.0, 1.0, DType::F64)?);
/// let score = |i, j| Ok::<_, regard::Error>(rotate(&q, i)?.mul(&rotate(&k, j)?)?.sum_all()?.item()?);
/// assert!((score(3, 1)? - score(10, 8)?).abs() < 1e-12);
/// assert!((score(3, 1)? - score(3, 2)?).abs() > 1e-3);
/// # Ok::<(), regard::Error>(())
/// ```
pub fn rotate(x: &Tensor, start: usize) -> Result<Tensor> {
    let [n, d] = turnable(x, start)?;
    let table = |f: fn(f64) -> f64| angles(start, n, d, x.dtype(), f)?.to_device(x.device());
    turned(x, &table(f64::cos)?, &table(f64::sin)?)
}

/// [`rotate`], whose tables are kept from one call to the next.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rotary {
    cos: PositionTable,
    sin: PositionTable,
}

impl Rotary {
    pub(crate) fn rotate(&self, x: &Tensor, start: usize) -> Result<Tensor> {
        let [n, d] = turnable(x, start)?;
        let rows = |table: &PositionTable, f: fn(f64) -> f64| {
            table.rows(start, n, x, |start, n| angles(start, n, d, x.dtype(), f))
        };
        turned(x, &rows(&self.cos, f64::cos)?, &rows(&self.sin, f64::sin)?)
    }
}

/// Rows of a table with one for each place, kept from one call to the next. A row depends on its place alone.
#[derive(Clone, Debug, Default)]
pub(crate) struct PositionTable {
    kept: Arc<Mutex<Option<Tensor>>>,
}

impl PositionTable {
    /// `n` rows from `start` on, beside another tensor and of its type, as `make` gives them.
    pub(crate) fn rows(
        &self,
        start: usize,
        n: usize,
        like: &Tensor,
        make: impl Fn(usize, usize) -> Result<Tensor>,
    ) -> Result<Tensor> {
        // More are made anew at each call: what is kept stays small beside a model.
        const MOST: usize = 1 << 13;
        let end = start.saturating_add(n);
        if end > MOST {
            return make(start, n)?.to_device(like.device());
        }
        let mut kept = self.kept.lock().unwrap_or_else(|e| e.into_inner());
        let fits = |rows: &&Tensor| {
            rows.shape()[0] >= end && rows.dtype() == like.dtype() && rows.device() == like.device()
        };
        if let Some(rows) = kept.as_ref().filter(fits) {
            return rows.narrow(0, start, n);
        }
        // A decoder asks for one more at every step.
        let rows = make(0, end.next_power_of_two().max(64))?.to_device(like.device())?;
        kept.insert(rows).narrow(0, start, n)
    }
}

/// The length and the width of what is turned.
fn turnable(x: &Tensor, start: usize) -> Result<[usize; 2]> {
    ensure!(
        x.rank() == 4 && x.shape()[3].is_multiple_of(2),
        "rotary positions: {:?}; they want [B, H, N, D] with D even",
        x.shape()
    );
    let (n, d) = (x.shape()[2], x.shape()[3]);
    places("rotary positions", start, n)?;
    Ok([n, d])
}

/// `[n, D/2]`: a function of the angles of places.
fn angles(start: usize, n: usize, d: usize, dtype: DType, f: fn(f64) -> f64) -> Result<Tensor> {
    let half = d / 2;
    let all = (start..start + n).flat_map(|t| {
        (0..half).map(move |i| f(t as f64 / 10000f64.powf((2 * i) as f64 / d as f64)))
    });
    Tensor::from_vec(all.collect::<Vec<f64>>(), &[n, half])?.to_dtype(dtype)
}

fn turned(x: &Tensor, cos: &Tensor, sin: &Tensor) -> Result<Tensor> {
    let half = x.shape()[3] / 2;
    let parts = x.split(3, &[half, half])?;
    let (a, b) = (&parts[0], &parts[1]);
    let first = a.mul(cos)?.sub(&b.mul(sin)?)?;
    let second = a.mul(sin)?.add(&b.mul(cos)?)?;
    Tensor::cat(&[first, second], 3)
}

/// ALiBi's slopes for a number of heads: 2^{−8h/H} (Press, Smith, Lewis 2022).
///
/// ```
/// use regard::prelude::*;
/// use regard::layers::alibi_slopes;
/// assert_eq!(alibi_slopes(2), [0.0625, 0.00390625]);
/// ```
pub fn alibi_slopes(heads: usize) -> Vec<f64> {
    (1..=heads).map(|h| 2f64.powf(-8.0 * h as f64 / heads as f64)).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::cell::Cell;

    #[test]
    fn rows_that_were_made_are_given_again_and_are_those_made_alone() {
        let table = PositionTable::default();
        let made = Cell::new(0);
        let mut asked = 0;
        for dtype in [DType::F32, DType::F64] {
            let like = Tensor::zeros(&[1], dtype).unwrap();
            made.set(0);
            for (start, n) in
                [(0, 3), (3, 1), (0, 64), (60, 5), (100, 0), (1, 126), (9000, 2), (0, 1)]
            {
                let make = |start, n| {
                    made.set(made.get() + 1);
                    sinusoids(start, n, 6, dtype)
                };
                let rows = table.rows(start, n, &like, make).unwrap();
                let alone = sinusoids(start, n, 6, dtype).unwrap();
                assert_eq!((rows.dtype(), rows.shape()), (dtype, &[n, 6][..]));
                let wide = |x: &Tensor| x.to_dtype(DType::F64).unwrap().to_vec::<f64>().unwrap();
                assert_eq!(wide(&rows), wide(&alone), "{n} from {start}");
                asked += 1;
            }
            // 64 rows, 128 of them, and the two that are too far to be kept.
            assert_eq!(made.get(), 3);
        }
        assert_eq!(asked, 16);
        let x = Tensor::from_vec((0..24).map(f64::from).collect(), &[1, 2, 3, 4]).unwrap();
        let rotary = Rotary::default();
        for start in [0, 5, 1, 70, 8192] {
            let [a, b] = [rotary.rotate(&x, start), rotate(&x, start)].map(|x| x.unwrap());
            assert_eq!(a.to_vec::<f64>().unwrap(), b.to_vec::<f64>().unwrap());
        }
    }
}
