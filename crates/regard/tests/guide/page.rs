//! A page of the guide, taken apart.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// A fenced block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    /// What stands behind the fence: `sh`, `text`, `rust`, `python`, `math`.
    pub(crate) language: String,
    /// The comment before it, which says how the block is checked.
    pub(crate) comment: String,
    pub(crate) content: String,
}

/// A page's parts.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) path: PathBuf,
    pub(crate) blocks: Vec<Block>,
    /// What is neither fenced nor a comment.
    pub(crate) prose: String,
}

impl Page {
    pub(crate) fn read(path: &Path) -> Self {
        let text = fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let (mut blocks, mut prose, mut comment) = (Vec::new(), String::new(), String::new());
        let mut fenced: Option<Block> = None;
        for line in text.lines() {
            let trimmed = line.trim();
            match (&mut fenced, line.strip_prefix("```")) {
                (Some(_), Some(_)) => blocks.extend(fenced.take()),
                (Some(block), None) => block.content += &format!("{line}\n"),
                (None, Some(language)) => {
                    let comment = std::mem::take(&mut comment);
                    let (language, content) = (language.trim().to_owned(), String::new());
                    fenced = Some(Block { language, comment, content });
                }
                (None, None) if trimmed.starts_with("<!--") => {
                    let inner = trimmed.trim_start_matches("<!--").trim_end_matches("-->");
                    comment = inner.trim().to_owned();
                }
                (None, None) => {
                    if !trimmed.is_empty() {
                        comment.clear();
                    }
                    prose += &format!("{line}\n");
                }
            }
        }
        assert!(fenced.is_none(), "{}: a block is not closed", path.display());
        Self { path: path.to_path_buf(), blocks, prose }
    }

    /// The contents of the blocks in a language.
    pub(crate) fn code(&self, language: &str) -> Vec<&str> {
        let in_it = |block: &&Block| block.language == language;
        self.blocks.iter().filter(in_it).map(|block| &block.content[..]).collect()
    }

    /// The formulas in running text, `$…$`.
    pub(crate) fn formulas(&self) -> BTreeSet<String> {
        let text = outside(&self.prose, '`');
        for line in text.lines() {
            let count = line.matches('$').count();
            assert!(count.is_multiple_of(2), "{}: an odd `$` in {line}", self.path.display());
        }
        let inside = text.lines().flat_map(|line| line.split('$').skip(1).step_by(2));
        inside.map(str::to_owned).collect()
    }

    /// The formulas in running text that GitHub would show as they are typed: it wants a blank before
    /// a `$` that begins one (a full-width comma does not do) and no letter behind the other, and
    /// Markdown takes the backslash off a sign that is no letter.
    pub(crate) fn unrendered_formulas(&self) -> Vec<String> {
        let text = outside(&self.prose, '`');
        let mut found = Vec::new();
        for parts in text.lines().map(|line| line.split('$').collect::<Vec<_>>()) {
            for at in (1..parts.len()).step_by(2) {
                let apart = parts[at - 1].chars().next_back().is_none_or(char::is_whitespace);
                let ends =
                    parts.get(at + 1).is_some_and(|next| !next.starts_with(char::is_alphanumeric));
                let mut commands = parts[at].split('\\').skip(1);
                let kept = commands.all(|name| name.starts_with(char::is_alphabetic));
                if !(apart && ends && kept && !parts[at].contains(['<', '>'])) {
                    found.push(parts[at].to_owned());
                }
            }
        }
        found
    }

    /// Where links and pictures lead, in order; pictures alone if asked so.
    pub(crate) fn links(&self, pictures: bool) -> Vec<String> {
        let text = outside(&self.prose, '`');
        let mut found = Vec::new();
        let mut from = 0;
        while let Some(at) = text[from..].find("](").map(|at| at + from) {
            from = at + 2;
            let end = text[from..].find(')').map_or(text.len(), |end| end + from);
            let opening = text[..at].rfind('[').unwrap_or(0);
            if !pictures || text[..opening].ends_with('!') {
                found.push(text[from..end].to_owned());
            }
        }
        found
    }

    /// The levels and texts of the headings.
    pub(crate) fn headings(&self) -> Vec<(usize, &str)> {
        let heading = |line: &'_ str| {
            let level = line.bytes().take_while(|&byte| byte == b'#').count();
            (1..=6).contains(&level).then_some(level)
        };
        let lines = self.prose.lines();
        lines.filter_map(|line| Some((heading(line)?, line.trim_matches(['#', ' '])))).collect()
    }

    /// The numbers with a decimal point in running text, formulas and code aside.
    pub(crate) fn quoted_numbers(&self) -> Vec<String> {
        decimals(&outside(&outside(&self.prose, '`'), '$'))
    }

    /// The numbers with a decimal point in the blocks that are checked against a run or calculated.
    pub(crate) fn checked_numbers(&self) -> Vec<f64> {
        let texts = self.code("text").concat();
        decimals(&texts).iter().filter_map(|number| number.parse().ok()).collect()
    }
}

/// The text without what stands between two of `mark`, within a line.
fn outside(text: &str, mark: char) -> String {
    let line = |line: &str| line.split(mark).step_by(2).collect::<Vec<_>>().join(" ") + "\n";
    text.lines().map(line).collect()
}

/// The numbers in a text that have a decimal point, without their sign.
fn decimals(text: &str) -> Vec<String> {
    let parts = text.split(|c: char| !c.is_ascii_digit() && c != '.');
    let parts = parts.map(|part| part.trim_matches('.'));
    parts.filter(|part| part.matches('.').count() == 1).map(str::to_owned).collect()
}
