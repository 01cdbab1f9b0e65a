//! The operator on the CPU: fused, tiled, in SIMD, on every core, forward and backward.
//!
//! Two paths carry everything. *Tiles* (`tile.rs`, `tile_backward.rs`): a block of queries, one
//! per lane, against a tile of keys at a time; the path of most problems. *Lists* (`list.rs`,
//! `list_backward.rs`): a query, or a few, against a list of keys, a feature per lane; the path of
//! graphs, and of decoding, where few queries meet a long cache.
//!
//! Threads are rayon's: run inside a pool's `install` to choose how many.

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
mod problem;
mod program;
mod row;
mod row_softmax;
pub(crate) mod scratch;
pub(crate) mod shared;
pub(crate) mod simd;
mod strip;
pub(crate) mod tasks;
mod threshold;
mod tile;
mod tile_backward;
mod weights;

pub use isa::Isa;
pub use kernels::Kernels;
pub(crate) use kernels::{kernels_f32, kernels_f64};

use crate::error::Error;
use crate::spec::{Backward, Forward, Gradients, Normalizer, Saved, Spec};
use crate::step::{cross_entropy, dropout, layer_norm, optimizer, pointwise, recurrent, softmax};
use crate::{Element, Real, View, ViewMut};
use expression::Programs;
use problem::Problem;
use scratch::Large;
use shared::Shared;
use weights::Rule;

/// Queries that share a tile, side by side.
const BLOCK: usize = 64;
/// Keys in a tile: with BLOCK queries in `f32`, 24 KiB of scores.
const TILE: usize = 96;

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
    pub fn best() -> Self {
        Self { isa: Isa::best() }
    }

    /// A given instruction set; none where this machine does not have it.
    pub fn with(isa: Isa) -> Option<Self> {
        isa.is_available().then_some(Self { isa })
    }

    /// The instruction set in use.
    pub fn isa(&self) -> Isa {
        self.isa
    }

    /// Computes the output, and whatever else `pass` asks for.
    ///
    /// q `[B, Hq, Nq, Dq]`, k `[B, Hk, Nk, Dk]`, v `[B, Hk, Nk, Dv]`; Hq is a multiple of Hk.
    /// Refuses shapes that do not fit together. A row with nothing to attend to gives zeros.
    pub fn forward<E: Element>(
        &self,
        spec: &Spec<E::Compute>,
        q: View<E>,
        k: View<E>,
        v: View<E>,
        pass: Forward<E>,
    ) -> Result<(), Error> {
        let s = spec.check(&q, &k, &v)?;
        pass.check(&s, spec.normalizer)?;
        let spec = &Spec { score: spec.score.lowered(&s), ..*spec };
        let stored = [q, k, v];
        let wide = Wide::of(&stored);
        let Forward { mut out, lse, threshold, index, log_prob, weights } = pass;
        let mut staged = Staged::of(&mut out);
        let views = wide.views(&stored);
        let mut problem = Problem::new(spec, s, views, E::Compute::kernels(self.isa));
        let programs = Programs::of(&problem, false);
        problem.programs = programs.as_ref();
        let rows = Rows {
            out: staged.view(&mut out),
            lse: lse.map(Shared::new),
            threshold: threshold.map(Shared::new),
            index: index.map(Shared::new),
            log_prob: log_prob.map(Shared::new),
            best: None,
            weights: None,
        };
        (problem.kernels.forward_pass)(&problem, rows, weights.map(Shared::new));
        staged.narrow(&out);
        Ok(())
    }

    /// Computes the gradients that `pass` asks for, from what forward left.
    ///
    /// Refuses shapes that do not fit together, and a pass without what its normalizer saved.
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
        let Backward { grad_out, grad_weights, grad_log_prob, saved, gradients } = pass;
        let stored = [q, k, v];
        let wide = Wide::of(&stored);
        let more = [grad_out, saved.out.unwrap_or(grad_out)];
        let wide_more = Wide::of(&more);
        let [grad_out, out] = wide_more.views(&more);
        let Gradients { q: mut gq, k: mut gk, v: mut gv, w, own, key_bias, bias, relative } =
            gradients;
        let own_len = spec.score.own_len();
        // An expression that became an additive score has w for its only parameter.
        let (w, own) = match own {
            Some(own) if own_len.is_none() => (w.or(Some(own).filter(|w| !w.is_empty())), None),
            own => (w, own),
        };
        let mut staging = [&mut gq, &mut gk, &mut gv].map(|g| g.as_mut().map(|g| Staged::of(g)));
        let [room_q, room_k, room_v] = &mut staging;
        fn view<'a, E: Element>(
            staged: &'a mut Option<Staged<E>>,
            g: &'a mut Option<ViewMut<E>>,
        ) -> Option<ViewMut<'a, E::Compute>> {
            staged.as_mut().zip(g.as_mut()).map(|(staged, g)| staged.view(g))
        }
        let mut problem = Problem::new(spec, s, wide.views(&stored), E::Compute::kernels(self.isa));
        let programs = Programs::of(&problem, true);
        problem.programs = programs.as_ref();
        (problem.kernels.backward_pass)(
            &problem,
            Backward {
                grad_out,
                grad_weights,
                grad_log_prob,
                saved: Saved {
                    out: saved.out.map(|_| out),
                    lse: saved.lse,
                    threshold: saved.threshold,
                    index: saved.index,
                },
                gradients: Gradients {
                    q: view(room_q, &mut gq),
                    k: view(room_k, &mut gk),
                    v: view(room_v, &mut gv),
                    w,
                    own,
                    key_bias,
                    bias,
                    relative,
                },
            },
        );
        for (staged, g) in staging.into_iter().zip([gq, gk, gv]) {
            if let (Some(staged), Some(g)) = (staged, g) {
                staged.narrow(&g);
            }
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
}

