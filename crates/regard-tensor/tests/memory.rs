//! What the tape holds, and for how long. Alone in its file: other tests would be counted too.
#![allow(clippy::unwrap_used)]

use regard_tensor::{DType, Memory, Parameter, Tensor};

#[test]
fn backward_frees_what_it_no_longer_needs() {
    const N: usize = 1 << 18;
    let w = Parameter::new("w", Tensor::full(&[N], 0.5, DType::F32).unwrap()).unwrap();
    let mut x = w.tensor();
    for _ in 0..50 {
        x = x.mul(&x).unwrap();
    }
    let loss = x.sum_all().unwrap();
    drop(x);
    let before = Memory::now().live;
    Memory::reset_peak();
    let gradients = loss.backward().unwrap();
    let peak = Memory::now().peak;
    assert!(peak < before + 8 * N * 4, "backward took {} on top", peak - before);
    drop(gradients);
    assert!(Memory::now().live + 40 * N * 4 < before, "the saved tensors are still there");
}
