//! What `regard attend` refuses, and the sentence it says.

use crate::file::{File, Folder, refused, regard};
use safetensors::Dtype;

/// Two batch items, two heads, Nq 3, Nk 4, D 2.
fn file() -> File {
    File::default().f32("q", &[2, 2, 3, 2], &[0.5; 24]).f32("k", &[2, 2, 4, 2], &[0.5; 32]).f32(
        "v",
        &[2, 2, 4, 2],
        &[0.5; 32],
    )
}

#[track_caller]
fn assert_refused(file: File, options: &[&str], sentence: &str) {
    let said = file.refused(options);
    assert_eq!(said, format!("regard: in.safetensors: {sentence}"));
}

#[test]
fn a_missing_tensor_is_named() {
    assert_refused(file().without("k"), &[], "there is no tensor `k`, only \"q\", \"v\"");
    assert_refused(File::default(), &[], "there is no tensor `q`, nor any other");
}

#[test]
fn a_wrong_type_is_named() {
    let ints = |name, shape: &[usize]| file().i64(name, shape, &vec![0; shape.iter().product()]);
    let real = "it needs F32, F64, BF16 or F16";
    assert_refused(ints("q", &[2, 2, 3, 2]), &[], &format!("`q` has type I64; {real}"));
    assert_refused(ints("k", &[2, 2, 4, 2]), &[], &format!("`k` has type I64; {real}"));
    assert_refused(
        ints("v", &[2, 2, 4, 2]),
        &["--dtype", "f32"],
        &format!("`v` has type I64; {real}"),
    );
    assert_refused(ints("bias", &[4]), &[], &format!("`bias` has type I64; {real}"));
    assert_refused(ints("mask", &[4]), &[], "`mask` has type I64; it needs BOOL or U8");
    let whole = "has type F32; it needs whole numbers, as I64";
    let lengths = file().f32("key_lengths", &[2], &[1.0; 2]);
    assert_refused(lengths, &[], &format!("`key_lengths` {whole}"));
    let edges = file().f32("edges", &[2, 1], &[1.0; 2]);
    assert_refused(edges, &[], &format!("`edges` {whole}"));
    let half = file().bytes("q", Dtype::F8_E4M3, &[2, 2, 3, 2], vec![0; 24]);
    assert_refused(half, &[], &format!("`q` has type F8_E4M3; {real}"));
}

#[test]
fn a_wrong_shape_is_named_with_the_one_that_is_needed() {
    let with = |name, shape: &[usize]| file().f32(name, shape, &vec![0.0; shape.iter().product()]);
    for (file, sentence) in [
        (with("q", &[24]), "`q` has shape [24]; it needs [N, D], [B, N, D] or [B, H, N, D]"),
        (
            with("k", &[4, 2]),
            "`q` has shape [2, 2, 3, 2], `k` [4, 2] and `v` [2, 2, 4, 2]; they need as many axes \
             as one another",
        ),
        (with("k", &[2, 2, 4, 5]), "k has head width 5, q has 2; the dot score needs them equal"),
        (with("k", &[1, 2, 4, 2]), "q, k and v have batch sizes 2, 1 and 2; they must be equal"),
        (
            with("v", &[2, 2, 5, 2]),
            "k has shape [2, 2, 4, 2] and v [2, 2, 5, 2]; they must have as many heads and as many \
             rows",
        ),
        (
            with("bias", &[3, 3]),
            "`bias` has shape [3, 3], which does not broadcast to [B, Hq, Nq, Nk] = [2, 2, 3, 4]",
        ),
        (
            with("bias", &[1, 1, 1, 1, 4]),
            "`bias` has shape [1, 1, 1, 1, 4]; it has more axes than [B, Hq, Nq, Nk]",
        ),
        (with("key_bias", &[4]), "`key_bias` has shape [4]; it needs [B, Nk], here [2, 4]"),
        (with("alibi_slopes", &[3]), "`alibi_slopes` has shape [3]; it needs [Hq], here [2]"),
        (
            with("relative_bias", &[2, 4]),
            "`relative_bias` has shape [2, 4]; it needs [1 or Hq, 2R + 1], here 1 or 2 rows of an \
             odd width",
        ),
        (
            with("grad_out", &[2, 2, 3, 3]),
            "`grad_out` has shape [2, 2, 3, 3]; it needs the shape of out, here [2, 2, 3, 2]",
        ),
        (
            file().i64("key_lengths", &[3], &[1; 3]),
            "`key_lengths` has shape [3]; it needs [B], here [2]",
        ),
        (
            file().i64("edges", &[3, 2], &[0; 6]),
            "`edges` has shape [3, 2]; it needs [2, E], a row of queries and a row of keys",
        ),
        (
            file().i64("q_segments", &[2, 4], &[0; 8]).i64("k_segments", &[2, 4], &[0; 8]),
            "`q_segments` has shape [2, 4]; it needs [B, Nq], here [2, 3]",
        ),
    ] {
        assert_refused(file, &[], sentence);
    }
    assert_refused(
        with("w", &[3]),
        &["--score", "additive"],
        "`w` has shape [3]; it needs [D] or [Hq, D], here [2] or [2, 2]",
    );
}

