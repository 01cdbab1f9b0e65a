//! What a type of numbers does not hold is refused wherever it would be stored: whole numbers out of range, fractions
//! where whole numbers are, bytes that are no bools. Each case is a number, a type, and whether the type holds it.

use half::{bf16, f16};
use regard_tensor::*;
use std::collections::BTreeMap;

const BIG: f64 = 9223372036854775808.0;

/// Numbers, and by type whether each is held (as it is, or rounded).
const NUMBERS: [(f64, [bool; 7]); 13] = [
    // bool, u32, i64, f16, bf16, f32, f64
    (0.0, [true; 7]),
    (1.0, [true; 7]),
    (-1.0, [false, false, true, true, true, true, true]),
    (7.0, [false, true, true, true, true, true, true]),
    (0.5, [false, false, false, true, true, true, true]),
    (4294967295.0, [false, true, true, false, true, true, true]),
    (4294967296.0, [false, false, true, false, true, true, true]),
    (-BIG, [false, false, true, false, true, true, true]),
    (BIG, [false, false, false, false, true, true, true]),
    (65504.0, [false, true, true, true, true, true, true]),
    (1e39, [false, false, false, false, false, false, true]),
    (f64::NAN, [false, false, false, true, true, true, true]),
    (f64::INFINITY, [false, false, false, true, true, true, true]),
];
const TYPES: [DType; 7] =
    [DType::Bool, DType::U32, DType::I64, DType::F16, DType::BF16, DType::F32, DType::F64];

#[test]
fn a_number_that_a_type_does_not_hold_fills_no_tensor() {
    let mut count = 0;
    for (x, held) in NUMBERS {
        for (dtype, held) in TYPES.into_iter().zip(held) {
            let like = Tensor::zeros(&[2], dtype).unwrap();
            let mask = Tensor::from([true, true]);
            let filled =
                [Tensor::full(&[2], x, dtype), like.full_like(x), like.masked_fill(&mask, x)];
            for (filled, name) in filled.into_iter().zip(["full", "full_like", "masked_fill"]) {
                match filled {
                    Ok(filled) => {
                        assert!(held, "{name} {x} {dtype}");
                        let first =
                            filled.to_dtype(DType::F64).unwrap().to_vec::<f64>().unwrap()[0];
                        let near = (first - x).abs() <= x.abs() * 0.004;
                        assert!(first == x || near || x.is_nan() && first.is_nan(), "{x} {dtype}");
                    }
                    Err(error) => {
                        assert!(!held, "{error}");
                        assert_eq!(error.to_string(), format!("{name}: {dtype} does not hold {x}"));
                    }
                }
                count += 1;
            }
        }
    }
    assert_eq!(count, NUMBERS.len() * TYPES.len() * 3);
}

/// Whether a cast to whole numbers holds what it is given: the fraction is cut off.
fn is_cast(x: f64, dtype: DType) -> bool {
    match dtype {
        DType::U32 => x > -1.0 && x < 4294967296.0,
        DType::I64 => (-BIG..BIG).contains(&x),
        _ => true,
    }
}

#[test]
fn a_cast_to_whole_numbers_refuses_what_is_none_or_out_of_range() {
    let more = [1.7, -0.5, -1e30, 1e30, f64::NEG_INFINITY, 3e9];
    let mut refused = 0;
    for x in NUMBERS.iter().map(|(x, _)| *x).chain(more) {
        for from in [DType::F64, DType::F32, DType::BF16, DType::F16] {
            let given = Tensor::from([1.0, x]).to_dtype(from).unwrap();
            // As that type has it.
            let x = given.to_dtype(DType::F64).unwrap().to_vec::<f64>().unwrap()[1];
            for (to, strided) in [(DType::U32, false), (DType::I64, false), (DType::I64, true)] {
                let given = match strided {
                    true => given.broadcast_to(&[3, 2]).unwrap().transpose(0, 1).unwrap(),
                    false => given.clone(),
                };
                match given.to_dtype(to) {
                    Ok(whole) => {
                        assert!(is_cast(x, to), "{x} as {to}");
                        let last = *whole.to_indices("last").unwrap().last().unwrap();
                        assert_eq!(last, x as i64, "{x} from {from}");
                    }
                    Err(error) => {
                        assert!(!is_cast(x, to), "{error}");
                        let place = if strided { 3 } else { 1 };
                        let said = format!("to_dtype: {to} does not hold {x}, at place {place}");
                        assert_eq!(error.to_string(), said);
                        refused += 1;
                    }
                }
            }
        }
        assert!(Tensor::from([x]).to_dtype(DType::Bool).is_ok());
    }
    assert!(refused > 70, "{refused}");
    for x in [-1, 1 << 32, i64::MIN] {
        let error = Tensor::from([x]).to_dtype(DType::U32).unwrap_err().to_string();
        assert_eq!(error, format!("to_dtype: u32 does not hold {x}, at place 0"));
    }
    assert_eq!(
        Tensor::from([u32::MAX]).to_dtype(DType::I64).unwrap().item().unwrap(),
        4294967295.0
    );
}

