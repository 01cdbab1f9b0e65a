//! Buffers go back to a pool and come out again. Alone in its file: other tests would be counted.
#![allow(clippy::unwrap_used)]

use regard_tensor::{DType, Init, Memory, Optimizer, Parameters, Random, UpdateRule};

/// How many pages the system gave this process so far.
#[cfg(target_os = "linux")]
fn faults() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    // After the name in parentheses: state, parent, …; the tenth field of the file is minor faults.
    let rest = stat.rsplit(')').next().unwrap();
    rest.split_whitespace().nth(7).unwrap().parse().unwrap()
}

#[test]
fn a_training_step_takes_its_buffers_from_the_step_before() {
    let parameters = Parameters::new(DType::F32, 1);
    let w = parameters.parameter("w", &[512, 512], Init::Glorot).unwrap();
    let mut optimizer = Optimizer::new(&parameters, UpdateRule::adam()).unwrap();
    let x = Random::new(1).normal(&[1024, 512], 0.0, 1.0, DType::F32).unwrap();
    let mut step = || {
        let y = x.linear(&w.tensor(), None).unwrap().exp().unwrap();
        let loss = y.square().unwrap().mean_all().unwrap();
        optimizer.step(&loss.backward().unwrap(), 1e-4).unwrap();
    };
    (0..3).for_each(|_| step());
    let (live, peak) = (Memory::now().live, Memory::now().peak);
    #[cfg(target_os = "linux")]
    let before = faults();
    (0..10).for_each(|_| step());
    assert_eq!(Memory::now().live, live, "a step leaves nothing behind");
    assert!(Memory::now().peak <= peak, "a later step takes no more than the first ones");
    // A step's tensors are 2 MB each, some 5,000 pages in all; fresh ones would fault them in.
    #[cfg(target_os = "linux")]
    assert!(faults() - before < 5000, "ten steps faulted in {} pages", faults() - before);
}
