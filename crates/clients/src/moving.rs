//! Servers that leave a client's own files because mcpproxy has them.

use std::path::PathBuf;

use serde_json::Value;

use crate::adapter::FileEdits;
use crate::client::Client;
use crate::document::Syntax;
use crate::edit::Edit;
use crate::error::ClientFileError;
use crate::plan::{FileChange, Kind, Plan};

/// One entry of a client's file as it was read.
#[derive(Debug, Clone)]
pub struct Origin {
    pub client: Client,
    pub file: PathBuf,
    /// The name as the client has it.
    pub name: String,
    /// Whether the file lies in a project's folder, where others may rely on it.
    pub shared: bool,
    /// Whether the client uses the entry.
    pub enabled: bool,
    pub(crate) syntax: Syntax,
    /// The path of the entry in the file.
    pub(crate) path: Vec<String>,
    pub(crate) written: Value,
}

/// Works out how entries leave the files of a client that uses mcpproxy already.
pub fn take_out(client: Client, leaving: &[Origin]) -> Result<Plan, ClientFileError> {
    let mut files = Vec::new();
    add_departures(leaving, &mut files);
    let changes = files.iter().map(FileChange::of);
    let changes: Result<Vec<_>, _> = changes.collect();
    Ok(Plan {
        client,
        changes: changes?.into_iter().flatten().collect(),
        notes: Vec::new(),
        kind: Kind::Connect,
    })
}

/// Adds the removal of entries to what else is to be changed, so that each file is edited once.
pub(crate) fn add_departures(leaving: &[Origin], files: &mut Vec<FileEdits>) {
    for origin in leaving {
        let edit = Edit::Departure {
            path: origin.path.clone(),
            written: origin.written.clone(),
        };
        match files.iter_mut().find(|file| file.path == origin.file) {
            Some(file) => file.edits.push(edit),
            None => files.push(FileEdits {
                path: origin.file.clone(),
                syntax: origin.syntax,
                edits: vec![edit],
            }),
        }
    }
}
