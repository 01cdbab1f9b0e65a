//! Two models over the same part: which of them is right for which example.

use crate::changes::Changes;
use crate::errors::{Judgements, State, name};
use crate::input::part;
use crate::refusal::Refusal;
use crate::runs::{OneRun, Runs};
use axum::http::StatusCode;
use regard_tasks::metric::Judged;
use regard_tasks::task::{InputForm, Part};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::{Arc, PoisonError};

/// Most examples of one answer.
const MOST: usize = 500;

/// Who is asked against whom, and what of it is wanted.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Contest {
    a: Side,
    b: Side,
    part: String,
    /// The examples that end so; all where none is named.
    #[serde(default)]
    which: Option<Outcome>,
    #[serde(default)]
    offset: usize,
    #[serde(default = "fifty")]
    limit: usize,
}

fn fifty() -> usize {
    50
}

/// A run, with what is changed of it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Side {
    run: String,
    #[serde(default)]
    changes: Option<Changes>,
}

/// Who is right; where the answers are numbers, who is nearer.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Hash)]
#[serde(rename_all = "kebab-case")]
enum Outcome {
    A,
    B,
    Both,
    Neither,
}

/// An example as each of the two judged it.
type Pair<'a> = (&'a Judged, &'a Judged);

impl Contest {
    /// Who is right where, or how far the two are judged. Refuses runs of different tasks, and runs
    /// whose data have no example in common.
    pub(crate) fn answer(
        self,
        runs: &Runs,
        judgements: &Judgements,
    ) -> Result<Result<Value, Value>, Refusal> {
        let part = part(&self.part)?;
        let (one, other) = (runs.get(&self.a.run)?.clone(), runs.get(&self.b.run)?.clone());
        let (form, theirs) = (form(&one)?, form(&other)?);
        if one.run.task()?.name() != other.run.task()?.name() || form != theirs {
            return Err(Refusal::bad("the two runs are not asked the same kind of question"));
        }
        let (of_a, of_b) = (self.a.changes.unwrap_or_default(), self.b.changes.unwrap_or_default());
        let a = judgements.state(&one, part, of_a.checked()?)?;
        let b = judgements.state(&other, part, of_b.checked()?)?;
        let (a, b) = match (done(a, &one)?, done(b, &other)?) {
            (Ok(a), Ok(b)) => (a, b),
            (Err(progress), _) | (_, Err(progress)) => return Ok(Err(progress)),
        };
        let pairs = paired(&a, &b, part)?;
        let outcome = |pair: &Pair| outcome(pair, form == InputForm::Point);
        let count = |which| pairs.iter().filter(|pair| outcome(pair) == which).count();
        let [only_a, only_b] = [Outcome::A, Outcome::B].map(count);
        let mut fit: Vec<&Pair> =
            pairs.iter().filter(|pair| self.which.is_none_or(|w| w == outcome(pair))).collect();
        // Where the two are furthest apart comes first.
        fit.sort_by(|x, y| apart(y).total_cmp(&apart(x)));
        let page = fit.iter().skip(self.offset).take(self.limit.min(MOST));
        Ok(Ok(json!({
            "part": name(part),
            "count": pairs.len(),
            "counts": {
                "a": only_a,
                "b": only_b,
                "both": count(Outcome::Both),
                "neither": count(Outcome::Neither),
            },
            // Numbers are nearer to the truth or further off, and never the same to the last digit.
            "nearer": form == InputForm::Point,
            "chance": chance(only_a, only_b),
            "left_out": [a.len() - pairs.len(), b.len() - pairs.len()],
            "differing": differing(&one, &other)?,
            "beam": beam(&one)?.max(beam(&other)?),
            "matching": fit.len(),
            "examples": page.map(|pair| example(pair)).collect::<Vec<_>>(),
        })))
    }
}

fn form(run: &OneRun) -> Result<InputForm, Refusal> {
    Ok(run.loaded()?.model.asks().form)
}

type Judgement = Arc<Vec<Judged>>;

fn done(state: State, run: &OneRun) -> Result<Result<Judgement, Value>, Refusal> {
    match state {
        State::Failed(refusal) => Err(refusal),
        State::Done(all) => Ok(Ok(all)),
        State::Running(progress) => {
            let now = progress.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let (phase, done, total) = (now.phase, now.done, now.total);
            Ok(Err(json!({ "phase": phase, "done": done, "total": total, "run": run.run.name() })))
        }
    }
}

