//! What a file gives to attend to: q, k, v, and by name whatever else it has.

use crate::limits::Budget;
use crate::tensors::{Stored, Tensor, Tensors};
use anyhow::{Context, Result, bail, ensure};
use regard_kernels::{Edges, Element, Real};

/// The names that are read.
pub const NAMES: [&str; 18] = [
    "q",
    "k",
    "v",
    "bias",
    "key_bias",
    "mask",
    "key_lengths",
    "q_segments",
    "k_segments",
    "edges",
    "w",
    "W",
    "U",
    "V",
    "temperature",
    "alibi_slopes",
    "relative_bias",
    "grad_out",
];

/// Everything a file gives; shapes are `[B, H, N, D]` whatever the rank in the file.
pub struct Inputs<E, T> {
    /// `[B, Hq, Nq, D]`
    pub q: Array<E>,
    /// `[B, Hk, Nk, D]`
    pub k: Array<E>,
    /// `[B, Hk, Nk, Dv]`
    pub v: Array<E>,
    /// `[B, Hq, Nq, Dv]`
    pub grad_out: Option<Array<E>>,
    /// What is added to the scores, and w.
    pub learned: Learned<T>,
    /// What may be attended to.
    pub masks: Masks,
}

/// Numbers with the shape they were given in, and the four axes that stands for.
pub struct Array<T> {
    /// Row after row.
    pub data: Vec<T>,
    /// As in the file.
    pub given: Vec<usize>,
    /// Four axes.
    pub full: [usize; 4],
}

/// The parameters of the score and of the bias.
pub struct Learned<T> {
    /// `[D]` or `[Hq, D]`
    pub w: Option<Array<T>>,
    /// Broadcast to `[B, Hq, Nq, Nk]`
    pub bias: Option<Array<T>>,
    /// `[B, Nk]`
    pub key_bias: Option<Array<T>>,
    /// `[1 or Hq, 2R + 1]`
    pub relative_bias: Option<Array<T>>,
    /// `[Hq]`
    pub alibi_slopes: Option<Vec<T>>,
}

/// The masks that are made of tensors.
pub struct Masks {
    /// `[B]`
    pub key_lengths: Option<Vec<usize>>,
    /// `[B, Nq]` and `[B, Nk]`
    pub segments: Option<(Vec<i64>, Vec<i64>)>,
    /// Broadcast to `[B, Hq, Nq, Nk]`
    pub dense: Option<Array<bool>>,
    /// Of queries to keys, the same for every batch item and head.
    pub edges: Option<Edges>,
}

/// The sizes the other tensors are measured by.
#[derive(Clone, Copy)]
struct Sizes {
    rank: usize,
    b: usize,
    hq: usize,
    nq: usize,
    nk: usize,
    d: usize,
}

impl<E, T> Inputs<E, T>
where
    E: Stored + Element<Compute = T>,
    T: Stored + Real,
{
    /// Takes every tensor by its name; refuses shapes and types
    /// that are not what the name stands for. `w` is that of the additive score, where that is asked
    /// for.
    pub(crate) fn take(tensors: &Tensors, budget: &mut Budget, additive: bool) -> Result<Self> {
        let [q, k, v] = [tensors.require("q")?, tensors.require("k")?, tensors.require("v")?];
        let rank = q.shape.len();
        ensure!(
            (2..=4).contains(&rank),
            "`q` has shape {:?}; it needs [N, D], [B, N, D] or [B, H, N, D]",
            q.shape
        );
        ensure!(
            k.shape.len() == rank && v.shape.len() == rank,
            "`q` has shape {:?}, `k` {:?} and `v` {:?}; they need as many axes as one another",
            q.shape,
            k.shape,
            v.shape
        );
        let [qs, ks] = [four_axes(&q.shape), four_axes(&k.shape)];
        let s = Sizes { rank, b: qs[0], hq: qs[1], nq: qs[2], nk: ks[2], d: qs[3] };
        let stored = |tensor: &Tensor| {
            let full = four_axes(&tensor.shape);
            Ok::<_, anyhow::Error>(Array {
                data: tensor.reals()?,
                given: tensor.shape.clone(),
                full,
            })
        };
        let grad_out = match tensors.get("grad_out") {
            Some(grad_out) => {
                let mut out = q.shape.clone();
                out[rank - 1] = v.shape[rank - 1];
                expect("grad_out", grad_out, &[&out], "the shape of out")?;
                Some(stored(grad_out)?)
            }
            None => None,
        };
        Ok(Self {
            q: stored(q)?,
            k: stored(k)?,
            v: stored(v)?,
            grad_out,
            learned: Learned::take(tensors, s, additive)?,
            masks: Masks::take(tensors, s, budget)?,
        })
    }
}

