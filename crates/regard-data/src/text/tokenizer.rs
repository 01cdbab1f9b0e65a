//! A text as the ids of its tokens, and back.

use super::{
    bpe::PieceModel,
    pretrained::Pretrained,
    vocabulary::{SPECIAL, UNKNOWN, Vocabulary, characters},
    words,
};
use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::path::{Path, PathBuf};

/// What a token is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TokenizerKind {
    /// What stands between spaces.
    Whitespace,
    /// Words and marks of punctuation; each Chinese or Japanese character by itself.
    #[default]
    Words,
    /// Characters, spaces among them.
    Characters,
    /// Pieces of words, learned by joining the commonest pair of them again and again.
    Bpe,
    /// As a `tokenizer.json` says that came with a public model, such as BERT's WordPiece.
    Pretrained,
}

/// What a [`Tokenizer`] is to learn.
///
/// ```
/// use regard_data::text::{TokenizerConfig, TokenizerKind};
/// let config: TokenizerConfig = serde_json::from_str(r#"{ "kind": "bpe" }"#).unwrap();
/// assert_eq!(config, TokenizerConfig { kind: TokenizerKind::Bpe, ..Default::default() });
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TokenizerConfig {
    /// What a token is.
    pub kind: TokenizerKind,
    /// Whether capitals are lowercased.
    pub lowercase: bool,
    /// How many tokens there may be at most, the four special ones too.
    pub size: usize,
    /// A token that occurs less often in the training data is unknown.
    pub minimum_count: usize,
    /// The `tokenizer.json` of a pretrained one.
    pub file: Option<PathBuf>,
}

impl Default for TokenizerConfig {
    fn default() -> Self {
        let (kind, size) = (TokenizerKind::Words, 10_000);
        Self { kind, lowercase: false, size, minimum_count: 1, file: None }
    }
}

