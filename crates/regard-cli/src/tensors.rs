//! The file entrance: named tensors out of safetensors bytes, and back.
//!
//! Nothing that a file says is believed before it is checked, and every complaint is one sentence
//! that names the tensor.

use anyhow::{Context, Result, bail, ensure};
use bytemuck::Pod;
use half::{bf16, f16};
use regard_kernels::{Element, Real};
use safetensors::tensor::TensorInfo;
use safetensors::{Dtype, SafeTensors};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

#[cfg(target_endian = "big")]
compile_error!("safetensors files are little-endian, and are read and written here byte by byte");

/// A number that safetensors files hold.
pub trait Stored: Pod {
    /// Its name in a file.
    const DTYPE: Dtype;
}

impl Stored for f32 {
    const DTYPE: Dtype = Dtype::F32;
}
impl Stored for f64 {
    const DTYPE: Dtype = Dtype::F64;
}
impl Stored for bf16 {
    const DTYPE: Dtype = Dtype::BF16;
}
impl Stored for f16 {
    const DTYPE: Dtype = Dtype::F16;
}
impl Stored for i64 {
    const DTYPE: Dtype = Dtype::I64;
}
/// Flags, 0 and 1.
impl Stored for u8 {
    const DTYPE: Dtype = Dtype::BOOL;
}

/// The tensors of a file, by name.
#[derive(Debug)]
pub struct Tensors<'a>(BTreeMap<String, Tensor<'a>>);

/// One tensor of a file.
#[derive(Debug)]
pub struct Tensor<'a> {
    /// Its axes.
    pub shape: Vec<usize>,
    /// The type of its elements.
    pub dtype: Dtype,
    name: String,
    data: &'a [u8],
}

/// Reads the tensors of a safetensors file; refuses what is not one, and a header that lies.
pub fn read(bytes: &[u8]) -> Result<Tensors<'_>> {
    check_header(bytes)?;
    let file = SafeTensors::deserialize(bytes).context("not a sound safetensors file")?;
    let tensors = file.tensors().into_iter().map(|(name, view)| {
        let (shape, dtype) = (view.shape().to_vec(), view.dtype());
        (name.clone(), Tensor { shape, dtype, name, data: view.data() })
    });
    Ok(Tensors(tensors.collect()))
}

/// The safetensors crate refuses what is refused here as well, but without saying which tensor is
/// wrong; and offsets near the largest integer overflow in it.
fn check_header(bytes: &[u8]) -> Result<()> {
    let Some((length, rest)) = bytes.split_first_chunk::<8>() else {
        bail!(
            "{} bytes are too few for a safetensors file, which begins with 8 bytes of header length",
            bytes.len()
        );
    };
    let length = u64::from_le_bytes(*length);
    let Some((header, data)) =
        usize::try_from(length).ok().and_then(|length| rest.split_at_checked(length))
    else {
        bail!(
            "the header should be {length} bytes long and only {} follow: the file is truncated, \
             or is not a safetensors file",
            rest.len()
        );
    };
    let header: BTreeMap<String, serde_json::Value> = serde_json::from_slice(header)
        .context("the header is not the JSON of a safetensors file")?;
    for (name, entry) in header.into_iter().filter(|(name, _)| name != "__metadata__") {
        let info: TensorInfo = serde_json::from_value(entry)
            .with_context(|| format!("the header's entry for tensor {name:?} cannot be read"))?;
        let TensorInfo { dtype, shape, data_offsets: (start, end) } = info;
        ensure!(
            start <= end && end <= data.len(),
            "tensor {name:?} should lie in bytes {start} to {end}, and the file has {} bytes of \
             data",
            data.len()
        );
        let bits = extent(&shape)
            .and_then(|_| shape.iter().product::<usize>().checked_mul(dtype.bitsize()));
        let Some(bits) = bits else {
            bail!("tensor {name:?} has shape {shape:?}, larger than any memory");
        };
        ensure!(
            Some(bits) == (end - start).checked_mul(8),
            "tensor {name:?} of type {dtype} and shape {shape:?} needs {} bytes, and its place \
             in the file has {}",
            bits.div_ceil(8),
            end - start
        );
    }
    Ok(())
}

/// The elements of a shape, an empty axis counted as 1, so that every part of the product is
/// known to fit too; none where that is more than memory could ever hold.
pub(crate) fn extent(shape: &[usize]) -> Option<usize> {
    // No element is larger than 8 bytes.
    let limit = isize::MAX as usize / 8;
    shape
        .iter()
        .try_fold(1usize, |n, &axis| n.checked_mul(axis.max(1)))
        .filter(|&extent| extent <= limit)
}

impl<'a> Tensors<'a> {
    /// A tensor, where the file has it.
    pub fn get(&self, name: &str) -> Option<&Tensor<'a>> {
        self.0.get(name)
    }

    /// A tensor that the file must have.
    pub fn require(&self, name: &str) -> Result<&Tensor<'a>> {
        let names = || self.0.keys().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ");
        self.get(name).with_context(|| match self.0.len() {
            0 => format!("there is no tensor `{name}`, nor any other"),
            _ => format!("there is no tensor `{name}`, only {}", names()),
        })
    }

    /// A tensor as it is, to be written.
    pub(crate) fn copied(&self, name: &str) -> Option<Output> {
        let x = self.get(name)?;
        let data = Box::new(Raw(x.data.to_vec()));
        Some(Output { name: name.into(), dtype: x.dtype, shape: x.shape.clone(), data })
    }

    /// The names that are not known: perhaps misspelled, perhaps there for somebody else.
    pub fn others_than(&self, known: &[&str]) -> Vec<&str> {
        self.0.keys().map(String::as_str).filter(|name| !known.contains(name)).collect()
    }
}

