//! Where the elements of a tensor lie in its storage: shape, strides, offset.

use crate::{Error, Result, ensure};

/// The most axes a tensor has.
pub(crate) const MOST_AXES: usize = 6;
/// The most numbers a tensor has: of the widest type, as many as there are addresses.
const MOST_NUMBERS: usize = isize::MAX as usize / 8;

/// Up to six sizes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Dims {
    n: u8,
    at: [usize; MOST_AXES],
}

impl Dims {
    /// The sizes of a tensor's axes; refuses more axes than there are, and more numbers than can be
    /// addressed. An axis of size 0 counts as 1 there, so that strides never overflow either: what
    /// multiplies sizes of a shape that passed here need not check again.
    pub(crate) fn new(sizes: &[usize]) -> Result<Self> {
        ensure!(
            sizes.len() <= MOST_AXES,
            "a tensor has at most {MOST_AXES} axes, {sizes:?} has {}",
            sizes.len()
        );
        let count = sizes.iter().try_fold(1usize, |n, &d| n.checked_mul(d.max(1)));
        ensure!(
            count.is_some_and(|n| n <= MOST_NUMBERS),
            "shape {sizes:?} has more numbers than memory can address"
        );
        Ok(Self::of(sizes))
    }

    /// Of at most six sizes.
    fn of(sizes: &[usize]) -> Self {
        let mut at = [0; MOST_AXES];
        at[..sizes.len()].copy_from_slice(sizes);
        Self { n: sizes.len() as u8, at }
    }
}

impl std::ops::Deref for Dims {
    type Target = [usize];
    fn deref(&self) -> &[usize] {
        &self.at[..usize::from(self.n)]
    }
}

impl std::ops::DerefMut for Dims {
    fn deref_mut(&mut self) -> &mut [usize] {
        &mut self.at[..usize::from(self.n)]
    }
}

impl std::fmt::Debug for Dims {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        (**self).fmt(f)
    }
}

/// Shape, strides in elements, and the first element's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) shape: Dims,
    pub(crate) strides: Dims,
    pub(crate) offset: usize,
}

impl Layout {
    /// Row by row, from the storage's start.
    pub(crate) fn contiguous(shape: &[usize]) -> Result<Self> {
        let shape = Dims::new(shape)?;
        let mut strides = shape;
        let mut step = 1;
        for axis in (0..shape.len()).rev() {
            strides[axis] = step;
            step *= shape[axis];
        }
        Ok(Self { shape, strides, offset: 0 })
    }

    pub(crate) fn numel(&self) -> usize {
        self.shape.iter().product()
    }

    pub(crate) fn is_contiguous(&self) -> bool {
        let mut step = 1;
        for (&size, &stride) in self.shape.iter().zip(self.strides.iter()).rev() {
            if size != 1 {
                if stride != step && size != 0 {
                    return false;
                }
                step *= size;
            }
        }
        true
    }

    /// The same elements seen in another shape, where that needs no copy.
    pub(crate) fn reshape(&self, shape: &Dims) -> Option<Self> {
        if self.numel() == 0 {
            return Self::contiguous(shape).ok();
        }
        // Each new axis must divide a run of old axes that lie one behind the other.
        let old: Vec<(usize, usize)> = (self.shape.iter().copied())
            .zip(self.strides.iter().copied())
            .filter(|&(size, _)| size != 1)
            .collect();
        let mut runs: Vec<(usize, usize)> = Vec::new();
        for (size, stride) in old {
            match runs.last_mut() {
                Some((n, last)) if *last == stride * size => {
                    *n *= size;
                    *last = stride;
                }
                _ => runs.push((size, stride)),
            }
        }
        let mut strides = *shape;
        let mut run = runs.iter().rev();
        let (mut left, mut step) = run.next().copied().unwrap_or((1, 1));
        for axis in (0..shape.len()).rev() {
            let size = shape[axis];
            if size == 1 {
                strides[axis] = step;
                continue;
            }
            if left == 1 {
                (left, step) = run.next().copied()?;
            }
            if left % size != 0 {
                return None;
            }
            strides[axis] = step;
            step *= size;
            left /= size;
        }
        Some(Self { shape: *shape, strides, offset: self.offset })
    }

    /// The same elements repeated along axes of size 1 and new leading axes.
    pub(crate) fn broadcast(&self, shape: &Dims) -> Option<Self> {
        let lead = shape.len().checked_sub(self.shape.len())?;
        let mut strides = *shape;
        for axis in 0..shape.len() {
            let old = axis.checked_sub(lead).map(|at| (self.shape[at], self.strides[at]));
            strides[axis] = match old {
                Some((size, stride)) if size == shape[axis] => stride,
                Some((1, _)) | None => 0,
                Some(_) => return None,
            };
        }
        Some(Self { shape: *shape, strides, offset: self.offset })
    }

