//! The operator on the CPU: fused, tiled, in SIMD, on every core, forward and backward.
//!
//! Two paths carry everything. *Tiles* (`tile.rs`, `tile_backward.rs`): a block of queries, one
//! per lane, against a tile of keys at a time; the path of most problems. *Lists* (`list.rs`,
//! `list_backward.rs`): a query, or a few, against a list of keys, a feature per lane; the path of
//! graphs, and of decoding, where few queries meet a long cache.
//!
//! Threads are rayon's: run inside a pool's `install` to choose how many, inside [`sequential`] to
//! use none but the calling one, inside [`on_team`] to use somebody else's.

mod additive;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod amx;
mod choice;
mod expression;
mod gemm;
mod isa;
mod kernels;
mod list;
mod list_backward;
mod narrow;
mod narrow_keys;
mod noise;
mod online;
mod pack;
mod partial;
mod plan;
mod prepared;
mod problem;
mod products;
mod program;
mod row;
mod row_softmax;
pub(crate) mod scratch;
pub(crate) mod shared;
pub(crate) mod simd;
mod split;
mod strip;
pub(crate) mod tasks;
mod threshold;
mod tile;
mod tile_backward;
mod undefined;
mod weights;

pub use isa::Isa;
pub use kernels::Kernels;
pub(crate) use kernels::{kernels_f32, kernels_f64};
#[doc(hidden)]
pub use plan::Phase;
pub use scratch::{pooled_bytes, release_memory};
pub use tasks::{Team, on_team, sequential};

use crate::error::Error;
use crate::spec::{Backward, Forward, Gradients, Saved, Shape, Spec};
use crate::step::{cross_entropy, dropout, layer_norm, optimizer, pointwise, recurrent, softmax};
use crate::{Element, Real, View, ViewMut};
use choice::Choice;
use expression::{Programs, Wanted};
use prepared::Prepared;
use problem::{Block, Problem};
use shared::Shared;
use split::{Portion, Tasks};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use weights::Rule;

/// Queries that share a tile, side by side.
const BLOCK: usize = 64;
/// Keys in a tile: with BLOCK queries in `f32`, 24 KiB of scores.
const TILE: usize = 96;

/// The two ways through the operator.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Path {
    /// `tile.rs` and `tile_backward.rs`
    Tiles,
    /// `list.rs` and `list_backward.rs`
    Lists,
}

/// The operator, with one instruction set.
///
/// ```
/// use regard_kernels::{Cpu, Isa};
/// assert_eq!(Cpu::best().isa(), Isa::best());
/// assert!(Cpu::with(Isa::Portable).is_some());
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Cpu {
    isa: Isa,
}

impl Cpu {
    /// The fastest instruction set of this machine.
    ///
    /// ```
    /// use regard_kernels::{Cpu, Isa};
    /// assert_eq!(Cpu::best().isa(), Isa::best());
    /// ```
    pub fn best() -> Self {
        Self { isa: Isa::best() }
    }

    /// A given instruction set; none where this machine does not have it.
    ///
    /// ```
    /// use regard_kernels::{Cpu, Isa};
    /// assert!(Cpu::with(Isa::Portable).is_some());
    /// assert_eq!(Cpu::with(Isa::Amx).is_some(), Isa::Amx.is_available());
    /// ```
    pub fn with(isa: Isa) -> Option<Self> {
        isa.is_available().then_some(Self { isa })
    }

    /// The instruction set in use.
    ///
    /// ```
    /// use regard_kernels::{Cpu, Isa};
    /// assert_eq!(Cpu::with(Isa::Portable).map(|cpu| cpu.isa()), Some(Isa::Portable));
    /// ```
    pub fn isa(&self) -> Isa {
        self.isa
    }

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

/// Where forward writes its rows.
struct Rows<'a, T: Real> {
    out: ViewMut<'a, T>,
    lse: Option<Shared<'a, T>>,
    threshold: Option<Shared<'a, T>>,
    index: Option<Shared<'a, i64>>,
    log_prob: Option<Shared<'a, T>>,
    /// The score, noise included, by which a key was chosen.
    best: Option<Shared<'a, T>>,
    /// The weights, where they are written on the way.
    weights: Option<Shared<'a, T>>,
    /// The weights along the edges of a graph.
    edge_weights: Option<Shared<'a, T>>,
    /// Set where an output may be infinite or NaN, if that matters.
    undefined: Option<&'a AtomicBool>,
}

