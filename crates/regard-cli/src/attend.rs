//! `regard attend`: the operator on files.

use crate::inputs::{Array, Inputs, NAMES};
use crate::limits::{Budget, Limits};
use crate::options::{DtypeName, Options, ScoreName};
use crate::output::{self, Destination, is_same_file};
use crate::parametric;
use crate::projected::projected;
use crate::tensors::{self, Output, Stored, Tensors, narrow};
use anyhow::{Context, Result, bail};
use clap::Args;
use half::{bf16, f16};
use regard_kernels::{
    Backward, Bias, Broadcast, Cpu, Element, Forward, Gradients, Normalizer, Real, Saved, Score,
    Spec, View, ViewMut, reference,
};
use safetensors::Dtype;
use std::fs;
use std::io::Write;
use std::path::PathBuf;

/// Attention on its own, on files
#[derive(Args, Debug)]
#[command(
    long_about = "Attention on its own, on files: weights = normalize(score(q, k) + bias, where \
                  mask), out = weights · v.",
    after_long_help = HELP,
    after_help = "`regard attend --help` says which tensors are read and written, with examples."
)]
pub struct Command {
    /// The file to read q, k, v and the rest from
    #[arg(value_name = "IN.safetensors")]
    input: PathBuf,

    /// The file to write, whole or not at all; `-` for standard output
    #[arg(long, value_name = "OUT.safetensors")]
    out: PathBuf,

    /// Replace the input, where --out names it
    #[arg(long)]
    overwrite: bool,

    #[command(flatten)]
    options: Options,
}

const HELP: &str = "\
Tensors read (F32, F64, BF16 or F16 unless said otherwise):
  q, k, v          [N, D], [B, N, D] or [B, H, N, D]; Hq is a multiple of Hk
  x                [N, E] or [B, N, E] in place of q, k and v: self-attention; with `memory`
                     [M, E] or [B, M, E], k and v are made of that
  W_q, W_k, W_v    [H · D, E], as nn.Linear has them, and b_q, b_k, b_v [H · D]: project x, or q, k
                     and v; --heads says how many heads they make. Or under PyTorch's names:
                     in_proj_weight and in_proj_bias, or q_proj_weight, k_proj_weight, v_proj_weight
  W_o, b_o         [out, H · Dv] and [out]: project the heads' outputs side by side; in PyTorch
                     out_proj.weight and out_proj.bias
  w                [D] or [Hq, D]; the additive score's weights. Of the Gaussian score [1], [D] or
                     [Hq, D]; of concat [Dq + Dk], or [hidden] beside W
  W                bilinear: [Dk, Dq] or [Hq, Dk, Dq]; concat: [hidden, Dq + Dk]
  U, V             low-rank: [rank, Dk] and [rank, Dq], or one for each head
  temperature      cosine: [], [1] or [Hq]
  any other name   where --expression has it: [], [D], [Hq, 1] or [Hq, D]
  bias             broadcast to [B, Hq, Nq, Nk]; added to the scores
  key_bias         [B, Nk]
  alibi_slopes     [Hq]; −slope · distance is added
  relative_bias    [1 or Hq, 2R + 1]; its entry clamp(j − i, −R, R) + R is added
  mask             BOOL or U8, broadcast to [B, Hq, Nq, Nk]; not 0: may attend
  key_lengths      whole numbers, [B]; only the first so many keys are seen
  q_segments,      whole numbers, [B, Nq] and [B, Nk]; a query sees only keys of its own
  k_segments         segment
  edges            whole numbers, [2, E], queries then keys; a query sees only keys it has an
                     edge to
  grad_out         the shape of out; asks for the gradients

Tensors written:
  out              [.., Nq, Dv], with as many axes as q
  weights          [.., Nq, Nk] (--weights), dropout included; --weights-before-dropout: without it
  mask             [.., Nq, Nk] (with the weights, where something is masked); false: hidden
  lse              [.., Nq] (--lse); −inf for a row with nothing to attend to
  index, log_prob  [.., Nq] (argmax and sample); index −1 for a row with nothing to attend to
  grad_q, grad_k, grad_v, grad_w, grad_bias, grad_key_bias, grad_relative_bias, grad_W, …
                   where grad_out is given, of whatever was given, in its shape

