//! Labels: how wide they are, and how they are cut to fit.

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// What a reader takes for one sign: a letter with its marks, a family of joined emoji, a flag.
pub(crate) fn signs(text: &str) -> impl DoubleEndedIterator<Item = &str> {
    text.graphemes(true)
}

/// Whether a sign takes two columns of a terminal, one em of a line of text.
pub(crate) fn is_wide(sign: &str) -> bool {
    columns(sign) > 1
}

/// Columns of a terminal.
pub(crate) fn columns(text: &str) -> usize {
    // A control character is written as a space, or not at all.
    let sign = |sign: &str| if sign.contains(char::is_control) { 0 } else { sign.width().min(2) };
    signs(text).map(sign).sum()
}

/// About how wide a text is at a font size, in a plain sans-serif; rather too wide than too narrow.
pub(crate) fn width(text: &str, size: f64) -> f64 {
    let em = |sign: &str| match (columns(sign), sign.chars().next()) {
        (0, _) | (_, None) => 0.0,
        (2.., _) => 1.05,
        // Indic and Thai letters are wide, and several make one sign.
        (_, Some('\u{900}'..='\u{10ff}')) => {
            0.8 * sign.chars().filter(|&c| columns(c.encode_utf8(&mut [0; 4])) > 0).count() as f64
        }
        (_, Some(c)) => match c {
            'i' | 'j' | 'l' | 'f' | 't' | 'r' | 'I' | '\'' | '|' | '!' | ' ' | '.' | ',' | ':'
            | ';' | '(' | ')' | '[' | ']' | '/' => 0.42,
            'm' | 'w' | 'M' | 'W' | '%' | '@' | '—' | '…' => 0.98,
            _ if c.is_uppercase() => 0.73,
            _ => 0.63,
        },
    };
    signs(text).map(em).sum::<f64>() * size
}

/// The text, cut with an ellipsis where it is wider than `max_width`.
pub(crate) fn fitted(text: &str, size: f64, max_width: f64) -> String {
    cut(text, max_width, |text| width(text, size))
}

/// The text, cut with an ellipsis where it takes more than `max_width` columns of a terminal.
pub(crate) fn fitted_in_columns(text: &str, max_width: usize) -> String {
    cut(text, max_width as f64, |text| columns(text) as f64)
}

fn cut(text: &str, max_width: f64, measure: impl Fn(&str) -> f64) -> String {
    let text = visible(text);
    if measure(&text) <= max_width {
        return text;
    }
    let mut kept = String::new();
    for sign in signs(&text) {
        if measure(&kept) + measure(sign) + measure("…") > max_width {
            break;
        }
        kept.push_str(sign);
    }
    kept + "…"
}

/// The text with spaces where lines end, so that a label stays on its line.
pub(crate) fn visible(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// The text in lines no wider than `max_width`; broken between words, or between any two characters
/// where words are longer than that (as in Chinese).
pub(crate) fn wrapped(text: &str, size: f64, max_width: f64) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in visible(text).split_inclusive(' ') {
        let last = lines.len() - 1;
        if width(&lines[last], size) + width(word.trim_end(), size) > max_width
            && !lines[last].is_empty()
        {
            lines.push(String::new());
        }
        for sign in signs(word) {
            let last = lines.len() - 1;
            if width(&lines[last], size) + width(sign, size) > max_width && sign != " " {
                lines.push(String::new());
            }
            let last = lines.len() - 1;
            lines[last].push_str(sign);
        }
    }
    lines.iter().map(|line| line.trim_end().to_owned()).collect()
}

/// The first two of those lines; an ellipsis says that there are more.
pub(crate) fn two_lines(text: &str, size: f64, max_width: f64) -> Vec<String> {
    // What is beyond two lines need not be measured: an input may be a book.
    let enough: String = signs(text).take(2 + (12.0 * max_width / size) as usize).collect();
    let mut lines = wrapped(&enough, size, max_width);
    if lines.len() > 2 {
        let rest = lines.split_off(2).concat();
        lines[1] = fitted(&format!("{} {rest}", lines[1]), size, max_width);
    }
    lines
}

/// A number in three digits or so, without zeros that say nothing.
pub(crate) fn number(value: f64) -> String {
    let size = value.abs();
    let written = match size {
        _ if !value.is_finite() => return "—".to_owned(),
        0.0 => return "0".to_owned(),
        _ if !(0.000_95..1e6).contains(&size) => return format!("{value:.1e}"),
        _ if size >= 100.0 => format!("{value:.0}"),
        _ if size >= 10.0 => format!("{value:.1}"),
        _ if size >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    };
    match written.contains('.') {
        true => written.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => written,
    }
}

/// A whole number with a comma between thousands.
pub fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let from_the_end = |(place, digit): (usize, char)| {
        let comma = place > 0 && (digits.len() - place).is_multiple_of(3);
        comma.then_some(',').into_iter().chain([digit])
    };
    digits.chars().enumerate().flat_map(from_the_end).collect()
}