/// How many outputs are searched for at once where a model is asked; here each is written greedily.
fn beam(run: &OneRun) -> Result<i64, Refusal> {
    let options = run.run.options()?;
    Ok(options.get("search.beam").and_then(|beam| beam.as_integer()).unwrap_or(1))
}

/// The options of the data in which two runs differ: where there are some, the same place may hold
/// another example.
fn differing(a: &OneRun, b: &OneRun) -> Result<Vec<String>, Refusal> {
    let (a, b) = (a.run.options()?, b.run.options()?);
    let of_data = |name: &&String| name.starts_with("data.");
    let written = |options: &regard_tasks::options::Options, name: &str| {
        options.get(name).map(ToString::to_string)
    };
    let names = a.names();
    let differ = names.iter().filter(of_data).filter(|n| written(&a, n) != written(&b, n));
    Ok(differ.cloned().collect())
}

/// Whether an input is named by its place, such as `test:17`: it is a picture or a recording.
fn is_place(input: &str, part: Part) -> bool {
    let index = input.strip_prefix(part.name()).and_then(|rest| rest.strip_prefix(':'));
    index.is_some_and(|index| index.parse::<usize>().is_ok())
}

/// The examples that both have judged: the same input, and the same truth of it. Refuses two lists
/// that have none in common, and pictures or recordings that are not the same ones in the same order.
fn paired<'a>(a: &'a [Judged], b: &'a [Judged], part: Part) -> Result<Vec<Pair<'a>>, Refusal> {
    let named = |all: &[Judged]| all.iter().any(|one| is_place(&one.input, part));
    if named(a) || named(b) {
        let same = |(x, y): (&Judged, &Judged)| x.input == y.input && agree(x, y);
        let same = a.len() == b.len() && a.iter().zip(b).all(same);
        return match same {
            true => Ok(a.iter().zip(b).collect()),
            false => Err(differ()),
        };
    }
    // The same sentence may stand there twice: each meets one of the other's.
    let mut waiting: HashMap<&str, Vec<&Judged>> = HashMap::new();
    for one in b {
        waiting.entry(&one.input).or_default().push(one);
    }
    let meet = |one: &'a Judged| {
        let others = waiting.get_mut(&*one.input)?;
        let at = others.iter().position(|other| agree(one, other))?;
        Some((one, others.remove(at)))
    };
    let pairs: Vec<Pair> = a.iter().filter_map(meet).collect();
    if pairs.is_empty() {
        return Err(differ());
    }
    Ok(pairs)
}

/// Whether two examples have the same truth. Where several are as good, what was answered is told as
/// the truth if it is one of them, and all of them if it is none.
fn agree(a: &Judged, b: &Judged) -> bool {
    let shared = || a.truth.split(" | ").any(|one| b.truth.split(" | ").any(|other| one == other));
    let writes = a.labels.is_empty() && b.labels.is_empty() && a.numbers.is_none();
    a.truth == b.truth || shared() || (writes && a.is_right() && b.is_right())
}

fn differ() -> Refusal {
    let what = "the two runs were not given the same examples in this part, so they cannot be compared \
                over it";
    Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, what)
}

fn outcome((a, b): &Pair, numbers: bool) -> Outcome {
    let (right, theirs) = match numbers {
        false => (a.is_right(), b.is_right()),
        true if a.loss == b.loss => (true, true),
        true => (a.loss < b.loss, b.loss < a.loss),
    };
    match (right, theirs) {
        (true, true) => Outcome::Both,
        (true, false) => Outcome::A,
        (false, true) => Outcome::B,
        (false, false) => Outcome::Neither,
    }
}

/// How far the losses of two are apart; what has none stands last.
fn apart((a, b): &Pair) -> f64 {
    let far = (a.loss - b.loss).abs();
    if far.is_nan() { -1.0 } else { far }
}

fn example((a, b): &Pair) -> Value {
    let side = |one: &Judged| {
        json!({
            "index": one.index,
            "output": one.output,
            "loss": one.loss,
            "right": one.is_right(),
        })
    };
    json!({ "input": a.input, "truth": a.truth, "a": side(a), "b": side(b) })
}

