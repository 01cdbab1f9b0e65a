//! How much each part of an input changes what is predicted.

use regard::Tensor;
use regard::layers::probe_embeddings;
use regard::tensor::{Parameter, with_gradients};
use regard_data::{Error, Result};
use serde::Serialize;

/// The gradient of what is predicted, times the input, summed over the numbers of each token, vector
/// or patch.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Saliency {
    /// Of what the gradient is.
    pub of: String,
    /// What the tokens, vectors or patches are called.
    pub names: Vec<String>,
    /// One number for each; more changes the prediction more, and its sign says which way.
    pub values: Vec<f32>,
    /// Patches down and across, where it is a picture.
    pub grid: Option<[usize; 2]>,
}

/// The gradient times the vectors of the embedding that was asked for first, `[1, N, D]`, summed
/// over D.
pub(crate) fn at_embedding(score: impl FnOnce() -> Result<Tensor>) -> Result<Vec<f32>> {
    let (score, probed) = with_gradients(|| probe_embeddings(score));
    let first = probed.first().ok_or_else(|| Error::invalid("this model embeds no tokens"))?;
    of_rows(&score?, first)
}

/// The gradient of a score at an input of vectors, times these, summed over the last axis.
pub(crate) fn at_input(
    input: Tensor,
    score: impl FnOnce(&Tensor) -> Result<Tensor>,
) -> Result<Vec<f32>> {
    let input = Parameter::new("input", input)?;
    let score = with_gradients(|| score(&input.tensor()))?;
    of_rows(&score, &input)
}

/// The gradient of a score at an image `[1, C, height, width]`, times the image, summed over patches
/// of so many pixels on a side, row by row.
pub(crate) fn at_image(
    image: Tensor,
    patch: usize,
    score: impl FnOnce(&Tensor) -> Result<Tensor>,
) -> Result<Vec<f32>> {
    let (height, width) = (image.shape()[2], image.shape()[3]);
    let image = Parameter::new("image", image)?;
    let score = with_gradients(|| score(&image.tensor()))?;
    let (across, down) = (width / patch, height / patch);
    let mut sums = vec![0.0; across * down];
    let product = product(&score, &image)?.map(|product| product.contiguous()?.to_vec::<f32>());
    for (at, value) in product.transpose()?.unwrap_or_default().into_iter().enumerate() {
        let (row, column) = (at / width % height / patch, at % width / patch);
        if row < down && column < across {
            sums[row * across + column] += value;
        }
    }
    Ok(sums)
}

fn of_rows(score: &Tensor, at: &Parameter) -> Result<Vec<f32>> {
    let value = at.tensor().detach();
    let rows = value.numel() / value.shape().last().copied().unwrap_or(1).max(1);
    match product(score, at)? {
        Some(product) => Ok(product.sum(-1)?.contiguous()?.to_vec::<f32>()?),
        None => Ok(vec![0.0; rows]),
    }
}

/// The gradient times the value; none where the score does not depend on it.
fn product(score: &Tensor, at: &Parameter) -> Result<Option<Tensor>> {
    let gradients = score.sum_all()?.backward()?;
    let times = |gradient: &Tensor| gradient.mul(&at.tensor().detach());
    Ok(gradients.get(at).map(times).transpose()?)
}
