//! A sentence as numbers, and how a long one is cut.

/// A sentence as numbers.
#[derive(Clone, Debug, Default)]
pub(super) struct EncodedSentence {
    /// The ids `[N]` of the words, or of their pieces.
    pub(super) words: Vec<usize>,
    /// Where the pieces of each word begin, and where the last one's end, where there are pieces.
    pub(super) bounds: Option<Vec<usize>>,
    /// The ids of each word's letters.
    pub(super) characters: Vec<Vec<usize>>,
}

impl EncodedSentence {
    /// The places that words are labeled at.
    pub(super) fn places(&self) -> Vec<usize> {
        match &self.bounds {
            Some(bounds) => bounds[..bounds.len() - 1].to_vec(),
            None => (0..self.words.len()).collect(),
        }
    }

    /// Cut into parts of so many words or pieces at most, between words; one part where there are
    /// no words.
    pub(super) fn cut(&self, longest: usize) -> Vec<Self> {
        if self.words.len() <= longest {
            return vec![self.clone()];
        }
        if let Some(bounds) = &self.bounds {
            return self.cut_pieces(bounds, longest);
        }
        let starts = (0..self.words.len()).step_by(longest);
        let part = |start: usize| {
            let end = self.words.len().min(start + longest);
            let characters = self.characters.get(start..end).unwrap_or_default().to_vec();
            Self { words: self.words[start..end].to_vec(), bounds: None, characters }
        };
        starts.map(part).collect()
    }

    /// As [`Self::cut`], with what stands before and after the pieces in every part. Of a word that
    /// alone has too many pieces its first are read.
    fn cut_pieces(&self, bounds: &[usize], longest: usize) -> Vec<Self> {
        let (before, after) = (&self.words[..bounds[0]], &self.words[bounds[bounds.len() - 1]..]);
        let room = longest.saturating_sub(before.len() + after.len()).max(1);
        let mut parts: Vec<Self> = Vec::new();
        for word in bounds.windows(2) {
            let pieces = &self.words[word[0]..word[1].min(word[0] + room)];
            let fits = |part: &Self| part.words.len() + pieces.len() <= before.len() + room;
            if !parts.last().is_some_and(fits) {
                let bounds = Some(vec![before.len()]);
                parts.push(Self { words: before.to_vec(), bounds, characters: Vec::new() });
            }
            if let Some(part) = parts.last_mut() {
                part.words.extend_from_slice(pieces);
                part.bounds.get_or_insert_default().push(part.words.len());
            }
        }
        parts.iter_mut().for_each(|part| part.words.extend_from_slice(after));
        parts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Five words of 1, 3, 2, 6 and 1 pieces, between 100 and 101.
    fn sentence() -> EncodedSentence {
        let pieces = [vec![100], (0..13).collect(), vec![101]].concat();
        EncodedSentence {
            words: pieces,
            bounds: Some(vec![1, 2, 5, 7, 13, 14]),
            characters: Vec::new(),
        }
    }

    #[test]
    fn a_long_sentence_in_pieces_is_cut_between_words_and_loses_none() {
        assert_eq!(sentence().cut(15).len(), 1);
        for longest in 3..15 {
            let parts = sentence().cut(longest);
            let mut firsts = Vec::new();
            for part in &parts {
                assert!(part.words.len() <= longest, "{} of {longest}", part.words.len());
                assert_eq!((part.words[0], part.words[part.words.len() - 1]), (100, 101));
                firsts.extend(part.places().into_iter().map(|place| part.words[place]));
            }
            assert_eq!(firsts, [0, 1, 4, 6, 12], "longest {longest}");
        }
        let parts = sentence().cut(8);
        let read: Vec<&[usize]> = parts.iter().map(|part| &part.words[..]).collect();
        assert_eq!(
            read,
            [&[100, 0, 1, 2, 3, 4, 5, 101][..], &[100, 6, 7, 8, 9, 10, 11, 101], &[100, 12, 101]]
        );
    }
}
