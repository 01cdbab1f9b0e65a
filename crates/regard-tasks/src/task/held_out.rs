//! Which of the training files' examples are kept from learning, where validation or test have no
//! files of their own.

use super::part::Part;
use regard::tensor::Random;
use regard_data::{Error, Result};
use serde::Deserialize;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// What `[data]` says about it, and about rows that are in no part.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(crate) struct HeldOutOptions {
    /// The share held out for each part without files.
    pub(crate) held_out: f64,
    /// Where chance comes from; not the seed of a training, so that trainings can be compared.
    pub(crate) held_out_seed: u64,
    /// Whether rows, and files of which each is an example, are left out and counted where they cannot be
    /// read.
    #[serde(default)]
    pub(crate) skip_bad_rows: bool,
}

impl HeldOutOptions {
    /// Refuses a share that leaves too little.
    pub(crate) fn check(self) -> Result<()> {
        let share = self.held_out;
        if (0.0..0.5).contains(&share) {
            return Ok(());
        }
        Err(Error::invalid(format!("`data.held_out` cannot be {share}; it is below 0.5")))
    }
}

/// What is held out of the training files.
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
    /// How many of so many examples validation and test have.
    fn counts(&self, all: usize) -> (usize, usize) {
        let share = (all as f64 * self.share).round() as usize;
        (if self.validation { share } else { 0 }, if self.test { share } else { 0 })
    }

    /// The places of a part's examples, in their order; each part has its share of every label, and
    /// training at least one example of each.
    pub(crate) fn stratified(&self, part: Part, labels: &[String]) -> Vec<usize> {
        let mut strata: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for &at in order(self.seed, labels.len()).iter() {
            strata.entry(&labels[at]).or_default().push(at);
        }
        let (mut training, mut rest) = (Vec::new(), Vec::new());
        for stratum in strata.values() {
            training.push(stratum[0]);
            rest.extend(&stratum[1..]);
        }
        let (validation, test) = self.counts(labels.len());
        let (validation, rest) = evenly(validation, &rest);
        let (test, rest) = evenly(test, &rest);
        let mut indices = match part {
            Part::Validation => validation,
            Part::Test => test,
            Part::Training => [training, rest].concat(),
        };
        indices.sort_unstable();
        indices
    }

    /// The places of a part's examples among so many, in their order.
    pub(crate) fn part(&self, part: Part, count: usize) -> Vec<usize> {
        let (validation, test) = self.counts(count);
        let order = order(self.seed, count);
        let mut indices = match part {
            Part::Validation => order[..validation].to_vec(),
            Part::Test => order[validation..validation + test].to_vec(),
            Part::Training => order[validation + test..].to_vec(),
        };
        indices.sort_unstable();
        indices
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
