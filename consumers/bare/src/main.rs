//! The operator without any feature: one thread, no GPU, no `gemm`. Forward, backward and a matrix product
//! against plain loops.

use regard_kernels::{
    Backward, Base, Cpu, Error, Forward, Gradients, Mask, Matrix, Saved, Spec, View, ViewMut,
    reference,
};

const SHAPE: [usize; 4] = [2, 3, 40, 8];

fn numbers(count: usize, seed: usize) -> Vec<f64> {
    (0..count).map(|i| ((i * 37 + seed * 101) % 53) as f64 / 53.0 - 0.5).collect()
}

fn close(what: &str, a: &[f64], b: &[f64]) {
    assert_eq!(a.len(), b.len(), "{what}");
    for (a, b) in a.iter().zip(b) {
        assert!((a - b).abs() < 1e-12, "{what}: {a} and {b}");
    }
}

fn main() -> Result<(), Error> {
    let count = SHAPE.iter().product();
    let [q, k, v, g] = [1, 2, 3, 4].map(|seed| numbers(count, seed));
    let view = |x| View::new(x, SHAPE);
    let spec =
        Spec { mask: Mask { causal: true, ..Mask::default() }, ..Spec::scaled_dot(SHAPE[3]) };
    let wanted = reference::forward(&spec, view(&q)?, view(&k)?, view(&v)?)?;
    let (mut out, mut lse) = (vec![0f64; count], vec![0f64; count / SHAPE[3]]);
    let pass = Forward { lse: Some(&mut lse), ..Forward::new(ViewMut::new(&mut out, SHAPE)?) };
    Cpu::best().forward(&spec, view(&q)?, view(&k)?, view(&v)?, pass)?;
    close("out", &out, &wanted.out);
    close("lse", &lse, &wanted.lse);

    let wanted = reference::backward(&spec, view(&q)?, view(&k)?, view(&v)?, view(&g)?)?;
    let [mut of_q, mut of_k, mut of_v] = [(); 3].map(|()| vec![0f64; count]);
    let gradients = Gradients {
        q: Some(ViewMut::new(&mut of_q, SHAPE)?),
        k: Some(ViewMut::new(&mut of_k, SHAPE)?),
        v: Some(ViewMut::new(&mut of_v, SHAPE)?),
        ..Gradients::default()
    };
    let saved = Saved { out: Some(view(&out)?), lse: Some(&lse), ..Saved::default() };
    let pass = Backward::new(view(&g)?, saved, gradients);
    Cpu::best().backward(&spec, view(&q)?, view(&k)?, view(&v)?, pass)?;
    close("q", &of_q, &wanted.q);
    close("k", &of_k, &wanted.k);
    close("v", &of_v, &wanted.v);

    // Sizes that no tile divides, either matrix as it lies and transposed.
    for (m, k, n) in [(1, 1, 1), (7, 5, 3), (33, 65, 17), (2, 3, 70), (4, 0, 5)] {
        let (a, b) = (numbers(m * k, 5), numbers(k * n, 6));
        for turned in [false, true] {
            let left =
                if turned { Matrix::new(&a, k, m)?.transposed() } else { Matrix::new(&a, m, k)? };
            let right =
                if turned { Matrix::new(&b, n, k)?.transposed() } else { Matrix::new(&b, k, n)? };
            let mut to = vec![1f64; m * n];
            Cpu::best().matmul(left, right, Base::Nothing, &mut to)?;
            let at = |i: usize, l: usize| if turned { a[l * m + i] } else { a[i * k + l] };
            let bt = |l: usize, j: usize| if turned { b[j * k + l] } else { b[l * n + j] };
            let sum = |at_c: usize| (0..k).map(|l| at(at_c / n, l) * bt(l, at_c % n)).sum();
            close("product", &to, &(0..m * n).map(sum).collect::<Vec<f64>>());
        }
    }
    one_thread();
    println!("forward, backward and products agree with plain loops, on one thread");
    Ok(())
}

/// No pool was started.
fn one_thread() {
    if let Ok(threads) = std::fs::read_dir("/proc/self/task") {
        assert_eq!(threads.count(), 1);
    }
}