Examples:
  # causal self-attention, with gradients where the file has grad_out
  regard attend in.safetensors --out out.safetensors --causal

  # a window of 128 keys before each query, and the weights to look at
  regard attend in.safetensors --out out.safetensors --window 128,0 --weights

  # self-attention (the file has x, W_q, W_k and W_v), and nn.MultiheadAttention's (its state_dict and x)
  regard attend in.safetensors --out out.safetensors --weights
  regard attend in.safetensors --out out.safetensors --heads 8

  # Bahdanau's additive attention (the file has w; q and k of other widths with W_q and W_k), with
  # exact zeros
  regard attend in.safetensors --out out.safetensors --score additive --normalizer sparsemax

  # GATv2 on a graph (the file has w and edges)
  regard attend in.safetensors --out out.safetensors --score additive --activation leaky-relu

  # on an NVIDIA GPU
  regard attend in.safetensors --out out.safetensors --causal --device cuda

  # your own score (the file has tau and w)
  regard attend in.safetensors --out out.safetensors --score expression --expression \"tau * sum(w * q * k)\"

  # causal attention by the plain formula in f64, to compare with
  regard attend in.safetensors --out exact.safetensors --causal --reference";

impl Command {
    /// Reads, computes, writes, and says what was written.
    pub fn run(&self, to: &mut impl Write) -> Result<()> {
        self.options.check()?;
        let out = Destination::new(&self.out);
        out.check()?;
        if !self.overwrite && is_same_file(&self.input, &self.out) {
            bail!("{}: --out is the input; `--overwrite` replaces it", self.out.display());
        }
        let input = fs::read(&self.input)
            .with_context(|| format!("{}: cannot be read", self.input.display()))?;
        let (outputs, notes) = attend(&input, &self.options, Limits::of_machine())
            .with_context(|| self.input.display().to_string())?;
        drop(input);
        out.write(&tensors::serialize(&outputs)?, to)?;
        for output in &outputs {
            output::say(&output.to_string(), out.is_standard_output(), to)?;
        }
        for note in notes {
            output::note(&format!("{}: {note}", self.input.display()));
        }
        Ok(())
    }
}

/// The bytes of an input file to the bytes of its output file.
pub fn attend_bytes(input: &[u8], options: &Options, limits: Limits) -> Result<Vec<u8>> {
    options.check()?;
    tensors::serialize(&attend(input, options, limits)?.0)
}

/// Tensors that belong to scores.
const SCORE_TENSORS: [(&str, &[ScoreName]); 5] = [
    ("w", &[ScoreName::Additive, ScoreName::Gaussian, ScoreName::Concat]),
    ("W", &[ScoreName::Bilinear, ScoreName::Concat]),
    ("U", &[ScoreName::LowRank]),
    ("V", &[ScoreName::LowRank]),
    ("temperature", &[ScoreName::Cosine]),
];

/// The outputs, and what of the file was left aside.
fn attend(input: &[u8], options: &Options, limits: Limits) -> Result<(Vec<Output>, Vec<String>)> {
    let tensors = tensors::read(input)?;
    if let Some(projected) = projected(&tensors, options, limits)? {
        let plain = Options { heads: None, ..options.clone() };
        let (outputs, notes) = attend(&projected.file, &plain, limits)?;
        return Ok((projected.finish(outputs, limits)?, notes));
    }
    let own = options.own_parameters();
    let mut notes: Vec<String> = tensors
        .others_than(&NAMES)
        .into_iter()
        .filter(|name| !own.iter().any(|own| own == name))
        .map(|name| format!("tensor {name:?} is not read; those that are: {}", NAMES.join(", ")))
        .collect();
    for (name, scores) in SCORE_TENSORS {
        if tensors.get(name).is_some()
            && !scores.contains(&options.score)
            && !own.iter().any(|own| own == name)
        {
            let owner = crate::options::name(scores[0]);
            notes.push(format!("tensor `{name}` is left aside; it belongs to --score {owner}"));
        }
    }
    if options.weights && options.dropout.is_some_and(|p| p > 0.0) {
        notes.push(
            "`weights` include dropout, as `out` does; --weights-before-dropout writes them as they \
             are before it"
                .into(),
        );
    }
    let dtype = match (options.dtype, tensors.require("q")?.dtype) {
        (Some(dtype), _) => dtype,
        (None, Dtype::F32) => DtypeName::F32,
        (None, Dtype::F64) => DtypeName::F64,
        (None, Dtype::BF16) => DtypeName::Bf16,
        (None, Dtype::F16) => DtypeName::F16,
        (None, other) => bail!("`q` has type {other}; it needs F32, F64, BF16 or F16"),
    };
    let outputs = match dtype {
        DtypeName::F32 => attend_in::<f32, f32>(&tensors, options, limits),
        DtypeName::F64 => attend_in::<f64, f64>(&tensors, options, limits),
        DtypeName::Bf16 => attend_in::<bf16, f32>(&tensors, options, limits),
        DtypeName::F16 => attend_in::<f16, f32>(&tensors, options, limits),
    };
    Ok((outputs?, notes))
}

