//! RNN, GRU and LSTM over whole sequences, by the fused kernels.

use crate::dtype::floats;
use crate::{Result, Tensor, ensure};
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
        let wide = cell.gates();
        ensure!(
            self.rank() == 3 && start.w_hh.rank() == 2,
            "recurrent: gates of shape {:?} and weights of shape {:?}; [B, T, G·H] and [G·H, H] fit",
            self.shape(),
            start.w_hh.shape()
        );
        let (batch, steps, hidden) = (self.shape()[0], self.shape()[1], start.w_hh.shape()[1]);
        ensure!(
            self.shape()[2] == wide * hidden && start.w_hh.shape()[0] == wide * hidden,
            "recurrent: gates of shape {:?} and weights of shape {:?} do not fit; {cell:?} has {wide} gates",
            self.shape(),
            start.w_hh.shape()
        );
        let dtype = self.dtype();
        let nothing = Tensor::zeros(&[0], dtype)?;
        let or = |x: Option<&Tensor>| x.unwrap_or(&nothing).clone();
        let inputs = [self.clone(), start.w_hh.clone(), or(start.b_hh), or(start.h0), or(start.c0)];
        for x in &inputs {
            ensure!(x.dtype() == dtype, "recurrent: types {} and {dtype} differ", x.dtype());
        }
        let given = [true, true, start.b_hh.is_some(), start.h0.is_some(), start.c0.is_some()];
        let mut plain = Vec::with_capacity(5);
        for x in &inputs {
            plain.push(x.detach().contiguous()?);
        }
        let lengths = lengths.map(<[usize]>::to_vec);
        let call = Call { cell, batch, steps, hidden, plain, given, lengths, reverse };
        let lstm = cell == Cell::Lstm;
        let learns = inputs.iter().any(Tensor::has_gradient);
        let (mut out, mut h) = (
            Tensor::uninit(&[batch, steps, hidden], dtype)?,
            Tensor::uninit(&[batch, hidden], dtype)?,
        );
        let mut c = lstm.then(|| Tensor::uninit(&[batch, hidden], dtype)).transpose()?;
        let mut saved = floats!(dtype, OP, T => {
            let count = if learns { call.layer::<T>()?.saved_len() } else { 0 };
            Tensor::uninit(&[count], dtype)
        })?;
        floats!(dtype, OP, T => {
            let to = RecurrentOut {
                out: out.as_mut_slice::<T>().unwrap_or_default(),
                h: h.as_mut_slice(),
                c: c.as_mut().and_then(Tensor::as_mut_slice),
                saved: if learns { saved.as_mut_slice() } else { None },
            };
            Cpu::best().recurrent(call.plain[0].as_slice::<T>(OP)?, &call.layer()?, to)?;
            Ok(())
        })?;
        let after = out.clone();
        let mut results = vec![out, h];
        results.extend(c);
        let inputs: Vec<&Tensor> = inputs.iter().collect();
        let mut results = Tensor::record_all(OP, results, &inputs, move |grads, to| {
            let grads = grads.into_iter().map(|g| g.map(|g| g.contiguous()).transpose());
            let grads = grads.collect::<Result<Vec<_>>>()?;
            let mut rooms =
                [to.uninit(0)?, to.uninit(1)?, to.uninit(2)?, to.uninit(3)?, to.uninit(4)?];
            // All the others follow from the gates' gradient, so it is made in any case.
            if rooms[0].is_none() {
                rooms[0] = Some(Tensor::uninit(call.plain[0].shape(), dtype)?);
            }
            floats!(dtype, OP, T => {
                let seed = |at: usize| match grads.get(at) {
                    Some(Some(g)) => g.as_slice::<T>(OP).map(Some),
                    _ => Ok(None),
                };
                let seed = RecurrentSeed { out: seed(0)?, h: seed(1)?, c: seed(2)? };
                let [gates_x, w_hh, b_hh, h0, c0] =
                    rooms.each_mut().map(|room| room.as_mut().and_then(Tensor::as_mut_slice::<T>));
                let gates_x = gates_x.unwrap_or_default();
                let to = RecurrentGrads { gates_x, w_hh, b_hh, h0, c0 };
                Cpu::best().recurrent_backward(
                    &call.layer()?,
                    after.as_slice::<T>(OP)?,
                    saved.as_slice::<T>(OP)?,
                    seed,
                    to,
                )?;
                Ok(())
            })?;
            to.add_all(rooms)
        })?
        .into_iter();
        let mut next = || results.next().ok_or_else(|| crate::Error::new("recurrent gave nothing"));
        Ok(Recurred { out: next()?, h: next()?, c: if lstm { Some(next()?) } else { None } })
    }
}

/// One call's inputs off the tape: gates, w_hh, b_hh, h0, c0.
struct Call {
    cell: Cell,
    batch: usize,
    steps: usize,
    hidden: usize,
    plain: Vec<Tensor>,
    given: [bool; 5],
    lengths: Option<Vec<usize>>,
    reverse: bool,
}

impl Call {
    fn layer<T: crate::Float>(&self) -> Result<Recurrent<'_, T>> {
        let get = |at: usize| match self.given[at] {
            true => self.plain[at].as_slice::<T>(OP).map(Some),
            false => Ok(None),
        };
        Ok(Recurrent {
            cell: self.cell,
            batch: self.batch,
            steps: self.steps,
            hidden: self.hidden,
            w_hh: self.plain[1].as_slice(OP)?,
            b_hh: get(2)?,
            h0: get(3)?,
            c0: get(4)?,
            lengths: self.lengths.as_deref(),
            reverse: self.reverse,
        })
    }
}
