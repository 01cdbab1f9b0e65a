//! Scores with parameters of their own (bilinear, low rank, Gaussian, cosine, concat, an expression):
//! the library brings each to a score of the operator, and its tape gives all gradients.

use crate::inputs::{Array, Inputs, Learned, Masks};
use crate::limits::Budget;
use crate::options::{Options, ScoreName};
use crate::tensors::{Output, Stored, Tensors, narrow};
use anyhow::{Context, Result, ensure};
use regard::attention::{Attention, Bias, Mask, Need, Score, Segments};
use regard::{DType, Tensor};
use regard_kernels::{Activation, Dropout, Element, Real};
use safetensors::Dtype;
use std::sync::Arc;

/// The score's formula over the coordinates of w ∘ (q − k).
const GAUSSIAN: &str = "-sum(w * w * (q - k) * (q - k)) / 2";

/// A parameter of the file, by its name.
struct Parameter {
    name: String,
    /// As in the file.
    given: Vec<usize>,
    tensor: Tensor,
}

/// Queries and keys as a score of the operator takes them.
struct Prepared {
    q: Tensor,
    k: Tensor,
    score: Score,
}

/// The file's parameters of a score, on the tape.
struct Source<'a> {
    tensors: &'a Tensors<'a>,
    dtype: DType,
    score: ScoreName,
    taken: Vec<Parameter>,
}

impl Source<'_> {
    fn optional(&mut self, name: &str) -> Result<Option<Tensor>> {
        let Some(x) = self.tensors.get(name) else { return Ok(None) };
        let numbers: Vec<f64> = x.reals()?;
        let tensor = Tensor::from_vec(numbers, &x.shape)?.to_dtype(self.dtype)?.requires_grad()?;
        let (name, given) = (name.to_string(), x.shape.clone());
        self.taken.push(Parameter { name, given, tensor: tensor.clone() });
        Ok(Some(tensor))
    }

    fn take(&mut self, name: &str) -> Result<Tensor> {
        let score = crate::options::name(self.score);
        self.optional(name)?.with_context(|| format!("--score {score} needs the tensor `{name}`"))
    }

    /// A matrix [rows, columns], or one for each head, of which `columns` must fit.
    fn matrix(&mut self, name: &str, columns: usize) -> Result<Tensor> {
        let x = self.take(name)?;
        let s = x.shape();
        ensure!(
            (2..=3).contains(&s.len()) && s[s.len() - 1] == columns,
            "`{name}` has shape {s:?}; it needs [.., {columns}] or [H, .., {columns}]"
        );
        Ok(x)
    }
}

/// x `[B, H, N, in]` times the transpose of W, `[out, in]` or `[H, out, in]`.
fn project(x: &Tensor, weight: &Tensor) -> Result<Tensor> {
    Ok(match weight.rank() {
        2 => x.linear(weight, None)?,
        _ => x.matmul(&weight.transpose(1, 2)?)?,
    })
}

/// Rows of length 1; a row of zeros stays one.
fn unit(x: &Tensor) -> Result<Tensor> {
    let squares = x.square()?.sum(3)?.unsqueeze(3)?;
    Ok(x.div(&squares.shift(1e-24)?.sqrt()?)?)
}