/// A text as the ids of its tokens, and back. Ids 0 to 3 are special: [`PADDING`](super::PADDING),
/// [`START`](super::START), [`END`](super::END), [`UNKNOWN`].
///
/// ```
/// use regard_data::text::{Tokenizer, TokenizerConfig};
/// let tokenizer = Tokenizer::learn(&["I saw a saw.", "我看见锯子。"], &TokenizerConfig::default())?;
/// let ids = tokenizer.encode("I saw 锯子.");
/// assert_eq!(tokenizer.tokens("I saw 锯子."), ["I", "saw", "锯", "子", "."]);
/// assert_eq!(tokenizer.decode(&ids), "I saw锯子.");
/// # Ok::<(), regard_data::Error>(())
/// ```
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tokenizer {
    kind: TokenizerKind,
    lowercase: bool,
    known: Known,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Known {
    Tokens(Vocabulary),
    #[serde(rename = "pairs")]
    Pieces(Box<PieceModel>),
    Pretrained(Box<Pretrained>),
}

impl Tokenizer {
    /// The tokens of the training data. Refuses data without any, and a size without room for one.
    pub fn learn(lines: &[impl AsRef<str>], config: &TokenizerConfig) -> Result<Self> {
        let &TokenizerConfig { kind, lowercase, size, minimum_count, .. } = config;
        if kind == TokenizerKind::Pretrained {
            let missing = || Error::invalid("a pretrained tokenizer wants `text.tokenizer_file`");
            return Self::pretrained(config.file.as_ref().ok_or_else(missing)?);
        }
        let lines: Vec<_> = lines.iter().map(|line| cased(line.as_ref(), lowercase)).collect();
        let known = match kind {
            TokenizerKind::Bpe => {
                Known::Pieces(Box::new(PieceModel::learn(&lines, minimum_count, size)?))
            }
            _ => {
                let tokens = lines.iter().flat_map(|line| split(line, kind));
                Known::Tokens(Vocabulary::learn(tokens, minimum_count, size)?)
            }
        };
        Ok(Self { kind, lowercase, known })
    }

    /// The tokens of a `tokenizer.json` as the library of that name writes it. It makes letters small
    /// where it says so itself.
    pub fn pretrained(file: &Path) -> Result<Self> {
        let known = Known::Pretrained(Box::new(Pretrained::read(file)?));
        Ok(Self { kind: TokenizerKind::Pretrained, lowercase: false, known })
    }

    /// The pretrained one, where it is one.
    pub fn as_pretrained(&self) -> Option<&Pretrained> {
        match &self.known {
            Known::Pretrained(tokenizer) => Some(tokenizer),
            _ => None,
        }
    }

    /// What a token is.
    pub fn kind(&self) -> TokenizerKind {
        self.kind
    }

    /// The ids of a text's tokens `[N]`, without start and end.
    pub fn encode(&self, text: &str) -> Vec<usize> {
        let text = cased(text, self.lowercase);
        match &self.known {
            Known::Tokens(vocabulary) => {
                split(&text, self.kind).into_iter().map(|token| vocabulary.id(token)).collect()
            }
            Known::Pieces(model) => model.pieces(&text).iter().map(|piece| piece.id).collect(),
            Known::Pretrained(tokenizer) => {
                tokenizer.pieces(&text).into_iter().map(|piece| piece.id).collect()
            }
        }
    }

    /// The tokens `[N]` as they are shown beside a picture: an unknown one as it is written.
    pub fn tokens(&self, text: &str) -> Vec<String> {
        let text = cased(text, self.lowercase);
        match &self.known {
            Known::Tokens(_) => split(&text, self.kind).into_iter().map(str::to_string).collect(),
            Known::Pieces(model) => {
                let pieces = model.pieces(&text);
                pieces.iter().map(|piece| PieceModel::shown(&piece.surface).to_string()).collect()
            }
            Known::Pretrained(tokenizer) => {
                tokenizer.pieces(&text).into_iter().map(|piece| piece.token).collect()
            }
        }
    }

    /// The text of some ids. Padding, start and end are left out; unknown is written `<unk>`.
    pub fn decode(&self, ids: &[usize]) -> String {
        if let Known::Pretrained(tokenizer) = &self.known {
            return tokenizer.decode(ids);
        }
        let ids = ids.iter().copied().filter(|&id| id >= UNKNOWN);
        self.join(ids.map(|id| self.name(id)))
    }

    /// The text of some tokens.
    pub fn join<'a>(&self, names: impl Iterator<Item = &'a str>) -> String {
        match self.kind {
            TokenizerKind::Whitespace => names.collect::<Vec<_>>().join(" "),
            TokenizerKind::Words => words::join(names),
            TokenizerKind::Characters => names.collect(),
            TokenizerKind::Bpe | TokenizerKind::Pretrained => PieceModel::join(names),
        }
    }

    /// One token as it is shown beside a picture; `<unk>` beyond the last.
    pub fn token(&self, id: usize) -> &str {
        match self.kind {
            TokenizerKind::Bpe => PieceModel::shown(self.name(id)),
            _ => self.name(id),
        }
    }

    /// The id of one token as it is shown; unknown where there is none.
    pub fn id(&self, token: &str) -> usize {
        match &self.known {
            Known::Tokens(vocabulary) => vocabulary.id(token),
            Known::Pieces(_) | Known::Pretrained(_) => UNKNOWN,
        }
    }

    /// How many ids there are, the four special ones too.
    #[expect(clippy::len_without_is_empty, reason = "the special tokens are always here")]
    pub fn len(&self) -> usize {
        match &self.known {
            Known::Tokens(vocabulary) => vocabulary.len(),
            Known::Pieces(model) => model.names().len(),
            Known::Pretrained(tokenizer) => tokenizer.len(),
        }
    }

    fn name(&self, id: usize) -> &str {
        match &self.known {
            Known::Tokens(vocabulary) => vocabulary.name(id),
            Known::Pieces(model) => model.names().get(id).map_or(SPECIAL[UNKNOWN], String::as_str),
            Known::Pretrained(tokenizer) => tokenizer.name(id),
        }
    }
}

fn cased(text: &str, lowercase: bool) -> Cow<'_, str> {
    if lowercase { text.to_lowercase().into() } else { text.into() }
}

/// The tokens of a text, as they are written; for byte pairs, what they are pairs of.
pub fn split(text: &str, kind: TokenizerKind) -> Vec<&str> {
    match kind {
        TokenizerKind::Characters => characters(text).collect(),
        TokenizerKind::Words => words::words(text).collect(),
        TokenizerKind::Pretrained => words::words(text).collect(),
        TokenizerKind::Whitespace | TokenizerKind::Bpe => text.split_whitespace().collect(),
    }
}
