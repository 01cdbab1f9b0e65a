//! Sources as a task holds them, and batches of them as the library reads them.

use super::CopyNames;
use regard::Tensor;
use regard::models::{Copies, Sentences, Source};
use regard_data::Result;
use regard_data::text::PADDING;

/// What is read: many sources, of which a few at a time become a batch.
pub(crate) trait Sources {
    /// How many there are.
    fn count(&self) -> usize;

    /// How many tokens, vectors or patches one has.
    fn length(&self, at: usize) -> usize;

    /// Some of them, in this order.
    fn batch(&self, which: &[usize]) -> Result<Source>;
}

/// Texts as tokens.
#[derive(Default)]
pub(crate) struct TokenSources {
    pub(crate) ids: Vec<Vec<usize>>,
    /// What the tokens of each are called where they are copied.
    pub(crate) names: Option<Vec<CopyNames>>,
}

impl Sources for TokenSources {
    fn count(&self) -> usize {
        self.ids.len()
    }

    fn length(&self, at: usize) -> usize {
        self.ids[at].len()
    }

    fn batch(&self, which: &[usize]) -> Result<Source> {
        let ids: Vec<&[usize]> = which.iter().map(|&at| &self.ids[at][..]).collect();
        let sentences = Sentences::new(&ids, PADDING)?;
        Ok(match &self.names {
            None => Source::from(&sentences),
            Some(names) => {
                let ids = which.iter().map(|&at| names[at].ids.clone()).collect();
                Source::copied(&sentences, Copies { ids })
            }
        })
    }
}

/// Sequences of vectors, each one after the other.
pub(crate) struct VectorSources {
    pub(crate) width: usize,
    pub(crate) all: Vec<Vec<f32>>,
}

impl Sources for VectorSources {
    fn count(&self) -> usize {
        self.all.len()
    }

    fn length(&self, at: usize) -> usize {
        self.all[at].len() / self.width
    }

    fn batch(&self, which: &[usize]) -> Result<Source> {
        let lengths: Vec<usize> = which.iter().map(|&at| self.length(at)).collect();
        let longest = lengths.iter().copied().max().unwrap_or(0);
        let mut numbers = Vec::with_capacity(which.len() * longest * self.width);
        for (row, &at) in which.iter().enumerate() {
            numbers.extend_from_slice(&self.all[at]);
            numbers.resize((row + 1) * longest * self.width, 0.0);
        }
        let x = Tensor::from_vec(numbers, &[which.len(), longest, self.width])?;
        Ok(Source::vectors(x, lengths))
    }
}