impl<T: Stored + Real> Learned<T> {
    fn take(tensors: &Tensors, s: Sizes, additive: bool) -> Result<Self> {
        let each = |name: &str, shape: &dyn Fn(&Tensor) -> Result<[usize; 4]>| {
            let Some(tensor) = tensors.get(name) else { return Ok(None) };
            let full = shape(tensor)?;
            let data = tensor.reals::<T>()?;
            Ok::<_, anyhow::Error>(Some(Array { data, given: tensor.shape.clone(), full }))
        };
        Ok(Self {
            w: match additive {
                true => each("w", &|w| {
                    expect("w", w, &[&[s.d], &[s.hq, s.d]], "[D] or [Hq, D]")?;
                    Ok(four_axes(&w.shape))
                })?,
                false => None,
            },
            bias: each("bias", &|bias| broadcast("bias", bias, s))?,
            key_bias: each("key_bias", &|key_bias| {
                per_batch("key_bias", key_bias, s, s.nk, "[B, Nk]")?;
                Ok([s.b, 1, 1, s.nk])
            })?,
            relative_bias: each("relative_bias", &|table| relative(table, s))?,
            alibi_slopes: each("alibi_slopes", &|slopes| {
                expect("alibi_slopes", slopes, &[&[s.hq]], "[Hq]")?;
                Ok([1, 1, 1, s.hq])
            })?
            .map(|slopes| slopes.data),
        })
    }

    /// The same numbers in `f64`, for the reference.
    pub fn widened(&self) -> Learned<f64> {
        let wide = |x: &[T]| x.iter().map(|x| x.f64()).collect::<Vec<_>>();
        let array = |x: &Option<Array<T>>| {
            x.as_ref().map(|x| Array { data: wide(&x.data), given: x.given.clone(), full: x.full })
        };
        Learned {
            w: array(&self.w),
            bias: array(&self.bias),
            key_bias: array(&self.key_bias),
            relative_bias: array(&self.relative_bias),
            alibi_slopes: self.alibi_slopes.as_deref().map(wide),
        }
    }
}

impl Masks {
    fn take(tensors: &Tensors, s: Sizes, budget: &mut Budget) -> Result<Self> {
        let key_lengths = tensors.get("key_lengths").map(|x| key_lengths(x, s)).transpose()?;
        let segments = match (tensors.get("q_segments"), tensors.get("k_segments")) {
            (Some(q), Some(k)) => {
                per_batch("q_segments", q, s, s.nq, "[B, Nq]")?;
                per_batch("k_segments", k, s, s.nk, "[B, Nk]")?;
                Some((q.integers()?, k.integers()?))
            }
            (None, None) => None,
            (q, _) => {
                let names = ["q_segments", "k_segments"];
                let (given, lacking) = if q.is_some() { (0, 1) } else { (1, 0) };
                bail!("there is `{}` but no `{}`", names[given], names[lacking]);
            }
        };
        let dense = match tensors.get("mask") {
            Some(mask) => {
                let full = broadcast("mask", mask, s)?;
                Some(Array { data: mask.flags()?, given: mask.shape.clone(), full })
            }
            None => None,
        };
        let edges = tensors.get("edges").map(|x| edges(x, s, budget)).transpose()?;
        Ok(Self { key_lengths, segments, dense, edges })
    }
}

/// `[N, D]` and `[B, N, D]` as `[B, H, N, D]`; anything shorter stands at the right.
fn four_axes(shape: &[usize]) -> [usize; 4] {
    match *shape {
        [b, n, d] => [b, 1, n, d],
        _ => right_aligned(shape),
    }
}

