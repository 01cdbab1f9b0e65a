//! Files that went wrong in thousands of ways: each gives an answer or a sentence, never a panic.
//!
//! The fuzz target looks for more of them through the same entrance.

use crate::file::File;
use regard_cli::attend::attend_bytes;
use regard_cli::limits::Limits;
use regard_cli::options::{NormalizerName, Options, ScoreName};
use regard_kernels::philox;
use safetensors::{Dtype, SafeTensors};

const LIMITS: Limits = Limits { bytes: 1 << 20, pairs: 1 << 20 };

/// Small, and with every tensor there is, w aside.
fn file() -> File {
    File::default()
        .f32("q", &[1, 2, 2, 3], &[0.5; 12])
        .f32("k", &[1, 1, 3, 3], &[0.25; 9])
        .f32("v", &[1, 1, 3, 1], &[1.0; 3])
        .f32("grad_out", &[1, 2, 2, 1], &[1.0; 4])
        .f32("bias", &[2, 3], &[0.0; 6])
        .f32("key_bias", &[1, 3], &[0.0; 3])
        .f32("relative_bias", &[2, 3], &[0.0; 6])
        .f32("alibi_slopes", &[2], &[0.5; 2])
        .bytes("mask", Dtype::BOOL, &[2, 1], vec![1; 2])
        .i64("key_lengths", &[1], &[2])
        .i64("q_segments", &[1, 2], &[0, 1])
        .i64("k_segments", &[1, 3], &[0, 0, 1])
        .i64("edges", &[2, 3], &[0, 1, 1, 0, 1, 2])
}

const SHAPES: [(&str, &[usize]); 13] = [
    ("q", &[1, 2, 2, 3]),
    ("k", &[1, 1, 3, 3]),
    ("v", &[1, 1, 3, 1]),
    ("grad_out", &[1, 2, 2, 1]),
    ("bias", &[2, 3]),
    ("key_bias", &[1, 3]),
    ("relative_bias", &[2, 3]),
    ("alibi_slopes", &[2]),
    ("mask", &[2, 1]),
    ("key_lengths", &[1]),
    ("q_segments", &[1, 2]),
    ("k_segments", &[1, 3]),
    ("edges", &[2, 3]),
];

fn options() -> Options {
    let mut options = Options { weights: true, lse: true, causal: true, ..Options::default() };
    options.machine.threads = Some(1);
    options
}

/// Whether a file is taken; what it then gives is a sound file.
fn is_taken(bytes: &[u8], options: &Options) -> bool {
    match attend_bytes(bytes, options, LIMITS) {
        Ok(written) => {
            assert!(SafeTensors::deserialize(&written).unwrap().tensor("out").is_ok());
            true
        }
        Err(error) => {
            assert_eq!(format!("{error:#}").lines().count(), 1, "{error:#}");
            false
        }
    }
}

/// Splits a sound file into its header and its data.
fn header_and_data(bytes: &[u8]) -> (&[u8], &[u8]) {
    let (length, rest) = bytes.split_first_chunk().unwrap();
    rest.split_at(u64::from_le_bytes(*length) as usize)
}

fn with_header(header: &[u8], data: &[u8]) -> Vec<u8> {
    [&(header.len() as u64).to_le_bytes(), header, data].concat()
}

#[test]
fn the_file_that_is_spoilt_below_is_taken_as_it_is() {
    assert!(is_taken(&file().serialized(), &options()));
}

#[test]
fn a_file_truncated_anywhere_is_refused() {
    let bytes = file().serialized();
    for length in 0..bytes.len() {
        assert!(!is_taken(&bytes[..length], &options()), "{length} of {} bytes", bytes.len());
    }
}

#[test]
fn no_change_of_a_header_byte_panics() {
    let bytes = file().serialized();
    let (header, _) = header_and_data(&bytes);
    let end = 8 + header.len();
    let mut taken = 0;
    for at in 0..end {
        let word = philox([at as u32, 0, 0, 0], [1; 2])[0] as u8;
        for byte in [bytes[at] ^ 1, bytes[at] ^ 0x80, bytes[at].wrapping_add(1), b'9', b'"', word] {
            let mut spoilt = bytes.clone();
            spoilt[at] = byte;
            taken += usize::from(is_taken(&spoilt, &options()));
        }
    }
    // Padding may change, and a digit may become itself.
    assert!(taken < end, "{taken} of {} spoilt headers were taken", 6 * end);
}

#[test]
fn no_change_of_several_bytes_panics() {
    let bytes = file().serialized();
    for n in 0..4000 {
        let mut spoilt = bytes.clone();
        for change in 0..1 + n % 5 {
            let [at, byte, ..] = philox([n, change, 0, 1], [2; 2]);
            let at = at as usize % spoilt.len();
            spoilt[at] = byte as u8;
        }
        is_taken(&spoilt, &options());
    }
}

#[test]
fn no_numbers_panic_in_any_normalizer() {
    let bytes = file().serialized();
    let (header, data) = header_and_data(&bytes);
    let normalizers = [
        NormalizerName::Softmax,
        NormalizerName::Sparsemax,
        NormalizerName::Entmax15,
        NormalizerName::Sigmoid,
        NormalizerName::None,
        NormalizerName::Argmax,
        NormalizerName::Sample,
    ];
    let plain = [&b"\0"[..], b"\xff", b"\x7f\x80\0\0", b"\0\0\x80\x7f", b"\0\0\xc0\xff"];
    for normalizer in normalizers {
        for reference in [false, true] {
            let options = Options { normalizer, reference, ..options() };
            for pattern in plain {
                let data: Vec<u8> = pattern.iter().copied().cycle().take(data.len()).collect();
                is_taken(&with_header(header, &data), &options);
            }
            for n in 0..100 {
                let word = |at: usize| philox([at as u32, n, 0, 2], [3; 2])[0];
                let spoil = |(at, &x): (usize, &u8)| match word(at) % 16 {
                    0 => (word(at) >> 8) as u8,
                    _ => x,
                };
                let data: Vec<u8> = data.iter().enumerate().map(spoil).collect();
                is_taken(&with_header(header, &data), &options);
            }
        }
    }
}

