//! What is seen of a training: a bar in a terminal, plain lines elsewhere.

use super::phase_bar::{self, PhaseBar};
use super::{interrupt, table};
use crate::heap;
use indicatif::{ProgressBar, ProgressStyle};
use regard_tasks::run::Record;
use regard_tasks::train::{Callback, Plan, Progress};
use std::io::{IsTerminal, Write, stderr};
use std::time::{Duration, Instant};

/// Shows a training on standard error.
pub(super) struct ProgressReport {
    bar: Option<ProgressBar>,
    plan: Option<Plan>,
    begun: Instant,
    /// Examples since the training or the epoch's line began.
    examples: usize,
    batches: usize,
    epoch_began: Instant,
    /// The last validation's deciding measure, as text.
    measure: String,
    /// Whether it has been said how long it will take.
    estimated: bool,
    /// Shows validation.
    _phases: PhaseBar,
}

/// Bytes of a training for each parameter: its value, its gradient and the optimizer's two means.
pub(super) const TRAINING_BYTES: usize = 16;

/// After so long the pace is known.
const ESTIMATE: Duration = Duration::from_secs(5);

impl ProgressReport {
    pub(super) fn new() -> Self {
        interrupt::listen();
        let now = Instant::now();
        Self {
            bar: None,
            plan: None,
            begun: now,
            examples: 0,
            batches: 0,
            epoch_began: now,
            measure: String::new(),
            estimated: false,
            _phases: PhaseBar::new(),
        }
    }

    fn line(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.println(text),
            None => {
                // A closed standard error is no reason to stop.
                let _ = writeln!(stderr(), "{text}");
            }
        }
    }

    /// The time left, at the pace so far.
    fn left(&self, progress: &Progress) -> String {
        let Some(plan) = &self.plan else { return String::new() };
        let all = plan.epochs * progress.batches;
        let done = (progress.epoch - 1) * progress.batches + progress.batch;
        let pace = self.begun.elapsed().as_secs_f64() / self.batches.max(1) as f64;
        table::seconds(pace * all.saturating_sub(done) as f64)
    }
}

impl Callback for ProgressReport {
    fn note(&mut self, text: &str) {
        self.line(text);
    }

    fn begin(&mut self, plan: &Plan) {
        self.line(&format!(
            "{}, {} with gradients and optimizer; {} of {}",
            table::count(plan.parameters, "parameter", "parameters"),
            table::bytes(plan.parameters.saturating_mul(TRAINING_BYTES)),
            table::count(plan.epochs, "epoch", "epochs"),
            table::count(plan.batches, "batch", "batches")
        ));
        if plan.done > 0 || plan.batch > 0 {
            let batches = table::count(plan.batch, "batch", "batches");
            self.line(&format!("resumed after epoch {} and {batches}", plan.done));
        }
        if stderr().is_terminal() {
            let bar = ProgressBar::new(plan.batches as u64);
            let style = ProgressStyle::with_template("{msg} {wide_bar} {pos}/{len}");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            self.bar = Some(bar);
        }
        (self.plan, self.begun, self.epoch_began) = (Some(*plan), Instant::now(), Instant::now());
    }

    fn batch(&mut self, progress: &Progress) {
        self.examples += progress.examples;
        self.batches += 1;
        if !self.estimated && self.begun.elapsed() > ESTIMATE {
            self.estimated = true;
            let (left, memory) = (self.left(progress), table::bytes(heap::peak()));
            self.line(&format!("about {left} of training to go, in {memory} of memory so far"));
        }
        if let Some(bar) = &self.bar {
            bar.set_length(progress.batches as u64);
            bar.set_position(progress.batch as u64);
            let speed = self.examples as f64 / self.epoch_began.elapsed().as_secs_f64().max(1e-9);
            bar.set_message(format!(
                "epoch {} loss {:.4}{} {speed:.0}/s {} left",
                progress.epoch,
                progress.loss,
                self.measure,
                self.left(progress)
            ));
        }
    }

    fn epoch(&mut self, record: &Record) {
        phase_bar::clear();
        let speed = self.examples as f64 / self.epoch_began.elapsed().as_secs_f64().max(1e-9);
        let (name, value) = record.validation.first();
        self.measure = format!(" {name} {}", table::measure(value));
        let measures: Vec<String> = record
            .validation
            .values
            .iter()
            .map(|(name, value)| format!("{name} {}", table::measure(*value)))
            .collect();
        self.line(&format!(
            "epoch {:>3}  training loss {:.4}  {}  {speed:.0}/s  {}{}",
            record.epoch,
            record.loss,
            measures.join("  "),
            table::seconds(record.seconds),
            if record.best { "  best" } else { "" }
        ));
        (self.examples, self.epoch_began) = (0, Instant::now());
    }

    fn stop(&self) -> bool {
        interrupt::asked()
    }
}

impl Drop for ProgressReport {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
