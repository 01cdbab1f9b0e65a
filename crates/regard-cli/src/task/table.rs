//! Numbers and tables as text.

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

/// Rows under a head, the first column to the left, the others to the right.
pub(super) fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
        cells.chain([head[column].chars().count()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let line = |cells: &[String]| {
        let mut text = String::new();
        for (i, (cell, &width)) in cells.iter().zip(&widths).enumerate() {
            let padding = " ".repeat(width.saturating_sub(cell.chars().count()));
            match i {
                0 => text += &format!("{cell}{padding}"),
                _ => text += &format!("  {padding}{cell}"),
            }
        }
        text.trim_end().to_string() + "\n"
    };
    let head: Vec<String> = head.iter().map(|cell| cell.to_string()).collect();
    let mut text = line(&head);
    text += &format!("{}\n", "-".repeat(widths.iter().sum::<usize>() + 2 * (widths.len() - 1)));
    rows.iter().for_each(|row| text += &line(row));
    text
}
