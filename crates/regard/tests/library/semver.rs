//! What may grow without a new major version: every public enum and struct is `#[non_exhaustive]`, has a field
//! of its own, is written with `..` behind its fields, or is closed for a reason that stands here.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Types that never get another variant or field, by crate, or where one is meant to break: whoever writes all
/// of it has to say what the new part is.
const CLOSED: [(&str, &[&str], &str); 6] = [
    (
        "regard-kernels",
        &["Base", "Kind", "Cell"],
        "the ways to begin a sum, the two kinds of an expression, the cells whose equations the kernels have",
    ),
    (
        "regard-kernels",
        &["Broadcast", "Dropout", "Parameter", "Relative", "Segments", "Shape", "Window"],
        "a few numbers that are one thing; the formula has no other",
    ),
    (
        "regard-kernels",
        &[
            "AdamTensor",
            "Arriving",
            "BackwardAt",
            "EdgesAt",
            "Gradients",
            "GradientsAt",
            "LayerNorm",
            "LayerNormGrads",
            "Recurrent",
            "RecurrentGrads",
            "RecurrentOut",
            "RecurrentSeed",
            "Saved",
            "SgdTensor",
        ],
        "slices and addresses that one kernel reads and writes: another is another kernel",
    ),
    (
        "regard-tensor",
        &["Better", "RecurrentStart"],
        "two directions; the operands of one operation",
    ),
    (
        "regard",
        &[
            "Mode",
            "KeyValue",
            "Memory",
            "RecurrentState",
            "Segments",
            "HeadRef",
            "CellChange",
            "OwnConfig",
            "Span",
        ],
        "training or not; pairs and places that are one thing",
    ),
    (
        "regard",
        &["HeadPatch", "Passages", "Sentences", "Stories", "Source"],
        "the inputs of one model",
    ),
];

struct Api {
    lines: Vec<String>,
}

impl Api {
    fn of(name: &str) -> Self {
        let file =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name).join("public-api.txt");
        Self { lines: fs::read_to_string(file).unwrap().lines().map(String::from).collect() }
    }

    /// Public enums and structs: the name, and whether it is an enum and whether `#[non_exhaustive]`.
    fn types(&self) -> BTreeMap<&str, (bool, bool)> {
        let mut types = BTreeMap::new();
        for line in &self.lines {
            let (open_ended, rest) = match line.strip_prefix("#[non_exhaustive] ") {
                Some(rest) => (true, rest),
                None => (false, line.as_str()),
            };
            let (is_enum, rest) =
                match (rest.strip_prefix("pub enum "), rest.strip_prefix("pub struct ")) {
                    (Some(rest), _) => (true, rest),
                    (_, Some(rest)) => (false, rest),
                    _ => continue,
                };
            let name = rest.split(|c: char| !c.is_alphanumeric()).next().unwrap();
            // Two modules may have a type of one name: the closed one counts.
            let entry = types.entry(name).or_insert((is_enum, open_ended));
            entry.1 &= open_ended;
        }
        types
    }

    fn has_private_fields(&self, name: &str) -> bool {
        self.lines.iter().any(|line| *line == format!("{name}: private fields"))
    }

    /// Whether `..T::default()` or `..T::new(…)` fills in what is not written.
    fn is_filled_in(&self, name: &str) -> bool {
        self.lines.iter().any(|line| {
            let Some((of, rest)) = line.split_once(": pub fn ") else {
                return line.starts_with("impl")
                    && line.contains("Default for ")
                    && line.split(" for ").last().is_some_and(|of| is(of, name));
            };
            is(of, name) && !rest.contains("self") && rest.contains("-> Self")
        })
    }
}

/// Whether a type with its generics has a name.
fn is(of: &str, name: &str) -> bool {
    of.split(|c: char| !c.is_alphanumeric()).next() == Some(name)
}

#[test]
fn every_public_type_may_grow_or_is_closed_for_a_reason() {
    let mut count =
        BTreeMap::from([("non_exhaustive", 0), ("private", 0), ("filled in", 0), ("closed", 0)]);
    for name in ["regard-kernels", "regard-tensor", "regard"] {
        let api = Api::of(name);
        let closed: BTreeSet<&str> = CLOSED
            .iter()
            .filter(|(of, ..)| *of == name)
            .flat_map(|(_, names, _)| names.iter().copied())
            .collect();
        let types = api.types();
        let gone: Vec<_> = closed.iter().filter(|name| !types.contains_key(*name)).collect();
        assert!(gone.is_empty(), "{name} has no {gone:?} any more");
        for (of, (is_enum, open_ended)) in types {
            let how = match () {
                () if open_ended => "non_exhaustive",
                () if closed.contains(of) => "closed",
                () if !is_enum && api.has_private_fields(of) => "private",
                () if !is_enum && api.is_filled_in(of) => "filled in",
                () => panic!(
                    "{name}::{of} cannot grow: make it #[non_exhaustive], or give it a default, or say here why \
                     it is closed (CONTRIBUTING.md, Versions)"
                ),
            };
            assert!(
                !(how == "closed" && !is_enum && api.has_private_fields(of)),
                "{name}::{of} has a private field, and need not be in the list"
            );
            *count.get_mut(how).unwrap() += 1;
        }
    }
    assert!(count.values().all(|&n| n >= 20), "{count:?}");
}
