//! Reading beside other processes: whether what was opened is still all there is.

use super::files::{Files, Look};
use crate::store::StoreError;

/// How the files were when they were opened for reading.
#[derive(Debug)]
pub(super) struct Beside {
    files: Files,
    opened: Look,
    /// Whether a journal lies there that could not be stored. Opening anew would not help.
    pub(super) journal_stays: bool,
}

impl Beside {
    /// To be asked before the database is opened, so that a change in between is noticed.
    pub(super) fn new(files: Files) -> Self {
        Self {
            opened: files.look(),
            files,
            journal_stays: false,
        }
    }

    /// Fails when only opening anew shows everything: another log took the place of this one, or
    /// the process that wrote it died and left something in its journal. That cannot be stored from
    /// here: it opens and closes the database's file, which takes away the locks of all connections
    /// of a process.
    pub(super) fn check(&self) -> Result<(), StoreError> {
        let is_replaced = self.files.look() != self.opened;
        if is_replaced || self.is_left_behind() {
            return Err(StoreError::Stale);
        }
        Ok(())
    }

    fn is_left_behind(&self) -> bool {
        !self.journal_stays && !self.files.journal_is_empty() && self.files.lock().is_ok()
    }
}