fn prepare(from: &mut Source, options: &Options, q: &Tensor, k: &Tensor) -> Result<Prepared> {
    let (dq, dk) = (q.shape()[3], k.shape()[3]);
    let scale = options.scale.unwrap_or(1.0);
    let (q, k) = (q.clone(), k.clone());
    Ok(match options.score {
        ScoreName::Bilinear => {
            let w = from.matrix("W", dq)?;
            Prepared { q: project(&q, &w)?, k, score: Score::Dot { scale } }
        }
        ScoreName::LowRank => {
            let (u, v) = (from.matrix("U", dk)?, from.matrix("V", dq)?);
            Prepared { q: project(&q, &v)?, k: project(&k, &u)?, score: Score::Dot { scale } }
        }
        ScoreName::Gaussian => {
            let w = from.take("w")?;
            Prepared { q, k, score: Score::expression(GAUSSIAN, &[("w", &w)])? }
        }
        ScoreName::Cosine => {
            let t = from.take("temperature")?;
            let heads = q.shape()[1];
            ensure!(
                t.numel() == 1 || t.shape() == [heads],
                "`temperature` has shape {:?}; it needs [], [1] or [Hq], here [{heads}]",
                t.shape()
            );
            let t = t.reshape(&[t.numel(), 1, 1])?;
            Prepared { q: unit(&q)?.mul(&t)?, k: unit(&k)?, score: Score::dot() }
        }
        ScoreName::Concat => concat(from, q, k, dq, dk)?,
        ScoreName::Expression => {
            let text = options.expression.as_deref().unwrap_or_default();
            let expression: regard::attention::Expression =
                text.parse().with_context(|| format!("--expression {text:?}"))?;
            let names = expression.parameters().to_vec();
            let tensors = names.iter().map(|name| from.take(name)).collect::<Result<Vec<_>>>()?;
            let given: Vec<(&str, &Tensor)> =
                names.iter().map(String::as_str).zip(&tensors).collect();
            Prepared { q, k, score: Score::expression(text, &given)? }
        }
        ScoreName::Dot | ScoreName::ScaledDot | ScoreName::Additive => {
            Prepared { q, k, score: Score::dot() }
        }
    })
}

/// w · [q; k], or w · tanh(W [q; k]) where the file has a W.
fn concat(from: &mut Source, q: Tensor, k: Tensor, dq: usize, dk: usize) -> Result<Prepared> {
    let w = from.take("w")?;
    match from.optional("W")? {
        Some(weight) => {
            let s = weight.shape().to_vec();
            ensure!(
                s.len() == 2 && s[1] == dq + dk && w.shape() == [s[0]],
                "`W` has shape {s:?} and `w` {:?}; --score concat needs [hidden, {}] and [hidden]",
                w.shape(),
                dq + dk
            );
            let (wq, wk) = (weight.narrow(1, 0, dq)?, weight.narrow(1, dq, dk)?);
            let score = Score::Additive { activation: Activation::Tanh, w };
            Ok(Prepared { q: project(&q, &wq)?, k: project(&k, &wk)?, score })
        }
        None => {
            ensure!(
                w.shape() == [dq + dk],
                "`w` has shape {:?}; --score concat needs [Dq + Dk], here [{}]",
                w.shape(),
                dq + dk
            );
            let row = w.reshape(&[1, dq + dk])?;
            let (wq, wk) = (row.narrow(1, 0, dq)?, row.narrow(1, dq, dk)?);
            let one = Tensor::full(&[1], 1.0, q.dtype())?;
            let score = Score::Additive { activation: Activation::Identity, w: one };
            Ok(Prepared { q: project(&q, &wq)?, k: project(&k, &wk)?, score })
        }
    }
}

fn mask(masks: Masks, options: &Options) -> Result<Mask> {
    let dense = masks.dense.map(|x| Tensor::from_bools(&x.data, &x.full)).transpose()?;
    Ok(Mask {
        causal: options.causal,
        window: options.window,
        key_lengths: masks.key_lengths,
        segments: masks.segments.map(|(q, k)| Segments { q, k }),
        dense,
        edges: masks.edges.map(Arc::new),
    })
}

/// What is added to the scores, on the tape; [`Parameter`]s by the names of the file.
fn bias<T: Real>(learned: &Learned<T>, dtype: DType, taken: &mut Vec<Parameter>) -> Result<Bias> {
    let mut on_tape =
        |name: &str, x: &Option<Array<T>>, shape: &dyn Fn(&Array<T>) -> Vec<usize>| {
            let Some(x) = x else { return Ok(None) };
            let numbers: Vec<f64> = x.data.iter().map(|x| x.f64()).collect();
            let tensor = Tensor::from_vec(numbers, &shape(x))?.to_dtype(dtype)?.requires_grad()?;
            let (name, given) = (name.to_string(), x.given.clone());
            taken.push(Parameter { name, given, tensor: tensor.clone() });
            Ok::<_, anyhow::Error>(Some(tensor))
        };
    let slopes = learned.alibi_slopes.as_ref();
    Ok(Bias {
        key: on_tape("key_bias", &learned.key_bias, &|x| vec![x.full[0], x.full[3]])?,
        full: on_tape("bias", &learned.bias, &|x| x.full.to_vec())?,
        relative: on_tape("relative_bias", &learned.relative_bias, &|x| x.full[2..].to_vec())?,
        alibi: slopes.map(|slopes| slopes.iter().map(|x| x.f64()).collect()),
    })
}

