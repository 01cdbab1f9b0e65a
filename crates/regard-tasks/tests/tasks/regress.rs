//! `regress`, from data to pictures.

use crate::course;

use course::{Course, refusal, resumes_exactly, set};
use regard_picture::scene::Scene;
use regard_tasks::task::Part;
use regard_tasks::tasks::task_named;
use std::path::Path;

fn score(course: &Course, name: &str) -> f64 {
    course.model().evaluate(Part::Test).unwrap().scores.get(name).unwrap()
}

fn setting(key: &str, path: &Path) -> String {
    format!("data.{key}={:?}", path.display().to_string())
}

/// z = x + 2 y over a grid.
fn plane(folder: &Path) -> String {
    let rows = (0..100).map(|at| (f64::from(at / 10), f64::from(at % 10)));
    let rows: String = rows.map(|(x, y)| format!("{x},{y},{}\n", x + 2.0 * y)).collect();
    let path = folder.join("plane.csv");
    std::fs::write(&path, format!("x,y,z\n{rows}")).unwrap();
    setting("train", &path)
}

#[test]
fn a_learned_width_is_better_than_a_fixed_one_and_both_than_the_mean() {
    let [mean, fixed, learned] = ["mean", "fixed width", "learned width"].map(|name| {
        let variants = task_named("regress").unwrap().comparison();
        let variant = variants.iter().find(|variant| variant.name == name).unwrap();
        let settings: Vec<&str> = variant.settings.iter().map(String::as_str).collect();
        let course = Course::done("regress", &settings);
        (score(&course, "R²"), score(&course, "MSE"))
    });
    assert!(mean.0.abs() < 0.1, "{mean:?}");
    assert!(fixed.0 > mean.0 + 0.1, "{fixed:?}, {mean:?}");
    // The noise alone has a variance of 0.25.
    assert!(learned.0 > 0.7 && learned.1 < 0.4, "{learned:?}");
    assert!(learned.1 < 0.8 * fixed.1, "{learned:?}, {fixed:?}");
}

#[test]
fn every_score_of_attention_is_learned_measured_and_drawn() {
    let tried = ["dot", "scaled-dot", "additive", "concat", "bilinear", "low-rank", "expression"]
        .map(|score| {
            let score = format!("score={score}");
            let course = Course::done("regress", &["size=100", "epochs=20", &score]);
            assert_eq!(course.drawn("2.5"), ["curve"]);
            let report = course.model().evaluate(Part::Test).unwrap();
            let losses: Vec<f64> = course.records().iter().map(|record| record.loss).collect();
            let (first, last) = (losses[0], losses[losses.len() - 1]);
            // Dot products have no parameters here.
            match ["score=dot", "score=scaled-dot"].contains(&&score[..]) {
                true => assert_eq!(first, last, "{score}"),
                false => assert!(last < 0.999 * first, "{score}: {losses:?}"),
            }
            (course.model().learned(), report.scores.get("R²").unwrap())
        });
    // Parameters of 1-wide data: 16 (1 + 1 + 1) of an additive score, one number of a bilinear one.
    assert_eq!(tried.map(|(learned, _)| learned), [0, 0, 48, 48, 1, 32, 1]);
    // The written score is a kernel too, of the distance itself, and learns its width.
    assert!(tried[6].1 > 0.5, "{tried:?}");
}

#[test]
fn scores_that_cannot_tell_queries_apart_are_refused_and_learn_where_they_can() {
    let one = refusal("regress", &["size=60", "score=cosine"]);
    assert!(
        one.starts_with("`model.score=cosine` compares directions, of which one column has two"),
        "{one}"
    );
    let alike = refusal("regress", &["size=60", "score=concat", "score_hidden=0"]);
    assert!(alike.contains("all queries weigh the points alike"), "{alike}");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("two.csv");
    // What is predicted is the angle's cosine.
    let row = |at: usize| {
        let angle = at as f64 * 0.7;
        format!("{},{},{}\n", angle.cos() * (1.0 + at as f64 % 3.0), angle.sin(), angle.cos())
    };
    std::fs::write(&path, (0..60).map(row).collect::<String>()).unwrap();
    let own = format!("train={:?}", path.display().to_string());
    let course = Course::done("regress", &[&own, "score=cosine", "epochs=20"]);
    let losses: Vec<f64> = course.records().iter().map(|record| record.loss).collect();
    assert!(losses[losses.len() - 1] < 0.999 * losses[0], "{losses:?}");
    let refused = refusal("regress", &[&own, "score=concat", "score_hidden=0"]);
    assert!(refused.contains("all queries weigh the points alike"), "{refused}");
    std::fs::write(&path, (0..60).map(|at| format!("1,2,{at}\n")).collect::<String>()).unwrap();
    let refused = refusal("regress", &[&own]);
    assert!(refused.contains("there is nothing to predict it from"), "{refused}");
}

#[test]
fn stopped_and_resumed_or_straight_the_bits_are_the_same() {
    resumes_exactly("regress", &["epochs=13", "validate_every=4", "size=60"], 7);
    resumes_exactly("regress", &["epochs=13", "validate_every=4", "size=60", "per_column=true"], 8);
}

#[test]
fn the_same_settings_give_the_same_measures() {
    let records = Course::done("regress", &["epochs=10"]).records();
    assert_eq!(records, Course::done("regress", &["epochs=10"]).records());
    assert!(records[1].loss < records[0].loss);
}

