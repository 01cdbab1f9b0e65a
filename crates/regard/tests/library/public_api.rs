//! What each library crate promises, as a list in a file, so that a change of it is seen.
//!
//! The list is read off the formatted sources: what `lib.rs` and the public modules name, with the
//! signatures, fields, variants and traits of each, those that are derived too. What a macro writes is not in it. After a change that
//! is meant: `REGARD_BLESS=1 cargo test --workspace --test library public_api`, and CONTRIBUTING.md says
//! what it does to the version.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// A crate's sources, and the names that can be reached from outside.
struct Crate {
    src: PathBuf,
    names: BTreeSet<String>,
    lines: BTreeSet<String>,
}

/// An item that begins at some indentation: its attributes, and its lines up to the brace that closes it.
struct Item<'a> {
    hidden: bool,
    open_ended: bool,
    derived: Vec<String>,
    head: String,
    body: &'a [&'a str],
}

/// The items of a block that stand at an indentation, as rustfmt leaves them.
fn items<'a>(lines: &'a [&'a str], indent: usize) -> Vec<Item<'a>> {
    let mut all = Vec::new();
    let (mut at, mut attributes) = (0, String::new());
    while at < lines.len() {
        let line = lines[at];
        let deep = line.len() - line.trim_start().len();
        let text = line.trim();
        if deep != indent || text.is_empty() || text.starts_with("//") {
            at += 1;
            continue;
        }
        if text.starts_with("#[") {
            // An attribute may take several lines.
            let start = at;
            while at + 1 < lines.len() && open(&lines[start..=at], '[', ']') {
                at += 1;
            }
            attributes.extend(lines[start..=at].iter().map(|line| line.trim()));
            at += 1;
            continue;
        }
        // The head goes on until a line ends what it says.
        let start = at;
        let ends = |line: &str| line.ends_with(['{', ';', ',', '}']);
        while at + 1 < lines.len()
            && !(ends(lines[at].trim_end()) && (at > start || !lines[at].trim_end().ends_with('(')))
        {
            at += 1;
        }
        // Arguments on lines of their own end with commas, too.
        while open(&lines[start..=at], '(', ')') && at + 1 < lines.len() {
            at += 1;
        }
        // So do the names of a list.
        let list = lines[start].trim_start().starts_with("pub use ");
        while list && open(&lines[start..=at], '{', '}') && at + 1 < lines.len() {
            at += 1;
        }
        let head = lines[start..=at].iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ");
        let mut body = &lines[0..0];
        if lines[at].trim_end().ends_with('{') {
            let close = format!("{}}}", " ".repeat(indent));
            let end = (at + 1..lines.len()).find(|&n| lines[n].starts_with(&close));
            let end = end.unwrap_or(lines.len() - 1);
            body = &lines[at + 1..end];
            at = end;
        }
        all.push(Item {
            hidden: ["#[doc(hidden)]", "#[cfg(doctest)]", "#[cfg(test)]"]
                .iter()
                .any(|attribute| attributes.contains(attribute)),
            open_ended: attributes.contains("#[non_exhaustive]"),
            derived: derived(&attributes),
            head: plain(&head),
            body,
        });
        attributes.clear();
        at += 1;
    }
    all
}

/// The traits in `derive(…)`, also in one that wants a feature.
fn derived(attributes: &str) -> Vec<String> {
    let lists = attributes.split("derive(").skip(1).filter_map(|rest| rest.split(')').next());
    let names = lists.flat_map(|list| list.split(',')).map(|name| name.trim().to_string());
    names.filter(|name| !name.is_empty()).collect()
}

/// Whether brackets of a kind are open.
fn open(lines: &[&str], left: char, right: char) -> bool {
    let count = |c: char| lines.iter().flat_map(|line| line.chars()).filter(|&x| x == c).count();
    count(left) > count(right)
}

/// One line as it would be without line breaks.
fn plain(head: &str) -> String {
    let head = head.trim_end_matches(['{', ';', ',']).trim();
    let head = head.replace("( ", "(").replace(", )", ")").replace(" )", ")").replace(",)", ")");
    if head.starts_with("pub use ") {
        return head.replace("{ ", "{").replace(", }", "}").replace(" }", "}");
    }
    head
}

/// The words of a name list: `a::{B, c::D as E}` → B, E.
fn named(list: &str) -> Vec<String> {
    let list = list.trim_end_matches(';');
    let inner = match list.split_once('{') {
        Some((_, inner)) => inner.trim_end_matches('}'),
        None => list,
    };
    let last = |name: &str| {
        let name = name.split(" as ").last().unwrap_or(name);
        name.rsplit("::").next().unwrap_or(name).trim().to_string()
    };
    inner.split(',').map(last).filter(|name| !name.is_empty()).collect()
}

fn word_after<'a>(head: &'a str, keyword: &str) -> Option<&'a str> {
    let rest = head.strip_prefix(keyword)?;
    rest.split(|c: char| !(c.is_alphanumeric() || c == '_')).next()
}

