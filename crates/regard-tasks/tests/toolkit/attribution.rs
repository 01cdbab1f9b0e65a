//! Explanations of what is predicted, and which of them is right.

use crate::course::Course;
use regard_tasks::inspect::Attribution;
use regard_tasks::task::{How, Input, InputForm, Method, Part};
use regard_tasks::{Error, Result};

const CASES: [(&str, &[&str]); 10] = [
    ("translate", &["size=60", "epochs=1", "embedding=8", "hidden=8", "score_hidden=8"]),
    (
        "translate",
        &[
            "size=60",
            "epochs=1",
            "embedding=8",
            "hidden=8",
            "encoder=transformer",
            "layers=2",
            "decoder=transformer",
            "context=multi-head",
            "heads=2",
            "beam=1",
        ],
    ),
    ("translate", &["size=60", "epochs=1", "embedding=8", "hidden=8", "context=fixed"]),
    ("label", &["size=60", "epochs=1", "encoder=transformer", "hidden=8", "heads=2"]),
    ("classify", &["size=60", "epochs=1", "hidden=8", "embedding=8", "score_hidden=8"]),
    ("image", &["size=60", "epochs=1", "hidden=16"]),
    ("graph", &["epochs=1"]),
    ("graph", &["embedded=touching", "size=60", "epochs=1", "heads=2"]),
    ("regress", &["epochs=1"]),
    ("answer", &["size=60", "epochs=1"]),
];

#[test]
fn every_task_is_explained_by_each_method_or_says_why_not() -> Result<()> {
    let mut explained = [0; Method::ALL.len()];
    for (task, settings) in CASES {
        let course = Course::done(task, settings);
        let model = course.model();
        let input = match model.asks().form {
            InputForm::Node => Input::from("3"),
            _ => Input::example(Part::Test, 1),
        };
        for (at, method) in Method::ALL.into_iter().enumerate() {
            let how = How { method, faithfulness: true };
            let found = match model.abilities().saliency(&input, how) {
                Ok(found) => found,
                Err(error) => {
                    assert!(at > 1, "{task}, {method:?}: {error}");
                    let said = error.to_string();
                    let known = ["no attention", "columns", "self-attention", "one by one"];
                    assert!(known.iter().any(|words| said.contains(words)), "{task}: {said}");
                    continue;
                }
            };
            explained[at] += 1;
            assert_eq!(found.values.len(), found.names.len(), "{task}, {method:?}");
            assert!(found.values.iter().all(|value| value.is_finite()), "{task}, {method:?}");
            assert_eq!(found.method, method);
            let faithful = found.faithfulness.expect("asked for");
            let ends = [&faithful.most, &faithful.least, &faithful.random].map(|curve| {
                assert_eq!(curve.scores.len(), faithful.removed.len());
                (curve.scores[0], curve.scores[curve.scores.len() - 1])
            });
            // All begin at the whole input and end at none.
            for (first, last) in ends {
                assert!((first - ends[0].0).abs() < 1e-4, "{task}, {method:?}");
                assert!((last - ends[0].1).abs() < 1e-4, "{task}, {method:?}");
            }
            if method == Method::IntegratedGradients && model.asks().form != InputForm::Node {
                let sum: f64 = found.values.iter().map(|&value| f64::from(value)).sum();
                let known = found.difference.expect("what they add up to");
                assert!((known - (ends[0].0 - ends[0].1)).abs() < 1e-4, "{task}");
                let near = 0.03 * known.abs().max(1.0);
                assert!((sum - known).abs() < near, "{task}: {sum} and {known}");
            }
        }
    }
    println!("explained: {explained:?}");
    assert_eq!(explained[..2], [CASES.len(); 2]);
    assert!(explained[2..].iter().all(|&count| count >= 2), "{explained:?}");
    Ok(())
}

#[test]
fn the_areas_of_a_part_are_the_means_over_its_examples() -> Result<()> {
    let course = Course::done("translate", CASES[0].1);
    let model = course.model();
    let found = Attribution::compute(model.as_ref(), Part::Validation, 3)?;
    assert_eq!(found.examples, 3);
    let examples = model.judge(Part::Validation)?.len();
    let places: Vec<usize> = (0..3).map(|at| at * examples / 3).collect();
    for areas in &found.methods {
        let how = How { method: areas.method, faithfulness: true };
        let each = places.iter().map(|&at| {
            let one = model.abilities().saliency(&Input::example(Part::Validation, at), how)?;
            Ok(one.faithfulness.expect("asked for").most.area)
        });
        match each.collect::<Result<Vec<f64>>>() {
            Ok(each) => {
                let mean = each.iter().sum::<f64>() / 3.0;
                let ours = areas.most.expect("an area");
                assert!((ours - mean).abs() < 1e-9, "{:?}: {ours} and {mean}", areas.method);
            }
            // Recurrent layers have no self-attention to follow.
            Err(error) => {
                assert_eq!(areas.method, Method::Rollout);
                assert_eq!(areas.refused, Some(error.to_string()));
            }
        }
    }
    let refused = |most| Attribution::compute(model.as_ref(), Part::Test, most).unwrap_err();
    assert_eq!(refused(0).to_string(), "`examples` cannot be 0; it wants 1 to 128");
    Ok(())
}

#[test]
fn a_method_that_is_not_there_is_refused_with_those_that_are() {
    let error: Error = "gradients".parse::<Method>().unwrap_err();
    assert!(error.to_string().starts_with("there is no method `gradients`; there are `gradient-"));
    for method in Method::ALL {
        assert_eq!(method.name().parse::<Method>().ok(), Some(method));
        assert_eq!(serde_json::to_value(method).unwrap(), method.name());
    }
}
