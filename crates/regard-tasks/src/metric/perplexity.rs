//! How surprised a model is by each token.

/// e to the mean loss: `loss` is the sum over all tokens of −ln of their probability. 1 where
/// there are no tokens.
///
/// ```
/// use regard_tasks::metric::perplexity;
/// let fair_die = 10.0 * 6f64.ln();
/// assert!((perplexity(fair_die, 10) - 6.0).abs() < 1e-12);
/// ```
pub fn perplexity(loss: f64, tokens: usize) -> f64 {
    if tokens == 0 { 1.0 } else { (loss / tokens as f64).exp() }
}
