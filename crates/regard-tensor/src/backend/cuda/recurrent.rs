//! RNN, GRU and LSTM: a kernel for each step of all sequences; before it a product, where that is large.

use super::matmul::Base;
use super::{CudaBackend, at, maybe_at, real};
use crate::backend::{Backend, RecurrentCall, RecurrentForward, RecurrentSeeds};
use crate::layout::Dims;
use crate::{DType, Precision, Result, Tensor, ensure};
use regard_kernels::Cell;
use regard_kernels::cuda::step::{
    Argument, Launch, SequenceOf, SlopesOf, StatesOf, StepText, cell_code,
};

/// Sequences and units of a block, as `recurrent.cu` has them.
const STEP_ROWS: usize = 32;
const STEP_UNITS: usize = 8;
const BACK_ROWS: usize = 8;
const WARP: usize = 32;
/// The most multiplications of a step whose product is in its kernel: on an H200 it takes 10 to 14 µs at 2²⁴, and 77 at 2²⁸,
/// where a product and a kernel of their own take 22.
const FUSED: usize = 1 << 25;

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

    /// Whether a step's product is in its kernel: a large one is not, which takes longer than its launch.
    fn is_fused(&self, cell: Cell) -> bool {
        self.batch * self.hidden * self.hidden * cell.gates() <= FUSED
    }

    fn state(&self) -> Result<Dims> {
        Dims::new(&[self.batch, self.hidden])
    }
}

/// A factor of the products of a layer.
fn factor(call: &RecurrentCall, x: &Tensor) -> Result<Tensor> {
    match call.precision {
        Precision::Bf16 if x.dtype() == DType::F32 => x.to_dtype(DType::BF16),
        _ => Ok(x.clone()),
    }
}

/// Where a tensor's numbers begin; 0 where there is none.
fn maybe_address(x: Option<&Tensor>) -> Result<u64> {
    x.map_or(Ok(0), Tensor::device_address)
}

impl CudaBackend {
    /// A copy of what is given, or zeros.
    fn given_or_zeros(&self, x: Option<&Tensor>, shape: &Dims, like: &Tensor) -> Result<Tensor> {
        match x {
            Some(x) => self.copy(x),
            None => self.full(shape, 0.0, like.dtype()),
        }
    }

    /// What a layer writes for each sequence and time: zeros first where it does not for all.
    fn written(&self, call: &RecurrentCall, shape: &Dims) -> Result<Tensor> {
        match call.lengths {
            Some(_) => self.full(shape, 0.0, call.gates.dtype()),
            None => self.uninit(shape, call.gates.dtype()),
        }
    }

