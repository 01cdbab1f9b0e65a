//! Runs tests of this binary on an emulated GPU, in a process of their own. A C++ compiler is needed.

use std::path::{Path, PathBuf};
use std::process::Command;

/// What the tests with a name like `filter` say there; fails where one does.
pub(crate) fn emulated(filter: &str, ignored: bool) -> String {
    let emulator = Path::new(env!("CARGO_MANIFEST_DIR")).join("../regard-kernels/tests/emulator");
    // A colon would part the list of folders that the loader is given.
    let name = format!("regard-gpu-{}-{}", std::process::id(), filter.replace(':', ""));
    let folder = std::env::temp_dir().join(name);
    std::fs::create_dir_all(&folder).unwrap();
    let library = |name: &str| -> PathBuf { folder.join(name) };
    let compiled = Command::new("c++")
        .args(["-O1", "-std=c++17", "-shared", "-fPIC", "-w", "-o"])
        .args([library("libcuda.so"), emulator.join("gpu.cpp")])
        .output()
        .unwrap();
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    std::fs::copy(library("libcuda.so"), library("libcuda.so.1")).unwrap();
    std::fs::copy(library("libcuda.so"), library("libnvrtc.so")).unwrap();
    let mut tests = Command::new(std::env::current_exe().unwrap());
    // One at a time: a wrong index is told to whoever reads from the GPU next, and one test asks for one.
    tests.args([filter, "--test-threads", "1"]).args(ignored.then_some("--ignored"));
    let output = tests
        .env("REGARD_TEST_DEVICE", "cuda")
        .env("LD_LIBRARY_PATH", &folder)
        .env("REGARD_NVRTC", library("libnvrtc.so"))
        .env("REGARD_CACHE", folder.join("cache"))
        .env("REGARD_EMULATOR", &emulator)
        .env("REGARD_EMULATED", &folder)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    std::fs::remove_dir_all(&folder).unwrap();
    said
}
