//! Numbers below the normal range.
#![cfg(target_arch = "x86_64")]

use regard_kernels::{Activation, Cpu, flush_denormals};
use std::hint::black_box;

fn half_of_the_smallest() -> f32 {
    black_box(f32::MIN_POSITIVE) * black_box(0.5)
}

#[test]
fn an_operation_flushes_while_it_runs_and_leaves_the_thread_as_it_was() {
    assert!(half_of_the_smallest() > 0.0);
    let mut out = [1f32];
    let leaky = Activation::LeakyRelu { slope: 0.5 };
    Cpu::best().pointwise(&[-f32::MIN_POSITIVE], None, leaky, &mut out).unwrap();
    assert_eq!(out, [0.0]);
    assert!(half_of_the_smallest() > 0.0);
}

#[test]
fn a_pool_started_with_it_flushes_in_every_thread() {
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(3)
        // SAFETY: the threads do nothing but one product.
        .start_handler(|_| unsafe { flush_denormals() })
        .build()
        .unwrap();
    assert!(pool.broadcast(|_| half_of_the_smallest()).iter().all(|&x| x == 0.0));
    assert!(half_of_the_smallest() > 0.0);
}
