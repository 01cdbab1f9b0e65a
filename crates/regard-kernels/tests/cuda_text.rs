//! The GPU's kernels without a GPU: what NVRTC makes of their text, what is kept on disk, and what is said
//! where something is missing.

#![allow(clippy::unwrap_used)] // a test that cannot go on says so by its panic

use regard_kernels::cuda::step::StepText;
use regard_kernels::cuda::{
    Cache, Choices, DotTiles, GraphSizes, Stored, TileSizes, Variant, compile_for,
};
use regard_kernels::{Activation, Cuda, Expression, Normalizer, Parameter, Score, Shape, Spec};
use std::fs;
use std::path::PathBuf;

/// A version of the compiler.
const V: (i32, i32) = (13, 0);

/// A folder of this test's own, empty.
fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("regard-cuda-{}-{name}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    folder
}

fn only_entry(folder: &PathBuf) -> PathBuf {
    let entries: Vec<_> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(entries.len(), 1, "{entries:?}");
    entries[0].clone()
}

#[test]
fn machine_code_is_kept_under_all_that_it_depends_on() {
    let folder = folder("kept");
    let cache = Cache::at(&folder);
    let (old, new) = ((12, 8), (13, 0));
    assert_eq!(cache.get(&["text", "sm_90a"], Some(new)), None);
    cache.put(&["text", "sm_90a"], new, b"code");
    assert_eq!(cache.get(&["text", "sm_90a"], Some(new)).as_deref(), Some(&b"code"[..]));
    for other in [["texts", "sm_90a"], ["text", "sm_80"]] {
        assert_eq!(cache.get(&other, Some(new)), None, "{other:?}");
        assert_eq!(cache.get(&other, None), None, "{other:?}");
    }
    // Another compiler's is not taken where there is a compiler, and will do where there is none.
    assert_eq!(cache.get(&["text", "sm_90a"], Some(old)), None);
    cache.put(&["text", "sm_90a"], old, b"old code");
    assert_eq!(cache.get(&["text", "sm_90a"], Some(old)).as_deref(), Some(&b"old code"[..]));
    assert_eq!(cache.get(&["text", "sm_90a"], None).as_deref(), Some(&b"code"[..]));
    fs::remove_dir_all(folder).unwrap();
}

