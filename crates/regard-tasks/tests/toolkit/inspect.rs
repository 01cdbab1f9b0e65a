//! What heads are worth, what they do, and what is changed of them.

use crate::course::Course;
use regard::attention::{HeadRef, Intervention, Site};
use regard_tasks::inspect::{Ablation, Change, Does, Profile, intervention};
use regard_tasks::task::{Input, Part};
use regard_tasks::{Error, Result};

const TINY: [&str; 4] = ["size=60", "epochs=1", "embedding=8", "hidden=8"];

fn transformer() -> Course {
    let more = [
        "encoder=transformer",
        "decoder=transformer",
        "context=multi-head",
        "layers=1",
        "heads=2",
        "beam=1",
    ];
    Course::done("translate", &[&TINY[..], &more].concat())
}

fn quiet(_: &Ablation, _: usize, _: usize) -> Result<()> {
    Ok(())
}

#[test]
fn the_ablation_of_a_head_is_the_measure_with_it_off_less_that_of_the_whole() -> Result<()> {
    let course = transformer();
    let model = course.model();
    let mut steps = Vec::new();
    let mut told = |found: &Ablation, done, all| {
        let known = found.heads.iter().chain(&found.layers);
        let known = known.flat_map(|one| [one.zero, one.mean]).flatten().count();
        assert_eq!(known, done);
        steps.push((done, all));
        Ok(())
    };
    let found = Ablation::compute(model.as_ref(), Part::Validation, &mut told)?;
    // Three attentions of a layer with two heads, and every layer as a whole: twice.
    assert_eq!((found.heads.len(), found.layers.len()), (6, 3));
    assert_eq!((steps.len(), steps.last()), (19, Some(&(18, 18))));
    let whole = model.evaluate(Part::Validation)?.scores;
    assert_eq!((&found.measure[..], found.whole), whole.first());
    for one in found.heads.iter().chain(&found.layers) {
        let off = HeadRef { site: one.site, layer: Some(one.layer), head: one.head };
        let off = Intervention { heads: vec![off], ..Intervention::default() };
        let without = off.during(|| model.evaluate(Part::Validation))?.scores.first().1;
        assert_eq!(one.zero, Some(without - found.whole), "{one:?}");
    }
    // The same again, and kept by the run for its checkpoint alone.
    let mut again = Ablation::compute(model.as_ref(), Part::Validation, &mut quiet)?;
    assert_eq!(again, found);
    assert_eq!(Ablation::kept(&course.run, Part::Validation), None);
    again.keep(&course.run, Ablation::step_of(&course.run))?;
    assert_eq!(Ablation::kept(&course.run, Part::Validation), Some(again));
    assert_eq!(Ablation::kept(&course.run, Part::Test), None);
    // Whoever watches ends it.
    let mut stop = |_: &Ablation, done: usize, _: usize| match done {
        3 => Err(Error::Stopped),
        _ => Ok(()),
    };
    let ended = Ablation::compute(model.as_ref(), Part::Validation, &mut stop);
    assert!(matches!(ended, Err(Error::Stopped)));
    Ok(())
}

#[test]
fn every_task_has_an_ablation_and_a_profile_or_says_why_not() -> Result<()> {
    let cases: [(&str, &[&str]); 10] = [
        ("translate", &["size=60", "epochs=1", "embedding=8", "hidden=8", "score_hidden=8"]),
        ("translate", &["size=60", "epochs=1", "embedding=8", "hidden=8", "context=fixed"]),
        ("label", &["size=60", "epochs=1", "encoder=transformer", "hidden=8", "heads=2"]),
        ("classify", &["size=60", "epochs=1", "hidden=8", "embedding=8", "score_hidden=8"]),
        ("image", &["size=60", "epochs=1", "hidden=16"]),
        ("graph", &["epochs=1"]),
        ("graph", &["embedded=touching", "size=60", "epochs=1", "heads=2"]),
        ("regress", &["epochs=1"]),
        ("answer", &["size=60", "epochs=1"]),
        ("summarize", &["size=40", "epochs=1", "embedding=8", "hidden=8", "score_hidden=8"]),
    ];
    let mut counts = [0, 0];
    for (task, settings) in cases {
        let course = Course::done(task, settings);
        let model = course.model();
        match Ablation::compute(model.as_ref(), Part::Test, &mut quiet) {
            Ok(found) => {
                counts[0] += 1;
                assert!(found.examples > 0 && !found.heads.is_empty(), "{task}");
                let all = found.heads.iter().chain(&found.layers);
                all.for_each(|one| assert!(one.zero.is_some() && one.mean.is_some(), "{task}"));
            }
            Err(error) => {
                assert!(
                    error.to_string().contains("no attention that could be"),
                    "{task}: {error}"
                );
                assert!(settings.contains(&"context=fixed"), "{task}");
            }
        }
        match Profile::compute(model.as_ref(), Part::Test) {
            Ok(found) => {
                counts[1] += 1;
                for head in &found.heads {
                    assert!(head.queries > 0 && !head.strongest.is_empty(), "{task}: {head:?}");
                    let shares = [head.previous, head.itself, head.next, Some(head.sharpness)];
                    let is_share = |x: f64| (0.0..=1.0 + 1e-6).contains(&x);
                    assert!(shares.into_iter().flatten().all(is_share), "{task}: {head:?}");
                    assert!(head.spread <= head.keys + 1e-6, "{task}: {head:?}");
                    assert!(!head.sentence().is_empty());
                }
            }
            Err(error) => {
                let said = error.to_string();
                assert!(said.contains("no heads") || said.contains("attends to nothing"), "{said}");
            }
        }
    }
    assert_eq!(counts, [9, 8]);
    Ok(())
}

