//! Every task learns and answers on a GPU as on the CPU. `REGARD_TEST_DEVICE` names the device; without a GPU an emulated
//! one stands in, for which a C++ compiler is needed.

use crate::course::{Course, StopAfter, options};
use regard::tensor::{Device, Optimizer, Random, UpdateRule, downloads, fallbacks};
use regard_tasks::Result;
use regard_tasks::options::TrainingConfig;
use regard_tasks::task::{Input, Placement};
use regard_tasks::tasks::{task_named, tasks};
use regard_tasks::train::{Callback, Ended, Silent, train};

#[path = "../../../regard-kernels/tests/emulator/gpu.rs"]
mod gpu;

/// Small enough that an emulated GPU does a step in a second.
const TINY: [&str; 4] = ["batch_size=2", "epochs=1", "training.seed=3", "learning_rate=0.01"];

/// A model of every kind of every task, with settings that make it small.
fn models() -> Vec<(&'static str, Vec<&'static str>)> {
    let small = &["size=12", "hidden=8", "embedding=8"][..];
    let kinds: &[(&str, &[&str])] = &[
        ("translate", &["score_hidden=8"]),
        ("translate", &["context=fixed", "encoder=lstm", "decoder=lstm"]),
        ("translate", &["encoder=cnn", "score=bilinear", "weighting=sparsemax"]),
        (
            "translate",
            &["encoder=transformer", "decoder=transformer", "context=multi-head", "heads=2"],
        ),
        ("summarize", &["score_hidden=8", "embedded=dates", "tokenizer=characters"]),
        ("transcribe", &["score_hidden=8"]),
        ("caption", &["score_hidden=8"]),
        ("draw", &["heads=2", "feed_forward=16", "layers=1", "image_size=16", "patch_size=8"]),
        ("answer", &[]),
        ("answer", &["encoder=gru", "weighting=argmax"]),
        ("answer", &["model=reader", "encoder=gru"]),
        (
            "label",
            &["encoder=transformer", "heads=2", "feed_forward=16", "layers=1", "position=rotary"],
        ),
        (
            "label",
            &[
                "encoder=transformer",
                "heads=2",
                "position=relative",
                "window=2",
                "norm_first=false",
            ],
        ),
        (
            "label",
            &["encoder=lstm", "characters=true", "character_hidden=8", "character_embedding=4"],
        ),
        ("label", &["encoder=fully-connected", "neighbors=1"]),
        ("label", &["kind=sound", "encoder=gru"]),
        ("classify", &["score_hidden=8"]),
        ("classify", &["encoder=rnn", "weighting=sample", "score=dot"]),
        ("classify", &["encoder=cnn", "pooling=max"]),
        ("classify", &["encoder=gru", "pooling=mean", "class_weights=balanced"]),
    ];
    let others: &[(&str, &[&str])] = &[
        (
            "image",
            &["size=12", "hidden=8", "heads=2", "feed_forward=16", "layers=1", "patch_size=8"],
        ),
        ("image", &["size=12", "hidden=8", "heads=2", "layers=1", "patch_size=8", "pooling=mean"]),
        ("image", &["size=12", "model.model=cnn", "channels=[4, 4]"]),
        ("graph", &["size=60", "labeled=2", "hidden=4", "heads=2"]),
        ("graph", &["size=60", "labeled=2", "hidden=4", "heads=2", "layer=gatv2"]),
        ("graph", &["embedded=touching", "size=24", "hidden=4", "heads=2"]),
        ("regress", &["size=20"]),
        ("regress", &["size=20", "per_column=true"]),
    ];
    let own = kinds.iter().map(|(task, own)| (*task, [&TINY[..], small, own].concat()));
    let others = others.iter().map(|(task, own)| (*task, [&TINY[..], own].concat()));
    own.chain(others).collect()
}

/// The losses of a few steps, how often each step waited for a GPU, and what the model then answers.
#[derive(Debug)]
struct LearnedModel {
    losses: Vec<f64>,
    waits: Vec<u64>,
    answers: Vec<String>,
}

