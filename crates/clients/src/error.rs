//! What can go wrong with a file that is not ours.

use std::io;
use std::path::PathBuf;

use crate::client::Client;
use crate::document::{ParseFault, ShapeFault};

/// Why a client's file was not read or not changed. It is then as it was before.
#[derive(Debug, thiserror::Error)]
pub enum ClientFileError {
    #[error("{} cannot be read", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("{}:{}:{}: the file is not understood", path.display(), source.line, source.column)]
    Malformed { path: PathBuf, source: ParseFault },
    #[error("{} has another shape than expected", path.display())]
    Shape { path: PathBuf, source: ShapeFault },
    #[error("{} is read-only", path.display())]
    ReadOnly { path: PathBuf },
    #[error("{} was changed by somebody else meanwhile", path.display())]
    ChangedMeanwhile { path: PathBuf },
    #[error("{} cannot be written", path.display())]
    Unwritable { path: PathBuf, source: io::Error },
    #[error("the note of what was changed, {}, is not understood", path.display())]
    Receipt {
        path: PathBuf,
        source: serde_json::Error,
    },
    #[error("{} cannot look up the API key that the daemon asks for", client.title())]
    KeyNeeded { client: Client },
    #[error("{} starts its servers itself and takes no address", client.title())]
    OnlyStdio { client: Client },
    #[error("mcpproxy changed nothing in {}", client.title())]
    NothingToUndo { client: Client },
}

impl ClientFileError {
    /// What a person can do about it.
    pub fn advice(&self) -> String {
        match self {
            Self::Unreadable { path, .. } => {
                format!("make {} readable, and try again", path.display())
            }
            Self::Malformed { path, .. } | Self::Shape { path, .. } => {
                format!("correct {} first; nothing was changed", path.display())
            }
            Self::ReadOnly { path } => {
                format!(
                    "allow it with `chmod u+w {}`, if you want it changed",
                    path.display()
                )
            }
            Self::ChangedMeanwhile { .. } => "try again".to_owned(),
            Self::Unwritable { path, .. } => {
                let folder = path.parent().unwrap_or(path);
                format!("make sure that you may write in {}", folder.display())
            }
            Self::Receipt { path, .. } => {
                format!("remove {} and take the entry out by hand", path.display())
            }
            Self::KeyNeeded { client } | Self::OnlyStdio { client } => {
                format!(
                    "use `mcpproxy connect {client} --stdio`, which needs neither address nor key"
                )
            }
            Self::NothingToUndo { client } => {
                format!(
                    "see with `mcpproxy connect` where {} looks for servers",
                    client.title()
                )
            }
        }
    }
}
