//! Images that took long to read, kept as they were read.

use super::{ImageOptions, Images};
use regard::tensor::write_whole;
use serde::{Deserialize, Serialize};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;

/// The place of a folder's images in the user's cache: `$REGARD_CACHE`, or `regard` in the usual
/// folder of caches. Files of another name, size or date have another place.
pub(super) struct ImageCache {
    path: PathBuf,
    /// Whether somebody named the place, and so wants everything kept.
    pub(super) is_named: bool,
    labels: Vec<String>,
}

/// What stands before the pixels, in a line.
#[derive(Serialize, Deserialize)]
struct Head {
    channels: usize,
    height: usize,
    width: usize,
}

/// A folder that the environment names.
fn folder(variable: &str) -> Option<PathBuf> {
    std::env::var_os(variable).filter(|path| !path.is_empty()).map(PathBuf::from)
}

impl ImageCache {
    /// The place for these files; none where there is nowhere to keep anything.
    pub(super) fn of(files: &[(PathBuf, String)], options: &ImageOptions) -> Option<Self> {
        let mut hasher = DefaultHasher::new();
        (env!("CARGO_PKG_VERSION"), options.side, options.color).hash(&mut hasher);
        for (path, label) in files {
            let found = path.metadata().ok()?;
            let path = std::path::absolute(path).ok()?;
            (path, label, found.len(), found.modified().ok()?).hash(&mut hasher);
        }
        let own = folder("REGARD_CACHE");
        let is_named = own.is_some();
        let place = own
            .or_else(|| Some(folder("XDG_CACHE_HOME")?.join("regard")))
            .or_else(|| Some(folder("HOME")?.join(".cache/regard")))?;
        let path = place.join(format!("images-{:016x}", hasher.finish()));
        let labels = files.iter().map(|(_, label)| label.clone()).collect();
        Some(Self { path, is_named, labels })
    }

    /// What is kept there; none where that is nothing, or damaged.
    pub(super) fn read(&self) -> Option<Images> {
        let bytes = std::fs::read(&self.path).ok()?;
        let end = bytes.iter().position(|&byte| byte == b'\n')?;
        let Head { channels, height, width } = serde_json::from_slice(&bytes[..end]).ok()?;
        let pixels = bytes[end + 1..].to_vec();
        let labels = self.labels.clone();
        let expected = [channels, height, width]
            .into_iter()
            .try_fold(labels.len(), |count, side| count.checked_mul(side))?;
        let images = Images { channels, height, width, pixels, labels, left_out: Vec::new() };
        (images.pixels.len() == expected).then_some(images)
    }

    /// Keeps images there, where that can be.
    pub(super) fn write(&self, images: &Images) {
        let &Images { channels, height, width, .. } = images;
        let Ok(mut bytes) = serde_json::to_vec(&Head { channels, height, width }) else { return };
        bytes.push(b'\n');
        bytes.extend_from_slice(&images.pixels);
        // A cache that cannot be written is none.
        if let Some(folder) = self.path.parent()
            && std::fs::create_dir_all(folder).is_ok()
        {
            let _ = write_whole(&self.path, &bytes);
        }
    }
}
