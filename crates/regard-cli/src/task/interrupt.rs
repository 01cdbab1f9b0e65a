//! Ctrl-C: the first asks for a checkpoint and an end, the second ends at once.

use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

/// The status of a program that Ctrl-C ended, by custom.
pub const STATUS: u8 = 130;

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

static ASKED: AtomicBool = AtomicBool::new(false);
static LISTENING: Once = Once::new();

/// From now on Ctrl-C only asks.
pub(super) fn listen() {
    LISTENING.call_once(|| {
        // Where signals cannot be caught, Ctrl-C ends the program as it always did.
        let _ = ctrlc::set_handler(|| {
            if ASKED.swap(true, Ordering::SeqCst) {
                std::process::exit(STATUS.into());
            }
        });
    });
}

/// Whether it was pressed.
pub(super) fn asked() -> bool {
    ASKED.load(Ordering::SeqCst)
}
