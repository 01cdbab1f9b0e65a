//! RNN, GRU and LSTM over whole sequences, by the fused kernels.

use crate::dtype::{Float, floats};
use crate::ops::same_dtype;
use crate::{Parents, Result, Tensor, ensure};
use regard_kernels::Cpu;
use regard_kernels::step::{Cell, Recurrent, RecurrentGrads, RecurrentOut, RecurrentSeed};

const OP: &str = "recurrent";

/// The weights of the recurrent product, and where it starts.
///
/// ```
/// use regard_tensor::{Cell, DType, RecurrentStart, Tensor};
/// let (w, h0) = (Tensor::full(&[1, 1], 1.0, DType::F32)?, Tensor::full(&[1, 1], 10.0, DType::F32)?);
/// let start = RecurrentStart { w_hh: &w, b_hh: None, h0: Some(&h0), c0: None };
/// let sums = Tensor::full(&[1, 2, 1], 1.0, DType::F32)?.recurrent(Cell::RnnRelu, start, None, false)?;
/// assert_eq!(sums.out.to_vec::<f32>()?, [11.0, 12.0]);
/// # Ok::<(), regard_tensor::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct RecurrentStart<'a> {
    /// `[G·H, H]`
    pub w_hh: &'a Tensor,
    /// `[G·H]`
    pub b_hh: Option<&'a Tensor>,
    /// `[B, H]`; zeros where there is none.
    pub h0: Option<&'a Tensor>,
    /// `[B, H]`, the LSTM's cells; zeros where there is none.
    pub c0: Option<&'a Tensor>,
}

/// What a recurrent layer gives.
///
/// ```
/// use regard_tensor::{Cell, DType, RecurrentStart, Tensor};
/// let gates = Tensor::zeros(&[2, 3, 4 * 5], DType::F32)?;
/// let w = Tensor::zeros(&[4 * 5, 5], DType::F32)?;
/// let start = RecurrentStart { w_hh: &w, b_hh: None, h0: None, c0: None };
/// let lstm = gates.recurrent(Cell::Lstm, start, None, false)?;
/// assert_eq!((lstm.out.shape(), lstm.h.shape()), (&[2, 3, 5][..], &[2, 5][..]));
/// assert_eq!(lstm.c.unwrap().shape(), [2, 5]);
/// # Ok::<(), regard_tensor::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Recurred {
    /// The state after each step, `[B, T, H]`; 0 past a sequence's length.
    pub out: Tensor,
    /// The last state, `[B, H]`.
    pub h: Tensor,
    /// The LSTM's last cells, `[B, H]`.
    pub c: Option<Tensor>,
}

impl Tensor {
    /// A recurrent layer over whole sequences. This tensor is its input times its weights plus its
    /// bias, `[B, T, G·H]`, by one product for all steps. Past its length a sequence's state
    /// stays; in reverse each runs from its own last step to its first.
    ///
    /// ```
    /// use regard_tensor::{Cell, DType, RecurrentStart, Tensor};
    /// let gates = Tensor::from_vec(vec![1f32, 2.0, 3.0], &[1, 3, 1])?;
    /// let w = Tensor::full(&[1, 1], 1.0, DType::F32)?;
    /// let start = RecurrentStart { w_hh: &w, b_hh: None, h0: None, c0: None };
    /// let sums = gates.recurrent(Cell::RnnRelu, start, None, false)?;
    /// assert_eq!(sums.out.to_vec::<f32>()?, [1.0, 3.0, 6.0]);
    /// assert_eq!(sums.h.item()?, 6.0);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn recurrent(
        &self,
        cell: Cell,
        start: RecurrentStart,
        lengths: Option<&[usize]>,
        reverse: bool,
    ) -> Result<Recurred> {
        let call = Call::new(self, cell, start, lengths, reverse)?;
        let nothing = Tensor::zeros(&[0], self.dtype())?;
        let or = |x: Option<&Tensor>| x.unwrap_or(&nothing).clone();
        let inputs = [self.clone(), start.w_hh.clone(), or(start.b_hh), or(start.h0), or(start.c0)];
        let learns = inputs.iter().any(Tensor::has_gradient);
        let Forward { out, h, c, saved } =
            floats!(self.dtype(), OP, T => call.forward::<T>(learns))?;
        let (after, lstm) = (out.clone(), c.is_some());
        let mut results = vec![out, h];
        results.extend(c);
        let (dtype, inputs) = (self.dtype(), inputs.each_ref());
        let mut results = Tensor::record_all(OP, results, &inputs, move |grads, to| {
            let grads = grads.into_iter().map(|g| g.map(|g| g.contiguous()).transpose());
            let grads = grads.collect::<Result<Vec<_>>>()?;
            floats!(dtype, OP, T => call.backward::<T>(&after, &saved, &grads, to))
        })?
        .into_iter();
        let mut next = || results.next().ok_or_else(|| crate::Error::new("recurrent gave nothing"));
        Ok(Recurred { out: next()?, h: next()?, c: if lstm { Some(next()?) } else { None } })
    }
}

/// One call's inputs, off the tape and contiguous.
struct Call {
    cell: Cell,
    batch: usize,
    steps: usize,
    hidden: usize,
    gates: Tensor,
    w_hh: Tensor,
    b_hh: Option<Tensor>,
    h0: Option<Tensor>,
    c0: Option<Tensor>,
    lengths: Option<Vec<usize>>,
    reverse: bool,
}

