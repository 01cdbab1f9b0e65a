//! What is true of examples, as numbers of labels.

use regard_data::text::Labels;
use std::collections::BTreeMap;

/// The labels of examples as numbers. A label that training has not seen has a number behind the
/// model's own: what a model cannot say, it has wrong.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Truth {
    pub(crate) ids: Vec<usize>,
    /// The labels that training has not seen; the first has the number behind the model's last.
    pub(crate) unseen: Vec<String>,
    /// How many examples have one of them.
    examples: usize,
}

impl Truth {
    /// Of examples with these labels.
    pub(crate) fn new<'a>(known: &Labels, labels: impl IntoIterator<Item = &'a str>) -> Self {
        let mut truth = Self::default();
        let mut numbers: BTreeMap<&str, usize> = BTreeMap::new();
        for label in labels {
            let id = known.id(label).unwrap_or_else(|| {
                truth.examples += 1;
                let next = known.len() + numbers.len();
                *numbers.entry(label).or_insert_with(|| {
                    truth.unseen.push(label.into());
                    next
                })
            });
            truth.ids.push(id);
        }
        truth
    }

    /// What to say of labels that training has not seen, where there are some.
    pub(crate) fn note(&self, part: &str) -> Option<String> {
        self.note_of("labels", part)
    }

    /// As [`Truth::note`], where they are called otherwise.
    pub(crate) fn note_of(&self, labels: &str, part: &str) -> Option<String> {
        let (some, all) = (self.examples, self.ids.len());
        (some > 0).then(|| {
            format!(
                "{some} of the {part} part's {all} {labels} {} unseen in training ({}): counted as \
                 wrong, and left out of the loss",
                if some == 1 { "is" } else { "are" },
                self.names()
            )
        })
    }

    /// "3 (X, Y)", or "none".
    pub(crate) fn fact(&self) -> String {
        match self.examples {
            0 => "none".into(),
            some => format!("{some} ({})", self.names()),
        }
    }

    /// The first of the unseen labels, and how many more there are.
    fn names(&self) -> String {
        const SOME: usize = 5;
        let named: Vec<&str> = self.unseen.iter().take(SOME).map(String::as_str).collect();
        match self.unseen.len().saturating_sub(SOME) {
            0 => named.join(", "),
            more => format!("{} and {more} more", named.join(", ")),
        }
    }
}
