//! From text to tokens.

use super::ExpressionError;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    Number(f64),
    Name(String),
    /// One of `+ - * / @ ( ) ,`.
    Sign(char),
    End,
}

/// A token and the column at which it begins, counted from 1.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Placed {
    pub(super) token: Token,
    pub(super) column: usize,
}

/// All tokens of a text, `End` last.
pub(super) fn tokens(text: &str) -> Result<Vec<Placed>, ExpressionError> {
    let characters: Vec<char> = text.chars().collect();
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(&first) = characters.get(at) {
        let column = at + 1;
        if first.is_whitespace() {
            at += 1;
            continue;
        }
        let rest = &characters[at..];
        let (token, length) = if first.is_ascii_digit() || first == '.' {
            number(rest, column)?
        } else if first.is_alphabetic() || first == '_' {
            let in_name = |c: &&char| c.is_alphabetic() || c.is_ascii_digit() || **c == '_';
            let length = rest.iter().take_while(in_name).count();
            (Token::Name(rest[..length].iter().collect()), length)
        } else if "+-*/@(),".contains(first) {
            (Token::Sign(first), 1)
        } else {
            return Err(ExpressionError::new(column, format!("`{first}` has no meaning here")));
        };
        tokens.push(Placed { token, column });
        at += length;
    }
    tokens.push(Placed { token: Token::End, column: characters.len() + 1 });
    Ok(tokens)
}

/// A number at the start of `rest`, and how many characters it takes.
fn number(rest: &[char], column: usize) -> Result<(Token, usize), ExpressionError> {
    let digits =
        |from: usize| rest[from..].iter().take_while(|c| c.is_ascii_digit()).count() + from;
    let mut end = digits(0);
    if rest.get(end) == Some(&'.') {
        end = digits(end + 1);
    }
    if matches!(rest.get(end), Some('e' | 'E')) {
        let sign = usize::from(matches!(rest.get(end + 1), Some('+' | '-')));
        end = digits(end + 1 + sign);
    }
    // What a number runs into belongs to it, so that `2q` is refused as a whole.
    end += rest[end..].iter().take_while(|c| c.is_alphanumeric() || "._".contains(**c)).count();
    let text: String = rest[..end].iter().collect();
    match text.parse::<f64>() {
        Ok(x) if x.is_finite() => Ok((Token::Number(x), end)),
        Ok(_) => Err(ExpressionError::new(column, format!("{text} is too large a number"))),
        Err(_) => Err(ExpressionError::new(column, format!("`{text}` is no number"))),
    }
}
