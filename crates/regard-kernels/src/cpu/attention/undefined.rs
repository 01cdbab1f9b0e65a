//! Rows that are not numbers.
//!
//! A hidden key has weight 0, and the kernels multiply its value by that, which is nothing, unless
//! the value is infinite or NaN. So where a row comes out as NaN and such a key is hidden from it,
//! the row is computed again by the plain formula, which does not look at what is hidden. Cost, where
//! something can be hidden: a look at each block's output while it is near.

use super::pass::{backward_by_path, zero_all};
use super::problem::Problem;
use super::rows::Rows;
use crate::cpu::shared::Shared;
use crate::cpu::tasks;
use crate::reference::{self, Arriving};
use crate::spec::{Backward, Bias, Broadcast, Gradients, Relative, Saved, Spec};
use crate::{Real, View, ViewMut};
use std::sync::OnceLock;
use std::sync::atomic::Ordering::Relaxed;

/// Numbers of the output that are looked at in one go.
const TASK: usize = 1 << 14;

/// Computes rows again that are NaN and perhaps should not be, or not all of them.
pub(super) fn repair<T: Real>(p: &Problem<T>, rows: &Rows<T>, weights: Option<&Shared<T>>) {
    let (s, spec) = (&p.s, p.spec);
    if !rows.undefined.is_some_and(|undefined| undefined.load(Relaxed)) {
        return;
    }
    let asked = is_asked(rows, weights);
    // Found once for a head, and only where there is a NaN.
    let bad: Vec<OnceLock<Vec<usize>>> = (0..s.b * s.hk).map(|_| OnceLock::new()).collect();
    let each = |row: usize| {
        let at @ (b, h, i) = s.place(row);
        // SAFETY: each row is one task's alone, and the pass is done.
        let out = unsafe { std::slice::from_raw_parts_mut(rows.out.row(b, h, i), s.dv) };
        if is_finite(p, out) || !out.iter().any(|x| x.f64().is_nan()) {
            return;
        }
        let hk = p.key_head(h);
        let bad = bad[b * s.hk + hk].get_or_init(|| bad_keys(p, b, hk));
        if !asked && !bad.iter().any(|&j| is_hidden(p, at, j)) {
            return;
        }
        let plain = reference::row(spec, s, [&p.q, &p.k, &p.v], at);
        out.copy_from_slice(&plain.out);
        // SAFETY: as above.
        unsafe {
            rows.set_lse(row, || plain.lse);
            rows.set_threshold(row, plain.threshold);
            if let Some(weights) = weights {
                weights.part(row * s.nk, s.nk).copy_from_slice(&plain.weights);
            }
            if let (Some(weights), Some(edges)) = (&rows.edge_weights, spec.mask.edges) {
                let keys = edges.of_query(i);
                let from = (b * s.hq + h) * edges.len() + edges.starts()[i];
                for (to, &j) in weights.part(from, keys.len()).iter_mut().zip(keys) {
                    *to = plain.weights[j as usize];
                }
            }
        }
    };
    if s.rows() * s.dv <= TASK {
        (0..s.rows()).for_each(each);
    } else {
        tasks::runs(s.rows(), TASK.div_ceil(s.dv), &each);
    }
}

/// Whether [`repair`] has anything to do where an output is infinite or NaN.
pub(super) fn matters<T: Real>(
    p: &Problem<T>,
    rows: &Rows<T>,
    weights: Option<&Shared<T>>,
) -> bool {
    // What has the products from the stored numbers has seen that all of them are finite.
    let checked = p.products.is_some();
    let soft = !p.spec.normalizer.is_hard();
    soft && !checked && p.s.dv > 0 && is_plain(p) && (hides(p) || is_asked(rows, weights))
}

/// Whether weights are asked for.
fn is_asked<T: Real>(rows: &Rows<T>, weights: Option<&Shared<T>>) -> bool {
    weights.is_some() || rows.edge_weights.is_some()
}

/// Whether the plain formula knows the problem: edges that are there more than once it does not, and where
/// they are nothing else hides a key.
fn is_plain<T: Real>(p: &Problem<T>) -> bool {
    !p.spec.mask.has_repeats()
}

/// Whether keys can be hidden from queries by more than that a graph has no edge there.
pub(super) fn hides<T: Real>(p: &Problem<T>) -> bool {
    p.spec.mask.is_more_than_edges() || !p.spec.bias.is_none()
}

