//! Changes that were worked out and not made yet.

use std::path::PathBuf;

use similar::TextDiff;

use crate::adapter::FileEdits;
use crate::client::Client;
use crate::document::Syntax;
use crate::edit::Reversal;
use crate::error::ClientFileError;
use crate::file;
use crate::receipt::{Entry, Receipt, Receipts};
use crate::secrets;

/// Lines shown around a change.
const CONTEXT: usize = 2;

/// What is to be done to the files of one client.
#[derive(Debug, Clone)]
pub struct Plan {
    pub client: Client,
    /// Files that change; none means that all is as wanted.
    pub changes: Vec<FileChange>,
    /// What a person should know besides.
    pub notes: Vec<String>,
    pub(crate) kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Connect,
    Undo,
}

/// One file before and after; nothing means that there is no file.
#[derive(Debug, Clone)]
pub struct FileChange {
    pub path: PathBuf,
    pub before: Option<String>,
    pub after: Option<String>,
    pub(crate) syntax: Syntax,
    pub(crate) reversals: Vec<Reversal>,
}

impl Plan {
    /// Makes the changes: copies first, then the note of what was done, then the files. Returns
    /// the copies that were made.
    pub fn apply(&self, receipts: &Receipts) -> Result<Vec<PathBuf>, ClientFileError> {
        self.check_writable()?;
        match self.kind {
            Kind::Connect => self.apply_connect(receipts),
            Kind::Undo => self.apply_undo(receipts).map(|()| Vec::new()),
        }
    }

    /// Refuses a plan with a file that cannot be written, or that changed since it was read.
    pub fn check_writable(&self) -> Result<(), ClientFileError> {
        self.changes.iter().try_for_each(|change| {
            file::check_writable(&change.path)?;
            file::check_unchanged(&change.path, change.before.as_deref())
        })
    }

    fn apply_connect(&self, receipts: &Receipts) -> Result<Vec<PathBuf>, ClientFileError> {
        let mut receipt = receipts.load(self.client)?.unwrap_or_default();
        let mut backups = Vec::new();
        for change in &self.changes {
            backups.extend(change.note_in(&mut receipt)?);
        }
        receipts.save(self.client, &receipt)?;
        self.write()?;
        Ok(backups)
    }

    fn apply_undo(&self, receipts: &Receipts) -> Result<(), ClientFileError> {
        self.write()?;
        let receipt = receipts.load(self.client)?.unwrap_or_default();
        receipts.remove(self.client)?;
        for backup in receipt.files.into_iter().filter_map(|entry| entry.backup) {
            // It did its service; one that cannot be removed harms nobody.
            let _ = std::fs::remove_file(backup);
        }
        Ok(())
    }

    fn write(&self) -> Result<(), ClientFileError> {
        self.changes.iter().try_for_each(|change| {
            file::replace(
                &change.path,
                change.before.as_deref(),
                change.after.as_deref(),
            )
        })
    }
}

impl FileChange {
    /// What edits make of a file, or nothing if it is that way already.
    pub(crate) fn of(edits: &FileEdits) -> Result<Option<Self>, ClientFileError> {
        let before = file::read(&edits.path)?;
        let text = before.as_deref().unwrap_or_default();
        let mut document = file::parse(&edits.path, edits.syntax, text)?;
        let mut reversals = Vec::new();
        for edit in &edits.edits {
            let steps = edit.apply(&mut document);
            let steps = steps.map_err(|source| ClientFileError::Shape {
                path: edits.path.clone(),
                source,
            })?;
            // The last change is the first to be taken back.
            reversals.splice(0..0, steps);
        }
        let mut after = document.text();
        if before.is_none() && !after.ends_with('\n') {
            after.push('\n');
        }
        let changed = !reversals.is_empty();
        Ok(changed.then(|| Self {
            path: edits.path.clone(),
            before,
            after: Some(after),
            syntax: edits.syntax,
            reversals,
        }))
    }

    /// The change as lines that go and lines that come.
    pub fn diff(&self) -> String {
        let (before, after) = (self.before.as_deref(), self.after.as_deref());
        let name = self.path.display().to_string();
        let side = |text: Option<&str>| match text {
            Some(_) => name.clone(),
            None => "/dev/null".to_owned(),
        };
        TextDiff::from_lines(before.unwrap_or_default(), after.unwrap_or_default())
            .unified_diff()
            .context_radius(CONTEXT)
            .header(&side(before), &side(after))
            .to_string()
    }

    /// Values in the file that are nobody's business, to be masked where the change is shown.
    pub fn secrets(&self) -> Vec<String> {
        let mut found = Vec::new();
        for text in [&self.before, &self.after].into_iter().flatten() {
            if let Ok(document) = file::parse(&self.path, self.syntax, text) {
                secrets::collect(&document.value(), &mut found);
            }
        }
        found
    }

    /// Writes down what takes this change back, together with what was done earlier.
    fn note_in(&self, receipt: &mut Receipt) -> Result<Option<PathBuf>, ClientFileError> {
        let written = file::fingerprint(self.after.as_deref().unwrap_or_default());
        let earlier = receipt
            .files
            .iter_mut()
            .find(|entry| entry.path == self.path);
        if let Some(earlier) = earlier {
            let touched =
                self.before.as_deref().map(file::fingerprint) != Some(earlier.written.clone());
            earlier.backup_is_whole &= !touched;
            earlier.written = written;
            earlier
                .reversals
                .splice(0..0, self.reversals.iter().cloned());
            return Ok(None);
        }
        let backup = match &self.before {
            Some(_) => Some(file::back_up(&self.path)?),
            None => None,
        };
        receipt.files.push(Entry {
            path: self.path.clone(),
            backup: backup.clone(),
            created: self.before.is_none(),
            backup_is_whole: true,
            written,
            reversals: self.reversals.clone(),
        });
        Ok(backup)
    }
}
