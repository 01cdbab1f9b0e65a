//! Arrays of `ndarray` in and out, without a copy.

use ndarray::{Array, Array2, Array4, ArrayD, Axis, IxDyn, s};
use regard_kernels::{Cpu, Forward, Spec, View, ViewMut, reference};
use regard_tensor::Tensor;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn array(shape: [usize; 4]) -> Array4<f64> {
    let number = |(b, h, n, d)| ((b * 31 + h * 17 + n * 7 + d * 3) % 11) as f64 / 11.0 - 0.4;
    Array::from_shape_fn(shape, number)
}

fn main() -> Result<()> {
    views()?;
    tensors()?;
    println!("arrays are views and tensors, and come back, without a copy");
    Ok(())
}

/// Every order of the first three axes, in and out; what does not fit is refused.
fn views() -> Result<()> {
    let shape = [2, 3, 5, 4];
    let x = array(shape);
    let plain = View::try_from(x.view())?;
    let wanted = reference::forward(&Spec::scaled_dot(4), plain, plain, plain)?.out;
    let mut count = 0;
    for order in
        [[0, 1, 2, 3], [0, 2, 1, 3], [1, 0, 2, 3], [1, 2, 0, 3], [2, 0, 1, 3], [2, 1, 0, 3]]
    {
        // The same numbers, lying in memory by another order of the axes.
        let mut back = [0; 4];
        order.iter().enumerate().for_each(|(to, &from)| back[from] = to);
        let lies = x.view().permuted_axes(order).as_standard_layout().into_owned();
        let seen = lies.view().permuted_axes(back);
        assert_eq!(seen, x);
        let view = View::try_from(seen)?;
        assert_eq!(view.row(0, 0, 0).as_ptr(), lies.as_ptr(), "it was copied");
        let mut out = Array4::<f64>::zeros(order.map(|axis| shape[axis]));
        let to = ViewMut::try_from(out.view_mut().permuted_axes(back))?;
        Cpu::best().forward(&Spec::scaled_dot(4), view, view, view, Forward::new(to))?;
        let out = out.permuted_axes(back);
        assert!(out.iter().zip(&wanted).all(|(a, b)| (a - b).abs() < 1e-12), "{order:?}");
        count += 1;
    }
    assert_eq!(count, 6);
    // Axes of size 1 and of size 0 have strides that say nothing.
    for shape in [[1, 1, 1, 1], [2, 1, 3, 1], [0, 2, 3, 4], [2, 3, 0, 4]] {
        assert_eq!(View::try_from(array(shape).view())?.shape(), shape);
    }
    let mut turned = x.clone();
    turned.invert_axis(Axis(2));
    for (wrong, said) in [
        (x.slice(s![.., .., ..3, ..]), "gaps"),
        (x.view().permuted_axes([0, 1, 3, 2]), "its last axis must be contiguous"),
        (turned.view(), "one below 0"),
    ] {
        let error = View::try_from(wrong).unwrap_err().to_string();
        assert!(error.contains(said), "{error}");
        assert!(View::try_from(wrong.to_owned().as_standard_layout().view()).is_ok());
    }
    let error = ViewMut::try_from(turned.slice_mut(s![.., 1.., .., ..])).unwrap_err().to_string();
    assert!(error.contains("one below 0") || error.contains("gaps"), "{error}");
    Ok(())
}

