//! Writing notes.

use std::collections::BTreeSet;

use rusqlite::params;

use super::column::Tags;
use super::{Notes, StoreError};
use crate::note::{Body, Moment, Note, NoteId, NoteState, PortableNote, Tag, Title};

impl Notes<'_> {
    pub(crate) fn import(&self, note: &PortableNote) -> Result<NoteId, StoreError> {
        Ok(self.insert(note)?)
    }

    pub(super) fn insert(&self, note: &PortableNote) -> rusqlite::Result<NoteId> {
        let state = if note.archived {
            NoteState::Archived
        } else {
            NoteState::Active
        };
        let now = Moment::now();
        self.transaction.query_row(
            "INSERT INTO notes (title, body, tags, pinned, state, created_at, updated_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) RETURNING id",
            params![
                note.title,
                note.body,
                Tags(&note.tags),
                note.pinned,
                state,
                note.created_at.unwrap_or(now),
                note.updated_at.unwrap_or(now)
            ],
            |row| row.get(0),
        )
    }

    /// Gives the note a new text and keeps the one it had as a version.
    pub(crate) fn rewrite(
        &self,
        note: &Note,
        title: &Title,
        body: &Body,
    ) -> Result<(), StoreError> {
        self.transaction.execute(
            "INSERT INTO note_versions (note_id, version, title, body, saved_at)
             VALUES (?1, ?2, ?3, ?4, ?5)",
            params![
                note.id,
                note.version,
                note.title,
                note.body,
                note.updated_at
            ],
        )?;
        self.transaction.execute(
            "UPDATE notes SET title = ?2, body = ?3, version = ?4, updated_at = ?5 WHERE id = ?1",
            params![note.id, title, body, note.version.next(), Moment::now()],
        )?;
        Ok(())
    }

    pub(crate) fn set_tags(&self, id: NoteId, tags: &BTreeSet<Tag>) -> Result<(), StoreError> {
        self.transaction.execute(
            "UPDATE notes SET tags = ?2, updated_at = ?3 WHERE id = ?1",
            params![id, Tags(tags), Moment::now()],
        )?;
        Ok(())
    }

    pub(crate) fn set_pinned(&self, id: NoteId, pinned: bool) -> Result<(), StoreError> {
        self.transaction.execute(
            "UPDATE notes SET pinned = ?2 WHERE id = ?1",
            params![id, pinned],
        )?;
        Ok(())
    }

    pub(crate) fn set_state(&self, id: NoteId, state: NoteState) -> Result<(), StoreError> {
        self.transaction.execute(
            "UPDATE notes SET state = ?2 WHERE id = ?1",
            params![id, state],
        )?;
        Ok(())
    }

    /// Removes the note and its versions for good.
    pub(crate) fn purge(&self, id: NoteId) -> Result<(), StoreError> {
        self.transaction
            .execute("DELETE FROM notes WHERE id = ?1", [id])?;
        Ok(())
    }
}
