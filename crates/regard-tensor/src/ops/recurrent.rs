//! RNN, GRU and LSTM over whole sequences, by the fused kernels.

use crate::backend::{self, Backend, RecurrentCall, RecurrentForward, RecurrentSeeds};
use crate::ops::same_dtype;
use crate::{Result, Tensor, ensure, is_recording, precision};
use regard_kernels::Cell;

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
#[non_exhaustive]
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
    /// Refuses shapes that do not fit, two types, and lengths beyond the steps.
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
        let call = RecurrentCall::new(self, cell, start, lengths, reverse)?;
        let nothing = Tensor::zeros(&[0], self.dtype())?;
        let or = |x: Option<&Tensor>| x.unwrap_or(&nothing).clone();
        let inputs = [self.clone(), start.w_hh.clone(), or(start.b_hh), or(start.h0), or(start.c0)];
        let learns = is_recording() && inputs.iter().any(Tensor::has_gradient);
        let RecurrentForward { out, h, c, saved } = call.backend()?.recurrent(&call, learns)?;
        let (after, lstm) = (out.clone(), c.is_some());
        let mut results = vec![out, h];
        results.extend(c);
        let inputs = inputs.each_ref();
        let mut results = Tensor::record_all(OP, results, &inputs, move |grads, to| {
            let mut grads = grads.into_iter().map(|g| g.map(|g| g.contiguous()).transpose());
            let mut next = || grads.next().transpose().map(Option::flatten);
            let seeds = RecurrentSeeds { out: next()?, h: next()?, c: next()? };
            let want = [0, 1, 2, 3, 4].map(|input| to.want(input));
            to.add_all(call.backend()?.recurrent_backward(&call, &after, &saved, &seeds, want)?)
        })
        .into_iter();
        let mut next = || results.next().ok_or_else(|| crate::Error::new("recurrent gave nothing"));
        Ok(Recurred { out: next()?, h: next()?, c: if lstm { Some(next()?) } else { None } })
    }
}

impl RecurrentCall {
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
        let hidden = sw[1];
        ensure!(
            sg[2] == wide * hidden && sw[0] == wide * hidden,
            "recurrent: gates of shape {sg:?} and weights of shape {sw:?} do not fit; {cell:?} has {wide} gates"
        );
        let device = backend::meeting(&[gates, start.w_hh]);
        let plain = |name: &str, x: &Tensor| {
            same_dtype(OP, ("the gates are", gates), (name, x))?;
            x.constant_on(device)?.detach().contiguous()
        };
        let maybe = |name: &str, x: Option<&Tensor>| x.map(|x| plain(name, x)).transpose();
        Ok(Self {
            cell,
            gates: plain("the gates", gates)?,
            w_hh: plain("w_hh", start.w_hh)?,
            b_hh: maybe("b_hh", start.b_hh)?,
            h0: maybe("h0", start.h0)?,
            c0: maybe("c0", start.c0)?,
            lengths: lengths.map(<[usize]>::to_vec),
            reverse,
            precision: precision(),
        })
    }

    fn backend(&self) -> Result<&'static dyn Backend> {
        let mut operands = vec![&self.gates, &self.w_hh];
        operands.extend([&self.b_hh, &self.h0, &self.c0].into_iter().flatten());
        backend::together(OP, &operands)
    }
}