/// Attention stored in E and computed in T.
fn attend_in<E, T>(tensors: &Tensors, options: &Options, limits: Limits) -> Result<Vec<Output>>
where
    E: Stored + Element<Compute = T>,
    T: Stored + Real,
{
    let mut budget = Budget::within(limits);
    if options.score.has_parameters() {
        let mut outputs =
            options.machine.install(|| parametric::attend::<E, T>(tensors, options, budget))??;
        if options.writes_weights() {
            let mut budget = Budget::within(limits);
            let inputs = Inputs::<E, T>::take(tensors, &mut budget, false)?;
            outputs.extend(visible(&inputs, options, &mut budget)?);
        }
        return Ok(outputs);
    }
    let additive = options.score == ScoreName::Additive;
    let inputs = Inputs::<E, T>::take(tensors, &mut budget, additive)?;
    let results = if options.reference {
        by_reference(&inputs, options, budget)?
    } else {
        options.machine.install(|| by_kernels(&inputs, options, budget))??
    };
    let mut outputs = results.into_outputs(&inputs);
    if options.writes_weights() {
        outputs.extend(visible(&inputs, options, &mut Budget::within(limits))?);
    }
    Ok(outputs)
}

/// `mask`, which pairs may be seen, in the shape of the weights; none where all of them may. The operator
/// says so itself: scores of 0 and a bias of 1, not normalized, are 1 where a pair is seen.
fn visible<E, T>(
    inputs: &Inputs<E, T>,
    options: &Options,
    budget: &mut Budget,
) -> Result<Option<Output>>
where
    E: Stored + Element<Compute = T>,
    T: Stored + Real,
{
    let ([b, hq, nq, _], nk) = (inputs.q.full, inputs.k.full[2]);
    // A bias of −∞ hides a pair as a mask does.
    let hiding = |x: &Array<T>, seen: f32| -> Vec<f32> {
        let flag = |x: &T| if x.f64() == f64::NEG_INFINITY { f32::NEG_INFINITY } else { seen };
        x.data.iter().map(flag).collect()
    };
    let learned = &inputs.learned;
    let (full, shape) = match &learned.bias {
        Some(x) => (hiding(x, 1.0), x.full),
        None => (vec![1.0], [1; 4]),
    };
    let key = learned.key_bias.as_ref().map(|x| (hiding(x, 0.0), x.full));
    let spec = Spec {
        mask: options.mask(&inputs.masks),
        bias: Bias {
            full: Some(Broadcast { data: &full, shape }),
            key: key.as_ref().map(|(data, shape)| Broadcast { data, shape: *shape }),
            ..Bias::default()
        },
        normalizer: Normalizer::None,
        offset: options.offset,
        ..Spec::new(Score::Dot { scale: 1.0 })
    };
    let mut seen = budget.zeros::<f32>("mask", &[b, hq, nq, nk])?;
    let [queries, keys] = [b * hq * nq, b * hq * nk].map(|count| vec![0.0f32; count]);
    let mut aside = queries.clone();
    let pass = Forward {
        weights: Some(&mut seen),
        ..Forward::new(ViewMut::new(&mut aside, [b, hq, nq, 1])?)
    };
    let q = View::new(&queries, [b, hq, nq, 1])?;
    let k = View::new(&keys, [b, hq, nk, 1])?;
    options.machine.install(|| Cpu::best().forward(&spec, q, k, k, pass))??;
    if seen.iter().all(|&seen| seen > 0.0) {
        return Ok(None);
    }
    let given = &inputs.q.given;
    let shape = [&given[..given.len() - 1], &[nk]].concat();
    let flags: Vec<u8> = seen.into_iter().map(|seen| u8::from(seen > 0.0)).collect();
    Ok(Some(Output::new("mask", shape, flags)))
}

/// What is computed, where it is asked for; rows are `[B, Hq, Nq]`.
struct Results<E, T> {
    out: Vec<E>,
    weights: Option<Vec<T>>,
    lse: Option<Vec<T>>,
    index: Option<Vec<i64>>,
    log_prob: Option<Vec<T>>,
    gradients: Option<Grads<E, T>>,
}

struct Grads<E, T> {
    q: Vec<E>,
    k: Vec<E>,
    v: Vec<E>,
    w: Option<Vec<T>>,
    bias: Option<Vec<T>>,
    key_bias: Option<Vec<T>>,
    relative_bias: Option<Vec<T>>,
}