#[test]
fn the_data_that_it_keeps_are_no_parameters() {
    for (settings, learned) in [
        (&["learn_bandwidth=true"][..], 1),
        (&["learn_bandwidth=false"], 0),
        (&["learn_bandwidth=true", "nearest=10"], 1),
    ] {
        let course = Course::done("regress", &[settings, &["epochs=1"]].concat());
        let model = course.model();
        assert_eq!(model.learned(), learned, "{settings:?}");
        assert!(model.parameters().numel() > 200, "the data lie beside it");
    }
}

#[test]
fn the_curve_is_drawn_with_its_kernel_and_its_truth() {
    for model in ["kernel", "mean"] {
        let course = Course::done("regress", &["size=50", &format!("model.model={model}")]);
        assert_eq!(course.drawn("2.5"), ["curve"]);
        let scenes = course.model().show(&"7".into()).unwrap();
        let Scene::Curve(scene) = &scenes[0].1 else { panic!("no curve") };
        assert_eq!((scene.x.len(), scene.y.len()), (50, 50));
        assert!(scene.at.is_sorted() && scene.at.last() == Some(&7.0));
        assert_eq!(scene.truth.as_ref().unwrap().len(), scene.at.len());
        assert!(scene.x.iter().all(|x| (0.0..5.0).contains(x)), "as they were measured");
        for row in scene.maps[0].weights.chunks(50) {
            assert!((row.iter().sum::<f32>() - 1.0).abs() < 1e-4);
        }
    }
}

#[test]
fn a_table_of_three_columns_is_learned_measured_and_predicted() {
    let folder = tempfile::tempdir().unwrap();
    let own = plane(folder.path());
    let course = Course::done("regress", &[&own, "epochs=100"]);
    assert!(score(&course, "R²") > 0.95);
    let report = course.model().evaluate(Part::Test).unwrap();
    assert_eq!((report.examples, report.outputs.len()), (10, 10));
    let predictions = course.model().predict(&["4.5, 5".into()]).unwrap();
    let told: f64 = predictions[0].output.parse().unwrap();
    assert!((told - 14.5).abs() < 1.0, "{told}");
    let near = &predictions[0].details["heaviest"];
    assert_eq!(near.as_array().unwrap().len(), 5);
    assert!((near[0]["y"].as_f64().unwrap() - 14.5).abs() < 3.0);

    assert_eq!(course.drawn("4,5"), ["weights"]);
    let refused = |input: &str| course.model().predict(&[input.into()]).unwrap_err().to_string();
    assert_eq!(refused("4"), "`4` is not 2 numbers with commas between: x, y");
    assert_eq!(refused("4,nan"), "`4,nan` is not 2 numbers with commas between: x, y");

    let description = course.task.describe(&course.options).unwrap();
    assert_eq!(description.facts[0], ("training rows".into(), "80".into()));
    let last = &description.facts[5];
    assert!(last.0 == "column z" && last.1.ends_with("predicted from the others"), "{last:?}");
    assert_eq!(description.examples[0].matches(',').count(), 1);
}

#[test]
fn validation_and_test_may_have_files_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let [train, other] = ["train.csv", "other.csv"].map(|name| folder.path().join(name));
    std::fs::write(&train, "0;0\n".replace(';', ",").repeat(3) + "1,1\n2,2\n").unwrap();
    std::fs::write(&other, "0.5,0.5\n1.5,1.5\n").unwrap();
    let own = [setting("train", &train), setting("validation", &other), setting("test", &other)];
    let own: Vec<&str> = own.iter().map(String::as_str).collect();
    let course = Course::done("regress", &own);
    assert_eq!(course.model().evaluate(Part::Training).unwrap().examples, 5);
    assert_eq!(course.model().evaluate(Part::Test).unwrap().examples, 2);
    let learner = course.task.begin(&course.options).unwrap();
    assert_eq!(learner.samples(3), ["0.5", "1.5"]);

    std::fs::write(&other, "1,2,3\n").unwrap();
    let error = course.model().evaluate(Part::Test).unwrap_err().to_string();
    assert_eq!(error, "the test part has 3 columns; the model was made for 2");
}

#[test]
fn what_cannot_be_is_refused_in_a_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bad.csv");
    let own = setting("train", &path);
    std::fs::write(&path, "x,y\n1,2\n3,four\n").unwrap();
    let bad = format!("{}, line 3: column y: `four` is not a finite number", path.display());
    assert_eq!(refusal("regress", &[&own]), bad);
    std::fs::write(&path, "1,2\n").unwrap();
    assert!(refusal("regress", &[&own]).contains("1 data to learn from"));
    assert_eq!(
        refusal("regress", &["bandwidth=0.0"]),
        "`model.bandwidth` cannot be 0; it is above 0"
    );
    for of_gaussian in
        ["bandwidth=0.5", "learn_bandwidth=false", "per_column=true", "windowed=true"]
    {
        let options = set("regress", &["score=additive", of_gaussian]);
        let refused = task_named("regress").unwrap().begin(&options).err().unwrap().to_string();
        let why = format!("`model.{of_gaussian}` has no effect with `model.score=additive`");
        assert!(refused.starts_with(&why), "{refused}");
    }
    assert!(refusal("regress", &["model.model=spline"]).contains("spline"));
    assert!(refusal("regress", &["held_out=0.5"]).contains("held_out"));
    assert!(refusal("regress", &["encoding=klingon", &own]).contains("klingon"));
}
