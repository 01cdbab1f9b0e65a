//! Scores written as text: `"sum(w * tanh(q + k))"`.
//!
//! The text is read into a tree (`parser.rs`), whose parts are numbers or rows (`kind.rs`). The
//! reference computes on the tree. For everything fast the tree becomes a graph of few plain
//! operations with equal parts shared (`graph.rs`), which differentiation extends (`derivative.rs`).

mod cache;
mod derivative;
mod error;
mod graph;
mod kind;
mod lexer;
mod parser;
mod pattern;
mod term;

pub use derivative::Derivatives;
pub use error::ExpressionError;
pub use graph::{Binary, Graph, Node, Unary};
pub use kind::Kind;
pub(crate) use pattern::Pattern;
pub(crate) use term::{Function, Operation, Term};

use cache::Cache;
use std::fmt;
use std::str::FromStr;

/// A score written over the query `q`, the key `k` and named parameters.
///
/// | written | is |
/// |---|---|
/// | `q`, `k` | the query's and the key's row |
/// | `d`, `pi`, `0.5`, `1e-3` | the head width, π, numbers |
/// | any other name | a parameter: one number, or a row as wide as a head |
/// | `a + b`, `a - b`, `a * b`, `a / b`, `-a` | feature by feature; a number stands for a row of that number |
/// | `a @ b` | the dot product, `sum(a * b)`; binds like `*` |
/// | `sum`, `mean`, `norm` | of a row, one number |
/// | `square`, `sqrt`, `abs`, `exp`, `log`, `tanh`, `sigmoid`, `relu`, `gelu`, `softplus`, `sin`, `cos` | feature by feature |
/// | `leaky_relu(x, slope)` | x where x > 0, slope · x elsewhere |
/// | `max(a, b)`, `min(a, b)` | b where it is the larger, or the smaller, else a |
///
/// The result is one number. Where a slope jumps, that of `relu`, `leaky_relu` and `abs` at 0 is as
/// in PyTorch (0, slope, 0); `sqrt` and `norm` have 0 there, and `max` and `min` of equal operands
/// send everything to the first. Equal trees are equal, however they were spaced.
///
/// ```
/// use regard_kernels::{Expression, Parameter, Score, Spec};
/// let expression = Expression::parse("q @ k / (norm(q) * norm(k)) * tau").unwrap();
/// assert_eq!(expression.parameters(), ["tau"]);
/// assert_eq!(expression.to_string(), "q @ k / (norm(q) * norm(k)) * tau");
/// let parameters = [Parameter::number(&[10f32])];
/// let spec = Spec::new(Score::Expression { expression: &expression, parameters: &parameters });
/// # let _ = spec;
/// ```
#[derive(Clone, Debug)]
pub struct Expression {
    terms: Vec<Term>,
    parameters: Vec<String>,
    cache: Cache,
}

impl PartialEq for Expression {
    fn eq(&self, other: &Self) -> bool {
        self.terms == other.terms && self.parameters == other.parameters
    }
}

impl Expression {
    /// Reads a text; refuses one that is not a score, with the column where it goes wrong.
    ///
    /// ```
    /// use regard_kernels::Expression;
    /// assert!(Expression::parse("q @ k / sqrt(d)").is_ok());
    /// let error = Expression::parse("q * k").unwrap_err();
    /// assert!(error.to_string().contains("a score is one number"));
    /// ```
    pub fn parse(text: &str) -> Result<Self, ExpressionError> {
        let parser::Parsed { terms, columns, parameters } = parser::parse(text)?;
        kind::check(&terms, &columns, parameters.len())?;
        Ok(Self { terms, parameters, cache: Cache::default() })
    }

    /// The names of the parameters, in order of first appearance.
    ///
    /// ```
    /// use regard_kernels::Expression;
    /// let score = Expression::parse("sum(w * tanh(q + k)) * tau").unwrap();
    /// assert_eq!(score.parameters(), ["w", "tau"]);
    /// ```
    pub fn parameters(&self) -> &[String] {
        &self.parameters
    }

    /// The expression as a graph, with parameters of these kinds. A kind that is not given is
    /// [`Kind::Number`].
    ///
    /// ```
    /// use regard_kernels::{Expression, Kind, Node};
    /// let score = Expression::parse("sum(w * q)").unwrap();
    /// assert!(score.graph(&[Kind::Row]).nodes().contains(&Node::Parameter(0)));
    /// ```
    pub fn graph(&self, parameters: &[Kind]) -> Graph {
        let kinds = (0..self.parameters.len())
            .map(|n| parameters.get(n).copied().unwrap_or(Kind::Number))
            .collect::<Vec<_>>();
        Graph::of(&self.terms, &kinds)
    }

    /// What was made of it in earlier calls.
    pub(crate) fn cache(&self) -> &Cache {
        &self.cache
    }

    /// Every part after its own parts; the last is the score.
    pub(crate) fn terms(&self) -> &[Term] {
        &self.terms
    }

    /// What the expression gives with parameters of these kinds.
    pub(crate) fn result(&self, parameters: &[Kind]) -> Kind {
        kind::kinds(&self.terms, parameters).last().copied().unwrap_or(Kind::Number)
    }
}

impl FromStr for Expression {
    type Err = ExpressionError;
    fn from_str(text: &str) -> Result<Self, ExpressionError> {
        Self::parse(text)
    }
}

impl fmt::Display for Expression {
    /// As it is parsed again, with no more parentheses than it needs.
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        // How tightly a part holds together: a sum, a product, a sign, or by itself.
        const SUM: u8 = 1;
        const PRODUCT: u8 = 2;
        const SIGN: u8 = 3;
        const WHOLE: u8 = 4;
        // Part by part rather than by recursion: a long chain is as deep as it is long.
        let mut printed: Vec<(String, u8)> = Vec::with_capacity(self.terms.len());
        for &term in &self.terms {
            let mut part = |n: usize, least: u8| {
                let (text, level) = std::mem::take(&mut printed[n]);
                if level < least { format!("({text})") } else { text }
            };
            let whole = match term {
                Term::Query => ("q".into(), WHOLE),
                Term::Key => ("k".into(), WHOLE),
                Term::Parameter(n) => (self.parameters[n].clone(), WHOLE),
                Term::Number(x) => (x.to_string(), WHOLE),
                Term::Width => ("d".into(), WHOLE),
                Term::Pi => ("pi".into(), WHOLE),
                Term::Negate(a) => (format!("-{}", part(a, SIGN)), SIGN),
                Term::Operation(operation, a, b) => {
                    let level = match operation {
                        Operation::Add | Operation::Subtract => SUM,
                        Operation::Multiply | Operation::Divide | Operation::Dot => PRODUCT,
                    };
                    let (a, b) = (part(a, level), part(b, level + 1));
                    (format!("{a} {} {b}", operation.sign()), level)
                }
                Term::Call(function, a, b) => {
                    let first = part(a, SUM);
                    let name = function.name();
                    if function.arguments() == 1 {
                        (format!("{name}({first})"), WHOLE)
                    } else {
                        (format!("{name}({first}, {})", part(b, SUM)), WHOLE)
                    }
                }
            };
            printed.push(whole);
        }
        f.write_str(printed.last().map_or("", |(text, _)| text))
    }
}