fn learned(task: &str, settings: &[&str], device: Device) -> Result<LearnedModel> {
    let options = options(task, settings);
    let task = task_named(task)?;
    let config = TrainingConfig::of(&options)?;
    let mut learner = task.begin(&options)?;
    Placement::On(device).place(learner.model())?;
    // A gradient that is 0 but for rounding would move a parameter by the whole rate, were Adam's ε as small as it is.
    let rule = UpdateRule::Adam { betas: (0.9, 0.999), eps: 1e-4, weight_decay: 0.0 };
    let mut optimizer = Optimizer::new(learner.model().parameters(), rule)?;
    let batches = learner.batches(config.batch_size, &Random::new(1))?;
    let steps = std::env::var("REGARD_TEST_STEPS").map_or(2, |steps| steps.parse().unwrap());
    let (mut losses, mut waits) = (Vec::new(), Vec::new());
    for (at, batch) in batches.iter().cycle().take(steps).enumerate() {
        let before = downloads();
        let loss = learner.loss(batch, &Random::new(at as u64))?;
        if loss.has_gradient() {
            optimizer.step(&loss.backward()?, config.learning_rate)?;
        }
        waits.push(downloads() - before);
        losses.push(loss.item()?);
    }
    let inputs: Vec<Input> = learner.samples(1).into_iter().map(Input::from).collect();
    let model = learner.model();
    let mut answers: Vec<String> =
        model.predict(&inputs)?.into_iter().map(|answer| answer.output).collect();
    let scenes = model.show(&inputs[0]).map_or_else(
        |error| vec![error.to_string()],
        |scenes| scenes.into_iter().map(|(name, _)| name).collect(),
    );
    answers.extend(scenes);
    Ok(LearnedModel { losses, waits, answers })
}

/// The same text, or the same number but for rounding.
fn same_answer((a, b): (&String, &String)) -> bool {
    let close = |a: f64, b: f64| (a - b).abs() < 1e-4 * b.abs().max(1e-3);
    a == b || matches!((a.parse(), b.parse()), (Ok(a), Ok(b)) if close(a, b))
}

#[test]
#[ignore = "needs a GPU"]
fn on_the_gpu_every_task_learns_as_on_the_cpu() {
    let device: Device = std::env::var("REGARD_TEST_DEVICE").unwrap().parse().unwrap();
    let all = models();
    assert!(tasks().iter().all(|task| all.iter().any(|(name, _)| *name == task.name())));
    let mut wrong = Vec::new();
    for (task, settings) in &all {
        let here = learned(task, settings, Device::Cpu).unwrap();
        let apart = |(a, b): (&f64, &f64)| (a - b).abs() / b.abs().max(1e-6);
        let fault = match learned(task, settings, device) {
            Err(error) => Some(error.to_string()),
            Ok(there) => {
                let apart = there.losses.iter().zip(&here.losses).map(apart).fold(0.0, f64::max);
                let equal = apart < 1e-4
                    && there.answers.len() == here.answers.len()
                    && there.answers.iter().zip(&here.answers).all(same_answer)
                    && there.waits.iter().all(|waits| *waits == 0);
                (!equal).then(|| format!("{there:?}\nin place of {here:?}"))
            }
        };
        wrong.extend(fault.map(|fault| format!("{task} {settings:?}: {fault}")));
    }
    println!("{} models; computed by the CPU: {:?}", all.len(), fallbacks());
    assert!(wrong.is_empty(), "{} of {} are wrong:\n{}", wrong.len(), all.len(), wrong.join("\n"));
    assert!(fallbacks().is_empty(), "{:?}", fallbacks());
}

/// Trains a run for a while, or to its end, on a device.
fn go_on(course: &Course, device: Device, callback: &mut dyn Callback) -> Ended {
    let mut learner = course.task.begin(&course.options).unwrap();
    course.run.check_vocabulary(learner.model()).unwrap();
    Placement::On(device).place(learner.model()).unwrap();
    let config = TrainingConfig::of(&course.options).unwrap();
    train(learner.as_mut(), &config, &course.run, callback).unwrap()
}

#[test]
#[ignore = "needs a GPU"]
fn on_the_gpu_a_run_begins_and_on_the_cpu_it_goes_on_and_the_other_way_round() {
    let there: Device = std::env::var("REGARD_TEST_DEVICE").unwrap().parse().unwrap();
    let sampled = ["size=8", "hidden=4", "embedding=4", "score=dot", "weighting=sample"];
    let more = ["ema_decay=0.9", "clip_norm=1.0", "encoder=rnn", "validate_every=2", "epochs=2"];
    let settings = [&TINY[..], &sampled, &more].concat();
    let expected = Course::done("classify", &settings).records();
    for [first, then] in [[there, Device::Cpu], [Device::Cpu, there], [there, there]] {
        let course = Course::new("classify", &settings);
        assert_eq!(go_on(&course, first, &mut StopAfter(3)), Ended::Stopped);
        assert_eq!(go_on(&course, then, &mut Silent), Ended::Done);
        let records = course.records();
        assert_eq!(records.len(), expected.len());
        for (a, b) in records.iter().zip(&expected) {
            assert!((a.loss - b.loss).abs() < 1e-4 * b.loss, "{a:?} in place of {b:?}");
        }
    }
}

#[test]
#[ignore = "needs a C++ compiler"]
fn every_task_learns_on_an_emulated_gpu_as_on_the_cpu() {
    let said = gpu::emulated("device::on_the_gpu", true);
    assert!(said.contains("2 passed"), "{said}");
}
