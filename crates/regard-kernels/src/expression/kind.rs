//! Numbers and rows: which a part of an expression is.

use super::ExpressionError;
use super::term::{Function, Operation, Term};

/// What a part of an expression is for one query and one key.
///
/// ```
/// use regard_kernels::{Expression, Kind};
/// let graph = Expression::parse("q @ k").unwrap().graph(&[]);
/// assert_eq!((graph.kind(0), graph.kind(graph.score())), (Kind::Row, Kind::Number));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// One number.
    Number,
    /// A number for each feature: as many as a head is wide.
    Row,
}

impl Kind {
    /// What an operation feature by feature gives; a number stands for a row of that number.
    pub(super) fn with(self, other: Self) -> Self {
        if self == Self::Row { self } else { other }
    }
}

/// The kind of every term where all parameters' kinds are given.
pub(super) fn kinds(terms: &[Term], parameters: &[Kind]) -> Vec<Kind> {
    let given: Vec<Option<Kind>> = parameters.iter().copied().map(Some).collect();
    let mut kinds = Vec::with_capacity(terms.len());
    for &term in terms {
        kinds.push(kind(term, &kinds, &given));
    }
    kinds.into_iter().map(|kind| kind.unwrap_or(Kind::Number)).collect()
}

/// Refuses what is wrong whatever the parameters are: a row for a result, the sum of one number.
pub(super) fn check(
    terms: &[Term],
    columns: &[usize],
    parameters: usize,
) -> Result<(), ExpressionError> {
    let unknown = vec![None; parameters];
    let mut kinds: Vec<Option<Kind>> = Vec::with_capacity(terms.len());
    for (&term, &column) in terms.iter().zip(columns) {
        let sums = match term {
            Term::Operation(Operation::Dot, a, b) => Some(("@", [a, b])),
            Term::Call(function, a, _) if function.reduces() => Some((function.name(), [a, a])),
            _ => None,
        };
        if let Some((name, operands)) = sums
            && operands.iter().any(|&operand| kinds[operand] == Some(Kind::Number))
        {
            let what = if name == "@" { "two rows" } else { "a row" };
            return Err(ExpressionError::new(
                column,
                format!("`{name}` needs {what} of the head width; here it has one number"),
            ));
        }
        kinds.push(kind(term, &kinds, &unknown));
    }
    match (kinds.last(), columns.last()) {
        (Some(Some(Kind::Row)), Some(&column)) => Err(ExpressionError::new(
            column,
            "the result is a row of the head width; a score is one number (sum it?)",
        )),
        _ => Ok(()),
    }
}

/// The kind of a term from those of its parts; none where it depends on a parameter whose kind is
/// not known.
fn kind(term: Term, parts: &[Option<Kind>], parameters: &[Option<Kind>]) -> Option<Kind> {
    let either = |a: usize, b: usize| match (parts[a], parts[b]) {
        (Some(Kind::Row), _) | (_, Some(Kind::Row)) => Some(Kind::Row),
        (Some(a), Some(b)) => Some(a.with(b)),
        _ => None,
    };
    match term {
        Term::Query | Term::Key => Some(Kind::Row),
        Term::Parameter(n) => parameters[n],
        Term::Number(_) | Term::Width | Term::Pi => Some(Kind::Number),
        Term::Negate(a) => parts[a],
        Term::Operation(Operation::Dot, ..) => Some(Kind::Number),
        Term::Operation(_, a, b) => either(a, b),
        Term::Call(Function::Sum | Function::Mean | Function::Norm, ..) => Some(Kind::Number),
        Term::Call(_, a, b) => either(a, b),
    }
}
