//! The program `regard`.
fn main() {}