#[test]
#[cfg(unix)]
fn what_a_gpu_executes_is_written_and_read_where_nobody_else_writes() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
    let folder = folder("rights");
    let cache = Cache::at(&folder.join("within"));
    cache.put(&["text"], V, b"code");
    let rights = |path: &PathBuf| fs::metadata(path).unwrap().mode() & 0o777;
    assert_eq!(rights(&folder.join("within")), 0o700);
    let file = only_entry(&folder.join("within"));
    assert_eq!(rights(&file), 0o600);
    // A link in the entry's place is replaced, and what it points to is left alone.
    let elsewhere = folder.join("elsewhere");
    fs::write(&elsewhere, "another's").unwrap();
    fs::remove_file(&file).unwrap();
    symlink(&elsewhere, &file).unwrap();
    cache.put(&["text"], V, b"code");
    assert_eq!(fs::read_to_string(&elsewhere).unwrap(), "another's");
    assert_eq!(cache.get(&["text"], Some(V)).as_deref(), Some(&b"code"[..]));
    for open in [0o770, 0o707, 0o777] {
        fs::set_permissions(folder.join("within"), fs::Permissions::from_mode(open)).unwrap();
        assert_eq!(cache.get(&["text"], Some(V)), None, "{open:o}");
        let said = cache.folder().unwrap_err().to_string();
        assert!(said.contains("others may write there"), "{said}");
        assert_eq!(
            rights(&folder.join("within")),
            open,
            "a folder that was given is left as it is"
        );
    }
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn an_entry_under_another_name_is_as_good_as_none() {
    let folder = folder("renamed");
    let cache = Cache::at(&folder);
    cache.put(&["text"], V, b"code");
    let text = only_entry(&folder);
    cache.put(&["other"], V, b"other code");
    let other = |entry: &PathBuf| *entry != text;
    let entries = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    fs::rename(entries.into_iter().find(other).unwrap(), &text).unwrap();
    assert_eq!(cache.get(&["text"], Some(V)), None);
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn threads_that_keep_the_same_code_do_not_disturb_each_other() {
    let folder = folder("threads");
    let cache = Cache::at(&folder);
    let code = vec![7; 1 << 20];
    cache.put(&["text"], V, &code);
    std::thread::scope(|threads| {
        for _ in 0..4 {
            threads.spawn(|| {
                for _ in 0..20 {
                    cache.put(&["text"], V, &code);
                    assert!(
                        cache.get(&["text"], Some(V)).as_ref() == Some(&code),
                        "half an entry was read"
                    );
                    cache.folder().unwrap();
                }
            });
        }
    });
    only_entry(&folder);
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_damaged_entry_is_as_good_as_none() {
    let folder = folder("damaged");
    let cache = Cache::at(&folder);
    cache.put(&["text"], V, b"machine code of some length");
    let file = only_entry(&folder);
    let whole = fs::read(&file).unwrap();
    for cut in 0..whole.len() {
        fs::write(&file, &whole[..cut]).unwrap();
        assert_eq!(cache.get(&["text"], Some(V)), None, "cut at {cut}");
        let mut changed = whole.clone();
        changed[cut] ^= 1;
        fs::write(&file, &changed).unwrap();
        assert_eq!(cache.get(&["text"], Some(V)), None, "changed at {cut}");
    }
    cache.put(&["text"], V, b"again");
    assert_eq!(cache.get(&["text"], Some(V)).as_deref(), Some(&b"again"[..]));
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_folder_that_cannot_be_written_costs_nothing_but_time() {
    let file = folder("file");
    fs::write(&file, "a file, where a folder should be").unwrap();
    let cache = Cache::at(&file.join("within"));
    cache.put(&["text"], V, b"code");
    assert_eq!(cache.get(&["text"], Some(V)), None);
    assert_eq!(fs::read_to_string(&file).unwrap(), "a file, where a folder should be");
    let said = cache.folder().unwrap_err().to_string();
    let folder = file.join("within").display().to_string();
    assert!(said.contains(&folder) && said.lines().count() == 1, "{said}");
    fs::remove_file(file).unwrap();
}

#[test]
fn a_gpu_that_is_not_there_is_refused_in_one_sentence() {
    let said = Cuda::new(9999).unwrap_err().to_string();
    let expected =
        ["there is no NVIDIA driver", "it sees no GPU", "there is no GPU 9999", "to start"];
    assert!(expected.iter().any(|part| said.contains(part)), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
}

/// Every text that the device's tests run, or one like it for each way it is put together.
fn variants() -> Vec<(String, Variant)> {
    let shape = |d: usize, dv: usize, heads: usize| Shape {
        b: 1,
        hq: heads,
        hk: heads,
        nq: 8,
        nk: 8,
        dq: d,
        dk: d,
        dv,
    };
    let (small, wide) = (shape(16, 16, 1), shape(128, 256, 1));
    let w = [0.5f32; 128];
    let mut all = Vec::new();
    let mut generic = |name: &str, spec: &Spec<f32>, s: &Shape, stored: Stored| {
        all.push((format!("{name} {stored:?}"), Variant::generic(spec, s, stored).unwrap()));
    };
    for stored in [Stored::F32, Stored::F64, Stored::Bf16, Stored::F16] {
        generic("dot", &Spec::scaled_dot(16), &small, stored);
    }
    generic("wide dot", &Spec::scaled_dot(128), &wide, Stored::F32);
    // Where rows are few, several warps share one; here each has its own.
    let many = Shape { nq: 2048, ..small };
    generic("dot of many rows", &Spec::scaled_dot(16), &many, Stored::F32);
    let leaky = Activation::LeakyRelu { slope: 0.2 };
    let additive = Spec::new(Score::Additive { activation: leaky, w: &w[..16] });
    generic("additive of many rows", &additive, &many, Stored::F32);
    let activations = [
        Activation::Tanh,
        Activation::Gelu,
        Activation::Identity,
        Activation::Relu,
        Activation::LeakyRelu { slope: 0.2 },
    ];
    for activation in activations {
        let spec = Spec::new(Score::Additive { activation, w: &w[..16] });
        generic(&format!("additive {activation}"), &spec, &small, Stored::F32);
    }
    let texts = [
        "-sum(square(w * (q - k)))",
        "q @ k / (0.5 + norm(q) * norm(k)) * tau",
        "sum(w * softplus(q - k)) - tau * sum(abs(q * k))",
        "sum(w * gelu(q + k)) + mean(max(q, k)) * sin(tau) + log(1 + exp(cos(q @ k)))",
    ];
    for text in texts {
        let expression = Expression::parse(text).unwrap();
        let parameters: Vec<Parameter<f32>> = expression
            .parameters()
            .iter()
            .map(|name| match name.starts_with('w') {
                true => Parameter::row(&w[..16]),
                false => Parameter::number(&[0.5]),
            })
            .collect();
        let score = Score::Expression { expression: &expression, parameters: &parameters };
        generic(text, &Spec::new(score), &small, Stored::F32);
    }
    let leaky = Activation::LeakyRelu { slope: 0.2 };
    for (heads, [width, values], [aligned, dropout], stored) in [
        (8, [16, 16], [true, true], Stored::F32),
        (8, [1, 16], [true, false], Stored::F32),
        (8, [64, 64], [true, true], Stored::Bf16),
        (3, [40, 40], [true, false], Stored::F16),
        (1, [7, 7], [false, true], Stored::F32),
        (5, [1, 1], [false, true], Stored::F32),
        (2, [200, 200], [true, true], Stored::Bf16),
    ] {
        let sizes = GraphSizes::of(&shape(width, values, heads), [aligned, dropout]);
        let name = format!("graph {heads} × {width}, {values} {aligned} {dropout} {stored:?}");
        all.push((name, Variant::graph(leaky, sizes, stored)));
    }
    for (width, value_width) in [(32, 64), (128, 128), (256, 256)] {
        for backward in [false, true] {
            let name = format!("additive {width} {value_width} backward {backward}");
            all.push((name, Variant::additive(width, value_width, backward)));
        }
    }
    let most = Choices {
        dense: true,
        full_bias: true,
        relative: true,
        dropout: true,
        ..Choices::default()
    };
    for (widths, stored, has) in [
        ([64, 64], Stored::Bf16, Choices { dropout: true, ..Choices::default() }),
        ([256, 256], Stored::F16, Choices::default()),
        ([64, 64], Stored::F32, most),
    ] {
        for (backward, room) in [(false, 99 << 10), (true, 163 << 10)] {
            let sizes =
                TileSizes::new(widths, stored, [true, backward], Normalizer::Softmax, has, room);
            let name = format!("tile {widths:?} {stored:?} backward {backward}");
            all.push((name, Variant::tile(sizes.unwrap(), stored)));
        }
    }
    for (width, value_width) in [(64, 64), (128, 128), (64, 128)] {
        for stored in [Stored::Bf16, Stored::F16] {
            let name = format!("decode {width} {value_width} {stored:?}");
            all.push((name, Variant::decode(width, value_width, stored)));
        }
    }
    all
}

/// The texts for Hopper's tensor cores, which no other GPU has.
fn tensor_core_variants(backward: bool) -> Vec<(String, Variant)> {
    let mut all = Vec::new();
    for (width, values) in [(64, 64), (64, 128), (128, 64), (128, 128)] {
        let plain = DotTiles::new(width, values, false);
        let masked = DotTiles { masked: true, ..plain };
        let kinds = [
            plain,
            masked,
            DotTiles { segments: true, ..masked },
            DotTiles { distance: 128, ..masked },
            DotTiles { normalizer: Normalizer::Entmax15, ..masked },
            DotTiles { normalizer: Normalizer::Sparsemax, ..masked },
        ];
        // Both formats for every kind, width and direction, but not for all of them at once.
        for (n, kind) in kinds.into_iter().enumerate() {
            let even = (n + usize::from(width != values) + usize::from(backward)) % 2 == 0;
            let stored = if even { Stored::Bf16 } else { Stored::F16 };
            let tiles = DotTiles { backward, ..kind };
            all.push((format!("{tiles:?} {stored:?}"), Variant::dot(tiles, stored)));
        }
    }
    all.push((format!("split, backward {backward}"), Variant::split(backward)));
    all
}

/// Every instruction of some machine code, by NVIDIA's disassembler, whose program `REGARD_NVDISASM` names;
/// `name` is the test's.
fn disassembled(name: &str, cubin: &[u8]) -> String {
    let program = std::env::var_os("REGARD_NVDISASM").expect("REGARD_NVDISASM names nvdisasm");
    let folder = folder(name);
    fs::create_dir(&folder).unwrap();
    let file = folder.join("code.cubin");
    fs::write(&file, cubin).unwrap();
    let output = std::process::Command::new(program).arg("-c").arg(&file).output().unwrap();
    fs::remove_dir_all(folder).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn has_its_products_and_keeps_its_numbers_in_registers(backward: bool) {
    for (name, variant) in tensor_core_variants(backward) {
        let compiled = compile_for("sm_90a", &variant.text());
        let compiled = compiled.unwrap_or_else(|error| panic!("{name}: {error}"));
        let log = &compiled.log;
        assert!(log.contains("spill stores"), "{name}: {log}");
        let spilled =
            |line: &&str| line.contains("spill stores") && !line.contains(" 0 bytes spill stores");
        assert_eq!(log.lines().find(spilled), None, "{name}");
        // What the compiler says where it waits for each product before the next.
        assert!(!log.contains("serialized"), "{name}: {log}");
        // And where it keeps all warps to the registers of the launch.
        assert!(!log.contains("setmaxnreg"), "{name}: {log}");
        let code = disassembled(if backward { "backward" } else { "forward" }, &compiled.cubin);
        for instruction in ["HGMMA", "UTMALDG", "SYNCS", "USETMAXREG"] {
            assert!(code.contains(instruction), "{name} has no {instruction}");
        }
    }
}

// Two tests, that run beside each other.

#[test]
#[ignore = "needs NVRTC and nvdisasm"]
fn the_tensor_cores_forward_texts_have_their_products_and_keep_their_numbers_in_registers() {
    has_its_products_and_keeps_its_numbers_in_registers(false);
}

#[test]
#[ignore = "needs NVRTC and nvdisasm"]
fn the_tensor_cores_backward_texts_have_their_products_and_keep_their_numbers_in_registers() {
    has_its_products_and_keeps_its_numbers_in_registers(true);
}

/// The oldest architecture knows the fewest instructions, so every text goes there; every third goes to each of the
/// others, so that every kind does.
fn compiles(architecture: &str, texts: impl Iterator<Item = (String, Variant)>) {
    for (name, variant) in texts {
        let compiled = compile_for(architecture, &variant.text());
        let compiled = compiled.unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(!compiled.cubin.is_empty(), "{name}");
    }
}

#[test]
#[ignore = "needs NVRTC"]
fn every_text_compiles_for_the_oldest_architecture() {
    compiles("sm_80", variants().into_iter());
}

#[test]
fn the_texts_have_rows_of_one_warp_and_of_several() {
    for warps in [1, 16] {
        let own = format!("#define ROW_WARPS {warps}\n");
        for name in ["dot", "additive"] {
            let mut texts = variants().into_iter().filter(|(text, _)| text.starts_with(name));
            assert!(texts.any(|(_, variant)| variant.text().contains(&own)), "{name} {warps}");
        }
    }
}

#[test]
#[ignore = "needs NVRTC"]
fn every_kind_of_text_compiles_for_the_newer_architectures() {
    compiles("sm_90a", variants().into_iter().step_by(3));
    compiles("sm_120a", variants().into_iter().skip(1).step_by(3));
}

#[test]
#[ignore = "needs NVRTC"]
fn the_texts_of_a_training_step_compile_and_keep_their_numbers_in_registers() {
    for architecture in ["sm_80", "sm_90a", "sm_120a"] {
        for text in [StepText::Bytes, StepText::F32, StepText::F64] {
            let log = compile_for(architecture, &text.text()).unwrap().log;
            let spills = log.lines().filter(|line| line.contains("spill stores"));
            let spills: Vec<&str> =
                spills.filter(|line| !line.contains(" 0 bytes spill stores")).collect();
            assert!(spills.is_empty() && log.contains("spill"), "{text:?}: {spills:?}");
        }
    }
}

#[test]
#[ignore = "needs NVRTC"]
fn what_shall_be_fast_keeps_its_numbers_in_registers() {
    let fast = [
        "graph 8 × 16, 16 true true F32",
        "graph 8 × 1, 16 true false F32",
        "additive 32 64 backward true",
        "decode 128 128 Bf16",
    ];
    let texts = variants();
    for name in fast {
        let (_, variant) = texts.iter().find(|(one, _)| one == name).unwrap();
        let log = compile_for("sm_90a", &variant.text()).unwrap().log;
        // A few words in a block's beginning or end are no loss.
        let stored = |line: &str| {
            let before = line.split(" bytes spill stores").next().unwrap();
            before.rsplit(' ').next().unwrap().parse::<usize>().unwrap()
        };
        let spills = log.lines().filter(|line| line.contains("spill stores"));
        let spilled: Vec<&str> = spills.filter(|line| stored(line) > 16).collect();
        assert!(log.contains("spill stores"), "{name}: {log}");
        assert!(spilled.is_empty(), "{name}: {spilled:?}");
    }
}

#[test]
#[ignore = "needs NVRTC"]
fn a_text_that_is_wrong_is_refused_with_its_line() {
    let said = compile_for("sm_90a", "__global__ void f() { nothing; }").unwrap_err().to_string();
    assert!(said.contains("nothing") && said.contains("sm_90a"), "{said}");
    let said = compile_for("sm_1", "__global__ void f() {}").unwrap_err().to_string();
    assert!(said.contains("sm_1"), "{said}");
}