/// The key that hard attention chose for a row.
#[derive(Clone, Copy)]
struct Chosen<T> {
    /// −1 where there was none to choose.
    index: i64,
    /// Its score, noise included, by which it won.
    best: T,
    /// Its score.
    score: T,
}

impl<T: Real> Chosen<T> {
    const NONE: Self = Self { index: -1, best: T::NEG_INFINITY, score: T::NEG_INFINITY };
}

impl<T: Real> Rows<'_, T> {
    /// Something may be infinite or NaN.
    fn set_undefined(&self) {
        if let Some(undefined) = self.undefined {
            undefined.store(true, Relaxed);
        }
    }

    /// Whether anybody asks for the rows' log-sum-exps, or what follows from them.
    fn asks_lse(&self) -> bool {
        self.lse.is_some() || self.log_prob.is_some()
    }

    /// Computes a row's log-sum-exp where it is asked for.
    ///
    /// # Safety
    /// The row is the calling task's alone.
    unsafe fn set_lse(&self, row: usize, lse: impl FnOnce() -> T) {
        if let Some(to) = &self.lse {
            // SAFETY: the caller's.
            unsafe { to.set(row, lse()) };
        }
    }

    /// # Safety
    /// The row is the calling task's alone.
    unsafe fn set_threshold(&self, row: usize, threshold: T) {
        if let Some(to) = &self.threshold {
            // SAFETY: the caller's.
            unsafe { to.set(row, threshold) };
        }
    }

    /// What a row chose, and its log-sum-exp.
    ///
    /// # Safety
    /// The row is the calling task's alone.
    unsafe fn set_choice(&self, row: usize, chosen: Chosen<T>, lse: impl FnOnce() -> T) {
        let Chosen { index, best, score } = chosen;
        // SAFETY: the caller's.
        unsafe {
            if let Some(to) = &self.index {
                to.set(row, index);
            }
            if let Some(to) = &self.log_prob {
                to.set(row, if index < 0 { T::ZERO } else { score - lse() });
            }
            if let Some(to) = &self.best {
                to.set(row, best);
            }
        }
    }
}

fn forward<T: Real>(p: &Problem<T>, rows: Rows<T>, weights: Option<Shared<T>>) {
    let s = &p.s;
    if s.rows() == 0 {
        return;
    }
    if s.nk == 0 {
        zero(&rows.out);
        for row in 0..s.rows() {
            // SAFETY: there are no other tasks.
            unsafe {
                rows.set_lse(row, || T::NEG_INFINITY);
                rows.set_threshold(row, T::ZERO);
                rows.set_choice(row, Chosen::NONE, || T::NEG_INFINITY);
            }
        }
        return;
    }
    if let Some(weights) = &weights {
        tasks::runs(s.rows(), plan::rows_at_once(s.nk), &|row| {
            // SAFETY: each row is one task's alone, and nothing else uses the weights yet.
            unsafe { weights.part(row * s.nk, s.nk) }.fill(T::ZERO);
        });
    }
    // A threshold is known when its row is, so its weights are written on the way; others after.
    let on_the_way = p.spec.normalizer.has_threshold();
    let mut rows = rows;
    if !undefined::matters(p, &rows, weights.as_ref()) {
        rows.undefined = None;
    }
    let mut index = Vec::new();
    if weights.is_some() && p.spec.normalizer.is_hard() && rows.index.is_none() {
        index.resize(s.rows(), -1);
        rows.index = Some(Shared::new(&mut index));
    }
    if on_the_way {
        rows.weights = weights.as_ref().map(|weights| weights.narrow(0, s.rows() * s.nk));
    }
    let prepared = if list::serves(p) { None } else { Prepared::of(p) };
    let p = &Problem { prepared: prepared.as_ref().map(|rows| rows.rows(p)), ..*p };
    if list::serves(p) {
        // Their outputs are few.
        rows.set_undefined();
        list::forward(p, &rows);
    } else {
        tiles_forward(p, &rows);
    }
    if let Some(weights) = &weights
        && !on_the_way
    {
        write_weights(p, rows.index.as_ref(), weights);
    }
    undefined::repair(p, &rows, weights.as_ref());
}

