//! What a model reads: tokens, vectors or images.

use super::Sentences;
use regard_tensor::{Result, Tensor, ensure};

/// What the source of a [`Seq2Seq`](crate::Seq2Seq) is.
///
/// ```
/// use regard::prelude::*;
/// use regard::models::SourceConfig;
/// let sound: SourceConfig = serde_json::from_str(r#"{ "kind": "vectors", "width": 40 }"#).unwrap();
/// assert_eq!(sound, SourceConfig::Vectors { width: 40 });
/// assert_eq!(SourceConfig::from(100), SourceConfig::Tokens { vocabulary: 100 });
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields))]
#[non_exhaustive]
pub enum SourceConfig {
    /// Token ids, each with a learned vector.
    Tokens {
        /// How many tokens there are.
        vocabulary: usize,
    },
    /// Vectors from elsewhere, such as frames of sound.
    Vectors {
        /// Their width.
        width: usize,
    },
    /// Images, cut into patches from left to right, then from top to bottom; each is projected to a
    /// vector, and learned vectors say in which row and in which column it stands.
    Patches {
        /// Height and width of the images.
        image: [usize; 2],
        /// Channels of the images.
        channels: usize,
        /// Side of a patch; it divides height and width.
        patch: usize,
    },
}

impl From<usize> for SourceConfig {
    /// Tokens of a vocabulary of this size.
    fn from(vocabulary: usize) -> Self {
        Self::Tokens { vocabulary }
    }
}

impl SourceConfig {
    /// Refuses what cannot be read, by name.
    pub(super) fn check(&self, padding: usize) -> Result<()> {
        match *self {
            Self::Tokens { vocabulary } => ensure!(
                padding < vocabulary,
                "the padding token {padding} is not within a source vocabulary of {vocabulary}"
            ),
            Self::Vectors { width } => ensure!(width > 0, "source vectors of width 0"),
            Self::Patches { image: [height, width], channels, patch } => {
                ensure!(
                    height > 0 && width > 0 && channels > 0,
                    "images of {height} × {width} with {channels} channels"
                );
                ensure!(
                    patch > 0 && height.is_multiple_of(patch) && width.is_multiple_of(patch),
                    "a patch of {patch} does not divide an image of {height} × {width}"
                );
            }
        }
        Ok(())
    }
}

/// A batch of sources. Tokens come from [`Sentences`], which every method that reads sources takes
/// as they are.
///
/// ```
/// use regard::prelude::*;
/// use regard::models::Source;
/// let sound = Source::vectors(Tensor::zeros(&[2, 30, 40], DType::F32)?, vec![30, 12]);
/// assert_eq!(sound.lengths, [30, 12]);
/// let pictures = Source::images(Tensor::zeros(&[5, 3, 32, 32], DType::F32)?, 4)?;
/// assert_eq!(pictures.lengths, [64; 5]);
/// # Ok::<(), regard::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Source {
    /// Token ids `[B, N]`, vectors `[B, N, D]` or images `[B, C, height, width]`.
    pub x: Tensor,
    /// How many tokens, vectors or patches each source has, `[B]`.
    pub lengths: Vec<usize>,
    /// What each token is called where it is written, for a model that copies.
    pub copies: Option<Copies>,
}

/// The tokens of sources as a model that copies may write them. Ids below the target's vocabulary
/// are its words; the words of a source that are not in it have ids behind it, from the size of the
/// vocabulary on, and mean another word in each source.
///
/// ```
/// use regard::prelude::*;
/// use regard::models::Copies;
/// // "Mina met Otto", of which the target's vocabulary of 10 knows "met" alone
/// let copies = Copies { ids: vec![vec![10, 7, 11]] };
/// assert_eq!(copies.words(10), 12);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Copies {
    /// For each source the id of each of its tokens.
    pub ids: Vec<Vec<usize>>,
}

impl Copies {
    /// How many words can be written with a vocabulary of this size.
    ///
    /// ```
    /// use regard::prelude::*;
    /// use regard::models::Copies;
    /// assert_eq!(Copies { ids: vec![vec![1, 2]] }.words(10), 10);
    /// ```
    pub fn words(&self, vocabulary: usize) -> usize {
        self.ids.iter().flatten().map(|id| id + 1).max().unwrap_or(0).max(vocabulary)
    }
}

impl Source {
    /// Vectors `[B, N, D]`, of which each source has so many.
    ///
    /// ```
    /// use regard::prelude::*;
    /// use regard::models::Source;
    /// let sound = Source::vectors(Tensor::zeros(&[1, 30, 40], DType::F32)?, vec![30]);
    /// assert!(sound.copies.is_none());
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn vectors(x: Tensor, lengths: Vec<usize>) -> Self {
        Self { x, lengths, copies: None }
    }

    /// Images `[B, C, height, width]` that are cut into patches of a side.
    /// Refuses a tensor that is not `[B, C, height, width]`, and patches of side 0.
    ///
    /// ```
    /// use regard::prelude::*;
    /// use regard::models::Source;
    /// let images = Tensor::zeros(&[5, 3, 32], DType::F32)?;
    /// let error = Source::images(images, 4).unwrap_err().to_string();
    /// assert_eq!(error, "images of shape [5, 3, 32]; they are [B, C, height, width]");
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn images(x: Tensor, patch: usize) -> Result<Self> {
        let &[b, _, height, width] = x.shape() else {
            return Err(crate::Error::new(format!(
                "images of shape {:?}; they are [B, C, height, width]",
                x.shape()
            )));
        };
        ensure!(patch > 0, "patches of side 0");
        let patches = (height / patch).saturating_mul(width / patch);
        Ok(Self { x, lengths: vec![patches; b], copies: None })
    }

    /// Tokens that a model may copy, and what each is called there.
    ///
    /// ```
    /// use regard::prelude::*;
    /// use regard::models::{Copies, Sentences, Source};
    /// let sentences = Sentences::new(&[vec![3, 3, 4]], 0)?;
    /// let source = Source::copied(&sentences, Copies { ids: vec![vec![10, 11, 7]] });
    /// assert_eq!(source.copies.unwrap().words(10), 12);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn copied(sentences: &Sentences, copies: Copies) -> Self {
        Self { copies: Some(copies), ..Self::from(sentences) }
    }

    /// Refuses names for other tokens than there are.
    pub(super) fn check_copies(&self) -> Result<&Copies> {
        let Some(copies) = &self.copies else {
            return Err(crate::Error::new(
                "the model copies, and was not told what the source's tokens are called",
            ));
        };
        let given: Vec<usize> = copies.ids.iter().map(Vec::len).collect();
        ensure!(
            given == self.lengths,
            "sources of {:?} tokens, and copies of {given:?}",
            self.lengths
        );
        Ok(copies)
    }
}

impl From<&Sentences> for Source {
    fn from(sentences: &Sentences) -> Self {
        Self { x: sentences.ids.clone(), lengths: sentences.lengths.clone(), copies: None }
    }
}

impl From<&Source> for Source {
    fn from(source: &Source) -> Self {
        source.clone()
    }
}
