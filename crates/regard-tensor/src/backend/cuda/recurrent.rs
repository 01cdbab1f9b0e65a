//! RNN, GRU and LSTM: a product and a kernel for each step of all sequences.

use super::matmul::Base;
use super::{CudaBackend, at, maybe_at, real};
use crate::backend::{Backend, RecurrentCall, RecurrentForward, RecurrentSeeds};
use crate::layout::Dims;
use crate::{Result, Tensor, ensure};
use regard_kernels::Cell;
use regard_kernels::cuda::step::{Argument, Launch, SequenceOf, StepText, cell_code};

/// Sequences as the kernels take them, and what holds their lengths.
struct Sequences {
    batch: usize,
    steps: usize,
    hidden: usize,
    of: SequenceOf,
    _lengths: Option<Tensor>,
    text: StepText,
}

/// Numbers kept of a unit for the backward pass, as `recurrent.cu` has them; the state before is the last.
fn kept(cell: Cell) -> usize {
    match cell {
        Cell::Rnn | Cell::RnnRelu => 2,
        Cell::Gru => 5,
        Cell::Lstm => 7,
    }
}

/// Refuses what the CPU's kernels refuse: on the GPU it would be read and written beyond an array's end.
fn check(call: &RecurrentCall, [batch, steps, hidden]: [usize; 3]) -> Result<()> {
    let (wide, states) = (call.cell.gates() * hidden, batch * hidden);
    for (name, given, needed) in
        [("b_hh", &call.b_hh, wide), ("h0", &call.h0, states), ("c0", &call.c0, states)]
    {
        let found = given.as_ref().map_or(needed, Tensor::numel);
        ensure!(
            found == needed,
            "{name} has {found} elements; B {batch}, T {steps}, H {hidden} and {} gates need {needed}",
            call.cell.gates()
        );
    }
    ensure!(
        call.c0.is_none() || call.cell == Cell::Lstm,
        "c0 is given, but {:?} has no cells",
        call.cell
    );
    let Some(lengths) = &call.lengths else { return Ok(()) };
    ensure!(lengths.len() == batch, "lengths has {} elements, the batch {batch}", lengths.len());
    for (at, &length) in lengths.iter().enumerate() {
        ensure!(length <= steps, "length {length} of sequence {at} is more than the {steps} steps");
    }
    Ok(())
}

impl Sequences {
    fn new(call: &RecurrentCall) -> Result<Self> {
        let shape = call.gates.shape();
        let (batch, steps, hidden) = (shape[0], shape[1], call.w_hh.shape()[1]);
        check(call, [batch, steps, hidden])?;
        let lengths = match &call.lengths {
            Some(lengths) => {
                let lengths = lengths.iter().map(|&length| length as i64).collect();
                Some(Tensor::from_vec(lengths, &[batch])?.to_device(call.gates.device())?)
            }
            None => None,
        };
        let of = SequenceOf {
            batch: batch as i64,
            steps: steps as i64,
            hidden: hidden as i64,
            cell: cell_code(call.cell),
            reverse: i64::from(call.reverse),
            lengths: lengths.as_ref().map_or(Ok(0), Tensor::device_address)?,
        };
        let text = real(&call.gates);
        Ok(Self { batch, steps, hidden, of, _lengths: lengths, text })
    }

    fn state(&self) -> Result<Dims> {
        Dims::new(&[self.batch, self.hidden])
    }
}

impl CudaBackend {
    /// A copy of what is given, or zeros.
    fn given_or_zeros(&self, x: Option<&Tensor>, shape: &Dims, like: &Tensor) -> Result<Tensor> {
        match x {
            Some(x) => self.copy(x),
            None => self.full(shape, 0.0, like.dtype()),
        }
    }

    pub(super) fn recurrent_there(
        &self,
        call: &RecurrentCall,
        learns: bool,
    ) -> Result<RecurrentForward> {
        let s = Sequences::new(call)?;
        let (state, dtype, none) = (s.state()?, call.gates.dtype(), Dims::new(&[])?);
        let h = self.given_or_zeros(call.h0.as_ref(), &state, &call.gates)?;
        let lstm = call.cell == Cell::Lstm;
        let c = lstm.then(|| self.given_or_zeros(call.c0.as_ref(), &state, &call.gates));
        let c = c.transpose()?;
        let out = self.full(&Dims::new(&[s.batch, s.steps, s.hidden])?, 0.0, dtype)?;
        let units = if learns { kept(call.cell) } else { 0 };
        let saved = self.uninit(&Dims::new(&[s.steps, s.batch, units, s.hidden])?, dtype)?;
        let kept = if learns { at(&saved)? } else { Argument::At(0) };
        let weight = call.w_hh.transpose(0, 1)?;
        let base = call.b_hh.as_ref().map_or(Base::None, Base::Row);
        for step in 0..s.steps {
            let inner = self.product(&none, &h, &weight, base)?;
            let arguments = [
                Argument::Sequence(s.of),
                at(&call.gates)?,
                at(&inner)?,
                at(&h)?,
                maybe_at(c.as_ref())?,
                at(&out)?,
                kept,
                Argument::Whole(step as i64),
            ];
            let launch = Launch::of_numbers(s.batch * s.hidden);
            self.launch(s.text, "cell_step", launch, &arguments)?;
        }
        Ok(RecurrentForward { out, h, c, saved })
    }

    pub(super) fn recurrent_backward_there(
        &self,
        call: &RecurrentCall,
        saved: &Tensor,
        seeds: &RecurrentSeeds,
        want: [bool; 5],
    ) -> Result<[Option<Tensor>; 5]> {
        let s = Sequences::new(call)?;
        let (state, dtype, none) = (s.state()?, call.gates.dtype(), Dims::new(&[])?);
        let mut grad_h = self.given_or_zeros(seeds.h.as_ref(), &state, &call.gates)?;
        let grad_c = self.given_or_zeros(seeds.c.as_ref(), &state, &call.gates)?;
        let gates = self.full(call.gates.dims(), 0.0, dtype)?;
        let wide = call.cell.gates() * s.hidden;
        let by_h = self.uninit(&Dims::new(&[s.steps, s.batch, wide])?, dtype)?;
        for step in (0..s.steps).rev() {
            let of_step = by_h.select(0, step)?;
            let arguments = [
                Argument::Sequence(s.of),
                at(saved)?,
                maybe_at(seeds.out.as_ref())?,
                at(&grad_h)?,
                at(&grad_c)?,
                at(&gates)?,
                at(&of_step)?,
                Argument::Whole(step as i64),
            ];
            let launch = Launch::of_numbers(s.batch * s.hidden);
            self.launch(s.text, "cell_backward", launch, &arguments)?;
            grad_h = self.product(&none, &of_step, &call.w_hh, Base::Matrix(&grad_h))?;
        }
        let rows = s.steps * s.batch;
        let flat = by_h.reshape(&[rows, wide])?;
        let w_hh = match want[1] && rows > 0 {
            true => {
                let before = saved.select(2, kept(call.cell) - 1)?.reshape(&[rows, s.hidden])?;
                Some(self.product(&none, &flat.transpose(0, 1)?, &before, Base::None)?)
            }
            false => want[1].then(|| self.full(call.w_hh.dims(), 0.0, dtype)).transpose()?,
        };
        let b_hh = want[2].then(|| self.sum_there(&flat, 0)).transpose()?;
        let c0 = (want[4] && call.cell == Cell::Lstm).then_some(grad_c);
        Ok([Some(gates), w_hh, b_hh, want[3].then_some(grad_h), c0])
    }
}
