//! Examples that somebody asks for one by one, such as `validation:0`: the same few again and again.

use super::input::Input;
use super::part::Part;
use super::splits::{Dataset, Examples, Splits};
use regard_data::{Error, Result};
use std::cell::OnceCell;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, PoisonError};

/// How many examples are remembered.
const REMEMBERED: usize = 32;
/// How many are kept when a part is read for one: samples stand side by side.
const BESIDE: usize = 8;

/// Examples of a dataset that were looked up.
pub(crate) struct LookedUp<T> {
    examples: Mutex<VecDeque<((Part, usize), T)>>,
    /// What is true of texts, once somebody has asked for one.
    truths: Mutex<Option<BTreeMap<String, String>>>,
}

impl<T: Clone> LookedUp<T> {
    pub(crate) fn new() -> Self {
        Self { examples: Mutex::new(VecDeque::new()), truths: Mutex::new(None) }
    }

    /// Looks examples up in a dataset, whose examples are called so.
    pub(crate) fn within<'a, D>(&'a self, dataset: &'a D, what: &'static str) -> Lookup<'a, D>
    where
        D: Dataset,
        D::Examples: Examples<Example = T>,
    {
        let parts = [const { OnceCell::new() }; 3];
        Lookup { known: self, splits: Splits::new(dataset), parts, what }
    }

    /// What is true of a text; `read` gives the texts of a part with what is true of them, and is
    /// called once for each part. What cannot be read is not known.
    pub(crate) fn truth<I: IntoIterator<Item = (String, String)>>(
        &self,
        text: &str,
        read: impl Fn(Part) -> Result<I>,
    ) -> Option<String> {
        let mut truths = self.truths.lock().unwrap_or_else(PoisonError::into_inner);
        if truths.is_none() {
            let mut all = BTreeMap::new();
            // Of a text that stands there twice the first is meant.
            for part in [Part::Validation, Part::Test] {
                for (text, truth) in read(part).ok().into_iter().flatten() {
                    all.entry(text).or_insert(truth);
                }
            }
            *truths = Some(all);
        }
        truths.as_ref()?.get(text).cloned()
    }
}

/// A look at a dataset: a part is read once, and only for an example that is not known yet.
pub(crate) struct Lookup<'a, D: Dataset> {
    known: &'a LookedUp<Example<D>>,
    splits: Splits<'a, D>,
    parts: [OnceCell<D::Examples>; 3],
    what: &'static str,
}

type Example<D> = <<D as Dataset>::Examples as Examples>::Example;

impl<D: Dataset> Lookup<'_, D> {
    /// The example that an input names. Refuses one that is not there.
    pub(crate) fn get(&self, input: &Input, (part, at): (Part, usize)) -> Result<Example<D>> {
        let lock = || self.known.examples.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, known)) = lock().iter().find(|(known, _)| *known == (part, at)) {
            return Ok(known.clone());
        }
        let all = self.part(part)?;
        let value = all.nth(at).ok_or_else(|| not_there(input, all.count(), self.what))?;
        let mut known = lock();
        for place in (at..at + BESIDE).rev() {
            if let Some(example) = all.nth(place) {
                known.retain(|(key, _)| *key != (part, place));
                known.push_front(((part, place), example));
            }
        }
        known.truncate(REMEMBERED);
        Ok(value)
    }

    /// The example that an input names, where it names one that is there.
    pub(crate) fn find(&self, input: &Input) -> Option<Example<D>> {
        self.get(input, input.as_example()?).ok()
    }

    fn part(&self, part: Part) -> Result<&D::Examples> {
        let known = &self.parts[part as usize];
        if let Some(all) = known.get() {
            return Ok(all);
        }
        let all = self.splits.part(part)?;
        Ok(known.get_or_init(|| all))
    }
}

/// What to say of an example that is not there.
pub(crate) fn not_there(input: &Input, count: usize, what: &str) -> Error {
    Error::invalid(format!("`{input}`: the part has {count} {what}, from 0"))
}