/// The keys of a head that are not finite, or their values are not.
fn bad_keys<T: Real>(p: &Problem<T>, b: usize, hk: usize) -> Vec<usize> {
    let bad = |j: &usize| !is_finite(p, p.k.row(b, hk, *j)) || !is_finite(p, p.v.row(b, hk, *j));
    (0..p.s.nk).filter(bad).collect()
}

/// Whether a key is hidden from a query by more than that a graph has no edge there, along which
/// nothing is multiplied.
fn is_hidden<T: Real>(p: &Problem<T>, (b, h, i): (usize, usize, usize), j: usize) -> bool {
    has_edge(p, i, j) && !is_open(p, (b, h, i), j)
}

fn has_edge<T: Real>(p: &Problem<T>, i: usize, j: usize) -> bool {
    p.spec.mask.edges.is_none_or(|e| e.of_query(i).binary_search(&(j as u32)).is_ok())
}

/// Whether neither the rest of the mask nor the bias hides a key.
fn is_open<T: Real>(p: &Problem<T>, (b, h, i): (usize, usize, usize), j: usize) -> bool {
    p.spec.mask.allows(&p.s, p.offset, b, h, i, j)
        && p.spec.bias.at(p.offset, b, h, i, j) != T::NEG_INFINITY
}

/// Whether a row has neither ∞ nor NaN.
fn is_finite<T: Real>(p: &Problem<T>, row: &[T]) -> bool {
    // SAFETY: a row of so many numbers.
    let [_, nothing] = unsafe { (p.kernels.max_abs)(row.len(), row.as_ptr()) };
    nothing == T::ZERO
}

/// Whether gradients that were written have neither ∞ nor NaN.
pub(super) fn are_finite<T: Real>(p: &Problem<T>, g: &mut Gradients<T>) -> bool {
    let views = [&g.q, &g.k, &g.v].into_iter().flatten();
    let mut rows = views.flat_map(|view| {
        let [b, h, n, d] = view.shape;
        // SAFETY: the pass is done, so nobody else uses the rows.
        let row = move |at: usize| unsafe {
            std::slice::from_raw_parts(view.row(at / n / h, at / n % h, at % n), d)
        };
        (0..b * h * n).map(row)
    });
    rows.all(|row| is_finite(p, row)) && parameters_are_finite(p, g)
}

/// The same of what scores and biases learn.
pub(super) fn parameters_are_finite<T: Real>(p: &Problem<T>, g: &Gradients<T>) -> bool {
    let all = [&g.w, &g.own, &g.key_bias, &g.bias, &g.relative];
    all.into_iter().flatten().all(|x| is_finite(p, x))
}

/// Computes gradients again of which some are ∞ or NaN and perhaps should not be.
///
/// Backward multiplies by the weight 0 of a hidden pair too: its key and value, its query, and the
/// gradient that arrives there. So rows that are undefined themselves, or see an undefined key, are
/// computed by the plain formula, which leaves out what is hidden. The others are computed as
/// before, with finite numbers in place of the undefined ones, none of which they see.
pub(super) fn repair_gradients<T: Real>(p: &Problem<T>, mut pass: Backward<T>) {
    let s = &p.s;
    let bad_keys: Vec<Vec<usize>> =
        (0..s.b * s.hk).map(|head| bad_keys(p, head / s.hk, head % s.hk)).collect();
    let bad_rows: Vec<usize> =
        (0..s.rows()).filter(|&row| is_bad_row(p, &pass, &bad_keys, row)).collect();
    // Where no key is finite, as in a training that went astray, there is nothing to save.
    let astray = bad_keys.iter().any(|bad| bad.len() == s.nk);
    if (bad_rows.is_empty() && bad_keys.iter().all(Vec::is_empty)) || astray {
        return;
    }
    if bad_rows.len() == s.rows() {
        zero_all(pass.gradients.reborrow());
    } else {
        Clean::of(p, &pass, &bad_keys, &bad_rows).run(p, &mut pass);
    }
    let arriving = Arriving {
        out: pass.grad_out,
        weights: pass.grad_weights,
        edge_weights: pass.grad_edge_weights,
        log_prob: pass.grad_log_prob,
        lse: pass.grad_lse,
    };
    let mut plain = reference::Gradients::zeros(p.spec, s);
    for &row in &bad_rows {
        plain.add_row(p.spec, s, [&p.q, &p.k, &p.v], &arriving, s.place(row));
    }
    add(pass.gradients, plain);
}

