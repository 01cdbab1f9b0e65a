//! The texts for Hopper's tensor cores on a CPU: `emulator/` does what NVIDIA's PTX ISA says of their
//! instructions, so that indices, swizzles, fragments, barriers and masks are checked without a GPU.

#![allow(clippy::unwrap_used)] // a test that cannot go on says so by its panic

use regard_kernels::Normalizer;
use regard_kernels::cuda::{Choices, DotTiles, Stored, TileSizes, Variant};
use std::path::Path;
use std::process::Command;

fn emulate(name: &str, tiles: DotTiles, stored: Stored) {
    run(name, "dot.cpp", &Variant::dot(tiles, stored), stored);
}

/// Compiles a text with the emulator and runs all its cases.
fn run(name: &str, cases: &str, variant: &Variant, stored: Stored) {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/emulator");
    let folder =
        std::env::temp_dir().join(format!("regard-emulated-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (source, program) = (folder.join(format!("{name}.cpp")), folder.join(name));
    let kind = match stored {
        Stored::F16 => "F16",
        Stored::Bf16 => "BF16",
        _ => "SAME",
    };
    let names = "#define SAME 0\n#define BF16 1\n#define F16 2\n";
    let numbers = format!("{names}#define STORED {kind}\n");
    let cases = std::fs::read_to_string(here.join(cases)).unwrap();
    let text = variant.text();
    std::fs::write(&source, format!("{numbers}#include \"device.h\"\n{text}{cases}")).unwrap();
    let compiled = Command::new("c++")
        .args(["-O2", "-std=c++17", "-w", "-I"])
        .arg(&here)
        .arg("-o")
        .args([&program, &source])
        .output()
        .unwrap();
    assert!(compiled.status.success(), "{name}: {}", String::from_utf8_lossy(&compiled.stderr));
    let run = Command::new(&program).output().unwrap();
    let printed = String::from_utf8_lossy(&run.stdout).into_owned();
    assert!(run.status.success(), "{name}: {printed}");
    std::fs::remove_dir_all(&folder).unwrap();
}

fn tiles(width: usize, values: usize, backward: bool) -> DotTiles {
    DotTiles { masked: true, ..DotTiles::new(width, values, backward) }
}

#[test]
#[ignore = "needs a C++ compiler"]
fn forward_tiles_give_the_formula_whatever_the_mask() {
    emulate("forward-bias", DotTiles { distance: 128, ..tiles(64, 64, false) }, Stored::Bf16);
    emulate("forward-128", tiles(128, 128, false), Stored::Bf16);
    emulate("forward-64", tiles(64, 64, false), Stored::F16);
    emulate("forward-wide", DotTiles { masked: false, ..tiles(128, 64, false) }, Stored::Bf16);
    emulate("forward-segments", DotTiles { segments: true, ..tiles(64, 128, false) }, Stored::Bf16);
}

#[test]
#[ignore = "needs a C++ compiler"]
fn backward_tiles_give_the_gradients_whatever_the_mask() {
    emulate("backward-bias", DotTiles { distance: 37, ..tiles(64, 64, true) }, Stored::Bf16);
    emulate("backward-128", tiles(128, 128, true), Stored::Bf16);
    emulate("backward-64", tiles(64, 64, true), Stored::F16);
    emulate("backward-segments", DotTiles { segments: true, ..tiles(64, 128, true) }, Stored::Bf16);
}

#[test]
#[ignore = "needs a C++ compiler"]
fn tiles_of_sparse_normalizers_give_the_formula_and_its_gradients() {
    for (name, normalizer) in
        [("sparsemax", Normalizer::Sparsemax), ("entmax", Normalizer::Entmax15)]
    {
        for backward in [false, true] {
            let tiles = DotTiles { normalizer, ..tiles(64, 64, backward) };
            emulate(&format!("{name}-{backward}"), tiles, Stored::Bf16);
        }
    }
}

#[test]
#[ignore = "needs a C++ compiler"]
fn few_queries_over_many_keys_give_the_formula() {
    for (width, values, stored) in [(128, 128, Stored::Bf16), (64, 128, Stored::F16)] {
        let variant = Variant::decode(width, values, stored);
        run(&format!("decode-{width}"), "dot.cpp", &variant, stored);
    }
}

#[test]
#[ignore = "needs a C++ compiler"]
fn numbers_in_parts_are_as_exact_as_f32() {
    for backward in [false, true] {
        run(&format!("split-{backward}"), "dot.cpp", &Variant::split(backward), Stored::F32);
    }
}

/// Bytes of shared memory of a block.
const HOPPER: usize = 227 << 10;
const ADA: usize = 99 << 10;

/// Each general tile on a text of its own: what a problem has, its widths, whether its rows are copied evenly.
fn general_tiles(backward: bool) {
    let none = Choices::default();
    let masks = Choices { dense: true, segments: true, ..none };
    let biases = Choices { key_bias: true, full_bias: true, alibi: true, ..none };
    let distance = Choices { relative: true, dropout: true, ..none };
    let all = Choices { relative: true, dropout: true, dense: true, arriving: backward, ..biases };
    let (softmax, sigmoid, plain) = (Normalizer::Softmax, Normalizer::Sigmoid, Normalizer::None);
    let texts = [
        (64, 64, Stored::Bf16, true, softmax, none, HOPPER),
        (96, 64, Stored::F16, true, softmax, masks, HOPPER),
        (32, 64, Stored::Bf16, false, softmax, biases, HOPPER),
        (64, 32, Stored::F32, true, softmax, distance, HOPPER),
        (32, 32, Stored::F32, false, softmax, all, HOPPER),
        (128, 128, Stored::Bf16, true, softmax, all, HOPPER),
        (32, 32, Stored::Bf16, true, sigmoid, all, HOPPER),
        (32, 64, Stored::F32, true, plain, Choices { dropout: true, ..masks }, HOPPER),
        (192, 256, Stored::Bf16, true, softmax, Choices { dropout: true, ..none }, HOPPER),
        (256, 160, Stored::F32, true, softmax, none, HOPPER),
        // A block of one warp: what is left of such rows on a small card.
        (192, 192, Stored::F32, true, softmax, distance, ADA),
    ];
    // Two at a time.
    let (first, second) = texts.split_at(texts.len() / 2);
    std::thread::scope(|scope| {
        for (part, texts) in [first, second].into_iter().enumerate() {
            scope.spawn(move || {
                for (n, &(width, values, stored, aligned, normalizer, has, room)) in
                    texts.iter().enumerate()
                {
                    let sizes = TileSizes::new(
                        [width, values],
                        stored,
                        [aligned, backward],
                        normalizer,
                        has,
                        room,
                    );
                    let name = format!("tile-{backward}-{part}-{n}");
                    run(&name, "tile.cpp", &Variant::tile(sizes.unwrap(), stored), stored);
                }
            });
        }
    });
}

#[test]
#[ignore = "needs a C++ compiler"]
fn general_tiles_give_the_formula_with_every_choice() {
    general_tiles(false);
}

#[test]
#[ignore = "needs a C++ compiler"]
fn general_tiles_give_every_gradient_with_every_choice() {
    general_tiles(true);
}
