//! How often labels occur.

use std::collections::BTreeMap;

/// How often each label occurs among all examples.
pub(crate) struct LabelCounts<'a>(BTreeMap<&'a str, usize>);

impl<'a> LabelCounts<'a> {
    /// Of all labels of all examples.
    pub(crate) fn new<S>(labels: impl IntoIterator<Item = &'a S>) -> Self
    where
        S: AsRef<str> + ?Sized + 'a,
    {
        let mut counts = BTreeMap::new();
        for label in labels {
            *counts.entry(label.as_ref()).or_insert(0) += 1;
        }
        Self(counts)
    }

    /// The rarest of an example's labels, which splits must take care of; among equals the first by
    /// name, and an empty name where it has none.
    pub(crate) fn rarest<S: AsRef<str>>(&self, labels: &[S]) -> String {
        let labels = labels.iter().map(AsRef::as_ref);
        let rarest = labels.min_by_key(|&label| (self.0.get(label).copied(), label));
        rarest.unwrap_or_default().to_string()
    }
}