impl<T: Real> Rows<'_, T> {
    fn set_lse(&self, row: usize, lse: T) {
        if let Some(to) = &self.lse {
            to.set(row, lse);
        }
    }

    fn set_threshold(&self, row: usize, threshold: T) {
        if let Some(to) = &self.threshold {
            to.set(row, threshold);
        }
    }

    /// A chosen key, the score (with noise) that won, its own score, and the row's log-sum-exp.
    fn set_choice(&self, row: usize, index: i64, best: T, score: T, lse: T) {
        if let Some(to) = &self.index {
            to.set(row, index);
        }
        if let Some(to) = &self.log_prob {
            to.set(row, if index < 0 { T::ZERO } else { score - lse });
        }
        if let Some(to) = &self.best {
            to.set(row, best);
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
            rows.set_lse(row, T::NEG_INFINITY);
            rows.set_threshold(row, T::ZERO);
            rows.set_choice(row, -1, T::NEG_INFINITY, T::ZERO, T::NEG_INFINITY);
        }
        return;
    }
    if let Some(weights) = &weights {
        tasks::runs(s.rows(), 16, &|row| {
            // SAFETY: each row is one task's alone, and nothing else uses the weights yet.
            unsafe { weights.part(row * s.nk, s.nk) }.fill(T::ZERO);
        });
    }
    // A threshold is known when its row is, so its weights are written on the way; others after.
    let on_the_way = p.spec.normalizer.has_threshold();
    let mut rows = rows;
    let mut index = Vec::new();
    if weights.is_some() && p.spec.normalizer.is_hard() && rows.index.is_none() {
        index.resize(s.rows(), -1);
        rows.index = Some(Shared::new(&mut index));
    }
    if on_the_way {
        rows.weights = weights.as_ref().map(|weights| weights.narrow(0, s.rows() * s.nk));
    }
    if list::serves(p) {
        list::forward(p, &rows);
    } else {
        tiles_forward(p, &rows);
    }
    if let Some(weights) = &weights
        && !on_the_way
    {
        write_weights(p, rows.index.as_ref(), weights);
    }
}

fn tiles_forward<T: Real>(p: &Problem<T>, rows: &Rows<T>) {
    let s = &p.s;
    let tasks = s.b * s.hq * p.blocks();
    // Few blocks and many keys: cut the keys too, by the shape alone.
    let splits = if p.spec.normalizer.has_threshold() {
        1
    } else {
        SPLIT_TASKS.div_ceil(tasks).min(s.nk / SPLIT_KEYS).max(1)
    };
    split_forward(p, rows, splits, tasks, |task, keys, rows| {
        let block = p.block(task);
        let range = p.key_range(block.b, block.i0, block.i0 + block.n);
        let low = range.start.max(keys.start);
        tile::forward(p, &block, low..range.end.min(keys.end).max(low), rows);
    });
}

/// Tasks forward is cut into, at least, where there are keys enough.
const SPLIT_TASKS: usize = 32;
/// Keys worth a task of their own.
const SPLIT_KEYS: usize = 512;

