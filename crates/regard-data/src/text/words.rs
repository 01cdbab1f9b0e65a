//! Words and marks of punctuation, apart and together again.

use std::sync::LazyLock;
use tokenizers::utils::SysRegex;

/// Characters written without spaces between them: radicals to Han, Han of compatibility, vertical
/// and full-width forms, Han of the later planes. Hangul is not here: Korean has spaces.
const CJK: [(char, char); 5] = [
    ('\u{2e80}', '\u{9fff}'),
    ('\u{f900}', '\u{faff}'),
    ('\u{fe30}', '\u{fe4f}'),
    ('\u{ff00}', '\u{ffef}'),
    ('\u{20000}', '\u{3ffff}'),
];

static WORDS: LazyLock<SysRegex> = LazyLock::new(|| pattern(""));
static RUNS: LazyLock<SysRegex> = LazyLock::new(|| pattern("+"));

/// A word, with what stands between two of its letters ("don't", "T-Shirt", "3.5") and a hyphen
/// that waits for another ("Haupt- und"); or CJK characters, as many as `repeat` says; or any other
/// character by itself.
fn pattern(repeat: &str) -> SysRegex {
    let cjk: String = CJK.iter().map(|(first, last)| format!("{first}-{last}")).collect();
    let letter = format!(r"[\p{{L}}\p{{M}}\p{{N}}_&&[^{cjk}]]");
    let between = format!(r"[^\p{{L}}\p{{M}}\p{{N}}_{cjk}]");
    let word = format!("{letter}+(?:{between}{letter}+)*-?");
    let han = format!(r"[\p{{L}}\p{{M}}\p{{N}}&&[{cjk}]]");
    SysRegex::new(&format!("(?s){word}|{han}{repeat}|.")).expect("the pattern is well formed")
}

/// Words, marks of punctuation, single CJK characters.
pub(super) fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split_whitespace().flat_map(|word| cut(word, &WORDS))
}

/// Words, marks of punctuation, runs of CJK characters of what stands between two spaces.
pub(super) fn runs(word: &str) -> impl Iterator<Item = &str> {
    cut(word, &RUNS)
}

fn cut<'a>(word: &'a str, pattern: &'static SysRegex) -> impl Iterator<Item = &'a str> {
    pattern.find_iter(word).map(|(start, end)| &word[start..end])
}

/// A text of [`words`]: no space beside CJK characters, before what closes, after what opens.
pub(super) fn join<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    let mut text = String::new();
    let (mut quoted, mut half_quoted) = (false, false);
    // Whether what stands before takes the next word without a space.
    let mut held = true;
    for word in words {
        let (opens, closes) = match word {
            "\"" | "“" => turned(&mut quoted),
            // "the farmers' market"
            "'" if !half_quoted && text.ends_with('s') => (false, true),
            "'" => turned(&mut half_quoted),
            "„" | "”" => {
                quoted = word == "„";
                (quoted, !quoted)
            }
            _ => (is_one_of(word, "([{¿¡«‘$£#@"), is_one_of(word, ".,;:!?)]}%…»’")),
        };
        if !(held || closes || word.starts_with(is_cjk)) {
            text.push(' ');
        }
        text.push_str(word);
        held = opens || word.ends_with(is_cjk);
    }
    text
}

/// Whether a mark that both opens and closes opens here, and whether it closes.
fn turned(quoted: &mut bool) -> (bool, bool) {
    *quoted = !*quoted;
    (*quoted, !*quoted)
}

fn is_one_of(word: &str, marks: &str) -> bool {
    let mut characters = word.chars();
    matches!((characters.next(), characters.next()), (Some(mark), None) if marks.contains(mark))
}

fn is_cjk(character: char) -> bool {
    CJK.iter().any(|&(first, last)| (first..=last).contains(&character))
}
