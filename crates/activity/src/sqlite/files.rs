//! The files of the store: private to their owner, never somebody else's, and moved aside rather
//! than overwritten when they are damaged.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use jiff::Timestamp;

use super::error::OpenError;
use super::pool::Sharing;

const DATABASE: &str = "activity.db";
const LOCK: &str = "activity.db.lock";
const JOURNAL: [&str; 2] = ["activity.journal-1", "activity.journal-2"];

/// SQLite's own files beside the database.
const COMPANIONS: [&str; 2] = ["-wal", "-shm"];

/// Where everything is. The directory is resolved, so that only its last part can be a link.
#[derive(Debug, Clone)]
pub(super) struct Files {
    directory: PathBuf,
}

/// What tells one database from another that takes its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Look {
    /// Nothing if there is no file.
    identity: Option<(u64, u64)>,
    sharing: Sharing,
}

impl Files {
    /// Makes sure of a directory that only its owner can enter.
    pub(super) fn prepare(directory: &Path) -> Result<Self, OpenError> {
        refuse_link(directory)?;
        create_private_directory(directory).map_err(OpenError::file(directory))?;
        let files = Self::existing(directory)?;
        platform::directory(&files.directory)?;
        Ok(files)
    }

    pub(super) fn existing(directory: &Path) -> Result<Self, OpenError> {
        let directory = fs::canonicalize(directory).map_err(|source| match source.kind() {
            io::ErrorKind::NotFound => OpenError::Missing(directory.to_owned()),
            _ => OpenError::File {
                path: directory.to_owned(),
                source,
            },
        })?;
        Ok(Self { directory })
    }

    /// A directory that is only named.
    pub(super) fn named(directory: &Path) -> Self {
        Self {
            directory: directory.to_owned(),
        }
    }

    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    pub(super) fn database(&self) -> PathBuf {
        self.directory.join(DATABASE)
    }

    /// Whether the database's file is there and has nothing in it.
    pub(super) fn is_empty(&self) -> bool {
        fs::metadata(self.database()).is_ok_and(|metadata| metadata.len() == 0)
    }

    /// The two segments of the journal.
    pub(super) fn journal(&self) -> [PathBuf; 2] {
        JOURNAL.map(|name| self.directory.join(name))
    }

    /// Whether a process left something in the journal.
    pub(super) fn journal_is_empty(&self) -> bool {
        let length = |path| fs::metadata(path).map_or(0, |metadata| metadata.len());
        self.journal().into_iter().map(length).sum::<u64>() == 0
    }

    /// The database's file as it is now.
    pub(super) fn look(&self) -> Look {
        let metadata = fs::metadata(self.database());
        Look {
            identity: metadata.ok().map(|metadata| platform::identity(&metadata)),
            sharing: self.sharing(),
        }
    }

    /// How the database can be read. Whoever writes it has both companions; without them SQLite
    /// would have to create them, and where it cannot, the file is read as it lies there.
    pub(super) fn sharing(&self) -> Sharing {
        let [wal, shm] = COMPANIONS.map(|suffix| fs::metadata(self.beside(suffix)));
        let is_used = wal.is_ok() && shm.is_ok();
        let nothing_pending = wal.map_or(0, |metadata| metadata.len()) == 0;
        if nothing_pending && !is_used && !platform::can_create_in(&self.directory) {
            Sharing::Still
        } else {
            Sharing::Shared
        }
    }

    /// Keeps every other process from writing until it is dropped.
    pub(super) fn lock(&self) -> Result<File, OpenError> {
        let path = self.directory.join(LOCK);
        let file = open_private(&path, OpenOptions::new().write(true))?;
        match file.try_lock() {
            Ok(()) => Ok(file),
            Err(TryLockError::WouldBlock) => Err(OpenError::InUse(self.directory.clone())),
            Err(TryLockError::Error(source)) => Err(OpenError::File { path, source }),
        }
    }

    /// Creates the database's file, or tightens the one that is there. SQLite gives its own files
    /// the same mode. Only to be called under the lock: closing a file would otherwise take
    /// another connection's locks away.
    pub(super) fn secure_database(&self) -> Result<(), OpenError> {
        for suffix in COMPANIONS {
            refuse_link(&self.beside(suffix))?;
        }
        open_private(&self.database(), OpenOptions::new().write(true)).map(drop)
    }

