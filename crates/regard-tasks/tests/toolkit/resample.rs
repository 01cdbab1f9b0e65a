//! Recordings at another rate: against the tone itself, and what must not be heard.

use regard_data::files::Waveform;

fn tone(hertz: f64, rate: u32, count: usize) -> Waveform {
    let angle = |n: usize| std::f64::consts::TAU * hertz * n as f64 / f64::from(rate);
    Waveform { samples: (0..count).map(|n| angle(n).sin() as f32).collect(), rate }
}

/// The rates that recordings have, up and down.
const RATES: [(u32, u32); 8] = [
    (44_100, 16_000),
    (48_000, 16_000),
    (16_000, 8_000),
    (22_050, 16_000),
    (8_000, 16_000),
    (8_000, 44_100),
    (11_025, 8_000),
    (96_000, 22_050),
];

/// Samples at both ends that hear the beginning and the end of the tone.
fn margin(from: u32, to: u32) -> usize {
    (80.0 * f64::from(to) / f64::from(from.min(to))).ceil() as usize
}

#[test]
fn a_tone_is_the_tone_at_the_new_rate() {
    for (from, to) in RATES {
        let half = f64::from(from.min(to)) / 2.0;
        for share in [0.01, 0.1, 0.35, 0.5, 0.8] {
            let hertz = half * share;
            let made = tone(hertz, from, from as usize / 4).resampled(to).unwrap();
            assert_eq!(made.rate, to);
            assert_eq!(
                made.samples.len(),
                (from as usize / 4 * to as usize).div_ceil(from as usize)
            );
            let exact = tone(hertz, to, made.samples.len());
            let margin = margin(from, to);
            let inside = margin..made.samples.len() - margin;
            assert!(inside.len() > 500, "{from} to {to}");
            for at in inside {
                let error = (made.samples[at] - exact.samples[at]).abs();
                assert!(error < 2e-6, "{from} to {to}, {hertz} Hz: {error} at {at}");
            }
        }
    }
}

#[test]
fn what_the_new_rate_cannot_carry_is_silent_and_not_mirrored() {
    for (from, to) in RATES.into_iter().filter(|(from, to)| from > to) {
        let (old, new) = (f64::from(from) / 2.0, f64::from(to) / 2.0);
        for share in [0.05, 0.5, 0.9] {
            // Anywhere between half of the new rate and half of the old.
            let hertz = new + (old - new) * share;
            let made = tone(hertz, from, from as usize / 2).resampled(to).unwrap();
            let margin = margin(from, to);
            let inside = &made.samples[margin..made.samples.len() - margin];
            let loudest = inside.iter().fold(0f32, |most, x| most.max(x.abs()));
            // −100 dB; a linear interpolation leaves the whole tone at another pitch.
            assert!(loudest < 1e-5, "{from} to {to}, {hertz} Hz: {loudest}");
        }
    }
}

#[test]
fn the_same_rate_changes_nothing_and_no_rate_is_refused() {
    let sound = tone(440.0, 8000, 100);
    assert_eq!(sound.resampled(8000).unwrap(), sound);
    assert!(sound.resampled(0).is_err());
    let constant = Waveform { samples: vec![0.5; 4000], rate: 8000 };
    let made = constant.resampled(11_025).unwrap();
    let inside = &made.samples[200..made.samples.len() - 200];
    assert!(inside.iter().all(|x| (x - 0.5).abs() < 1e-6));
    let told = Waveform { samples: vec![0.0; 10], rate: 383_987 }.resampled(383_998).unwrap_err();
    assert!(told.to_string().contains("too little in common"), "{told}");
}
