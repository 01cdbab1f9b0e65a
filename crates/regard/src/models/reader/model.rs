//! The reader.

use super::{Passages, SpanReaderConfig};
use crate::attention::{Intervention, Site, intervention};
use crate::{
    Embedding, Encoded, Encoder, LearnedQueries, Linear, Mask, Mechanism, MechanismConfig, Mode,
    Need, Weighting, length,
};
use regard_tensor::{CrossEntropy, DType, Parameters, Result, Tensor, ensure};

/// Answers a question with a span of a text: every word of the text attends to the question's words,
/// an encoder reads the words with what came of it and with the question as a whole, and two
/// distributions over the words say where the answer begins and where it ends.
///
/// ```
/// use regard::prelude::*;
/// use regard::layers::{Cell, EncoderConfig, RecurrentConfig};
/// use regard::models::{Passages, SpanReader, SpanReaderConfig};
/// let gru = RecurrentConfig { both_directions: true, ..RecurrentConfig::new(Cell::Gru, 8) };
/// let config = SpanReaderConfig::new(20, EncoderConfig::Recurrent(gru));
/// let reader = SpanReader::new(&Parameters::new(DType::F32, 1), &config)?;
/// let text = Tensor::from_vec(vec![3i64, 4, 5, 4, 6, 0], &[2, 3])?;
/// let questions = Tensor::from_vec(vec![7i64, 3, 7, 0], &[2, 2])?;
/// let passages = Passages {
///     text: &text, lengths: &[3, 2], features: None,
///     questions: &questions, question_lengths: &[2, 1],
/// };
/// let pointed = reader.point(&passages, Mode::Infer, Need::WEIGHTS)?;
/// assert_eq!(pointed.start.shape(), [2, 3]);
/// assert_eq!(pointed.alignment.as_ref().unwrap().shape(), [2, 3, 2]);
/// let span = pointed.spans(&[3, 2], 2)?[1];
/// assert!(span.start <= span.end && span.end < 2);
/// # Ok::<(), regard::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct SpanReader {
    config: SpanReaderConfig,
    embedding: Embedding,
    /// Words of the text over words of the question, and a query over the question.
    attention: Option<Attention>,
    question: Encoder,
    text: Encoder,
    start: Pointer,
    end: Pointer,
}

/// What scores words as one end of the answer. Its query is its own, so that scores without
/// parameters tell the two ends apart.
#[derive(Clone, Debug)]
struct Pointer {
    query: Linear,
    mechanism: Mechanism,
}

impl Pointer {
    fn new(
        parameters: &Parameters,
        config: &MechanismConfig,
        asked: usize,
        width: usize,
    ) -> Result<Self> {
        // Scores as they are: the loss normalizes them itself.
        let config = MechanismConfig { weighting: Weighting::None, dropout: 0.0, ..config.clone() };
        Ok(Self {
            query: Linear::new(&parameters.at("query"), asked, width, true)?,
            mechanism: Mechanism::new(&parameters.at("score"), &config, width, width)?,
        })
    }

    /// A question `[B, asked]` over words `[B, N, width]`: `[B, N]`, hardly any where there is no
    /// word.
    fn scores(
        &self,
        question: &Tensor,
        words: &Tensor,
        keep: Option<&Tensor>,
        mode: Mode,
    ) -> Result<Tensor> {
        let query = self.query.forward(question)?.unsqueeze(1)?;
        let none = Mask::none();
        let found = self.mechanism.attend(&query, words, words, &none, mode, Need::WEIGHTS)?;
        let Some(scores) = found.weights else {
            return Err(crate::Error::new("a pointer gave no scores"));
        };
        let scores = scores.squeeze(1)?;
        match keep {
            Some(keep) => keep.squeeze(2)?.where_(&scores, &never(scores.dtype())?),
            None => Ok(scores),
        }
    }
}

#[derive(Clone, Debug)]
struct Attention {
    alignment: Mechanism,
    summary: LearnedQueries,
}

