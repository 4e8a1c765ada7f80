//! What we changed in a client's files, kept in our own data directory so that it can be undone.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::client::Client;
use crate::edit::Reversal;
use crate::error::ClientFileError;
use crate::file;

const FOLDER: &str = "connections";

/// The receipts of all clients.
#[derive(Debug, Clone)]
pub struct Receipts {
    folder: PathBuf,
}

/// What was done to one client.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Receipt {
    pub(crate) files: Vec<Entry>,
}

/// What was done to one file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Entry {
    pub(crate) path: PathBuf,
    /// The file as it was before us; none if there was no file.
    pub(crate) backup: Option<PathBuf>,
    /// Whether the file is there because of us.
    pub(crate) created: bool,
    /// Whether the backup is all that has to be put back, as long as nobody touches the file.
    pub(crate) backup_is_whole: bool,
    /// The fingerprint of what we wrote.
    pub(crate) written: String,
    pub(crate) reversals: Vec<Reversal>,
}

impl Receipts {
    /// The receipts below a data directory.
    pub fn new(data_dir: &Path) -> Self {
        Self {
            folder: data_dir.join(FOLDER),
        }
    }

    pub(crate) fn load(&self, client: Client) -> Result<Option<Receipt>, ClientFileError> {
        let path = self.path(client);
        let Some(text) = file::read(&path)? else {
            return Ok(None);
        };
        serde_json::from_str(&text)
            .map(Some)
            .map_err(|source| ClientFileError::Receipt { path, source })
    }

    pub(crate) fn save(&self, client: Client, receipt: &Receipt) -> Result<(), ClientFileError> {
        let path = self.path(client);
        let text =
            serde_json::to_string_pretty(receipt).map_err(|source| ClientFileError::Receipt {
                path: path.clone(),
                source,
            })?;
        file::write_private(&path, &format!("{text}\n"))
    }

    pub(crate) fn remove(&self, client: Client) -> Result<(), ClientFileError> {
        let path = self.path(client);
        let text = file::read(&path)?;
        match text {
            Some(text) => file::replace(&path, Some(&text), None),
            None => Ok(()),
        }
    }

    fn path(&self, client: Client) -> PathBuf {
        self.folder.join(format!("{client}.json"))
    }
}
