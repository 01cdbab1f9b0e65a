//! Parameters from files under other names, and what is said about the rest.

use regard_tensor::{DType, Device, Error, ErrorKind, Init, Parameters, Tensor, load, save};
use std::collections::BTreeMap;

fn model() -> Parameters {
    let parameters = Parameters::new(DType::F32, 1);
    for layer in 0..2 {
        let at = parameters.at("layers").at(layer);
        at.parameter("weight", &[2, 3], Init::Normal(1.0)).unwrap();
        at.parameter("bias", &[2], Init::Zeros).unwrap();
    }
    parameters
}

fn file(names: &[(&str, &[usize])]) -> BTreeMap<String, Tensor> {
    let tensor = |at: usize, shape: &[usize]| Tensor::full(shape, at as f64 + 1.0, DType::F64);
    let named = names.iter().enumerate();
    named.map(|(at, (name, shape))| (name.to_string(), tensor(at, shape).unwrap())).collect()
}

#[test]
fn every_way_of_naming_loads_what_it_names_and_reports_the_rest() {
    let weights = |prefix: &str, w: &str| {
        let names: Vec<(String, &[usize])> = (0..2)
            .flat_map(|layer| {
                let at = format!("{prefix}{layer}.");
                [(format!("{at}{w}"), &[2, 3][..]), (format!("{at}bias"), &[2][..])]
            })
            .collect();
        file(&names.iter().map(|(name, shape)| (name.as_str(), *shape)).collect::<Vec<_>>())
    };
    type Rename = fn(&str) -> Option<String>;
    // A prefix of the file's, a prefix of the model's, another word, all as it is.
    let ways: [(&str, &str, &str, Rename); 4] = [
        ("layers.", "weight", "", |name| Some(name.into())),
        ("", "weight", "layers", |name| Some(name.into())),
        ("model.layers.", "weight", "", |name| name.strip_prefix("model.").map(String::from)),
        ("h.", "w", "layers", |name| {
            name.strip_prefix("h.").map(|name| name.replace(".w", ".weight"))
        }),
    ];
    for (prefix, w, place, rename) in ways {
        let parameters = model();
        let at = if place.is_empty() { parameters.clone() } else { parameters.at(place) };
        let mut tensors = weights(prefix, w);
        let report = at.set_renamed(&tensors, rename).unwrap();
        report.complete().unwrap();
        assert_eq!(report.loaded.len(), 4);
        for (name, value) in &tensors {
            let own = format!("layers.{}", rename(name).unwrap().trim_start_matches("layers."));
            let own = &parameters.tensors()[&own];
            assert_eq!(own.dtype(), DType::F32);
            assert_eq!(own.shape(), value.shape());
            assert_eq!(own.to_vec::<f32>().unwrap()[0], value.to_vec::<f64>().unwrap()[0] as f32);
        }
        // One less and one more: both are told, the rest is loaded.
        let first = tensors.pop_first().unwrap();
        tensors.insert(format!("{prefix}9.bias"), Tensor::zeros(&[2], DType::F32).unwrap());
        let report = at.set_renamed(&tensors, rename).unwrap();
        assert_eq!((report.loaded.len(), report.unknown.len()), (3, 1));
        assert_eq!(report.missing.len(), 1, "{} is not there", first.0);
        let said = report.complete().unwrap_err().to_string();
        assert!(said.contains("layers.0.") && said.contains("9.bias"), "{said}");
    }
}

#[test]
fn a_file_that_does_not_fit_is_refused_and_changes_nothing() {
    let parameters = model();
    let before = parameters.tensors();
    let refused = |names: &[(&str, &[usize])], rename: fn(&str) -> Option<String>| {
        let said = parameters.set_renamed(&file(names), rename).unwrap_err().to_string();
        for (name, value) in parameters.tensors() {
            assert!(value.is_same(&before[&name]), "{name} was changed");
        }
        said
    };
    let fits: (&str, &[usize]) = ("layers.0.bias", &[2]);
    assert_eq!(
        refused(&[fits, ("layers.1.bias", &[3])], |name| Some(name.into())),
        "parameter \"layers.1.bias\" has shape [2], the one given [3]"
    );
    assert_eq!(
        refused(&[("a", &[2]), ("b", &[2])], |_| Some("layers.0.bias".into())),
        "\"a\" and \"b\" are both for parameter \"layers.0.bias\""
    );
    assert_eq!(
        refused(&[("a", &[4])], |_| Some("layers.0.bias".into())),
        "a: parameter \"layers.0.bias\" has shape [2], the one given [4]"
    );
    // By a file the path comes first.
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.safetensors");
    save(&path, &file(&[("layers.1.bias", &[3])]), &BTreeMap::new()).unwrap();
    let said = parameters.load_renamed(&path, |name| Some(name.into())).unwrap_err().to_string();
    assert!(said.starts_with(&format!("{}: parameter", path.display())), "{said}");
}

