//! Takes the program out of README's "From Rust", so that what is run is what stands there.

use std::{env, fs, path::Path};

fn main() {
    let readme = "../../README.md";
    println!("cargo::rerun-if-changed={readme}");
    let text = fs::read_to_string(readme).expect("README.md lies two folders up");
    let (_, after) = text.split_once("\n```rust\n").expect("README.md has a program in Rust");
    let (program, rest) = after.split_once("\n```").expect("the program ends");
    assert!(!rest.contains("\n```rust\n"), "README.md has a second program in Rust: run it too");
    // As rustdoc does: a line that begins with `# ` is compiled and not shown.
    let lines = program.lines().map(|line| line.strip_prefix("# ").unwrap_or(line));
    let program = lines.collect::<Vec<_>>().join("\n");
    let to = Path::new(&env::var("OUT_DIR").expect("cargo says where")).join("readme.rs");
    fs::write(to, format!("{{\n{program}\n}}\n")).expect("cargo's folder can be written to");
}
