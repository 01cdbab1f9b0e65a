//! A folder's files, in an order that is the same on every machine.

use crate::{Error, Result, remark, sample};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// What a folder holds, by name. Hidden files (`.DS_Store`) are not data.
pub(super) fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    let failed = |error| Error::file(folder, error);
    let mut entries = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if !name(&path).starts_with('.') {
            entries.push(path);
        }
    }
    entries.sort();
    Ok(entries)
}

/// Files with labels.
pub(super) struct LabeledFiles {
    /// Each file with its label.
    pub(super) files: Vec<(PathBuf, String)>,
    /// What is not a file of the kind asked for.
    pub(super) left_out: Vec<PathBuf>,
}

impl LabeledFiles {
    /// The files with one of these extensions in a folder for each label: by label, then by name.
    /// Refuses a root without folders and a label without files.
    pub(super) fn in_folders(root: &Path, extensions: &[&str]) -> Result<Self> {
        let (folders, mut left_out): (Vec<_>, Vec<_>) =
            entries(root)?.into_iter().partition(|path| path.is_dir());
        if folders.is_empty() {
            return Err(Error::file(root, "one folder for each label was expected, it has none"));
        }
        let mut files = Vec::new();
        for folder in folders {
            let (wanted, others): (Vec<_>, Vec<_>) =
                entries(&folder)?.into_iter().partition(|path| has_extension(path, extensions));
            if wanted.is_empty() {
                return Err(Error::file(folder, no_file_of(extensions)));
            }
            let label = name(&folder);
            files.extend(wanted.into_iter().map(|path| (path, label.clone())));
            left_out.extend(others);
        }
        remark_left_out(root, &left_out);
        Ok(Self { files, left_out }.sampled(root))
    }

    /// Some of them, where files are only sampled.
    pub(super) fn sampled(mut self, root: &Path) -> Self {
        self.files = sample::some_files(root, self.files, |(_, label)| label.clone());
        self
    }
}

/// Says what is not read, by kind.
fn remark_left_out(root: &Path, left_out: &[PathBuf]) {
    if left_out.is_empty() {
        return;
    }
    let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
    for path in left_out {
        let extension =
            path.extension().map(|extension| extension.to_string_lossy().to_lowercase());
        let kind = match (path.is_dir(), path.parent() == Some(root), extension) {
            (true, ..) => "in folders of folders, which are not looked into".into(),
            (false, true, _) => "beside the labels' folders".into(),
            (_, _, Some(extension)) => format!(".{extension}"),
            (_, _, None) => "without an ending".into(),
        };
        *kinds.entry(kind).or_default() += 1;
    }
    let kinds: Vec<String> = kinds.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
    let (root, all) = (root.display(), left_out.len());
    let are = if all == 1 { "file or folder is" } else { "files and folders are" };
    remark(format!("{root}: {all} {are} not read: {}", kinds.join(", ")));
}

pub(super) fn no_file_of(extensions: &[&str]) -> String {
    format!("it has no file that ends with .{}", extensions.join(" or ."))
}

pub(super) fn has_extension(path: &Path, extensions: &[&str]) -> bool {
    let own = path.extension().unwrap_or_default();
    path.is_file() && extensions.iter().any(|extension| own.eq_ignore_ascii_case(extension))
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
