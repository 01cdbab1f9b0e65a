//! The host's side of a GPU over a driver that has none (`driver/cuda.c`): what is said where something
//! goes wrong, what is launched and where, and that kept machine code needs no compiler.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)] // a test that cannot go on says so by its panic

use half::bf16;
use regard_kernels::cuda::{
    self, BackwardAt, Cache, DeviceRows, DotTiles, EdgesAt, ForwardAt, GradientsAt, GraphSizes,
    OptionsAt, Stored, Variant,
};
use regard_kernels::{
    Activation, Cuda, Edges, Forward, Normalizer, Score, Shape, Spec, View, ViewMut,
};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

const SHAPE: Shape = Shape { b: 1, hq: 2, hk: 2, nq: 70, nk: 90, dq: 64, dk: 64, dv: 64 };

/// What the generic form alone has.
fn plain() -> Spec<'static, f32> {
    Spec { normalizer: Normalizer::Sparsemax, ..Spec::scaled_dot(64) }
}

/// What the tests below need machine code of.
fn variants() -> Vec<Variant> {
    let generic = |spec: &Spec<f32>, s: &Shape| Variant::generic(spec, s, Stored::F32).unwrap();
    let (graph, wide) = (graph_shape(17), Shape { dk: 64, dv: 256, ..SHAPE });
    vec![
        generic(&plain(), &SHAPE),
        generic(&additive(LEAKY, &[1.0; 16]), &graph),
        generic(&additive(Activation::Tanh, &[1.0; 64]), &wide),
        Variant::graph(LEAKY, GraphSizes::of(&graph, [true, false]), Stored::F32),
        Variant::graph(LEAKY, GraphSizes::of(&graph, [false, false]), Stored::F32),
        Variant::additive(64, 256, false),
        Variant::additive(32, 64, false),
        Variant::decode(64, 64, Stored::Bf16),
        Variant::dot(DotTiles::new(64, 64, false), Stored::Bf16),
        Variant::dot(DotTiles { masked: true, ..DotTiles::new(64, 64, false) }, Stored::Bf16),
    ]
}

const LEAKY: Activation = Activation::LeakyRelu { slope: 0.2 };

fn additive(activation: Activation, w: &[f32]) -> Spec<'_, f32> {
    Spec::new(Score::Additive { activation, w })
}

/// So many nodes of two heads of 16.
fn graph_shape(n: usize) -> Shape {
    Shape { b: 1, hq: 2, hk: 2, nq: n, nk: n, dq: 16, dk: 16, dv: 16 }
}

/// Rows that nobody reads, at an address of some GPU's; rows so far apart.
fn rows<E>(at: u64, [b, h, n, d]: [usize; 4], row: usize) -> DeviceRows<E> {
    DeviceRows::new(at, [b, h, n, d], [h * n * row, n * row, row]).unwrap()
}