/// Runs tasks over all keys, or over `splits` ranges of keys whose results are then merged.
fn split_forward<T: Real>(
    p: &Problem<T>,
    rows: &Rows<T>,
    splits: usize,
    tasks: usize,
    run: impl Fn(usize, std::ops::Range<usize>, &Rows<T>) + Sync,
) {
    let s = &p.s;
    if splits == 1 {
        tasks::each(tasks, &|task| run(task, 0..s.nk, rows));
        return;
    }
    let n = s.rows();
    let chunk = s.nk.div_ceil(splits).next_multiple_of(4);
    let mut out = Large::<T>::new(splits * n * s.dv);
    let mut numbers = Large::<T>::zeros(3 * splits * n);
    let mut index = vec![-1i64; splits * n];
    {
        let (lse, rest) = numbers.split_at_mut(splits * n);
        let (best, log_prob) = rest.split_at_mut(splits * n);
        let out = Shared::new(&mut out);
        let [lse, best, log_prob] = [lse, best, log_prob].map(Shared::new);
        let index = Shared::new(&mut index);
        tasks::each(splits * tasks, &|at| {
            let (split, task) = (at / tasks, at % tasks);
            let part = Rows {
                out: out.narrow(split * n * s.dv, n * s.dv).view(s.out()),
                lse: Some(lse.narrow(split * n, n)),
                threshold: None,
                index: Some(index.narrow(split * n, n)),
                log_prob: Some(log_prob.narrow(split * n, n)),
                best: Some(best.narrow(split * n, n)),
                weights: None,
            };
            let from = (split * chunk).min(s.nk);
            run(task, from..(from + chunk).min(s.nk), &part);
        });
    }
    let (lse, rest) = numbers.split_at(splits * n);
    let (best, log_prob) = rest.split_at(splits * n);
    tasks::runs(n, 16, &|row| {
        let at = |split: usize| split * n + row;
        let largest = (0..splits).map(|x| lse[at(x)]).fold(T::NEG_INFINITY, T::max);
        let safe = if largest == T::NEG_INFINITY { T::ZERO } else { largest };
        let total: T = (0..splits).map(|x| (lse[at(x)] - safe).exp()).sum();
        let all = if total == T::ZERO { T::NEG_INFINITY } else { safe + total.ln() };
        rows.set_lse(row, all);
        let (b, h, i) = s.place(row);
        // SAFETY: each row is one task's alone.
        let to = unsafe { std::slice::from_raw_parts_mut(rows.out.row(b, h, i), s.dv) };
        to.fill(T::ZERO);
        let mut chosen = 0;
        for split in 0..splits {
            let factor = match p.spec.normalizer {
                Normalizer::Softmax if total == T::ZERO => T::ZERO,
                Normalizer::Softmax => (lse[at(split)] - safe).exp() / total,
                _ => T::ONE,
            };
            if p.spec.normalizer.is_hard() {
                if best[at(split)] > best[at(chosen)] {
                    chosen = split;
                }
                continue;
            }
            for (to, &x) in to.iter_mut().zip(&out[at(split) * s.dv..]) {
                *to += factor * x;
            }
        }
        if p.spec.normalizer.is_hard() {
            let at = at(chosen);
            to.copy_from_slice(&out[at * s.dv..][..s.dv]);
            rows.set_choice(row, index[at], best[at], log_prob[at] + lse[at], all);
        }
    });
}

/// The weights of the normalizers without a threshold, into zeros.
fn write_weights<T: Real>(p: &Problem<T>, index: Option<&Shared<i64>>, weights: &Shared<T>) {
    let s = &p.s;
    let Some(rule) = Rule::of(p.spec.normalizer) else {
        let Some(index) = index else { return };
        // SAFETY: forward is done, so nobody writes the choices any more.
        let index = unsafe { index.part(0, s.rows()) };
        for (row, &mut j) in index.iter_mut().enumerate() {
            if j >= 0 {
                let (b, h, i) = s.place(row);
                weights.set(row * s.nk + j as usize, tile::keep(p, b, h, i, j as usize));
            }
        }
        return;
    };
    if list::serves(p) {
        list::write_weights(p, rule, weights);
    } else {
        tasks::each(s.b * s.hq * p.blocks(), &|task| {
            tile::write_weights(p, rule, &p.block(task), weights);
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
        if pass.grad_log_prob.is_none() {
            return zero_all(pass.gradients);
        }
    }
    if list::serves(p) {
        list_backward::backward(p, pass);
    } else {
        tile_backward::backward(p, pass);
    }
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
    tasks::runs(b * h * n, 256, &|row| {
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
    fn of<E: Element<Compute = T>>(stored: &[View<E>; N]) -> Self {
        Self(std::array::from_fn(|at| {
            let view = &stored[at];
            if E::as_computed(view).is_some() {
                return Vec::new();
            }
            let [_, h, n, d] = view.shape;
            let mut wide = vec![T::ZERO; view.shape.iter().product()];
            if let Some(rows) = wide.len().checked_div(d) {
                let shared = Shared::new(&mut wide);
                tasks::runs(rows, 64, &|row| {
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
        tasks::runs(self.0.len() / d, 64, &|row| {
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
