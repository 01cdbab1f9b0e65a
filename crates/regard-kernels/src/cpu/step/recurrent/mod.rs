//! RNN, GRU and LSTM over whole sequences, forward and backward, by PyTorch's formulas.
//!
//! A lane is a sequence: sixteen of them are a *slice*, and a task walks all steps of a slice with
//! nothing to wait for. The state of a slice is `[H, 16]`, so that the recurrent product reads each
//! weight once and multiplies it with sixteen sequences, the state stays in the nearest cache, and
//! the gates are computed without shuffling. Rows of the arrays outside are turned on the way in
//! and out. A sequence past its length keeps its state, by a mask over lanes; running in reverse is
//! the same walk from the last step, where most sequences have yet to begin.
//!
//! Per step and slice: G·H·H·16 multiply-adds, and (2 + 2G)·H·16 numbers turned. Backward the same
//! again, and one large product for the weights' gradient at the end.

mod cell;
mod lane;

pub(crate) use cell::{CellGrads, CellStep, cell_grads, cell_step};
pub(crate) use lane::{Product, product, turn_in, turn_out};

use super::matmul::{Base, Matrix};
use super::parts::{Parts, each};
use crate::cpu::Kernels;
use crate::cpu::scratch::{self, Large};
use crate::cpu::shared::Shared;
use crate::error::{Error, ensure};
use crate::numel::numel;
use crate::{Cpu, Real};
use lane::{PANEL, SLICE};
use std::fmt;
use std::str::FromStr;

/// The recurrent cell f of h' = f(h, x), by its name where it is written.
///
/// ```
/// use regard_kernels::Cell;
/// assert_eq!("rnn-relu".parse(), Ok(Cell::RnnRelu));
/// assert_eq!(Cell::Lstm.to_string(), "lstm");
/// let error = "gnu".parse::<Cell>().unwrap_err().to_string();
/// assert_eq!(error, "there is no cell \"gnu\"; there are rnn, rnn-relu, gru, lstm");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum Cell {
    /// h' = tanh(x + W·h + b)
    Rnn,
    /// h' = max(x + W·h + b, 0)
    RnnRelu,
    /// r, z = σ(x + W·h + b); n = tanh(x + r·(W·h + b)); h' = (1 − z)·n + z·h. Gates in the order
    /// r, z, n.
    #[default]
    Gru,
    /// i, f, o = σ(x + W·h + b), g = tanh(…); c' = f·c + i·g; h' = o·tanh(c'). Gates in the order
    /// i, f, g, o.
    Lstm,
}

const NAMES: [(&str, Cell); 4] =
    [("rnn", Cell::Rnn), ("rnn-relu", Cell::RnnRelu), ("gru", Cell::Gru), ("lstm", Cell::Lstm)];

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        NAMES.iter().filter(|(_, cell)| cell == self).try_for_each(|(name, _)| f.write_str(name))
    }
}

impl FromStr for Cell {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let known = NAMES.iter().find(|(name, _)| *name == text);
        known.map(|&(_, cell)| cell).ok_or_else(|| {
            let names = NAMES.map(|(name, _)| name).join(", ");
            Error::new(format!("there is no cell {text:?}; there are {names}"))
        })
    }
}

impl Cell {
    /// How many gates there are.
    ///
    /// ```
    /// assert_eq!(regard_kernels::Cell::Lstm.gates(), 4);
    /// ```
    pub fn gates(self) -> usize {
        match self {
            Self::Rnn | Self::RnnRelu => 1,
            Self::Gru => 3,
            Self::Lstm => 4,
        }
    }

    /// Numbers kept for backward per unit and step.
    fn kept(self) -> usize {
        match self {
            // h'
            Self::Rnn | Self::RnnRelu => 1,
            // r, z, n, W·h + b of n, h
            Self::Gru => 5,
            // i, f, g, o, tanh c', c
            Self::Lstm => 6,
        }
    }