#[test]
fn an_error_says_what_kind_it_is_and_what_it_came_of() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("none.safetensors");
    let error = load(&path).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::File);
    let io = error.get_ref().unwrap().downcast_ref::<std::io::Error>().unwrap();
    assert_eq!(io.kind(), std::io::ErrorKind::NotFound);
    // Whoever walks the chain comes to the same one.
    let source = std::error::Error::source(&error).unwrap();
    assert_eq!(source.downcast_ref::<std::io::Error>().unwrap().kind(), io.kind());
    assert!(error.to_string().ends_with(&source.to_string()), "{error}");
    // What was being done is said before it, and changes neither.
    let error = error.within("the start");
    assert!(error.to_string().starts_with("the start: ") && error.get_ref().is_some());
    assert_eq!(error.kind(), ErrorKind::File);

    std::fs::write(&path, b"a text, no tensors").unwrap();
    let error = load(&path).unwrap_err();
    assert!(error.get_ref().is_some() && error.kind() == ErrorKind::File, "{error}");
    let source = std::error::Error::source(&error).unwrap();
    assert!(source.is::<safetensors::SafeTensorError>(), "{source:?}");
    let error = save(folder.path(), &BTreeMap::new(), &BTreeMap::new()).unwrap_err();
    assert!(error.get_ref().is_some() && error.kind() == ErrorKind::File, "{error}");

    let error = Tensor::from([1f32]).add(&Tensor::from([1f64])).unwrap_err();
    assert!(error.get_ref().is_none() && error.kind() == ErrorKind::Argument);
    assert!(std::error::Error::source(&error).is_none());
    let kernels = regard_kernels::View::new(&[0f32; 6], [1, 1, 2, 4]).unwrap_err();
    let error = Error::from(kernels.clone());
    assert_eq!(error.get_ref().unwrap().downcast_ref(), Some(&kernels));
    let error = error.within("attention");
    assert_eq!(std::error::Error::source(&error).unwrap().downcast_ref(), Some(&kernels));

    // More than any machine has, of a shape whose numbers can be counted.
    let error = Tensor::zeros(&[1 << 20, 1 << 30], DType::F64).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Memory, "{error}");
    // No machine has so many GPUs, and this one may have none.
    let error = Tensor::from([1f32]).to_device(Device::Cuda(10_000)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Device, "{error}");
}

/// A safetensors file of a header and data, as bytes.
fn bytes(header: &str, data: &[u8]) -> Vec<u8> {
    [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), data].concat()
}

#[test]
fn a_tensor_that_the_renaming_leaves_out_may_have_any_type() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("quantized.safetensors");
    let header = r#"{"scale":{"dtype":"F8_E4M3","shape":[4],"data_offsets":[0,4]},
        "w":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}"#;
    std::fs::write(&path, bytes(header, &[0, 0, 0, 0, 0, 0, 0x80, 0x3f])).unwrap();
    let error = load(&path).unwrap_err();
    assert!(error.to_string().ends_with("\"scale\": no tensor stores the type F8_E4M3"), "{error}");
    assert_eq!(error.kind(), ErrorKind::File);

    let parameters = Parameters::new(DType::F32, 1);
    let w = parameters.parameter("w", &[1], Init::Zeros).unwrap();
    let report =
        parameters.load_renamed(&path, |name| (name != "scale").then(|| name.into())).unwrap();
    assert_eq!(
        (&report.loaded[..], &report.left_out[..]),
        (&["w".into()][..], &["scale".into()][..])
    );
    assert_eq!(w.tensor().to_vec::<f32>().unwrap(), [1.0]);
    // What the model has no place for is not read either; it stands in the report.
    let report = parameters.load_renamed(&path, |name| Some(name.into())).unwrap();
    assert_eq!(report.unknown, ["scale"]);
    // One that is asked for is refused by its name, and nothing changes.
    parameters.parameter("scale", &[4], Init::Zeros).unwrap();
    w.set(&Tensor::from([5f32])).unwrap();
    let error = parameters.load_renamed(&path, |name| Some(name.into())).unwrap_err().to_string();
    assert!(
        error.contains("quantized.safetensors: \"scale\": ") && error.contains("F8_E4M3"),
        "{error}"
    );
    assert_eq!(w.tensor().to_vec::<f32>().unwrap(), [5.0]);
}
