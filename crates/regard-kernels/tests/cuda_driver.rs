//! The host's side of a GPU over a driver that has none (`driver/cuda.c`): what is said where something
//! goes wrong, what is launched and where, and that kept machine code needs no compiler.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)] // a test that cannot go on says so by its panic

use half::bf16;
use regard_kernels::cuda::{self, Cache, DeviceRows, DotTiles, ForwardAt, Stored, Variant};
use regard_kernels::{Cuda, Forward, Normalizer, Shape, Spec, View, ViewMut};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

const SHAPE: Shape = Shape { b: 1, hq: 2, hk: 2, nq: 70, nk: 90, dq: 64, dk: 64, dv: 64 };

/// What the generic form alone has.
fn plain() -> Spec<'static, f32> {
    Spec { normalizer: Normalizer::Sigmoid, ..Spec::scaled_dot(64) }
}

/// Where the driver and the kept machine code are.
fn folder() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let folder = std::env::temp_dir().join(format!("regard-driver-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/driver/cuda.c");
        let library = folder.join("libcuda.so");
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-w", "-o"]).args([&library, &source]);
        assert!(compiler.status().unwrap().success());
        let cache = Cache::at(&folder.join("cache"));
        let generic = Variant::generic(&plain(), &SHAPE, Stored::F32).unwrap();
        let tiles = Variant::dot(DotTiles::new(64, 64, false), Stored::Bf16);
        for variant in [generic, tiles] {
            let options = cuda::options("sm_90a").join(" ");
            cache.put(&[&variant.text(), &options], b"machine code");
        }
        folder
    })
}

/// What one of the tests below that act says in a process of its own, whose driver has this fault.
fn acting(name: &str, fault: &str, cache: &str) -> String {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture", "--include-ignored"])
        .env("LD_LIBRARY_PATH", folder())
        .env("FAKE_CUDA", fault)
        .env("REGARD_CACHE", folder().join(cache))
        .env("REGARD_NVRTC", "/nowhere/libnvrtc.so")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    said
}

fn forward(cuda: &Cuda) -> Result<(), regard_kernels::Error> {
    let Shape { hq, nq, nk, dk, .. } = SHAPE;
    let (q, k) = (vec![0.5f32; hq * nq * dk], vec![0.5f32; hq * nk * dk]);
    let mut out = vec![0f32; q.len()];
    let [q, k] = [View::new(&q, [1, hq, nq, dk])?, View::new(&k, [1, hq, nk, dk])?];
    let pass = Forward::new(ViewMut::new(&mut out, [1, hq, nq, dk])?);
    cuda.forward(&plain(), q, k, k, pass)
}

#[test]
#[ignore = "acts for the others, in a process of its own"]
fn a_forward_pass() {
    match Cuda::new(0).and_then(|cuda| forward(&cuda)) {
        Ok(()) => println!("it went well"),
        Err(error) => println!("it said: {error}"),
    }
}

#[test]
#[ignore = "acts for the others, in a process of its own"]
fn a_pass_over_addresses_on_a_stream() {
    let Shape { hq, nq, nk, dk, .. } = SHAPE;
    let cuda = Cuda::new(0).unwrap();
    let (q, k) = (vec![bf16::ONE; hq * nq * dk], vec![bf16::ONE; hq * nk * dk]);
    let rows = |x: &[bf16], n: usize| {
        let at = (x.as_ptr() as u64).next_multiple_of(16);
        DeviceRows::<bf16>::new(at, [1, hq, n, dk], [hq * n * dk, n * dk, dk]).unwrap()
    };
    let (q, k) = (rows(&q, nq), rows(&k, nk));
    // SAFETY: the driver behind it reads and writes nothing.
    unsafe {
        let cuda = cuda.on_stream(0xabc as *mut _);
        let pass = ForwardAt::new(q);
        cuda.forward_at(&Spec::scaled_dot(64), [q, k, k], pass).unwrap();
        let short = ForwardAt::new(k);
        let said = cuda.forward_at(&Spec::scaled_dot(64), [q, k, k], short).unwrap_err();
        println!("it said: {said}");
    }
}

#[test]
fn machine_code_that_is_kept_needs_no_compiler() {
    let said = acting("a_forward_pass", "", "cache");
    assert!(said.contains("launch forward") && said.contains("it went well"), "{said}");
    // Nothing is kept there, and the compiler is not where it is said to be.
    let said = acting("a_forward_pass", "", "empty");
    assert!(said.contains("it said: REGARD_NVRTC names /nowhere/libnvrtc.so:"), "{said}");
}

#[test]
fn each_fault_of_a_gpu_is_one_clear_sentence() {
    let faults = [
        ("memory", "the GPU has no room for ", "use a smaller batch, or the CPU"),
        ("launch", "the GPU refused to launch the kernel forward: unspecified launch failure", ""),
        ("old", "GPU 0 has compute capability 7.5; the kernels need 8.0 or newer", ""),
        ("no GPU", "the NVIDIA driver is there, but it sees no GPU", ""),
    ];
    for (fault, sentence, advice) in faults {
        let said = acting("a_forward_pass", fault, "cache");
        let line = said.lines().find(|line| line.starts_with("it said: ")).unwrap_or(&said);
        assert!(line.contains(sentence) && line.contains(advice), "{fault}: {said}");
    }
}

#[test]
fn kept_machine_code_that_does_not_load_is_compiled_again() {
    let said = acting("a_forward_pass", "image", "cache");
    assert!(said.contains("it said: REGARD_NVRTC names /nowhere"), "{said}");
}

#[test]
fn arrays_on_the_device_are_worked_on_in_the_callers_stream() {
    let said = acting("a_pass_over_addresses_on_a_stream", "", "cache");
    assert!(said.contains("launch dot_forward of 2 blocks on stream 0xabc"), "{said}");
    assert!(
        said.contains("it said: out has shape [1, 2, 90, 64], expected is [1, 2, 70, 64]"),
        "{said}"
    );
}
