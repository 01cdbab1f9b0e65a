//! The likeliest labelings of a sequence.

/// The places of numbers, the greatest first; of equals the first.
pub(crate) fn descending(numbers: &[f32]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..numbers.len()).collect();
    order.sort_by(|&a, &b| numbers[b].total_cmp(&numbers[a]));
    order
}

/// The likeliest sequences of labels, so many at most, the best first, each with the logarithm of its
/// probability; from the logarithms of the probabilities of each place's labels, which do not depend
/// on each other.
pub(crate) fn likeliest_labelings(log_probs: &[Vec<f32>], n: usize) -> Vec<(Vec<usize>, f64)> {
    // The best beginnings, each as its sum, the beginning it goes on from, and its last label. The best
    // of one place more go on from the best of these: with the r-th of them only the first n / r labels.
    let mut places: Vec<Vec<(f64, usize, usize)>> = vec![vec![(0.0, 0, 0)]];
    for row in log_probs {
        let order = descending(row);
        let before = &places[places.len() - 1];
        let mut found = Vec::new();
        for (at, &(sum, ..)) in before.iter().enumerate() {
            let labels = order.iter().take((n / (at + 1)).max(1));
            found.extend(labels.map(|&label| (sum + f64::from(row[label]), at, label)));
        }
        found.sort_by(|a, b| b.0.total_cmp(&a.0));
        found.truncate(n);
        places.push(found);
    }
    let labeling = |last: usize| {
        let mut at = last;
        let mut labels: Vec<usize> = places[1..]
            .iter()
            .rev()
            .map(|found| {
                let (_, from, label) = found[at];
                at = from;
                label
            })
            .collect();
        labels.reverse();
        (labels, places[places.len() - 1][last].0)
    };
    (0..places[places.len() - 1].len()).map(labeling).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_likeliest_labelings_are_those_that_enumeration_finds() {
        let row = |at: usize| -> Vec<f32> {
            let number = |label: usize| ((at * 7 + label * 13 + at * label * 5) % 11) as f32;
            (0..3).map(|label| -0.1 - number(label) / 3.0).collect()
        };
        let rows: Vec<Vec<f32>> = (0..5).map(row).collect();
        let mut all: Vec<(Vec<usize>, f64)> = vec![(vec![], 0.0)];
        for row in &rows {
            let with = |(labels, sum): &(Vec<usize>, f64), label: usize| {
                ([&labels[..], &[label]].concat(), sum + f64::from(row[label]))
            };
            all = all.iter().flat_map(|one| (0..3).map(move |label| with(one, label))).collect();
        }
        all.sort_by(|a, b| b.1.total_cmp(&a.1));
        for n in [1, 2, 7, 100, 243, 1000] {
            let found = likeliest_labelings(&rows, n);
            assert_eq!(found.len(), n.min(243));
            let mut seen = std::collections::HashSet::new();
            for ((labels, score), (_, expected)) in found.iter().zip(&all) {
                let sum: f64 = labels.iter().zip(&rows).map(|(&l, row)| f64::from(row[l])).sum();
                assert!((score - expected).abs() < 1e-9 && (score - sum).abs() < 1e-9);
                assert!(seen.insert(labels.clone()), "{labels:?} twice");
            }
        }
        assert_eq!(likeliest_labelings(&[], 3), [(vec![], 0.0)]);
    }
}
