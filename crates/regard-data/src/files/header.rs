//! Whether a file's first row names its columns.

use super::columns::Row;
use crate::remark;
use std::collections::HashMap;
use std::path::Path;

/// What columns of texts, labels, translations, questions and files are usually called.
const NAMES: &str = " id idx index name number row \
    label labels class classes category categories target targets tag tags sentiment polarity rating \
    ratings stars score y intent topic emotion gold \
    text texts sentence sentences review reviews comment comments content contents message messages \
    tweet document doc body title headline description utterance phrase input inputs output outputs \
    source src translation translations trg tgt reference summary article \
    context passage story paragraph question questions query answer answers response \
    path paths file files filename filenames image images picture audio recording wav caption captions \
    transcript transcription features vector vectors \
    english german french spanish italian portuguese dutch russian chinese japanese korean arabic hebrew \
    turkish polish czech hindi \
    en de fr es it pt nl ru zh ja ko ar he tr pl cs hi \
    标签 类别 分类 文本 句子 内容 评论 原文 译文 源文 目标 问题 答案 回答 摘要 标题 英文 中文 图片 路径 ";

/// What the columns of words with labels are usually called, beside these.
pub(super) const WORD_NAMES: &str = " word words token tokens form forms lemma pos upos xpos ner chunk bio iob \
    feats head deprel deps misc part of speech 词 词语 词性 字 标注 实体 ";

/// How many rows behind the first are looked at.
const LOOKED_AT: usize = 10;

/// Whether all of some cells are names that columns usually have, or one of these, each another.
pub(super) fn are_names(cells: &[&str], more: &str) -> bool {
    let plain = |cell: &&str| cell.trim().trim_matches('"').to_lowercase();
    let mut names: Vec<String> = cells.iter().map(plain).collect();
    let known = |name: &String| {
        let mut parts = name.split([' ', '_', '-', '.']).filter(|part| !part.is_empty()).peekable();
        parts.peek().is_some()
            && parts
                .all(|part| [NAMES, more].iter().any(|names| names.contains(&format!(" {part} "))))
    };
    let all = names.iter().all(known);
    names.sort();
    names.dedup();
    all && cells.len() > 1 && names.len() == cells.len()
}

/// Takes the first row away where it names the columns, and says so; `cells` gives those of a row that
/// are read.
pub(super) fn without_header<'a>(
    path: &Path,
    rows: &'a [Row],
    cells: impl Fn(&'a Row) -> Option<Vec<&'a str>>,
) -> &'a [Row] {
    let Some(at) = rows.iter().position(|row| !row.is_blank()) else { return rows };
    let Some(first) = cells(&rows[at]) else { return rows };
    let behind = &rows[at + 1..];
    // A file that is a header alone is refused for what it is.
    if behind.iter().all(Row::is_blank) || !are_names(&first, "") {
        return rows;
    }
    remark_header(path, rows[at].line, &first);
    behind
}

/// Says that a line names the columns.
pub(super) fn remark_header<T: AsRef<str>>(path: &Path, line: usize, cells: &[T]) {
    let names: Vec<&str> = cells.iter().map(AsRef::as_ref).collect();
    remark(format!(
        "{}: line {line} names the columns ({}) and is not read as data; `data.header=true` says \
         the same",
        path.display(),
        names.join(", ")
    ));
}

/// How much a cell says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Words {
    /// A word alone: what a column may be called.
    One,
    /// A sentence, a number, or nothing.
    Other,
}

impl Words {
    pub(super) fn of(cell: &str) -> Self {
        /// A word that is written without spaces, as Chinese is, is no longer than this.
        const LONGEST: usize = 6;
        let cell = cell.trim();
        let ends = cell.ends_with(['.', '!', '?', ',', ';', ':', '。', '！', '？', '，', '…', '"']);
        let is_long =
            !cell.is_ascii() && cell.chars().count() > LONGEST && !cell.contains(is_latin);
        let spoken = cell.chars().any(char::is_alphabetic) && !cell.contains(char::is_whitespace);
        if spoken && !ends && !is_long { Self::One } else { Self::Other }
    }
}

/// A letter of an alphabet that writes spaces between words.
fn is_latin(letter: char) -> bool {
    letter.is_alphabetic() && letter < '\u{1100}'
}

/// Whether a first row of words that nobody knows as names may still be one that names the columns: each
/// cell is a word alone, and in none of the next rows, three or more, all are.
pub(super) fn may_name_columns<'a>(
    first: &[&str],
    others: impl Iterator<Item = Vec<&'a str>>,
) -> bool {
    let are_words = |cells: &[&str]| cells.iter().all(|cell| Words::of(cell) == Words::One);
    let mut looked = 0;
    let differ = others.take(LOOKED_AT).all(|cells| {
        looked += 1;
        !are_words(&cells)
    });
    differ && looked > 2 && are_words(first)
}

/// Whether of all labels only the first occurs once, and others there are two or more of.
pub(super) fn is_lone_label<'a>(labels: impl Iterator<Item = &'a str>) -> bool {
    let mut counts: HashMap<&str, usize> = HashMap::new();
    let mut first = None;
    for label in labels {
        first.get_or_insert(label);
        *counts.entry(label).or_default() += 1;
    }
    let once = counts.values().filter(|&&count| count == 1).count();
    counts.len() > 2 && once == 1 && first.is_some_and(|label| counts[label] == 1)
}
