//! Taking back what `connect` did: byte for byte where nobody touched the file since, else only
//! what we put in.

use crate::client::Client;
use crate::document::Syntax;
use crate::error::ClientFileError;
use crate::file;
use crate::plan::{FileChange, Kind, Plan};
use crate::receipt::{Entry, Receipts};

/// Works out how a client gets rid of us.
pub fn undo(client: Client, receipts: &Receipts) -> Result<Plan, ClientFileError> {
    let receipt = receipts.load(client)?;
    let receipt = receipt.ok_or(ClientFileError::NothingToUndo { client })?;
    let mut changes = Vec::new();
    for entry in &receipt.files {
        changes.extend(take_back(entry)?);
    }
    Ok(Plan {
        client,
        changes,
        notes: Vec::new(),
        kind: Kind::Undo,
    })
}

fn take_back(entry: &Entry) -> Result<Option<FileChange>, ClientFileError> {
    let Some(present) = file::read(&entry.path)? else {
        return Ok(None);
    };
    let untouched = file::fingerprint(&present) == entry.written && entry.backup_is_whole;
    let whole = match &entry.backup {
        Some(backup) if untouched => file::read(backup)?,
        _ => None,
    };
    let after = match whole {
        Some(text) => Some(text),
        None if untouched && entry.created => None,
        None => without_us(entry, &present)?,
    };
    let changed = after.as_deref() != Some(&present);
    Ok(changed.then(|| FileChange {
        path: entry.path.clone(),
        before: Some(present),
        after,
        syntax: syntax_of(entry),
        reversals: Vec::new(),
    }))
}

/// The file without what we put in; nothing if only we were in it.
fn without_us(entry: &Entry, present: &str) -> Result<Option<String>, ClientFileError> {
    let mut document = file::parse(&entry.path, syntax_of(entry), present)?;
    for reversal in &entry.reversals {
        let step = reversal.apply(&mut document);
        step.map_err(|source| ClientFileError::Shape {
            path: entry.path.clone(),
            source,
        })?;
    }
    let empty = document
        .value()
        .as_object()
        .is_some_and(serde_json::Map::is_empty);
    // Comments that somebody wrote are a reason to keep a file.
    let text = document.text();
    let only_us = entry.created && empty && !text.contains(['#', '/']);
    Ok((!only_us).then_some(text))
}

fn syntax_of(entry: &Entry) -> Syntax {
    if entry
        .path
        .extension()
        .is_some_and(|ending| ending == "toml")
    {
        Syntax::Toml
    } else {
        Syntax::Json
    }
}