/// At most four axes, missing ones are 1.
fn right_aligned(shape: &[usize]) -> [usize; 4] {
    let mut full = [1; 4];
    full[4 - shape.len()..].copy_from_slice(shape);
    full
}

fn expect(name: &str, tensor: &Tensor, shapes: &[&[usize]], letters: &str) -> Result<()> {
    if shapes.iter().any(|shape| *shape == tensor.shape) {
        return Ok(());
    }
    let sizes: Vec<String> = shapes.iter().map(|shape| format!("{shape:?}")).collect();
    bail!("`{name}` has shape {:?}; it needs {letters}, here {}", tensor.shape, sizes.join(" or "))
}

/// `[B, N]`, or `[N]` where there is one batch item.
fn per_batch(name: &str, tensor: &Tensor, s: Sizes, n: usize, letters: &str) -> Result<()> {
    if s.b == 1 && tensor.shape == [n] {
        return Ok(());
    }
    expect(name, tensor, &[&[s.b, n]], letters)
}

/// The four axes of a tensor that broadcasts to `[B, Hq, Nq, Nk]`.
fn broadcast(name: &str, tensor: &Tensor, s: Sizes) -> Result<[usize; 4]> {
    let shape = &tensor.shape;
    let whole = [s.b, s.hq, s.nq, s.nk];
    let full = match shape.len() {
        // q [B, N, D] has no head axis, so the first of three axes is the batch.
        3 if s.rank == 3 && s.b != 1 && shape[0] == s.b => four_axes(shape),
        0..=4 => right_aligned(shape),
        _ => bail!("`{name}` has shape {shape:?}; it has more axes than [B, Hq, Nq, Nk]"),
    };
    ensure!(
        full.iter().zip(whole).all(|(&own, whole)| own == whole || own == 1),
        "`{name}` has shape {shape:?}, which does not broadcast to [B, Hq, Nq, Nk] = {whole:?}"
    );
    Ok(full)
}

fn relative(table: &Tensor, s: Sizes) -> Result<[usize; 4]> {
    let (rows, width) = match *table.shape {
        [width] => (1, width),
        [rows, width] => (rows, width),
        _ => (0, 0),
    };
    ensure!(
        (rows == 1 || rows == s.hq) && width % 2 == 1,
        "`relative_bias` has shape {:?}; it needs [1 or Hq, 2R + 1], here 1 or {} rows of an odd \
         width",
        table.shape,
        s.hq
    );
    Ok([1, 1, rows, width])
}

fn key_lengths(lengths: &Tensor, s: Sizes) -> Result<Vec<usize>> {
    expect("key_lengths", lengths, &[&[s.b]], "[B]")?;
    let checked = |(b, length): (usize, i64)| {
        let sound = usize::try_from(length).ok().filter(|&length| length <= s.nk);
        sound.with_context(|| {
            format!("key_lengths[{b}] is {length}; it needs to be between 0 and Nk = {}", s.nk)
        })
    };
    lengths.integers()?.into_iter().enumerate().map(checked).collect()
}

fn edges(edges: &Tensor, s: Sizes, budget: &mut Budget) -> Result<Edges> {
    ensure!(
        edges.shape.len() == 2 && edges.shape[0] == 2,
        "`edges` has shape {:?}; it needs [2, E], a row of queries and a row of keys",
        edges.shape
    );
    // A graph is kept by query and by key, so it is as large as these even without an edge.
    budget.take::<[usize; 2]>("the graph's queries", &[s.nq])?;
    budget.take::<[usize; 2]>("the graph's keys", &[s.nk])?;
    let ends = edges.integers()?;
    let (queries, keys) = ends.split_at(ends.len() / 2);
    let pair = |(n, (&i, &j)): (usize, (&i64, &i64))| {
        let end = |x: i64, below: usize| usize::try_from(x).ok().filter(|&x| x < below);
        end(i, s.nq).zip(end(j, s.nk)).with_context(|| {
            format!(
                "`edges` joins query {i} to key {j} in column {n}; there are {} queries and {} \
                 keys, counted from 0",
                s.nq, s.nk
            )
        })
    };
    let pairs: Vec<_> = queries.iter().zip(keys).enumerate().map(pair).collect::<Result<_>>()?;
    Ok(Edges::new(s.nq, s.nk, &pairs)?)
}