/// Whether a row is undefined: by its query, what forward left or what arrives, or by a key it sees.
fn is_bad_row<T: Real>(
    p: &Problem<T>,
    pass: &Backward<T>,
    bad_keys: &[Vec<usize>],
    row: usize,
) -> bool {
    let at @ (b, h, i) = p.s.place(row);
    let finite = |x: T| x.f64().is_finite();
    let number = |x: Option<&[T]>| x.is_none_or(|x| finite(x[row]));
    let empty = pass.saved.lse.is_some_and(|lse| lse[row] == T::NEG_INFINITY);
    let arrives = [pass.grad_log_prob, pass.grad_lse].into_iter().all(number);
    let saved = (empty || number(pass.saved.lse)) && number(pass.saved.threshold);
    let rows = [Some(&p.q), Some(&pass.grad_out), pass.saved.out.as_ref()];
    let weights = pass.grad_weights.is_none_or(|x| is_finite(p, &x[row * p.s.nk..][..p.s.nk]));
    let edges = match (pass.grad_edge_weights, p.spec.mask.edges) {
        (Some(x), Some(edges)) => {
            let from = (b * p.s.hq + h) * edges.len() + edges.starts()[i];
            is_finite(p, &x[from..][..edges.of_query(i).len()])
        }
        _ => true,
    };
    let sees = |&j: &usize| has_edge(p, i, j) && is_open(p, at, j);
    let finite = rows.into_iter().flatten().all(|x| is_finite(p, x.row(b, h, i)));
    !(arrives && saved && weights && edges && finite)
        || bad_keys[b * p.s.hk + p.key_head(h)].iter().any(sees)
}

/// What a pass reads, with finite numbers in place of undefined ones; rows that are undefined have
/// no weight and send nothing.
struct Clean<T> {
    q: Vec<T>,
    k: Vec<T>,
    v: Vec<T>,
    grad_out: Vec<T>,
    out: Vec<T>,
    lse: Vec<T>,
    threshold: Vec<T>,
    grad_weights: Vec<T>,
    grad_edge_weights: Vec<T>,
    grad_log_prob: Vec<T>,
    grad_lse: Vec<T>,
    key_bias: Vec<T>,
    bias: Vec<T>,
    relative: Vec<T>,
}

impl<T: Real> Clean<T> {
    fn of(p: &Problem<T>, pass: &Backward<T>, bad_keys: &[Vec<usize>], bad_rows: &[usize]) -> Self {
        let s = &p.s;
        let keys = |x: &View<T>| {
            let mut copy = rows_of(x);
            for (head, bad) in bad_keys.iter().enumerate() {
                // A key that is there rather than zeros, of which a score may not be defined.
                let good = (0..s.nk).find(|j| !bad.contains(j)).unwrap_or(0);
                bad.iter().for_each(|&j| replace(&mut copy, x.shape[3], head * s.nk, j, good));
            }
            copy
        };
        let is_good = |row: &usize| bad_rows.binary_search(row).is_err();
        let good = (0..s.rows()).find(is_good).unwrap_or(0);
        let rows = |x: &View<T>| {
            let mut copy = rows_of(x);
            bad_rows.iter().for_each(|&row| replace(&mut copy, x.shape[3], 0, row, good));
            copy
        };
        let zeroed = |x: Option<&[T]>, width: usize| {
            let mut copy = x.unwrap_or_default().to_vec();
            if !copy.is_empty() {
                bad_rows.iter().for_each(|&row| copy[row * width..][..width].fill(T::ZERO));
            }
            copy
        };
        let mut lse = pass.saved.lse.unwrap_or_default().to_vec();
        if !lse.is_empty() {
            // exp(s − lse) is 0.
            bad_rows.iter().for_each(|&row| lse[row] = T::of(1e30));
        }
        let mut grad_edge_weights = pass.grad_edge_weights.unwrap_or_default().to_vec();
        if let (false, Some(edges)) = (grad_edge_weights.is_empty(), p.spec.mask.edges) {
            for &row in bad_rows {
                let (_, _, i) = s.place(row);
                let from = row / s.nq * edges.len() + edges.starts()[i];
                grad_edge_weights[from..][..edges.of_query(i).len()].fill(T::ZERO);
            }
        }
        // What hides a key stays.
        let finite = |x: Option<&[T]>| -> Vec<T> {
            let replaced =
                |&x: &T| if x.f64().is_finite() || x == T::NEG_INFINITY { x } else { T::ZERO };
            x.unwrap_or_default().iter().map(replaced).collect()
        };
        let Bias { key, full, relative, .. } = &p.spec.bias;
        Self {
            q: rows(&p.q),
            k: keys(&p.k),
            v: keys(&p.v),
            grad_out: zeroed(Some(&rows_of(&pass.grad_out)), s.dv),
            out: pass.saved.out.map_or(Vec::new(), |out| zeroed(Some(&rows_of(&out)), s.dv)),
            lse,
            threshold: zeroed(pass.saved.threshold, 1),
            grad_weights: zeroed(pass.grad_weights, s.nk),
            grad_edge_weights,
            grad_log_prob: zeroed(pass.grad_log_prob, 1),
            grad_lse: zeroed(pass.grad_lse, 1),
            key_bias: finite(key.map(|bias| bias.data)),
            bias: finite(full.map(|bias| bias.data)),
            relative: finite(relative.map(|bias| bias.table)),
        }
    }