#[test]
fn a_number_out_of_range_is_named() {
    let needs = "it needs to be between 0 and Nk = 4";
    let lengths = |lengths: [i64; 2]| file().i64("key_lengths", &[2], &lengths);
    assert_refused(lengths([4, 5]), &[], &format!("key_lengths[1] is 5; {needs}"));
    assert_refused(lengths([-1, 5]), &[], &format!("key_lengths[0] is -1; {needs}"));
    let huge = u64::MAX.to_le_bytes().repeat(2);
    assert_refused(
        file().bytes("key_lengths", Dtype::U64, &[2], huge),
        &[],
        "`key_lengths` holds 18446744073709551615, beyond I64",
    );
    for pair in [[3, 0], [0, 4], [-1, 0], [0, i64::MIN]] {
        assert_refused(
            file().i64("edges", &[2, 2], &[0, pair[0], 0, pair[1]]),
            &[],
            &format!(
                "`edges` joins query {} to key {} in column 1; there are 3 queries and 4 keys, \
                 counted from 0",
                pair[0], pair[1]
            ),
        );
    }
}

#[test]
fn segments_of_one_side_only_are_refused() {
    let q = file().i64("q_segments", &[2, 3], &[0; 6]);
    assert_refused(q, &[], "there is `q_segments` but no `k_segments`");
    let k = file().i64("k_segments", &[2, 4], &[0; 8]);
    assert_refused(k, &[], "there is `k_segments` but no `q_segments`");
}

#[test]
fn options_that_do_not_belong_together_are_refused() {
    for (options, sentence) in [
        (
            &["--score", "additive", "--scale", "2"][..],
            "--scale belongs to the dot scores, and --score is additive",
        ),
        (
            &["--activation", "relu"],
            "--activation belongs to --score additive, and --score is scaled-dot",
        ),
        (
            &["--score", "additive", "--negative-slope", "0.1"],
            "--negative-slope belongs to --activation leaky-relu, which was not asked for",
        ),
    ] {
        assert_eq!(file().refused(options), format!("regard: {sentence}"));
    }
    assert_refused(file(), &["--score", "additive"], "--score additive needs the tensor `w`");
    assert_refused(file(), &["--dropout", "1"], "dropout 1 is not in 0 ≤ p < 1");
    assert_refused(file(), &["--dropout", "-0.1"], "dropout -0.1 is not in 0 ≤ p < 1");
    assert_refused(file(), &["--scale", "nan"], "scale NaN is not a finite number");
}

#[test]
fn an_instruction_set_that_the_machine_lacks_is_refused() {
    for isa in regard_kernels::Isa::ALL.into_iter().filter(|isa| !isa.is_available()) {
        let said = file().refused(&["--isa", &isa.to_string()]);
        assert!(said.ends_with("this machine does not have these instructions"), "{said}");
    }
}

#[test]
fn a_gpu_that_is_not_there_is_refused_with_the_reason_and_passed_over_where_any_device_will_do() {
    let without = |arguments: &[&str]| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_regard"));
        // Where there is a driver, it sees no GPU.
        command.env("CUDA_VISIBLE_DEVICES", "").args(arguments).output().unwrap()
    };
    let refused = without(&["bench", "--device", "cuda"]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success());
    assert!(said.starts_with("regard: --device cuda: "), "{said}");
    assert!(said.contains("NVIDIA driver") || said.contains("the GPU refused to start"), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    let told = without(&["info"]);
    assert!(told.status.success());
    let told = String::from_utf8_lossy(&told.stdout).into_owned();
    assert!(told.lines().any(|line| line.starts_with("GPU                none: ")), "{told}");
    file().attend(&["--device", "auto"]);
}

#[test]
fn what_is_not_a_safetensors_file_is_refused() {
    let said = |bytes: &[u8]| {
        let said = refused(bytes, &[]);
        said.strip_prefix("regard: in.safetensors: ").unwrap().to_owned()
    };
    assert_eq!(
        said(b""),
        "0 bytes are too few for a safetensors file, which begins with 8 bytes of header length"
    );
    let text = said(b"{\"q\": [1, 2, 3]}");
    assert!(text.ends_with("the file is truncated, or is not a safetensors file"), "{text}");
    let json = said(b"\x04\0\0\0\0\0\0\0[[[[");
    assert!(json.starts_with("the header is not the JSON of a safetensors file: "), "{json}");
}

