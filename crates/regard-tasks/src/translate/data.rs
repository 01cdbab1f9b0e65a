//! The pairs of `translate`: from files or embedded, in three parts.

use super::config::{Config, Data, Embedded};
use crate::data::{parallel, parallel_tsv};
use crate::{Error, Part, Result, toy};
use regard::Random;
use std::path::PathBuf;

/// A sentence and its translation.
pub(super) type Pair = (String, String);

/// The files of a part: two parallel ones, one of pairs, or none.
fn files(data: &Data, part: Part) -> [&Option<PathBuf>; 3] {
    match part {
        Part::Training => [&data.train_source, &data.train_target, &data.train_pairs],
        Part::Validation => {
            [&data.validation_source, &data.validation_target, &data.validation_pairs]
        }
        Part::Test => [&data.test_source, &data.test_target, &data.test_pairs],
    }
}

/// The pairs of a part as its files hold them; none where no files are given.
fn given(data: &Data, part: Part) -> Result<Option<Vec<Pair>>> {
    let encoding = data.encoding.as_deref();
    let found = match files(data, part) {
        [None, None, None] => return Ok(None),
        [Some(source), Some(target), None] => parallel(source, target, encoding)?,
        [None, None, Some(both)] => parallel_tsv(both, encoding)?,
        _ => {
            let name = match part {
                Part::Training => "train",
                Part::Validation => "validation",
                Part::Test => "test",
            };
            return Err(Error::asked(format!(
                "the {name} part wants `data.{name}_source` and `data.{name}_target`, or \
                 `data.{name}_pairs` alone"
            )));
        }
    };
    Ok(Some(found.pairs))
}

/// The pairs of a part. Where the training files have no validation or test files beside them, a
/// share of the training pairs, drawn by the seed, is held out for each.
pub(super) fn read(config: &Config, part: Part) -> Result<Vec<Pair>> {
    let data = &config.data;
    if part != Part::Training
        && let Some(pairs) = given(data, part)?
    {
        return Ok(pairs);
    }
    let Some(all) = given(data, Part::Training)? else { return embedded(config, part) };
    let share = (all.len() as f64 * data.held_out).round() as usize;
    let spare = |part| files(data, part).iter().all(|file| file.is_none());
    let validation = if spare(Part::Validation) { share } else { 0 };
    let test = if spare(Part::Test) { share } else { 0 };
    let order = Random::named(config.training.seed, "held out").order(all.len());
    let mut places = match part {
        Part::Validation => order[..validation].to_vec(),
        Part::Test => order[validation..validation + test].to_vec(),
        Part::Training => order[validation + test..].to_vec(),
    };
    places.sort_unstable();
    Ok(places.into_iter().map(|i| all[i].clone()).collect())
}

fn embedded(config: &Config, part: Part) -> Result<Vec<Pair>> {
    // The embedded data are the same for every seed of a training, so that runs can be compared.
    let held = (config.data.size / 10).clamp(50, 500);
    let n = config.data.size + 2 * held;
    let all = match config.data.embedded {
        Embedded::Phrases => toy::phrases(n, 1)?,
        Embedded::Dates => toy::dates(n, 1)?,
    };
    let cut = |from: usize, n: usize| all.iter().skip(from).take(n).cloned().collect();
    Ok(match part {
        Part::Validation => cut(0, held),
        Part::Test => cut(held, held),
        Part::Training => cut(2 * held, n),
    })
}
