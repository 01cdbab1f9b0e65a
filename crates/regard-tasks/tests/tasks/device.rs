//! Every task learns and answers on a GPU as on the CPU. `REGARD_TEST_DEVICE` names the device; without a GPU an emulated
//! one stands in, for which a C++ compiler is needed.

use crate::course::options;
use regard::tensor::{Device, Optimizer, Random, fallbacks};
use regard_tasks::options::TrainingConfig;
use regard_tasks::task::{Input, Placement};
use regard_tasks::tasks::{task_named, tasks};

#[path = "../../../regard-kernels/tests/emulator/gpu.rs"]
mod gpu;

/// Small enough that an emulated GPU does a step in a second.
const TINY: [&str; 4] = ["batch=2", "epochs=1", "training.seed=3", "rate=0.01"];

/// A model of every kind of every task, with settings that make it small.
fn models() -> Vec<(&'static str, Vec<&'static str>)> {
    let rnn = &["size=12", "hidden=8", "embedding=8", "score_hidden=8"][..];
    let transformer =
        &["size=12", "hidden=8", "embedding=8", "heads=2", "feed_forward=16", "layers=1"][..];
    let kinds: &[(&str, &[&str], &[&str])] = &[
        ("translate", rnn, &[]),
        ("translate", rnn, &["context=fixed", "cell=lstm"]),
        ("translate", transformer, &["encoder=transformer", "decoder=transformer", "context=multi-head"]),
        ("summarize", rnn, &["embedded=dates", "tokenizer=characters"]),
        ("transcribe", rnn, &[]),
        ("caption", rnn, &[]),
        ("answer", rnn, &[]),
        ("answer", rnn, &["model=reader", "encoder=gru"]),
        ("label", rnn, &[]),
        ("label", transformer, &["encoder=transformer"]),
        ("label", rnn, &["kind=sound"]),
        ("classify", rnn, &[]),
        ("image", transformer, &["side=8", "patch=4"]),
        ("image", &["size=12"], &["model.model=cnn"]),
        ("graph", &["size=24", "hidden=8"], &[]),
        ("regress", &["size=20"], &[]),
    ];
    let all = kinds.iter().map(|(task, small, own)| (*task, [&TINY[..], small, own].concat()));
    all.collect()
}

/// The losses of a few steps, and what the model then answers.
fn learned(task: &str, settings: &[&str], device: Device) -> (Vec<f64>, Vec<String>) {
    let options = options(task, settings);
    let task = task_named(task).unwrap();
    let config = TrainingConfig::of(&options).unwrap();
    let mut learner = task.begin(&options).unwrap();
    Placement::On(device).place(learner.model()).unwrap();
    let mut optimizer = Optimizer::new(learner.model().parameters(), config.rule()).unwrap();
    let batches = learner.batches(config.batch, &Random::new(1)).unwrap();
    let steps = std::env::var("REGARD_TEST_STEPS").map_or(3, |steps| steps.parse().unwrap());
    let mut losses = Vec::new();
    for (at, batch) in batches.iter().cycle().take(steps).enumerate() {
        let loss = learner.loss(batch, &Random::new(at as u64)).unwrap();
        losses.push(loss.item().unwrap());
        if loss.has_gradient() {
            optimizer.step(&loss.backward().unwrap(), config.rate).unwrap();
        }
    }
    let inputs: Vec<Input> = learner.samples(1).into_iter().map(Input::from).collect();
    let model = learner.model();
    let mut answers: Vec<String> =
        model.predict(&inputs).unwrap().into_iter().map(|answer| answer.output).collect();
    answers.extend(model.show(&inputs[0]).unwrap_or_default().into_iter().map(|(name, _)| name));
    (losses, answers)
}

#[test]
#[ignore = "needs a GPU"]
fn on_the_gpu_every_task_learns_as_on_the_cpu() {
    let device: Device = std::env::var("REGARD_TEST_DEVICE").unwrap().parse().unwrap();
    let all = models();
    assert!(tasks().iter().all(|task| all.iter().any(|(name, _)| *name == task.name())));
    for (task, settings) in &all {
        let name = format!("{task} {settings:?}");
        let (there, here) = (learned(task, settings, device), learned(task, settings, Device::Cpu));
        let apart = |(a, b): (&f64, &f64)| (a - b).abs() / b.abs().max(1e-6);
        let apart = there.0.iter().zip(&here.0).map(apart).fold(0.0, f64::max);
        assert!(apart < 1e-4, "{name}: losses {:?} and {:?}", there.0, here.0);
        assert_eq!(there.1, here.1, "{name}");
    }
    println!("{} models; computed by the CPU: {:?}", all.len(), fallbacks());
    assert!(fallbacks().is_empty(), "{:?}", fallbacks());
}

#[test]
#[ignore = "needs a C++ compiler"]
fn every_task_learns_on_an_emulated_gpu_as_on_the_cpu() {
    let said = gpu::emulated("device::on_the_gpu", true);
    assert!(said.contains("1 passed"), "{said}");
}