/// What a [`SpanReader`] gives.
///
/// ```
/// use regard::prelude::*;
/// use regard::models::Pointed;
/// let start = Tensor::from_vec(vec![0.0, 2.0, 9.0], &[1, 3])?;
/// let end = Tensor::from_vec(vec![9.0, 1.0, 2.0], &[1, 3])?;
/// let pointed = Pointed::new(start, end);
/// // the end is never before the start, and a span has two words at most
/// let span = pointed.spans(&[3], 2)?[0];
/// assert_eq!((span.start, span.end), (2, 2));
/// # Ok::<(), regard::Error>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Pointed {
    /// The score of each word as the answer's first, `[B, N]`; hardly any past the text.
    pub start: Tensor,
    /// The score of each word as the answer's last, `[B, N]`.
    pub end: Tensor,
    /// How much each word of the text took of each of the question's, `[B, N, M]`, where it was
    /// asked for and there is attention.
    pub alignment: Option<Tensor>,
    /// The weights of a Transformer that read the text, `[B, H, N, N]`, block by block, where they
    /// were asked for.
    pub encoder: Vec<Tensor>,
}

/// The words from the start to the end, both among them.
///
/// ```
/// use regard::prelude::*;
/// use regard::models::Span;
/// let span = Span { start: 2, end: 4, log_prob: -0.1 };
/// assert_eq!((span.start..=span.end).count(), 3);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Span {
    /// The first word.
    pub start: usize,
    /// The last word.
    pub end: usize,
    /// The log-probability of both.
    pub log_prob: f64,
}

/// The score of a word past the end of its text: nothing beside any other, and finite in the type.
fn never(dtype: DType) -> Result<Tensor> {
    Tensor::full(&[], if dtype == DType::F16 { -6e4 } else { -1e9 }, dtype)
}

impl Pointed {
    /// Scores of every word as start and as end, `[B, N]` each, that any model gave.
    ///
    /// ```
    /// use regard::models::Pointed;
    /// use regard::prelude::*;
    /// let scores = Tensor::from([[0f32, 2.0, 1.0]]);
    /// assert!(Pointed::new(scores.clone(), scores).alignment.is_none());
    /// ```
    pub fn new(start: Tensor, end: Tensor) -> Self {
        Self { start, end, alignment: None, encoder: Vec::new() }
    }

    /// The likeliest span of each text with at most `longest` words.
    /// Refuses spans of 0 words.
    ///
    /// ```
    /// # use regard::prelude::*;
    /// # use regard::models::Pointed;
    /// let scores = Tensor::from_vec(vec![0.0, 2.0, 1.0], &[1, 3])?;
    /// let pointed = Pointed::new(scores.clone(), scores);
    /// assert_eq!(pointed.spans(&[3], 3)?[0].end, 1);
    /// assert!(pointed.spans(&[3], 0).is_err());
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn spans(&self, lengths: &[usize], longest: usize) -> Result<Vec<Span>> {
        ensure!(longest > 0, "a span of 0 words");
        let n = self.start.shape()[1];
        let numbers = |x: &Tensor| x.log_softmax(1)?.to_dtype(DType::F64)?.to_vec::<f64>();
        let (start, end) = (numbers(&self.start)?, numbers(&self.end)?);
        let best = |(item, &length): (usize, &usize)| {
            let (start, end) = (&start[item * n..][..length], &end[item * n..][..length]);
            let mut best = Span { start: 0, end: 0, log_prob: f64::NEG_INFINITY };
            for (first, p) in start.iter().enumerate() {
                let until = length.min(first.saturating_add(longest));
                for (last, q) in end.iter().enumerate().take(until).skip(first) {
                    if p + q > best.log_prob {
                        best = Span { start: first, end: last, log_prob: p + q };
                    }
                }
            }
            best
        };
        Ok(lengths.iter().enumerate().map(best).collect())
    }

