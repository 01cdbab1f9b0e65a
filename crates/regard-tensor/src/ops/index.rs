//! Indexing by numbers and ranges, axis by axis.

use crate::{Error, Result, Tensor, ensure};
use std::ops::{Bound, Range, RangeBounds, RangeFrom, RangeFull};
use std::ops::{RangeInclusive, RangeTo, RangeToInclusive};

/// What of one axis is wanted: one place, with which the axis goes away, or a range of it.
///
/// ```
/// use regard_tensor::{Index, Tensor};
/// let x = Tensor::from([[1f32, 2.0, 3.0], [4.0, 5.0, 6.0]]);
/// let last: [Index; 2] = [1.into(), (..2).into()];
/// assert_eq!(x.i(last)?.to_vec::<f32>()?, [4.0, 5.0]);
/// # Ok::<(), regard_tensor::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Index {
    /// One place.
    At(usize),
    /// From one bound to the other.
    Range(Bound<usize>, Bound<usize>),
}

impl From<usize> for Index {
    fn from(at: usize) -> Self {
        Self::At(at)
    }
}

macro_rules! ranges {
    ($($R:ty),*) => {$(
        impl From<$R> for Index {
            fn from(range: $R) -> Self {
                Self::Range(range.start_bound().cloned(), range.end_bound().cloned())
            }
        }
    )*};
}
ranges!(
    Range<usize>,
    RangeFrom<usize>,
    RangeFull,
    RangeInclusive<usize>,
    RangeTo<usize>,
    RangeToInclusive<usize>
);

/// What [`Tensor::i`] takes: a place, a range, or up to six of them in a tuple or an array.
///
/// ```
/// use regard_tensor::{Indices, Result, Tensor};
/// fn sum(x: &Tensor, of: impl Indices) -> Result<f64> {
///     x.i(of)?.sum_all()?.item()
/// }
/// let x = Tensor::from([[1f32, 2.0], [3.0, 4.0]]);
/// assert_eq!((sum(&x, 0)?, sum(&x, (.., 1))?, sum(&x, ..)?), (3.0, 6.0, 10.0));
/// # Ok::<(), regard_tensor::Error>(())
/// ```
pub trait Indices {
    /// One for each axis, from the first on.
    fn indices(self) -> Vec<Index>;
}

impl<I: Into<Index>> Indices for I {
    fn indices(self) -> Vec<Index> {
        vec![self.into()]
    }
}

impl<const N: usize> Indices for [Index; N] {
    fn indices(self) -> Vec<Index> {
        self.to_vec()
    }
}

macro_rules! tuples {
    ($($($I:ident)*;)*) => {$(
        impl<$($I: Into<Index>),*> Indices for ($($I,)*) {
            #[allow(non_snake_case)]
            fn indices(self) -> Vec<Index> {
                let ($($I,)*) = self;
                vec![$($I.into()),*]
            }
        }
    )*};
}
tuples! {
    A;
    A B;
    A B C;
    A B C D;
    A B C D E;
    A B C D E F;
}

impl Tensor {
    /// A part of the tensor by numbers and ranges, from the first axis on; a number's axis goes
    /// away, and axes that no index names stay whole. A view, through which gradients flow.
    /// Refuses more indices than axes, and places that are not there.
    ///
    /// ```
    /// use regard_tensor::Tensor;
    /// let x = Tensor::from([[1f32, 2.0, 3.0], [4.0, 5.0, 6.0]]);
    /// assert_eq!(x.i(1)?.to_vec::<f32>()?, [4.0, 5.0, 6.0]);
    /// assert_eq!(x.i((.., 1..))?.to_vec::<f32>()?, [2.0, 3.0, 5.0, 6.0]);
    /// assert_eq!(x.i((0, 2))?.item()?, 3.0);
    /// let error = x.i((0, 1..5)).unwrap_err();
    /// assert_eq!(error.to_string(), "i: the range 1..5 of axis 1 of [2, 3]");
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn i(&self, indices: impl Indices) -> Result<Tensor> {
        let indices = indices.indices();
        ensure!(
            indices.len() <= self.rank(),
            "i: {} indices of a tensor of shape {:?}, which has {} axes",
            indices.len(),
            self.shape(),
            self.rank()
        );
        let mut part = self.clone();
        // Axes that went away are not counted in the part.
        let mut at = 0;
        for (axis, index) in indices.into_iter().enumerate() {
            let size = self.shape()[axis];
            match index {
                Index::At(place) => {
                    let shape = self.shape();
                    ensure!(place < size, "i: index {place} of axis {axis} of {shape:?}");
                    part = part.select(at, place)?;
                }
                Index::Range(from, to) => {
                    let Range { start, end } = self.bounded(axis, from, to)?;
                    if (start, end) != (0, size) {
                        part = part.narrow(at, start, end - start)?;
                    }
                    at += 1;
                }
            }
        }
        Ok(part)
    }

    /// The range of an axis that two bounds leave; refuses one that leaves the axis.
    fn bounded(&self, axis: usize, from: Bound<usize>, to: Bound<usize>) -> Result<Range<usize>> {
        let size = self.shape()[axis];
        let start = match from {
            Bound::Included(start) => Some(start),
            Bound::Excluded(before) => before.checked_add(1),
            Bound::Unbounded => Some(0),
        };
        let end = match to {
            Bound::Included(last) => last.checked_add(1),
            Bound::Excluded(end) => Some(end),
            Bound::Unbounded => Some(size),
        };
        let range = start.zip(end).map(|(start, end)| start..end);
        let fits = range.clone().filter(|range| range.start <= range.end && range.end <= size);
        fits.ok_or_else(|| {
            let range = range.map_or("of every number".into(), |range| format!("{range:?}"));
            Error::new(format!("i: the range {range} of axis {axis} of {:?}", self.shape()))
        })
    }
}
