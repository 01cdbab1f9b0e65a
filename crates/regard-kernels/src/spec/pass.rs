//! What a forward and a backward pass read and write.

use super::{Bias, Edges, Mask, Normalizer, Score, Shape, Spec};
use crate::error::{Error, ensure};
use crate::{Element, View, ViewMut};

/// What forward writes: the output, and whatever else is asked for. Rows are `[B, Hq, Nq]`.
///
/// ```
/// use regard_kernels::{Cpu, Forward, Spec, View, ViewMut};
/// let x = [1f32, 0.0, 0.0, 1.0];
/// let view = View::new(&x, [1, 1, 2, 2])?;
/// let mut out = [0f32; 4];
/// let mut weights = [0f32; 4];
/// let pass = Forward { weights: Some(&mut weights), ..Forward::new(ViewMut::new(&mut out, [1, 1, 2, 2])?) };
/// Cpu::best().forward(&Spec::scaled_dot(2), view, view, view, pass)?;
/// assert!((weights[0] + weights[1] - 1.0).abs() < 1e-6);
/// # Ok::<(), regard_kernels::Error>(())
/// ```
#[derive(Debug)]
pub struct Forward<'a, E: Element> {
    /// `[B, Hq, Nq, Dv]`
    pub out: ViewMut<'a, E>,
    /// Rows: the log of the summed exponentials of the scores; −∞ for an empty row.
    pub lse: Option<&'a mut [E::Compute]>,
    /// Rows: the threshold of sparsemax and entmax, which their backward needs.
    pub threshold: Option<&'a mut [E::Compute]>,
    /// Rows: the key that hard attention chose; −1 for an empty row.
    pub index: Option<&'a mut [i64]>,
    /// Rows: the log-probability of the chosen key under softmax; 0 for an empty row.
    pub log_prob: Option<&'a mut [E::Compute]>,
    /// `[B, Hq, Nq, Nk]`: the weights that multiplied v, dropout included.
    pub weights: Option<&'a mut [E::Compute]>,
    /// `[B, Hq, E]`: the weights along the edges of the mask's graph, query after query as in
    /// [`Edges`](super::Edges), dropout included; 0 where another mask forbids an edge.
    pub edge_weights: Option<&'a mut [E::Compute]>,
}

impl<'a, E: Element> Forward<'a, E> {
    /// The output and nothing else.
    ///
    /// ```
    /// use regard_kernels::{Cpu, Forward, Spec, View, ViewMut};
    /// let x = [1f32, 0.0, 0.0, 1.0];
    /// let view = View::new(&x, [1, 1, 2, 2])?;
    /// let mut out = [0f32; 4];
    /// let pass = Forward::new(ViewMut::new(&mut out, [1, 1, 2, 2])?);
    /// Cpu::best().forward(&Spec::scaled_dot(2), view, view, view, pass)?;
    /// assert!((out[0] + out[1] - 1.0).abs() < 1e-6);
    /// # Ok::<(), regard_kernels::Error>(())
    /// ```
    pub fn new(out: ViewMut<'a, E>) -> Self {
        Self {
            out,
            lse: None,
            threshold: None,
            index: None,
            log_prob: None,
            weights: None,
            edge_weights: None,
        }
    }

    pub(crate) fn check(&self, s: &Shape, spec: &Spec<E::Compute>) -> Result<(), Error> {
        let normalizer = spec.normalizer;
        ensure!(
            self.out.shape == s.out(),
            "out has shape {:?}, [B, Hq, Nq, Dv] is {:?}",
            self.out.shape,
            s.out()
        );
        rows("lse", self.lse.as_deref(), s)?;
        rows("threshold", self.threshold.as_deref(), s)?;
        rows("index", self.index.as_deref(), s)?;
        rows("log_prob", self.log_prob.as_deref(), s)?;
        let chooses = self.index.is_some() || self.log_prob.is_some();
        asked_of(normalizer, self.threshold.is_some(), chooses)?;
        pairs("weights", self.weights.as_deref(), s)?;
        no_dense(self.weights.is_some(), &spec.mask)?;
        along_edges("edge_weights", self.edge_weights.as_deref(), s, spec.mask.edges)
    }
}

