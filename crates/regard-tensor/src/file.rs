//! Tensors in safetensors files.

use crate::{DType, Device, Error, Result, Tensor};
use safetensors::tensor::{Dtype, TensorView};
use safetensors::{SafeTensorError, SafeTensors, serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::Metadata;
use std::io::Write;
use std::path::{Path, PathBuf};

const DTYPES: [(DType, Dtype); 7] = [
    (DType::F32, Dtype::F32),
    (DType::F64, Dtype::F64),
    (DType::BF16, Dtype::BF16),
    (DType::F16, Dtype::F16),
    (DType::I64, Dtype::I64),
    (DType::U32, Dtype::U32),
    (DType::Bool, Dtype::BOOL),
];

/// Writes tensors and texts by name to a safetensors file: whole, or not at all, and the same bytes
/// for the same content.
/// Refuses a place that cannot be written to.
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
    let bytes = plain(tensors).map_err(|error| error.within(path.display()))?;
    let Serialized { header, data } =
        with_texts(&bytes, texts).map_err(|error| error.within(path.display()))?;
    write_parts(path, &[&header, data])
}

/// What [`save`] writes, as bytes: for another process.
/// Refuses only where there is no memory for it.
///
/// ```
/// use regard_tensor::{Tensor, from_bytes, to_bytes};
/// let tensors = [("x".to_string(), Tensor::scalar(3f32)?)].into();
/// let (back, _) = from_bytes(&to_bytes(&tensors, &Default::default())?)?;
/// assert_eq!(back["x"].item()?, 3.0);
/// # Ok::<(), regard_tensor::Error>(())
/// ```
pub fn to_bytes(
    tensors: &BTreeMap<String, Tensor>,
    texts: &BTreeMap<String, String>,
) -> Result<Vec<u8>> {
    let bytes = plain(tensors)?;
    let Serialized { header, data } = with_texts(&bytes, texts)?;
    Ok([&header, data].concat())
}

/// Tensors by name as a safetensors file without texts.
fn plain(tensors: &BTreeMap<String, Tensor>) -> Result<Vec<u8>> {
    let plain = tensors
        .iter()
        .map(|(name, x)| Ok((name, x.detach().to_device(Device::Cpu)?.contiguous()?)));
    let plain = plain.collect::<Result<Vec<_>>>()?;
    let mut views = Vec::with_capacity(plain.len());
    for (name, x) in &plain {
        let dtype = DTYPES.iter().find(|(ours, _)| *ours == x.dtype()).map(|(_, theirs)| *theirs);
        let dtype = dtype.ok_or_else(|| Error::new(format!("{name:?}: type {}", x.dtype())))?;
        let view = TensorView::new(dtype, x.shape().to_vec(), x.bytes()?)
            .map_err(|error| Error::new(format!("{name:?}: {error}")))?;
        views.push((name.as_str(), view));
    }
    serialize(views, None).map_err(|error| Error::new(error.to_string()))
}

/// A file as it will be written: its length and header, and the data behind it.
struct Serialized<'a> {
    header: Vec<u8>,
    data: &'a [u8],
}

/// A serialized file with texts. The crate keeps texts in an
/// order of chance; here the same content is the same bytes.
fn with_texts<'a>(bytes: &'a [u8], texts: &BTreeMap<String, String>) -> Result<Serialized<'a>> {
    let (length, rest) =
        bytes.split_first_chunk::<8>().ok_or_else(|| Error::new("there is no header"))?;
    let (tensors, data) = rest
        .split_at_checked(u64::from_le_bytes(*length) as usize)
        .ok_or_else(|| Error::new("the header is cut short"))?;
    let tensors = tensors.trim_ascii_end();
    let mut header = tensors.to_vec();
    if !texts.is_empty() {
        let comma = if tensors == b"{}" { "" } else { "," };
        let texts = serde_json::to_string(texts).map_err(|error| Error::new(error.to_string()))?;
        let texts = format!("{{\"__metadata__\":{texts}{comma}");
        header.splice(..1, texts.bytes());
    }
    // The data begin at a multiple of eight bytes.
    header.resize(header.len().next_multiple_of(8), b' ');
    header.splice(..0, (header.len() as u64).to_le_bytes());
    Ok(Serialized { header, data })
}

/// Writes a file whole or not at all: beside its place first, then moved there. A link is followed
/// to the file that it names, which keeps its rights; a device or a pipe is written into.
/// Refuses a place that cannot be written to, and leaves what was there.
///
/// ```
/// let folder = tempfile::tempdir().unwrap();
/// let file = folder.path().join("note.txt");
/// regard_tensor::write_whole(&file, b"kept")?;
/// assert_eq!(std::fs::read(file).unwrap(), b"kept");
/// # Ok::<(), regard_tensor::Error>(())
/// ```
pub fn write_whole(path: impl AsRef<Path>, bytes: &[u8]) -> Result<()> {
    write_parts(path.as_ref(), &[bytes])
}

fn write_parts(path: &Path, parts: &[&[u8]]) -> Result<()> {
    let write = || match std::fs::metadata(path) {
        Ok(found) if found.is_dir() => Err(std::io::Error::other("there is a folder here")),
        Ok(found) if !found.is_file() || is_descriptor(path) => into_device(path, parts),
        found => in_place_of(&target(path), found.ok(), parts),
    };
    write().map_err(|error| {
        Error::file(error).within(format_args!("{}: cannot write", path.display()))
    })
}