#[test]
fn a_byte_other_than_0_and_1_is_no_bool_by_any_way_in() {
    let said = "the byte 7 at place 1 is no bool, which is 0 or 1; from_ids takes whole numbers";
    let bytes = [1u8, 7, 255];
    let ways: [(&str, Result<Tensor>); 4] = [
        ("from_vec", Tensor::from_vec(bytes.to_vec(), &[3])),
        ("from_slice", Tensor::from_slice(&bytes, &[3])),
        ("build", Tensor::build(&[3], |to: &mut [u8]| to.copy_from_slice(&bytes))),
        (
            "try_build",
            Tensor::try_build(&[3], |to: &mut [u8]| {
                to.copy_from_slice(&bytes);
                Ok(())
            }),
        ),
    ];
    for (way, tensor) in ways {
        assert_eq!(tensor.unwrap_err().to_string(), said, "{way}");
    }
    // In a file too.
    let truths = BTreeMap::from([("keep".to_string(), Tensor::from([true, false, true]))]);
    let mut file = to_bytes(&truths, &BTreeMap::new()).unwrap();
    assert!(from_bytes(&file).is_ok());
    *file.last_mut().unwrap() = 3;
    let error = from_bytes(&file).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::File);
    assert!(error.to_string().contains("the byte 3 at place 2 is no bool"), "{error}");
    // What is computed is 0 or 1.
    let x = Tensor::from([f32::NAN, 0.0, -0.0, 1e-45]).to_dtype(DType::Bool).unwrap();
    assert_eq!(x.to_vec::<u8>().unwrap(), [1, 0, 0, 1]);
    assert_eq!(Tensor::from_ids(&bytes, &[3]).unwrap().to_vec::<i64>().unwrap(), [1, 7, 255]);
}

#[test]
fn a_whole_number_that_no_f64_holds_is_no_item() {
    for x in [0, -5, 1 << 53, i64::MIN] {
        assert_eq!(Tensor::from(x).item().unwrap(), x as f64);
    }
    for x in [(1 << 53) + 1, i64::MAX, -(1 << 53) - 1] {
        let error = Tensor::from(x).item().unwrap_err().to_string();
        assert_eq!(error, format!("item: an f64 does not hold {x}; read it with to_vec"));
    }
}

#[test]
fn numbers_drawn_stay_below_the_upper_end_and_ends_that_are_none_are_refused() {
    let random = Random::new(7);
    let ends = [(0.0, 1.0), (-1.0, 1.0), (-1.0, 0.0), (0.5, 0.75), (-4096.0, 4096.0), (3.0, 3.0)];
    let mut count = 0;
    for (low, high) in ends {
        for dtype in [DType::F64, DType::F32, DType::BF16, DType::F16] {
            let x = random.uniform(&[1 << 15], low, high, dtype).unwrap();
            let x = x.to_dtype(DType::F64).unwrap().to_vec::<f64>().unwrap();
            assert!(
                x.iter().all(|&x| x >= low && (x < high || low == high)),
                "{dtype} {low}..{high}"
            );
            let mean = x.iter().sum::<f64>() / x.len() as f64;
            assert!((mean - (low + high) / 2.0).abs() <= (high - low) * 0.01, "{dtype} {mean}");
            count += 1;
        }
    }
    assert_eq!(count, 24);
    let (nan, max) = (f64::NAN, f64::MAX);
    for (low, high) in [(2.0, 1.0), (nan, 1.0), (0.0, nan), (0.0, f64::INFINITY), (-max, max)] {
        let error = random.uniform(&[2], low, high, DType::F32).unwrap_err().to_string();
        assert_eq!(error, format!("uniform: no numbers can be drawn from {low} to {high}"));
    }
    for (mean, deviation) in [(0.0, -1.0), (0.0, nan), (nan, 1.0), (f64::INFINITY, 1.0)] {
        assert!(random.normal(&[2], mean, deviation, DType::F32).is_err(), "{mean} {deviation}");
    }
    for init in [Init::Uniform(-1.0), Init::Uniform(nan), Init::Normal(-1.0), Init::Constant(1e300)]
    {
        let parameters = Parameters::new(DType::F32, 1);
        assert!(parameters.parameter("w", &[2], init).is_err(), "{init:?}");
        assert!(parameters.all().is_empty());
    }
}