/// Whether a normalizer has what is asked of it: a threshold, a chosen key.
pub(crate) fn asked_of(n: Normalizer, threshold: bool, chosen: bool) -> Result<(), Error> {
    ensure!(!threshold || n.has_threshold(), "a threshold was asked for; {n:?} has none");
    ensure!(!chosen || n.is_hard(), "a chosen index was asked for; {n:?} chooses none");
    Ok(())
}

/// Refuses an array of all pairs where an edge is there more than once.
pub(crate) fn no_dense(asked: bool, mask: &Mask) -> Result<(), Error> {
    ensure!(
        !(asked && mask.has_repeats()),
        "weights have one number for each query and key, and some edges are there more than once: ask for \
         edge_weights, or give each edge once"
    );
    Ok(())
}

/// Which arrays there are that forward left, and of those that arrive.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Present {
    pub(crate) out: bool,
    pub(crate) lse: bool,
    pub(crate) threshold: bool,
    pub(crate) index: bool,
    pub(crate) grad_log_prob: bool,
    pub(crate) grad_lse: bool,
}

impl Present {
    /// Whether they are what a normalizer's backward needs, and no more than it has.
    pub(crate) fn check(&self, n: Normalizer) -> Result<(), Error> {
        self.check_arrivals(n)?;
        ensure!(
            !n.needs_lse() || (self.lse && self.out),
            "backward of {n:?} needs the saved out and lse"
        );
        ensure!(
            !n.has_threshold() || self.threshold,
            "backward of {n:?} needs the saved threshold"
        );
        ensure!(!n.is_hard() || self.index, "backward of {n:?} needs the saved index");
        ensure!(!self.grad_log_prob || self.lse, "grad_log_prob needs the saved lse of {n:?}");
        ensure!(!self.grad_lse || self.lse, "grad_lse needs the saved lse of {n:?}");
        Ok(())
    }

    fn check_arrivals(&self, n: Normalizer) -> Result<(), Error> {
        ensure!(
            !self.grad_log_prob || n.is_hard(),
            "grad_log_prob was given; {n:?} chooses no key"
        );
        ensure!(
            !self.grad_lse || n.is_hard() || n.needs_lse(),
            "grad_lse was given; {n:?} normalizes by no log-sum-exp"
        );
        Ok(())
    }
}

fn pairs<T>(name: &str, slice: Option<&[T]>, s: &Shape) -> Result<(), Error> {
    if let Some(slice) = slice {
        ensure!(
            Some(slice.len()) == s.rows().checked_mul(s.nk),
            "{name} has {} elements, [B, Hq, Nq, Nk] is [{}, {}, {}, {}]",
            slice.len(),
            s.b,
            s.hq,
            s.nq,
            s.nk
        );
    }
    Ok(())
}

fn along_edges<T>(
    name: &str,
    slice: Option<&[T]>,
    s: &Shape,
    edges: Option<&Edges>,
) -> Result<(), Error> {
    let Some(slice) = slice else { return Ok(()) };
    let Some(edges) = edges else {
        return Err(Error::new(format!("{name} was given; the mask has no edges")));
    };
    let count = edges.len();
    ensure!(
        Some(slice.len()) == (s.b * s.hq).checked_mul(count),
        "{name} has {} elements, [B, Hq, E] is [{}, {}, {count}]",
        slice.len(),
        s.b,
        s.hq
    );
    Ok(())
}

