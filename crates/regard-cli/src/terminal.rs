//! How wide the terminal is.

use std::io::{IsTerminal, stdout};

/// Columns that a line may have: what the variable `COLUMNS` says, or else the terminal itself; none
/// where standard output is no terminal, and lines may be as long as they are.
pub(crate) fn columns() -> Option<usize> {
    const NARROWEST: usize = 20;
    const WIDEST: usize = 1000;
    let said = std::env::var("COLUMNS").ok().and_then(|text| text.trim().parse().ok());
    let own = || {
        let size = stdout().is_terminal().then(terminal_size::terminal_size).flatten();
        size.map(|(terminal_size::Width(columns), _)| usize::from(columns))
    };
    said.filter(|&columns| columns > 0).or_else(own).map(|n| n.clamp(NARROWEST, WIDEST))
}

/// A text in lines of at most so many columns, each after a margin; a longer word has a line of its
/// own.
pub(crate) fn wrapped(text: &str, margin: &str, columns: usize) -> String {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let wide = |line: &str| line.chars().count() + 1 + word.chars().count();
        match lines.last_mut() {
            Some(line) if wide(line) <= columns => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(format!("{margin}{word}")),
        }
    }
    lines.iter().map(|line| format!("{line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_wrapped_between_words_after_its_margin() {
        assert_eq!(wrapped("a bc def", "  ", 6), "  a bc\n  def\n");
        assert_eq!(wrapped("abcdefgh i", "", 4), "abcdefgh\ni\n");
        assert_eq!(wrapped("", "  ", 4), "");
    }
}
