//! Machine code on disk, so that a program compiles a kernel once.
//!
//! An entry is named after everything it depends on, the compiler's version included, written whole or not
//! at all, and begins with a sum of its key and its bytes: one that is damaged, or another's, is as good as
//! none. Whoever may write there decides what the GPU executes, so the folder is the user's alone. A folder
//! that cannot be used costs time and nothing else.

use crate::error::Error;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

const MARK: &[u8; 8] = b"regardc3";

/// The folder of the entries; none where the machine names no place for such things.
#[doc(hidden)]
#[derive(Clone, Debug)]
pub struct Cache {
    folder: Option<PathBuf>,
    /// Whether the folder is nobody's but ours, so that its rights may be changed.
    is_ours: bool,
}

impl Cache {
    /// `REGARD_CACHE`, or `regard` in the user's folder for caches.
    pub(super) fn of_user() -> Self {
        let folder =
            |name: &str| std::env::var_os(name).filter(|x| !x.is_empty()).map(PathBuf::from);
        if let Some(given) = folder("REGARD_CACHE") {
            return Self::at(&given);
        }
        let place = folder("XDG_CACHE_HOME")
            .or_else(|| folder("HOME").map(|home| home.join(".cache")))
            .map(|cache| cache.join("regard"));
        Self { folder: place, is_ours: true }
    }

    /// A given folder.
    pub fn at(folder: &Path) -> Self {
        Self { folder: Some(folder.into()), is_ours: false }
    }

    /// The entry of a key, if it is there and whole: that of a version of the compiler, or of any.
    pub fn get(&self, key: &[&str], version: Option<(i32, i32)>) -> Option<Vec<u8>> {
        let folder = self.folder.as_deref()?;
        if !is_private(folder) {
            return None;
        }
        match version {
            Some(version) => read(folder, key, version),
            None => versions(folder, key).into_iter().find_map(|found| read(folder, key, found)),
        }
    }

    /// Keeps what a version of the compiler made, if it can be kept.
    pub fn put(&self, key: &[&str], version: (i32, i32), body: &[u8]) {
        let Some(folder) = self.folder.as_deref() else { return };
        let mut bytes = MARK.to_vec();
        bytes.extend(hash(&(key, version, body)).to_le_bytes());
        bytes.extend(body);
        let beside = folder.join(own_name());
        let written = self.make().and_then(|()| write_new(&beside, &bytes));
        if written.and_then(|()| fs::rename(&beside, folder.join(file(key, version)))).is_err() {
            let _ = fs::remove_file(&beside);
        }
    }

    /// The folder, if entries can be kept there; else what is in the way.
    pub fn folder(&self) -> Result<&Path, Error> {
        let Some(folder) = &self.folder else {
            return Err(Error::device(
                "there is no folder to keep the kernels' machine code in, so that each start compiles \
                 them: name one in REGARD_CACHE",
            ));
        };
        let probe = folder.join(own_name());
        let written = self.make().and_then(|()| write_new(&probe, &[]));
        let _ = fs::remove_file(&probe);
        written.map(|()| folder.as_path()).map_err(|error| {
            Error::device(format!(
                "the kernels' machine code cannot be kept in {}, so that each start compiles them: \
                 {error}",
                folder.display()
            ))
        })
    }

    /// Makes the folder, for its user alone.
    fn make(&self) -> io::Result<()> {
        let Some(folder) = &self.folder else { return Ok(()) };
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(folder)?;
        if is_private(folder) {
            return Ok(());
        }
        #[cfg(unix)]
        if self.is_ours {
            let rights = std::os::unix::fs::PermissionsExt::from_mode(0o700);
            return fs::set_permissions(folder, rights);
        }
        Err(io::Error::other(
            "others may write there, and the GPU would execute what they wrote; \
             take that right from them (chmod go-w) or name another folder in REGARD_CACHE",
        ))
    }
}

/// Whether nobody but its user may write there.
fn is_private(folder: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        fs::metadata(folder).is_ok_and(|of| of.mode() & 0o022 == 0)
    }
    #[cfg(not(unix))]
    folder.exists()
}

/// Writes a file that was not there before, nor a link.
fn write_new(file: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(file)?.write_all(bytes)
}

fn read(folder: &Path, key: &[&str], version: (i32, i32)) -> Option<Vec<u8>> {
    let bytes = fs::read(folder.join(file(key, version))).ok()?;
    let (head, body) = bytes.split_at_checked(16)?;
    let sum = u64::from_le_bytes(head[8..].try_into().ok()?);
    (&head[..8] == MARK && sum == hash(&(key, version, body))).then(|| body.to_vec())
}

/// The versions that a key has entries of, newest first.
fn versions(folder: &Path, key: &[&str]) -> Vec<(i32, i32)> {
    let name = name(key);
    let of_entry = |entry: io::Result<fs::DirEntry>| {
        let file = entry.ok()?.file_name().into_string().ok()?;
        let version = file.strip_prefix(&name)?.strip_prefix('-')?.strip_suffix(".cubin")?;
        let (major, minor) = version.split_once('.')?;
        Some((major.parse().ok()?, minor.parse().ok()?))
    };
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut found: Vec<(i32, i32)> = entries.filter_map(of_entry).collect();
    found.sort_unstable_by(|a, b| b.cmp(a));
    found
}

fn file(key: &[&str], (major, minor): (i32, i32)) -> String {
    format!("{}-{major}.{minor}.cubin", name(key))
}

/// Two sums of the same key, so that no two keys are taken for one another.
fn name(key: &[&str]) -> String {
    format!("{:016x}{:016x}", hash(key), hash(&("regard", key)))
}

/// A name that no other thread gives, and no other process of this machine at the same time.
fn own_name() -> String {
    static GIVEN: AtomicU64 = AtomicU64::new(0);
    format!(".{}-{}", std::process::id(), GIVEN.fetch_add(1, Ordering::Relaxed))
}

/// The same in every program that this source is compiled to: the hasher has no key.
fn hash(of: &(impl Hash + ?Sized)) -> u64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    hasher.finish()
}
