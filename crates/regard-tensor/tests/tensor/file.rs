//! Files that are not what they should be are refused by name.

use regard_tensor::{DType, Init, Parameters, Tensor, load, save};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// A safetensors file of a header and data, as bytes.
fn bytes(header: &str, data: &[u8]) -> Vec<u8> {
    [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), data].concat()
}

fn written(folder: &tempfile::TempDir, name: &str, bytes: &[u8]) -> PathBuf {
    let path = folder.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    path
}

#[test]
fn malformed_files_are_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let tensor = r#"{"x":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}"#;
    let whole = bytes(tensor, &[0; 8]);
    assert!(load(written(&folder, "whole", &whole)).is_ok());
    let mut huge = whole.clone();
    huge[..8].copy_from_slice(&u64::MAX.to_le_bytes());
    let cases: [(&str, Vec<u8>); 10] = [
        ("empty", Vec::new()),
        ("short", vec![1, 2, 3]),
        ("text", b"once upon a time there was no tensor".to_vec()),
        ("huge-header", huge),
        ("truncated", whole[..whole.len() - 1].to_vec()),
        ("too-long", [whole.clone(), vec![0]].concat()),
        (
            "wrong-count",
            bytes(r#"{"x":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}}"#, &[0; 8]),
        ),
        ("backwards", bytes(r#"{"x":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}}"#, &[0; 8])),
        (
            "overflow",
            bytes(
                r#"{"x":{"dtype":"F32","shape":[4294967296,4294967296,2],"data_offsets":[0,8]}}"#,
                &[0; 8],
            ),
        ),
        (
            "unknown-type",
            bytes(r#"{"x":{"dtype":"I128","shape":[2],"data_offsets":[0,8]}}"#, &[0; 8]),
        ),
    ];
    for (name, bytes) in cases {
        let error = load(written(&folder, name, &bytes)).unwrap_err().to_string();
        assert!(error.contains(name) && error.contains("damaged"), "{name}: {error}");
    }
    let error = load(folder.path().join("absent")).unwrap_err().to_string();
    assert!(error.contains("absent"), "{error}");
}

#[test]
fn a_type_that_no_tensor_has_is_refused_with_the_tensors_name() {
    let folder = tempfile::tempdir().unwrap();
    let header = r#"{"bytes":{"dtype":"F8_E5M2","shape":[8],"data_offsets":[0,8]}}"#;
    let error = load(written(&folder, "f8", &bytes(header, &[0; 8]))).unwrap_err().to_string();
    assert!(error.contains("\"bytes\"") && error.contains("F8_E5M2"), "{error}");
}

#[test]
fn whole_numbers_of_every_width_are_read_as_i64() {
    let folder = tempfile::tempdir().unwrap();
    // What NumPy writes for the smallest, -1 or 1, and the largest, by the bytes, lowest first.
    type Case<'a> = (&'a str, usize, Vec<u8>, [i64; 3]);
    let le = |parts: &[&[u8]]| parts.concat();
    let cases: [Case; 5] = [
        ("I8", 1, vec![0x80, 0xff, 0x7f], [-128, -1, 127]),
        ("U8", 1, vec![0, 1, 0xff], [0, 1, 255]),
        ("I16", 2, vec![0, 0x80, 0xff, 0xff, 0xff, 0x7f], [-32768, -1, 32767]),
        ("U16", 2, vec![0, 0, 1, 0, 0xff, 0xff], [0, 1, 65535]),
        (
            "I32",
            4,
            le(&[&[0, 0, 0, 0x80], &[0xff; 4], &[0xff, 0xff, 0xff, 0x7f]]),
            [-2147483648, -1, 2147483647],
        ),
    ];
    let header = |dtype: &str, size: usize| {
        let end = 3 * size;
        format!(r#"{{"ids":{{"dtype":"{dtype}","shape":[3,1],"data_offsets":[0,{end}]}}}}"#)
    };
    for (dtype, size, data, wanted) in cases {
        let path = written(&folder, dtype, &bytes(&header(dtype, size), &data));
        let ids = &load(path).unwrap().0["ids"];
        assert_eq!((ids.dtype(), ids.shape()), (DType::I64, &[3, 1][..]), "{dtype}");
        assert_eq!(ids.to_vec::<i64>().unwrap(), wanted, "{dtype}");
    }
    let data = le(&[&[0xff; 7], &[0x7f], &[0; 8], &[1, 0, 0, 0, 0, 0, 0, 0]]);
    let fits = load(written(&folder, "U64", &bytes(&header("U64", 8), &data))).unwrap().0;
    assert_eq!(fits["ids"].to_vec::<i64>().unwrap(), [i64::MAX, 0, 1]);
    let data = le(&[&[0; 8], &[0xff; 8], &[0; 8]]);
    let large = load(written(&folder, "U64", &bytes(&header("U64", 8), &data))).unwrap_err();
    assert!(large.to_string().contains("\"ids\": ") && large.to_string().contains("too large"));
}

#[test]
fn a_shape_of_too_many_axes_is_refused_with_the_tensors_name() {
    let folder = tempfile::tempdir().unwrap();
    let header = r#"{"deep":{"dtype":"F32","shape":[1,1,1,1,1,1,1,1,1,2],"data_offsets":[0,8]}}"#;
    let error = load(written(&folder, "deep", &bytes(header, &[0; 8]))).unwrap_err().to_string();
    assert!(error.contains("\"deep\""), "{error}");
}

#[test]
fn every_type_and_an_empty_tensor_come_back_as_they_were() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("all.safetensors");
    let x = Tensor::from_vec(vec![0f64, 1.0, -1.0, 0.5, 2.0, 3.0], &[3, 2]).unwrap();
    let mut tensors = BTreeMap::new();
    let types =
        [DType::F32, DType::F64, DType::BF16, DType::F16, DType::I64, DType::U32, DType::Bool];
    for dtype in types {
        // No u32 is below 0.
        let held = if dtype == DType::U32 { x.abs().unwrap() } else { x.clone() };
        tensors.insert(dtype.to_string(), held.to_dtype(dtype).unwrap());
        tensors.insert(format!("no {dtype}"), Tensor::zeros(&[3, 0, 2], dtype).unwrap());
    }
    // A view is written as the numbers it shows.
    tensors.insert("view".into(), x.transpose(0, 1).unwrap());
    save(&path, &tensors, &BTreeMap::new()).unwrap();
    let (back, texts) = load(&path).unwrap();
    assert!(texts.is_empty() && back.len() == tensors.len());
    for (name, x) in &tensors {
        let back = &back[name];
        assert_eq!((back.shape(), back.dtype()), (x.shape(), x.dtype()), "{name}");
        let wide = |x: &Tensor| x.to_dtype(DType::F64).unwrap().to_vec::<f64>().unwrap();
        assert_eq!(wide(back), wide(x), "{name}");
    }
}

#[test]
fn parameters_of_another_model_are_refused_by_name_and_change_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.safetensors");
    let model = |names: &[(&str, &[usize])]| {
        let parameters = Parameters::new(DType::F32, 1);
        for (name, shape) in names {
            parameters.parameter(name, shape, Init::Ones).unwrap();
        }
        parameters
    };
    model(&[("a", &[2]), ("b", &[3])]).save(&path).unwrap();
    type Names<'a> = &'a [(&'a str, &'a [usize])];
    let others: [(Names, &str); 3] = [
        (&[("a", &[2])], "no parameter \"b\""),
        (&[("a", &[2]), ("b", &[3]), ("c", &[1])], "\"c\" is missing"),
        (&[("a", &[2]), ("b", &[4])], "\"b\" has shape [4], the one given [3]"),
    ];
    for (names, sentence) in others {
        let other = model(names);
        let before = other.all()[0].tensor();
        let error = other.load(&path).unwrap_err().to_string();
        assert!(error.contains(sentence) && error.contains("model.safetensors"), "{error}");
        assert!(other.all()[0].tensor().is_same(&before));
    }
}

#[test]
fn the_same_content_is_the_same_bytes_that_others_read() {
    let folder = tempfile::tempdir().unwrap();
    let tensors: BTreeMap<String, Tensor> = [("x", vec![1f32, 2.0, 3.0]), ("y", vec![4.0])]
        .map(|(name, x)| (name.to_string(), Tensor::from_vec(x.clone(), &[x.len()]).unwrap()))
        .into();
    let texts = |n: usize| -> BTreeMap<String, String> {
        (0..n).map(|i| (format!("name {i}"), format!("a \"text\"\n of {i}"))).collect()
    };
    for n in [0, 1, 20] {
        let [a, b] = ["a", "b"].map(|name| {
            let path = folder.path().join(name);
            save(&path, &tensors, &texts(n)).unwrap();
            std::fs::read(path).unwrap()
        });
        assert!(a == b, "{n} texts");
        // The crate that defines the format agrees with what stands there.
        let read = safetensors::SafeTensors::deserialize(&a).unwrap();
        assert_eq!(read.tensor("y").unwrap().data(), 4f32.to_le_bytes());
        let (length, header) = safetensors::SafeTensors::read_metadata(&a).unwrap();
        assert!(length.is_multiple_of(8));
        let found: BTreeMap<String, String> =
            header.metadata().clone().unwrap_or_default().into_iter().collect();
        assert_eq!(found, texts(n));
    }
    save(folder.path().join("none"), &BTreeMap::new(), &texts(2)).unwrap();
    assert_eq!(load(folder.path().join("none")).unwrap().1, texts(2));
}