const AT: u64 = 0x7f00_0000_0000;

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
        for variant in variants() {
            let options = cuda::options("sm_90a").join(" ");
            let is_wide = variant == Variant::additive(64, 256, false);
            let code: &[u8] = if is_wide { b"tiles, wide" } else { b"machine code" };
            cache.put(&[&variant.text(), &options], (13, 0), code);
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

/// What came of a call, in a line.
fn told(what: &str, result: Result<(), regard_kernels::Error>) {
    match result {
        Ok(()) => println!("{what}: it went well"),
        Err(error) => println!("{what}: it said: {error}"),
    }
}

#[test]
#[ignore = "acts for the others, in a process of its own"]
fn passes_over_rows_wherever_they_lie() {
    let cuda = Cuda::new(0).unwrap();
    let (n, w) = (17, [1.0; 16]);
    let edges = Edges::new(n, n, &[(0, 1), (3, 2)]).unwrap();
    let mut spec = additive(LEAKY, &w);
    spec.mask.edges = Some(&edges);
    let shape = [1, 2, n, 16];
    let even = rows::<f32>(AT, shape, 16);
    for (what, q, k, v, out) in [
        ("even", even, even, even, even),
        ("a row of q is 17 numbers long", rows(AT, shape, 17), even, even, even),
        ("a row of k is 18 numbers long", even, rows(AT, shape, 18), even, even),
        ("a row of v is 19 numbers long", even, even, rows(AT, shape, 19), even),
        ("a row of out is 17 numbers long", even, even, even, rows(AT, shape, 17)),
        ("q begins at its second number", rows(AT + 4, shape, 16), even, even, even),
        ("k begins at its third number", even, rows(AT + 8, shape, 16), even, even),
    ] {
        println!("{what}:");
        // SAFETY: the driver behind it reads and writes nothing.
        told(what, unsafe { cuda.forward_at(&spec, [q, k, v], ForwardAt::new(out)) });
    }
}

#[test]
#[ignore = "acts for the others, in a process of its own"]
fn passes_along_edges_that_lie_on_the_gpu() {
    let cuda = Cuda::new(0).unwrap();
    let (n, w) = (17, [1.0; 16]);
    let edges = Edges::elsewhere(n, n, 40, false).unwrap();
    let mut spec = additive(LEAKY, &w);
    spec.mask.edges = Some(&edges);
    let x = rows::<f32>(AT, [1, 2, n, 16], 16);
    let at = EdgesAt {
        row_start: AT,
        row_keys: AT,
        column_start: AT,
        column_queries: AT,
        column_edges: AT,
        row_draws: None,
        longest: 9,
    };
    let options = OptionsAt { edges: Some(at), w: Some(AT), ..OptionsAt::default() };
    let far = OptionsAt { edges: Some(EdgesAt { row_keys: AT + 2, ..at }), ..options };
    let drawn = OptionsAt { edges: Some(EdgesAt { row_draws: Some(AT), ..at }), ..options };
    for (what, options) in [("lists", options), ("odd", far), ("draws", drawn)] {
        println!("{what}:");
        // SAFETY: the driver behind it reads and writes nothing.
        unsafe {
            let pass = ForwardAt { options, lse: Some(AT), ..ForwardAt::new(x) };
            told(what, cuda.forward_at(&spec, [x; 3], pass));
            let gradients =
                GradientsAt { q: Some(x), k: Some(x), v: Some(x), ..Default::default() };
            let pass = BackwardAt {
                grad_out: x,
                grad_weights: None,
                grad_edge_weights: None,
                grad_log_prob: None,
                grad_lse: None,
                out: Some(x),
                lse: Some(AT),
                threshold: None,
                index: None,
                gradients,
                options,
            };
            told(what, cuda.backward_at(&spec, [x; 3], pass));
        }
    }
}

#[test]
fn edges_on_the_gpu_are_read_there_and_nothing_is_copied_or_filled() {
    let said = acting("passes_along_edges_that_lie_on_the_gpu", "", "cache");
    let lists = said.split("odd:\n").next().unwrap();
    assert_eq!(lists.matches("it went well").count(), 2, "{said}");
    for kernel in ["graph_forward", "graph_backward_queries", "graph_backward_keys"] {
        assert!(lists.contains(&format!("launch {kernel}")), "{said}");
    }
    assert!(!lists.contains("copy") && !lists.contains("fill"), "{said}");
    assert_eq!(said.matches("not a multiple of 4").count(), 2, "{said}");
    assert_eq!(said.matches("have row_draws, and no others").count(), 2, "{said}");
}

#[test]
#[ignore = "acts for the others, in a process of its own"]
fn passes_over_many_heads() {
    let cuda = Cuda::new(0).unwrap();
    let (b, w) = (70_000, [1.0; 8]);
    let spec = additive(Activation::Tanh, &w);
    let x = rows::<f32>(AT, [b, 1, 9, 8], 8);
    let halves = rows::<bf16>(AT, [b, 1, 1, 64], 64);
    // SAFETY: the driver behind it reads and writes nothing.
    unsafe {
        told("additive", cuda.forward_at(&spec, [x; 3], ForwardAt::new(x)));
        let pass = ForwardAt::new(halves);
        told("decode", cuda.forward_at(&Spec::scaled_dot(64), [halves; 3], pass));
    }
}

#[test]
#[ignore = "acts for the others, in a process of its own"]
fn a_pass_over_wide_values() {
    let cuda = Cuda::new(0).unwrap();
    let w = [1.0; 64];
    let (q, v) = (rows::<f32>(AT, [1, 2, 70, 64], 64), rows::<f32>(AT, [1, 2, 70, 256], 256));
    let spec = additive(Activation::Tanh, &w);
    // SAFETY: the driver behind it reads and writes nothing.
    told("wide", unsafe { cuda.forward_at(&spec, [q, q, v], ForwardAt::new(v)) });
}

#[test]
#[ignore = "acts for the others, in a process of its own"]
fn passes_with_and_without_arrays_of_the_host() {
    let cuda = Cuda::new(0).unwrap();
    let (w, lengths) = ([1.0; 64], [30]);
    let x = rows::<bf16>(AT, [1, 2, 70, 64], 64);
    let (q, v) = (rows::<f32>(AT, [1, 2, 70, 64], 64), rows::<f32>(AT, [1, 2, 70, 256], 256));
    let mut masked = Spec::scaled_dot(64);
    masked.mask.key_lengths = Some(&lengths);
    // SAFETY: the driver behind it reads and writes nothing.
    unsafe {
        told("plain", cuda.forward_at(&Spec::scaled_dot(64), [x; 3], ForwardAt::new(x)));
        told("lengths", cuda.forward_at(&masked, [x; 3], ForwardAt::new(x)));
        println!("w lies at {:p}", w.as_ptr());
        let spec = additive(Activation::Tanh, &w);
        told("w", cuda.forward_at(&spec, [q, q, v], ForwardAt::new(v)));
    }
}

#[test]
#[ignore = "acts for the others, in a process of its own"]
fn passes_that_do_not_fit_together() {
    let cuda = Cuda::new(0).unwrap();
    let x = rows::<f32>(AT, [1, 2, 70, 64], 64);
    let spec = |normalizer| Spec { normalizer, ..Spec::scaled_dot(64) };
    let forward = ForwardAt::new(x);
    let folded = DeviceRows::new(AT, [1, 2, 70, 64], [0, 0, 64]).unwrap();
    let backward = |gradients| BackwardAt {
        grad_out: x,
        grad_weights: None,
        grad_edge_weights: None,
        grad_log_prob: None,
        grad_lse: None,
        out: Some(x),
        lse: Some(AT),
        threshold: None,
        index: None,
        gradients,
        options: OptionsAt::default(),
    };
    let plain = backward(GradientsAt::default());
    let of_bias = GradientsAt { bias: Some(AT), ..GradientsAt::default() };
    let over_itself = GradientsAt { k: Some(folded), ..GradientsAt::default() };
    let hard = BackwardAt { lse: None, index: Some(AT), grad_lse: Some(AT), ..plain };
    // SAFETY: the driver behind it reads and writes nothing.
    unsafe {
        let call = |normalizer, pass| cuda.forward_at(&spec(normalizer), [x; 3], pass);
        let back = |normalizer, pass| cuda.backward_at(&spec(normalizer), [x; 3], pass);
        let index = ForwardAt { index: Some(AT), ..forward };
        told("1", call(Normalizer::Softmax, index));
        told("2", call(Normalizer::Softmax, ForwardAt { threshold: Some(AT), ..forward }));
        told("3", call(Normalizer::Softmax, ForwardAt { edge_weights: Some(AT), ..forward }));
        told("4", call(Normalizer::Softmax, ForwardAt { lse: Some(AT + 2), ..forward }));
        told("5", call(Normalizer::Softmax, ForwardAt::new(folded)));
        told("6", back(Normalizer::Argmax, hard));
        told("7", back(Normalizer::Softmax, BackwardAt { lse: None, ..plain }));
        told("8", back(Normalizer::Sparsemax, plain));
        told("9", back(Normalizer::None, BackwardAt { grad_lse: Some(AT), ..plain }));
        told("10", back(Normalizer::Softmax, BackwardAt { grad_log_prob: Some(AT), ..plain }));
        told("11", back(Normalizer::Softmax, backward(of_bias)));
        told("12", back(Normalizer::Softmax, backward(over_itself)));
        told("13", back(Normalizer::Softmax, BackwardAt { grad_edge_weights: Some(AT), ..plain }));
    }
}

#[test]
#[ignore = "acts for the others, in a process of its own"]
fn gradients_of_what_nobody_looks_at() {
    let cuda = Cuda::new(0).unwrap();
    let (h, n, d) = (2, 5, 8);
    let none = rows::<f32>(AT, [1, h, 0, d], d);
    // Rows head by head, position by position, with gaps, and with gaps in larger pieces.
    for (what, strides) in [
        ("heads", [h * n * d, n * d, d]),
        ("positions", [h * n * d, d, h * d]),
        ("gaps", [h * n * 9, n * 9, 9]),
        ("pieces", [h * n * 32, d, 32]),
    ] {
        println!("{what}:");
        let mut numbers = vec![1f32; 2 * n * 64];
        let shape = [1, h, n, d];
        let rows = DeviceRows::new(numbers.as_mut_ptr() as u64, shape, strides).unwrap();
        let pass = BackwardAt {
            grad_out: none,
            grad_weights: None,
            grad_edge_weights: None,
            grad_log_prob: None,
            grad_lse: None,
            out: Some(none),
            lse: Some(AT),
            threshold: None,
            index: None,
            gradients: GradientsAt { k: Some(rows), ..GradientsAt::default() },
            options: OptionsAt::default(),
        };
        let k = DeviceRows::new(AT, shape, [h * n * d, n * d, d]).unwrap();
        // SAFETY: the driver behind it writes to the host's memory, which is there.
        told(what, unsafe { cuda.backward_at(&Spec::scaled_dot(d), [none, k, k], pass) });
        let zeros: Vec<usize> = (0..numbers.len()).filter(|&at| numbers[at] == 0.0).collect();
        let place = |at: usize| at / d / n % h * strides[1] + at / d % n * strides[2] + at % d;
        let mut expected: Vec<usize> = (0..h * n * d).map(place).collect();
        expected.sort_unstable();
        assert_eq!(zeros, expected, "{what}");
    }
}

#[test]
#[ignore = "acts for the others, in a process of its own"]
fn a_pass_beside_one_that_is_being_compiled() {
    let cuda = Cuda::new(0).unwrap();
    let w = [1.0; 64];
    let (q, v) = (rows::<f32>(AT, [1, 2, 70, 64], 64), rows::<f32>(AT, [1, 2, 70, 256], 256));
    let (wide, x) = (additive(Activation::Tanh, &w), rows::<bf16>(AT, [1, 2, 70, 64], 64));
    std::thread::scope(|threads| {
        threads.spawn(|| {
            // SAFETY: the driver behind it reads and writes nothing.
            told("slow", unsafe { cuda.forward_at(&wide, [q, q, v], ForwardAt::new(v)) });
        });
        std::thread::sleep(std::time::Duration::from_millis(500));
        // SAFETY: as above.
        let result = unsafe { cuda.forward_at(&Spec::scaled_dot(64), [x; 3], ForwardAt::new(x)) };
        told("quick", result);
    });
}

#[test]
fn a_call_does_not_wait_for_the_kernels_of_another() {
    let said = acting("a_pass_beside_one_that_is_being_compiled", "slow", "cache");
    let at = |what: &str| said.find(&format!("{what}: it went well")).unwrap();
    assert!(at("quick") < at("slow"), "{said}");
}

#[test]
fn gradients_of_what_nobody_looks_at_are_zeros_and_few_calls() {
    let said = acting("gradients_of_what_nobody_looks_at", "", "cache");
    assert_eq!(said.matches("it went well").count(), 4, "{said}");
    let fills = |what: &str| {
        let after = said.split(&format!("{what}:\n")).nth(1).unwrap();
        let before = after.split("it went well").next().unwrap();
        before
            .lines()
            .filter(|line| line.starts_with("fill "))
            .map(String::from)
            .collect::<Vec<_>>()
    };
    assert_eq!(fills("heads"), ["fill 320 bytes"]);
    assert_eq!(fills("positions"), ["fill 320 bytes"]);
    assert_eq!(fills("gaps"), vec!["fill 32 bytes"; 10]);
    assert_eq!(fills("pieces"), vec!["fill 64 bytes"; 5]);
}

#[test]
fn rows_that_are_not_even_go_to_kernels_that_read_number_by_number() {
    let said = acting("passes_over_rows_wherever_they_lie", "", "cache");
    let mut cases = said.split(":\n").skip(1);
    let first = cases.next().unwrap();
    assert!(first.contains("launch graph_forward"), "{said}");
    let others: Vec<&str> = cases.collect();
    assert_eq!(others.len(), 6);
    for other in others {
        assert!(other.contains("launch graph_forward"), "{said}");
        assert!(other.contains("it went well"), "{said}");
    }
}

#[test]
fn more_heads_than_a_grids_second_axis_has_are_launched() {
    let said = acting("passes_over_many_heads", "", "cache");
    for launched in [
        "launch additive_prepare of 140000 blocks",
        "launch additive_forward of 70000 blocks",
        "additive: it went well",
        "launch decode_forward of 70000 blocks",
        "decode: it went well",
    ] {
        assert!(said.contains(launched), "{launched}: {said}");
    }
}

#[test]
fn a_gpu_with_less_shared_memory_takes_the_generic_kernels() {
    let said = acting("a_pass_over_wide_values", "", "cache");
    assert!(said.contains("launch additive_forward") && said.contains("it went well"), "{said}");
    let said = acting("a_pass_over_wide_values", "small", "cache");
    assert!(said.contains("launch forward ") && said.contains("it went well"), "{said}");
}

#[test]
fn what_is_copied_from_the_host_is_not_captured_and_is_read_at_once() {
    let act = "passes_with_and_without_arrays_of_the_host";
    let address = |said: &str| {
        let line = said.lines().find(|line| line.starts_with("w lies at ")).unwrap();
        line["w lies at ".len()..].to_string()
    };
    let said = acting(act, "", "cache");
    assert_eq!(said.matches("it went well").count(), 3, "{said}");
    assert!(said.contains(&format!("copy from {}\n", address(&said))), "{said}");
    // Pinned memory is read later, so it is copied on the host first.
    let said = acting(act, "pinned", "cache");
    assert_eq!(said.matches("it went well").count(), 3, "{said}");
    assert!(!said.contains(&format!("copy from {}\n", address(&said))), "{said}");
    let said = acting(act, "capturing", "cache");
    assert!(said.contains("plain: it went well"), "{said}");
    for refused in ["lengths", "w"] {
        let sentence =
            format!("{refused}: it said: the stream is being captured into a CUDA graph");
        assert!(said.contains(&sentence), "{said}");
    }
}

#[test]
fn the_threads_context_is_given_back() {
    for (act, fault) in
        [("a_forward_pass", ""), ("a_forward_pass", "memory"), ("passes_over_many_heads", "")]
    {
        let said = acting(act, fault, "cache");
        let contexts: Vec<&str> =
            said.lines().filter(|line| line.starts_with("context ")).collect();
        assert!(contexts.contains(&"context 0x1"), "{said}");
        assert_eq!(contexts.last(), Some(&"context 0x77"), "{said}");
        for two in contexts.chunks(2) {
            assert_eq!(two, ["context 0x1", "context 0x77"], "{said}");
        }
    }
}

#[test]
fn a_thread_without_a_context_keeps_that_of_the_only_gpu() {
    let said = acting("a_forward_pass", "fresh", "cache");
    let contexts = said.lines().filter(|line| line.starts_with("context "));
    assert_eq!(contexts.collect::<Vec<_>>(), ["context 0x1"], "{said}");
}

#[test]
fn addresses_are_refused_wherever_slices_are() {
    let said = acting("passes_that_do_not_fit_together", "", "cache");
    let sentences = [
        "a chosen index was asked for; Softmax chooses none",
        "a threshold was asked for; Softmax has none",
        "edge_weights was given; the mask has no edges",
        "lse lies at 0x7f0000000002, which is not a multiple of 4, the size of a number",
        "out: rows of a view of shape [1, 2, 70, 64] with strides [0, 0, 64] overlap",
        "grad_lse needs the saved lse of Argmax",
        "backward of Softmax needs the saved out and lse",
        "backward of Sparsemax needs the saved threshold",
        "grad_lse was given; None normalizes by no log-sum-exp",
        "grad_log_prob was given; Softmax chooses no key",
        "grad bias was given, but the spec has no such part",
        "grad k: rows of a view of shape",
        "grad_edge_weights was given; the mask has no edges",
    ];
    for (n, sentence) in sentences.into_iter().enumerate() {
        let line = format!("{}: it said: {sentence}", n + 1);
        assert!(said.contains(&line), "{line}\n{said}");
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
