//! The notes on disk: one SQLite file that several demo servers may have open at once.
//!
//! Everything happens inside a transaction, so that a tool either does all of its work or none:
//! [`Store::read`] and [`Store::write`] lend out [`Notes`] for as long as one lasts.

mod change;
mod column;
mod open;
mod query;

use rusqlite::{Connection, Transaction, TransactionBehavior};

use crate::note::{NoteId, VersionNumber};

pub use open::OpenError;
pub(crate) use query::{Match, Page, Scope, TagCount};

#[derive(Debug)]
pub(crate) struct Store {
    connection: Connection,
}

/// The notes, as one transaction sees them.
#[derive(Debug)]
pub(crate) struct Notes<'store> {
    transaction: Transaction<'store>,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum StoreError {
    #[error("there is no note {id}{}", nearest(near))]
    UnknownNote { id: NoteId, near: Vec<NoteId> },
    #[error("note {0} is in the bin; call restore_note first")]
    InBin(NoteId),
    #[error("note {id} has no earlier version {version}; list_note_versions shows those it has")]
    UnknownVersion { id: NoteId, version: VersionNumber },
    #[error("the notes could not be read or written: {0}")]
    Database(#[from] rusqlite::Error),
}

impl Store {
    /// Runs `work` on a view of the notes that does not change meanwhile.
    pub(crate) fn read<T, E: From<StoreError>>(
        &mut self,
        work: impl FnOnce(&Notes<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        work(&self.begin(TransactionBehavior::Deferred)?)
    }

    /// Runs `work` and keeps what it did, unless it fails.
    pub(crate) fn write<T, E: From<StoreError>>(
        &mut self,
        work: impl FnOnce(&Notes<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        // Taking the write lock at once makes a second server wait its turn; asking for it half
        // way through a transaction would fail instead.
        let notes = self.begin(TransactionBehavior::Immediate)?;
        let outcome = work(&notes)?;
        notes.transaction.commit().map_err(StoreError::Database)?;
        Ok(outcome)
    }

    fn begin(&mut self, behavior: TransactionBehavior) -> Result<Notes<'_>, StoreError> {
        let transaction = self.connection.transaction_with_behavior(behavior)?;
        Ok(Notes { transaction })
    }
}

fn nearest(ids: &[NoteId]) -> String {
    if ids.is_empty() {
        return "; there are no notes at all".to_owned();
    }
    let ids: Vec<_> = ids.iter().map(ToString::to_string).collect();
    format!("; the nearest ids are {}", ids.join(", "))
}
