//! The windows of an image laid out as columns, and laid back.

use crate::backend::Windows;
use crate::dtype::{Float, floats};
use crate::layout::Dims;
use crate::ops::SlidingWindow;
use crate::parallel;
use crate::{Result, Tensor};

/// One channel's columns `[kh · kw, oh · ow]` from its image `[h, w]`.
fn unfold_image<T: Float>(
    w: &SlidingWindow,
    size: [usize; 2],
    places: [usize; 2],
    image: &[T],
    to: &mut [T],
) {
    let count = places[0] * places[1];
    for (element, to) in to.chunks_mut(count).enumerate() {
        let (ky, kx) = (element / w.kernel[1], element % w.kernel[1]);
        for (oy, to) in to.chunks_mut(places[1]).enumerate() {
            let Some(y) = w.at(0, oy, ky, size[0]) else {
                to.fill(T::ZERO);
                continue;
            };
            for (ox, to) in to.iter_mut().enumerate() {
                *to = w.at(1, ox, kx, size[1]).map_or(T::ZERO, |x| image[y * size[1] + x]);
            }
        }
    }
}

/// The other way: each number of the columns is added where it came from.
fn fold_image<T: Float>(
    w: &SlidingWindow,
    size: [usize; 2],
    places: [usize; 2],
    columns: &[T],
    to: &mut [T],
) {
    to.fill(T::ZERO);
    let count = places[0] * places[1];
    for (element, from) in columns.chunks(count).enumerate() {
        let (ky, kx) = (element / w.kernel[1], element % w.kernel[1]);
        for (oy, from) in from.chunks(places[1]).enumerate() {
            let Some(y) = w.at(0, oy, ky, size[0]) else { continue };
            for (ox, &from) in from.iter().enumerate() {
                if let Some(x) = w.at(1, ox, kx, size[1]) {
                    to[y * size[1] + x] += from;
                }
            }
        }
    }
}

/// How many numbers an image has, and how many its columns.
fn lengths(windows: &Windows) -> (usize, usize) {
    let Windows { slide, size, places } = windows;
    (size[0] * size[1], slide.kernel[0] * slide.kernel[1] * places[0] * places[1])
}

pub(super) fn unfold(images: &Tensor, windows: &Windows, shape: &Dims) -> Result<Tensor> {
    let (image, columns) = lengths(windows);
    let Windows { slide, size, places } = *windows;
    floats!(images.dtype(), "unfold", T => {
        let from = images.as_slice::<T>("unfold")?;
        Tensor::build(shape, |to: &mut [T]| {
            parallel::rows(to, columns, |at, to| {
                unfold_image(&slide, size, places, &from[at * image..][..image], to);
            });
        })
    })
}

pub(super) fn fold(columns: &Tensor, windows: &Windows, shape: &Dims) -> Result<Tensor> {
    let (image, each) = lengths(windows);
    let Windows { slide, size, places } = *windows;
    floats!(columns.dtype(), "unfold", T => {
        let from = columns.as_slice::<T>("unfold")?;
        Tensor::build(shape, |to: &mut [T]| {
            parallel::rows(to, image, |at, to| {
                fold_image(&slide, size, places, &from[at * each..][..each], to);
            });
        })
    })
}