    /// Gradients per unit and step: the gates', and GRU's n once more as the product sees it.
    fn grads(self) -> usize {
        if self == Self::Gru { 4 } else { self.gates() }
    }
}

/// A recurrent layer over a batch of sequences, its input's product apart.
///
/// `gates_x` `[B, T, G·H]`, the input times its weights plus its bias, is made by one product
/// outside.
///
/// ```
/// use regard_kernels::{Cell, Cpu, Recurrent, RecurrentOut};
/// let layer = Recurrent {
///     cell: Cell::RnnRelu, batch: 1, steps: 3, hidden: 1, w_hh: &[1f32], b_hh: None, h0: None,
///     c0: None, lengths: None, reverse: false,
/// };
/// let (mut out, mut h) = ([0f32; 3], [0f32]);
/// let to = RecurrentOut { out: &mut out, h: Some(&mut h), c: None, saved: None };
/// Cpu::best().recurrent(&[1.0, 2.0, 3.0], &layer, to)?;
/// assert_eq!((out, h), ([1.0, 3.0, 6.0], [6.0]));
/// # Ok::<(), regard_kernels::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Recurrent<'a, T> {
    /// The unit.
    pub cell: Cell,
    /// B
    pub batch: usize,
    /// T
    pub steps: usize,
    /// H
    pub hidden: usize,
    /// `[G·H, H]`
    pub w_hh: &'a [T],
    /// `[G·H]`
    pub b_hh: Option<&'a [T]>,
    /// `[B, H]`; zeros where there is none.
    pub h0: Option<&'a [T]>,
    /// `[B, H]`, the LSTM's cells; zeros where there is none.
    pub c0: Option<&'a [T]>,
    /// `[B]`; all T steps where there is none. Past its length a sequence's state stays, its outputs
    /// are 0 and its inputs do not matter.
    pub lengths: Option<&'a [usize]>,
    /// From each sequence's own last step to its first.
    pub reverse: bool,
}

/// Where forward writes.
///
/// ```
/// use regard_kernels::{Cell, Cpu, Recurrent, RecurrentOut};
/// let layer = Recurrent {
///     cell: Cell::RnnRelu, batch: 1, steps: 2, hidden: 1, w_hh: &[3f32], b_hh: None, h0: None,
///     c0: None, lengths: None, reverse: false,
/// };
/// let (mut out, mut saved) = ([0f32; 2], vec![0f32; layer.saved_len()]);
/// let to = RecurrentOut { out: &mut out, h: None, c: None, saved: Some(&mut saved) };
/// Cpu::best().recurrent(&[1.0, 2.0], &layer, to)?;
/// assert_eq!(out, [1.0, 5.0]); // 1, then 2 + 3 · 1
/// # Ok::<(), regard_kernels::Error>(())
/// ```
#[derive(Debug)]
pub struct RecurrentOut<'a, T> {
    /// `[B, T, H]`
    pub out: &'a mut [T],
    /// The last state, `[B, H]`.
    pub h: Option<&'a mut [T]>,
    /// The LSTM's last cells, `[B, H]`.
    pub c: Option<&'a mut [T]>,
    /// What backward needs, [`Recurrent::saved_len`] numbers.
    pub saved: Option<&'a mut [T]>,
}

/// What backward is given: the gradients of what forward gave, zeros where there is none.
/// For a loss L: ∂L/∂out, ∂L/∂h and ∂L/∂c. [`Cpu::recurrent_backward`] has an example.
#[derive(Clone, Copy, Debug)]
pub struct RecurrentSeed<'a, T> {
    /// `[B, T, H]`
    pub out: Option<&'a [T]>,
    /// `[B, H]`
    pub h: Option<&'a [T]>,
    /// `[B, H]`
    pub c: Option<&'a [T]>,
}