fn tiles_forward<T: Real>(p: &Problem<T>, rows: &Rows<T>) {
    if p.spec.normalizer.has_threshold() {
        tasks::each(plan::row_blocks(&p.s), &|task| {
            tile::forward(p, &p.row_block(task), &[Portion { keys: 0..p.s.nk, rows }]);
        });
        return;
    }
    // Few blocks and many keys: the keys are cut too.
    let splits = plan::forward_splits(p.spec, &p.s);
    let rows_of = |task: usize| {
        let Block { b, h, i0, n, .. } = p.block(task);
        let first = p.row(b, h, i0);
        first..first + n
    };
    let tasks = Tasks { count: plan::blocks(&p.s), rows: &rows_of };
    split::forward(p, rows, splits, tasks, |task, portions| {
        tile::forward(p, &p.block(task), portions);
    });
}

/// The weights of the normalizers without a threshold, into zeros.
fn write_weights<T: Real>(p: &Problem<T>, index: Option<&Shared<i64>>, weights: &Shared<T>) {
    let s = &p.s;
    let Some(rule) = Rule::of(p.spec.normalizer) else {
        let Some(index) = index else { return };
        // SAFETY: forward is done, so nobody writes the choices any more.
        let index = &*unsafe { index.part(0, s.rows()) };
        tasks::runs(s.rows(), 64, &|row| {
            if let Ok(j) = usize::try_from(index[row]) {
                let (b, h, i) = s.place(row);
                // SAFETY: each row is one task's alone.
                unsafe { weights.set(row * s.nk + j, tile::keep(p, b, h, i, j)) };
            }
        });
        return;
    };
    if list::serves(p) {
        list::write_weights(p, rule, weights);
    } else {
        tasks::each(plan::row_blocks(s), &|task| {
            tile::write_weights(p, rule, &p.row_block(task), weights);
        });
    }
}

fn backward<T: Real>(p: &Problem<T>, mut pass: Backward<T>) {
    if p.s.rows() == 0 || p.s.nk == 0 {
        return zero_all(pass.gradients);
    }
    if p.spec.normalizer.is_hard() {
        // The values' gradients do not depend on the scores, nor the scores' on the values.
        if let Some(to) = pass.gradients.v.take() {
            choice::values(p, &pass.grad_out, pass.saved.index.unwrap_or_default(), &to);
        }
        if Choice::of(p.spec.normalizer, &pass).is_none() {
            return zero_all(pass.gradients);
        }
    }
    let finite = backward_by_path(p, Backward { gradients: pass.gradients.reborrow(), ..pass });
    if !finite && undefined::hides(p) && p.products.is_none() {
        undefined::repair_gradients(p, pass);
    }
}

/// Gives whether all gradients are finite, for certain where something may be hidden.
fn backward_by_path<T: Real>(p: &Problem<T>, mut pass: Backward<T>) -> bool {
    if list::serves(p) {
        list_backward::backward(p, Backward { gradients: pass.gradients.reborrow(), ..pass });
        return !undefined::hides(p) || undefined::are_finite(p, &mut pass.gradients);
    }
    let prepared = Prepared::of(p);
    let prepared = prepared.as_ref().map(|rows| rows.rows(p));
    let p = &Problem { prepared, ..*p };
    let gradients = pass.gradients.reborrow();
    let finite = tile_backward::backward(p, Backward { gradients, ..pass });
    finite && undefined::parameters_are_finite(p, &pass.gradients)
}

/// Fills all gradients with zeros.
fn zero_all<T: Real>(g: Gradients<T>) {
    for view in [&g.q, &g.k, &g.v].into_iter().flatten() {
        zero(view);
    }
    for slice in [g.w, g.own, g.key_bias, g.bias, g.relative].into_iter().flatten() {
        slice.fill(T::ZERO);
    }
}

