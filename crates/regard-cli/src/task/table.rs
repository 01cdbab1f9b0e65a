//! Numbers and tables as text.

use crate::terminal::columns;
use unicode_width::UnicodeWidthStr;

/// 12345678 → "12,345,678".
pub(super) fn number(n: usize) -> String {
    let digits = n.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// "1 epoch", "12,000 batches".
pub(super) fn count(n: usize, one: &str, many: &str) -> String {
    format!("{} {}", number(n), if n == 1 { one } else { many })
}

/// A text for a line of a terminal: of a long one its beginning.
pub(super) fn short(text: &str) -> String {
    const LONGEST: usize = 300;
    match text.char_indices().nth(LONGEST) {
        None => text.into(),
        Some((end, _)) => {
            format!("{}… ({} characters)", &text[..end], number(text.chars().count()))
        }
    }
}

/// 3 << 20 → "3 MiB".
pub(super) fn bytes(n: usize) -> String {
    format!("{} MiB", n >> 20)
}

/// Measures below each other, each with its name.
pub(super) fn measures(values: &[(String, f64)]) -> String {
    let width = values.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0).max(12);
    let line = |(name, value): &(String, f64)| format!("  {name:<width$} {}\n", measure(*value));
    values.iter().map(line).collect()
}

/// A measure with as many digits as say something.
pub(super) fn measure(x: f64) -> String {
    if x.abs() >= 1000.0 {
        format!("{x:.0}")
    } else if x.abs() >= 10.0 {
        format!("{x:.2}")
    } else {
        format!("{x:.4}")
    }
}

/// "42 s", "3 min 20 s", "1 h 02 min".
pub(super) fn seconds(s: f64) -> String {
    let whole = s.round() as u64;
    match whole {
        0..60 => format!("{s:.1} s"),
        60..3600 => format!("{} min {:02} s", whole / 60, whole % 60),
        _ => format!("{} h {:02} min", whole / 3600, whole / 60 % 60),
    }
}

/// Rows under a head, the first column to the left, the others to the right. What is wider than the
/// terminal is set below, after the first column once more.
pub(super) fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    within(columns(), head, rows)
}

/// As [`table`], in lines of at most so many columns; as long as they are, where none are said.
pub(super) fn within(columns: Option<usize>, head: &[&str], rows: &[Vec<String>]) -> String {
    fitted(head, rows, Side::Right, columns)
}

/// As [`table`], with words in all columns: all to the left.
pub(super) fn lines(head: &[&str], rows: &[Vec<String>]) -> String {
    fitted(head, rows, Side::Left, columns())
}

/// On which side of their column cells stand, but for the first.
#[derive(Clone, Copy, PartialEq)]
enum Side {
    Left,
    Right,
}

/// Columns between cells.
const GAP: usize = 2;

fn fitted(head: &[&str], rows: &[Vec<String>], side: Side, columns: Option<usize>) -> String {
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.width());
        cells.chain([head[column].width()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let part = |which: &[usize]| {
        let line = |cells: &[&str]| {
            let mut text = String::new();
            for (place, &column) in which.iter().enumerate() {
                let cell = cells.get(column).copied().unwrap_or_default();
                let padding = " ".repeat(widths[column].saturating_sub(cell.width()));
                let gap = " ".repeat(if place == 0 { 0 } else { GAP });
                text += &match place == 0 || side == Side::Left {
                    true => format!("{gap}{cell}{padding}"),
                    false => format!("{gap}{padding}{cell}"),
                };
            }
            text.trim_end().to_string() + "\n"
        };
        let all = which.iter().map(|&column| widths[column]).sum::<usize>();
        let mut text = line(head) + &"-".repeat(all + GAP * (which.len() - 1)) + "\n";
        for row in rows {
            text += &line(&row.iter().map(String::as_str).collect::<Vec<_>>());
        }
        text
    };
    let parts = parts(&widths, columns.unwrap_or(usize::MAX));
    parts.iter().map(|which| part(which)).collect::<Vec<_>>().join("\n")
}

/// Which columns stand side by side: the first in every part, of the others as many as fit and one
/// at least.
fn parts(widths: &[usize], columns: usize) -> Vec<Vec<usize>> {
    let mut parts = vec![vec![0]];
    let mut used = widths[0];
    for (column, wide) in widths.iter().enumerate().skip(1) {
        match parts.last_mut() {
            Some(last) if last.len() == 1 || used + GAP + wide <= columns => last.push(column),
            _ => {
                parts.push(vec![0, column]);
                used = widths[0];
            }
        }
        used += GAP + wide;
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: [&str; 4] = ["run", "BLEU", "chrF", "time"];

    fn rows() -> Vec<Vec<String>> {
        let row = ["runs/花园", "12.34", "45.60", "1 min 20 s"];
        vec![row.map(String::from).to_vec()]
    }

    #[test]
    fn a_table_that_is_wider_than_the_terminal_goes_on_below() {
        let wide = fitted(&HEAD, &rows(), Side::Right, None);
        assert_eq!(
            wide,
            "run         BLEU   chrF        time\n\
             -----------------------------------\n\
             runs/花园  12.34  45.60  1 min 20 s\n"
        );
        let narrow = fitted(&HEAD, &rows(), Side::Right, Some(26));
        assert_eq!(
            narrow,
            "run         BLEU   chrF\n\
             -----------------------\n\
             runs/花园  12.34  45.60\n\
             \n\
             run              time\n\
             ---------------------\n\
             runs/花园  1 min 20 s\n"
        );
    }

    #[test]
    fn every_part_has_a_column_however_narrow_the_terminal() {
        assert_eq!(parts(&[30, 5, 5], 10), [vec![0, 1], vec![0, 2]]);
        assert_eq!(parts(&[3], 10), [vec![0]]);
    }
}