    /// Moves a damaged database out of the way, with its companions, and tells its new name.
    pub(super) fn move_aside(&self, now: Timestamp) -> Result<PathBuf, OpenError> {
        let stamp = now.strftime("%Y%m%dT%H%M%SZ").to_string();
        let aside = self.free_name(&format!("corrupt-{stamp}"));
        for suffix in COMPANIONS {
            let companion = self.beside(suffix);
            let mut target = aside.clone().into_os_string();
            target.push(suffix);
            match fs::rename(&companion, target) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(OpenError::File {
                        path: companion,
                        source: error,
                    });
                }
                _ => {}
            }
        }
        fs::rename(self.database(), &aside).map_err(OpenError::file(self.database()))?;
        Ok(aside)
    }

    /// An empty private file for a copy of the database before its layout changes.
    pub(super) fn backup(&self, version: i64, now: Timestamp) -> Result<PathBuf, OpenError> {
        let stamp = now.strftime("%Y%m%dT%H%M%SZ");
        let path = self.free_name(&format!("backup-v{version}-{stamp}"));
        open_private(&path, OpenOptions::new().write(true))?;
        Ok(path)
    }

    fn beside(&self, suffix: &str) -> PathBuf {
        self.directory.join(format!("{DATABASE}{suffix}"))
    }

    /// Two accidents within one second must not overwrite each other's evidence.
    fn free_name(&self, extension: &str) -> PathBuf {
        let first = self.beside(&format!(".{extension}"));
        let numbered = (2..).map(|number| self.beside(&format!(".{extension}-{number}")));
        std::iter::once(first.clone())
            .chain(numbered)
            .find(|path| !path.exists())
            .unwrap_or(first)
    }
}

/// Opens a private file at whose end everything is written.
pub(super) fn open_to_write(path: &Path) -> Result<File, OpenError> {
    open_private(path, OpenOptions::new().write(true))
}

fn refuse_link(path: &Path) -> Result<(), OpenError> {
    match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_symlink() => Err(OpenError::SymbolicLink(path.to_owned())),
        _ => Ok(()),
    }
}

/// Opens or creates a file that only its owner can read, and never through a link.
fn open_private(path: &Path, options: &mut OpenOptions) -> Result<File, OpenError> {
    refuse_link(path)?;
    options.read(true).create(true);
    platform::open_options(options);
    let file = options.open(path).map_err(OpenError::file(path))?;
    platform::file(&file).map_err(OpenError::file(path))?;
    Ok(file)
}

fn create_private_directory(directory: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    platform::directory_builder(&mut builder);
    builder.create(directory)
}

#[cfg(unix)]
mod platform {
    use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, Permissions};
    use std::io;
    use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
    use std::path::Path;

    use rustix::fs::{Access, OFlags};

    use crate::sqlite::error::OpenError;

    const STICKY: u32 = 0o1000;
    const OTHERS: u32 = 0o077;

    pub(super) fn identity(metadata: &Metadata) -> (u64, u64) {
        (metadata.dev(), metadata.ino())
    }

    pub(super) fn can_create_in(directory: &Path) -> bool {
        rustix::fs::access(directory, Access::WRITE_OK | Access::EXEC_OK).is_ok()
    }

    pub(super) fn directory_builder(builder: &mut DirBuilder) {
        builder.mode(0o700);
    }

    pub(super) fn open_options(options: &mut OpenOptions) {
        // The check before is for the message; this is what holds if the link appears after it.
        let no_follow = OFlags::NOFOLLOW.bits().cast_signed();
        options.mode(0o600).custom_flags(no_follow);
    }

    pub(super) fn file(file: &File) -> io::Result<()> {
        if file.metadata()?.permissions().mode() & OTHERS == 0 {
            return Ok(());
        }
        file.set_permissions(Permissions::from_mode(0o600))
    }

    /// Tightens a directory of our own; one like `/tmp` is everybody's and is left alone.
    pub(super) fn directory(path: &Path) -> Result<(), OpenError> {
        let metadata = fs::metadata(path).map_err(OpenError::file(path))?;
        if metadata.uid() != rustix::process::geteuid().as_raw() {
            return Err(OpenError::ForeignOwner(path.to_owned()));
        }
        let mode = metadata.permissions().mode();
        if mode & STICKY != 0 {
            return Err(OpenError::SharedDirectory(path.to_owned()));
        }
        if mode & OTHERS == 0 {
            return Ok(());
        }
        fs::set_permissions(path, Permissions::from_mode(0o700)).map_err(OpenError::file(path))
    }
}

/// Elsewhere the user's profile is private already.
#[cfg(not(unix))]
mod platform {
    use std::fs::{DirBuilder, File, Metadata, OpenOptions};
    use std::io;
    use std::path::Path;

    use crate::sqlite::error::OpenError;

    /// A file in use cannot be replaced there.
    pub(super) fn identity(_: &Metadata) -> (u64, u64) {
        (0, 0)
    }

    pub(super) fn can_create_in(_: &Path) -> bool {
        true
    }

    pub(super) fn directory_builder(_: &mut DirBuilder) {}

    pub(super) fn open_options(_: &mut OpenOptions) {}

    pub(super) fn file(_: &File) -> io::Result<()> {
        Ok(())
    }

    pub(super) fn directory(_: &Path) -> Result<(), OpenError> {
        Ok(())
    }
}
