//! Reading and replacing files of other programs. A reader sees the old content or the new one and
//! no mixture, and a file keeps its mode.

use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::document::{Document, Syntax};
use crate::error::ClientFileError;

/// What a copy of a file is called that was made before we changed it.
const BACKUP: &str = "before-mcpproxy";

/// The content of a file, if there is one.
pub(crate) fn read(path: &Path) -> Result<Option<String>, ClientFileError> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        // A file stands where a folder would be: then there is nothing below it either.
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => Ok(None),
        Err(source) => Err(ClientFileError::Unreadable {
            path: path.to_owned(),
            source,
        }),
    }
}

/// The document in a file, if there is one.
pub(crate) fn read_document(
    path: &Path,
    syntax: Syntax,
) -> Result<Option<Document>, ClientFileError> {
    let Some(text) = read(path)? else {
        return Ok(None);
    };
    parse(path, syntax, &text).map(Some)
}

pub(crate) fn parse(path: &Path, syntax: Syntax, text: &str) -> Result<Document, ClientFileError> {
    Document::parse(syntax, text).map_err(|source| ClientFileError::Malformed {
        path: path.to_owned(),
        source,
    })
}

/// Refuses what cannot or should not be written, before anything is.
pub(crate) fn check_writable(path: &Path) -> Result<(), ClientFileError> {
    match fs::metadata(path) {
        Ok(found) if found.permissions().readonly() => Err(ClientFileError::ReadOnly {
            path: path.to_owned(),
        }),
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(source) => Err(unwritable(path, source)),
    }
}

/// Refuses a file that is not what it was when it was read.
pub(crate) fn check_unchanged(path: &Path, before: Option<&str>) -> Result<(), ClientFileError> {
    if read(path)?.as_deref() == before {
        return Ok(());
    }
    Err(ClientFileError::ChangedMeanwhile {
        path: path.to_owned(),
    })
}

/// Puts `after` in the place of `before`; nothing means that there is no such file.
pub(crate) fn replace(
    path: &Path,
    before: Option<&str>,
    after: Option<&str>,
) -> Result<(), ClientFileError> {
    check_unchanged(path, before)?;
    match after {
        Some(text) => write(path, text, None),
        None => fs::remove_file(path),
    }
    .map_err(|source| unwritable(path, source))
}

/// Writes a file that only we read, for the owner only.
pub(crate) fn write_private(path: &Path, text: &str) -> Result<(), ClientFileError> {
    write(path, text, Some(0o600)).map_err(|source| unwritable(path, source))
}

/// Copies a file beside itself; says where to.
pub(crate) fn back_up(path: &Path) -> Result<PathBuf, ClientFileError> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let mut backup = path.with_file_name(format!("{name}.{BACKUP}"));
    let mut number = 1;
    while backup.symlink_metadata().is_ok() {
        number += 1;
        backup = path.with_file_name(format!("{name}.{BACKUP}.{number}"));
    }
    // Keeps the mode, so that what was closed to others stays closed.
    fs::copy(path, &backup).map_err(|source| unwritable(&backup, source))?;
    Ok(backup)
}

/// What a text is recognised by later.
pub(crate) fn fingerprint(text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn write(path: &Path, text: &str, mode: Option<u32>) -> io::Result<()> {
    // A symbolic link stays one; what it leads to is replaced.
    let target = match path.canonicalize() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => path.to_owned(),
        found => found?,
    };
    let folder = target.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(folder)?;
    let mut temporary = tempfile::Builder::new()
        .prefix(".mcpproxy.")
        .suffix(".tmp")
        .tempfile_in(folder)?;
    temporary.write_all(text.as_bytes())?;
    if let Some(permissions) = permissions_for(&target, mode) {
        temporary.as_file().set_permissions(permissions)?;
    }
    temporary.as_file().sync_all()?;
    temporary.persist(&target)?;
    File::open(folder)?.sync_all()
}

/// The wanted mode, or that of the file that is replaced. A new file is the owner's.
#[cfg(unix)]
fn permissions_for(target: &Path, mode: Option<u32>) -> Option<Permissions> {
    use std::os::unix::fs::PermissionsExt;
    match mode {
        Some(mode) => Some(Permissions::from_mode(mode)),
        None => fs::metadata(target).ok().map(|found| found.permissions()),
    }
}

#[cfg(not(unix))]
fn permissions_for(target: &Path, _mode: Option<u32>) -> Option<Permissions> {
    fs::metadata(target).ok().map(|found| found.permissions())
}

fn unwritable(path: &Path, source: io::Error) -> ClientFileError {
    ClientFileError::Unwritable {
        path: path.to_owned(),
        source,
    }
}
