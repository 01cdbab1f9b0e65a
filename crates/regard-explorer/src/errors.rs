//! The examples of a part, by what went wrong: sorted by loss, filtered by label, length and text.

use crate::answer::predict;
use crate::background::{Background, waiting};
use crate::changes::Changes;
use crate::evidence::{evidence, groups, residuals};
use crate::input::part;
use crate::refusal::Refusal;
use crate::runs::OneRun;
use crate::worker::{Progress, caught};
use axum::http::StatusCode;
use regard::attention::{HeadRef, Intervention, recorded};
use regard_tasks::inspect::Unmet;
use regard_tasks::metric::Judged;
use regard_tasks::task::{Input, Model, Part};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Most examples of one answer.
const MOST: usize = 500;

/// What is known of the parts that were asked for.
pub(crate) struct Judgements {
    known: Arc<Mutex<HashMap<Key, State>>>,
    background: Arc<Background>,
}

/// Parts judged with something changed that are remembered: there is no end to what can be changed.
const MOST_CHANGED: usize = 8;

/// What was judged: a run, its checkpoint, what is changed of it (nothing: empty), and a part.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    run: String,
    generation: u64,
    changes: String,
    part: &'static str,
}

#[derive(Clone)]
pub(crate) enum State {
    Running(Arc<Mutex<Progress>>),
    Done(Arc<Vec<Judged>>),
    Failed(Refusal),
}

/// What of a part is wanted.
#[derive(Debug, Default)]
struct Query {
    sort: Sort,
    up: bool,
    label: Option<String>,
    predicted: Option<String>,
    right: Option<bool>,
    shortest: usize,
    longest: Option<usize>,
    text: String,
    offset: usize,
    limit: usize,
}

#[derive(Debug, Default, PartialEq)]
enum Sort {
    #[default]
    Loss,
    Index,
    Length,
}

impl Query {
    fn read(query: &str) -> Result<Self, Refusal> {
        let mut read = Self { limit: 50, ..Self::default() };
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            let wrong = || Refusal::bad(format!("`{name}` cannot be `{value}`"));
            let number = || value.parse::<usize>().map_err(|_| wrong());
            match &*name {
                "sort" => {
                    read.sort = match &*value {
                        "loss" => Sort::Loss,
                        "index" => Sort::Index,
                        "length" => Sort::Length,
                        _ => return Err(wrong()),
                    }
                }
                "order" => {
                    read.up = match &*value {
                        "up" => true,
                        "down" => false,
                        _ => return Err(wrong()),
                    }
                }
                "label" => read.label = Some(value.into_owned()),
                "predicted" => read.predicted = Some(value.into_owned()),
                "right" => read.right = Some(value.parse().map_err(|_| wrong())?),
                "shortest" => read.shortest = number()?,
                "longest" => read.longest = Some(number()?),
                "text" => read.text = value.to_lowercase(),
                "offset" => read.offset = number()?,
                "limit" => read.limit = number()?.min(MOST),
                _ => return Err(Refusal::bad(format!("there is no `{name}` to ask for"))),
            }
        }
        Ok(read)
    }

    fn fits(&self, one: &Judged) -> bool {
        let cell = |(truth, predicted): &(String, String)| {
            self.label.as_ref().is_none_or(|label| label == truth)
                && self.predicted.as_ref().is_none_or(|label| label == predicted)
        };
        let labeled = self.label.is_none() && self.predicted.is_none();
        let holds = |text: &str| text.to_lowercase().contains(&self.text);
        (labeled || one.labels.iter().any(cell))
            && self.right.is_none_or(|right| right == one.is_right())
            && one.length >= self.shortest
            && self.longest.is_none_or(|longest| one.length <= longest)
            && (self.text.is_empty()
                || [&one.input, &one.truth, &one.output].map(|t| holds(t)).contains(&true))
    }

    /// The examples that fit, in order.
    fn choose<'a>(&self, all: &'a [Judged]) -> Vec<&'a Judged> {
        let mut some: Vec<&Judged> = all.iter().filter(|one| self.fits(one)).collect();
        let order = |a: &&Judged, b: &&Judged| match self.sort {
            Sort::Loss => a.loss.total_cmp(&b.loss),
            Sort::Index => a.index.cmp(&b.index),
            Sort::Length => a.length.cmp(&b.length),
        };
        some.sort_by(|a, b| {
            // What has no loss stands last, whichever way they are sorted.
            let known = |one: &Judged| self.sort == Sort::Loss && one.loss.is_nan();
            let by = if self.up { order(a, b) } else { order(b, a) };
            known(a).cmp(&known(b)).then(by).then(a.index.cmp(&b.index))
        });
        some
    }
}

impl Judgements {
    /// Nothing yet; what is asked for is computed there.
    pub(crate) fn of(background: Arc<Background>) -> Self {
        Self { known: Arc::default(), background }
    }