const KINDS: [&str; 9] = [
    "pub struct ",
    "pub enum ",
    "pub trait ",
    "pub type ",
    "pub const ",
    "pub static ",
    "pub fn ",
    "pub unsafe fn ",
    "pub const fn ",
];

fn name_of(head: &str) -> Option<&str> {
    KINDS.iter().rev().find_map(|kind| word_after(head, kind))
}

impl Crate {
    /// Follows the public modules from a file on.
    fn names_in(&mut self, file: &Path, folder: &Path) {
        let text = fs::read_to_string(file).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        for item in items(&lines, 0).iter().filter(|item| !item.hidden) {
            if let Some(list) = item.head.strip_prefix("pub use ") {
                self.lines.insert(format!("use {list}"));
                self.names.extend(named(list));
            } else if let Some(module) = word_after(&item.head, "pub mod ") {
                self.lines.insert(format!("mod {module}"));
                let (alone, inside) =
                    (folder.join(format!("{module}.rs")), folder.join(module).join("mod.rs"));
                let found = if alone.exists() { alone } else { inside };
                self.names_in(&found, &folder.join(module));
            } else if let Some(name) = name_of(&item.head) {
                self.names.insert(name.to_string());
            }
        }
    }

    fn list(&mut self, folder: &Path) {
        let mut files: Vec<PathBuf> =
            fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        for file in files {
            if file.is_dir() {
                self.list(&file);
            } else if file.extension().is_some_and(|ext| ext == "rs") {
                let text = fs::read_to_string(&file).unwrap();
                let lines: Vec<&str> = text.lines().collect();
                self.list_file(&lines);
            }
        }
    }

    fn list_file(&mut self, lines: &[&str]) {
        for item in items(lines, 0).iter().filter(|item| !item.hidden) {
            if let Some(name) = name_of(&item.head) {
                if self.names.contains(name) {
                    let mark = if item.open_ended { "#[non_exhaustive] " } else { "" };
                    self.lines.insert(format!("{mark}{}", item.head));
                    let derived = item.derived.iter();
                    self.lines
                        .extend(derived.map(|of_trait| format!("impl {of_trait} for {name}")));
                    self.list_parts(name, item);
                }
            } else if item.head.starts_with("impl") {
                self.list_impl(item);
            }
        }
    }

    /// Fields, variants, and what a trait asks for.
    fn list_parts(&mut self, name: &str, item: &Item) {
        if item.head.starts_with("pub struct") && has_private_fields(item) {
            self.lines.insert(format!("{name}: private fields"));
        }
        for part in items(item.body, 4).iter().filter(|part| !part.hidden) {
            let public = match &item.head {
                head if head.starts_with("pub struct") => part.head.starts_with("pub "),
                head if head.starts_with("pub enum") => true,
                head => head.starts_with("pub trait"),
            };
            // A method's body is not a promise, that it has one is.
            if public && part.head != "}" {
                let body = if part.body.is_empty() || !part.head.contains("fn ") {
                    ""
                } else {
                    " { … }"
                };
                self.lines.insert(format!("{name}: {}{body}", part.head));
                if item.head.starts_with("pub enum") {
                    for field in items(part.body, 8) {
                        self.lines.insert(format!("{name}: {}.{}", part.head, field.head));
                    }
                }
            }
        }
    }

    fn list_impl(&mut self, item: &Item) {
        let (of_trait, of) = match item.head.rsplit_once(" for ") {
            Some((of_trait, of)) => (Some(of_trait), of),
            None => (None, after_generics(&item.head)),
        };
        let of = of.split(" where ").next().unwrap_or(of).trim_start_matches('&');
        let name = of.split(|c: char| !(c.is_alphanumeric() || c == '_')).next().unwrap_or(of);
        if !self.names.contains(name) {
            return;
        }
        if of_trait.is_some() {
            self.lines.insert(item.head.clone());
            return;
        }
        for part in items(item.body, 4).iter().filter(|part| !part.hidden) {
            if KINDS.iter().any(|kind| part.head.starts_with(kind)) {
                self.lines.insert(format!("{of}: {}", part.head));
            }
        }
    }
}

/// Whether a struct has a field that is not public, so that nobody outside builds one or takes it apart.
fn has_private_fields(item: &Item) -> bool {
    if let Some((_, fields)) = item.head.split_once('(') {
        return !fields.starts_with("pub ");
    }
    items(item.body, 4).iter().any(|part| !part.head.starts_with("pub "))
}

/// What an `impl<…> X` is of.
fn after_generics(head: &str) -> &str {
    let rest = head.trim_start_matches("impl");
    let mut depth = 0;
    for (at, c) in rest.char_indices() {
        match c {
            '<' => depth += 1,
            // The arrow of a function's type closes nothing.
            '>' if !rest[..at].ends_with('-') => depth -= 1,
            ' ' if depth == 0 => return rest[at..].trim_start(),
            _ => {}
        }
    }
    rest
}

