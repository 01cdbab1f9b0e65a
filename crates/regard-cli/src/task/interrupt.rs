//! Ctrl-C and `kill`: the first asks for a checkpoint and an end, the second ends at once.

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Once};

/// What a verb ends with that stopped because it was asked to, after it said so: what runs it must
/// not take it for done.
#[derive(Debug)]
pub struct Interrupted;

impl std::fmt::Display for Interrupted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("stopped")
    }
}

impl std::error::Error for Interrupted {}

static ASKED: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);
/// The number of the signal that asked.
static SIGNAL: LazyLock<Arc<AtomicUsize>> = LazyLock::new(Arc::default);
static LISTENING: Once = Once::new();

/// From now on Ctrl-C and `kill` only ask.
pub(super) fn listen() {
    LISTENING.call_once(|| {
        let mut signals = vec![SIGINT, SIGTERM];
        #[cfg(unix)]
        if !hang_up_is_ignored() {
            signals.push(signal_hook::consts::SIGHUP);
        }
        for signal in signals {
            // Where a signal cannot be caught, it ends the program as it always did. The first
            // action looks whether somebody has asked before.
            let _ = flag::register_conditional_shutdown(signal, 128 + signal, ASKED.clone());
            let _ = flag::register_usize(signal, SIGNAL.clone(), signal as usize);
            let _ = flag::register(signal, ASKED.clone());
        }
    });
}

/// Whether the end of the terminal is none of this process's business, as `nohup` arranges it.
#[cfg(unix)]
fn hang_up_is_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    // Where nothing is known, a run that goes on is the lesser surprise.
    ignored.is_none_or(|mask| mask & 1 << (signal_hook::consts::SIGHUP - 1) != 0)
}

/// Whether somebody asked.
pub(super) fn asked() -> bool {
    ASKED.load(Ordering::SeqCst)
}

/// The status of a program that a signal ended, by custom: 130 for Ctrl-C, 143 for `kill`.
pub fn status() -> u8 {
    match SIGNAL.load(Ordering::SeqCst) {
        0 => 130,
        signal => (128 + signal) as u8,
    }
}
