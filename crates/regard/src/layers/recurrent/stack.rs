//! Layers of recurrent units over whole sequences, and one step at a time.

use super::{RecurrentConfig, RecurrentState};
use crate::Cell;
use crate::{Mode, dtype, length};
use regard_tensor::{Init, Parameter, Parameters, RecurrentStart, Result, Tensor, ensure};

/// RNN, GRU or LSTM: layers of them, in one or both directions. The parameters have the names of
/// PyTorch's `nn.RNN`, `nn.GRU` and `nn.LSTM`, so their weights load.
///
/// ```
/// use regard::prelude::*;
/// use regard::layers::{Cell, Recurrent, RecurrentConfig};
/// let parameters = Parameters::new(DType::F32, 1);
/// let config = RecurrentConfig { layers: 2, both_directions: true, ..RecurrentConfig::new(Cell::Gru, 16) };
/// let network = Recurrent::new(&parameters, &config, 8)?;
/// let x = Random::new(1).normal(&[3, 5, 8], 0.0, 1.0, DType::F32)?;
/// let output = network.forward(&x, Some(&[5, 2, 4]), None, Mode::Infer)?;
/// assert_eq!(output.out.shape(), [3, 5, 32]);
/// assert_eq!(output.state.h.len(), 4);
/// assert_eq!(parameters.all()[0].name(), "bias_hh_l0");
/// # Ok::<(), regard::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Recurrent {
    config: RecurrentConfig,
    input: usize,
    /// Layer by layer, and within each its directions.
    layers: Vec<Layer>,
}

/// One layer in one direction.
#[derive(Clone, Debug)]
struct Layer {
    w_ih: Parameter,
    w_hh: Parameter,
    b_ih: Parameter,
    b_hh: Parameter,
}

/// What a [`Recurrent`] network gives.
///
/// ```
/// # use regard::prelude::*;
/// # use regard::layers::{Cell, Recurrent, RecurrentConfig};
/// # let parameters = Parameters::new(DType::F64, 1);
/// let network = Recurrent::new(&parameters, &RecurrentConfig::new(Cell::Gru, 16), 8)?;
/// let x = Random::new(1).normal(&[1, 5, 8], 0.0, 1.0, DType::F64)?;
/// let output = network.forward(&x, Some(&[3]), None, Mode::Infer)?;
/// // the last state is that of the third step
/// let third = output.out.select(1, 2)?.to_vec::<f64>()?;
/// assert_eq!(output.state.h[0].to_vec::<f64>()?, third);
/// # Ok::<(), regard::Error>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RecurrentOutput {
    /// The last layer's state after each step, `[B, N, H]` or with both directions side by side
    /// `[B, N, 2·H]`; 0 past a sequence's length.
    pub out: Tensor,
    /// The last states of all layers.
    pub state: RecurrentState,
}

