//! What was answered before.

use regard::attention::Intervention;
use regard_tasks::task::Input;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

/// What an answer depends on.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Key {
    /// The kind of question.
    pub(crate) kind: &'static str,
    pub(crate) run: String,
    /// Which checkpoint of the run.
    pub(crate) generation: u64,
    pub(crate) input: Input,
    pub(crate) changes: Intervention,
}

/// The newest answers, as many as fit.
pub(crate) struct Cache {
    most: usize,
    held: Mutex<Held>,
}

#[derive(Default)]
struct Held {
    answers: VecDeque<(Key, Arc<[u8]>)>,
    bytes: usize,
}

/// Answers that are held, however small they are.
const ANSWERS: usize = 256;

impl Cache {
    /// For so many bytes.
    pub(crate) fn new(most: usize) -> Self {
        Self { most, held: Mutex::default() }
    }

    pub(crate) fn get(&self, key: &Key) -> Option<Arc<[u8]>> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let at = held.answers.iter().position(|(known, _)| known == key)?;
        // What is asked for again stays longest.
        let found = held.answers.remove(at)?;
        let answer = found.1.clone();
        held.answers.push_front(found);
        Some(answer)
    }

    pub(crate) fn put(&self, key: Key, answer: Arc<[u8]>) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if size(&key, &answer) > self.most {
            return;
        }
        held.bytes += size(&key, &answer);
        held.answers.push_front((key, answer));
        while held.bytes > self.most || held.answers.len() > ANSWERS {
            let Some((key, answer)) = held.answers.pop_back() else { break };
            held.bytes -= size(&key, &answer);
        }
    }
}

fn size(key: &Key, answer: &[u8]) -> usize {
    let input = match &key.input {
        Input::Text(text) => text.len(),
        Input::File { bytes, .. } => bytes.len(),
        Input::Example { .. } => 0,
    };
    answer.len() + input + 200
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str) -> Key {
        Key {
            kind: "ask",
            run: "run".into(),
            generation: 0,
            input: text.into(),
            changes: Intervention::default(),
        }
    }

    #[test]
    fn the_same_question_is_found_and_another_checkpoint_or_change_is_not() {
        let cache = Cache::new(10_000);
        cache.put(key("a"), vec![1].into());
        assert_eq!(cache.get(&key("a")).as_deref(), Some(&[1][..]));
        assert!(cache.get(&Key { generation: 1, ..key("a") }).is_none());
        let warm = Intervention { temperature: Some(2.0), ..Intervention::default() };
        assert!(cache.get(&Key { changes: warm, ..key("a") }).is_none());
    }

    #[test]
    fn what_was_not_asked_for_longest_makes_room() {
        let cache = Cache::new(1000);
        for name in ["a", "b", "c"] {
            cache.put(key(name), vec![0; 100].into());
        }
        assert!(cache.get(&key("a")).is_some());
        cache.put(key("d"), vec![0; 100].into());
        assert!(cache.get(&key("a")).is_some() && cache.get(&key("b")).is_none());
        cache.put(key("large"), vec![0; 2000].into());
        assert!(cache.get(&key("large")).is_none());
    }
}