#[test]
fn a_wrong_type_is_refused_whichever_tensor_has_it() {
    let types = [
        (Dtype::BOOL, 1),
        (Dtype::U8, 1),
        (Dtype::I8, 1),
        (Dtype::F8_E5M2, 1),
        (Dtype::I16, 2),
        (Dtype::F16, 2),
        (Dtype::BF16, 2),
        (Dtype::I32, 4),
        (Dtype::F32, 4),
        (Dtype::C64, 8),
        (Dtype::F64, 8),
        (Dtype::U64, 8),
    ];
    for (name, shape) in SHAPES {
        for (dtype, size) in types {
            let count: usize = shape.iter().product();
            let spoilt = file().bytes(name, dtype, shape, vec![0; count * size]);
            let real = matches!(dtype, Dtype::F16 | Dtype::BF16 | Dtype::F32 | Dtype::F64);
            let whole =
                matches!(dtype, Dtype::U8 | Dtype::I8 | Dtype::I16 | Dtype::I32 | Dtype::U64);
            let right = match name {
                "mask" => matches!(dtype, Dtype::BOOL | Dtype::U8),
                "key_lengths" | "q_segments" | "k_segments" | "edges" => whole,
                _ => real,
            };
            assert_eq!(is_taken(&spoilt.serialized(), &options()), right, "{name} of {dtype}");
        }
    }
}

#[test]
fn a_wrong_shape_is_refused_whichever_tensor_has_it() {
    let shapes: [&[usize]; 14] = [
        &[],
        &[0],
        &[1],
        &[7],
        &[0, 0],
        &[1, 1],
        &[5, 2],
        &[2, 0, 3],
        &[5, 1, 1],
        &[0, 2, 2, 3],
        &[1, 2, 2, 0],
        &[1, 3, 3, 3],
        &[1, 1, 1, 1, 1],
        &[1 << 40, 0, 1 << 10],
    ];
    for (name, right) in SHAPES {
        for shape in shapes {
            let size = match name {
                "mask" => 1,
                "key_lengths" | "q_segments" | "k_segments" | "edges" => 8,
                _ => 4,
            };
            let dtype = [Dtype::BOOL, Dtype::F32, Dtype::I64][size / 4];
            let bytes = vec![0; shape.iter().product::<usize>() * size];
            let spoilt = file().bytes(name, dtype, shape, bytes).serialized();
            let given = match (name, shape) {
                ("bias" | "mask", shape) if shape.iter().all(|&axis| axis == 1) => shape.len() <= 4,
                ("relative_bias", [width] | [1 | 2, width]) => width % 2 == 1,
                _ => shape == right,
            };
            assert_eq!(is_taken(&spoilt, &options()), given, "{name} of shape {shape:?}");
        }
    }
}

#[test]
fn a_lying_shape_or_place_is_refused() {
    let bytes = file().serialized();
    let (header, data) = header_and_data(&bytes);
    let header: serde_json::Value = serde_json::from_slice(header).unwrap();
    let lies = ["0", "1", "-1", "1.5", "4294967296", "9223372036854775807", "18446744073709551615"];
    for (name, shape) in SHAPES {
        for lie in lies {
            let lie: serde_json::Value = serde_json::from_str(lie).unwrap();
            let places = (0..shape.len()).map(|axis| format!("/{name}/shape/{axis}"));
            let ends = (0..2).map(|end| format!("/{name}/data_offsets/{end}"));
            for place in places.chain(ends) {
                let mut header = header.clone();
                let number = header.pointer_mut(&place).unwrap();
                if *number == lie {
                    continue;
                }
                *number = lie.clone();
                let spoilt = with_header(header.to_string().as_bytes(), data);
                assert!(!is_taken(&spoilt, &options()), "{place} is {lie}");
            }
        }
    }
}

#[test]
fn tensors_that_end_near_the_largest_address_are_refused() {
    // Nine tensors of nearly 2⁶¹ bytes end beyond what 64 bits count.
    let size = (1u64 << 61) - 1;
    let entry = |n: u64| {
        let (start, end) = (n * size, (n + 1).saturating_mul(size));
        format!(r#""t{n}":{{"dtype":"U8","shape":[{size}],"data_offsets":[{start},{end}]}}"#)
    };
    let entries: Vec<String> = (0..8).map(entry).collect();
    let last = 8 * size;
    let header = format!(
        r#"{{{},"t8":{{"dtype":"U8","shape":[7],"data_offsets":[{last},{}]}}}}"#,
        entries.join(","),
        last + 7
    );
    assert!(!is_taken(&with_header(header.as_bytes(), b""), &options()));
}

#[test]
fn a_missing_tensor_is_refused_or_not_needed() {
    for (name, _) in SHAPES {
        let without = file().without(name).serialized();
        let needed = ["q", "k", "v", "q_segments", "k_segments"].contains(&name);
        assert_eq!(is_taken(&without, &options()), !needed, "{name}");
    }
    let additive = Options { score: ScoreName::Additive, ..options() };
    assert!(!is_taken(&file().serialized(), &additive));
    let with_w = file().f32("w", &[3], &[0.5; 3]).serialized();
    assert!(is_taken(&with_w, &additive) && is_taken(&with_w, &options()));
}
