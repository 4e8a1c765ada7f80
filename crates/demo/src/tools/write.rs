//! Tier 2: tools that create or change, and lose nothing by it.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::Deserialize;

use super::{Call, Reply, ToolError};
use crate::note::{
    Addition, Body, Note, NoteId, NoteState, PortableNote, Tag, Title, VersionNumber,
};
use crate::progress::Progress;
use crate::store::{Notes, Store, StoreError};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CreateNote {
    /// The title of the note: one line, not empty.
    title: Title,
    /// The text of the note.
    #[serde(default)]
    body: Body,
    /// Tags to put on the note.
    #[serde(default)]
    tags: BTreeSet<Tag>,
    /// Whether to keep the note at the top of lists.
    #[serde(default)]
    pinned: bool,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct UpdateNote {
    /// The id of the note.
    id: NoteId,
    /// The new title; left out, the title stays.
    title: Option<Title>,
    /// The new text; left out, the text stays.
    body: Option<Body>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AppendToNote {
    /// The id of the note.
    id: NoteId,
    /// What to add below the note's text, on a line of its own.
    text: Addition,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct TagNote {
    /// The id of the note.
    id: NoteId,
    /// The tag to put on: one word of letters, digits, - and _.
    tag: Tag,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct UntagNote {
    /// The id of the note.
    id: NoteId,
    /// The tag to take off.
    tag: Tag,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PinNote {
    /// The id of the note.
    id: NoteId,
    /// True to pin the note, false to unpin it.
    #[serde(default = "yes")]
    pinned: bool,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RestoreNote {
    /// The id of a note in the bin or in the archive.
    id: NoteId,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RestoreNoteVersion {
    /// The id of the note.
    id: NoteId,
    /// The version to go back to, as list_note_versions shows it.
    version: VersionNumber,
}

impl Call for CreateNote {
    fn call(self, store: &mut Store, _: &Progress) -> Result<Reply, ToolError> {
        let note = PortableNote {
            title: self.title,
            body: self.body,
            tags: self.tags,
            pinned: self.pinned,
            archived: false,
            created_at: None,
            updated_at: None,
        };
        let note = store.write(|notes| notes.get(notes.import(&note)?))?;
        let text = format!("Created note {}: {}.", note.id, note.title);
        Ok(Reply::about(text, &note))
    }
}

impl Call for UpdateNote {
    fn call(self, store: &mut Store, _: &Progress) -> Result<Reply, ToolError> {
        if self.title.is_none() && self.body.is_none() {
            return Err(ToolError::NothingToChange);
        }
        change(store, self.id, |notes, note| {
            let title = self.title.as_ref().unwrap_or(&note.title);
            let body = self.body.as_ref().unwrap_or(&note.body);
            rewrite(notes, note, title, body)
        })
    }
}

impl Call for AppendToNote {
    fn call(self, store: &mut Store, _: &Progress) -> Result<Reply, ToolError> {
        change(store, self.id, |notes, note| {
            rewrite(notes, note, &note.title, &note.body.with(&self.text)?)
        })
    }
}

impl Call for TagNote {
    fn call(self, store: &mut Store, _: &Progress) -> Result<Reply, ToolError> {
        change(store, self.id, |notes, note| {
            let mut tags = note.tags.clone();
            if !tags.insert(self.tag.clone()) {
                return Ok(format!(
                    "Note {} already has the tag {}.",
                    note.id, self.tag
                ));
            }
            notes.set_tags(note.id, &tags)?;
            Ok(format!("Put the tag {} on note {}.", self.tag, note.id))
        })
    }
}

impl Call for UntagNote {
    fn call(self, store: &mut Store, _: &Progress) -> Result<Reply, ToolError> {
        change(store, self.id, |notes, note| {
            let mut tags = note.tags.clone();
            if !tags.remove(&self.tag) {
                return Ok(format!(
                    "Note {} does not have the tag {}.",
                    note.id, self.tag
                ));
            }
            notes.set_tags(note.id, &tags)?;
            Ok(format!("Took the tag {} off note {}.", self.tag, note.id))
        })
    }
}

impl Call for PinNote {
    fn call(self, store: &mut Store, _: &Progress) -> Result<Reply, ToolError> {
        change(store, self.id, |notes, note| {
            notes.set_pinned(note.id, self.pinned)?;
            let done = if self.pinned { "Pinned" } else { "Unpinned" };
            Ok(format!("{done} note {}.", note.id))
        })
    }
}

impl Call for RestoreNote {
    fn call(self, store: &mut Store, _: &Progress) -> Result<Reply, ToolError> {
        store.write(|notes| {
            let text = match notes.get(self.id)?.state {
                NoteState::Active => format!("Note {} needed no restoring.", self.id),
                NoteState::Archived => format!("Restored note {} from the archive.", self.id),
                NoteState::Bin => format!("Restored note {} from the bin.", self.id),
            };
            notes.set_state(self.id, NoteState::Active)?;
            Ok(Reply::about(text, &notes.get(self.id)?))
        })
    }
}

impl Call for RestoreNoteVersion {
    fn call(self, store: &mut Store, _: &Progress) -> Result<Reply, ToolError> {
        change(store, self.id, |notes, note| {
            if note.version == self.version {
                return Ok(format!(
                    "Note {} is at version {} already.",
                    note.id, note.version
                ));
            }
            let Some(earlier) = notes
                .versions(note.id)?
                .into_iter()
                .find(|kept| kept.version == self.version)
            else {
                let Self { id, version } = self;
                return Err(StoreError::UnknownVersion { id, version }.into());
            };
            rewrite(notes, note, &earlier.title, &earlier.body)
        })
    }
}

/// Changes a note that is not in the bin, and answers with how it is afterwards.
fn change(
    store: &mut Store,
    id: NoteId,
    work: impl FnOnce(&Notes<'_>, &Note) -> Result<String, ToolError>,
) -> Result<Reply, ToolError> {
    store.write(|notes| {
        let text = work(notes, &notes.get_kept(id)?)?;
        Ok(Reply::about(text, &notes.get(id)?))
    })
}

fn rewrite(
    notes: &Notes<'_>,
    note: &Note,
    title: &Title,
    body: &Body,
) -> Result<String, ToolError> {
    // A retry must not pile up versions that are all the same.
    if (title, body) == (&note.title, &note.body) {
        return Ok(format!("Note {} already reads like that.", note.id));
    }
    notes.rewrite(note, title, body)?;
    Ok(format!(
        "Changed note {}; version {} is kept and restore_note_version brings it back.",
        note.id, note.version
    ))
}

fn yes() -> bool {
    true
}
