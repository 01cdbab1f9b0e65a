//! Whether a file's first row names its columns.

use super::columns::Row;
use crate::remark;
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

/// Whether all of some cells are names that columns usually have, each another.
fn are_names(cells: &[&str]) -> bool {
    let plain = |cell: &&str| cell.trim().trim_matches('"').to_lowercase();
    let mut names: Vec<String> = cells.iter().map(plain).collect();
    let known = |name: &String| {
        let mut parts = name.split([' ', '_', '-', '.']).filter(|part| !part.is_empty()).peekable();
        parts.peek().is_some() && parts.all(|part| NAMES.contains(&format!(" {part} ")))
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
    if behind.iter().all(Row::is_blank) || !are_names(&first) {
        return rows;
    }
    let (path, line) = (path.display(), rows[at].line);
    remark(format!(
        "{path}: line {line} names the columns ({}) and is not read as data; `data.header=true` says \
         the same",
        first.join(", ")
    ));
    behind
}