/// Fills a view with zeros.
fn zero<T: Real>(view: &ViewMut<T>) {
    let [b, h, n, d] = view.shape;
    tasks::runs(b * h * n, plan::rows_at_once(d), &|row| {
        // SAFETY: each row is one task's alone.
        unsafe {
            let row = view.row(row / n / h, row / n % h, row % n);
            std::slice::from_raw_parts_mut(row, d).fill(T::ZERO);
        }
    });
}

/// Copies of stored arrays in the type computed in; nothing where they are of that type.
struct Wide<T, const N: usize>([Vec<T>; N]);

impl<T: Real, const N: usize> Wide<T, N> {
    fn of<E: Element<Compute = T>>(stored: &[View<E>; N], needed: bool) -> Self {
        Self(std::array::from_fn(|at| {
            let view = &stored[at];
            if !needed || E::as_computed(view).is_some() {
                return Vec::new();
            }
            let [_, h, n, d] = view.shape;
            let mut wide = vec![T::ZERO; view.shape.iter().product()];
            if let Some(rows) = wide.len().checked_div(d) {
                let shared = Shared::new(&mut wide);
                tasks::runs(rows, plan::rows_at_once(d), &|row| {
                    let from = view.row(row / n / h, row / n % h, row % n);
                    // SAFETY: each row is one task's alone.
                    let to = unsafe { shared.part(row * d, d) };
                    for (to, from) in to.iter_mut().zip(from) {
                        *to = from.widen();
                    }
                });
            }
            wide
        }))
    }

    fn views<'a, E: Element<Compute = T>>(
        &'a self,
        stored: &'a [View<'a, E>; N],
    ) -> [View<'a, T>; N] {
        std::array::from_fn(|at| {
            E::as_computed(&stored[at])
                .unwrap_or_else(|| View::of_rows(&self.0[at], stored[at].shape))
        })
    }
}

/// Results in the type computed in, on their way to being stored in another.
struct Staged<E: Element>(Vec<E::Compute>);

impl<E: Element> Staged<E> {
    fn of(stored: &mut ViewMut<E>) -> Self {
        let same = E::as_computed_mut(stored).is_some();
        let n = if same { 0 } else { stored.shape.iter().product() };
        Self(vec![E::Compute::ZERO; n])
    }

    fn view<'a>(&'a mut self, stored: &'a mut ViewMut<E>) -> ViewMut<'a, E::Compute> {
        let shape = stored.shape;
        E::as_computed_mut(stored).unwrap_or_else(|| ViewMut::of_rows(&mut self.0, shape))
    }

    /// Stores what was computed.
    fn narrow(&self, stored: &ViewMut<E>) {
        let [_, h, n, d] = stored.shape;
        if self.0.is_empty() {
            return;
        }
        tasks::runs(self.0.len() / d, plan::rows_at_once(d), &|row| {
            let from = &self.0[row * d..][..d];
            // SAFETY: each row is one task's alone.
            let to = unsafe {
                let row = stored.row(row / n / h, row / n % h, row % n);
                std::slice::from_raw_parts_mut(row, d)
            };
            for (to, &from) in to.iter_mut().zip(from) {
                *to = E::narrow(from);
            }
        });
    }
}

/// A gradient as it is stored, where it is wanted, and what is computed of it until then.
struct StagedGradient<'a, E: Element> {
    stored: Option<ViewMut<'a, E>>,
    staged: Option<Staged<E>>,
}

impl<'a, E: Element> StagedGradient<'a, E> {
    fn of(mut stored: Option<ViewMut<'a, E>>) -> Self {
        let staged = stored.as_mut().map(Staged::of);
        Self { stored, staged }
    }

    fn view(&mut self) -> Option<ViewMut<'_, E::Compute>> {
        let (staged, stored) = self.staged.as_mut().zip(self.stored.as_mut())?;
        Some(staged.view(stored))
    }

    fn store(self) {
        if let (Some(staged), Some(stored)) = (self.staged, self.stored) {
            staged.narrow(&stored);
        }
    }
}