/// How often two equally good models would differ as much or more: the exact test of McNemar, in
/// which each example that one alone has right is a toss of a coin. Q. McNemar, "Note on the sampling
/// error of the difference between correlated proportions or percentages", Psychometrika 12, 1947.
fn chance(a: usize, b: usize) -> f64 {
    let (n, fewer) = ((a + b) as f64, a.min(b));
    // ln of the probability of i heads, from one to the next.
    let mut ln = -n * std::f64::consts::LN_2;
    let mut sum = ln.exp();
    for i in 0..fewer {
        ln += ((n - i as f64) / (i + 1) as f64).ln();
        sum += ln.exp();
    }
    (2.0 * sum).min(1.0)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn judged(index: usize, input: &str, truth: &str, output: &str, loss: f64) -> Judged {
        let [input, truth, output] = [input, truth, output].map(String::from);
        Judged { index, input, truth, output, loss, ..Judged::default() }
    }

    #[test]
    fn examples_meet_by_what_they_say_and_not_by_their_place() {
        let a = [
            judged(0, "one", "1", "1", 0.1),
            judged(1, "two", "2", "3", 2.0),
            judged(2, "one", "1", "7", 3.0),
            judged(3, "only a", "5", "5", 0.0),
        ];
        let b = [
            judged(0, "two", "2", "2", 0.1),
            judged(1, "one", "1", "1", 0.2),
            judged(2, "one", "1", "1", 0.3),
            judged(3, "two", "another truth", "2", 0.1),
        ];
        let pairs = paired(&a, &b, Part::Test).unwrap();
        let met: Vec<_> = pairs.iter().map(|(a, b)| (a.index, b.index)).collect();
        assert_eq!(met, [(0, 1), (1, 0), (2, 2)]);
        let ends: Vec<_> = pairs.iter().map(|pair| outcome(pair, false)).collect();
        assert_eq!(ends, [Outcome::Both, Outcome::B, Outcome::B]);
        assert!(paired(&a[3..], &b, Part::Test).is_err());
    }

    #[test]
    fn of_several_truths_each_may_have_found_its_own() {
        let a =
            [judged(0, "test:0", "a cat", "a cat", 0.1), judged(1, "test:1", "x | y", "z", 0.1)];
        let b =
            [judged(0, "test:0", "one cat", "one cat", 0.1), judged(1, "test:1", "y", "y", 0.1)];
        let pairs = paired(&a, &b, Part::Test).unwrap();
        let ends: Vec<_> = pairs.iter().map(|pair| outcome(pair, false)).collect();
        assert_eq!(ends, [Outcome::Both, Outcome::B]);
        let c = [b[0].clone(), judged(1, "test:1", "w", "w", 0.1)];
        assert!(paired(&a, &c, Part::Test).is_err());
    }

    #[test]
    fn pictures_that_are_not_the_same_ones_are_refused() {
        let of = |truths: [&str; 2]| {
            [0, 1].map(|i| judged(i, &format!("test:{i}"), truths[i], "cat", 1.0))
        };
        assert_eq!(paired(&of(["cat", "dog"]), &of(["cat", "dog"]), Part::Test).unwrap().len(), 2);
        assert!(paired(&of(["cat", "dog"]), &of(["dog", "cat"]), Part::Test).is_err());
        assert!(paired(&of(["cat", "dog"]), &of(["cat", "dog"])[..1], Part::Test).is_err());
    }

    #[test]
    fn of_two_numbers_the_nearer_wins() {
        let pair = |a: f64, b: f64| {
            let [a, b] = [a, b].map(|loss| judged(0, "0.5", "1", "2", loss));
            outcome(&(&a, &b), true)
        };
        assert_eq!(pair(0.1, 0.2), Outcome::A);
        assert_eq!(pair(0.2, 0.1), Outcome::B);
        assert_eq!(pair(0.1, 0.1), Outcome::Both);
        assert_eq!(pair(f64::NAN, 0.1), Outcome::Neither);
    }

    #[test]
    fn how_likely_a_difference_is_by_chance_is_counted_in_tosses() {
        // Counted by hand: 2 · Σ C(n, i) / 2^n.
        for (a, b, expected) in [
            (0, 0, 1.0),
            (3, 0, 2.0 / 8.0),
            (1, 9, 2.0 * 11.0 / 1024.0),
            (2, 3, 2.0 * 16.0 / 32.0),
            (4, 4, 1.0),
            (0, 2000, 0.0),
        ] {
            assert!((chance(a, b) - expected).abs() < 1e-12, "{a} {b}: {}", chance(a, b));
        }
        // As many as no table holds: the normal curve, (|a − b| − 1) / √(a + b) = 1.96 for 0.05.
        assert!((chance(10_000, 10_278) - 0.05).abs() < 0.003, "{}", chance(10_000, 10_278));
    }
}