/// Whether a path names what the process has open: a file there is somebody's standard output.
fn is_descriptor(path: &Path) -> bool {
    ["/dev/stdout", "/dev/stderr"].iter().any(|name| path == Path::new(name))
        || path.starts_with("/dev/fd")
        || path.starts_with("/proc")
}

fn into_device(path: &Path, parts: &[&[u8]]) -> std::io::Result<()> {
    let mut device = std::fs::OpenOptions::new().append(true).open(path)?;
    parts.iter().try_for_each(|part| device.write_all(part))?;
    device.flush()
}

/// The file that a path names, through links, also where there is none yet.
fn target(path: &Path) -> PathBuf {
    let mut path = path.to_path_buf();
    // As many links as a kernel follows.
    for _ in 0..40 {
        let Ok(link) = std::fs::read_link(&path) else { break };
        path = folder(&path).join(link);
    }
    path
}

fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

fn in_place_of(path: &Path, found: Option<Metadata>, parts: &[&[u8]]) -> std::io::Result<()> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(TEMPORARY);
    // A temporary file is its owner's alone; this one becomes a file like any other.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let mut file = builder.tempfile_in(folder(path))?;
    parts.iter().try_for_each(|part| file.write_all(part))?;
    file.as_file().sync_all()?;
    if let Some(found) = found {
        file.as_file().set_permissions(found.permissions())?;
    }
    file.persist(path)?;
    Ok(())
}

/// What the names of files begin with that [`write_whole`] has not yet moved to their place. One
/// that stays behind is of a process that was killed.
pub const TEMPORARY: &str = ".regard-";

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

/// Reads all tensors and texts of a safetensors file; refuses one that is truncated or is not one. Whole numbers
/// that no tensor stores (i8, i16, i32, u8, u16, u64) become i64; refused by the tensor's name are an u64 that no i64
/// holds and every other type.
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
    let read = std::fs::read(path).map_err(Error::file);
    read.and_then(|bytes| from_bytes(&bytes)).map_err(|error| error.within(path.display()))
}

/// The tensors of a file whose names `choose` keeps, of all the names that it is given: the others may have any
/// type.
pub(crate) fn load_chosen(
    path: &Path,
    choose: impl FnOnce(Vec<String>) -> Result<BTreeSet<String>>,
) -> Result<BTreeMap<String, Tensor>> {
    let bytes = std::fs::read(path).map_err(Error::file)?;
    let file = SafeTensors::deserialize(&bytes).map_err(damaged)?;
    let mut names: Vec<String> = file.names().into_iter().map(String::from).collect();
    names.sort_unstable();
    let chosen = choose(names)?;
    chosen_tensors(&file, |name| chosen.contains(name))
}

/// All tensors and texts of what [`to_bytes`] gave, or of any safetensors file; refuses what is
/// truncated or is not one, and what [`load`] refuses.
///
/// ```
/// let error = regard_tensor::from_bytes(b"a text, no tensors").unwrap_err();
/// assert!(error.to_string().starts_with("not a safetensors file"));
/// ```
pub fn from_bytes(bytes: &[u8]) -> Result<Loaded> {
    let (_, header) = SafeTensors::read_metadata(bytes).map_err(damaged)?;
    let file = SafeTensors::deserialize(bytes).map_err(damaged)?;
    let tensors = chosen_tensors(&file, |_| true)?;
    let texts = header.metadata().clone().unwrap_or_default().into_iter().collect();
    Ok((tensors, texts))
}

fn damaged(error: SafeTensorError) -> Error {
    Error::file(error).reworded("not a safetensors file, or a damaged one")
}

fn chosen_tensors(
    file: &SafeTensors,
    is_chosen: impl Fn(&str) -> bool,
) -> Result<BTreeMap<String, Tensor>> {
    let chosen = file.iter().filter(|(name, _)| is_chosen(name));
    chosen
        .map(|(name, view)| {
            let x = tensor_of(&view);
            let x = x.map_err(|error| error.of_file().within(format_args!("{name:?}")))?;
            Ok((name.to_string(), x))
        })
        .collect()
}

fn tensor_of(view: &TensorView) -> Result<Tensor> {
    let dtype = DTYPES.iter().find(|(_, theirs)| *theirs == view.dtype()).map(|(ours, _)| *ours);
    if let Some(dtype) = dtype {
        return Tensor::from_bytes(view.data(), view.shape(), dtype);
    }
    macro_rules! whole {
        ($($theirs:ident: $T:ty),*) => {
            match view.dtype() {
                $(Dtype::$theirs => widened(view, <$T>::from_le_bytes),)*
                other => Err(Error::new(format!("no tensor stores the type {other}"))),
            }
        };
    }
    whole!(I8: i8, I16: i16, I32: i32, U8: u8, U16: u16, U64: u64)
}

/// Whole numbers of another width as i64.
fn widened<const N: usize, I>(view: &TensorView, read: fn([u8; N]) -> I) -> Result<Tensor>
where
    I: Copy + TryInto<i64> + std::fmt::Display,
{
    let (numbers, _) = view.data().as_chunks::<N>();
    let numbers: Vec<I> = numbers.iter().map(|&bytes| read(bytes)).collect();
    Tensor::from_ids(&numbers, view.shape())
}
