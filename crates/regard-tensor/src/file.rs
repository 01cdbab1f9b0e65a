//! Tensors in safetensors files.

use crate::{DType, Error, Result, Tensor, ensure};
use safetensors::tensor::{Dtype, TensorView};
use safetensors::{SafeTensors, serialize};
use std::collections::{BTreeMap, HashMap};
use std::io::Write;
use std::path::Path;

const DTYPES: [(DType, Dtype); 7] = [
    (DType::F32, Dtype::F32),
    (DType::F64, Dtype::F64),
    (DType::BF16, Dtype::BF16),
    (DType::F16, Dtype::F16),
    (DType::I64, Dtype::I64),
    (DType::U32, Dtype::U32),
    (DType::Bool, Dtype::BOOL),
];

/// Writes tensors and texts by name to a safetensors file: whole, or not at all.
///
/// ```
/// use regard_tensor::{Tensor, load, save};
/// use std::collections::BTreeMap;
/// let folder = tempfile::tempdir().unwrap();
/// let file = folder.path().join("x.safetensors");
/// let tensors = BTreeMap::from([("x".to_string(), Tensor::from_vec(vec![1i64, 2], &[2])?)]);
/// save(&file, &tensors, &BTreeMap::from([("step".to_string(), "7".to_string())]))?;
/// let (back, texts) = load(&file)?;
/// assert_eq!(back["x"].to_vec::<i64>()?, [1, 2]);
/// assert_eq!(texts["step"], "7");
/// # Ok::<(), regard_tensor::Error>(())
/// ```
pub fn save(
    path: impl AsRef<Path>,
    tensors: &BTreeMap<String, Tensor>,
    texts: &BTreeMap<String, String>,
) -> Result<()> {
    let path = path.as_ref();
    let plain = tensors.iter().map(|(name, x)| Ok((name, x.detach().contiguous()?)));
    let plain = plain.collect::<Result<Vec<_>>>()?;
    let mut views = Vec::with_capacity(plain.len());
    for (name, x) in &plain {
        let dtype = DTYPES.iter().find(|(ours, _)| *ours == x.dtype()).map(|(_, theirs)| *theirs);
        let dtype = dtype.ok_or_else(|| Error::new(format!("{name:?}: type {}", x.dtype())))?;
        let view = TensorView::new(dtype, x.shape().to_vec(), x.bytes())
            .map_err(|error| Error::new(format!("{}: {name:?}: {error}", path.display())))?;
        views.push((name.as_str(), view));
    }
    let texts: HashMap<String, String> = texts.clone().into_iter().collect();
    let texts = (!texts.is_empty()).then_some(texts);
    let bytes = serialize(views, texts)
        .map_err(|error| Error::new(format!("{}: {error}", path.display())))?;
    write_whole(path, &bytes)
}

/// Writes a file whole or not at all: beside its place first, then moved there.
///
/// ```
/// let folder = tempfile::tempdir().unwrap();
/// let file = folder.path().join("note.txt");
/// regard_tensor::write_whole(&file, b"kept")?;
/// assert_eq!(std::fs::read(file).unwrap(), b"kept");
/// # Ok::<(), regard_tensor::Error>(())
/// ```
pub fn write_whole(path: impl AsRef<Path>, bytes: &[u8]) -> Result<()> {
    let path = path.as_ref();
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let write = || -> std::io::Result<()> {
        let mut file = tempfile::Builder::new().prefix(".regard-").tempfile_in(folder)?;
        file.write_all(bytes)?;
        file.as_file().sync_all()?;
        #[cfg(unix)]
        {
            // A temporary file is the owner's alone; what is kept has the usual rights.
            use std::os::unix::fs::PermissionsExt;
            file.as_file().set_permissions(std::fs::Permissions::from_mode(0o644))?;
        }
        file.persist(path)?;
        Ok(())
    };
    write().map_err(|error| Error::new(format!("{}: cannot write: {error}", path.display())))
}

/// What [`load`] gives: tensors by name, and texts by name.
///
/// ```
/// use regard_tensor::{Loaded, Tensor, load, save};
/// let folder = tempfile::tempdir().unwrap();
/// let file = folder.path().join("x.safetensors");
/// save(&file, &[("x".to_string(), Tensor::scalar(3f32)?)].into(), &Default::default())?;
/// let loaded: Loaded = load(&file)?;
/// assert_eq!((loaded.0["x"].item()?, loaded.1.len()), (3.0, 0));
/// # Ok::<(), regard_tensor::Error>(())
/// ```
pub type Loaded = (BTreeMap<String, Tensor>, BTreeMap<String, String>);

/// Reads all tensors and texts of a safetensors file; refuses one that is truncated or is not one.
///
/// ```
/// use regard_tensor::{load, write_whole};
/// let folder = tempfile::tempdir().unwrap();
/// let file = folder.path().join("x.safetensors");
/// write_whole(&file, b"a text, no tensors")?;
/// assert!(load(&file).unwrap_err().to_string().contains("not a safetensors file"));
/// # Ok::<(), regard_tensor::Error>(())
/// ```
pub fn load(path: impl AsRef<Path>) -> Result<Loaded> {
    let path = path.as_ref();
    let refuse = |error: &dyn std::fmt::Display| Error::new(format!("{}: {error}", path.display()));
    let bytes = std::fs::read(path).map_err(|error| refuse(&error))?;
    let not = |error| refuse(&format!("not a safetensors file, or a damaged one ({error})"));
    let (_, header) = SafeTensors::read_metadata(&bytes).map_err(not)?;
    let file = SafeTensors::deserialize(&bytes).map_err(not)?;
    let mut tensors = BTreeMap::new();
    for (name, view) in file.iter() {
        let dtype =
            DTYPES.iter().find(|(_, theirs)| *theirs == view.dtype()).map(|(ours, _)| *ours);
        let Some(dtype) = dtype else {
            ensure!(false, "{}: {name:?} has type {:?}", path.display(), view.dtype());
            continue;
        };
        let x = Tensor::from_bytes(view.data(), view.shape(), dtype);
        let x = x.map_err(|error| refuse(&format!("{name:?}: {error}")))?;
        tensors.insert(name.to_string(), x);
    }
    let texts = header.metadata().clone().unwrap_or_default().into_iter().collect();
    Ok((tensors, texts))
}