/// What the forward pass gives, and what it saves for the backward pass.
struct Forward {
    out: Tensor,
    h: Tensor,
    c: Option<Tensor>,
    saved: Tensor,
}

impl Call {
    fn new(
        gates: &Tensor,
        cell: Cell,
        start: RecurrentStart,
        lengths: Option<&[usize]>,
        reverse: bool,
    ) -> Result<Self> {
        let (sg, sw, wide) = (gates.shape(), start.w_hh.shape(), cell.gates());
        ensure!(
            sg.len() == 3 && sw.len() == 2,
            "recurrent: gates of shape {sg:?} and weights of shape {sw:?}; [B, T, G·H] and [G·H, H] fit"
        );
        let (batch, steps, hidden) = (sg[0], sg[1], sw[1]);
        ensure!(
            sg[2] == wide * hidden && sw[0] == wide * hidden,
            "recurrent: gates of shape {sg:?} and weights of shape {sw:?} do not fit; {cell:?} has {wide} gates"
        );
        let plain = |name: &str, x: &Tensor| {
            same_dtype(OP, ("the gates are", gates), (name, x))?;
            x.detach().contiguous()
        };
        let maybe = |name: &str, x: Option<&Tensor>| x.map(|x| plain(name, x)).transpose();
        Ok(Self {
            cell,
            batch,
            steps,
            hidden,
            gates: plain("the gates", gates)?,
            w_hh: plain("w_hh", start.w_hh)?,
            b_hh: maybe("b_hh", start.b_hh)?,
            h0: maybe("h0", start.h0)?,
            c0: maybe("c0", start.c0)?,
            lengths: lengths.map(<[usize]>::to_vec),
            reverse,
        })
    }

    fn layer<T: Float>(&self) -> Result<Recurrent<'_, T>> {
        fn maybe<T: Float>(x: &Option<Tensor>) -> Result<Option<&[T]>> {
            x.as_ref().map(|x| x.as_slice::<T>(OP)).transpose()
        }
        Ok(Recurrent {
            cell: self.cell,
            batch: self.batch,
            steps: self.steps,
            hidden: self.hidden,
            w_hh: self.w_hh.as_slice(OP)?,
            b_hh: maybe(&self.b_hh)?,
            h0: maybe(&self.h0)?,
            c0: maybe(&self.c0)?,
            lengths: self.lengths.as_deref(),
            reverse: self.reverse,
        })
    }

    fn forward<T: Float>(&self, learns: bool) -> Result<Forward> {
        let (layer, dtype) = (self.layer::<T>()?, self.gates.dtype());
        let state = [self.batch, self.hidden];
        let mut out = Tensor::uninit(&[self.batch, self.steps, self.hidden], dtype)?;
        let mut h = Tensor::uninit(&state, dtype)?;
        let lstm = self.cell == Cell::Lstm;
        let mut c = lstm.then(|| Tensor::uninit(&state, dtype)).transpose()?;
        let mut saved = Tensor::uninit(&[if learns { layer.saved_len() } else { 0 }], dtype)?;
        let to = RecurrentOut {
            out: out.as_mut_slice::<T>()?,
            h: Some(h.as_mut_slice()?),
            c: c.as_mut().map(Tensor::as_mut_slice).transpose()?,
            saved: if learns { Some(saved.as_mut_slice()?) } else { None },
        };
        Cpu::best().recurrent(self.gates.as_slice::<T>(OP)?, &layer, to)?;
        Ok(Forward { out, h, c, saved })
    }

    /// From the gradients of `out`, `h` and `c` those of the inputs.
    fn backward<T: Float>(
        &self,
        out: &Tensor,
        saved: &Tensor,
        grads: &[Option<Tensor>],
        to: &mut Parents,
    ) -> Result<()> {
        let seed = |at: usize| match grads.get(at) {
            Some(Some(g)) => g.as_slice::<T>(OP).map(Some),
            _ => Ok(None),
        };
        let seed = RecurrentSeed { out: seed(0)?, h: seed(1)?, c: seed(2)? };
        // All the others follow from the gates' gradient, so it is made in any case.
        let mut gates = Tensor::uninit(self.gates.shape(), self.gates.dtype())?;
        let [mut w_hh, mut b_hh] = [to.uninit(1)?, to.uninit(2)?];
        let [mut h0, mut c0] = [to.uninit(3)?, to.uninit(4)?];
        let room = RecurrentGrads {
            gates_x: gates.as_mut_slice::<T>()?,
            w_hh: w_hh.as_mut().map(Tensor::as_mut_slice).transpose()?,
            b_hh: b_hh.as_mut().map(Tensor::as_mut_slice).transpose()?,
            h0: h0.as_mut().map(Tensor::as_mut_slice).transpose()?,
            c0: c0.as_mut().map(Tensor::as_mut_slice).transpose()?,
        };
        let (out, saved) = (out.as_slice::<T>(OP)?, saved.as_slice::<T>(OP)?);
        Cpu::best().recurrent_backward(&self.layer()?, out, saved, seed, room)?;
        to.add_all([Some(gates), w_hh, b_hh, h0, c0])
    }
}