    fn run(&self, p: &Problem<T>, pass: &mut Backward<T>) {
        fn view<'a, T>(data: &'a [T], shape: [usize; 4]) -> View<'a, T> {
            let [_, h, n, d] = shape;
            View { data, shape, strides: [h * n * d, n * d, d] }
        }
        let Saved { out, lse, threshold, index } = pass.saved;
        let Bias { key, full, relative, alibi } = p.spec.bias;
        let bias = Bias {
            key: key.map(|bias| Broadcast { data: &self.key_bias, ..bias }),
            full: full.map(|bias| Broadcast { data: &self.bias, ..bias }),
            relative: relative.map(|bias| Relative { table: &self.relative, ..bias }),
            alibi,
        };
        let problem = Problem {
            spec: &Spec { bias, ..*p.spec },
            q: view(&self.q, p.q.shape),
            k: view(&self.k, p.k.shape),
            v: view(&self.v, p.v.shape),
            ..*p
        };
        backward_by_path(
            &problem,
            Backward {
                grad_out: view(&self.grad_out, pass.grad_out.shape),
                grad_weights: pass.grad_weights.map(|_| &self.grad_weights[..]),
                grad_edge_weights: pass.grad_edge_weights.map(|_| &self.grad_edge_weights[..]),
                grad_log_prob: pass.grad_log_prob.map(|_| &self.grad_log_prob[..]),
                grad_lse: pass.grad_lse.map(|_| &self.grad_lse[..]),
                saved: Saved {
                    out: out.map(|out| view(&self.out, out.shape)),
                    lse: lse.map(|_| &self.lse[..]),
                    threshold: threshold.map(|_| &self.threshold[..]),
                    index,
                },
                gradients: pass.gradients.reborrow(),
            },
        );
    }
}

/// A view's rows without gaps.
fn rows_of<T: Real>(x: &View<T>) -> Vec<T> {
    let [b, h, n, _] = x.shape;
    (0..b * h * n).flat_map(|row| x.row(row / n / h, row / n % h, row % n)).copied().collect()
}

/// Row `to` becomes a copy of row `from`, both counted from `first` on.
fn replace<T: Real>(rows: &mut [T], d: usize, first: usize, to: usize, from: usize) {
    let from = (first + from) * d;
    rows.copy_within(from..from + d, (first + to) * d);
}

/// Adds the plain gradients to those that were asked for.
fn add<T: Real>(to: Gradients<T>, plain: reference::Gradients<T>) {
    fn add_view<T: Real>(to: Option<ViewMut<T>>, from: &[T]) {
        let Some(to) = to else { return };
        let [_, h, n, d] = to.shape;
        for (row, from) in from.chunks_exact(d.max(1)).enumerate() {
            // SAFETY: the view is borrowed alone.
            let to = unsafe {
                std::slice::from_raw_parts_mut(to.row(row / n / h, row / n % h, row % n), d)
            };
            to.iter_mut().zip(from).for_each(|(to, &x)| *to += x);
        }
    }
    add_view(to.q, &plain.q);
    add_view(to.k, &plain.k);
    add_view(to.v, &plain.v);
    let slices = [
        (to.w, plain.w),
        (to.own, plain.own),
        (to.key_bias, plain.key_bias),
        (to.bias, plain.bias),
        (to.relative, plain.relative),
    ];
    for (to, from) in slices {
        to.into_iter().flatten().zip(from).for_each(|(to, x)| *to += x);
    }
}