/// The list of a crate.
fn listed(src: &Path) -> String {
    let mut all = Crate { src: src.to_path_buf(), names: BTreeSet::new(), lines: BTreeSet::new() };
    all.names_in(&all.src.join("lib.rs"), &all.src.clone());
    all.list(&all.src.clone());
    all.lines.iter().map(|line| format!("{line}\n")).collect()
}

#[test]
fn the_public_api_is_the_one_that_is_written_down() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for name in ["regard", "regard-tensor", "regard-kernels"] {
        let found = listed(&crates.join(name).join("src"));
        let file = crates.join(name).join("public-api.txt");
        if std::env::var_os("REGARD_BLESS").is_some() {
            fs::write(&file, &found).unwrap();
        }
        let kept = fs::read_to_string(&file).unwrap_or_default();
        let lines = |text: &str| text.lines().map(String::from).collect::<BTreeSet<_>>();
        let (found, kept) = (lines(&found), lines(&kept));
        let gone: Vec<&String> = kept.difference(&found).collect();
        let new: Vec<&String> = found.difference(&kept).collect();
        assert!(
            gone.is_empty() && new.is_empty(),
            "{name}'s public items changed; see the top of this test.\ngone: {gone:#?}\nnew: {new:#?}"
        );
    }
}

#[test]
fn the_prelude_has_the_few_names_of_a_model_of_ones_own() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let text = fs::read_to_string(src.join("prelude.rs")).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let lists = items(&lines, 0);
    let names: Vec<String> = lists
        .iter()
        .filter_map(|item| item.head.strip_prefix("pub use "))
        .flat_map(named)
        .collect();
    assert_eq!(names.len(), 30, "{names:?}");
    assert!(names.iter().all(|name| name != "*"), "a glob is no few names");
}

#[test]
fn a_change_of_any_kind_is_seen() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    let lib = "mod inner;\npub mod open;\npub use inner::{\n    A, E,\n    T,\n};\n";
    let inner = "#[derive(Debug, PartialEq)]\n#[cfg_attr(feature = \"serde\", derive(Serialize))]\n\
                 pub struct A {\n    pub x: usize,\n    y: usize,\n}\n\nimpl A {\n    pub fn f(\n        &self,\n        \
                 x: usize,\n    ) -> usize {\n        x\n    }\n\n    fn g(&self) {}\n\n    #[doc(hidden)]\n    \
                 pub fn h(&self) {}\n}\n\nimpl Clone for A {\n    fn clone(&self) -> Self {\n        todo!()\n    \
                 }\n}\n\n#[non_exhaustive]\npub enum E {\n    One,\n    Two {\n        n: u8,\n    },\n}\n\n\
                 pub trait T {\n    fn \
                 t(&self);\n    fn u(&self) {\n        self.t();\n    }\n}\n\npub struct Unreachable;\n";
    let open = "pub fn free<X: Into<u8>>(x: X) -> u8 {\n    x.into()\n}\n";
    let with = |inner: &str, open: &str| {
        write("lib.rs", lib);
        write("inner.rs", inner);
        write("open.rs", open);
        listed(folder.path())
    };
    let before = with(inner, open);
    let wanted = [
        "#[non_exhaustive] pub enum E",
        "A: private fields",
        "A: pub fn f(&self, x: usize) -> usize",
        "A: pub x: usize",
        "E: One",
        "E: Two",
        "E: Two.n: u8",
        "T: fn t(&self)",
        "T: fn u(&self) { … }",
        "impl Clone for A",
        "impl Debug for A",
        "impl PartialEq for A",
        "impl Serialize for A",
        "mod open",
        "pub fn free<X: Into<u8>>(x: X) -> u8",
        "pub struct A",
        "pub trait T",
        "use inner::{A, E, T}",
    ];
    assert_eq!(before.lines().collect::<Vec<_>>(), wanted);
    for (old, new) in [
        ("x: usize,\n    ) -> usize", "x: u32,\n    ) -> usize"),
        ("    pub x: usize", "    pub x: u32"),
        ("    y: usize", "    pub y: usize"),
        ("    One,\n", "    One,\n    Other,\n"),
        ("n: u8", "n: u16"),
        ("    fn t(&self);\n", "    fn t(&self);\n    fn v(&self);\n"),
        ("impl Clone for A", "impl Copy for A"),
        ("Debug, ", ""),
        ("derive(Serialize)", "derive(Deserialize)"),
        ("#[non_exhaustive]\n", ""),
        ("    y: usize,\n", ""),
        ("    fn g(&self) {}", "    pub fn g(&self) {}"),
    ] {
        assert!(inner.contains(old), "{old}");
        assert_ne!(with(&inner.replace(old, new), open), before, "{old} → {new}");
    }
    assert_ne!(with(inner, &open.replace("Into<u8>", "Into<u16>")), before);
    // What nobody outside can name changes nothing.
    assert_eq!(with(&inner.replace("Unreachable", "Other"), open), before);
    assert_eq!(with(&inner.replace("    y: usize", "    y: u32"), open), before);
}