impl Recurrent {
    /// New, for vectors of width `input`; all parameters drawn within ±1/√H.
    /// Refuses a configuration that does not fit together, and names that are taken.
    ///
    /// ```
    /// # use regard::prelude::*;
    /// # use regard::layers::{Cell, Recurrent, RecurrentConfig};
    /// # let parameters = Parameters::new(DType::F64, 1);
    /// Recurrent::new(&parameters, &RecurrentConfig::new(Cell::Gru, 16), 8)?;
    /// // three gates
    /// assert_eq!(parameters.tensors()["weight_ih_l0"].shape(), [3 * 16, 8]);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn new(parameters: &Parameters, config: &RecurrentConfig, input: usize) -> Result<Self> {
        config.check()?;
        ensure!(input > 0, "a recurrent network over vectors of width 0");
        let rows = config.cell.gates().saturating_mul(config.hidden);
        let bound = Init::Uniform(1.0 / (config.hidden as f64).sqrt());
        let mut layers = Vec::new();
        for layer in 0..config.layers {
            let wide = if layer == 0 { input } else { config.width() };
            for direction in 0..config.directions() {
                let suffix = if direction == 0 { "" } else { "_reverse" };
                let new = |name: &str, shape: &[usize]| {
                    parameters.parameter(&format!("{name}_l{layer}{suffix}"), shape, bound)
                };
                layers.push(Layer {
                    w_ih: new("weight_ih", &[rows, wide])?,
                    w_hh: new("weight_hh", &[rows, config.hidden])?,
                    b_ih: new("bias_ih", &[rows])?,
                    b_hh: new("bias_hh", &[rows])?,
                });
            }
        }
        Ok(Self { config: *config, input, layers })
    }

    /// How it was made.
    ///
    /// ```
    /// # use regard::prelude::*;
    /// # use regard::layers::{Cell, Recurrent, RecurrentConfig};
    /// # let parameters = Parameters::new(DType::F64, 1);
    /// let network = Recurrent::new(&parameters, &RecurrentConfig::new(Cell::Gru, 16), 8)?;
    /// assert_eq!(network.config(), &RecurrentConfig::new(Cell::Gru, 16));
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn config(&self) -> &RecurrentConfig {
        &self.config
    }

    /// The states of zeros that sequences start from where none are given.
    /// Refuses only where there is no memory for it.
    ///
    /// ```
    /// use regard::prelude::*;
    /// use regard::layers::{Cell, Recurrent, RecurrentConfig};
    /// let parameters = Parameters::new(DType::F32, 1);
    /// let network = Recurrent::new(&parameters, &RecurrentConfig::new(Cell::Gru, 16), 8)?;
    /// assert_eq!(network.zeros(3)?.h[0].shape(), [3, 16]);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn zeros(&self, batch: usize) -> Result<RecurrentState> {
        let zero = |layer: &Layer| {
            let w = layer.w_hh.tensor();
            Tensor::zeros(&[batch, self.config.hidden], w.dtype())?.to_device(w.device())
        };
        let all = || self.layers.iter().map(zero).collect::<Result<Vec<_>>>();
        let c = if self.config.cell == Cell::Lstm { all()? } else { Vec::new() };
        Ok(RecurrentState { h: all()?, c })
    }

    /// Whole sequences: x `[B, N, input]`, of these lengths, from these states or from zeros. A
    /// padded batch gives the same numbers as each sequence alone.
    /// Refuses an input of another width or type, lengths beyond N, and states of another shape.
    ///
    /// ```
    /// # use regard::prelude::*;
    /// # use regard::layers::{Cell, Recurrent, RecurrentConfig};
    /// # let parameters = Parameters::new(DType::F64, 1);
    /// let network = Recurrent::new(&parameters, &RecurrentConfig::new(Cell::Lstm, 16), 8)?;
    /// let x = Random::new(1).normal(&[3, 5, 8], 0.0, 1.0, DType::F64)?;
    /// assert_eq!(network.forward(&x, None, None, Mode::Infer)?.out.shape(), [3, 5, 16]);
    /// let error = network.forward(&x.select(1, 0)?, None, None, Mode::Infer).unwrap_err();
    /// assert_eq!(error.to_string(), "a recurrent network over [3, 8]; it wants [B, N, 8]");
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn forward(
        &self,
        x: &Tensor,
        lengths: Option<&[usize]>,
        start: Option<&RecurrentState>,
        mode: Mode,
    ) -> Result<RecurrentOutput> {
        ensure!(
            x.rank() == 3 && x.shape()[2] == self.input,
            "a recurrent network over {:?}; it wants [B, N, {}]",
            x.shape(),
            self.input
        );
        let weight = self.layers[0].w_ih.tensor();
        dtype::check("a recurrent network", "x", x, "the weight", &weight)?;
        self.run(First::Vectors(x), lengths, start, mode)
    }

    /// One step: x `[B, input]` and the states before it give the states after it.
    /// Refuses an input of another width or type, and states of another shape.
    ///
    /// ```
    /// use regard::prelude::*;
    /// use regard::layers::{Cell, Recurrent, RecurrentConfig};
    /// let parameters = Parameters::new(DType::F32, 1);
    /// let network = Recurrent::new(&parameters, &RecurrentConfig::new(Cell::Gru, 16), 8)?;
    /// let x = Random::new(1).normal(&[3, 2, 8], 0.0, 1.0, DType::F32)?;
    /// let mut state = network.zeros(3)?;
    /// for t in 0..2 {
    ///     state = network.step(&x.select(1, t)?, &state, Mode::Infer)?;
    /// }
    /// let whole = network.forward(&x, None, None, Mode::Infer)?.state;
    /// assert!(state.h[0].squared_error(&whole.h[0])?.item()? < 1e-12);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn step(&self, x: &Tensor, state: &RecurrentState, mode: Mode) -> Result<RecurrentState> {
        ensure!(
            !self.config.both_directions,
            "a network in both directions needs whole sequences; it has no step"
        );
        ensure!(
            x.rank() == 2 && x.shape()[1] == self.input,
            "a recurrent step over {:?}; it wants [B, {}]",
            x.shape(),
            self.input
        );
        Ok(self.run(First::Vectors(&x.unsqueeze(1)?), None, Some(state), mode)?.state)
    }

    /// The first layer's weights on the input's columns from `start` on, `[G·H, width]`: a part of
    /// the input that is known for all steps has its product made at once.
    pub(crate) fn input_weight(&self, start: usize, width: usize) -> Result<Tensor> {
        self.layers[0].w_ih.tensor().narrow(1, start, width)
    }

    /// The first layer's bias on the input, `[G·H]`.
    pub(crate) fn input_bias(&self) -> Tensor {
        self.layers[0].b_ih.tensor()
    }

    /// As [`Recurrent::forward`] in one direction, with the first layer's product `[B, N, G·H]`
    /// made before.
    pub(crate) fn forward_gates(
        &self,
        gates: &Tensor,
        start: &RecurrentState,
        mode: Mode,
    ) -> Result<RecurrentOutput> {
        self.run(First::Gates(gates), None, Some(start), mode)
    }

    fn run(
        &self,
        first: First,
        lengths: Option<&[usize]>,
        start: Option<&RecurrentState>,
        mode: Mode,
    ) -> Result<RecurrentOutput> {
        let (First::Vectors(x) | First::Gates(x)) = first;
        let (b, n) = (x.shape()[0], x.shape()[1]);
        length::check("a recurrent network", lengths, b, n)?;
        if let Some(start) = start {
            self.check_state(start, b)?;
        }
        let directions = self.config.directions();
        let (mut h, mut c) = (Vec::new(), Vec::new());
        let mut below: Option<Tensor> = None;
        for (at, layers) in self.layers.chunks(directions).enumerate() {
            let input = match &below {
                Some(x) => Some(mode.dropout(x, self.config.dropout)?),
                None => None,
            };
            let mut outs = Vec::with_capacity(directions);
            for (direction, layer) in layers.iter().enumerate() {
                let product =
                    |x: &Tensor| x.linear(&layer.w_ih.tensor(), Some(&layer.b_ih.tensor()));
                let gates = match (&input, first) {
                    (Some(x), _) | (None, First::Vectors(x)) => product(x)?,
                    (None, First::Gates(gates)) => gates.clone(),
                };
                let place = at * directions + direction;
                let from =
                    |all: fn(&RecurrentState) -> &[Tensor]| start.and_then(|s| all(s).get(place));
                let recurred = gates.recurrent(
                    self.config.cell,
                    RecurrentStart {
                        w_hh: &layer.w_hh.tensor(),
                        b_hh: Some(&layer.b_hh.tensor()),
                        h0: from(|s| &s.h),
                        c0: from(|s| &s.c),
                    },
                    lengths,
                    direction == 1,
                )?;
                outs.push(recurred.out);
                h.push(recurred.h);
                c.extend(recurred.c);
            }
            below = Some(match outs.len() {
                1 => outs.swap_remove(0),
                _ => Tensor::cat(&outs, 2)?,
            });
        }
        let out = below.ok_or_else(|| crate::Error::new("a recurrent network of 0 layers"))?;
        Ok(RecurrentOutput { out, state: RecurrentState { h, c } })
    }

    fn check_state(&self, state: &RecurrentState, b: usize) -> Result<()> {
        let cells = if self.config.cell == Cell::Lstm { self.layers.len() } else { 0 };
        ensure!(
            state.h.len() == self.layers.len() && state.c.len() == cells,
            "a recurrent network of {} layers and directions was given {} states and {} cells",
            self.layers.len(),
            state.h.len(),
            state.c.len()
        );
        let shape = [b, self.config.hidden];
        for x in state.h.iter().chain(&state.c) {
            ensure!(
                x.shape() == shape,
                "a recurrent state has shape {:?}; it wants {shape:?}",
                x.shape()
            );
        }
        Ok(())
    }
}

/// What the first layer is given: vectors, or their product with its weights.
#[derive(Clone, Copy)]
enum First<'a> {
    Vectors(&'a Tensor),
    Gates(&'a Tensor),
}
