//! Where the results of a verb go: the one way in which the program writes what it was asked for.

use anyhow::{Context, Result, bail, ensure};
use std::io::Write;
use std::path::Path;

/// A place that was named on the command line. A file is written whole or not at all; a link is
/// followed; a device or a pipe is written into; `-` is standard output.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Destination<'a>(&'a Path);

impl<'a> Destination<'a> {
    pub(crate) fn new(path: &'a Path) -> Self {
        Self(path)
    }

    /// Whether it is standard output, which then belongs to it alone.
    pub(crate) fn is_standard_output(self) -> bool {
        self.0 == Path::new("-") || self.0 == Path::new("/dev/stdout")
    }

    /// Refuses what could not be written to in the end, before anything is computed.
    pub(crate) fn check(self) -> Result<()> {
        let path = self.0;
        if self.is_standard_output() {
            return Ok(());
        }
        ensure!(!path.is_dir(), "{}: this is a folder; a file is expected", path.display());
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        ensure!(
            folder.is_dir(),
            "{}: there is no folder {} to write it to",
            path.display(),
            folder.display()
        );
        Ok(())
    }

    /// As [`Self::check`]; refuses a file that is there too, unless it is to be overwritten.
    pub(crate) fn check_new(self, overwrite: bool) -> Result<()> {
        if !overwrite && self.0.is_file() {
            bail!(
                "{} is there already; `--overwrite` replaces it, `--out` names another file",
                self.0.display()
            );
        }
        self.check()
    }

    /// Writes it all.
    pub(crate) fn write(self, bytes: &[u8], standard_output: &mut impl Write) -> Result<()> {
        if self.is_standard_output() {
            standard_output.write_all(bytes)?;
            return Ok(standard_output.flush()?);
        }
        Ok(regard::tensor::write_whole(self.0, bytes)?)
    }
}

/// Whether two paths name the same file that is there.
pub(crate) fn is_same_file(a: &Path, b: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let id = |path: &Path| std::fs::metadata(path).ok().map(|m| (m.dev(), m.ino()));
        id(a).is_some() && id(a) == id(b)
    }
    #[cfg(not(unix))]
    {
        let whole = |path: &Path| std::fs::canonicalize(path).ok();
        whole(a).is_some() && whole(a) == whole(b)
    }
}

/// Says something beside the results. Nothing can be done about a closed standard error.
pub(crate) fn note(text: &str) {
    let _ = writeln!(std::io::stderr(), "regard: note: {text}");
}

/// What a verb says while its results may have standard output for themselves.
pub(crate) fn say(text: &str, aside: bool, to: &mut impl Write) -> Result<()> {
    if aside {
        // As above.
        let _ = writeln!(std::io::stderr(), "{text}");
        return Ok(());
    }
    writeln!(to, "{text}").context("standard output")
}
