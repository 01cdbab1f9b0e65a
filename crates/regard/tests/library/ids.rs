//! Token ids, classes and labels that are no whole numbers are refused by every entrance that takes
//! them, with the place; those that are whole are taken in any type.

use regard::Result;
use regard::layers::EncoderConfig;
use regard::models::{
    ClassifierConfig, InputConfig, LabelerConfig, SequenceClassifier, SequenceLabeler, Sequences,
};
use regard::prelude::*;

/// A tensor of `n` zeros in this shape, but for one.
fn with(x: f64, shape: &[usize], dtype: DType) -> Tensor {
    let mut all = vec![0.0; shape.iter().product()];
    all[1] = x;
    Tensor::from_vec(all, shape).unwrap().to_dtype(dtype).unwrap()
}

#[test]
fn ids_and_targets_that_are_no_whole_numbers_are_refused_everywhere() {
    let parameters = Parameters::new(DType::F32, 1);
    let embedding = Embedding::new(&parameters.at("embedding"), 5, 4, None).unwrap();
    let none = EncoderConfig::None;
    let config = ClassifierConfig::new(InputConfig::tokens(5, 4), none.clone(), 3);
    let classifier = SequenceClassifier::new(&parameters.at("classifier"), &config).unwrap();
    let config = LabelerConfig::new(InputConfig::tokens(5, 4), none, 3);
    let labeler = SequenceLabeler::new(&parameters.at("labeler"), &config).unwrap();
    let plain = Tensor::zeros(&[2, 3], DType::I64).unwrap();
    let logits = Tensor::zeros(&[2, 4], DType::F32).unwrap();
    let rule = CrossEntropy::default();
    // What is given the ids, and the shape that it wants them in.
    type Entrance<'a> = (&'a str, &'a [usize], Box<dyn Fn(&Tensor) -> Result<Tensor> + 'a>);
    let entrances: Vec<Entrance> = vec![
        ("embedding", &[2, 3], Box::new(|ids| embedding.forward(ids))),
        ("rows", &[2], Box::new(|ids| logits.rows(ids))),
        ("segment_sum", &[2], Box::new(|ids| logits.segment_sum(ids, 2))),
        ("gather", &[2, 1], Box::new(|ids| logits.gather(1, ids))),
        ("cross_entropy", &[2], Box::new(|ids| logits.cross_entropy(ids, rule))),
        ("cross_entropy_rows", &[2], Box::new(|ids| logits.cross_entropy_rows(ids, rule))),
        (
            "classes",
            &[2],
            Box::new(|ids| classifier.loss(&Sequences::new(&plain), ids, Mode::Infer)),
        ),
        (
            "labels",
            &[2, 3],
            Box::new(|ids| labeler.loss(&Sequences::new(&plain), ids, Mode::Infer)),
        ),
    ];
    for (name, shape, entrance) in &entrances {
        for dtype in [DType::F32, DType::F64, DType::BF16, DType::F16] {
            for wrong in [1.75, 0.5, -0.25, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
                let Err(error) = entrance(&with(wrong, shape, dtype)) else {
                    panic!("{name} took {wrong} as {dtype}");
                };
                let said = error.to_string();
                let number = if wrong.is_nan() { "NaN".to_string() } else { wrong.to_string() };
                let expected = format!("{number} at place 1 is no index");
                assert!(said.contains(&expected), "{name}, {wrong} as {dtype}: {said}");
            }
            let whole = entrance(&with(1.0, shape, dtype)).unwrap();
            let long = entrance(&with(1.0, shape, DType::I64)).unwrap();
            assert_eq!(whole.to_vec::<f32>().unwrap(), long.to_vec::<f32>().unwrap(), "{name}");
        }
    }
}
