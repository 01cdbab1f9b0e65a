//! Attention whose queries, keys and values are made in front of it, by matrices of the file: x and W_q,
//! W_k, W_v, or the weights of PyTorch's `nn.MultiheadAttention` under its own names.

use crate::limits::{Budget, Limits};
use crate::options::{DtypeName, Options};
use crate::tensors::{self, Output, Tensors};
use anyhow::{Result, bail, ensure};
use regard::Tensor;
use safetensors::Dtype;

/// What queries, keys and values are made of, and what makes them.
pub const NAMES: [&str; 17] = [
    "x",
    "memory",
    "W_q",
    "W_k",
    "W_v",
    "W_o",
    "b_q",
    "b_k",
    "b_v",
    "b_o",
    "in_proj_weight",
    "in_proj_bias",
    "q_proj_weight",
    "k_proj_weight",
    "v_proj_weight",
    "out_proj.weight",
    "out_proj.bias",
];

/// A file whose q, k and v have been made, and what is left to do behind the attention.
pub(crate) struct Projected {
    /// As bytes of a safetensors file.
    pub(crate) file: Vec<u8>,
    heads: usize,
    /// Whether the file's vectors have an axis of the batch.
    batched: bool,
    out: Linear,
}

/// A matrix `[out, in]` and a bias `[out]`, as `nn.Linear` has them; neither where nothing is done.
#[derive(Default)]
struct Linear {
    weight: Option<Tensor>,
    bias: Option<Tensor>,
}

/// Where each of query, key and value is told of in a file: a matrix of its own under two names, a bias,
/// and its place in what PyTorch keeps in one.
const PARTS: [(&str, &str, &str, &str); 3] = [
    ("q", "W_q", "q_proj_weight", "b_q"),
    ("k", "W_k", "k_proj_weight", "b_k"),
    ("v", "W_v", "v_proj_weight", "b_v"),
];

/// Makes q, k and v, where the file has what makes them or --heads asks for it; none where it has q, k and
/// v alone. Refuses shapes that do not fit, two ways to say the same, and gradients, which stop here.
pub(crate) fn projected(
    tensors: &Tensors,
    options: &Options,
    limits: Limits,
) -> Result<Option<Projected>> {
    let own = options.own_parameters();
    let is_there =
        |name: &&&str| tensors.get(name).is_some() && !own.iter().any(|own| own == **name);
    let Some(first) = NAMES.iter().find(is_there) else {
        return match options.heads {
            None => Ok(None),
            Some(_) => make(tensors, options, limits, "q").map(Some),
        };
    };
    make(tensors, options, limits, first).map(Some)
}

fn make(tensors: &Tensors, options: &Options, limits: Limits, first: &str) -> Result<Projected> {
    if tensors.get("grad_out").is_some() {
        bail!(
            "there is `grad_out`, and `{first}` is projected first: gradients are computed of q, k and v \
             that are given as they are"
        );
    }
    let heads = options.heads.unwrap_or(1);
    let mut budget = Budget::within(limits);
    let mut made = Vec::new();
    let (mut batched, mut dtype) = (false, Dtype::F32);
    for (at, part) in PARTS.iter().enumerate() {
        let (name, x) = source(tensors, at)?;
        let given = tensors.require(name)?;
        let linear = Linear::of_part(tensors, at, part)?;
        if at == 0 {
            // What was asked for, so that nothing is rounded before it.
            let asked = options.dtype.map(|asked| match asked {
                DtypeName::F32 => Dtype::F32,
                DtypeName::F64 => Dtype::F64,
                DtypeName::Bf16 => Dtype::BF16,
                DtypeName::F16 => Dtype::F16,
            });
            (batched, dtype) = (x.rank() == 3, asked.unwrap_or(given.dtype));
        }
        ensure!(
            (x.rank() == 3) == batched,
            "`{name}` has shape {:?}, and the queries' vectors {} a batch",
            given.shape,
            if batched { "have" } else { "have not" }
        );
        let y = linear.apply(&x, name, &mut budget)?;
        made.push(split_heads(&y, heads, part.0, batched)?);
    }
    let mut outputs = Vec::new();
    for (x, (name, ..)) in made.iter().zip(PARTS) {
        outputs.push(Output::of_type(name, dtype, x.shape().to_vec(), x.to_vec::<f64>()?)?);
    }
    let aside: Vec<&str> = ["q", "k", "v"].into_iter().chain(NAMES).collect();
    outputs.extend(tensors.others_than(&aside).into_iter().filter_map(|n| tensors.copied(n)));
    // A parameter of an expression may be called as a matrix is.
    let own = options.own_parameters();
    let own = own.iter().filter(|own| NAMES.contains(&&own[..]));
    outputs.extend(own.filter_map(|name| tensors.copied(name)));
    let out = Linear {
        weight: either(tensors, "W_o", "out_proj.weight")?,
        bias: either(tensors, "b_o", "out_proj.bias")?,
    };
    Ok(Projected { file: tensors::serialize(&outputs)?, heads, batched, out })
}

