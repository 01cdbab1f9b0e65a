//! What the words of a source are called where they are copied.

use regard_data::text::{Tokenizer, TokenizerKind, UNKNOWN};
use regard_data::{Error, Result};

/// The words of one source as they may be written: those that the target's vocabulary knows by its
/// ids, the others by ids behind it.
#[derive(Clone, Debug, Default)]
pub(crate) struct CopyNames {
    /// Of each token of the source.
    pub(crate) ids: Vec<usize>,
    /// The words behind the vocabulary, in the order in which they come.
    pub(crate) unknown: Vec<String>,
}

/// Refuses to copy pieces of words.
pub(crate) fn check_copying(copy: bool, kind: TokenizerKind) -> Result<()> {
    match (copy, kind) {
        (true, TokenizerKind::Bpe) => Err(Error::invalid(
            "`model.copy` copies whole words; `text.tokenizer=bpe` has pieces of them, of which \
             none is unknown",
        )),
        (true, TokenizerKind::Pretrained) => Err(Error::invalid(
            "`model.copy` copies whole words; a pretrained tokenizer has pieces of them",
        )),
        _ => Ok(()),
    }
}

impl CopyNames {
    /// Of a source's tokens, as its tokenizer shows them.
    pub(crate) fn new(tokens: Vec<String>, target: &Tokenizer) -> Self {
        let mut names = Self::default();
        for token in tokens {
            let id = match target.id(&token) {
                UNKNOWN => {
                    let known = names.unknown.iter().position(|word| *word == token);
                    let at = known.unwrap_or_else(|| {
                        names.unknown.push(token);
                        names.unknown.len() - 1
                    });
                    target.len() + at
                }
                id => id,
            };
            names.ids.push(id);
        }
        names
    }

    /// The ids of a target, in which words of the source may stand that the vocabulary lacks.
    pub(crate) fn encode(&self, text: &str, target: &Tokenizer) -> Vec<usize> {
        let ids = target.encode(text).into_iter().zip(target.tokens(text));
        let id = |(id, token): (usize, String)| match id {
            UNKNOWN => {
                let copied = self.unknown.iter().position(|word| *word == token);
                copied.map_or(UNKNOWN, |at| target.len() + at)
            }
            id => id,
        };
        ids.map(id).collect()
    }

    /// One word that was written.
    pub(crate) fn token<'a>(&'a self, id: usize, target: &'a Tokenizer) -> &'a str {
        match id.checked_sub(target.len()) {
            Some(at) => self.unknown.get(at).map_or(target.token(UNKNOWN), String::as_str),
            None => target.token(id),
        }
    }

    /// What was written.
    pub(crate) fn decode(&self, ids: &[usize], target: &Tokenizer) -> String {
        let ids = ids.iter().copied().filter(|&id| id >= UNKNOWN);
        target.join(ids.map(|id| self.token(id, target)))
    }
}
