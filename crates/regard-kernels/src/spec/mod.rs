//! What is computed: the four choices (score, mask, bias, normalizer), dropout, and the shapes.
//!
//! Everything a caller can get wrong is refused here, once, by [`Spec::check`].

mod bias;
mod broadcast;
mod dropout;
mod edges;
mod mask;
mod normalizer;
mod parameter;
mod pass;
mod score;
mod shape;

pub use bias::{Bias, Relative};
pub use broadcast::Broadcast;
pub use dropout::Dropout;
pub(crate) use dropout::Keep;
pub use edges::Edges;
pub use mask::{Mask, Segments, Window};
pub use normalizer::Normalizer;
pub use parameter::Parameter;
pub(crate) use pass::Arrivals;
pub use pass::{Backward, Forward, Gradients, Saved};
#[cfg(feature = "cuda")]
pub(crate) use pass::{Present, asked_of, no_dense};
pub(crate) use score::w_of_head;
pub use score::{OwnGrads, OwnScore, Score};
pub use shape::Shape;

use crate::error::{Error, ensure};
use crate::{Element, Real, View};

/// One attention mechanism: its score, mask, bias, normalizer and dropout.
///
/// ```
/// use regard_kernels::{Mask, Normalizer, Spec};
/// let spec = Spec {
///     mask: Mask { causal: true, ..Mask::default() },
///     normalizer: Normalizer::Sparsemax,
///     ..Spec::<f32>::scaled_dot(64)
/// };
/// # let _ = spec;
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Spec<'a, T> {
    /// How a query and a key give a score.
    pub score: Score<'a, T>,
    /// Which keys a query may attend to.
    pub mask: Mask<'a>,
    /// What is added to the scores.
    pub bias: Bias<'a, T>,
    /// How scores become weights.
    pub normalizer: Normalizer,
    /// Dropout on the weights.
    pub dropout: Option<Dropout>,
    /// Query i stands at key position i + offset; Nk − Nq where none is given, so that the last
    /// query meets the last key. Causal, window, ALiBi and relative positions count from there.
    pub offset: Option<isize>,
}

impl<'a, T: Real> Spec<'a, T> {
    /// Softmax attention with a score and nothing else.
    ///
    /// ```
    /// use regard_kernels::{Activation, Score, Spec};
    /// // softmax over Σ w · tanh(q + k)
    /// let spec = Spec::new(Score::Additive { activation: Activation::Tanh, w: &[0.5f32, -0.5] });
    /// # let _ = spec;
    /// ```
    pub fn new(score: Score<'a, T>) -> Self {
        Self {
            score,
            mask: Mask::default(),
            bias: Bias::default(),
            normalizer: Normalizer::Softmax,
            dropout: None,
            offset: None,
        }
    }

    /// Softmax over q·k / √width.
    pub fn scaled_dot(width: usize) -> Self {
        Self::new(Score::scaled_dot(width))
    }

    /// Refuses what does not fit together; gives the shapes of what does.
    ///
    /// ```
    /// use regard_kernels::{Spec, View};
    /// let x = [0f32; 24];
    /// let (q, k) = (View::new(&x, [1, 2, 3, 4])?, View::new(&x, [1, 2, 4, 3])?);
    /// let said = Spec::scaled_dot(4).check(&q, &k, &k).unwrap_err().to_string();
    /// assert_eq!(said, "k has head width 3, q has 4; the dot score needs them equal");
    /// assert_eq!(Spec::scaled_dot(4).check(&q, &q, &q)?.nq, 3);
    /// # Ok::<(), regard_kernels::Error>(())
    /// ```
    pub fn check<E: Element<Compute = T>>(
        &self,
        q: &View<E>,
        k: &View<E>,
        v: &View<E>,
    ) -> Result<Shape, Error> {
        let shape = Shape::of(q.shape, k.shape, v.shape)?;
        self.score.check(&shape)?;
        self.mask.check(&shape)?;
        self.bias.check(&shape)?;
        self.check_repeats()?;
        if let Some(dropout) = &self.dropout {
            dropout.check()?;
        }
        // Nearer than what a window that reaches anywhere is taken for.
        let furthest = isize::MAX / 16;
        let offset = self.offset.unwrap_or(0);
        ensure!(
            (-furthest..=furthest).contains(&offset),
            "offset {offset} lies beyond any sequence"
        );
        Ok(shape)
    }

    /// Refuses edges that are there more than once beside what is one number a pair.
    fn check_repeats(&self) -> Result<(), Error> {
        let pairwise = self.mask.is_more_than_edges() || !self.bias.is_none();
        ensure!(
            !self.mask.has_repeats() || !(pairwise || self.normalizer.is_hard()),
            "edges that are there more than once go with no other mask, no bias and no chosen key: give \
             each once"
        );
        Ok(())
    }

    /// The key position at which query 0 stands.
    pub(crate) fn position(&self, shape: &Shape) -> isize {
        self.offset.unwrap_or(shape.nk as isize - shape.nq as isize)
    }
}
