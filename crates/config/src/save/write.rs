//! Writes a file so that a reader, or a crash, sees the old content or the new one and no mixture.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use super::SaveError;

/// Writes a config file that must not exist yet, with its directory. Both are for the owner only.
pub fn write_new(file: &Path, text: &str) -> Result<(), SaveError> {
    let attempt = || -> io::Result<()> {
        let directory = directory_of(file);
        create_private_directory(directory)?;
        let temporary = write_temporary(directory, text)?;
        temporary.persist_noclobber(file)?;
        sync_directory(directory)
    };
    attempt().map_err(|source| SaveError::Write {
        file: file.to_owned(),
        source,
    })
}

/// Replaces the content of `file`. A symbolic link stays one; what it leads to is replaced.
pub(super) fn replace(file: &Path, text: &str) -> Result<(), SaveError> {
    let attempt = || -> io::Result<()> {
        let target = follow_links(file)?;
        let directory = directory_of(&target);
        let temporary = write_temporary(directory, text)?;
        temporary.persist(&target)?;
        sync_directory(directory)
    };
    attempt().map_err(|source| SaveError::Write {
        file: file.to_owned(),
        source,
    })
}

fn follow_links(file: &Path) -> io::Result<PathBuf> {
    match file.canonicalize() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(file.to_owned()),
        found => found,
    }
}

fn directory_of(file: &Path) -> &Path {
    match file.parent() {
        Some(directory) if !directory.as_os_str().is_empty() => directory,
        _ => Path::new("."),
    }
}

/// A complete file beside the one to replace; the crate makes it readable for the owner only.
fn write_temporary(directory: &Path, text: &str) -> io::Result<NamedTempFile> {
    let mut temporary = tempfile::Builder::new()
        .prefix(".mcp_config.")
        .suffix(".tmp")
        .tempfile_in(directory)?;
    temporary.write_all(text.as_bytes())?;
    temporary.as_file().sync_all()?;
    Ok(temporary)
}

#[cfg(unix)]
fn create_private_directory(directory: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)
}

#[cfg(not(unix))]
fn create_private_directory(directory: &Path) -> io::Result<()> {
    std::fs::create_dir_all(directory)
}

/// Without this, a crash may undo the rename although it was reported as done.
#[cfg(unix)]
fn sync_directory(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

#[cfg(not(unix))]
fn sync_directory(_directory: &Path) -> io::Result<()> {
    Ok(())
}