/// Where backward writes; what is not asked for is not computed.
/// For a loss L: ∂L/∂gates_x, ∂L/∂w_hh, and so on. [`Cpu::recurrent_backward`] has an example.
#[derive(Debug)]
pub struct RecurrentGrads<'a, T> {
    /// `[B, T, G·H]`
    pub gates_x: &'a mut [T],
    /// `[G·H, H]`
    pub w_hh: Option<&'a mut [T]>,
    /// `[G·H]`
    pub b_hh: Option<&'a mut [T]>,
    /// `[B, H]`
    pub h0: Option<&'a mut [T]>,
    /// `[B, H]`
    pub c0: Option<&'a mut [T]>,
}

impl<T: Real> Recurrent<'_, T> {
    /// How many numbers forward keeps for backward.
    ///
    /// ```
    /// use regard_kernels::{Cell, Recurrent};
    /// let layer = Recurrent {
    ///     cell: Cell::Gru, batch: 20, steps: 3, hidden: 2, w_hh: &[0f32; 12], b_hh: None,
    ///     h0: None, c0: None, lengths: None, reverse: false,
    /// };
    /// assert_eq!(layer.saved_len(), 2 * 16 * 3 * 2 * 5);
    /// ```
    pub fn saved_len(&self) -> usize {
        numel(&[self.slices(), self.steps, self.cell.kept(), self.hidden, SLICE])
    }

    fn saved_of_step(&self) -> usize {
        self.cell.kept() * self.hidden * SLICE
    }

    fn slices(&self) -> usize {
        self.batch.div_ceil(SLICE)
    }

    /// The slices to walk; none where there is nothing to write, however many sequences there
    /// are said to be.
    fn walks(&self, writes_states: bool) -> usize {
        let nothing = self.hidden == 0 || (self.steps == 0 && !writes_states);
        if nothing { 0 } else { self.slices() }
    }

    /// G·H
    fn gates(&self) -> usize {
        numel(&[self.cell.gates(), self.hidden])
    }

    /// Rows of the gates that the product sees as they are: GRU's n it sees otherwise.
    fn direct(&self) -> usize {
        if self.cell == Cell::Gru { 2 * self.hidden } else { self.gates() }
    }

    fn length(&self, b: usize) -> usize {
        self.lengths.map_or(self.steps, |lengths| lengths[b])
    }

    /// The steps in the order forward takes them.
    fn walk(&self) -> impl DoubleEndedIterator<Item = usize> {
        let (steps, reverse) = (self.steps, self.reverse);
        (0..steps).map(move |s| if reverse { steps - 1 - s } else { s })
    }

    /// Which lanes of a slice have a step t: 1, and 0 for the others.
    fn active(&self, slice: usize, t: usize) -> [T; SLICE] {
        std::array::from_fn(|lane| {
            let b = slice * SLICE + lane;
            if b < self.batch && t < self.length(b) { T::ONE } else { T::ZERO }
        })
    }

    fn check(&self) -> Result<(), Error> {
        let (b, h, g) = (self.batch, self.hidden, self.cell.gates());
        let states = numel(&[b, h]);
        for (name, found, needed) in [
            ("w_hh", Some(self.w_hh.len()), numel(&[g, h, h])),
            ("b_hh", self.b_hh.map(<[T]>::len), numel(&[g, h])),
            ("h0", self.h0.map(<[T]>::len), states),
            ("c0", self.c0.map(<[T]>::len), states),
        ] {
            self.fits(name, found, needed)?;
        }
        ensure!(
            self.c0.is_none() || self.cell == Cell::Lstm,
            "c0 is given, but {:?} has no cells",
            self.cell
        );
        if let Some(lengths) = self.lengths {
            ensure!(lengths.len() == b, "lengths has {} elements, the batch {b}", lengths.len());
            for (at, &length) in lengths.iter().enumerate() {
                ensure!(
                    length <= self.steps,
                    "length {length} of sequence {at} is more than the {} steps",
                    self.steps
                );
            }
        }
        Ok(())
    }

    fn fits(&self, name: &str, found: Option<usize>, needed: usize) -> Result<(), Error> {
        let found = found.unwrap_or(needed);
        let (b, t, h, g) = (self.batch, self.steps, self.hidden, self.cell.gates());
        ensure!(
            found == needed,
            "{name} has {found} elements; B {b}, T {t}, H {h} and {g} gates need {needed}"
        );
        Ok(())
    }

    /// The weights as the product of many steps reads them best: panels of rows, or of columns for
    /// backward, each panel's numbers in the order of their use.
    fn pack(&self, backward: bool) -> Large<T> {
        let (h, g) = (self.hidden, self.gates());
        let (m, k) = if backward { (h, g) } else { (g, h) };
        let panels = m.div_ceil(PANEL);
        let mut packed = Large::<T>::new(panels * PANEL * k);
        let to = Shared::new(&mut packed);
        Parts::of(panels, PANEL * k).run(|_, range| {
            for panel in range {
                // SAFETY: each part has panels of its own.
                let to = unsafe { to.part(panel * PANEL * k, PANEL * k) };
                let from = panel * PANEL;
                let rows = PANEL.min(m - from);
                if backward {
                    for (g, to) in to.chunks_exact_mut(PANEL).enumerate() {
                        to[..rows].copy_from_slice(&self.w_hh[g * h + from..][..rows]);
                        to[rows..].fill(T::ZERO);
                    }
                } else {
                    for r in 0..PANEL {
                        let to = to.iter_mut().skip(r).step_by(PANEL);
                        if r < rows {
                            let row = &self.w_hh[(from + r) * h..][..h];
                            to.zip(row).for_each(|(to, &x)| *to = x);
                        } else {
                            to.for_each(|to| *to = T::ZERO);
                        }
                    }
                }
            }
        });
        packed
    }
}

