//! The operator: fused, tiled, forward and backward.
//!
//! Two paths carry everything. *Tiles* (`tile.rs`, `tile_backward.rs`): a block of queries, one
//! per lane, against a tile of keys at a time; the path of most problems. *Lists* (`list/`): a query, or a few, against a list of keys, a feature per lane; the path of
//! graphs, and of decoding, where few queries meet a long cache.

pub(super) mod additive;
mod choice;
mod expression;
pub(super) mod gemm;
mod list;
pub(super) mod narrow;
mod narrow_keys;
pub(super) mod noise;
pub(super) mod online;
pub(super) mod pack;
mod partial;
mod pass;
mod plan;
mod prepared;
pub(super) mod problem;
pub(super) mod products;
mod program;
pub(super) mod row;
pub(super) mod row_softmax;
mod rows;
mod split;
mod stored;
pub(super) mod strip;
pub(super) mod threshold;
mod tile;
mod tile_backward;
mod undefined;
pub(super) mod weights;

#[doc(hidden)]
pub use plan::Phase;

pub(super) use pass::{backward, forward};
pub(super) use rows::Rows;

use super::Cpu;
use super::shared::Shared;
use crate::error::Error;
use crate::spec::{Backward, Forward, Gradients, Saved, Shape, Spec};
use crate::{Element, Real, View};
use expression::{Programs, Wanted};
use problem::Problem;
use std::sync::atomic::AtomicBool;
use stored::{Staged, StagedGradient, Wide};

/// Queries that share a tile, side by side.
pub(super) const BLOCK: usize = 64;
/// Keys in a tile: with BLOCK queries in `f32`, 24 KiB of scores.
pub(super) const TILE: usize = 96;

/// The two ways through the operator.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Path {
    /// `tile.rs` and `tile_backward.rs`
    Tiles,
    /// `list/`
    Lists,
}

impl Cpu {
    /// Into how many parts the phases of a problem are cut, each by the function its pass asks.
    #[doc(hidden)]
    pub fn phases<T: Real>(&self, spec: &Spec<T>, shape: &Shape) -> Vec<Phase> {
        match self.path(spec, shape) {
            Path::Lists => list::phases(spec, shape, size_of::<T>()),
            Path::Tiles => plan::tile_phases(spec, shape),
        }
    }

    /// The way a problem goes, forward and backward.
    #[doc(hidden)]
    pub fn path<T: Real>(&self, spec: &Spec<T>, shape: &Shape) -> Path {
        let lists = list::serves_shape(spec, shape, T::kernels(self.isa).lanes);
        if lists { Path::Lists } else { Path::Tiles }
    }

    /// Computes the output, and whatever else `pass` asks for.
    ///
    /// q `[B, Hq, Nq, Dq]`, k `[B, Hk, Nk, Dk]`, v `[B, Hk, Nk, Dv]`; Hq is a multiple of Hk.
    /// Refuses shapes that do not fit together. A row with nothing to attend to gives zeros.
    ///
    /// ```
    /// use regard_kernels::{Cpu, Forward, Spec, View, ViewMut};
    /// let (q, k, v) = ([0f32, 0.0], [1f32, 2.0, 3.0, 4.0], [1f32, 3.0]);
    /// let mut out = [0f32];
    /// let pass = Forward::new(ViewMut::new(&mut out, [1, 1, 1, 1])?);
    /// let (q, k) = (View::new(&q, [1, 1, 1, 2])?, View::new(&k, [1, 1, 2, 2])?);
    /// Cpu::best().forward(&Spec::scaled_dot(2), q, k, View::new(&v, [1, 1, 2, 1])?, pass)?;
    /// assert_eq!(out, [2.0]); // a query of zeros likes both keys alike: the mean of their values
    /// # Ok::<(), regard_kernels::Error>(())
    /// ```
    pub fn forward<E: Element>(
        &self,
        spec: &Spec<E::Compute>,
        q: View<E>,
        k: View<E>,
        v: View<E>,
        pass: Forward<E>,
    ) -> Result<(), Error> {
        let s = spec.check(&q, &k, &v)?;
        pass.check(&s, spec)?;
        let spec = &Spec { score: spec.score.lowered(&s), ..*spec };
        let stored = [q, k, v];
        let kernels = E::Compute::kernels(self.isa);
        let products = products::of_halves((spec, &s), kernels, &stored, None);
        // What has the products from the stored numbers reads no others.
        let wide = Wide::of(&stored, products.is_none());
        let Forward { mut out, lse, threshold, index, log_prob, weights, edge_weights } = pass;
        let mut staged = Staged::of(&mut out);
        let views = wide.views(&stored);
        let problem = Problem::new(spec, s, views, kernels).with(products.as_deref());
        let programs = Programs::of(&problem, Wanted::default());
        let problem = Problem { programs: programs.as_ref(), ..problem };
        let undefined = AtomicBool::new(false);
        let rows = Rows {
            out: staged.view(&mut out),
            lse: lse.map(Shared::new),
            threshold: threshold.map(Shared::new),
            index: index.map(Shared::new),
            log_prob: log_prob.map(Shared::new),
            best: None,
            weights: None,
            edge_weights: edge_weights.map(Shared::new),
            undefined: Some(&undefined),
        };
        (problem.kernels.forward_pass)(&problem, rows, weights.map(Shared::new));
        staged.narrow(&out);
        Ok(())
    }

