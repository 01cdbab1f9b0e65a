//! Learning rates: what a schedule and a plateau give for measures of any sign.

use regard_tensor::{Better, Decay, Plateau, Schedule};

#[test]
fn no_way_down_goes_below_the_floor() {
    for decay in [Decay::Constant, Decay::Cosine, Decay::InverseSquareRoot] {
        for floor in [0.0, 0.01, 0.5, 1.0] {
            let schedule = Schedule { peak: 1.0, warmup: 4, steps: 400, floor, decay };
            schedule.check().unwrap();
            let rates: Vec<f64> = (4..100_000).map(|step| schedule.rate(step)).collect();
            assert!(rates.is_sorted_by(|a, b| a >= b), "{decay:?}");
            let lowest = rates.last().copied().unwrap();
            let wanted = match decay {
                Decay::Constant => 1.0,
                Decay::InverseSquareRoot => (4.0f64 / 99_999.0).sqrt().max(floor),
                _ => floor,
            };
            assert!((lowest - wanted).abs() < 1e-12, "{decay:?} {floor}: {lowest}");
        }
    }
}

/// How often the rate went down over measures.
fn went_down(better: Better, measures: impl Iterator<Item = f64>) -> usize {
    let mut plateau = Plateau { patience: 3, better, ..Plateau::new(1.0) };
    let mut rates: Vec<f64> = measures.map(|measure| plateau.observe(measure)).collect();
    rates.dedup();
    rates.len() - 1
}

#[test]
fn a_plateau_is_one_at_any_height_and_progress_is_none() {
    let mut count = 0;
    for height in [-1e6, -1.0, -1e-3, 0.0, 1e-3, 1.0, 1e6f64] {
        for (better, sign) in [(Better::Lower, -1.0), (Better::Higher, 1.0)] {
            // Standing still, and moving less than the threshold.
            for drift in [0.0, 1e-7] {
                let measures = (0..40).map(|n| height + sign * drift * f64::from(n) * height.abs());
                assert!(went_down(better, measures) >= 9, "{height} {better:?} {drift}");
                count += 1;
            }
            let progress =
                (0..40).map(|n| height + sign * f64::from(n) * (0.01 * height.abs() + 1e-9));
            // What grows from 0 is better by any share of it at once.
            assert_eq!(went_down(better, progress), 0, "{height} {better:?}");
            // A worse measure never becomes the best.
            let mut plateau = Plateau { better, ..Plateau::new(1.0) };
            plateau.observe(height);
            plateau.observe(height - sign * 1e-5 * height.abs());
            assert_eq!(plateau.best, Some(height));
        }
    }
    assert_eq!(count, 28);
}