/// Steps from which on packing the weights pays.
const PACKED_STEPS: usize = 4;

/// The recurrent product of a slice, by weights packed or as they lie.
struct Weights<'a, T> {
    packed: Option<Large<T>>,
    w_hh: &'a [T],
    m: usize,
    k: usize,
    backward: bool,
}

impl<'a, T: Real> Weights<'a, T> {
    fn of(layer: &Recurrent<'a, T>, backward: bool) -> Self {
        let (h, g) = (layer.hidden, layer.gates());
        let (m, k) = if backward { (h, g) } else { (g, h) };
        let packed = (layer.steps >= PACKED_STEPS).then(|| layer.pack(backward));
        Self { packed, w_hh: layer.w_hh, m, k, backward }
    }

    /// Rows the result needs room for.
    fn rows(&self) -> usize {
        self.m.next_multiple_of(PANEL)
    }

    /// `to` `[m, 16]` (+)= weights · `from` `[k, 16]`.
    fn multiply(&self, kernels: &Kernels<T>, from: &[T], to: &mut [T], add: bool) {
        assert!(from.len() >= self.k * SLICE && to.len() >= self.rows() * SLICE);
        let product = match &self.packed {
            Some(packed) => Product {
                m: self.rows(),
                k: self.k,
                a: packed.as_ptr(),
                a_row: 1,
                a_column: PANEL,
                a_panel: PANEL * self.k,
                b: from.as_ptr(),
                c: to.as_mut_ptr(),
                add,
            },
            None => {
                let [a_row, a_column] = if self.backward { [1, self.m] } else { [self.k, 1] };
                Product {
                    m: self.m,
                    k: self.k,
                    a: self.w_hh.as_ptr(),
                    a_row,
                    a_column,
                    a_panel: PANEL * a_row,
                    b: from.as_ptr(),
                    c: to.as_mut_ptr(),
                    add,
                }
            }
        };
        // SAFETY: the table is this machine's; the weights have m × k numbers, packed in whole
        // panels, and the assertion above sees to the others.
        unsafe { (kernels.product)(product) };
    }
}

