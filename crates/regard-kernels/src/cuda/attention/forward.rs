//! A forward pass: what it reads is copied to the GPU, computed there, and copied back.

use super::additive::Additive;
use super::decode::Decode;
use super::dot::Dot;
use super::dot_tiles::DotTiles;
use super::form::Form;
use super::graph::Graph;
use super::options_at::OptionsAt;
use super::pass::{ForwardPass, OptionalArray, Scratch, Written};
use super::problem::{Rows, Uploaded};
use super::source::Stored;
use super::split::Split;
use super::tile::Tile;
use crate::cuda::device::{Cuda, Device};
use crate::cuda::module::{Grid, Module, argument};
use crate::error::Error;
use crate::spec::{Forward, Normalizer, Shape, Spec};
use crate::{Element, View};
use std::sync::Arc;

impl Cuda {
    /// Computes the output, and whatever else `pass` asks for; see [`Cpu::forward`](crate::Cpu).
    ///
    /// Refuses what `Cpu` refuses, a score that is the caller's own code, and what the GPU has no
    /// room for.
    ///
    /// ```no_run
    /// use regard_kernels::{Cuda, Forward, Spec, View, ViewMut};
    /// let (q, k, v) = ([0f32, 0.0], [1f32, 2.0, 3.0, 4.0], [1f32, 3.0]);
    /// let mut out = [0f32];
    /// let pass = Forward::new(ViewMut::new(&mut out, [1, 1, 1, 1])?);
    /// let (q, k) = (View::new(&q, [1, 1, 1, 2])?, View::new(&k, [1, 1, 2, 2])?);
    /// Cuda::new(0)?.forward(&Spec::scaled_dot(2), q, k, View::new(&v, [1, 1, 2, 1])?, pass)?;
    /// assert_eq!(out, [2.0]); // a query of zeros likes both keys alike: the mean of their values
    /// # Ok::<(), regard_kernels::Error>(())
    /// ```
    pub fn forward<E: Element>(
        &self,
        spec: &Spec<E::Compute>,
        q: View<E>,
        k: View<E>,
        v: View<E>,
        mut pass: Forward<E>,
    ) -> Result<(), Error> {
        let s = spec.check(&q, &k, &v)?;
        pass.check(&s, spec)?;
        if s.rows() == 0 {
            return Ok(());
        }
        let _entered = self.device.enter()?;
        let results = Results::of::<E>(&self.device, spec, &s, Wants::of(&pass))?;
        let run = Run::of(
            &self.device,
            spec,
            &s,
            &[q, k, v].map(Rows::from),
            results,
            OptionsAt::default(),
        )?;
        run.launch()?;
        let results = run.results;
        results.out.copy_to(&mut pass.out)?;
        results.lse.copy_to(pass.lse)?;
        results.threshold.copy_to(pass.threshold)?;
        results.index.copy_to(pass.index)?;
        results.log_prob.copy_to(pass.log_prob)?;
        results.weights.copy_to(pass.weights)?;
        results.edge_weights.copy_to(pass.edge_weights)
    }

    /// How many milliseconds each of some forward passes takes on the GPU, nothing copied: the output
    /// and its log-sum-exp.
    #[doc(hidden)]
    pub fn time_forward<E: Element>(
        &self,
        spec: &Spec<E::Compute>,
        qkv: [View<E>; 3],
        rounds: usize,
    ) -> Result<Vec<f32>, Error> {
        let [q, k, v] = &qkv;
        let s = spec.check(q, k, v)?;
        let _entered = self.device.enter()?;
        let wants = Wants { lse: true, ..Wants::default() };
        let results = Results::of::<E>(&self.device, spec, &s, wants)?;
        let run =
            Run::of(&self.device, spec, &s, &qkv.map(Rows::from), results, OptionsAt::default())?;
        self.device.time(rounds, || run.launch())
    }
}

/// What is asked for besides the output.
#[derive(Clone, Copy, Default)]
struct Wants {
    lse: bool,
    threshold: bool,
    index: bool,
    log_prob: bool,
    weights: bool,
    edge_weights: bool,
}

impl Wants {
    fn of<E: Element>(pass: &Forward<E>) -> Self {
        Self {
            lse: pass.lse.is_some(),
            threshold: pass.threshold.is_some(),
            index: pass.index.is_some(),
            log_prob: pass.log_prob.is_some(),
            weights: pass.weights.is_some(),
            edge_weights: pass.edge_weights.is_some(),
        }
    }
}

/// Where the results go.
pub(in crate::cuda) struct Results {
    pub(in crate::cuda) out: Written,
    pub(in crate::cuda) lse: OptionalArray,
    pub(in crate::cuda) threshold: OptionalArray,
    pub(in crate::cuda) index: OptionalArray,
    pub(in crate::cuda) log_prob: OptionalArray,
    pub(in crate::cuda) weights: OptionalArray,
    pub(in crate::cuda) edge_weights: OptionalArray,
}

