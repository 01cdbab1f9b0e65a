//! What is seen of a long phase that is no training: a bar in a terminal.

use super::interrupt;
use indicatif::{ProgressBar, ProgressStyle};
use regard_data::{Watch, watch};
use std::io::{IsTerminal, stderr};
use std::sync::Mutex;

/// The bar of the phase that is on.
static BAR: Mutex<Option<ProgressBar>> = Mutex::new(None);

/// Shows the phases of this thread on standard error while it lives, and stops them where Ctrl-C
/// asks for that.
pub(super) struct PhaseBar;

impl PhaseBar {
    pub(super) fn new() -> Self {
        watch(Some(Watch { progress: show, stop: interrupt::asked }));
        Self
    }
}

impl Drop for PhaseBar {
    fn drop(&mut self) {
        watch(None);
        clear();
    }
}

/// Takes the bar away, so that lines can be written.
pub(super) fn clear() {
    if let Some(bar) = BAR.lock().unwrap_or_else(|e| e.into_inner()).take() {
        bar.finish_and_clear();
    }
}

fn show(phase: &str, done: usize, all: usize) {
    if !stderr().is_terminal() {
        return;
    }
    if done >= all {
        return clear();
    }
    let mut bar = BAR.lock().unwrap_or_else(|e| e.into_inner());
    let bar = bar.get_or_insert_with(|| {
        let bar = ProgressBar::new(all as u64);
        let style = ProgressStyle::with_template("{msg} {wide_bar} {pos}/{len} {eta} left");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        bar
    });
    bar.set_length(all as u64);
    bar.set_message(phase.to_string());
    bar.set_position(done as u64);
}