fn tensors() -> Result<()> {
    let x = array([2, 3, 5, 4]);
    let at = x.as_ptr();
    let numbers: Vec<f64> = x.iter().copied().collect();
    let tensor = Tensor::from_ndarray(x.clone())?;
    assert_eq!((tensor.shape(), tensor.to_vec::<f64>()?), (&[2, 3, 5, 4][..], numbers));
    let tensor = Tensor::from_ndarray(x)?;
    assert_eq!(tensor.as_ndarray::<f64>()?.as_ptr(), at, "it was copied");
    // Whatever a view does to the strides.
    for view in [
        tensor.transpose(1, 3)?,
        tensor.narrow(2, 1, 3)?,
        tensor.select(0, 1)?,
        tensor.reshape(&[6, 20])?,
    ] {
        let array = view.as_ndarray::<f64>()?;
        assert_eq!(array.shape(), view.shape());
        assert_eq!(array.iter().copied().collect::<Vec<_>>(), view.to_vec::<f64>()?);
        // And back, from a copy in another order.
        let owned: ArrayD<f64> = array.to_owned();
        assert_eq!(Tensor::from_ndarray(owned)?.to_vec::<f64>()?, view.to_vec::<f64>()?);
    }
    let wide = Tensor::from([[1f64], [2.0]]).broadcast_to(&[2, 3])?;
    let seen = wide.as_ndarray::<f64>()?;
    assert_eq!(seen.iter().copied().collect::<Vec<_>>(), [1.0, 1.0, 1.0, 2.0, 2.0, 2.0]);
    assert!(wide.as_ndarray::<f32>().is_err());
    // An array that was cut keeps its vector; one that is turned lies in another order.
    let cut = Array2::from_shape_fn((4, 3), |(i, j)| (i * 3 + j) as f32).slice_move(s![1..3, ..]);
    assert_eq!(Tensor::from_ndarray(cut)?.to_vec::<f32>()?, [3.0, 4.0, 5.0, 6.0, 7.0, 8.0]);
    let turned = Array2::from_shape_fn((2, 3), |(i, j)| (i * 3 + j) as i64).reversed_axes();
    assert_eq!(Tensor::from_ndarray(turned)?.to_vec::<i64>()?, [0, 3, 1, 4, 2, 5]);
    assert_eq!(Tensor::from_ndarray(Array::<f32, _>::zeros(IxDyn(&[])))?.shape(), [0usize; 0]);
    assert!(Tensor::from_ndarray(Array::<f32, _>::zeros(IxDyn(&[1; 7]))).is_err());
    views_as_tensors()?;
    nothing()
}

/// Views of any strides become tensors by a copy: backward, with gaps, repeated, shared.
fn views_as_tensors() -> Result<()> {
    let x = Array2::from_shape_fn((4, 6), |(i, j)| (10 * i + j) as f32);
    let column = x.slice(s![.., ..1]);
    let shared = x.to_shared();
    let views = [
        x.view(),
        x.t(),
        x.slice(s![..;-1, ..]),
        x.slice(s![..;-2, 1..;-3]),
        x.slice(s![1..3, ..;2]),
        x.slice(s![2..2, ..]),
        column.broadcast((4, 5)).ok_or("a column repeats")?,
        shared.view(),
    ];
    for view in &views {
        let tensor = Tensor::from_ndarray(*view)?;
        assert_eq!(tensor.shape(), view.shape());
        assert_eq!(tensor.to_vec::<f32>()?, view.iter().copied().collect::<Vec<_>>());
    }
    // An array that was turned round in place, and one that somebody else has too.
    let mut turned = x.clone();
    turned.invert_axis(Axis(1));
    assert_eq!(Tensor::from_ndarray(turned.clone())?.to_vec::<f32>()?[..2], [5.0, 4.0]);
    assert_eq!(Tensor::from_ndarray(shared.clone())?.shape(), [4, 6]);
    assert_eq!((shared[[1, 1]], views.len()), (11.0, 8));
    Ok(())
}

/// Tensors without numbers are arrays too, wherever their strides lead.
fn nothing() -> Result<()> {
    let x = Tensor::from_vec(vec![0f64; 30], &[2, 5, 3])?;
    let none = Tensor::from_vec(Vec::<f64>::new(), &[2, 0, 3])?;
    for view in [
        none.clone(),
        none.transpose(0, 2)?,
        none.permute(&[1, 2, 0])?,
        x.narrow(1, 5, 0)?,
        x.narrow(2, 3, 0)?.transpose(0, 1)?,
        none.broadcast_to(&[4, 2, 0, 3])?,
    ] {
        assert_eq!(view.as_ndarray::<f64>()?.shape(), view.shape());
        assert_eq!(Tensor::from_ndarray(view.as_ndarray::<f64>()?)?.shape(), view.shape());
    }
    let error = x.as_ndarray::<f32>().unwrap_err().to_string();
    assert_eq!(error, "as_ndarray: wants f32 numbers, was given f64");
    Ok(())
}