impl Results {
    /// Memory for what is wanted.
    fn of<E: Element>(
        device: &Arc<Device>,
        spec: &Spec<E::Compute>,
        s: &Shape,
        wants: Wants,
    ) -> Result<Self, Error> {
        let real = size_of::<E::Compute>();
        let rows = |asked: bool, size: usize| OptionalArray::of(device, asked, s.rows() * size);
        let edges = spec.mask.edges.map_or(0, |edges| s.b * s.hq * edges.len());
        Ok(Self {
            out: Written::of(device, s.out(), size_of::<E>())?,
            lse: rows(wants.lse, real)?,
            threshold: rows(wants.threshold, real)?,
            index: rows(wants.index, size_of::<i64>())?,
            log_prob: rows(wants.log_prob, real)?,
            weights: rows(wants.weights, s.nk * real)?,
            edge_weights: OptionalArray::of(device, wants.edge_weights, edges * real)?,
        })
    }

    /// Whether it is more than the fast forms give.
    fn is_more(&self) -> bool {
        self.is_more_than_weights() || self.weights.is_asked()
    }

    /// Whether it is more than output, log-sum-exp and weights.
    fn is_more_than_weights(&self) -> bool {
        let rows = [&self.index, &self.log_prob, &self.edge_weights];
        rows.into_iter().any(OptionalArray::is_asked)
    }

    /// Whether the general tiles give it.
    fn is_of_tiles(&self, normalizer: Normalizer) -> bool {
        let lse = normalizer == Normalizer::Softmax || !self.lse.is_asked();
        lse && !self.threshold.is_asked() && !self.is_more_than_weights()
    }
}

/// One forward pass, everything where the kernels find it.
pub(in crate::cuda) struct Run {
    device: Arc<Device>,
    module: Arc<Module>,
    up: Uploaded,
    s: Shape,
    kernels: Kernels,
    results: Results,
}

enum Kernels {
    Generic(Scratch),
    Graph(Graph),
    Additive(Additive),
    Dot(Dot),
    Decode(Decode),
    Split(Split),
    Tile(Tile),
}

impl Run {
    /// `rows`: q, k and v, and the output where it lies on the device. The device was entered.
    pub(in crate::cuda) fn of<E: Element>(
        device: &Arc<Device>,
        spec: &Spec<E::Compute>,
        s: &Shape,
        rows: &[Rows<E>],
        results: Results,
        options: OptionsAt,
    ) -> Result<Self, Error> {
        let lowered = &Spec { score: spec.score.lowered(s), ..*spec };
        let options = options.lowered(&spec.score, &lowered.score);
        let spec = lowered;
        let form = match results.is_more() {
            true => Form::Generic,
            false => Form::of_forward(spec, s, rows, device.form_capability),
        };
        let mut form = form.within(s, device.shared_memory, false);
        if results.is_of_tiles(spec.normalizer) {
            form = form.or_tile(spec, s, rows, [false; 2], device.shared_memory);
        }
        let module = device.module(&form.variant::<E>(spec, s, false)?)?;
        let up = Uploaded::of(device, spec, s, [&rows[0], &rows[1], &rows[2]], options)?;
        let real = size_of::<E::Compute>();
        Ok(Self {
            kernels: match form {
                Form::Generic => {
                    Kernels::Generic(Scratch::of(device, spec, s, real, (1, options.edges))?)
                }
                Form::Graph(sizes) => Kernels::Graph(Graph::forward_of(s, sizes)),
                Form::Additive => Kernels::Additive(Additive::of(device, s, false)?),
                Form::DotSplit => Kernels::Split(Split::of(device, s, false)?),
                Form::Decode => Kernels::Decode(Decode::of(device, s)?),
                Form::Tile(sizes) => {
                    Kernels::Tile(Tile::of(device, s, sizes, results.weights.is_asked())?)
                }
                Form::Dot | Form::DotBias | Form::DotThreshold => {
                    let tiles = DotTiles::of(s, spec, false);
                    Kernels::Dot(Dot::of(device, s, tiles, Stored::of::<E>())?)
                }
            },
            results,
            device: device.clone(),
            module,
            up,
            s: *s,
        })
    }

    pub(in crate::cuda) fn launch(&self) -> Result<(), Error> {
        let Self { device, module, up, s, results, .. } = self;
        let mut pass = ForwardPass {
            out: results.out.array,
            lse: results.lse.at(),
            threshold: results.threshold.at(),
            index: results.index.at(),
            log_prob: results.log_prob.at(),
            weights: results.weights.at(),
            edge_weights: results.edge_weights.at(),
            scratch: 0,
            scratch_row: 0,
        };
        let grid = match &self.kernels {
            Kernels::Generic(scratch) => {
                (pass.scratch, pass.scratch_row) = (scratch.memory.at, scratch.row as i64);
                Grid::of_rows(scratch.rows.min(s.rows()), scratch.row_warps)
            }
            Kernels::Graph(graph) => return graph.forward(module, device, &up.problem, &pass),
            Kernels::Additive(tiles) => return tiles.forward(module, device, &up.problem, &pass),
            Kernels::Dot(tiles) => return tiles.forward(module, device, &up.problem, &pass),
            Kernels::Split(tiles) => return tiles.forward(module, device, &up.problem, &pass),
            Kernels::Tile(tiles) => return tiles.forward(module, device, &up.problem, &pass),
            Kernels::Decode(splits) => {
                return splits.forward(module, device, &up.problem, &pass);
            }
        };
        let mut arguments = [argument(&up.problem), argument(&pass)];
        // SAFETY: the kernels' text has these two structures, and all they name is kept by this;
        // copies wait for the stream, and what is freed is freed in its order.
        unsafe { module.launch(device, "forward", grid, &mut arguments) }
    }
}
