//! Losses and normalization against their formulas in f64.

use regard_tensor::{DType, Random, Tensor};

/// −t ln σ(x) − (1 − t) ln(1 − σ(x)), each logarithm by the side that is exact.
fn formula(x: f64, t: f64) -> f64 {
    let ln_sigmoid = |x: f64| if x > 0.0 { -(-x).exp().ln_1p() } else { x - x.exp().ln_1p() };
    -(t * ln_sigmoid(x)) - (1.0 - t) * ln_sigmoid(-x)
}

#[test]
fn binary_cross_entropy_keeps_its_digits_from_the_smallest_loss_to_the_largest() {
    let mut count = 0;
    for x in
        [-900.0, -88.0, -30.0, -17.5, -3.0, -1e-3, 0.0, 1e-9, 0.5, 8.0, 20.0, 40.0, 100.0, 700.0]
    {
        for t in [0.0, 1e-3, 0.5, 1.0] {
            for (dtype, most) in [(DType::F64, 4e-16), (DType::F32, 4e-7)] {
                let of = |x: f64| Tensor::full(&[1], x, dtype).unwrap();
                // What the type holds of the two, not what was written above.
                let (logit, target) = (of(x), of(t));
                let wanted = formula(logit.item().unwrap(), target.item().unwrap());
                let loss = logit.binary_cross_entropy_elements(&target).unwrap().item().unwrap();
                // Below the smallest normal number a type has fewer digits.
                let least = if dtype == DType::F32 { f64::from(f32::MIN_POSITIVE) } else { 0.0 };
                let error = (loss - wanted).abs();
                // Where x · t and max(x, 0) all but cancel, their own rounding is what is left.
                let scale = wanted.abs().max(if t == 0.0 || t == 1.0 { 0.0 } else { x.abs() });
                assert!(error <= most * scale + least, "{dtype} x {x} t {t}: {loss}, not {wanted}");
                count += 1;
            }
        }
    }
    assert_eq!(count, 14 * 4 * 2);
}

#[test]
fn binary_cross_entropy_refuses_what_is_no_probability() {
    let x = Tensor::from([0f32, 1.0]);
    for wrong in [-0.1, 1.5, f32::NAN, f32::INFINITY] {
        let said = x.binary_cross_entropy(&Tensor::from([0.5, wrong])).unwrap_err().to_string();
        assert_eq!(
            said,
            format!("binary_cross_entropy: a target of {} is not within 0..=1", f64::from(wrong))
        );
    }
    for (target, wanted) in [
        (Tensor::from([[0f32, 1.0]]), "binary_cross_entropy: shapes [2] and [1, 2] differ"),
        (
            Tensor::from([0f64, 1.0]),
            "binary_cross_entropy: the logits are f32 [2], the targets f64",
        ),
    ] {
        let said = x.binary_cross_entropy(&target).unwrap_err().to_string();
        assert!(said.starts_with(wanted), "{said}");
    }
    let none = Tensor::zeros(&[0, 3], DType::F32).unwrap();
    assert_eq!(none.binary_cross_entropy_elements(&none).unwrap().shape(), [0, 3]);
}

#[test]
fn rms_norm_is_its_formula_in_every_shape() {
    for (shape, eps) in [(&[5][..], 0.0), (&[3, 4], 1e-6), (&[2, 3, 7], 1e-5), (&[1, 1, 1, 1], 0.1)]
    {
        let width = shape[shape.len() - 1];
        for dtype in [DType::F64, DType::F32] {
            let x = Random::new(1).normal(shape, 0.0, 3.0, dtype).unwrap();
            let gamma = Random::new(2).normal(&[width], 1.0, 0.5, dtype).unwrap();
            let wide = |x: &Tensor| x.to_dtype(DType::F64).unwrap().to_vec::<f64>().unwrap();
            let y = wide(&x.rms_norm(&gamma, eps).unwrap());
            let gamma = wide(&gamma);
            let most = if dtype == DType::F64 { 1e-14 } else { 3e-6 };
            for (row, y) in wide(&x).chunks(width).zip(y.chunks(width)) {
                let root = (row.iter().map(|x| x * x).sum::<f64>() / width as f64 + eps).sqrt();
                for ((x, y), gamma) in row.iter().zip(y).zip(&gamma) {
                    let wanted = x / root * gamma;
                    assert!((y - wanted).abs() <= most * wanted.abs().max(1.0));
                }
            }
        }
    }
    let x = Tensor::zeros(&[2, 3], DType::F32).unwrap();
    let said = |gamma: &Tensor, eps| x.rms_norm(gamma, eps).unwrap_err().to_string();
    let gamma = Tensor::ones(&[2], DType::F32).unwrap();
    assert_eq!(said(&gamma, 0.0), "rms_norm: [2, 3] with gamma [2]; it needs the last axis' size");
    let gamma = Tensor::ones(&[3], DType::F32).unwrap();
    assert_eq!(said(&gamma, -1.0), "rms_norm: eps -1 is not a number from 0 up");
    assert!(
        said(&gamma.to_dtype(DType::F64).unwrap(), 0.0).starts_with("rms_norm: the input is f32")
    );
    let none = Tensor::zeros(&[2, 0], DType::F32).unwrap();
    assert!(none.rms_norm(&Tensor::zeros(&[0], DType::F32).unwrap(), 0.0).is_err());
}