    pub(crate) fn transpose(&self, a: usize, b: usize) -> Self {
        let mut layout = *self;
        layout.shape.swap(a, b);
        layout.strides.swap(a, b);
        layout
    }

    pub(crate) fn narrow(&self, axis: usize, start: usize, length: usize) -> Self {
        let mut layout = *self;
        layout.shape[axis] = length;
        // Nothing has no place: an empty view stays within its storage.
        if layout.numel() > 0 {
            layout.offset += start * self.strides[axis];
        }
        layout
    }

    pub(crate) fn insert(&self, axis: usize) -> Result<Self> {
        let mut shape = self.shape.to_vec();
        let mut strides = self.strides.to_vec();
        strides.insert(axis, shape.get(axis).map_or(1, |n| n * strides[axis]));
        shape.insert(axis, 1);
        Ok(Self { shape: Dims::new(&shape)?, strides: Dims::of(&strides), offset: self.offset })
    }

    /// Without an axis.
    pub(crate) fn remove(&self, axis: usize) -> Self {
        let without = |dims: &Dims| {
            let mut dims = dims.to_vec();
            dims.remove(axis);
            Dims::of(&dims)
        };
        let (shape, strides) = (without(&self.shape), without(&self.strides));
        Self { shape, strides, offset: self.offset }
    }

    /// One behind the storage's last element that the layout reaches.
    pub(crate) fn end(&self) -> usize {
        if self.numel() == 0 {
            return self.offset;
        }
        let steps = self.shape.iter().zip(self.strides.iter());
        self.offset + steps.map(|(&n, &s)| (n - 1) * s).sum::<usize>() + 1
    }
}

/// A shape as `[outer, n, inner]` around an axis.
pub(crate) fn around(shape: &[usize], axis: usize) -> (usize, usize, usize) {
    (shape[..axis].iter().product(), shape[axis], shape[axis + 1..].iter().product())
}

/// The product of two sizes; the sentence says of what.
pub(crate) fn times(op: &str, a: usize, b: usize) -> Result<usize> {
    a.checked_mul(b).ok_or_else(|| {
        Error::new(format!("{op}: {a} times {b} are more numbers than memory can address"))
    })
}

/// The shape two shapes broadcast to.
pub(crate) fn broadcast(op: &str, a: &Dims, b: &Dims) -> Result<Dims> {
    let n = a.len().max(b.len());
    let mut shape = Dims::of(&[1; MOST_AXES][..n]);
    for axis in 0..n {
        let size = |d: &Dims| (axis + d.len()).checked_sub(n).map_or(1, |at| d[at]);
        let (x, y) = (size(a), size(b));
        ensure!(
            x == y || x == 1 || y == 1,
            "{op}: shapes {a:?} and {b:?} do not broadcast; sizes {x} and {y} differ"
        );
        shape[axis] = if x == 1 { y } else { x };
    }
    Dims::new(&shape).map_err(|error| error.within(op))
}

/// An axis counted from the front, or from the back where negative.
pub(crate) fn axis(op: &str, at: isize, shape: &[usize]) -> Result<usize> {
    let n = shape.len() as isize;
    ensure!(
        (-n..n).contains(&at),
        "{op}: axis {at} of a tensor of shape {shape:?}, which has {n} axes"
    );
    Ok(if at < 0 { at + n } else { at } as usize)
}

/// The place of an axis that is to come: one more than there are axes.
pub(crate) fn new_axis(op: &str, at: isize, shape: &[usize]) -> Result<usize> {
    let n = shape.len() as isize;
    ensure!(
        (-n - 1..=n).contains(&at),
        "{op}: a new axis {at} of a tensor of shape {shape:?}, which has {n} axes"
    );
    Ok(if at < 0 { at + n + 1 } else { at } as usize)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn dims(sizes: &[usize]) -> Dims {
        Dims::new(sizes).unwrap()
    }

    #[test]
    fn reshape_splits_and_joins_axes_that_lie_one_behind_the_other() {
        let x = Layout::contiguous(&[2, 3, 4]).unwrap();
        assert!(x.reshape(&dims(&[6, 4])).is_some());
        assert!(x.reshape(&dims(&[24])).is_some());
        let t = x.transpose(1, 2);
        assert!(t.reshape(&dims(&[2, 12])).is_none());
        assert_eq!(&*t.reshape(&dims(&[2, 2, 2, 3])).unwrap().strides, &[12, 2, 1, 4]);
        assert_eq!(&t.reshape(&dims(&[2, 4, 1, 3])).unwrap().strides[..2], &[12, 1]);
    }

    #[test]
    fn an_axis_of_size_1_never_stands_in_the_way() {
        let x = Layout::contiguous(&[4, 1, 3]).unwrap().transpose(0, 1);
        assert!(x.is_contiguous());
        assert!(x.reshape(&dims(&[12])).is_some());
    }
}
