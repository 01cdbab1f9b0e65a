//! What the READMEs show of the crate is what its doctests run.

#![allow(clippy::unwrap_used)]

/// The Rust snippets of a text.
fn snippets(text: &str) -> Vec<&str> {
    text.split("```rust\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect()
}

#[test]
fn the_checkouts_readme_shows_the_snippet_that_the_crates_readme_runs() {
    let shown = snippets(include_str!("../../../README.md"));
    assert_eq!(shown.len(), 1);
    assert_eq!(shown, snippets(include_str!("../README.md")));
}
