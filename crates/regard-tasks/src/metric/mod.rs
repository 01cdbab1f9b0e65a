//! How good an answer is. On text as sacreBLEU, jiwer and rouge-score count, on labels and numbers as
//! scikit-learn does, on answers to questions as the scripts of SQuAD and CMRC 2018 do.

mod answer;
mod bleu;
mod chrf;
mod classification;
mod error_rate;
pub(crate) mod judged;
mod perplexity;
mod regression;
mod rouge;
pub(crate) mod scores;
mod segments;
mod significance;
mod spans;
mod text;

pub use answer::AnswerRule;
pub use bleu::{Bleu, Smoothing, Tokenization};
pub use chrf::{chrf, chrf_plus_plus};
pub use classification::{Confusion, LabelScore};
pub use error_rate::ErrorRate;
pub use judged::Judged;
pub use perplexity::perplexity;
pub use regression::{mean_squared_error, r_squared};
pub use rouge::{Overlap, Rouge, RougeTokenization};
pub use scores::Scores;
pub use segments::{LabelRun, SegmentScore, label_runs};
pub use significance::permutation_test;
pub use spans::{Span, SpanScore, mark_spans, span_scores, spans};
