//! The file entrance of `regard attend`: any bytes give an answer or a sentence, never a panic.
//!
//! `cargo +nightly fuzz run attend_file`

#![no_main]

use libfuzzer_sys::fuzz_target;
use regard_cli::attend::attend_bytes;
use regard_cli::options::{NormalizerName, Options, ScoreName};
use regard_cli::limits::Limits;

/// Sizes that a few bytes can name must not fill the memory or the afternoon.
const LIMITS: Limits = Limits { bytes: 1 << 22, pairs: 1 << 16 };

fuzz_target!(|file: &[u8]| {
    let mut options = Options { weights: true, lse: true, ..Options::default() };
    options.machine.threads = Some(1);
    for (score, normalizer, causal, reference) in [
        (ScoreName::ScaledDot, NormalizerName::Softmax, true, false),
        (ScoreName::Additive, NormalizerName::Entmax15, false, false),
        (ScoreName::Dot, NormalizerName::Sample, true, true),
    ] {
        let options = Options { score, normalizer, causal, reference, ..options.clone() };
        let _ = attend_bytes(file, &options, LIMITS);
    }
});