impl Cpu {
    /// Runs a recurrent layer over all steps: hₜ = f(hₜ₋₁, xₜ), where hₜ₋₁ of the first step ← the start.
    ///
    /// `gates_x` `[B, T, G·H]`. Refuses lengths that do not fit. A padded batch gives the same
    /// numbers as each sequence alone.
    pub fn recurrent<T: Real>(
        &self,
        gates_x: &[T],
        layer: &Recurrent<T>,
        to: RecurrentOut<T>,
    ) -> Result<(), Error> {
        layer.check()?;
        let (b, t, h, g) = (layer.batch, layer.steps, layer.hidden, layer.gates());
        for (name, found, needed) in [
            ("gates_x", Some(gates_x.len()), numel(&[b, t, g])),
            ("out", Some(to.out.len()), numel(&[b, t, h])),
            ("the last h", to.h.as_ref().map(|x| x.len()), numel(&[b, h])),
            ("the last c", to.c.as_ref().map(|x| x.len()), numel(&[b, h])),
            ("saved", to.saved.as_ref().map(|x| x.len()), layer.saved_len()),
        ] {
            layer.fits(name, found, needed)?;
        }
        let walks = layer.walks(to.h.is_some() || to.c.is_some());
        let [h, c, saved] = [to.h, to.c, to.saved].map(|x| x.map(Shared::new));
        let walk = Walk {
            kernels: T::kernels(self.isa()),
            layer,
            weights: Weights::of(layer, false),
            gates_x,
            out: Shared::new(to.out),
            h,
            c,
            saved,
        };
        each(walks, |slice| walk.slice(slice));
        Ok(())
    }

