//! The words, or characters, that a model knows.

use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// Fills up a sequence shorter than the longest of its batch.
pub const PADDING: usize = 0;
/// Stands before the first token.
pub const START: usize = 1;
/// Stands after the last token.
pub const END: usize = 2;
/// Stands for what was not in the training data, or too rarely.
pub const UNKNOWN: usize = 3;

/// How the four special tokens are shown, by id.
pub(super) const SPECIAL: [&str; 4] = ["<pad>", "<s>", "</s>", "<unk>"];

/// The words that a model knows, the commonest first, behind the four special tokens
/// ([`PADDING`], [`START`], [`END`], [`UNKNOWN`]). A word of the text that is spelled like a
/// special token is a word like any other.
///
/// ```
/// use regard_data::text::{UNKNOWN, Vocabulary};
/// let words = Vocabulary::learn(["a", "cat", "a", "dog", "cat", "a"], 2, 100)?;
/// assert_eq!((words.id("a"), words.id("cat"), words.id("dog")), (4, 5, UNKNOWN));
/// assert_eq!(words.name(5), "cat");
/// # Ok::<(), regard_data::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Vec<String>", into = "Vec<String>")]
pub struct Vocabulary {
    names: Vec<String>,
    ids: HashMap<String, usize>,
}

impl Vocabulary {
    /// The words that occur at least `minimum_count` times, at most `size` names with the special
    /// ones; of equally common words the one that came first. Refuses a size without room for a
    /// word, and data without one.
    pub fn learn<'a>(
        words: impl IntoIterator<Item = &'a str>,
        minimum_count: usize,
        size: usize,
    ) -> Result<Self> {
        let words = most_common(words, minimum_count, capacity(size)?)?;
        let special = SPECIAL.iter().map(|name| name.to_string());
        Ok(Self::of(special.chain(words.into_iter().map(str::to_string)).collect()))
    }

    /// The characters of these words, for [`spell`](Self::spell).
    ///
    /// ```
    /// use regard_data::text::{UNKNOWN, Vocabulary};
    /// let letters = Vocabulary::characters(["see", "sea"], 1)?;
    /// assert_eq!(letters.spell("eat"), [4, 6, UNKNOWN]);
    /// # Ok::<(), regard_data::Error>(())
    /// ```
    pub fn characters<'a>(
        words: impl IntoIterator<Item = &'a str>,
        minimum_count: usize,
    ) -> Result<Self> {
        Self::learn(words.into_iter().flat_map(characters), minimum_count, usize::MAX)
    }

    /// The ids of a word's characters `[C]`, to be filled up with [`PADDING`] to the longest word
    /// of the batch.
    pub fn spell(&self, word: &str) -> Vec<usize> {
        characters(word).map(|character| self.id(character)).collect()
    }

    /// The id of a word: [`UNKNOWN`] for one that is not here.
    pub fn id(&self, word: &str) -> usize {
        self.ids.get(word).copied().unwrap_or(UNKNOWN)
    }

    /// The word of an id; that of [`UNKNOWN`] beyond the last.
    pub fn name(&self, id: usize) -> &str {
        self.names.get(id).map_or(SPECIAL[UNKNOWN], String::as_str)
    }

    /// How many names there are, the special ones too.
    #[expect(clippy::len_without_is_empty, reason = "the special tokens are always here")]
    pub fn len(&self) -> usize {
        self.names.len()
    }

    fn of(names: Vec<String>) -> Self {
        let numbered = names.iter().enumerate().skip(SPECIAL.len());
        let ids = numbered.map(|(id, name)| (name.clone(), id)).collect();
        Self { names, ids }
    }
}

impl TryFrom<Vec<String>> for Vocabulary {
    type Error = Error;

    fn try_from(names: Vec<String>) -> Result<Self> {
        if !names.iter().take(SPECIAL.len()).eq(SPECIAL) {
            return Err(Error::invalid(format!("a vocabulary begins with {}", SPECIAL.join(" "))));
        }
        let vocabulary = Self::of(names);
        if vocabulary.ids.len() + SPECIAL.len() != vocabulary.len() {
            return Err(Error::invalid("a vocabulary holds a word twice"));
        }
        Ok(vocabulary)
    }
}

impl From<Vocabulary> for Vec<String> {
    fn from(vocabulary: Vocabulary) -> Self {
        vocabulary.names
    }
}

/// How many names fit beside the special ones.
pub(super) fn capacity(size: usize) -> Result<usize> {
    match size.checked_sub(SPECIAL.len()) {
        None | Some(0) => Err(Error::invalid(format!(
            "a vocabulary of {size} has no room: {} are special tokens",
            SPECIAL.len()
        ))),
        Some(capacity) => Ok(capacity),
    }
}

/// The names that occur often enough, the commonest first, at most `capacity` of them.
pub(super) fn most_common<'a>(
    names: impl IntoIterator<Item = &'a str>,
    minimum_count: usize,
    capacity: usize,
) -> Result<Vec<&'a str>> {
    let counted = by_count(names);
    match counted.first() {
        None => Err(Error::invalid("there is no text to learn a vocabulary from")),
        Some((name, count)) if *count < minimum_count => Err(Error::invalid(format!(
            "no token occurs {minimum_count} times: the commonest, `{name}`, occurs {count} times"
        ))),
        _ => {
            let common = counted.into_iter().take_while(|(_, count)| *count >= minimum_count);
            Ok(common.map(|(name, _)| name).take(capacity).collect())
        }
    }
}

/// Names and how often they occur, the commonest first, of equals the one that came first.
pub fn by_count<'a>(names: impl IntoIterator<Item = &'a str>) -> Vec<(&'a str, usize)> {
    let mut indices = HashMap::new();
    let mut counted: Vec<(&str, usize)> = Vec::new();
    for name in names {
        let index = *indices.entry(name).or_insert_with(|| {
            counted.push((name, 0));
            counted.len() - 1
        });
        counted[index].1 += 1;
    }
    counted.sort_by_key(|&(_, count)| std::cmp::Reverse(count));
    counted
}

/// Each character of a text, as text.
pub(super) fn characters(text: &str) -> impl Iterator<Item = &str> {
    text.char_indices().map(|(at, character)| &text[at..at + character.len_utf8()])
}
