//! A folder with an input file, and what the program makes of it.

use half::{bf16, f16};
use safetensors::{Dtype, SafeTensors, tensor::TensorView};
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};
use tempfile::TempDir;

/// The program, to be given arguments.
pub(crate) fn regard(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_regard")).args(arguments).output().unwrap()
}

/// Tensors by name.
#[derive(Clone, Default)]
pub(crate) struct File(Vec<(&'static str, Dtype, Vec<usize>, Vec<u8>)>);

impl File {
    /// With a tensor of real numbers.
    pub(crate) fn reals(
        self,
        name: &'static str,
        dtype: Dtype,
        shape: &[usize],
        values: &[f64],
    ) -> Self {
        let bytes = match dtype {
            Dtype::F64 => values.iter().flat_map(|x| x.to_le_bytes()).collect(),
            Dtype::F32 => values.iter().flat_map(|&x| (x as f32).to_le_bytes()).collect(),
            Dtype::BF16 => values.iter().flat_map(|&x| bf16::from_f64(x).to_le_bytes()).collect(),
            Dtype::F16 => values.iter().flat_map(|&x| f16::from_f64(x).to_le_bytes()).collect(),
            other => unreachable!("{other}"),
        };
        self.bytes(name, dtype, shape, bytes)
    }

    /// With a tensor of f32.
    pub(crate) fn f32(self, name: &'static str, shape: &[usize], values: &[f64]) -> Self {
        self.reals(name, Dtype::F32, shape, values)
    }

    /// With a tensor of i64.
    pub(crate) fn i64(self, name: &'static str, shape: &[usize], values: &[i64]) -> Self {
        let bytes = values.iter().flat_map(|x| x.to_le_bytes()).collect();
        self.bytes(name, Dtype::I64, shape, bytes)
    }

    /// With a tensor of whatever the bytes are.
    pub(crate) fn bytes(
        mut self,
        name: &'static str,
        dtype: Dtype,
        shape: &[usize],
        bytes: Vec<u8>,
    ) -> Self {
        self.0.retain(|(other, ..)| *other != name);
        self.0.push((name, dtype, shape.to_vec(), bytes));
        self
    }

    /// Without a tensor.
    pub(crate) fn without(mut self, name: &str) -> Self {
        self.0.retain(|(other, ..)| *other != name);
        self
    }

    /// As a safetensors file.
    pub(crate) fn serialized(&self) -> Vec<u8> {
        let views = self.0.iter().map(|(name, dtype, shape, bytes)| {
            (*name, TensorView::new(*dtype, shape.clone(), bytes).unwrap())
        });
        safetensors::serialize(views, None).unwrap()
    }

    /// What `regard attend` writes, given these options too.
    #[track_caller]
    pub(crate) fn attend(&self, options: &[&str]) -> Written {
        let folder = Folder::new(&self.serialized());
        let output = folder.attend(options);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{options:?}: {said}");
        // What is said of weights with dropout has a test of its own.
        let more: Vec<&str> = said.lines().filter(|l| !l.contains("include dropout")).collect();
        assert!(more.is_empty(), "{said}");
        folder.written().unwrap()
    }

    /// The sentence with which `regard attend` refuses; nothing is written.
    #[track_caller]
    pub(crate) fn refused(&self, options: &[&str]) -> String {
        refused(&self.serialized(), options)
    }
}

/// The sentence with which `regard attend` refuses a file of these bytes; nothing is written, and
/// what was there stays.
#[track_caller]
pub(crate) fn refused(bytes: &[u8], options: &[&str]) -> String {
    let folder = Folder::new(bytes);
    let output = folder.attend(options);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert_eq!(folder.files(), ["in.safetensors"]);
    let sentence = String::from_utf8(output.stderr).unwrap();
    assert!(sentence.starts_with("regard: ") && sentence.ends_with('\n'), "{sentence}");
    assert_eq!(sentence.lines().count(), 1, "{sentence}");

    fs::write(folder.path("out.safetensors"), b"before").unwrap();
    assert_eq!(folder.attend(options).status.code(), Some(1));
    assert_eq!(fs::read(folder.path("out.safetensors")).unwrap(), b"before");
    assert_eq!(folder.files(), ["in.safetensors", "out.safetensors"]);
    sentence.trim_end().to_owned()
}

/// A folder of its own.
pub(crate) struct Folder(TempDir);

impl Folder {
    /// With these bytes as `in.safetensors`.
    pub(crate) fn new(bytes: &[u8]) -> Self {
        let folder = Self(TempDir::new().unwrap());
        fs::write(folder.path("in.safetensors"), bytes).unwrap();
        folder
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn files(&self) -> Vec<String> {
        let entries = fs::read_dir(self.0.path()).unwrap();
        let name = |entry: fs::DirEntry| entry.file_name().into_string().unwrap();
        let mut names: Vec<String> = entries.map(|entry| name(entry.unwrap())).collect();
        names.sort();
        names
    }

    /// From in.safetensors to out.safetensors.
    pub(crate) fn attend(&self, options: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_regard"))
            .current_dir(self.0.path())
            .args(["attend", "in.safetensors", "--out", "out.safetensors"])
            .args(options)
            .output()
            .unwrap()
    }

    /// What out.safetensors holds, where there is one.
    pub(crate) fn written(&self) -> Option<Written> {
        let bytes = fs::read(self.path("out.safetensors")).ok()?;
        let file = SafeTensors::deserialize(&bytes).unwrap();
        let tensors = file.tensors().into_iter().map(|(name, view)| {
            let values = values(&view);
            let bits = view.data().to_vec();
            (name, Tensor { dtype: view.dtype(), shape: view.shape().to_vec(), values, bits })
        });
        Some(Written(tensors.collect()))
    }
}

fn values(view: &TensorView) -> Vec<f64> {
    let data = view.data();
    match view.dtype() {
        Dtype::F64 => data.as_chunks().0.iter().map(|&x| f64::from_le_bytes(x)).collect(),
        Dtype::F32 => data.as_chunks().0.iter().map(|&x| f32::from_le_bytes(x).into()).collect(),
        Dtype::BF16 => data.as_chunks().0.iter().map(|&x| bf16::from_le_bytes(x).into()).collect(),
        Dtype::F16 => data.as_chunks().0.iter().map(|&x| f16::from_le_bytes(x).into()).collect(),
        Dtype::I64 => data.as_chunks().0.iter().map(|&x| i64::from_le_bytes(x) as f64).collect(),
        Dtype::BOOL => data.iter().map(|&x| x.into()).collect(),
        other => unreachable!("{other}"),
    }
}

/// The tensors of an output file.
#[derive(Debug, PartialEq)]
pub(crate) struct Written(BTreeMap<String, Tensor>);

/// One of them.
#[derive(Debug, PartialEq)]
pub(crate) struct Tensor {
    pub(crate) dtype: Dtype,
    pub(crate) shape: Vec<usize>,
    pub(crate) values: Vec<f64>,
    /// As they are in the file.
    pub(crate) bits: Vec<u8>,
}

impl Written {
    /// All names, in order.
    pub(crate) fn names(&self) -> Vec<&str> {
        self.0.keys().map(String::as_str).collect()
    }

    /// A tensor that must be there.
    #[track_caller]
    pub(crate) fn get(&self, name: &str) -> &Tensor {
        self.0.get(name).unwrap_or_else(|| panic!("no {name} among {:?}", self.names()))
    }

    /// Its numbers.
    #[track_caller]
    pub(crate) fn values(&self, name: &str) -> &[f64] {
        &self.get(name).values
    }
}
