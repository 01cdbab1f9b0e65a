//! A compiler that is not what it is said to be. Alone in its file: the environment is the process's.

#![allow(clippy::unwrap_used)] // a test that cannot go on says so by its panic

use regard_kernels::cuda::compile_for;

#[test]
fn a_file_that_is_not_nvrtc_is_refused_by_its_name() {
    let file = std::env::temp_dir().join(format!("regard-not-nvrtc-{}.so", std::process::id()));
    std::fs::write(&file, "no library").unwrap();
    // SAFETY: this process has no other test, so no other thread reads the environment.
    unsafe { std::env::set_var("REGARD_NVRTC", &file) };
    let said = compile_for("sm_90a", "").unwrap_err().to_string();
    assert!(said.starts_with(&format!("REGARD_NVRTC names {}:", file.display())), "{said}");
    std::fs::remove_file(file).unwrap();
}
