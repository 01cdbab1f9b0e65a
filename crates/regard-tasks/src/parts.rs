//! The three parts of a dataset.

use crate::{Error, Input, Part, Result};
use regard::tensor::Random;
use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::rc::Rc;
use std::sync::{Mutex, PoisonError};

/// What is read from files when it is first asked for, and never again.
pub(crate) struct Cached<T>(OnceCell<T>);

impl<T> Cached<T> {
    pub(crate) const fn new() -> Self {
        Self(OnceCell::new())
    }

    pub(crate) fn get(&self, read: impl FnOnce() -> Result<T>) -> Result<&T> {
        match self.0.get() {
            Some(value) => Ok(value),
            None => {
                let value = read()?;
                Ok(self.0.get_or_init(|| value))
            }
        }
    }
}

/// Examples that were looked up: the same few are asked for again and again, and each time a whole
/// part would be read.
#[derive(Debug, Default)]
pub(crate) struct Memo<T>(Mutex<VecDeque<((Part, usize), T)>>);

/// How many examples are remembered.
const REMEMBERED: usize = 32;

impl<T: Clone> Memo<T> {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(VecDeque::new()))
    }

    pub(crate) fn get(&self, key: (Part, usize), read: impl FnOnce() -> Result<T>) -> Result<T> {
        let lock = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, known)) = lock().iter().find(|(known, _)| *known == key) {
            return Ok(known.clone());
        }
        let value = read()?;
        let mut all = lock();
        all.truncate(REMEMBERED - 1);
        all.push_front((key, value.clone()));
        Ok(value)
    }
}

/// Which of a training file's examples are kept from learning, where validation or test have no
/// files of their own.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeldOut {
    /// The share held out for each part that is.
    pub(crate) share: f64,
    /// Where chance comes from.
    pub(crate) seed: u64,
    /// Whether validation has no file of its own.
    pub(crate) validation: bool,
    /// Whether the test has no file of its own.
    pub(crate) test: bool,
}

impl HeldOut {
    /// Refuses a share that leaves too little.
    pub(crate) fn check(share: f64) -> Result<()> {
        if (0.0..0.5).contains(&share) {
            return Ok(());
        }
        Err(Error::invalid(format!("`data.held_out` cannot be {share}; it is below 0.5")))
    }

    /// How many of so many examples validation and test have.
    fn counts(&self, all: usize) -> (usize, usize) {
        let share = (all as f64 * self.share).round() as usize;
        (if self.validation { share } else { 0 }, if self.test { share } else { 0 })
    }

    /// The examples of a part, in their order; each part has its share of every label, and training
    /// at least one example of each.
    pub(crate) fn stratified<T: Clone, L: Ord>(
        &self,
        part: Part,
        all: &[T],
        label: impl Fn(&T) -> L,
    ) -> Vec<T> {
        let mut strata: BTreeMap<L, Vec<usize>> = BTreeMap::new();
        for &at in order(self.seed, all.len()).iter() {
            strata.entry(label(&all[at])).or_default().push(at);
        }
        let (mut training, mut rest) = (Vec::new(), Vec::new());
        for stratum in strata.values() {
            training.push(stratum[0]);
            rest.extend(&stratum[1..]);
        }
        let (validation, test) = self.counts(all.len());
        let (validation, rest) = evenly(validation, &rest);
        let (test, rest) = evenly(test, &rest);
        let mut indices = match part {
            Part::Validation => validation,
            Part::Test => test,
            Part::Training => [training, rest].concat(),
        };
        indices.sort_unstable();
        indices.into_iter().map(|index| all[index].clone()).collect()
    }

    /// The examples of a part, in their order.
    pub(crate) fn part<T: Clone>(&self, part: Part, all: &[T]) -> Vec<T> {
        let (validation, test) = self.counts(all.len());
        let order = order(self.seed, all.len());
        let mut indices = match part {
            Part::Validation => order[..validation].to_vec(),
            Part::Test => order[validation..validation + test].to_vec(),
            Part::Training => order[validation + test..].to_vec(),
        };
        indices.sort_unstable();
        indices.into_iter().map(|index| all[index].clone()).collect()
    }
}

