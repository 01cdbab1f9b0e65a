//! Ctrl-C: the first asks for a checkpoint and an end, the second ends at once.

use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

static ASKED: AtomicBool = AtomicBool::new(false);
static LISTENING: Once = Once::new();

/// From now on Ctrl-C only asks.
pub(super) fn listen() {
    LISTENING.call_once(|| {
        // Where signals cannot be caught, Ctrl-C ends the program as it always did.
        let _ = ctrlc::set_handler(|| {
            if ASKED.swap(true, Ordering::SeqCst) {
                std::process::exit(130);
            }
        });
    });
}

/// Whether it was pressed.
pub(super) fn asked() -> bool {
    ASKED.load(Ordering::SeqCst)
}
