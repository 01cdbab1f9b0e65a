//! The file entrance of `regard attend`: any bytes give an answer or a sentence, never a panic.
//!
//! `cargo +nightly fuzz run attend_file`

#![no_main]

use libfuzzer_sys::fuzz_target;
use regard_cli::attend::attend_bytes;
use regard_cli::options::{NormaliserName, Options, ScoreName};
use regard_cli::room::Limits;

/// Sizes that a few bytes can name must not fill the memory or the afternoon.
const LIMITS: Limits = Limits { bytes: 1 << 22, pairs: 1 << 16 };

fuzz_target!(|file: &[u8]| {
    let mut options = Options { weights: true, lse: true, ..Options::default() };
    options.machine.threads = Some(1);
    for (score, normaliser, causal, reference) in [
        (ScoreName::ScaledDot, NormaliserName::Softmax, true, false),
        (ScoreName::Additive, NormaliserName::Entmax15, false, false),
        (ScoreName::Dot, NormaliserName::Sample, true, true),
    ] {
        let options = Options { score, normaliser, causal, reference, ..options.clone() };
        let _ = attend_bytes(file, &options, LIMITS);
    }
});