thread_local! {
    /// The last order that was drawn: each of three parts asks for the same.
    static ORDER: RefCell<Option<(u64, Rc<[usize]>)>> = const { RefCell::new(None) };
}

/// Examples in the order by which they are held out.
fn order(seed: u64, count: usize) -> Rc<[usize]> {
    ORDER.with_borrow_mut(|last| match last {
        Some((known, order)) if *known == seed && order.len() == count => order.clone(),
        _ => {
            let order: Rc<[usize]> = Random::named(seed, "held out").order(count).into();
            *last = Some((seed, order.clone()));
            order
        }
    })
}

/// So many out of all, at equal distances, and the others.
fn evenly(count: usize, all: &[usize]) -> (Vec<usize>, Vec<usize>) {
    let n = all.len();
    let before = |at: usize| at * count.min(n) / n.max(1);
    let (some, others): (Vec<usize>, Vec<usize>) =
        (0..n).partition(|&at| before(at + 1) > before(at));
    let pick = |places: Vec<usize>| places.into_iter().map(|at| all[at]).collect();
    (pick(some), pick(others))
}

/// A part of embedded examples, of which `size` are learned. They are the same for every seed of a
/// training, so that runs can be compared: `draw` makes as many as it is asked for.
pub(crate) fn embedded<T>(
    part: Part,
    size: usize,
    draw: impl FnOnce(usize) -> Result<Vec<T>>,
) -> Result<Vec<T>> {
    let all = embedded_place(Part::Training, size)?.end;
    let place = embedded_place(part, size)?;
    Ok(draw(all)?.into_iter().take(place.end).skip(place.start).collect())
}

/// As [`embedded`], where fewer examples are the first of more: no more are made than the part needs.
pub(crate) fn embedded_in_order<T>(
    part: Part,
    size: usize,
    draw: impl FnOnce(usize) -> Result<Vec<T>>,
) -> Result<Vec<T>> {
    let place = embedded_place(part, size)?;
    Ok(draw(place.end)?.into_iter().skip(place.start).collect())
}

/// Where a part lies among the embedded examples, of which training has the last.
fn embedded_place(part: Part, size: usize) -> Result<Range<usize>> {
    check_size(size, MAX_EXAMPLES)?;
    let held = (size / 10).clamp(50, 500);
    Ok(match part {
        Part::Validation => 0..held,
        Part::Test => held..2 * held,
        Part::Training => 2 * held..2 * held + size,
    })
}

/// The most embedded examples.
const MAX_EXAMPLES: usize = 10_000_000;

/// Refuses more embedded examples than can be made.
pub(crate) fn check_size(size: usize, most: usize) -> Result<()> {
    if size <= most {
        return Ok(());
    }
    Err(Error::invalid(format!("`data.size` cannot be {size}; it is {most} at most")))
}

/// The example of a part that an input names; refuses one that is not there, saying what they are.
pub(crate) fn nth<'a, T>(all: &'a [T], input: &Input, at: usize, what: &str) -> Result<&'a T> {
    all.get(at).ok_or_else(|| {
        Error::invalid(format!("`{input}`: the part has {} {what}, from 0", all.len()))
    })
}

/// A part's name, as options have it.
pub(crate) fn name(part: Part) -> &'static str {
    match part {
        Part::Training => "train",
        Part::Validation => "validation",
        Part::Test => "test",
    }
}

/// The part and the index that an input like `test:17` names, counted from 0.
pub(crate) fn example_reference(input: &str) -> Option<(Part, usize)> {
    let (part, at) = input.trim().split_once(':')?;
    Some((Part::named(part)?, at.parse().ok()?))
}