fn rows<T>(name: &str, slice: Option<&[T]>, s: &Shape) -> Result<(), Error> {
    if let Some(slice) = slice {
        ensure!(
            slice.len() == s.rows(),
            "{name} has {} elements, [B, Hq, Nq] = [{}, {}, {}] needs {}",
            slice.len(),
            s.b,
            s.hq,
            s.nq,
            s.rows()
        );
    }
    Ok(())
}

/// What backward needs of forward: the rows that its normalizer asks for.
///
/// ```
/// use regard_kernels::{Saved, View};
/// // softmax's backward reads the output and the log-sum-exp
/// let (out, lse) = ([0f32; 6], [0f32; 3]);
/// let saved = Saved { out: Some(View::new(&out, [1, 1, 3, 2])?), lse: Some(&lse), ..Saved::default() };
/// # let _ = saved;
/// # Ok::<(), regard_kernels::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Saved<'a, E: Element> {
    /// Softmax: the output.
    pub out: Option<View<'a, E>>,
    /// Softmax, and hard attention with a `grad_log_prob`: the log-sum-exp.
    pub lse: Option<&'a [E::Compute]>,
    /// Sparsemax and entmax: the threshold.
    pub threshold: Option<&'a [E::Compute]>,
    /// Hard attention: the chosen index.
    pub index: Option<&'a [i64]>,
}

impl<E: Element> Default for Saved<'_, E> {
    fn default() -> Self {
        Self { out: None, lse: None, threshold: None, index: None }
    }
}

/// The gradients to write; each is overwritten, not added to.
///
/// ```
/// use regard_kernels::{Gradients, ViewMut};
/// // those of q alone
/// let mut of_q = [0f32; 6];
/// let gradients = Gradients { q: Some(ViewMut::new(&mut of_q, [1, 1, 3, 2])?), ..Gradients::default() };
/// # let _ = gradients;
/// # Ok::<(), regard_kernels::Error>(())
/// ```
#[derive(Debug)]
pub struct Gradients<'a, E: Element> {
    /// `[B, Hq, Nq, Dq]`
    pub q: Option<ViewMut<'a, E>>,
    /// `[B, Hk, Nk, Dk]`
    pub k: Option<ViewMut<'a, E>>,
    /// `[B, Hk, Nk, Dv]`
    pub v: Option<ViewMut<'a, E>>,
    /// The shape of the additive score's `w`.
    pub w: Option<&'a mut [E::Compute]>,
    /// The shape of the own score's parameters.
    pub own: Option<&'a mut [E::Compute]>,
    /// The shape of `bias.key`, broadcast axes summed.
    pub key_bias: Option<&'a mut [E::Compute]>,
    /// The shape of `bias.full`, broadcast axes summed.
    pub bias: Option<&'a mut [E::Compute]>,
    /// The shape of `bias.relative`'s table.
    pub relative: Option<&'a mut [E::Compute]>,
}

impl<E: Element> Default for Gradients<'_, E> {
    fn default() -> Self {
        Self {
            q: None,
            k: None,
            v: None,
            w: None,
            own: None,
            key_bias: None,
            bias: None,
            relative: None,
        }
    }
}

impl<E: Element> Gradients<'_, E> {
    /// The same, borrowed from these.
    pub(crate) fn reborrow(&mut self) -> Gradients<'_, E> {
        Gradients {
            q: self.q.as_mut().map(ViewMut::reborrow),
            k: self.k.as_mut().map(ViewMut::reborrow),
            v: self.v.as_mut().map(ViewMut::reborrow),
            w: self.w.as_deref_mut(),
            own: self.own.as_deref_mut(),
            key_bias: self.key_bias.as_deref_mut(),
            bias: self.bias.as_deref_mut(),
            relative: self.relative.as_deref_mut(),
        }
    }
}