    /// The gradients of [`Self::recurrent`], from the `out` it gave and what it `saved`.
    ///
    /// Refuses lengths that do not fit.
    ///
    /// ```
    /// use regard_kernels::{Cell, Cpu, Recurrent, RecurrentGrads, RecurrentOut, RecurrentSeed};
    /// let layer = Recurrent {
    ///     cell: Cell::RnnRelu, batch: 1, steps: 2, hidden: 1, w_hh: &[3f32], b_hh: None, h0: None,
    ///     c0: None, lengths: None, reverse: false,
    /// };
    /// let (mut out, mut saved) = ([0f32; 2], vec![0f32; layer.saved_len()]);
    /// let to = RecurrentOut { out: &mut out, h: None, c: None, saved: Some(&mut saved) };
    /// let cpu = Cpu::best();
    /// cpu.recurrent(&[1.0, 2.0], &layer, to)?;
    /// let seed = RecurrentSeed { out: None, h: Some(&[1.0]), c: None };
    /// let (mut gates_x, mut w_hh) = ([0f32; 2], [0f32]);
    /// let grads = RecurrentGrads {
    ///     gates_x: &mut gates_x, w_hh: Some(&mut w_hh), b_hh: None, h0: None, c0: None,
    /// };
    /// cpu.recurrent_backward(&layer, &out, &saved, seed, grads)?;
    /// assert_eq!((gates_x, w_hh), ([3.0, 1.0], [1.0]));
    /// # Ok::<(), regard_kernels::Error>(())
    /// ```
    pub fn recurrent_backward<T: Real>(
        &self,
        layer: &Recurrent<T>,
        out: &[T],
        saved: &[T],
        seed: RecurrentSeed<T>,
        grads: RecurrentGrads<T>,
    ) -> Result<(), Error> {
        layer.check()?;
        let (b, t, h, g) = (layer.batch, layer.steps, layer.hidden, layer.gates());
        for (name, found, needed) in [
            ("out", Some(out.len()), numel(&[b, t, h])),
            ("saved", Some(saved.len()), layer.saved_len()),
            ("the gradient given of out", seed.out.map(<[T]>::len), numel(&[b, t, h])),
            ("the gradient given of h", seed.h.map(<[T]>::len), numel(&[b, h])),
            ("the gradient given of c", seed.c.map(<[T]>::len), numel(&[b, h])),
            ("the gradient of gates_x", Some(grads.gates_x.len()), numel(&[b, t, g])),
            ("the gradient of w_hh", grads.w_hh.as_ref().map(|x| x.len()), numel(&[g, h])),
            ("the gradient of b_hh", grads.b_hh.as_ref().map(|x| x.len()), g),
            ("the gradient of h0", grads.h0.as_ref().map(|x| x.len()), numel(&[b, h])),
            ("the gradient of c0", grads.c0.as_ref().map(|x| x.len()), numel(&[b, h])),
        ] {
            layer.fits(name, found, needed)?;
        }
        if h == 0 {
            return Ok(());
        }
        let kernels = T::kernels(self.isa());
        let is_gru = layer.cell == Cell::Gru;
        let learns = grads.w_hh.is_some() || grads.b_hh.is_some();
        let mut inner = Large::<T>::new(if is_gru && learns { b * t * h } else { 0 });
        let mut before = Large::<T>::new(if grads.w_hh.is_some() { b * t * h } else { 0 });
        let walks = layer.walks(grads.h0.is_some() || grads.c0.is_some());
        let [h0, c0] = [grads.h0, grads.c0].map(|x| x.map(Shared::new));
        let walk = WalkBack {
            kernels,
            layer,
            weights: Weights::of(layer, true),
            out,
            saved,
            seed,
            gates_x: Shared::new(&mut *grads.gates_x),
            inner: Shared::new(&mut inner),
            before: Shared::new(&mut before),
            h0,
            c0,
        };
        each(walks, |slice| walk.slice(slice));
        let direct = layer.direct();
        if let Some(to) = grads.w_hh {
            let (to, to_inner) = to.split_at_mut(direct * h);
            let before = Matrix::strided(&before, [b * t, h], [h, 1])?;
            let gates = Matrix::strided(&grads.gates_x[..], [b * t, direct], [g, 1])?;
            self.matmul(gates.transposed(), before, Base::Nothing, to)?;
            let inner = Matrix::strided(&inner, [b * t, g - direct], [h, 1])?;
            self.matmul(inner.transposed(), before, Base::Nothing, to_inner)?;
        }
        if let Some(to) = grads.b_hh {
            let (to, to_inner) = to.split_at_mut(direct);
            column_sums(kernels, &grads.gates_x[..], g, b * t, to);
            column_sums(kernels, &inner, h, b * t, to_inner);
        }
        Ok(())
    }
}

/// Turns the rows of a slice's sequences, `[B, H]`, into columns; zeros where there are none.
///
/// # Safety
/// The sequences from `first` on are there.
unsafe fn turn_states<T: Real>(
    kernels: &Kernels<T>,
    from: Option<&[T]>,
    [first, lanes, h]: [usize; 3],
    to: &mut [T],
) {
    match from {
        Some(from) => {
            let from = from[first * h..].as_ptr();
            // SAFETY: the caller's; `to` has h rows of a slice.
            unsafe { (kernels.turn_in)(from, h, lanes, h, to.as_mut_ptr()) };
        }
        None => to.fill(T::ZERO),
    }
}

/// Forward over all steps, for one slice of sequences after the other.
struct Walk<'a, T: Real> {
    kernels: &'static Kernels<T>,
    layer: &'a Recurrent<'a, T>,
    weights: Weights<'a, T>,
    gates_x: &'a [T],
    out: Shared<'a, T>,
    h: Option<Shared<'a, T>>,
    c: Option<Shared<'a, T>>,
    saved: Option<Shared<'a, T>>,
}

