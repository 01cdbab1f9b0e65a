//! A tokenizer that came with a public model.

use crate::files::text;
use crate::{Error, Result};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de, ser};
use std::path::Path;

/// A tokenizer that came with a public model, as its `tokenizer.json` says.
#[derive(Clone)]
pub struct Pretrained {
    tokenizer: tokenizers::Tokenizer,
    /// By id.
    names: Vec<String>,
}

/// A piece of a text.
pub struct Piece {
    pub id: usize,
    pub token: String,
}

impl Pretrained {
    pub(super) fn read(file: &Path) -> Result<Self> {
        Self::of(&text(file, None)?).map_err(|what| Error::file(file, what))
    }

    fn of(json: &str) -> std::result::Result<Self, String> {
        let mut tokenizer: tokenizers::Tokenizer = json.parse().map_err(|e| format!("{e}"))?;
        // What is cut or filled up is for the task to say.
        tokenizer.with_padding(None);
        tokenizer.with_truncation(None).map_err(|e| format!("{e}"))?;
        let count = tokenizer.get_vocab_size(true) as u32;
        let names = (0..count).map(|id| tokenizer.id_to_token(id).unwrap_or_default()).collect();
        Ok(Self { tokenizer, names })
    }

    /// The pieces of a text, with what its model wants after them ([SEP]) and without what it wants
    /// before ([CLS]): a class token stands there.
    pub(super) fn pieces(&self, text: &str) -> Vec<Piece> {
        let Ok(encoding) = self.tokenizer.encode(text, true) else { return Vec::new() };
        let before = encoding.get_special_tokens_mask().iter().take_while(|&&is| is == 1).count();
        // A text of nothing is special tokens only.
        let before = before.min(1);
        let all = encoding.get_ids().iter().zip(encoding.get_tokens()).skip(before);
        all.map(|(&id, token)| Piece { id: id as usize, token: token.clone() }).collect()
    }

    /// The pieces of one word alone; unknown where it has none.
    pub fn word(&self, word: &str) -> Vec<Piece> {
        let pieces: Vec<Piece> = match self.tokenizer.encode(word, false) {
            Ok(encoding) => (encoding.get_ids().iter().zip(encoding.get_tokens()))
                .map(|(&id, token)| Piece { id: id as usize, token: token.clone() })
                .collect(),
            Err(_) => Vec::new(),
        };
        match pieces.is_empty() {
            true => vec![Piece { id: self.special("[UNK]").unwrap_or(0), token: word.into() }],
            false => pieces,
        }
    }

    /// The id of a special token, where there is one.
    pub fn special(&self, name: &str) -> Option<usize> {
        self.tokenizer.token_to_id(name).map(|id| id as usize)
    }

    pub(super) fn decode(&self, ids: &[usize]) -> String {
        let ids: Vec<u32> = ids.iter().map(|&id| id as u32).collect();
        self.tokenizer.decode(&ids, true).unwrap_or_default()
    }

    /// A token by its id.
    pub fn name(&self, id: usize) -> &str {
        self.names.get(id).map_or("[UNK]", String::as_str)
    }

    /// How many tokens there are.
    #[allow(clippy::len_without_is_empty)] // a file without any is refused
    pub fn len(&self) -> usize {
        self.names.len()
    }
}

impl std::fmt::Debug for Pretrained {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Pretrained({} tokens)", self.names.len())
    }
}

impl Serialize for Pretrained {
    fn serialize<S: Serializer>(&self, to: S) -> std::result::Result<S::Ok, S::Error> {
        let json = self.tokenizer.to_string(false).map_err(ser::Error::custom)?;
        let value: serde_json::Value = serde_json::from_str(&json).map_err(ser::Error::custom)?;
        value.serialize(to)
    }
}

impl<'de> Deserialize<'de> for Pretrained {
    fn deserialize<D: Deserializer<'de>>(from: D) -> std::result::Result<Self, D::Error> {
        let value = serde_json::Value::deserialize(from)?;
        Self::of(&value.to_string()).map_err(de::Error::custom)
    }
}