#[test]
fn what_is_loaded_becomes_no_other_number() {
    let given = |x: Tensor| BTreeMap::from([("w".to_string(), x)]);
    for dtype in [DType::F64, DType::F32, DType::BF16, DType::F16] {
        let parameters = Parameters::new(dtype, 1);
        parameters.parameter("w", &[2], Init::Zeros).unwrap();
        let set = |x: Tensor| parameters.set(&given(x)).map_err(|error| error.to_string());
        for whole in [Tensor::from([1i64, 2]), Tensor::from([1u32, 2]), Tensor::from([true, false])]
        {
            let said = format!(
                "parameter \"w\" is {dtype}, the tensor given {}; whole numbers are not converted",
                whole.dtype()
            );
            assert_eq!(set(whole), Err(said));
        }
        for x in [1e300, 1e6, 1.0] {
            let largest = match dtype {
                DType::F16 => f16::MAX.to_f64(),
                DType::BF16 => bf16::MAX.to_f64(),
                DType::F32 => f64::from(f32::MAX),
                _ => f64::MAX,
            };
            match set(Tensor::from([1.0, x])) {
                Ok(()) => assert!(x <= largest),
                Err(said) => {
                    assert!(x > largest);
                    let wanted = format!("to_dtype: {dtype} does not hold {x}, at place 1");
                    assert_eq!(said, format!("parameter \"w\": {wanted}"));
                }
            }
        }
        // What was infinite or NaN is so again.
        set(Tensor::from([f64::INFINITY, f64::NAN])).unwrap();
    }
}

#[test]
fn a_number_beside_16_bits_is_not_rounded_to_them_first() {
    for (n, x, wanted) in [(1e9, 60000.0, [6e-5, 16666.67]), (1e-7, 1e-3, [1e4, 1e-4])] {
        let halves = Tensor::from([f16::from_f64(x)]);
        let x = f64::from(f16::from_f64(x));
        for (ours, exact, near) in
            [(&halves / n, x / n, wanted[0]), (n / &halves, n / x, wanted[1])]
        {
            let ours = ours.item().unwrap();
            assert!((ours - exact).abs() <= 1e-3 * exact.abs() + 6e-8, "{ours}, not {exact}");
            assert!((exact / near - 1.0).abs() < 0.01);
        }
        let difference = n - &halves;
        assert_eq!(difference.item().unwrap().is_infinite(), n > 65520.0);
    }
    // One too large for f32 gives what an infinite one gives.
    assert_eq!((Tensor::from([2f32]) / 1e300).item().unwrap(), 0.0);
    assert_eq!((1e300 / Tensor::from([2f32])).item().unwrap(), f64::INFINITY);
}

#[test]
fn a_parameter_has_a_name_and_an_empty_step_down_is_none() {
    let parameters = Parameters::new(DType::F32, 1);
    for place in [parameters.clone(), parameters.at("a")] {
        let error = place.parameter("", &[2], Init::Zeros).unwrap_err().to_string();
        assert_eq!(error, "a parameter of shape [2] without a name");
    }
    let w = parameters.at("").at("a").at("").parameter("w", &[2], Init::Zeros).unwrap();
    assert_eq!((w.name(), parameters.at("a").at("").all().len()), ("a.w", 1));
}
