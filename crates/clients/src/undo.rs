//! Taking back what `connect` did: byte for byte where nobody touched the file since, else only
//! what we put in.

use crate::client::Client;
use crate::document::Syntax;
use crate::edit::Reversal;
use crate::error::ClientFileError;
use crate::file;
use crate::plan::{FileChange, Kind, Plan};
use crate::receipt::{Entry, Receipts};

/// Works out how a client gets rid of us.
pub fn undo(client: Client, receipts: &Receipts) -> Result<Plan, ClientFileError> {
    let receipt = receipts.load(client)?;
    let receipt = receipt.ok_or(ClientFileError::NothingToUndo { client })?;
    let mut changes = Vec::new();
    let mut notes = Vec::new();
    for entry in &receipt.files {
        let change = take_back(entry)?;
        notes.extend(replaced_since(entry, change.as_ref()));
        changes.extend(change);
    }
    Ok(Plan {
        client,
        changes,
        notes,
        kind: Kind::Undo,
    })
}

fn take_back(entry: &Entry) -> Result<Option<FileChange>, ClientFileError> {
    let Some(present) = file::read(&entry.path)? else {
        return only_what_left(entry);
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

/// Entries that do not come back because the file has others of their names by now.
fn replaced_since(entry: &Entry, change: Option<&FileChange>) -> Vec<String> {
    let text = match change {
        Some(change) => change.after.clone(),
        None => file::read(&entry.path).ok().flatten(),
    };
    let document = text.and_then(|text| file::parse(&entry.path, syntax_of(entry), &text).ok());
    let Some(document) = document else {
        return Vec::new();
    };
    let left = entry.reversals.iter().filter_map(Reversal::returns);
    let replaced = left.filter(|(path, value)| {
        let present = document.get(path).ok().flatten();
        present.is_some_and(|present| present != **value)
    });
    let names = replaced.filter_map(|(path, _)| path.last());
    names
        .map(|name| {
            let file = entry.path.display();
            format!("'{name}' stays in mcpproxy only: {file} has another server of that name now")
        })
        .collect()
}

/// The file is gone: only entries that left it come back, so that none is lost.
fn only_what_left(entry: &Entry) -> Result<Option<FileChange>, ClientFileError> {
    let mut left = entry
        .reversals
        .iter()
        .filter(|step| step.returns().is_some());
    if left.clone().next().is_none() {
        return Ok(None);
    }
    let syntax = syntax_of(entry);
    let mut document = file::parse(&entry.path, syntax, "")?;
    let restored = left.try_for_each(|step| step.apply(&mut document));
    restored.map_err(|source| ClientFileError::Shape {
        path: entry.path.clone(),
        source,
    })?;
    Ok(Some(FileChange {
        path: entry.path.clone(),
        before: None,
        after: Some(format!("{}\n", document.text().trim_end())),
        syntax,
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
