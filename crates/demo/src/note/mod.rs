//! What a note is made of. Every part is parsed where arguments are read, so the store and the
//! tools never see an empty title or a tag with spaces in it.

mod moment;
mod number;
mod text;

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(crate) use moment::Moment;
pub(crate) use number::{Limit, NoteId, VersionNumber};
pub(crate) use text::{Addition, Body, Query, Tag, TextError, Title};

/// A note as the store keeps it.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Note {
    pub id: NoteId,
    pub title: Title,
    pub body: Body,
    pub tags: BTreeSet<Tag>,
    pub pinned: bool,
    pub state: NoteState,
    /// Which version of its text this is; the earlier ones are kept.
    pub version: VersionNumber,
    pub created_at: Moment,
    pub updated_at: Moment,
}

/// Where a note is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum NoteState {
    Active,
    /// Out of the everyday lists, but still found by search.
    Archived,
    /// Deleted, and waiting to be restored or purged.
    Bin,
}

/// An earlier title and body of a note.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct NoteVersion {
    pub version: VersionNumber,
    pub title: Title,
    pub body: Body,
    pub saved_at: Moment,
}

/// A note as it travels between stores; the store that takes it gives it an id.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PortableNote {
    /// The note's title.
    pub title: Title,
    /// The note's text.
    #[serde(default)]
    pub body: Body,
    /// The note's tags.
    #[serde(default)]
    pub tags: BTreeSet<Tag>,
    /// Whether the note stands at the top of lists.
    #[serde(default)]
    pub pinned: bool,
    /// Whether the note is kept out of the everyday lists.
    #[serde(default)]
    pub archived: bool,
    /// When the note was first written; now, when left out.
    pub created_at: Option<Moment>,
    /// When the note was last changed; now, when left out.
    pub updated_at: Option<Moment>,
}

impl NoteState {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Archived => "archived",
            Self::Bin => "bin",
        }
    }
}

impl From<Note> for PortableNote {
    fn from(note: Note) -> Self {
        Self {
            title: note.title,
            body: note.body,
            tags: note.tags,
            pinned: note.pinned,
            archived: note.state == NoteState::Archived,
            created_at: Some(note.created_at),
            updated_at: Some(note.updated_at),
        }
    }
}