impl Tensor<'_> {
    /// The elements as real numbers; refuses types that are not.
    pub fn reals<E: Stored + Element>(&self) -> Result<Vec<E>> {
        if self.dtype == E::DTYPE {
            return Ok(self.each(|x: E| x));
        }
        match self.dtype {
            Dtype::F32 => Ok(self.each(|x: f32| narrow(x.into()))),
            Dtype::F64 => Ok(self.each(|x: f64| narrow(x))),
            Dtype::BF16 => Ok(self.each(|x: bf16| narrow(x.to_f64()))),
            Dtype::F16 => Ok(self.each(|x: f16| narrow(x.to_f64()))),
            other => bail!("`{}` has type {other}; it needs F32, F64, BF16 or F16", self.name),
        }
    }

    /// The elements as whole numbers; refuses types that are not.
    pub fn integers(&self) -> Result<Vec<i64>> {
        match self.dtype {
            Dtype::I8 => Ok(self.each(|x: i8| x.into())),
            Dtype::U8 => Ok(self.each(|x: u8| x.into())),
            Dtype::I16 => Ok(self.each(|x: i16| x.into())),
            Dtype::U16 => Ok(self.each(|x: u16| x.into())),
            Dtype::I32 => Ok(self.each(|x: i32| x.into())),
            Dtype::U32 => Ok(self.each(|x: u32| x.into())),
            Dtype::I64 => Ok(self.each(|x: i64| x)),
            Dtype::U64 => self.each(|x: u64| x).into_iter().map(|x| self.signed(x)).collect(),
            other => bail!("`{}` has type {other}; it needs whole numbers, as I64", self.name),
        }
    }

    fn signed(&self, x: u64) -> Result<i64> {
        i64::try_from(x).ok().with_context(|| format!("`{}` holds {x}, beyond I64", self.name))
    }

    /// The elements as yes and no, where any byte but 0 is yes; refuses types other than BOOL and
    /// U8.
    pub fn flags(&self) -> Result<Vec<bool>> {
        match self.dtype {
            Dtype::BOOL | Dtype::U8 => Ok(self.each(|x: u8| x != 0)),
            other => bail!("`{}` has type {other}; it needs BOOL or U8", self.name),
        }
    }

    fn each<S: Pod, T>(&self, convert: impl Fn(S) -> T) -> Vec<T> {
        // The data starts anywhere in the file.
        self.data
            .chunks_exact(size_of::<S>())
            .map(|x| convert(bytemuck::pod_read_unaligned(x)))
            .collect()
    }
}

/// Rounded to the stored type by way of the type it is computed in.
pub(crate) fn narrow<E: Element>(x: f64) -> E {
    E::narrow(E::Compute::of(x))
}

/// A tensor to be written.
pub struct Output {
    name: String,
    dtype: Dtype,
    shape: Vec<usize>,
    data: Box<dyn Bytes + Send>,
}

trait Bytes {
    fn bytes(&self) -> &[u8];
}

impl<S: Stored> Bytes for Vec<S> {
    fn bytes(&self) -> &[u8] {
        bytemuck::cast_slice(self)
    }
}

impl Output {
    /// `data`, row after row, in a shape of as many elements.
    pub fn new<S: Stored + Send>(name: &str, shape: Vec<usize>, data: Vec<S>) -> Self {
        debug_assert_eq!(shape.iter().product::<usize>(), data.len(), "{name}");
        Self { name: name.into(), dtype: S::DTYPE, shape, data: Box::new(data) }
    }
}

/// Bytes of any type, as a file has them.
struct Raw(Vec<u8>);

impl Bytes for Raw {
    fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl Output {
    /// Numbers rounded to a type of real numbers.
    pub(crate) fn of_type(
        name: &str,
        dtype: Dtype,
        shape: Vec<usize>,
        data: Vec<f64>,
    ) -> Result<Self> {
        let numbers = data.into_iter();
        Ok(match dtype {
            Dtype::F32 => Self::new(name, shape, numbers.map(narrow::<f32>).collect()),
            Dtype::F64 => Self::new(name, shape, numbers.collect()),
            Dtype::BF16 => Self::new(name, shape, numbers.map(narrow::<bf16>).collect()),
            Dtype::F16 => Self::new(name, shape, numbers.map(narrow::<f16>).collect()),
            other => bail!("`{name}` has type {other}; it needs F32, F64, BF16 or F16"),
        })
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn shape(&self) -> &[usize] {
        &self.shape
    }

    pub(crate) fn dtype(&self) -> Dtype {
        self.dtype
    }

    /// The same numbers in another shape.
    pub(crate) fn reshaped(self, shape: Vec<usize>) -> Self {
        Self { shape, ..self }
    }

    /// Its elements as real numbers.
    pub(crate) fn reals(&self) -> Result<Vec<f64>> {
        let (name, shape) = (self.name.clone(), self.shape.clone());
        Tensor { shape, dtype: self.dtype, name, data: self.data.bytes() }.reals()
    }
}

impl fmt::Display for Output {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{:<19} {:<5} {:?}", self.name, self.dtype.to_string(), self.shape)
    }
}

impl safetensors::View for &Output {
    fn dtype(&self) -> Dtype {
        self.dtype
    }
    fn shape(&self) -> &[usize] {
        &self.shape
    }
    fn data(&self) -> Cow<'_, [u8]> {
        self.data.bytes().into()
    }
    fn data_len(&self) -> usize {
        self.data.bytes().len()
    }
}

/// The bytes of a safetensors file with these tensors.
pub fn serialize(outputs: &[Output]) -> Result<Vec<u8>> {
    let named = outputs.iter().map(|output| (&output.name, output));
    safetensors::serialize(named, None).context("the output cannot be put into a safetensors file")
}
