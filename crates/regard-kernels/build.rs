//! Tells the sources whether they are compiled with optimization: `cfg(optimized)`.
//!
//! A kernel is fast because all that it calls is inlined into it. Without optimization that makes
//! nothing faster, and every temporary of every inlined function has a place of its own on the
//! stack: a kernel would need more of it than a thread has.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-check-cfg=cfg(optimized)");
    if std::env::var("OPT_LEVEL").is_ok_and(|level| level != "0") {
        println!("cargo::rustc-cfg=optimized");
    }
}
