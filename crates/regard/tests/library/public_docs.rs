//! What the documentation of the library crates says: every function that may fail says what it refuses, and in
//! regard-kernels every item has an example or a formula. Read off the formatted sources, as `public_api.rs` does.

use std::fs;
use std::path::{Path, PathBuf};

/// A public item: where it is, its name, what is written above it, and what a function gives.
struct Documented {
    name: String,
    docs: String,
    gives: Option<String>,
}

fn sources(folder: &Path, to: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        match path.is_dir() {
            true => sources(&path, to),
            false if path.extension().is_some_and(|ext| ext == "rs") => to.push(path),
            false => {}
        }
    }
}

fn first_word(text: &str) -> &str {
    text.split(|c: char| !(c.is_alphanumeric() || c == '_')).next().unwrap_or("")
}

/// The kind and the name of an item that a line begins.
fn item(line: &str) -> Option<(&str, &str)> {
    let mut rest = line.strip_prefix("pub ")?;
    while let Some(less) = ["unsafe ", "async "].iter().find_map(|word| rest.strip_prefix(word)) {
        rest = less;
    }
    rest = rest.strip_prefix("const fn ").map_or(rest, |_| &rest["const ".len()..]);
    let (kind, rest) = rest.split_once(' ')?;
    ["fn", "struct", "enum", "trait", "type", "const", "static"]
        .contains(&kind)
        .then(|| (kind, first_word(rest)))
}

/// What an `impl` of no trait is of.
fn implemented(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("impl")?;
    let mut depth = 0;
    let end = rest.char_indices().find_map(|(at, c)| {
        depth += match c {
            '<' => 1,
            '>' => -1,
            _ => 0,
        };
        (c == ' ' && depth == 0).then_some(at)
    })?;
    let of = &rest[end + 1..];
    (!of.contains(" for ")).then(|| first_word(of))
}

/// The public items of a file that the list of the public API has.
fn documented(text: &str, api: &[String], to: &mut Vec<Documented>) {
    let lines: Vec<&str> = text.lines().collect();
    let mut owner = None;
    for (at, line) in lines.iter().enumerate() {
        if line.starts_with("impl") {
            owner = implemented(line);
        } else if *line == "}" {
            owner = None;
        }
        let deep = line.len() - line.trim_start().len();
        let Some((kind, name)) = item(line.trim_start()) else { continue };
        let is_listed = |owner: Option<&str>, line: &str| {
            let line = line.trim_start_matches("#[non_exhaustive] ");
            let part = match (owner, line.split_once(": pub ")) {
                (None, _) if line.starts_with("pub ") => line,
                (Some(owner), Some((of, _))) if first_word(of) == owner => {
                    &line[of.len() + ": ".len()..]
                }
                _ => return false,
            };
            item(part) == Some((kind, name))
        };
        let of = match deep {
            0 => None,
            4 if owner.is_some() => owner,
            _ => continue,
        };
        if !api.iter().any(|line| is_listed(of, line)) {
            continue;
        }
        let above: Vec<&str> = lines[..at]
            .iter()
            .rev()
            .map(|line| line.trim())
            .take_while(|line| ["///", "#[", ")]"].iter().any(|start| line.starts_with(start)))
            .collect();
        if above.contains(&"#[doc(hidden)]") {
            continue;
        }
        let docs = above.iter().rev().filter_map(|line| line.strip_prefix("///"));
        let docs = docs.collect::<Vec<_>>().join("\n");
        let end = (at..lines.len()).find(|&n| lines[n].ends_with(['{', ';'])).unwrap();
        let head = lines[at..=end].join(" ");
        // The last arrow is the function's own, and stands behind its arguments.
        let gives = head.rsplit_once(") -> ").filter(|_| kind == "fn");
        to.push(Documented {
            name: of.map_or(name.into(), |of| format!("{of}::{name}")),
            docs,
            gives: gives.map(|(_, gives)| gives.to_string()),
        });
    }
}

fn of_crate(name: &str) -> Vec<Documented> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name);
    let api = fs::read_to_string(folder.join("public-api.txt")).unwrap();
    let api: Vec<String> = api.lines().map(String::from).collect();
    let (mut files, mut all) = (Vec::new(), Vec::new());
    sources(&folder.join("src"), &mut files);
    for file in files {
        documented(&fs::read_to_string(file).unwrap(), &api, &mut all);
    }
    all
}

#[test]
fn every_function_that_may_fail_says_what_it_refuses() {
    for (name, least) in [("regard-kernels", 35), ("regard-tensor", 140), ("regard", 160)] {
        let all = of_crate(name);
        let failing = all
            .iter()
            .filter(|item| item.gives.as_ref().is_some_and(|gives| first_word(gives) == "Result"));
        let (mut count, mut silent) = (0, Vec::new());
        for item in failing {
            count += 1;
            let docs = item.docs.to_lowercase();
            if !docs.contains("refuse") && !docs.contains("# errors") {
                silent.push(&item.name);
            }
        }
        assert!(silent.is_empty(), "{name}: what do these refuse? {silent:#?}");
        assert!(count >= least, "only {count} functions of {name} were found");
    }
}

/// Whether something is computed there: one symbol alone, an arrow or a root in passing, says nothing.
fn has_formula(docs: &str) -> bool {
    const SYMBOLS: [char; 10] = ['Σ', '√', '·', '∂', '≤', '→', '←', '²', '−', '='];
    docs.chars().filter(|c| SYMBOLS.contains(c)).count() >= 2
}

#[test]
fn every_item_of_the_kernels_has_an_example_or_a_formula() {
    let all = of_crate("regard-kernels");
    let without = |item: &&Documented| !item.docs.contains("```") && !has_formula(&item.docs);
    let without: Vec<&String> = all.iter().filter(without).map(|item| &item.name).collect();
    assert!(without.is_empty(), "no example and no formula: {without:#?}");
    assert!(all.len() >= 150, "only {} items were found", all.len());
}

#[test]
fn one_symbol_in_passing_is_no_formula() {
    assert!(has_formula("y = x / √width"));
    assert!(has_formula("Σᵢ wᵢ · vᵢ"));
    for passing in ["Keeps 1/√(variance + eps).", "From q → out.", "Half of it."] {
        assert!(!has_formula(passing), "{passing}");
    }
}

#[test]
fn what_is_not_said_is_seen() {
    let text = "/// Half of it.\npub fn half(x: f64, by: impl Fn(f64) -> f64) -> Result<f64> {\n}\n\nimpl A {\n    \
                /// Refuses 0. 1 / x\n    pub fn over(&self) -> Result<f64> {\n    }\n\n    /// Hidden.\n    \
                #[doc(hidden)]\n    pub fn more(&self) -> Result<f64> {\n    }\n}\n";
    let api = [
        "pub fn half(x: f64, by: impl Fn(f64) -> f64) -> Result<f64>",
        "A: pub fn over(&self) -> Result<f64>",
        "A: pub fn more(&self) -> Result<f64>",
    ]
    .map(String::from);
    let mut all = Vec::new();
    documented(text, &api, &mut all);
    let found: Vec<(&str, bool)> =
        all.iter().map(|item| (item.name.as_str(), item.docs.contains("Refuses"))).collect();
    assert_eq!(found, [("half", false), ("A::over", true)]);
    assert_eq!(all[0].gives.as_deref(), Some("Result<f64> {"));
}
