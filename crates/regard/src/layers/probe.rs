//! Gradients where tokens become vectors: what saliency is made of.

use regard_tensor::{Parameter, Result, Tensor, ensure};
use std::cell::RefCell;

/// What is kept of the embeddings that are asked, and what is done to their vectors.
#[derive(Default)]
struct Probe {
    /// One for each token; none where the vectors stay as they are.
    factors: Option<Vec<f64>>,
    /// Whether only the tokens of the first embedding that is asked are probed.
    only_first: bool,
    /// The shape and the tokens of the first embedding.
    first: Option<(Vec<usize>, Vec<i64>)>,
    vectors: Vec<Parameter>,
}

thread_local! {
    static PROBED: RefCell<Option<Probe>> = const { RefCell::new(None) };
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
    probing(Probe::default(), f)
}

/// As [`probe_embeddings`], of the tokens alone that the first [`Embedding`](super::Embedding) is asked
/// for, wherever these are embedded; their vectors are multiplied by a factor for each token, or stay
/// as they are where no factors are given. A factor of 0 takes a token away, and factors from 0 to 1
/// are the way that integrated gradients go.
/// The embedding refuses factors that are not as many as its tokens.
///
/// ```
/// use regard::prelude::*;
/// use regard::layers::probe_tokens;
/// let embedding = Embedding::new(&Parameters::new(DType::F64, 1), 5, 3, None)?;
/// let ids = Tensor::from_vec(vec![2i64, 4], &[2])?;
/// let (x, vectors) = probe_tokens(Some(&[1.0, 0.0]), || embedding.forward(&ids));
/// assert_eq!(x?.to_vec::<f64>()?[3..], [0.0; 3]);
/// assert_eq!(vectors.len(), 1);
/// let (refused, _) = probe_tokens(Some(&[1.0]), || embedding.forward(&ids));
/// assert_eq!(refused.unwrap_err().to_string(), "1 factors for 2 tokens, [2]");
/// # Ok::<(), regard::Error>(())
/// ```
pub fn probe_tokens<R>(factors: Option<&[f64]>, f: impl FnOnce() -> R) -> (R, Vec<Parameter>) {
    let factors = factors.map(<[f64]>::to_vec);
    probing(Probe { factors, only_first: true, ..Probe::default() }, f)
}

fn probing<R>(probe: Probe, f: impl FnOnce() -> R) -> (R, Vec<Parameter>) {
    /// Puts back what was there, also where the closure panics.
    struct Restore(Option<Probe>);
    impl Drop for Restore {
        fn drop(&mut self) {
            PROBED.replace(self.0.take());
        }
    }
    let _restore = Restore(PROBED.replace(Some(probe)));
    let result = f();
    let probed = PROBED.take().map(|probe| probe.vectors);
    (result, probed.unwrap_or_default())
}

/// The vectors of tokens as they are, or as a parameter of their own where they are probed.
pub(super) fn probed(ids: &Tensor, vectors: Tensor) -> Result<Tensor> {
    PROBED.with_borrow_mut(|probe| match probe {
        None => Ok(vectors),
        Some(probe) => probe.take(ids, vectors),
    })
}

impl Probe {
    fn take(&mut self, ids: &Tensor, vectors: Tensor) -> Result<Tensor> {
        if self.only_first {
            let these = (ids.shape().to_vec(), ids.to_indices("tokens")?);
            if *self.first.get_or_insert_with(|| these.clone()) != these {
                return Ok(vectors);
            }
        }
        let mut value = vectors.detach();
        if let Some(factors) = &self.factors {
            let (count, shape) = (factors.len(), ids.shape());
            ensure!(count == ids.numel(), "{count} factors for {} tokens, {shape:?}", ids.numel());
            let shape = [shape, &[1]].concat();
            let factors = Tensor::from_vec(factors.clone(), &shape)?.to_dtype(value.dtype())?;
            value = value.mul(&factors.to_device(value.device())?)?;
        }
        let parameter = Parameter::new("embedded", value)?;
        let tensor = parameter.tensor();
        self.vectors.push(parameter);
        Ok(tensor)
    }
}
