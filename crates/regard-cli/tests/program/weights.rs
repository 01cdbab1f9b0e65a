//! `regard show` on a file of weights.

use crate::file::regard;
use std::fs;
use tempfile::TempDir;

/// A file with these tensors of f32, all of one number, and metadata.
fn file(folder: &TempDir, tensors: &[(&str, &[usize])], labels: Option<&str>) -> String {
    let path = folder.path().join("w.safetensors");
    let bytes: Vec<(String, Vec<usize>, Vec<u8>)> = tensors
        .iter()
        .map(|(name, shape)| {
            let count: usize = shape.iter().product();
            let numbers = (0..count).flat_map(|n| (n as f32 / count as f32).to_le_bytes());
            (name.to_string(), shape.to_vec(), numbers.collect())
        })
        .collect();
    let views = bytes.iter().map(|(name, shape, bytes)| {
        let kind = safetensors::Dtype::F32;
        (name, safetensors::tensor::TensorView::new(kind, shape.clone(), bytes).unwrap())
    });
    let texts = labels.map(|l| [("labels".to_string(), l.to_string())].into_iter().collect());
    fs::write(&path, safetensors::serialize(views, texts).unwrap()).unwrap();
    path.display().to_string()
}

#[track_caller]
fn said(arguments: &[&str]) -> String {
    let output = regard(arguments);
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[track_caller]
fn refused(arguments: &[&str]) -> String {
    let output = regard(arguments);
    assert!(!output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stderr).unwrap().trim_end().to_string()
}

#[test]
fn weights_of_a_file_are_drawn_with_numbers_or_with_labels() {
    let folder = TempDir::new().unwrap();
    let path = file(&folder, &[("weights", &[2, 2, 3]), ("out", &[2, 4])], None);
    let text = said(&["show", &path]);
    assert!(text.contains("head 1") && text.contains("1 of 2; --which N shows another"), "{text}");
    let text = said(&["show", &path, "--rows", "eins zwei", "--columns", "I saw it"]);
    // Names of columns are written downward.
    assert!(text.contains("eins") && text.contains("I w t"), "{text}");
    said(&["show", &path, "--as", "svg", "--which", "2"]);
    assert!(fs::read_to_string(folder.path().join("w.svg")).unwrap().contains("head 2"));
    said(&["show", &path, "--as", "png"]);
    assert!(fs::read(folder.path().join("w.png")).unwrap().starts_with(b"\x89PNG"));
}

#[test]
fn the_numbers_of_a_picture_are_drawn_again_under_their_names() {
    let folder = TempDir::new().unwrap();
    let labels =
        r#"{"maps": ["hop 1"], "rows": ["who", "left"], "columns": ["Mary", "left", "."]}"#;
    let path = file(&folder, &[("any", &[1, 2, 3])], Some(labels));
    let text = said(&["show", &path]);
    assert!(["hop 1", "who", "y t ."].iter().all(|name| text.contains(name)), "{text}");
}

#[test]
fn attention_used_alone_can_be_seen() {
    let folder = TempDir::new().unwrap();
    let path = file(&folder, &[("q", &[3, 4]), ("k", &[5, 4]), ("v", &[5, 2])], None);
    let out = folder.path().join("out.safetensors").display().to_string();
    said(&["attend", &path, "--out", &out, "--weights"]);
    assert!(said(&["show", &out]).contains("weights"));
}

#[test]
fn what_cannot_be_drawn_is_refused_by_its_name() {
    let folder = TempDir::new().unwrap();
    let path = file(&folder, &[("a", &[2, 3]), ("b", &[3, 3]), ("c", &[7])], None);
    let told = refused(&["show", &path]);
    assert!(
        told.ends_with("which tensor? There are `a`, `b`, `c`; choose one with --tensor NAME"),
        "{told}"
    );
    let told = refused(&["show", &path, "--tensor", "d"]);
    assert!(told.ends_with("there is no tensor `d`; there are `a`, `b`, `c`"), "{told}");
    let told = refused(&["show", &path, "--tensor", "c"]);
    let shapes = "weights are [Nq, Nk], [H, Nq, Nk] or [B, H, Nq, Nk]";
    assert!(told.ends_with(shapes), "{told}");
    let told = refused(&["show", &path, "--tensor", "a", "--rows", "one"]);
    assert!(told.ends_with("1 labels for 2 rows"), "{told}");
    let told = refused(&["show", &path, "an input"]);
    assert!(told.ends_with("is a file, which is shown without an input"), "{told}");
    let told = refused(&["show", &path, "--tensor", "a", "--as", "safetensors"]);
    assert!(told.ends_with("this is the file that is shown; --out names another"), "{told}");
    let broken = folder.path().join("broken.safetensors");
    fs::write(&broken, b"no").unwrap();
    let told = refused(&["show", &broken.display().to_string()]);
    assert!(told.contains("not a safetensors file"), "{told}");
}
