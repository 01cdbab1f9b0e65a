//! English sentences and their Chinese, from a small grammar in which the order of words differs:
//! when, with whom and where come before the verb in Chinese, and so does all that describes a
//! noun; a reason comes before what it explains.

mod clause;
mod lexicon;
mod noun_phrase;

use super::distinct;
use crate::Result;
use regard::tensor::Random;

/// English, Chinese.
type Pair = (String, String);

/// Sentences are no longer than this, in English words.
const LONGEST: usize = 20;

/// `count` pairs of an English sentence, its words and marks apart by spaces, and its Chinese,
/// written without spaces. No sentence of either language comes twice.
///
/// ```
/// let pairs = regard_data::toy::phrases(5, 1)?;
/// assert_eq!(pairs.len(), 5);
/// assert!(pairs.iter().all(|(english, chinese)| english.is_ascii() && !chinese.contains(' ')));
/// # Ok::<(), regard_data::Error>(())
/// ```
pub fn phrases(count: usize, seed: u64) -> Result<Vec<(String, String)>> {
    let random = Random::named(seed, "phrases");
    let draw = || {
        loop {
            let pair = sentence(&random);
            if pair.0.split(' ').count() <= LONGEST {
                return pair;
            }
        }
    };
    distinct(count, "phrases", draw, |(english, chinese)| vec![english.clone(), chinese.clone()])
}

fn sentence(random: &Random) -> Pair {
    match random.below(10) {
        0..=5 => clause::statement(random),
        6 | 7 => clause::question(random),
        _ => joined(random),
    }
}

/// Two statements and how they belong together.
fn joined(random: &Random) -> Pair {
    let (first, second) = (clause::statement(random), clause::statement(random));
    match random.below(3) {
        0 => (format!("{} , but {}", first.0, second.0), format!("{}，但是{}", first.1, second.1)),
        1 => (format!("{} , so {}", first.0, second.0), format!("{}，所以{}", first.1, second.1)),
        _ => (
            format!("{} because {}", first.0, second.0),
            format!("因为{}，所以{}", second.1, first.1),
        ),
    }
}
