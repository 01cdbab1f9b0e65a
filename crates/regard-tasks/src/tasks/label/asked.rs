//! The words that ask at a distance, and how well they were answered by how far it is.

use crate::task::report::Groups;

/// The labels of the words that ask, and how far before each its label was told.
pub(super) struct Asked {
    distances: Vec<usize>,
    pub(super) truth: Vec<usize>,
    pub(super) labeling: Vec<usize>,
}

impl Asked {
    /// Of all words, those that ask.
    pub(super) fn new(distances: &[Option<usize>], truth: &[usize], labeling: &[usize]) -> Self {
        let mut asked = Self { distances: vec![], truth: vec![], labeling: vec![] };
        for ((distance, &truth), &labeling) in distances.iter().zip(truth).zip(labeling) {
            if let Some(distance) = distance {
                asked.distances.push(*distance);
                asked.truth.push(truth);
                asked.labeling.push(labeling);
            }
        }
        asked
    }

    /// The accuracy by distance: 2, 3 to 4, 5 to 8, 9 to 16, …
    pub(super) fn groups(&self) -> Groups {
        let group = |distance: usize| distance.next_power_of_two();
        let mut values = Vec::new();
        let farthest = self.distances.iter().copied().max().unwrap_or(0);
        let mut most = 2;
        while most < 2 * group(farthest) {
            let members = || {
                let all = self.distances.iter().zip(self.truth.iter().zip(&self.labeling));
                all.filter(|(distance, _)| group(**distance) == most)
            };
            let right = members().filter(|(_, (truth, labeling))| truth == labeling).count();
            let (least, count) = (most / 2 + 1, members().count());
            if count > 0 {
                let name =
                    if least == most { most.to_string() } else { format!("{least} to {most}") };
                values.push((name, right as f64 / count as f64));
            }
            most *= 2;
        }
        Groups { measure: "accuracy".into(), by: "distance in words".into(), values }
    }
}
