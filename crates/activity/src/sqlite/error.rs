//! What can go wrong with the file, in words that say nothing of SQLite above this module.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use rusqlite::ErrorCode;

use crate::store::StoreError;

/// Why the store could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("cannot use the activity log's file or directory {}", path.display())]
    File { path: PathBuf, source: io::Error },
    #[error("{} is a symbolic link; the activity log must be a plain file", .0.display())]
    SymbolicLink(PathBuf),
    #[error("{} is shared with other users; the activity log needs a directory of its own", .0.display())]
    SharedDirectory(PathBuf),
    #[error("the activity log in {} is in use by another mcpproxy", .0.display())]
    InUse(PathBuf),
    #[error(
        "the activity log {} was written by a newer mcpproxy (version {found} of its layout, \
         this one knows {known})",
        path.display()
    )]
    Newer {
        path: PathBuf,
        found: i64,
        known: i64,
    },
    #[error(
        "the activity log {} was written by an older mcpproxy (version {found} of its layout, \
         this one reads {known})",
        path.display()
    )]
    Older {
        path: PathBuf,
        found: i64,
        known: i64,
    },
    #[error("{} belongs to another user, who could change what is in it", .0.display())]
    ForeignOwner(PathBuf),
    #[error("{} is a database, but not an activity log", .0.display())]
    Foreign(PathBuf),
    #[error("there is no activity log in {} yet", .0.display())]
    Missing(PathBuf),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What SQLite said, once: the error below it says the same in other words.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Cause(rusqlite::Error);

impl OpenError {
    pub(super) fn file(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { path, source }
    }
}

impl From<rusqlite::Error> for OpenError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Store(error.into())
    }
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => Self::Full,
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
                Self::Corrupt(Arc::new(Cause(error)))
            }
            _ => Self::Unavailable(Some(Arc::new(Cause(error)))),
        }
    }
}
