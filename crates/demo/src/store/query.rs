//! Reading notes.

use std::collections::BTreeSet;

use rusqlite::{OptionalExtension, Row, named_params, params};
use serde::Serialize;

use super::column::{Count, Tags};
use super::{Notes, StoreError};
use crate::note::{Limit, Note, NoteId, NoteState, NoteVersion, Query, Tag};

/// How many ids an error about an unknown one suggests.
const SUGGESTIONS: i64 = 3;

/// Part of a list and how long the whole list is.
#[derive(Debug)]
pub(crate) struct Page<T> {
    pub items: Vec<T>,
    pub total: usize,
}

/// A note that a search found.
#[derive(Debug)]
pub(crate) struct Match {
    pub note: Note,
    /// The piece of the note's text that matches best, or its beginning.
    pub excerpt: String,
}

/// Which notes a tool that takes many at once is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    Everything,
    /// Active and archived notes.
    Kept,
    Bin,
}

#[derive(Debug, Serialize)]
pub(crate) struct TagCount {
    pub tag: Tag,
    pub notes: usize,
}

impl Notes<'_> {
    /// The note, wherever it is.
    pub(crate) fn get(&self, id: NoteId) -> Result<Note, StoreError> {
        self.transaction
            .query_row("SELECT * FROM notes WHERE id = ?1", [id], read_note)
            .optional()?
            .map_or_else(|| Err(self.unknown(id)?), Ok)
    }

    /// The note, unless it is in the bin.
    pub(crate) fn get_kept(&self, id: NoteId) -> Result<Note, StoreError> {
        match self.get(id)? {
            note if note.state == NoteState::Bin => Err(StoreError::InBin(id)),
            note => Ok(note),
        }
    }

    pub(crate) fn list(
        &self,
        state: NoteState,
        tag: Option<&Tag>,
        limit: Limit,
    ) -> Result<Page<Note>, StoreError> {
        let mut statement = self.transaction.prepare(
            "SELECT *, count(*) OVER () AS total FROM notes
             WHERE state = :state
               AND (:tag IS NULL OR :tag IN (SELECT value FROM json_each(notes.tags)))
             ORDER BY pinned DESC, updated_at DESC, id DESC
             LIMIT :limit",
        )?;
        let mut rows =
            statement.query(named_params! { ":state": state, ":tag": tag, ":limit": limit })?;
        let mut page = Page::default();
        while let Some(row) = rows.next()? {
            Count(page.total) = row.get("total")?;
            page.items.push(read_note(row)?);
        }
        Ok(page)
    }

    /// Notes outside the bin that hold every word of the query, best first.
    pub(crate) fn search(&self, query: &Query, limit: Limit) -> Result<Page<Match>, StoreError> {
        // A word in the title says more about a note than one in its text; tags are in between.
        let mut statement = self.transaction.prepare(
            "WITH found AS (
                 SELECT rowid, bm25(notes_index, 4.0, 2.0, 1.0) AS score,
                        snippet(notes_index, 2, '', '', '…', 12) AS excerpt
                 FROM notes_index WHERE notes_index MATCH :query
             )
             SELECT notes.*, found.excerpt, count(*) OVER () AS total
             FROM found JOIN notes ON notes.id = found.rowid
             WHERE notes.state <> 'bin'
             ORDER BY found.score, notes.id
             LIMIT :limit",
        )?;
        let mut rows =
            statement.query(named_params! { ":query": query.as_match(), ":limit": limit })?;
        let mut page = Page::default();
        while let Some(row) = rows.next()? {
            Count(page.total) = row.get("total")?;
            page.items.push(Match {
                note: read_note(row)?,
                excerpt: row.get("excerpt")?,
            });
        }
        Ok(page)
    }

    /// The tags of notes outside the bin, the commonest first.
    pub(crate) fn tags(&self) -> Result<Vec<TagCount>, StoreError> {
        let mut statement = self.transaction.prepare(
            "SELECT tag.value, count(*) FROM notes, json_each(notes.tags) AS tag
             WHERE notes.state <> 'bin'
             GROUP BY tag.value ORDER BY count(*) DESC, tag.value",
        )?;
        let counts = statement.query_map([], |row| {
            let Count(notes) = row.get(1)?;
            Ok(TagCount {
                tag: row.get(0)?,
                notes,
            })
        })?;
        Ok(counts.collect::<Result<_, _>>()?)
    }

    /// The earlier texts of a note, the latest first.
    pub(crate) fn versions(&self, id: NoteId) -> Result<Vec<NoteVersion>, StoreError> {
        let mut statement = self.transaction.prepare(
            "SELECT version, title, body, saved_at FROM note_versions
             WHERE note_id = ?1 ORDER BY version DESC",
        )?;
        let versions = statement.query_map([id], |row| {
            Ok(NoteVersion {
                version: row.get(0)?,
                title: row.get(1)?,
                body: row.get(2)?,
                saved_at: row.get(3)?,
            })
        })?;
        Ok(versions.collect::<Result<_, _>>()?)
    }

    /// The ids of the notes in scope, the oldest first.
    pub(crate) fn ids(&self, scope: Scope) -> Result<Vec<NoteId>, StoreError> {
        let in_bin = match scope {
            Scope::Everything => None,
            Scope::Kept => Some(false),
            Scope::Bin => Some(true),
        };
        let mut statement = self
            .transaction
            .prepare("SELECT id FROM notes WHERE ?1 IS NULL OR (state = 'bin') = ?1 ORDER BY id")?;
        let ids = statement.query_map([in_bin], |row| row.get(0))?;
        Ok(ids.collect::<Result<_, _>>()?)
    }

    fn unknown(&self, id: NoteId) -> Result<StoreError, StoreError> {
        let mut statement = self
            .transaction
            .prepare("SELECT id FROM notes ORDER BY abs(id - ?1), id LIMIT ?2")?;
        let near = statement.query_map(params![id, SUGGESTIONS], |row| row.get(0))?;
        let near = near.collect::<Result<_, _>>()?;
        Ok(StoreError::UnknownNote { id, near })
    }
}

impl<T> Default for Page<T> {
    fn default() -> Self {
        Self {
            items: Vec::new(),
            total: 0,
        }
    }
}

fn read_note(row: &Row<'_>) -> rusqlite::Result<Note> {
    let Tags::<BTreeSet<Tag>>(tags) = row.get("tags")?;
    Ok(Note {
        id: row.get("id")?,
        title: row.get("title")?,
        body: row.get("body")?,
        tags,
        pinned: row.get("pinned")?,
        state: row.get("state")?,
        version: row.get("version")?,
        created_at: row.get("created_at")?,
        updated_at: row.get("updated_at")?,
    })
}
