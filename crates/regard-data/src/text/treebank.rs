//! English words as the Penn Treebank cuts them, in the order of NLTK's rules.

use std::sync::LazyLock;
use tokenizers::utils::SysRegex;

/// What is changed: each match of a pattern becomes what stands beside it, in which `&` is the match,
/// `^` its first character and `~` the others.
struct Rule {
    pattern: SysRegex,
    with: &'static str,
}

impl Rule {
    fn apply(&self, text: &str) -> String {
        let mut changed = String::with_capacity(text.len());
        let mut done = 0;
        for (start, end) in self.pattern.find_iter(text) {
            changed.push_str(&text[done..start]);
            let matched = &text[start..end];
            let first = matched.chars().next().map_or(0, char::len_utf8);
            for c in self.with.chars() {
                match c {
                    '&' => changed.push_str(matched),
                    '^' => changed.push_str(&matched[..first]),
                    '~' => changed.push_str(&matched[first..]),
                    c => changed.push(c),
                }
            }
            done = end;
        }
        changed.push_str(&text[done..]);
        changed
    }
}

fn rules(all: &[(&str, &'static str)]) -> Vec<Rule> {
    let rule = |&(pattern, with): &(&str, &'static str)| Rule {
        pattern: SysRegex::new(pattern).expect("the pattern is well formed"),
        with,
    };
    all.iter().map(rule).collect()
}

/// Before the text stands between two spaces.
static INSIDE: LazyLock<Vec<Rule>> = LazyLock::new(|| {
    rules(&[
        ("[«“‘„]|`+", " & "),
        ("^\"", "``"),
        ("``", " & "),
        (r#"(?<=[ (\[{<])(?:"|'{2})"#, " `` "),
        (r"(?i)(?<!\w)'(?!(?:re|ve|ll|m|t|s|d|n)\b)(?=\w)", "& "),
        (r#"(?<=[^.])\.(?=[\])}>"'»”’ ]*\s*$)"#, " & "),
        (r"[:,][^\d]", " ^ ~"),
        ("[:,]$", " & "),
        (r"\.{2,}", " & "),
        ("[;@#$%&]", " & "),
        (r"[\x{2012}-\x{2015}]", " & "),
        (r#"(?<=[^.])\.(?=[\])}>"']*\s*$)"#, " & "),
        ("[?!]", " & "),
        ("(?<=[^'])' ", " & "),
        (r"\*", " & "),
        (r"[\]\[(){}<>]", " & "),
        ("--", " & "),
    ])
});

/// After that.
static BETWEEN: LazyLock<Vec<Rule>> = LazyLock::new(|| {
    rules(&[
        ("[»”’]", " & "),
        ("''", " & "),
        ("\"", " '' "),
        (r"\s+", " "),
        ("(?<=[^' ])(?:'[sSmMdD]|') ", " &"),
        ("(?<=[^' ])(?:'ll|'LL|'re|'RE|'ve|'VE|n't|N'T) ", " &"),
        (r"(?i)\bcan(?=not\b)|\bgim(?=me\b)|\bgon(?=na\b)|\bgot(?=ta\b)|\blem(?=me\b)", " & "),
        (r"(?i)\bd(?='ye\b)|\bmore(?='n\b)|\bwan(?=na\s)", " & "),
        (r"(?i)(?<= )'t(?=(?:is|was)\b)", "& "),
    ])
});

/// The words and marks of a sentence: "don't (go)." is do, n't, (, go, ), and a period.
pub fn treebank_words(sentence: &str) -> Vec<String> {
    if sentence.trim().is_empty() {
        return Vec::new();
    }
    let inside = INSIDE.iter().fold(sentence.to_string(), |text, rule| rule.apply(&text));
    let all = BETWEEN.iter().fold(format!(" {inside} "), |text, rule| rule.apply(&text));
    all.split_whitespace().map(str::to_string).collect()
}