/// A file with this header and so many bytes of data.
fn lying(header: &str, data: usize) -> Vec<u8> {
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header.as_bytes());
    bytes.resize(bytes.len() + data, 0);
    bytes
}

#[test]
fn a_header_that_lies_is_refused_by_the_tensors_name() {
    let q = |dtype: &str, shape: &str, offsets: &str| {
        format!(r#"{{"q":{{"dtype":"{dtype}","shape":{shape},"data_offsets":{offsets}}}}}"#)
    };
    for (header, data, sentence) in [
        (
            q("F32", "[2,3]", "[0,24]"),
            23,
            "tensor \"q\" should lie in bytes 0 to 24, and the file has 23 bytes of data",
        ),
        (
            q("F32", "[2,4]", "[0,24]"),
            24,
            "tensor \"q\" of type F32 and shape [2, 4] needs 32 bytes, and its place in the file \
             has 24",
        ),
        (
            q("F32", "[4294967296,4294967296]", "[0,24]"),
            24,
            "tensor \"q\" has shape [4294967296, 4294967296], larger than any memory",
        ),
        (
            q("F32", "[0,9223372036854775807,2]", "[0,0]"),
            0,
            "tensor \"q\" has shape [0, 9223372036854775807, 2], larger than any memory",
        ),
        (
            q("F32", "[2,3]", "[24,0]"),
            24,
            "tensor \"q\" should lie in bytes 24 to 0, and the file has 24 bytes of data",
        ),
        (
            q("F32", "[2,3]", "[0,24]"),
            25,
            "not a sound safetensors file: incomplete metadata, file not fully covered",
        ),
        (
            q("F32", "[2,3]", "[8,32]"),
            32,
            "not a sound safetensors file: invalid offset for tensor `q`",
        ),
    ] {
        let said = refused(&lying(&header, data), &[]);
        assert_eq!(said, format!("regard: in.safetensors: {sentence}"));
    }
    for header in [q("F33", "[6]", "[0,24]"), q("F32", "[-6]", "[0,24]"), q("F32", "6", "[0,24]")] {
        let said = refused(&lying(&header, 24), &[]);
        let start = "regard: in.safetensors: the header's entry for tensor \"q\" cannot be read: ";
        assert!(said.starts_with(start), "{said}");
    }
}

#[test]
fn results_that_no_memory_holds_are_refused_by_their_size() {
    let wide = 1usize << 50;
    let file = File::default().f32("q", &[3, 2], &[0.0; 6]).f32("k", &[0, 2], &[]).f32(
        "v",
        &[0, wide],
        &[],
    );
    let said = file.refused(&[]);
    let needs = format!("out of shape [1, 1, 3, {wide}] needs {} bytes", wide * 12);
    assert!(said.contains(&needs), "{said}");
    assert!(file.refused(&["--reference"]).contains("needs"), "{said}");

    let long = 1usize << 29;
    let file = File::default().f32("q", &[long, 0], &[]).f32("k", &[long, 0], &[]).f32(
        "v",
        &[long, 0],
        &[],
    );
    let said = file.refused(&["--weights"]);
    let needs = format!("weights of shape [1, 1, {long}, {long}] needs {} bytes", 1u64 << 60);
    assert!(said.contains(&needs), "{said}");

    let graph = file.i64("edges", &[2, 0], &[]);
    let graph = graph.f32("q", &[u32::MAX as usize - 1, 0], &[]).f32("k", &[1 << 40, 0], &[]);
    let said = graph.refused(&[]);
    assert!(said.contains("the graph's queries of shape [4294967294] needs"), "{said}");
}

#[test]
fn files_that_cannot_be_read_or_written_are_named() {
    let folder = Folder::new(&file().serialized());
    let path = |name: &str| folder.path(name).to_str().unwrap().to_owned();
    let said = |input: &str, out: &str| {
        let output = regard(&["attend", input, "--out", out]);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert_eq!(folder.files(), ["in.safetensors"]);
        String::from_utf8(output.stderr).unwrap()
    };
    let input = path("in.safetensors");
    let missing = said(&path("missing"), &path("out"));
    assert!(missing.starts_with(&format!("regard: {}: cannot be read: ", path("missing"))));
    let directory = said(&path(""), &path("out"));
    assert!(directory.contains("cannot be read"), "{directory}");
    let nowhere = said(&input, &path("no/out"));
    assert!(nowhere.contains(&format!("there is no folder {}", path("no"))), "{nowhere}");
    let taken = said(&input, &path(""));
    assert!(taken.contains("this is a folder; a file is expected"), "{taken}");
}