#[test]
fn a_head_made_to_look_one_word_back_is_found_out() -> Result<()> {
    let settings = ["size=60", "epochs=1", "encoder=transformer", "hidden=8", "heads=2"];
    let course = Course::done("label", &settings);
    let model = course.model();
    // A window of one leaves a word and its neighbors; of these the word and the next are forbidden
    // by a bias, row by row.
    let mut change = Intervention { window: Some(1), ..Intervention::default() };
    for row in 0..200 {
        for column in [row, row + 1] {
            let (site, layer) = (Site::Encoder, Some(0));
            let (head, row, bias) = (Some(1), Some(row), Some(-1e4));
            change.cells.push(regard::attention::CellChange {
                site,
                layer,
                head,
                row,
                column,
                bias,
            });
        }
    }
    let found = change.during(|| Profile::compute(model.as_ref(), Part::Test))?;
    let head = found.heads.iter().find(|one| (one.layer, one.head) == (0, 1)).unwrap();
    let Does::Previous { share } = head.does else { panic!("{head:?}") };
    // All but the first word, which has none before it.
    let words = head.keys;
    assert!(share > 0.5 && share <= 1.0 && words > 1.0, "{head:?}");
    assert!(head.sentence().starts_with("mostly looks one word back"));
    assert!(head.same_label.is_some() && head.label.is_some());
    Ok(())
}

#[test]
fn changes_compose_and_what_is_not_there_is_refused() -> Result<()> {
    let course = transformer();
    let model = course.model();
    let input = Input::example(Part::Test, 0);
    let read = |json: &str| serde_json::from_str::<Vec<Change>>(json).unwrap();
    let ask = |json: &str| {
        let change = intervention(model.as_ref(), &input, &read(json))?;
        change.during(|| model.predict(std::slice::from_ref(&input)))
    };
    let plain = model.predict(std::slice::from_ref(&input))?;
    assert_eq!(ask("[]")?, plain);
    // A head that is put from the same input changes nothing.
    for what in ["attention", "output"] {
        for (site, layer, head) in [("encoder", 0, 1), ("encoder", 0, 0), ("cross", 0, 1)] {
            let patch = format!(
                r#"[{{"change": "patch", "site": "{site}", "layer": {layer}, "head": {head},
                     "from": "test:0", "what": "{what}"}}]"#
            );
            let (own, same) = (&ask(&patch)?[0], &plain[0]);
            assert_eq!(own.output, same.output);
            let score =
                |one: &regard_tasks::task::Prediction| one.details["score"].as_f64().unwrap();
            assert!((score(own) - score(same)).abs() < 1e-4, "{what}");
        }
    }
    let off = r#"[{"change": "off", "site": "cross", "layer": null, "head": null},
                  {"change": "temperature", "value": 2.5},
                  {"change": "forbid", "site": "encoder", "column": 0}]"#;
    assert_ne!(ask(off)?[0].details["score"], plain[0].details["score"]);
    let cases = [
        (r#"[{"change": "off", "site": "hops"}]"#, "no hops attention"),
        (r#"[{"change": "off", "site": "encoder", "layer": 7}]"#, "no encoder attention, layer 7"),
        (r#"[{"change": "off", "site": "encoder", "layer": 0, "head": 9}]"#, "layer 0, head 9"),
        (r#"[{"change": "forbid", "site": "encoder", "column": 99}]"#, "column 99"),
        (r#"[{"change": "temperature", "value": 0}]"#, "a temperature of 0"),
        (
            r#"[{"change": "temperature", "value": 1}, {"change": "temperature", "value": 2}]"#,
            "two changes of the temperature",
        ),
        (
            r#"[{"change": "patch", "site": "encoder", "layer": 0, "head": 5, "from": "test:1",
                 "what": "output"}]"#,
            "no head 5",
        ),
    ];
    for (json, said) in cases {
        let error = ask(json).unwrap_err().to_string();
        assert!(error.contains(said), "{error}");
    }
    assert!(serde_json::from_str::<Change>(r#"{"change": "of", "site": "encoder"}"#).is_err());
    assert!(serde_json::from_str::<Change>(r#"{"change": "window", "reach": 1, "x": 2}"#).is_err());
    Ok(())
}