impl Projected {
    /// What attention gave with its heads side by side, and projected once more where the file says by
    /// what. Of an input without a batch nothing else has an axis of one.
    pub(crate) fn finish(self, outputs: Vec<Output>, limits: Limits) -> Result<Vec<Output>> {
        let mut budget = Budget::within(limits);
        let finished = outputs.into_iter().map(|output| {
            let mut shape = output.shape().to_vec();
            if output.name() != "out" {
                if self.heads > 1 && !self.batched {
                    shape.remove(0);
                }
                return Ok(output.reshaped(shape));
            }
            let mut x = Tensor::from_vec(output.reals()?, &shape)?;
            if self.heads > 1 {
                let (b, n, width) = (shape[0], shape[2], shape[1] * shape[3]);
                x = x.transpose(1, 2)?.contiguous()?.reshape(&[b, n, width])?;
                if !self.batched {
                    x = x.squeeze(0)?;
                }
            }
            let x = self.out.apply(&x, "out", &mut budget)?.contiguous()?;
            Output::of_type("out", output.dtype(), x.shape().to_vec(), x.to_vec::<f64>()?)
        });
        finished.collect()
    }
}

impl Linear {
    /// What makes q, k or v.
    fn of_part(tensors: &Tensors, at: usize, part: &(&str, &str, &str, &str)) -> Result<Self> {
        let &(_, own, pytorch, bias) = part;
        let joint = |name: &str| -> Result<Option<Tensor>> {
            let Some(x) = tensor(tensors, name)? else { return Ok(None) };
            let rows = x.shape().first().copied().unwrap_or(0);
            ensure!(
                rows > 0 && rows.is_multiple_of(3),
                "`{name}` has shape {:?}; it needs three times as many rows as q, k and v are wide",
                x.shape()
            );
            Ok(Some(x.narrow(0, at * rows / 3, rows / 3)?.contiguous()?))
        };
        let one = |alone: Option<Tensor>, name: &str, all: &str| -> Result<Option<Tensor>> {
            match (alone, joint(all)?) {
                (Some(_), Some(_)) => {
                    bail!("`{name}` and `{all}` are both there; one of them is read")
                }
                (alone, joint) => Ok(alone.or(joint)),
            }
        };
        Ok(Self {
            weight: one(either(tensors, own, pytorch)?, own, "in_proj_weight")?,
            bias: one(tensor(tensors, bias)?, bias, "in_proj_bias")?,
        })
    }

    /// x Wᵀ + b over the last axis.
    fn apply(&self, x: &Tensor, name: &str, budget: &mut Budget) -> Result<Tensor> {
        let width = x.shape().last().copied().unwrap_or(0);
        let mut y = x.clone();
        if let Some(weight) = &self.weight {
            let s = weight.shape();
            ensure!(
                s.len() == 2 && s[1] == width,
                "`{name}` has shape {:?}, and what projects it {s:?}; it needs [out, in], here \
                 [out, {width}]",
                x.shape()
            );
            let rows = &x.shape()[..x.rank() - 1];
            budget.take::<f64>(name, &[rows, &[s[0]]].concat())?;
            y = x.linear(weight, None)?;
        }
        if let Some(bias) = &self.bias {
            let width = y.shape().last().copied().unwrap_or(0);
            ensure!(
                bias.shape() == [width],
                "the bias of `{name}` has shape {:?}; it needs [{width}]",
                bias.shape()
            );
            y = y.add(bias)?;
        }
        Ok(y)
    }
}

/// The vectors that q, k or v are made of, with their name: themselves, or x, or for k and v the memory.
fn source(tensors: &Tensors, at: usize) -> Result<(&'static str, Tensor)> {
    let own = PARTS[at].0;
    let shared = if at > 0 && tensors.get("memory").is_some() { "memory" } else { "x" };
    let name = match (tensors.get(own).is_some(), tensors.get(shared).is_some()) {
        (true, true) => {
            bail!("`{own}` and `{shared}` are both there; {own} is made of one of them")
        }
        (false, true) => shared,
        _ => own,
    };
    let given = tensors.require(name)?;
    ensure!(
        (2..=3).contains(&given.shape.len()),
        "`{name}` has shape {:?}; what is projected, or split into heads, needs [N, D] or [B, N, D]",
        given.shape
    );
    Ok((name, Tensor::from_vec(given.reals::<f64>()?, &given.shape)?))
}

/// A tensor of the file.
fn tensor(tensors: &Tensors, name: &str) -> Result<Option<Tensor>> {
    let read = tensors.get(name).map(|x| Ok(Tensor::from_vec(x.reals::<f64>()?, &x.shape)?));
    read.transpose()
}

/// A tensor that has two names; refuses both at once.
fn either(tensors: &Tensors, name: &str, other: &str) -> Result<Option<Tensor>> {
    match (tensor(tensors, name)?, tensor(tensors, other)?) {
        (Some(_), Some(_)) => bail!("`{name}` and `{other}` are both there; one of them is read"),
        (one, other) => Ok(one.or(other)),
    }
}

/// `[B, N, H · D]` as `[B, H, N, D]`; as it is where there is one head.
fn split_heads(x: &Tensor, heads: usize, name: &str, batched: bool) -> Result<Tensor> {
    if heads == 1 {
        return Ok(x.contiguous()?);
    }
    let x = if batched { x.clone() } else { x.unsqueeze(0)? };
    let s = x.shape().to_vec();
    ensure!(
        s[2].is_multiple_of(heads),
        "{name} is {} wide, which --heads {heads} does not divide evenly",
        s[2]
    );
    Ok(x.contiguous()?
        .reshape(&[s[0], s[1], heads, s[2] / heads])?
        .transpose(1, 2)?
        .contiguous()?)
}
