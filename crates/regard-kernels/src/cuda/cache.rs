//! Machine code on disk, so that a program compiles a kernel once.
//!
//! An entry is named after everything it depends on, written whole or not at all, and begins with a
//! sum of its key and its bytes: one that is damaged, or another's, is as good as none. A folder that
//! cannot be written costs time and nothing else.

use crate::error::Error;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

const MARK: &[u8; 8] = b"regardc2";

/// The folder of the entries; none where the machine names no place for such things.
#[doc(hidden)]
#[derive(Clone, Debug)]
pub struct Cache {
    folder: Option<PathBuf>,
}

impl Cache {
    /// `REGARD_CACHE`, or `regard` in the user's folder for caches.
    pub(super) fn of_user() -> Self {
        let folder =
            |name: &str| std::env::var_os(name).filter(|x| !x.is_empty()).map(PathBuf::from);
        let places = folder("REGARD_CACHE")
            .or_else(|| folder("XDG_CACHE_HOME").map(|cache| cache.join("regard")))
            .or_else(|| folder("HOME").map(|home| home.join(".cache").join("regard")));
        Self { folder: places }
    }

    /// A given folder.
    pub fn at(folder: &Path) -> Self {
        Self { folder: Some(folder.into()) }
    }

    /// The entry of a key, if it is there and whole.
    pub fn get(&self, key: &[&str]) -> Option<Vec<u8>> {
        let bytes = fs::read(self.file(key)?).ok()?;
        let (head, body) = bytes.split_at_checked(16)?;
        let sum = u64::from_le_bytes(head[8..].try_into().ok()?);
        (&head[..8] == MARK && sum == hash(&(key, body))).then(|| body.to_vec())
    }

    /// Keeps an entry, if it can be kept.
    pub fn put(&self, key: &[&str], body: &[u8]) {
        let Some(file) = self.file(key) else { return };
        let Some(folder) = file.parent() else { return };
        let mut bytes = MARK.to_vec();
        bytes.extend(hash(&(key, body)).to_le_bytes());
        bytes.extend(body);
        let beside = folder.join(own_name());
        let written = fs::create_dir_all(folder)
            .and_then(|()| fs::write(&beside, bytes))
            .and_then(|()| fs::rename(&beside, &file));
        if written.is_err() {
            let _ = fs::remove_file(&beside);
        }
    }

    /// The folder, if entries can be kept there; else what is in the way.
    pub fn folder(&self) -> Result<&Path, Error> {
        let Some(folder) = &self.folder else {
            return Err(Error::new(
                "there is no folder to keep the kernels' machine code in, so that each start compiles \
                 them: name one in REGARD_CACHE",
            ));
        };
        let probe = folder.join(own_name());
        let written = fs::create_dir_all(folder).and_then(|()| fs::write(&probe, []));
        let _ = fs::remove_file(&probe);
        written.map(|()| folder.as_path()).map_err(|error| {
            Error::new(format!(
                "the kernels' machine code cannot be kept in {}, so that each start compiles them: \
                 {error}",
                folder.display()
            ))
        })
    }

    fn file(&self, key: &[&str]) -> Option<PathBuf> {
        // Two sums of the same key, so that no two keys are taken for one another.
        let name = format!("{:016x}{:016x}.cubin", hash(key), hash(&("regard", key)));
        self.folder.as_ref().map(|folder| folder.join(name))
    }
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
