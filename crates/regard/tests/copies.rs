//! What is held does not make every step copy, counted in bytes.
//!
//! A program of its own with one test, since the bytes are the whole process's.
#![allow(clippy::unwrap_used)] // a test that cannot go on says so by its panic

use regard::layers::{KeyValue, KeyValueCache};
use regard::tensor::{DType, Init, Memory, Optimizer, Parameters, Tensor, UpdateRule};

const STEPS: usize = 2000;
const SHAPE: [usize; 4] = [2, 3, 1, 8];

fn step(at: usize) -> Tensor {
    Tensor::full(&SHAPE, at as f64, DType::F32).unwrap()
}

fn allocated(f: impl FnOnce()) -> u64 {
    let before = Memory::now().allocated;
    f();
    Memory::now().allocated - before
}

/// What a cache holds after some steps: 0, 1, 2, … along the sequence.
fn check(all: &KeyValue, steps: usize) {
    assert_eq!(all.k.shape()[2], steps);
    for x in [&all.k, &all.v] {
        let x = x.contiguous().unwrap().to_vec::<f32>().unwrap();
        assert!(x.iter().enumerate().all(|(i, &x)| x == (i / SHAPE[3] % steps) as f32));
    }
}

/// Decodes, holding the last few results at every moment; the bytes it asked for.
fn decoding(held: usize) -> u64 {
    let mut kept: Vec<(usize, KeyValue)> = Vec::new();
    let bytes = allocated(|| {
        let mut cache = KeyValueCache::default();
        for at in 0..STEPS {
            let all = cache.extend(&step(at), &step(at)).unwrap();
            if held > 0 {
                kept.push((at + 1, all));
                let surplus = kept.len().saturating_sub(held);
                kept.drain(..surplus);
            }
            assert_eq!(cache.len(), at + 1);
        }
    });
    // What was held is what it was.
    kept.iter().for_each(|(steps, all)| check(all, *steps));
    bytes
}

/// Steps of an optimizer, while values of an earlier moment are held or not.
fn training(hold: bool) -> u64 {
    let parameters = Parameters::new(DType::F32, 1);
    let w = parameters.parameter("w", &[1024], Init::Ones).unwrap();
    let mut optimizer = Optimizer::new(&parameters, UpdateRule::sgd(0.0)).unwrap();
    let held = hold.then(|| parameters.tensors());
    let bytes = allocated(|| {
        for _ in 0..200 {
            let gradients = w.tensor().sum_all().unwrap().backward().unwrap();
            optimizer.step(&gradients, 0.5).unwrap();
        }
    });
    assert_eq!(w.tensor().to_vec::<f32>().unwrap(), [-99.0; 1024]);
    if let Some(held) = held {
        assert_eq!(held["w"].to_vec::<f32>().unwrap(), [1.0; 1024]);
    }
    bytes
}

#[test]
fn what_is_held_is_copied_once_and_not_at_every_step() {
    let free = decoding(0);
    // One result of each step, as `all = cache.extend(…)` holds it: the cache once more, and what the other
    // place lacks, two steps at most.
    let one = decoding(1);
    assert!(one <= 3 * free, "{one} bytes with the last result held, {free} without");
    // A clone, as of a common prompt: its first step copies, once.
    let numel: usize = SHAPE.iter().product::<usize>() * STEPS;
    let mut prompt = KeyValueCache::default();
    (0..STEPS).for_each(|at| drop(prompt.extend(&step(at), &step(at)).unwrap()));
    let mut clone = prompt.clone();
    let bytes = allocated(|| {
        for at in STEPS..STEPS + 40 {
            drop(clone.extend(&step(at), &step(at)).unwrap());
        }
    });
    // Keys and values, in a room of up to twice the length.
    assert!(bytes <= 5 * 4 * numel as u64, "{bytes} bytes for a clone's steps");
    check(&prompt.extend(&step(STEPS), &step(STEPS)).unwrap(), STEPS + 1);
    check(&clone.extend(&step(STEPS + 40), &step(STEPS + 40)).unwrap(), STEPS + 41);

    let (alone, held) = (training(false), training(true));
    assert_eq!(held - alone, 4 * 1024, "bytes that holding the values of 200 steps ago cost");
}
