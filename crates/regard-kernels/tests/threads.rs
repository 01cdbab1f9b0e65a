//! What is computed inside `sequential`, or on a team of one, starts no other thread, and has the same bits.
//!
//! A file of its own with one test, because threads are the whole process's: rayon starts its own when it is
//! first asked for them, so they are counted before and after.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)] // a test that cannot go on says so by its panic

use regard_kernels::{
    Base, Cpu, Forward, Matrix, Real, Spec, Team, View, ViewMut, on_team, sequential,
};
use std::fs;

struct Alone;

impl Team for Alone {
    fn threads(&self) -> usize {
        1
    }

    fn run(&self, work: &(dyn Fn() + Sync)) {
        work();
    }
}

fn threads() -> usize {
    fs::read_dir("/proc/self/task").unwrap().count()
}

fn numbers<T: Real>(n: usize) -> Vec<T> {
    (0..n).map(|i| T::of(((i * 37 + 11) % 101) as f64 / 50.0 - 1.0)).collect()
}

/// Shapes m, k, n: small, tall, wide with few rows (columns are cut), large in each direction.
const SHAPES: [[usize; 3]; 6] =
    [[3, 4, 5], [700, 64, 64], [8, 512, 1024], [128, 96, 256], [300, 300, 300], [1, 900, 700]];

fn products<T: Real>() -> Vec<Vec<T>> {
    let mut all = Vec::new();
    for [m, k, n] in SHAPES {
        let (a, b, bias) = (numbers::<T>(m * k), numbers::<T>(k * n), numbers::<T>(n));
        let (a, b) = (Matrix::new(&a, m, k).unwrap(), Matrix::new(&b, k, n).unwrap());
        for base in [Base::Nothing, Base::There, Base::Row(&bias)] {
            let mut to = numbers::<T>(m * n);
            Cpu::best().matmul(a, b, base, &mut to).unwrap();
            all.push(to);
        }
        for count in [1, 5] {
            let mut to = numbers::<T>(count * m * n);
            Cpu::best().matmuls(&vec![[a, b]; count], &mut to).unwrap();
            all.push(to);
        }
    }
    let (q, mut out) = (numbers::<T>(2 * 500 * 64), numbers::<T>(2 * 500 * 64));
    let x = View::new(&q, [1, 2, 500, 64]).unwrap();
    let pass = Forward::new(ViewMut::new(&mut out, [1, 2, 500, 64]).unwrap());
    Cpu::best().forward(&Spec::scaled_dot(64), x, x, x, pass).unwrap();
    all.push(out);
    all
}

#[test]
fn what_is_sequential_starts_no_thread() {
    let before = threads();
    let alone = sequential(|| (products::<f32>(), products::<f64>()));
    assert_eq!(threads(), before, "sequential");
    let team = on_team(&Alone, || (products::<f32>(), products::<f64>()));
    assert_eq!(threads(), before, "a team of one");
    let rayon = (products::<f32>(), products::<f64>());
    assert!(threads() > before, "rayon has no threads, so this test shows nothing");
    assert_eq!(rayon.0.len(), SHAPES.len() * 5 + 1);
    for (name, other) in [("sequential", alone), ("a team", team)] {
        assert_eq!(other.0, rayon.0, "{name}, f32");
        assert_eq!(other.1, rayon.1, "{name}, f64");
    }
}
