//! Pieces of words, learned by joining the commonest pair again and again (byte-pair encoding, on
//! characters).

use super::{
    vocabulary::{SPECIAL, UNKNOWN, capacity, characters, most_common},
    words::runs,
};
use crate::{Error, Result};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::{borrow::Cow, collections::HashSet};
use tokenizers::{
    AddedToken, Model, Trainer,
    models::bpe::{BPE, BpeTrainer},
};

/// Stands for the space before a word, so that pieces put together give the text again.
const SPACE: char = '▁';

/// A piece of a text: its id, and the characters it covers.
pub(super) struct Piece {
    pub(super) id: usize,
    pub(super) surface: String,
}

/// Pieces of words, most of them several characters long.
#[derive(Clone, Debug)]
pub(super) struct PieceModel {
    model: BPE,
    /// By id.
    names: Vec<String>,
}

impl PieceModel {
    pub(super) fn learn(lines: &[Cow<'_, str>], minimum_count: usize, size: usize) -> Result<Self> {
        let alphabet = alphabet(lines, minimum_count, capacity(size)?)?;
        // More pieces than this cannot come from the text, and the trainer makes room for all.
        let bytes: usize = lines.iter().map(|line| line.len()).sum();
        let size = size.min(SPECIAL.len() + 1 + 3 * bytes);
        let mut trainer = BpeTrainer::builder()
            .show_progress(false)
            .vocab_size(size)
            // A pair that occurs once is no pattern: joining it would learn lines by heart.
            .min_frequency(minimum_count.max(2) as u64)
            .special_tokens(special().map(|name| AddedToken::from(name, true)).collect())
            .build();
        // The trainer would drop rare characters as chance has it, and join what stands around
        // them: so it never sees them.
        let known = |line: &str| {
            let mut known = Vec::new();
            for word in marked(line) {
                let parts = word.split(|character| !alphabet.contains(&character));
                known.extend(parts.filter(|part| !part.is_empty()).map(str::to_string));
            }
            Ok(known)
        };
        let unlearned = |error| Error::invalid(format!("byte pairs could not be learned: {error}"));
        trainer.feed(lines.iter().map(AsRef::as_ref), known).map_err(unlearned)?;
        let mut model = BPE::default();
        model.unk_token = special().nth(UNKNOWN);
        trainer.train(&mut model).map_err(unlearned)?;
        Self::of(model)
    }

    pub(super) fn pieces(&self, text: &str) -> Vec<Piece> {
        let pieces = |word: String| {
            let tokens = self.model.tokenize(&word).expect("`of` saw that unknown has an id");
            tokens.into_iter().map(move |token| Piece {
                id: token.id as usize,
                surface: word[token.offsets.0..token.offsets.1].to_string(),
            })
        };
        marked(text).flat_map(pieces).collect()
    }

    /// A piece without the mark of the space before it.
    pub(super) fn shown(piece: &str) -> &str {
        match piece.strip_prefix(SPACE) {
            Some("") => " ",
            Some(rest) => rest,
            None => piece,
        }
    }

    /// A text of pieces.
    pub(super) fn join<'a>(pieces: impl IntoIterator<Item = &'a str>) -> String {
        let text: String = pieces.into_iter().collect();
        text.replace(SPACE, " ").trim().to_string()
    }

    pub(super) fn names(&self) -> &[String] {
        &self.names
    }

    fn of(model: BPE) -> Result<Self> {
        let mut named: Vec<(u32, String)> =
            model.get_vocab().into_iter().map(|(name, id)| (id, name)).collect();
        named.sort();
        let numbered = named.iter().zip(0..).all(|((id, _), index)| *id == index);
        let names: Vec<String> = named.into_iter().map(|(_, name)| name).collect();
        let special: Vec<String> = special().collect();
        if !(numbered && names.starts_with(&special) && model.unk_token == special.last().cloned())
        {
            return Err(Error::invalid("these byte pairs were not learned by this program"));
        }
        let names = names.into_iter().enumerate();
        let names = names.map(|(id, name)| SPECIAL.get(id).map_or(name, |name| name.to_string()));
        Ok(Self { model, names: names.collect() })
    }
}

impl Serialize for PieceModel {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        self.model.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for PieceModel {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        // The model can only be read from borrowed text, which not every deserializer has.
        let json = serde_json::Value::deserialize(deserializer)?.to_string();
        let model = serde_json::from_str(&json).map_err(serde::de::Error::custom)?;
        Self::of(model).map_err(serde::de::Error::custom)
    }
}

/// Special tokens end with a space, which no piece has: none can be joined from a text.
fn special() -> impl Iterator<Item = String> {
    SPECIAL.iter().map(|name| format!("{name} "))
}

/// The characters worth an id of their own, and the mark of a space.
fn alphabet(lines: &[Cow<'_, str>], minimum: usize, capacity: usize) -> Result<HashSet<char>> {
    let texts = lines.iter().flat_map(|line| words(line));
    let common = most_common(texts.flat_map(characters), minimum, capacity - 1)?;
    Ok(common.into_iter().flat_map(str::chars).chain([SPACE]).collect())
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    let parted = text.split(|character: char| character.is_whitespace() || character == SPACE);
    parted.filter(|word| !word.is_empty())
}

/// What may be joined to pieces: words with a mark for the space before them, and what stands
/// behind them without a space.
fn marked(text: &str) -> impl Iterator<Item = String> {
    words(text).flat_map(|word| {
        runs(word).enumerate().map(|(index, run)| match index {
            0 => format!("{SPACE}{run}"),
            _ => run.to_string(),
        })
    })
}