    /// What a query asks of a part, or how far its computation has come.
    pub(crate) fn answer(
        &self,
        run: &Arc<OneRun>,
        part_name: &str,
        query: &str,
    ) -> Result<Result<Value, Value>, Refusal> {
        let (part, query) = (part(part_name)?, Query::read(query)?);
        told(self.state(run, part, Changes::default())?, run, part, &query)
    }

    /// The same where it was begun before; none where it was not. Computes nothing.
    pub(crate) fn known(
        &self,
        run: &Arc<OneRun>,
        part_name: &str,
        query: &str,
    ) -> Result<Option<Result<Value, Value>>, Refusal> {
        let (part, query) = (part(part_name)?, Query::read(query)?);
        let all = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let same =
            |key: &Key| key.run == run.id && key.part == name(part) && key.changes.is_empty();
        let newest = all.iter().filter(|(key, _)| same(key));
        let state = newest.max_by_key(|(key, _)| key.generation);
        let state = state.map(|(_, state)| state.clone());
        drop(all);
        state.map(|state| told(state, run, part, &query)).transpose()
    }

    /// What is known of a part, with something changed of the model or nothing; begins what is not.
    /// Refuses changes that are meant for a single input.
    pub(crate) fn state(
        &self,
        run: &Arc<OneRun>,
        part: Part,
        changes: Changes,
    ) -> Result<State, Refusal> {
        let loaded = run.loaded()?;
        let key = Key {
            run: run.id.clone(),
            generation: loaded.generation,
            changes: changes.of_a_part()?,
            part: name(part),
        };
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(state) = known.get(&key) {
            let state = state.clone();
            // What went wrong may go right the next time: a file may have come back.
            if matches!(state, State::Failed(_)) {
                known.remove(&key);
            }
            return Ok(state);
        }
        // An older checkpoint's are asked for no more.
        known.retain(|of, _| of.run != run.id || of.generation == loaded.generation);
        let done =
            |of: &Key, state: &State| !of.changes.is_empty() && !matches!(state, State::Running(_));
        if known.iter().filter(|(of, state)| done(of, state)).count() >= MOST_CHANGED {
            known.retain(|of, state| !done(of, state));
        }
        let progress = waiting();
        let (all, of) = (self.known.clone(), key.clone());
        let judge = move || caught(|| judge(&*loaded.model, part, &changes.plain()));
        let done = move |judged: Result<Vec<Judged>, Refusal>| {
            let state = match judged {
                Ok(judged) => State::Done(Arc::new(judged)),
                Err(refusal) => State::Failed(refusal),
            };
            all.lock().unwrap_or_else(PoisonError::into_inner).insert(of, state);
        };
        // It takes long, and questions are answered meanwhile. What is done waits for the lock.
        self.background.begin(progress.clone(), judge, done)?;
        let running = State::Running(progress);
        known.insert(key, running.clone());
        Ok(running)
    }
}

/// Every example of a part, with something changed. Refuses heads that the model does not have.
fn judge(model: &dyn Model, part: Part, changes: &Intervention) -> Result<Vec<Judged>, Refusal> {
    if !changes.heads.is_empty() {
        let (first, calls) = recorded(|| predict(model, &Input::example(part, 0)));
        first?;
        if let Some(&at) = Unmet::of(changes, &calls).heads.first() {
            let HeadRef { layer, head, .. } = changes.heads[at];
            let [layer, head] =
                [layer, head].map(|n| n.map_or("*".into(), |n| (n + 1).to_string()));
            let what =
                format!("one of the two has no such head to take away: layer {layer}, head {head}");
            return Err(Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, what));
        }
    }
    Ok(changes.during(|| model.judge(part))?)
}

/// What a query asks of a part, or how far its computation has come.
fn told(
    state: State,
    run: &OneRun,
    part: Part,
    query: &Query,
) -> Result<Result<Value, Value>, Refusal> {
    match state {
        State::Failed(refusal) => Err(refusal),
        State::Running(progress) => {
            let now = progress.lock().unwrap_or_else(PoisonError::into_inner).clone();
            Ok(Err(json!({ "phase": now.phase, "done": now.done, "total": now.total })))
        }
        State::Done(all) => {
            let mut found = found(part, &all, query);
            found["notes"] = json!(notes(&all, run));
            found["evidence"] = json!(evidence(run, part, all.len())?);
            Ok(Ok(found))
        }
    }
}

pub(crate) fn name(part: Part) -> &'static str {
    match part {
        Part::Training => "train",
        Part::Validation => "validation",
        Part::Test => "test",
    }
}

fn found(part: Part, all: &[Judged], query: &Query) -> Value {
    let chosen = query.choose(all);
    let page = chosen.iter().skip(query.offset).take(query.limit);
    let one = |one: &&Judged| {
        json!({
            "index": one.index,
            "input": one.input,
            "truth": one.truth,
            "output": one.output,
            "loss": one.loss,
            "length": one.length,
            // A number is nearer to the truth or further off, and never the same to the last digit.
            "right": one.numbers.is_none().then(|| one.is_right()),
        })
    };
    let confusion = confusion(all);
    let labels = confusion.as_ref().map_or(json!([]), |confusion| confusion["labels"].clone());
    let page: Vec<Value> = page.map(one).collect();
    json!({
        "part": name(part),
        "measure": "loss",
        "count": all.len(),
        "matching": chosen.len(),
        "examples": page,
        "groups": groups(all),
        "residuals": residuals(all),
        "labels": labels,
        "confusion": confusion,
    })
}

