//! Linear memory: no Nq × Nk array exists unless the caller asks for the weights.
//!
//! A file of its own, because it counts every byte the process allocates.
#![allow(clippy::unwrap_used)] // a test that cannot go on says so by its panic

use regard_kernels::{
    Activation, Backward, Cpu, Forward, Gradients, Normalizer, Saved, Score, Spec, View, ViewMut,
};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

struct Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

// SAFETY: passes everything on to the system's allocator and counts.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let live = LIVE.fetch_add(layout.size(), Relaxed) + layout.size();
        PEAK.fetch_max(live, Relaxed);
        // SAFETY: the caller's layout.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller's block and layout.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// Bytes allocated beyond the caller's arrays, what the kernels keep from earlier calls included,
/// at the peak of forward and backward.
fn peak(spec: &Spec<f32>, n: usize, d: usize, w: usize) -> usize {
    let kept = LIVE.load(Relaxed);
    let x: Vec<f32> = (0..n * d).map(|i| ((i * 7919) % 1000) as f32 / 1000.0 - 0.5).collect();
    let shape = [1, 1, n, d];
    let view = View::new(&x, shape).unwrap();
    let mut out = vec![0f32; n * d];
    let mut rows = vec![0f32; n];
    let mut grads = [vec![0f32; n * d], vec![0f32; n * d], vec![0f32; n * d]];
    let mut grad_w = vec![0f32; w];
    let before = LIVE.load(Relaxed);
    PEAK.store(before, Relaxed);
    let threshold = spec.normalizer == Normalizer::Sparsemax;
    let hard = spec.normalizer.is_hard();
    let mut index = vec![0i64; n];
    let (lse, tau) =
        if threshold { (None, Some(&mut rows[..])) } else { (Some(&mut rows[..]), None) };
    let pass = Forward {
        lse,
        threshold: tau,
        index: hard.then_some(&mut index),
        ..Forward::new(ViewMut::new(&mut out, shape).unwrap())
    };
    Cpu::best().forward(spec, view, view, view, pass).unwrap();
    let [q, k, v] = &mut grads;
    let pass = Backward {
        grad_out: view,
        grad_weights: None,
        grad_edge_weights: None,
        grad_log_prob: hard.then_some(&x[..n]),
        grad_lse: None,
        saved: Saved {
            out: Some(View::new(&out, shape).unwrap()),
            lse: Some(&rows),
            threshold: Some(&rows),
            index: Some(&index),
        },
        gradients: Gradients {
            q: Some(ViewMut::new(q, shape).unwrap()),
            k: Some(ViewMut::new(k, shape).unwrap()),
            v: Some(ViewMut::new(v, shape).unwrap()),
            w: (w > 0).then_some(&mut grad_w),
            ..Gradients::default()
        },
    };
    Cpu::best().backward(spec, view, view, view, pass).unwrap();
    PEAK.load(Relaxed) - before + kept
}

#[test]
fn forward_and_backward_need_memory_linear_in_the_lengths() {
    let w = [0.125f32; 128];
    let dot = Spec::scaled_dot(128);
    let additive = Spec::new(Score::Additive { activation: Activation::Tanh, w: &w });
    let sparse = Spec { normalizer: Normalizer::Sparsemax, ..dot };
    let sample = Spec { normalizer: Normalizer::Sample { seed: 1 }, ..dot };
    // Each of q, k, v is 2 MiB at 4,096; a square array would be 64 MiB, additive's cube 8 GiB.
    let n = 4096;
    let quarter = peak(&dot, n / 4, 128, 0);
    let whole = peak(&dot, n, 128, 0);
    assert!(whole < 8 * quarter, "{quarter} bytes at {}, {whole} at {n}", n / 4);
    for (name, spec, w) in [
        ("dot", dot, 0),
        ("additive", additive, 128),
        ("sparsemax", sparse, 0),
        ("sample", sample, 0),
    ] {
        let needed = peak(&spec, n, 128, w);
        assert!(needed < 48 << 20, "{name} at {n}: {needed} bytes");
    }
}
