//! Labels: how wide they are, and how they are cut to fit.

/// Whether a character takes two columns of a terminal, one em of a line of text: the wide and
/// full-width ones of Unicode's East Asian Width, in blocks.
///
/// Unifont's own widths will not do here: it draws Devanagari and many signs in 16 columns that a
/// terminal shows in one.
pub(crate) fn is_wide(c: char) -> bool {
    matches!(u32::from(c),
        0x1100..=0x115f | 0x2e80..=0x303e | 0x3041..=0xa4cf | 0xa960..=0xa97f | 0xac00..=0xd7a3
        | 0xf900..=0xfaff | 0xfe30..=0xfe6f | 0xff01..=0xff60 | 0xffe0..=0xffe6
        | 0x1f300..=0x1f64f | 0x1f680..=0x1f6ff | 0x1f900..=0x1f9ff | 0x20000..=0x3fffd)
}

/// Whether a character takes no room: marks upon the one before, joiners, controls.
pub(crate) fn is_empty(c: char) -> bool {
    c.is_control()
        || matches!(u32::from(c),
            0x300..=0x36f | 0x200b..=0x200f | 0x20d0..=0x20ff | 0xfe00..=0xfe0f | 0xfeff)
}

/// Columns of a terminal.
pub(crate) fn columns(text: &str) -> usize {
    text.chars().map(|c| if is_empty(c) { 0 } else { 1 + usize::from(is_wide(c)) }).sum()
}

/// About how wide a text is at a font size, in a plain sans-serif; rather too wide than too narrow.
pub(crate) fn width(text: &str, size: f64) -> f64 {
    let em = |c: char| match c {
        _ if is_empty(c) => 0.0,
        _ if is_wide(c) => 1.0,
        'i' | 'j' | 'l' | 'f' | 't' | 'r' | 'I' | '\'' | '|' | '!' | ' ' | '.' | ',' | ':'
        | ';' | '(' | ')' | '[' | ']' | '/' => 0.42,
        'm' | 'w' | 'M' | 'W' | '%' | '@' | '—' | '…' => 0.98,
        _ if c.is_uppercase() => 0.73,
        _ => 0.63,
    };
    text.chars().map(em).sum::<f64>() * size
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
    for c in text.chars() {
        kept.push(c);
        if measure(&kept) + measure("…") > max_width {
            kept.pop();
            break;
        }
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
        for c in word.chars() {
            let last = lines.len() - 1;
            if width(&lines[last], size) + width(&c.to_string(), size) > max_width && c != ' ' {
                lines.push(String::new());
            }
            let last = lines.len() - 1;
            lines[last].push(c);
        }
    }
    lines.iter().map(|line| line.trim_end().to_owned()).collect()
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
