//! Memory from the pool still holds what it was used for: no operation shows that as its result.
//! Alone in its file, so that no other test takes the blocks that this one prepared.
#![allow(clippy::unwrap_used)]

use regard_tensor::{
    Activation, Cell, CrossEntropy, DType, Error, Gradients, RecurrentStart, Result, SlidingWindow,
    Tensor,
};

/// Fills the pool with blocks of NaN, of every size that the operations below ask for.
fn poison() {
    // As the pool rounds them: in sixteenths of a power of two, in cache lines of 8 numbers.
    let powers = (6..12).map(|power| 1usize << power);
    let lines = powers.flat_map(|power| (9..=16).map(move |n| power / 16 * n));
    let fill = |n| (0..4).map(move |_| Tensor::full(&[8 * n], f64::NAN, DType::F64).unwrap());
    drop(lines.filter(|&n| n >= 64).flat_map(fill).collect::<Vec<_>>());
    let taken = Tensor::uninit(&[5000], DType::F64).unwrap();
    assert!(
        taken.to_vec::<f64>().unwrap().iter().all(|x| x.is_nan()),
        "the pool gave fresh memory"
    );
}

fn assert_no_nan(name: &str, what: &str, x: &Tensor) {
    let numbers = x.to_dtype(DType::F64).unwrap().to_vec::<f64>().unwrap();
    let count = numbers.iter().filter(|x| x.is_nan()).count();
    assert_eq!(count, 0, "{name}: {what} {:?} shows recycled memory", x.shape());
}

/// Runs an operation on inputs of these shapes in poisoned memory; looks at all it gives.
fn run(name: &str, shapes: &[&[usize]], f: impl Fn(&[Tensor]) -> Result<Vec<Tensor>>) {
    let ones = |shape: &&[usize]| Tensor::full(shape, 0.5, DType::F64)?.requires_grad();
    let inputs = shapes.iter().map(ones).collect::<Result<Vec<_>>>().unwrap();
    poison();
    let results = f(&inputs).unwrap_or_else(|error| panic!("{name}: {error}"));
    let mut sum = Tensor::new(0f64).unwrap();
    for result in &results {
        assert_no_nan(name, "result", result);
        if result.has_gradient() {
            sum = sum.add(&result.sum_all().unwrap()).unwrap();
        }
    }
    poison();
    let gradients: Gradients = sum.backward().unwrap();
    for (at, input) in inputs.iter().enumerate() {
        if let Some(gradient) = gradients.get(input) {
            assert_no_nan(name, &format!("gradient {at}"), gradient);
        }
    }
}

#[test]
fn no_operation_shows_recycled_memory_and_one_that_fails_gives_no_tensor() {
    const N: usize = 1024;
    let ids = |n: usize| Tensor::from_vec((0..n as i64).collect(), &[n]);
    for rows in [0, 1, 3] {
        run("layer_norm", &[&[rows, N], &[N], &[N]], |x| {
            Ok(vec![x[0].layer_norm(&x[1], &x[2], 1e-5)?])
        });
        run("activate_with", &[&[rows, N], &[N]], |x| {
            Ok(vec![x[0].activate_with(&x[1], Activation::Gelu)?])
        });
        run("linear", &[&[rows, 40], &[N, 40], &[N]], |x| {
            Ok(vec![x[0].linear(&x[1], Some(&x[2]))?])
        });
        run("matmul", &[&[2, N, rows], &[2, rows, 9]], |x| Ok(vec![x[0].matmul(&x[1])?]));
        run("rows", &[&[N, 8]], |x| Ok(vec![x[0].rows(&ids(rows)?)?]));
        run("embed", &[&[N, 8]], |x| Ok(vec![x[0].embed(&ids(rows)?, Some(0))?]));
        run("segment_sum", &[&[rows, 8]], |x| Ok(vec![x[0].segment_sum(&ids(rows)?, N)?]));
        run("gather", &[&[N, 4]], |x| {
            let index = Tensor::zeros(&[rows, 4], DType::I64)?;
            Ok(vec![x[0].gather(0, &index)?])
        });
        run("cross_entropy", &[&[rows, N]], |x| {
            Ok(vec![x[0].cross_entropy_rows(&ids(rows)?, CrossEntropy::default())?])
        });
        run("softmax", &[&[rows, N]], |x| Ok(vec![x[0].softmax(0)?, x[0].log_softmax(1)?]));
        run("narrow", &[&[N, 4]], |x| Ok(vec![x[0].narrow(0, 5, rows)?]));
        run("cat", &[&[rows, N], &[9, N]], |x| Ok(vec![Tensor::cat(x, 0)?]));
        run("sum", &[&[rows, N]], |x| Ok(vec![x[0].sum(0)?, x[0].sum(1)?]));
        run("dropout", &[&[rows, N]], |x| Ok(vec![x[0].dropout(0.5, 3)?]));
    }
    run("images", &[&[2, 3, 20, 20], &[4, 3, 3, 3], &[4]], |x| {
        let window =
            SlidingWindow { padding: [1, 1], stride: [2, 2], ..SlidingWindow::new([3, 3]) };
        let y = x[0].conv2d(&x[1], Some(&x[2]), &window)?;
        Ok(vec![y, x[0].max_pool2d(&window)?, x[0].mean_pool2d(&window)?])
    });
    for cell in [Cell::Rnn, Cell::Gru, Cell::Lstm] {
        for (batch, steps) in [(0, 3), (40, 0), (40, 3)] {
            let (h, g) = (30, 30 * cell.gates());
            let shapes: [&[usize]; 5] =
                [&[batch, steps, g], &[g, h], &[g], &[batch, h], &[batch, h]];
            run(&format!("{cell:?} {batch} {steps}"), &shapes, |x| {
                let c0 = (cell == Cell::Lstm).then_some(&x[4]);
                let start = RecurrentStart { w_hh: &x[1], b_hh: Some(&x[2]), h0: Some(&x[3]), c0 };
                let lengths = vec![steps / 2; batch];
                let y = x[0].recurrent(cell, start, Some(&lengths), false)?;
                Ok([Some(y.out), Some(y.h), y.c].into_iter().flatten().collect())
            });
        }
    }
    poison();
    let x = Tensor::full(&[40, 120], 0.5, DType::F64).unwrap();
    let targets = Tensor::full(&[40], 500.0, DType::I64).unwrap();
    assert!(x.cross_entropy_rows(&targets, CrossEntropy::default()).is_err());
    let start = RecurrentStart { w_hh: &x.i((.., ..40)).unwrap(), b_hh: None, h0: None, c0: None };
    let gates = Tensor::zeros(&[40, 3, 40], DType::F64).unwrap();
    assert!(gates.recurrent(Cell::Rnn, start, Some(&[9; 40]), false).is_err());
    let failed = Tensor::try_build(&[5000], |_: &mut [f64]| Err(Error::new("halfway")));
    assert_eq!(failed.unwrap_err().to_string(), "halfway");
}
