//! What holds a tensor's numbers: given vectors, nested arrays, and changes in place.

use half::{bf16, f16};
use regard_tensor::{Activation, DType, Parameter, Random, Tensor};

#[test]
fn a_vector_becomes_the_storage_without_a_copy() {
    fn check<T: regard_tensor::Scalar>(x: T) {
        let numbers = vec![x; 5000];
        let (before, bytes) = (numbers.as_ptr(), 5000 * size_of::<T>());
        let mut tensor = Tensor::from_vec(numbers, &[50, 100]).unwrap();
        assert_eq!(tensor.as_slice::<T>("test").unwrap().as_ptr(), before, "{:?}", T::DTYPE);
        assert_eq!(tensor.as_mut_slice::<T>().unwrap().as_ptr(), before);
        assert_eq!(size_of_val(tensor.as_slice::<T>("test").unwrap()), bytes);
        let view = tensor.transpose(0, 1).unwrap();
        assert_eq!(view.strided::<T>().unwrap().0.as_ptr(), before);
    }
    check(1f32);
    check(1f64);
    check(bf16::ONE);
    check(f16::ONE);
    check(1i64);
    check(1u32);
    check(1u8);
}

#[test]
fn storage_that_starts_anywhere_computes_the_same() {
    let aligned = Random::new(1).normal(&[33, 65], 0.0, 1.0, DType::F32).unwrap();
    let numbers = aligned.to_vec::<f32>().unwrap();
    // One number further on, and in vectors wherever the allocator puts them.
    let shifted = [vec![0.0], numbers.clone()].concat();
    let shifted = Tensor::from_vec(shifted, &[1 + 33 * 65]).unwrap();
    let shifted = shifted.narrow(0, 1, 33 * 65).unwrap().reshape(&[33, 65]).unwrap();
    for x in [Tensor::from_vec(numbers, &[33, 65]).unwrap(), shifted] {
        let pairs = [
            (x.exp(), aligned.exp()),
            (x.softmax(1), aligned.softmax(1)),
            (x.activate(Activation::Gelu), aligned.activate(Activation::Gelu)),
            (x.sum(0), aligned.sum(0)),
            (
                x.matmul(&x.transpose(0, 1).unwrap()),
                aligned.matmul(&aligned.transpose(0, 1).unwrap()),
            ),
        ];
        for (a, b) in pairs {
            assert_eq!(a.unwrap().to_vec::<f32>().unwrap(), b.unwrap().to_vec::<f32>().unwrap());
        }
    }
}

#[test]
fn a_parameter_lies_at_a_cache_line_whatever_its_value_came_from() {
    for n in [1, 7, 1000] {
        let w = Parameter::new("w", Tensor::from_vec(vec![1f32; n], &[n]).unwrap()).unwrap();
        let at = |w: &Parameter| w.tensor().as_slice::<f32>("test").unwrap().as_ptr().addr();
        assert!(at(&w).is_multiple_of(64));
        w.set(&Tensor::from_vec(vec![2f32; n], &[n]).unwrap()).unwrap();
        assert!(at(&w).is_multiple_of(64));
        assert_eq!(w.tensor().to_vec::<f32>().unwrap(), vec![2.0; n]);
    }
}

#[test]
fn numbers_are_not_changed_in_place_where_that_is_refused() {
    let mut x = Tensor::from([[1f32, 2.0], [3.0, 4.0]]);
    let error = x.as_mut_slice::<f64>().unwrap_err().to_string();
    assert_eq!(error, "as_mut_slice: wants f64 numbers, was given f32");
    let error = x.transpose(0, 1).unwrap().as_mut_slice::<f32>().unwrap_err().to_string();
    assert_eq!(error, "as_mut_slice: the tensor of shape [2, 2] is not contiguous");
    let view = x.i(0).unwrap();
    let error = x.as_mut_slice::<f32>().unwrap_err().to_string();
    assert_eq!(error, "as_mut_slice: another tensor shares the storage of f32 [2, 2]");
    drop(view);
    x.as_mut_slice::<f32>().unwrap()[3] = 5.0;
    assert_eq!(x.to_vec::<f32>().unwrap(), [1.0, 2.0, 3.0, 5.0]);
}

#[test]
fn nested_arrays_of_every_depth_and_type_become_tensors() {
    assert_eq!(Tensor::from(3f64).shape(), [0; 0]);
    assert_eq!(Tensor::from([1i64, 2, 3]).to_vec::<i64>().unwrap(), [1, 2, 3]);
    let x = Tensor::from([[[1f32, 2.0]], [[3.0, 4.0]], [[5.0, 6.0]]]);
    assert_eq!((x.shape(), x.to_vec::<f32>().unwrap()[4]), (&[3, 1, 2][..], 5.0));
    let array = &[[[[1u32, 2], [3, 4]], [[5, 6], [7, 8]]]];
    let x = Tensor::new(array).unwrap();
    assert_eq!(Tensor::from(*array).shape(), x.shape());
    assert_eq!(x.shape(), [1, 2, 2, 2]);
    assert_eq!(x.to_vec::<u32>().unwrap(), [1, 2, 3, 4, 5, 6, 7, 8]);
    let half = Tensor::from([bf16::from_f32(1.5)]);
    assert_eq!((half.dtype(), half.item().unwrap()), (DType::BF16, 1.5));
    assert_eq!(Tensor::from([f16::ONE]).dtype(), DType::F16);
    assert_eq!(Tensor::from([[true], [false]]).to_vec::<u8>().unwrap(), [1, 0]);
    assert_eq!(Tensor::from([[0f32; 0]; 3]).shape(), [3, 0]);
}
