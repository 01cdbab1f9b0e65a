//! How good an answer is. On text as sacreBLEU counts, on labels and numbers as scikit-learn does.

mod bleu;
mod chrf;
mod classification;
mod perplexity;
mod regression;
mod spans;
mod text;

pub use bleu::{Bleu, Smoothing, Tokenization};
pub use chrf::{chrf, chrf_plus_plus};
pub use classification::{Confusion, LabelScore};
pub use perplexity::perplexity;
pub use regression::{mean_squared_error, r_squared};
pub use spans::{Span, SpanScore, mark_spans, span_scores, spans};