    /// All spans of each text with at most `longest` words, the likeliest first, so many at most.
    /// Refuses spans of 0 words.
    ///
    /// ```
    /// # use regard::prelude::*;
    /// # use regard::models::Pointed;
    /// let scores = Tensor::from_vec(vec![0.5, 2.0, 1.0], &[1, 3])?;
    /// let pointed = Pointed::new(scores.clone(), scores);
    /// let best = &pointed.n_best_spans(&[3], 2, 3)?[0];
    /// let places: Vec<(usize, usize)> = best.iter().map(|span| (span.start, span.end)).collect();
    /// assert_eq!(places, [(1, 1), (1, 2), (0, 1)]);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn n_best_spans(
        &self,
        lengths: &[usize],
        longest: usize,
        n: usize,
    ) -> Result<Vec<Vec<Span>>> {
        ensure!(longest > 0, "a span of 0 words");
        let width = self.start.shape()[1];
        let numbers = |x: &Tensor| x.log_softmax(1)?.to_dtype(DType::F64)?.to_vec::<f64>();
        let (start, end) = (numbers(&self.start)?, numbers(&self.end)?);
        let best = |(item, &length): (usize, &usize)| {
            let (start, end) = (&start[item * width..][..length], &end[item * width..][..length]);
            let until = |first: usize| length.min(first.saturating_add(longest));
            let span = |first: usize, last: usize| Span {
                start: first,
                end: last,
                log_prob: start[first] + end[last],
            };
            let places =
                (0..length).flat_map(|first| (first..until(first)).map(move |l| (first, l)));
            let mut spans: Vec<Span> = places.map(|(first, last)| span(first, last)).collect();
            // The first of equals is first, as among `spans`.
            spans.sort_by(|a, b| b.log_prob.total_cmp(&a.log_prob));
            spans.truncate(n);
            spans
        };
        Ok(lengths.iter().enumerate().map(best).collect())
    }
}

impl SpanReader {
    /// New; refuses what cannot be built, by name.
    ///
    /// ```
    /// use regard::prelude::*;
    /// use regard::layers::EncoderConfig;
    /// use regard::models::{SpanReader, SpanReaderConfig};
    /// let parameters = Parameters::new(DType::F32, 1);
    /// let config = SpanReaderConfig { attention: false, ..SpanReaderConfig::new(20, EncoderConfig::None) };
    /// SpanReader::new(&parameters, &config)?;
    /// assert!(!parameters.tensors().contains_key("summary.query"));
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn new(parameters: &Parameters, config: &SpanReaderConfig) -> Result<Self> {
        config.check()?;
        let SpanReaderConfig { vocabulary, width, padding, features, .. } = *config;
        let at = |name: &str| parameters.at(name);
        let embedding = Embedding::new(&at("embedding"), vocabulary, width, Some(padding))?;
        let question = Encoder::new(&at("question"), &config.encoder, width)?;
        let asked = question.width();
        let attention = || {
            let mechanism = &config.mechanism;
            Result::Ok(Attention {
                alignment: Mechanism::new(&at("alignment"), mechanism, width, width)?,
                summary: LearnedQueries::new(&at("summary"), mechanism, 1, asked, asked)?,
            })
        };
        let attention = config.attention.then(attention).transpose()?;
        // What a word took of the question, and how far it agrees with it.
        let aligned = if config.attention { width.saturating_mul(2) } else { 0 };
        let read = [asked, aligned, features].into_iter().fold(width, usize::saturating_add);
        let text = Encoder::new(&at("text"), &config.encoder, read)?;
        let pointer = |name: &str| Pointer::new(&at(name), &config.mechanism, asked, text.width());
        let (start, end) = (pointer("start")?, pointer("end")?);
        Ok(Self { config: config.clone(), embedding, attention, question, text, start, end })
    }

