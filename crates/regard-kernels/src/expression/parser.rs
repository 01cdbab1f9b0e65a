//! From tokens to the tree, by recursive descent.
//!
//! ```text
//! sum      = product { ("+" | "-") product }
//! product  = unary { ("*" | "/" | "@") unary }
//! unary    = "-" unary | primary
//! primary  = number | name | function "(" sum { "," sum } ")" | "(" sum ")"
//! ```

use super::ExpressionError;
use super::lexer::{Placed, Token, tokens};
use super::term::{Function, Operation, Term};

/// Parentheses, calls and minus signs within each other.
const DEEPEST: usize = 100;
/// Parts of one expression.
const MOST_TERMS: usize = 1000;

pub(super) struct Parsed {
    pub(super) terms: Vec<Term>,
    /// The column of each term: its own name or sign.
    pub(super) columns: Vec<usize>,
    pub(super) parameters: Vec<String>,
}

pub(super) fn parse(text: &str) -> Result<Parsed, ExpressionError> {
    let mut parser = Parser {
        tokens: tokens(text)?,
        at: 0,
        depth: 0,
        parsed: Parsed { terms: Vec::new(), columns: Vec::new(), parameters: Vec::new() },
    };
    parser.sum()?;
    let Placed { token, column } = parser.peek().clone();
    match token {
        Token::End => Ok(parser.parsed),
        Token::Sign(')') => Err(ExpressionError::new(column, "`)` closes nothing")),
        Token::Sign(',') => {
            Err(ExpressionError::new(column, "a comma stands between arguments only"))
        }
        other => {
            Err(ExpressionError::new(column, format!("{} follows no operator", shown(&other))))
        }
    }
}

struct Parser {
    tokens: Vec<Placed>,
    at: usize,
    depth: usize,
    parsed: Parsed,
}

impl Parser {
    fn peek(&self) -> &Placed {
        &self.tokens[self.at]
    }

    fn next(&mut self) -> Placed {
        let placed = self.tokens[self.at].clone();
        // `End` is never left behind.
        self.at = (self.at + 1).min(self.tokens.len() - 1);
        placed
    }

    fn take(&mut self, sign: char) -> bool {
        let here = self.peek().token == Token::Sign(sign);
        if here {
            self.next();
        }
        here
    }

    fn push(&mut self, term: Term, column: usize) -> Result<usize, ExpressionError> {
        if self.parsed.terms.len() == MOST_TERMS {
            return Err(ExpressionError::new(
                column,
                format!("an expression has at most {MOST_TERMS} parts"),
            ));
        }
        self.parsed.terms.push(term);
        self.parsed.columns.push(column);
        Ok(self.parsed.terms.len() - 1)
    }

    fn sum(&mut self) -> Result<usize, ExpressionError> {
        let mut left = self.product()?;
        loop {
            let column = self.peek().column;
            let operation = match self.peek().token {
                Token::Sign('+') => Operation::Add,
                Token::Sign('-') => Operation::Subtract,
                _ => return Ok(left),
            };
            self.next();
            let right = self.product()?;
            left = self.push(Term::Operation(operation, left, right), column)?;
        }
    }

    fn product(&mut self) -> Result<usize, ExpressionError> {
        let mut left = self.unary()?;
        loop {
            let column = self.peek().column;
            let operation = match self.peek().token {
                Token::Sign('*') => Operation::Multiply,
                Token::Sign('/') => Operation::Divide,
                Token::Sign('@') => Operation::Dot,
                _ => return Ok(left),
            };
            self.next();
            let right = self.unary()?;
            left = self.push(Term::Operation(operation, left, right), column)?;
        }
    }

    /// Everything that stands within something passes here.
    fn unary(&mut self) -> Result<usize, ExpressionError> {
        let column = self.peek().column;
        if self.depth == DEEPEST {
            return Err(ExpressionError::new(
                column,
                format!("an expression is at most {DEEPEST} levels deep"),
            ));
        }
        self.depth += 1;
        let term = if self.take('-') {
            let inner = self.unary()?;
            self.push(Term::Negate(inner), column)
        } else {
            self.primary()
        };
        self.depth -= 1;
        term
    }

    fn primary(&mut self) -> Result<usize, ExpressionError> {
        let Placed { token, column } = self.next();
        match token {
            Token::Number(x) => self.push(Term::Number(x), column),
            Token::Name(name) if self.peek().token == Token::Sign('(') => self.call(&name, column),
            Token::Name(name) => {
                let term = self.name(name, column)?;
                self.push(term, column)
            }
            Token::Sign('(') => {
                let inner = self.sum()?;
                self.close(column)?;
                Ok(inner)
            }
            Token::End => Err(ExpressionError::new(
                column,
                if self.parsed.terms.is_empty() {
                    "the expression is empty"
                } else {
                    "the expression ends where an operand is due"
                },
            )),
            Token::Sign(sign) => Err(ExpressionError::new(
                column,
                format!("`{sign}` stands where an operand is due"),
            )),
        }
    }

    /// The `)` of the `(` at `opened`.
    fn close(&mut self, opened: usize) -> Result<(), ExpressionError> {
        if self.take(')') {
            return Ok(());
        }
        let Placed { token, column } = self.peek();
        Err(match token {
            Token::End => {
                ExpressionError::new(*column, format!("the `(` of column {opened} is not closed"))
            }
            Token::Sign(',') => {
                ExpressionError::new(*column, "a comma stands between arguments only")
            }
            other => ExpressionError::new(*column, format!("{} follows no operator", shown(other))),
        })
    }

    fn name(&mut self, name: String, column: usize) -> Result<Term, ExpressionError> {
        if Function::of(&name).is_some() {
            return Err(ExpressionError::new(
                column,
                format!("`{name}` is a function; its arguments stand in parentheses"),
            ));
        }
        Ok(match name.as_str() {
            "q" => Term::Query,
            "k" => Term::Key,
            "d" => Term::Width,
            "pi" => Term::Pi,
            _ => {
                let parameters = &mut self.parsed.parameters;
                let known = parameters.iter().position(|parameter| *parameter == name);
                Term::Parameter(known.unwrap_or_else(|| {
                    parameters.push(name);
                    parameters.len() - 1
                }))
            }
        })
    }

    /// A call whose name is behind us.
    fn call(&mut self, name: &str, column: usize) -> Result<usize, ExpressionError> {
        let Some(function) = Function::of(name) else {
            let nearest = Function::nearest(name).name();
            return Err(ExpressionError::new(
                column,
                format!("`{name}` is no function; nearest is `{nearest}`"),
            ));
        };
        let opened = self.next().column;
        let mut arguments = Vec::new();
        if self.peek().token != Token::Sign(')') {
            arguments.push(self.sum()?);
            while self.take(',') {
                arguments.push(self.sum()?);
            }
        }
        self.close(opened)?;
        let takes = function.arguments();
        if arguments.len() != takes {
            let plural = if takes == 1 { "" } else { "s" };
            return Err(ExpressionError::new(
                column,
                format!("`{name}` takes {takes} argument{plural}, {} given", arguments.len()),
            ));
        }
        self.push(Term::Call(function, arguments[0], arguments[takes - 1]), column)
    }
}

fn shown(token: &Token) -> String {
    match token {
        Token::Number(x) => format!("`{x}`"),
        Token::Name(name) => format!("`{name}`"),
        Token::Sign(sign) => format!("`{sign}`"),
        Token::End => "the end".into(),
    }
}
