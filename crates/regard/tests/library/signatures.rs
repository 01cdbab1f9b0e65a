//! No type of a dependency stands in a signature unless the crate gives it under a path of its own. Read off the lists
//! of the public API, as `public_api.rs` writes them.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// What the standard library gives, and `Self`.
const STD: &str = "AddAssign Arc AsRef BTreeMap Bound Clone Copy Debug Default Display Div DivAssign Drop Eq Fn FnMut \
    FnOnce From FromStr Hash Into IntoIterator Mul MulAssign Neg Option Ord PartialEq PartialOrd Path PathBuf \
    RangeInclusive Result Self Send String Sub SubAssign Sync TryFrom TryInto Vec";

/// Associated types, of ours and of the standard library.
const ASSOCIATED: &str = "Compute Item Number Sealed";

/// Names of crates that are given as a whole (`pub use ndarray;`), which a test below asks for.
const GIVEN: [(&str, &str); 2] = [
    ("bytemuck", "Pod"),
    ("ndarray", "Array ArrayBase ArrayView4 ArrayViewD ArrayViewMut4 Data Dimension Elem"),
];

/// The traits of serde are implemented under the feature of that name; whoever calls them has serde.
const SERDE: &str = "Deserialize Serialize";

fn api(name: &str) -> Vec<String> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name).join("public-api.txt");
    let text = fs::read_to_string(file).unwrap();
    text.lines().map(|line| line.trim_start_matches("#[non_exhaustive] ").to_string()).collect()
}

/// The words of a line that begin as types do: more than a letter, and not a constant's.
fn types(line: &str) -> impl Iterator<Item = &str> {
    let words = line.split(|c: char| !(c.is_alphanumeric() || c == '_'));
    words.filter(|word| {
        word.len() > 1
            && word.starts_with(|c: char| c.is_ascii_uppercase())
            && word.chars().any(|c| c.is_ascii_lowercase())
    })
}

/// What a crate names itself, or names again: types, variants, re-exports.
fn own(lines: &[String]) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for line in lines {
        if line.starts_with("use ") {
            names.extend(types(line).map(String::from));
        }
        let kinds = ["pub enum ", "pub struct ", "pub trait ", "pub type "];
        if let Some(rest) = kinds.iter().find_map(|kind| line.strip_prefix(kind)) {
            names.extend(types(rest).next().map(String::from));
        }
        // A variant: its own name comes first behind its enum's.
        if let Some((_, rest)) = line.split_once(": ") {
            let is_variant = rest.starts_with(|c: char| c.is_ascii_uppercase());
            names.extend(types(rest).next().filter(|_| is_variant).map(String::from));
        }
    }
    names
}

fn strange<'a>(lines: &'a [String], known: &BTreeSet<String>) -> Vec<(&'a str, &'a str)> {
    let mut all = Vec::new();
    for line in lines {
        all.extend(types(line).filter(|word| !known.contains(*word)).map(|word| (word, &line[..])));
    }
    all
}

#[test]
fn every_type_in_a_signature_is_ours_or_the_standard_librarys_or_given_again() {
    let given = GIVEN.iter().map(|(_, names)| *names);
    let words = [STD, ASSOCIATED, SERDE].into_iter().chain(given).flat_map(str::split_whitespace);
    let outside: BTreeSet<String> = words.map(String::from).collect();
    let tensor = own(&api("regard-tensor"));
    for (name, more) in
        [("regard-kernels", None), ("regard-tensor", None), ("regard", Some(&tensor))]
    {
        let lines = api(name);
        let mut known: BTreeSet<String> = outside.union(&own(&lines)).cloned().collect();
        // `regard::tensor` is all of regard-tensor.
        known.extend(more.into_iter().flatten().cloned());
        let strange = strange(&lines, &known);
        assert!(strange.is_empty(), "{name} has types that it does not give: {strange:#?}");
        assert!(lines.len() > 400, "only {} lines of {name}", lines.len());
    }
}

#[test]
fn crates_whose_types_stand_in_signatures_are_given_as_a_whole() {
    let has = |name: &str, line: &str| api(name).iter().any(|listed| listed == line);
    for name in ["regard-kernels", "regard-tensor"] {
        assert!(has(name, "use half") && has(name, "use ndarray"), "{name}");
    }
    assert!(has("regard-tensor", "use bytemuck") && has("regard", "use regard_tensor::ndarray"));
    assert!(has("regard", "use regard_tensor as tensor"));
}

#[test]
fn a_type_of_another_crate_is_seen() {
    let lines =
        ["pub struct Ours", "Kind: Dense(f32)", "Ours: pub fn of(x: Array<f32>) -> Option<Kind>"]
            .map(String::from);
    let known: BTreeSet<String> = ["Option", "Kind"].map(String::from).into();
    let known: BTreeSet<String> = known.union(&own(&lines)).cloned().collect();
    assert_eq!(strange(&lines, &known), [("Array", lines[2].as_str())]);
}
