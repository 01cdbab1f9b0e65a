//! One training in a folder at a time.

use regard_data::{Error, Result};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Read, Seek, Write};
use std::path::Path;

/// Held by whoever trains in a folder, until it is dropped or its process ends, however it ends.
#[derive(Debug)]
pub(crate) struct RunLock {
    /// None where the file system knows no locks.
    _file: Option<File>,
}

/// The file that is locked; it holds the id of the process that trains.
pub(crate) const FILE: &str = ".lock";

impl RunLock {
    /// Refuses a folder that another process trains in, with its id.
    pub(crate) fn take(folder: &Path) -> Result<Self> {
        let path = folder.join(FILE);
        let failed = |error: std::io::Error| Error::file(&path, error);
        let mut options = OpenOptions::new();
        let open = options.read(true).write(true).create(true).truncate(false).open(&path);
        let mut file = open.map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(held(folder, &process(&mut file))),
            Err(TryLockError::Error(error)) if error.kind() == ErrorKind::Unsupported => {
                return Ok(Self { _file: None });
            }
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
        file.set_len(0).and_then(|()| file.rewind()).map_err(failed)?;
        file.write_all(std::process::id().to_string().as_bytes()).map_err(failed)?;
        Ok(Self { _file: Some(file) })
    }

    /// Refuses a folder that another process trains in, and leaves nothing there.
    pub(crate) fn check(folder: &Path) -> Result<()> {
        match Self::holder(folder) {
            Some(who) => Err(held(folder, &who)),
            None => Ok(()),
        }
    }

    /// Who trains in a folder: "process 123", or "another process".
    pub(crate) fn holder(folder: &Path) -> Option<String> {
        let mut file = File::open(folder.join(FILE)).ok()?;
        match file.try_lock_shared() {
            Err(TryLockError::WouldBlock) => Some(process(&mut file)),
            _ => None,
        }
    }
}

fn process(file: &mut File) -> String {
    let mut id = String::new();
    // Where locked files cannot be read, the id is not known.
    let _ = file.read_to_string(&mut id);
    match id.trim() {
        "" => "another process".into(),
        id => format!("process {id}"),
    }
}

fn held(folder: &Path, who: &str) -> Error {
    Error::file(folder, format!("{who} is training here; wait until it ends, or stop it"))
}
