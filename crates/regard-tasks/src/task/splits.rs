//! The three parts of a dataset: which files they have, what is held out of the training files, and
//! the examples that are embedded where there are no files.

use super::held_out::{HeldOut, HeldOutOptions};
use super::part::Part;
use regard_data::{Error, Result, skipping_bad_rows};
use std::cell::OnceCell;

/// What a task's options say about its data: where each part is, and how it is read.
pub(crate) trait Dataset {
    /// What the files of a part hold, or list.
    type List: List;
    /// A part as a task uses it.
    type Examples: Examples;

    /// The option that names the files of a part, without `data.`; none where it has none of its own.
    /// Refuses files that do not go together.
    fn given(&self, part: Part) -> Result<Option<&'static str>>;

    /// What is held out.
    fn held_out(&self) -> HeldOutOptions;

    /// Reads what the files of a part hold; called for a part that is given.
    fn list(&self, part: Part) -> Result<Self::List>;

    /// What is held out by.
    fn strata(&self, list: &Self::List) -> Strata {
        Strata::Count(list.count())
    }

    /// A part, of what is listed for it.
    fn read(&self, list: Self::List) -> Result<Self::Examples>;

    /// A part of the embedded examples.
    fn embedded(&self, part: Part) -> Result<Self::Examples>;
}

/// What files hold, or list.
pub(crate) trait List: Sized {
    /// How many there are.
    fn count(&self) -> usize;

    /// Some of them, by their places.
    fn pick(&self, which: &[usize]) -> Result<Self>;
}

impl<T: Clone> List for Vec<T> {
    fn count(&self) -> usize {
        self.len()
    }

    fn pick(&self, which: &[usize]) -> Result<Self> {
        Ok(which.iter().map(|&at| self[at].clone()).collect())
    }
}

/// The examples of a part.
pub(crate) trait Examples {
    /// One of them, with what is true of it.
    type Example: Clone;

    /// How many there are.
    fn count(&self) -> usize;

    /// One of them, from 0.
    fn nth(&self, at: usize) -> Option<Self::Example>;
}

impl<T: Clone> Examples for Vec<T> {
    type Example = T;

    fn count(&self) -> usize {
        self.len()
    }

    fn nth(&self, at: usize) -> Option<T> {
        self.get(at).cloned()
    }
}

/// How examples are held out.
pub(crate) enum Strata {
    /// So many examples, whatever they are.
    Count(usize),
    /// By these labels, one for each example: each part has its share of every label.
    Labels(Vec<String>),
}

/// The parts of a dataset. The training files are read once for all parts that are held out of them.
pub(crate) struct Splits<'a, D: Dataset> {
    dataset: &'a D,
    training: OnceCell<(D::List, Strata)>,
}

impl<'a, D: Dataset> Splits<'a, D> {
    pub(crate) fn new(dataset: &'a D) -> Self {
        Self { dataset, training: OnceCell::new() }
    }

    /// A part: what its own files hold; else what is held out of the training files; else a part of
    /// the embedded examples. Refuses to learn embedded examples where validation has files.
    pub(crate) fn part(&self, part: Part) -> Result<D::Examples> {
        let given = |part| self.dataset.given(part);
        if part != Part::Training && given(part)?.is_some() {
            return self.read(self.list(part)?);
        }
        if given(Part::Training)?.is_none() {
            if let (Part::Training, Some(name)) = (part, given(Part::Validation)?) {
                return Err(without_training(name));
            }
            return self.dataset.embedded(part);
        }
        let HeldOutOptions { held_out, held_out_seed, .. } = self.dataset.held_out();
        let held = HeldOut {
            share: held_out,
            seed: held_out_seed,
            validation: given(Part::Validation)?.is_none(),
            test: given(Part::Test)?.is_none(),
        };
        let (list, strata) = self.training()?;
        let which = match strata {
            Strata::Count(count) => held.part(part, *count),
            Strata::Labels(labels) => held.stratified(part, labels),
        };
        self.read(list.pick(&which)?)
    }

    /// What is learned, and what the best epoch is chosen by.
    pub(crate) fn learned(&self) -> Result<(D::Examples, D::Examples)> {
        Ok((self.part(Part::Training)?, self.part(Part::Validation)?))
    }

    /// How many examples a part has, in digits.
    pub(crate) fn count(&self, part: Part) -> Result<String> {
        Ok(self.part(part)?.count().to_string())
    }

    fn list(&self, part: Part) -> Result<D::List> {
        let skip = self.dataset.held_out().skip_bad_rows;
        skipping_bad_rows(skip, || self.dataset.list(part))
    }

    fn read(&self, list: D::List) -> Result<D::Examples> {
        let skip = self.dataset.held_out().skip_bad_rows;
        skipping_bad_rows(skip, || self.dataset.read(list))
    }

    fn training(&self) -> Result<&(D::List, Strata)> {
        if let Some(training) = self.training.get() {
            return Ok(training);
        }
        let list = self.list(Part::Training)?;
        let strata = self.dataset.strata(&list);
        Ok(self.training.get_or_init(|| (list, strata)))
    }
}

fn without_training(name: &str) -> Error {
    let training = name.replacen("validation", "train", 1);
    Error::invalid(format!(
        "`data.{name}` is given, and `data.{training}` is not: the model would be trained on embedded \
         data and validated on yours; set `data.{training}` too"
    ))
}

/// Refuses to train without an example, or without one to choose the best epoch by. What is longer than
/// `longest` of a unit is not learned, where there is such a bound.
pub(crate) fn check_some(
    training: usize,
    validation: usize,
    things: &str,
    longest: Option<(usize, &str)>,
) -> Result<()> {
    if training > 0 && validation > 0 {
        return Ok(());
    }
    let (bound, more) = match longest {
        Some((most, unit)) => (
            format!(" of at most {most} {unit}"),
            ", or raise `data.held_out` or `data.max_length`",
        ),
        None => (String::new(), " or raise `data.held_out`"),
    };
    Err(Error::invalid(format!(
        "{training} training {things}{bound} and {validation} validation {things}: training needs some \
         of each; name validation files{more}"
    )))
}
