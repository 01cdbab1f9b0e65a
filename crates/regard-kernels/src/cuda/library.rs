//! The driver and the compiler, opened at run time.

use crate::error::Error;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Opens the NVIDIA driver; once, whatever comes of it.
pub(super) fn driver() -> Result<(), Error> {
    static DRIVER: OnceLock<Result<(), Error>> = OnceLock::new();
    DRIVER
        .get_or_init(|| {
            // SAFETY: the driver's library runs nothing but its own initialization.
            if !unsafe { cudarc::driver::sys::is_culib_present() } {
                return Err(Error::device(
                    "there is no NVIDIA driver (libcuda.so.1 was not found): install one, or \
                     compute on the CPU",
                ));
            }
            cudarc::driver::result::init().map_err(|error| super::refused("to start", error))
        })
        .clone()
}

/// Where NVRTC was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Nvrtc {
    /// Where the loader looks.
    Loader,
    /// In a file of a toolkit or a Python package.
    File(PathBuf),
}

/// Opens NVRTC, the compiler; once, whatever comes of it.
pub(super) fn nvrtc() -> Result<Nvrtc, Error> {
    static NVRTC: OnceLock<Result<Nvrtc, Error>> = OnceLock::new();
    NVRTC.get_or_init(find_nvrtc).clone()
}

fn find_nvrtc() -> Result<Nvrtc, Error> {
    if let Some(path) = std::env::var_os("REGARD_NVRTC") {
        let path = PathBuf::from(path);
        return match open(&path) {
            Ok(()) => Ok(Nvrtc::File(path)),
            Err(reason) => {
                Err(Error::device(format!("REGARD_NVRTC names {}: {reason}", path.display())))
            }
        };
    }
    // SAFETY: the library runs nothing but its own initialization.
    if unsafe { cudarc::nvrtc::sys::is_culib_present() } {
        return Ok(Nvrtc::Loader);
    }
    for file in candidates("libnvrtc.so") {
        if open(&file).is_ok() {
            return Ok(Nvrtc::File(file));
        }
    }
    Err(Error::device(
        "NVRTC, which compiles the kernels, was not found: install the CUDA toolkit or \
         `pip install nvidia-cuda-nvrtc`, or say where libnvrtc.so is in REGARD_NVRTC",
    ))
}

/// Whether cuBLASLt, which multiplies matrices, is there: in a file that `REGARD_CUBLASLT` names, where the loader
/// looks, or with a toolkit or a Python package; not where `REGARD_CUBLASLT` is `off`. Looked for once. Refuses a name
/// of no such file.
pub(super) fn has_cublas_lt() -> Result<bool, Error> {
    static THERE: OnceLock<Result<bool, Error>> = OnceLock::new();
    // SAFETY: the library runs nothing but its own initialization.
    let is_found = || unsafe { cudarc::cublaslt::sys::is_culib_present() };
    let find = || match std::env::var_os("REGARD_CUBLASLT") {
        Some(word) if word == "off" => Ok(false),
        Some(path) => {
            let path = PathBuf::from(path);
            let opened = keep_open(&path);
            let wrong = || Err("it is not libcublasLt.so of CUDA 12 or 13".into());
            opened.and_then(|()| if is_found() { Ok(true) } else { wrong() }).map_err(|reason| {
                Error::device(format!("REGARD_CUBLASLT names {}: {reason}", path.display()))
            })
        }
        None => {
            let mut files = candidates("libcublasLt.so").into_iter();
            Ok(is_found() || files.any(|file| keep_open(&file).is_ok() && is_found()))
        }
    };
    THERE.get_or_init(find).clone()
}

/// Opens a file for good, so that it is found by its name from now on.
fn keep_open(file: &Path) -> Result<(), String> {
    // SAFETY: the library runs nothing but its own initialization.
    let library = unsafe { libloading::Library::new(file) };
    // Whoever opens the same name later gets this one, as long as it stays open.
    std::mem::forget(library.map_err(|error| error.to_string())?);
    Ok(())
}

/// Opens a file of NVRTC's.
fn open(file: &Path) -> Result<(), String> {
    keep_open(file)?;
    // SAFETY: the library runs nothing but its own initialization.
    match unsafe { cudarc::nvrtc::sys::is_culib_present() } {
        true => Ok(()),
        false => Err("it is not libnvrtc.so of CUDA 12 or 13".into()),
    }
}

/// Files of toolkits and of Python packages whose names begin so, newest first.
fn candidates(begins: &str) -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = Vec::new();
    for name in ["CUDA_HOME", "CUDA_PATH"] {
        folders.extend(std::env::var_os(name).map(|home| Path::new(&home).join("lib64")));
    }
    folders.extend(children("/usr/local", "cuda").into_iter().map(|home| home.join("lib64")));
    let prefixes = ["VIRTUAL_ENV", "CONDA_PREFIX"].into_iter().filter_map(std::env::var_os);
    let prefixes = prefixes.map(PathBuf::from).chain(["/usr/local".into(), "/usr".into()]);
    for prefix in prefixes {
        for python in children(prefix.join("lib"), "python") {
            for packages in ["site-packages", "dist-packages"] {
                let nvidia = python.join(packages).join("nvidia");
                folders.extend(children(&nvidia, "cu").into_iter().map(|part| part.join("lib")));
            }
        }
    }
    folders.into_iter().flat_map(|folder| children(folder, begins)).collect()
}

/// What lies in a folder under names that begin so, last names first.
fn children(folder: impl AsRef<Path>, begins: &str) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut found: Vec<PathBuf> = entries
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(begins))
        .map(|entry| entry.path())
        .collect();
    found.sort_unstable_by(|a, b| b.cmp(a));
    found
}