    pub(super) fn recurrent_there(
        &self,
        call: &RecurrentCall,
        learns: bool,
    ) -> Result<RecurrentForward> {
        let s = Sequences::new(call)?;
        let (state, dtype, none) = (s.state()?, call.gates.dtype(), Dims::new(&[])?);
        let mut h = match &call.h0 {
            Some(h0) => h0.reshape(&state)?,
            None => self.full(&state, 0.0, dtype)?,
        };
        let lstm = call.cell == Cell::Lstm;
        let c = lstm.then(|| self.given_or_zeros(call.c0.as_ref(), &state, &call.gates));
        let c = c.transpose()?;
        let out = self.written(call, &Dims::new(&[s.batch, s.steps, s.hidden])?)?;
        let units = if learns { kept(call.cell) } else { 0 };
        let saved = self.uninit(&Dims::new(&[s.steps, s.batch, units, s.hidden])?, dtype)?;
        let weight = factor(call, &call.w_hh)?.transpose(0, 1)?;
        let base = call.b_hh.as_ref().map_or(Base::None, Base::Row);
        // Two states in turns; the one that was given stays as it is.
        let mut spare = None;
        for step in 0..s.steps {
            let next = match spare.take() {
                Some(next) => next,
                None => self.uninit(&state, dtype)?,
            };
            let states = Argument::States(StatesOf {
                gates: call.gates.device_address()?,
                h: h.device_address()?,
                next: next.device_address()?,
                c: maybe_address(c.as_ref())?,
                out: out.device_address()?,
                saved: if learns { saved.device_address()? } else { 0 },
            });
            let (of, at_step) = (Argument::Sequence(s.of), Argument::Whole(step as i64));
            if s.is_fused(call.cell) {
                let blocks = s.batch.div_ceil(STEP_ROWS) * s.hidden.div_ceil(STEP_UNITS);
                let bias = maybe_at(call.b_hh.as_ref())?;
                let arguments = [of, states, at(&call.w_hh)?, bias, at_step];
                self.launch(s.text, "cell_step_fused", Launch::of_blocks(blocks), &arguments)?;
            } else {
                let inner =
                    self.product(&none, &factor(call, &h)?, &weight, base, call.precision)?;
                let launch = Launch::of_numbers(s.batch * s.hidden);
                self.launch(s.text, "cell_step", launch, &[of, states, at(&inner)?, at_step])?;
            }
            let before = std::mem::replace(&mut h, next);
            spare = (step > 0).then_some(before);
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
        let past = self.given_or_zeros(seeds.h.as_ref(), &state, &call.gates)?;
        let lstm = call.cell == Cell::Lstm;
        let grad_c = lstm.then(|| self.given_or_zeros(seeds.c.as_ref(), &state, &call.gates));
        let grad_c = grad_c.transpose()?;
        let gates = self.written(call, call.gates.dims())?;
        let wide = call.cell.gates() * s.hidden;
        let weight = factor(call, &call.w_hh)?;
        let by_h = self.uninit(&Dims::new(&[s.steps, s.batch, wide])?, dtype)?;
        for step in (0..s.steps).rev() {
            let of_step = by_h.select(0, step)?;
            let behind = (step + 1 < s.steps).then(|| by_h.select(0, step + 1)).transpose()?;
            let slopes = Argument::Slopes(SlopesOf {
                saved: saved.device_address()?,
                grad_out: maybe_address(seeds.out.as_ref())?,
                past: past.device_address()?,
                grad_c: maybe_address(grad_c.as_ref())?,
                grad_gates: gates.device_address()?,
                by_h: of_step.device_address()?,
            });
            let (of, step) = (Argument::Sequence(s.of), Argument::Whole(step as i64));
            if s.is_fused(call.cell) {
                let blocks = s.batch.div_ceil(BACK_ROWS) * s.hidden.div_ceil(WARP);
                let arguments = [of, slopes, at(&call.w_hh)?, maybe_at(behind.as_ref())?, step];
                self.launch(s.text, "cell_backward_fused", Launch::of_blocks(blocks), &arguments)?;
            } else {
                let grad_h = match &behind {
                    Some(behind) => self.product(
                        &none,
                        &factor(call, behind)?,
                        &weight,
                        Base::Matrix(&past),
                        call.precision,
                    )?,
                    None => past.clone(),
                };
                let launch = Launch::of_numbers(s.batch * s.hidden);
                self.launch(s.text, "cell_backward", launch, &[of, slopes, at(&grad_h)?, step])?;
            }
        }
        let grad_h = match want[3] && s.steps > 0 {
            true => {
                let first = factor(call, &by_h.select(0, 0)?)?;
                self.product(&none, &first, &weight, Base::Matrix(&past), call.precision)?
            }
            false => past,
        };
        let rows = s.steps * s.batch;
        let flat = by_h.reshape(&[rows, wide])?;
        let w_hh = match want[1] && rows > 0 {
            true => {
                let before = saved.select(2, kept(call.cell) - 1)?.reshape(&[rows, s.hidden])?;
                let turned = factor(call, &flat)?.transpose(0, 1)?;
                Some(self.product(
                    &none,
                    &turned,
                    &factor(call, &before)?,
                    Base::None,
                    call.precision,
                )?)
            }
            false => want[1].then(|| self.full(call.w_hh.dims(), 0.0, dtype)).transpose()?,
        };
        let b_hh = want[2].then(|| self.sum_there(&flat, 0)).transpose()?;
        let c0 = grad_c.filter(|_| want[4]);
        // As what was given has it.
        let like = |x: Option<Tensor>, given: &Option<Tensor>| match (x, given) {
            (Some(x), Some(given)) => x.reshape(given.dims()).map(Some),
            (x, _) => Ok(x),
        };
        let h0 = like(want[3].then_some(grad_h), &call.h0)?;
        Ok([Some(gates), w_hh, b_hh, h0, like(c0, &call.c0)?])
    }
}