    /// Computes the gradients that `pass` asks for, from what forward left.
    ///
    /// Refuses shapes that do not fit together, and a pass without what its normalizer saved.
    ///
    /// ```
    /// use regard_kernels::{Backward, Cpu, Gradients, Normalizer, Saved, Score, Spec, View, ViewMut};
    /// // Without a normalizer the output is (q · k) v.
    /// let spec = Spec { normalizer: Normalizer::None, ..Spec::new(Score::Dot { scale: 1.0 }) };
    /// let one = |x: &'static [f32]| View::new(x, [1, 1, 1, 1]);
    /// let mut of_q = [0f32];
    /// let gradients = Gradients { q: Some(ViewMut::new(&mut of_q, [1, 1, 1, 1])?), ..Gradients::default() };
    /// let pass = Backward::new(one(&[1.0])?, Saved::default(), gradients);
    /// Cpu::best().backward(&spec, one(&[2.0])?, one(&[3.0])?, one(&[5.0])?, pass)?;
    /// assert_eq!(of_q, [15.0]); // k v
    /// # Ok::<(), regard_kernels::Error>(())
    /// ```
    pub fn backward<E: Element>(
        &self,
        spec: &Spec<E::Compute>,
        q: View<E>,
        k: View<E>,
        v: View<E>,
        pass: Backward<E>,
    ) -> Result<(), Error> {
        let s = spec.check(&q, &k, &v)?;
        pass.check(&s, spec)?;
        let spec = &Spec { score: spec.score.lowered(&s), ..*spec };
        let Backward { grad_out, saved, gradients, .. } = pass;
        let inputs = [q, k, v];
        let kernels = E::Compute::kernels(self.isa);
        let products = products::of_halves((spec, &s), kernels, &inputs, Some(&grad_out));
        let wide_inputs = Wide::of(&inputs, products.is_none());
        let outputs = [grad_out, saved.out.unwrap_or(grad_out)];
        let wide_outputs = Wide::of(&outputs, true);
        let [grad_out, out] = wide_outputs.views(&outputs);
        let Gradients { q, k, v, w, own, key_bias, bias, relative } = gradients;
        // An expression that became an additive score has w for its only parameter.
        let (w, own) = match own {
            Some(own) if spec.score.own_len().is_none() => {
                (w.or(Some(own).filter(|w| !w.is_empty())), None)
            }
            own => (w, own),
        };
        let wanted = Wanted { q: q.is_some(), k: k.is_some(), parameters: own.is_some() };
        let [mut q, mut k, mut v] = [q, k, v].map(StagedGradient::of);
        let problem = Problem::new(spec, s, wide_inputs.views(&inputs), kernels);
        let problem = problem.with(products.as_deref());
        let programs = Programs::of(&problem, wanted);
        let problem = Problem { programs: programs.as_ref(), ..problem };
        (problem.kernels.backward_pass)(
            &problem,
            Backward {
                grad_out,
                grad_weights: pass.grad_weights,
                grad_edge_weights: pass.grad_edge_weights,
                grad_log_prob: pass.grad_log_prob,
                grad_lse: pass.grad_lse,
                saved: Saved {
                    out: saved.out.map(|_| out),
                    lse: saved.lse,
                    threshold: saved.threshold,
                    index: saved.index,
                },
                gradients: Gradients {
                    q: q.view(),
                    k: k.view(),
                    v: v.view(),
                    w,
                    own,
                    key_bias,
                    bias,
                    relative,
                },
            },
        );
        for gradient in [q, k, v] {
            gradient.store();
        }
        Ok(())
    }
}