    /// How it was made.
    ///
    /// ```
    /// use regard::prelude::*;
    /// use regard::layers::{Cell, EncoderConfig, RecurrentConfig};
    /// use regard::models::{SpanReader, SpanReaderConfig};
    /// let config = SpanReaderConfig { attention: false, ..SpanReaderConfig::default() };
    /// let gru = EncoderConfig::Recurrent(RecurrentConfig::new(Cell::Gru, 8));
    /// let config = SpanReaderConfig { encoder: gru, ..config };
    /// assert_eq!(SpanReader::new(&Parameters::new(DType::F32, 1), &config)?.config(), &config);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn config(&self) -> &SpanReaderConfig {
        &self.config
    }

    /// The scores of every word as start and as end, with the alignment where it is needed.
    /// Refuses passages of another shape than [`Passages`] says, and words beyond the vocabulary.
    ///
    /// ```
    /// # use regard::prelude::*;
    /// # use regard::layers::{Cell, EncoderConfig, RecurrentConfig};
    /// # use regard::models::{Passages, SpanReader, SpanReaderConfig};
    /// # let gru = EncoderConfig::Recurrent(RecurrentConfig::new(Cell::Gru, 8));
    /// # let reader = SpanReader::new(&Parameters::new(DType::F32, 1), &SpanReaderConfig::new(20, gru))?;
    /// let text = Tensor::from_vec(vec![3i64, 4, 5], &[1, 3])?;
    /// let questions = Tensor::from_vec(vec![7i64, 3], &[1, 2])?;
    /// let passages = Passages {
    ///     text: &text, lengths: &[0], features: None,
    ///     questions: &questions, question_lengths: &[2],
    /// };
    /// let error = reader.point(&passages, Mode::Infer, Need::OUTPUT).unwrap_err();
    /// assert_eq!(error.to_string(), "text 0 has no word");
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn point(&self, passages: &Passages, mode: Mode, need: Need) -> Result<Pointed> {
        passages.check(&self.config)?;
        let Passages { lengths, question_lengths, .. } = *passages;
        // Words of length 1 a feature, so that a word of the text finds the same one of the question
        // before anything is learned.
        let root = (self.config.width as f64).sqrt();
        let embed =
            |ids| mode.dropout(&self.embedding.forward(ids)?.scale(root)?, self.config.dropout);
        let (words, asked) = (embed(passages.text)?, embed(passages.questions)?);
        // Whoever changes what the encoder attends to means the text's.
        let encode = || self.question.encode(&asked, Some(question_lengths), mode, Need::OUTPUT);
        let question = Intervention::default().during(encode)?;
        let mask = Mask::lengths(question_lengths);
        let (query, aligned, alignment) = match &self.attention {
            Some(Attention { alignment, summary }) => {
                let attend = || alignment.attend(&words, &asked, &asked, &mask, mode, need);
                let aligned = intervention::at(Site::Question, 0, 0, attend)?;
                let query =
                    summary.attend(&question.out, &question.out, &mask, mode, Need::OUTPUT)?;
                let agreeing = words.mul(&aligned.out)?;
                (query.out, vec![aligned.out, agreeing], aligned.weights)
            }
            None => (question.summary, Vec::new(), None),
        };
        let everywhere = [words.shape()[0], words.shape()[1], query.shape()[1]];
        let everywhere = query.unsqueeze(1)?.broadcast_to(&everywhere)?;
        let parts = [words, everywhere].into_iter().chain(aligned);
        let parts: Vec<Tensor> = parts.chain(passages.features.cloned()).collect();
        let read = Tensor::cat(&parts, 2)?;
        let Encoded { out: read, weights: encoder, .. } =
            self.text.encode(&read, Some(lengths), mode, need)?;
        let keep = length::keep(Some(lengths), read.shape()[1], read.device())?;
        let scores = |pointer: &Pointer| pointer.scores(&query, &read, keep.as_ref(), mode);
        Ok(Pointed { start: scores(&self.start)?, end: scores(&self.end)?, alignment, encoder })
    }

    /// The mean loss of the answers' first and last words, `[B]` each.
    /// Refuses what [`SpanReader::point`] refuses, and answers that do not lie in the text.
    ///
    /// ```
    /// # use regard::prelude::*;
    /// # use regard::layers::{Cell, EncoderConfig, RecurrentConfig};
    /// # use regard::models::{Passages, SpanReader, SpanReaderConfig};
    /// # let gru = EncoderConfig::Recurrent(RecurrentConfig::new(Cell::Gru, 8));
    /// # let reader = SpanReader::new(&Parameters::new(DType::F32, 1), &SpanReaderConfig::new(20, gru))?;
    /// # let text = Tensor::from_vec(vec![3i64, 4, 5], &[1, 3])?;
    /// # let questions = Tensor::from_vec(vec![7i64, 3], &[1, 2])?;
    /// # let passages = Passages {
    /// #     text: &text, lengths: &[3], features: None,
    /// #     questions: &questions, question_lengths: &[2],
    /// # };
    /// let at = |word| Tensor::from_vec(vec![word], &[1]);
    /// let loss = reader.loss(&passages, &at(1i64)?, &at(2i64)?, Mode::Infer)?;
    /// assert!(loss.item()? > 0.0 && loss.has_gradient());
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn loss(
        &self,
        passages: &Passages,
        starts: &Tensor,
        ends: &Tensor,
        mode: Mode,
    ) -> Result<Tensor> {
        let pointed = self.point(passages, mode, Need::OUTPUT)?;
        let rule = CrossEntropy::default();
        let start = pointed.start.cross_entropy(starts, rule)?;
        start.add(&pointed.end.cross_entropy(ends, rule)?)
    }
}
