//! Gradients where tokens become vectors: what saliency is made of.

use regard_tensor::{Parameter, Result, Tensor};
use std::cell::RefCell;

thread_local! {
    static PROBED: RefCell<Option<Vec<Parameter>>> = const { RefCell::new(None) };
}

/// Runs `f` and gives the vectors that every [`Embedding`](super::Embedding) made meanwhile, in
/// order, as parameters: [`Gradients`](crate::tensor::Gradients) holds the gradient of each.
///
/// ```
/// use regard::prelude::*;
/// use regard::layers::probe_embeddings;
/// let embedding = Embedding::new(&Parameters::new(DType::F64, 1), 5, 3, None)?;
/// let ids = Tensor::from_vec(vec![2i64, 4], &[2])?;
/// let (sum, vectors) = probe_embeddings(|| embedding.forward(&ids)?.sum_all());
/// let gradients = sum?.backward()?;
/// assert_eq!(gradients.get(&vectors[0]).unwrap().to_vec::<f64>()?, [1.0; 6]);
/// # Ok::<(), regard::Error>(())
/// ```
pub fn probe_embeddings<R>(f: impl FnOnce() -> R) -> (R, Vec<Parameter>) {
    let before = PROBED.replace(Some(Vec::new()));
    let result = f();
    let probed = PROBED.replace(before).unwrap_or_default();
    (result, probed)
}

/// The vectors as they are, or as a parameter of their own where they are probed.
pub(super) fn probed(vectors: Tensor) -> Result<Tensor> {
    PROBED.with_borrow_mut(|probed| match probed {
        None => Ok(vectors),
        Some(all) => {
            let parameter = Parameter::new("embedded", vectors.detach())?;
            let tensor = parameter.tensor();
            all.push(parameter);
            Ok(tensor)
        }
    })
}