impl<E, T> Results<E, T>
where
    E: Stored + Element<Compute = T>,
    T: Stored + Real,
{
    fn into_outputs(self, inputs: &Inputs<E, T>) -> Vec<Output> {
        let given = &inputs.q.given;
        let rows = &given[..given.len() - 1];
        let with = |last: usize| [rows, &[last]].concat();
        let mut outputs = vec![Output::new("out", with(inputs.v.full[3]), self.out)];
        let mut push = |name, shape, data: Option<Vec<T>>| {
            outputs.extend(data.map(|data| Output::new(name, shape, data)));
        };
        push("weights", with(inputs.k.full[2]), self.weights);
        push("lse", rows.to_vec(), self.lse);
        push("log_prob", rows.to_vec(), self.log_prob);
        if let Some(g) = self.gradients {
            let learned = &inputs.learned;
            let of_learned = [
                ("grad_w", &learned.w, g.w),
                ("grad_bias", &learned.bias, g.bias),
                ("grad_key_bias", &learned.key_bias, g.key_bias),
                ("grad_relative_bias", &learned.relative_bias, g.relative_bias),
            ];
            for (name, array, gradient) in of_learned {
                if let Some(array) = array {
                    push(name, array.given.clone(), gradient);
                }
            }
            outputs.push(Output::new("grad_q", inputs.q.given.clone(), g.q));
            outputs.push(Output::new("grad_k", inputs.k.given.clone(), g.k));
            outputs.push(Output::new("grad_v", inputs.v.given.clone(), g.v));
        }
        outputs.extend(self.index.map(|index| Output::new("index", rows.to_vec(), index)));
        outputs
    }
}

fn by_kernels<E, T>(
    inputs: &Inputs<E, T>,
    options: &Options,
    mut budget: Budget,
) -> Result<Results<E, T>>
where
    E: Stored + Element<Compute = T>,
    T: Stored + Real,
{
    let operator = options.machine.operator()?;
    let [q, k, v] = [view(&inputs.q)?, view(&inputs.k)?, view(&inputs.v)?];
    let spec = options.spec(&inputs.learned, &inputs.masks, inputs.q.full[3])?;
    let s = spec.check(&q, &k, &v)?;
    budget.check_pairs(&s)?;
    let (rows, whole) = ([s.b, s.hq, s.nq], [s.b, s.hq, s.nq, s.nk]);
    let normalizer = spec.normalizer;
    let hard = normalizer.is_hard();
    // What backward needs of forward.
    let differentiate = inputs.grad_out.is_some();
    let saves_lse = differentiate && normalizer == Normalizer::Softmax;
    let saves_threshold =
        differentiate && matches!(normalizer, Normalizer::Sparsemax | Normalizer::Entmax15);

    let mut out = budget.zeros::<E>("out", &s.out())?;
    let mut lse = budget.zeros_if::<T>(options.lse || saves_lse, "lse", &rows)?;
    let mut threshold = budget.zeros_if::<T>(saves_threshold, "the thresholds", &rows)?;
    let mut index = budget.zeros_if::<i64>(hard, "index", &rows)?;
    let mut log_prob = budget.zeros_if::<T>(hard, "log_prob", &rows)?;
    let mut weights = budget.zeros_if::<T>(options.weights, "weights", &whole)?;
    let pass = Forward {
        out: ViewMut::new(&mut out, s.out())?,
        lse: lse.as_deref_mut(),
        threshold: threshold.as_deref_mut(),
        index: index.as_deref_mut(),
        log_prob: log_prob.as_deref_mut(),
        weights: weights.as_deref_mut(),
        edge_weights: None,
    };
    operator.forward(&spec, [q, k, v], pass)?;
    if options.weights_before_dropout {
        let before = Spec {
            dropout: None,
            ..options.spec(&inputs.learned, &inputs.masks, inputs.q.full[3])?
        };
        let mut plain = budget.zeros::<T>("weights", &whole)?;
        let mut aside = budget.zeros::<E>("out", &s.out())?;
        let pass = Forward {
            out: ViewMut::new(&mut aside, s.out())?,
            lse: None,
            threshold: None,
            index: None,
            log_prob: None,
            weights: Some(&mut plain),
            edge_weights: None,
        };
        operator.forward(&before, [q, k, v], pass)?;
        weights = Some(plain);
    }

    let mut gradients = None;
    if let Some(grad_out) = &inputs.grad_out {
        let learned = &inputs.learned;
        let mut like = |name: &str, array: &Option<Array<T>>| {
            array.as_ref().map(|array| budget.zeros::<T>(name, &array.given)).transpose()
        };
        let mut w = like("grad_w", &learned.w)?;
        let mut bias = like("grad_bias", &learned.bias)?;
        let mut key_bias = like("grad_key_bias", &learned.key_bias)?;
        let mut relative_bias = like("grad_relative_bias", &learned.relative_bias)?;
        let mut grad_q = budget.zeros::<E>("grad_q", &q.shape())?;
        let mut grad_k = budget.zeros::<E>("grad_k", &k.shape())?;
        let mut grad_v = budget.zeros::<E>("grad_v", &v.shape())?;
        let pass = Backward {
            grad_out: view(grad_out)?,
            grad_weights: None,
            grad_edge_weights: None,
            grad_log_prob: None,
            grad_lse: None,
            saved: Saved {
                out: Some(View::new(&out, s.out())?),
                lse: lse.as_deref(),
                threshold: threshold.as_deref(),
                index: index.as_deref(),
            },
            gradients: Gradients {
                q: Some(ViewMut::new(&mut grad_q, q.shape())?),
                k: Some(ViewMut::new(&mut grad_k, k.shape())?),
                v: Some(ViewMut::new(&mut grad_v, v.shape())?),
                w: w.as_deref_mut(),
                bias: bias.as_deref_mut(),
                key_bias: key_bias.as_deref_mut(),
                relative: relative_bias.as_deref_mut(),
                own: None,
            },
        };
        operator.backward(&spec, [q, k, v], pass)?;
        gradients =
            Some(Grads { q: grad_q, k: grad_k, v: grad_v, w, bias, key_bias, relative_bias });
    }
    let lse = lse.filter(|_| options.lse);
    Ok(Results { out, weights, lse, index, log_prob, gradients })
}

