//! Tensors as text, the way numpy writes them.

use crate::{DType, Result, Scalar, Tensor};
use std::fmt::{Display, Formatter};

/// Tensors of more numbers are cut, to so many at each end of an axis.
const MOST: usize = 1000;
const EDGE: usize = 3;
/// Rows go on in the next line here.
const COLUMNS: usize = 80;

/// Nested brackets, the columns aligned. A tensor of more than 1000 numbers is cut to three at each
/// end of an axis, and its type and shape stand below. A precision (`{:.2}`) is that of the
/// fractions.
///
/// ```
/// use regard_tensor::{DType, Tensor};
/// let x = Tensor::from([[1f32, -2.5], [10.25, 0.0]]);
/// assert_eq!(x.to_string(), "[[ 1.0000, -2.5000],\n [10.2500,  0.0000]]");
/// assert_eq!(format!("{x:.1}"), "[[ 1.0, -2.5],\n [10.2,  0.0]]");
/// let long = Tensor::zeros(&[2000], DType::I64)?;
/// assert_eq!(long.to_string(), "[0, 0, 0, ..., 0, 0, 0]\ni64 [2000]");
/// # Ok::<(), regard_tensor::Error>(())
/// ```
impl Display for Tensor {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        if self.numel() == 0 {
            return write!(f, "[] {} {:?}", self.dtype(), self.shape());
        }
        let cut = self.numel() > MOST;
        let axes = self.shape().iter().map(|&size| places(size, cut)).collect();
        let mut page = Page { tensor: self, axes, texts: Vec::new() };
        page.read(f.precision()).map_err(|_| std::fmt::Error)?;
        let width = page.texts.iter().map(String::len).max().unwrap_or(0);
        let mut texts = page.texts.iter();
        page.write(f, 0, width, &mut texts)?;
        if cut { write!(f, "\n{} {:?}", self.dtype(), self.shape()) } else { Ok(()) }
    }
}

/// The places of an axis that are shown, none where some are left out.
fn places(size: usize, cut: bool) -> Vec<Option<usize>> {
    if !cut || size <= 2 * EDGE {
        return (0..size).map(Some).collect();
    }
    let (head, tail) = (0..EDGE, size - EDGE..size);
    head.map(Some).chain([None]).chain(tail.map(Some)).collect()
}

struct Page<'a> {
    tensor: &'a Tensor,
    /// For each axis, the places shown.
    axes: Vec<Vec<Option<usize>>>,
    /// The numbers shown, row by row.
    texts: Vec<String>,
}

impl Page<'_> {
    /// Reads the numbers that are shown, wherever they lie, and no others.
    fn read(&mut self, precision: Option<usize>) -> Result<()> {
        // As it is in main memory; elsewhere a copy.
        let x = &self.tensor.to_host()?;
        let mut at = vec![x.layout.offset];
        for (axis, &stride) in self.axes.iter().zip(x.strides()) {
            let next = |at: usize| axis.iter().flatten().map(move |place| at + place * stride);
            at = at.into_iter().flat_map(next).collect();
        }
        fn numbers<T: Scalar>(x: &Tensor, at: &[usize]) -> Result<Vec<T>> {
            let data = x.data::<T>("display")?;
            Ok(at.iter().map(|&at| data[at]).collect())
        }
        self.texts = match x.dtype() {
            DType::I64 => numbers::<i64>(x, &at)?.iter().map(i64::to_string).collect(),
            DType::U32 => numbers::<u32>(x, &at)?.iter().map(u32::to_string).collect(),
            DType::Bool => numbers::<u8>(x, &at)?.iter().map(|&x| (x != 0).to_string()).collect(),
            DType::F32 => fractions(&numbers::<f32>(x, &at)?, precision),
            DType::F64 => fractions(&numbers::<f64>(x, &at)?, precision),
            DType::BF16 => fractions(&numbers::<half::bf16>(x, &at)?, precision),
            DType::F16 => fractions(&numbers::<half::f16>(x, &at)?, precision),
        };
        Ok(())
    }

    fn write<'t>(
        &self,
        f: &mut Formatter<'_>,
        axis: usize,
        width: usize,
        texts: &mut impl Iterator<Item = &'t String>,
    ) -> std::fmt::Result {
        let Some(places) = self.axes.get(axis) else {
            let text = texts.next().ok_or(std::fmt::Error)?;
            return write!(f, "{text:>width$}");
        };
        let inner = self.axes.len() - axis - 1;
        let indent = axis + 1;
        f.write_str("[")?;
        let mut column = indent;
        for (at, place) in places.iter().enumerate() {
            let wide = if place.is_some() { width } else { "...".len() };
            if at > 0 && inner > 0 {
                write!(f, ",{}{:indent$}", "\n".repeat(inner), "")?;
            } else if at > 0 && column + wide + 2 >= COLUMNS {
                write!(f, ",\n{:indent$}", "")?;
                column = indent;
            } else if at > 0 {
                f.write_str(", ")?;
                column += 2;
            }
            column += wide;
            match place {
                Some(_) => self.write(f, axis + 1, width, texts)?,
                None => f.write_str("...")?,
            }
        }
        f.write_str("]")
    }
}

/// Fractions in one notation: whole with a point, fixed, or with exponents where they are very
/// large or very small.
fn fractions<T: Scalar>(numbers: &[T], precision: Option<usize>) -> Vec<String> {
    let numbers: Vec<f64> = numbers.iter().map(|x| x.to_f64()).collect();
    let sizes = || numbers.iter().map(|x| x.abs()).filter(|x| x.is_finite() && *x > 0.0);
    let (least, most) = (sizes().fold(f64::INFINITY, f64::min), sizes().fold(0.0, f64::max));
    let exponents = most >= 1e8 || least < 1e-4;
    let whole = precision.is_none() && sizes().all(|x| x.fract() == 0.0);
    let digits = precision.unwrap_or(4);
    let text = |x: &f64| match x {
        x if !x.is_finite() => x.to_string(),
        x if exponents => format!("{x:.digits$e}"),
        x if whole => format!("{x:.0}."),
        x => format!("{x:.digits$}"),
    };
    numbers.iter().map(text).collect()
}