/// Attention stored in E and computed in T, by a score that has parameters in the file.
pub(crate) fn attend<E, T>(
    tensors: &Tensors,
    options: &Options,
    mut budget: Budget,
) -> Result<Vec<Output>>
where
    E: Stored + Element<Compute = T>,
    T: Stored + Real,
{
    let inputs = Inputs::<E, T>::take(tensors, &mut budget, false)?;
    let dtype = if T::DTYPE == Dtype::F64 { DType::F64 } else { DType::F32 };
    let [b, hq, nq, _] = inputs.q.full;
    let (nk, dv) = (inputs.k.full[2], inputs.v.full[3]);
    budget.take::<T>("out", &[b, hq, nq, dv])?;
    if options.writes_weights() || inputs.grad_out.is_some() {
        budget.take::<T>("weights", &[b, hq, nq, nk])?;
    }
    let numbers = |x: &Array<E>| x.data.iter().map(|x| x.widen().f64()).collect::<Vec<f64>>();
    let tensor = |x: &Array<E>| Tensor::from_vec(numbers(x), &x.full)?.to_dtype(dtype);
    let [q, k, v] = [&inputs.q, &inputs.k, &inputs.v].map(tensor);
    let (q, k, v) = (q?.requires_grad()?, k?.requires_grad()?, v?.requires_grad()?);
    let mut source = Source { tensors, dtype, score: options.score, taken: Vec::new() };
    let prepared = prepare(&mut source, options, &q, &k)?;
    let mut taken = source.taken;
    let attention = Attention {
        bias: bias(&inputs.learned, dtype, &mut taken)?,
        normalizer: options.normalizer(),
        dropout: options.dropout.map(|p| Dropout { p, seed: options.seed }),
        offset: options.offset,
        ..Attention::new(prepared.score)
    };
    let need = Need { weights: options.weights, lse: options.lse, ..Need::OUTPUT };
    let mask = mask(inputs.masks, options)?;
    let attended = attention.attend(&prepared.q, &prepared.k, &v, &mask, need)?;

    let rows = inputs.q.given[..inputs.q.given.len() - 1].to_vec();
    let with = |last: usize| [&rows[..], &[last]].concat();
    let mut outputs = vec![output::<E>("out", with(dv), &attended.out)?];
    let of_rows = [("lse", &attended.lse), ("log_prob", &attended.log_prob)];
    let mut weights = attended.weights.clone();
    if options.weights_before_dropout {
        let before = Attention { dropout: None, ..attention };
        let need = Need { weights: true, ..Need::OUTPUT };
        weights = before.attend(&prepared.q, &prepared.k, &v, &mask, need)?.weights;
    }
    if let Some(weights) = &weights {
        outputs.push(output::<T>("weights", with(nk), weights)?);
    }
    for (name, x) in of_rows {
        outputs.extend(x.as_ref().map(|x| output::<T>(name, rows.clone(), x)).transpose()?);
    }
    if let Some(grad_out) = &inputs.grad_out {
        let gradients = attended.out.backward_with(&tensor(grad_out)?)?;
        let of = |x: &Tensor| match gradients.get(x) {
            Some(gradient) => Ok(gradient.clone()),
            None => Tensor::zeros(x.shape(), x.dtype()),
        };
        for (name, array, x) in
            [("grad_q", &inputs.q, &q), ("grad_k", &inputs.k, &k), ("grad_v", &inputs.v, &v)]
        {
            outputs.push(output::<E>(name, array.given.clone(), &of(x)?)?);
        }
        for Parameter { name, given, tensor } in taken {
            outputs.push(output::<T>(&format!("grad_{name}"), given, &of(&tensor)?)?);
        }
    }
    if let Some(index) = &attended.index {
        outputs.push(Output::new("index", rows, index.to_vec::<i64>()?));
    }
    Ok(outputs)
}

/// A tensor as it is written.
fn output<S: Stored + Element + Send>(name: &str, shape: Vec<usize>, x: &Tensor) -> Result<Output> {
    let numbers = x.to_dtype(DType::F64)?.contiguous()?.to_vec::<f64>()?;
    Ok(Output::new(name, shape, numbers.into_iter().map(narrow::<S>).collect()))
}
