//! What slicing costs on the way back, counted. Alone in its file: other tests would be counted too.
#![allow(clippy::unwrap_used)]

use regard_tensor::{DType, Memory, Parameter, Tensor};

/// What a backward pass through so many slices of one tensor did.
struct Work {
    visited: usize,
    allocated: u64,
}

fn work(steps: usize) -> Work {
    let w = Parameter::new("w", Tensor::zeros(&[steps, 64], DType::F32).unwrap()).unwrap();
    let x = w.tensor();
    let mut sum = Tensor::zeros(&[64], DType::F32).unwrap();
    for t in 0..steps {
        sum = sum.add(&x.select(0, t).unwrap()).unwrap();
    }
    let loss = sum.sum_all().unwrap();
    let before = Memory::now().allocated;
    let gradients = loss.backward().unwrap();
    let allocated = Memory::now().allocated - before;
    assert_eq!(gradients.get(&w).unwrap().to_vec::<f32>().unwrap(), vec![1.0; steps * 64]);
    Work { visited: gradients.visited(), allocated }
}

#[test]
fn slicing_many_steps_costs_in_proportion_to_the_steps() {
    let (few, many) = (work(1_000), work(16_000));
    // For each step its slice and its sum; beside them the parameter, the reshape and the last sum.
    assert_eq!((few.visited, many.visited), (2 * 1_000 + 3, 2 * 16_000 + 3));
    // Linear would be 16, quadratic 256.
    let times = many.allocated as f64 / few.allocated as f64;
    assert!((8.0..32.0).contains(&times), "16 times the steps allocated {times} times as much");
    // And the gradient of the whole is made once, not once for each step.
    let whole = 16_000 * 64 * 4;
    assert!(many.allocated < 4 * whole, "{} bytes for a gradient of {whole}", many.allocated);
}