/// What should be known of a part's examples: sentences, some with a number `n` in them.
fn notes(all: &[Judged], run: &OneRun) -> Vec<Value> {
    let beam = run.run.options().ok().and_then(|options| options.get("search.beam")?.as_integer());
    let mut notes = counted(all, beam.unwrap_or(1));
    let of_run = run.run.notes().unwrap_or_default();
    notes.extend(of_run.into_iter().map(|text| json!({ "text": text })));
    notes
}

fn counted(all: &[Judged], beam: i64) -> Vec<Value> {
    let unknown = all.iter().filter(|one| one.loss.is_nan()).count();
    let labels = labels(all).len();
    let told = [
        (
            unknown,
            unknown > 0,
            "{n} examples have no loss and stand last: the model cannot give what is true of them, \
             such as a label that training has not seen.",
        ),
        (
            labels,
            labels > MOST_LABELS,
            "{n} labels are too many for a matrix; the filters find the examples of each.",
        ),
        (
            beam.max(0) as usize,
            beam > 1,
            "Outputs are written greedily here; the beam of {n} of “Look and change” may find others.",
        ),
    ];
    let told = told.into_iter().filter(|(_, holds, _)| *holds);
    told.map(|(n, _, text)| json!({ "text": text, "n": n })).collect()
}

/// All labels that are true or predicted, in order.
fn labels(all: &[Judged]) -> Vec<&String> {
    let mut labels: Vec<&String> =
        all.iter().flat_map(|one| &one.labels).flat_map(|(a, b)| [a, b]).collect();
    labels.sort_unstable();
    labels.dedup();
    labels
}

/// Labels above which a matrix can no longer be looked at.
const MOST_LABELS: usize = 100;

/// How often which label was taken for which; none where text is written, or where labels are too
/// many.
fn confusion(all: &[Judged]) -> Option<Value> {
    let labels = labels(all);
    if labels.is_empty() || labels.len() > MOST_LABELS {
        return None;
    }
    let mut counts = vec![vec![0usize; labels.len()]; labels.len()];
    for (truth, predicted) in all.iter().flat_map(|one| &one.labels) {
        let at = |label| labels.binary_search(&label).unwrap_or(0);
        counts[at(truth)][at(predicted)] += 1;
    }
    Some(json!({ "labels": labels, "counts": counts }))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn examples() -> Vec<Judged> {
        let one = |index, input: &str, loss, truth: &str, output: &str| Judged {
            index,
            input: input.into(),
            truth: truth.into(),
            output: output.into(),
            loss,
            length: input.split(' ').count(),
            labels: vec![(truth.into(), output.into())],
            ..Judged::default()
        };
        vec![
            one(0, "a good film", 0.1, "pos", "pos"),
            one(1, "a bird", 3.0, "pos", "neg"),
            one(2, "dull", f64::NAN, "new", "neg"),
            one(3, "a very dull film", 0.5, "neg", "neg"),
        ]
    }

    fn indices(query: &str) -> Vec<usize> {
        let all = examples();
        Query::read(query).unwrap().choose(&all).iter().map(|one| one.index).collect()
    }

    #[test]
    fn the_worst_come_first_and_what_has_no_loss_last() {
        assert_eq!(indices(""), [1, 3, 0, 2]);
        assert_eq!(indices("order=up"), [0, 3, 1, 2]);
        assert_eq!(indices("sort=length&order=up"), [2, 1, 0, 3]);
    }

    #[test]
    fn labels_lengths_and_text_choose() {
        assert_eq!(indices("label=pos&predicted=neg"), [1]);
        assert_eq!(indices("right=false"), [1, 2]);
        assert_eq!(indices("shortest=2&longest=3"), [1, 0]);
        assert_eq!(indices("text=FILM"), [3, 0]);
        assert!(Query::read("sort=beauty").is_err() && Query::read("x=1").is_err());
    }

    #[test]
    fn what_should_be_known_of_a_part_is_said_with_its_number() {
        let told = counted(&examples(), 4);
        assert_eq!(told.iter().map(|note| &note["n"]).collect::<Vec<_>>(), [1, 4]);
        assert!(counted(&examples()[..2], 1).is_empty());
    }

    #[test]
    fn a_confusion_matrix_counts_every_pair_of_labels() {
        let confusion = confusion(&examples()).unwrap();
        assert_eq!(confusion["labels"], json!(["neg", "new", "pos"]));
        assert_eq!(confusion["counts"], json!([[1, 0, 0], [1, 0, 0], [1, 0, 1]]));
    }
}