/// What backward reads and writes.
///
/// ```
/// use regard_kernels::{Backward, Cpu, Gradients, Normalizer, Saved, Score, Spec, View, ViewMut};
/// // Without a normalizer the output is (q · k) v.
/// let spec = Spec { normalizer: Normalizer::None, ..Spec::new(Score::Dot { scale: 1.0 }) };
/// let one = |x: &'static [f32]| View::new(x, [1, 1, 1, 1]);
/// let mut of_v = [0f32];
/// let gradients = Gradients { v: Some(ViewMut::new(&mut of_v, [1, 1, 1, 1])?), ..Gradients::default() };
/// let pass = Backward { grad_weights: Some(&[0.0]), ..Backward::new(one(&[1.0])?, Saved::default(), gradients) };
/// Cpu::best().backward(&spec, one(&[2.0])?, one(&[3.0])?, one(&[5.0])?, pass)?;
/// assert_eq!(of_v, [6.0]); // q · k
/// # Ok::<(), regard_kernels::Error>(())
/// ```
#[derive(Debug)]
pub struct Backward<'a, E: Element> {
    /// `[B, Hq, Nq, Dv]`: the gradient of the output.
    pub grad_out: View<'a, E>,
    /// `[B, Hq, Nq, Nk]`: the gradient of the weights that forward returned, dropout included.
    /// Where the mask forbids, it is not looked at; hard choices send none of it on.
    pub grad_weights: Option<&'a [E::Compute]>,
    /// `[B, Hq, E]`: the gradient of the edges' weights that forward returned, as `grad_weights`.
    pub grad_edge_weights: Option<&'a [E::Compute]>,
    /// Rows: the gradient of the chosen key's log-probability, by which hard attention trains
    /// its scores (REINFORCE). Without it hard choices send no gradient to the scores.
    pub grad_log_prob: Option<&'a [E::Compute]>,
    /// Rows: the gradient of the log-sum-exp, as merging outputs by it sends one back. Softmax and
    /// hard choices take one; that of an empty row is not looked at.
    pub grad_lse: Option<&'a [E::Compute]>,
    /// What forward left.
    pub saved: Saved<'a, E>,
    /// What to write.
    pub gradients: Gradients<'a, E>,
}

impl<'a, E: Element> Backward<'a, E> {
    /// A gradient of the output and of nothing else.
    ///
    /// ```
    /// use regard_kernels::{Backward, Cpu, Gradients, Normalizer, Saved, Score, Spec, View, ViewMut};
    /// // Without a normalizer the output is (q · k) v.
    /// let spec = Spec { normalizer: Normalizer::None, ..Spec::new(Score::Dot { scale: 1.0 }) };
    /// let one = |x: &'static [f32]| View::new(x, [1, 1, 1, 1]);
    /// let mut of_v = [0f32];
    /// let gradients = Gradients { v: Some(ViewMut::new(&mut of_v, [1, 1, 1, 1])?), ..Gradients::default() };
    /// let pass = Backward::new(one(&[1.0])?, Saved::default(), gradients);
    /// Cpu::best().backward(&spec, one(&[2.0])?, one(&[3.0])?, one(&[5.0])?, pass)?;
    /// assert_eq!(of_v, [6.0]); // q · k
    /// # Ok::<(), regard_kernels::Error>(())
    /// ```
    pub fn new(grad_out: View<'a, E>, saved: Saved<'a, E>, gradients: Gradients<'a, E>) -> Self {
        Self {
            grad_out,
            grad_weights: None,
            grad_edge_weights: None,
            grad_log_prob: None,
            grad_lse: None,
            saved,
            gradients,
        }
    }

    pub(crate) fn check(&self, s: &Shape, spec: &Spec<E::Compute>) -> Result<(), Error> {
        ensure!(
            self.grad_out.shape == s.out(),
            "grad_out has shape {:?}, [B, Hq, Nq, Dv] is {:?}",
            self.grad_out.shape,
            s.out()
        );
        Arrivals {
            weights: self.grad_weights,
            edge_weights: self.grad_edge_weights,
            log_prob: self.grad_log_prob,
            lse: self.grad_lse,
        }
        .check(s, spec)?;
        self.check_saved(s, spec.normalizer)?;
        self.gradients.check(s, spec)
    }

