//! Several ranks train as one process does: here ranks are threads.

#![allow(clippy::unwrap_used)] // a test that cannot go on says so by its panic

use regard_tasks::Result;
use regard_tasks::options::{Options, TrainingConfig};
use regard_tasks::run::{Record, Run};
use regard_tasks::tasks::task_named;
use regard_tasks::train::{Callback, Ended, Ranks, Silent, train, train_together};
use std::path::Path;
use std::sync::{Arc, Barrier, Mutex};

/// What the ranks of a test share.
struct Table {
    barrier: Barrier,
    numbers: Mutex<Vec<Vec<f32>>>,
    bytes: Mutex<Vec<u8>>,
}

struct Thread {
    rank: usize,
    size: usize,
    table: Arc<Table>,
}

fn threads(size: usize) -> Vec<Thread> {
    let table = Arc::new(Table {
        barrier: Barrier::new(size),
        numbers: Mutex::new(vec![Vec::new(); size]),
        bytes: Mutex::default(),
    });
    (0..size).map(|rank| Thread { rank, size, table: table.clone() }).collect()
}

impl Ranks for Thread {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn all_reduce(&mut self, numbers: &mut Vec<f32>) -> Result<()> {
        self.table.numbers.lock().unwrap()[self.rank] = numbers.clone();
        self.table.barrier.wait();
        let all = self.table.numbers.lock().unwrap().clone();
        assert!(all.iter().all(|one| one.len() == numbers.len()), "buffers differ in length");
        for (at, number) in numbers.iter_mut().enumerate() {
            *number = all.iter().map(|one| one[at]).sum();
        }
        self.table.barrier.wait();
        Ok(())
    }

    fn broadcast(&mut self, bytes: &mut Vec<u8>) -> Result<()> {
        if self.rank == 0 {
            *self.table.bytes.lock().unwrap() = bytes.clone();
        }
        self.table.barrier.wait();
        bytes.clone_from(&self.table.bytes.lock().unwrap());
        self.table.barrier.wait();
        Ok(())
    }
}

fn options(task: &str, settings: &[&str]) -> Options {
    let options = task_named(task).unwrap().options().unwrap();
    settings.iter().fold(options, |options, setting| options.set(setting).unwrap())
}

fn alone(task: &str, options: &Options, folder: &Path) -> Vec<Record> {
    let mut learner = task_named(task).unwrap().begin(options).unwrap();
    let run = Run::create(folder, task_named(task).unwrap(), options, learner.model()).unwrap();
    let config = TrainingConfig::of(options).unwrap();
    train(learner.as_mut(), &config, &run, &mut Silent).unwrap();
    Record::read(&run, usize::MAX).unwrap()
}

/// Stops after so many epochs.
struct StopAfter(usize, usize);

impl Callback for StopAfter {
    fn epoch(&mut self, _: &Record) {
        self.1 += 1;
    }

    fn stop(&self) -> bool {
        self.1 >= self.0
    }
}

/// Trains by so many ranks; one of them wants to stop after some epochs.
fn together(
    task: &'static str,
    options: &Options,
    folder: &Path,
    size: usize,
    stop: (usize, usize),
) -> Vec<Record> {
    std::thread::scope(|scope| {
        for mut rank in threads(size) {
            scope.spawn(move || {
                let named = task_named(task).unwrap();
                let mut learner = named.begin(options).unwrap();
                let run = (rank.rank == 0).then(|| match Run::resume(folder) {
                    Ok(run) => run,
                    Err(_) => Run::create(folder, named, options, learner.model()).unwrap(),
                });
                let config = TrainingConfig::of(options).unwrap();
                let after = if rank.rank == stop.0 { stop.1 } else { usize::MAX };
                let mut callback = StopAfter(after, 0);
                let ended = train_together(
                    learner.as_mut(),
                    &config,
                    run.as_ref(),
                    &mut rank,
                    &mut callback,
                );
                let expected = if stop.1 < config.epochs { Ended::Stopped } else { Ended::Done };
                assert_eq!(ended.unwrap(), expected);
            });
        }
    });
    Record::read(&Run::open(folder).unwrap(), usize::MAX).unwrap()
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-4 * a.abs().max(b.abs()) + 1e-6
}

const TRANSLATE: [&str; 8] = [
    "size=103",
    "epochs=3",
    "batch_size=16",
    "hidden=16",
    "embedding=16",
    "score_hidden=16",
    "dropout=0.0",
    "ema_decay=0.9",
];

#[test]
fn ranks_that_share_batches_measure_as_one_process_but_for_rounding() {
    let cases: [(&str, &[&str]); 3] = [
        ("translate", &TRANSLATE),
        ("graph", &["epochs=5", "dropout=0.0"]),
        ("regress", &["epochs=5"]),
    ];
    for (task, settings) in cases {
        let options = options(task, settings);
        let folder = tempfile::tempdir().unwrap();
        let one = alone(task, &options, &folder.path().join("one"));
        for size in [2, 3] {
            let place = folder.path().join(format!("ranks-{size}"));
            let several = together(task, &options, &place, size, (0, usize::MAX));
            assert_eq!(one.len(), several.len());
            for (a, b) in one.iter().zip(&several) {
                assert!(close(a.loss, b.loss), "{task}, {size} ranks: {a:?} {b:?}");
                for ((name, a), (_, b)) in a.validation.values.iter().zip(&b.validation.values) {
                    assert!(close(*a, *b), "{task}, {size} ranks, {name}: {a} {b}");
                }
            }
        }
    }
}

#[test]
fn where_one_rank_stops_all_stop_and_go_on_with_the_same_bits() {
    let options = options("translate", &TRANSLATE);
    let folder = tempfile::tempdir().unwrap();
    let (whole, parts) = (folder.path().join("whole"), folder.path().join("parts"));
    together("translate", &options, &whole, 2, (0, usize::MAX));
    assert_eq!(together("translate", &options, &parts, 2, (1, 1)).len(), 1);
    together("translate", &options, &parts, 2, (0, usize::MAX));
    for file in ["last.safetensors", "best.safetensors", "metrics.jsonl"] {
        let [a, b] = [&whole, &parts].map(|place| std::fs::read(place.join(file)).unwrap());
        assert!(a == b, "{file} differs");
    }
}

#[test]
fn hard_attention_keeps_one_baseline_for_all_ranks() {
    let settings = [&TRANSLATE[..], &["weighting=sample", "epochs=1"]].concat();
    let options = &options("translate", &settings);
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("run");
    let baselines: Vec<f64> = std::thread::scope(|scope| {
        let ranks = threads(2).into_iter().map(|mut rank| {
            let place = &place;
            scope.spawn(move || {
                let task = task_named("translate").unwrap();
                let mut learner = task.begin(options).unwrap();
                let create = || Run::create(place, task, options, learner.model()).unwrap();
                let run = (rank.rank == 0).then(create);
                let config = TrainingConfig::of(options).unwrap();
                let run = run.as_ref();
                train_together(learner.as_mut(), &config, run, &mut rank, &mut Silent).unwrap();
                learner.reinforce().unwrap().baseline().unwrap()
            })
        });
        let ranks: Vec<_> = ranks.collect();
        ranks.into_iter().map(|rank| rank.join().unwrap()).collect()
    });
    assert!(baselines[0] != 0.0 && baselines[0] == baselines[1], "{baselines:?}");
}