impl<T: Real> Walk<'_, T> {
    fn slice(&self, slice: usize) {
        let Self { kernels, layer, weights, .. } = self;
        let (h, g) = (layer.hidden, layer.gates());
        let first = slice * SLICE;
        let lanes = SLICE.min(layer.batch - first);
        let lengths = [g, weights.rows(), h, h, h].map(|rows| rows * SLICE);
        scratch::with::<T, 5, _>(lengths, |[gx, gh, state, cells, outs]| {
            // SAFETY: the table is this machine's. All rows touched are those of the slice's own
            // sequences, and lengths were checked before.
            unsafe {
                turn_states(kernels, layer.h0, [first, lanes, h], state);
                turn_states(kernels, layer.c0, [first, lanes, h], cells);
                for t in layer.walk() {
                    weights.multiply(kernels, state, gh, false);
                    let from = self.gates_x[(first * layer.steps + t) * g..].as_ptr();
                    (kernels.turn_in)(from, layer.steps * g, lanes, g, gx.as_mut_ptr());
                    let active = layer.active(slice, t);
                    let kept = self.saved.as_ref().map_or(std::ptr::null_mut(), |saved| {
                        let n = layer.saved_of_step();
                        saved.part((slice * layer.steps + t) * n, n).as_mut_ptr()
                    });
                    (kernels.cell_step)(CellStep {
                        cell: layer.cell,
                        hidden: h,
                        gx: gx.as_ptr(),
                        gh: gh.as_ptr(),
                        bias: layer.b_hh.map_or(std::ptr::null(), <[T]>::as_ptr),
                        active: active.as_ptr(),
                        h: state.as_mut_ptr(),
                        c: cells.as_mut_ptr(),
                        out: outs.as_mut_ptr(),
                        kept,
                    });
                    // Row by row, because the rows of a slice lie between those of others.
                    let row = layer.steps * h;
                    let to = self.out.rows((first * layer.steps + t) * h, row, lanes, h);
                    (kernels.turn_out)(outs.as_ptr(), h, lanes, to, row);
                }
                for (last, state) in [(&self.h, &*state), (&self.c, &*cells)] {
                    if let Some(last) = last {
                        let to = last.rows(first * h, h, lanes, h);
                        (kernels.turn_out)(state.as_ptr(), h, lanes, to, h);
                    }
                }
            }
        });
    }
}

/// Backward over all steps, for one slice of sequences after the other.
struct WalkBack<'a, T: Real> {
    kernels: &'static Kernels<T>,
    layer: &'a Recurrent<'a, T>,
    weights: Weights<'a, T>,
    out: &'a [T],
    saved: &'a [T],
    seed: RecurrentSeed<'a, T>,
    gates_x: Shared<'a, T>,
    /// GRU's n as the recurrent product sees it, where weights learn; else empty.
    inner: Shared<'a, T>,
    /// The state each step began with, where weights learn; else empty.
    before: Shared<'a, T>,
    h0: Option<Shared<'a, T>>,
    c0: Option<Shared<'a, T>>,
}