    /// Whether forward's rows are there that the normalizer's backward needs.
    fn check_saved(&self, s: &Shape, n: Normalizer) -> Result<(), Error> {
        let saved = &self.saved;
        if let Some(out) = &saved.out {
            ensure!(
                out.shape == s.out(),
                "saved out has shape {:?}, [B, Hq, Nq, Dv] is {:?}",
                out.shape,
                s.out()
            );
        }
        rows("saved lse", saved.lse, s)?;
        rows("saved threshold", saved.threshold, s)?;
        rows("saved index", saved.index, s)?;
        Present {
            out: saved.out.is_some(),
            lse: saved.lse.is_some(),
            threshold: saved.threshold.is_some(),
            index: saved.index.is_some(),
            grad_log_prob: self.grad_log_prob.is_some(),
            grad_lse: self.grad_lse.is_some(),
        }
        .check(n)
    }
}

impl<E: Element> Gradients<'_, E> {
    /// Whether each has the shape of what it is the gradient of.
    fn check(&self, s: &Shape, spec: &Spec<E::Compute>) -> Result<(), Error> {
        let views = [
            ("grad q", self.q.as_ref(), [s.b, s.hq, s.nq, s.dq]),
            ("grad k", self.k.as_ref(), [s.b, s.hk, s.nk, s.dk]),
            ("grad v", self.v.as_ref(), [s.b, s.hk, s.nk, s.dv]),
        ];
        for (name, view, shape) in views {
            if let Some(view) = view {
                ensure!(
                    view.shape == shape,
                    "{name} has shape {:?}, what it is the gradient of has {shape:?}",
                    view.shape
                );
            }
        }
        let w = match spec.score {
            Score::Additive { w, .. } => Some(w.len()),
            _ => None,
        };
        let own = spec.score.own_len();
        let Bias { key, full, relative, .. } = &spec.bias;
        let slices = [
            ("grad w", self.w.as_deref(), w),
            ("grad of the own score", self.own.as_deref(), own),
            ("grad key_bias", self.key_bias.as_deref(), key.map(|b| b.data.len())),
            ("grad bias", self.bias.as_deref(), full.map(|b| b.data.len())),
            ("grad relative_bias", self.relative.as_deref(), relative.map(|r| r.table.len())),
        ];
        for (name, slice, expected) in slices {
            if let Some(slice) = slice {
                ensure!(
                    Some(slice.len()) == expected,
                    "{name} has {} elements, {}",
                    slice.len(),
                    expected.map_or("but the spec has no such part".into(), |n| format!(
                        "what it is the gradient of has {n}"
                    ))
                );
            }
        }
        Ok(())
    }
}

/// What may arrive besides the gradient of the output.
#[derive(Clone, Copy)]
pub(crate) struct Arrivals<'a, T> {
    pub(crate) weights: Option<&'a [T]>,
    pub(crate) edge_weights: Option<&'a [T]>,
    pub(crate) log_prob: Option<&'a [T]>,
    pub(crate) lse: Option<&'a [T]>,
}

impl<T> Arrivals<'_, T> {
    pub(crate) fn check(&self, s: &Shape, spec: &Spec<T>) -> Result<(), Error> {
        pairs("grad_weights", self.weights, s)?;
        no_dense(self.weights.is_some(), &spec.mask)?;
        along_edges("grad_edge_weights", self.edge_weights, s, spec.mask.edges)?;
        rows("grad_log_prob", self.log_prob, s)?;
        rows("grad_lse", self.lse, s)?;
        let (grad_log_prob, grad_lse) = (self.log_prob.is_some(), self.lse.is_some());
        Present { grad_log_prob, grad_lse, ..Present::default() }.check_arrivals(spec.normalizer)
    }
}