/// By the plain loops in `f64`, on the numbers that the kernels would have got.
fn by_reference<E, T>(
    inputs: &Inputs<E, T>,
    options: &Options,
    mut budget: Budget,
) -> Result<Results<E, T>>
where
    E: Stored + Element<Compute = T>,
    T: Stored + Real,
{
    let wide = |x: &Array<E>| x.data.iter().map(|x| x.widen().f64()).collect::<Vec<_>>();
    let (q, k, v) = (wide(&inputs.q), wide(&inputs.k), wide(&inputs.v));
    let q = View::new(&q, inputs.q.full)?;
    let k = View::new(&k, inputs.k.full)?;
    let v = View::new(&v, inputs.v.full)?;
    let learned = inputs.learned.widened();
    let spec = options.spec(&learned, &inputs.masks, inputs.q.full[3])?;
    let s = spec.check(&q, &k, &v)?;
    budget.check_pairs(&s)?;
    // The reference makes all of these, asked for or not.
    budget.take::<f64>("out", &s.out())?;
    budget.take::<f64>("weights", &[s.b, s.hq, s.nq, s.nk])?;
    budget.take::<[f64; 4]>("lse", &[s.b, s.hq, s.nq])?;

    fn narrowed<E: Element>(x: Vec<f64>) -> Vec<E> {
        x.into_iter().map(narrow).collect()
    }
    let mut output = reference::forward(&spec, q, k, v)?;
    if options.weights_before_dropout {
        let before =
            Spec { dropout: None, ..options.spec(&learned, &inputs.masks, inputs.q.full[3])? };
        output.weights = reference::forward(&before, q, k, v)?.weights;
    }
    let gradients = match &inputs.grad_out {
        Some(grad_out) => {
            let g = reference::backward(&spec, q, k, v, View::new(&wide(grad_out), s.out())?)?;
            Some(Grads {
                q: narrowed(g.q),
                k: narrowed(g.k),
                v: narrowed(g.v),
                w: Some(narrowed(g.w)),
                bias: Some(narrowed(g.bias)),
                key_bias: Some(narrowed(g.key_bias)),
                relative_bias: Some(narrowed(g.relative)),
            })
        }
        None => None,
    };
    let hard = spec.normalizer.is_hard();
    Ok(Results {
        out: narrowed(output.out),
        weights: options.writes_weights().then(|| narrowed(output.weights)),
        lse: options.lse.then(|| narrowed(output.lse)),
        index: hard.then_some(output.index),
        log_prob: hard.then(|| narrowed(output.log_prob)),
        gradients,
    })
}

fn view<E>(array: &Array<E>) -> Result<View<'_, E>> {
    Ok(View::new(&array.data, array.full)?)
}