impl<T: Real> WalkBack<'_, T> {
    fn slice(&self, slice: usize) {
        let Self { kernels, layer, weights, .. } = self;
        let h = layer.hidden;
        let first = slice * SLICE;
        let lanes = SLICE.min(layer.batch - first);
        let lengths = [layer.cell.grads() * h, weights.rows(), h, h].map(|rows| rows * SLICE);
        scratch::with::<T, 4, _>(lengths, |[gates, grad_h, grad_c, grad_out]| {
            // SAFETY: the table is this machine's. All rows touched are those of the slice's own
            // sequences, and lengths were checked before.
            unsafe {
                turn_states(kernels, self.seed.h, [first, lanes, h], grad_h);
                turn_states(kernels, self.seed.c, [first, lanes, h], grad_c);
                for t in layer.walk().rev() {
                    if let Some(from) = self.seed.out {
                        let from = from[(first * layer.steps + t) * h..].as_ptr();
                        let to = grad_out.as_mut_ptr();
                        (kernels.turn_in)(from, layer.steps * h, lanes, h, to);
                    } else {
                        grad_out.fill(T::ZERO);
                    }
                    let active = layer.active(slice, t);
                    let n = layer.saved_of_step();
                    (kernels.cell_grads)(CellGrads {
                        cell: layer.cell,
                        hidden: h,
                        kept: self.saved[(slice * layer.steps + t) * n..][..n].as_ptr(),
                        active: active.as_ptr(),
                        grad_out: grad_out.as_ptr(),
                        h: grad_h.as_mut_ptr(),
                        c: grad_c.as_mut_ptr(),
                        gates: gates.as_mut_ptr(),
                    });
                    weights.multiply(kernels, gates, grad_h, true);
                    self.write_gates([first, lanes, t], gates);
                }
                for (to, grad) in [(&self.h0, &*grad_h), (&self.c0, &*grad_c)] {
                    if let Some(to) = to {
                        let to = to.rows(first * h, h, lanes, h);
                        (kernels.turn_out)(grad.as_ptr(), h, lanes, to, h);
                    }
                }
                if !self.before.is_empty() {
                    for b in first..first + lanes {
                        let to = self.before.part(b * layer.steps * h, layer.steps * h);
                        layer.states_before(b, self.out, to);
                    }
                }
            }
        });
    }

    /// Writes the gradients of the gates of one step.
    ///
    /// # Safety
    /// The sequences from `first` on are the calling task's alone.
    unsafe fn write_gates(&self, [first, lanes, t]: [usize; 3], gates: &[T]) {
        let Self { kernels, layer, .. } = self;
        let (h, g, direct) = (layer.hidden, layer.gates(), layer.direct());
        let (row, stride) = (first * layer.steps + t, layer.steps * g);
        // SAFETY: the caller's; `gates` has rows for all gates, GRU's n twice.
        unsafe {
            let to = self.gates_x.rows(row * g, stride, lanes, g);
            (kernels.turn_out)(gates.as_ptr(), direct, lanes, to, stride);
            if layer.cell == Cell::Gru {
                // r, z, n as the product sees it, n
                let n = gates[3 * h * SLICE..].as_ptr();
                (kernels.turn_out)(n, h, lanes, to.add(direct), stride);
            }
            if !self.inner.is_empty() {
                let n = gates[2 * h * SLICE..].as_ptr();
                let stride = layer.steps * h;
                let to = self.inner.rows(row * h, stride, lanes, h);
                (kernels.turn_out)(n, h, lanes, to, stride);
            }
        }
    }
}

impl<T: Real> Recurrent<'_, T> {
    /// The state each step of a sequence began with, `[T, H]`; zeros past its length.
    fn states_before(&self, b: usize, out: &[T], to: &mut [T]) {
        let (h, length) = (self.hidden, self.length(b));
        let out = &out[b * self.steps * h..][..self.steps * h];
        to[length * h..].fill(T::ZERO);
        if length == 0 {
            return;
        }
        let first = if self.reverse {
            to[..(length - 1) * h].copy_from_slice(&out[h..length * h]);
            (length - 1) * h
        } else {
            to[h..length * h].copy_from_slice(&out[..(length - 1) * h]);
            0
        };
        match self.h0 {
            Some(h0) => to[first..first + h].copy_from_slice(&h0[b * h..(b + 1) * h]),
            None => to[first..first + h].fill(T::ZERO),
        }
    }
}

/// The sums of the first columns of `x` `[rows, row]`.
fn column_sums<T: Real>(kernels: &Kernels<T>, x: &[T], row: usize, rows: usize, to: &mut [T]) {
    let n = to.len();
    if n == 0 {
        return;
    }
    Parts::of(rows, n)
        .sums(n, |range, sums| {
            for r in range {
                let x = &x[r * row..][..n];
                // SAFETY: the table is this machine's; both are slices of n numbers.
                unsafe { (kernels.axpy)(n, T::ONE, x.as_ptr(), sums.as_mut_ptr()) };
            }
        })
        .add_up(0, to);
}
